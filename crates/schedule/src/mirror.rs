//! Farms of mirrors: many sites at one address that show the same pages, such as parked domains.
//!
//! A site is a *mirror* when nearly all of its first pages were seen before, word for word, from another site of its address. A
//! few mirrors are what they are: a company's three domains, a documentation and its copy. Where there are several, the address is
//! a farm, and every mirror in it has had its share with the pages by which it was known; the first site, which the others
//! repeat, has no such bound, and neither has a site that only shares a page or two with its neighbours.

use std::collections::HashMap;

use crate::id::{AddressKey, SiteId};
use crate::limits::{MIRROR_PAGES, MIRROR_PAGES_LOOKED, MIRROR_PERCENT, MIRROR_SITES, MIRRORS_KEPT_MAX};

/// What is known of mirrors. Kept in memory only: what was forgotten is learned again from a few pages.
#[derive(Debug, Default)]
pub struct Mirrors {
    /// Who showed a page first, at each address.
    first: HashMap<(AddressKey, u64), SiteId>,
    sites: HashMap<SiteId, Member>,
    /// Mirrors at each address.
    farms: HashMap<AddressKey, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    address: AddressKey,
    pages: u32,
    copies: u32,
    is_mirror: bool,
}

impl Mirrors {
    /// A page of a site came from an address; `digest`: what its text comes to.
    pub fn learn(&mut self, address: AddressKey, site: SiteId, digest: u64) {
        if !address.is_known() {
            return;
        }
        let fresh = Member { address, pages: 0, copies: 0, is_mirror: false };
        let member = self.sites.entry(site).or_insert(fresh);
        if member.pages >= MIRROR_PAGES_LOOKED || member.is_mirror {
            return;
        }
        member.pages += 1;
        member.copies += u32::from(*self.first.entry((address, digest)).or_insert(site) != site);
        if member.pages >= MIRROR_PAGES && member.copies * 100 >= member.pages * MIRROR_PERCENT {
            member.is_mirror = true;
            *self.farms.entry(address).or_default() += 1;
        }
        if self.first.len() > MIRRORS_KEPT_MAX || self.sites.len() > MIRRORS_KEPT_MAX {
            *self = Mirrors::default();
        }
    }

    /// Has the site had its share of a farm?
    pub fn is_spent(&self, site: SiteId) -> bool {
        self.sites.get(&site).is_some_and(|member| {
            member.is_mirror && self.farms.get(&member.address).is_some_and(|mirrors| *mirrors >= MIRROR_SITES)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> AddressKey {
        AddressKey::of(std::net::Ipv4Addr::new(192, 0, 2, number).into())
    }

    /// So many sites at an address, each with the same pages.
    fn farm(mirrors: &mut Mirrors, sites: u32, pages: u64) {
        for site in 0..sites {
            (0..pages).for_each(|page| mirrors.learn(address(1), SiteId(site), page));
        }
    }

    #[test]
    fn the_mirrors_of_a_farm_have_few_pages_and_the_first_site_all() {
        let mut mirrors = Mirrors::default();
        farm(&mut mirrors, 20, u64::from(MIRROR_PAGES));
        assert!(!mirrors.is_spent(SiteId(0)), "the others repeat it");
        assert!((1..20).all(|site| mirrors.is_spent(SiteId(site))));
    }

    #[test]
    fn a_site_may_have_a_few_copies() {
        let mut mirrors = Mirrors::default();
        farm(&mut mirrors, MIRROR_SITES, 100);
        assert!((0..MIRROR_SITES).all(|site| !mirrors.is_spent(SiteId(site))));
    }

    #[test]
    fn sites_that_share_some_pages_or_no_address_are_nobodys_mirrors() {
        let mut shared = Mirrors::default();
        for site in 0..50 {
            (0..20).for_each(|page| {
                shared.learn(address(1), SiteId(site), if page % 2 == 0 { 0 } else { 1_000 * u64::from(site) + page })
            });
        }
        assert!((0..50).all(|site| !shared.is_spent(SiteId(site))), "half of their pages are their own");
        let mut apart = Mirrors::default();
        for site in 0..50 {
            (0..20).for_each(|page| apart.learn(address(site as u8), SiteId(site), page));
            (0..20).for_each(|page| apart.learn(AddressKey::UNKNOWN, SiteId(100 + site), page));
        }
        assert!((0..150).all(|site| !apart.is_spent(SiteId(site))));
        let mut one_text = Mirrors::default();
        (0..50).for_each(|site| (0..3).for_each(|_| one_text.learn(address(1), SiteId(site), 7)));
        assert!((0..50).all(|site| !one_text.is_spent(SiteId(site))), "too few pages to tell");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut mirrors = Mirrors::default();
        for site in 0..MIRRORS_KEPT_MAX as u32 + 10 {
            mirrors.learn(address(1), SiteId(site), u64::from(site));
        }
        assert!(mirrors.first.len() <= MIRRORS_KEPT_MAX + 1 && mirrors.sites.len() <= MIRRORS_KEPT_MAX + 1);
    }
}
