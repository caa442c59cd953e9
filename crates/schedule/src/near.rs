//! Who stands nearest to a host: how long connecting to it takes from here, how long from where other holders of its slice stand, and
//! who is to fetch its next bundle.
//!
//! ```text
//!  nothing known ─▶ we fetch, and see how long connecting takes
//!  far enough that somebody may be nearer ─▶ each of the others connects once, which counts as a visit
//!  nearer by the margin ─▶ the bundle is theirs;  else ─▶ we fetch
//! ```
//! What is known is forgotten after half a day, so that whoever comes to stand nearer is found. What is not known costs nothing but a way
//! that could have been shorter: memory is bounded, and nothing of it outlasts the process.

use std::collections::HashMap;

use serde::Serialize;

use crate::limits::{
    NEAR_AGAIN_MS, NEAR_BUSY_MS, NEAR_FELLOWS_MAX, NEAR_HOSTS_MAX, NEAR_MS_MIN, NEAR_NODES_MAX, NEAR_OURS_MS,
    NEAR_PART, NEAR_URLS_MIN,
};
use crate::pace::Backoff;

/// The key of a node.
pub type Node = [u8; 32];

/// What is known of the ways to hosts.
#[derive(Debug, Default)]
pub struct Near {
    hosts: HashMap<Box<str>, Host>,
    /// Nodes that were asked in vain, and are left alone until then.
    resting: HashMap<Node, (Backoff, u64)>,
    gain: Gain,
}

/// The ways to one host.
#[derive(Debug, Default)]
struct Host {
    own: Option<Way>,
    others: Vec<(Node, Way)>,
    /// There was something that others could not bring: it is ours until then.
    ours_until_ms: u64,
    /// When anything was last known of it.
    seen_ms: u64,
}

/// How long connecting takes from somewhere: the quickest that was seen. `None`: there is no way.
#[derive(Clone, Copy, Debug)]
struct Way {
    connect_ms: Option<u32>,
    since_ms: u64,
}

impl Way {
    fn is_known(&self, now_ms: u64) -> bool {
        now_ms < self.since_ms.saturating_add(NEAR_AGAIN_MS)
    }

    /// One more look. What is slow now and then is not far: the quickest counts, until it is forgotten.
    fn seen(known: Option<Way>, connect_ms: Option<u32>, now_ms: u64) -> Way {
        match known.filter(|way| way.is_known(now_ms)) {
            Some(Way { connect_ms: Some(before), since_ms }) => {
                Way { connect_ms: Some(before.min(connect_ms.unwrap_or(before))), since_ms }
            }
            _ => Way { connect_ms, since_ms: now_ms },
        }
    }
}

/// Who is to do something for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This node connects once, and says how long that takes.
    Measure(Node),
    /// This node fetches the bundle.
    Give(Node),
    /// We fetch it.
    Ourselves,
}

/// What came of it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// Bundles that were given to nodes nearer to the site.
    pub bundles: u64,
    /// Those of them of which something came back.
    pub back: u64,
    /// Pages that came back.
    pub urls: u64,
    /// Connections that were made for them.
    pub connections: u64,
    /// Milliseconds by which these were quicker than ours are; less than nothing where that was a mistake.
    pub connect_ms_saved: i64,
    /// Looks of others at how long connecting takes.
    pub measured: u64,
}

/// Is whoever takes so long nearer than we are, by more than chance makes of it?
pub fn is_nearer(theirs_ms: u32, ours_ms: u32) -> bool {
    ours_ms.saturating_sub(theirs_ms) >= NEAR_MS_MIN.max(ours_ms / NEAR_PART)
}

impl Near {
    /// A connection from here to a host took so long; `None` if there was no way.
    pub fn connected(&mut self, host: &str, connect_ms: Option<u32>, now_ms: u64) {
        let known = self.host(host, now_ms);
        known.own = Some(Way::seen(known.own, connect_ms, now_ms));
    }

    /// How long connecting takes from here, where that is known; `Some(None)`: there is no way.
    pub fn own(&self, host: &str, now_ms: u64) -> Option<Option<u32>> {
        let own = self.hosts.get(host)?.own.filter(|way| way.is_known(now_ms));
        own.map(|way| way.connect_ms)
    }

    /// Another node says how long connecting takes from where it stands; `None` if there is no way.
    pub fn measured(&mut self, host: &str, node: Node, connect_ms: Option<u32>, now_ms: u64) {
        self.gain.measured += 1;
        self.theirs(host, node, connect_ms, now_ms);
    }

    fn theirs(&mut self, host: &str, node: Node, connect_ms: Option<u32>, now_ms: u64) {
        let others = &mut self.host(host, now_ms).others;
        match others.iter_mut().find(|(known, _)| *known == node) {
            Some((_, way)) => *way = Way::seen(Some(*way), connect_ms, now_ms),
            None => {
                others.retain(|(_, way)| way.is_known(now_ms));
                if others.len() < NEAR_FELLOWS_MAX {
                    others.push((node, Way::seen(None, connect_ms, now_ms)));
                }
            }
        }
    }

    /// Might somebody be nearer to this host? Cheap, and asked before anything else: most hosts are near enough, or not known yet.
    pub fn is_worth(&self, host: &str, urls: usize, now_ms: u64) -> bool {
        let far = |known: &Host| {
            let own = known.own.filter(|way| way.is_known(now_ms)).and_then(|way| way.connect_ms);
            known.ours_until_ms <= now_ms && own.is_some_and(|own_ms| is_nearer(0, own_ms))
        };
        urls >= NEAR_URLS_MIN && self.hosts.get(host).is_some_and(far)
    }

    /// What is to be done with a bundle of so many URLs, where these others could fetch it.
    pub fn next(&self, host: &str, others: &[Node], urls: usize, now_ms: u64) -> Next {
        let Some(known) = self.hosts.get(host).filter(|_| self.is_worth(host, urls, now_ms)) else {
            return Next::Ourselves;
        };
        let Some(own_ms) = known.own.and_then(|own| own.connect_ms) else { return Next::Ourselves };
        let there = || others.iter().filter(|node| !self.rests(node, now_ms)).take(NEAR_FELLOWS_MAX);
        let way = |node: &Node| known.others.iter().find(|(one, way)| one == node && way.is_known(now_ms));
        if let Some(unknown) = there().find(|node| way(node).is_none()) {
            return Next::Measure(*unknown);
        }
        let took = |node: &Node| way(node).and_then(|(_, way)| way.connect_ms).map(|took_ms| (took_ms, *node));
        match there().filter_map(took).min() {
            Some((took_ms, node)) if is_nearer(took_ms, own_ms) => Next::Give(node),
            _ => Next::Ourselves,
        }
    }

    fn rests(&self, node: &Node, now_ms: u64) -> bool {
        self.resting.get(node).is_some_and(|(_, until_ms)| now_ms < *until_ms)
    }

    /// A bundle is with a node.
    pub fn given(&mut self) {
        self.gain.bundles += 1;
    }

    /// A node brought so many pages of a host, over connections that took so long.
    pub fn brought(&mut self, host: &str, node: Node, urls: usize, connects_ms: &[u32], now_ms: u64) {
        self.gain.back += 1;
        self.gain.urls += urls as u64;
        let own = self.hosts.get(host).and_then(|known| known.own).and_then(|own| own.connect_ms);
        for connect_ms in connects_ms {
            self.theirs(host, node, Some(*connect_ms), now_ms);
            self.gain.connections += 1;
            self.gain.connect_ms_saved += own.map_or(0, |own_ms| i64::from(own_ms) - i64::from(*connect_ms));
        }
        if let Some((backoff, _)) = self.resting.get_mut(&node) {
            backoff.succeeded();
        }
    }

    /// A node could not get what we might: it has no way there, is turned away, or the answer is too large to travel. We look ourselves.
    pub fn ours(&mut self, host: &str, now_ms: u64) {
        self.host(host, now_ms).ours_until_ms = now_ms.saturating_add(NEAR_OURS_MS);
    }

    /// A node did not answer, or broke off: it is left alone, the longer the more often.
    pub fn failed(&mut self, node: Node, now_ms: u64) {
        if self.resting.len() >= NEAR_NODES_MAX {
            self.resting.retain(|_, (_, until_ms)| now_ms < *until_ms);
        }
        if self.resting.len() < NEAR_NODES_MAX || self.resting.contains_key(&node) {
            let (backoff, until_ms) = self.resting.entry(node).or_default();
            *until_ms = now_ms.saturating_add(backoff.failed());
        }
    }

    /// A node has as much to do as it takes: it is asked again soon.
    pub fn busy(&mut self, node: Node, now_ms: u64) {
        if self.resting.len() < NEAR_NODES_MAX || self.resting.contains_key(&node) {
            let (_, until_ms) = self.resting.entry(node).or_default();
            *until_ms = (*until_ms).max(now_ms.saturating_add(NEAR_BUSY_MS));
        }
    }

    /// What came of it so far.
    pub fn gain(&self) -> Gain {
        self.gain
    }

    /// Hosts that are known to be nearer to somebody else.
    pub fn nearer_elsewhere(&self, now_ms: u64) -> usize {
        let is_nearer_there = |known: &&Host| {
            let own = known.own.filter(|way| way.is_known(now_ms)).and_then(|way| way.connect_ms);
            let theirs = known.others.iter().filter(|(_, way)| way.is_known(now_ms));
            let best = theirs.filter_map(|(_, way)| way.connect_ms).min();
            own.zip(best).is_some_and(|(own_ms, best_ms)| is_nearer(best_ms, own_ms))
        };
        self.hosts.values().filter(is_nearer_there).count()
    }

    fn host(&mut self, host: &str, now_ms: u64) -> &mut Host {
        if !self.hosts.contains_key(host) {
            self.make_room(now_ms);
            self.hosts.insert(host.into(), Host::default());
        }
        let known = self.hosts.entry(host.into()).or_default();
        known.seen_ms = now_ms;
        known
    }

    /// What is too old to count goes first; then the half of which nothing was heard for longest.
    fn make_room(&mut self, now_ms: u64) {
        if self.hosts.len() < NEAR_HOSTS_MAX {
            return;
        }
        self.hosts.retain(|_, known| now_ms < known.seen_ms.saturating_add(NEAR_AGAIN_MS));
        if self.hosts.len() < NEAR_HOSTS_MAX {
            return;
        }
        let mut seen: Vec<u64> = self.hosts.values().map(|known| known.seen_ms).collect();
        let at = seen.len() / 2;
        let (_, middle_ms, _) = seen.select_nth_unstable(at);
        let middle_ms = *middle_ms;
        self.hosts.retain(|_, known| known.seen_ms > middle_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Node = [1; 32];
    const B: Node = [2; 32];
    const HOST: &str = "a.example:80";
    const MANY: usize = 50;

    fn known(own_ms: u32, theirs: &[(Node, Option<u32>)]) -> Near {
        let mut near = Near::default();
        near.connected(HOST, Some(own_ms), 0);
        theirs.iter().for_each(|(node, took_ms)| near.measured(HOST, *node, *took_ms, 0));
        near
    }

    #[test]
    fn nobody_is_asked_before_it_is_known_how_far_the_host_is_from_here() {
        let mut near = Near::default();
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Ourselves);
        near.connected(HOST, None, 0);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Ourselves, "no way from here");
        near.connected(HOST, Some(NEAR_MS_MIN - 1), 0);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Ourselves, "nobody can be nearer by the margin");
        assert!(!near.is_worth(HOST, MANY, 0));
        let near = known(100, &[]);
        assert!(near.is_worth(HOST, MANY, 0));
        assert_eq!(near.next(HOST, &[], MANY, 0), Next::Ourselves, "nobody is there");
        assert_eq!(near.next(HOST, &[A, B], NEAR_URLS_MIN - 1, 0), Next::Ourselves, "not worth the way");
        assert_eq!(near.next(HOST, &[A, B], NEAR_URLS_MIN, 0), Next::Measure(A));
    }

    #[test]
    fn each_is_asked_once_and_the_nearest_gets_the_bundle() {
        let near = known(100, &[(A, Some(60))]);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Measure(B), "there may be a nearer one");
        let near = known(100, &[(A, Some(60)), (B, Some(20))]);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Give(B));
        assert_eq!(near.next(HOST, &[A], MANY, 0), Next::Give(A), "who is not there is not asked");
        let near = known(100, &[(A, Some(60)), (B, None)]);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Give(A), "one has no way there");
        let near = known(100, &[(A, Some(80)), (B, Some(76))]);
        assert_eq!(near.next(HOST, &[A, B], MANY, 0), Next::Ourselves, "nearer, but not by the margin");
        assert_eq!(near.nearer_elsewhere(0), 0);
        assert_eq!(known(100, &[(A, Some(75))]).nearer_elsewhere(0), 1);
    }

    #[test]
    fn nearer_is_by_a_margin_that_is_never_less_than_chance() {
        assert!(is_nearer(0, NEAR_MS_MIN) && !is_nearer(1, NEAR_MS_MIN));
        assert!(is_nearer(30, 40) && !is_nearer(31, 40));
        assert!(is_nearer(150, 200) && !is_nearer(151, 200));
        assert!(!is_nearer(u32::MAX, u32::MAX) && !is_nearer(0, 0));
    }

    #[test]
    fn what_is_known_is_forgotten_and_the_quickest_look_counts_until_then() {
        let mut near = known(100, &[(A, Some(20))]);
        near.connected(HOST, Some(900), 10);
        near.connected(HOST, Some(90), 20);
        assert_eq!(near.own(HOST, 20), Some(Some(90)));
        near.connected(HOST, None, 30);
        assert_eq!(near.own(HOST, 30), Some(Some(90)), "once out of reach is not far");
        assert_eq!(near.next(HOST, &[A], MANY, NEAR_AGAIN_MS - 1), Next::Give(A));
        assert_eq!(near.next(HOST, &[A], MANY, NEAR_AGAIN_MS), Next::Ourselves, "how far it is from here is seen anew");
        near.connected(HOST, Some(110), NEAR_AGAIN_MS);
        assert_eq!(near.own(HOST, NEAR_AGAIN_MS), Some(Some(110)));
        assert_eq!(near.next(HOST, &[A], MANY, NEAR_AGAIN_MS), Next::Measure(A));
    }

    #[test]
    fn who_fails_is_left_alone_and_what_nobody_else_gets_is_ours() {
        let mut near = known(100, &[(A, Some(20)), (B, Some(30))]);
        near.failed(A, 0);
        assert_eq!(near.next(HOST, &[A, B], MANY, 1), Next::Give(B));
        near.busy(B, 1);
        assert_eq!(near.next(HOST, &[A, B], MANY, 2), Next::Ourselves);
        assert_eq!(near.next(HOST, &[A, B], MANY, 1 + NEAR_BUSY_MS), Next::Give(B));
        let first_ms = crate::pace::backoff_ms(1);
        assert_eq!(near.next(HOST, &[A, B], MANY, first_ms), Next::Give(A));
        near.failed(A, first_ms);
        assert_eq!(near.next(HOST, &[A, B], MANY, 2 * first_ms), Next::Give(B), "twice as long the second time");
        near.ours(HOST, 2 * first_ms);
        assert_eq!(near.next(HOST, &[A, B], MANY, 2 * first_ms), Next::Ourselves);
        assert_eq!(near.next(HOST, &[B], MANY, 2 * first_ms + NEAR_OURS_MS), Next::Give(B));
    }

    #[test]
    fn the_gain_is_what_was_measured_also_where_it_is_a_loss() {
        let mut near = known(100, &[(A, Some(20))]);
        near.given();
        near.brought(HOST, A, 40, &[25, 30], 1);
        let gain = Gain { bundles: 1, back: 1, urls: 40, connections: 2, connect_ms_saved: 145, measured: 1 };
        assert_eq!(near.gain(), gain);
        near.brought(HOST, A, 1, &[400], 2);
        assert_eq!(near.gain().connect_ms_saved, -155);
        assert_eq!(near.next(HOST, &[A], MANY, 2), Next::Give(A), "the quickest look counts");
    }

    #[test]
    fn memory_is_bounded_and_what_was_used_last_is_kept() {
        let mut near = Near::default();
        for number in 0..2 * NEAR_HOSTS_MAX as u64 {
            near.connected(&format!("{number}.example:80"), Some(50), number);
            assert!(near.hosts.len() <= NEAR_HOSTS_MAX);
        }
        let last = 2 * NEAR_HOSTS_MAX as u64 - 1;
        assert_eq!(near.own(&format!("{last}.example:80"), last), Some(Some(50)));
        assert_eq!(near.own("0.example:80", last), None);
        for node in 0..=255u8 {
            near.measured("b.example:80", [node; 32], Some(1), last);
            near.failed([node; 32], last);
        }
        assert!(near.hosts["b.example:80"].others.len() <= NEAR_FELLOWS_MAX && near.resting.len() <= NEAR_NODES_MAX);
    }
}
