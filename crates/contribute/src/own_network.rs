//! The network that this machine is in: what answers there is its owner's, also where its addresses are public ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use crate::limits::OWN_PREFIX_BITS_MIN;

/// Where Linux lists the addresses of this machine: address, number of its interface, length of its prefix, scope, flags, name.
const LISTED: &str = "/proc/net/if_inet6";
/// Where it lists which IPv4 addresses are reached how: interface, destination, router, flags, three numbers, mask; as they lie in memory.
const ROUTES: &str = "/proc/net/route";
/// No network of an owner is smaller, whatever its addresses say.
const PREFIX_BITS_MAX: u32 = 64;

/// Prefixes and addresses of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnNetwork {
    prefixes: Vec<(Ipv6Addr, u32)>,
    /// Those that are reached without a router.
    neighbours: Vec<(Ipv4Addr, u32)>,
    /// That of this machine, and that of its router as others see it.
    addresses: [Option<Ipv4Addr>; 2],
}

impl OwnNetwork {
    /// As it is now: machines move.
    pub fn look() -> OwnNetwork {
        let listed = std::fs::read_to_string(LISTED).unwrap_or_default();
        let routes = std::fs::read_to_string(ROUTES).unwrap_or_default();
        OwnNetwork { prefixes: prefixes(&listed), neighbours: neighbours(&routes), addresses: [address(), None] }
    }

    /// Others see it at this address. They may say what they like: what they name is not asked, and nothing is that would not be otherwise.
    pub fn seen_from(mut self, address: Option<IpAddr>) -> OwnNetwork {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => self.addresses[1] = Some(address),
            Some(IpAddr::V6(address)) => self.prefixes.push((address, PREFIX_BITS_MAX)),
            None => {}
        }
        self
    }

    /// Is this address in it?
    pub fn holds(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let is_near = |(own, bits): &(Ipv4Addr, u32)| {
                    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                    own.to_bits() & mask == address.to_bits() & mask
                };
                self.addresses.contains(&Some(address)) || self.neighbours.iter().any(is_near)
            }
            IpAddr::V6(address) => self.prefixes.iter().any(|(own, bits)| {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                own.to_bits() & mask == address.to_bits() & mask
            }),
        }
    }
}

/// Of a list, those that the whole world reaches.
fn prefixes(listed: &str) -> Vec<(Ipv6Addr, u32)> {
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let address = Ipv6Addr::from_bits(u128::from_str_radix(words.next()?, 16).ok()?);
        let bits = u32::from_str_radix(words.nth(1)?, 16).ok()?;
        (words.next()? == "00").then_some((address, bits.min(PREFIX_BITS_MAX)))
    };
    listed.lines().filter_map(read).filter(|(_, bits)| *bits > 0).collect()
}

/// Of a table of routes, what is reached without a router. A tunnel that takes half of the Internet is no network of anybody's.
fn neighbours(routes: &str) -> Vec<(Ipv4Addr, u32)> {
    let read = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(|word| u32::from_str_radix(word, 16));
        let (to, router) = (words.next()?.ok()?, words.next()?.ok()?);
        let mask = words.nth(4)?.ok()?;
        (router == 0).then(|| (Ipv4Addr::from(to.to_ne_bytes()), mask.count_ones()))
    };
    routes.lines().filter_map(read).filter(|(_, bits)| *bits >= OWN_PREFIX_BITS_MIN).collect()
}

/// The address from which this machine speaks to the world. Nothing is sent for it.
fn address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_prefix_of_ones_own_is_not_the_internet() {
        let listed = "00000000000000000000000000000001 01 80 10 80       lo\n\
                      fe800000000000005054000000000001 02 40 20 80     eth0\n\
                      2a010db80001000250540000000000ff 02 40 00 00     eth0\n\
                      2a010db80002000000000000000000ff 03 80 00 00     eth1\nnonsense\n";
        let addresses = [Some(Ipv4Addr::new(198, 51, 100, 7)), None];
        let own = OwnNetwork { prefixes: prefixes(listed), neighbours: Vec::new(), addresses };
        let router = |address: &str| own.clone().seen_from(address.parse().ok());
        for (seen_from, address, is_own) in [
            ("203.0.113.9", "203.0.113.9", true),
            ("::ffff:203.0.113.9", "203.0.113.9", true),
            ("203.0.113.9", "203.0.113.8", false),
            ("203.0.113.9", "198.51.100.7", true),
            ("2a02:1::7", "2a02:1::1", true),
            ("2a02:1::7", "2a02:2::1", false),
        ] {
            assert_eq!(router(seen_from).holds(address.parse().unwrap()), is_own, "{seen_from}: {address}");
        }
        for (address, is_own) in [
            ("2a01:db8:1:2::1", true),
            ("2a01:db8:1:3::1", false),
            ("2a01:db8:2::77", true),
            ("198.51.100.7", true),
            ("::ffff:198.51.100.7", true),
            ("198.51.100.8", false),
        ] {
            assert_eq!(own.holds(address.parse().unwrap()), is_own, "{address}");
        }
        assert_eq!(OwnNetwork::look(), OwnNetwork::look());
    }

    #[test]
    fn machines_beside_this_one_are_not_the_internet_where_their_addresses_are_public() {
        let hex = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let line =
            |to, router, mask| format!("eth0\t{}\t{}\t0001\t0\t0\t100\t{}\t0\t0\t0\n", hex(to), hex(router), hex(mask));
        let routes = [
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n".to_owned(),
            line([0, 0, 0, 0], [141, 1, 2, 1], [0, 0, 0, 0]),
            line([141, 1, 2, 0], [0, 0, 0, 0], [255, 255, 255, 0]),
            line([141, 9, 0, 0], [141, 1, 2, 1], [255, 255, 0, 0]),
            line([128, 0, 0, 0], [0, 0, 0, 0], [128, 0, 0, 0]),
            "nonsense\n".to_owned(),
        ];
        let own = OwnNetwork { neighbours: neighbours(&routes.concat()), ..OwnNetwork::default() };
        for (address, is_own) in [
            ("141.1.2.77", true),
            ("::ffff:141.1.2.1", true),
            ("141.1.3.1", false),
            ("141.9.0.1", false),
            ("200.1.1.1", false),
        ] {
            assert_eq!(own.holds(address.parse().unwrap()), is_own, "{address}");
        }
    }
}
