//! Leases: at most one node leads a slice, without any clock being right.
//!
//! ```text
//!  leader   asks ─────────── 0.8 D ──────────▶ stops, counted from when it asked
//!              ╲
//!  holder       grants ───────────── 1.2 D ──────────────▶ may grant to another, counted from when it granted
//! ```
//! Durations on monotonic clocks, which may run up to a fifth fast or slow. A lease needs a majority of the epoch's holders, and of the
//! others everybody who is not proven absent: so a holder that grants to two at once gains nothing by it. Only a holder that is
//! in view but has not answered for as long as a recovery takes is passed over.
//!
//! A ballot is at the same time the right to propose the next epoch, as in Paxos: who grants a higher ballot tells what it has
//! agreed to under a lower one, and that is proposed first. So two majorities never agree upon different holders.

use crate::epoch::{Epoch, Holders};
use crate::key::Key;
use crate::message::{Ballot, Politeness, Refusal};
use crate::settings::{Mutation, Settings};

/// What a holder has promised in a slice.
#[derive(Clone, Debug, Default)]
pub struct Grantor {
    /// Granted last.
    ballot: Option<Ballot>,
    /// Others are refused until then.
    until_ms: u64,
    /// Agreed to, until its epoch has begun.
    accepted: Option<(Ballot, Holders)>,
}

impl Grantor {
    /// After a restart: how long ago it granted is not known, so others wait the whole time.
    pub fn restored(ballot: Ballot, accepted: Option<(Ballot, Holders)>, now_ms: u64, settings: &Settings) -> Grantor {
        Grantor { ballot: Some(ballot), until_ms: now_ms + settings.refuse_ms(), accepted }
    }

    /// May this ballot lead? True if the promise is a new one, to be kept before the answer leaves.
    pub fn ask(&mut self, ballot: Ballot, now_ms: u64, settings: &Settings) -> Result<bool, Refusal> {
        if let Some(held) = self.ballot {
            if held.by != ballot.by && now_ms < self.until_ms {
                return Err(Refusal::Taken);
            }
            if ballot < held {
                return Err(Refusal::Ballot);
            }
        }
        let new = self.ballot != Some(ballot);
        self.ballot = Some(ballot);
        self.until_ms = now_ms + settings.refuse_ms();
        Ok(new)
    }

    /// Its leader gives the lease back.
    pub fn release(&mut self, ballot: Ballot) {
        if self.ballot == Some(ballot) {
            self.until_ms = 0;
        }
    }

    /// Agrees to holders that its leader proposes; never to those of an older ballot.
    pub fn accept(&mut self, ballot: Ballot, holders: &Holders) -> bool {
        let may = self.ballot == Some(ballot);
        if may {
            self.accepted = Some((ballot, holders.clone()));
        }
        may
    }

    /// What was agreed to is dead.
    pub fn forget(&mut self) {
        self.accepted = None;
    }

    /// What was agreed to and has not begun yet.
    pub fn accepted(&self, epoch: Epoch) -> Option<&(Ballot, Holders)> {
        self.accepted.as_ref().filter(|(_, holders)| holders.epoch > epoch)
    }

    /// Who has the lease as far as is known here, and until when others are refused.
    pub fn granted(&self) -> Option<(Key, u64)> {
        self.ballot.map(|ballot| (ballot.by, self.until_ms))
    }

    /// The highest ballot granted.
    pub fn ballot(&self) -> Option<Ballot> {
        self.ballot
    }
}

/// What was agreed to has not become an epoch, and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead;

/// A lease that is asked for or had.
#[derive(Clone, Debug)]
pub struct Leader {
    /// Under this ballot.
    pub ballot: Ballot,
    /// In this epoch.
    pub epoch: Epoch,
    /// When the holders were asked last.
    pub asked_ms: u64,
    /// Who granted since then.
    pub granted: Vec<Key>,
    /// It leads until then; 0 before the first time.
    pub until_ms: u64,
    /// Since when somebody does not answer.
    pub waiting_ms: u64,
    /// What came with grants about how sites were visited.
    pub politeness: Vec<Politeness>,
    /// Agreed to under lower ballots; proposed before anything else.
    pub inherited: Option<(Ballot, Holders)>,
    /// Who agreed to that.
    pub inherited_of: Vec<Key>,
    /// Since when it leads without having begun, because what others wrote is not here yet; with what it begins.
    pub beginning: Option<(u64, Vec<Politeness>)>,
}

impl Leader {
    /// Begins to ask.
    pub fn new(ballot: Ballot, epoch: Epoch, now_ms: u64) -> Leader {
        Leader {
            ballot,
            epoch,
            asked_ms: now_ms,
            granted: Vec::new(),
            until_ms: 0,
            waiting_ms: now_ms,
            politeness: Vec::new(),
            inherited: None,
            inherited_of: Vec::new(),
            beginning: None,
        }
    }

    /// Asks again, to renew or because answers were lost.
    pub fn ask_again(&mut self, now_ms: u64) {
        self.asked_ms = now_ms;
        self.granted.clear();
    }

    /// A holder granted.
    pub fn grant(&mut self, by: Key, accepted: Option<(Ballot, Holders)>) {
        if !self.granted.contains(&by) {
            self.granted.push(by);
        }
        let Some(accepted) = accepted else { return };
        if self.inherited.as_ref().is_none_or(|held| held.0 < accepted.0) {
            self.inherited = Some(accepted);
            self.inherited_of = vec![by];
        } else if self.inherited.as_ref() == Some(&accepted) && !self.inherited_of.contains(&by) {
            self.inherited_of.push(by);
        }
    }

    /// What was agreed to under a lower ballot and may have become an epoch unseen; an error if it is dead: where all
    /// holders have granted since, and too few of them had agreed, it has not and never will: nobody agrees to a ballot below one that it
    /// granted.
    pub fn take_inherited(&mut self, holders: &[Key], settings: &Settings) -> Result<Option<Holders>, Dead> {
        let Some((ballot, inherited)) = self.inherited.take() else { return Ok(None) };
        let of = std::mem::take(&mut self.inherited_of);
        let all = holders.iter().all(|holder| self.granted.contains(holder));
        let agreed = of.iter().filter(|node| holders.contains(node)).count();
        let dead = all && ballot < self.ballot && !settings.suffices(agreed, holders.len());
        if dead { Err(Dead) } else { Ok(Some(inherited)) }
    }

    /// Counts: leads from now on if enough granted. `excused` are those who need not.
    pub fn count(&mut self, holders: &[Key], now_ms: u64, settings: &Settings, excused: impl Fn(&Key) -> bool) -> bool {
        let granted = holders.iter().filter(|holder| self.granted.contains(holder)).count();
        if !settings.suffices(granted, holders.len()) {
            return false;
        }
        let passed_over = now_ms.saturating_sub(self.waiting_ms) >= settings.recover_ms;
        let all = holders.iter().all(|holder| self.granted.contains(holder) || excused(holder));
        if !all && !passed_over && settings.mutation != Mutation::Majority {
            return false;
        }
        let until_ms = self.asked_ms + settings.lead_ms();
        let gained = until_ms > self.until_ms;
        self.until_ms = self.until_ms.max(until_ms);
        if all {
            self.waiting_ms = now_ms;
        }
        gained
    }

    /// Whether it leads now.
    pub fn leads(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Whether it is time to renew.
    pub fn renew_ms(&self, settings: &Settings) -> u64 {
        if self.until_ms == 0 { 0 } else { self.until_ms.saturating_sub(settings.lead_ms() * 3 / 8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    #[test]
    fn a_leader_stops_before_any_holder_grants_to_another_even_with_clocks_a_tenth_off() {
        let settings = Settings::default();
        let ballot = |term, by| Ballot { term, by: key(by) };
        for (fast, slow) in [(100, 100), (110, 90), (109, 91)] {
            let mut leader = Leader::new(ballot(1, 1), Epoch::default(), 0);
            let mut grantor = Grantor::default();
            grantor.ask(ballot(1, 1), 0, &settings).expect("nobody else has it");
            leader.grant(key(1), None);
            leader.grant(key(2), None);
            assert!(leader.count(&[key(1), key(2)], 0, &settings, |_| false));
            // In true milliseconds, while the leader's clock is slow and the holder's fast.
            let last = (0..2_000_000u64).step_by(1000).find(|at| !leader.leads(at * slow / 100)).expect("it stops");
            let first = (0..2_000_000u64)
                .step_by(1000)
                .find(|at| grantor.clone().ask(ballot(2, 2), at * fast / 100, &settings).is_ok())
                .expect("another may");
            assert!(last <= first, "stops at {last}, another from {first}");
        }
    }

    #[test]
    fn a_holder_keeps_its_word_after_a_restart() {
        let settings = Settings::default();
        let (one, other) = (Ballot { term: 4, by: key(1) }, Ballot { term: 5, by: key(2) });
        let mut grantor = Grantor::restored(one, None, 1000, &settings);
        assert_eq!(grantor.ask(other, 1000 + settings.refuse_ms() - 1, &settings), Err(Refusal::Taken));
        assert_eq!(grantor.ask(one, 2000, &settings), Ok(false), "the same may go on");
        assert_eq!(grantor.ask(other, 2000 + settings.refuse_ms(), &settings), Ok(true));
        let late = Ballot { term: 4, by: key(3) };
        assert_eq!(grantor.ask(late, 4000 + 2 * settings.refuse_ms(), &settings), Err(Refusal::Ballot));
    }

    #[test]
    fn a_majority_is_not_enough_while_another_holder_is_there() {
        let settings = Settings::default();
        let holders = [key(1), key(2), key(3)];
        let mut leader = Leader::new(Ballot { term: 1, by: key(1) }, Epoch::default(), 0);
        leader.grant(key(1), None);
        assert!(!leader.count(&holders, 1, &settings, |_| true), "one of three never leads");
        leader.grant(key(2), None);
        assert!(!leader.count(&holders, 1, &settings, |_| false), "the third may have granted to another");
        assert!(leader.clone().count(&holders, 1, &settings, |holder| *holder == key(3)), "unless it is absent");
        assert!(leader.count(&holders, settings.recover_ms, &settings, |_| false), "or silent for very long");
    }
}
