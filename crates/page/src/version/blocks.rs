//! Visible text in blocks: what each comes to, and all of them.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::rules::Rules;
use super::{Block, Version, normal};
use crate::limits;

/// A text in blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Divided {
    pub blocks: Vec<Block>,
    /// What all of them come to.
    pub digest: u64,
    /// Words in all of them.
    pub words: u32,
    /// There are more.
    pub cut: bool,
}

/// Divides a text. Blocks at either end that another version has too come to the same there.
pub fn divide(text: &str, rules: &Rules, beside: Option<&Version>) -> Divided {
    let known = beside.filter(|other| other.blocks.len() < limits::BLOCKS_MAX);
    let (first, last) = known.map_or((&[][..], &[][..]), |other| at_both_ends(text, other));
    let mut found = Divided { blocks: Vec::with_capacity(first.len() + last.len() + 16), ..Divided::default() };
    found.blocks.extend_from_slice(first);
    // The others know their places by the end of their own text.
    let (end, of_other) = (text.len(), known.map_or(0, |other| other.text.len()));
    let mut at = first.last().map_or(0, |block| block.at.end + 1);
    let middle = match last.first() {
        Some(next) => text.get(at..end - (of_other - next.at.start) - 1),
        None => text.get(at..),
    };
    for line in middle.into_iter().flat_map(|middle| middle.split('\n')) {
        let range = at..at + line.len();
        at = range.end + 1;
        if found.blocks.len() >= limits::BLOCKS_MAX {
            found.cut = true;
            break;
        }
        let (digest, words) = compared(line, rules);
        found.blocks.push(Block { at: range, digest, words });
    }
    for block in last {
        if found.blocks.len() >= limits::BLOCKS_MAX {
            found.cut = true;
            break;
        }
        let at = end - (of_other - block.at.start)..end - (of_other - block.at.end);
        found.blocks.push(Block { at, ..*block });
    }
    let mut all = Xxh3::new();
    for block in &found.blocks {
        if block.digest != 0 {
            all.update(&block.digest.to_le_bytes());
        }
        found.words = found.words.saturating_add(block.words);
    }
    found.digest = all.digest();
    found
}

/// What a block comes to, and its words.
fn compared(line: &str, rules: &Rules) -> (u64, u32) {
    let mut compared = normal::line(line);
    for pattern in &rules.patterns {
        if pattern.is_match(&compared) {
            compared = pattern.replace_all(&compared, "").into_owned().into();
        }
    }
    let compared = compared.trim();
    let digest = if compared.is_empty() { 0 } else { xxh3_64(compared.as_bytes()) };
    (digest, normal::count_words(compared) as u32)
}

/// The blocks of another version with which this text begins, and those with which it ends. None is in both.
fn at_both_ends<'o>(text: &str, other: &'o Version) -> (&'o [Block], &'o [Block]) {
    let (here, there) = (text.as_bytes(), other.text.as_bytes());
    let same = same_at_start(here, there);
    if same == here.len() && same == there.len() {
        return (&other.blocks, &[]);
    }
    // A block ends in both where the end of its line is the same, too.
    let first = other.blocks.partition_point(|block| block.at.end < same);
    let from = first.checked_sub(1).map_or(0, |last| other.blocks[last].at.end + 1);
    let same = same_at_end(&here[from..], &there[from..]);
    let last = other.blocks.partition_point(|block| block.at.start + same <= there.len());
    (&other.blocks[..first], &other.blocks[last.max(first)..])
}

/// Bytes that are looked at together.
const STEP: usize = 32;

fn same_at_start(a: &[u8], b: &[u8]) -> usize {
    let steps = a.as_chunks::<STEP>().0.iter().zip(b.as_chunks::<STEP>().0).take_while(|(a, b)| a == b).count() * STEP;
    steps + a[steps..].iter().zip(&b[steps..]).take_while(|(a, b)| a == b).count()
}

fn same_at_end(a: &[u8], b: &[u8]) -> usize {
    let both = a.as_rchunks::<STEP>().1.iter().rev().zip(b.as_rchunks::<STEP>().1.iter().rev());
    let steps = both.take_while(|(a, b)| a == b).count() * STEP;
    let rest = a[..a.len() - steps].iter().rev().zip(b[..b.len() - steps].iter().rev());
    steps + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str, rules: &Rules) -> Version {
        let mut version = Version { text: text.to_owned(), ..Version::default() };
        version.divide(rules, None);
        version
    }

    #[test]
    fn beside_another_version_the_same_is_found() {
        let lines = [
            "one",
            "one two",
            "2 hours ago",
            "",
            "x",
            "a line that is longer than those that are looked at at once, by far",
            "é",
        ];
        let mut state = 5_u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let both = [Rules::default(), Rules::read(&[], &[], &["one".to_owned()]).unwrap()];
        for round in 0..20_000 {
            let rules = &both[round % 2];
            let mut old: Vec<&str> = (0..draw(12)).map(|_| lines[draw(lines.len())]).collect();
            let other = version(&old.join("\n"), rules);
            for _ in 0..draw(3) {
                let at = draw(old.len() + 1);
                match draw(3) {
                    0 => old.insert(at, lines[draw(lines.len())]),
                    1 if at < old.len() => drop(old.remove(at)),
                    _ if at < old.len() => old[at] = lines[draw(lines.len())],
                    _ => {}
                }
            }
            let text = old.join("\n");
            assert_eq!(divide(&text, rules, Some(&other)), divide(&text, rules, None), "{:?} and {text:?}", other.text);
        }
    }
}
