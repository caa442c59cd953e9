//! What became of a visit: one small number, the same in check lines, in the registry and in reports.
//!
//! ```text
//!   1 …  99   no answer was asked for, or none came          (table below)
//! 100 … 999   an HTTP answer: its status
//! ```

use std::fmt;

use skep_fetch::Fault;
use skep_schedule::retry;

/// The number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome(pub u16);

macro_rules! outcomes {
    ($($number:literal $name:ident $id:literal $class:expr;)*) => {
        impl Outcome {
            $(#[doc = concat!("`", $id, "`")] pub const $name: Outcome = Outcome($number);)*

            /// A short name.
            pub fn id(self) -> &'static str {
                match self.0 {
                    $($number => $id,)*
                    100..=199 => "interim",
                    200..=299 => "ok",
                    304 => "not-modified",
                    300..=399 => "redirect",
                    404 | 410 => "gone",
                    429 | 503 => "busy",
                    400..=499 => "client-error",
                    500..=599 => "server-error",
                    100..=999 => "odd-status",
                    _ => "unknown",
                }
            }

            /// How it counts when it is decided whether to try again; `None` for a visit that went well.
            pub fn failure(self) -> Option<retry::Outcome> {
                match self.0 {
                    $($number => $class,)*
                    status => retry::Outcome::of_status(status),
                }
            }

            /// The outcome with this short name, where one number has it.
            pub fn from_id(id: &str) -> Option<Outcome> {
                match id {
                    $($id => Some(Outcome($number)),)*
                    _ => None,
                }
            }
        }
    };
}

outcomes! {
    1 ROBOTS "robots" Some(retry::Outcome::Refused);
    2 NOARCHIVE "noarchive" None;
    3 CHALLENGE "challenge" Some(retry::Outcome::Challenge);
    4 MALFORMED "malformed" Some(retry::Outcome::Malformed);
    5 ROBOTS_UNREACHABLE "robots-unreachable" Some(retry::Outcome::Connect);
    6 NO_URL "not-a-url" Some(retry::Outcome::Refused);
    7 SOFT_MISSING "soft-404" None;
    8 PROBE "probe" None;
    9 TYPE_REFUSED "type-refused" Some(retry::Outcome::Refused);
    10 DNS_NOT_FOUND "dns-not-found" Some(retry::Outcome::Dns);
    11 DNS_FAILED "dns-failed" Some(retry::Outcome::Dns);
    12 DNS_TIMEOUT "dns-timeout" Some(retry::Outcome::Dns);
    13 DNS_NO_RESOLVER "dns-no-resolver" Some(retry::Outcome::Dns);
    14 NO_ADDRESS "no-address" Some(retry::Outcome::Dns);
    15 ADDRESS_REFUSED "address-refused" Some(retry::Outcome::Refused);
    16 OWN_ADDRESS "own-address" Some(retry::Outcome::Refused);
    17 PORT_REFUSED "port-refused" Some(retry::Outcome::Refused);
    18 REQUEST_REFUSED "request-refused" Some(retry::Outcome::Refused);
    20 CONNECT_REFUSED "connect-refused" Some(retry::Outcome::Connect);
    21 CONNECT_UNREACHABLE "connect-unreachable" Some(retry::Outcome::Connect);
    22 CONNECT_RESET "connect-reset" Some(retry::Outcome::Connect);
    23 CONNECT_FAILED "connect-failed" Some(retry::Outcome::Connect);
    30 LEGACY_TLS "legacy-tls" Some(retry::Outcome::Tls);
    31 NOT_TLS "not-tls" Some(retry::Outcome::Tls);
    32 TLS_CHAIN_TOO_LARGE "tls-chain-too-large" Some(retry::Outcome::Tls);
    33 TLS_CLOSED "tls-closed" Some(retry::Outcome::Tls);
    34 TLS_FAILED "tls-failed" Some(retry::Outcome::Tls);
    40 TIMEOUT_CONNECT "timeout-connect" Some(retry::Outcome::Timeout);
    41 TIMEOUT_HANDSHAKE "timeout-handshake" Some(retry::Outcome::Timeout);
    42 TIMEOUT_FIRST_BYTE "timeout-first-byte" Some(retry::Outcome::Timeout);
    43 TIMEOUT_TOTAL "timeout-total" Some(retry::Outcome::Timeout);
    44 TOO_SLOW "too-slow" Some(retry::Outcome::Timeout);
    50 CLOSED "closed" Some(retry::Outcome::Closed);
    51 HEAD_TOO_LARGE "head-too-large" Some(retry::Outcome::Malformed);
    52 INTERIM_FLOOD "interim-flood" Some(retry::Outcome::Malformed);
    53 BROKEN "broken" Some(retry::Outcome::Truncated);
    54 CUT_OFF "cut-off" Some(retry::Outcome::Truncated);
    80 PROXY_UNREACHABLE "proxy-unreachable" Some(retry::Outcome::Local);
    81 PROXY_CREDENTIALS "proxy-credentials" Some(retry::Outcome::Local);
    82 PROXY_REFUSED "proxy-refused" Some(retry::Outcome::Connect);
    83 PROXY_PROTOCOL "proxy-protocol" Some(retry::Outcome::Connect);
    84 PROXY_TIMEOUT "proxy-timeout" Some(retry::Outcome::Timeout);
    90 LOCAL_RESOURCES "local-resources" Some(retry::Outcome::Local);
    91 HOST_GIVEN_UP "host-given-up" Some(retry::Outcome::Connect);
    92 NETWORK_DOWN "network-down" Some(retry::Outcome::Local);
    93 MACHINE_SLEPT "machine-slept" Some(retry::Outcome::Local);
    94 CAPTIVE_PORTAL "captive-portal" Some(retry::Outcome::Local);
    95 PROVIDER_BAN "provider-ban" Some(retry::Outcome::Local);
    96 HOST_BANNED "host-banned" Some(retry::Outcome::Connect);
}

impl Outcome {
    /// An answer with this status.
    pub fn status(status: u16) -> Outcome {
        if (100..=999).contains(&status) { Outcome(status) } else { Outcome::MALFORMED }
    }

    /// The status, where there was an answer.
    pub fn as_status(self) -> Option<u16> {
        (100..=999).contains(&self.0).then_some(self.0)
    }

    /// What came, or did not come, is the doing of whoever stands between this machine and the site: nobody's fault, nothing to keep.
    pub fn is_between(self) -> bool {
        matches!(
            self,
            Outcome::NETWORK_DOWN
                | Outcome::MACHINE_SLEPT
                | Outcome::CAPTIVE_PORTAL
                | Outcome::PROVIDER_BAN
                | Outcome::PROXY_UNREACHABLE
                | Outcome::PROXY_CREDENTIALS
        )
    }

    /// Failures in a row after this one. What is not the URL's doing does not count against it.
    pub fn failures_after(self, before: u8) -> u8 {
        match self.failure() {
            None => 0,
            Some(retry::Outcome::Local) => before,
            Some(_) => before.saturating_add(1),
        }
    }

    /// A link to it is broken: the answer says that nothing is there, or no answer comes any more.
    pub fn is_broken(self) -> bool {
        matches!(self.0, 7 | 10..=14 | 20..=53 | 400..=428 | 430..=502 | 504..=599)
    }
}

impl From<&Fault> for Outcome {
    fn from(fault: &Fault) -> Outcome {
        Outcome::from_id(fault.id()).unwrap_or(match fault.class() {
            skep_fetch::Class::Host => Outcome::CONNECT_FAILED,
            skep_fetch::Class::Url => Outcome::BROKEN,
            skep_fetch::Class::Refused => Outcome::REQUEST_REFUSED,
            skep_fetch::Class::Local => Outcome::LOCAL_RESOURCES,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_status() {
            Some(status) => write!(f, "{status}"),
            None => f.write_str(self.id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_numbers() {
        for number in 0..100 {
            let outcome = Outcome(number);
            if outcome.id() != "unknown" {
                assert_eq!(Outcome::from_id(outcome.id()), Some(outcome));
            }
        }
    }

    #[test]
    fn only_what_a_url_did_itself_counts_against_it() {
        for (outcome, failures) in [
            (Outcome(200), 0),
            (Outcome::CONNECT_REFUSED, 4),
            (Outcome(503), 4),
            (Outcome::LOCAL_RESOURCES, 3),
            (Outcome::NETWORK_DOWN, 3),
            (Outcome::MACHINE_SLEPT, 3),
            (Outcome::CAPTIVE_PORTAL, 3),
            (Outcome::PROVIDER_BAN, 3),
            (Outcome::PROXY_UNREACHABLE, 3),
            (Outcome::DNS_NO_RESOLVER, 4),
            (Outcome::CUT_OFF, 4),
        ] {
            assert_eq!(outcome.failures_after(3), failures, "{outcome}");
        }
    }

    #[test]
    fn what_counts_as_broken() {
        for (outcome, broken) in [
            (Outcome(200), false),
            (Outcome(301), false),
            (Outcome(404), true),
            (Outcome(410), true),
            (Outcome(429), false),
            (Outcome(503), false),
            (Outcome(500), true),
            (Outcome::DNS_NOT_FOUND, true),
            (Outcome::ROBOTS, false),
            (Outcome::ADDRESS_REFUSED, false),
            (Outcome::TIMEOUT_TOTAL, true),
            (Outcome::CUT_OFF, false),
        ] {
            assert_eq!(outcome.is_broken(), broken, "{outcome}");
        }
    }
}
