//! What looks like a trap: the schedule's judgement, fed with visits.

use skep_url::Url;

use crate::visit::Visited;

/// The short name of a trap.
pub fn id(_code: u16) -> &'static str {
    "trap"
}

/// A trap in words.
pub fn text(_code: u16) -> &'static str {
    "it looks like a trap"
}

/// Traps seen so far. Part of every checkpoint.
#[derive(Default)]
pub struct Traps {}

impl Traps {
    /// Reads what [`Traps::store`] wrote; what cannot be read is learned again.
    pub fn load(_bytes: &[u8]) -> Traps {
        Traps::default()
    }

    /// For the checkpoint.
    pub fn store(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Whether a new URL may be queued; else the number of the trap.
    pub fn admit(&mut self, _url: &Url, _via: &str) -> Result<(), u16> {
        Ok(())
    }

    /// A page was visited: so many of its links were new, so many known.
    pub fn learn(&mut self, _visited: &Visited, _new: u32, _known: u32) {}
}
