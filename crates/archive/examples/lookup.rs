//! Builds a captures view of many made-up captures and measures it; prints one JSON object.
//!
//! ```text
//! cargo run --release -p skep-archive --example lookup -- DIR [--captures N] [--look-ups N] [--cache-mb N] \
//!     [--versions-max N] [--cdxj FILE] [--urls FILE]
//! ```
//!
//! The captures are the same for the same number: 20,000 hosts of which few have many pages, URLs of about 59
//! characters, 1 to 50 versions of each (`--versions-max`), of which some repeat the payload. They arrive in the order of time, as they do
//! when archive files are added. `--cdxj` writes them as a sorted CDXJ file and `--urls` the URLs looked up with a time,
//! so that another index can be measured with the same.

use skep_archive::captures::{Captures, Match};
use skep_archive::limits::FRESH_ENTRIES_MAX;
use skep_archive::memory::Room;
use skep_archive::{Capture, CaptureKind, Digest, FLAG_HTTP, Hidden, Key, Position, WriterKey};
use std::borrow::Cow;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOSTS: f64 = 20_000.0;
/// 2014-09-13, and ten years later.
const BEGIN_MS: i64 = 1_410_566_400_000;
const SPAN_MS: i64 = 315_532_800_000;
const RECORDS_PER_SEGMENT: u64 = 60_000;

const WORDS: [&str; 48] = [
    "about", "archive", "article", "author", "blog", "book", "calendar", "camera", "category", "city", "club",
    "contact", "culture", "detail", "digital", "event", "football", "forum", "gallery", "garden", "global", "guide",
    "health", "history", "image", "index", "library", "market", "media", "member", "mobile", "music", "nature", "news",
    "online", "people", "photo", "product", "report", "review", "science", "search", "service", "shop", "sport",
    "story", "travel", "video",
];

struct Arguments {
    folder: PathBuf,
    captures: u64,
    look_ups: u64,
    cache_bytes: u64,
    versions_max: u64,
    cdxj: Option<PathBuf>,
    urls: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let mut given = std::env::args().skip(1);
    let mut arguments = Arguments {
        folder: PathBuf::new(),
        captures: 10_000_000,
        look_ups: 200_000,
        cache_bytes: 64 << 20,
        versions_max: 50,
        cdxj: None,
        urls: None,
    };
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match argument.as_str() {
            "--captures" => arguments.captures = number(value()?)?.max(1),
            "--cache-mb" => arguments.cache_bytes = number(value()?)? << 20,
            "--look-ups" => arguments.look_ups = number(value()?)?.max(1),
            "--versions-max" => arguments.versions_max = number(value()?)?.max(1),
            "--cdxj" => arguments.cdxj = Some(value()?.into()),
            "--urls" => arguments.urls = Some(value()?.into()),
            folder => arguments.folder = folder.into(),
        }
    }
    if arguments.folder.as_os_str().is_empty() {
        return Err(
            "usage: lookup DIR [--captures N] [--look-ups N] [--versions-max N] [--cdxj FILE] [--urls FILE]".into()
        );
    }
    Ok(arguments)
}

/// A number that looks random and is the same for the same two numbers.
fn chance(of: u64, about: u64) -> u64 {
    let mut x = of.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ about.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn fraction(of: u64, about: u64) -> f64 {
    (chance(of, about) >> 11) as f64 / (1u64 << 53) as f64
}

/// The made-up web: which URL each capture is of, and all about it.
struct World {
    captures: u64,
    /// The first capture of each URL, in an order of URLs.
    firsts: Vec<u32>,
    step: u64,
}

impl World {
    fn new(captures: u64, versions_max: u64) -> World {
        let (mut firsts, mut next) = (Vec::new(), 0);
        while next < captures {
            firsts.push(next as u32);
            // Few versions are common, fifty are rare; five on average.
            let versions = (1.0 / (0.012 + 0.988 * fraction(firsts.len() as u64, 1))) as u64;
            next += versions.clamp(1, versions_max);
        }
        // Steps through all captures in an order that has nothing to do with their URLs.
        let mut step = (captures as f64 * 0.618_033_988_75) as u64 | 1;
        while gcd(step, captures) != 1 {
            step += 2;
        }
        World { captures, firsts, step }
    }

    fn urls(&self) -> u64 {
        self.firsts.len() as u64
    }

    fn url(&self, url: u64) -> String {
        let word = |about: u64| WORDS[(chance(url, about) % WORDS.len() as u64) as usize];
        let rank = HOSTS.powf(fraction(url, 2)) as u64;
        let host_word = |about: u64| WORDS[(chance(rank, about) % WORDS.len() as u64) as usize];
        let scheme = if chance(rank, 3).is_multiple_of(4) { "http" } else { "https" };
        let www = if chance(rank, 4).is_multiple_of(2) { "www." } else { "" };
        let tld = ["com", "org", "net", "de", "co.uk", "at", "fr", "com.au"][(chance(rank, 5) % 8) as usize];
        let host = format!("{scheme}://{www}{}-{}{rank}.{tld}", host_word(6), host_word(7));
        match chance(url, 8) % 10 {
            0..=3 => format!("{host}/{}/{}-{}-{url}.html", word(9), word(10), word(11)),
            4..=5 => format!("{host}/{}/{}/{}/{url}", word(9), word(10), word(11)),
            6 => format!("{host}/{}/{}?id={url}&page={}", word(9), word(10), chance(url, 12) % 30),
            7 => format!("{host}/{}/img/{}_{url}.jpg", word(9), word(10)),
            8 => format!("{host}/{}/{:08x}/{}.js?v={url}", word(9), chance(url, 13) as u32, word(10)),
            _ => format!("{host}/Wiki/{}_{}_({url})", word(9), word(10)),
        }
    }

    /// The capture that arrives as number `arrival`.
    fn capture(&self, arrival: u64) -> Capture {
        let number = (u128::from(arrival) * u128::from(self.step) % u128::from(self.captures)) as u64;
        let url = self.firsts.partition_point(|first| u64::from(*first) <= number) as u64 - 1;
        let version = number - u64::from(self.firsts[url as usize]);
        // About a third of the versions repeat the payload of the one before.
        let payload = (0..=version).rev().find(|v| *v == 0 || !chance(url * 64 + v, 20).is_multiple_of(3)).unwrap_or(0);
        let mut digest = [0; 20];
        for (index, part) in digest.chunks_mut(8).enumerate() {
            part.copy_from_slice(&chance(url * 64 + payload, 21 + index as u64).to_le_bytes()[..part.len()]);
        }
        let text = self.url(url);
        let mime = match chance(url, 8) % 10 {
            7 => "image/jpeg",
            8 => "application/javascript",
            _ if chance(url, 14).is_multiple_of(25) => "application/pdf",
            _ => "text/html",
        };
        let status = match chance(number, 15) % 100 {
            0..=86 => 200,
            87..=92 => 301,
            93..=95 => 302,
            96..=98 => 404,
            _ => 503,
        };
        let within = arrival % RECORDS_PER_SEGMENT;
        Capture {
            key: Key::of(&text),
            url: text,
            time_ms: BEGIN_MS
                + (SPAN_MS as i128 * i128::from(arrival) / i128::from(self.captures)) as i64
                + (chance(arrival, 16) % 5_000) as i64,
            position: Position {
                writer: WriterKey(0xc41f_22ab),
                segment: (arrival / RECORDS_PER_SEGMENT) as u32 + 1,
                record: (within * 3 + 2) as u32,
            },
            kind: if payload == version { CaptureKind::Response } else { CaptureKind::Revisit },
            status,
            mime: mime.into(),
            digest: Some(Digest::Sha1(digest)),
            offset: within * 17_000 + chance(arrival, 17) % 15_000,
            length: (400.0 * (1.0 / (0.000_5 + fraction(arrival, 18)))) as u64 + chance(arrival, 19) % 4_000,
            flags: FLAG_HTTP,
        }
    }
}

/// URLs in little more memory than they have letters.
struct List {
    text: String,
    ends: Vec<u32>,
}

impl List {
    fn new(urls: impl Iterator<Item = String>) -> List {
        let mut list = List { text: String::new(), ends: Vec::new() };
        for url in urls {
            list.text.push_str(&url);
            list.ends.push(list.text.len() as u32);
        }
        list.text.shrink_to_fit();
        list
    }

    fn get(&self, n: u64) -> Option<&str> {
        let end = *self.ends.get(n as usize)?;
        let begin = if n == 0 { 0 } else { self.ends[n as usize - 1] };
        self.text.get(begin as usize..end as usize)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A line `name:  number kB` of the process's status, in MB.
fn memory_mb(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: f64 = after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn build(world: &World, store: &fjall::Database, captures: &Captures) -> Result<(), Box<dyn Error>> {
    let mut bulk = captures.bulk();
    for arrival in 0..world.captures {
        bulk.push(&world.capture(arrival))?;
    }
    let mut batch = store.batch();
    let staged = bulk.stage(&mut batch)?;
    batch.commit()?;
    staged.publish();
    Ok(())
}

/// Look-ups per second of the clock, per second of the processor (the figure to trust on a busy machine), and how much
/// each found.
struct Rate {
    per_s: f64,
    per_cpu_s: f64,
    found: f64,
}

/// Times `count` look-ups of URLs chosen by chance; as many before that are not timed, so that what is kept at hand is there.
fn per_second(count: u64, mut look_up: impl FnMut(u64) -> Result<u64, Box<dyn Error>>) -> Result<Rate, Box<dyn Error>> {
    for n in 0..count {
        look_up(n + count)?;
    }
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let mut found = 0;
    for n in 0..count {
        found += look_up(n)?;
    }
    Ok(Rate {
        per_s: (count as f64 / begin.elapsed().as_secs_f64()).round(),
        per_cpu_s: (count as f64 / (cpu_seconds() - cpu)).round(),
        found: found as f64 / count as f64,
    })
}

fn write_cdxj(captures: &Captures, path: &Path) -> Result<(), Box<dyn Error>> {
    let unsorted = path.with_extension("unsorted");
    let mut out = BufWriter::new(File::create(&unsorted)?);
    let mut failed = None;
    captures.each(&Match::All, |row| {
        let time =
            jiff::Timestamp::from_millisecond(row.time_ms()).unwrap_or_default().strftime("%Y%m%d%H%M%S").to_string();
        let digest = row.digest().map(|digest| digest.to_string()).unwrap_or_default();
        let mime = if row.kind() == CaptureKind::Revisit { "warc/revisit" } else { row.mime() };
        let fields = serde_json::json!({
            "url": row.url(), "mime": mime, "status": row.status().to_string(), "digest": digest,
            "length": row.length().to_string(), "offset": row.offset().to_string(),
            "filename": format!("{}-{:06}.warc.gz", row.position().writer, row.position().segment),
        });
        match writeln!(out, "{} {time} {fields}", row.surt()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    out.into_inner()?.sync_all()?;
    let sorted = std::process::Command::new("sort")
        .env("LC_ALL", "C")
        .args(["-S", "1G", "-o"])
        .args([path, &unsorted])
        .status()?;
    std::fs::remove_file(&unsorted)?;
    if sorted.success() { Ok(()) } else { Err("sort failed".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let mut world = World::new(arguments.captures, arguments.versions_max);
    let runs = arguments.folder.join("captures");
    let store = fjall::Database::builder(arguments.folder.join("store")).open()?;
    let room = Room { block_bytes: arguments.cache_bytes, fresh_entries: FRESH_ENTRIES_MAX };
    let captures = Captures::open(&store, &runs, Arc::new(Hidden::default()), room)?;

    let (mut build_s, mut build_cpu_s) = (0.0, 0.0);
    if captures.facts().in_runs == 0 {
        let cpu = cpu_seconds();
        let generated = (0..world.captures / 100).map(|arrival| world.capture(arrival).length).sum::<u64>();
        let making_cpu_s = (cpu_seconds() - cpu) * 100.0;
        eprintln!(
            "building from {} captures of {} bytes each",
            world.captures,
            generated * 100 / world.captures.max(100)
        );
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        build(&world, &store, &captures)?;
        build_s = begin.elapsed().as_secs_f64();
        build_cpu_s = cpu_seconds() - cpu - making_cpu_s;
    }
    let build_peak_mb = memory_mb("VmHWM:");
    let facts = captures.facts();

    let mut out = arguments.urls.as_ref().map(|path| File::create(path).map(BufWriter::new)).transpose()?;
    // Which capture is of which URL was only needed to build; its memory is not that of looking up.
    let urls = world.urls();
    world.firsts = Vec::new();
    let url_by_chance = |n: u64| world.url(chance(n, 30) % urls);
    // Those that are timed are made up before the clock runs, as the peer has its list in memory.
    let timed = List::new((0..arguments.look_ups).map(url_by_chance));
    let url_of = |n: u64| timed.get(n).map_or_else(|| Cow::Owned(url_by_chance(n)), Cow::Borrowed);
    let time_of = |n: u64| BEGIN_MS + (chance(n, 31) % SPAN_MS as u64) as i64;
    if let Some(out) = &mut out {
        for n in 0..arguments.look_ups {
            let time = jiff::Timestamp::from_millisecond(time_of(n))?.strftime("%Y%m%d%H%M%S").to_string();
            writeln!(out, "{time} {}", url_of(n))?;
        }
        out.flush()?;
    }
    let exact = per_second(arguments.look_ups, |n| {
        let (mut found, url) = (0, url_of(n));
        for capture in captures.exact(&Key::of(&url))? {
            found += u64::from(capture?.url == url);
        }
        if found == 0 { Err("a capture is missing".into()) } else { Ok(found) }
    })?;
    let closest = per_second(arguments.look_ups, |n| {
        let capture = captures.closest(&Key::of(&url_of(n)), time_of(n))?.next().ok_or("a capture is missing")??;
        Ok(u64::from(capture.status > 0))
    })?;
    let absent = per_second(arguments.look_ups, |n| {
        let key = Key::of(&format!("{}-absent", url_of(n)));
        Ok(captures.exact(&key)?.count() as u64)
    })?;
    let cpu = cpu_seconds();
    let (mut seen, mut bytes) = (0u64, 0u64);
    captures.each(&Match::All, |row| {
        seen += 1;
        bytes += row.length() + u64::from(row.status()) + row.mime().len() as u64 + row.time_ms() as u64 % 2;
        ControlFlow::Continue(())
    })?;
    let scan_per_cpu_s = seen as f64 / (cpu_seconds() - cpu);
    let report = serde_json::json!({
        "captures": seen,
        "urls": urls,
        "bytes_per_capture": facts.run_bytes as f64 / facts.in_runs.max(1) as f64,
        "build_s": build_s,
        "build_cpu_s": build_cpu_s,
        "build_peak_mb": build_peak_mb,
        "rss_mb": memory_mb("VmRSS:"),
        "peak_mb": memory_mb("VmHWM:"),
        "exact_per_s": exact.per_s,
        "exact_per_cpu_s": exact.per_cpu_s,
        "versions_per_exact": exact.found,
        "closest_per_s": closest.per_s,
        "closest_per_cpu_s": closest.per_cpu_s,
        "absent_per_s": absent.per_s,
        "absent_per_cpu_s": absent.per_cpu_s,
        "scan_per_cpu_s": scan_per_cpu_s.round(),
        "sum": bytes,
    });
    println!("{report}");
    if let Some(path) = &arguments.cdxj {
        write_cdxj(&captures, path)?;
    }
    Ok(())
}
