//! URLs that differ only in numbers and tokens have one shape. A shape may be visited as often as it brings something.
//!
//! ```text
//!   /calendar/2031/07?view=day   ──▶  /calendar/0/0?*   and   /calendar/0/0?view
//!   /t/9f86d081884c7d65.html     ──▶  /t/x.html
//! ```
//! Budget: 32 visits, and four more for each distinct text. A forum with a hundred thousand threads never feels it. Nor does a
//! closed set of pages that differ only in numbers: a shape is spent only while its pages lead to ever more of their kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skep_url::Url;

use super::novelty::{hash, host_at};
use crate::limits;

/// The shapes of one site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Shapes {
    shapes: BTreeMap<u64, Shape>,
    visits: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Shape {
    visits: u32,
    /// Visits that led to URLs of this shape that nobody had heard of.
    extensions: u32,
    /// One byte per register of a HyperLogLog over the digests; how many there were, to within a sixth.
    registers: Vec<u8>,
}

const REGISTERS: usize = 64;

impl Shape {
    fn learn(&mut self, digest: u64, extends: bool) {
        self.visits = self.visits.saturating_add(1);
        self.extensions = self.extensions.saturating_add(u32::from(extends));
        self.registers.resize(REGISTERS, 0);
        let mixed = hash(digest.to_le_bytes());
        let register = (mixed % REGISTERS as u64) as usize;
        let rank = ((mixed / REGISTERS as u64) | 1 << 57).trailing_zeros() as u8 + 1;
        self.registers[register] = self.registers[register].max(rank);
    }

    fn distinct(&self) -> u32 {
        let m = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| (-f64::from(*rank)).exp2()).sum();
        let estimate = 0.709 * m * m / sum.max(f64::MIN_POSITIVE);
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        let counted = if estimate <= 2.5 * m && empty > 0 { m * (m / empty as f64).ln() } else { estimate };
        counted.min(f64::from(u32::MAX)) as u32
    }

    fn spent(&self) -> bool {
        self.visits >= limits::SHAPE_VISITS
            && self.extensions >= self.visits / limits::VISITS_PER_EXTENSION
            && self.visits
                >= limits::SHAPE_VISITS.saturating_add(self.distinct().saturating_mul(limits::VISITS_PER_TEXT))
    }
}

impl Shapes {
    pub fn learn(&mut self, url: &Url, digest: u64, extends: bool) {
        self.visits += 1;
        for key in keys(url.as_str()) {
            if self.shapes.len() >= limits::SHAPES_PER_SITE_MAX && !self.shapes.contains_key(&key) {
                // Shapes that are rare are no danger.
                self.shapes.retain(|_, shape| shape.visits >= limits::SHAPE_VISITS / 8);
                if self.shapes.len() >= limits::SHAPES_PER_SITE_MAX {
                    continue;
                }
            }
            self.shapes.entry(key).or_default().learn(digest, extends);
        }
    }

    pub fn spent(&self, url: &str) -> bool {
        !self.shapes.is_empty() && keys(url).any(|key| self.shapes.get(&key).is_some_and(Shape::spent))
    }

    pub fn visits(&self) -> u64 {
        self.visits
    }

    pub fn len(&self) -> usize {
        self.shapes.len()
    }
}

/// The shapes of a URL: none where nothing in it is a number, a token or a query.
pub(super) fn keys(url: &str) -> impl Iterator<Item = u64> + use<> {
    let (place, query) = match url.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (url, None),
    };
    let path = host_at(place).and_then(|host| place[host..].find('/').map(|path| host + path)).unwrap_or(0);
    // Most URLs have no shape but their own: without a digit there is neither number nor token.
    let numbered = query.is_some() || place[path..].bytes().any(|byte| byte.is_ascii_digit());
    let mut shape = Vec::new();
    if numbered {
        shape.reserve(url.len() + 1);
        shape.extend_from_slice(&place.as_bytes()[..path]);
    }
    let masked = numbered && mask(&place[path..], &mut shape);
    let plain = (masked && query.is_none()).then(|| hash(shape.iter().copied()));
    let (mut any, mut named) = (None, None);
    if let Some(query) = query {
        any = Some(hash(shape.iter().copied().chain(*b"?*")));
        let mut names: Vec<Vec<u8>> = query
            .split(['&', ';'])
            .take(limits::SHAPE_PARAMETERS_MAX)
            .map(|pair| {
                let mut name = Vec::new();
                mask(pair.split('=').next().unwrap_or_default(), &mut name);
                name
            })
            .collect();
        names.sort();
        names.dedup();
        shape.push(b'?');
        shape.extend(names.join(&b'&'));
        named = Some(hash(shape.iter().copied()));
    }
    plain.into_iter().chain(any).chain(named)
}

/// Writes the text with numbers and tokens masked; was there one?
fn mask(text: &str, out: &mut Vec<u8>) -> bool {
    let (mut left, mut masked) = (text.as_bytes(), false);
    while !left.is_empty() {
        // What stands before the next word, and the word.
        let gap = left.iter().take_while(|byte| SIGN[**byte as usize] == Sign::Other).count();
        out.extend_from_slice(&left[..gap]);
        left = &left[gap..];
        let (mut length, mut digits) = (0, 0);
        while let Some(sign @ (Sign::Letter | Sign::Digit)) = left.get(length).map(|byte| SIGN[*byte as usize]) {
            digits += usize::from(sign == Sign::Digit);
            length += 1;
        }
        let (word, rest) = left.split_at(length);
        left = rest;
        if digits == 0 {
            out.extend_from_slice(word);
        } else if is_token(word, digits) {
            masked = true;
            out.push(b'\x01');
        } else {
            masked = true;
            for piece in word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
                out.extend_from_slice(if piece[0].is_ascii_digit() { b"0" } else { piece });
            }
        }
    }
    masked
}

/// What a byte of a URL is in a shape. Every URL is looked at several times: a table is quicker than comparing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Other,
    Letter,
    Digit,
}

const SIGN: [Sign; 256] = {
    let mut signs = [Sign::Other; 256];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphabetic() {
            signs[byte] = Sign::Letter;
        } else if (byte as u8).is_ascii_digit() {
            signs[byte] = Sign::Digit;
        }
        byte += 1;
    }
    signs
};

/// Hex of eight digits or more, or a long mixture of letters and digits, so many of them: nobody's word.
fn is_token(word: &[u8], digits: usize) -> bool {
    let hex = word.len() >= 8 && word.iter().all(u8::is_ascii_hexdigit);
    (hex && digits > 0 && digits < word.len()) || (word.len() >= 16 && digits >= 3 && digits < word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("https://a.example{path}")).expect(path)
    }

    fn shapes_of(path: &str) -> Vec<u64> {
        keys(url(path).as_str()).collect()
    }

    #[test]
    fn numbers_and_tokens_make_no_new_shape_but_words_do() {
        assert_eq!(shapes_of("/c/2031/07"), shapes_of("/c/1/12"));
        assert_eq!(shapes_of("/t/9f86d081884c7d65.html"), shapes_of("/t/60303ae22b998861.html"));
        assert_eq!(shapes_of("/x;jsessionid=9f86d081884c7d65"), shapes_of("/x;jsessionid=0a86d081884c7d65"));
        assert_ne!(shapes_of("/c/2031/07"), shapes_of("/d/2031/07"));
        assert!(shapes_of("/std/struct.Vec.html").is_empty());
        assert_eq!(shapes_of("/s?a=1&b=2"), shapes_of("/s?b=1&a=7"));
        assert_eq!(shapes_of("/s?a=1")[0], shapes_of("/s?zzz=1")[0]);
        assert_ne!(shapes_of("/s?a=1")[1], shapes_of("/s?zzz=1")[1]);
    }

    #[test]
    fn the_same_text_again_and_again_spends_the_budget_and_new_text_does_not() {
        let (mut same, mut new, mut closed) = (Shapes::default(), Shapes::default(), Shapes::default());
        for n in 0..5_000_u64 {
            same.learn(&url(&format!("/c/{n}")), 7, true);
            new.learn(&url(&format!("/c/{n}")), n, true);
            closed.learn(&url(&format!("/c/{n}")), 7, n.is_multiple_of(5));
            assert!(!closed.spent(url("/c/9").as_str()), "{n}");
            if n < 30 {
                assert!(!same.spent(url("/c/9").as_str()), "{n}");
            }
            assert!(!new.spent(url("/c/9").as_str()), "{n}");
        }
        assert!(same.spent(url("/c/9").as_str()));
        assert!(!same.spent(url("/d/9").as_str()) && !same.spent(url("/c/word").as_str()));
        // A third of new pages is enough.
        let mut some = Shapes::default();
        (0..5_000_u64).for_each(|n| some.learn(&url(&format!("/c/{n}")), n / 3, true));
        assert!(!some.spent(url("/c/9").as_str()));
    }

    #[test]
    fn distinct_texts_are_counted_well_enough() {
        for count in [1_u64, 10, 100, 1_000, 100_000] {
            let mut shape = Shape::default();
            (0..count).for_each(|n| shape.learn(n * 31, true));
            let found = f64::from(shape.distinct()) / count as f64;
            assert!((0.6..1.6).contains(&found), "{count}: {found}");
        }
    }

    #[test]
    fn there_are_only_so_many_shapes() {
        let mut shapes = Shapes::default();
        (0..3 * limits::SHAPES_PER_SITE_MAX).for_each(|n| shapes.learn(&url(&format!("/w{}/1", word(n))), 1, true));
        assert!(shapes.shapes.len() <= limits::SHAPES_PER_SITE_MAX);
    }

    fn word(mut n: usize) -> String {
        let mut text = String::new();
        while n > 0 {
            text.push((b'a' + (n % 26) as u8) as char);
            n /= 26;
        }
        text
    }
}
