//! Did this machine sleep?
//!
//! A laptop that wakes up finds every deadline passed and every connection gone. That says nothing about the sites: what was in
//! flight is tried again, and not counted. Whoever runs the crawl looks at the clocks about once a second; where a look comes
//! much later than that, the time between was slept through. While a machine is suspended its monotonic clock may stand still
//! and only the wall clock goes on, so both are looked at.

use crate::limits::SLEPT_MS_MIN;

/// The heartbeat of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    last: Option<(u64, i64)>,
    woke_ms: Option<u64>,
}

impl Beat {
    /// The clocks are looked at: the monotonic one, and the wall clock. A wall clock that is set back is no sleep.
    pub fn beat(&mut self, now_ms: u64, wall_ms: i64) {
        if let Some((last_ms, last_wall_ms)) = self.last.replace((now_ms, wall_ms)) {
            let passed_ms = now_ms.saturating_sub(last_ms);
            let wall_passed_ms = u64::try_from(wall_ms.saturating_sub(last_wall_ms)).unwrap_or(0);
            if passed_ms.max(wall_passed_ms) >= SLEPT_MS_MIN {
                self.woke_ms = Some(now_ms);
            }
        }
    }

    /// Did the machine sleep while an exchange was under way that began at this time of the monotonic clock?
    pub fn slept_since(&self, began_ms: u64) -> bool {
        self.woke_ms.is_some_and(|woke_ms| woke_ms >= began_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spans_a_sleep_is_known_and_what_begins_after_it_is_not_concerned() {
        let mut beat = Beat::default();
        (0..10).for_each(|second| beat.beat(second * 1_000, 50_000 + second as i64 * 1_000));
        assert!(!beat.slept_since(0));
        beat.beat(30_000, 80_000);
        assert!(beat.slept_since(9_000) && beat.slept_since(30_000) && !beat.slept_since(30_001));
    }

    #[test]
    fn a_monotonic_clock_may_stand_still_and_a_wall_clock_may_be_set_back() {
        let mut beat = Beat::default();
        beat.beat(1_000, 1_000_000);
        beat.beat(2_000, 9_000_000);
        assert!(beat.slept_since(1_500));
        let mut set_back = Beat::default();
        set_back.beat(1_000, 9_000_000);
        set_back.beat(2_000, 1_000_000);
        assert!(!set_back.slept_since(0));
    }
}
