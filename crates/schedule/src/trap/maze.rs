//! Folders without end.
//!
//! ```text
//!            a run of deepening pages             generation after generation deepens
//!   Open ───────────────────────────▶ Probed ─────────────────────────────────────────▶ Endless
//!    ▲                                  │
//!    └──────────────────────────────────┘  plain pages among the probes, or ways that meet; next time a longer run is needed
//! ```
//! A page counts for every folder that it lies in. Where most of a folder's deepening pages lie in one folder of it, that one is
//! to blame and not the folder above; a folder that has brought plain pages of its own is trusted, whatever is said of those
//! above it. The hosts of a site are to the site what folders are to a host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::novelty::{Hashing, folder_ends};
use super::{Gate, Trap, Visit};
use crate::limits;

/// The folders of one site that are worth remembering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Mazes {
    folders: BTreeMap<u64, Folder>,
    visits: u64,
}

/// The site itself stands among its folders under this key.
const SITE: u64 = 0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    #[default]
    Open,
    Probed,
    Endless {
        slow: bool,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Folder {
    state: State,
    /// Pages that deepened, and pages that did not.
    deep: u32,
    plain: u32,
    /// Deepening pages, halved by every plain one, and how many of them dripped.
    run: u32,
    run_slow: u32,
    /// The folder below in which most of the run lies, by majority vote.
    child: u32,
    votes: u32,
    /// Links between a seed and the deepest page that deepened.
    deepest: u16,
    /// Known URLs that the pages of the run link to: soon the menu, where there is one.
    menu: Vec<u32>,
    /// Since probing began: pages deeper than all before, the deepening pages below where it began, those of them that met
    /// a known page beside the menu, and the plain ones.
    begun_at: u16,
    generations: u32,
    probes: u32,
    meetings: u32,
    plain_probes: u32,
    /// Nothing deeper is taken in any more: pages beside must do as probes, and no generations are asked for.
    full: bool,
    /// How often the probes cleared it.
    cleared: u8,
    foreign: u16,
    /// Visits out, and URLs put off since the last one went: known to this process only.
    #[serde(skip)]
    out: u32,
    #[serde(skip)]
    put_off: u16,
    /// Of those that went while probing: deeper ones, others, and others for want of deeper ones.
    #[serde(skip)]
    went_deep: u32,
    #[serde(skip)]
    went_beside: u32,
    #[serde(skip)]
    forced: u32,
}

/// What one page says about one folder.
struct Word<'a> {
    deepens: bool,
    met: &'a [u32],
    slow: bool,
    depth: u16,
    child: u32,
    /// The page lies in a trusted folder below this one, and was found in one: it says nothing about the others here.
    trusted_below: bool,
}

impl Folder {
    fn trusted(&self) -> bool {
        !matches!(self.state, State::Endless { .. })
            && self.plain >= limits::PLAIN_TRUSTED
            && self.plain >= self.deep / 4
    }

    fn learn(&mut self, word: &Word<'_>) {
        self.out = self.out.saturating_sub(1);
        if word.deepens { self.deepens(word) } else { self.is_plain(word) }
    }

    fn deepens(&mut self, word: &Word<'_>) {
        self.deep = self.deep.saturating_add(1);
        self.run = self.run.saturating_add(1);
        self.run_slow += u32::from(word.slow);
        if word.child != 0 && word.child == self.child {
            self.votes += 1;
        } else if self.votes > 0 {
            self.votes -= 1;
        } else if word.child != 0 {
            (self.child, self.votes) = (word.child, 1);
        }
        let deeper = word.depth > self.deepest;
        self.deepest = self.deepest.max(word.depth);
        let meets = self.meets(word.met);
        match self.state {
            State::Open => {
                // Eight of ten votes for one child leave six when those against are taken off.
                let child_to_blame = u64::from(self.votes) * 10 > u64::from(self.run) * 6;
                if self.run >= self.run_needed() && !child_to_blame {
                    (self.state, self.begun_at) = (State::Probed, self.deepest);
                    (self.generations, self.probes, self.meetings, self.plain_probes) = (0, 0, 0, 0);
                    (self.put_off, self.went_deep, self.went_beside, self.forced) = (0, 0, 0, 0);
                }
            }
            State::Probed => {
                self.generations += u32::from(deeper);
                if word.depth > self.begun_at || self.full {
                    self.probes += 1;
                    self.meetings += u32::from(meets);
                }
                let enough = if self.is_slow() { limits::PROBES_SLOW } else { limits::PROBES };
                if self.probes >= enough || self.forced >= limits::FORCED_MAX {
                    self.judge();
                }
            }
            State::Endless { .. } => {}
        }
    }

    /// Does the page link to known ones that are not on every page?
    fn meets(&mut self, met: &[u32]) -> bool {
        let mut meets = false;
        for url in met {
            if !self.menu.contains(url) {
                meets = true;
                if self.menu.len() < limits::MENU_MAX {
                    self.menu.push(*url);
                }
            }
        }
        meets
    }

    fn judge(&mut self) {
        let met = self.meetings * limits::PROBES_PER_MEETING > self.probes;
        if !met && (self.generations >= limits::MAZE_GENERATIONS || self.full) {
            self.state = State::Endless { slow: self.is_slow() };
            self.menu = Vec::new();
        } else if met || self.forced >= limits::FORCED_MAX || self.probes >= 4 * limits::PROBES {
            self.clear();
        }
    }

    fn clear(&mut self) {
        (self.state, self.cleared) = (State::Open, self.cleared.saturating_add(1));
        (self.run, self.run_slow, self.votes, self.menu) = (0, 0, 0, Vec::new());
    }

    fn is_plain(&mut self, word: &Word<'_>) {
        self.plain = self.plain.saturating_add(1);
        if word.trusted_below {
            return;
        }
        if self.state == State::Probed {
            self.plain_probes += 1;
            // A dead end now and then does not make a maze finite.
            if self.plain_probes >= limits::PLAIN_PROBES_MIN
                && self.plain_probes * limits::PROBES_PER_PLAIN > self.probes
            {
                self.clear();
            }
            return;
        }
        (self.run, self.run_slow, self.votes) = (self.run / 2, self.run_slow / 2, self.votes / 2);
        if self.run == 0 {
            self.menu = Vec::new();
        }
    }

    fn is_slow(&self) -> bool {
        self.run_slow * 2 >= self.run
    }

    fn run_needed(&self) -> u32 {
        let run = if self.is_slow() { limits::SUSPECT_RUN_SLOW } else { limits::SUSPECT_RUN };
        (run << self.cleared.min(4)) + limits::RUN_PER_FOREIGN_LINK * u32::from(self.foreign.min(20))
    }

    /// May a URL of this folder go?
    fn lets_go(&self, depth: u16, watched: bool) -> bool {
        if self.put_off >= limits::PUT_OFF_MAX {
            return true;
        }
        match self.state {
            // One beside for two that go deeper: what they lead to makes it easier to meet.
            State::Probed => {
                let due = self.full || depth > self.deepest || self.went_beside < self.went_deep / 2;
                due && self.out < limits::PROBES_OUT_MAX
            }
            _ if !watched || self.trusted() => true,
            _ => self.out < limits::UNTRUSTED_OUT_MAX.saturating_add(self.plain.saturating_mul(4)),
        }
    }

    /// As many probes are out as may be: what is put off now is not put off for want of deeper pages.
    fn awaits_probes(&self) -> bool {
        self.state == State::Probed && self.out >= limits::PROBES_OUT_MAX
    }

    fn goes(&mut self, depth: u16) {
        if self.put_off >= limits::PUT_OFF_MAX {
            // Nothing deeper is waiting, or what was out has been lost.
            (self.out, self.forced) = (0, self.forced + 1);
        }
        if depth > self.deepest {
            self.went_deep += 1;
        } else {
            self.went_beside += 1;
        }
        (self.out, self.put_off) = (self.out.saturating_add(1), 0);
    }
}

/// The keys of the folders that a URL lies in, the site's first.
fn keys(url: &str) -> Keys {
    let mut keys = Keys { keys: [SITE; limits::FOLDER_LEVELS + 1], count: 1 };
    let (mut hashing, mut from) = (Hashing::default(), 0);
    for end in folder_ends(url).as_slice() {
        hashing.add(url.as_bytes()[from..*end].iter().copied());
        from = *end;
        keys.keys[keys.count] = hashing.so_far();
        keys.count += 1;
    }
    keys
}

struct Keys {
    keys: [u64; limits::FOLDER_LEVELS + 1],
    count: usize,
}

impl std::ops::Deref for Keys {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.keys[..self.count]
    }
}

impl Mazes {
    /// The verdict on the folder that a URL lies in.
    pub fn verdict(&self, url: &str) -> Option<Trap> {
        self.verdict_on(&keys(url))
    }

    fn verdict_on(&self, keys: &[u64]) -> Option<Trap> {
        let mut verdict = None;
        for key in keys {
            match self.folders.get(key) {
                Some(Folder { state: State::Endless { .. }, .. }) if *key == SITE => {
                    verdict = Some(Trap::SubdomainFlood)
                }
                Some(Folder { state: State::Endless { slow: true }, .. }) => verdict = Some(Trap::Tarpit),
                Some(Folder { state: State::Endless { slow: false }, .. }) => verdict = Some(Trap::Maze),
                Some(folder) if folder.trusted() => verdict = None,
                _ => {}
            }
        }
        verdict
    }

    pub fn gate(&mut self, url: &str, depth: u16) -> Gate {
        let keys = keys(url);
        if let Some(trap) = self.verdict_on(&keys) {
            return Gate::Never(trap);
        }
        for key in keys.iter().skip(1).take(limits::WATCHED_LEVELS) {
            self.make(*key);
        }
        // What is said of a folder does not touch a trusted folder below it.
        let trusted = keys.iter().rposition(|key| self.is_trusted(*key)).unwrap_or(0);
        let asked = || keys.iter().enumerate().skip(trusted);
        let held =
            |level: usize, folder: &Folder| !folder.lets_go(depth, (1..=limits::WATCHED_LEVELS).contains(&level));
        if asked().any(|(level, key)| self.folders.get(key).is_some_and(|folder| held(level, folder))) {
            for (level, key) in asked() {
                if let Some(folder) = self.folders.get_mut(key)
                    && held(level, folder)
                    && !folder.awaits_probes()
                {
                    folder.put_off += 1;
                }
            }
            return Gate::Later;
        }
        for (_, key) in asked() {
            if let Some(folder) = self.folders.get_mut(key) {
                folder.goes(depth);
            }
        }
        Gate::Go
    }

    pub fn learn(&mut self, visit: &Visit<'_>) {
        let keys = keys(visit.url.as_str());
        let Some((page, novelty)) = visit.page.as_ref().and_then(|page| Some((page, page.novelty?))) else {
            // A failure or a picture says nothing about the folder.
            for key in keys.iter() {
                if let Some(folder) = self.folders.get_mut(key) {
                    folder.out = folder.out.saturating_sub(1);
                }
            }
            return;
        };
        self.visits += 1;
        let slow = page.answer_ms >= limits::SLOW_ANSWER_MS
            && page.bytes.saturating_mul(1_000) / page.answer_ms.max(1) < limits::SLOW_BYTES_PER_S;
        // Found from outside the trusted folders, a plain page is where one of the other ways ends.
        let via = novelty.via().map(self::keys);
        let via_trusted = via.map_or(usize::MAX, |via| via.iter().rposition(|key| self.is_trusted(*key)).unwrap_or(0));
        let mut trusted_below = false;
        for (level, key) in keys.iter().enumerate().rev() {
            let deepens = if level == 0 { novelty.floods() } else { novelty.deepens(level - 1) };
            if deepens || level <= 2 {
                self.make(*key);
            }
            let Some(folder) = self.folders.get_mut(key) else { continue };
            let child = keys.get(level + 1).map_or(0, |key| *key as u32 | 1);
            let met: Vec<u32> = if deepens { novelty.met(level).collect() } else { Vec::new() };
            folder.learn(&Word {
                deepens,
                met: &met,
                slow,
                depth: visit.depth,
                child,
                trusted_below: trusted_below && via_trusted > level,
            });
            trusted_below |= folder.trusted();
        }
    }

    fn is_trusted(&self, key: u64) -> bool {
        self.folders.get(&key).is_some_and(Folder::trusted)
    }

    /// A page of another site links to this URL.
    pub fn foreign(&mut self, url: &str) {
        for key in keys(url).iter().skip(1).take(2) {
            if let Some(folder) = self.folders.get_mut(key) {
                folder.foreign = folder.foreign.saturating_add(1);
            }
        }
    }

    /// The site has as many hosts as it may have.
    pub fn has_all_hosts(&mut self) {
        if let Some(site) = self.folders.get_mut(&SITE) {
            site.full = true;
        }
    }

    pub fn flagged(&self) -> usize {
        self.folders.values().filter(|folder| matches!(folder.state, State::Endless { .. })).count()
    }

    pub fn visits(&self) -> u64 {
        self.visits
    }

    pub fn len(&self) -> usize {
        self.folders.len()
    }

    fn make(&mut self, key: u64) {
        if self.folders.len() >= limits::FOLDERS_PER_SITE_MAX && !self.folders.contains_key(&key) {
            let worth =
                |folder: &Folder| folder.state != State::Open || folder.deep + folder.plain >= 4 || folder.out > 0;
            self.folders.retain(|_, folder| worth(folder));
            if self.folders.len() >= limits::FOLDERS_PER_SITE_MAX {
                return;
            }
        }
        self.folders.entry(key).or_default();
    }
}
