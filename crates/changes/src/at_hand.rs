//! Records of one's own segments, read one after the other with what the last one needed still at hand: the open file, the buffers, the
//! tables of the decompressor. What is not one gzip member with one answer in it is for the archive to read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use skep_archive::{Archive, Capture, Place, Position, WriterKey};
use skep_warc::deflate::Inflater;
use skep_warc::{Head, RecordKind};

use crate::bodies::Body;
use crate::limits::{BODY_BYTES_MAX, KEPT_BYTES_MAX};

/// What was needed to read a record, for the next.
#[derive(Default)]
pub struct AtHand {
    file: Option<(PathBuf, File)>,
    stored: Vec<u8>,
    plain: Vec<u8>,
    inflater: Inflater,
}

/// One for each thread that reads.
#[derive(Default)]
pub struct Hands(Mutex<Vec<AtHand>>);

impl Hands {
    /// Reads with what is at hand.
    pub fn read<T>(&self, with: impl FnOnce(&mut AtHand) -> T) -> T {
        let mut hand = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let read = with(&mut hand);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hand);
        read
    }
}

impl AtHand {
    /// The body of a capture, by the place that it names; the record there has to be that of the capture.
    pub fn of(&mut self, archive: &Archive, capture: &Capture) -> Option<Body> {
        let path = is_own(archive, capture.position).then(|| archive.file_of(capture.position).ok())??;
        let place = Place { path, offset: capture.offset, length: capture.length, nth: 0 };
        let is_it =
            |head: &Head| head.target_uri() == Some(capture.url.as_bytes()) && head.date_ms() == Some(capture.time_ms);
        self.read(place, capture.position, is_it)
    }

    /// The body that a record holds.
    pub fn at(&mut self, archive: &Archive, position: Position) -> Option<Body> {
        let place = is_own(archive, position).then(|| archive.place(position).ok())??;
        self.read(place, position, |_| true)
    }

    fn read(&mut self, place: Place, position: Position, is_it: impl Fn(&Head) -> bool) -> Option<Body> {
        let length = usize::try_from(place.length).ok().filter(|length| *length <= KEPT_BYTES_MAX && place.nth == 0)?;
        if self.file.as_ref().is_none_or(|(path, _)| *path != place.path) {
            self.file = Some((place.path.clone(), File::open(&place.path).ok()?));
        }
        let (_, file) = self.file.as_ref()?;
        if self.stored.len() < length {
            self.stored.resize(length, 0);
        }
        let stored = &mut self.stored[..length];
        file.read_exact_at(stored, place.offset).ok()?;
        self.plain.clear();
        let inflated = self.inflater.inflate_gzip_member(stored, &mut self.plain, KEPT_BYTES_MAX).ok()?;
        let head_bytes = self.plain.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let (head, rest) = self.plain.split_at(head_bytes);
        let head = Head::parse_warc(head);
        let block_bytes = usize::try_from(head.content_length()?).ok()?;
        // The member is the record, and the record is whole.
        let whole = inflated.consumed == length && rest.get(block_bytes..) == Some(b"\r\n\r\n".as_slice());
        let plain = head.kind() == RecordKind::Response && block_bytes as u64 <= BODY_BYTES_MAX;
        (whole && plain && head.is_ended() && is_it(&head))
            .then(|| Body::of_block(position, &rest[..block_bytes], false))
    }
}

/// Whether it is in a segment that was written here, and not removed.
fn is_own(archive: &Archive, position: Position) -> bool {
    position.writer != WriterKey::FOREIGN && !archive.views().is_hidden(position)
}
