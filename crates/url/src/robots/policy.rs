//! What the answer to the request for robots.txt means, file or not.

use super::{Because, Decision, Robots};
use crate::limits;

/// What came of asking for robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A response, after at most [`limits::ROBOTS_REDIRECT_HOPS_MAX`] redirects.
    Response {
        /// Its status code.
        status: u16,
        /// Its body, decoded.
        body: &'a [u8],
        /// Seconds of its `Retry-After`, if it has one.
        retry_after_seconds: Option<u64>,
        /// For how long every answer was an error; 0 when this is the first.
        failing_for_seconds: u64,
    },
    /// Still a redirect after [`limits::ROBOTS_REDIRECT_HOPS_MAX`] of them.
    RedirectsWithoutEnd,
    /// No response: no address, no connection, no complete answer in time.
    Unreachable {
        /// For how long by now.
        failing_for_seconds: u64,
    },
}

/// The rules of a host, for as long as they count.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Rules,
    /// For how long this counts before robots.txt is asked for again.
    pub fresh_seconds: u64,
}

#[derive(Clone, Debug)]
enum Rules {
    File(Robots),
    Open(Open),
    Closed(Closed),
}

/// Why everything is allowed without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A 4xx other than 429: there is no robots.txt for us (RFC 9309, section 2.3.1.3).
    Unavailable(u16),
    /// Too many redirects, or a redirect without target (section 2.3.1.2).
    Redirects,
    /// No usable answer for [`limits::ROBOTS_UNREACHABLE_GIVE_UP_SECONDS`] (section 2.3.1.4).
    GivenUp,
}

/// Why nothing is allowed for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// 429, 5xx, or a status that means nothing here (section 2.3.1.4).
    Status(u16),
    /// No response (section 2.3.1.4).
    Unreachable,
}

impl Policy {
    /// What an answer means.
    pub fn of(answer: Answer<'_>) -> Policy {
        let day = limits::ROBOTS_FRESH_SECONDS;
        match answer {
            Answer::Response { status: 200..=299, body, .. } => {
                Policy { rules: Rules::File(Robots::parse(body)), fresh_seconds: day }
            }
            Answer::Response { status: 300..=399, .. } | Answer::RedirectsWithoutEnd => {
                Policy { rules: Rules::Open(Open::Redirects), fresh_seconds: day }
            }
            Answer::Response { status: status @ 400..=499, .. } if status != 429 => {
                Policy { rules: Rules::Open(Open::Unavailable(status)), fresh_seconds: day }
            }
            Answer::Response { status, retry_after_seconds, failing_for_seconds, .. } => {
                Policy::closed(Closed::Status(status), retry_after_seconds, failing_for_seconds)
            }
            Answer::Unreachable { failing_for_seconds } => {
                Policy::closed(Closed::Unreachable, None, failing_for_seconds)
            }
        }
    }

    fn closed(why: Closed, retry_after_seconds: Option<u64>, failing_for_seconds: u64) -> Policy {
        if failing_for_seconds >= limits::ROBOTS_UNREACHABLE_GIVE_UP_SECONDS {
            return Policy { rules: Rules::Open(Open::GivenUp), fresh_seconds: limits::ROBOTS_FRESH_SECONDS };
        }
        let wait = retry_after_seconds.unwrap_or(limits::ROBOTS_ERROR_RETRY_SECONDS);
        Policy {
            rules: Rules::Closed(why),
            fresh_seconds: wait.clamp(limits::ROBOTS_ERROR_RETRY_SECONDS, limits::ROBOTS_FRESH_SECONDS),
        }
    }

    /// May `agent` fetch `url`; see [`Robots::decide`].
    pub fn decide(&self, agent: &str, url: &str) -> Decision {
        match &self.rules {
            Rules::File(robots) => robots.decide(agent, url),
            Rules::Open(why) => Decision { allowed: true, because: Because::Open(*why) },
            Rules::Closed(why) => Decision { allowed: false, because: Because::Closed(*why) },
        }
    }

    /// Whether nothing is allowed because the file could not be had.
    pub fn is_closed(&self) -> bool {
        matches!(self.rules, Rules::Closed(_))
    }

    /// The file, if there is one.
    pub fn robots(&self) -> Option<&Robots> {
        match &self.rules {
            Rules::File(robots) => Some(robots),
            Rules::Open(_) | Rules::Closed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, retry_after_seconds: Option<u64>, failing_for_seconds: u64) -> Policy {
        let body = b"user-agent: *\ndisallow: /private";
        Policy::of(Answer::Response { status, body, retry_after_seconds, failing_for_seconds })
    }

    #[test]
    fn the_status_decides_what_counts() {
        let because = |policy: Policy| {
            let decision = policy.decide("skep", "http://a/private");
            (decision.allowed, decision.because, policy.fresh_seconds)
        };
        let (day, hour) = (limits::ROBOTS_FRESH_SECONDS, limits::ROBOTS_ERROR_RETRY_SECONDS);
        assert!(!because(status(200, None, 0)).0);
        assert!(
            !status(200, None, 0).is_closed() && status(500, None, 0).is_closed() && !status(404, None, 0).is_closed()
        );
        assert!(status(206, None, 0).robots().is_some());
        assert_eq!(because(status(301, None, 0)), (true, Because::Open(Open::Redirects), day));
        assert_eq!(because(Policy::of(Answer::RedirectsWithoutEnd)), (true, Because::Open(Open::Redirects), day));
        for code in [400, 401, 403, 404, 410, 451, 499] {
            assert_eq!(because(status(code, None, 0)), (true, Because::Open(Open::Unavailable(code)), day));
        }
        for code in [429, 500, 503, 599, 100, 0, 999] {
            assert_eq!(because(status(code, None, 0)), (false, Because::Closed(Closed::Status(code)), hour));
        }
        let unreachable = Policy::of(Answer::Unreachable { failing_for_seconds: 60 });
        assert_eq!(because(unreachable), (false, Because::Closed(Closed::Unreachable), hour));
    }

    #[test]
    fn retry_after_is_heard_within_bounds() {
        assert_eq!(status(503, Some(7_200), 0).fresh_seconds, 7_200);
        assert_eq!(status(503, Some(1), 0).fresh_seconds, limits::ROBOTS_ERROR_RETRY_SECONDS);
        assert_eq!(status(429, Some(u64::MAX), 0).fresh_seconds, limits::ROBOTS_FRESH_SECONDS);
    }

    #[test]
    fn after_a_month_of_errors_there_is_no_robots_txt() {
        let month = limits::ROBOTS_UNREACHABLE_GIVE_UP_SECONDS;
        for policy in [status(500, None, month), Policy::of(Answer::Unreachable { failing_for_seconds: month })] {
            assert_eq!(policy.decide("skep", "http://a/").because, Because::Open(Open::GivenUp));
        }
        assert!(!status(500, None, month - 1).decide("skep", "http://a/").allowed);
    }
}
