//! The truth about a world at a moment: every URL with what a plain GET brings and what it links to.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::answer::Body;
use crate::clock::Time;
use crate::generated::{FEED_PATHS, SITEMAP_PATH};
use crate::graph::{Element, Graph, Link};
use crate::layout::{Item, Kind};
use crate::limits;
use crate::world::{Host, Source, World, parts};

/// The truth about one URL at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Absolute, in the form its host's own links have.
    pub url: String,
    /// Name of its host.
    pub host: String,
    /// What it is.
    pub kind: Kind,
    /// Status of a plain GET.
    pub status: u16,
    /// `Content-Type`.
    pub media_type: Option<String>,
    /// Bytes of the body.
    pub bytes: u64,
    /// `sha1:` and base32, as archives write the digest of a payload.
    pub digest: String,
    /// Entity tag.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<Time>,
    /// `Location` as written.
    pub location: Option<String>,
    /// What it links to, in order; `None` where it is not known (files of folders and histories).
    pub links: Option<Vec<Link>>,
    /// There from this moment.
    pub born: Option<Time>,
    /// Not there from this moment.
    pub dies: Option<Time>,
    /// Time between two changes.
    pub period_ms: Option<i64>,
    /// Changes since birth.
    pub version: Option<u64>,
}

impl World {
    /// Every URL of every host: those there, those dead or not yet born (with the status they answer), redirects and
    /// missing ones, robots files, sitemaps and feeds. One at a time, so that a large world fits in little memory.
    pub fn truth(&self, t: Time) -> impl Iterator<Item = io::Result<Entry>> + '_ {
        self.hosts().iter().flat_map(move |host| host.truth(t))
    }

    /// The truth about one URL; `None` when its host is not of this world.
    pub fn entry(&self, url: &str, t: Time) -> Option<io::Result<Entry>> {
        let (secure, name, path) = parts(url)?;
        Some(self.host(name)?.entry(secure, path, t))
    }

    /// Everything that can be reached at a moment by links from these URLs, redirects followed, as far as `allowed` lets;
    /// sorted by URL. With no starts it starts from every host's home page.
    pub fn reachable(&self, starts: &[&str], t: Time, mut allowed: impl FnMut(&str) -> bool) -> io::Result<Vec<Entry>> {
        let homes = self.hosts().iter().filter(|_| starts.is_empty()).map(|host| format!("{}/", host.base));
        let mut waiting: VecDeque<String> = starts.iter().map(|start| start.to_string()).chain(homes).collect();
        let mut seen: BTreeMap<String, Option<Entry>> = waiting.iter().map(|url| (url.clone(), None)).collect();
        while let Some(url) = waiting.pop_front() {
            if !allowed(&url) {
                continue;
            }
            let Some(entry) = self.entry(&url, t).transpose()? else {
                continue;
            };
            for link in entry.links.iter().flatten() {
                if !seen.contains_key(&link.url) {
                    seen.insert(link.url.clone(), None);
                    waiting.push_back(link.url.clone());
                }
            }
            seen.insert(url, Some(entry));
        }
        Ok(seen.into_values().flatten().collect())
    }
}

impl Host {
    /// Every URL of this host at a moment.
    pub fn truth(&self, t: Time) -> Box<dyn Iterator<Item = io::Result<Entry>> + '_> {
        let robots = self.plan.robots.paths().into_iter();
        let paths: Box<dyn Iterator<Item = String> + '_> = match &self.source {
            Source::Generated(graph) => Box::new(robots.chain(generated_paths(graph))),
            Source::Folder(folder) => match folder.paths() {
                Ok(paths) => Box::new(robots.chain(paths.into_iter().filter(|path| path != "/robots.txt"))),
                Err(e) => return Box::new(std::iter::once(Err(e))),
            },
            Source::History(history) => {
                Box::new(robots.chain(history.paths(t).into_iter().filter(|path| path != "/robots.txt")))
            }
        };
        let secure = self.base.starts_with("https:");
        Box::new(paths.map(move |path| self.entry(secure, &path, t)))
    }

    /// The truth about one path of this host.
    pub fn entry(&self, secure: bool, path: &str, t: Time) -> io::Result<Entry> {
        let answer = self.answer(secure, path, t)?;
        let own = secure == self.base.starts_with("https:") || self.base.starts_with("http:");
        let mut entry = Entry {
            url: if own { format!("{}{path}", self.base) } else { format!("http{}{path}", &self.base[5..]) },
            host: self.plan.name.clone(),
            kind: Kind::File,
            status: answer.status,
            media_type: answer.media_type.clone(),
            bytes: answer.body.len(),
            digest: digest(&answer.body)?,
            etag: answer.etag.clone(),
            last_modified: answer.last_modified,
            location: answer.location.clone(),
            links: None,
            born: None,
            dies: None,
            period_ms: None,
            version: None,
        };
        if !own {
            entry.kind = Kind::Redirect;
            entry.links = Some(vec![self.location_link(&answer.location.unwrap_or_default())]);
        } else if self.plan.robots.answer(path, None, t).is_some() {
            entry.kind = Kind::Robots;
            let to = answer.location.iter().map(|to| self.location_link(to));
            let sitemap = if answer.status == 200 { self.named_sitemap(&answer.body)? } else { None };
            entry.links = Some(to.chain(sitemap).collect());
        } else if let Source::Generated(graph) = &self.source {
            describe(&mut entry, graph, path, t);
        } else if let Some(to) = &answer.location {
            entry.kind = Kind::Redirect;
            entry.links = Some(vec![self.location_link(to)]);
        } else if path == "/robots.txt" {
            entry.kind = Kind::Robots;
        } else if answer.status != 200 {
            entry.kind = Kind::Missing;
        }
        Ok(entry)
    }

    fn location_link(&self, to: &str) -> Link {
        let url = if to.starts_with("//") {
            format!("{}:{to}", self.base.split(':').next().unwrap_or_default())
        } else if to.starts_with('/') {
            format!("{}{to}", self.base)
        } else {
            to.to_string()
        };
        Link { element: Element::Location, url, written: to.to_string() }
    }

    fn named_sitemap(&self, body: &Body) -> io::Result<Option<Link>> {
        let Some(url) = self.sitemap() else {
            return Ok(None);
        };
        let line = format!("\nSitemap: {url}\n");
        let named = read(body)?.ends_with(line.as_bytes());
        Ok(named.then(|| Link { element: Element::Listed, written: url.clone(), url }))
    }
}

fn generated_paths(graph: &Graph) -> impl Iterator<Item = String> + '_ {
    let feeds = FEED_PATHS.iter().filter(|_| graph.feeds).map(|path| path.to_string());
    let sitemaps = std::iter::once(SITEMAP_PATH.to_string()).chain(graph.sitemap_paths()).filter(|_| graph.sitemaps);
    graph.layout.items().map(|item| graph.layout.path(item)).chain(feeds).chain(sitemaps)
}

fn describe(entry: &mut Entry, graph: &Graph, path: &str, t: Time) {
    let Some(item) = graph.layout.item(path) else {
        let listed = if entry.status == 200 { graph.listed(path, t) } else { Vec::new() };
        entry.kind = match entry.status {
            200 if FEED_PATHS.contains(&path) => Kind::Feed,
            200 => Kind::Sitemap,
            _ => Kind::Missing,
        };
        entry.links = Some(listed);
        return;
    };
    let Item { kind, .. } = item;
    entry.kind = kind;
    entry.links = Some(if t < graph.layout.begin { Vec::new() } else { graph.links(item, t) });
    if kind != Kind::Missing {
        let life = graph.layout.life(item);
        entry.born = Some(life.born);
        entry.dies = life.dies;
        entry.period_ms = life.period_ms;
        entry.version = graph.layout.version(item, t).map(|version| version.number);
    }
}

/// The whole of a body.
pub(crate) fn read(body: &Body) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    each_piece(body, |piece| out.extend_from_slice(piece))?;
    Ok(out)
}

fn each_piece(body: &Body, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    match body {
        Body::Bytes(bytes) => take(bytes),
        Body::File { path, offset, bytes } => {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*offset))?;
            let mut part = file.take(*bytes);
            let mut piece = vec![0; limits::FILE_PIECE_BYTES];
            loop {
                match part.read(&mut piece)? {
                    0 => break,
                    n => take(&piece[..n]),
                }
            }
        }
    }
    Ok(())
}

fn digest(body: &Body) -> io::Result<String> {
    let mut sha1 = Sha1::new();
    each_piece(body, |piece| sha1.update(piece))?;
    Ok(format!("sha1:{}", base32(&sha1.finalize())))
}

/// Base32 by RFC 4648; 20 bytes need no padding.
fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(5) {
        let bits = group.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)) << (8 * (5 - group.len()));
        for place in (0..8).rev().take((group.len() * 8).div_ceil(5)) {
            out.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[(bits >> (place * 5)) as usize & 31]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_archives() {
        let empty = Body::Bytes(bytes::Bytes::new());
        assert_eq!(digest(&empty).unwrap(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(base32(b"foob"), "MZXW6YQ");
    }
}
