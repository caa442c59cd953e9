//! Which addresses belong to the public Internet.
//!
//! Every range of the IANA special-purpose registries for IPv4 and IPv6, the metadata services of cloud providers, and addresses
//! that carry an IPv4 address inside: what is reached through them is judged too.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of network an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The Internet.
    Public,
    /// This host on this network: `0.0.0.0/8`, `::`.
    ThisNetwork,
    /// This host: `127.0.0.0/8`, `::1`.
    Loopback,
    /// RFC 1918 and its IPv6 counterpart: `10/8`, `172.16/12`, `192.168/16`, `fc00::/7`, `fec0::/10`.
    Private,
    /// Between a provider and its customers: `100.64.0.0/10`.
    Shared,
    /// This link: `169.254/16`, `fe80::/10`.
    LinkLocal,
    /// Where cloud machines ask for their secrets: `169.254.169.254` and its relatives.
    Metadata,
    /// Kept for protocols: `192.0.0.0/24`, `2001::/23`, segment routing, translation within a network.
    Protocol,
    /// For examples: `192.0.2/24`, `198.51.100/24`, `203.0.113/24`, `2001:db8::/32`, `3fff::/20`.
    Documentation,
    /// For measuring devices: `198.18/15`, `2001:2::/48`.
    Benchmarking,
    /// To many: `224/4`, `ff00::/8`.
    Multicast,
    /// To all: `255.255.255.255`.
    Broadcast,
    /// Tunnels of the transition to IPv6: 6to4, Teredo, and IPv4 written as IPv6.
    Transition,
    /// Thrown away: `100::/64`.
    Discard,
    /// Not given out.
    Reserved,
}

impl Class {
    /// May a crawler connect?
    pub fn is_public(self) -> bool {
        self == Class::Public
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Public => "public",
            Class::ThisNetwork => "this network",
            Class::Loopback => "loopback",
            Class::Private => "private",
            Class::Shared => "shared (carrier-grade NAT)",
            Class::LinkLocal => "link-local",
            Class::Metadata => "cloud metadata",
            Class::Protocol => "kept for protocols",
            Class::Documentation => "documentation",
            Class::Benchmarking => "benchmarking",
            Class::Multicast => "multicast",
            Class::Broadcast => "broadcast",
            Class::Transition => "transition tunnel",
            Class::Discard => "discard",
            Class::Reserved => "reserved",
        })
    }
}

/// The class of an address.
pub fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

/// May a crawler connect to it?
pub fn is_public(address: IpAddr) -> bool {
    class(address).is_public()
}

/// Address, prefix length, class; the first that fits decides.
type V4 = ([u8; 4], u32, Class);
type V6 = ([u16; 8], u32, Class);

const RANGES_V4: &[V4] = &[
    ([169, 254, 169, 254], 32, Class::Metadata), // nearly every cloud
    ([169, 254, 170, 2], 32, Class::Metadata),   // containers at Amazon
    ([169, 254, 170, 23], 32, Class::Metadata),  // containers at Amazon
    ([100, 100, 100, 200], 32, Class::Metadata), // Alibaba
    ([168, 63, 129, 16], 32, Class::Metadata),   // Azure, inside a public range
    ([192, 0, 0, 192], 32, Class::Metadata),     // Oracle
    ([0, 0, 0, 0], 8, Class::ThisNetwork),
    ([10, 0, 0, 0], 8, Class::Private),
    ([100, 64, 0, 0], 10, Class::Shared),
    ([127, 0, 0, 0], 8, Class::Loopback),
    ([169, 254, 0, 0], 16, Class::LinkLocal),
    ([172, 16, 0, 0], 12, Class::Private),
    ([192, 0, 0, 9], 32, Class::Public),  // port control protocol anycast
    ([192, 0, 0, 10], 32, Class::Public), // traversal using relays anycast
    ([192, 0, 0, 0], 24, Class::Protocol),
    ([192, 0, 2, 0], 24, Class::Documentation),
    ([192, 88, 99, 0], 24, Class::Transition), // 6to4 relays
    ([192, 168, 0, 0], 16, Class::Private),
    ([198, 18, 0, 0], 15, Class::Benchmarking),
    ([198, 51, 100, 0], 24, Class::Documentation),
    ([203, 0, 113, 0], 24, Class::Documentation),
    ([224, 0, 0, 0], 4, Class::Multicast),
    ([255, 255, 255, 255], 32, Class::Broadcast),
    ([240, 0, 0, 0], 4, Class::Reserved),
];

const RANGES_V6: &[V6] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Class::Metadata), // Amazon
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, Class::Metadata),  // containers at Amazon
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Class::Metadata),  // Google
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, Class::ThisNetwork),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Class::Loopback),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Class::Protocol), // translation within a network
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Class::Discard),
    ([0x100, 0, 0, 1, 0, 0, 0, 0], 64, Class::Discard), // dummy prefix
    ([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, Class::Public), // port control protocol anycast
    ([0x2001, 1, 0, 0, 0, 0, 0, 2], 128, Class::Public), // traversal using relays anycast
    ([0x2001, 1, 0, 0, 0, 0, 0, 3], 128, Class::Public), // DNS-SD registration anycast
    ([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Class::Benchmarking),
    ([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, Class::Public), // automatic multicast tunnelling
    ([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, Class::Public), // AS112
    ([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, Class::Public), // ORCHIDv2
    ([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28, Class::Public), // drone remote identification
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Class::Protocol),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Class::Documentation),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Class::Documentation),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Class::Public), // all that is given out
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, Class::Protocol), // segment routing
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Class::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Class::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Class::Private), // site-local, once
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Class::Multicast),
];

fn class_v4(address: Ipv4Addr) -> Class {
    let bits = u32::from(address);
    let within = |&&(range, length, _): &&V4| (bits ^ u32::from(Ipv4Addr::from(range))) >> (32 - length) == 0;
    RANGES_V4.iter().find(within).map_or(Class::Public, |&(_, _, class)| class)
}

fn class_v6(address: Ipv6Addr) -> Class {
    let bits = u128::from(address);
    let within = |&&(range, length, _): &&V6| (bits ^ u128::from(Ipv6Addr::from(range))) >> (128 - length) == 0;
    let found = |otherwise| RANGES_V6.iter().find(within).map_or(otherwise, |&(_, _, class)| class);
    // A public address inside a tunnel is still a tunnel; another one is what it is.
    let tunnel = |inside: Class| if inside.is_public() { Class::Transition } else { inside };
    let low = |shift: u32| class_v4(Ipv4Addr::from((bits >> shift) as u32));
    match address.segments() {
        // NAT64: the way to all of IPv4 for networks that have only IPv6.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => low(0),
        // IPv4-mapped and translated: the operating system connects to the address inside.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => tunnel(low(0)),
        // IPv4-compatible, once.
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => tunnel(low(0)),
        // 6to4: the address is behind the prefix.
        [0x2002, ..] => tunnel(low(80)),
        // Teredo: the relay stands in front, the client at the end with its bits turned over.
        [0x2001, 0, ..] => match tunnel(low(64)) {
            Class::Transition => tunnel(class_v4(Ipv4Addr::from(!(bits as u32)))),
            relay => relay,
        },
        _ => found(Class::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, wanted: Class) {
        assert_eq!(class(address.parse().expect(address)), wanted, "{address}");
    }

    /// First and last of each range, and what lies just outside.
    #[test]
    fn ipv4_ranges_begin_and_end_where_they_should() {
        for (before, first, last, after, wanted) in [
            ("255.255.255.255", "0.0.0.0", "0.255.255.255", "1.0.0.0", Class::ThisNetwork),
            ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", Class::Private),
            ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", Class::Shared),
            ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", Class::Loopback),
            ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", Class::LinkLocal),
            ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", Class::Private),
            ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", Class::Protocol),
            ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", Class::Documentation),
            ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", Class::Transition),
            ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", Class::Private),
            ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", Class::Benchmarking),
            ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", Class::Documentation),
            ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", Class::Documentation),
            ("223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", Class::Multicast),
            ("239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255", Class::Reserved),
        ] {
            check(first, wanted);
            check(last, wanted);
            assert_ne!(class(before.parse().unwrap()), wanted, "{before}");
            assert_ne!(class(after.parse().unwrap()), wanted, "{after}");
        }
        check("255.255.255.255", Class::Broadcast);
    }

    #[test]
    fn ipv6_ranges_begin_and_end_where_they_should() {
        for (first, last, wanted) in [
            ("::", "::", Class::ThisNetwork),
            ("::1", "::1", Class::Loopback),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", Class::Protocol),
            ("100::", "100::ffff:ffff:ffff:ffff", Class::Discard),
            ("100:0:0:1::", "100::1:ffff:ffff:ffff:ffff", Class::Discard),
            ("2001:1::", "2001:1::", Class::Protocol),
            ("2001:1::4", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", Class::Protocol),
            ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", Class::Benchmarking),
            ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", Class::Protocol),
            ("2001:20::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", Class::Public),
            ("2001:40::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Protocol),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Class::Documentation),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Documentation),
            ("4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Reserved),
            ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Protocol),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Private),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::LinkLocal),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Private),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Multicast),
            ("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", Class::Public),
            ("2606:4700::1", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Class::Public),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", Class::Public),
        ] {
            check(first, wanted);
            check(last, wanted);
        }
    }

    #[test]
    fn metadata_services() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
        ] {
            check(address, Class::Metadata);
        }
    }

    #[test]
    fn the_address_inside_is_judged_too() {
        check("::ffff:127.0.0.1", Class::Loopback);
        check("::ffff:8.8.8.8", Class::Transition);
        check("::ffff:0:10.0.0.1", Class::Private);
        check("::10.0.0.1", Class::Private);
        check("::8.8.8.8", Class::Transition);
        check("64:ff9b::8.8.8.8", Class::Public);
        check("64:ff9b::192.168.1.1", Class::Private);
        check("2002:c0a8:101::1", Class::Private);
        check("2002:808:808::1", Class::Transition);
        check("2001:0:a00:1::", Class::Private);
        check("2001:0:808:808::f5ff:fffe", Class::Private); // the client is 10.0.0.1
        check("2001:0:808:808::f7f7:f7f7", Class::Transition);
    }

    #[test]
    fn the_rest_is_public() {
        for address in
            ["1.1.1.1", "8.8.8.8", "93.184.216.34", "192.0.0.9", "192.31.196.1", "192.175.48.1", "2001:4860:4860::8888"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        assert_eq!(Class::Shared.to_string(), "shared (carrier-grade NAT)");
    }
}
