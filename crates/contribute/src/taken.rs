//! What is out, in `settings/taken.json`: whoever has it fetches on when the node is killed, and the node that begins again gives the hosts to
//! nobody else meanwhile. What was given out in the last seconds before it was killed may be missing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::book::{unhex, write_whole};
use crate::dispatch::Taken;
use crate::limits::{LEASE_MS_MAX, TAKEN_MAX};
use crate::node::hex;

const FILE: &str = "taken.json";
const VERSION: u32 = 1;
const EVERY: Duration = Duration::from_secs(2);

/// The file, and what it says.
pub struct TakenFile {
    path: PathBuf,
    said: Vec<Taken>,
    written: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    taken: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    bundle: u64,
    with: String,
    host: String,
    site: String,
    /// Milliseconds since 1970.
    until_ms: i64,
}

impl TakenFile {
    /// The file in a folder of settings, and what is still out by it, by a clock that begins now. One that cannot be read says nothing.
    pub fn open(folder: &Path, now_ms: i64) -> (TakenFile, Vec<Taken>) {
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path).unwrap_or_default();
        let written = serde_json::from_slice::<Written>(&bytes).ok().filter(|written| written.version == VERSION);
        let lines = written.into_iter().flat_map(|written| written.taken).take(TAKEN_MAX);
        let taken = lines.filter_map(|line| {
            let until_ms = u64::try_from(line.until_ms.saturating_sub(now_ms)).ok()?.min(LEASE_MS_MAX);
            Some(Taken { id: line.bundle, with: unhex(&line.with)?, host: line.host, site: line.site, until_ms })
        });
        let taken: Vec<Taken> = taken.filter(|taken| taken.until_ms > 0).collect();
        (TakenFile { path, said: Vec::new(), written: None }, taken)
    }

    /// Writes what is out, if it is time and something is new. `zero_ms`: when their clock began, in milliseconds since 1970.
    pub fn keep(&mut self, taken: impl FnOnce() -> Vec<Taken>, zero_ms: i64) {
        if self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return;
        }
        let taken = taken();
        if taken == self.said {
            return;
        }
        let line = |taken: &Taken| Line {
            bundle: taken.id,
            with: hex(&taken.with),
            host: taken.host.clone(),
            site: taken.site.clone(),
            until_ms: zero_ms.saturating_add_unsigned(taken.until_ms),
        };
        let written = Written { version: VERSION, taken: taken.iter().take(TAKEN_MAX).map(line).collect() };
        self.written = Some(Instant::now());
        // What cannot be written now is tried again.
        if write_whole(&self.path, &serde_json::to_vec(&written).unwrap_or_default()).is_ok() {
            self.said = taken;
        }
    }
}
