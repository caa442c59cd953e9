//! How fast the stream of changes is: events from captures, check lines, replay, and many who follow at once. One JSON object on stdout.
//!
//! ```text
//!   stream [--pages N] [--lines N] [--seconds N]          everything, in an archive of its own in a temporary folder
//!   stream --consume ADDRESS --seconds N                  the consumers, as a process of their own; used by the first form
//! ```

#[path = "../src/checked.rs"]
mod checked;

use serde_json::{Value, json};
use skep_archive::{Append, Archive, CHECKS, Encoded, Key, OpenOptions, Pending, system_clock};
use skep_changes::{Changes, Filter, From};
use skep_crawl::{RegistryKey, checks};
use skep_portal::{Settings, serve};
use skep_warc::date::{parse_ms, rfc3339};
use skep_warc::write::{Compression, Encoder, Record, RecordId};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const START_MS: i64 = 1_767_225_600_000;
const DAY_MS: i64 = 86_400_000;
/// Hosts of the live part: each has its share of the events.
const HOSTS: usize = 100;
const FILTERED: usize = 1_000;
const UNFILTERED: usize = 20;
const LIVE_PER_S: usize = 2_000;
/// Paragraphs of a page that is judged: about 6 kB.
const PARAGRAPHS: usize = 40;
const APPENDED_AT_ONCE: usize = 500;
/// Check lines of a bundle.
const CHECKED_AT_ONCE: usize = 100;

struct Asked {
    pages: usize,
    lines: usize,
    seconds: u64,
    consume: Option<SocketAddr>,
}

fn main() -> Result<()> {
    let mut asked = Asked { pages: 50_000, lines: 1_000_000, seconds: 20, consume: None };
    let mut words = std::env::args().skip(1);
    while let (Some(name), value) = (words.next(), words.next().unwrap_or_default()) {
        match name.as_str() {
            "--pages" => asked.pages = value.parse()?,
            "--lines" => asked.lines = value.parse()?,
            "--seconds" => asked.seconds = value.parse()?,
            "--consume" => asked.consume = Some(value.parse()?),
            other => return Err(format!("there is no {other}").into()),
        }
    }
    if let Some(address) = asked.consume {
        println!("{}", consume(address, asked.seconds)?);
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let archive =
        Arc::new(Archive::open(folder.path(), OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() })?);
    let changes = Arc::new(Changes::new(checked::CheckLines::default()));
    // A crawl whose check lines name these pages.
    let crawl = skep_crawl::Settings { name: "bench".into(), number: 1, ..skep_crawl::Settings::default() };
    crawl.store(&archive.layout().settings())?;
    RegistryKey::load(&archive.layout().settings())?;
    let mut told = json!({});
    captures(&archive, &changes, &asked, &mut told)?;
    check_lines(&archive, &changes, &asked, &mut told)?;
    replay(&archive, &changes, &mut told)?;
    live(&archive, &changes, &asked, &mut told)?;
    println!("{told}");
    Ok(())
}

/// Says on the way what a part came to.
fn came_to(told: &Value, name: &str) {
    eprintln!("{name}: {}", told[name]);
}

fn record(number: u64, url: &str, time_ms: i64, body: &str) -> Result<Encoded> {
    let message = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut id = [3; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    let mut bytes = Vec::new();
    let (id, date) = (RecordId::uuid(id), rfc3339(time_ms));
    let level = Compression::Gzip(skep_warc::deflate::Level::LOWEST);
    Record::response(&id, &date, url, message.as_bytes()).encode(&mut Encoder::new(level), &mut bytes)?;
    Ok(Encoded::describing(bytes)?)
}

/// A page of which version `version` differs from the one before in one paragraph.
fn page(number: usize, version: usize) -> String {
    let mut body = format!(
        "<!doctype html><title>Page {number}</title><nav><a href=\"/\">Home</a> <a href=\"/{number}/next\">Next</a></nav>"
    );
    for paragraph in 0..PARAGRAPHS {
        let edited = if paragraph == number % PARAGRAPHS { version } else { 0 };
        body.push_str(&format!(
            "<p class=\"text\">Paragraph {paragraph} of page {number} in version {edited}: the quick brown fox jumps over the lazy dog and goes home.</p>"
        ));
    }
    body
}

/// Appends, each a bundle's records, are made ready before the clock starts: making records is the crawl's work. From the first append
/// on, whoever follows does so while more comes, as in a process that crawls and serves; `seconds` is until the last event can be read.
fn append_and_follow(archive: &Archive, changes: &Changes, appends: Vec<Append>) -> Result<Value> {
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let appended = AtomicBool::new(false);
    let mut events = 0;
    let append_seconds = std::thread::scope(|scope| -> Result<f64> {
        let appending = scope.spawn(|| {
            let done = append_all(archive, appends);
            let seconds = began.elapsed().as_secs_f64();
            appended.store(true, Ordering::Release);
            done.map(|()| seconds)
        });
        loop {
            // What was appended before this look is seen by it.
            let is_last = appended.load(Ordering::Acquire);
            events += changes.follow(archive, START_MS, &mut |_| ())?.events;
            if is_last {
                break;
            }
            // Somebody who is woken by what was appended; asking again at once would take the core from the appender.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(appending.join().map_err(|_| "the appender panicked")??)
    })?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(json!({
        "events": events,
        "seconds": seconds,
        "append_seconds": append_seconds,
        "cpu_seconds": cpu_seconds()? - cpu,
    }))
}

/// Acknowledged to the last.
fn append_all(archive: &Archive, appends: Vec<Append>) -> skep_archive::Result<()> {
    let pending: Vec<Pending> =
        appends.into_iter().map(|append| archive.append(append)).collect::<skep_archive::Result<_>>()?;
    pending.into_iter().try_for_each(|pending| pending.wait().map(drop))
}

/// Following alone: everything is appended and seen by the other views before the clock starts.
fn follow_alone(archive: &Archive, changes: &Changes, appends: Vec<Append>) -> Result<Value> {
    append_all(archive, appends)?;
    archive.settle()?;
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let done = changes.follow(archive, START_MS, &mut |_| ())?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(json!({ "events": done.events, "seconds": seconds, "cpu_seconds": cpu_seconds()? - cpu }))
}

/// How the clock runs: from the first append, or over the following alone.
type Way = fn(&Archive, &Changes, Vec<Append>) -> Result<Value>;
const WAYS: [(&str, Way); 2] = [("", append_and_follow), ("_followed", follow_alone)];

/// Events from captures: pages that are new, and the same pages with another text; other pages for each way of timing.
fn captures(archive: &Archive, changes: &Changes, asked: &Asked, told: &mut Value) -> Result<()> {
    for (at, (suffix, way)) in WAYS.into_iter().enumerate() {
        let pages = at * asked.pages..(at + 1) * asked.pages;
        for (version, name) in ["new", "changed"].into_iter().enumerate() {
            let name = format!("{name}{suffix}");
            let mut appends = Vec::new();
            for part in pages.clone().collect::<Vec<_>>().chunks(APPENDED_AT_ONCE) {
                let url = |number: usize| url_of(number, asked.pages);
                let each = |number: &usize| {
                    let time_ms = START_MS + version as i64 * DAY_MS + *number as i64;
                    let id = version * WAYS.len() * asked.pages + number;
                    record(id as u64, &url(*number), time_ms, &page(*number, version))
                };
                let records = part.iter().map(each).collect::<Result<_>>()?;
                appends.push(Append { site_hash: Key::of(&url(part[0])).site_hash(), records });
            }
            told[&name] = way(archive, changes, appends)?;
            came_to(told, &name);
        }
    }
    Ok(())
}

/// Pages of one append are of one host, also where the next way begins.
fn url_of(number: usize, pages: usize) -> String {
    let host = number % pages / APPENDED_AT_ONCE % HOSTS;
    format!("https://host-{host}.example/pages/{number}")
}

/// What all threads of this process used so far: on a machine that is busy with something else the wall clock says little.
fn cpu_seconds() -> Result<f64> {
    let told = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name of the program, which may hold anything, these are the twelfth and the thirteenth word, in hundredths.
    let words = told.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Ok(words.map(str::parse::<f64>).sum::<std::result::Result<f64, _>>()? / 100.0)
}

/// Check lines of known pages, a hundred in a record, as a bundle writes them.
fn check_lines(archive: &Archive, changes: &Changes, asked: &Asked, told: &mut Value) -> Result<()> {
    let key = RegistryKey::load(&archive.layout().settings())?;
    for (at, (suffix, way)) in WAYS.into_iter().enumerate() {
        let mut appends = Vec::new();
        for bundle in 0..asked.lines.div_ceil(CHECKED_AT_ONCE) {
            let page = bundle * CHECKED_AT_ONCE % asked.pages.max(1);
            let line = |number: usize| checks::Check {
                fingerprint: key.fingerprint(1, &url_of(page + number, asked.pages)),
                time_ms: START_MS + (2 + at as i64) * DAY_MS + (bundle * CHECKED_AT_ONCE + number) as i64,
                outcome: checks::Outcome::NotModified,
                failures: 0,
            };
            let lines: Vec<checks::Check> = (0..CHECKED_AT_ONCE).map(line).collect();
            let host = page / APPENDED_AT_ONCE % HOSTS;
            let (block, _) = checks::encode("bench", &format!("host-{host}.example:443"), &lines);
            let mut id = [4; 16];
            id[..8].copy_from_slice(&((at << 32 | bundle) as u64).to_le_bytes());
            let (id, date) = (RecordId::uuid(id), rfc3339(lines[0].time_ms));
            let mut bytes = Vec::new();
            let made = Record::metadata(&id, &date, CHECKS, block.as_slice());
            made.encode(&mut Encoder::new(Compression::GZIP), &mut bytes)?;
            let site_hash = Key::of(&format!("https://host-{host}.example/")).site_hash();
            appends.push(Append { site_hash, records: vec![Encoded::describing(bytes)?] });
        }
        let name = format!("checks{suffix}");
        let mut came = way(archive, changes, appends)?;
        came["lines"] = asked.lines.into();
        told[&name] = came;
        came_to(told, &name);
    }
    Ok(())
}

/// The log from its beginning: as lines in this process, and over HTTP.
fn replay(archive: &Arc<Archive>, changes: &Arc<Changes>, told: &mut Value) -> Result<()> {
    let began = Instant::now();
    let (mut events, mut bytes, mut line) = (0_u64, 0, String::new());
    changes.read(archive, &From::Start, &Filter::default(), |cursor, kept| {
        line.clear();
        kept.json(cursor, &mut line);
        (events, bytes) = (events + 1, bytes + line.len());
        ControlFlow::Continue(())
    })?;
    told["replay"] = json!({ "events": events, "bytes": bytes, "seconds": began.elapsed().as_secs_f64() });
    came_to(told, "replay");
    let serving = serve(archive.clone(), settings(changes))?;
    let mut stream = TcpStream::connect(serving.address())?;
    let began = Instant::now();
    stream.write_all(b"GET /changes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let (mut reader, mut line, mut lines) = (BufReader::with_capacity(1 << 18, stream), Vec::new(), 0_u64);
    let mut seconds = 0.0;
    // Line by line, as whoever takes them in does. Each event is one; so are a few of the head and of the chunks.
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"}\n") {
            (lines, seconds) = (lines + 1, began.elapsed().as_secs_f64());
        }
        line.clear();
    }
    told["replay_http"] = json!({ "events": lines, "seconds": seconds });
    came_to(told, "replay_http");
    serving.stopper().stop();
    serving.wait();
    Ok(())
}

fn settings(changes: &Arc<Changes>) -> Settings {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Settings { changes: changes.clone(), requests_per_second: Some(0), ..Settings::at(listen) }
}

/// Captures come at a pace; consumers in a process of their own hear of them.
fn live(archive: &Arc<Archive>, changes: &Arc<Changes>, asked: &Asked, told: &mut Value) -> Result<()> {
    let serving = serve(archive.clone(), settings(changes))?;
    let mut consumers = Command::new(std::env::current_exe()?)
        .args(["--consume", &serving.address().to_string(), "--seconds", &asked.seconds.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(consumers.stdout.take().ok_or("no output")?).lines();
    let ready = lines.next().ok_or("the consumers said nothing")??;
    if ready != "ready" {
        return Err(format!("the consumers said {ready}").into());
    }
    // Twenty captures every ten milliseconds, each of another host, so that each host has twenty a second.
    let (began, step) = (Instant::now(), Duration::from_millis(10));
    let mut number = 0;
    for tick in 0..asked.seconds as u32 * 100 {
        std::thread::sleep((step * tick).saturating_sub(began.elapsed()));
        for _ in 0..LIVE_PER_S / 100 {
            let url = format!("https://host-{}.example/live/{number}", number % HOSTS);
            let made = record(1 << 40 | number as u64, &url, system_clock(), "<p>It is new.</p>")?;
            archive
                .append_then(Append { site_hash: Key::of(&url).site_hash(), records: vec![made] }, Box::new(|_| ()))?;
            number += 1;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let heard: Value = serde_json::from_str(&lines.next().ok_or("the consumers said nothing")??)?;
    told["live"] = json!({ "appended": number, "seconds": seconds, "consumers": heard });
    came_to(told, "live");
    consumers.wait()?;
    serving.stopper().stop();
    serving.wait();
    Ok(())
}

/// Follows as many consumers do, and says how late they heard of what.
fn consume(address: SocketAddr, seconds: u64) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds + 60);
        let begun = Arc::new(tokio::sync::Semaphore::new(0));
        for number in 0..FILTERED + UNFILTERED {
            let filter =
                if number < FILTERED { format!("&host=host-{}.example", number % HOSTS) } else { String::new() };
            let expected = if number < FILTERED { LIVE_PER_S / HOSTS } else { LIVE_PER_S } * seconds as usize;
            let begun = begun.clone();
            tasks.push(tokio::spawn(async move {
                let follow = follow(address, &filter, expected, &begun);
                tokio::time::timeout_at(deadline, follow).await.map_err(|_| "time is over".to_owned())?
            }));
        }
        let all = (FILTERED + UNFILTERED) as u32;
        tokio::time::timeout(Duration::from_secs(60), begun.acquire_many(all)).await??.forget();
        println!("ready");
        let mut late: Vec<[Vec<u32>; 2]> = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            let times = task.await??;
            let mut both = [Vec::new(), Vec::new()];
            both[usize::from(number >= FILTERED)] = times;
            late.push(both);
        }
        let mut told = json!({});
        for (at, name) in ["filtered", "unfiltered"].into_iter().enumerate() {
            let mut all: Vec<u32> = late.iter().flat_map(|both| both[at].iter().copied()).collect();
            all.sort_unstable();
            let share =
                |share: f64| all.get(((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1))).copied();
            told[name] =
                json!({ "events": all.len(), "p50_ms": share(0.5), "p99_ms": share(0.99), "most_ms": all.last() });
        }
        Ok::<Value, Box<dyn Error>>(told)
    })
}

async fn follow(
    address: SocketAddr,
    filter: &str,
    expected: usize,
    begun: &tokio::sync::Semaphore,
) -> std::result::Result<Vec<u32>, String> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    let told = |error: std::io::Error| error.to_string();
    let mut stream = tokio::net::TcpStream::connect(address).await.map_err(told)?;
    // Only what is seen from now on.
    let since = rfc3339(system_clock());
    let request =
        format!("GET /changes?since={since}{filter} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(told)?;
    let mut reader = tokio::io::BufReader::with_capacity(1 << 14, stream);
    let (mut line, mut late) = (Vec::new(), Vec::with_capacity(expected));
    while late.len() < expected {
        line.clear();
        if reader.read_until(b'\n', &mut line).await.map_err(told)? == 0 {
            return Err(format!("the stream ended after {} of {expected} events", late.len()));
        }
        if line.starts_with(b": changes") {
            begun.add_permits(1);
        }
        if line.starts_with(b"data: ") {
            let at = line.windows(8).position(|part| part == b"\"time\":\"").map_or(0, |at| at + 8);
            let time_ms = parse_ms(line.get(at..at + 24).unwrap_or_default()).ok_or("an event without a time")?;
            late.push(system_clock().saturating_sub(time_ms).clamp(0, u32::MAX.into()) as u32);
        }
    }
    Ok(late)
}
