//! What names were resolved to, and who waits for which. Pure: the time comes in.
//!
//! ```text
//!   unknown ──get──▶ waiting ──settle──▶ known ──time──▶ known, no longer fresh
//!                       ▲                                      │ get
//!                       └──────── keeps the old answer ◀───────┘     and returns to it when asking again fails
//! ```

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::fault::DnsFault;
use crate::limits::{ABSENT_MS_MAX, ABSENT_MS_MIN, FRESH_MS_MAX, FRESH_MS_MIN, STALE_MS_MAX};

/// The answer about one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub addresses: Vec<IpAddr>,
    /// The block of a `dns:` record.
    pub text: String,
    /// How long it may be believed, says the answer.
    pub ttl_ms: u64,
}

type Outcome = Result<Arc<Answer>, DnsFault>;

#[derive(Debug)]
enum Slot {
    Waiting { waiters: Vec<oneshot::Sender<Outcome>>, old: Option<(Arc<Answer>, Instant)> },
    Known { outcome: Outcome, fresh_until: Instant, since: Instant },
}

/// What the cache says.
#[derive(Debug)]
pub(super) enum Found {
    Known(Outcome),
    /// Nothing yet. `first`: it is on you to ask.
    Wait {
        waiting: oneshot::Receiver<Outcome>,
        first: bool,
    },
}

#[derive(Debug)]
pub(super) struct Cache {
    names: HashMap<String, Slot>,
    winners: HashMap<String, IpAddr>,
    names_max: usize,
}

impl Cache {
    pub fn new(names_max: usize) -> Cache {
        Cache { names: HashMap::new(), winners: HashMap::new(), names_max }
    }

    pub fn get(&mut self, name: &str, now: Instant) -> Found {
        let (sender, waiting) = oneshot::channel();
        match self.names.get_mut(name) {
            Some(Slot::Known { outcome, fresh_until, .. }) if now < *fresh_until => {
                return Found::Known(outcome.clone());
            }
            Some(Slot::Waiting { waiters, .. }) => {
                waiters.retain(|waiter| !waiter.is_closed());
                waiters.push(sender);
                return Found::Wait { waiting, first: false };
            }
            Some(slot) => {
                let old = match slot {
                    Slot::Known { outcome: Ok(answer), since, .. } => Some((answer.clone(), *since)),
                    _ => None,
                };
                *slot = Slot::Waiting { waiters: vec![sender], old };
            }
            None => {
                self.make_room(now);
                self.names.insert(name.to_owned(), Slot::Waiting { waiters: vec![sender], old: None });
            }
        }
        Found::Wait { waiting, first: true }
    }

    /// The look-up has ended. A fault comes with the time for which it may be believed.
    pub fn settle(&mut self, name: &str, result: Result<Answer, (DnsFault, u64)>, now: Instant) {
        let (waiters, old) = match self.names.remove(name) {
            Some(Slot::Waiting { waiters, old }) => (waiters, old),
            _ => (Vec::new(), None),
        };
        let span = Duration::from_millis;
        let old = old.filter(|(_, since)| now.saturating_duration_since(*since) < span(STALE_MS_MAX));
        let (outcome, fresh, since) = match (result, old) {
            (Ok(answer), _) => {
                let fresh = answer.ttl_ms.clamp(FRESH_MS_MIN, FRESH_MS_MAX);
                (Ok(Arc::new(answer)), fresh, now)
            }
            // A name that is gone is gone; name servers in trouble are no reason to forget what they said.
            (Err((fault, _)), Some((old, since))) if fault != DnsFault::NotFound => (Ok(old), ABSENT_MS_MIN, since),
            (Err((fault @ DnsFault::NoResolver(_), _)), _) => (Err(fault), 0, now),
            (Err((fault, ttl_ms)), _) => (Err(fault), ttl_ms.clamp(ABSENT_MS_MIN, ABSENT_MS_MAX), now),
        };
        for waiter in waiters {
            let _ = waiter.send(outcome.clone()); // who no longer waits needs no answer
        }
        self.names.insert(name.to_owned(), Slot::Known { outcome, fresh_until: now + span(fresh), since });
    }

    pub fn winner(&self, name: &str) -> Option<IpAddr> {
        self.winners.get(name).copied()
    }

    pub fn remember_winner(&mut self, name: &str, address: IpAddr) {
        if self.winners.len() >= self.names_max && !self.winners.contains_key(name) {
            self.winners.clear(); // costs a race per host, nothing else
        }
        self.winners.insert(name.to_owned(), address);
    }

    /// Names that are looked up stay: somebody waits for them, and they are as few as those who wait.
    fn make_room(&mut self, now: Instant) {
        if self.names.len() < self.names_max {
            return;
        }
        self.names.retain(|_, slot| !matches!(slot, Slot::Known { fresh_until, .. } if *fresh_until <= now));
        let mut surplus = self.names.len().saturating_sub(self.names_max - self.names_max / 8);
        self.names.retain(|_, slot| {
            let goes = surplus > 0 && matches!(slot, Slot::Known { .. });
            surplus -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ip: &str, ttl_ms: u64) -> Answer {
        Answer { addresses: vec![ip.parse().unwrap()], text: String::new(), ttl_ms }
    }

    fn later(now: Instant, ms: u64) -> Instant {
        now + Duration::from_millis(ms)
    }

    fn known(cache: &mut Cache, name: &str, now: Instant) -> Option<Result<String, DnsFault>> {
        match cache.get(name, now) {
            Found::Known(outcome) => Some(outcome.map(|answer| answer.addresses[0].to_string())),
            Found::Wait { .. } => None,
        }
    }

    #[test]
    fn many_wait_and_one_asks() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        let Found::Wait { waiting: mut one, first: true } = cache.get("a.example", now) else { panic!() };
        let Found::Wait { waiting: mut two, first: false } = cache.get("a.example", now) else { panic!() };
        cache.settle("a.example", Ok(answer("192.0.2.1", 0)), now);
        assert_eq!(one.try_recv().unwrap().unwrap().addresses, two.try_recv().unwrap().unwrap().addresses);
        assert_eq!(known(&mut cache, "a.example", now), Some(Ok("192.0.2.1".to_owned())));
    }

    #[test]
    fn answers_count_neither_too_short_nor_too_long() {
        let now = Instant::now();
        for (ttl_ms, fresh_ms) in
            [(1_000, FRESH_MS_MIN), (u64::MAX, FRESH_MS_MAX), (FRESH_MS_MIN * 2, FRESH_MS_MIN * 2)]
        {
            let mut cache = Cache::new(10);
            let _ = cache.get("a.example", now);
            cache.settle("a.example", Ok(answer("192.0.2.1", ttl_ms)), now);
            assert!(known(&mut cache, "a.example", later(now, fresh_ms - 1)).is_some());
            assert!(known(&mut cache, "a.example", later(now, fresh_ms)).is_none());
        }
        for (ttl_ms, fresh_ms) in [(0, ABSENT_MS_MIN), (u64::MAX, ABSENT_MS_MAX)] {
            let mut cache = Cache::new(10);
            let _ = cache.get("a.example", now);
            cache.settle("a.example", Err((DnsFault::NotFound, ttl_ms)), now);
            assert_eq!(known(&mut cache, "a.example", later(now, fresh_ms - 1)), Some(Err(DnsFault::NotFound)));
            assert!(known(&mut cache, "a.example", later(now, fresh_ms)).is_none());
        }
    }

    #[test]
    fn an_old_answer_bridges_trouble_but_not_the_end_of_a_name() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        let _ = cache.get("a.example", now);
        cache.settle("a.example", Ok(answer("192.0.2.1", 0)), now);
        let next = later(now, FRESH_MS_MIN);
        assert!(known(&mut cache, "a.example", next).is_none());
        cache.settle("a.example", Err((DnsFault::Timeout, 0)), next);
        assert_eq!(known(&mut cache, "a.example", next), Some(Ok("192.0.2.1".to_owned())));
        let much = later(now, STALE_MS_MAX);
        assert!(known(&mut cache, "a.example", much).is_none());
        cache.settle("a.example", Err((DnsFault::Timeout, 0)), much);
        assert_eq!(known(&mut cache, "a.example", much), Some(Err(DnsFault::Timeout)));

        let _ = cache.get("b.example", now);
        cache.settle("b.example", Ok(answer("192.0.2.2", 0)), now);
        assert!(known(&mut cache, "b.example", next).is_none());
        cache.settle("b.example", Err((DnsFault::NotFound, 0)), next);
        assert_eq!(known(&mut cache, "b.example", next), Some(Err(DnsFault::NotFound)));
    }

    #[test]
    fn a_machine_without_name_servers_is_asked_again_at_once() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        let _ = cache.get("a.example", now);
        cache.settle("a.example", Err((DnsFault::NoResolver(String::new()), 0)), now);
        assert!(known(&mut cache, "a.example", now).is_none());
    }

    #[test]
    fn memory_is_bounded_and_nobody_who_waits_is_forgotten() {
        let (mut cache, now) = (Cache::new(64), Instant::now());
        let Found::Wait { waiting: mut patient, .. } = cache.get("patient.example", now) else { panic!() };
        for number in 0..1_000 {
            let name = format!("{number}.example");
            let _ = cache.get(&name, now);
            cache.settle(&name, Ok(answer("192.0.2.1", 0)), now);
            cache.remember_winner(&name, "192.0.2.1".parse().unwrap());
        }
        assert!(cache.names.len() <= 64 && cache.winners.len() <= 64);
        cache.settle("patient.example", Ok(answer("192.0.2.7", 0)), now);
        assert!(patient.try_recv().unwrap().is_ok());
    }
}
