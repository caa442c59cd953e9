//! Which bundle is with whom. Pure: the time comes in.
//!
//! ```text
//!  offered ──▶ waiting ──ask──▶ out ──results──▶ back: judged, and over
//!                │               ├──lease over──▶ lapsed: its URLs wait again, and its host goes out first
//!                │               └──withdrawn──▶ nobody waits for it; whoever has it does not know, and its host is his until the lease is over
//!                └── nobody took it in time ────▶ lapsed: the node fetches it itself
//! ```

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::limits::{
    BATCH_BYTES_MAX, DECLINED_MAX, DECLINED_MS, FAIR_MS, HOLDS_MAX, IDLE_ASKS, LEASE_MS_MIN, OFFER_MS, OUT_AT_FIRST,
    THERE_MS, TURN_MS, WAITING_MAX, WAITING_PER_HAND,
};
use crate::trust::{Key, Origin, Place};

/// A bundle that is offered.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Its number.
    pub id: u64,
    /// Its host: with one contributor at a time.
    pub host: String,
    /// Its site, which others leave alone meanwhile.
    pub site: String,
    /// Bytes of its URLs and their validators.
    pub bytes: usize,
    /// How long it may be out.
    pub lease_ms: u64,
    /// The same with its bodies on their way, however they come.
    pub out_ms: u64,
    /// Nobody else fetches it: it waits for contributors as long as `wait_ms`.
    pub only: bool,
    /// How long it may wait.
    pub wait_ms: u64,
    /// Only for these, where there are some: it checks what another one brought.
    pub among: Vec<Key>,
    /// Not given out before then: its site rests.
    pub ready_ms: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    offered: Offered,
    since_ms: u64,
}

#[derive(Clone, Debug)]
struct Out {
    with: Key,
    host: String,
    site: String,
    until_ms: u64,
    /// Whatever comes, it is over then.
    last_ms: u64,
    /// Whoever offered it waits for it.
    is_wanted: bool,
}

/// A bundle that is out, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub id: u64,
    /// Who has it.
    pub with: Key,
    /// Its host.
    pub host: String,
    /// Its site.
    pub site: String,
    /// Until when.
    pub until_ms: u64,
}

/// A contributor that asks.
#[derive(Clone, Debug)]
struct Hand {
    /// When it came, and until when it is there, unless it asks again.
    since_ms: u64,
    there_ms: u64,
    origin: Origin,
    place: Place,
    /// How often it asked in vain, in a row.
    in_vain: u32,
    /// Bundles that it may have at once: more with each that comes back, half as many with each that does not.
    may_have: usize,
    /// Hosts that it did not want, and until when it is not asked again; the latest last.
    declined: VecDeque<(String, u64)>,
}

/// Why a bundle is over without results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapsed {
    /// Nobody took it.
    Untaken(u64),
    /// Whoever took it did not come back.
    Overdue(u64),
}

/// Which bundle is with whom.
#[derive(Clone, Debug, Default)]
pub struct Dispatch {
    waiting: VecDeque<Waiting>,
    out: BTreeMap<u64, Out>,
    hosts: HashSet<String>,
    /// Hosts whose bundles lapsed: they go out first.
    overdue: HashSet<String>,
    hands: HashMap<Key, Hand>,
    /// When a bundle was last turned down because too few were there.
    turned_down_ms: Option<u64>,
}

impl Dispatch {
    /// Contributors that are there.
    pub fn there(&self, now_ms: u64) -> usize {
        self.hands.values().filter(|hand| hand.there_ms > now_ms).count()
    }

    /// Who is there, and sees for these; of one place, where one is named.
    pub fn others(&self, not: &[Origin], place: Option<Place>, now_ms: u64) -> Vec<Key> {
        let fits = |hand: &Hand| {
            hand.there_ms > now_ms
                && not.iter().all(|origin| hand.origin.is_apart(*origin))
                && place.is_none_or(|place| place == hand.place)
        };
        let mut others: Vec<Key> = self.hands.iter().filter(|(_, hand)| fits(hand)).map(|(key, _)| *key).collect();
        others.sort_unstable(); // the same state, the same answer
        others
    }

    /// Waiting, and out.
    pub fn counts(&self) -> (usize, usize) {
        (self.waiting.len(), self.out.len())
    }

    /// What a contributor has: the number of each bundle, its host, and how long until it is overdue.
    pub fn with(&self, who: &Key, now_ms: u64) -> impl Iterator<Item = (u64, &str, u64)> {
        let theirs = self.out.iter().filter(move |(_, out)| out.with == *who);
        theirs.map(move |(id, out)| (*id, out.host.as_str(), out.until_ms.saturating_sub(now_ms)))
    }

    /// Bundles that anybody who came could have now.
    pub fn wants(&self, now_ms: u64) -> usize {
        let turned_down = self.turned_down_ms.is_some_and(|then_ms| now_ms < then_ms + OFFER_MS);
        let is_free = |offered: &Offered| offered.among.is_empty() && !self.hosts.contains(&offered.host);
        let free = self.waiting.iter().filter(|waiting| is_free(&waiting.offered));
        free.count() + usize::from(turned_down)
    }

    /// Takes a bundle, or says that it is better fetched by the node.
    pub fn offer(&mut self, offered: Offered, now_ms: u64) -> bool {
        let room = match offered.only || !offered.among.is_empty() {
            true => WAITING_MAX,
            false => self.there(now_ms) * WAITING_PER_HAND,
        };
        if self.waiting.len() >= room {
            self.turned_down_ms = Some(now_ms);
            return false;
        }
        let first = self.overdue.remove(&offered.host) || !offered.among.is_empty();
        let waiting = Waiting { offered, since_ms: now_ms };
        if first {
            self.waiting.push_front(waiting)
        } else {
            self.waiting.push_back(waiting)
        }
        true
    }

    /// How many of those that have just come one may have: everybody who is there gets a share of them.
    fn share(&self, who: &Key, now_ms: u64) -> usize {
        let all = self.waiting.len() + self.out.len();
        all.div_ceil(self.there(now_ms).max(1)).saturating_sub(self.has(who))
    }

    /// How many it has that somebody waits for.
    fn has(&self, who: &Key) -> usize {
        self.out.values().filter(|out| out.with == *who && out.is_wanted).count()
    }

    /// For how long a site is with somebody.
    pub fn has_for(&self, site: &str, now_ms: u64) -> Option<u64> {
        let of_site = self.out.values().filter(|out| out.site == site && now_ms < out.until_ms);
        of_site.map(|out| out.until_ms - now_ms).max()
    }

    /// A contributor asks for up to so many: their numbers and leases.
    pub fn ask(
        &mut self,
        who: Key,
        origin: impl Into<Origin>,
        place: Place,
        max: usize,
        now_ms: u64,
    ) -> Vec<(u64, u64)> {
        let known = self.hands.remove(&who);
        let since_ms = known.as_ref().filter(|hand| hand.there_ms > now_ms).map_or(now_ms, |hand| hand.since_ms);
        let (in_vain, may_have, mut declined) =
            known.map_or((0, OUT_AT_FIRST, VecDeque::new()), |hand| (hand.in_vain, hand.may_have, hand.declined));
        declined.retain(|(_, until_ms)| now_ms < *until_ms);
        let there_ms = now_ms + THERE_MS;
        let hand = Hand { since_ms, there_ms, origin: origin.into(), place, in_vain, may_have, declined };
        self.hands.insert(who, hand);
        if self.hands.len() > 4 * (self.out.len() + 1_024) {
            self.hands.retain(|_, hand| hand.there_ms > now_ms);
        }
        let (mut given, mut kept) = (Vec::new(), VecDeque::with_capacity(self.waiting.len()));
        let (mut share, mut bytes) = (self.share(&who, now_ms), 0);
        let max = max.min(may_have.saturating_sub(self.has(&who)));
        while let Some(waiting) = self.waiting.pop_front() {
            let offered = &waiting.offered;
            if given.len() >= max || bytes + offered.bytes > BATCH_BYTES_MAX && !given.is_empty() {
                self.waiting.push_front(waiting);
                break;
            }
            let for_others = !offered.among.is_empty() && !offered.among.contains(&who);
            let is_shared = offered.among.is_empty() && now_ms < waiting.since_ms + FAIR_MS;
            let is_out = self.hosts.contains(&offered.host);
            let declined = |hand: &Hand| hand.declined.iter().any(|(host, _)| *host == offered.host);
            let is_declined = self.hands.get(&who).is_some_and(declined);
            if for_others || is_shared && share == 0 || offered.ready_ms > now_ms || is_out || is_declined {
                kept.push_back(waiting);
                continue;
            }
            share -= usize::from(is_shared);
            bytes += offered.bytes;
            let lease_ms = offered.lease_ms.max(LEASE_MS_MIN);
            self.hosts.insert(offered.host.clone());
            let (host, site, until_ms) = (offered.host.clone(), offered.site.clone(), now_ms + lease_ms);
            let last_ms = until_ms.max(now_ms + offered.out_ms);
            self.out.insert(offered.id, Out { with: who, host, site, until_ms, last_ms, is_wanted: true });
            given.push((offered.id, lease_ms));
        }
        while let Some(waiting) = kept.pop_back() {
            self.waiting.push_front(waiting);
        }
        if let Some(hand) = self.hands.get_mut(&who) {
            hand.in_vain = if given.is_empty() { in_vain.saturating_add(1) } else { 0 };
        }
        given
    }

    /// Has it nothing that it has to bring back?
    pub fn is_free(&self, who: &Key) -> bool {
        self.has(who) == 0
    }

    /// Has it nothing to do, and has asked in vain for a while?
    pub fn is_idle(&self, who: &Key) -> bool {
        self.hands.get(who).is_some_and(|hand| hand.in_vain >= IDLE_ASKS) && self.is_free(who)
    }

    /// Has it been here for a turn?
    pub fn has_had_a_turn(&self, who: &Key, now_ms: u64) -> bool {
        let there = self.hands.get(who).filter(|hand| hand.there_ms > now_ms);
        there.is_some_and(|hand| now_ms >= hand.since_ms + TURN_MS)
    }

    /// It goes to another node: nobody counts on it here, until it asks again.
    pub fn gone(&mut self, who: &Key) {
        if let Some(hand) = self.hands.get_mut(who) {
            (hand.there_ms, hand.in_vain) = (0, 0);
        }
    }

    /// Is this bundle with this contributor?
    pub fn is_with(&self, who: &Key, id: u64) -> bool {
        self.out.get(&id).is_some_and(|out| out.with == *who)
    }

    /// Its results are here: it does not lapse while bodies come, as long as they come, up to its last moment.
    pub fn came(&mut self, who: &Key, id: u64, now_ms: u64) {
        if let Some(out) = self.out.get_mut(&id).filter(|out| out.with == *who) {
            out.until_ms = out.until_ms.max(now_ms + LEASE_MS_MIN).min(out.last_ms);
        }
        if let Some(hand) = self.hands.get_mut(who) {
            hand.there_ms = now_ms + THERE_MS;
        }
    }

    /// It came back.
    pub fn over(&mut self, id: u64) {
        if let Some(out) = self.out.remove(&id) {
            self.hosts.remove(&out.host);
            if let Some(hand) = self.hands.get_mut(&out.with) {
                hand.may_have = (hand.may_have + 1).min(HOLDS_MAX);
            }
        }
    }

    /// It is not wanted by whom it is with, who is not offered that host again for now. True if it was with him.
    pub fn decline(&mut self, who: &Key, id: u64, now_ms: u64) -> bool {
        if !self.is_with(who, id) {
            return false;
        }
        if let Some(out) = self.out.remove(&id) {
            self.hosts.remove(&out.host);
            if let Some(hand) = self.hands.get_mut(who) {
                hand.declined.push_back((out.host, now_ms + DECLINED_MS));
                if hand.declined.len() > DECLINED_MAX {
                    hand.declined.pop_front();
                }
            }
        }
        true
    }

    /// It greets anew: its owner's wishes may be others, and what it still does not want it declines again.
    pub fn greeted(&mut self, who: &Key) {
        if let Some(hand) = self.hands.get_mut(who) {
            hand.declined.clear();
        }
    }

    /// It came back as something else than was announced.
    pub fn forged(&mut self, id: u64) {
        self.overdue_again(id);
    }

    /// Whoever offered it does not want it any more. Whoever has it is told nothing of that and fetches on: nobody else gets its host meanwhile.
    pub fn withdraw(&mut self, id: u64) {
        self.waiting.retain(|waiting| waiting.offered.id != id);
        if let Some(out) = self.out.get_mut(&id) {
            out.is_wanted = false;
        }
    }

    /// What is out.
    pub fn taken(&self) -> Vec<Taken> {
        let taken = |(id, out): (&u64, &Out)| {
            let (host, site) = (out.host.clone(), out.site.clone());
            Taken { id: *id, with: out.with, host, site, until_ms: out.until_ms }
        };
        self.out.iter().map(taken).collect()
    }

    /// This was given out before the node began again, and nobody waits for it any more.
    pub fn remember(&mut self, taken: Taken) {
        let Taken { id, with, host, site, until_ms } = taken;
        self.hosts.insert(host.clone());
        self.out.insert(id, Out { with, host, site, until_ms, last_ms: until_ms, is_wanted: false });
    }

    /// Its results are here, and nobody wants them any more: it is not fetched any more either, and its host rests for a moment.
    pub fn came_in_vain(&mut self, who: &Key, id: u64, now_ms: u64) {
        if let Some(out) = self.out.get_mut(&id).filter(|out| out.with == *who && !out.is_wanted) {
            out.until_ms = out.until_ms.min(now_ms + LEASE_MS_MIN);
        }
    }

    /// A contributor begins anew, or goes: what it had and does not hold is lost.
    pub fn lost(&mut self, who: &Key, holds: &[u64]) -> Vec<u64> {
        let lost: Vec<u64> =
            self.out.iter().filter(|(id, out)| out.with == *who && !holds.contains(id)).map(|(id, _)| *id).collect();
        for id in &lost {
            self.overdue_again(*id);
        }
        lost
    }

    fn overdue_again(&mut self, id: u64) {
        if let Some(out) = self.out.remove(&id) {
            self.hosts.remove(&out.host);
            // What nobody wanted any more is not offered again, and counts against nobody.
            if !out.is_wanted {
                return;
            }
            // What is not offered again for long need not go first for ever.
            if self.overdue.len() >= WAITING_MAX {
                self.overdue.clear();
            }
            self.overdue.insert(out.host);
            if let Some(hand) = self.hands.get_mut(&out.with) {
                hand.may_have = (hand.may_have / 2).max(1);
            }
        }
    }

    /// What has waited or been out for too long.
    pub fn lapse(&mut self, now_ms: u64) -> Vec<Lapsed> {
        let mut lapsed = Vec::new();
        self.waiting.retain(|waiting| {
            let patient = waiting.offered.only || !waiting.offered.among.is_empty();
            let wait_ms = if patient { waiting.offered.wait_ms } else { OFFER_MS.min(waiting.offered.wait_ms) };
            let waits = now_ms < waiting.since_ms.max(waiting.offered.ready_ms) + wait_ms;
            if !waits {
                lapsed.push(Lapsed::Untaken(waiting.offered.id));
            }
            waits
        });
        let overdue: Vec<u64> = self.out.iter().filter(|(_, out)| now_ms >= out.until_ms).map(|(id, _)| *id).collect();
        for id in overdue {
            self.overdue_again(id);
            lapsed.push(Lapsed::Overdue(id));
        }
        lapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = [1; 32];
    const B: Key = [2; 32];

    fn offered(id: u64, host: &str) -> Offered {
        let (among, ready_ms, wait_ms) = (Vec::new(), 0, 600_000);
        let (lease_ms, out_ms) = (60_000, 120_000);
        Offered {
            id,
            host: host.into(),
            site: host.into(),
            bytes: 100,
            lease_ms,
            out_ms,
            only: true,
            wait_ms,
            among,
            ready_ms,
        }
    }

    const HERE: Place = Place([0, 0]);

    fn ids(given: Vec<(u64, u64)>) -> Vec<u64> {
        given.into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn a_host_is_with_one_contributor_at_a_time() {
        let mut dispatch = Dispatch::default();
        for (id, host) in [(1, "a"), (2, "a"), (3, "b")] {
            assert!(dispatch.offer(offered(id, host), 0));
        }
        assert_eq!(dispatch.with(&A, 0).count(), 0);
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [1, 3]);
        assert!(ids(dispatch.ask(B, 2, HERE, 10, 0)).is_empty());
        dispatch.over(1);
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 0)), [2]);
        assert!(dispatch.is_with(&B, 2) && !dispatch.is_with(&A, 2) && !dispatch.is_with(&A, 1));
    }

    #[test]
    fn what_one_contributor_does_not_want_is_for_the_others_at_once() {
        let mut dispatch = Dispatch::default();
        (1..=2).for_each(|id| assert!(dispatch.offer(offered(id, "a"), 0)));
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [1]);
        assert!(!dispatch.decline(&B, 1, 0), "it is not his");
        assert!(dispatch.decline(&A, 1, 0) && !dispatch.decline(&A, 1, 0));
        assert!(ids(dispatch.ask(A, 1, HERE, 10, 0)).is_empty(), "nor is the next one of that host");
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 0)), [2]);
        dispatch.over(2);
        // Nobody has a fault: as many as before, and what is not remembered any more is offered again.
        for n in 0..DECLINED_MAX as u64 {
            assert!(dispatch.offer(offered(10 + n, &n.to_string()), 0));
            assert_eq!(ids(dispatch.ask(A, 1, HERE, 1, 0)), [10 + n]);
            assert!(dispatch.decline(&A, 10 + n, 0));
        }
        assert!(dispatch.offer(offered(3, "a"), 0));
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 1, 0)), [3]);
    }

    #[test]
    fn what_was_declined_is_offered_again_after_a_while_and_after_a_greeting() {
        let mut dispatch = Dispatch::default();
        (1..=3).for_each(|id| assert!(dispatch.offer(offered(id, "a"), 0)));
        let ask = |dispatch: &mut Dispatch, now_ms| ids(dispatch.ask(A, 1, HERE, 1, now_ms));
        assert_eq!(ask(&mut dispatch, 0), [1]);
        assert!(dispatch.decline(&A, 1, 1_000));
        assert!(ask(&mut dispatch, 1_000 + DECLINED_MS - 1).is_empty());
        assert_eq!(ask(&mut dispatch, 1_000 + DECLINED_MS), [2], "another day may have begun");
        assert!(dispatch.decline(&A, 2, 1_000 + DECLINED_MS));
        assert!(ask(&mut dispatch, 1_000 + DECLINED_MS).is_empty());
        dispatch.greeted(&B);
        assert!(ask(&mut dispatch, 1_000 + DECLINED_MS).is_empty(), "that was another one");
        dispatch.greeted(&A);
        assert_eq!(ask(&mut dispatch, 1_000 + DECLINED_MS), [3], "its owner may have other wishes");
    }

    #[test]
    fn what_has_just_come_is_shared_by_all_who_are_there() {
        let mut dispatch = Dispatch::default();
        dispatch.ask(A, 1, HERE, 10, 0);
        dispatch.ask(B, 2, HERE, 10, 0);
        assert!((1..=7).all(|id| dispatch.offer(offered(id, &id.to_string()), 0)));
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [1, 2, 3, 4]);
        assert!(ids(dispatch.ask(A, 1, HERE, 10, 0)).is_empty(), "the rest is for the other one");
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 1, 0)), [5]);
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, FAIR_MS)), [6, 7], "who does not come in time gets none");
    }

    #[test]
    fn whoever_asks_in_vain_for_a_while_and_has_nothing_is_idle() {
        let mut dispatch = Dispatch::default();
        (1..IDLE_ASKS).for_each(|_| drop(dispatch.ask(A, 1, HERE, 10, 0)));
        assert!(!dispatch.is_idle(&A));
        dispatch.ask(A, 1, HERE, 10, 0);
        assert!(dispatch.is_idle(&A));
        dispatch.gone(&A);
        assert!(!dispatch.is_idle(&A), "once");
        assert_eq!(dispatch.there(0), 0, "nobody counts on it");
        dispatch.offer(offered(1, "a"), 0);
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [1]);
        (0..IDLE_ASKS).for_each(|_| drop(dispatch.ask(A, 1, HERE, 10, 0)));
        assert!(!dispatch.is_idle(&A), "it has something to do");
    }

    #[test]
    fn a_turn_begins_when_one_comes_and_not_when_it_asks_again() {
        let mut dispatch = Dispatch::default();
        dispatch.ask(A, 1, HERE, 10, 0);
        dispatch.ask(A, 1, HERE, 10, TURN_MS - 1);
        assert!(!dispatch.has_had_a_turn(&A, TURN_MS - 1) && dispatch.has_had_a_turn(&A, TURN_MS));
        dispatch.gone(&A);
        dispatch.ask(A, 1, HERE, 10, TURN_MS);
        assert!(!dispatch.has_had_a_turn(&A, TURN_MS + 1), "it came back");
    }

    #[test]
    fn hands_are_wanted_for_what_waits_and_for_what_was_turned_down_just_now() {
        let mut dispatch = Dispatch::default();
        assert!(!dispatch.offer(Offered { only: false, ..offered(1, "a") }, 0), "nobody is there");
        assert_eq!((dispatch.wants(1), dispatch.wants(OFFER_MS)), (1, 0));
        dispatch.offer(offered(2, "b"), 0);
        dispatch.offer(Offered { among: vec![A], ..offered(3, "c") }, 0);
        assert_eq!(dispatch.wants(OFFER_MS), 1, "a check is for those who are drawn");
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 1, OFFER_MS)), [2]);
        dispatch.offer(offered(4, "b"), OFFER_MS);
        assert_eq!(dispatch.wants(2 * OFFER_MS), 0, "the host is with somebody");
    }

    #[test]
    fn an_answer_is_no_longer_than_it_may_be() {
        let mut dispatch = Dispatch::default();
        let long = |id: u64| Offered { bytes: BATCH_BYTES_MAX / 2 + 1, ..offered(id, &id.to_string()) };
        assert!((1..=2).all(|id| dispatch.offer(long(id), 0)));
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [1]);
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 10, 0)), [2]);
    }

    #[test]
    fn what_lapses_goes_out_again_first() {
        let mut dispatch = Dispatch::default();
        dispatch.offer(offered(1, "a"), 0);
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 1, 0)), [1]);
        dispatch.offer(offered(2, "b"), 0);
        assert_eq!(dispatch.lapse(59_999), []);
        assert_eq!(dispatch.lapse(60_000), [Lapsed::Overdue(1)]);
        assert!(!dispatch.is_with(&A, 1), "too late");
        dispatch.offer(offered(3, "a"), 60_001);
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 60_001)), [3, 2]);
    }

    #[test]
    fn what_is_not_wanted_any_more_stays_with_whoever_has_it_until_its_lease_is_over() {
        let mut dispatch = Dispatch::default();
        assert!((1..=2).all(|id| dispatch.offer(offered(id, &id.to_string()), 0)));
        assert!(dispatch.offer(offered(3, "3"), 0));
        assert_eq!(ids(dispatch.ask(A, 1, HERE, 2, 0)), [1, 2]);
        (1..=3).for_each(|id| dispatch.withdraw(id));
        assert_eq!(dispatch.counts(), (0, 2), "what only waited is gone");
        // A crawl that is begun again offers the same hosts.
        (11..=12).for_each(|id| assert!(dispatch.offer(offered(id, &(id - 10).to_string()), 1_000)));
        assert!(ids(dispatch.ask(B, 2, HERE, 10, 1_000)).is_empty(), "no two visit a host at once");
        assert_eq!((dispatch.has_for("1", 1_000), dispatch.has_for("3", 1_000)), (Some(59_000), None));
        assert!(dispatch.is_free(&A), "nobody waits for what it has");
        // It brings one of them back: nobody takes that, but the host is free when it has rested.
        dispatch.came_in_vain(&B, 1, 2_000);
        assert_eq!(dispatch.has_for("1", 2_000), Some(58_000), "it is not his");
        dispatch.came_in_vain(&A, 1, 2_000);
        dispatch.lapse(2_000 + LEASE_MS_MIN);
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 2_000 + LEASE_MS_MIN)), [11]);
        dispatch.lapse(59_999);
        assert!(ids(dispatch.ask(B, 2, HERE, 10, 59_999)).is_empty());
        dispatch.lapse(60_000);
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 60_000)), [12], "its lease is over");
        // Nothing is held against whoever had them.
        assert!((20..20 + OUT_AT_FIRST as u64).all(|id| dispatch.offer(offered(id, &id.to_string()), 60_000)));
        assert_eq!(dispatch.ask(A, 1, HERE, 100, 60_000 + FAIR_MS).len(), OUT_AT_FIRST);
    }

    #[test]
    fn what_was_out_before_the_node_began_again_is_out() {
        let mut before = Dispatch::default();
        assert!(before.offer(offered(1, "a"), 0));
        assert_eq!(ids(before.ask(A, 1, HERE, 1, 0)), [1]);
        let mut dispatch = Dispatch::default();
        before.taken().into_iter().for_each(|taken| dispatch.remember(taken));
        assert_eq!(dispatch.taken(), before.taken());
        assert!(dispatch.offer(offered(9, "a"), 1_000));
        assert!(ids(dispatch.ask(B, 2, HERE, 1, 1_000)).is_empty());
        assert_eq!(dispatch.has_for("a", 1_000), Some(59_000));
        dispatch.lapse(60_000);
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 1, 60_000)), [9]);
    }

    #[test]
    fn nothing_waits_for_contributors_unless_it_is_meant_to() {
        let mut dispatch = Dispatch::default();
        let free = |id| Offered { only: false, ..offered(id, &id.to_string()) };
        assert!(!dispatch.offer(free(1), 0), "nobody is there");
        dispatch.ask(A, 1, HERE, 1, 0);
        for id in 0..WAITING_PER_HAND as u64 {
            assert!(dispatch.offer(free(id), 0));
        }
        assert!(!dispatch.offer(free(99), 0), "enough for one");
        assert_eq!(dispatch.lapse(OFFER_MS).len(), WAITING_PER_HAND);
        assert!(!dispatch.offer(free(1), THERE_MS), "it is gone");
    }

    #[test]
    fn a_contributor_that_begins_anew_keeps_what_it_holds() {
        let mut dispatch = Dispatch::default();
        assert!((1..=3).all(|id| dispatch.offer(offered(id, &id.to_string()), 0)));
        dispatch.ask(A, 1, HERE, 10, 0);
        assert_eq!(dispatch.lost(&A, &[2]), [1, 3]);
        assert!(dispatch.is_with(&A, 2) && !dispatch.is_with(&A, 1));
        dispatch.came(&A, 2, 59_000);
        assert_eq!(dispatch.lapse(60_000), [], "bodies are coming");
        assert_eq!(dispatch.lapse(59_000 + LEASE_MS_MIN), [Lapsed::Overdue(2)]);
    }

    #[test]
    fn no_bundle_is_held_for_ever_by_saying_its_results_again() {
        let mut dispatch = Dispatch::default();
        dispatch.offer(offered(1, "a"), 0);
        dispatch.ask(A, 1, HERE, 1, 0);
        let mut now_ms = 50_000;
        while dispatch.lapse(now_ms).is_empty() {
            dispatch.came(&A, 1, now_ms);
            now_ms += LEASE_MS_MIN - 1;
            assert!(now_ms < 200_000, "never");
        }
        assert!(now_ms >= 120_000);
    }

    #[test]
    fn one_has_so_many_at_once_and_fewer_when_it_does_not_bring_them_back() {
        let mut dispatch = Dispatch::default();
        assert!((1..=2 * OUT_AT_FIRST as u64).all(|id| dispatch.offer(offered(id, &id.to_string()), 0)));
        let given = ids(dispatch.ask(A, 1, HERE, 100, 0));
        assert_eq!(given.len(), OUT_AT_FIRST);
        assert!(dispatch.ask(A, 1, HERE, 100, 0).is_empty());
        dispatch.over(given[0]);
        assert_eq!(dispatch.ask(A, 1, HERE, 100, 0).len(), 2, "for the one that came back, and one more");
        assert_eq!(dispatch.lapse(60_000).len(), OUT_AT_FIRST + 1);
        assert_eq!(dispatch.ask(A, 1, HERE, 100, 60_000).len(), 1, "those that did not count against it");
        assert_eq!(dispatch.ask(B, 2, HERE, 100, 60_000).len(), OUT_AT_FIRST - 3);
    }

    #[test]
    fn a_check_goes_to_those_who_are_meant_and_not_before_the_site_has_rested() {
        let mut dispatch = Dispatch::default();
        dispatch.ask(A, 1, HERE, 10, 0);
        dispatch.ask(B, 2, Place(*b"DE"), 10, 0);
        assert_eq!(dispatch.others(&[1.into()], None, 0), [B]);
        assert_eq!(dispatch.others(&[], Some(Place(*b"DE")), 0), [B]);
        assert!(dispatch.others(&[1.into()], None, THERE_MS).is_empty(), "gone");
        let check = Offered { among: vec![B], ready_ms: 1_000, only: false, wait_ms: 5_000, ..offered(1, "a") };
        assert!(dispatch.offer(check, 0));
        assert!(ids(dispatch.ask(A, 1, HERE, 10, 2_000)).is_empty());
        assert!(ids(dispatch.ask(B, 2, HERE, 10, 999)).is_empty());
        assert_eq!(ids(dispatch.ask(B, 2, HERE, 10, 1_000)), [1]);
    }
}
