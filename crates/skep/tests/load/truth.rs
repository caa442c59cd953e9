//! What the web said in each pass of the crawl, and how much of it the crawl has acknowledged: whoever asks from then on must be told of it.
//!
//! While a pass runs, the web's clock stands still; so the time of a capture says which pass it is of, and that says which bytes it has.

use skep_testweb::{Time, Web};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Days of the web between two passes.
const DAYS: i64 = 1;

pub struct Truth {
    web: Web,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    passes: Vec<Pass>,
    pages: HashMap<String, Page>,
    /// Their URLs, to draw from.
    urls: Vec<String>,
    /// Captures that were acknowledged in all, by the time when that was heard.
    captures: Vec<(i64, u64)>,
    visits: u64,
}

struct Pass {
    moment: Time,
    begun_ms: i64,
    ended_ms: Option<i64>,
}

/// What is acknowledged of a page.
#[derive(Clone)]
pub struct Page {
    pub url: String,
    /// The last pass in which it was seen.
    pub pass: usize,
    /// At least so many captures of it.
    pub captures: u64,
    digest: String,
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl Truth {
    pub fn of(web: Web) -> Truth {
        Truth { web, state: Mutex::default() }
    }

    pub fn web(&self) -> &Web {
        &self.web
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass begins: the web is some days older, and stays so.
    pub fn begin(&self) {
        let mut state = self.state();
        let now_ms = now_ms();
        if let Some(last) = state.passes.last_mut() {
            last.ended_ms = Some(now_ms);
        }
        let moment = Time::BEGIN.plus_days(100 + DAYS * state.passes.len() as i64);
        self.web.set_clock(Some(moment), Some(0.0));
        state.passes.push(Pass { moment, begun_ms: now_ms, ended_ms: None });
    }

    /// The crawl says that it visited a URL in this pass, and that this is synced.
    pub fn visited(&self, url: &str, outcome: &str) {
        let pass = self.current();
        let Some(digest) = self.digest(url, pass).filter(|_| matches!(outcome, "200" | "304")) else { return };
        let mut state = self.state();
        state.visits += 1;
        if !state.pages.contains_key(url) {
            state.urls.push(url.to_owned());
        }
        let page = state.pages.entry(url.to_owned()).or_insert_with(|| Page {
            url: url.to_owned(),
            pass,
            captures: 0,
            digest: String::new(),
        });
        page.pass = pass;
        if page.digest != digest {
            (page.digest, page.captures) = (digest, page.captures + 1);
            let (now_ms, captures) = (now_ms(), state.captures.last().map_or(0, |(_, count)| *count) + 1);
            state.captures.push((now_ms, captures));
        }
    }

    /// The pass that runs now.
    pub fn current(&self) -> usize {
        self.state().passes.len() - 1
    }

    /// Any page that was acknowledged, as far as it is known now.
    pub fn any(&self, draw: u64) -> Option<Page> {
        let state = self.state();
        let at = draw.checked_rem(state.urls.len() as u64)?;
        state.pages.get(&state.urls[at as usize]).cloned()
    }

    /// Captures that had been acknowledged by then.
    pub fn captures_by(&self, ms: i64) -> u64 {
        let state = self.state();
        let before = state.captures.partition_point(|(heard_ms, _)| *heard_ms <= ms);
        before.checked_sub(1).map_or(0, |last| state.captures[last].1)
    }

    /// Visits, captures and passes so far.
    pub fn sums(&self) -> (u64, u64, usize) {
        let state = self.state();
        (state.visits, state.captures.last().map_or(0, |(_, count)| *count), state.passes.len())
    }

    /// SHA-1 of what the web said about a URL in a pass, in base 32; `None` where it said that there is nothing.
    fn digest(&self, url: &str, pass: usize) -> Option<String> {
        let moment = self.state().passes.get(pass)?.moment;
        let entry = self.web.world().entry(url, moment)?.ok()?;
        let digest = entry.digest.strip_prefix("sha1:")?.to_owned();
        (entry.status == 200 && !url.ends_with("/robots.txt")).then_some(digest)
    }

    /// What the newest capture may be, by somebody who knew this page when they asked, and was answered just now.
    pub fn newest(&self, page: &Page) -> BTreeSet<String> {
        let mut all: BTreeSet<String> =
            (page.pass..=self.current()).filter_map(|pass| self.digest(&page.url, pass)).collect();
        all.insert(page.digest.clone());
        all
    }

    /// What a capture of this second may be.
    pub fn at(&self, url: &str, second_ms: i64) -> BTreeSet<String> {
        let passes: Vec<usize> = {
            let state = self.state();
            let first = state.passes.partition_point(|pass| pass.ended_ms.is_some_and(|ended| ended < second_ms));
            (first..state.passes.len()).take_while(|pass| state.passes[*pass].begun_ms <= second_ms + 999).collect()
        };
        passes.into_iter().filter_map(|pass| self.digest(url, pass)).collect()
    }
}
