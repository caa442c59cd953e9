//! Which network an address belongs to. By default its /24 or /48; a table of announced prefixes, a file that can be replaced, says
//! it better: lines of `PREFIX NUMBER PLACE`, as in `192.0.2.0/24 64500 DE`; the place may be left out, `#` begins a remark.

use std::net::IpAddr;

use crate::trust::{Network, Place};

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// First address (as a number of 128 bits), length of the prefix, whose it is and where; ordered, longer prefixes last.
    prefixes: Vec<(u128, u32, u64, Place)>,
}

/// Prefixes in a table.
const PREFIXES_MAX: usize = 4_000_000;

fn number(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

impl Networks {
    /// Reads a table. Lines that are none are counted, not fatal.
    pub fn parse(text: &str) -> (Networks, usize) {
        let (mut prefixes, mut wrong) = (Vec::new(), 0);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let read = || -> Option<(u128, u32, u64, Place)> {
                let mut words = line.split_whitespace();
                let (prefix, whose) = (words.next()?, words.next()?);
                let place = match words.next().map(str::as_bytes) {
                    None => Place::default(),
                    Some([one, two]) if one.is_ascii_alphabetic() && two.is_ascii_alphabetic() => {
                        Place([one.to_ascii_uppercase(), two.to_ascii_uppercase()])
                    }
                    Some(_) => return None,
                };
                let (address, bits) = prefix.split_once('/')?;
                let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
                let (most, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
                let whose = whose.trim_start_matches("AS").parse().ok()?;
                (bits <= most).then(|| (number(address) & mask(bits + before), bits + before, whose, place))
            };
            match read() {
                Some(prefix) if prefixes.len() < PREFIXES_MAX => prefixes.push(prefix),
                _ => wrong += 1,
            }
        }
        prefixes.sort_unstable();
        (Networks { prefixes }, wrong)
    }

    /// The network of an address, and its place as far as the table has it.
    pub fn of(&self, address: IpAddr) -> (Network, Place) {
        let address = number(address);
        // The longest prefix that holds it begins at or before it; a table nests a few levels deep at most.
        let upto = self.prefixes.partition_point(|(first, ..)| *first <= address);
        let found =
            self.prefixes[..upto].iter().rev().take(4_096).find(|(first, bits, ..)| address & mask(*bits) == *first);
        match found {
            Some((_, _, whose, place)) => (*whose, *place),
            None => (prefix(address, if is_v4(address) { 96 + 24 } else { 48 }), Place::default()),
        }
    }
}

/// The wide network around an address, whatever a table says: what one owner may have whole.
pub fn around(address: IpAddr) -> Network {
    let address = number(address);
    prefix(address, if is_v4(address) { 96 + 16 } else { 32 })
}

fn is_v4(address: u128) -> bool {
    address >> 32 == 0xffff
}

/// A prefix by a number, and not by one that a table would have.
fn prefix(address: u128, bits: u32) -> Network {
    let bytes = (address & mask(bits)).to_be_bytes();
    xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, bits.into()) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_networks_are_around_narrow_ones() {
        let of = |text: &str| around(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.99.1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.1.2.1"));
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:ffff:7::1"));
        assert_ne!(of("2001:db8::1"), of("2001:db9::1"));
        // One whose narrow network begins as the wide one does is not the same.
        let narrow = Networks::default().of("2001:db8::1".parse().unwrap()).0;
        assert_ne!(of("2001:db8::1"), narrow);
    }

    #[test]
    fn a_table_says_it_better_than_the_usual_prefix() {
        let of = |networks: &Networks, text: &str| networks.of(text.parse().unwrap()).0;
        let none = Networks::default();
        assert_eq!(of(&none, "192.0.2.1"), of(&none, "192.0.2.254"));
        assert_ne!(of(&none, "192.0.2.1"), of(&none, "192.0.3.1"));
        assert_eq!(of(&none, "2001:db8:1:2::1"), of(&none, "2001:db8:1:ffff::1"));
        assert_eq!(of(&none, "::ffff:192.0.2.7"), of(&none, "192.0.2.1"));
        let text =
            "# ours\n192.0.0.0/16 AS64500 de\n192.0.2.0/24 64501 \n2001:db8::/32 64502\nnonsense\n1.2.3.4/99 1\n";
        let (table, wrong) = Networks::parse(text);
        assert_eq!(wrong, 2);
        assert_eq!(
            (of(&table, "192.0.9.1"), of(&table, "192.0.2.1"), of(&table, "2001:db8:7::1")),
            (64500, 64501, 64502)
        );
        assert_ne!(of(&table, "198.51.100.1"), 64500);
        let place = |text: &str| table.of(text.parse().unwrap()).1.to_string();
        assert_eq!((place("192.0.9.1"), place("192.0.2.1")), ("DE".into(), String::new()));
    }
}
