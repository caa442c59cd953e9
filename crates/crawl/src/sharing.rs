//! A crawl that many nodes run together. Each node schedules and fetches only what belongs to slices that it leads now; what its
//! pages link to elsewhere goes to whoever leads there.
//!
//! ```text
//!  lease ──▶ coming ──▶ nobody out there any more, records folded, clocks set ──▶ led ──▶ bundles
//!                          page of slice A links to slice B ──▶ outbox ──▶ leader of B: recorded as heard, synced ──▶ acknowledged
//! ```
//! What is known of a slice follows from the records of that slice alone, so that another node can take it over: also where one
//! node leads both ends of a link, its target is recorded as heard in its own slice. So whatever others wrote of it is folded, also what
//! comes when the slice is led already: a node that was killed is the only one to have its last records, until it is back.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use skep_archive::settings as files;
use skep_url::Url;

use crate::error::{Error, Result};
use crate::limits::{POLITE_BYTES_MAX, POLITE_SITE_BYTES_MAX, POLITE_WAIT_SURE_MS};
use crate::registry_key::RegistryKey;

pub use crate::registry::Referrer;

/// The key by which a node is known to others.
pub type Node = [u8; 32];

/// Told what became of links: everything is safe there, or nothing was taken.
pub type Back = Box<dyn FnOnce(bool) + Send>;

/// The way to the others. Its calls return at once.
pub trait Outlet: Send + Sync {
    /// Who leads a slice, as far as that is known.
    fn leader(&self, slice: u32) -> Option<Node>;
    /// Brings links to a node.
    fn send(&self, crawl: &str, to: Node, links: Vec<Link>, back: Back);
    /// How politely the sites of a slice were visited so far, for whoever leads it next. `out`: something is under way there still,
    /// or its records are not synced yet.
    fn polite(&self, slice: u32, politeness: Vec<u8>, out: bool);
    /// What was copied of a slice cannot be taken over: somebody else should lead it.
    fn give_up(&self, slice: u32);
}

/// A link from one slice to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it leads, in fetch form.
    pub url: String,
    /// Links from a seed.
    pub depth: u16,
    /// Its page cannot be shown without it.
    pub needed: bool,
    /// The site of its page, where somebody wants to know which sites link there.
    pub site: Option<Referrer>,
    /// The page had it when it was visited before, and has it no more.
    pub gone: bool,
}

impl Link {
    /// A link of which no more is known than where it leads.
    pub fn to(url: &str, depth: u16) -> Link {
        Link { url: url.to_owned(), depth, needed: false, site: None, gone: false }
    }
}

/// What makes a run part of a network.
#[derive(Clone)]
pub struct Share {
    /// What this node leads.
    pub leading: Arc<Leading>,
    /// The way to the others.
    pub outlet: Arc<dyn Outlet>,
}

/// The slices that a node leads, and until when: asked before every request.
pub struct Leading {
    bits: u8,
    led: RwLock<HashMap<u32, Term>>,
    /// Slices whose lease has ended: one that comes to be ready only now must not begin.
    ended: RwLock<HashSet<u32>>,
}

#[derive(Clone, Copy)]
struct Term {
    /// When everything was ready for it here.
    since: Instant,
    until: Instant,
}

impl Leading {
    /// Nothing is led yet, of two to the power of `bits` slices.
    pub fn new(bits: u8) -> Leading {
        Leading { bits, led: RwLock::default(), ended: RwLock::default() }
    }

    /// How many bits of a site's hash number a slice.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The slice of a URL.
    pub fn slice_of(&self, url: &Url) -> u32 {
        slice_of(url.key().site_hash(), self.bits)
    }

    /// Whether a request to a site of this slice may begin now.
    pub fn may(&self, slice: u32) -> bool {
        self.read().get(&slice).is_some_and(|term| Instant::now() < term.until)
    }

    /// When this node began to lead a slice.
    pub(crate) fn since(&self, slice: u32) -> Option<Instant> {
        self.read().get(&slice).map(|term| term.since)
    }

    /// How long a slice is led for certain.
    pub(crate) fn left(&self, slice: u32) -> Duration {
        let until = self.read().get(&slice).map(|term| term.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// A lease that is held goes on until then. Says whether there is one; a new one comes by [`crate::Control::lead`].
    pub fn renew(&self, slice: u32, until: Instant) -> bool {
        let mut led = self.led.write().unwrap_or_else(PoisonError::into_inner);
        led.get_mut(&slice).map(|term| term.until = until).is_some()
    }

    /// A lease is new: what comes of it may begin.
    pub fn offer(&self, slice: u32) {
        self.ended().remove(&slice);
    }

    /// Not one more request begins in this slice, before another lease is offered.
    pub fn stop(&self, slice: u32) {
        // Held until both are said, so that nothing begins in between.
        let mut ended = self.ended();
        ended.insert(slice);
        self.rest(slice);
    }

    /// Not one more request begins before everything is ready for it.
    pub(crate) fn rest(&self, slice: u32) {
        self.led.write().unwrap_or_else(PoisonError::into_inner).remove(&slice);
    }

    fn ended(&self) -> std::sync::RwLockWriteGuard<'_, HashSet<u32>> {
        self.ended.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slices that are led, those whose lease has run out among them.
    pub fn slices(&self) -> Vec<u32> {
        let mut slices: Vec<u32> = self.read().keys().copied().collect();
        slices.sort_unstable();
        slices
    }

    /// Everything is ready. False if the lease has ended meanwhile.
    pub(crate) fn begin(&self, slice: u32, until: Instant) -> bool {
        let term = Term { since: Instant::now(), until };
        let ended = self.ended();
        if !ended.contains(&slice) {
            self.led.write().unwrap_or_else(PoisonError::into_inner).insert(slice, term);
        }
        !ended.contains(&slice)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<u32, Term>> {
        self.led.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slice of a site's hash.
pub fn slice_of(site_hash: u32, bits: u8) -> u32 {
    if bits == 0 { 0 } else { site_hash >> (32 - u32::from(bits)) }
}

/// The number of a crawl that all nodes know by the same one, because check lines name URLs by it.
pub(crate) fn number_of(name: &str) -> u16 {
    (xxhash_rust::xxh3::xxh3_64(name.as_bytes()) % u64::from(u16::MAX)) as u16 + 1
}

// --- the archive of a node --------------------------------------------------------------------------------------------

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    bits: u8,
}

const FILE: &str = "sharing.toml";
const FILE_VERSION: u32 = 1;

/// Makes an archive one of a network: `secret` is the same on all of its nodes, and URLs have fingerprints by it.
pub fn share(settings_folder: &Path, secret: [u8; 32], bits: u8) -> Result<()> {
    match RegistryKey::known(settings_folder)? {
        Some(key) if key.0 != secret => {
            let what = "this archive has crawled for itself already; a node needs one of its own".into();
            return Err(Error::Settings { what });
        }
        Some(_) => {}
        None => RegistryKey(secret).store(settings_folder)?,
    }
    Ok(files::store(&settings_folder.join(FILE), &File { version: FILE_VERSION, bits }, 0o644)?)
}

/// Into how many slices the crawls of an archive are divided, as a power of two; `None` where the archive is nobody else's.
pub(crate) fn shared_bits(settings_folder: &Path) -> Result<Option<u8>> {
    let file: Option<File> = files::load(&settings_folder.join(FILE), FILE_VERSION)?;
    Ok(file.map(|file| file.bits))
}

// --- politeness that travels ------------------------------------------------------------------------------------------

const POLITE_VERSION: u8 = 1;
const POLITE_HEAD_BYTES: usize = 25;

/// How long sites are to be left alone.
///
/// ```text
///  | version 1 | run 16 | made 8, milliseconds since 1970 | then for each site: wait 4, milliseconds | length 1 | name |   little-endian
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Politeness {
    /// Who says so: a node that hears its own words knows better.
    pub run: [u8; 16],
    /// When, by the clock on the wall there.
    pub made_ms: i64,
    /// Sites, and for how long from then on.
    pub waits: Vec<(String, u32)>,
}

impl Politeness {
    /// As it travels. Where there are too many sites, those that wait longest are named: the others have waited when a new leader begins.
    pub fn encode(&self) -> Vec<u8> {
        let mut waits: Vec<&(String, u32)> =
            self.waits.iter().filter(|(site, _)| site.len() <= POLITE_SITE_BYTES_MAX).collect();
        waits.sort_by_key(|(_, wait_ms)| std::cmp::Reverse(*wait_ms));
        let mut out = vec![POLITE_VERSION];
        out.extend_from_slice(&self.run);
        out.extend_from_slice(&self.made_ms.to_le_bytes());
        for (site, wait_ms) in waits {
            if out.len() + 5 + site.len() > POLITE_BYTES_MAX {
                break;
            }
            out.extend_from_slice(&wait_ms.to_le_bytes());
            out.push(site.len() as u8);
            out.extend_from_slice(site.as_bytes());
        }
        out
    }

    /// Reads it; `None` if it is not that.
    pub fn decode(bytes: &[u8]) -> Option<Politeness> {
        if bytes.len() > POLITE_BYTES_MAX {
            return None;
        }
        let (head, mut rest) = bytes.split_at_checked(POLITE_HEAD_BYTES)?;
        let mut politeness = Politeness {
            run: head[1..17].try_into().ok()?,
            made_ms: i64::from_le_bytes(head[17..25].try_into().ok()?),
            waits: Vec::new(),
        };
        if head[0] != POLITE_VERSION {
            return None;
        }
        while !rest.is_empty() {
            let (fixed, after) = rest.split_at_checked(5)?;
            let (site, after) = after.split_at_checked(usize::from(fixed[4]))?;
            let wait_ms = u32::from_le_bytes(fixed[..4].try_into().ok()?);
            politeness.waits.push((std::str::from_utf8(site).ok()?.to_owned(), wait_ms));
            rest = after;
        }
        Some(politeness)
    }

    /// How long each site is still to be left alone. Short waits begin anew, whatever the clocks say; long ones end when they were to end.
    pub fn left(&self, now_ms: i64) -> impl Iterator<Item = (&str, Duration)> {
        self.waits.iter().map(move |(site, wait_ms)| {
            let until_ms = self.made_ms.saturating_add(i64::from(*wait_ms));
            let by_date_ms = until_ms.saturating_sub(now_ms).clamp(0, i64::from(*wait_ms)) as u64;
            let wait_ms = u64::from(*wait_ms).min(POLITE_WAIT_SURE_MS).max(by_date_ms);
            (site.as_str(), Duration::from_millis(wait_ms))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_has_run_out_leads_no_more() {
        let leading = Leading::new(4);
        let now = Instant::now();
        assert!(!leading.may(3) && !leading.renew(3, now + Duration::from_secs(60)));
        leading.begin(3, now);
        assert!(!leading.may(3));
        assert!(leading.renew(3, now + Duration::from_secs(60)) && leading.may(3));
        leading.stop(3);
        assert!(!leading.may(3) && leading.slices().is_empty());
    }

    #[test]
    fn a_lease_that_ends_while_everything_is_made_ready_never_begins() {
        let leading = Leading::new(4);
        let later = Instant::now() + Duration::from_secs(60);
        leading.offer(3);
        // Somebody reads what others wrote; meanwhile the lease ends.
        leading.stop(3);
        assert!(!leading.begin(3, later) && !leading.may(3));
        leading.offer(3);
        assert!(leading.begin(3, later) && leading.may(3));
    }

    #[test]
    fn slices_are_ranges_of_hashes() {
        assert_eq!((slice_of(u32::MAX, 0), slice_of(u32::MAX, 8), slice_of(0x1234_5678, 8)), (0, 255, 0x12));
    }

    #[test]
    fn politeness_is_read_back_and_never_cut_in_a_site() {
        let waits = vec![("a.example".to_owned(), 700), ("b.example".to_owned(), 3_600_000)];
        let politeness = Politeness { run: [7; 16], made_ms: 1_000_000, waits };
        let read = Politeness::decode(&politeness.encode()).unwrap();
        assert_eq!(read.waits, [("b.example".to_owned(), 3_600_000), ("a.example".to_owned(), 700)]);
        assert_eq!((read.run, read.made_ms), ([7; 16], 1_000_000));
        // Half an hour later the long wait is half over, the short one begins anew; clocks that are off shorten neither to nothing.
        let left: Vec<u64> = read.left(1_000_000 + 1_800_000).map(|(_, left)| left.as_millis() as u64).collect();
        assert_eq!(left, [1_800_000, 700]);
        let left: Vec<u64> = read.left(i64::MAX).map(|(_, left)| left.as_millis() as u64).collect();
        assert_eq!(left, [POLITE_WAIT_SURE_MS, 700]);
        let many: Vec<(String, u32)> = (0..5_000).map(|number| (format!("site-{number}.example"), number)).collect();
        let bytes = Politeness { waits: many, ..Politeness::default() }.encode();
        assert!(bytes.len() <= POLITE_BYTES_MAX);
        let read = Politeness::decode(&bytes).unwrap();
        assert!(read.waits.len() > 1_000 && read.waits[0].1 == 4_999);
        assert_eq!(Politeness::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Politeness::decode(&[]), None);
    }

    #[test]
    fn an_archive_belongs_to_one_network_or_to_nobody() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(shared_bits(folder.path()).unwrap(), None);
        share(folder.path(), [9; 32], 8).unwrap();
        share(folder.path(), [9; 32], 8).unwrap();
        assert_eq!(shared_bits(folder.path()).unwrap(), Some(8));
        assert!(share(folder.path(), [8; 32], 8).is_err());
    }
}
