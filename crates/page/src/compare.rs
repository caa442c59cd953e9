//! What changed between two versions of a page, and what kind of change it is.
//!
//! The ladder, the cheapest first; it ends at the first "same":
//! ```text
//!   same markup, scripts and styles aside       bytes
//!   same text, links, meta and facts            markup
//!   same but for parts that always change       volatile
//!   else: how many words, which blocks, which links, what else
//! ```

mod align;
mod class;
mod mask;
mod shown;
mod suspect;

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_64;

pub(crate) use align::align;
pub use class::{Class, Classes};
pub use mask::Mask;
pub use shown::{Piece, Row, Shown, show, show_lines};
pub use suspect::{NEAR_EMPTY, leads_home, suspect};

use crate::version::{Nature, Version, words};
use align::{Alignment, Place};
use mask::Seen;

/// From this share of the words on, in ten thousandths, a change of the text is a major one.
pub const MAJOR: u16 = 500;

/// Stands for all links of a page where the surroundings of a place would.
const ALL_LINKS: [u64; 2] = [u64::MAX, u64::MAX];

/// What changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// What kind of change it is; none if nothing changed at all.
    pub classes: Classes,
    /// The share of the words that changed, in ten thousandths.
    pub share: u16,
    /// Words that are new.
    pub words_added: u32,
    /// Words that are no longer there.
    pub words_removed: u32,
    /// Blocks that are new; numbers of blocks of the new version.
    pub added: Vec<usize>,
    /// Blocks that are no longer there; numbers of blocks of the old version.
    pub removed: Vec<usize>,
    /// Blocks that stand elsewhere.
    pub moved: u32,
    /// Places that changed and count for nothing.
    pub masked: u32,
    /// For each place that counts, what became of it: pages of one site whose common parts change have the same number here.
    pub places: Vec<u64>,
    /// Addresses that are new.
    pub links_added: Vec<String>,
    /// Addresses that are no longer there.
    pub links_removed: Vec<String>,
}

/// Compares two versions that were read by the same rules. The mask learns from it.
pub fn compare(old: &Version, new: &Version, mask: &mut Mask) -> Difference {
    let mut found = Difference::default();
    let (was, is) = (&old.print, &new.print);
    if was.markup == is.markup {
        mask.same();
        found.classes.insert(Class::Bytes);
        return found;
    }
    if old.nature != new.nature || matches!(new.nature, Nature::Code | Nature::File) {
        found.share = 10_000;
        found.classes.insert(match (old.nature, new.nature) {
            (Nature::Code, Nature::Code) => Class::Markup,
            (Nature::File, Nature::File) => Class::Data,
            _ => Class::TextMajor,
        });
        return found;
    }
    match was.text == is.text {
        true => mask.same(),
        false => found.text(old, new, mask),
    }
    if was.links != is.links && found.masked == 0 {
        found.links(old, new, &[], &[]);
    }
    found.links_alone(was.links, is.links, mask);
    if was.meta != is.meta {
        found.classes.insert(Class::Meta);
    }
    if was.facts != is.facts {
        found.classes.insert(Class::Data);
    }
    if found.classes.is_empty() {
        found.classes.insert(if found.masked > 0 { Class::Volatile } else { Class::Markup });
    }
    found
}

impl Difference {
    fn text(&mut self, old: &Version, new: &Version, mask: &mut Mask) {
        let digests = |version: &Version| version.blocks.iter().map(|block| block.digest).collect::<Vec<_>>();
        let (was, is) = (digests(old), digests(new));
        let alignment = align(&was, &is);
        let Alignment { moved, .. } = &alignment;
        let moved_old: Vec<usize> = sorted(moved.iter().map(|pair| pair.0));
        let moved_new: Vec<usize> = sorted(moved.iter().map(|pair| pair.1));
        self.moved = moved.len() as u32;
        let places = alignment.places(was.len(), is.len());
        let mut changes = Vec::new();
        for place in &places {
            let left = |range: &std::ops::Range<usize>, moved: &[usize], digests: &[u64]| -> Vec<usize> {
                range.clone().filter(|at| digests[*at] != 0 && moved.binary_search(at).is_err()).collect()
            };
            let (removed, added) = (left(&place.old, &moved_old, &was), left(&place.new, &moved_new, &is));
            if removed.is_empty() && added.is_empty() {
                continue;
            }
            let (gone, come) = word_changes(old, &removed, new, &added);
            // Blocks that were only divided otherwise have the same words in the same order.
            if gone + come > 0 && run_on(old, &removed) != run_on(new, &added) {
                changes.push((place, removed, added, gone, come));
            }
        }
        let around = |place: &Place| {
            [place.old.start.checked_sub(1).map_or(0, |at| was[at]), was.get(place.old.end).copied().unwrap_or(0)]
        };
        let content = |digests: &[u64]| xxh3_64(&digests.iter().flat_map(|d| d.to_le_bytes()).collect::<Vec<_>>());
        let sum = |version: &Version, blocks: &[usize]| blocks.iter().map(|at| version.blocks[*at].words).sum::<u32>();
        // Links stand in the order of their addresses, each once.
        let leads = |version: &Version, blocks: &[usize], others: &Version| {
            let known = |url: &str| others.links.binary_search_by(|link| link.url.as_str().cmp(url)).is_ok();
            let here = |block: u32| blocks.binary_search(&(block as usize)).is_ok();
            version.links.iter().any(|link| here(link.block) && !known(&link.url))
        };
        let seen: Vec<Seen> = changes
            .iter()
            .map(|(place, removed, added, gone, _)| Seen {
                around: around(place),
                shows: [content(&is[place.new.clone()]), content(&was[place.old.clone()])],
                words: [sum(old, removed).max(sum(new, added)), old.print.words.max(new.print.words)],
                leads_elsewhere: leads(old, removed, new) && leads(new, added, old),
                turned: [sum(old, removed), sum(new, added), sum(old, removed).saturating_sub(*gone)],
            })
            .collect();
        let masked = mask.learn(&seen);
        let (mut masked_old, mut masked_new) = (Vec::new(), Vec::new());
        for ((place, removed, added, gone, come), masked) in changes.into_iter().zip(masked) {
            if masked {
                self.masked += 1;
                // A link around a picture stands before the block that comes next.
                masked_old.push(place.old.start..place.old.end + 1);
                masked_new.push(place.new.start..place.new.end + 1);
                continue;
            }
            let digests = |all: &[u64], blocks: &[usize]| blocks.iter().map(|at| all[*at]).collect::<Vec<_>>();
            self.places.push(content(&[digests(&was, &removed), vec![0], digests(&is, &added)].concat()));
            self.removed.extend(removed);
            self.added.extend(added);
            self.words_removed += gone;
            self.words_added += come;
        }
        if !self.removed.is_empty() || !self.added.is_empty() {
            let all = u64::from(old.print.words.max(new.print.words).max(1));
            let changed = u64::from(self.words_added.max(self.words_removed));
            self.share = (changed * 10_000).div_ceil(all).min(10_000) as u16;
            self.classes.insert(if self.share >= MAJOR { Class::TextMajor } else { Class::TextMinor });
        }
        if self.masked > 0 {
            self.links(old, new, &masked_old, &masked_new);
        }
    }

    /// Links that change all the time while the text does not are a part that always changes.
    fn links_alone(&mut self, was: u64, is: u64, mask: &mut Mask) {
        let alone = self.classes == Classes::of(Class::Links);
        if alone
            && mask.also(&Seen {
                around: ALL_LINKS,
                shows: [is, was],
                words: [0, 0],
                turned: [0, 0, 0],
                leads_elsewhere: false,
            })
        {
            self.classes = Classes::default();
            self.masked += 1;
            self.links_added.clear();
            self.links_removed.clear();
        }
    }

    /// Links that came and went, but for those inside parts that count for nothing.
    fn links(
        &mut self,
        old: &Version,
        new: &Version,
        masked_old: &[std::ops::Range<usize>],
        masked_new: &[std::ops::Range<usize>],
    ) {
        let less = |all: &Version, others: &Version, masked: &[std::ops::Range<usize>]| -> Vec<String> {
            let known = |url: &str| others.links.binary_search_by(|link| link.url.as_str().cmp(url)).is_ok();
            let counts = |block: u32| !masked.iter().any(|range| range.contains(&(block as usize)));
            let left = all.links.iter().filter(|link| counts(link.block) && !known(&link.url));
            left.map(|link| link.url.clone()).collect()
        };
        self.links_added = less(new, old, masked_new);
        self.links_removed = less(old, new, masked_old);
        if !self.links_added.is_empty() || !self.links_removed.is_empty() {
            self.classes.insert(Class::Links);
        }
    }
}

fn sorted(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// Words that went and words that came, each counted as often as it stands there.
fn word_changes(old: &Version, removed: &[usize], new: &Version, added: &[usize]) -> (u32, u32) {
    let all = |version: &Version, blocks: &[usize]| {
        let mut all = Vec::with_capacity(blocks.iter().map(|at| version.blocks[*at].words as usize).sum());
        for at in blocks {
            all.extend(words(&version.compared(&version.blocks[*at])).map(|word| xxh3_64(word.as_bytes())));
        }
        all.sort_unstable();
        all
    };
    let (was, is) = (all(old, removed), all(new, added));
    let (mut a, mut b, mut stayed) = (0, 0, 0);
    while let (Some(before), Some(now)) = (was.get(a), is.get(b)) {
        match before.cmp(now) {
            Ordering::Less => a += 1,
            Ordering::Greater => b += 1,
            Ordering::Equal => (a, b, stayed) = (a + 1, b + 1, stayed + 1),
        }
    }
    ((was.len() - stayed) as u32, (is.len() - stayed) as u32)
}

/// The text of blocks without any space, as a digest.
fn run_on(version: &Version, blocks: &[usize]) -> u64 {
    let mut all = String::new();
    for at in blocks {
        all.extend(version.compared(&version.blocks[*at]).split_whitespace());
    }
    xxh3_64(all.as_bytes())
}
