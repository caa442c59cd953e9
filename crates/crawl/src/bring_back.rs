//! URLs that somebody else remembers, a database beside a lost archive say, brought back into the registry: what was heard is recorded as
//! heard, when it was last seen as a check, and what it came to as a revisit without a body: the next visit keeps the page whole, and whether it
//! is another than the one that was lost can be told. From then on the records know it, and every rebuild does.

use std::collections::{BTreeSet, VecDeque};

use skep_archive::{Append, Archive, Encoded, Pending, system_clock};
use skep_url::Url;
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};

use crate::chance::{self, Ids};
use crate::checks::{self, Check};
use crate::engine::number;
use crate::error::{Error, Result};
use crate::heard::{self, Heard, Put};
use crate::hearing::host_key;
use crate::limits::SEEDS_MAX;
use crate::outcome::Outcome;
use crate::records::Encoders;
use crate::registry_key::RegistryKey;
use crate::settings::{Pass, Settings};

/// A URL that somebody remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The URL.
    pub url: String,
    /// When it was last seen, in milliseconds since 1970; none if it was only heard of.
    pub seen_ms: Option<i64>,
    /// Whether it was not there any more.
    pub gone: bool,
    /// What the server said then.
    pub status: u16,
    /// The digest of the payload, as records name it: `sha1:…`.
    pub digest: Option<String>,
}

/// What it came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BroughtBack {
    /// URLs that are known now.
    pub urls: u64,
    /// Those of them of which it is known when they were seen.
    pub seen: u64,
    /// Those of them of which it is known what their payload came to.
    pub digests: u64,
    /// What is no URL that is ever fetched.
    pub left_out: u64,
}

/// Records that are on their way to the disk.
const PENDING_MAX: usize = 256;

/// URLs on their way back. Those of a host are best given one after the other.
pub struct BringBack<'a> {
    archive: &'a Archive,
    settings: Settings,
    is_new: bool,
    key: RegistryKey,
    encoders: Encoders,
    revisits: Encoder,
    ids: Ids,
    host: String,
    heard: heard::Batch,
    checks: Vec<Check>,
    seen: Vec<Encoded>,
    site_hash: u32,
    seeds: BTreeSet<String>,
    earliest_ms: i64,
    pending: VecDeque<Pending>,
    done: BroughtBack,
}

impl<'a> BringBack<'a> {
    /// Into the crawl of this name, which is made if there is none.
    pub fn begin(archive: &'a Archive, name: &str) -> Result<BringBack<'a>> {
        let folder = archive.layout().settings();
        let known = Settings::load(&folder, name)?;
        let is_new = known.is_none();
        let settings = match known {
            Some(settings) => settings,
            None => number(Settings { name: name.to_owned(), ..Settings::default() }, &folder)?,
        };
        Ok(BringBack {
            key: RegistryKey::load(&folder)?,
            encoders: Encoders::new(skep_warc::deflate::Level::new(1), archive.layout().root().to_path_buf()),
            revisits: Encoder::new(Compression::GzipAlike),
            ids: Ids::new(chance::draw()?),
            host: String::new(),
            heard: heard::Batch::new(name),
            checks: Vec::new(),
            seen: Vec::new(),
            site_hash: 0,
            seeds: BTreeSet::new(),
            earliest_ms: system_clock(),
            pending: VecDeque::new(),
            done: BroughtBack::default(),
            archive,
            settings,
            is_new,
        })
    }

    /// Takes one.
    pub fn put(&mut self, remembered: &Remembered) -> Result<()> {
        let Ok(url) = Url::parse(&remembered.url) else {
            self.done.left_out += 1;
            return Ok(());
        };
        let host = host_key(&url);
        if host != self.host {
            self.flush()?;
            if self.seeds.len() < SEEDS_MAX {
                self.seeds.extend(url.join("/").ok().map(|root| root.as_str().to_owned()));
            }
            (self.host, self.site_hash) = (host, url.key().site_hash());
        }
        let heard = Heard { url: url.as_str(), depth: 0, class: "page", source: None };
        let mut put = self.heard.put(&heard);
        if put == Put::Full {
            self.flush()?;
            put = self.heard.put(&heard);
        }
        if put != Put::Taken {
            self.done.left_out += 1;
            return Ok(());
        }
        self.done.urls += 1;
        if let Some(time_ms) = remembered.seen_ms {
            self.done.seen += 1;
            self.earliest_ms = self.earliest_ms.min(time_ms);
            let outcome = match remembered.gone {
                true => checks::Outcome::Fault(Outcome::SOFT_MISSING.id().into()),
                false => checks::Outcome::NotModified,
            };
            let fingerprint = self.key.fingerprint(self.settings.number, url.as_str());
            self.checks.push(Check { fingerprint, time_ms, outcome, failures: 0 });
            if let Some(seen) = self.seen(url.as_str(), time_ms, remembered) {
                self.done.digests += 1;
                self.seen.push(seen);
            }
        }
        Ok(())
    }

    /// What it came to when it was seen, if that is known and it was a page. No body is there to be referred to.
    fn seen(&mut self, url: &str, time_ms: i64, remembered: &Remembered) -> Option<Encoded> {
        if remembered.gone || !matches!(remembered.status, 200..=299) {
            return None;
        }
        let why = Revisit::IdenticalPayload(remembered.digest.as_deref()?.parse().ok()?);
        let head = format!("HTTP/1.1 {} \r\n\r\n", remembered.status);
        let (id, date) = (RecordId::uuid(self.ids.next()), rfc3339(time_ms));
        let mut bytes = Vec::new();
        let record = Record::revisit(&id, &date, url, why, head.as_bytes());
        record.encode(&mut self.revisits, &mut bytes).ok()?;
        Encoded::describing(bytes).ok()
    }

    /// Writes what waits: first that it is known, then when it was seen.
    fn flush(&mut self) -> Result<()> {
        let refused = |error| Error::Settings { what: format!("what is remembered cannot be recorded: {error}") };
        let now_ms = system_clock();
        if !self.heard.is_empty() {
            let block = self.heard.finish();
            let append = self.encoders.heard(self.site_hash, now_ms, block, self.ids.next()).map_err(refused)?;
            self.append(append)?;
        }
        let mut checks = std::mem::take(&mut self.checks);
        checks.sort_by_key(|check| check.time_ms);
        let mut rest = &checks[..];
        while !rest.is_empty() {
            let (block, count) = checks::encode(&self.settings.name, &self.host, rest);
            let append = self.encoders.checks(self.site_hash, now_ms, block, self.ids.next()).map_err(refused)?;
            self.append(append)?;
            rest = &rest[count.max(1)..];
        }
        let records = std::mem::take(&mut self.seen);
        if !records.is_empty() {
            self.append(Append { site_hash: self.site_hash, records })?;
        }
        Ok(())
    }

    fn append(&mut self, append: Append) -> Result<()> {
        self.pending.push_back(self.archive.append(append)?);
        while self.pending.len() > PENDING_MAX
            && let Some(oldest) = self.pending.pop_front()
        {
            oldest.wait()?;
        }
        Ok(())
    }

    /// Waits until all of it is on the disk. A crawl that is new has had its first pass: the next looks at everything again.
    pub fn finish(mut self) -> Result<BroughtBack> {
        self.flush()?;
        for pending in std::mem::take(&mut self.pending) {
            pending.wait()?;
        }
        if self.is_new {
            self.settings.seeds = self.seeds.into_iter().collect();
            self.settings.pass =
                Pass { number: 1, begun_ms: self.earliest_ms, ended_ms: Some(system_clock()), earlier_ms: Vec::new() };
            self.settings.store(&self.archive.layout().settings())?;
        }
        Ok(self.done)
    }
}
