//! Links of a crawl, forwarded as a node of five forwards them to the other four, each of the five in turn: `cargo xtask bench forward`
//! runs it.
//!
//! ```text
//! forward ARCHIVE        prints one JSON object
//! ```

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use skep_ring::links::{Batch, Codec, Link};
use skep_url::Key;
use skep_warc::{Options, Reader};

/// Links beyond this carry their page's own text in the query; they are also counted apart.
const SHORT_BYTES_MAX: usize = 256;
const NODES: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let archive = std::env::args().nth(1).ok_or("usage: forward ARCHIVE")?;
    let mut links = Vec::new();
    let (mut pages, mut staying) = (0_u64, 0_u64);
    for segment in segments(Path::new(&archive))? {
        outlinks(&segment, &mut links, &mut pages, &mut staying)?;
    }
    // What was sent before is not sent again; a crawl of this size is within what is remembered.
    let leaving = links.len();
    let mut known = HashSet::new();
    links.retain(|link: &Link| known.insert(link.url.clone()));
    let codec = Codec::default();
    let mut figures = BTreeMap::new();
    for (name, most) in [("all", usize::MAX), ("short", SHORT_BYTES_MAX)] {
        let some: Vec<&Link> = links.iter().filter(|link| link.url.len() <= most).collect();
        let characters: usize = some.iter().map(|link| link.url.len()).sum();
        figures.insert(format!("{name}_links"), some.len() as f64);
        figures.insert(format!("{name}_chars"), characters as f64 / some.len().max(1) as f64);
        for size in [10, 100, 1_000] {
            let (bytes, sent) = forward(&codec, &some, size)?;
            figures.insert(format!("{name}_{size}"), bytes as f64 / sent.max(1) as f64);
        }
    }
    let all: Vec<&Link> = links.iter().collect();
    let (begun, before, mut done) = (Instant::now(), cpu_seconds(), 0_u64);
    while begun.elapsed().as_secs() < 5 {
        done += forward(&codec, &all, 100)?.1;
    }
    // Where the system does not say what the thread took, what passed counts, which is never less.
    let took = cpu_seconds().zip(before).map_or(begun.elapsed().as_secs_f64(), |(after, before)| after - before);
    figures.insert("per_s".into(), done as f64 / took);
    figures.insert("pages".into(), pages as f64);
    figures.insert("staying".into(), staying as f64);
    figures.insert("leaving".into(), leaving as f64);
    let fields: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    println!("{{{}}}", fields.join(", "));
    Ok(())
}

/// What this thread has taken of a core so far.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

/// Sends links in the order in which they were heard, batches of one size for each of the other nodes; and reads them again. Each of the
/// nodes is the sender once: which sites are its own would decide the figure otherwise.
fn forward(codec: &Codec, links: &[&Link], size: usize) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let mut sum = (0, 0);
    for own in 0..NODES {
        let (bytes, sent) = forward_from(codec, links, size, own)?;
        sum = (sum.0 + bytes, sum.1 + sent);
    }
    Ok(sum)
}

fn forward_from(
    codec: &Codec,
    links: &[&Link],
    size: usize,
    own: u32,
) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let mut waiting: BTreeMap<u32, Vec<Link>> = BTreeMap::new();
    let (mut bytes, mut sent) = (0, 0);
    let mut send = |links: Vec<Link>| -> Result<(), Box<dyn std::error::Error>> {
        let mut batch = Batch { crawl: "docs".into(), links };
        let message = codec.encode(&mut batch)?;
        if codec.decode(&message)? != batch {
            return Err("a batch does not read back".into());
        }
        bytes += message.len() as u64;
        sent += batch.links.len() as u64;
        Ok(())
    };
    for link in links {
        let to = Key::of(&link.url).site_hash() % NODES;
        if to == own {
            continue;
        }
        let batch = waiting.entry(to).or_default();
        batch.push((*link).clone());
        if batch.len() == size {
            send(std::mem::take(batch))?;
        }
    }
    // What is left are smaller batches, which count as they are.
    waiting.into_values().filter(|links| !links.is_empty()).try_for_each(&mut send)?;
    Ok((bytes, sent))
}

fn segments(archive: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![archive.join("segments")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(".warc.gz") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The links of pages that lead to other sites, as their metadata records name them.
fn outlinks(
    segment: &Path,
    links: &mut Vec<Link>,
    pages: &mut u64,
    staying: &mut u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = Reader::open(segment, Options::recover())?;
    while let Some(mut record) = reader.next()? {
        let of = record.head().target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
        let Some(of) = of.filter(|_| record.head().get("WARC-Type") == Some(b"metadata")) else { continue };
        let mut block = String::new();
        if record.read_to_string(&mut block).is_err() {
            continue;
        }
        *pages += 1;
        let site = Key::of(&of).site_hash();
        for line in block.lines() {
            let Some(mut words) = line.strip_prefix("outlink: ").map(|rest| rest.split(' ')) else { continue };
            let (Some(url), Some(code)) = (words.next(), words.next()) else { continue };
            match Key::of(url).site_hash() == site {
                true => *staying += 1,
                false => {
                    links.push(Link { url: url.to_owned(), depth: 2, needed: code == "E", gone: false, site: None })
                }
            }
        }
    }
    Ok(())
}
