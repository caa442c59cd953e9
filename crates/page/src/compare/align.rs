//! Which blocks of one version are which of another. Work is n log n, whatever the pages are.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

/// Blocks that are in both versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alignment {
    /// Pairs that are in the same order in both.
    pub kept: Vec<(usize, usize)>,
    /// Pairs that are not.
    pub moved: Vec<(usize, usize)>,
}

/// A place where versions differ: between two blocks that both have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Blocks of the old version.
    pub old: Range<usize>,
    /// Blocks of the new version.
    pub new: Range<usize>,
}

/// Aligns two sequences of digests.
pub fn align(old: &[u64], new: &[u64]) -> Alignment {
    in_one_place(old, new).unwrap_or_else(|| anywhere(old, new))
}

/// Most pages change in one place. Where one block became another there, or where blocks only came or only went, no other way to pair what is left
/// can be longer, and nothing moved.
fn in_one_place(old: &[u64], new: &[u64]) -> Option<Alignment> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[start..], &new[start..]);
    let end = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (gone, come) = (rest_old.len() - end, rest_new.len() - end);
    if gone.max(come) > 1 && gone.min(come) > 0 {
        return None;
    }
    let mut kept = Vec::with_capacity(start + end);
    kept.extend((0..start).map(|at| (at, at)));
    kept.extend((0..end).map(|at| (start + gone + at, start + come + at)));
    Some(Alignment { kept, moved: Vec::new() })
}

fn anywhere(old: &[u64], new: &[u64]) -> Alignment {
    let mut kept = Vec::new();
    // What stands once in both is the surest sign of what became what.
    let anchors = increasing(&unique_pairs(old, new));
    let mut from = (0, 0);
    for anchor in anchors.into_iter().chain([(old.len(), new.len())]) {
        between(old, new, from.0..anchor.0, from.1..anchor.1, &mut kept);
        if anchor.0 < old.len() {
            kept.push(anchor);
        }
        from = (anchor.0 + 1, anchor.1 + 1);
    }
    let moved = moved(old, new, &kept);
    Alignment { kept, moved }
}

/// Blocks that stand once in both, by their place in the new version.
fn unique_pairs(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let ordered = |digests: &[u64]| {
        let mut all: Vec<(u64, usize)> = digests.iter().enumerate().map(|(at, digest)| (*digest, at)).collect();
        all.sort_unstable();
        all
    };
    let (old, new) = (ordered(old), ordered(new));
    let once = |all: &[(u64, usize)], at: usize| {
        let digest = all[at].0;
        (at == 0 || all[at - 1].0 != digest) && all.get(at + 1).is_none_or(|next| next.0 != digest)
    };
    let mut pairs = Vec::with_capacity(old.len().min(new.len()));
    let (mut a, mut b) = (0, 0);
    while a < old.len() && b < new.len() {
        match old[a].0.cmp(&new[b].0) {
            Ordering::Less => a += 1,
            Ordering::Greater => b += 1,
            Ordering::Equal => {
                if once(&old, a) && once(&new, b) {
                    pairs.push((old[a].1, new[b].1));
                }
                (a, b) = (a + 1, b + 1);
            }
        }
    }
    pairs.sort_unstable_by_key(|pair| pair.1);
    pairs
}

/// The longest run of pairs that ascends in both places; they ascend in the second already.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&tail| pairs[tail].0 < pair.0);
        if length > 0 {
            before[index] = tails[length - 1];
        }
        match tails.get_mut(length) {
            Some(tail) => *tail = index,
            None => tails.push(index),
        }
    }
    let mut run = Vec::with_capacity(tails.len());
    let mut next = tails.last().copied().unwrap_or(usize::MAX);
    while next != usize::MAX {
        run.push(pairs[next]);
        next = before[next];
    }
    run.reverse();
    run
}

/// Between two anchors: what is equal from either end, then repeated blocks by their turn.
fn between(old: &[u64], new: &[u64], mut a: Range<usize>, mut b: Range<usize>, kept: &mut Vec<(usize, usize)>) {
    while !a.is_empty() && !b.is_empty() && old[a.start] == new[b.start] {
        kept.push((a.start, b.start));
        (a.start, b.start) = (a.start + 1, b.start + 1);
    }
    let mut tail = Vec::new();
    while !a.is_empty() && !b.is_empty() && old[a.end - 1] == new[b.end - 1] {
        (a.end, b.end) = (a.end - 1, b.end - 1);
        tail.push((a.end, b.end));
    }
    if !a.is_empty() && !b.is_empty() {
        kept.extend(increasing(&pairs(old, new, a, b)));
    }
    kept.extend(tail.into_iter().rev());
}

/// The first of a digest with the first, the second with the second; by their place in the new version.
fn pairs(old: &[u64], new: &[u64], a: Range<usize>, b: Range<usize>) -> Vec<(usize, usize)> {
    let mut places: HashMap<u64, std::collections::VecDeque<usize>> = HashMap::new();
    for index in a {
        places.entry(old[index]).or_default().push_back(index);
    }
    let pair = |index: usize| places.get_mut(&new[index]).and_then(|list| list.pop_front()).map(|at| (at, index));
    b.filter_map(pair).collect()
}

fn moved(old: &[u64], new: &[u64], kept: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let (mut in_old, mut in_new) = (vec![false; old.len()], vec![false; new.len()]);
    for (a, b) in kept {
        (in_old[*a], in_new[*b]) = (true, true);
    }
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, digest) in old.iter().enumerate().rev().filter(|(index, _)| !in_old[*index]) {
        places.entry(*digest).or_default().push(index);
    }
    let left = new.iter().enumerate().filter(|(index, _)| !in_new[*index]);
    left.filter_map(|(index, digest)| Some((places.get_mut(digest)?.pop()?, index))).collect()
}

impl Alignment {
    /// The places where versions of so many blocks differ.
    pub fn places(&self, old: usize, new: usize) -> Vec<Place> {
        let mut places = Vec::new();
        let mut from = (0, 0);
        for &(a, b) in self.kept.iter().chain([&(old, new)]) {
            if a > from.0 || b > from.1 {
                places.push(Place { old: from.0..a, new: from.1..b });
            }
            from = (a + 1, b + 1);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(old: &str, new: &str) -> String {
        let digests = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
        let found = align(&digests(old), &digests(new));
        let name = |pairs: &[(usize, usize)]| pairs.iter().map(|(a, _)| old.as_bytes()[*a] as char).collect::<String>();
        format!("{} moved {}", name(&found.kept), name(&found.moved))
    }

    #[test]
    fn what_stays_what_moves_and_what_is_new() {
        assert_eq!(aligned("abcdef", "abXdef"), "abdef moved ");
        assert_eq!(aligned("abcdef", "fabcde"), "abcde moved f");
        assert_eq!(aligned("arbr", "crarbr"), "arbr moved ", "what repeats is paired by what stands around it");
        assert_eq!(aligned("", "abc"), " moved ");
        assert_eq!(aligned("aaaa", "aa"), "aa moved ");
        assert_eq!(aligned("abc", "abc"), "abc moved ");
    }

    #[test]
    fn what_changed_in_one_place_is_aligned_as_anything_is() {
        let (mut state, mut quick) = (9_u64, 0);
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        for _ in 0..100_000 {
            // Few different ones, so that many stand there more than once.
            let kinds = 1 + draw(12);
            let old: Vec<u64> = (0..draw(10)).map(|_| draw(kinds) as u64).collect();
            let mut new = old.clone();
            for _ in 0..1 + draw(2) {
                let (from, to) = (draw(new.len() + 1), draw(new.len() + 1));
                let more: Vec<u64> = (0..draw(3)).map(|_| draw(kinds) as u64).collect();
                new.splice(from.min(to)..(from.min(to) + draw(3)).min(new.len()).max(from.min(to)), more);
            }
            if let Some(found) = in_one_place(&old, &new) {
                assert_eq!(found, anywhere(&old, &new), "{old:?} and {new:?}");
                quick += 1;
            }
        }
        assert!(quick > 30_000, "{quick}");
    }

    #[test]
    fn places_are_between_what_stays() {
        let digests = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
        let (old, new) = (digests("abcd"), digests("xabyyd"));
        let places = align(&old, &new).places(4, 6);
        assert_eq!(places, [Place { old: 0..0, new: 0..1 }, Place { old: 2..3, new: 3..5 }]);
    }

    #[test]
    fn much_is_aligned_in_little_time() {
        let old: Vec<u64> = (0..100_000).map(|n| n % 7).collect();
        let new: Vec<u64> = (0..100_000).map(|n| n % 5).collect();
        assert!(!align(&old, &new).kept.is_empty());
    }
}
