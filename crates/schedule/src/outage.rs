//! Is the network there at all?
//!
//! One site that does not answer is the site's trouble and counts against it. When nothing answers any more, or one answer
//! comes from everywhere, the trouble is ours: a cable, a laptop that changed its network, a resolver that is gone, the log-in
//! page of a hotel. Then the crawl waits, and no URL is blamed.
//!
//! ```text
//!            many places silent in a row                                        a canary is silent too,
//!            one answer from many sites in a row     a canary is asked          or shows that answer too
//!     up ───────────────────────────────────▶ doubt ───────────────────▶ down ◀─┐ a canary is asked again,
//!      ▲                                        │                          │  └──┘ later each time
//!      └──────── a canary answers as itself ◀───┴──────────────────────────┘
//! ```
//! A *canary* is a site that answered before. Only it tells ten dead sites at the end of a crawl from a dead network, and a farm
//! of parked domains from a portal: to a crawl that has nothing else left, both look the same.

use std::collections::BTreeSet;

use crate::id::{AddressKey, SiteId};
use crate::limits::{
    BARRED_MS_MAX, OUTAGE_MS_MAX, OUTAGE_PLACES, OUTAGE_WINDOW_MS, PORTAL_ADDRESSES_BLIND, PORTAL_SITES, PROBE_MS_MAX,
    PROBE_MS_MIN,
};

/// Where an exchange was meant to go: sites behind one address fall silent together, and are one witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Address(AddressKey),
    Site(SiteId),
}

/// What an exchange shows of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing came, and nobody said why.
    Silence,
    /// An answer that is this site's own.
    Answer,
    /// An answer that anybody could have given for this site; the same number for the same answer.
    Alike(u64),
}

/// What is wrong with the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing answers.
    Silence,
    /// One answer comes from everywhere: this one.
    Portal(u64),
    /// Whoever has to let everything through does not: a proxy.
    Barred,
}

/// What is to be thought of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing: it is what it seems.
    None,
    /// A canary is to be asked, by whoever hears this, and [`Outage::told`] to be called; until then it is not known.
    Ask(Cause),
    /// Somebody asks a canary already.
    Wait,
    /// The network is to blame.
    Down(Cause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Doubt(Cause),
    Down { cause: Cause, since_ms: u64, wait_ms: u64, next_ms: u64 },
}

/// The network as the exchanges show it. Times are on the schedule's clock.
#[derive(Debug)]
pub struct Outage {
    state: State,
    /// Waits in thousandths of the rule; a test may be impatient.
    permille: u32,
    /// Places that were silent since anything was heard, the first of them at `silent_ms`.
    silent: BTreeSet<Place>,
    silent_ms: u64,
    /// The answer that came last, and from which sites and addresses in a row.
    alike: Option<u64>,
    alike_sites: BTreeSet<SiteId>,
    alike_addresses: BTreeSet<AddressKey>,
    /// Something came in this run.
    has_answered: bool,
    /// And not always the same: one of those who answered is no portal.
    has_canary: bool,
    /// Answers that many sites share and a canary does not: nobody doubts them again.
    cleared: BTreeSet<u64>,
}

impl Outage {
    /// A network that is there. `permille`: waits in thousandths of the rule.
    pub fn new(permille: u32) -> Outage {
        Outage {
            state: State::Up,
            permille,
            silent: BTreeSet::new(),
            silent_ms: 0,
            alike: None,
            alike_sites: BTreeSet::new(),
            alike_addresses: BTreeSet::new(),
            has_answered: false,
            has_canary: false,
            cleared: BTreeSet::new(),
        }
    }

    /// An exchange with a site is over.
    pub fn heard(&mut self, sign: Sign, site: SiteId, address: AddressKey, now_ms: u64) -> Doubt {
        match (self.state, sign) {
            (State::Down { cause, .. }, Sign::Silence) => Doubt::Down(cause),
            (State::Down { cause: Cause::Portal(portal), .. }, Sign::Alike(answer)) if answer == portal => {
                Doubt::Down(Cause::Portal(portal))
            }
            (State::Doubt(Cause::Portal(portal)), Sign::Alike(answer)) if answer == portal => Doubt::Wait,
            (State::Doubt(Cause::Silence), Sign::Silence) => Doubt::Wait,
            (State::Doubt(_), Sign::Silence) => Doubt::None,
            (State::Up, Sign::Silence) => self.silence(site, address, now_ms),
            // Somebody got through: whatever it was, it is over.
            (State::Doubt(_) | State::Down { .. }, _) => {
                self.clear();
                Doubt::None
            }
            (State::Up, Sign::Answer) => {
                (self.has_answered, self.has_canary) = (true, true);
                self.forget();
                Doubt::None
            }
            (State::Up, Sign::Alike(answer)) => self.answer(answer, site, address),
        }
    }

    fn silence(&mut self, site: SiteId, address: AddressKey, now_ms: u64) -> Doubt {
        if self.silent.is_empty() || now_ms.saturating_sub(self.silent_ms) > OUTAGE_WINDOW_MS {
            self.silent.clear();
            self.silent_ms = now_ms;
        }
        self.silent.insert(if address.is_known() { Place::Address(address) } else { Place::Site(site) });
        if self.silent.len() < OUTAGE_PLACES || !self.has_answered {
            return Doubt::None;
        }
        self.state = State::Doubt(Cause::Silence);
        Doubt::Ask(Cause::Silence)
    }

    fn answer(&mut self, answer: u64, site: SiteId, address: AddressKey) -> Doubt {
        self.silent.clear();
        self.has_answered = true;
        if self.alike != Some(answer) {
            self.has_canary |= self.alike.is_some();
            self.forget();
            self.alike = Some(answer);
        }
        self.alike_sites.insert(site);
        if address.is_known() {
            self.alike_addresses.insert(address);
        }
        if self.alike_sites.len() < PORTAL_SITES || self.cleared.contains(&answer) {
            return Doubt::None;
        }
        // Where nothing else was ever heard, whoever is asked will say the same. Sites that share an answer usually share an
        // address; where so many addresses say it, to robots.txt and all, it is not they who speak.
        if !self.has_canary && self.alike_addresses.len() < PORTAL_ADDRESSES_BLIND {
            return Doubt::None;
        }
        let cause = Cause::Portal(answer);
        self.state = State::Doubt(cause);
        Doubt::Ask(cause)
    }

    /// The one who has to let everything through does not: that is known without asking a canary.
    pub fn barred(&mut self, now_ms: u64) {
        if !matches!(self.state, State::Down { .. }) {
            self.silent.clear();
            self.fall(Cause::Barred, now_ms);
        }
    }

    /// What is thought of an exchange that had to wait.
    pub fn verdict(&self) -> Doubt {
        match self.state {
            State::Up => Doubt::None,
            State::Doubt(_) => Doubt::Wait,
            State::Down { cause, .. } => Doubt::Down(cause),
        }
    }

    /// What the canaries did: the sign of one that answered, or silence where none did. Nothing where none could be asked.
    /// Returns what the doubtful exchange came to.
    pub fn told(&mut self, canary: Option<Sign>, now_ms: u64) -> Doubt {
        let cause = match self.state {
            State::Doubt(cause) | State::Down { cause, .. } => cause,
            State::Up => return Doubt::None,
        };
        let down = match (cause, canary) {
            (_, None) => matches!(self.state, State::Down { .. }),
            (Cause::Silence | Cause::Barred, Some(sign)) => sign == Sign::Silence,
            // A canary that is silent shows no portal; but while there is one it is no proof of its end either.
            (Cause::Portal(_), Some(Sign::Silence)) => matches!(self.state, State::Down { .. }),
            (Cause::Portal(portal), Some(sign)) => sign == Sign::Alike(portal),
        };
        if !down {
            if let Cause::Portal(answer) = cause
                && self.cleared.len() < PORTAL_CLEARED_MAX
            {
                self.cleared.insert(answer);
            }
            self.clear();
            return Doubt::None;
        }
        self.fall(cause, now_ms);
        Doubt::Down(cause)
    }

    /// The network is down, or down still: the next probe comes later than the last.
    fn fall(&mut self, cause: Cause, now_ms: u64) {
        let (since_ms, wait_ms) = match self.state {
            State::Down { since_ms, wait_ms, .. } => (since_ms, (wait_ms * 2).min(PROBE_MS_MAX)),
            _ => (if self.silent.is_empty() { now_ms } else { self.silent_ms }, PROBE_MS_MIN),
        };
        let next_ms = now_ms.saturating_add(wait_ms * u64::from(self.permille) / 1_000);
        self.state = State::Down { cause, since_ms, wait_ms, next_ms };
    }

    /// Somebody begins to probe: nobody else does until he is back, or a wait has passed.
    pub fn probing(&mut self, now_ms: u64) {
        if let State::Down { next_ms, .. } = &mut self.state {
            *next_ms = now_ms.saturating_add(PROBE_MS_MAX);
        }
    }

    /// When a canary is to be asked again, while the network is down.
    pub fn next_probe_ms(&self) -> Option<u64> {
        match self.state {
            State::Down { next_ms, .. } => Some(next_ms),
            _ => None,
        }
    }

    /// What is wrong, and since when.
    pub fn down(&self) -> Option<(Cause, u64)> {
        match self.state {
            State::Down { cause, since_ms, .. } => Some((cause, since_ms)),
            _ => None,
        }
    }

    /// It has been down for longer than a run waits.
    pub fn is_hopeless(&self, now_ms: u64) -> bool {
        let patience_ms = match self.has_answered {
            true => OUTAGE_MS_MAX,
            false => BARRED_MS_MAX * u64::from(self.permille) / 1_000,
        };
        self.down().is_some_and(|(_, since_ms)| now_ms.saturating_sub(since_ms) > patience_ms)
    }

    fn clear(&mut self) {
        self.state = State::Up;
        self.forget();
    }

    fn forget(&mut self) {
        self.silent.clear();
        self.alike = None;
        self.alike_sites.clear();
        self.alike_addresses.clear();
    }
}

/// Answers remembered as harmless; more are doubted again, which costs a question each.
const PORTAL_CLEARED_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u32) -> (SiteId, AddressKey) {
        (SiteId(number), AddressKey::of(std::net::Ipv4Addr::from(0x0a00_0000 + number).into()))
    }

    fn hear(outage: &mut Outage, sign: Sign, number: u32, now_ms: u64) -> Doubt {
        let (site, address) = at(number);
        outage.heard(sign, site, address, now_ms)
    }

    fn worked() -> Outage {
        let mut outage = Outage::new(1_000);
        hear(&mut outage, Sign::Answer, 99, 0);
        outage
    }

    fn silent(outage: &mut Outage, from: u32, now_ms: u64) -> Doubt {
        (0..OUTAGE_PLACES as u32).map(|n| hear(outage, Sign::Silence, from + n, now_ms)).last().unwrap()
    }

    #[test]
    fn when_nothing_answers_and_the_canary_neither_the_network_is_down_until_it_does() {
        let mut outage = worked();
        assert_eq!(silent(&mut outage, 1, 1_000), Doubt::Ask(Cause::Silence));
        assert_eq!(hear(&mut outage, Sign::Silence, 50, 1_100), Doubt::Wait);
        assert_eq!(outage.told(Some(Sign::Silence), 2_000), Doubt::Down(Cause::Silence));
        assert_eq!(outage.down(), Some((Cause::Silence, 1_000)));
        assert_eq!(hear(&mut outage, Sign::Silence, 51, 2_100), Doubt::Down(Cause::Silence));
        let mut waits = Vec::new();
        for _ in 0..6 {
            let next_ms = outage.next_probe_ms().unwrap();
            waits.push(next_ms);
            outage.probing(next_ms);
            outage.told(Some(Sign::Silence), next_ms);
        }
        let gaps: Vec<u64> = waits.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!((waits[0] - 2_000, gaps), (5_000, vec![10_000, 20_000, 40_000, 60_000, 60_000]));
        assert_eq!(outage.told(Some(Sign::Answer), 900_000), Doubt::None);
        assert_eq!((outage.down(), outage.next_probe_ms()), (None, None));
        assert_eq!(hear(&mut outage, Sign::Silence, 52, 900_001), Doubt::None);
    }

    #[test]
    fn who_must_let_all_through_and_does_not_is_waited_for_but_not_for_ever() {
        for (mut outage, patience_ms) in [(worked(), OUTAGE_MS_MAX), (Outage::new(1_000), BARRED_MS_MAX)] {
            outage.barred(1_000);
            outage.barred(2_000);
            assert_eq!(outage.down(), Some((Cause::Barred, 1_000)));
            assert_eq!(outage.told(Some(Sign::Silence), 6_000), Doubt::Down(Cause::Barred));
            assert!(!outage.is_hopeless(1_000 + patience_ms) && outage.is_hopeless(1_001 + patience_ms));
            assert_eq!(outage.told(Some(Sign::Answer), 20_000), Doubt::None);
            assert_eq!(outage.down(), None);
        }
    }

    #[test]
    fn ten_dead_sites_are_no_outage_while_the_canary_sings() {
        let mut outage = worked();
        assert_eq!(silent(&mut outage, 1, 1_000), Doubt::Ask(Cause::Silence));
        assert_eq!(outage.told(Some(Sign::Answer), 1_500), Doubt::None);
        assert_eq!(hear(&mut outage, Sign::Silence, 5, 1_600), Doubt::None);
        let mut unasked = worked();
        silent(&mut unasked, 1, 1_000);
        assert_eq!(unasked.told(None, 1_500), Doubt::None, "no canary could be asked: the failures count");
    }

    #[test]
    fn one_address_one_site_or_a_web_that_never_answered_proves_nothing() {
        let mut outage = worked();
        let (_, address) = at(1);
        assert!((0..100).all(|n| outage.heard(Sign::Silence, SiteId(n), address, 10) == Doubt::None));
        assert!((0..100).all(|_| hear(&mut outage, Sign::Silence, 2, 10) == Doubt::None));
        let mut new = Outage::new(1_000);
        assert!((0..100).all(|n| hear(&mut new, Sign::Silence, n, 10) == Doubt::None));
        let mut slow = worked();
        assert!((0..100).all(|n| hear(&mut slow, Sign::Silence, n, u64::from(n) * OUTAGE_WINDOW_MS) == Doubt::None));
        let mut mixed = worked();
        let one_of_three = |n: u32| if n.is_multiple_of(3) { Sign::Answer } else { Sign::Silence };
        assert!((0..100).all(|n| hear(&mut mixed, one_of_three(n), n, 10) == Doubt::None));
    }

    #[test]
    fn an_answer_ends_an_outage_at_once() {
        let mut outage = worked();
        silent(&mut outage, 1, 1_000);
        outage.told(Some(Sign::Silence), 2_000);
        assert_eq!(hear(&mut outage, Sign::Answer, 7, 2_500), Doubt::None);
        assert_eq!(outage.down(), None);
    }

    #[test]
    fn a_run_does_not_wait_for_ever() {
        let mut outage = worked();
        silent(&mut outage, 1, 1_000);
        outage.told(Some(Sign::Silence), 2_000);
        assert!(!outage.is_hopeless(OUTAGE_MS_MAX) && outage.is_hopeless(OUTAGE_MS_MAX + 1_001));
    }

    #[test]
    fn one_answer_for_everybody_and_the_canary_is_a_portal() {
        let mut outage = worked();
        let portal = Cause::Portal(7);
        let doubts: Vec<Doubt> = (0..PORTAL_SITES as u32).map(|n| hear(&mut outage, Sign::Alike(7), n, 5)).collect();
        assert_eq!(doubts.last(), Some(&Doubt::Ask(portal)));
        assert!(doubts[..PORTAL_SITES - 1].iter().all(|doubt| *doubt == Doubt::None));
        assert_eq!(hear(&mut outage, Sign::Alike(7), 20, 6), Doubt::Wait);
        assert_eq!(outage.told(Some(Sign::Alike(7)), 7), Doubt::Down(portal));
        assert_eq!(hear(&mut outage, Sign::Alike(7), 21, 8), Doubt::Down(portal));
        outage.told(Some(Sign::Silence), 9);
        assert!(outage.down().is_some(), "silence is not the end of a portal");
        outage.told(Some(Sign::Alike(8)), 10);
        assert_eq!(outage.down(), None);
    }

    #[test]
    fn parked_domains_and_sites_with_a_page_in_common_are_no_portal() {
        let mut outage = worked();
        for n in 0..PORTAL_SITES as u32 {
            hear(&mut outage, Sign::Alike(7), n, 5);
        }
        assert_eq!(outage.told(Some(Sign::Answer), 6), Doubt::None);
        assert!((0..100).all(|n| hear(&mut outage, Sign::Alike(7), n, 7) == Doubt::None), "asked once, cleared");
        let mut mixed = worked();
        for n in 0..100 {
            assert_eq!(hear(&mut mixed, Sign::Alike(7), n, 5), Doubt::None);
            assert_eq!(hear(&mut mixed, Sign::Answer, n, 5), Doubt::None);
        }
        let mut one_site = worked();
        assert!((0..100).all(|_| hear(&mut one_site, Sign::Alike(7), 1, 5) == Doubt::None));
    }

    #[test]
    fn without_a_canary_only_many_addresses_make_a_portal() {
        let mut farm = Outage::new(1_000);
        let (_, address) = at(1);
        assert!((0..100).all(|n| farm.heard(Sign::Alike(7), SiteId(n), address, 5) == Doubt::None));
        let mut hotel = Outage::new(1_000);
        let doubts: Vec<Doubt> =
            (0..PORTAL_ADDRESSES_BLIND as u32).map(|n| hear(&mut hotel, Sign::Alike(7), n, 5)).collect();
        assert_eq!(doubts.last(), Some(&Doubt::Ask(Cause::Portal(7))));
    }
}
