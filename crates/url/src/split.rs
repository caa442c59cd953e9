//! Sites so large that their URLs are spread over slices.
//!
//! ```text
//!  site hash      1010 0110 …                     of a site that is split by two bits, a URL whose hash begins with 01 …
//!  hash of SURT   01 ─┐
//!  place          11 ◀┘ 10 0110 …                 … is filed here: its key begins with this instead of the site's hash
//! ```
//! So the places of a site lie as far apart as they can, each of them in a slice of its own as long as slices are numbered by no fewer bits. One of
//! them is the site's hash itself: its home. What a segment holds says which place it is of: the half-slice of a segment has the top bits
//! of the place, and the others are the site's ([`Key::in_place`]). So nobody needs the table to read a key off a record, and
//! doubling the slices changes none.

use std::collections::BTreeMap;

use crate::Key;
use crate::limits::SPLIT_BITS_MAX;

/// How a site is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Two to the power of so many places.
    pub bits: u8,
    /// What is heard of from then on goes to its place, in milliseconds since 1970.
    pub since_ms: u64,
}

/// The sites that are split, by their hashes. Splits are few, so whoever needs them has them all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splits {
    sites: BTreeMap<u32, Split>,
}

impl Splits {
    /// Takes in a split. A site is split once: of two that are told the earlier counts, and of two of one time the one with fewer bits, so that
    /// all who heard of both agree.
    pub fn add(&mut self, site: u32, split: Split) {
        if split.bits == 0 || split.bits > SPLIT_BITS_MAX {
            return;
        }
        let order = |split: &Split| (split.since_ms, split.bits);
        let known = self.sites.entry(site).or_insert(split);
        if order(&split) < order(known) {
            *known = split;
        }
    }

    /// Whether no site is split.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Split)> + '_ {
        self.sites.iter().map(|(site, split)| (*site, *split))
    }

    /// How a site is split, if it is.
    pub fn of(&self, site: u32) -> Option<Split> {
        self.sites.get(&site).copied()
    }

    /// Where a URL goes that is heard of now for the first time, by its key at home.
    pub fn place(&self, key: &Key, now_ms: i64) -> u32 {
        let home = key.site_hash();
        match self.of(home) {
            Some(split) if u64::try_from(now_ms).is_ok_and(|now_ms| now_ms >= split.since_ms) => {
                place_in(home, key, split)
            }
            _ => home,
        }
    }

    /// All places of a site, its home first.
    pub fn places(&self, site: u32) -> Vec<u32> {
        let count = self.of(site).map_or(1, |split| 1u32 << split.bits);
        let shift = 32 - self.of(site).map_or(0, |split| u32::from(split.bits));
        (0..count).map(|number| site ^ number.checked_shl(shift).unwrap_or(0)).collect()
    }

    /// Where captures of a URL may be filed: at home, and since its site was split elsewhere. What is fetched on the way to others
    /// (robots.txt, names) is filed with them, so it may be anywhere.
    pub fn candidates(&self, key: &Key) -> Vec<u32> {
        let home = key.site_hash();
        let Some(split) = self.of(home) else { return vec![home] };
        if is_on_the_way(key.surt()) {
            return self.places(home);
        }
        match place_in(home, key, split) {
            place if place == home => vec![home],
            place => vec![home, place],
        }
    }
}

fn place_in(home: u32, key: &Key, split: Split) -> u32 {
    let digest = blake3::hash(key.surt().as_bytes());
    let hash = digest.as_bytes().first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
    let kept = 32 - u32::from(split.bits);
    home ^ hash.checked_shr(kept).and_then(|top| top.checked_shl(kept)).unwrap_or(0)
}

/// What is fetched so that something else can be.
fn is_on_the_way(surt: &str) -> bool {
    surt.ends_with(")/robots.txt") || surt.starts_with("dns:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits(bits: u8) -> (Splits, u32) {
        let site = crate::key::hash_of_site("bees.example");
        let mut splits = Splits::default();
        splits.add(site, Split { bits, since_ms: 1_000 });
        (splits, site)
    }

    #[test]
    fn places_of_a_site_lie_in_slices_of_their_own_and_one_of_them_is_its_home() {
        let (splits, site) = splits(3);
        let places = splits.places(site);
        assert_eq!((places.len(), places[0]), (8, site));
        let mut slices: Vec<u32> = places.iter().map(|place| place >> 29).collect();
        slices.sort_unstable();
        assert_eq!(slices, (0..8).collect::<Vec<_>>());
        assert!(places.iter().all(|place| place << 3 == site << 3), "only the top bits differ");
        assert_eq!(splits.places(site ^ 1), [site ^ 1], "other sites are where they were");
    }

    #[test]
    fn new_urls_are_spread_and_others_stay_where_they_are() {
        let (splits, site) = splits(2);
        let mut counts = BTreeMap::new();
        for number in 0..4_000 {
            let key = Key::of(&format!("http://www.bees.example/page/{number}"));
            assert_eq!(splits.place(&key, 999), site, "not yet");
            let place = splits.place(&key, 1_000);
            assert!(splits.candidates(&key).contains(&place) && splits.candidates(&key)[0] == site);
            assert_eq!(splits.place(&Key::of(&format!("https://bees.example/page/{number}")), 1_000), place);
            *counts.entry(place).or_insert(0) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), {
            let mut places = splits.places(site);
            places.sort_unstable();
            places
        });
        assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
        let wasps = Key::of("http://wasps.example/");
        assert_eq!(splits.place(&wasps, 5_000), wasps.site_hash());
        assert_eq!(splits.candidates(&Key::of("http://bees.example/robots.txt")).len(), 4);
    }

    #[test]
    fn who_hears_of_splits_in_any_order_comes_to_the_same() {
        let told = [(3, 500), (2, 400), (5, 400), (0, 1), (40, 1)].map(|(bits, since_ms)| Split { bits, since_ms });
        let (mut one, mut other) = (Splits::default(), Splits::default());
        told.iter().for_each(|split| one.add(7, *split));
        told.iter().rev().for_each(|split| other.add(7, *split));
        assert_eq!((one.of(7), &one), (Some(Split { bits: 2, since_ms: 400 }), &other));
    }

    #[test]
    fn the_segment_of_a_record_says_where_it_is_filed() {
        let (splits, site) = splits(3);
        for number in 0..100 {
            let key = Key::of(&format!("http://bees.example/{number}"));
            let place = splits.place(&key, 2_000);
            // A half-slice of 256 slices, and the same after doubling.
            for half_bits in [9, 10] {
                let top = place >> (32 - half_bits);
                assert_eq!(key.clone().in_place(top, half_bits).site_hash(), place);
            }
            let home = key.clone().in_place(site >> 23, 9);
            assert_eq!(home, key, "at home it is as ever");
        }
    }
}
