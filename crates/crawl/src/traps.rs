//! What looks like a trap: the schedule's judgement, fed with the visits and links of the crawl.

use skep_schedule::mirror::Mirrors;
use skep_schedule::trap::{self, Candidate, Gate, Novelty, PageSeen, Trap, Visit};
use skep_schedule::{AddressKey, SiteId};
use skep_url::Url;

use crate::outcome::Outcome;
use crate::visit::Visited;

/// Traps seen so far. Part of every checkpoint, but for mirrors.
#[derive(Default)]
pub struct Traps {
    heart: trap::Traps,
    mirrors: Mirrors,
}

/// The number of a trap in the registry.
fn code(trap: Trap) -> u16 {
    Trap::ALL.iter().position(|known| *known == trap).map_or(0, |at| at as u16 + 1)
}

fn trap(code: u16) -> Option<Trap> {
    Trap::ALL.get(usize::from(code).checked_sub(1)?).copied()
}

/// The short name of a trap.
pub fn id(code: u16) -> &'static str {
    trap(code).map_or("trap", Trap::id)
}

/// A trap in words.
pub fn text(code: u16) -> &'static str {
    trap(code).map_or("it looks like a trap", Trap::text)
}

/// What may be done with a URL whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Visit it.
    Go,
    /// Others must come first.
    Later,
    /// Do not visit it: the number of the trap.
    Never(u16),
}

impl Traps {
    /// Reads what [`Traps::store`] wrote; what cannot be read is learned again.
    pub fn load(bytes: &[u8]) -> Traps {
        Traps { heart: serde_json::from_slice(bytes).unwrap_or_default(), mirrors: Mirrors::default() }
    }

    /// For the checkpoint.
    pub fn store(&self) -> Vec<u8> {
        serde_json::to_vec(&self.heart).unwrap_or_default()
    }

    /// Whether a new URL may be queued; else the number of the trap.
    pub fn admit(&mut self, url: &Url, site: SiteId, new_host: bool, foreign: bool) -> Result<(), u16> {
        self.heart.admit(&Candidate { url, site, new_host, asked_for: false, foreign }).map_err(code)
    }

    /// Whether a URL may be visited now. `Go` must be followed by one [`Traps::learn`].
    pub fn gate(&mut self, url: &str, site: SiteId, depth: u16) -> Turn {
        if self.mirrors.is_spent(site) {
            return Turn::Never(code(Trap::MirrorFarm));
        }
        match self.heart.gate(url, site, depth) {
            Gate::Go => Turn::Go,
            Gate::Later => Turn::Later,
            Gate::Never(trap) => Turn::Never(code(trap)),
        }
    }

    /// A URL that might have been visited was not.
    pub fn not_visited(&mut self, url: &Url, site: SiteId) {
        self.heart.learn(&Visit { url, site, depth: 0, page: None });
    }

    /// What a visit showed. `novelty` is about the links of a page; nothing for what a page only embeds.
    pub fn learn(&mut self, url: &Url, visited: &Visited, site: SiteId, novelty: Option<&Novelty>) {
        let brought = matches!(visited.outcome, Outcome(200..=299) | Outcome::CUT_OFF);
        if let Some(address) = visited.address.filter(|_| brought && visited.mime == "text/html") {
            self.mirrors.learn(AddressKey::of(address), site, visited.text_digest);
        }
        let page = brought.then_some(PageSeen {
            novelty,
            digest: visited.text_digest,
            answer_ms: visited.answer_ms,
            bytes: visited.bytes,
        });
        self.heart.learn(&Visit { url, site, depth: visited.hops.depth, page });
    }
}
