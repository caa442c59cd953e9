//! What counts as impolite, and what an offence against it is called.

use serde::{Deserialize, Serialize};

/// What counts as impolite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The name robots.txt rules are looked up for; without it, the product in each request's `User-Agent`.
    pub agent: Option<String>,
    /// Shortest time between the starts of two requests to one site; 0 asks for none.
    pub site_gap_ms: u64,
    /// Shortest time between the starts of two requests to one host; 0 asks for none. A crawl delay asks for more.
    pub host_gap_ms: u64,
    /// Shortest time between the end of an answer and the next request to the same site; 0 asks for none.
    pub site_rest_ms: u64,
    /// That rest is at least so many times what the last answer took; 0 asks for none.
    pub answer_time_factor: u32,
    /// But no more than this for that reason. A crawl delay may still ask for more.
    pub answer_rest_ms_max: u64,
    /// Most requests in flight to one address; 0 allows any.
    pub in_flight_max: u32,
    /// How much shorter than asked a gap or rest may be, and how much longer than the visitor saw it an answer may have
    /// taken; a client's clock and the server's are apart by the scheduler's whims.
    pub tolerance_ms: u64,
    /// robots.txt must be asked before anything else on a host.
    pub robots_first: bool,
    /// And again when the last time is so long ago, by the web's clock; 0 asks for it only once.
    pub robots_age_seconds_max: u64,
    /// Who is left alone after a 429 or 503 with `Retry-After`, and after a 429.
    pub refused: Refused,
    /// Shortest time that is left alone after a 429 whose `Retry-After` is absent or says nothing; 0 asks for none.
    pub refused_ms_min: u64,
    /// Longest `Retry-After` that must be waited for.
    pub retry_after_seconds_max: u64,
}

/// Who is left alone after a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// The whole site.
    #[default]
    Site,
    /// The host that refused.
    Host,
}

impl Default for Policy {
    /// robots.txt and `Retry-After` are minded; no pace is asked for but that of a crawl delay.
    fn default() -> Policy {
        Policy {
            agent: None,
            site_gap_ms: 0,
            host_gap_ms: 0,
            site_rest_ms: 0,
            answer_time_factor: 0,
            answer_rest_ms_max: 60_000,
            in_flight_max: 0,
            tolerance_ms: 0,
            robots_first: true,
            robots_age_seconds_max: 0,
            refused: Refused::Site,
            refused_ms_min: 0,
            retry_after_seconds_max: 7 * 86_400,
        }
    }
}

impl Policy {
    /// The pace of a polite crawler: a site rests for the longest of half a second, its crawl delay and five times its
    /// last answer (at most a minute for that); robots.txt is never older than a day; a 429 means at least half a minute.
    pub fn polite() -> Policy {
        Policy {
            site_rest_ms: 500,
            answer_time_factor: 5,
            tolerance_ms: 20,
            robots_age_seconds_max: 86_400,
            refused_ms_min: 30_000,
            ..Policy::default()
        }
    }

    /// The rest that a site needs after an answer that took so long.
    pub(crate) fn rest_us(&self, answer_us: u64) -> u64 {
        let seen_us = answer_us.saturating_sub(self.tolerance_ms.saturating_mul(1_000));
        let by_answer = seen_us.saturating_mul(u64::from(self.answer_time_factor));
        by_answer.min(self.answer_rest_ms_max.saturating_mul(1_000)).max(self.site_rest_ms.saturating_mul(1_000))
    }

    /// How long those who refused with this status are to be left alone.
    pub(crate) fn parked_us(&self, status: u16, retry_after_seconds: Option<u64>) -> u64 {
        match (status, retry_after_seconds) {
            (429 | 503, Some(seconds)) => seconds.min(self.retry_after_seconds_max).saturating_mul(1_000_000),
            (429, None) => self.refused_ms_min.saturating_mul(1_000),
            _ => 0,
        }
    }
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offence {
    /// A path that robots.txt forbids.
    Robots,
    /// Something else before the robots.txt of the host.
    RobotsUnasked,
    /// Something else when the robots.txt was last asked too long ago.
    RobotsStale,
    /// Sooner after the last request to the host than its crawl delay.
    CrawlDelay,
    /// Sooner after the last request to the host than the policy says.
    HostGap,
    /// Sooner after the last request to the site than the policy says.
    SiteGap,
    /// Sooner after the end of the site's last answer than the policy says, or before it.
    SiteRest,
    /// Too many requests in flight to one address.
    InFlight,
    /// Before the time that a refusal asked for.
    RetryAfter,
}

/// The product token of a `User-Agent`: what stands before the first `/`, blank or comment.
pub fn product(agent: &str) -> &str {
    let end = agent.find(|c: char| !(c.is_ascii_alphabetic() || c == '-' || c == '_')).unwrap_or(agent.len());
    &agent[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_the_answer_within_bounds() {
        let policy = Policy { tolerance_ms: 0, ..Policy::polite() };
        for (answer_ms, rest_ms) in
            [(0, 500), (100, 500), (101, 505), (1_000, 5_000), (12_000, 60_000), (900_000, 60_000)]
        {
            assert_eq!(policy.rest_us(answer_ms * 1_000), rest_ms * 1_000, "{answer_ms}");
        }
        assert_eq!(Policy::default().rest_us(1_000_000), 0);
        assert_eq!(Policy { tolerance_ms: 10, ..policy }.rest_us(210_000), 1_000_000);
    }

    #[test]
    fn refusals_park_for_what_they_say() {
        let policy = Policy::polite();
        for (status, retry_after, seconds) in [
            (429, None, 30),
            (429, Some(2), 2),
            (503, Some(90), 90),
            (503, None, 0),
            (429, Some(365 * 86_400), 7 * 86_400),
            (200, Some(5), 0),
        ] {
            assert_eq!(policy.parked_us(status, retry_after), seconds * 1_000_000, "{status} {retry_after:?}");
        }
    }

    #[test]
    fn products() {
        assert_eq!(product("skep/0.1 (+x)"), "skep");
        assert_eq!(product("Wget"), "Wget");
        assert_eq!(product(""), "");
    }
}
