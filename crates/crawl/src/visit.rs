//! The life of one page. Everything interesting is one call down.
//!
//! ```text
//!  remembered ─▶ asked ─▶ judged ─▶ kept (synced) ─▶ said to the engine
//! ```

use std::net::IpAddr;

use skep_archive::{Position, Referring};
use skep_fetch::{Ask, Exchange, Session, Wanted};
use skep_page::Outlinks;
use skep_schedule::revisit::Due;
use skep_schedule::{BundleUrl, LeaseId};
use skep_url::Url;
use skep_warc::http::Head;

use crate::cookies;
use crate::finding::Finding;
use crate::hops::Hops;
use crate::judge::{self, Hints, Judgement};
use crate::keep;
use crate::limits::UNWANTED_BYTES_MAX;
use crate::links::Turnover;
use crate::network::{self, Seen};
use crate::outcome::Outcome;
use crate::payloads::Claim;
use crate::remembered::Previous;
use crate::rules;
use crate::settings::Type;
use crate::soft;
use crate::validators;
use crate::worker::Parts;

/// What a visit brought; the engine hears of it when its records are synced.
#[derive(Debug)]
pub struct Visited {
    /// Under which lease.
    pub lease: LeaseId,
    /// Its number in the registry, where that is known.
    pub entry: Option<u64>,
    /// It is there for its own sake; robots.txt is not.
    pub from_queue: bool,
    /// The URL.
    pub url: String,
    /// The same in its parts, where somebody has taken it apart already.
    pub parts: Option<Url>,
    /// How far from a seed.
    pub hops: Hops,
    /// What became of it.
    pub outcome: Outcome,
    /// Milliseconds since 1970, of the request.
    pub time_ms: i64,
    /// How long the answer took.
    pub answer_ms: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Failures in a row, this one included; 0 if it went well.
    pub failures: u8,
    /// The host asks to be left alone for so long; 0 if it does not say how long.
    pub park_ms: Option<u64>,
    /// Where its host is, as far as that was seen.
    pub address: Option<IpAddr>,
    /// What it links to.
    pub links: Outlinks,
    /// Its record has all of them, and not only those that came since the visit before.
    pub tells_all: bool,
    /// Which of them came since the visit before, by their place; nothing where all are to be heard as if they had.
    pub came: Option<Vec<u32>>,
    /// What the page linked to at the visit before, and does no more.
    pub gone: Vec<String>,
    /// How many links it has, and how many of them are others than before, as its record says it.
    pub turnover: Option<Turnover>,
    /// Its links may be followed.
    pub follow: bool,
    /// The page it was first heard on.
    pub via: Option<String>,
    /// What its text comes to, for the search for traps: pages that differ in numbers only have the same.
    pub text_digest: u64,
    /// SHA-1 of the payload.
    pub digest: Option<[u8; 20]>,
    /// The media type.
    pub mime: String,
    /// The line of robots.txt that forbids it; 0 if none does.
    pub robots_line: u16,
    /// What it is beside the capture before.
    pub found: Finding,
    /// Why it was looked at again.
    pub due: Option<Due>,
    /// Dates at which pages changed, as a sitemap or a feed has them: URL, milliseconds since 1970.
    pub hints: Hints,
    /// Under which hash its records stand, where that is not its site's: the site is split.
    pub place: Option<u32>,
    /// The last of its records.
    pub position: Option<Position>,
    /// Its record is the first with its payload: others may refer to it once it is synced.
    pub claim: Option<Claim>,
    /// Its record stands for another's body, which must not go before it is synced.
    pub referring: Option<Referring>,
    /// Its record has a large body, to which revisits of other slices may refer: SHA-256 and length.
    pub large: Option<([u8; 32], u64)>,
}

impl Visited {
    /// A visit of which no more is known than what became of it.
    pub fn bare(entry: u64, outcome: Outcome, time_ms: i64, failures: u8) -> Visited {
        Visited {
            lease: LeaseId(0),
            entry: Some(entry),
            from_queue: true,
            url: String::new(),
            parts: None,
            hops: Hops::SEED,
            outcome,
            time_ms,
            answer_ms: 0,
            bytes: 0,
            failures,
            park_ms: None,
            address: None,
            links: Outlinks::default(),
            tells_all: false,
            came: None,
            gone: Vec::new(),
            turnover: None,
            follow: true,
            via: None,
            text_digest: 0,
            digest: None,
            mime: String::new(),
            robots_line: 0,
            found: Finding::First,
            due: None,
            hints: Hints::default(),
            place: None,
            position: None,
            claim: None,
            referring: None,
            large: None,
        }
    }
}

/// What the bundle's loop needs to know to go on.
#[derive(Debug)]
pub struct Step {
    /// What became of it.
    pub outcome: Outcome,
    /// How long the answer took.
    pub answer_ms: u64,
    /// No answer came: whose fault that is.
    pub fault: Option<skep_fetch::Class>,
    /// The host asks to be left alone for so long; 0 if it does not say how long.
    pub park_ms: Option<u64>,
    /// Where the host is.
    pub address: Option<IpAddr>,
    /// The visit brought nothing to keep: a line among the checks of its bundle.
    pub check: Option<Visited>,
    /// The host shows the same page again and again: it is to be asked for something that cannot be there.
    pub suspect: bool,
    /// It redirects to itself until this cookie is shown to it.
    pub cookie: Option<String>,
}

/// Visits one URL of a bundle and hands its records to the archive. Returns when the answer has come; the engine is told
/// when it is synced. `cookie`: what the URL itself wants to be shown.
pub async fn visit(
    ask: &BundleUrl,
    url: &Url,
    cookie: Option<&str>,
    lease: LeaseId,
    session: &mut Session,
    parts: &Parts,
) -> Step {
    let given = parts.cookies.header(url);
    let previous = parts.previous(lease, url);
    let (time_ms, began_ms) = (parts.now_ms(), parts.elapsed_ms());
    let shown = validators::shown(previous.as_ref(), ask.due.as_ref(), time_ms);
    let settings = parts.settings();
    // Whoever types a seed means it. What a link leads to is known when it comes.
    let of_types = ask.via.as_ref().filter(|_| !settings.types.is_empty()).map(|_| OfTypes(&settings.types));
    let exchange = session
        .get(&Ask {
            url,
            etag: shown.and_then(|previous| previous.etag.as_deref()),
            last_modified: shown.and_then(|previous| previous.last_modified.as_deref()),
            cookie: given.as_deref().or(cookie),
            cookie_is_theirs: given.is_none(),
            body_bytes_max: None,
            wanted: of_types.as_ref().map(|types| types as &dyn Wanted),
        })
        .await;
    let time_ms = exchange.brought.as_ref().map_or(time_ms, |brought| brought.time_ms);
    let mut judged = judge::judge(&exchange, url, time_ms, parts.ignores_robots(url));
    let answer = network::look(&mut judged, &Seen { url, exchange: &exchange, began_ms }, session, parts).await;
    let is_page = matches!(judged.outcome, Outcome(200..=299));
    if is_page && of_types.is_some_and(|types| !types.admit(&judged.mime)) {
        judged.outcome = Outcome::TYPE_REFUSED;
    }
    let brought = &exchange;
    let same = previous.as_ref().map(|previous| move || keep::is_same(brought, previous));
    let suspect = soft::look(&mut judged, url, &exchange, same, &parts.soft);
    let wanted = if given.is_none() && cookie.is_none() { cookies::wanted_back(url, &exchange) } else { None };
    let mut visited = visited(ask, url, lease, &exchange, &mut judged, time_ms);
    let mut step = Step {
        outcome: judged.outcome,
        answer_ms: exchange.timings.total_ms.into(),
        fault: fault_of(&exchange, &judged),
        park_ms: judged.park_ms,
        address: exchange.address.map(|address| address.ip()),
        check: None,
        suspect,
        cookie: wanted,
    };
    if judged.brought_nothing(previous.as_ref(), settings.revisit_always, time_ms)
        || judged.outcome == Outcome::CUT_OFF && has_more(url, &exchange, previous.as_ref(), parts)
    {
        // What is not kept is not heard either: a rebuild hears the same, by the rules of its time.
        visited.links.clear();
        if let Some(previous) = previous.as_ref().filter(|_| judged.outcome == Outcome(304)) {
            visited.links = parts.links_again(previous);
        }
        step.check = Some(visited);
        return step;
    }
    let room = parts.room(visited.bytes).await;
    let records = keep::records(&mut visited, url, &exchange, &judged, previous.as_ref(), parts).await;
    // From here on nobody waits until the visit is noted: a portal that is found out later takes it back.
    if parts.network.is_portal(answer) {
        step.outcome = Outcome::CAPTIVE_PORTAL;
        let failures = step.outcome.failures_after(ask.failures);
        let nothing = Visited::bare(ask.entry, step.outcome, time_ms, failures);
        step.check = Some(Visited { lease, url: visited.url, hops: visited.hops, ..nothing });
        return step;
    }
    match records {
        Ok(append) => parts.append(append, visited, room),
        Err(error) => parts.lost(visited, error),
    }
    parts.network.note(answer, Some(ask.entry), url);
    parts.keep_name(lease, session);
    step
}

/// The types of answers that a crawl wants.
#[derive(Debug)]
struct OfTypes<'s>(&'s [Type]);

impl OfTypes<'_> {
    fn admit(&self, mime: &str) -> bool {
        rules::is_of_types(self.0, mime)
    }
}

impl Wanted for OfTypes<'_> {
    /// What is not wanted is not fetched: only as much of it as costs less than another connection.
    fn body_bytes_max(&self, head: &Head) -> Option<u64> {
        let is_page = matches!(head.status(), Some(200..=299));
        (is_page && !self.admit(&head.mime().unwrap_or_default())).then_some(UNWANTED_BYTES_MAX)
    }
}

/// Whose fault it is that no answer came, or none that this machine could take.
fn fault_of(exchange: &Exchange, judged: &Judgement) -> Option<skep_fetch::Class> {
    let none_taken = exchange.response.is_empty() || judged.outcome == Outcome::LOCAL_RESOURCES;
    exchange.fault.as_ref().filter(|_| none_taken).map(skep_fetch::Fault::class)
}

/// Whether more of an answer that broke off is kept already: a whole one, or a longer half.
fn has_more(url: &Url, exchange: &Exchange, previous: Option<&Previous>, parts: &Parts) -> bool {
    previous.is_some() || parts.remembered.half_bytes(url).is_some_and(|bytes| bytes >= exchange.response.len())
}

fn visited(
    ask: &BundleUrl,
    url: &Url,
    lease: LeaseId,
    exchange: &Exchange,
    judged: &mut Judgement,
    time_ms: i64,
) -> Visited {
    Visited {
        lease,
        entry: Some(ask.entry),
        from_queue: true,
        url: url.as_str().to_string(),
        parts: Some(url.clone()),
        hops: Hops { depth: ask.depth, redirects: ask.hops },
        outcome: judged.outcome,
        time_ms,
        answer_ms: exchange.timings.total_ms.into(),
        bytes: exchange.response.len(),
        failures: judged.outcome.failures_after(ask.failures),
        park_ms: judged.park_ms,
        address: exchange.address.map(|address| address.ip()),
        links: std::mem::take(&mut judged.links),
        tells_all: false,
        came: None,
        gone: Vec::new(),
        turnover: None,
        follow: judged.follow,
        via: ask.via.clone(),
        text_digest: judged.text_digest,
        digest: None,
        mime: std::mem::take(&mut judged.mime),
        robots_line: 0,
        found: Finding::First,
        due: ask.due,
        hints: std::mem::take(&mut judged.hints),
        place: None,
        position: None,
        claim: None,
        referring: None,
        large: None,
    }
}
