//! A bundle that is with a contributor: what it said it saw, and the bodies that come after.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skep_fetch::Exchange;
use skep_schedule::Bundle as Leased;
use skep_schedule::hands::{Back, Known, Offer, Rules};

use crate::envelope;
use crate::judge::{Case, Opinion};
use crate::limits::ROBOTS_HOPS_MAX;
use crate::message::{self, Digest, Fetched, ROBOTS, Whole};
use crate::seen;
use crate::trust::Key;

/// A bundle, offered or out or coming back.
pub struct Held {
    /// What to fetch.
    pub bundle: Leased,
    /// Keys some of the digests.
    pub nonce: [u8; 16],
    /// What the archive has of each URL.
    pub known: Vec<Option<Known>>,
    /// Which digests are keyed.
    pub keyed: Vec<bool>,
    /// Of which text and links are to be told as well.
    pub thorough: Vec<bool>,
    /// The host's rules, applied already.
    pub robots: Option<Rules>,
    /// Is it still wanted?
    pub is_wanted: Box<dyn Fn() -> bool + Send>,
    /// What for.
    pub purpose: Purpose,
    /// The last of its URLs is a known page with this secret, and not the offerer's.
    pub secret: Option<String>,
    /// With whom it is.
    pub with: Option<Key>,
    /// When it was given out, in milliseconds since 1970.
    pub given_ms: i64,
    /// For how long it may be with all who look at it.
    pub lease_ms: u64,
    /// What the contributor said it saw, by number.
    pub fetched: BTreeMap<u16, Fetched>,
    coming: BTreeMap<u16, (u64, Vec<u8>)>,
    /// Exchanges that are here, byte for byte.
    pub wholes: BTreeMap<u16, Whole>,
}

/// What a bundle is for.
pub enum Purpose {
    /// Somebody offered it, and hears what came.
    Work(Box<dyn FnOnce(Back<Exchange>) + Send>),
    /// It checks what another one brought.
    Check(Box<Case>),
    /// Somebody of the same place is asked, before another one is called a liar.
    Opinion(Box<Opinion>),
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// So far it has come.
    So(u64),
    /// Nobody asked for it.
    NotWanted,
    /// It is not what its digest said.
    Forged,
}

impl Held {
    /// As offered.
    pub fn new(offer: Offer<Exchange>) -> Held {
        let keyed = offer.known.iter().map(|known| known.as_ref().is_some_and(|known| known.keyed.is_some())).collect();
        let lease_ms = offer.lease.as_millis() as u64;
        let Offer { bundle, nonce, known, robots, is_wanted, done, .. } = offer;
        // What is not as the archive has it comes whole: what its text and links are, the node sees then.
        let thorough = vec![false; known.len()];
        Held { known, is_wanted, lease_ms, thorough, ..Held::of(bundle, nonce, keyed, robots, Purpose::Work(done)) }
    }

    /// To check what another one brought: nothing but digests comes back.
    pub fn of(bundle: Leased, nonce: [u8; 16], keyed: Vec<bool>, robots: Option<Rules>, purpose: Purpose) -> Held {
        Held {
            known: vec![None; bundle.urls.len()],
            thorough: vec![true; bundle.urls.len()],
            bundle,
            nonce,
            keyed,
            robots,
            is_wanted: Box::new(|| true),
            purpose,
            secret: None,
            with: None,
            given_ms: 0,
            lease_ms: 0,
            fetched: BTreeMap::new(),
            coming: BTreeMap::new(),
            wholes: BTreeMap::new(),
        }
    }

    /// Does whoever offered it still want it?
    pub fn is_still_wanted(&self) -> bool {
        match &self.purpose {
            Purpose::Work(_) => (self.is_wanted)(),
            Purpose::Check(case) => case.is_still_wanted(),
            Purpose::Opinion(opinion) => opinion.case().is_still_wanted(),
        }
    }

    /// No more than so many of its URLs are given out; the others wait again.
    pub fn shorten(&mut self, urls: usize) {
        if self.bundle.urls.len() <= urls || !matches!(self.purpose, Purpose::Work(_)) {
            return;
        }
        self.bundle.urls.truncate(urls);
        self.known.truncate(urls);
        self.keyed.truncate(urls);
        self.thorough.truncate(urls);
        self.secret = None;
    }

    /// The number of the known page among its URLs.
    pub fn known_page(&self) -> Option<u16> {
        self.secret.as_ref().and_then(|_| u16::try_from(self.bundle.urls.len().checked_sub(1)?).ok())
    }

    /// Takes what the contributor says it saw; false if it cannot be. Said again, it counts only if it is the same.
    pub fn results(&mut self, results: Vec<Fetched>) -> bool {
        let urls = self.bundle.urls.len();
        let fits = |fetched: &Fetched| match fetched.number.checked_sub(ROBOTS) {
            None => usize::from(fetched.number) < urls && fetched.url.is_empty() && self.is_as_asked(fetched),
            Some(hop) => {
                usize::from(hop) < ROBOTS_HOPS_MAX
                    && has_head(fetched)
                    && matches!(fetched.digest, Digest::None | Digest::Plain(_))
                    && self.robots.is_none()
                    && skep_url::Url::parse(&fetched.url).is_ok_and(|url| url.as_str() == fetched.url)
            }
        };
        if !results.iter().all(fits) {
            return false;
        }
        let results: BTreeMap<u16, Fetched> = results.into_iter().map(|fetched| (fetched.number, fetched)).collect();
        if self.fetched.is_empty() {
            self.fetched = results;
            return true;
        }
        self.fetched == results
    }

    /// Is its digest of the kind that was asked for? An old one would do where it need not be keyed.
    fn is_as_asked(&self, fetched: &Fetched) -> bool {
        let number = usize::from(fetched.number);
        let is = |list: &[bool]| list.get(number).copied().unwrap_or_default();
        match fetched.digest {
            _ if is(&self.thorough) && !has_head(fetched) => false,
            Digest::None => true,
            Digest::Keyed(_) => is(&self.keyed),
            Digest::Plain(_) => !is(&self.keyed) && is(&self.thorough),
            Digest::Short(_) => !is(&self.keyed) && !is(&self.thorough),
        }
    }

    /// Does it say that nothing changed, and does that agree with what the archive has?
    pub fn is_unchanged(&self, fetched: &Fetched) -> bool {
        let number = usize::from(fetched.number);
        let Some(known) = self.known.get(number).and_then(Option::as_ref) else {
            return false;
        };
        // Only who was given something to compare with can have been told that nothing changed.
        let is_asked = |ask: &skep_schedule::BundleUrl| ask.etag.is_some() || ask.last_modified.is_some();
        fetched.status == 304 && self.bundle.urls.get(number).is_some_and(is_asked)
            || fetched.status == 200
                && match fetched.digest {
                    Digest::Keyed(digest) => known.keyed.is_some_and(|known| message::first(&known) == digest),
                    other => other.is_of(&known.digest, &self.nonce),
                }
    }

    fn is_wanted(&self, fetched: &Fetched) -> bool {
        let is_work = matches!(self.purpose, Purpose::Work(_)) && self.known_page() != Some(fetched.number);
        if !is_work || fetched.too_large || fetched.status == 0 && fetched.length == 0 {
            return false;
        }
        let known = self.known.get(usize::from(fetched.number)).and_then(Option::as_ref);
        !self.is_unchanged(fetched) || known.is_some_and(|known| known.is_old)
    }

    /// Which bodies are wanted and are not here, and from which byte on.
    pub fn wanted(&self) -> Vec<(u16, u64)> {
        let missing = self.fetched.values().filter(|fetched| self.is_wanted(fetched));
        let missing = missing.filter(|fetched| !self.wholes.contains_key(&fetched.number));
        missing.map(|fetched| (fetched.number, self.have(fetched.number))).collect()
    }

    fn have(&self, number: u16) -> u64 {
        self.coming.get(&number).map_or(0, |(_, bytes)| bytes.len() as u64)
    }

    /// Takes a piece of a body.
    pub fn body(&mut self, number: u16, offset: u64, total: u64, bytes: &[u8]) -> Coming {
        let Some(fetched) = self.fetched.get(&number).filter(|fetched| self.is_wanted(fetched)) else {
            return Coming::NotWanted;
        };
        if self.wholes.contains_key(&number) {
            return Coming::So(total);
        }
        let (of, come) = self.coming.entry(number).or_insert_with(|| (total, Vec::new()));
        // A piece that does not fit what is here is sent again from where it does.
        if *of != total || offset != come.len() as u64 {
            if *of != total {
                self.coming.remove(&number);
            }
            return Coming::So(self.have(number));
        }
        come.extend_from_slice(bytes);
        if (come.len() as u64) < total {
            return Coming::So(come.len() as u64);
        }
        let whole = envelope::read_plain::<Whole>(come).ok();
        self.coming.remove(&number);
        match whole.filter(|whole| is_as_said(whole, fetched, &self.nonce)) {
            Some(whole) => {
                self.wholes.insert(number, whole);
                Coming::So(total)
            }
            None => Coming::Forged,
        }
    }

    /// Bytes that are held for it.
    pub fn coming_bytes(&self) -> u64 {
        let coming: usize = self.coming.values().map(|(_, bytes)| bytes.len()).sum();
        let whole: usize = self.wholes.values().map(Whole::bytes).sum();
        (coming + whole) as u64
    }
}

/// Bytes of what contributors brought and what is still being looked at, by whose they are.
#[derive(Clone, Default)]
pub struct Charges(Arc<Mutex<HashMap<Key, u64>>>);

impl Charges {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one, and of all.
    pub fn of(&self, key: &Key) -> (u64, u64) {
        let charges = self.lock();
        (charges.get(key).copied().unwrap_or(0), charges.values().sum())
    }

    /// Counts so many against one, until what is returned goes.
    pub fn charge(&self, key: Key, bytes: u64) -> Charge {
        *self.lock().entry(key).or_default() += bytes;
        Charge { charges: self.clone(), key, bytes }
    }
}

/// See [`Charges::charge`].
pub struct Charge {
    charges: Charges,
    key: Key,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut charges = self.charges.lock();
        if let Some(bytes) = charges.get_mut(&self.key) {
            *bytes = bytes.saturating_sub(self.bytes);
            if *bytes == 0 {
                charges.remove(&self.key);
            }
        }
    }
}

/// Are its headers told, where there are some to be compared?
fn has_head(fetched: &Fetched) -> bool {
    fetched.head != 0 || matches!(fetched.status, 0 | 304)
}

/// Is the exchange what was said of it?
fn is_as_said(whole: &Whole, fetched: &Fetched, nonce: &[u8; 16]) -> bool {
    let Some(exchange) = seen::exchange(whole) else { return false };
    let body = whole.response.get(whole.head_bytes as usize..).unwrap_or_default();
    let payload = seen::payload(exchange.head.as_ref(), body);
    let digest = match fetched.digest {
        Digest::None => payload.is_empty() || fetched.status == 304,
        Digest::Keyed(digest) => digest == message::keyed(nonce, &payload),
        other => other.is_of(&seen::sha1(&payload), nonce),
    };
    digest && exchange.status().unwrap_or(0) == fetched.status && whole.fault.0 == fetched.fault
}
