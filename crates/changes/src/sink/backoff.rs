//! How long to wait before the next try: twice as long each time, spread by chance so that many who wait do not come back at
//! once, and never shorter than the other side asked for.

use crate::limits::{SINK_ASKED_MS_MAX, SINK_WAIT_MS_FIRST, SINK_WAIT_MS_MAX};

/// Milliseconds until the next try, after so many failures in a row. `chance` is any number.
pub fn wait_ms(failures: u32, asked_ms: Option<u64>, chance: u64) -> u64 {
    let doubled = SINK_WAIT_MS_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(32)).min(SINK_WAIT_MS_MAX);
    let half = doubled / 2;
    let spread = half + chance % (half + 1);
    spread.max(asked_ms.unwrap_or(0).min(SINK_ASKED_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_are_spread_and_obey() {
        for chance in [0, 1, 77, u64::MAX] {
            let mut last = 0;
            for failures in 1..40 {
                let wait = wait_ms(failures, None, chance);
                assert!((SINK_WAIT_MS_FIRST / 2..=SINK_WAIT_MS_MAX).contains(&wait));
                assert!(wait >= last / 2);
                last = wait;
            }
        }
        assert_ne!(wait_ms(5, None, 0), wait_ms(5, None, 3));
        assert_eq!(wait_ms(1, Some(120_000), 5), 120_000);
        assert_eq!(wait_ms(1, Some(u64::MAX), 5), SINK_ASKED_MS_MAX);
        assert!(wait_ms(30, Some(1), 0) >= SINK_WAIT_MS_MAX / 2);
    }
}
