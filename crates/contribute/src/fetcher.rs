//! The fetcher: TLS, HTTP, decoding and parsing of bytes that nobody vouches for, in a process that is locked in. Main is at its
//! standard input, the broker at its standard output.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use skep_fetch::{Ask, Class, Dns, Exchange, Fault, Fetcher, Limits, Promise, Session, Stage};
use skep_url::robots::{Answer as RobotsAnswer, Policy};
use skep_url::{Part, Suffixes, Url};
use skep_warc::write::Truncated;
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;

use crate::broker::{self, Asking};
use crate::envelope;
use crate::limits::{ANSWER_BYTES_MAX, GRANT_BYTES, ROBOTS_BYTES_MAX, UNREAD_BYTES};
use crate::message::Fetched;
use crate::pipe::{self, Answered, Errand, Order, Packets, Ruled, Setup, Told};
use crate::seen;

/// The product token under which robots.txt files may speak of us.
const AGENT: &str = "skep";

/// Bytes that may be read, as main grants them.
struct Allowance {
    state: Mutex<Allowed>,
    more: Notify,
    tell: mpsc::UnboundedSender<Told>,
}

#[derive(Default)]
struct Allowed {
    bytes: u64,
    asked: bool,
    none: bool,
}

impl Allowance {
    fn lock(&self) -> std::sync::MutexGuard<'_, Allowed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grant(&self, bytes: u64) {
        let mut allowed = self.lock();
        allowed.asked = false;
        allowed.none = bytes == 0;
        allowed.bytes += bytes;
        drop(allowed);
        self.more.notify_waiters();
    }
}

impl skep_fetch::Meter for Allowance {
    fn take(&self, bytes: usize) -> Promise<'_, usize> {
        Box::pin(async move {
            loop {
                let more = self.more.notified();
                {
                    let mut allowed = self.lock();
                    if allowed.bytes > 0 {
                        let taken = allowed.bytes.min(bytes as u64);
                        allowed.bytes -= taken;
                        return taken as usize;
                    }
                    if std::mem::take(&mut allowed.none) {
                        return 0;
                    }
                    if !allowed.asked {
                        allowed.asked = true;
                        let _main_is_gone = self.tell.send(Told::Want { bytes: GRANT_BYTES });
                    }
                }
                more.await;
            }
        })
    }

    fn back(&self, bytes: usize) {
        self.lock().bytes += bytes as u64;
    }
}

struct Parts {
    fetcher: Fetcher,
    sessions: RefCell<HashMap<String, Session>>,
    tell: mpsc::UnboundedSender<Told>,
    suffixes: Suffixes,
    /// Processor time of which the one that meters it was told: several errands at once cost what they cost, not each all of it.
    cpu_told_ms: Cell<u64>,
}

impl Parts {
    fn cpu_since_told_ms(&self) -> u64 {
        let now_ms = cpu_ms();
        now_ms.saturating_sub(self.cpu_told_ms.replace(now_ms))
    }
}

/// Runs the fetcher.
pub async fn run() -> Result<(), String> {
    let wrong = |error: std::io::Error| error.to_string();
    crate::sandbox::be_nice();
    let mut main = pipe::standard_input().map_err(wrong)?;
    let Some(setup) = pipe::receive::<_, Setup>(&mut main).await.map_err(wrong)? else { return Ok(()) };
    let (from_main, mut to_main) = main.into_split();
    let mut from_main = pipe::gathered(from_main);
    let mut settings = broker::settings(&setup)?;
    settings.limits = Limits {
        body_bytes_max: ANSWER_BYTES_MAX,
        html_bytes_max: ANSWER_BYTES_MAX.min(skep_fetch::limits::HTML_BYTES_MAX),
        spool_bytes: usize::MAX, // there is no disk
        total_large_ms: skep_fetch::limits::TOTAL_MS,
        ..Limits::default()
    };
    let packets = Packets::new(pipe::standard_output().map_err(wrong)?).map_err(wrong)?;
    let (asking, serving) = Asking::new(packets);
    let (tell, mut told) = mpsc::unbounded_channel();
    let allowance = Arc::new(Allowance { state: Mutex::default(), more: Notify::new(), tell: tell.clone() });
    let settings = Arc::new(settings);
    let dns = Arc::new(Dns::new(&settings).map_err(|error| error.to_string())?);
    let fetcher =
        Fetcher::brokered(settings, dns, Arc::new(asking), allowance.clone()).map_err(|error| error.to_string())?;
    let parts = Rc::new(Parts {
        fetcher,
        sessions: RefCell::default(),
        tell: tell.clone(),
        suffixes: Suffixes::compiled(),
        cpu_told_ms: Cell::new(cpu_ms()),
    });
    let _main_is_gone = tell.send(Told::Ready(crate::sandbox::lock(setup.memory_bytes)));
    let listening = async {
        loop {
            match pipe::receive::<_, Order>(&mut from_main).await {
                Ok(Some(Order::Fetch(errand))) => {
                    let parts = parts.clone();
                    tokio::task::spawn_local(async move {
                        let answered = fetch(errand, &parts).await;
                        let _main_is_gone = parts.tell.send(Told::Fetched(Box::new(answered)));
                    });
                }
                Ok(Some(Order::Close { origin })) => drop(parts.sessions.borrow_mut().remove(&origin)),
                Ok(Some(Order::Grant { bytes })) => allowance.grant(bytes),
                Ok(Some(Order::Try)) => {
                    let _main_is_gone = tell.send(Told::Tried(crate::sandbox::try_everything()));
                }
                Ok(None) | Err(_) => return,
            }
        }
    };
    let telling = async {
        while let Some(one) = told.recv().await {
            if pipe::send(&mut to_main, &one).await.is_err() {
                return;
            }
        }
    };
    let all = async {
        tokio::select! { () = listening => {}, () = telling => {}, () = serving => {} }
    };
    LocalSet::new().run_until(all).await;
    Ok(())
}

/// The name of a connection.
pub fn origin(url: &Url) -> String {
    format!("{}://{}:{}", url.scheme(), url.host_name(), url.port())
}

/// Of this process, since it began.
fn cpu_ms() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000 + spent.tv_nsec as u64 / 1_000_000
}

async fn fetch(errand: Errand, parts: &Parts) -> Answered {
    let Ok(url) = Url::parse(&errand.url) else {
        return Answered { ticket: errand.ticket, refused: true, ..Answered::default() };
    };
    let name = origin(&url);
    let session = parts.sessions.borrow_mut().remove(&name);
    let mut session = session.unwrap_or_else(|| parts.fetcher.session(&url));
    let ask = Ask {
        etag: errand.etag.as_deref(),
        last_modified: errand.last_modified.as_deref(),
        body_bytes_max: errand.decide.is_some().then_some(ROBOTS_BYTES_MAX),
        ..Ask::new(&url)
    };
    let site = url.site(&parts.suffixes, Part::Whole).to_owned();
    // Whoever is cut off closes its connection.
    let Ok(exchange) = tokio::time::timeout(Duration::from_millis(errand.most_ms.into()), session.get(&ask)).await
    else {
        return cut_off(errand, site, parts.cpu_since_told_ms());
    };
    let mut fetched = seen::fetched(errand.number, &url, &exchange, &errand.how);
    let mut answered = Answered {
        ticket: errand.ticket,
        beside_bytes: beside_bytes(&exchange),
        site,
        stop: is_enough(&exchange),
        refused: exchange.fault.as_ref().is_some_and(|fault| fault.class() == Class::Refused),
        ..Answered::default()
    };
    if let Some(urls) = &errand.decide {
        fetched.too_large = false; // a long file counts as far as it is read
        errand.url.clone_into(&mut fetched.url);
        answered.redirect = redirect(&url, &exchange);
        if answered.redirect.is_none() {
            answered.rules = Some(rules(&exchange, urls));
        }
    }
    if !exchange.response.is_empty() && !fetched.too_large {
        answered.whole = envelope::plain(&seen::whole(&exchange));
        fetched.too_large = answered.whole.is_empty(); // no memory for it
    }
    answered.fetched = fetched;
    // The answer is complete: whoever is asked for more keeps its connection.
    if !answered.stop && session.is_connected() {
        parts.sessions.borrow_mut().insert(name, session);
    }
    answered.cpu_ms = parts.cpu_since_told_ms();
    answered
}

/// The answer did not come within the lease. A page is for the node itself then, which has more time; of rules it is as if there was nobody.
fn cut_off(errand: Errand, site: String, cpu_ms: u64) -> Answered {
    let rules = errand.decide.as_ref().map(|urls| Ruled { allowed: vec![false; urls.len()], crawl_delay_ms: None });
    let fetched = Fetched {
        number: errand.number,
        url: if errand.decide.is_some() { errand.url } else { String::new() },
        fault: Fault::Timeout(Stage::Total).id().to_owned(),
        took_ms: errand.most_ms,
        too_large: errand.decide.is_none(),
        ..Fetched::default()
    };
    let beside_bytes = UNREAD_BYTES;
    Answered { ticket: errand.ticket, fetched, site, cpu_ms, beside_bytes, stop: true, rules, ..Answered::default() }
}

/// What it takes both sides to agree on keys, beside the certificates.
const HANDSHAKE_BYTES: u64 = 2_000;
/// What is added to each piece of an answer that is encrypted, and how long that is.
const SEALED_BYTES: u64 = 22;
const PIECE_BYTES: u64 = 16 << 10;

/// Bytes that go over the line beside the answer.
fn beside_bytes(exchange: &Exchange) -> u64 {
    let request = exchange.request.len() as u64 + if is_left_unread(exchange) { UNREAD_BYTES } else { 0 };
    let Some(tls) = &exchange.tls else { return request };
    let handshake = if exchange.reused { 0 } else { HANDSHAKE_BYTES + tls.chain_bytes as u64 };
    request + handshake + SEALED_BYTES * (1 + exchange.response.len().div_ceil(PIECE_BYTES))
}

/// Whether the answer was read no further though there may be more of it: then as much as there is room for has come all the same.
fn is_left_unread(exchange: &Exchange) -> bool {
    let is_ours = exchange.fault.as_ref().is_some_and(|fault| fault.class() == Class::Local);
    is_ours || exchange.truncated.is_some_and(|why| why != Truncated::Disconnect)
}

/// The host is in trouble, or wants to be left alone.
fn is_enough(exchange: &Exchange) -> bool {
    let trouble = exchange.fault.as_ref().filter(|_| exchange.response.is_empty());
    trouble.is_some_and(|fault| matches!(fault.class(), Class::Host | Class::Local | Class::Refused))
        || matches!(exchange.status(), Some(429 | 503))
}

/// Where an answer leads.
pub(crate) fn redirect(url: &Url, exchange: &Exchange) -> Option<String> {
    let head = exchange.head.as_ref().filter(|head| matches!(head.status(), Some(301 | 302 | 303 | 307 | 308)))?;
    let to = std::str::from_utf8(head.header("location")?).ok()?;
    url.join(to.trim()).ok().map(|url| url.as_str().to_owned())
}

/// What a robots.txt allows; nothing, where it could not be had: the node decides what that means.
pub(crate) fn rules(exchange: &Exchange, urls: &[String]) -> Ruled {
    let status =
        exchange.status().filter(|_| exchange.truncated.is_none_or(|cut| cut == skep_warc::write::Truncated::Length));
    let bytes = exchange.response.bytes(exchange.head_bytes as u64, ROBOTS_BYTES_MAX).unwrap_or_default();
    let mut body = Vec::new();
    if let Some(head) = &exchange.head {
        let bounds =
            skep_warc::coding::Bounds { output_bytes_max: ROBOTS_BYTES_MAX, ..skep_warc::coding::Bounds::default() };
        let mut decoded = skep_warc::coding::decode(head, &bytes[..], bounds);
        let _as_far_as_it_goes = std::io::Read::read_to_end(&mut decoded, &mut body);
    }
    let answer = match status {
        Some(status) => {
            RobotsAnswer::Response { status, body: &body, retry_after_seconds: None, failing_for_seconds: 0 }
        }
        None => RobotsAnswer::Unreachable { failing_for_seconds: 0 },
    };
    let policy = Policy::of(answer);
    let delay = policy.robots().and_then(|robots| robots.crawl_delay(AGENT));
    Ruled {
        allowed: urls.iter().map(|url| !policy.is_closed() && policy.decide(AGENT, url).allowed).collect(),
        crawl_delay_ms: delay.map(|delay| (delay.seconds * 1000.0) as u64),
    }
}
