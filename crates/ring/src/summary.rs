//! Finding what differs between two sets without sending them: range-based reconciliation, by `negentropy`.
//!
//! Who begins keeps nothing but the wish to compare; each frame that comes is answered from the set as it is now.

use negentropy::{Id, Negentropy, NegentropyStorageVector};

use crate::key::Hash;
use crate::limits::RECONCILE_BYTES_MAX;

fn storage(set: impl Iterator<Item = Hash>) -> Option<NegentropyStorageVector> {
    let mut storage = NegentropyStorageVector::with_capacity(set.size_hint().0);
    for hash in set {
        // Equal everywhere: there is no order but that of the hashes.
        storage.insert(0, Id::from_byte_array(hash.0)).ok()?;
    }
    storage.seal().ok()?;
    Some(storage)
}

/// The first frame.
pub fn begin(set: impl Iterator<Item = Hash>) -> Option<Vec<u8>> {
    let storage = storage(set)?;
    let mut machine = Negentropy::borrowed(&storage, RECONCILE_BYTES_MAX as u64).ok()?;
    machine.initiate().ok()
}

/// The answer to a frame of who began; `None` if the frame is damaged.
pub fn answer(set: impl Iterator<Item = Hash>, frame: &[u8]) -> Option<Vec<u8>> {
    let storage = storage(set)?;
    let mut machine = Negentropy::borrowed(&storage, RECONCILE_BYTES_MAX as u64).ok()?;
    machine.reconcile(frame).ok()
}

/// What a frame told who began.
#[derive(Default, Debug)]
pub struct Found {
    /// Only here.
    pub only_here: Vec<Hash>,
    /// Only there.
    pub only_there: Vec<Hash>,
    /// What to say next, unless all is known.
    pub next: Option<Vec<u8>>,
}

/// Reads an answer; `None` if it is damaged.
pub fn read(set: impl Iterator<Item = Hash>, frame: &[u8]) -> Option<Found> {
    let storage = storage(set)?;
    let mut machine = Negentropy::borrowed(&storage, RECONCILE_BYTES_MAX as u64).ok()?;
    machine.set_initiator();
    let (mut have, mut need) = (Vec::new(), Vec::new());
    let next = machine.reconcile_with_ids(frame, &mut have, &mut need).ok()?;
    let hashes = |ids: Vec<Id>| ids.into_iter().map(|id| Hash(id.to_bytes())).collect();
    Some(Found { only_here: hashes(have), only_there: hashes(need), next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn hashes(range: std::ops::Range<u32>) -> BTreeSet<Hash> {
        range.map(|number| Hash::of("number", &number.to_be_bytes())).collect()
    }

    #[test]
    fn both_sides_learn_what_differs_in_few_bytes() {
        let (here, there) = (hashes(0..20_000), hashes(10..20_010));
        let mut frame = begin(here.iter().copied()).expect("a set");
        let (mut only_here, mut only_there, mut bytes) = (BTreeSet::new(), BTreeSet::new(), frame.len());
        for _ in 0..20 {
            let reply = answer(there.iter().copied(), &frame).expect("a sound frame");
            bytes += reply.len();
            let found = read(here.iter().copied(), &reply).expect("a sound frame");
            only_here.extend(found.only_here);
            only_there.extend(found.only_there);
            match found.next {
                Some(next) => frame = next,
                None => break,
            }
            bytes += frame.len();
        }
        assert_eq!(only_here, hashes(0..10));
        assert_eq!(only_there, hashes(20_000..20_010));
        assert!(bytes < 40_000, "{bytes} bytes for 20 differences among 20,000");
    }

    #[test]
    fn damaged_frames_are_refused() {
        let set = hashes(0..100);
        for frame in [&b""[..], b"\x61\xff\xff\xff", &[0x61; 300], b"\x00"] {
            let _ = read(set.iter().copied(), frame);
            let _ = answer(set.iter().copied(), frame);
        }
        assert!(answer(set.iter().copied(), b"\x00").is_none());
        assert!(read(set.iter().copied(), b"").is_none());
    }
}
