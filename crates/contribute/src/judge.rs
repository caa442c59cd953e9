//! What a contributor brought is held against what others see: the second fetch, and the third that tells who was wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use skep_fetch::{Brought as Source, Exchange};
use skep_url::Url;

use crate::coming::Held;
use crate::limits::ALIKE_HOSTS;
use crate::message::{Digest, Fetched, ROBOTS};
use crate::node::{Back, Brought, Node, Round, State, hash};
use crate::seen;
use crate::trust::{Key, Likeness, NODE, Network, View, Work, Wrong};

/// The case of one bundle.
struct Case {
    node: Arc<Node>,
    key: Key,
    network: Network,
    by: String,
    nonce: [u8; 16],
    /// What they said they saw, by URL.
    said: BTreeMap<String, (View, bool)>,
    /// What we saw the first time.
    ours: BTreeMap<String, View>,
    /// URLs that we looked at and found as they said.
    confirmed: Vec<String>,
    by_place: u64,
    /// Fewer came back than went out.
    is_partial: bool,
    urls: u64,
    bytes: u64,
}

/// Begins with everything that came; says to whom to tell it.
pub(crate) fn begin(
    node: &Arc<Node>,
    state: &mut State,
    held: Held,
    key: Key,
    network: Network,
) -> (Box<dyn FnOnce(Back) + Send>, Back) {
    let by = format!("contributor {}", node.pseudonym(&key));
    let now_ms = node.now_ms();
    let mut case = Case {
        node: node.clone(),
        key,
        network,
        by,
        nonce: held.offer.nonce,
        said: BTreeMap::new(),
        ours: BTreeMap::new(),
        confirmed: Vec::new(),
        by_place: 0,
        is_partial: held.fetched.keys().filter(|number| **number < ROBOTS).count() < held.offer.bundle.urls.len(),
        urls: held.fetched.len() as u64,
        bytes: held.fetched.values().map(|fetched| fetched.length).sum(),
    };
    let mut exchanges = Vec::with_capacity(held.fetched.len());
    let mut odd = Vec::new();
    // The way to robots.txt first: that is what a visit asks for first.
    let (pages, robots): (Vec<&Fetched>, Vec<&Fetched>) = held.fetched.values().partition(|f| f.number < ROBOTS);
    for fetched in robots.into_iter().chain(pages) {
        let number = usize::from(fetched.number);
        let text = held.offer.bundle.urls.get(number).map_or(&fetched.url, |ask| &ask.url);
        let Ok(url) = Url::parse(text) else { continue };
        // What its machine or its owner's rules kept it from says nothing about the page: we look ourselves.
        let fault = skep_fetch::Fault::named(&fetched.fault, "").map(|fault| fault.class());
        let kept_from = matches!(fault, Some(skep_fetch::Class::Local | skep_fetch::Class::Refused));
        if fetched.too_large || kept_from {
            if state.ours.len() >= crate::limits::OURS_MAX {
                state.ours.clear();
            }
            state.ours.insert(hash(url.as_str()));
            continue;
        }
        let unchanged = held.is_unchanged(fetched);
        let exchange = match held.wholes.get(&fetched.number) {
            Some(whole) => seen::exchange(whole),
            None => seen::bare(fetched, unchanged),
        };
        let Some(mut exchange) = exchange else { continue };
        let known = held.offer.known.get(number).and_then(Option::as_ref).filter(|_| unchanged);
        let digest = known.map_or(fetched.digest, |known| Digest::Plain(known.digest));
        let (text, links) = match held.wholes.contains_key(&fetched.number) {
            true => {
                let (seen, _) = seen::look(&url, &exchange, None);
                (seen.text, seen.links)
            }
            false => (fetched.text, fetched.links),
        };
        let status = if unchanged { 200 } else { fetched.status };
        case.said.insert(url.as_str().to_owned(), (View { status, digest, text, links }, unchanged));
        if let (200, Digest::Plain(digest)) = (fetched.status, digest)
            && fetched.mime.contains("html")
            && !unchanged
            && fetched.number < ROBOTS
        {
            let hosts = state.alike.entry(digest).or_default();
            if hosts.len() <= ALIKE_HOSTS {
                hosts.insert(held.offer.bundle.site.clone());
            }
            if hosts.len() >= ALIKE_HOSTS {
                odd.push(exchanges.len()); // one page for many sites: a portal's, perhaps
            }
        }
        if fetched.status == 0 {
            odd.push(exchanges.len()); // its network may be in trouble, and not the host
        }
        // A clock that is off moves nothing out of the time in which it can have been.
        let lease_ms = held.offer.lease.as_millis() as i64;
        let time_ms = fetched.time_ms.clamp(now_ms - lease_ms - 60_000, now_ms);
        exchange.brought = Some(Source { time_ms, by: case.by.clone(), confirmed: false });
        exchanges.push((url, exchange));
    }
    let mut numbers = Vec::new();
    (0..256).for_each(|_| numbers.push(state.draw()));
    let mut drawn = numbers.into_iter().cycle();
    let mut checks = state.trust.checks(&key, exchanges.len(), &mut || drawn.next().unwrap_or(0));
    checks.extend(odd);
    checks.sort_unstable();
    checks.dedup();
    let again: Vec<Url> = checks.into_iter().map(|at| exchanges[at].0.clone()).collect();
    let judge = Box::new(move |theirs, ours| case.second(theirs, ours));
    (held.offer.done, Back::Brought(Brought { exchanges, again, judge }))
}

impl Case {
    fn view(&self, url: &Url, exchange: &Exchange, like: Digest) -> View {
        let nonce = matches!(like, Digest::Keyed(_)).then_some(&self.nonce);
        let (seen, digest) = seen::look(url, exchange, nonce);
        View { status: seen.status, digest, text: seen.text, links: seen.links }
    }

    /// The node has looked as well.
    fn second(mut self, mut theirs: Vec<(Url, Exchange)>, ours: Vec<(Url, Exchange)>) -> Round {
        let node = self.node.clone();
        let state = node.lock();
        let mut again = Vec::new();
        let mut replaced = BTreeMap::new();
        for (url, exchange) in ours {
            let Some((said, _)) = self.said.get(url.as_str()).copied() else { continue };
            let seen = self.view(&url, &exchange, said.digest);
            match state.trust.compare(hash(url.as_str()), &said, &seen) {
                Likeness::Same => self.confirmed.push(url.as_str().to_owned()),
                Likeness::Nothing => {}
                Likeness::Place => {
                    self.by_place += 1;
                    replaced.insert(url.as_str().to_owned(), exchange);
                }
                Likeness::Differ => {
                    self.ours.insert(url.as_str().to_owned(), seen);
                    again.push(url.clone());
                    replaced.insert(url.as_str().to_owned(), exchange);
                }
            }
        }
        drop(state);
        // Where we saw something else, what we saw is kept.
        for (url, exchange) in &mut theirs {
            if let Some(ours) = replaced.remove(url.as_str()) {
                *exchange = ours;
            }
        }
        if again.is_empty() {
            return Round::Over(self.over(theirs, Vec::new()));
        }
        let judge = Box::new(move |theirs, ours| Round::Over(self.over(theirs, ours)));
        Round::Again(Brought { exchanges: theirs, again, judge })
    }

    /// The node has looked twice where it had to: who was wrong?
    fn over(self, mut theirs: Vec<(Url, Exchange)>, ours: Vec<(Url, Exchange)>) -> Vec<(Url, Exchange)> {
        let now_ms = self.node.now_ms();
        let node = self.node.clone();
        let mut state = node.lock();
        let mut lies = 0;
        for (url, exchange) in ours {
            let (Some((said, _)), Some(first)) = (self.said.get(url.as_str()), self.ours.get(url.as_str())) else {
                continue;
            };
            let second = self.view(&url, &exchange, said.digest);
            if state.trust.decide(hash(url.as_str()), said, first, &[*first, second]) == Wrong::First {
                lies += 1;
            }
        }
        if lies > 0 {
            for url in state.trust.lied(&self.key, now_ms) {
                state.again.entry(url).or_default();
            }
            state.book.touch();
            drop(state);
            // Of a liar only what we saw ourselves is kept.
            theirs.retain(|(_, exchange)| exchange.brought.is_none());
            return theirs;
        }
        let mut work = Work { urls: self.urls, bytes: self.bytes, by_place: self.by_place, ..Work::default() };
        for (url, exchange) in &mut theirs {
            let Some(brought) = &mut exchange.brought else { continue };
            let Some((said, unchanged)) = self.said.get(url.as_str()) else { continue };
            let checked = self.confirmed.iter().any(|confirmed| confirmed == url.as_str());
            let url = hash(url.as_str());
            if checked {
                state.trust.witness(&NODE, 0, url, said, now_ms);
            }
            let confirmed = state.trust.witness(&self.key, self.network, url, said, now_ms);
            brought.confirmed = confirmed || checked;
            if brought.confirmed {
                work.confirmed += 1;
                work.wanted_bytes += if *unchanged { 0 } else { exchange.response.len() };
            }
        }
        match self.is_partial {
            true => state.trust.partly(&self.key, work),
            false => state.trust.good(&self.key, work),
        }
        state.book.touch();
        theirs
    }
}
