//! Two clocks: one that only goes forward, also while the machine sleeps, and the date.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::node::Now;

/// A difference between the clocks of this size is a sleep, not their grain.
const SLEPT_MS: u64 = 1_000;

/// When the node started, by all clocks.
pub struct Clock {
    boot_ms: u64,
    start: Instant,
    slept_ms: AtomicU64,
}

fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}

impl Clock {
    pub fn start() -> Clock {
        // Counted from a second before: nothing happened at time zero.
        Clock { boot_ms: boot_ms().saturating_sub(1_000), start: Instant::now(), slept_ms: AtomicU64::new(0) }
    }

    pub fn now(&self) -> Now {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono_ms: boot_ms().saturating_sub(self.boot_ms), wall_ms: since.as_millis() as u64 }
    }

    /// The same moment, for those who go by the clock that stands still while the machine sleeps.
    pub fn instant(&self, mono_ms: u64) -> Instant {
        let now_ms = self.now().mono_ms;
        Instant::now() + Duration::from_millis(mono_ms.saturating_sub(now_ms))
    }

    /// Whether the machine slept since this was last asked.
    pub fn slept(&self) -> bool {
        let boot_ms = self.now().mono_ms;
        self.read(boot_ms, self.start.elapsed().as_millis() as u64 + 1_000)
    }

    /// The clock that goes on while the machine sleeps was read first, the other one after it: whoever has to wait in between, because
    /// others are busy, did not sleep.
    fn read(&self, boot_ms: u64, awake_ms: u64) -> bool {
        let slept_ms = boot_ms.saturating_sub(awake_ms);
        let before_ms = self.slept_ms.fetch_max(slept_ms, Ordering::Relaxed);
        slept_ms >= before_ms + SLEPT_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_does_not_sleep() {
        let clock = Clock::start();
        let read =
            [(1_000, 1_000), (2_000, 7_000), (8_000, 8_000), (28_000, 8_000), (29_000, 15_000), (30_000, 10_000)];
        let slept = read.map(|(boot_ms, awake_ms)| clock.read(boot_ms, awake_ms));
        assert_eq!(slept, [false, false, false, true, false, false]);
        assert!(!clock.slept());
    }
}
