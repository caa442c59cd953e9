//! Which network an address belongs to. By default its /24 or /48; a table of announced prefixes, a file that can be replaced, says
//! it better: lines of `PREFIX NUMBER`, as in `192.0.2.0/24 64500`, `#` begins a remark.

use std::net::IpAddr;

use crate::trust::Network;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// First address (as a number of 128 bits), length of the prefix, whose it is; ordered, longer prefixes last.
    prefixes: Vec<(u128, u32, u64)>,
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
            let read = || -> Option<(u128, u32, u64)> {
                let (prefix, whose) = line.split_once(char::is_whitespace)?;
                let (address, bits) = prefix.split_once('/')?;
                let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
                let (most, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
                let whose = whose.trim().trim_start_matches("AS").parse().ok()?;
                (bits <= most).then(|| (number(address) & mask(bits + before), bits + before, whose))
            };
            match read() {
                Some(prefix) if prefixes.len() < PREFIXES_MAX => prefixes.push(prefix),
                _ => wrong += 1,
            }
        }
        prefixes.sort_unstable();
        (Networks { prefixes }, wrong)
    }

    /// The network of an address.
    pub fn of(&self, address: IpAddr) -> Network {
        let address = number(address);
        // The longest prefix that holds it begins at or before it; a table nests a few levels deep at most.
        let upto = self.prefixes.partition_point(|(first, ..)| *first <= address);
        let found =
            self.prefixes[..upto].iter().rev().take(4_096).find(|(first, bits, _)| address & mask(*bits) == *first);
        match found {
            Some((_, _, whose)) => *whose,
            None => {
                let bits = if address >> 32 == 0xffff { 96 + 24 } else { 48 };
                let bytes = (address & mask(bits)).to_be_bytes();
                // Not a number that a table would have.
                xxhash_rust::xxh3::xxh3_64(&bytes) | 1 << 63
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_it_better_than_the_usual_prefix() {
        let of = |networks: &Networks, text: &str| networks.of(text.parse().unwrap());
        let none = Networks::default();
        assert_eq!(of(&none, "192.0.2.1"), of(&none, "192.0.2.254"));
        assert_ne!(of(&none, "192.0.2.1"), of(&none, "192.0.3.1"));
        assert_eq!(of(&none, "2001:db8:1:2::1"), of(&none, "2001:db8:1:ffff::1"));
        assert_eq!(of(&none, "::ffff:192.0.2.7"), of(&none, "192.0.2.1"));
        let text = "# ours\n192.0.0.0/16 AS64500\n192.0.2.0/24 64501 \n2001:db8::/32 64502\nnonsense\n1.2.3.4/99 1\n";
        let (table, wrong) = Networks::parse(text);
        assert_eq!(wrong, 2);
        assert_eq!(
            (of(&table, "192.0.9.1"), of(&table, "192.0.2.1"), of(&table, "2001:db8:7::1")),
            (64500, 64501, 64502)
        );
        assert_ne!(of(&table, "198.51.100.1"), 64500);
    }
}
