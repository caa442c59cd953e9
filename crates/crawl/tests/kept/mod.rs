//! Visits in virtual time, written into an archive as a crawl writes them, and read back from there: what changed is a capture, what
//! did not is a check line and once in thirty days a revisit, and a visit that failed is a check line, too.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use skep_archive::captures::Match;
use skep_archive::sidecar::SidecarReader;
use skep_archive::{Append, Archive, CaptureKind, Key, Note, OpenOptions, Pending};
use skep_crawl::RegistryKey;
use skep_crawl::answer::{Answer, Block};
use skep_crawl::checks::{self, Check, Outcome, RevisitPolicy};
use skep_crawl::records::{Encoders, Original, Same, Visit};
use skep_testweb::changing::{Changing, Freshness, Judge, Seen};
use skep_warc::deflate::Level;

const START_MS: i64 = 1_577_836_800_000;
const DAY_MS: f64 = 86_400_000.0;
const CRAWL: &str = "virtual";
const CRAWL_NUMBER: u16 = 1;
/// Check lines of a host in one record, as many as a bundle brings.
const CHECKS_AT_ONCE: usize = 100;
/// Appends that are on their way to the disk.
const PENDING_MAX: usize = 4_096;

/// What the records say of a page so far.
#[derive(Clone, Copy)]
struct Known {
    /// When its last response came.
    response_ms: i64,
    /// When it last had a record of its own.
    recorded_ms: i64,
}

/// An archive of virtual visits.
pub struct Kept {
    _folder: tempfile::TempDir,
    archive: Archive,
    key: RegistryKey,
    encoders: Encoders,
    hosts: Vec<u32>,
    known: Vec<Option<Known>>,
    failures: Vec<u8>,
    checks: Vec<Vec<Check>>,
    pending: VecDeque<Pending>,
    ids: u128,
    /// Responses, revisits and check lines that were written.
    pub written: [u64; 3],
}

impl Kept {
    /// An empty archive.
    pub fn new(web: &Changing) -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() };
        let archive = Archive::open(folder.path(), options).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let pages = web.pages() as usize;
        Kept {
            encoders: Encoders::new(Level::LOWEST, folder.path().to_owned()),
            _folder: folder,
            archive,
            key,
            hosts: (0..web.pages()).map(|page| web.host_of(page)).collect(),
            known: vec![None; pages],
            failures: vec![0; pages],
            checks: vec![Vec::new(); web.hosts() as usize],
            pending: VecDeque::new(),
            ids: 0,
            written: [0; 3],
        }
    }

    fn url(&self, page: u32) -> String {
        format!("http://host-{}.example/{page}", self.hosts[page as usize])
    }

    /// A visit.
    pub fn told(&mut self, page: u32, t: f64, seen: Seen) {
        let at = page as usize;
        let time_ms = START_MS + (t * DAY_MS).round() as i64;
        if seen == Seen::Failed {
            self.failures[at] = self.failures[at].saturating_add(1);
            return self.check(page, time_ms, Outcome::Fault("timeout-first-byte".into()));
        }
        self.failures[at] = 0;
        match self.known[at] {
            Some(known) if seen == Seen::Same => {
                match RevisitPolicy::Sparing.records(Some(known.recorded_ms), time_ms) {
                    true => self.capture(page, time_ms, Some(known.response_ms)),
                    false => self.check(page, time_ms, Outcome::NotModified),
                }
            }
            _ => self.capture(page, time_ms, None),
        }
    }

    fn capture(&mut self, page: u32, time_ms: i64, original_ms: Option<i64>) {
        let url = self.url(page);
        let bytes = match original_ms {
            Some(_) => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
            None => {
                let body = format!("<p>Page {page} at {time_ms}</p>");
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
        };
        let answer = Answer::read(Block::Memory(bytes.as_bytes()), None, 0).unwrap();
        let original = original_ms.map(|time_ms| Original {
            why: Same::NotModified,
            url: &url,
            time_ms,
            record: None,
            payload: None,
        });
        let visit = Visit {
            url: &url,
            key: &Key::of(&url),
            time_ms,
            request: None,
            private: false,
            answer: &answer,
            address: None,
            protocols: &[],
            cipher: None,
            truncated: None,
            original,
            metadata: None,
            dns: None,
        };
        let ids = &mut self.ids;
        let append = self.encoders.visit(&visit, &mut || next(ids)).unwrap();
        self.written[usize::from(original_ms.is_some())] += 1;
        self.known[page as usize] = Some(Known { response_ms: original_ms.unwrap_or(time_ms), recorded_ms: time_ms });
        self.append(append);
    }

    fn check(&mut self, page: u32, time_ms: i64, outcome: Outcome) {
        let host = self.hosts[page as usize];
        let fingerprint = self.key.fingerprint(CRAWL_NUMBER, &self.url(page));
        let failures = self.failures[page as usize];
        self.written[2] += 1;
        self.checks[host as usize].push(Check { fingerprint, time_ms, outcome, failures });
        if self.checks[host as usize].len() == CHECKS_AT_ONCE {
            self.write_checks(host);
        }
    }

    fn write_checks(&mut self, host: u32) {
        let lines = std::mem::take(&mut self.checks[host as usize]);
        let mut left = lines.as_slice();
        let site_hash = Key::of(&format!("http://host-{host}.example/")).site_hash();
        while let Some(first) = left.first() {
            let (block, count) = checks::encode(CRAWL, &format!("host-{host}.example:80"), left);
            let append = self.encoders.checks(site_hash, first.time_ms, block, next(&mut self.ids)).unwrap();
            self.append(append);
            left = &left[count..];
        }
    }

    fn append(&mut self, append: Append) {
        self.pending.push_back(self.archive.append(append).unwrap());
        if self.pending.len() > PENDING_MAX
            && let Some(first) = self.pending.pop_front()
        {
            first.wait().unwrap();
        }
    }

    /// How fresh the copies were, judged by nothing but the times that the archive tells: of captures, and of checks that found a
    /// page as it was.
    pub fn judge(mut self, web: &Changing, equal: bool, (from, to): (f64, f64)) -> Freshness {
        (0..web.hosts()).for_each(|host| self.write_checks(host));
        self.pending.drain(..).for_each(|pending| drop(pending.wait().unwrap()));
        self.archive.settle().unwrap();
        let mut judge = Judge::new(web, equal, from, to);
        for (page, mut visits) in self.read(web.pages()).into_iter().enumerate() {
            visits.sort_unstable();
            for (time_ms, answered) in visits {
                let t = (time_ms - START_MS) as f64 / DAY_MS;
                match answered {
                    true => drop(judge.captured(page as u32, t)),
                    false => judge.failed(t),
                }
            }
        }
        judge.finish()
    }

    /// For each page when it was visited, and whether it answered.
    fn read(&self, pages: u32) -> Vec<Vec<(i64, bool)>> {
        let mut visits = vec![Vec::new(); pages as usize];
        let mut found = [0; 3];
        let by_key: HashMap<Vec<u8>, usize> =
            (0..pages).map(|page| (Key::of(&self.url(page)).as_bytes().to_vec(), page as usize)).collect();
        let looked = self.archive.views().captures.each(&Match::All, |row| {
            visits[by_key[row.url_key()]].push((row.time_ms(), true));
            found[usize::from(row.kind() == CaptureKind::Revisit)] += 1;
            ControlFlow::Continue(())
        });
        looked.unwrap();
        let by_fingerprint: HashMap<[u8; 16], usize> =
            (0..pages).map(|page| (self.key.fingerprint(CRAWL_NUMBER, &self.url(page)), page as usize)).collect();
        for segment in self.archive.segments() {
            let (path, name) = self.archive.sidecar(segment.name.id).unwrap();
            let Some(mut sidecar) = SidecarReader::open(&path, name).unwrap() else { continue };
            while let Some(entries) = sidecar.next_frame().unwrap() {
                for entry in entries {
                    let Note::Checks(block) = entry.note else { continue };
                    for check in checks::parse(&block).unwrap().checks {
                        let answered = check.outcome == Outcome::NotModified;
                        visits[by_fingerprint[&check.fingerprint]].push((check.time_ms, answered));
                        found[2] += 1;
                    }
                }
            }
        }
        assert_eq!(found, self.written, "responses, revisits and check lines");
        visits
    }
}

fn next(ids: &mut u128) -> [u8; 16] {
    *ids += 1;
    ids.to_le_bytes()
}
