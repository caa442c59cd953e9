//! The functions to fuzz of every package, on seeded mutations of their kept inputs, for as long as asked. `cargo xtask soak
//! fuzz` runs it; it is a program of its own so that the chores compile without the product.
//!
//!     fuzz --seconds N --seed N --found DIR --root DIR
//!
//! An input that panics, hangs or takes too much memory is written to DIR, and the run fails.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A function that takes any bytes and panics when something that must hold does not.
struct Target {
    /// Its kept inputs are in `crates/<package>/fuzz/<name>`.
    package: &'static str,
    name: &'static str,
    run: fn(&[u8]),
}

const TARGETS: &[Target] = &[
    Target { package: "warc", name: "http_head", run: skep_warc::fuzz_http::fuzz_http_head },
    Target { package: "warc", name: "chunked", run: skep_warc::fuzz_http::fuzz_chunked },
    Target { package: "warc", name: "content_coding", run: skep_warc::fuzz_http::fuzz_content_coding },
];

/// An input that takes longer than this hangs.
const INPUT_TIME_MAX: Duration = Duration::from_secs(20);
/// Inputs do not grow beyond this by mutation.
const INPUT_BYTES_MAX: usize = 1 << 20;
/// Memory of the whole run, all workers together.
const MEMORY_BYTES_MAX: u64 = 1_000_000_000;

/// What a worker is busy with, for who watches it.
#[derive(Default)]
struct Busy {
    since: Option<Instant>,
    target: &'static str,
    input: Vec<u8>,
}

fn main() -> ExitCode {
    let option = |name: &str| {
        let mut words = std::env::args().skip_while(|word| word != name);
        words.nth(1).unwrap_or_else(|| panic!("{name} is missing"))
    };
    let seconds: f64 = option("--seconds").parse().expect("--seconds is a number");
    let seed: u64 = option("--seed").parse().expect("--seed is a number");
    let (found, root) = (PathBuf::from(option("--found")), PathBuf::from(option("--root")));

    let kept: Vec<Vec<Vec<u8>>> = TARGETS.iter().map(|target| kept_inputs(&root, target)).collect();
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let busy: Vec<Mutex<Busy>> = (0..workers).map(|_| Mutex::default()).collect();
    let runs: Vec<AtomicU64> = TARGETS.iter().map(|_| AtomicU64::new(0)).collect();
    let findings = Mutex::new(BTreeSet::new());
    let done = AtomicBool::new(false);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    // A panic is caught and counted; its message is printed with the finding, not by the hook.
    std::panic::set_hook(Box::new(|_| {}));

    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (kept, busy, runs, findings, found) = (&kept, &busy[worker], &runs, &findings, &found);
                scope.spawn(move || {
                    let mut chance = Chance::new(seed.wrapping_mul(1000).wrapping_add(worker as u64));
                    while Instant::now() < end {
                        for (index, target) in TARGETS.iter().enumerate() {
                            let input = mutated(&kept[index], &mut chance);
                            if let Err(message) = watched(target, &input, busy) {
                                let new =
                                    findings.lock().expect("no panic holds it").insert((target.name, message.clone()));
                                if new {
                                    println!(
                                        "{}: {message}\n  input: {}",
                                        target.name,
                                        save(found, target.name, &input).display()
                                    );
                                }
                            }
                            runs[index].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let (busy, done, found) = (&busy, &done, &found);
        let watcher = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                watch(busy, found);
                std::thread::park_timeout(Duration::from_secs(1));
            }
        });
        for handle in handles {
            handle.join().expect("workers catch what panics");
        }
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
    });

    for (target, runs) in TARGETS.iter().zip(&runs) {
        println!("{:<6} {:<16} {:>12} inputs", target.package, target.name, runs.load(Ordering::Relaxed));
    }
    match findings.into_inner().expect("no panic holds it").len() {
        0 => ExitCode::SUCCESS,
        count => {
            println!(
                "{count} findings; keep each input in the package's fuzz folder, under a name that says what is odd about it"
            );
            ExitCode::FAILURE
        }
    }
}

/// Runs one input while others can see which.
fn watched(target: &Target, input: &[u8], busy: &Mutex<Busy>) -> Result<(), String> {
    *busy.lock().expect("no panic holds it") =
        Busy { since: Some(Instant::now()), target: target.name, input: input.to_vec() };
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    busy.lock().expect("no panic holds it").since = None;
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without a message").to_owned()
    })
}

/// Ends the run when an input hangs or memory has grown too far: neither can be undone from outside.
fn watch(busy: &[Mutex<Busy>], found: &Path) {
    let resident = resident_bytes();
    for slot in busy {
        let slot = slot.lock().expect("no panic holds it");
        let hangs = slot.since.is_some_and(|since| since.elapsed() > INPUT_TIME_MAX);
        if hangs || (resident > MEMORY_BYTES_MAX && slot.since.is_some()) {
            let why = if hangs { "hangs".to_owned() } else { format!("holds {} MB", resident / 1_000_000) };
            println!("{} {why}\n  input: {}", slot.target, save(found, slot.target, &slot.input).display());
            std::process::exit(1);
        }
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn kept_inputs(root: &Path, target: &Target) -> Vec<Vec<u8>> {
    let folder = root.join("crates").join(target.package).join("fuzz").join(target.name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect()
}

fn save(found: &Path, target: &str, input: &[u8]) -> PathBuf {
    let sum = input
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    let path = found.join(format!("{target}-{sum:016x}"));
    if let Err(error) = std::fs::create_dir_all(found).and_then(|()| std::fs::write(&path, input)) {
        println!("{} cannot be written: {error}", path.display());
    }
    path
}

/// A kept input, cut, flipped, zeroed, repeated, spliced with another and salted with what these formats are made of.
fn mutated(kept: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    const SALT: [&[u8]; 22] = [
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"\0",
        b" ",
        b"\t",
        b":",
        b";",
        b"WARC/1.1\r\n",
        b"WARC/1.0\r\n",
        b"Content-Length: ",
        b"18446744073709551615",
        b"-1",
        b"HTTP/1.1 200 OK\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"\x1f\x8b\x08\0",
        b"\x28\xb5\x2f\xfd",
        b"\x5d\x2a\x4d\x18",
        b"User-agent: *\n",
        b"%00",
        b"\xff\xfe",
    ];
    let pick = |chance: &mut Chance| &kept[chance.below(kept.len() as u64) as usize];
    let mut bytes = pick(chance).clone();
    let below = |chance: &mut Chance, bound: usize| chance.below(bound as u64) as usize;
    for _ in 0..1 + chance.below(8) {
        let at = below(chance, bytes.len() + 1);
        match chance.below(8) {
            0 => bytes.truncate(at),
            1 | 2 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            3 if at < bytes.len() => bytes[at] = chance.next() as u8,
            4 => {
                let end = (at + below(chance, 64)).min(bytes.len());
                bytes[at..end].fill(0);
            }
            5 => {
                let end = (at + below(chance, 512)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            6 => {
                let other = pick(chance);
                let from = below(chance, other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let salt = SALT[below(chance, SALT.len())];
                bytes.splice(at..at, salt.iter().copied());
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

/// Numbers that look random and follow from a seed (SplitMix64): the same seed, the same run.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero when the bound is zero.
    fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }
}
