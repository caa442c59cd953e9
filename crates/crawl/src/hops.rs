//! How far a URL is from a seed: pages in between, and redirects in a row. Both travel in one number of 16 bits.
//!
//! ```text
//!  | depth 12 | redirects 4 |        a smaller number is nearer
//! ```

use crate::limits::{DEPTH_MAX, REDIRECT_HOPS_MAX};

/// The way from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hops {
    /// Links followed from page to page.
    pub depth: u16,
    /// Redirects in a row that led here.
    pub redirects: u8,
}

const _: () = assert!(REDIRECT_HOPS_MAX < 16 && DEPTH_MAX < 1 << 12);

impl Hops {
    /// A seed.
    pub const SEED: Hops = Hops { depth: 0, redirects: 0 };

    /// One link further.
    pub fn deeper(self) -> Hops {
        Hops { depth: (self.depth + 1).min(DEPTH_MAX), redirects: 0 }
    }

    /// What belongs to the page: as deep as the page itself.
    pub fn beside(self) -> Hops {
        Hops { redirects: 0, ..self }
    }

    /// Where a redirect leads; `None` when it is one too many.
    pub fn redirected(self) -> Option<Hops> {
        (self.redirects < REDIRECT_HOPS_MAX).then_some(Hops { redirects: self.redirects + 1, ..self })
    }

    /// As one number.
    pub fn pack(self) -> u16 {
        self.depth << 4 | u16::from(self.redirects)
    }

    /// The number taken apart.
    pub fn unpack(packed: u16) -> Hops {
        Hops { depth: packed >> 4, redirects: (packed & 15) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_redirects_ends() {
        let mut hops = Hops { depth: 3, redirects: 0 };
        for _ in 0..REDIRECT_HOPS_MAX {
            hops = hops.redirected().unwrap();
            assert_eq!(Hops::unpack(hops.pack()), hops);
        }
        assert_eq!(hops.redirected(), None);
        assert_eq!(hops.deeper(), Hops { depth: 4, redirects: 0 });
    }
}
