//! What becomes of a URL whose visit failed.

use serde::{Deserialize, Serialize};

use crate::limits;

/// How a visit ended, as far as trying again is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// No address for the name.
    Dns,
    /// No connection.
    Connect,
    /// No TLS session. (A bad certificate is no failure, it is recorded.)
    Tls,
    /// A deadline passed, or the bytes came too slowly.
    Timeout,
    /// Closed before the first byte.
    Closed,
    /// 5xx other than 503.
    Server,
    /// 429 or 503: the site is parked, the URL waits with it.
    Busy,
    /// 408, 421, 425: the same request may succeed later.
    Again,
    /// 404, 410.
    Gone,
    /// 401, 402, 403, 407, 451.
    Forbidden,
    /// Any other 4xx.
    Client,
    /// A page that asks whether we are human.
    Challenge,
    /// The answer broke off: what came is kept.
    Truncated,
    /// Not HTTP: the bytes are kept.
    Malformed,
    /// Our own machine could not.
    Local,
    /// A rule of ours: address, port, robots, budget, trap.
    Refused,
}

impl Outcome {
    /// The outcome that an HTTP status stands for; nothing where the status is no failure.
    pub fn of_status(status: u16) -> Option<Outcome> {
        Some(match status {
            429 | 503 => Outcome::Busy,
            404 | 410 => Outcome::Gone,
            408 | 421 | 425 => Outcome::Again,
            401 | 402 | 403 | 407 | 451 => Outcome::Forbidden,
            400..=499 => Outcome::Client,
            500..=599 => Outcome::Server,
            _ => return None,
        })
    }

    /// The short name under which it is counted and shown.
    pub fn id(self) -> &'static str {
        match self {
            Outcome::Dns => "dns",
            Outcome::Connect => "connect",
            Outcome::Tls => "tls",
            Outcome::Timeout => "timeout",
            Outcome::Closed => "closed",
            Outcome::Server => "server",
            Outcome::Busy => "busy",
            Outcome::Again => "again",
            Outcome::Gone => "gone",
            Outcome::Forbidden => "forbidden",
            Outcome::Client => "client",
            Outcome::Challenge => "challenge",
            Outcome::Truncated => "truncated",
            Outcome::Malformed => "malformed",
            Outcome::Local => "local",
            Outcome::Refused => "refused",
        }
    }
}

/// What to do with the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retry {
    /// Try again after so many milliseconds.
    After(u64),
    /// It failed too often: over, in this pass.
    Dead,
    /// There is an answer; asking again would bring the same.
    Never,
}

/// The waits between the tries of a URL, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// Failures in a row after which a URL is dead.
    pub failures_max: u8,
    /// All waits in thousandths: 1,000 as written, 1 for a test that has no half-hour.
    pub scale_permille: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { failures_max: limits::FAILURES_MAX, scale_permille: 1_000 }
    }
}

/// After the first failure, the second, and so on; the last one for all that follow. A crawl that is otherwise done waits
/// some forty minutes for its stragglers.
const WAITS_MS: [u64; 4] = [30_000, 120_000, 480_000, 1_800_000];

/// A page that forbids is asked once more, because some servers forbid by load or by mistake.
const FORBIDDEN_TRIES: u8 = 2;
/// What is no HTTP seldom becomes HTTP.
const MALFORMED_TRIES: u8 = 2;
/// A truncated answer is kept as it is, after another try for the whole.
const TRUNCATED_TRIES: u8 = 3;
/// A challenge comes again and again, and nobody here solves it.
const CHALLENGE_TRIES: u8 = 3;

impl Patience {
    /// What to do after `failures` visits in a row went wrong (this one included) and the last one ended like this.
    pub fn next(&self, failures: u8, outcome: Outcome) -> Retry {
        let failures = failures.max(1);
        let tries = match outcome {
            Outcome::Gone | Outcome::Client | Outcome::Refused => return Retry::Never,
            // Not the URL's doing: it goes back and is not blamed. The site's clock, or ours, holds it.
            Outcome::Local => return Retry::After(self.scaled(WAITS_MS[0])),
            Outcome::Forbidden if failures >= FORBIDDEN_TRIES => return Retry::Never,
            Outcome::Malformed if failures >= MALFORMED_TRIES => return Retry::Never,
            Outcome::Truncated if failures >= TRUNCATED_TRIES => return Retry::Never,
            Outcome::Challenge if failures >= CHALLENGE_TRIES => return Retry::Never,
            Outcome::Busy => limits::PARKS_MAX.max(self.failures_max),
            _ => self.failures_max,
        };
        if failures >= tries {
            return Retry::Dead;
        }
        match outcome {
            // The site is parked for as long as it asked: the URL goes with it and needs no wait of its own.
            Outcome::Busy => Retry::After(0),
            _ => Retry::After(self.scaled(WAITS_MS[usize::from(failures - 1).min(WAITS_MS.len() - 1)])),
        }
    }

    fn scaled(&self, ms: u64) -> u64 {
        ms * u64::from(self.scale_permille) / 1_000
    }
}

/// [`Patience::next`] with the waits as written.
pub fn next(failures: u8, outcome: Outcome) -> Retry {
    Patience::default().next(failures, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: [Outcome; 7] = [
        Outcome::Dns,
        Outcome::Connect,
        Outcome::Tls,
        Outcome::Timeout,
        Outcome::Closed,
        Outcome::Server,
        Outcome::Again,
    ];

    #[test]
    fn five_failures_in_a_row_and_a_url_is_dead() {
        for outcome in FAILING {
            let fates: Vec<Retry> = (1..=6).map(|failures| next(failures, outcome)).collect();
            let after = |seconds: u64| Retry::After(seconds * 1_000);
            assert_eq!(
                fates,
                [after(30), after(120), after(480), after(1_800), Retry::Dead, Retry::Dead],
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn answers_are_final() {
        for outcome in [Outcome::Gone, Outcome::Client, Outcome::Refused] {
            assert_eq!(next(1, outcome), Retry::Never, "{outcome:?}");
        }
        assert_eq!(next(1, Outcome::Forbidden), Retry::After(30_000));
        assert_eq!(next(2, Outcome::Forbidden), Retry::Never);
        assert_eq!(next(2, Outcome::Malformed), Retry::Never);
        assert_eq!(next(3, Outcome::Truncated), Retry::Never);
        assert_eq!(next(3, Outcome::Challenge), Retry::Never);
    }

    #[test]
    fn a_busy_server_is_waited_for_and_our_own_trouble_never_kills() {
        assert_eq!(next(9, Outcome::Busy), Retry::After(0));
        assert_eq!(next(10, Outcome::Busy), Retry::Dead);
        assert_eq!(next(u8::MAX, Outcome::Local), Retry::After(30_000));
    }

    #[test]
    fn statuses_fall_into_classes() {
        for (status, outcome) in [
            (200, None),
            (304, None),
            (301, None),
            (404, Some(Outcome::Gone)),
            (410, Some(Outcome::Gone)),
            (403, Some(Outcome::Forbidden)),
            (418, Some(Outcome::Client)),
            (408, Some(Outcome::Again)),
            (429, Some(Outcome::Busy)),
            (503, Some(Outcome::Busy)),
            (500, Some(Outcome::Server)),
            (599, Some(Outcome::Server)),
            (999, None),
        ] {
            assert_eq!(Outcome::of_status(status), outcome, "{status}");
        }
    }

    #[test]
    fn tests_may_be_impatient() {
        let quick = Patience { failures_max: 3, scale_permille: 1 };
        assert_eq!(quick.next(1, Outcome::Connect), Retry::After(30));
        assert_eq!(quick.next(3, Outcome::Connect), Retry::Dead);
    }
}
