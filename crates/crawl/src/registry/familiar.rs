//! Known URLs that were asked for lately: most links of a page stand on the page before, too.
//!
//! Exact like everything here, because the text itself is compared; and true for as long as the registry is open, because what is
//! known never becomes unknown and keeps its number.

use super::EntryNumber;
use super::limits::{FAMILIAR_URL_BYTES_MAX, FAMILIAR_URLS};
use xxhash_rust::xxh3::xxh3_64;

pub(super) struct Familiar {
    /// Each URL has one place, which it may lose to another at any time.
    places: Vec<Place>,
}

#[derive(Clone, Default)]
struct Place {
    crawl: u16,
    entry: EntryNumber,
    /// Empty: nobody.
    url: String,
}

impl Default for Familiar {
    fn default() -> Familiar {
        Familiar { places: vec![Place::default(); FAMILIAR_URLS] }
    }
}

impl Familiar {
    pub fn find(&self, crawl: u16, url: &str) -> Option<EntryNumber> {
        let place = &self.places[place_of(url)];
        (place.crawl == crawl && place.url == url && !url.is_empty()).then_some(place.entry)
    }

    /// This URL is known under this number.
    pub fn put(&mut self, crawl: u16, url: &str, entry: EntryNumber) {
        if url.len() > FAMILIAR_URL_BYTES_MAX {
            return;
        }
        let place = &mut self.places[place_of(url)];
        (place.crawl, place.entry) = (crawl, entry);
        place.url.clear();
        place.url.push_str(url);
    }

    pub fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<Place>() + self.places.iter().map(|place| place.url.capacity()).sum::<usize>()
    }
}

fn place_of(url: &str) -> usize {
    (xxh3_64(url.as_bytes()) % FAMILIAR_URLS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_in_the_same_crawl_is_found() {
        let mut familiar = Familiar::default();
        assert_eq!(familiar.find(0, ""), None);
        for number in 0..5_000 {
            familiar.put(1, &format!("http://a.test/{number}"), number);
        }
        let found = (0..5_000).filter(|number| {
            let url = format!("http://a.test/{number}");
            assert_eq!(familiar.find(2, &url), None);
            familiar.find(1, &url).inspect(|entry| assert_eq!(entry, number)).is_some()
        });
        assert!((FAMILIAR_URLS / 2..=FAMILIAR_URLS).contains(&found.count()));
        assert_eq!(familiar.find(1, "http://a.test/5000"), None);
    }

    #[test]
    fn long_urls_take_no_room() {
        let mut familiar = Familiar::default();
        let long = "x".repeat(FAMILIAR_URL_BYTES_MAX + 1);
        familiar.put(1, &long, 7);
        assert_eq!(familiar.find(1, &long), None);
        (0..10_000).for_each(|number| familiar.put(1, &format!("{number:0>256}"), number));
        assert!(familiar.memory_bytes() < FAMILIAR_URLS * (2 * FAMILIAR_URL_BYTES_MAX + 64));
    }
}
