//! Numbers that stand for hosts, sites, leases and addresses.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A host, by its number in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// A site, by its number in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteId(pub u32);

/// A lease; numbers are never used twice by one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub u64);

/// What counts as one server machine: an IPv4 address, or the /64 of an IPv6 address (one machine usually owns all of it).
///
/// ```text
///   | 0000 0001 | v4 address 4 |       IPv4; no IPv6 network in use begins like this
///   | v6 network 8             |       IPv6
///   | 0                        |       not known
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AddressKey(u64);

impl AddressKey {
    /// No address: the look-up failed, or has not been made.
    pub const UNKNOWN: AddressKey = AddressKey(0);

    /// The machine behind an address. IPv4 in IPv6 clothes is IPv4.
    pub fn of(address: IpAddr) -> AddressKey {
        match address.to_canonical() {
            IpAddr::V4(v4) => AddressKey(1 << 32 | u64::from(u32::from(v4))),
            IpAddr::V6(v6) => AddressKey((u128::from(v6) >> 64) as u64),
        }
    }

    /// Is there an address?
    pub fn is_known(self) -> bool {
        self != AddressKey::UNKNOWN
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 >> 32, self.0) {
            (_, 0) => f.write_str("unknown"),
            (1, low) => write!(f, "{}", std::net::Ipv4Addr::from(low as u32)),
            (_, network) => write!(f, "{}/64", std::net::Ipv6Addr::from(u128::from(network) << 64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> AddressKey {
        AddressKey::of(text.parse().expect(text))
    }

    #[test]
    fn one_machine_has_one_key() {
        assert_eq!(key("192.0.2.7"), key("::ffff:192.0.2.7"));
        assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert!(key("0.0.0.0").is_known());
    }

    #[test]
    fn a_key_shows_what_it_stands_for() {
        assert_eq!(format!("{:?}", key("192.0.2.7")), "192.0.2.7");
        assert_eq!(format!("{:?}", key("2001:db8:1:2::1")), "2001:db8:1:2::/64");
        assert_eq!(format!("{:?}", AddressKey::UNKNOWN), "unknown");
    }
}
