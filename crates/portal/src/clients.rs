//! How often each client asks. Pure: the time comes in.

use crate::limits::{BURST_SECONDS, CLIENTS_MAX};
use std::collections::HashMap;
use std::net::IpAddr;

/// Who counts as one client: an IPv4 address, or the 64-bit network of an IPv6 address, which one household has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Client(u128);

impl Client {
    fn of(address: IpAddr) -> Client {
        Client(match address.to_canonical() {
            IpAddr::V4(four) => u128::from(four.to_bits()),
            IpAddr::V6(six) => six.to_bits() & !u128::from(u64::MAX) | 1 << 63,
        })
    }
}

/// What each client has left of its allowance.
pub struct Clients {
    per_second: u64,
    /// When the allowance of a client will be whole again, in milliseconds of the portal's clock.
    whole_at: HashMap<Client, u64>,
}

impl Clients {
    /// At most so many requests a second for each.
    pub fn new(per_second: u32) -> Clients {
        Clients { per_second: u64::from(per_second), whole_at: HashMap::new() }
    }

    /// Takes one request of a client. `Err`: it asked too often; seconds until it may ask again.
    pub fn take(&mut self, address: IpAddr, now_ms: u64) -> Result<(), u64> {
        if self.per_second == 0 {
            return Ok(());
        }
        // Counted in thousandths of a millisecond, so that a pace of a few thousand a second is exact.
        let (now, cost) = (now_ms * 1000, 1_000_000 / self.per_second);
        let burst = u64::from(BURST_SECONDS) * 1_000_000;
        if self.whole_at.len() >= CLIENTS_MAX && !self.whole_at.contains_key(&Client::of(address)) {
            self.forget(now);
        }
        let whole_at = self.whole_at.entry(Client::of(address)).or_insert(now);
        let after = (*whole_at).max(now) + cost;
        if after > now + burst {
            return Err((after - now - burst).div_ceil(1_000_000).max(1));
        }
        *whole_at = after;
        Ok(())
    }

    /// Forgets everybody whose allowance is whole; if that is nobody, half of them.
    fn forget(&mut self, now: u64) {
        self.whole_at.retain(|_, whole_at| *whole_at > now);
        if self.whole_at.len() >= CLIENTS_MAX {
            let mut keep = false;
            self.whole_at.retain(|_, _| {
                keep = !keep;
                keep
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_the_pace() {
        let mut clients = Clients::new(10);
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let burst = 10 * u64::from(BURST_SECONDS);
        for _ in 0..burst {
            assert_eq!(clients.take(one, 0), Ok(()));
        }
        assert_eq!(clients.take(one, 0), Err(1));
        assert_eq!(clients.take(other, 0), Ok(()), "others are not meant");
        assert_eq!(clients.take(one, 99), Err(1));
        assert_eq!(clients.take(one, 100), Ok(()));
        assert_eq!(clients.take(one, 100), Err(1));
    }

    #[test]
    fn one_household_is_one_client() {
        let mut clients = Clients::new(1);
        let address = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        for last in 0..BURST_SECONDS as u16 {
            assert_eq!(clients.take(address(last), 0), Ok(()));
        }
        assert_eq!(clients.take(address(99), 0), Err(1));
        assert_eq!(clients.take("2001:db8:0:2::1".parse().unwrap(), 0), Ok(()));
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(Client::of(mapped), Client::of("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn the_table_does_not_grow_for_ever() {
        let mut clients = Clients::new(1);
        for number in 0..3 * CLIENTS_MAX as u32 {
            let _ = clients.take(IpAddr::from(number.to_be_bytes()), 0);
        }
        assert!(clients.whole_at.len() <= CLIENTS_MAX);
    }
}
