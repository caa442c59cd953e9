//! Where a gzip member ends that does not say how long it is, without inflating it.
//!
//! A record's head tells what its member decodes to, and a member ends with that very number; the next one begins with gzip's magic. So
//! the end is where both stand together, if they do so in one place only:
//!
//! ```text
//!   | header | … deflate … | crc 4 | length 4 | 1f 8b 08 …       length = head + block + line ends
//!            └──── no other magic ────────────┘                  and no second such place as far as the member can possibly reach
//! ```
//! A body can hold such a place, by chance or by design; then there are two, or a magic that ends nothing, and the member is inflated as
//! ever. So a page cannot pass off its own bytes as the records that follow it.

use crate::gzip::{GZIP_MAGIC, begins_gzip};
use crate::limits::LOOKS_IN_VAIN_MAX;
use memchr::memmem::Finder;
use std::collections::VecDeque;

/// Bytes of CRC and length behind the compressed data, the length last.
const LENGTH_BYTES: usize = 4;

/// Places ahead at which a member may begin. Each raw byte is looked at once, however many members it may belong to.
pub(super) struct Ahead {
    finder: Finder<'static>,
    /// Looked at from here…
    from: u64,
    /// …up to here.
    to: u64,
    places: VecDeque<u64>,
    /// Members in a row whose end was not found.
    in_vain: u32,
}

impl Ahead {
    pub fn new() -> Ahead {
        let finder = Finder::new(&GZIP_MAGIC);
        Ahead { finder, from: 0, to: 0, places: VecDeque::new(), in_vain: 0 }
    }

    /// Files whose members hold more or less than a record are read at their own pace.
    pub fn worth_a_look(&self) -> bool {
        self.in_vain < LOOKS_IN_VAIN_MAX
    }

    /// Length of the member at the beginning of `window`, which stands at `offset` and is the file's end if `ended`. The member is at
    /// most `most` bytes long and decodes to `decoded`.
    pub fn end_of_member(
        &mut self,
        window: &[u8],
        offset: u64,
        ended: bool,
        most: usize,
        decoded: u32,
    ) -> Option<usize> {
        self.look(window, offset);
        let trailer = decoded.to_le_bytes();
        let ends_before = |at: usize| window[..at].ends_with(&trailer);
        let mut places = self.places.iter().map(|place| (place - offset) as usize).take_while(|at| *at <= most);
        let last = (ended && window.len() <= most).then_some(window.len());
        let end = places.next().or(last)?;
        let next_begins = end == window.len() || begins_gzip(&window[end..]);
        let only_one = !places.chain(last.filter(|last| *last > end)).any(ends_before);
        let found = (end > LENGTH_BYTES && ends_before(end) && next_begins && only_one).then_some(end);
        self.in_vain = if found.is_some() { 0 } else { self.in_vain + 1 };
        found
    }

    /// Looks at what it has not seen of `window`.
    fn look(&mut self, window: &[u8], offset: u64) {
        let end = offset + window.len() as u64;
        if offset < self.from || offset > self.to || self.to > end {
            self.places.clear();
            self.to = offset;
        }
        self.from = offset;
        while self.places.front().is_some_and(|place| *place <= offset) {
            self.places.pop_front();
        }
        let seen = (self.to - offset) as usize;
        self.places.extend(self.finder.find_iter(&window[seen..]).map(|at| self.to + at as u64));
        // The magic may straddle the end of the window: its first bytes are looked at again.
        self.to = self.to.max(end.saturating_sub(GZIP_MAGIC.len() as u64 - 1));
    }
}

/// How long a member can be that decodes to so many bytes: zlib's own bound for its clumsiest settings, and an eighth of room for
/// writers that flush often.
pub(super) fn longest_member(header_bytes: usize, decoded: u64) -> u64 {
    header_bytes as u64 + decoded.saturating_add(decoded / 4).saturating_add(64)
}
