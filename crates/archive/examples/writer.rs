//! Appends records as fast as it can, from several threads, and says so: for killing it.
//!
//! ```text
//! writer FOLDER [--threads N] [--appends N] [--bytes N] [--bits N] [--segment-bytes N] [--seed N] [--errors-are-fine]
//! ```
//! Each acknowledged record is one line on standard output, `POSITION DIGEST URL`, printed after it was acknowledged and
//! not before. Without `--appends` it goes on until it is killed. With `--errors-are-fine` failed appends are reported on
//! standard error and the next one is tried, until ten in a row have failed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use skep_archive::{Append, Archive, Encoded, Key, OpenOptions, system_clock};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId};

struct Typed {
    folder: PathBuf,
    threads: u64,
    appends: u64,
    bytes: usize,
    bits: u8,
    segment_bytes: u64,
    seed: u64,
    errors_are_fine: bool,
}

fn typed() -> Option<Typed> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next()?.into();
    let (threads, appends) = (4, u64::MAX);
    let mut typed = Typed {
        folder,
        threads,
        appends,
        bytes: 3000,
        bits: 2,
        segment_bytes: 1 << 30,
        seed: 1,
        errors_are_fine: false,
    };
    while let Some(flag) = arguments.next() {
        if flag == "--errors-are-fine" {
            typed.errors_are_fine = true;
            continue;
        }
        let value: u64 = arguments.next()?.parse().ok()?;
        match flag.as_str() {
            "--threads" => typed.threads = value,
            "--appends" => typed.appends = value,
            "--bytes" => typed.bytes = value as usize,
            "--bits" => typed.bits = value as u8,
            "--segment-bytes" => typed.segment_bytes = value,
            "--seed" => typed.seed = value,
            _ => return None,
        }
    }
    Some(typed)
}

/// Bytes that do not compress, the same for the same number.
fn body(mut number: u64, bytes: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(bytes + 8);
    while body.len() < bytes {
        // SplitMix64.
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = number;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        body.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    body.truncate(bytes);
    body
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(typed) = typed() else {
        eprintln!(
            "usage: writer FOLDER [--threads N] [--appends N] [--bytes N] [--bits N] [--segment-bytes N] [--seed N]"
        );
        std::process::exit(2);
    };
    let options = OpenOptions {
        bits: typed.bits,
        segment_bytes_max: typed.segment_bytes,
        disk_reserve_bytes: 0,
        ..OpenOptions::create()
    };
    let archive = Archive::open(&typed.folder, options)?;
    archive.opened().iter().for_each(|finding| eprintln!("{finding}"));
    let next = AtomicU64::new(0);
    let told = Mutex::new(std::io::stdout());
    let failed_in_a_row = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..typed.threads {
            scope.spawn(|| {
                let mut encoder = Encoder::new(Compression::GZIP);
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= typed.appends || failed_in_a_row.load(Ordering::SeqCst) >= 10 {
                        return;
                    }
                    match write(&archive, &mut encoder, &typed, number) {
                        Ok(line) => {
                            failed_in_a_row.store(0, Ordering::SeqCst);
                            let mut told = told.lock().expect("nobody panics while printing");
                            // Whoever listened is gone: so is the reason to write.
                            if told.write_all(line.as_bytes()).and_then(|()| told.flush()).is_err() {
                                std::process::exit(3);
                            }
                        }
                        Err(error) if typed.errors_are_fine => {
                            failed_in_a_row.fetch_add(1, Ordering::SeqCst);
                            eprintln!("failed: {error}");
                        }
                        Err(error) => {
                            eprintln!("error: {error}");
                            std::process::exit(2);
                        }
                    }
                }
            });
        }
    });
    archive.close()?;
    Ok(())
}

/// Appends a request and a response of its own for each number; returns the line to print.
fn write(
    archive: &Archive,
    encoder: &mut Encoder,
    typed: &Typed,
    number: u64,
) -> Result<String, Box<dyn std::error::Error>> {
    let url = format!("http://site{}.example/{}/{number}", number % 23, typed.seed);
    let body = body(typed.seed << 40 ^ number, typed.bytes + (number % 512) as usize);
    let digest = Digest::of(Algorithm::Sha1, &body);
    let date = skep_warc::date::rfc3339(system_clock());
    let id = |kind: u8| {
        let mut id = [kind; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        id[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        RecordId::uuid(id)
    };
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n", body.len());
    let message = [head.as_bytes(), &body].concat();
    let mut records = Vec::new();
    for record in [
        Record::request(&id(1), &date, &url, b"GET / HTTP/1.1\r\n\r\n".as_slice()),
        Record::response(&id(2), &date, &url, message.as_slice()),
    ] {
        let mut bytes = Vec::new();
        record.encode(encoder, &mut bytes)?;
        records.push(Encoded::describing(bytes)?);
    }
    let told = archive.append(Append { site_hash: Key::of(&url).site_hash(), records })?.wait()?;
    Ok(format!("{} {digest} {url}\n", told.positions[1]))
}
