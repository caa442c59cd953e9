//! What must hold, whatever happens. The auditor sees all disks and the true time; the nodes see neither.

use std::collections::{BTreeMap, BTreeSet};

use crate::copy::Segment;
use crate::epoch::Epoch;
use crate::genesis::Slice;

/// A rule that was broken, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Which rule.
    pub rule: Rule,
    /// When, in milliseconds of the world.
    pub at_ms: u64,
    /// What about.
    pub slice: Slice,
    /// More about it.
    pub what: String,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Nothing acknowledged is lost while somebody honest who held it lives.
    NothingLost,
    /// What is acknowledged is synced at a majority of holders.
    Majority,
    /// At most one node leads a slice.
    OneLease,
    /// A lease does not outlive its epoch.
    OldEpoch,
    /// No site is visited before its time.
    Hurried,
    /// Nothing is deleted before enough others hold it.
    Deleted,
    /// Rosters are equal soon after a split has healed.
    Rosters,
}

/// Keeps account.
#[derive(Default)]
pub struct Auditor {
    /// Everything that went wrong.
    pub broken: Vec<Broken>,
    /// How much of each segment was acknowledged.
    pub acknowledged: BTreeMap<(Slice, Segment), u64>,
    /// Who ever had a copy of a slice.
    pub held: BTreeMap<Slice, BTreeSet<usize>>,
    /// Who let which segment go.
    pub let_go: BTreeMap<(Slice, Segment), Vec<usize>>,
    /// Copies that rotted, and when.
    pub rotten: BTreeMap<(usize, Slice, Segment), u64>,
    /// When a site of a slice was visited last.
    pub visited_ms: BTreeMap<Slice, u64>,
    /// The newest epoch of a slice, since when, and of how many holders.
    pub epochs: BTreeMap<Slice, (Epoch, u64)>,
    /// Visits in all.
    pub visits: u64,
    /// The shortest time between two visits to a site, in milliseconds.
    pub shortest_ms: Option<u64>,
}

impl Auditor {
    /// Notes that a rule was broken; of each rule a few are enough.
    pub fn broke(&mut self, rule: Rule, at_ms: u64, slice: Slice, what: String) {
        if self.broken.iter().filter(|broken| broken.rule == rule).count() < 5 {
            self.broken.push(Broken { rule, at_ms, slice, what });
        }
    }

    /// Whether a rule was broken.
    pub fn has_broken(&self, rule: Rule) -> bool {
        self.broken.iter().any(|broken| broken.rule == rule)
    }

    /// A site of a slice is visited.
    pub fn visit(&mut self, slice: Slice, node: usize, now_ms: u64, gap_ms: u64) {
        self.visits += 1;
        if let Some(before) = self.visited_ms.insert(slice, now_ms) {
            let apart = now_ms - before;
            self.shortest_ms = Some(self.shortest_ms.map_or(apart, |shortest| shortest.min(apart)));
            // Clocks of nodes run a few hundredths fast or slow.
            if apart * 100 < gap_ms * 90 {
                self.broke(Rule::Hurried, now_ms, slice, format!("node {node} after {apart} ms of {gap_ms}"));
            }
        }
    }

    /// A new epoch of a slice is known to somebody.
    pub fn epoch(&mut self, slice: Slice, epoch: Epoch, now_ms: u64) {
        let known = self.epochs.entry(slice).or_insert((epoch, now_ms));
        if epoch > known.0 {
            *known = (epoch, now_ms);
        }
    }
}
