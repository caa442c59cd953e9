//! Bytes of segments: pulled into the archive piece by piece, given to others, hashed for audits. Read top to bottom.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use skep_archive::layout::{SegmentId, SegmentName};
use skep_archive::{Error, PIECE_HEAD_BYTES_MAX, Piece, State, Taking, WriterKey};

use super::Shell;
use super::coming::Coming;
use super::question::{Question, YES, is_yes};
use crate::audit;
use crate::copy::{Extent, Segment};
use crate::genesis::Slice;
use crate::key::{Hash, Key};
use crate::limits::{PULL_MS_MAX, PULL_PIECE_BYTES, PULL_READ_BYTES, PULL_SLOW_BYTES_PER_MS, QUESTION_MS_MAX};
use crate::message::Range;
use crate::node::{Event, PullFault};

pub(super) fn name_of(segment: &Segment) -> SegmentName {
    let id = SegmentId { writer: WriterKey(segment.writer), number: segment.number };
    SegmentName { id, generation: segment.generation }
}

impl Shell {
    /// Copies what a peer has of a segment and is not here.
    pub(super) fn pull(self: &Arc<Shell>, slice: Slice, from: Key, extent: Extent, have: u64) -> Event {
        let name = name_of(&extent.segment);
        self.wait_deleted(slice);
        let before = self.has(slice, name);
        match self.pull_pieces(slice, name, from, &extent, have) {
            Ok(()) => {}
            Err(why) => {
                if why == PullFault::Own {
                    // A full or failing disk is not helped by trying at once.
                    self.rest(Duration::from_millis(self.settings.answer_ms));
                }
                return Event::PullFailed { slice, from, segment: extent.segment, why };
            }
        }
        self.follow_removals();
        match self.has(slice, name) {
            // Who promises more and gives nothing would be asked for ever.
            held if held == before => {
                Event::PullFailed { slice, from, segment: extent.segment, why: PullFault::Missing }
            }
            Some(extent) => Event::Pulled { slice, from, extent },
            None => Event::PullFailed { slice, from, segment: extent.segment, why: PullFault::Missing },
        }
    }

    /// What is here of a segment, whichever generation.
    fn has(&self, slice: Slice, name: SegmentName) -> Option<Extent> {
        self.extents(slice).into_iter().find(|held| name_of(&held.segment).id == name.id)
    }

    fn pull_pieces(
        &self,
        slice: Slice,
        name: SegmentName,
        from: Key,
        extent: &Extent,
        have: u64,
    ) -> Result<(), PullFault> {
        let to = extent.bytes;
        let here = self.archive.segments().into_iter().find(|segment| segment.name.id == name.id);
        let sealed = here.as_ref().is_some_and(|here| here.state == State::Sealed && here.name == name);
        // What stands here sealed is asked for only if it is damaged; what does not fit is copied beside, if there is a seal to prove
        // the other; what was rewritten never grows; and nobody but this node appends to what it writes.
        let afresh = have == 0 && here.is_some() && extent.seal.is_some();
        let own = name.id.writer == self.archive.writer();
        let taking = match sealed || afresh || name.generation > 0 || own {
            true => Taking::Whole,
            false => Taking::Tail,
        };
        let at = self.archive.copied(name, taking).map_err(|_| PullFault::Own)?;
        if at >= to && taking == Taking::Tail {
            // What is sealed is never longer than its seal says: something else was copied under its name.
            return if extent.seal.is_some() { Err(PullFault::Altered) } else { Ok(()) };
        }
        let segment =
            Segment { writer: name.id.writer.0, number: name.id.number, half: 0, generation: name.generation };
        let question = Question::Pull { segment, from: at, to }.encode();
        let lost = |_: io::Error| PullFault::Unreachable;
        let asked = self.wire.ask(from, &question, Duration::from_millis(QUESTION_MS_MAX));
        let answer = asked.map_err(|_| PullFault::Unreachable)?;
        // It ends before the machine gives it up: the thread is wanted for others.
        let most_ms = PULL_MS_MAX + to.saturating_sub(at) / PULL_SLOW_BYTES_PER_MS;
        let answer = Coming::new(answer, Duration::from_millis(QUESTION_MS_MAX), Duration::from_millis(most_ms));
        let mut answer = BufReader::with_capacity(PULL_READ_BYTES, answer);
        is_yes(&mut answer).map_err(lost)?.map_err(|_| PullFault::Missing)?;
        let mut buffer = vec![0; PULL_READ_BYTES];
        let mut came = false;
        while let Some(piece) = read_head(&mut answer)? {
            if piece.name != name || piece.half.prefix() != slice || piece.half.bits() != self.genesis().slice_bits {
                return Err(PullFault::Altered);
            }
            let mut left = piece.length();
            self.came(&piece.entries);
            let mut copying = self.archive.copy(piece, taking).map_err(|error| fault(&error))?;
            while left > 0 {
                let part = left.min(PULL_READ_BYTES as u64) as usize;
                answer.read_exact(&mut buffer[..part]).map_err(lost)?;
                copying.write(&buffer[..part]).map_err(|error| fault(&error))?;
                left -= part as u64;
                self.pulled_bytes.fetch_add(part as u64, Ordering::Relaxed);
            }
            let copied = copying.finish().map_err(|error| fault(&error))?;
            came = true;
            if copied.sealed {
                break;
            }
        }
        // The views follow, and what they have seen is what is here.
        self.archive.settle().map_err(|_| PullFault::Own)?;
        if came { Ok(()) } else { Err(PullFault::Missing) }
    }

    /// Gives pieces of a segment to whoever asked.
    pub(super) fn give(&self, segment: &Segment, from: u64, to: u64, out: &mut dyn Write) -> io::Result<()> {
        let name = name_of(segment);
        let piece = |at: u64| self.archive.piece(name, at, PULL_PIECE_BYTES);
        let mut next = match piece(from) {
            Ok(Some(piece)) => Some(piece),
            Ok(None) | Err(_) => return super::answers::no(out, "that is not here"),
        };
        out.write_all(&[YES])?;
        let mut buffer = vec![0; PULL_READ_BYTES];
        while let Some(piece) = next {
            let file = self.archive.piece_file(&piece).map_err(io::Error::other)?;
            let head = piece.head();
            out.write_all(&(head.len() as u32).to_le_bytes())?;
            out.write_all(&head)?;
            let mut at = piece.from;
            while at < piece.to {
                let part = (piece.to - at).min(PULL_READ_BYTES as u64) as usize;
                file.read_exact_at(&mut buffer[..part], at)?;
                out.write_all(&buffer[..part])?;
                at += part as u64;
            }
            if piece.closes() || piece.to >= to {
                break;
            }
            next = self.archive.piece(name, piece.to, PULL_PIECE_BYTES).map_err(io::Error::other)?;
        }
        out.flush()
    }

    /// The proof that these bytes are here; `None` if they are not.
    pub(super) fn hash(&self, key: &[u8; 32], ranges: &[Range]) -> Option<Hash> {
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            let piece = self.archive.stretch(name_of(&range.segment), range.offset, u64::from(range.bytes));
            pieces.push(piece.ok().flatten()?);
        }
        Some(audit::proof(key, pieces.iter().map(Vec::as_slice)))
    }
}

/// The head of the next piece; `None` at the end.
fn read_head(answer: &mut dyn Read) -> Result<Option<Piece>, PullFault> {
    let mut length = [0; 4];
    match answer.read(&mut length[..1]) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(_) => return Err(PullFault::Unreachable),
    }
    answer.read_exact(&mut length[1..]).map_err(|_| PullFault::Unreachable)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > PIECE_HEAD_BYTES_MAX {
        return Err(PullFault::Altered);
    }
    let mut head = vec![0; length];
    answer.read_exact(&mut head).map_err(|_| PullFault::Unreachable)?;
    Piece::parse(&head).map(Some).map_err(|_| PullFault::Altered)
}

/// Whose fault it is that a piece was not taken.
fn fault(error: &Error) -> PullFault {
    match error {
        Error::Damaged { .. } => PullFault::Altered,
        // Somebody else brings it just now, or brought it.
        _ => PullFault::Own,
    }
}
