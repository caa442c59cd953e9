//! Recovery: after any end of the process, find what counts, drop what does not, and say so.
//!
//! ```text
//!  segment  ├──────── named by the sidecar ────────┼── whole records ──┼─ torn ─┤
//!                     (synced before named:        described and       cut, if the
//!                      not read again)             named now           segment is ours
//! ```
//! A sidecar names a record only after it is synced, and follows by at most the lag of the views, so what has to be read
//! again is bounded. Without a sidecar the whole segment is read.

use std::io::BufRead;
use std::path::Path;

use skep_warc::{Options, Reader};

use crate::describe::describe;
use crate::error::{Error, Result};
use crate::layout::{SegmentName, sidecar_of};
use crate::limits::REPLAY_BATCH_ENTRIES;
use crate::sidecar::{Entry, HEADER_BYTES, Note, SidecarReader, SidecarWriter};

/// How much of a segment a sidecar names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// Records named.
    pub records: u32,
    /// The byte of the segment after the last of them.
    pub bytes: u64,
    /// The length up to which the sidecar verifies.
    pub sidecar_bytes: u64,
    /// The last of them is a closing record.
    pub closed: bool,
}

/// What has to be done about a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The sidecar names everything.
    Nothing,
    /// Records behind what the sidecar names are looked at; at the first that is not whole, the rest is torn.
    Tail(Covered),
    /// The sidecar is missing or names more than there is: every record is looked at, also behind damage.
    Afresh,
}

/// Decides from the length of the segment and what its sidecar names.
pub fn plan(segment_bytes: u64, covered: Option<Covered>) -> Plan {
    match covered {
        Some(covered) if covered.bytes == segment_bytes => Plan::Nothing,
        Some(covered) if covered.bytes < segment_bytes => Plan::Tail(covered),
        _ => Plan::Afresh,
    }
}

/// A segment as recovery left it.
#[derive(Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What the sidecar now names: all that counts.
    pub covered: Covered,
    /// Bytes behind that: a torn tail.
    pub torn_bytes: u64,
    /// Records that were found behind what the sidecar named.
    pub found: u32,
    /// The sidecar had named records that are not in the segment.
    pub lost: Option<Covered>,
}

/// Brings the sidecar of a segment up to date. Changes nothing else: cutting the torn tail is for whoever owns it.
pub fn recover(segment: &Path, name: SegmentName) -> Result<Recovered> {
    let bytes = segment.metadata().map_err(|error| Error::io("cannot look at", segment, error))?.len();
    let sidecar = sidecar_of(segment);
    let covered = covered(&sidecar, name)?;
    match plan(bytes, covered) {
        Plan::Nothing => {
            let covered = covered.unwrap_or(Covered { records: 0, bytes: 0, sidecar_bytes: 0, closed: false });
            if sidecar.metadata().is_ok_and(|meta| meta.len() != covered.sidecar_bytes) {
                // Whoever writes on begins at the end of the file: nothing torn may stand there.
                SidecarWriter::resume(&sidecar, covered.sidecar_bytes)?.sync()?;
            }
            Ok(Recovered { covered, torn_bytes: 0, found: 0, lost: None })
        }
        Plan::Tail(from) => {
            let mut writer = SidecarWriter::resume(&sidecar, from.sidecar_bytes)?;
            let scanned = scan(segment, name, from, Damage::Ends, &mut writer)?;
            Ok(Recovered {
                covered: scanned,
                torn_bytes: bytes - scanned.bytes,
                found: scanned.records - from.records,
                lost: None,
            })
        }
        Plan::Afresh => {
            let mut writer = SidecarWriter::create(&sidecar, name)?;
            let from = Covered { records: 0, bytes: 0, sidecar_bytes: HEADER_BYTES, closed: false };
            let scanned = scan(segment, name, from, Damage::Passed, &mut writer)?;
            Ok(Recovered { covered: scanned, torn_bytes: bytes - scanned.bytes, found: scanned.records, lost: covered })
        }
    }
}

/// What a sidecar names, as far as it verifies and its records follow each other. `None` without a sidecar.
pub fn covered(sidecar: &Path, name: SegmentName) -> Result<Option<Covered>> {
    let Some(mut reader) = SidecarReader::open(sidecar, name)? else { return Ok(None) };
    let mut covered = Covered { records: 0, bytes: 0, sidecar_bytes: reader.valid_length(), closed: false };
    while let Some(entries) = reader.next_frame()? {
        let Some(next) = follows(covered, &entries) else { break };
        covered = Covered { sidecar_bytes: reader.valid_length(), ..next };
    }
    Ok(Some(covered))
}

/// What is covered with these entries too, if they follow. Damage that was passed over leaves gaps, never overlaps.
fn follows(mut covered: Covered, entries: &[Entry]) -> Option<Covered> {
    for entry in entries {
        if entry.record < covered.records || entry.offset < covered.bytes || entry.record == u32::MAX {
            return None;
        }
        let closed = entry.note == Note::Closing;
        covered = Covered { records: entry.record + 1, bytes: entry.end(), closed, ..covered };
    }
    Some(covered)
}

/// What a scan makes of bytes that are no whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Nothing behind them counts: they were never acknowledged.
    Ends,
    /// What stands behind them still counts. A stretch of damage counts as one record, so that the numbers behind it stay
    /// right in the likeliest case.
    Passed,
}

/// Names the whole records from `from` on in the sidecar.
fn scan(
    segment: &Path,
    name: SegmentName,
    from: Covered,
    damage: Damage,
    sidecar: &mut SidecarWriter,
) -> Result<Covered> {
    let wrong = |error| Error::io("cannot read", segment, error);
    let mut reader = Reader::at(segment, from.bytes, None, Options::recover()).map_err(wrong)?;
    let mut covered = from;
    let mut entries = Vec::new();
    while let Some(mut record) = reader.next().map_err(wrong)? {
        let offset = record.offset();
        let gap = offset != covered.bytes;
        if gap && damage == Damage::Ends {
            break;
        }
        let head = record.head().clone();
        let note = describe(&head, &mut record as &mut dyn BufRead).map_err(wrong)?;
        let end = record.finish().map_err(wrong)?;
        if end.damaged {
            if damage == Damage::Ends {
                break;
            }
            continue;
        }
        let number = covered.records + u32::from(gap);
        let closed = note == Note::Closing;
        entries.push(Entry::place(name.id, number, offset, end.length, note));
        covered = Covered { records: number + 1, bytes: offset + end.length, closed, ..covered };
        if entries.len() == REPLAY_BATCH_ENTRIES {
            sidecar.append(&entries)?;
            entries.clear();
        }
    }
    sidecar.append(&entries)?;
    sidecar.sync()?;
    Ok(Covered { sidecar_bytes: sidecar.length(), ..covered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterKey;
    use crate::layout::SegmentId;
    use skep_warc::write::{Compression, Encoder, Record, RecordId};

    #[test]
    fn only_what_the_sidecar_does_not_name_is_looked_at() {
        let covered = Covered { records: 3, bytes: 100, sidecar_bytes: 50, closed: false };
        assert_eq!(plan(100, Some(covered)), Plan::Nothing);
        assert_eq!(plan(130, Some(covered)), Plan::Tail(covered));
        assert_eq!(plan(99, Some(covered)), Plan::Afresh);
        assert_eq!(plan(100, None), Plan::Afresh);
    }

    fn name() -> SegmentName {
        SegmentName { id: SegmentId { writer: WriterKey(7), number: 1 }, generation: 0 }
    }

    /// A segment of records like those of a fetch, and where each of them ends.
    fn segment(path: &Path) -> Vec<u64> {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for number in 0..6u8 {
            let id = RecordId::uuid([number; 16]);
            let url = format!("http://a.example/{number}");
            let message = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nbody {number}");
            let record = Record::response(&id, "2026-01-01T00:00:00Z", &url, message.as_bytes());
            record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
            ends.push(bytes.len() as u64);
        }
        std::fs::write(path, bytes).unwrap();
        ends
    }

    fn entries(path: &Path) -> Vec<Entry> {
        let mut reader = SidecarReader::open(&sidecar_of(path), name()).unwrap().unwrap();
        std::iter::from_fn(|| reader.next_frame().unwrap()).flatten().collect()
    }

    #[test]
    fn a_segment_may_be_cut_at_any_byte_with_and_without_its_sidecar() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000007-000001.warc.gz");
        let ends = segment(&path);
        let bytes = std::fs::read(&path).unwrap();
        recover(&path, name()).unwrap();
        let all = entries(&path);
        assert_eq!(all.iter().map(Entry::end).collect::<Vec<_>>(), ends);
        let mut named = SidecarWriter::create(&dir.path().join("named"), name()).unwrap();
        named.append(&all[..3]).unwrap();
        let sidecar = std::fs::read(dir.path().join("named")).unwrap();
        for cut in 0..=bytes.len() {
            for with_sidecar in [true, false] {
                std::fs::write(&path, &bytes[..cut]).unwrap();
                std::fs::write(sidecar_of(&path), if with_sidecar { sidecar.as_slice() } else { b"" }).unwrap();
                let whole = ends.iter().filter(|end| **end <= cut as u64).count();
                let recovered = recover(&path, name()).unwrap();
                assert_eq!(recovered.covered.records as usize, whole, "cut {cut}");
                assert_eq!(recovered.covered.bytes + recovered.torn_bytes, cut as u64);
                assert_eq!(recovered.lost.is_some(), with_sidecar && whole < 3);
                assert_eq!(entries(&path), all[..whole], "cut {cut}");
                // A second crash right away changes nothing.
                assert_eq!(recover(&path, name()).unwrap().covered, recovered.covered);
            }
        }
    }

    #[test]
    fn damage_in_the_middle_costs_one_record_and_no_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000007-000001.warc.gz");
        let ends = segment(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(ends[1] + ends[2]) as usize / 2] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let recovered = recover(&path, name()).unwrap();
        assert_eq!((recovered.covered.records, recovered.torn_bytes), (6, 0));
        assert_eq!(entries(&path).iter().map(|entry| entry.record).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
    }
}
