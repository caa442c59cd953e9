//! What the archive, a collection or a host amounts to. Counting goes through every capture, so results are kept for a while.

use super::asked::Asked;
use crate::access::May;
use crate::find::Looking;
use crate::limits::{HOSTS_TOLD_MAX, KEPT_CHANGING_MS_MAX, KEPT_MAX, KEPT_MS, KEPT_TIMES, VALUES_TOLD_MAX};
use crate::portal::Scope;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_archive::captures::{Facts, Match};
use skep_archive::runs::Row;
use skep_archive::{Key, Statistics};
use skep_warc::date;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What was counted lately.
#[derive(Default)]
pub struct Kept(Mutex<HashMap<String, Arc<Mutex<Option<Counted>>>>>);

struct Counted {
    at: Instant,
    took_ms: u128,
    /// What the archive was like then.
    stamp: (Facts, usize, usize),
    sums: Arc<Statistics>,
    at_ms: i64,
}

/// Sums, as the API tells them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// When they were counted.
    pub counted: String,
    /// Captures.
    pub captures: u64,
    /// Different URLs.
    pub urls: u64,
    /// Different hosts.
    pub hosts: u64,
    /// Captures whose payload differs from all earlier ones of their URL.
    pub versions: u64,
    /// Captures whose payload was there before.
    pub duplicates: u64,
    /// Revisit records.
    pub revisits: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// The first capture.
    pub earliest: Option<String>,
    /// The last capture.
    pub latest: Option<String>,
    /// By host, those with most first.
    pub by_host: Vec<Tally>,
    /// By year, the first first.
    pub by_year: Vec<Tally>,
    /// By media type, the most frequent first.
    pub by_type: Vec<Tally>,
    /// By status, the most frequent first.
    pub by_status: Vec<Tally>,
    /// Parts of the network's archive for which no node answered.
    #[serde(default)]
    pub silent: u64,
}

/// How many captures have a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// The value.
    pub value: String,
    /// Captures.
    pub captures: u64,
}

/// Answers.
pub fn tell(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let told = everywhere(look, asked.get("host"))?;
    Ok(serde_json::to_value(told).unwrap_or_default())
}

/// Answers for what is here.
pub fn tell_here(look: &Looking<'_>, asked: &Asked) -> Result<Value, Trouble> {
    let told = told(look, asked.get("host"))?;
    Ok(serde_json::to_value(told).unwrap_or_default())
}

/// The sums of what all nodes of the network hold, each slice counted once; of what is here where there is no network.
pub fn everywhere(look: &Looking<'_>, host: Option<&str>) -> Result<Told, Trouble> {
    let Some(others) = look.others() else { return told(look, host) };
    let asked = host.map(|host| Asked::default().with("host", host)).unwrap_or_default();
    let all = others.everywhere(&|_| format!("/statistics?{}", asked.query()));
    let mut sums = told(&Looking { sites: Some(all.sites()), ..*look }, host)?;
    sums.silent = all.silent as u64;
    for said in &all.said {
        match serde_json::from_value(said.clone()) {
            Ok(more) => sums.add(more),
            Err(_) => sums.silent += 1,
        }
    }
    Ok(sums)
}

impl Told {
    /// Adds what another node counted, of other sites.
    fn add(&mut self, other: Told) {
        self.captures += other.captures;
        self.urls += other.urls;
        self.hosts += other.hosts;
        self.versions += other.versions;
        self.duplicates += other.duplicates;
        self.revisits += other.revisits;
        self.bytes += other.bytes;
        // Such times are in order as text, too.
        self.earliest = self.earliest.take().into_iter().chain(other.earliest).min();
        self.latest = self.latest.take().into_iter().chain(other.latest).max();
        let by_count = |a: &Tally, b: &Tally| b.captures.cmp(&a.captures).then_with(|| a.value.cmp(&b.value));
        together(&mut self.by_host, other.by_host, HOSTS_TOLD_MAX, by_count);
        together(&mut self.by_type, other.by_type, VALUES_TOLD_MAX, by_count);
        together(&mut self.by_status, other.by_status, VALUES_TOLD_MAX, by_count);
        together(&mut self.by_year, other.by_year, VALUES_TOLD_MAX, |a, b| a.value.cmp(&b.value));
    }
}

fn together(one: &mut Vec<Tally>, other: Vec<Tally>, most: usize, order: impl FnMut(&Tally, &Tally) -> Ordering) {
    for tally in other {
        match one.iter_mut().find(|known| known.value == tally.value) {
            Some(known) => known.captures += tally.captures,
            None => one.push(tally),
        }
    }
    one.sort_by(order);
    one.truncate(most);
}

/// The sums of what is in scope, or of one host of it.
pub fn told(look: &Looking<'_>, host: Option<&str>) -> Result<Told, Trouble> {
    let (at_ms, sums) = counted(look, host)?;
    let values = |rows: Vec<(String, u64)>, most: usize| -> Vec<Tally> {
        rows.into_iter().take(most).map(|(value, captures)| Tally { value, captures }).collect()
    };
    let by_count = |mut rows: Vec<(String, u64)>| {
        rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        values(rows, VALUES_TOLD_MAX)
    };
    let mut types: Vec<(String, u64)> = sums.mimes.seen.iter().map(|(mime, count)| (mime.clone(), *count)).collect();
    if sums.mimes.others > 0 {
        types.push(("(others)".to_owned(), sums.mimes.others));
    }
    let status = |status: u16| if status == 0 { "(none)".to_owned() } else { status.to_string() };
    Ok(Told {
        counted: date::rfc3339(at_ms),
        captures: sums.captures,
        urls: sums.urls,
        hosts: sums.hosts,
        versions: sums.versions,
        duplicates: sums.duplicates,
        revisits: sums.revisits,
        bytes: sums.bytes,
        earliest: sums.earliest_ms.map(date::rfc3339),
        latest: sums.latest_ms.map(date::rfc3339),
        by_host: values(
            sums.largest_hosts.iter().map(|(host, count)| (plain_host(host), *count)).collect(),
            HOSTS_TOLD_MAX,
        ),
        by_year: values(
            sums.years.iter().map(|(year, count)| (format!("{year:04}"), *count)).collect(),
            VALUES_TOLD_MAX,
        ),
        by_type: by_count(types),
        by_status: by_count(sums.statuses.iter().map(|(code, count)| (status(*code), *count)).collect()),
        silent: 0,
    })
}

/// `org,example:8080` → `example.org:8080`.
pub fn plain_host(surt: &str) -> String {
    let (name, port) = surt.split_once(':').map_or((surt, None), |(name, port)| (name, Some(port)));
    let mut labels: Vec<&str> = name.split(',').collect();
    labels.reverse();
    let name = labels.join(".");
    port.filter(|port| port.bytes().all(|b| b.is_ascii_digit())).map_or_else(
        || if surt.contains(':') && !surt.contains(',') { surt.to_owned() } else { name.clone() },
        |port| format!("{name}:{port}"),
    )
}

fn counted(look: &Looking<'_>, host: Option<&str>) -> Result<(i64, Arc<Statistics>), Trouble> {
    let views = look.portal.archive.views();
    let stamp = (views.captures.facts(), views.hidden_records(), look.portal.archive.collections().files().len());
    let administers = look.may >= May::Administer;
    let sites = look.sites.map_or(0, |sites| sites.name);
    let name = format!("{administers} {sites} {} {}", look.scope.name(), host.unwrap_or_default());
    let slot = look.portal.statistics.slot(name);
    // Whoever asks for the same meanwhile waits for this answer.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = slot.as_ref() {
        let age_ms = kept.at.elapsed().as_millis();
        let lasts_ms = if kept.stamp == stamp {
            KEPT_MS
        } else {
            kept.took_ms.saturating_mul(KEPT_TIMES).min(KEPT_CHANGING_MS_MAX)
        };
        if age_ms < lasts_ms {
            return Ok((kept.at_ms, kept.sums.clone()));
        }
    }
    let at = Instant::now();
    let matching = match host {
        None => Match::All,
        Some(host) => Match::Host(Key::of(&format!("http://{host}/"))),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // Asked once for all captures, not once for each.
    let members = match look.scope {
        Scope::Everything => None,
        Scope::Collection(name) => Some(look.portal.archive.collections().members(name)),
    };
    let counts = |row: &Row<'_>| {
        let site = row.url_key().first_chunk().map_or(0, |hash| u32::from_be_bytes(*hash));
        look.has_site(site)
            && members.as_ref().is_none_or(|members| members.hold(row.position()))
            && look.portal.access.shows_row(row, look.may, look.now_ms)
    };
    let sums = Statistics::of(&views.captures, &matching, counts, threads)?;
    let counted = Counted { at, took_ms: at.elapsed().as_millis(), stamp, sums: Arc::new(sums), at_ms: look.now_ms };
    let answer = (counted.at_ms, counted.sums.clone());
    *slot = Some(counted);
    Ok(answer)
}

impl Kept {
    fn slot(&self, name: String) -> Arc<Mutex<Option<Counted>>> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= KEPT_MAX && !slots.contains_key(&name) {
            slots.clear();
        }
        slots.entry(name).or_default().clone()
    }
}

impl Looking<'_> {
    /// Whether a capture belongs and may be seen, read where it stands.
    pub fn counts(&self, row: &Row<'_>) -> bool {
        self.scope.holds_position(row.position(), self.portal)
            && self.portal.access.shows_row(row, self.may, self.now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_as_people_write_them() {
        for (surt, host) in [
            ("org,example,www", "www.example.org"),
            ("org,example:8080", "example.org:8080"),
            ("192.0.2.1", "192.0.2.1"),
            ("urn:uuid", "urn:uuid"),
        ] {
            assert_eq!(plain_host(surt), host);
        }
    }
}
