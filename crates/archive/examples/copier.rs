//! Copies the segments of one archive into another, piece by small piece, and tells each piece that is synced: for tests that kill it.
//!
//! ```text
//! copier FROM TO
//! ```

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use skep_archive::{Archive, OpenOptions, Taking};

const PIECE_BYTES: u64 = 3_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copier FROM TO".into());
    };
    let from = Archive::open(Path::new(&from), OpenOptions::read_only())?;
    let options = OpenOptions { copies: true, disk_reserve_bytes: 0, ..OpenOptions::create() };
    let to = Archive::open(Path::new(&to), options)?;
    for held in from.held(0, u32::MAX)? {
        loop {
            let at = to.copied(held.name, Taking::Tail)?;
            if at >= held.bytes {
                break;
            }
            let Some(piece) = from.piece(held.name, at, PIECE_BYTES)? else { break };
            let file = from.piece_file(&piece)?;
            let (mut at, end) = (piece.from, piece.to);
            let mut copying = to.copy(piece, Taking::Tail)?;
            let mut buffer = [0; 700];
            while at < end {
                let part = (end - at).min(buffer.len() as u64) as usize;
                file.read_exact_at(&mut buffer[..part], at)?;
                copying.write(&buffer[..part])?;
                at += part as u64;
            }
            let copied = copying.finish()?;
            let mut out = std::io::stdout().lock();
            writeln!(out, "{} {}", held.name, copied.bytes)?;
            out.flush()?;
        }
    }
    Ok(())
}
