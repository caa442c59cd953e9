//! One bundle: URLs of one host, visited one after the other on one connection, at the pace of the site.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use skep_archive::Key;
use skep_fetch::Session;
use skep_schedule::{AddressKey, Bundle, BundleReport, Fault, LeaseId, Park};
use skep_url::Url;
use skep_url::robots::{Because, Policy};

use crate::checks;
use crate::clocks::NotNow;
use crate::hands::{self, Who};
use crate::hops::Hops;
use crate::outcome::Outcome;
use crate::robots::{self, AGENT, Learned};
use crate::soft;
use crate::visit::{Visited, visit};
use crate::worker::{Parts, Said};

/// A bundle is over. Visits of it may still be on their way to the disk.
#[derive(Debug)]
pub struct Ended {
    /// Its lease.
    pub lease: LeaseId,
    /// How it went; `waiting` is for the engine to fill in.
    pub report: BundleReport,
    /// Entries that were not visited.
    pub left: Vec<u64>,
    /// What the host did last that was wrong.
    pub trouble: Option<Outcome>,
    /// What robots.txt asks for.
    pub crawl_delay_ms: Option<u64>,
}

/// Visits the URLs of a bundle as far as time, robots.txt and the host allow. `urls` are the same taken apart.
pub async fn run(bundle: Bundle, urls: Vec<Url>, parts: &Parts) {
    let mut report = BundleReport::default();
    let mut checks = Checks::default();
    let mut skipped = Vec::new();
    parts.begin_place(&bundle);
    let (next, trouble) = match urls.first() {
        Some(first) => {
            tokio::time::sleep_until(parts.zero + std::time::Duration::from_millis(bundle.not_before_ms)).await;
            if parts.leading.is_some() {
                parts.rested(first, bundle.pace, None);
            }
            match hands::offer(&bundle, first, parts).await {
                Ok(Who::We) => {
                    let session = parts.fetcher.session(first);
                    through(&bundle, &urls, session, None, &mut report, &mut checks, parts).await
                }
                Ok(Who::Others(brought, rules)) => {
                    let session = parts.fetcher.session_of(first, brought);
                    let theirs = Some(Theirs { rules, skipped: &mut skipped });
                    through(&bundle, &urls, session, theirs, &mut report, &mut checks, parts).await
                }
                Ok(Who::Nobody) => (0, None),
                Err(not_now) => {
                    put_off(0, not_now, &mut report, parts);
                    (0, None)
                }
            }
        }
        None => (0, None),
    };
    let left = skipped.into_iter().chain(bundle.urls[next..].iter().map(|ask| ask.entry)).collect();
    let crawl_delay_ms = report.crawl_delay_ms;
    checks.flush(&bundle, parts);
    parts.forget_looked_up(&bundle);
    parts.end_place(bundle.lease);
    let _given_up = parts.say.send(Said::Ended(Ended { lease: bundle.lease, report, left, trouble, crawl_delay_ms }));
}

/// Others fetched the bundle.
struct Theirs<'b> {
    /// The rules of the host by which they went; else they brought them.
    rules: Option<Arc<Policy>>,
    /// Takes what they did not bring.
    skipped: &'b mut Vec<u64>,
}

/// Goes through the bundle; returns how many of its URLs are done with, and what went wrong.
async fn through(
    bundle: &Bundle,
    urls: &[Url],
    mut session: Session,
    mut theirs: Option<Theirs<'_>>,
    report: &mut BundleReport,
    checks: &mut Checks,
    parts: &Parts,
) -> (usize, Option<Outcome>) {
    let Some(first) = urls.first() else { return (0, None) };
    let mut located = None;
    let rules = match parts.ignores_robots(first) {
        true => None,
        false => {
            let learned = match theirs.as_mut().and_then(|theirs| theirs.rules.take()) {
                Some(rules) => Learned::known(rules),
                None => match robots::rules(first, bundle, &mut session, parts).await {
                    Ok(learned) => learned,
                    Err(not_now) => return put_off(0, not_now, report, parts),
                },
            };
            report.crawl_delay_ms = learned
                .policy
                .robots()
                .and_then(|robots| robots.crawl_delay(AGENT))
                .map(|delay| (delay.seconds * 1000.0) as u64);
            match learned.answer_ms {
                // The Crawl-delay holds already between this file and the first page.
                Some(answer_ms) => {
                    if learned.park_ms.is_none() {
                        match theirs {
                            Some(_) => parts.brought(first, bundle.pace, answer_ms, report.crawl_delay_ms),
                            None => parts.answered(first, bundle.pace, answer_ms, report.crawl_delay_ms),
                        }
                    }
                    answered(report, answer_ms, parts);
                }
                None => parts.rested(first, bundle.pace, report.crawl_delay_ms),
            }
            locate(bundle.lease, learned.address, &mut located, parts);
            if let Some(outcome) = learned.refused {
                // It would be refused for every page alike; asking again changes nothing.
                for ask in &bundle.urls {
                    checks.note(refused(bundle, ask, outcome, parts.now_ms()));
                }
                return (bundle.urls.len(), Some(outcome));
            }
            if learned.policy.is_closed() || learned.park_ms.is_some() {
                let outcome = learned.closed;
                give_up(report, outcome, learned.fault.or(Some(skep_fetch::Class::Host)), learned.park_ms, parts);
                // One URL answers for all: its failures count the tries, and its check line says why.
                let Some(ask) = bundle.urls.first().filter(|_| learned.park_ms.is_none()) else {
                    return (0, Some(outcome));
                };
                checks.note(refused(bundle, ask, outcome, parts.now_ms()));
                return (1, Some(outcome));
            }
            Some(learned.policy)
        }
    };
    for (number, (ask, url)) in bundle.urls.iter().zip(urls).enumerate() {
        // Whoever does not want to be visited any more does not wait for the end of a bundle; nor do others who lead what it is of by now, also
        // where this node may still visit the site.
        let unwanted = theirs.is_none() && (parts.is_paused(url) || !leads(bundle, parts));
        if unwanted || parts.is_over(bundle.deadline_ms, report.answer_ms) {
            return (number, None);
        }
        let decision = rules.as_ref().map(|rules| rules.decide(AGENT, url.as_str()));
        if let Some(decision) = decision.filter(|decision| !decision.allowed) {
            let line = if let Because::Line(line) = decision.because { line.number } else { 0 };
            let robots_line = u16::try_from(line).unwrap_or(u16::MAX);
            checks.note(Visited { robots_line, ..refused(bundle, ask, Outcome::ROBOTS, parts.now_ms()) });
            continue;
        }
        if let Some(theirs) = theirs.as_mut().filter(|_| !session.brings(url)) {
            theirs.skipped.push(ask.entry);
            continue;
        }
        let is_allowed = |url: &Url| rules.as_ref().is_none_or(|rules| rules.decide(AGENT, url.as_str()).allowed);
        // What a page that died shows instead is known before one is looked at again.
        let unasked = ask.due.is_some() && theirs.is_none() && parts.soft.is_unasked(url, parts.now_ms());
        if let Some(nowhere) = unasked.then(|| soft::nowhere(url, parts)).flatten().filter(is_allowed) {
            match ask_nowhere(&nowhere, bundle, &mut session, report, parts).await {
                Ok(None) => {}
                Ok(Some(park_ms)) => {
                    give_up(report, Outcome::PROBE, None, Some(park_ms), parts);
                    return (number, Some(Outcome::PROBE));
                }
                Err(not_now) => return put_off(number, not_now, report, parts),
            }
        }
        let mut cookie = None;
        let step = loop {
            if let Err(not_now) = parts.turn_of(&session, url, bundle.pace, bundle.deadline_ms).await {
                return put_off(number + usize::from(cookie.is_some()), not_now, report, parts);
            }
            let mut step = visit(ask, url, cookie.as_deref(), bundle.lease, &mut session, parts).await;
            match theirs {
                Some(_) => parts.brought(url, bundle.pace, step.answer_ms, report.crawl_delay_ms),
                None => parts.answered(url, bundle.pace, step.answer_ms, report.crawl_delay_ms),
            }
            answered(report, step.answer_ms, parts);
            match step.cookie.take() {
                Some(wanted) => cookie = Some(wanted),
                None => break step,
            }
        };
        locate(bundle.lease, step.address, &mut located, parts);
        if step.fault.is_none() {
            report.done += 1;
        }
        if let Some(check) = step.check {
            checks.note(check);
        }
        if checks.is_due() {
            checks.flush(bundle, parts);
        }
        if give_up(report, step.outcome, step.fault, step.park_ms, parts) {
            if let Some(park_ms) = step.park_ms {
                parts.parked(url, park_ms);
            }
            return (number + 1, Some(step.outcome));
        }
        let nowhere = step.suspect.then(|| soft::nowhere(url, parts)).flatten();
        if let Some(nowhere) = nowhere.filter(is_allowed) {
            match ask_nowhere(&nowhere, bundle, &mut session, report, parts).await {
                Ok(None) => {}
                Ok(Some(park_ms)) => {
                    give_up(report, step.outcome, None, Some(park_ms), parts);
                    return (number + 1, Some(step.outcome));
                }
                Err(not_now) => return put_off(number + 1, not_now, report, parts),
            }
        }
    }
    (bundle.urls.len(), None)
}

/// Whether the slice of a bundle is led here, where nodes crawl together.
fn leads(bundle: &Bundle, parts: &Parts) -> bool {
    parts.leading.as_ref().is_none_or(|leading| leading.may_fetch(&bundle.host))
}

/// Asks for something that cannot be there, in its turn. Says for how long the host wants to be left alone, if it does.
async fn ask_nowhere(
    nowhere: &Url,
    bundle: &Bundle,
    session: &mut Session,
    report: &mut BundleReport,
    parts: &Parts,
) -> Result<Option<u64>, NotNow> {
    parts.turn(nowhere, bundle.pace, bundle.deadline_ms).await?;
    let (answer_ms, park_ms) = soft::ask(nowhere, bundle.lease, session, parts).await;
    parts.answered(nowhere, bundle.pace, answer_ms, report.crawl_delay_ms);
    answered(report, answer_ms, parts);
    if let Some(park_ms) = park_ms {
        parts.parked(nowhere, park_ms);
    }
    Ok(park_ms)
}

/// There is no turn for the rest of the bundle: it goes back, and the schedule hears until when.
fn put_off(done: usize, not_now: NotNow, report: &mut BundleReport, parts: &Parts) -> (usize, Option<Outcome>) {
    if let NotNow::Until(until) = not_now {
        report.park = Some(Park::Until(until.saturating_duration_since(parts.zero).as_millis() as u64));
    }
    (done, None)
}

fn answered(report: &mut BundleReport, answer_ms: u64, parts: &Parts) {
    report.ended_ms = Some(parts.elapsed_ms());
    report.answer_ms = answer_ms;
}

/// The host wants to be left alone, or cannot be reached, or we cannot reach anybody: the rest of the bundle goes back.
fn give_up(
    report: &mut BundleReport,
    outcome: Outcome,
    fault: Option<skep_fetch::Class>,
    park_ms: Option<u64>,
    parts: &Parts,
) -> bool {
    report.park = park_ms.map(|ms| match ms {
        0 => Park::Doubling,
        ms => Park::Until(parts.elapsed_ms() + ms),
    });
    report.fault = match fault {
        _ if outcome.is_between() => Some(Fault::Network),
        _ if report.park.is_some() => None,
        Some(skep_fetch::Class::Host) => Some(Fault::Host),
        Some(skep_fetch::Class::Local) => Some(Fault::Local),
        Some(skep_fetch::Class::Url | skep_fetch::Class::Refused) | None => None,
    };
    report.park.is_some() || report.fault.is_some()
}

/// Says where the host is, when that is news.
fn locate(lease: LeaseId, address: Option<IpAddr>, located: &mut Option<IpAddr>, parts: &Parts) {
    if let Some(address) = address.filter(|address| located.replace(*address) != Some(*address)) {
        let _given_up = parts.say.send(Said::Located(lease, AddressKey::of(address)));
    }
}

fn refused(bundle: &Bundle, ask: &skep_schedule::BundleUrl, outcome: Outcome, time_ms: i64) -> Visited {
    let bare = Visited::bare(ask.entry, outcome, time_ms, outcome.failures_after(ask.failures));
    Visited { lease: bundle.lease, url: ask.url.clone(), hops: Hops { depth: ask.depth, redirects: ask.hops }, ..bare }
}

/// Visits of a bundle that brought nothing, on their way to one record.
#[derive(Default)]
struct Checks {
    visits: Vec<Visited>,
    since: Option<tokio::time::Instant>,
}

/// A check waits for others at most so long.
const CHECKS_WAIT: Duration = Duration::from_secs(5);
/// And so many of them wait together: what waits is made again after a crash.
const CHECKS_WAITING_MAX: usize = 16;

impl Checks {
    fn note(&mut self, visited: Visited) {
        self.since.get_or_insert_with(tokio::time::Instant::now);
        self.visits.push(visited);
    }

    fn is_due(&self) -> bool {
        self.visits.len() >= CHECKS_WAITING_MAX || self.since.is_some_and(|since| since.elapsed() >= CHECKS_WAIT)
    }

    fn flush(&mut self, bundle: &Bundle, parts: &Parts) {
        self.since = None;
        let visits = std::mem::take(&mut self.visits);
        if visits.is_empty() {
            return;
        }
        let settings = parts.settings();
        let lines: Vec<checks::Check> = visits
            .iter()
            .map(|visited| checks::Check {
                fingerprint: parts.fingerprint(settings.number, &visited.url),
                time_ms: visited.time_ms,
                outcome: match visited.outcome {
                    Outcome(304) => checks::Outcome::NotModified,
                    Outcome::ROBOTS => checks::Outcome::Robots { line: visited.robots_line },
                    outcome => checks::Outcome::Fault(outcome.id().into()),
                },
                failures: visited.failures,
            })
            .collect();
        let (block, _all) = checks::encode(&settings.name, &bundle.host, &lines);
        let hash = bundle.urls.first().map_or(0, |ask| parts.filed(bundle.lease, Key::of(&ask.url)).site_hash());
        parts.append_checks(hash, block, visits);
    }
}
