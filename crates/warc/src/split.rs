//! One large compressed file, read by several cores.
//!
//! The file is cut into parts; in each the first member that begins a record is looked for. Such a place can be wrong: a body may hold
//! a WARC file of its own. So a part is believed only when the part before it ends exactly where it begins; else it is read again from
//! there.

use crate::limits::PART_BYTES_MIN;
use crate::options::Options;
use crate::read::Reader;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// A piece of a file, from a record's beginning to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which piece, counted from 0.
    pub index: usize,
    /// Offset of its first record.
    pub start: u64,
    /// Records that begin here or later belong to the next piece.
    pub end: u64,
    /// Size of the file.
    pub size: u64,
}

/// Reads a file in parts with `threads` threads: `read` gets a reader that ends where its part ends, and must read it to its end; `take`
/// gets the results in the order of the file. A plain file, and one that is small, is one part.
pub fn read_parts<T: Send>(
    path: &Path,
    threads: usize,
    options: &Options,
    read: impl Fn(&mut Reader, Part) -> io::Result<T> + Sync,
    mut take: impl FnMut(T) -> io::Result<()>,
) -> io::Result<()> {
    let starts = if threads > 1 { part_starts(path, threads)? } else { vec![0] };
    let size = std::fs::metadata(path)?.len();
    let part = |index: usize, start: u64| {
        let end = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        Part { index, start, end, size }
    };
    let run = |part: Part| -> io::Result<(T, u64)> {
        let mut reader = Reader::at(path, part.start, None, options.clone())?;
        reader.stop_at(part.end);
        let result = read(&mut reader, part)?;
        Ok((result, if part.end == u64::MAX { u64::MAX } else { reader.next_offset() }))
    };
    let next = AtomicUsize::new(0);
    // One channel a part keeps the order; permits keep results of parts far ahead from piling up.
    let (senders, receivers): (Vec<_>, Vec<_>) = starts.iter().map(|_| mpsc::sync_channel(1)).unzip();
    let (tokens, permits) = mpsc::sync_channel::<()>(starts.len() + threads * 2);
    let permits = std::sync::Mutex::new(permits);
    for _ in 0..threads * 2 {
        let _ = tokens.send(());
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (next, senders, run, part, starts, permits) = (&next, senders.clone(), &run, &part, &starts, &permits);
            scope.spawn(move || {
                loop {
                    if permits.lock().is_ok_and(|p| p.recv().is_err()) {
                        return;
                    }
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&start) = starts.get(index) else { return };
                    if senders[index].send(run(part(index, start))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(senders);
        let mut expected = 0u64;
        let outcome = (|| {
            for (index, receiver) in receivers.iter().enumerate() {
                let (mut result, mut reached) =
                    receiver.recv().map_err(|_| io::Error::other("a reading thread stopped"))??;
                if expected != starts[index] && expected > part(index, 0).end {
                    // The part before ran past all of this one: nothing of it is true.
                    let _ = tokens.send(());
                    continue;
                }
                if expected != starts[index] {
                    (result, reached) = run(part(index, expected))?;
                }
                take(result)?;
                expected = reached;
                let _ = tokens.send(());
            }
            Ok(())
        })();
        drop(receivers);
        drop(tokens);
        outcome
    })
}

/// Offsets at which parts may begin.
fn part_starts(path: &Path, threads: usize) -> io::Result<Vec<u64>> {
    let size = std::fs::metadata(path)?.len();
    let parts = (size / PART_BYTES_MIN).min(threads as u64 * 8);
    let mut starts = vec![0];
    for i in 1..parts {
        let wanted = size / parts * i;
        let file = File::open(path)?;
        let found = crate::read::next_member(file, wanted, size / parts)?;
        starts.extend(found.filter(|found| Some(found) > starts.last()));
    }
    Ok(starts)
}
