//! gzip members: inflated as a whole where they fit, in steps where they do not, and only their beginning where the rest may not be wanted.

use super::ahead::longest_member;
use super::{Decoding, Stream};
use crate::beginning::Progress;
use crate::deflate::{self, InflateError};
use crate::finding::{Findings, Rule};
use crate::gzip::{GZIP_MAGIC, GzipHeader, Promise, begins_gzip, gzip_header};
use crate::limits::*;
use std::io;

/// A member that is decoded in steps.
pub(super) struct GzipStream {
    inflate: flate2::Decompress,
    crc: u32,
    length: u32,
}

impl Stream {
    /// False when the header itself is no gzip header.
    pub(super) fn begin_gzip(&mut self) -> io::Result<bool> {
        let Some(header) = self.read_gzip_header()? else { return Ok(false) };
        self.promised = header.promise;
        self.can_step_over = false;
        if self.heads_first && self.out.is_empty() && (self.promised.is_some() || self.ahead.worth_a_look()) {
            self.beginning.start();
            self.decoding = Decoding::Begun(header.length);
            self.more_beginning()?;
            return Ok(true);
        }
        if !self.inflate_whole()? {
            self.begin_steps(header.length)?;
            self.more_gzip_by(STREAM_STEP_BYTES)?;
        }
        Ok(true)
    }

    /// The member is decoded in steps, because it is too long or damaged.
    fn begin_steps(&mut self, header_bytes: usize) -> io::Result<()> {
        self.source.fill(header_bytes)?;
        self.source.consume(header_bytes);
        let mut state = self
            .spare
            .take()
            .unwrap_or_else(|| Box::new(GzipStream { inflate: flate2::Decompress::new(false), crc: 0, length: 0 }));
        state.inflate.reset(false);
        (state.crc, state.length) = (0, 0);
        self.decoding = Decoding::Gzip(state);
        Ok(())
    }

    /// Inflates the member in one go; false where it is too long for that, or damaged.
    fn inflate_whole(&mut self) -> io::Result<bool> {
        let mut wanted = WHOLE_MEMBER_BYTES_MIN;
        loop {
            self.source.fill(wanted)?;
            let room = LOOKAHEAD_BYTES.saturating_sub(self.out.len());
            match self.inflater.inflate_gzip_member(self.source.window(), &mut self.out, room) {
                Ok(done) => {
                    self.source.consume(done.consumed);
                    self.decoding = Decoding::Whole;
                    return Ok(true);
                }
                // Either the member is longer than what is at hand, or it is damaged: once more with all that may be gathered, then
                // the streaming decoder tells which.
                Err(InflateError::BadData) if !self.source.ended() && wanted < WHOLE_MEMBER_BYTES_MAX => {
                    wanted = WHOLE_MEMBER_BYTES_MAX;
                }
                Err(_) => return Ok(false),
            }
        }
    }

    fn read_gzip_header(&mut self) -> io::Result<Option<GzipHeader>> {
        let mut wanted = 4096;
        loop {
            self.source.fill(wanted)?;
            match gzip_header(self.source.window()) {
                Some(header) => return Ok(Some(header)),
                None if !self.source.ended() && wanted <= HEAD_BYTES_MAX && begins_gzip(self.source.window()) => {
                    wanted *= 8
                }
                None => return Ok(None),
            }
        }
    }

    /// A little more of the beginning.
    pub(super) fn more_beginning(&mut self) -> io::Result<bool> {
        let Decoding::Begun(header_bytes) = self.decoding else { return Ok(false) };
        let before = self.out.len();
        self.source.fill(BEGINNING_RAW_BYTES)?;
        let data = &self.source.window()[header_bytes..];
        match self.beginning.more(data, &mut self.out, (before + before / 2).max(BEGINNING_BYTES)) {
            Ok(Progress::More) => Ok(true),
            Ok(Progress::Ended { consumed }) if trailer_agrees(&data[consumed..], &self.out) => {
                self.source.consume(header_bytes + consumed + TRAILER_BYTES);
                self.decoding = Decoding::Whole;
                self.can_step_over = false; // it was all decoded: its end is known
                Ok(self.out.len() > before)
            }
            // It does not end as it should, or what is at hand does not suffice: those who decode all of it tell.
            _ => {
                self.out.truncate(before);
                self.decode_all()
            }
        }
    }

    /// The member is wanted as a whole: decodes it anew, which is faster than going on in small steps, and verifies it.
    pub(super) fn decode_all(&mut self) -> io::Result<bool> {
        let Decoding::Begun(header_bytes) = self.decoding else { return Ok(false) };
        let (before, passed) = (self.window().len(), self.position);
        self.can_step_over = false;
        self.out.clear();
        self.position = 0;
        if !self.inflate_whole()? {
            self.begin_steps(header_bytes)?;
            while self.out.len() <= passed && self.more_gzip_by(STREAM_STEP_BYTES)? {}
        }
        self.position = passed.min(self.out.len());
        Ok(self.window().len() > before)
    }

    /// The block at hand is wanted, or its length is doubtful.
    pub fn want_all(&mut self) -> io::Result<()> {
        self.decode_all().map(|_| ())
    }

    /// Whether the rest of the member can be stepped over if it decodes to so many bytes in all: the member says how long it is, another
    /// member or the end of the file stands behind it, and the length in its trailer is the one expected. Where the member does not say
    /// it, its end is looked for.
    pub fn find_end(&mut self, decoded: u64, findings: &mut Findings) -> io::Result<bool> {
        let Decoding::Begun(header_bytes) = self.decoding else { return Ok(false) };
        let Some(promise) = self.promised else { return self.look_for_end(header_bytes, decoded) };
        if !self.source.can_go_back() && promise.member <= WHOLE_MEMBER_BYTES_MAX as u64 {
            self.source.fill(promise.member as usize + GZIP_MAGIC.len())?;
        }
        // The last four bytes of the trailer, and what follows it.
        let mut there = [0u8; 7];
        let Some(got) = self.source.peek((self.member_start + promise.member).saturating_sub(4), &mut there)? else {
            return Ok(false); // a stream, and too far ahead
        };
        let agrees = promise.member > (header_bytes + TRAILER_BYTES) as u64
            && there[..4] == promise.decoded.to_le_bytes()
            && (got == 4 || (got == there.len() && there[4..] == GZIP_MAGIC));
        if !agrees {
            findings.push(Rule::MemberLengthField, self.member_start, None, promise.member.to_string());
            self.promised = None;
        }
        self.can_step_over = agrees && u64::from(promise.decoded) == decoded;
        Ok(self.can_step_over)
    }

    /// The same for a member that does not say how long it is; see [`super::ahead`].
    fn look_for_end(&mut self, header_bytes: usize, decoded: u64) -> io::Result<bool> {
        let most = longest_member(header_bytes, decoded);
        if most > WHOLE_MEMBER_BYTES_MAX as u64 {
            return Ok(false); // nobody holds so much only to look through it
        }
        self.source.fill(most as usize + GZIP_MAGIC.len())?;
        let (window, ended) = (self.source.window(), self.source.ended());
        if let Some(member) = self.ahead.end_of_member(window, self.member_start, ended, most as usize, decoded as u32)
        {
            self.promised = Some(Promise { member: member as u64, decoded: decoded as u32 });
            self.can_step_over = true;
        }
        Ok(self.can_step_over)
    }

    /// Whether the rest of the member can be stepped over.
    pub fn can_step_over(&self) -> bool {
        self.can_step_over
    }

    /// Steps over the rest of the member, which [`Stream::find_end`] has found.
    pub fn step_over(&mut self) -> io::Result<()> {
        if let Some(promise) = self.promised.filter(|_| self.can_step_over) {
            self.source.go_to(self.member_start + promise.member)?;
            self.out.clear();
            self.position = 0;
            self.can_step_over = false;
            self.end_member(None);
        }
        Ok(())
    }

    pub(super) fn more_gzip_by(&mut self, step: usize) -> io::Result<bool> {
        self.make_room();
        let Decoding::Gzip(state) = &mut self.decoding else { return Ok(false) };
        let before = self.out.len();
        self.out.reserve(step);
        let mut ended = None;
        while ended.is_none() && self.out.len() - before < step {
            self.source.fill(1)?;
            let (taken, made) = (state.inflate.total_in(), self.out.len());
            self.out.resize(before + step, 0);
            let made_before = state.inflate.total_out();
            let status =
                state.inflate.decompress(self.source.window(), &mut self.out[made..], flate2::FlushDecompress::None);
            let got = (state.inflate.total_out() - made_before) as usize;
            self.out.truncate(made + got);
            state.crc = deflate::crc32(state.crc, &self.out[made..]);
            state.length = state.length.wrapping_add(got as u32);
            let used = (state.inflate.total_in() - taken) as usize;
            self.source.consume(used);
            ended = match status {
                Ok(flate2::Status::StreamEnd) => Some(None),
                Ok(_) if used == 0 && got == 0 && self.source.window().is_empty() => {
                    Some(Some((Rule::ContainerTruncated, "gzip member".to_owned())))
                }
                Ok(_) if used == 0 && got == 0 && !self.out.is_empty() && self.out.len() - before >= step => break,
                Ok(flate2::Status::BufError) if used == 0 && got == 0 => {
                    Some(Some((Rule::ContainerDamaged, "gzip member does not go on".to_owned())))
                }
                Ok(_) => None,
                Err(error) => Some(Some((Rule::ContainerDamaged, error.to_string()))),
            };
        }
        let Some(end) = ended else { return Ok(true) };
        let fault = match end {
            Some(fault) => Some(fault),
            None => {
                let (crc, length) = (state.crc, state.length);
                self.source.fill(8)?;
                match self.source.window().first_chunk::<8>().copied() {
                    None => Some((Rule::ContainerTruncated, "gzip trailer".to_owned())),
                    Some(trailer) => {
                        self.source.consume(8);
                        let [c, l] = [0, 4]
                            .map(|i| u32::from_le_bytes([trailer[i], trailer[i + 1], trailer[i + 2], trailer[i + 3]]));
                        ((c, l) != (crc, length)).then(|| (Rule::ContainerChecksum, "gzip member".to_owned()))
                    }
                }
            }
        };
        self.end_member(fault);
        Ok(self.out.len() > before)
    }
}

/// CRC and length behind the compressed data.
const TRAILER_BYTES: usize = 8;

fn trailer_agrees(trailer: &[u8], decoded: &[u8]) -> bool {
    trailer.first_chunk::<TRAILER_BYTES>().is_some_and(|trailer| {
        trailer[4..] == (decoded.len() as u32).to_le_bytes() && trailer[..4] == deflate::crc32(0, decoded).to_le_bytes()
    })
}
