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
use skep_url::{Key, Splits, Url};

use crate::error::{Error, Result};
use crate::hearing::place_of;
use crate::limits::{POLITE_BYTES_MAX, POLITE_SITE_BYTES_MAX, POLITE_WAIT_SURE_MS};
use crate::registry_key::RegistryKey;

pub use crate::registry::Referrer;
pub use crate::shared_body::{Back as BackBody, Brought};

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
    /// A site that is split, by its hash, is worth visiting, or no longer; something is out there, or nothing. With politeness: it is the
    /// others' turn.
    fn pace(&self, _site: u32, _wanted: bool, _out: bool, _back: Option<Vec<u8>>) {}
    /// How such a site was visited in an earlier turn still holds: the others are told once more. Nothing goes back.
    fn remind(&self, _site: u32, _politeness: Vec<u8>) {}
    /// Looks for a large body in other slices, and has it pinned there. Who waits for it does not wait long.
    fn same_body(&self, _brought: Brought, back: BackBody) {
        back(None);
    }
    /// A large body is kept here, of this SHA-256 and length: other slices may refer to it.
    fn kept_body(&self, _sha256: [u8; 32], _length: u64) {}
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
    splits: RwLock<Arc<Splits>>,
    /// Sites that are split and that this node may visit: what was granted, and whether everything is ready for it here.
    visits: RwLock<HashMap<u32, (Term, bool)>>,
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
        Leading {
            bits,
            led: RwLock::default(),
            ended: RwLock::default(),
            splits: RwLock::default(),
            visits: RwLock::default(),
        }
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

    /// From now on these sites are split.
    pub fn split(&self, splits: Arc<Splits>) {
        *self.splits.write().unwrap_or_else(PoisonError::into_inner) = splits;
    }

    /// Sites that are split.
    pub fn splits(&self) -> Arc<Splits> {
        self.splits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A site that is split may be visited from here until then, once everything is ready for it; or no longer.
    pub fn offer_visit(&self, site: u32, until: Option<Instant>) {
        let mut visits = self.visits.write().unwrap_or_else(PoisonError::into_inner);
        match until {
            Some(until) => drop(visits.insert(site, (Term { since: Instant::now(), until }, false))),
            None => drop(visits.remove(&site)),
        }
    }

    /// Everything is ready for what was offered until then. False if it has been taken back meanwhile.
    pub(crate) fn begin_visit(&self, site: u32, until: Instant) -> bool {
        let mut visits = self.visits.write().unwrap_or_else(PoisonError::into_inner);
        let Some((term, ready)) = visits.get_mut(&site).filter(|(term, _)| term.until == until) else { return false };
        term.since = Instant::now();
        *ready = true;
        true
    }

    /// Until when a site that is split may be visited, if it has been granted; it may have run out.
    pub(crate) fn visits(&self, site: u32) -> Option<Instant> {
        self.visit(site).map(|term| term.until)
    }

    fn visit(&self, site: u32) -> Option<Term> {
        let visits = self.visits.read().unwrap_or_else(PoisonError::into_inner);
        visits.get(&site).filter(|(_, ready)| *ready).map(|(term, _)| *term)
    }

    /// Whether a site, by its hash, may be visited from here now: always, unless it is split. What may be fetched there the leases say.
    pub fn may_visit(&self, site: u32) -> bool {
        self.splits().of(site).is_none() || self.visits(site).is_some_and(|until| Instant::now() < until)
    }

    /// Whether what waits at a host, by its key, is for this node to fetch, as far as slices go. What somebody filed where its site has no place is
    /// for nobody: no turn at the site is one there.
    pub(crate) fn may_fetch(&self, host_key: &str) -> bool {
        let site = Key::of(&format!("{host_key}/")).site_hash();
        let place = place_of(host_key).unwrap_or(site);
        self.splits().is_place(site, place) && self.may(slice_of(place, self.bits))
    }

    /// Under which hash something about a site is recorded by this node: at its home, or where the site is split at a place that is led here.
    pub(crate) fn recorded_under(&self, site: u32) -> u32 {
        let led = self.splits().places(site).into_iter().find(|place| self.may(slice_of(*place, self.bits)));
        led.unwrap_or(site)
    }

    /// The slices of a site.
    pub(crate) fn slices_of_site(&self, site: u32) -> Vec<u32> {
        self.splits().places(site).into_iter().map(|place| slice_of(place, self.bits)).collect()
    }

    /// Whether a request to a URL's site may begin now. Of a site that is split one of its slices must be led, and it must be this node's turn.
    pub(crate) fn may_ask(&self, url: &Url) -> bool {
        let site = url.key().site_hash();
        self.may_visit(site) && self.slices_of_site(site).into_iter().any(|slice| self.may(slice))
    }

    /// How long that is so for certain.
    pub(crate) fn left_there(&self, url: &Url) -> Duration {
        let site = url.key().site_hash();
        let splits = self.splits();
        let led = self.slices_of_site(site).into_iter().map(|slice| self.left(slice)).max();
        let visit = match splits.of(site) {
            Some(_) => {
                self.visits(site).map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default()
            }
            None => Duration::MAX,
        };
        led.unwrap_or_default().min(visit)
    }

    /// When that began.
    pub(crate) fn since_there(&self, url: &Url) -> Option<Instant> {
        let site = url.key().site_hash();
        match self.splits().of(site) {
            Some(_) => self.visit(site).map(|term| term.since),
            None => self.since(slice_of(site, self.bits)),
        }
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
    fn a_site_that_is_split_is_visited_by_who_leads_some_of_it_and_has_its_turn() {
        let leading = Leading::new(4);
        let (now, url) = (Instant::now(), Url::parse("http://bees.example/page").unwrap());
        let later = now + Duration::from_secs(60);
        let site = url.key().site_hash();
        let mut splits = Splits::default();
        splits.add(site, skep_url::Split { bits: 2, since_ms: 0 });
        let other = slice_of(splits.places(site)[3], 4);
        leading.begin(other, later);
        assert!(!leading.may_ask(&url), "that is another slice than its own");
        leading.split(Arc::new(splits));
        assert!(!leading.may_ask(&url) && leading.left_there(&url).is_zero());
        leading.offer_visit(site, Some(later));
        assert!(!leading.may_ask(&url), "not before it is known how it was visited");
        assert!(!leading.begin_visit(site, now) && leading.begin_visit(site, later) && leading.may_ask(&url));
        leading.stop(other);
        assert!(!leading.may_ask(&url), "a turn is no lease");
        leading.offer(other);
        leading.begin(other, later);
        leading.offer_visit(site, None);
        assert!(!leading.may_ask(&url) && !leading.begin_visit(site, later));
        leading.offer_visit(site, Some(now));
        assert!(leading.begin_visit(site, now) && !leading.may_visit(site), "it has run out");
    }

    #[test]
    fn what_is_filed_where_its_site_has_no_place_is_for_nobody() {
        let leading = Leading::new(4);
        let later = Instant::now() + Duration::from_secs(60);
        (0..16).for_each(|slice| assert!(leading.begin(slice, later)));
        let site = skep_url::key::hash_of_site("bees.example");
        let host = |place: u32| format!("http://www.bees.example/~{place:08x}");
        assert!(leading.may_fetch("http://www.bees.example") && !leading.may_fetch(&host(site ^ 1 << 30)));
        let mut splits = Splits::default();
        splits.add(site, skep_url::Split { bits: 2, since_ms: 0 });
        leading.split(Arc::new(splits));
        assert!(leading.may_fetch("http://www.bees.example") && leading.may_fetch(&host(site ^ 1 << 30)));
        assert!(!leading.may_fetch(&host(site ^ 1 << 29)) && !leading.may_fetch(&host(site ^ 1)));
        leading.stop(slice_of(site ^ 1 << 30, 4));
        assert!(!leading.may_fetch(&host(site ^ 1 << 30)), "not led");
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
