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
    sites: BTreeMap<u32, Told>,
}

/// What was told of one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    /// The one that counts.
    split: Split,
    /// Bit `n`: somebody said that it is split by `n` bits. Until both halves of a network had heard of both, something may have been filed so.
    bits: u16,
}

const _: () = assert!((SPLIT_BITS_MAX as u32) < u16::BITS);

impl Told {
    fn each(self) -> impl Iterator<Item = u8> {
        (1..=SPLIT_BITS_MAX).filter(move |bits| self.bits >> bits & 1 == 1)
    }

    /// All places lie this close together: those of fewer bits are among those of more.
    fn most(self) -> u8 {
        self.each().last().unwrap_or(0)
    }
}

impl Splits {
    /// Takes in a split. A site is split once: of two that are told the earlier counts, and of two of one time the one with fewer bits, so that
    /// all who heard of both agree. Where the other had put something that is found all the same.
    pub fn add(&mut self, site: u32, split: Split) {
        if split.bits == 0 || split.bits > SPLIT_BITS_MAX {
            return;
        }
        let order = |split: &Split| (split.since_ms, split.bits);
        let known = self.sites.entry(site).or_insert(Told { split, bits: 0 });
        known.bits |= 1 << split.bits;
        if order(&split) < order(&known.split) {
            known.split = split;
        }
    }

    /// Takes in all that others know.
    pub fn add_all(&mut self, others: &Splits) {
        for (site, split) in others.iter() {
            self.add(site, split);
            others.also(site).for_each(|bits| self.add_also(site, bits));
        }
    }

    /// By how many bits a site is said to be split beside those that count.
    pub fn also(&self, site: u32) -> impl Iterator<Item = u8> + '_ {
        let told = self.sites.get(&site).into_iter();
        told.flat_map(|told| told.each().filter(move |bits| *bits != told.split.bits))
    }

    /// Somebody said, too late, that it is split by so many bits.
    pub fn add_also(&mut self, site: u32, bits: u8) {
        if self.sites.contains_key(&site) {
            self.add(site, Split { bits, since_ms: u64::MAX });
        }
    }

    /// Whether no site is split.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Split)> + '_ {
        self.sites.iter().map(|(site, told)| (*site, told.split))
    }

    /// How a site is split, if it is.
    pub fn of(&self, site: u32) -> Option<Split> {
        self.sites.get(&site).map(|told| told.split)
    }

    /// Where a URL goes that is heard of now for the first time, by its key at home.
    pub fn place(&self, key: &Key, now_ms: i64) -> u32 {
        let home = key.site_hash();
        match self.of(home) {
            Some(split) if u64::try_from(now_ms).is_ok_and(|now_ms| now_ms >= split.since_ms) => {
                place_in(home, key, split.bits)
            }
            _ => home,
        }
    }

    /// All places of a site, its home first.
    pub fn places(&self, site: u32) -> Vec<u32> {
        let bits = self.bits_of_places(site);
        (0..1u32 << bits).map(|number| site ^ number.checked_shl(32 - bits).unwrap_or(0)).collect()
    }

    /// Whether something of a site may be filed there.
    pub fn is_place(&self, site: u32, place: u32) -> bool {
        (site ^ place) << self.bits_of_places(site) == 0
    }

    fn bits_of_places(&self, site: u32) -> u32 {
        self.sites.get(&site).map_or(0, |told| told.most()).into()
    }

    /// Where captures of a URL may be filed: at home, and since its site was split elsewhere; last where it goes now. What is fetched on the way
    /// to others (robots.txt, names) is filed with them, so it may be anywhere.
    pub fn candidates(&self, key: &Key) -> Vec<u32> {
        let home = key.site_hash();
        let Some(told) = self.sites.get(&home) else { return vec![home] };
        if is_on_the_way(key.surt()) {
            return self.places(home);
        }
        let (mut places, now) = (vec![home], place_in(home, key, told.split.bits));
        for place in told.each().map(|bits| place_in(home, key, bits)).filter(|place| *place != now).chain([now]) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

fn place_in(home: u32, key: &Key, bits: u8) -> u32 {
    let digest = blake3::hash(key.surt().as_bytes());
    let hash = digest.as_bytes().first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
    let kept = 32 - u32::from(bits);
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
        assert_eq!(one.also(7).collect::<Vec<_>>(), [3, 5]);
        let mut all = Splits::default();
        all.add(7, told[0]);
        all.add_all(&other);
        other.add_all(&all);
        assert_eq!((&all, &other), (&one, &one));
        all.add_also(8, 3);
        assert_eq!(all, one, "of a site that is not split there is nothing more to say");
    }

    #[test]
    fn what_was_filed_before_both_halves_of_a_network_heard_of_both_splits_is_found() {
        let (late, site) = splits(3);
        let mut both = late.clone();
        both.add(site, Split { bits: 2, since_ms: 500 });
        assert_eq!(both.of(site), Some(Split { bits: 2, since_ms: 500 }), "the earlier counts");
        assert_eq!(both.places(site), late.places(site), "four of these eight were not its own");
        for number in 0..200 {
            let key = Key::of(&format!("http://bees.example/{number}"));
            let candidates = both.candidates(&key);
            assert!(candidates.contains(&late.place(&key, 1_000)), "{number}: {candidates:x?}");
            assert_eq!(candidates[0], site);
            let now = both.place(&key, 1_000);
            assert!(candidates.last() == Some(&now) || now == site && candidates.len() < 3, "{number}");
            assert!(candidates.len() <= 3 && candidates.iter().all(|place| both.is_place(site, *place)));
        }
        let places = both.places(site);
        assert!((0..16).all(|top| both.is_place(site, site ^ top << 28) == places.contains(&(site ^ top << 28))));
        assert!(!both.is_place(site, site ^ 1) && both.is_place(5, 5) && !both.is_place(5, 5 ^ 1 << 31));
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
