//! Questions whose answer takes a walk through everything that is known: what a crawl came to, how watches stand. A crawl that runs takes some
//! steps of the walk between two of its own, and works on meanwhile.
//!
//! ```text
//!  Question ─▶ Inquiry ─▶ step, step, … ─▶ Told
//!                            └─▶ Records: the rest is read from records, by whoever has time for it
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use skep_archive::Archive;
use skep_schedule::Schedule;
use skep_schedule::revisit::Moment;
use skep_url::Url;
use skep_warc::date::rfc3339;

use crate::answers::{self, chosen, is_named};
use crate::canonical::canonical;
use crate::control::Question;
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::limits::{BROKEN_MAX, HOSTS_LISTED_MAX, INQUIRED_AT_ONCE, QUEUE_HOSTS_MAX, SCHEDULE_URLS_MAX};
use crate::outcome::Outcome;
use crate::registry::{Entry, Host, HostId, State};
use crate::rules::Refusal;
use crate::settings::{Settings, Watch};
use crate::watches;
use crate::watching::Watching;

/// A question that is being answered.
pub struct Inquiry {
    about: About,
    /// The crawls that it is about; the last one comes first.
    left: Vec<Settings>,
    walk: Walk,
    told: Vec<Value>,
}

enum About {
    Reports,
    Broken,
    Standings,
    Schedule(String),
    Plan(Watch),
    Queue { host: Option<String>, limit: usize, all: Vec<Settings> },
}

/// How far it is with the crawl that it is at.
#[derive(Default)]
enum Walk {
    /// Not begun.
    #[default]
    Before,
    Report(Box<Report>),
    Broken(Box<Broken>, u64),
    /// URLs of a host that is named.
    Finding(Found),
    /// Hosts with what waits for them.
    Queued(Queued),
    /// What is remembered is recalled, and then asked about.
    Recalling(Vec<u64>, Option<Box<Watching>>),
}

/// What a step came to.
pub enum Step {
    /// There are more to take.
    More,
    /// The answer.
    Told(Vec<Value>),
    /// What is to be looked up in records, which takes nothing of the crawl.
    Records(Box<Broken>),
}

impl Inquiry {
    /// For a question that takes a walk.
    pub fn of(question: &Question, all: Vec<Settings>) -> Result<Option<Inquiry>> {
        let (about, mut left) = match question {
            Question::Report { name: None, broken: false } => (About::Reports, all),
            Question::Report { name, broken } => {
                let one = chosen(&all, name.as_deref())?.clone();
                (if *broken { About::Broken } else { About::Reports }, vec![one])
            }
            Question::Watches => (About::Standings, all),
            Question::Schedule { what } => (About::Schedule(what.clone()), all),
            Question::Plan { name, watch } => {
                watch.check().map_err(|what| Error::Settings { what })?;
                (About::Plan(watch.clone()), vec![chosen(&all, Some(name))?.clone()])
            }
            Question::Queue { host, limit } => {
                let limit = (*limit).clamp(1, QUEUE_HOSTS_MAX);
                (About::Queue { host: host.clone(), limit, all: all.clone() }, all)
            }
            Question::Why { .. } | Question::Reread | Question::Set { .. } => return Ok(None),
        };
        if matches!(about, About::Standings | About::Schedule(_)) {
            left.retain(|settings| settings.watch.is_some());
        }
        left.reverse();
        Ok(Some(Inquiry { about, left, walk: Walk::Before, told: Vec::new() }))
    }

    /// Takes a step. `schedule` is that of the crawl that runs.
    pub fn step(&mut self, ledger: &mut Ledger, schedule: Option<&Schedule>) -> Result<Step> {
        let Some(settings) = self.left.last() else { return Ok(Step::Told(std::mem::take(&mut self.told))) };
        let now = Moment::from_ms(skep_archive::system_clock());
        let watch = match &self.about {
            About::Plan(watch) => watch.clone(),
            _ => settings.watch.clone().unwrap_or_default(),
        };
        let recalling =
            |entries, ledger: &Ledger| Walk::Recalling(entries, ledger.to_recall(settings.number, &watch, now));
        self.walk = match std::mem::take(&mut self.walk) {
            Walk::Before => match &self.about {
                About::Reports => Walk::Report(Box::default()),
                About::Broken => Walk::Broken(Box::new(Broken::of(settings)), 0),
                About::Standings | About::Plan(_) => recalling(Vec::new(), ledger),
                About::Queue { .. } => Walk::Queued(Queued::default()),
                About::Schedule(what) => match what.contains("://").then(|| Url::parse(what).ok()).flatten() {
                    Some(url) => {
                        let known = ledger.registry.known(settings.number, &canonical(url.as_str()))?;
                        recalling(known.into_iter().collect(), ledger)
                    }
                    None => Walk::Finding(Found::default()),
                },
            },
            Walk::Report(mut report) => match report.step(ledger, settings)? {
                true => Walk::Report(report),
                false => {
                    self.told.push(report.told(ledger, settings));
                    self.next()
                }
            },
            Walk::Broken(mut broken, from) => match broken.step(ledger, settings, from)? {
                Some(from) => Walk::Broken(broken, from),
                None => {
                    self.left.clear();
                    return Ok(Step::Records(broken));
                }
            },
            Walk::Finding(mut found) => {
                let About::Schedule(what) = &self.about else { return Ok(Step::More) };
                match found.step(ledger, settings, what)? {
                    true => Walk::Finding(found),
                    false => recalling(found.entries, ledger),
                }
            }
            Walk::Queued(mut queued) => {
                let About::Queue { host, limit, all } = &self.about else { return Ok(Step::More) };
                match queued.step(ledger, host.as_deref(), *limit)? {
                    true => Walk::Queued(queued),
                    false => {
                        self.told =
                            queued.best.into_iter().map(|(_, host)| answers::waiting(&host, all, schedule)).collect();
                        self.left.clear();
                        Walk::Before
                    }
                }
            }
            Walk::Recalling(entries, mut recalled) => match ledger.recall_for(&mut recalled, now)? {
                true => Walk::Recalling(entries, recalled),
                false => {
                    let told = ledger.with_watch(recalled, |ledger| match &self.about {
                        About::Plan(_) => watches::plan(ledger, settings, &watch),
                        About::Schedule(_) => watches::schedule(ledger, settings, &watch, &entries),
                        _ => Ok(vec![watches::standing(ledger, settings, &watch)?]),
                    })?;
                    self.told.extend(told);
                    self.next()
                }
            },
        };
        Ok(Step::More)
    }

    fn next(&mut self) -> Walk {
        self.left.pop();
        Walk::Before
    }

    /// Takes all steps: nothing else is to be done meanwhile.
    pub fn answered(mut self, ledger: &mut Ledger, archive: &Arc<Archive>) -> Result<Vec<Value>> {
        loop {
            match self.step(ledger, None)? {
                Step::More => {}
                Step::Told(told) => return Ok(told),
                Step::Records(broken) => return broken.told(archive),
            }
        }
    }
}

/// Shows some entries, or all that are left; says where the next ones begin.
fn some_entries(ledger: &mut Ledger, from: u64, mut each: impl FnMut(&Entry)) -> Result<Option<u64>> {
    let (until, mut next) = (from.saturating_add(INQUIRED_AT_ONCE), None);
    ledger.registry.walk(from, |entry| {
        if entry.number >= until {
            next = Some(entry.number);
            return ControlFlow::Break(());
        }
        each(entry);
        ControlFlow::Continue(())
    })?;
    Ok(next)
}

/// The same of hosts.
fn some_hosts(ledger: &mut Ledger, from: u32, mut each: impl FnMut(&Host)) -> Result<Option<u32>> {
    let (until, mut next) = (from.saturating_add(INQUIRED_AT_ONCE as u32), None);
    ledger.registry.walk_hosts(HostId(from), |host| {
        if host.id.0 >= until {
            next = Some(host.id.0);
            return ControlFlow::Break(());
        }
        each(host);
        ControlFlow::Continue(())
    })?;
    Ok(next)
}

/// Hosts named as the slowest in a report.
const SLOWEST_REPORTED: usize = 10;

/// What a crawl came to, as far as it is counted.
#[derive(Default)]
struct Report {
    from_entry: Option<u64>,
    from_host: u32,
    entries_over: bool,
    statuses: BTreeMap<String, u64>,
    errors: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    traps: BTreeMap<&'static str, u64>,
    robots: u64,
    broken: u64,
    hosts: u64,
    bytes: u64,
    pages: u64,
    slow: BTreeSet<(u32, String)>,
}

impl Report {
    /// Counts some more. Says whether there is more to count.
    fn step(&mut self, ledger: &mut Ledger, settings: &Settings) -> Result<bool> {
        if !self.entries_over {
            let from = self.from_entry.unwrap_or(0);
            self.from_entry = some_entries(ledger, from, |entry| {
                if entry.crawl == settings.number {
                    self.count(entry.outcome);
                }
            })?;
            self.entries_over = self.from_entry.is_none();
            return Ok(true);
        }
        let next = some_hosts(ledger, self.from_host, |host| {
            if host.crawl == settings.number && host.visited > 0 {
                self.hosts += 1;
                self.bytes += host.conduct.bytes;
                self.pages += u64::from(host.conduct.pages);
                self.slow.insert((host.conduct.slowest_ms, host.key.clone()));
                if self.slow.len() > SLOWEST_REPORTED {
                    self.slow.pop_first();
                }
            }
        })?;
        self.from_host = next.unwrap_or(self.from_host);
        Ok(next.is_some())
    }

    fn count(&mut self, outcome: State) {
        match outcome {
            State::Visited { status, .. } => {
                *self.statuses.entry(Outcome(status).to_string()).or_default() += 1;
                self.broken += u64::from(Outcome(status).is_broken());
            }
            State::Failed { class, .. } => *self.errors.entry(Outcome(class).id()).or_default() += 1,
            State::Dead { class, .. } => {
                *self.errors.entry(Outcome(class).id()).or_default() += 1;
                self.broken += u64::from(Outcome(class).is_broken());
            }
            State::Refused { rule } if rule == Outcome::ROBOTS.0 => self.robots += 1,
            State::Refused { rule } => {
                let id = Refusal::from_number(rule).map_or(Outcome(rule).id(), Refusal::id);
                *self.refused.entry(id).or_default() += 1
            }
            State::Trap { code } => *self.traps.entry(crate::traps::id(code)).or_default() += 1,
            _ => {}
        }
    }

    fn told(self, ledger: &Ledger, settings: &Settings) -> Value {
        let counts = ledger.registry.counts(settings.number);
        let slowest: Vec<Value> = self.slow.iter().rev().map(|(ms, host)| json!({ "host": host, "ms": ms })).collect();
        json!({
            "name": settings.name, "pass": settings.pass.number, "begun": rfc3339(settings.pass.begun_ms),
            "ended": settings.pass.ended_ms.map(rfc3339), "seeds": settings.seeds.len(), "known": counts.known,
            "visited": counts.visited, "visited_in_pass": counts.visited_in_pass, "waiting": counts.waiting, "pages": self.pages,
            "bytes": self.bytes, "hosts": self.hosts, "status": self.statuses, "errors": self.errors, "refused": self.refused,
            "traps": self.traps, "robots": self.robots, "broken": self.broken, "slowest": slowest,
        })
    }
}

/// Broken links of a crawl.
pub struct Broken {
    crawl: String,
    links: HashMap<String, (Outcome, Vec<String>)>,
}

impl Broken {
    fn of(settings: &Settings) -> Broken {
        Broken { crawl: settings.name.clone(), links: HashMap::new() }
    }

    fn step(&mut self, ledger: &mut Ledger, settings: &Settings, from: u64) -> Result<Option<u64>> {
        some_entries(ledger, from, |entry| {
            let outcome = match entry.outcome {
                State::Visited { status, .. } => Outcome(status),
                State::Dead { class, .. } => Outcome(class),
                _ => return,
            };
            if entry.crawl == settings.number && outcome.is_broken() && self.links.len() < BROKEN_MAX {
                self.links.insert(entry.url.clone(), (outcome, Vec::new()));
            }
        })
    }

    /// With every kept page of the crawl that holds one of them.
    pub fn told(mut self, archive: &Arc<Archive>) -> Result<Vec<Value>> {
        if !self.links.is_empty() {
            let mut seen = HashSet::new();
            crate::recorded::each_metadata(archive, &mut |capture, meta| {
                if meta.crawl == self.crawl {
                    for link in &meta.links.links {
                        if let Some((_, pages)) = self.links.get_mut(&link.url)
                            && pages.len() < HOSTS_LISTED_MAX
                            && seen.insert((link.url.clone(), capture.url.clone()))
                        {
                            pages.push(capture.url.clone());
                        }
                    }
                }
            })?;
        }
        let mut lines: Vec<(String, (Outcome, Vec<String>))> = self.links.into_iter().collect();
        lines.sort_by(|a, b| a.0.cmp(&b.0));
        let told = |(url, (outcome, pages)): (String, (Outcome, Vec<String>))| json!({ "url": url, "outcome": outcome.to_string(), "pages": pages });
        Ok(lines.into_iter().map(told).collect())
    }
}

/// The first pages of a host that is named.
#[derive(Default)]
struct Found {
    from_host: u32,
    hosts: Option<HashSet<HostId>>,
    named: HashSet<HostId>,
    from_entry: u64,
    entries: Vec<u64>,
}

impl Found {
    /// Looks for some more. Says whether there may be more.
    fn step(&mut self, ledger: &mut Ledger, settings: &Settings, host: &str) -> Result<bool> {
        let Some(hosts) = &self.hosts else {
            let next = some_hosts(ledger, self.from_host, |known| {
                if known.crawl == settings.number && is_named(known, host) {
                    self.named.insert(known.id);
                }
            })?;
            match next {
                Some(next) => self.from_host = next,
                None => self.hosts = Some(std::mem::take(&mut self.named)),
            }
            return Ok(true);
        };
        if hosts.is_empty() {
            return Ok(false);
        }
        let next = some_entries(ledger, self.from_entry, |entry| {
            let is_one = entry.crawl == settings.number && hosts.contains(&entry.host);
            if is_one && matches!(entry.outcome, State::Visited { .. }) && self.entries.len() < SCHEDULE_URLS_MAX {
                self.entries.push(entry.number);
            }
        })?;
        self.from_entry = next.unwrap_or(self.from_entry);
        Ok(next.is_some() && self.entries.len() < SCHEDULE_URLS_MAX)
    }
}

/// Hosts with most waiting, as far as they are looked through.
#[derive(Default)]
struct Queued {
    from_host: u32,
    best: Vec<((u32, u32), Host)>,
}

impl Queued {
    /// Looks through some more. Says whether there are more.
    fn step(&mut self, ledger: &mut Ledger, typed: Option<&str>, limit: usize) -> Result<bool> {
        let best = &mut self.best;
        // Of equals the one heard first comes first.
        let cut = |best: &mut Vec<((u32, u32), Host)>| {
            best.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
            best.truncate(limit);
        };
        let next = some_hosts(ledger, self.from_host, |host| {
            if typed.map_or(host.waiting > 0 || host.out > 0, |typed| is_named(host, typed)) {
                best.push(((host.out, host.waiting), host.clone()));
            }
            if best.len() >= limit.saturating_mul(2).max(64) {
                cut(best);
            }
        })?;
        cut(best);
        self.from_host = next.unwrap_or(self.from_host);
        Ok(next.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry_key::RegistryKey;
    use crate::visit::Visited;
    use skep_archive::OpenOptions;
    use skep_schedule::retry::Patience;

    /// Steps of an inquiry, and what it came to.
    fn walked(question: &Question, all: &[Settings], ledger: &mut Ledger) -> (usize, Vec<Value>) {
        let mut inquiry = Inquiry::of(question, all.to_vec()).unwrap().expect("it takes a walk");
        for steps in 1.. {
            match inquiry.step(ledger, None).unwrap() {
                Step::More => {}
                Step::Told(told) => return (steps, told),
                Step::Records(broken) => {
                    let urls = broken.links.keys().map(|url| json!({ "url": url }));
                    return (steps, urls.collect());
                }
            }
        }
        unreachable!("an answer comes")
    }

    #[test]
    fn a_walk_through_everything_is_made_in_steps() {
        const EACH: u64 = INQUIRED_AT_ONCE + 100;
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        let settings = |number: u16, name: &str| Settings {
            name: name.into(),
            number,
            seeds: vec!["http://bees.test/".into()],
            watch: Some(Watch::default()),
            ..Settings::default()
        };
        let all = [settings(1, "one"), settings(2, "other")];
        for settings in &all {
            ledger.set_rules(Arc::new(settings.clone())).unwrap();
            for page in 0..EACH {
                let url = format!("http://bees.test/{page}");
                assert!(ledger.seed(settings.number, &url).unwrap());
                let entry = ledger.registry.known(settings.number, &canonical(&url)).unwrap();
                let outcome = if page % 100 == 99 { Outcome(404) } else { Outcome(200) };
                let bare = Visited::bare(entry.unwrap(), outcome, 1_790_000_000_000, 0);
                ledger.visited(settings.number, 1, &Visited { url, ..bare }).unwrap();
            }
        }
        let (steps, told) = walked(&Question::Report { name: None, broken: false }, &all, &mut ledger);
        assert!(steps > 6, "{steps}");
        let count = |told: &Value| told["status"]["200"].as_u64().unwrap() + told["broken"].as_u64().unwrap();
        assert_eq!(told.iter().map(count).collect::<Vec<_>>(), [EACH, EACH]);
        assert_eq!((&told[0]["name"], &told[1]["hosts"]), (&json!("one"), &json!(1)));
        let (steps, told) = walked(&Question::Report { name: Some("other".into()), broken: true }, &all, &mut ledger);
        assert!(steps > 3 && told.len() as u64 == EACH / 100, "{steps} {}", told.len());
        let (steps, told) = walked(&Question::Watches, &all, &mut ledger);
        assert!(steps > 4, "{steps}");
        assert!(told.iter().all(|told| told["pages"].as_u64() == Some(EACH)), "{told:?}");
        let (_, told) = walked(&Question::Schedule { what: "bees.test".into() }, &all, &mut ledger);
        assert_eq!(told.len(), 2 * SCHEDULE_URLS_MAX);
        let (_, told) = walked(&Question::Schedule { what: "http://bees.test/7".into() }, &all, &mut ledger);
        assert_eq!(told.iter().map(|told| &told["watch"]).collect::<Vec<_>>(), ["one", "other"]);
        let plan = Question::Plan { name: "one".into(), watch: Watch::default() };
        assert_eq!(walked(&plan, &all, &mut ledger).1[0]["pages"].as_u64(), Some(EACH));
        assert!(ledger.watching.is_none(), "nothing of it stays");
        for number in 0..EACH {
            assert!(ledger.seed(1, &format!("http://ants{number}.test/")).unwrap());
        }
        assert!(ledger.seed(1, "http://ants700.test/more").unwrap());
        let asked = Question::Queue { host: None, limit: 3 };
        let (steps, told) = walked(&asked, &all, &mut ledger);
        assert!(steps > 2, "{steps}");
        let waiting: Vec<_> = told.iter().map(|host| host["waiting"].as_u64()).collect();
        assert_eq!(waiting, [Some(2), Some(1), Some(1)], "{told:?}");
        assert!(told[0]["host"].as_str().is_some_and(|host| host.contains("ants700.test")), "{told:?}");
    }
}
