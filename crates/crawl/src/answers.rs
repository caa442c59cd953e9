//! Answers to questions about crawls: why a URL stands where it does, how a host does. From the registry, whoever asks.

use std::sync::Arc;

use serde_json::{Value, json};
use skep_archive::Archive;
use skep_schedule::retry::Patience;
use skep_schedule::{HostId, Schedule, Standing};
use skep_url::Url;
use skep_warc::date::rfc3339;

use crate::canonical::canonical;
use crate::control::{Change, Question};
use crate::engine::is_spent;
use crate::error::{Error, Result};
use crate::hops::Hops;
use crate::inquiry::Inquiry;
use crate::ledger::{Ledger, name_of};
use crate::outcome::Outcome;
use crate::registry::{self, Entry, Host, State};
use crate::registry_key::RegistryKey;
use crate::robots::AGENT;
use crate::rules::Refusal;
use crate::settings::{Settings, Speed};

/// Answers a question while no crawl runs.
pub fn answer_at_rest(archive: &Arc<Archive>, question: &Question) -> Result<Vec<Value>> {
    let key = RegistryKey::load(&archive.layout().settings())?;
    let mut ledger = Ledger::open(archive, &key, Patience::default())?;
    let answered = match question {
        Question::Set { host, change } => {
            let mut changed = 0;
            for settings in Settings::all(&archive.layout().settings())? {
                changed += set(&mut ledger, settings.number, &settings, host, change)?.len();
            }
            if changed == 0 {
                return Err(Error::Settings { what: format!("no crawl of this archive knows the host {host}") });
            }
            vec![json!({ "host": host, "changed": changed })]
        }
        question => match Inquiry::of(question, Settings::all(&archive.layout().settings())?)? {
            Some(inquiry) => inquiry.answered(&mut ledger, archive)?,
            None => answer(&mut ledger, archive, question)?,
        },
    };
    ledger.checkpoint()?;
    Ok(answered)
}

/// Answers a question that takes no time. Others are an [`Inquiry`].
pub fn answer(ledger: &mut Ledger, archive: &Arc<Archive>, question: &Question) -> Result<Vec<Value>> {
    let settings = Settings::all(&archive.layout().settings())?;
    match question {
        Question::Why { url, name } => why(ledger, &settings, url, name.as_deref(), archive),
        Question::Queue { .. }
        | Question::Report { .. }
        | Question::Watches
        | Question::Schedule { .. }
        | Question::Plan { .. } => Ok(Vec::new()),
        Question::Reread | Question::Set { .. } => Ok(Vec::new()),
    }
}

pub(crate) fn chosen<'s>(all: &'s [Settings], name: Option<&str>) -> Result<&'s Settings> {
    match (name, all) {
        (Some(name), all) => {
            all.iter().find(|settings| settings.name == name).ok_or(Error::Unknown { name: name.into() })
        }
        (None, [only]) => Ok(only),
        (None, []) => Err(Error::Settings { what: "this archive has no crawl".into() }),
        (None, all) => {
            let names: Vec<&str> = all.iter().map(|settings| settings.name.as_str()).collect();
            Err(Error::Settings { what: format!("this archive has several crawls; name one: {}", names.join(", ")) })
        }
    }
}

/// Changes how a host is treated, in one crawl. Returns the hosts that this concerns.
pub fn set(
    ledger: &mut Ledger,
    crawl: u16,
    settings: &Settings,
    host: &str,
    change: &Change,
) -> Result<Vec<registry::HostId>> {
    let pace = match change {
        Change::Pace(text) => Some(text.parse::<Speed>().map_err(|what| Error::Settings { what })?),
        _ => None,
    };
    if pace == Some(Speed::None) && !settings.is_own(name_of(host)) {
        return Err(Error::Settings {
            what: format!("{host} is not an own host of the crawl {}: `none` is not for it", settings.name),
        });
    }
    let mut concerned = Vec::new();
    ledger.each_host(|known| {
        if known.crawl == crawl && is_named(known, host) {
            concerned.push(known.id);
        }
    })?;
    for id in &concerned {
        ledger.registry.update_host(*id, |conduct| match change {
            Change::Pause => conduct.paused = true,
            Change::Resume => (conduct.paused, conduct.dropped) = (false, false),
            Change::Drop => conduct.dropped = true,
            Change::Pace(_) => {
                conduct.pace_ms = match pace {
                    Some(Speed::Millis(ms)) => Some(u32::try_from(ms).unwrap_or(u32::MAX)),
                    Some(Speed::None) => Some(0),
                    Some(Speed::Polite) | None => None,
                }
            }
        })?;
    }
    Ok(concerned)
}

/// A host as typed: its name, or name and port.
pub(crate) fn is_named(host: &Host, typed: &str) -> bool {
    let key = host.key.split_once("://").map_or(host.key.as_str(), |(_, rest)| rest);
    typed == host.key || typed == key || typed == name_of(&host.key)
}

fn why(
    ledger: &mut Ledger,
    all: &[Settings],
    typed: &str,
    name: Option<&str>,
    archive: &Arc<Archive>,
) -> Result<Vec<Value>> {
    let url = parse(typed)?;
    let mut answers = Vec::new();
    for settings in all.iter().filter(|settings| name.is_none_or(|name| settings.name == name)) {
        let known = match ledger.registry.known(settings.number, &canonical(url.as_str()))? {
            Some(entry) => Some(ledger.registry.entry(entry)?),
            None => None,
        };
        let mut answer = match known {
            Some(entry) => fate(ledger, &entry, archive)?,
            None => unknown(ledger, settings, &url),
        };
        answer["crawl"] = settings.name.as_str().into();
        answer["url"] = url.as_str().into();
        answers.push(answer);
    }
    Ok(answers)
}

/// A URL as typed; without a scheme `https`, as everywhere.
fn parse(typed: &str) -> Result<Url> {
    let text = if typed.contains("://") { typed.to_string() } else { format!("https://{typed}") };
    Url::parse(&text).map_err(|error| Error::Settings { what: format!("`{typed}` is no URL: {error}") })
}

/// A URL that nobody heard of, or that was not worth an entry.
fn unknown(ledger: &mut Ledger, settings: &Settings, url: &Url) -> Value {
    let Some(rules) = ledger.rules(settings.number) else {
        return json!({ "fate": "unknown", "because": "the crawl has no rules" });
    };
    match rules.is_inside(url.as_str()) {
        true => {
            json!({ "fate": "unknown", "because": format!("no page of this crawl links to it so far; it would be {}", rules.explain(url)) })
        }
        false => json!({ "fate": "refused", "rule": Refusal::Scope.id(), "because": rules.explain(url) }),
    }
}

fn fate(ledger: &mut Ledger, entry: &Entry, archive: &Arc<Archive>) -> Result<Value> {
    let hops = Hops::unpack(entry.depth);
    let host = ledger.registry.host(entry.host)?;
    let via = entry.via.map(|via| ledger.registry.url(via)).transpose()?;
    let spent = ledger.rules(entry.crawl).map(|rules| rules.settings().clone());
    let spent = spent.is_some_and(|settings| is_spent(ledger, &settings, &host));
    let (word, because) = match entry.state {
        State::Queued if spent => {
            ("budget", "the budget of its site is spent; a larger one, or the next pass, lets it go on".to_string())
        }
        State::Queued => ("queued", waits(&host)),
        State::Out => ("out", "it is being fetched now".to_string()),
        State::Visited { status, time_ms, .. } => {
            ("visited", format!("{} at {}", said(Outcome(status)), rfc3339(time_ms)))
        }
        State::Failed { class, failures, not_before_ms } => (
            "failed",
            format!("{}; {failures} in a row, tried again at {}", said(Outcome(class)), rfc3339(not_before_ms)),
        ),
        State::Dead { class, failures } => {
            ("dead", format!("{}; given up after {failures} in a row", said(Outcome(class))))
        }
        State::Refused { rule } => match Refusal::from_number(rule) {
            Some(refusal) => ("refused", refused_by_rule(ledger, entry, refusal)),
            None => refused_by_answer(entry, rule, archive),
        },
        State::Trap { code } => ("trap", crate::traps::text(code).to_string()),
        State::Parked { budget } => ("budget", format!("the budget of its site is spent ({budget})")),
    };
    let rule = match entry.state {
        State::Refused { rule } => Refusal::from_number(rule).map(Refusal::id),
        State::Trap { code } => Some(crate::traps::id(code)),
        _ => None,
    };
    let last = match entry.outcome {
        State::Visited { status, time_ms, .. } => {
            json!({ "outcome": Outcome(status).to_string(), "status": Outcome(status).as_status(), "time": rfc3339(time_ms) })
        }
        State::Failed { class, .. } | State::Dead { class, .. } => {
            json!({ "outcome": Outcome(class).to_string(), "status": Outcome(class).as_status() })
        }
        _ => Value::Null,
    };
    let failures = match entry.outcome {
        State::Failed { failures, .. } | State::Dead { failures, .. } => failures,
        _ => 0,
    };
    let notes = match last {
        Value::Null => Vec::new(),
        _ => crate::remembered::Remembered::new(archive.clone()).notes(&entry.url).unwrap_or_default(),
    };
    Ok(json!({
        "fate": word, "because": because, "rule": rule, "depth": hops.depth, "redirects": hops.redirects, "via": via,
        "last": last, "failures": failures, "host": host.key, "notes": notes,
    }))
}

/// A refusal, and the rule behind it where there is one to be named.
fn refused_by_rule(ledger: &mut Ledger, entry: &Entry, refusal: Refusal) -> String {
    let Some(rules) = ledger.rules(entry.crawl) else { return refusal.to_string() };
    let settings = rules.settings();
    let rule = match refusal {
        Refusal::Scope | Refusal::Excluded => Url::parse(&entry.url).ok().map(|url| rules.explain(&url)),
        Refusal::Depth => {
            settings.depth.map(|depth| format!("--depth {depth}; it is {} away", Hops::unpack(entry.depth).depth))
        }
        Refusal::Type => {
            let types: Vec<String> = settings.types.iter().map(|one| format!("{one:?}").to_lowercase()).collect();
            Some(format!("--types {}", types.join(",")))
        }
        Refusal::Redirects | Refusal::Long | Refusal::NotFetchable => None,
    };
    rule.map_or(refusal.to_string(), |rule| format!("{refusal} ({rule})"))
}

fn refused_by_answer(entry: &Entry, rule: u16, archive: &Arc<Archive>) -> (&'static str, String) {
    let outcome = Outcome(rule);
    if outcome != Outcome::ROBOTS {
        return ("refused", said(outcome));
    }
    let line = entry.note;
    let text = Url::parse(&entry.url).ok().and_then(|url| {
        let remembered = crate::remembered::Remembered::new(archive.clone());
        let (_, _, body) = remembered.body_since(&url.robots_txt(), i64::MIN).ok()??;
        match skep_url::robots::Robots::parse(&body).decide(AGENT, url.as_str()).because {
            skep_url::robots::Because::Line(line) => Some(line.text.to_string()),
            _ => None,
        }
    });
    match text {
        Some(text) => ("robots", format!("line {line} of its host's robots.txt forbids it: {text}")),
        None => ("robots", format!("line {line} of its host's robots.txt forbids it")),
    }
}

fn waits(host: &Host) -> String {
    if host.conduct.dropped {
        return format!("its host {} was dropped from the crawl", host.key);
    }
    if host.conduct.paused {
        return format!("its host {} is paused", host.key);
    }
    if host.conduct.parked_until_ms > skep_archive::system_clock() {
        return format!("its host {} asked to be left alone until {}", host.key, rfc3339(host.conduct.parked_until_ms));
    }
    format!("it waits for its turn, with {} others of its host", host.waiting.saturating_sub(1))
}

/// An outcome in words.
fn said(outcome: Outcome) -> String {
    match outcome.as_status() {
        Some(status) => format!("answered {status}"),
        None => match outcome {
            Outcome::NOARCHIVE => "the page asks not to be kept (noarchive)".into(),
            Outcome::TYPE_REFUSED => "what came is of a type that the crawl does not want (--types)".into(),
            Outcome::CHALLENGE => "the answer was a test for robots, not a page".into(),
            Outcome::ADDRESS_REFUSED => {
                "its address is not a public one; --allow-private lets such addresses in".into()
            }
            Outcome::CUT_OFF => "the answer broke off; what came of it is kept".into(),
            Outcome::PROXY_UNREACHABLE => "the proxy could not be reached".into(),
            Outcome::PROXY_CREDENTIALS => "the proxy wants other credentials".into(),
            Outcome::SOFT_MISSING => "it shows what its host shows for everything that is not there".into(),
            Outcome::NETWORK_DOWN => "nothing could be reached, this site and others: the network was down".into(),
            Outcome::MACHINE_SLEPT => "this machine slept while it was being fetched".into(),
            Outcome::CAPTIVE_PORTAL => {
                "the answer was the network's own and came for every site (captive portal); it was not kept".into()
            }
            Outcome::PROVIDER_BAN => {
                "its address turned away all its sites (provider ban); they are left alone together".into()
            }
            Outcome::HOST_BANNED => {
                "its address turned away all its sites, however long they were left alone (provider ban)".into()
            }
            Outcome::HOST_GIVEN_UP => "its host was given up".into(),
            Outcome::ROBOTS_UNREACHABLE => "robots.txt of its host could not be had, so nothing may be fetched".into(),
            outcome => outcome.id().replace('-', " "),
        },
    }
}

/// How a host stands, with what waits for it.
pub(crate) fn waiting(host: &Host, all: &[Settings], schedule: Option<&Schedule>) -> Value {
    let now_ms = skep_archive::system_clock();
    let view = schedule.and_then(|schedule| schedule.host(HostId(host.id.0)));
    let settings = all.iter().find(|settings| settings.number == host.crawl);
    let pace = match (host.conduct.pace_ms, settings) {
        (Some(ms), _) => ms.to_string(),
        (None, Some(settings)) => settings.pace_of(name_of(&host.key), &host.site).to_string(),
        (None, None) => "polite".into(),
    };
    let state = match (&view, &host.conduct) {
        (_, conduct) if conduct.dropped => "dropped",
        (_, conduct) if conduct.paused => "paused",
        (_, conduct) if conduct.parked_until_ms > now_ms => "parked",
        (Some(view), _) => match view.standing {
            Standing::Out => "out",
            Standing::Place => "ready",
            Standing::Resting { .. } => "resting",
            Standing::Parked { .. } => "parked",
            Standing::Paused => "paused",
            Standing::Gap { .. } | Standing::Address | Standing::Idle => "waiting",
        },
        (None, _) => "waiting",
    };
    // What a watch is to look at again waits in a queue of its own once it is due.
    let again = if settings.is_some_and(|settings| settings.watch.is_some()) { host.again } else { 0 };
    let retries = if host.retry_due_ms.is_some_and(|due_ms| due_ms <= now_ms) { host.retries } else { 0 };
    let overdue = again + retries;
    let next = host
        .retry_due_ms
        .filter(|_| host.waiting == host.retries)
        .or(Some(host.conduct.parked_until_ms).filter(|ms| *ms > now_ms));
    json!({
        "host": host.key, "site": host.site, "crawl": settings.map(|settings| settings.name.as_str()),
        "waiting": host.waiting, "overdue": overdue, "out": host.out, "visited": host.visited, "failed": host.failed,
        "refused": host.refused, "next": next.map(rfc3339), "pace": pace, "gap_ms": view.map(|view| view.gap_ms), "state": state,
        "last_error": (host.conduct.last_error != 0).then(|| Outcome(host.conduct.last_error).to_string()),
        "crawl_delay_ms": host.conduct.crawl_delay_ms,
        "parked_until": (host.conduct.parked_until_ms > now_ms).then(|| rfc3339(host.conduct.parked_until_ms)),
        "pages": host.conduct.pages, "bytes": host.conduct.bytes,
    })
}
