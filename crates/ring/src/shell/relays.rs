//! By which relay this node is reached: its own, one that was named to it, or one that another node serves. Its record says which.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Shell, lock};
use crate::key::{Hash, Key};
use crate::limits::{RELAY_LEFT_MS, RELAY_LOST_MS, RELAY_MUTE_MS};
use crate::node::Event;
use crate::relays;

/// What was found when relays were looked at last.
pub(super) struct Looked {
    roster: Option<Hash>,
    /// When this node was last seen to be reached by the relay that its record names.
    reached: Instant,
    /// When it was last in view, or began to be reached by the relay that it is reached by.
    seen: Instant,
    by: Option<String>,
    /// Relays that let connections in and nothing through, as it seems, until then.
    left: BTreeMap<String, Instant>,
}

impl Looked {
    pub(super) fn never(now: Instant) -> Looked {
        Looked { roster: None, reached: now, seen: now, by: None, left: BTreeMap::new() }
    }

    /// Judges the relay of somebody else by which this node is reached by whether it is in view. True if another one is to be looked for,
    /// or those that were left count again.
    fn judge(&mut self, now: Instant, relay: Option<&str>, in_view: bool) -> bool {
        let before = self.left.len();
        self.left.retain(|_, until| now < *until);
        if in_view || relay.is_none() || relay != self.by.as_deref() {
            self.seen = now;
            self.by = relay.map(str::to_owned);
        }
        let Some(by) = self.by.clone().filter(|_| now >= self.seen + Duration::from_millis(RELAY_MUTE_MS)) else {
            return self.left.len() < before;
        };
        self.seen = now;
        self.left.insert(by, now + Duration::from_millis(RELAY_LEFT_MS));
        true
    }

    /// Relays without those that were left, unless there are no others.
    fn but_for_left(&self, served: Vec<(Key, String)>) -> Vec<(Key, String)> {
        let stays = |relay: &str| !self.left.contains_key(relay);
        if served.iter().any(|(_, relay)| stays(relay)) {
            return served.into_iter().filter(|(_, relay)| stays(relay)).collect();
        }
        served
    }
}

impl Shell {
    /// Looks which relays there are now, and lets others know by which this node is reached.
    pub(super) fn look_at_relays(&self, last: &mut Looked, now: Instant) {
        let mut relay = self.serves.clone().or_else(|| self.wire.relay());
        let theirs = self.serves.is_none() && self.membership.relays.is_empty();
        let (served, record) = {
            let machine = lock(&self.machine);
            let roster = &machine.node.view.roster;
            let digest = Some(roster.digest());
            let mut news = last.roster != digest;
            last.roster = digest;
            news |= last.judge(now, relay.as_deref().filter(|_| theirs), machine.node.core.may_act());
            (news.then(|| relays::served(roster, &self.key)), machine.node.core.record().clone())
        };
        if let Some(served) = served {
            self.wire.relays(&last.but_for_left(served));
        }
        if relay.is_some() {
            last.reached = now;
        } else if now < last.reached + Duration::from_millis(RELAY_LOST_MS) {
            // Perhaps it is back in a moment: nobody needs to hear of that.
            relay.clone_from(&record.relay);
        }
        if relay != record.relay {
            self.tell(Event::Moved { addresses: record.addresses, relay, portal: record.portal });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_by_which_nothing_comes_is_left_for_a_while_if_there_is_another() {
        let (begin, key) = (Instant::now(), Key([1; 32]));
        let [a, b] = ["http://10.0.0.1:7080", "http://10.0.0.2:7080"].map(|relay| (key, relay.to_owned()));
        let after = |ms: u64| begin + Duration::from_millis(ms);
        let mut looked = Looked::never(begin);
        let both = || vec![a.clone(), b.clone()];
        // In view, or not for long, or not by a relay of others: nothing is the relay's fault.
        assert!(!looked.judge(after(0), Some(&a.1), true));
        assert!(!looked.judge(after(RELAY_MUTE_MS - 1), Some(&a.1), false));
        assert!(!looked.judge(after(RELAY_MUTE_MS), None, false));
        assert!(!looked.judge(after(RELAY_MUTE_MS + 1), Some(&a.1), false));
        assert_eq!(looked.but_for_left(both()), both());
        // Then it is.
        let left = 2 * RELAY_MUTE_MS + 1;
        assert!(looked.judge(after(left), Some(&a.1), false));
        assert_eq!(looked.but_for_left(both()), std::slice::from_ref(&b));
        assert_eq!(looked.but_for_left(vec![a.clone()]), std::slice::from_ref(&a), "the only one");
        // Another one has its time, and the first one is tried again.
        assert!(!looked.judge(after(left + 1), Some(&b.1), false));
        assert!(!looked.judge(after(left + RELAY_LEFT_MS - 1), Some(&b.1), true));
        assert!(looked.judge(after(left + RELAY_LEFT_MS), Some(&b.1), true));
        assert_eq!(looked.but_for_left(both()), both());
    }
}
