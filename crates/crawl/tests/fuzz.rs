//! The fuzz functions over the kept inputs and seeded mutations of them.

use std::path::Path;

use skep_crawl::fuzz::{fuzz_checks, fuzz_heard, fuzz_metadata};

const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\n\n",
    " ",
    ": ",
    "=",
    "= ",
    ".",
    "0",
    "z",
    "zzzzzzz",
    "%",
    "\u{2028}",
    "\u{85}",
    "ü",
    "\0",
    "outlink: ",
    "outlink-gone: ",
    "links-since: ",
    "links-digest: blake3:",
    "skep-visit: 2",
    "depth: 99999",
    "outcome: ",
    "robots",
    "fault ",
    "1.1",
    "source: ",
    "http://a.example/",
    "6bk ",
    "-1",
    "nofollow",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let piece = bytes[at..(at + chance.below(64)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => drop(bytes.splice(at.., other[chance.below(other.len() + 1)..].iter().copied())),
            _ => drop(bytes.splice(at..at, WORDS[chance.below(WORDS.len())].bytes())),
        }
    }
}

fn run(name: &str, rounds: u64, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    inputs.iter().for_each(|bytes| target(bytes));
    for seed in 1..=rounds {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut bytes = inputs[chance.below(inputs.len())].clone();
        let other = &inputs[chance.below(inputs.len())];
        mutate(&mut bytes, other, &mut chance);
        if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
            eprintln!("{name}, seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn metadata_of_anything() {
    run("metadata", 40_000, fuzz_metadata);
}

#[test]
fn checks_of_anything() {
    run("checks", 40_000, fuzz_checks);
}

#[test]
fn heard_urls_of_anything() {
    run("heard", 40_000, fuzz_heard);
}
