//! Fills a registry with many made-up URLs and measures how fast links are checked against it; prints one JSON object.
//!
//! ```text
//! cargo run --release -p skep-crawl --example registry -- DIR [--urls N] [--checks N] [--peer fjall] [--seconds N]
//! ```
//!
//! Pages have 40 links, of which 36 are known. Two ways to choose those: *near*, as pages link (the site's navigation, pages found
//! lately on the same host, the front pages of other hosts), and *any*, each known URL as likely as any other, which no cache
//! helps with. Measured at a tenth of the URLs and at all of them; URLs are made before the clock runs. With `--peer` the same
//! links are checked against a keyspace of full URLs in that store. After `--seconds` no more URLs are added: what was measured by then is
//! told, and `filled` says how many URLs there were.

use skep_crawl::registry::{Class, Heard, Options, Registry, Verdict};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LINKS_PER_PAGE: u64 = 40;
const NEW_PER_PAGE: u64 = 4;
/// New URLs of one host that are heard together: what 25 pages of it bring.
const BUNCH: u64 = 100;
const BATCH_PAGES: u64 = 500;
const KEY: [u8; 32] = [0x5c; 32];

const WORDS: [&str; 32] = [
    "about", "archive", "article", "author", "blog", "calendar", "category", "contact", "culture", "detail", "event",
    "forum", "gallery", "guide", "history", "index", "library", "market", "media", "member", "music", "news", "people",
    "photo", "product", "report", "review", "science", "service", "story", "travel", "video",
];

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

/// The made-up web. URLs are numbered in the order in which they are first heard.
struct Web {
    hosts: f64,
    /// The first and the latest bunch of each host, so far.
    bunches: Vec<Option<(u64, u64)>>,
    grown: u64,
}

struct Link {
    url: String,
    host: String,
    number: u64,
}

impl Web {
    fn new(urls: u64) -> Web {
        let hosts = (urls / 100).max(100);
        Web { hosts: hosts as f64, bunches: vec![None; hosts as usize + 1], grown: 0 }
    }

    /// Few hosts have many pages, many have few.
    fn host_of_bunch(&self, bunch: u64) -> u64 {
        self.hosts.powf(fraction(bunch, 1)) as u64
    }

    /// Three of four links stay on their host.
    fn host_of(&self, number: u64) -> u64 {
        match fraction(number, 2) < 0.76 {
            true => self.host_of_bunch(number / BUNCH),
            false => self.hosts.powf(fraction(number, 3)) as u64,
        }
    }

    fn host_name(&self, host: u64) -> String {
        let word = |about: u64| WORDS[(chance(host, about) % WORDS.len() as u64) as usize];
        let scheme = if chance(host, 4).is_multiple_of(5) { "http" } else { "https" };
        let www = if chance(host, 5).is_multiple_of(2) { "www." } else { "" };
        let tld = ["com", "org", "net", "de", "co.uk", "at", "fr", "com.au"][(chance(host, 6) % 8) as usize];
        format!("{scheme}://{www}{}-{}{host}.{tld}", word(7), word(8))
    }

    fn link(&self, number: u64) -> Link {
        let word = |about: u64| WORDS[(chance(number, about) % WORDS.len() as u64) as usize];
        let host = self.host_name(self.host_of(number));
        let url = match chance(number, 10) % 10 {
            0..=3 => format!("{host}/{}/{}-{}-{number}.html", word(11), word(12), word(13)),
            4..=5 => format!("{host}/{}/{}/{}/{number}", word(11), word(12), word(13)),
            6 => format!("{host}/{}/{}?id={number}&page={}", word(11), word(12), chance(number, 14) % 30),
            7 => format!("{host}/{}/img/{}_{number}.jpg", word(11), word(12)),
            8 => format!("{host}/{}/{:08x}/{}.js?v={number}", word(11), chance(number, 15) as u32, word(12)),
            _ => format!("{host}/wiki/{}_{}_({number})", word(11), word(12)),
        };
        Link { url, host, number }
    }

    /// The next URL that nobody has heard of.
    fn new_link(&mut self) -> Link {
        let number = self.grown;
        if number.is_multiple_of(BUNCH) {
            let bunch = number / BUNCH;
            let host = self.host_of_bunch(bunch) as usize;
            let first = self.bunches[host].map_or(bunch, |(first, _)| first);
            self.bunches[host] = Some((first, bunch));
        }
        self.grown += 1;
        self.link(number)
    }

    /// The number of a known URL that the page being read links to.
    fn known(&self, draw: u64, near: bool) -> u64 {
        let any = chance(draw, 20) % self.grown;
        if !near {
            return any;
        }
        let here = self.host_of_bunch(self.grown.saturating_sub(1) / BUNCH) as usize;
        let there = self.hosts.powf(fraction(draw, 21)) as usize;
        let of = |host: usize| self.bunches[host];
        let (bunch, among) = match (chance(draw, 22) % 100, of(here), of(there)) {
            (0..50, Some((first, _)), _) => (first, 20),
            (50..76, Some((_, latest)), _) => (latest, BUNCH),
            (76..95, _, Some((first, _))) => (first, 20),
            _ => return any,
        };
        (bunch * BUNCH + chance(draw, 23) % among).min(self.grown - 1)
    }

    /// The links of some pages: four of forty are new.
    fn pages(&mut self, draw: u64, near: bool) -> Vec<Link> {
        let mut links = Vec::new();
        for n in 0..BATCH_PAGES * LINKS_PER_PAGE {
            let fresh = n % LINKS_PER_PAGE % (LINKS_PER_PAGE / NEW_PER_PAGE) == 3;
            links.push(if fresh { self.new_link() } else { self.link(self.known(draw + n, near)) });
        }
        links
    }
}

/// Nanoseconds of the processor that this thread used.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn memory_mb(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn disk_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .map(
            |file| if file.path().is_dir() { disk_bytes(&file.path()) } else { file.metadata().map_or(0, |m| m.len()) },
        )
        .sum()
}

/// What is measured: says whether a URL was known, and remembers it.
trait Checked {
    fn check(&mut self, link: &Link) -> Result<bool, Box<dyn Error>>;
    fn sync(&mut self) -> Result<(), Box<dyn Error>>;
}

struct Ours(Registry);

impl Checked for Ours {
    fn check(&mut self, link: &Link) -> Result<bool, Box<dyn Error>> {
        let heard = Heard {
            url: &link.url,
            known_as: &link.url,
            host_key: &link.host,
            site: &link.host,
            depth: 3,
            via: Some(link.number / 4),
            crawl: 1,
            class: Class::Page,
            kind: 0,
        };
        let verdict = self.0.hear(&heard)?;
        if verdict.entry() != link.number {
            return Err(format!("{} is {:?}, not {}", link.url, verdict, link.number).into());
        }
        Ok(matches!(verdict, Verdict::Known(_)))
    }

    fn sync(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self.0.checkpoint(&[], &[])?)
    }
}

struct Fjall(fjall::Database, fjall::Keyspace);

impl Checked for Fjall {
    fn check(&mut self, link: &Link) -> Result<bool, Box<dyn Error>> {
        if self.1.get(link.url.as_bytes())?.is_some() {
            return Ok(true);
        }
        self.1.insert(link.url.as_bytes(), &link.number.to_le_bytes()[..5])?;
        Ok(false)
    }

    fn sync(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self.0.persist(fjall::PersistMode::SyncData)?)
    }
}

/// Hears of new URLs only, until so many are known or it is too late; the seconds of the processor it took.
fn fill(checked: &mut dyn Checked, web: &mut Web, until: u64, end: Instant) -> Result<f64, Box<dyn Error>> {
    let mut ns = 0;
    while web.grown < until && Instant::now() < end {
        let links: Vec<Link> = (0..20_000.min(until - web.grown)).map(|_| web.new_link()).collect();
        let begin = cpu_ns();
        for link in &links {
            if checked.check(link)? {
                return Err(format!("{} is not known", link.url).into());
            }
        }
        ns += cpu_ns() - begin;
    }
    Ok(ns as f64 / 1e9)
}

/// Checks per second of the processor.
fn measure(checked: &mut dyn Checked, web: &mut Web, checks: u64, near: bool) -> Result<f64, Box<dyn Error>> {
    let (mut ns, mut done, mut known) = (0, 0, 0);
    while done < checks {
        let links = web.pages(web.grown ^ (done << 20), near);
        let begin = cpu_ns();
        for link in &links {
            known += u64::from(checked.check(link)?);
        }
        ns += cpu_ns() - begin;
        done += links.len() as u64;
    }
    if known * LINKS_PER_PAGE != done * (LINKS_PER_PAGE - NEW_PER_PAGE) {
        return Err(format!("{known} of {done} were known").into());
    }
    Ok((done as f64 / (ns as f64 / 1e9)).round())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut folder, mut urls, mut checks, mut peer) = (PathBuf::new(), 10_000_000u64, 2_000_000u64, None);
    let mut seconds = 24 * 60 * 60;
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--urls" => urls = value()?.parse()?,
            "--checks" => checks = value()?.parse()?,
            "--peer" => peer = Some(value()?),
            "--seconds" => seconds = value()?.parse()?,
            path => folder = path.into(),
        }
    }
    if folder.as_os_str().is_empty() || urls < 1_000 {
        return Err("usage: registry DIR [--urls N, at least 1000] [--checks N] [--peer fjall] [--seconds N]".into());
    }
    let open = || Registry::open(&folder, Options::new(KEY));
    let mut checked: Box<dyn Checked> = match peer.as_deref() {
        None => Box::new(Ours(open()?.0)),
        Some("fjall") => {
            let database = fjall::Database::builder(&folder).open()?;
            let keyspace = database.keyspace("urls", fjall::KeyspaceCreateOptions::default)?;
            Box::new(Fjall(database, keyspace))
        }
        Some(other) => return Err(format!("no peer is called {other}").into()),
    };
    let mut web = Web::new(urls);
    let mut told = serde_json::Map::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut fill_s = fill(&mut *checked, &mut web, urls / 10, end)?;
    let mut tell = |name: &str, value: f64| told.insert(name.into(), value.into());
    checked.sync()?;
    tell("few_near_per_s", measure(&mut *checked, &mut web, checks, true)?);
    tell("few_any_per_s", measure(&mut *checked, &mut web, checks, false)?);
    fill_s += fill(&mut *checked, &mut web, urls / 2, end)?;
    checked.sync()?;
    if peer.is_none() {
        drop(checked);
        let begin = Instant::now();
        let (registry, _) = open()?;
        tell("open_s", begin.elapsed().as_secs_f64());
        tell("open_urls", registry.entries() as f64);
        checked = Box::new(Ours(registry));
    }
    fill_s += fill(&mut *checked, &mut web, urls, end)?;
    checked.sync()?;
    let filled = web.grown;
    tell("filled", filled as f64);
    tell("fill_per_s", (filled as f64 / fill_s).round());
    let disk = disk_bytes(&folder);
    tell("bytes_per_url", disk as f64 / filled as f64);
    if filled >= urls {
        tell("many_near_per_s", measure(&mut *checked, &mut web, checks, true)?);
        tell("many_any_per_s", measure(&mut *checked, &mut web, checks, false)?);
    }
    let begin = Instant::now();
    checked.sync()?;
    tell("checkpoint_s", begin.elapsed().as_secs_f64());
    let length = (0..100_000).map(|n| web.link(chance(n, 30) % filled).url.len()).sum::<usize>();
    tell("url_chars", length as f64 / 100_000.0);
    tell("urls", web.grown as f64);
    tell("resident_mb", memory_mb("VmRSS:"));
    tell("peak_mb", memory_mb("VmHWM:"));
    println!("{}", serde_json::Value::Object(told));
    Ok(())
}
