//! Answers about watches: how they stand, when a page is looked at again and why, what a budget would bring.

use serde_json::{Value, json};
use skep_schedule::limits::PRICE_SAMPLE;
use skep_schedule::revisit::plan::{CLASSES, forecast};
use skep_schedule::revisit::{Budget, Memory, Moment, Policy, Prior};
use skep_warc::date::rfc3339;

use crate::error::Result;
use crate::ledger::Ledger;
use crate::limits::{FRESH_SAMPLE, TOLD_SEEDS_MAX};
use crate::registry::State;
use crate::settings::{Settings, Watch};

fn now() -> Moment {
    Moment::from_ms(skep_archive::system_clock())
}

/// How the watch stands that is at hand: the one that runs by what it knows, another by what is on disk.
pub fn standing(ledger: &mut Ledger, settings: &Settings, watch: &Watch) -> Result<Value> {
    let counts = ledger.registry.counts(settings.number);
    let standing = ledger.standing_of(settings.number, FRESH_SAMPLE, now())?;
    let waiting = standing.pages.saturating_sub(standing.overdue + counts.out);
    Ok(json!({
        "name": settings.name,
        "tags": watch.tags,
        "policy": told_policy(watch),
        "budget": told_budget(watch),
        "seeds": settings.seeds.iter().take(TOLD_SEEDS_MAX).collect::<Vec<_>>(),
        "pages": standing.pages,
        "sampled": standing.sampled,
        "fresh": standing.fresh,
        "oldest_check_ms": standing.oldest_ms,
        "waiting": waiting,
        "overdue": standing.overdue,
        "overdue_bundles": standing.overdue_bundles,
        "out": counts.out,
    }))
}

fn told_policy(watch: &Watch) -> &'static str {
    if watch.every_ms.is_some() { "every page alike" } else { watch.policy.id() }
}

/// The budget in words.
pub fn told_budget(watch: &Watch) -> String {
    match (watch.every_ms, watch.budget) {
        (Some(ms), _) => format!("every page after {}", days(ms as f32 / 86_400_000.0)),
        (None, Some(rate)) => rate.to_string(),
        (None, None) => "once a day for each page, on average".into(),
    }
}

/// A number of days as people say it.
fn days(days: f32) -> String {
    match days {
        days if days >= 2.0 => format!("{days:.1} days"),
        days if days * 24.0 >= 2.0 => format!("{:.1} hours", days * 24.0),
        days if days * 1_440.0 >= 2.0 => format!("{:.1} minutes", days * 1_440.0),
        days => format!("{:.0} s", days * 86_400.0),
    }
}

/// When these URLs are looked at again, by the watch that is at hand.
pub fn schedule(ledger: &mut Ledger, settings: &Settings, watch: &Watch, entries: &[u64]) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    for entry in entries {
        told.extend(one(ledger, settings, watch, *entry)?);
    }
    Ok(told)
}

fn one(ledger: &mut Ledger, settings: &Settings, watch: &Watch, number: u64) -> Result<Option<Value>> {
    let entry = ledger.registry.entry(number)?;
    let memory = ledger.registry.memory(number)?;
    let Some(last) = memory.last() else { return Ok(None) };
    let sites = ledger.registry.referring_sites(number)?;
    let Some(watching) = &ledger.watching else { return Ok(None) };
    let due = if memory.failures() > 0 { memory.due() } else { watching.revisits.due(&memory, 0.5) };
    let belief = memory.belief();
    let (changes, _) = memory.changes();
    let state = match entry.state {
        State::Out => "out",
        State::Queued if memory.is_out() => "overdue",
        State::Failed { .. } => "tried again soon",
        _ if due <= now() => "overdue",
        _ => "waiting",
    };
    let why = why(watch, &memory, watching.revisits.price());
    Ok(Some(json!({
        "url": entry.url,
        "watch": settings.name,
        "state": state,
        "last": rfc3339(last.ms()),
        "next": rfc3339(due.ms()),
        "changes_per_day": belief.rate(),
        "between": [(belief.rate_ln - belief.spread).exp(), (belief.rate_ln + belief.spread).exp()],
        "changes_seen": changes,
        "importance": memory.importance(),
        "referring_sites": sites,
        "hinted": memory.evidence(),
        "failures": memory.failures(),
        "because": why,
    })))
}

/// Why it is looked at when it is, in a sentence.
fn why(watch: &Watch, memory: &Memory, price: f32) -> String {
    if memory.failures() > 0 {
        return format!(
            "the last {} looks found no page; such pages are looked for ever more seldom",
            memory.failures()
        );
    }
    if memory.evidence() > 0.0 {
        return "a sitemap or a feed says that it changed".into();
    }
    let belief = memory.belief();
    let changes = format!("it is believed to change once in {}", days(1.0 / belief.rate().max(1e-9)));
    let interval = days(match watch.budget() {
        Budget::EveryDays(days) => days,
        Budget::PerDay(_) | Budget::PerPage(_) => watch.policy.interval_days(memory, price, 0.5),
    });
    match (watch.every_ms, watch.policy) {
        (Some(_), _) => format!("every page is looked at after {interval}"),
        (None, Policy::Harmonic | Policy::Fresh) => {
            format!("{changes}; at the price of now that is worth a look every {interval}")
        }
        (None, policy) => format!("by the policy {} it is looked at every {interval}", policy.id()),
    }
}

/// What watching would come to, by the watch that is at hand.
pub fn plan(ledger: &mut Ledger, settings: &Settings, watch: &Watch) -> Result<Vec<Value>> {
    let sample = ledger.sample(PRICE_SAMPLE)?;
    let pages = ledger.watching.as_ref().map_or(0, |watching| watching.revisits.pages());
    let visited = ledger.registry.counts(settings.number).visited;
    let (mut answers, mut bytes) = (0_u64, 0_u64);
    ledger.each_host(|host| {
        if host.crawl == settings.number {
            answers += u64::from(host.conduct.pages);
            bytes = bytes.saturating_add(host.conduct.bytes);
        }
    })?;
    let bytes_per_visit = (answers > 0).then(|| bytes as f64 / answers as f64);
    Ok(vec![foreseen(&sample, pages.max(visited), bytes_per_visit, watch)])
}

/// The same of pages of which nothing is known yet, not even how many there are: by what pages are like.
pub fn foreseen_of_unknown(watch: &Watch) -> Value {
    let sample = [Memory::first(Moment(0), 1.0, &Prior::default())];
    let mut foreseen = foreseen(&sample, 0, None, watch);
    foreseen["visits_per_day"] = match watch.budget() {
        Budget::PerDay(visits) => {
            (foreseen["visits_per_page_and_day"], foreseen["fresh"]) = (Value::Null, Value::Null);
            visits.into()
        }
        Budget::PerPage(_) | Budget::EveryDays(_) => Value::Null,
    };
    foreseen
}

/// What is to be expected of so many pages, of which these are a sample.
fn foreseen(sample: &[Memory], pages: u64, bytes_per_visit: Option<f64>, watch: &Watch) -> Value {
    let per_page = match watch.budget() {
        Budget::PerDay(visits) => (visits / pages.max(1) as f64) as f32,
        Budget::PerPage(visits) => visits,
        Budget::EveryDays(days) => 1.0 / days,
    };
    let policy = if watch.every_ms.is_some() { Policy::Uniform } else { watch.policy };
    let forecast = forecast(sample, policy, per_page);
    let classes: Vec<Value> = CLASSES
        .iter()
        .zip(forecast.classes)
        .map(|((_, name), share)| json!({ "often": name, "share": share, "pages": (share * pages as f32).round() }))
        .collect();
    json!({
        "pages": pages,
        "policy": told_policy(watch),
        "budget": told_budget(watch),
        "visits_per_day": f64::from(per_page) * pages as f64,
        "visits_per_page_and_day": per_page,
        "bytes_per_day": bytes_per_visit.map(|bytes| (bytes * f64::from(per_page) * pages as f64).round()),
        "fresh": forecast.fresh,
        "classes": classes,
    })
}
