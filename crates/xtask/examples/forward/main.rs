//! Links of a crawl. What they take as they travel, when a node of five forwards them to the other four, each of the five in turn; and how many
//! go the whole way from one node to another in a minute. `cargo xtask bench forward` runs it.
//!
//! ```text
//! forward ARCHIVE LINKS        prints one JSON object; so many links go the whole way
//! ```

mod path;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use skep_ring::links::{Batch, Codec, Link};
use skep_url::Key;
use skep_warc::{Options, Reader};

/// Links beyond this carry their page's own text in the query; they are also counted apart.
const SHORT_BYTES_MAX: usize = 256;
const NODES: u32 = 5;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", folder] => path::receive(Path::new(folder)),
        [archive, links] => measure(Path::new(archive), links.parse()?),
        _ => Err("usage: forward ARCHIVE LINKS".into()),
    }
}

fn measure(archive: &Path, whole_way: usize) -> Result<(), Failed> {
    let mut links = Vec::new();
    let (mut pages, mut staying) = (0_u64, 0_u64);
    for segment in segments(archive)? {
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
    path::forward(archive, &path::many(&links, whole_way), &mut figures)?;
    figures.insert("pages".into(), pages as f64);
    figures.insert("staying".into(), staying as f64);
    figures.insert("leaving".into(), leaving as f64);
    let fields: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    println!("{{{}}}", fields.join(", "));
    Ok(())
}

/// Sends links in the order in which they were heard, batches of one size for each of the other nodes; and reads them again. Each of the
/// nodes is the sender once: which sites are its own would decide the figure otherwise.
fn forward(codec: &Codec, links: &[&Link], size: usize) -> Result<(u64, u64), Failed> {
    let mut sum = (0, 0);
    for own in 0..NODES {
        let (bytes, sent) = forward_from(codec, links, size, own)?;
        sum = (sum.0 + bytes, sum.1 + sent);
    }
    Ok(sum)
}

fn forward_from(codec: &Codec, links: &[&Link], size: usize, own: u32) -> Result<(u64, u64), Failed> {
    let mut waiting: BTreeMap<u32, Vec<Link>> = BTreeMap::new();
    let (mut bytes, mut sent) = (0, 0);
    let mut send = |links: Vec<Link>| -> Result<(), Failed> {
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
fn outlinks(segment: &Path, links: &mut Vec<Link>, pages: &mut u64, staying: &mut u64) -> Result<(), Failed> {
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
