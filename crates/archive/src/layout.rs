//! Where things stand in an archive's folder, and how segments are named.
//!
//! ```text
//!  segments/<bits>/<prefix>.<half>/<writer>-<number>[.g<generation>].warc.gz     records
//!                                  same name with .idx for .warc.gz              its sidecar
//!                                  same name with .part added                    being rewritten; dropped at open
//!  collections/<number>.idx        sidecars of files added from elsewhere
//!  collections/files/…             their copies, when added with a copy
//!  views/                          everything folded from records; may be deleted
//!  settings/                       what people decided
//!  lock, control                   the owner's lock and socket
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use skep_url::Key;

use crate::capture::WriterKey;
use crate::error::{Error, Result};
use crate::limits::SLICE_BITS_MAX;

/// Half of a slice: the site hashes whose top `bits` bits are `prefix` and whose next bit is `half`. A segment holds
/// records of one half-slice, so that doubling the slices hands over whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfSlice {
    bits: u8,
    /// `prefix` and `half` together: the top `bits + 1` bits.
    top: u32,
}

impl HalfSlice {
    /// The half-slice of a site when slices are numbered by `bits` bits.
    pub fn of(site_hash: u32, bits: u8) -> HalfSlice {
        let bits = bits.min(SLICE_BITS_MAX);
        HalfSlice { bits, top: site_hash >> (31 - u32::from(bits)) }
    }

    /// How many bits number a slice.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// The slice's number.
    pub fn prefix(self) -> u32 {
        self.top >> 1
    }

    /// Which half, 0 or 1.
    pub fn half(self) -> u8 {
        (self.top & 1) as u8
    }

    /// The first and last site hash of this half-slice.
    pub fn range(self) -> (u32, u32) {
        let shift = 31 - u32::from(self.bits);
        let first = self.top << shift;
        (first, first | ((1u32 << shift) - 1))
    }

    /// A key as it is filed here: that of a URL whose site is split begins with the top bits of the slice.
    pub fn file(self, key: Key) -> Key {
        key.in_place(self.prefix(), self.bits.into())
    }

    /// The half-slice whose folder a segment lies in.
    pub fn holding(segment: &Path) -> Option<HalfSlice> {
        let folder = segment.parent()?;
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        HalfSlice::parse(&name(folder.parent()?)?, &name(folder)?)
    }

    /// Whether some site may have records in both: slices of different widths overlap after doubling.
    pub fn intersects(self, other: HalfSlice) -> bool {
        let ((a, b), (c, d)) = (self.range(), other.range());
        a <= d && c <= b
    }

    /// The folder under `segments`: `8/11.0`.
    pub fn folder(self) -> String {
        format!("{}/{}", self.bits, self.slice_folder())
    }

    fn slice_folder(self) -> String {
        let digits = usize::from(self.bits.div_ceil(4)).max(1);
        format!("{:0digits$x}.{}", self.prefix(), self.half())
    }

    /// Reads the two folder names back; anything but the one spelling this program writes is `None`.
    pub fn parse(bits: &str, slice: &str) -> Option<HalfSlice> {
        let bits: u8 = bits.parse().ok().filter(|bits| *bits <= SLICE_BITS_MAX)?;
        let (prefix, half) = slice.split_once('.')?;
        let prefix = u32::from_str_radix(prefix, 16).ok()?;
        let half: u32 = half.parse().ok().filter(|half| *half <= 1)?;
        let found = HalfSlice { bits, top: prefix.checked_mul(2)? | half };
        (found.top >> 1 < (1u32 << bits) && found.slice_folder() == slice).then_some(found)
    }
}

impl fmt::Display for HalfSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.folder())
    }
}

/// A segment for ever: whose it is and its number among that writer's. Rewriting changes the file, not this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    /// Who writes it.
    pub writer: WriterKey,
    /// Counted per writer over the whole archive, from 1.
    pub number: u32,
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:06}", self.writer, self.number)
    }
}

/// One file of a segment: the segment and how often it was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// The segment.
    pub id: SegmentId,
    /// 0 as first written, then 1, 2, … for each rewriting.
    pub generation: u32,
}

impl SegmentName {
    /// The name without its ending, shared by the segment and its sidecar.
    pub fn stem(self) -> String {
        match self.generation {
            0 => self.id.to_string(),
            generation => format!("{}.g{generation}", self.id),
        }
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.warc.gz", self.stem())
    }
}

impl FromStr for SegmentName {
    type Err = ();

    fn from_str(text: &str) -> Result<SegmentName, ()> {
        let stem = text.strip_suffix(".warc.gz").ok_or(())?;
        let (id, generation) = match stem.split_once(".g") {
            Some((id, generation)) => (id, generation.parse().map_err(|_| ())?),
            None => (stem, 0),
        };
        let (writer, number) = id.split_once('-').ok_or(())?;
        let writer = WriterKey(u32::from_str_radix(writer, 16).map_err(|_| ())?);
        let name = SegmentName { id: SegmentId { writer, number: number.parse().map_err(|_| ())? }, generation };
        (name.to_string() == text).then_some(name).ok_or(())
    }
}

/// The paths of one archive.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The archive in this folder.
    pub fn new(root: &Path) -> Layout {
        Layout { root: root.to_path_buf() }
    }

    /// The archive's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the segments.
    pub fn segments(&self) -> PathBuf {
        self.root.join("segments")
    }

    /// Folder of one half-slice.
    pub fn half_slice(&self, half: HalfSlice) -> PathBuf {
        self.segments().join(half.folder())
    }

    /// File of a segment.
    pub fn segment(&self, half: HalfSlice, name: SegmentName) -> PathBuf {
        self.half_slice(half).join(name.to_string())
    }

    /// Sidecars and copies of files added from elsewhere.
    pub fn collections(&self) -> PathBuf {
        self.root.join("collections")
    }

    /// Sidecar of a file added from elsewhere.
    pub fn collection_sidecar(&self, number: u32) -> PathBuf {
        self.collections().join(format!("{number}.idx"))
    }

    /// Folder of everything folded from records.
    pub fn views(&self) -> PathBuf {
        self.root.join("views")
    }

    /// Folder of what people decided.
    pub fn settings(&self) -> PathBuf {
        self.root.join("settings")
    }

    /// The owner's lock.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The owner's socket.
    pub fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    /// `path` as seen from the archive's folder, for messages and answers.
    pub fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// The sidecar beside a segment file.
pub fn sidecar_of(segment: &Path) -> PathBuf {
    let name = segment.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    segment.with_file_name(format!("{}.idx", name.strip_suffix(".warc.gz").unwrap_or(name)))
}

/// The name under which the next generation of a segment, or its sidecar, is prepared.
pub fn part_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    file.with_file_name(name)
}

/// A segment file as found in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The half-slice its folder names.
    pub half: HalfSlice,
    /// Which segment and generation.
    pub name: SegmentName,
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub length: u64,
}

/// What a walk through `segments` met.
#[derive(Debug, Default)]
pub struct Walk {
    /// Segment files, by name.
    pub found: Vec<Found>,
    /// Files left by an interrupted rewriting.
    pub parts: Vec<PathBuf>,
    /// Sidecars whose segment is not there.
    pub orphans: Vec<PathBuf>,
    /// Files and folders that are nothing of ours.
    pub strays: Vec<PathBuf>,
}

/// Walks through `segments`. A folder that does not exist yet is empty.
pub fn walk(layout: &Layout) -> Result<Walk> {
    let mut walk = Walk::default();
    for (bits_name, bits_path) in list(&layout.segments())? {
        if !bits_path.is_dir() {
            walk.strays.push(bits_path);
            continue;
        }
        for (slice_name, slice_path) in list(&bits_path)? {
            let half = HalfSlice::parse(&bits_name, &slice_name).filter(|_| slice_path.is_dir());
            let Some(half) = half else {
                walk.strays.push(slice_path);
                continue;
            };
            let names = list(&slice_path)?;
            let segment_of = |sidecar: &str| sidecar.strip_suffix(".idx").map(|stem| format!("{stem}.warc.gz"));
            for (name, path) in &names {
                let described = segment_of(name).filter(|segment| segment.parse::<SegmentName>().is_ok());
                if let Ok(segment) = name.parse::<SegmentName>() {
                    let meta = path.metadata().map_err(|error| Error::io("cannot look at", path, error))?;
                    walk.found.push(Found { half, name: segment, path: path.clone(), length: meta.len() });
                } else if name.ends_with(".part") {
                    walk.parts.push(path.clone());
                } else if let Some(segment) = described {
                    if names.binary_search_by(|(other, _)| other.as_str().cmp(&segment)).is_err() {
                        walk.orphans.push(path.clone());
                    }
                } else {
                    walk.strays.push(path.clone());
                }
            }
        }
    }
    walk.found.sort_by_key(|found| (found.name, found.half));
    Ok(walk)
}

/// The entries of a folder by name; a name that is not UTF-8 is shown with replacement characters and matches nothing.
fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("cannot list", folder, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("cannot list", folder, error))?;
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_half_slices_read_back_and_have_one_spelling() {
        for (hash, bits, folder) in [
            (0x0000_0000, 0, "0/0.0"),
            (0x8000_0000, 0, "0/0.1"),
            (0x1180_0000, 8, "8/11.1"),
            (0xffff_ffff, 16, "16/ffff.1"),
            (0x0abc_0000, 5, "5/01.0"),
        ] {
            let half = HalfSlice::of(hash, bits);
            assert_eq!(half.folder(), folder);
            let (bits, slice) = folder.split_once('/').unwrap();
            assert_eq!(HalfSlice::parse(bits, slice), Some(half));
            let (first, last) = half.range();
            assert!((first..=last).contains(&hash));
            assert_eq!((HalfSlice::of(first, half.bits()), HalfSlice::of(last, half.bits())), (half, half));
        }
        for (bits, slice) in
            [("17", "0.0"), ("0", "1.0"), ("0", "0.2"), ("8", "1.0"), ("8", "011.0"), ("4", "A.0"), ("4", "a")]
        {
            assert_eq!(HalfSlice::parse(bits, slice), None, "{bits}/{slice}");
        }
    }

    #[test]
    fn doubling_maps_each_half_to_one_whole_slice() {
        for hash in [0u32, 0x1234_5678, 0x8000_0000, 0xffff_ffff] {
            for bits in 0..SLICE_BITS_MAX {
                let (old, new) = (HalfSlice::of(hash, bits), HalfSlice::of(hash, bits + 1));
                assert_eq!(new.prefix(), old.prefix() << 1 | u32::from(old.half()));
                assert!(old.intersects(new) && new.intersects(old));
            }
        }
        assert!(!HalfSlice::of(0, 0).intersects(HalfSlice::of(u32::MAX, 3)));
    }

    #[test]
    fn names_of_segments_read_back_and_have_one_spelling() {
        for text in ["c41f22ab-000001.warc.gz", "00000000-000017.g2.warc.gz", "ffffffff-12345678.warc.gz"] {
            assert_eq!(text.parse::<SegmentName>().unwrap().to_string(), text);
        }
        for text in
            ["c41f22ab-1.warc.gz", "C41F22AB-000001.warc.gz", "c41f22ab-000001.g0.warc.gz", "c41f22ab-000001.warc", "x"]
        {
            assert!(text.parse::<SegmentName>().is_err(), "{text}");
        }
        assert_eq!(sidecar_of(Path::new("a/c41f22ab-000001.g1.warc.gz")), Path::new("a/c41f22ab-000001.g1.idx"));
    }
}
