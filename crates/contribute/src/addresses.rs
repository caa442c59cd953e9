//! How often an address is connected to, whatever names lead there. Pure: the time comes in.
//!
//! Sites are told apart by their names, and names cost whoever wants to do harm little: a thousand of them may lead to one machine that he
//! wishes ill. An address cannot be had a second time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::limits::{ADDRESS_GAP_MS, ADDRESSES_MAX};

/// When each address may be connected to next, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    next_ms: HashMap<IpAddr, u64>,
}

impl Addresses {
    /// One more connection to this address: when it may be used.
    pub fn turn(&mut self, address: IpAddr, now_ms: u64) -> u64 {
        if self.next_ms.len() >= ADDRESSES_MAX {
            self.next_ms.retain(|_, next_ms| *next_ms > now_ms);
        }
        let next_ms = self.next_ms.entry(whose(address)).or_default();
        let at_ms = now_ms.max(*next_ms);
        *next_ms = at_ms + ADDRESS_GAP_MS;
        at_ms
    }
}

/// Of IPv6 a machine has as many addresses as it likes within 64 bits.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_of_one_machine_are_visited_no_faster_than_one() {
        let mut addresses = Addresses::default();
        let mut turn = |address: &str, now_ms| addresses.turn(address.parse().unwrap(), now_ms);
        assert_eq!(turn("192.0.2.1", 1_000), 1_000);
        assert_eq!(turn("192.0.2.1", 1_000), 1_000 + ADDRESS_GAP_MS);
        assert_eq!(turn("::ffff:192.0.2.1", 1_001), 1_000 + 2 * ADDRESS_GAP_MS);
        assert_eq!(turn("192.0.2.2", 1_001), 1_001, "another one waits for nobody");
        assert_eq!(turn("2001:db8::1", 0), 0);
        assert_eq!(turn("2001:db8::ffff:1", 0), ADDRESS_GAP_MS);
        assert_eq!(turn("192.0.2.1", 100_000), 100_000, "nothing is saved up or owed");
        for number in 0..2 * ADDRESSES_MAX as u32 {
            addresses.turn(IpAddr::V4(number.into()), 200_000 + 1_000 * u64::from(number));
        }
        assert!(addresses.next_ms.len() <= ADDRESSES_MAX);
    }
}
