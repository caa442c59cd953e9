//! How a case begins: what came of a bundle is put in order, and it is drawn what is looked at a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use skep_fetch::{Brought as Source, Exchange};
use skep_schedule::BundleUrl;
use skep_url::Url;

use crate::coming::{Charge, Held, Purpose};
use crate::fetcher::{redirect, rules};
use crate::judge::Case;
use crate::known_pages;
use crate::limits::{ALIKE_HOSTS, CHECK_TAKEN_MS, OURS_MAX};
use crate::message::{self, Digest, Fetched, How, ROBOTS};
use crate::node::{Node, State, hash};
use crate::seen;
use crate::trust::{Class, Key, Origin, Place, View, is_turned_away};

/// Who looked, and from where.
#[derive(Clone, Debug)]
pub struct Hand {
    /// Its key.
    pub key: Key,
    /// From where.
    pub origin: Origin,
    /// Where that is.
    pub place: Place,
    /// URLs and bytes of what it looked at.
    pub looked: (u64, u64),
}

impl Hand {
    /// What it saw, as a line of a record. A network that no table names is not named here either: its number would tell its address.
    pub fn saw(&self, view: &View) -> String {
        let network = self.origin.network;
        let network = if network >> 63 == 0 { format!("AS{network}") } else { "-".into() };
        let place = if self.place.is_known() { self.place.to_string() } else { "-".into() };
        match view.digest {
            Digest::Plain(digest) => {
                format!("{network} {place} {} {}", view.status, skep_archive::Digest::Sha1(digest))
            }
            Digest::None | Digest::Keyed(_) | Digest::Short(_) => format!("{network} {place} {}", view.status),
        }
    }
}

/// What somebody said he saw at a URL.
#[derive(Clone, Debug)]
pub struct Said {
    /// What it comes to.
    pub view: View,
    /// The digest that one who has the bytes would give under the nonce, where we can tell.
    pub keyed: Option<[u8; 16]>,
    /// It is what the archive has.
    pub unchanged: bool,
    /// What the archive has.
    pub known: Option<[u8; 20]>,
    /// When, by our clock.
    pub time_ms: i64,
    /// It is a known page with this secret: whoever says something else than what stands there has not looked.
    pub secret: Option<String>,
    /// How it is asked for a second time: conditionally, where the first one was told that nothing changed.
    pub ask: BundleUrl,
}

impl Said {
    /// What another one saw, in the terms of this.
    pub fn as_seen(&self, fetched: &Fetched) -> View {
        let view = self.raw(fetched);
        match view.digest {
            Digest::Keyed(digest) if self.keyed == Some(digest) => View { digest: self.view.digest, ..view },
            _ => view,
        }
    }

    /// Is it a known page, and what somebody saw there not what must stand there? Then the page is out of order, and nobody is judged by it.
    pub fn is_out_of_order(&self, seen: &View, nonce: &[u8; 16], now_ms: i64) -> bool {
        let is_right =
            |secret: &String| seen.status == 200 && known_pages::is_right(secret, &seen.digest, nonce, now_ms);
        self.secret.as_ref().is_some_and(|secret| !is_right(secret))
    }

    /// What another one saw; a keyed digest stays one.
    pub fn raw(&self, fetched: &Fetched) -> View {
        match (fetched.status, self.known) {
            (304, Some(known)) => View { status: 200, digest: Digest::Plain(known), ..View::default() },
            _ => View::of(fetched),
        }
    }
}

/// A case that has begun, with what is to be drawn and remembered where everybody can see it.
pub struct Opened {
    /// The case.
    pub case: Box<Case>,
    /// URLs that contributors could not take: hashes.
    ours: Vec<u64>,
    /// Pages of which one body for many hosts would be odd: URL and digest.
    pages: Vec<(String, [u8; 20])>,
    /// URLs that are looked at in any case.
    odd: Vec<String>,
}

impl Opened {
    /// Puts in order what came. Pages are taken apart here, before anybody has to wait for it.
    pub(crate) fn new(node: &Arc<Node>, held: Held, first: Hand, charge: Charge) -> Opened {
        let now_ms = node.now_ms();
        let by = format!("contributor {}", node.pseudonym(&first.key));
        let known_page = held.known_page();
        let pages = held.fetched.keys().filter(|number| **number < ROBOTS && Some(**number) != known_page).count();
        let asked = held.bundle.urls.len() - usize::from(known_page.is_some());
        let case = Case {
            node: node.clone(),
            second: None,
            nonce: held.nonce,
            robots: held.robots,
            lease_ms: held.lease_ms,
            done: None,
            is_wanted: None,
            exchanges: Vec::with_capacity(held.fetched.len()),
            said: BTreeMap::new(),
            checks: BTreeSet::new(),
            own: BTreeSet::new(),
            asked: Vec::new(),
            rest_ms: rest_ms(&held),
            seconds: BTreeMap::new(),
            ours: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            by_node: BTreeSet::new(),
            seen_elsewhere: BTreeSet::new(),
            vantages: BTreeMap::new(),
            turned_away: (0, 0),
            is_partial: pages < asked,
            urls: held.fetched.len() as u64,
            bytes: first.looked.1,
            bundle: held.bundle.clone(),
            first,
            charge,
        };
        let mut opened = Opened { case: Box::new(case), ours: Vec::new(), pages: Vec::new(), odd: Vec::new() };
        // A site that is to rest for longer than anybody waits to check is no place for contributors, and whoever says so may have made it up:
        // the node asks for the rules itself.
        let is_restful = robots_delay_ms(&held).is_some_and(|delay_ms| delay_ms > CHECK_TAKEN_MS);
        if is_restful {
            opened.ours.extend(held.bundle.urls.iter().map(|ask| hash(&ask.url)));
            opened.case.is_partial = true;
        }
        // The way to robots.txt first: that is what a visit asks for first.
        let pages = held.fetched.values().filter(|fetched| fetched.number < ROBOTS);
        for fetched in way_to_robots(&held).into_iter().chain(pages).filter(|_| !is_restful) {
            match &held.secret {
                Some(secret) if known_page == Some(fetched.number) => opened.take_known(&held, fetched, secret, now_ms),
                _ => opened.take(&held, fetched, &by, now_ms),
            }
        }
        if let Purpose::Work(done) = held.purpose {
            opened.case.done = Some(done);
        }
        opened.case.is_wanted = Some(held.is_wanted);
        opened
    }

    fn take(&mut self, held: &Held, fetched: &Fetched, by: &str, now_ms: i64) {
        let number = usize::from(fetched.number);
        let asked = held.bundle.urls.get(number);
        let Ok(url) = Url::parse(asked.map_or(&fetched.url, |ask| &ask.url)) else { return };
        // What its machine or its owner's rules kept it from says nothing about the page: we look ourselves.
        let fault = skep_fetch::Fault::named(&fetched.fault, "").map(|fault| fault.class());
        let kept_from = matches!(fault, Some(skep_fetch::Class::Local | skep_fetch::Class::Refused));
        if fetched.too_large || kept_from {
            self.ours.push(hash(url.as_str()));
            return;
        }
        let unchanged = held.is_unchanged(fetched);
        let whole = held.wholes.get(&fetched.number);
        let exchange = match whole {
            // What it says it sent is kept as well.
            Some(whole) if !is_request_for(&whole.request, &url) => return,
            Some(whole) => seen::exchange(whole),
            None => seen::bare(fetched, unchanged),
        };
        // What an answer says that has no page is compared with nobody's: it is not kept.
        let says_more = |exchange: &Exchange| exchange.head.as_ref().is_some_and(seen::has_headers);
        let exchange = match exchange {
            Some(exchange) if unchanged && fetched.status == 304 && says_more(&exchange) => seen::bare(fetched, true),
            other => other,
        };
        let Some(mut exchange) = exchange else { return };
        let known = held.known.get(number).and_then(Option::as_ref);
        let mut view = View::of(fetched);
        let mut keyed = known.filter(|_| unchanged).and_then(|known| known.keyed.as_ref().map(message::first));
        if let Some(known) = known.filter(|_| unchanged) {
            (view.status, view.digest) = (200, Digest::Plain(known.digest));
            let head = exchange.head.as_ref().filter(|_| whole.is_some() && fetched.status != 304);
            view.head = head.map_or(0, seen::headers);
        }
        if let Some(whole) = whole.filter(|_| !unchanged) {
            let (seen, digest) = seen::look(&url, &exchange, &How::THOROUGH);
            (view.digest, view.text, view.links, view.head) = (digest, seen.text, seen.links, seen.head);
            let body = whole.response.get(whole.head_bytes as usize..).unwrap_or_default();
            keyed = Some(message::keyed(&held.nonce, &seen::payload(exchange.head.as_ref(), body)));
        }
        let name = url.as_str().to_owned();
        if let (200, Digest::Plain(digest)) = (fetched.status, view.digest)
            && fetched.mime.contains("html")
            && !unchanged
            && fetched.number < ROBOTS
        {
            self.pages.push((name.clone(), digest));
        }
        // Its network may be in trouble, and not the host; whoever does not look may say that he was turned away. What the archive has not is
        // shown to nobody before another has seen it, and by the rules of a host all of it is visited.
        let is_new = known.is_none() && (200..300).contains(&fetched.status);
        if is_turned_away(fetched.status) || is_new || fetched.number >= ROBOTS {
            self.odd.push(name.clone());
        }
        // A clock that is off moves nothing out of the time in which it can have been.
        let time_ms = fetched.time_ms.clamp(held.given_ms.min(now_ms), now_ms);
        let validators = asked.filter(|_| fetched.status == 304);
        let ask = BundleUrl {
            url: name.clone(),
            etag: validators.and_then(|ask| ask.etag.clone()),
            last_modified: validators.and_then(|ask| ask.last_modified.clone()),
            ..BundleUrl::default()
        };
        let known = known.map(|known| known.digest);
        let said = Said { view, keyed, unchanged, known, time_ms, secret: None, ask };
        self.case.said.insert(name, said);
        exchange.brought =
            Some(Source { time_ms, by: by.to_owned(), confirmed: false, seen_elsewhere: false, by_holder: false });
        self.case.exchanges.push((url, exchange));
    }

    /// A known page: whoever says something else than what must stand there is looked at.
    fn take_known(&mut self, held: &Held, fetched: &Fetched, secret: &str, now_ms: i64) {
        let Some(ask) = held.bundle.urls.get(usize::from(fetched.number)) else { return };
        if fetched.status != 200 || known_pages::is_right(secret, &fetched.digest, &held.nonce, now_ms) {
            return;
        }
        let view = View { status: 200, digest: Digest::Plain([0xff; 20]), ..View::of(fetched) };
        let ask = BundleUrl { url: ask.url.clone(), ..BundleUrl::default() };
        self.odd.push(ask.url.clone());
        let (time_ms, secret) = (now_ms, Some(secret.to_owned()));
        let said = Said { view, keyed: None, unchanged: false, known: None, time_ms, secret, ask };
        self.case.said.insert(said.ask.url.clone(), said);
    }

    /// Draws what is looked at a second time, and which one in so many of that by the node itself: whoever is there, it sees some of it with
    /// its own eyes.
    pub(crate) fn draw(mut self, state: &mut State, own_one_in: u64) -> Box<Case> {
        if state.ours.len() + self.ours.len() > OURS_MAX {
            state.ours.clear();
        }
        state.ours.extend(self.ours);
        let site = self.case.bundle.site.clone();
        for (url, digest) in self.pages {
            let hosts = state.alike.entry(digest).or_default();
            if hosts.len() <= ALIKE_HOSTS {
                hosts.insert(site.clone());
            }
            if hosts.len() >= ALIKE_HOSTS {
                self.odd.push(url); // one page for many sites: a portal's, perhaps
            }
        }
        let mut numbers = Vec::new();
        (0..256).for_each(|_| numbers.push(state.draw()));
        let mut drawn = numbers.into_iter().cycle();
        let exchanges = &self.case.exchanges;
        // Of a page that is never twice the same a second look says nothing.
        let is_changed = |at: usize| {
            let said = exchanges.get(at).and_then(|(url, _)| self.case.said.get(url.as_str()));
            let class = exchanges.get(at).and_then(|(url, _)| state.trust.class(hash(url.as_str())));
            said.is_some_and(|said| !said.unchanged) && class != Some(Class::Volatile)
        };
        let mut draw = || drawn.next().unwrap_or(0);
        let checks = state.trust.checks(&self.case.first.key, exchanges.len(), is_changed, &mut draw);
        let checks: BTreeSet<String> =
            checks.into_iter().map(|at| exchanges[at].0.as_str().to_owned()).chain(self.odd).collect();
        self.case.own = checks.iter().filter(|_| state.draw().is_multiple_of(own_one_in)).cloned().collect();
        self.case.checks = checks;
        self.case
    }
}

/// The files on the way to robots.txt, each of which leads to the next. Whatever else is said to lie on it is nobody's: a URL that no site leads
/// to is none that a node asks for on a contributor's word.
fn way_to_robots(held: &Held) -> Vec<&Fetched> {
    let first = held.bundle.urls.iter().find_map(|ask| Url::parse(&ask.url).ok());
    let (mut next, mut way) = (first.map(|url| url.robots_txt().as_str().to_owned()), Vec::new());
    for fetched in held.fetched.values().filter(|fetched| fetched.number >= ROBOTS) {
        if next.as_deref() != Some(fetched.url.as_str()) {
            break;
        }
        way.push(fetched);
        next = Url::parse(&fetched.url)
            .ok()
            .and_then(|url| redirect(&url, &held.wholes.get(&fetched.number).and_then(seen::exchange)?));
    }
    way
}

/// Is this a request for a URL? Nothing is said of one that is not there.
fn is_request_for(request: &[u8], url: &Url) -> bool {
    let line = format!("GET {} HTTP/1.1\r\n", url.request_target());
    request.is_empty() || request.starts_with(line.as_bytes())
}

/// What a robots.txt that was brought asks for.
fn robots_delay_ms(held: &Held) -> Option<u64> {
    held.fetched.keys().rev().take_while(|number| **number >= ROBOTS).find_map(|number| {
        let exchange = seen::exchange(held.wholes.get(number)?)?;
        rules(&exchange, &[]).crawl_delay_ms
    })
}

/// How long the site rests after the last one who asked it.
fn rest_ms(held: &Held) -> u64 {
    let delay_ms = held.robots.and_then(|rules| rules.crawl_delay_ms).or_else(|| robots_delay_ms(held));
    let took_ms = held.fetched.values().map(|fetched| fetched.took_ms).max().unwrap_or(0);
    skep_schedule::pace::gap_ms(&held.bundle.pace, delay_ms, took_ms.into()).max(crate::limits::OWN_GAP_MS)
}
