//! Other hands than our own: a bundle is offered to them, and what they bring goes the way of every visit.
//!
//! ```text
//!  bundle ─▶ Offer ─▶ hands ─▶ Brought ─▶ some of it fetched again by us ─▶ what may be believed ─▶ a session that answers with it
//!              └── refused: we fetch it ourselves            └── nobody came back in time: the URLs wait again
//! ```
//! Others are contributors, or nodes that hold the same slice and stand nearer to the site. While they have a site, its clock is held here;
//! and no site is asked again before its gap has passed since they came back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use skep_fetch::{Ask, Exchange};
use skep_schedule::hands::{Back, Believed, Brought, Known, Offer, Round, Rules};
use skep_schedule::{Bundle, BundleUrl, Hands, Pace};
use skep_url::Url;
use skep_url::robots::Policy;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clocks::NotNow;
use crate::limits::HANDS_DELAY_MS_MAX;
use crate::robots::{self, AGENT};
use crate::validators;
use crate::worker::{Parts, Said};

/// Whoever takes bundles of a crawl, and how.
#[derive(Clone)]
pub struct Others {
    /// Takes offers.
    pub hands: Arc<dyn Hands<Offer<Exchange>> + Send + Sync>,
    /// Nothing is fetched by us, except to check what was brought.
    pub only: bool,
}

/// Who fetches a bundle.
pub(crate) enum Who {
    /// We do.
    We,
    /// Others did, and this may be believed; with the rules of the host by which they went, where these were known.
    Others(Vec<(Url, Exchange)>, Option<Arc<Policy>>),
    /// Nobody did.
    Nobody,
}

/// One in so many digests is keyed.
const KEYED_ONE_IN: u8 = 10;
/// Time that is kept of a lease for what comes after hands are back: so much, or a third of what is left.
const RESERVE_MS: u64 = 60_000;

/// Offers a bundle to others, where there are some, and waits for them. The site's clock is held meanwhile.
pub(crate) async fn offer(bundle: &Bundle, first: &Url, parts: &Parts) -> Result<Who, NotNow> {
    // Of a site that is split nobody says to others for how long it is theirs.
    if parts.is_split(first) {
        let only_others = parts.others.as_ref().is_some_and(|others| others.only);
        return Ok(if only_others { Who::Nobody } else { Who::We });
    }
    // Somebody may be there yet for a crawl that has ended: whoever asks the site next waits for the end of that.
    let theirs = |others: &Others| others.hands.has_for(&bundle.site).filter(|_| bundle.pace != Pace::None);
    if let Some(left) = parts.others.as_ref().and_then(theirs) {
        parts.clocks.hold(&bundle.site, Instant::now() + left);
    }
    let wanted = |others: &&Others| others.only || others.hands.would_take(first, bundle.urls.len());
    let Some(others) = parts.others.as_ref().filter(wanted).cloned() else { return Ok(Who::We) };
    parts.rested(first, bundle.pace, None);
    parts.turn(first, bundle.pace, bundle.deadline_ms).await?;
    let left_ms = parts.ours_for_ms(first, bundle.deadline_ms.saturating_sub(parts.elapsed_ms()));
    let (back, brought) = oneshot::channel();
    let policy = robots::known_for(first, parts);
    let offer = make(bundle, first, policy.as_ref(), left_ms - RESERVE_MS.min(left_ms / 3), others.only, back, parts);
    let mut delay_ms = offer.robots.and_then(|rules| rules.crawl_delay_ms);
    let given_ms = parts.elapsed_ms();
    let given = others.hands.give(offer);
    let ourselves = if others.only { Who::Nobody } else { Who::We };
    let deadline = parts.zero + Duration::from_millis(bundle.deadline_ms);
    let (mut asked, mut answer_ms, mut left) = (true, 0, None);
    let who = match given {
        Err(_refused) => {
            asked = false;
            Who::We
        }
        Ok(()) => tokio::select! {
            back = brought => match back {
                Ok(Back::Brought(brought)) => {
                    // No answer took longer than they were away.
                    let away_ms = u32::try_from(parts.elapsed_ms() - given_ms).unwrap_or(u32::MAX);
                    answer_ms = slowest_ms(&brought.exchanges).min(away_ms);
                    let said_ms = delay_ms.or(asked_ms(&brought.exchanges).map(|ms| ms.min(HANDS_DELAY_MS_MAX)));
                    let mut theirs = believed(brought, bundle, answer_ms.into(), said_ms, parts).await;
                    for (_, exchange) in theirs.iter_mut().filter(|(_, exchange)| exchange.brought.is_some()) {
                        exchange.timings.total_ms = exchange.timings.total_ms.min(away_ms);
                    }
                    delay_ms = delay_ms.or(asked_ms(&theirs));
                    Who::Others(theirs, policy)
                }
                Ok(Back::Nobody) => {
                    asked = false;
                    ourselves
                }
                Ok(Back::Lost) | Err(_) => ourselves,
            },
            // Whatever others do, the lease ends.
            () = tokio::time::sleep_until(deadline) => Who::Nobody,
            () = parts.clocks.ended() => {
                left = theirs(&others);
                Who::Nobody
            }
        },
    };
    match (asked, left) {
        // Whoever has it hears nothing of the end.
        (true, Some(left)) => parts.clocks.left(parts.site(first), left),
        (true, None) => parts.brought(first, bundle.pace, answer_ms.into(), delay_ms),
        // Nobody asked it anything: the turn is free again at once.
        (false, _) => parts.clocks.left(parts.site(first), Duration::ZERO),
    }
    Ok(who)
}

/// The slowest answer.
fn slowest_ms(exchanges: &[(Url, Exchange)]) -> u32 {
    exchanges.iter().map(|(_, exchange)| exchange.timings.total_ms).max().unwrap_or(0)
}

/// The rest that a robots.txt among them asks for.
fn asked_ms(exchanges: &[(Url, Exchange)]) -> Option<u64> {
    let files = exchanges.iter().filter(|(url, _)| url.as_str().ends_with("/robots.txt"));
    files.filter_map(|(_, exchange)| robots::delay_in(exchange)).max()
}

fn make(
    bundle: &Bundle,
    first: &Url,
    policy: Option<&Arc<Policy>>,
    lease_ms: u64,
    only: bool,
    back: oneshot::Sender<Back<Exchange>>,
    parts: &Parts,
) -> Offer<Exchange> {
    let nonce = parts.id();
    let ours = parts.ignores_robots(first);
    let mut urls = Vec::with_capacity(bundle.urls.len());
    let mut known = Vec::with_capacity(bundle.urls.len());
    for ask in &bundle.urls {
        let Ok(url) = Url::parse(&ask.url) else { continue };
        let forbidden = |policy: &Arc<Policy>| !policy.decide(AGENT, url.as_str()).allowed;
        if !ours && policy.is_some_and(forbidden) {
            continue;
        }
        let previous = parts.previous_of_offered(bundle.lease, &url);
        let mut ask = ask.clone();
        if let Some(previous) = validators::shown(previous.as_ref(), ask.due.as_ref(), parts.now_ms()) {
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
    let robots = match (policy, ours) {
        (_, true) => Some(Rules::default()),
        (Some(policy), false) => {
            let delay = policy.robots().and_then(|robots| robots.crawl_delay(AGENT));
            Some(Rules { crawl_delay_ms: delay.map(|delay| (delay.seconds * 1000.0) as u64) })
        }
        (None, false) => None,
    };
    let back = Arc::new(Mutex::new(Some(back)));
    let wanted = back.clone();
    Offer {
        bundle: Bundle { urls, ..bundle.clone() },
        nonce,
        known,
        robots,
        lease: Duration::from_millis(lease_ms),
        only,
        is_wanted: Box::new(move || {
            let back = wanted.lock().unwrap_or_else(PoisonError::into_inner);
            back.as_ref().is_some_and(|back| !back.is_closed())
        }),
        done: Box::new(move |came| {
            let back = back.lock().unwrap_or_else(PoisonError::into_inner).take();
            // A crawl that has ended wants nothing any more.
            let _ended = back.map(|back| back.send(came));
        }),
    }
}

/// The key under which digests of a bundle are made.
fn key(nonce: &[u8; 16]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(nonce);
    key
}

/// Fetches again what is to be fetched again, at the pace of the site, and lets the judge decide.
async fn believed(
    mut brought: Brought<Exchange>,
    bundle: &Bundle,
    answer_ms: u64,
    delay_ms: Option<u64>,
    parts: &Parts,
) -> Vec<(Url, Exchange)> {
    loop {
        let ours = look(&brought.again, bundle, answer_ms, delay_ms, parts).await;
        let Brought { exchanges, judge, .. } = brought;
        // Whatever others brought, one bundle of it ends no crawl: a judge that breaks off believes nothing.
        let judged = catch_unwind(AssertUnwindSafe(|| judge(exchanges, ours)));
        let Ok(mut round) = judged else { return Vec::new() };
        while let Round::Later(later) = round {
            round = later.await;
        }
        match round {
            Round::Again(more) => brought = more,
            Round::Over(Believed { exchanges, again }) => {
                if !again.is_empty() {
                    let _given_up = parts.say.send(Said::Doubted(again));
                }
                return exchanges;
            }
            Round::Later(_) => return Vec::new(),
        }
    }
}

async fn look(
    again: &[BundleUrl],
    bundle: &Bundle,
    mut answer_ms: u64,
    mut delay_ms: Option<u64>,
    parts: &Parts,
) -> Vec<(Url, Exchange)> {
    let mut ours = Vec::with_capacity(again.len());
    let mut session = None;
    let mut again: Vec<(&BundleUrl, Url)> =
        again.iter().filter_map(|wanted| Some((wanted, Url::parse(&wanted.url).ok()?))).collect();
    // What the rules ask for is seen before the pages are.
    again.sort_by_key(|(_, url)| !url.as_str().ends_with("/robots.txt"));
    for (wanted, url) in again {
        if parts.stopping.load(Ordering::Relaxed) {
            break;
        }
        // The way to a robots.txt may lead to other sites, which have clocks and a pace of their own.
        let is_there = parts.site(&url) == bundle.site;
        let pace = if is_there { bundle.pace } else { parts.pace(&url) };
        if is_there {
            // They asked the site last: its gap begins now, or after our own last answer.
            parts.brought(&url, pace, answer_ms, delay_ms);
        }
        match parts.turn(&url, pace, bundle.deadline_ms).await {
            Ok(()) => {}
            Err(NotNow::Until(_)) if !is_there => continue,
            Err(_) => break,
        }
        let session = session.get_or_insert_with(|| parts.fetcher.session(&url));
        let ask =
            Ask { etag: wanted.etag.as_deref(), last_modified: wanted.last_modified.as_deref(), ..Ask::new(&url) };
        let exchange = session.get(&ask).await;
        let took_ms = exchange.timings.total_ms.into();
        if is_there {
            answer_ms = took_ms;
            if url.as_str().ends_with("/robots.txt") && exchange.status() == Some(200) {
                delay_ms = robots::delay_in(&exchange);
            }
        }
        parts.answered(&url, pace, took_ms, delay_ms.filter(|_| is_there));
        let is_enough = is_there && matches!(exchange.status(), Some(429 | 503));
        ours.push((url, exchange));
        // The site wants to be left alone, also by those who check.
        if is_enough {
            break;
        }
    }
    ours
}
