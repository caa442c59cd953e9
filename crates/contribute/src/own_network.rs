//! The network that this machine is in: what answers there is its owner's, also where its addresses are public ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Where Linux lists the addresses of this machine: address, number of its interface, length of its prefix, scope, flags, name.
const LISTED: &str = "/proc/net/if_inet6";
/// No network of an owner is smaller, whatever its addresses say.
const PREFIX_BITS_MAX: u32 = 64;

/// Prefixes and addresses of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnNetwork {
    prefixes: Vec<(Ipv6Addr, u32)>,
    /// That of this machine, and that of its router as others see it.
    addresses: [Option<Ipv4Addr>; 2],
}

impl OwnNetwork {
    /// As it is now: machines move.
    pub fn look() -> OwnNetwork {
        let listed = std::fs::read_to_string(LISTED).unwrap_or_default();
        OwnNetwork { prefixes: prefixes(&listed), addresses: [address(), None] }
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
            IpAddr::V4(address) => self.addresses.contains(&Some(address)),
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
        let own = OwnNetwork { prefixes: prefixes(listed), addresses };
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
}
