//! The last gate before a request: one clock per site, shared by all workers of this process. The schedule already gives
//! a site to one bundle at a time; this clock holds also for what no bundle foresaw, such as a robots.txt that redirects to
//! another site.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When each site may be asked next. Sites whose time has come are forgotten.
#[derive(Default)]
pub struct Clocks {
    next: Mutex<HashMap<Box<str>, Instant>>,
}

/// Sites remembered before those whose time has come are thrown out.
const SWEEP_SITES: usize = 4_096;

impl Clocks {
    /// Waits for the site's turn and takes it: nobody else gets one before [`Clocks::answered`] says when, or `hold`
    /// has passed, whichever is earlier.
    pub async fn turn(&self, site: &str, hold: Duration) {
        loop {
            let until = {
                let mut next = self.lock();
                let now = Instant::now();
                match next.get(site) {
                    Some(until) if *until > now => *until,
                    _ => {
                        if next.len() >= SWEEP_SITES {
                            next.retain(|_, until| *until > now);
                        }
                        next.insert(site.into(), now + hold);
                        return;
                    }
                }
            };
            tokio::time::sleep_until(until).await;
        }
    }

    /// The answer is complete; the next request comes after `gap` at the earliest.
    pub fn answered(&self, site: &str, gap: Duration) {
        self.lock().insert(site.into(), Instant::now() + gap);
    }

    /// A site of which nothing is remembered is left alone until then.
    pub fn unasked(&self, site: &str, until: Instant) {
        let mut next = self.lock();
        if until > Instant::now() && !next.contains_key(site) {
            next.insert(site.into(), until);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Box<str>, Instant>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_site_is_asked_again_only_after_its_gap() {
        let clocks = Clocks::default();
        let begin = Instant::now();
        clocks.turn("a.test", Duration::from_secs(30)).await;
        tokio::time::advance(Duration::from_millis(100)).await;
        clocks.answered("a.test", Duration::from_millis(500));
        clocks.turn("b.test", Duration::from_secs(30)).await;
        assert_eq!(begin.elapsed(), Duration::from_millis(100), "another site does not wait");
        clocks.turn("a.test", Duration::from_secs(30)).await;
        assert!(begin.elapsed() >= Duration::from_millis(600));
        clocks.turn("a.test", Duration::from_secs(30)).await;
        assert!(begin.elapsed() >= Duration::from_millis(30_600), "a turn that never ends lapses");
    }
}
