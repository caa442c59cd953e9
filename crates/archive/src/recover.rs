//! Recovery: after any end of the process, find what counts, drop what does not, and say so.
//!
//! ```text
//!  segment  ├──────── named by the sidecar ────────┼── whole records ──┼─ torn ─┤
//!                     (synced before named:        described and       cut, if the
//!                      not read again)             named now           segment is ours
//! ```
//! A sidecar names a record only after it is synced, and follows by at most the lag of the views, so what has to be read
//! again is bounded. Without a sidecar the whole segment is read. What is torn is only what stands behind the last whole
//! record: whole records behind damage were acknowledged, and count.
//!
//! A sealed segment that is not as long as it was sealed has lost or gained something that no crash of ours explains. It is
//! left as it is, and so is its sidecar, which knows what should be there.

use std::io::BufRead;
use std::path::Path;

use skep_warc::{Options, Reader};

use crate::describe::describe;
use crate::error::{Error, Result};
use crate::layout::{HalfSlice, SegmentName, sidecar_of};
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

const NOTHING: Covered = Covered { records: 0, bytes: 0, sidecar_bytes: 0, closed: false };

/// What has to be done about a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The sidecar names everything.
    Nothing,
    /// Records behind what the sidecar names are looked at.
    Tail(Covered),
    /// The sidecar is missing or names more than there is: every record is looked at.
    Afresh,
    /// It was sealed, and does not end with its closing record: nothing is looked for.
    Leave(Covered),
}

/// What a segment is to this archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Nobody has it if not this archive.
    Kept,
    /// The same, and the views have seen it sealed.
    Sealed,
    /// A copy: what is missing is copied again, from the first byte that is not as it was.
    Copied,
}

/// Decides from the length of the segment and what its sidecar names.
pub fn plan(segment_bytes: u64, covered: Option<Covered>, keeping: Keeping) -> Plan {
    match covered {
        Some(covered) if covered.bytes == segment_bytes => Plan::Nothing,
        Some(covered) if covered.closed && (keeping != Keeping::Copied || covered.bytes < segment_bytes) => {
            Plan::Leave(covered)
        }
        covered if keeping == Keeping::Sealed => Plan::Leave(covered.unwrap_or(NOTHING)),
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
    /// Damage that was passed over just now, if there was some.
    pub damage: Option<Passed>,
}

/// Bytes between whole records that are no whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Where the first of them stand.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

/// Brings the sidecar of a segment up to date. Changes nothing else: cutting the torn tail is for whoever owns it. Of a sealed
/// segment that does not end where it was sealed, not even the sidecar is changed; `covered` is then what should be there.
pub fn recover(segment: &Path, name: SegmentName, keeping: Keeping) -> Result<Recovered> {
    let bytes = segment.metadata().map_err(|error| Error::io("cannot look at", segment, error))?.len();
    let sidecar = sidecar_of(segment);
    let covered = covered(&sidecar, name)?;
    match plan(bytes, covered, keeping) {
        Plan::Nothing => {
            let covered = covered.unwrap_or(NOTHING);
            if sidecar.metadata().is_ok_and(|meta| meta.len() != covered.sidecar_bytes) {
                // Whoever writes on begins at the end of the file: nothing torn may stand there.
                SidecarWriter::resume(&sidecar, covered.sidecar_bytes)?.sync()?;
            }
            Ok(Recovered { covered, torn_bytes: 0, found: 0, lost: None, damage: None })
        }
        Plan::Leave(covered) => Ok(Recovered {
            covered,
            torn_bytes: bytes.saturating_sub(covered.bytes),
            found: 0,
            lost: None,
            damage: None,
        }),
        Plan::Tail(from) => {
            let mut writer = SidecarWriter::resume(&sidecar, from.sidecar_bytes)?;
            let damage = if keeping == Keeping::Copied { Damage::Ends } else { Damage::Passed };
            let (scanned, damage) = scan(segment, name, from, damage, &mut writer)?;
            Ok(Recovered {
                covered: scanned,
                torn_bytes: bytes - scanned.bytes,
                found: scanned.records - from.records,
                lost: None,
                damage,
            })
        }
        Plan::Afresh => {
            let mut writer = SidecarWriter::create(&sidecar, name)?;
            let from = Covered { records: 0, bytes: 0, sidecar_bytes: HEADER_BYTES, closed: false };
            let (scanned, damage) = scan(segment, name, from, Damage::Passed, &mut writer)?;
            let torn_bytes = bytes - scanned.bytes;
            Ok(Recovered { covered: scanned, torn_bytes, found: scanned.records, lost: covered, damage })
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
    /// Nothing behind them counts.
    Ends,
    /// What stands behind them still counts. A stretch of damage counts as one record, so that the numbers behind it stay
    /// right in the likeliest case.
    Passed,
}

/// Names the whole records from `from` on in the sidecar. Says what was passed over between them.
fn scan(
    segment: &Path,
    name: SegmentName,
    from: Covered,
    damage: Damage,
    sidecar: &mut SidecarWriter,
) -> Result<(Covered, Option<Passed>)> {
    let wrong = |error| Error::io("cannot read", segment, error);
    let mut reader = Reader::at(segment, from.bytes, None, Options::recover()).map_err(wrong)?;
    let half = HalfSlice::holding(segment);
    let mut covered = from;
    let mut passed: Option<Passed> = None;
    let mut entries = Vec::new();
    while let Some(mut record) = reader.next().map_err(wrong)? {
        let offset = record.offset();
        let gap = offset != covered.bytes;
        if gap && damage == Damage::Ends {
            break;
        }
        let head = record.head().clone();
        let note = describe(&head, &mut record as &mut dyn BufRead).map_err(wrong)?.filed_in(half);
        let end = record.finish().map_err(wrong)?;
        if end.damaged {
            if damage == Damage::Ends {
                break;
            }
            continue;
        }
        if gap {
            let before = passed.unwrap_or(Passed { offset: covered.bytes, bytes: 0 });
            passed = Some(Passed { bytes: before.bytes + offset.saturating_sub(covered.bytes), ..before });
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
    Ok((Covered { sidecar_bytes: sidecar.length(), ..covered }, passed))
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
        for keeping in [Keeping::Kept, Keeping::Copied] {
            assert_eq!(plan(100, Some(covered), keeping), Plan::Nothing);
            assert_eq!(plan(130, Some(covered), keeping), Plan::Tail(covered));
            assert_eq!(plan(99, Some(covered), keeping), Plan::Afresh);
            assert_eq!(plan(100, None, keeping), Plan::Afresh);
        }
    }

    #[test]
    fn what_was_sealed_is_not_looked_at_for_another_end() {
        let covered = Covered { records: 3, bytes: 100, sidecar_bytes: 50, closed: true };
        for (bytes, keeping, wanted) in [
            (100, Keeping::Kept, Plan::Nothing),
            (99, Keeping::Kept, Plan::Leave(covered)),
            (101, Keeping::Kept, Plan::Leave(covered)),
            (101, Keeping::Copied, Plan::Leave(covered)),
            (99, Keeping::Copied, Plan::Afresh),
            (100, Keeping::Sealed, Plan::Nothing),
            (99, Keeping::Sealed, Plan::Leave(covered)),
        ] {
            assert_eq!(plan(bytes, Some(covered), keeping), wanted, "{bytes} {keeping:?}");
        }
        let torn = Covered { closed: false, ..covered };
        assert_eq!(plan(99, Some(torn), Keeping::Sealed), Plan::Leave(torn));
        assert_eq!(plan(130, Some(torn), Keeping::Sealed), Plan::Leave(torn));
        assert_eq!(plan(99, None, Keeping::Sealed), Plan::Leave(NOTHING));
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
        recover(&path, name(), Keeping::Kept).unwrap();
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
                let recovered = recover(&path, name(), Keeping::Kept).unwrap();
                assert_eq!(recovered.covered.records as usize, whole, "cut {cut}");
                assert_eq!(recovered.covered.bytes + recovered.torn_bytes, cut as u64);
                assert_eq!(recovered.lost.is_some(), with_sidecar && whole < 3);
                assert_eq!(entries(&path), all[..whole], "cut {cut}");
                // A second crash right away changes nothing.
                assert_eq!(recover(&path, name(), Keeping::Kept).unwrap().covered, recovered.covered);
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
        let recovered = recover(&path, name(), Keeping::Kept).unwrap();
        assert_eq!((recovered.covered.records, recovered.torn_bytes), (6, 0));
        assert_eq!(recovered.damage, Some(Passed { offset: ends[1], bytes: ends[2] - ends[1] }));
        assert_eq!(entries(&path).iter().map(|entry| entry.record).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
    }

    #[test]
    fn whole_records_behind_damage_that_the_sidecar_does_not_name_count_unless_they_can_be_copied_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000007-000001.warc.gz");
        let ends = segment(&path);
        recover(&path, name(), Keeping::Kept).unwrap();
        let all = entries(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(ends[2] + ends[3]) as usize / 2] ^= 0x10;
        bytes.extend_from_slice(b"\x1f\x8b\x08 torn");
        std::fs::write(&path, &bytes).unwrap();
        for (keeping, numbers, torn_bytes) in
            [(Keeping::Kept, vec![0, 1, 2, 4, 5], 8), (Keeping::Copied, vec![0, 1, 2], bytes.len() as u64 - ends[2])]
        {
            // A loss of power left the sidecar only its first frame.
            let mut named = SidecarWriter::create(&sidecar_of(&path), name()).unwrap();
            named.append(&all[..1]).unwrap();
            let recovered = recover(&path, name(), keeping).unwrap();
            assert_eq!(entries(&path).iter().map(|entry| entry.record).collect::<Vec<_>>(), numbers, "{keeping:?}");
            assert_eq!((recovered.torn_bytes, recovered.damage.is_some()), (torn_bytes, keeping == Keeping::Kept));
        }
    }
}
