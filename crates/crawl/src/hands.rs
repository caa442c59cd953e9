//! Other hands than our own: a bundle is offered to them, and what they bring goes the way of every visit.
//!
//! ```text
//!  bundle ─▶ Offer ─▶ hands ─▶ Brought ─▶ some of it fetched again by us ─▶ what may be believed ─▶ a session that answers with it
//!              └── refused: we fetch it ourselves            └── nobody came back in time: the URLs wait again
//! ```
//! While others have a site, its clock is held here; and no site is asked again before its gap has passed since they came back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use skep_fetch::{Ask, Exchange};
use skep_schedule::{Bundle, Hands};
use skep_url::Url;
use tokio::sync::oneshot;

use crate::clocks::NotNow;
use crate::robots::{self, AGENT};
use crate::worker::Parts;

/// Whoever takes bundles of a crawl, and how.
#[derive(Clone)]
pub struct Others {
    /// Takes offers.
    pub hands: Arc<dyn Hands<Offer> + Send + Sync>,
    /// Nothing is fetched by us, except to check what was brought.
    pub only: bool,
}

/// A bundle for other hands, with what they need to know and what they must not know.
pub struct Offer {
    /// The crawl's name.
    pub crawl: String,
    /// What to fetch; those that robots.txt forbids, as far as it is known, are not among it.
    pub bundle: Bundle,
    /// Under which some digests are keyed, so that an old digest is worthless.
    pub nonce: [u8; 16],
    /// What the archive has of each URL of the bundle.
    pub known: Vec<Option<Known>>,
    /// What robots.txt asks for between two requests, where it is known; else it is fetched first.
    pub robots: Option<Rules>,
    /// How requests name us.
    pub user_agent: String,
    /// For how long the bundle may be out.
    pub lease: Duration,
    /// It waits for hands, however long they take.
    pub only: bool,
    /// Takes what came of it.
    pub back: oneshot::Sender<Back>,
}

/// The rules of a host, already applied to a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `Crawl-delay`.
    pub crawl_delay_ms: Option<u64>,
}

/// What the archive has of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// SHA-1 of its payload.
    pub digest: [u8; 20],
    /// BLAKE3 of its payload under the nonce, for a tenth of them.
    pub keyed: Option<[u8; 32]>,
    /// The last record is so old that an unchanged page deserves a new one.
    pub is_old: bool,
}

/// What came of an offer.
pub enum Back {
    /// Hands came back.
    Brought(Brought),
    /// Nobody took it, or nobody came back in time.
    Nobody,
}

/// What hands brought.
pub struct Brought {
    /// What they say they saw, in the order of the bundle.
    pub exchanges: Vec<(Url, Exchange)>,
    /// What we are to fetch as well before anything is believed.
    pub again: Vec<Url>,
    /// Says what may be believed, given what we saw ourselves.
    pub judge: Judge,
}

/// See [`Brought::judge`]: what they saw, and what we saw.
pub type Judge = Box<dyn FnOnce(Vec<(Url, Exchange)>, Vec<(Url, Exchange)>) -> Round + Send>;

/// What a judge says.
pub enum Round {
    /// This may be believed.
    Over(Vec<(Url, Exchange)>),
    /// We are to look once more.
    Again(Brought),
}

/// Who fetches a bundle.
pub(crate) enum Who {
    /// We do.
    We,
    /// Others did, and this may be believed.
    Others(Vec<(Url, Exchange)>),
    /// Nobody did.
    Nobody,
}

/// One in so many digests is keyed.
const KEYED_ONE_IN: u8 = 10;
/// Robots rules must count for so much longer to travel with a bundle.
const RULES_MARGIN_MS: i64 = 1_200_000;
/// Time that is kept of a lease for what comes after hands are back.
const RESERVE_MS: u64 = 60_000;

/// Offers a bundle to others, where there are some, and waits for them. The site's clock is held meanwhile.
pub(crate) async fn offer(bundle: &Bundle, first: &Url, parts: &Parts) -> Result<Who, NotNow> {
    let Some(others) = parts.others.clone() else { return Ok(Who::We) };
    parts.rested(first, bundle.pace, None);
    parts.turn(first, bundle.pace, bundle.deadline_ms).await?;
    let left_ms = parts.ours_for_ms(first, bundle.deadline_ms.saturating_sub(parts.elapsed_ms()));
    let (back, brought) = oneshot::channel();
    let given = others.hands.give(make(bundle, first, left_ms.saturating_sub(RESERVE_MS), others.only, back, parts));
    let who = match given {
        Err(_refused) => Who::We,
        Ok(()) => tokio::select! {
            back = brought => match back {
                Ok(Back::Brought(brought)) => Who::Others(believed(brought, bundle, parts).await),
                Ok(Back::Nobody) | Err(_) if others.only => Who::Nobody,
                Ok(Back::Nobody) | Err(_) => Who::We,
            },
            () = parts.clocks.ended() => Who::Nobody,
        },
    };
    match who {
        // Nobody asked it anything: the turn is free again at once.
        Who::We => parts.clocks.answered(parts.site(first), Duration::ZERO),
        Who::Others(_) | Who::Nobody => parts.answered(first, bundle.pace, 0, None),
    }
    Ok(who)
}

fn make(bundle: &Bundle, first: &Url, lease_ms: u64, only: bool, back: oneshot::Sender<Back>, parts: &Parts) -> Offer {
    let nonce = parts.id();
    let policy = robots::known_for(first, parts.now_ms() + RULES_MARGIN_MS, parts);
    let ours = parts.ignores_robots(first);
    let mut urls = Vec::with_capacity(bundle.urls.len());
    let mut known = Vec::with_capacity(bundle.urls.len());
    for ask in &bundle.urls {
        let Ok(url) = Url::parse(&ask.url) else { continue };
        let forbidden = |policy: &Arc<skep_url::robots::Policy>| !policy.decide(AGENT, url.as_str()).allowed;
        if !ours && policy.as_ref().is_some_and(forbidden) {
            continue;
        }
        let previous = parts.previous(&url);
        let mut ask = ask.clone();
        if let Some(previous) = &previous {
            (ask.etag, ask.last_modified) = (previous.etag.clone(), previous.last_modified.clone());
        }
        let number = urls.len();
        known.push(previous.and_then(|previous| {
            let skep_archive::Digest::Sha1(digest) = previous.digest? else { return None };
            let drawn = blake3::keyed_hash(&key(&nonce), &(number as u64).to_le_bytes()).as_bytes()[0];
            let is_keyed = drawn.is_multiple_of(KEYED_ONE_IN);
            let keyed = is_keyed.then(|| parts.remembered.keyed(&previous, &key(&nonce))).flatten();
            Some(Known { digest, keyed, is_old: previous.is_old(parts.now_ms()) })
        }));
        urls.push(ask);
    }
    let robots = match (&policy, ours) {
        (_, true) => Some(Rules::default()),
        (Some(policy), false) => {
            let delay = policy.robots().and_then(|robots| robots.crawl_delay(AGENT));
            Some(Rules { crawl_delay_ms: delay.map(|delay| (delay.seconds * 1000.0) as u64) })
        }
        (None, false) => None,
    };
    Offer {
        crawl: parts.settings().name.clone(),
        bundle: Bundle { urls, ..bundle.clone() },
        nonce,
        known,
        robots,
        user_agent: parts.fetch.user_agent.clone(),
        lease: Duration::from_millis(lease_ms),
        only,
        back,
    }
}

/// The key under which digests of a bundle are made.
fn key(nonce: &[u8; 16]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(nonce);
    key
}

/// Fetches again what is to be fetched again, at the pace of the site, and lets the judge decide.
async fn believed(mut brought: Brought, bundle: &Bundle, parts: &Parts) -> Vec<(Url, Exchange)> {
    loop {
        let ours = look(&brought.again, bundle, parts).await;
        match (brought.judge)(brought.exchanges, ours) {
            Round::Over(believed) => return believed,
            Round::Again(more) => brought = more,
        }
    }
}

async fn look(again: &[Url], bundle: &Bundle, parts: &Parts) -> Vec<(Url, Exchange)> {
    let mut ours = Vec::with_capacity(again.len());
    let mut session = None;
    for url in again {
        if parts.stopping.load(Ordering::Relaxed) {
            break;
        }
        // They asked the site last: its gap begins now, or after our own last answer.
        parts.answered(url, bundle.pace, 0, None);
        if parts.turn(url, bundle.pace, bundle.deadline_ms).await.is_err() {
            break;
        }
        let session = session.get_or_insert_with(|| parts.fetcher.session(url));
        let exchange = session.get(&Ask::new(url)).await;
        parts.answered(url, bundle.pace, exchange.timings.total_ms.into(), None);
        ours.push((url.clone(), exchange));
    }
    ours
}
