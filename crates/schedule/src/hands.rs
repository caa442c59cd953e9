//! Whoever fetches bundles, and what becomes of what they bring. Plain shapes that both sides hold: those who give bundles out and those
//! who take them never see each other. `E` is an exchange as it was made.
//!
//! ```text
//!  Offer ─▶ hands ─▶ Brought ─▶ some of it is looked at again ─▶ Judge ─▶ Over: what may be believed
//!    └── refused: whoever offered it fetches it itself         └── Again: look once more;  Later: others are looking
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skep_url::Url;

use crate::bundle::{Bundle, BundleUrl};

/// Whoever fetches bundles: the local fetcher, a follower near the site, a contributor.
/// `T` is a bundle with what they need to know besides.
pub trait Hands<T = Bundle> {
    /// Takes the bundle, or hands it back when there is no room.
    fn give(&self, bundle: T) -> Result<(), T>;

    /// Would they take a bundle of so many URLs that begins with this one? Asked before anything is made ready for it.
    fn would_take(&self, _first: &Url, _urls: usize) -> bool {
        true
    }

    /// For how long somebody may ask this site yet who was told to, whether that is still wanted or not.
    fn has_for(&self, _site: &str) -> Option<Duration> {
        None
    }

    /// We connected to the server of this URL, which took so long.
    fn connected(&self, _url: &Url, _took_ms: u32) {}
}

/// Several, in this order: who comes first is asked first.
impl<T> Hands<T> for Vec<Arc<dyn Hands<T> + Send + Sync>> {
    fn give(&self, bundle: T) -> Result<(), T> {
        let mut left = bundle;
        for hands in self {
            match hands.give(left) {
                Ok(()) => return Ok(()),
                Err(bundle) => left = bundle,
            }
        }
        Err(left)
    }

    fn would_take(&self, first: &Url, urls: usize) -> bool {
        self.iter().any(|hands| hands.would_take(first, urls))
    }

    fn has_for(&self, site: &str) -> Option<Duration> {
        self.iter().filter_map(|hands| hands.has_for(site)).max()
    }

    fn connected(&self, url: &Url, took_ms: u32) {
        self.iter().for_each(|hands| hands.connected(url, took_ms));
    }
}

/// A bundle for other hands, with what they need to know and what they must not know.
pub struct Offer<E> {
    /// What to fetch; those that robots.txt forbids, as far as it is known, are not among it.
    pub bundle: Bundle,
    /// Under which some digests are keyed, so that an old digest is worthless.
    pub nonce: [u8; 16],
    /// What the archive has of each URL of the bundle.
    pub known: Vec<Option<Known>>,
    /// What robots.txt asks for, where it is known and applied already; else it is fetched first.
    pub robots: Option<Rules>,
    /// For how long the bundle may be out.
    pub lease: Duration,
    /// It waits for hands, however long they take: nobody else fetches it.
    pub only: bool,
    /// Is it still wanted?
    pub is_wanted: Box<dyn Fn() -> bool + Send>,
    /// Takes what came of it, once.
    pub done: Box<dyn FnOnce(Back<E>) + Send>,
}

/// The rules of a host, applied to a bundle already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// `Crawl-delay`.
    pub crawl_delay_ms: Option<u64>,
}

/// What the archive has of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// SHA-1 of its payload.
    pub digest: [u8; 20],
    /// BLAKE3 of its payload under the nonce, for some of them.
    pub keyed: Option<[u8; 32]>,
    /// The last record is so old that an unchanged page deserves a new one.
    pub is_old: bool,
}

/// What came of an offer.
pub enum Back<E> {
    /// Hands came back.
    Brought(Brought<E>),
    /// Nobody took it.
    Nobody,
    /// Somebody took it and did not come back in time, or with nothing that counts: the site may have been asked just now.
    Lost,
}

/// What hands brought.
pub struct Brought<E> {
    /// What they say they saw, in the order of the bundle.
    pub exchanges: Vec<(Url, E)>,
    /// What whoever offered the bundle is to fetch as well before anything is believed.
    pub again: Vec<BundleUrl>,
    /// Says what may be believed, given what was seen there.
    pub judge: Judge<E>,
}

/// See [`Brought::judge`]: what they saw, and what whoever offered the bundle saw.
pub type Judge<E> = Box<dyn FnOnce(Vec<(Url, E)>, Vec<(Url, E)>) -> Round<E> + Send>;

/// What a judge says.
pub enum Round<E> {
    /// It is decided.
    Over(Believed<E>),
    /// Look once more.
    Again(Brought<E>),
    /// Others are looking.
    Later(Pin<Box<dyn Future<Output = Round<E>> + Send>>),
}

/// What may be believed.
pub struct Believed<E> {
    /// The exchanges of the bundle.
    pub exchanges: Vec<(Url, E)>,
    /// URLs, also of other bundles, that only somebody saw who has lied: they are to be fetched again.
    pub again: Vec<String>,
}
