//! A disk: which bytes of which segments are on it, and whether they are the right ones.

use std::collections::BTreeMap;

use crate::copy::{Extent, Segment};
use crate::genesis::Slice;
use crate::key::Hash;
use crate::message::Range;

/// One segment on a disk.
#[derive(Clone, Copy, Debug)]
pub struct Blob {
    /// As the node believes.
    pub extent: Extent,
    /// Not what its writer wrote.
    pub altered: bool,
}

/// What is on one disk.
#[derive(Clone, Default, Debug)]
pub struct Disk {
    blobs: BTreeMap<(Slice, Segment), Blob>,
}

impl Disk {
    /// Puts a segment there, or more of it.
    pub fn put(&mut self, slice: Slice, extent: Extent, altered: bool) {
        self.blobs.insert((slice, extent.segment), Blob { extent, altered });
    }

    /// A segment.
    pub fn get(&self, slice: Slice, segment: &Segment) -> Option<&Blob> {
        self.blobs.get(&(slice, *segment))
    }

    /// A segment, to damage it.
    pub fn get_mut(&mut self, slice: Slice, segment: &Segment) -> Option<&mut Blob> {
        self.blobs.get_mut(&(slice, *segment))
    }

    /// Takes a segment away.
    pub fn remove(&mut self, slice: Slice, segment: &Segment) {
        self.blobs.remove(&(slice, *segment));
    }

    /// All segments of a slice.
    pub fn slice(&self, slice: Slice) -> impl Iterator<Item = &Blob> + '_ {
        self.blobs.range((slice, Segment::LEAST)..=(slice, Segment::MOST)).map(|(_, blob)| blob)
    }

    /// Everything.
    pub fn all(&self) -> impl Iterator<Item = (Slice, &Blob)> + '_ {
        self.blobs.iter().map(|((slice, _), blob)| (*slice, blob))
    }

    /// Lets a slice go.
    pub fn delete(&mut self, slice: Slice) {
        let segments: Vec<Segment> = self.slice(slice).map(|blob| blob.extent.segment).collect();
        segments.iter().for_each(|segment| self.remove(slice, segment));
    }

    /// Everything is lost.
    pub fn lose(&mut self) {
        self.blobs.clear();
    }

    /// The proof over ranges: a function of what is really there.
    pub fn hash(&self, slice: Slice, key: &[u8; 32], ranges: &[Range]) -> Option<Hash> {
        let mut hasher = blake3::Hasher::new_keyed(key);
        for range in ranges {
            let blob = self.get(slice, &range.segment)?;
            if range.offset + u64::from(range.bytes) > blob.extent.bytes {
                return None;
            }
            hasher.update(&slice.to_be_bytes()).update(&range.segment.writer.to_be_bytes());
            hasher.update(&range.segment.number.to_be_bytes()).update(&range.offset.to_be_bytes());
            hasher.update(&[u8::from(blob.altered)]);
        }
        Some(Hash(*hasher.finalize().as_bytes()))
    }

    /// Whether so much of a segment is there, as it was written.
    pub fn holds(&self, slice: Slice, segment: &Segment, bytes: u64) -> bool {
        self.get(slice, segment).is_some_and(|blob| !blob.altered && blob.extent.bytes >= bytes)
    }
}
