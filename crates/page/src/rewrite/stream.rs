//! Bytes that come in pieces of any size are rewritten as if they came at once.

use crate::limits::HELD_BYTES_MAX;

/// What follows the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Something may: a token that reaches the end of the window waits.
    More,
    /// The same, and the window is as large as it gets: a token that reaches its end is passed on as it stands.
    Full,
    /// Nothing.
    Last,
}

/// Something that is rewritten from token to token.
pub trait Step {
    /// Rewrites the window from its beginning and says how many of its bytes are done with. With [`End::More`], what is left over
    /// comes again with more behind it; otherwise at least one byte is done with, and all of them at the last.
    fn step(&mut self, window: &[u8], end: End, out: &mut Vec<u8>) -> usize;
}

/// Holds back what a step could not yet decide.
#[derive(Debug)]
pub struct Stream<S> {
    step: S,
    held: Vec<u8>,
    /// Fewer held bytes are not worth another look: what waits is looked at again when it has doubled, so that pieces of one byte
    /// cost no more than twice the whole.
    wanted: usize,
}

impl<S: Step> Stream<S> {
    pub fn new(step: S) -> Stream<S> {
        Stream { step, held: Vec::new(), wanted: 0 }
    }

    pub fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let done = self.advance(piece, false, out);
            self.held.extend_from_slice(&piece[done..]);
        } else {
            self.held.extend_from_slice(piece);
            if self.held.len() < self.wanted {
                return;
            }
            let held = std::mem::take(&mut self.held);
            let done = self.advance(&held, false, out);
            self.held = held;
            self.held.drain(..done);
        }
        self.wanted = (self.held.len() * 2).min(HELD_BYTES_MAX);
    }

    pub fn end(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.advance(&held, true, out);
    }

    fn advance(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let fits = rest.len() < HELD_BYTES_MAX;
            let window = &rest[..rest.len().min(HELD_BYTES_MAX)];
            if last && fits {
                self.step.step(window, End::Last, out);
                return bytes.len();
            }
            let mut done = self.step.step(window, End::More, out);
            if done == 0 && !fits {
                done = self.step.step(window, End::Full, out).max(1);
            }
            at += done;
            if fits {
                return at;
            }
        }
    }
}
