//! The functions to fuzz of every package, on their kept inputs and on seeded mutations of those. `cargo xtask soak fuzz` runs it
//! for as long as asked, a test for a fixed number of rounds; it is a program of its own so that the chores compile without
//! the product.
//!
//! ```text
//! fuzz --root DIR --found DIR --seed N --seconds N | --rounds N
//! ```
//!
//! An input that panics, hangs or takes too much memory is written to the folder `--found`, and the run fails.

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
    Target { package: "warc", name: "records", run: skep_warc::fuzz::fuzz_records },
    Target { package: "warc", name: "arc_line", run: skep_warc::fuzz::fuzz_arc_line },
    Target { package: "warc", name: "head", run: skep_warc::fuzz::fuzz_head },
    Target { package: "warc", name: "beginning", run: skep_warc::fuzz::fuzz_beginning },
    Target { package: "warc", name: "http_head", run: skep_warc::fuzz_http::fuzz_http_head },
    Target { package: "warc", name: "chunked", run: skep_warc::fuzz_http::fuzz_chunked },
    Target { package: "warc", name: "content_coding", run: skep_warc::fuzz_http::fuzz_content_coding },
    Target { package: "url", name: "surt", run: skep_url::fuzz::fuzz_surt },
    Target { package: "url", name: "robots", run: skep_url::fuzz::fuzz_robots },
    Target { package: "page", name: "page", run: skep_page::fuzz::fuzz_page },
    Target { package: "page", name: "listing", run: skep_page::fuzz::fuzz_listing },
    Target { package: "page", name: "reference", run: skep_page::fuzz::fuzz_reference },
    Target { package: "page", name: "rewrite", run: skep_page::fuzz::fuzz_rewrite },
    Target { package: "page", name: "compare", run: skep_page::fuzz::fuzz_compare },
    Target { package: "contribute", name: "message", run: skep_contribute::fuzz_message },
    Target { package: "contribute", name: "follow", run: skep_contribute::follow::fuzz_follow },
    Target { package: "crawl", name: "metadata", run: skep_crawl::fuzz::fuzz_metadata },
    Target { package: "crawl", name: "checks", run: skep_crawl::fuzz::fuzz_checks },
    Target { package: "archive", name: "piece", run: skep_archive::fuzz_piece },
    Target { package: "ring", name: "links", run: skep_ring::links::fuzz_links },
    Target { package: "crawl", name: "heard", run: skep_crawl::fuzz::fuzz_heard },
    Target { package: "ring", name: "frame", run: skep_ring::message::fuzz_frame },
    Target { package: "ring", name: "question", run: skep_ring::shell::question::fuzz_question },
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

/// When a worker stops.
#[derive(Clone, Copy)]
enum Until {
    Time(Instant),
    /// Each worker does this many mutations of each target.
    Rounds(u64),
}

/// What the workers share.
struct Soak {
    kept: Vec<Vec<Vec<u8>>>,
    busy: Vec<Mutex<Busy>>,
    runs: Vec<AtomicU64>,
    findings: Mutex<BTreeSet<(&'static str, String)>>,
    found: PathBuf,
}

fn main() -> ExitCode {
    let option = |name: &str| std::env::args().skip_while(|word| word != name).nth(1);
    let needed = |name: &str| option(name).unwrap_or_else(|| panic!("{name} is missing"));
    let seed: u64 = needed("--seed").parse().expect("--seed is a number");
    let root = PathBuf::from(needed("--root"));
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let until = match option("--rounds") {
        Some(rounds) => Until::Rounds(rounds.parse::<u64>().expect("--rounds is a number").div_ceil(workers as u64)),
        None => {
            let seconds = needed("--seconds").parse().expect("--seconds is a number");
            Until::Time(Instant::now() + Duration::from_secs_f64(seconds))
        }
    };
    let soak = Soak {
        kept: TARGETS.iter().map(|target| kept_inputs(&root, target)).collect(),
        busy: (0..workers).map(|_| Mutex::default()).collect(),
        runs: TARGETS.iter().map(|_| AtomicU64::new(0)).collect(),
        findings: Mutex::default(),
        found: PathBuf::from(needed("--found")),
    };
    // A panic is caught and counted; its message is printed with the finding, not by the hook.
    std::panic::set_hook(Box::new(|_| {}));

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (soak, done) = (&soak, &done);
        let handles: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || soak.work(worker, workers, seed, until))).collect();
        let watcher = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                soak.watch();
                std::thread::park_timeout(Duration::from_secs(1));
            }
        });
        for handle in handles {
            handle.join().expect("workers catch what panics");
        }
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
    });

    for (target, runs) in TARGETS.iter().zip(&soak.runs) {
        println!("{:<6} {:<16} {:>12} inputs", target.package, target.name, runs.load(Ordering::Relaxed));
    }
    match soak.findings.into_inner().expect("no panic holds it").len() {
        0 => ExitCode::SUCCESS,
        count => {
            println!("{count} findings: keep each input in the package's fuzz folder, named for what is odd about it");
            ExitCode::FAILURE
        }
    }
}

impl Soak {
    /// First this worker's share of the kept inputs as they are, then mutations of all of them.
    fn work(&self, worker: usize, workers: usize, seed: u64, until: Until) {
        for (index, kept) in self.kept.iter().enumerate() {
            for input in kept.iter().skip(worker).step_by(workers) {
                self.run(worker, index, input);
            }
        }
        let mut chance = Chance(seed.wrapping_mul(1000).wrapping_add(worker as u64));
        let mut round = 0;
        loop {
            let go_on = match until {
                Until::Time(end) => Instant::now() < end,
                Until::Rounds(rounds) => round < rounds,
            };
            if !go_on {
                return;
            }
            for (index, kept) in self.kept.iter().enumerate() {
                self.run(worker, index, &mutated(kept, &mut chance));
            }
            round += 1;
        }
    }

    fn run(&self, worker: usize, index: usize, input: &[u8]) {
        let target = &TARGETS[index];
        if let Err(message) = watched(target, input, &self.busy[worker]) {
            let new = self.findings.lock().expect("no panic holds it").insert((target.name, message.clone()));
            if new {
                println!("{}: {message}\n  input: {}", target.name, save(&self.found, target.name, input).display());
            }
        }
        self.runs[index].fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the run when an input hangs or memory has grown too far: neither can be undone from outside.
    fn watch(&self) {
        let resident = resident_bytes();
        for slot in &self.busy {
            let slot = slot.lock().expect("no panic holds it");
            let hangs = slot.since.is_some_and(|since| since.elapsed() > INPUT_TIME_MAX);
            if hangs || (resident > MEMORY_BYTES_MAX && slot.since.is_some()) {
                let why = if hangs { "hangs".to_owned() } else { format!("holds {} MB", resident / 1_000_000) };
                println!("{} {why}\n  input: {}", slot.target, save(&self.found, slot.target, &slot.input).display());
                std::process::exit(1);
            }
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
