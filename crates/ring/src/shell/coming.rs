//! An answer as it comes. The wire waits so long for each part of it; here is how long all parts together may take, so that who sends a byte
//! now and then keeps nobody waiting for ever.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use crate::limits::{ANSWER_MS_MAX, ANSWER_SLOW_BYTES_PER_MS};

/// An answer that has come within a time, or ends in an error. Time that whoever reads it takes for something else does not count.
pub(super) struct Coming<R> {
    answer: R,
    waited: Duration,
    came: u64,
    /// So long it may take whatever comes; from then on it comes at the slowest pace at least …
    patience: Duration,
    /// … and at any pace it may take no longer than this.
    most: Duration,
}

impl<R: Read> Coming<R> {
    pub fn new(answer: R, patience: Duration, most: Duration) -> Coming<R> {
        Coming { answer, waited: Duration::ZERO, came: 0, patience, most }
    }

    fn is_late(&self) -> bool {
        let so_far = self.patience.saturating_add(Duration::from_millis(self.came / ANSWER_SLOW_BYTES_PER_MS));
        self.waited >= so_far.min(self.most)
    }
}

impl<R: Read> Read for Coming<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let since = Instant::now();
        let read = self.answer.read(buffer);
        self.waited += since.elapsed();
        let read = read?;
        self.came += read as u64;
        if read > 0 && self.is_late() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(read) }
    }
}

/// Copies what comes, up to so many bytes and so long.
pub(super) fn copy_within(
    from: &mut dyn Read,
    to: &mut dyn Write,
    bytes_max: u64,
    time_max: Duration,
) -> io::Result<u64> {
    copy(Coming::new(from, time_max, time_max), to, &mut |length| length <= bytes_max)
}

/// An answer that is read as a whole, whose beginning was waited for so long. What comes is counted by `has_room`, which says whether there
/// may be so much of it.
pub(super) fn whole(
    answer: impl Read,
    patience: Duration,
    has_room: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let answer = Coming::new(answer, patience, Duration::from_millis(ANSWER_MS_MAX).max(patience));
    copy(answer, &mut bytes, has_room)?;
    Ok(bytes)
}

fn copy(mut from: impl Read, to: &mut dyn Write, has_room: &mut dyn FnMut(u64) -> bool) -> io::Result<u64> {
    let (mut piece, mut length) = (vec![0; 64 << 10], 0);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(length),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read as u64;
        if !has_room(length) {
            return Err(io::Error::other("it takes too much room"));
        }
        to.write_all(&piece[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part at a time, for ever.
    struct Drip(usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            let read = self.0.min(buffer.len());
            buffer[..read].fill(1);
            Ok(read)
        }
    }

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn an_answer_that_drips_ends() {
        let late = |read: io::Result<u64>| assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        late(io::copy(&mut Coming::new(Drip(1), SOON, Duration::MAX), &mut io::sink()));
        late(copy_within(&mut Drip(1), &mut io::sink(), u64::MAX, SOON));
        late(whole(Drip(1), SOON, &mut |_| true).map(|bytes| bytes.len() as u64));
        // At any pace: what never ends, ends.
        late(io::copy(&mut Coming::new(Drip(64 << 10), SOON, 2 * SOON), &mut io::sink()));
    }

    #[test]
    fn an_answer_that_comes_slowly_but_surely_is_taken() {
        let (piece, pieces) = (64 << 10, 50);
        let mut slow = Coming::new(Drip(piece).take((piece * pieces) as u64), SOON, Duration::MAX);
        assert_eq!(io::copy(&mut slow, &mut io::sink()).unwrap(), (piece * pieces) as u64);
        assert!(slow.waited > SOON, "longer than its beginning was waited for");
    }

    #[test]
    fn an_answer_takes_no_more_room_than_there_is() {
        let ten = || Drip(4).take(10);
        assert_eq!(whole(ten(), Duration::MAX, &mut |length| length <= 10).unwrap(), [1; 10]);
        assert!(whole(ten(), Duration::MAX, &mut |length| length <= 9).is_err());
        assert!(copy_within(&mut ten(), &mut io::sink(), 9, Duration::MAX).is_err());
    }
}
