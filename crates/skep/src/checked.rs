//! Check lines as the changes view reads them: the crawler wrote them, and knows by which names they call URLs.

use skep_archive::Archive;
use skep_changes::{Check, Checked, Checks, Fingerprint, Said};
use skep_crawl::{RegistryKey, Settings, checks};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the list of crawls is believed: one that is born meanwhile has no check lines yet.
const CRAWLS_FOR: Duration = Duration::from_secs(1);

/// Reads check lines of crawls.
#[derive(Default)]
pub struct CheckLines {
    known: Mutex<Option<(Instant, Option<(RegistryKey, Vec<u16>)>)>>,
}

impl Checks for CheckLines {
    fn read(&self, block: &[u8]) -> Option<Checked> {
        let read = checks::parse(block).ok()?;
        let host = read.host.split_once("://").map_or(read.host.as_str(), |(_, host)| host).to_owned();
        let line = |check: &checks::Check| Check {
            fingerprint: check.fingerprint,
            time_ms: check.time_ms,
            said: match &check.outcome {
                checks::Outcome::NotModified => Said::Same,
                checks::Outcome::Fault(id) => Said::of_fault(id),
                checks::Outcome::Robots { .. } | checks::Outcome::Refused(_) => Said::Nothing,
            },
        };
        Some(Checked { host, lines: read.checks.iter().map(line).collect() })
    }

    fn names(&self, archive: &Archive, url: &str) -> Vec<Fingerprint> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(since, _)| since.elapsed() > CRAWLS_FOR) {
            *known = Some((Instant::now(), crawls(archive)));
        }
        let Some((_, Some((key, numbers)))) = known.as_ref() else { return Vec::new() };
        numbers.iter().map(|number| key.fingerprint(*number, url)).collect()
    }
}

/// The key of fingerprints and the numbers of crawls. An archive that nobody crawled has neither; a file that cannot be read is for
/// `skep crawl` to report.
fn crawls(archive: &Archive) -> Option<(RegistryKey, Vec<u16>)> {
    let folder = archive.layout().settings();
    let key = RegistryKey::known(&folder).ok()??;
    let crawls = Settings::all(&folder).ok()?;
    let mut numbers: Vec<u16> = crawls.iter().map(|crawl| crawl.number).filter(|number| *number > 0).collect();
    numbers.sort_unstable();
    Some((key, numbers))
}
