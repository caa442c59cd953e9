//! The last gate before a request: one clock per site, shared by all workers of this process. The schedule already gives
//! a site to one bundle at a time; this clock holds also for what no bundle foresaw, such as a robots.txt that redirects to
//! another site.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// When each site may be asked next. Sites whose time has come are forgotten.
#[derive(Default)]
pub struct Clocks {
    next: Mutex<HashMap<Box<str>, Clock>>,
    over: AtomicBool,
    ending: Notify,
}

/// The clock of one site.
struct Clock {
    until: Instant,
    /// Somebody has the turn; whoever waits for it is told when the answer has come.
    held: Option<Arc<Notify>>,
    /// How long it rested after the last answer that was seen here.
    rest: Duration,
    /// Until when others were asked to leave it alone.
    heeded: Option<Instant>,
}

/// Why there is no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The site is to be left alone until then, which is later than could be waited for.
    Until(Instant),
    /// The crawl ends.
    Over,
}

/// Sites remembered before those whose time has come are thrown out.
const SWEEP_SITES: usize = 4_096;

impl Clocks {
    /// Waits for the site's turn and takes it: nobody else gets one before [`Clocks::answered`] says when, or `hold`
    /// has passed, whichever is earlier.
    pub async fn turn(&self, site: &str, hold: Duration, deadline: Instant) -> Result<(), NotNow> {
        loop {
            // Made before the look, so that nothing said after it is missed.
            let ending = self.ending.notified();
            if self.over.load(Ordering::Relaxed) {
                return Err(NotNow::Over);
            }
            let told: Arc<Notify>;
            let (until, held) = {
                let mut next = self.lock();
                let now = Instant::now();
                match next.get(site) {
                    Some(clock) if clock.until > now => {
                        told = clock.held.clone().unwrap_or_default();
                        (clock.until, clock.held.is_some().then(|| told.notified()))
                    }
                    known => {
                        let (rest, heeded) = known.map_or((Duration::ZERO, None), |clock| (clock.rest, clock.heeded));
                        if next.len() >= SWEEP_SITES {
                            next.retain(|_, clock| clock.until > now);
                        }
                        next.insert(site.into(), Clock { until: now + hold, held: Some(Arc::default()), heeded, rest });
                        return Ok(());
                    }
                }
            };
            match held {
                None if until > deadline => return Err(NotNow::Until(until)),
                Some(_) if Instant::now() >= deadline => return Err(NotNow::Until(deadline)),
                None => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = ending => {}
                },
                Some(told) => tokio::select! {
                    () = tokio::time::sleep_until(until.min(deadline)) => {}
                    () = told => {}
                    () = ending => {}
                },
            }
        }
    }

    /// The answer is complete; the next request comes after `gap` at the earliest.
    pub fn answered(&self, site: &str, gap: Duration) {
        self.release(site, |_| (gap, gap));
    }

    /// The same where others say how quickly the site answered: it rests no shorter than after the last answer that was seen here.
    pub fn brought(&self, site: &str, gap: Duration) {
        self.release(site, |rest| (gap.max(rest), rest));
    }

    /// The turn is over, or the site wants to be left alone; no answer says how quick it is.
    pub fn left(&self, site: &str, wait: Duration) {
        self.release(site, |rest| (wait, rest));
    }

    /// Nobody has the turn any more. `waits` makes of the rest that is remembered the one from now on, and the one to remember.
    fn release(&self, site: &str, waits: impl FnOnce(Duration) -> (Duration, Duration)) {
        let (mut next, now) = (self.lock(), Instant::now());
        let told = match next.get_mut(site) {
            Some(clock) => {
                let (wait, rest) = waits(clock.rest);
                // What others were asked for meanwhile holds, whatever came of this one.
                (clock.until, clock.rest) = ((now + wait).max(clock.heeded.unwrap_or(now)), rest);
                clock.held.take()
            }
            None => {
                let (wait, rest) = waits(Duration::ZERO);
                next.insert(site.into(), Clock { until: now + wait, held: None, heeded: None, rest });
                None
            }
        };
        if let Some(told) = told {
            told.notify_waiters();
        }
    }

    /// A site of which nothing is remembered is left alone until then.
    pub fn unasked(&self, site: &str, until: Instant) {
        let mut next = self.lock();
        if until > Instant::now() && !next.contains_key(site) {
            next.insert(site.into(), Clock { until, held: None, heeded: None, rest: Duration::ZERO });
        }
    }

    /// Whatever else is known of it, the site is left alone until then.
    pub fn hold(&self, site: &str, until: Instant) {
        let mut next = self.lock();
        let clock = next.entry(site.into()).or_insert(Clock { until, held: None, heeded: None, rest: Duration::ZERO });
        clock.until = clock.until.max(until);
        clock.heeded = clock.heeded.max(Some(until));
    }

    /// The sites that are to be left alone, and for how long; where somebody is asked just now, for so long.
    pub fn waits(&self, held: Duration) -> Vec<(String, Duration)> {
        let now = Instant::now();
        let next = self.lock();
        let waits = next.iter().filter(|(_, clock)| clock.until > now).map(|(site, clock)| {
            let left = clock.until - now;
            (site.to_string(), if clock.held.is_some() { left.min(held) } else { left })
        });
        waits.collect()
    }

    /// Nobody gets a turn any more; who waits for one is told.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ending.notify_waiters();
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        let ending = self.ending.notified();
        if !self.over.load(Ordering::Relaxed) {
            ending.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Box<str>, Clock>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_secs(30);

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_is_asked_again_only_after_its_gap() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.turn("a.test", HOLD, later()).await.unwrap();
        tokio::time::advance(Duration::from_millis(100)).await;
        clocks.answered("a.test", Duration::from_millis(500));
        clocks.turn("b.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed(), Duration::from_millis(100), "another site does not wait");
        clocks.turn("a.test", HOLD, later()).await.unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(600));
        clocks.turn("a.test", HOLD, later()).await.unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(30_600), "a turn that never ends lapses");
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_say_of_a_site_does_not_hurry_it() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        clocks.answered("slow.test", Duration::from_secs(15));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 15);
        clocks.brought("slow.test", Duration::from_millis(500));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 30, "as after the last answer that was seen here");
        clocks.left("slow.test", Duration::from_secs(1));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        clocks.brought("slow.test", Duration::from_secs(20));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 51, "slower is believed");
        clocks.answered("slow.test", Duration::from_millis(500));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        clocks.brought("slow.test", Duration::from_millis(500));
        clocks.turn("slow.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 52, "what was seen here since is known better");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_turn_that_somebody_has_gets_it_after_the_answer() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.turn("a.test", HOLD, later()).await.unwrap();
        let answer = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            clocks.answered("a.test", Duration::from_millis(500));
        };
        let (turn, ()) = tokio::join!(clocks.turn("a.test", HOLD, later()), answer);
        turn.unwrap();
        assert_eq!(begin.elapsed().as_millis(), 700, "not when the hold lapses");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_beyond_a_deadline_or_the_end() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.answered("a.test", Duration::from_secs(3_600));
        let until = begin + Duration::from_secs(3_600);
        assert_eq!(clocks.turn("a.test", HOLD, later()).await, Err(NotNow::Until(until)));
        assert_eq!(begin.elapsed(), Duration::ZERO);
        let end = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clocks.end();
        };
        let (turn, ()) = tokio::join!(clocks.turn("a.test", HOLD, until + HOLD), end);
        assert_eq!((turn, begin.elapsed().as_secs()), (Err(NotNow::Over), 1));
        assert_eq!(clocks.turn("b.test", HOLD, later()).await, Err(NotNow::Over));
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_that_an_earlier_run_may_have_asked_rests_first() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.unasked("a.test", begin + Duration::from_secs(5));
        clocks.unasked("a.test", begin + Duration::from_secs(50));
        clocks.turn("a.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_were_asked_for_while_somebody_has_the_turn_holds_afterwards() {
        let clocks = Clocks::default();
        clocks.turn("a.test", Duration::from_secs(60), later()).await.unwrap();
        let hour = Instant::now() + Duration::from_secs(3_600);
        clocks.hold("a.test", hour);
        clocks.answered("a.test", Duration::from_secs(1));
        assert_eq!(clocks.turn("a.test", Duration::from_secs(60), later()).await, Err(NotNow::Until(hour)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_knew_of_a_site_is_waited_out() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.answered("a.test", Duration::from_secs(50));
        clocks.answered("b.test", Duration::from_secs(1));
        clocks.turn("c.test", HOLD, later()).await.unwrap();
        let mut waits = clocks.waits(Duration::from_secs(10));
        waits.sort();
        let seconds: Vec<(&str, u64)> = waits.iter().map(|(site, wait)| (site.as_str(), wait.as_secs())).collect();
        assert_eq!(seconds, [("a.test", 50), ("b.test", 1), ("c.test", 10)]);
        let next = Clocks::default();
        next.answered("b.test", Duration::from_secs(5));
        waits.iter().for_each(|(site, wait)| next.hold(site, begin + *wait));
        next.turn("b.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 5, "the later of both");
        next.turn("c.test", HOLD, later()).await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 10);
    }
}
