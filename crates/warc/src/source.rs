//! Raw bytes of a file or stream, through a window that can go back where the file can.

use crate::limits::READ_BYTES;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

enum Inner {
    File(File),
    Stream(Box<dyn Read + Send>),
}

/// The window `buffer[start..end]` shows the bytes from `offset` on.
pub(crate) struct Source {
    inner: Inner,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    /// Bytes from here on are not part of what is read (a byte range, an entry of a package).
    limit: u64,
    ended: bool,
    /// Bytes that were read more than once.
    pub reread: u64,
}

impl Source {
    /// A file, from `offset` up to `limit`.
    pub fn file(mut file: File, offset: u64, limit: u64) -> io::Result<Source> {
        // Pipes and terminals opened by name cannot seek, and need not when they are read from their beginning.
        if let Err(error) = file.seek(SeekFrom::Start(offset)) {
            return if offset == 0 { Ok(Source::stream(Box::new(file))) } else { Err(error) };
        }
        Ok(Source::new(Inner::File(file), offset, limit))
    }

    pub fn stream(stream: Box<dyn Read + Send>) -> Source {
        Source::new(Inner::Stream(stream), 0, u64::MAX)
    }

    fn new(inner: Inner, offset: u64, limit: u64) -> Source {
        Source { inner, buffer: Vec::new(), start: 0, end: 0, offset, limit, ended: false, reread: 0 }
    }

    pub fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// No more bytes will follow those in the window.
    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn can_go_back(&self) -> bool {
        matches!(self.inner, Inner::File(_))
    }

    /// Fills the window to at least `wanted` bytes, or to the end of the file.
    pub fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.end - self.start < wanted && !self.ended {
            let held = self.end - self.start;
            let left = usize::try_from(self.limit.saturating_sub(self.offset + held as u64)).unwrap_or(usize::MAX);
            if left == 0 {
                self.ended = true;
                break;
            }
            if self.start > 0 && self.buffer.len() - self.end < READ_BYTES / 4 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, held);
            }
            // No more room than there are bytes: most of what is read by its place is one short record.
            let room = wanted.max(READ_BYTES).min(held.saturating_add(left));
            if self.buffer.len() < room || self.end == self.buffer.len() {
                let size = (self.end + READ_BYTES.min(left)).max(room);
                self.buffer.resize(size, 0);
            }
            let most = left.min(self.buffer.len() - self.end);
            let into = &mut self.buffer[self.end..self.end + most];
            let read = match &mut self.inner {
                Inner::File(file) => read_retrying(file, into)?,
                Inner::Stream(stream) => read_retrying(stream, into)?,
            };
            self.end += read;
            self.ended = read == 0;
        }
        Ok(())
    }

    /// Moves the window to `offset`: back only where `can_go_back`, forward always.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        if offset < self.offset {
            self.reread += self.offset - offset;
        }
        let kept_from = self.offset - self.start as u64;
        let kept_to = self.offset + (self.end - self.start) as u64;
        if (kept_from..=kept_to).contains(&offset) {
            self.start = (offset - kept_from) as usize;
            self.offset = offset;
            return Ok(());
        }
        match &mut self.inner {
            Inner::File(file) => {
                file.seek(SeekFrom::Start(offset))?;
                (self.start, self.end, self.offset, self.ended) = (0, 0, offset, false);
            }
            Inner::Stream(_) => {
                assert!(offset > self.offset, "a stream cannot go back");
                while self.offset < offset {
                    self.fill(1)?;
                    let here = (self.end - self.start).min((offset - self.offset) as usize);
                    if here == 0 {
                        break;
                    }
                    self.consume(here);
                }
            }
        }
        Ok(())
    }

    /// Bytes at `offset` without moving the window; `None` where the source cannot look ahead, fewer bytes at the end.
    pub fn peek(&self, offset: u64, into: &mut [u8]) -> io::Result<Option<usize>> {
        let kept_from = self.offset - self.start as u64;
        if let Some(at) = offset.checked_sub(kept_from)
            && let Some(here) =
                usize::try_from(at).ok().and_then(|at| self.buffer[..self.end].get(at..at.checked_add(into.len())?))
        {
            into.copy_from_slice(here);
            return Ok(Some(into.len()));
        }
        let Inner::File(file) = &self.inner else { return Ok(None) };
        let most = usize::try_from(self.limit.saturating_sub(offset)).unwrap_or(usize::MAX).min(into.len());
        let mut done = 0;
        while done < most {
            match file.read_at(&mut into[done..most], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(done))
    }
}

fn read_retrying(reader: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
