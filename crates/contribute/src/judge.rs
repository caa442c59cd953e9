//! What a contributor brought is held against what others see. The spine of this part.
//!
//! ```text
//!  opened ─▶ checked: another network looked ─▶ looked: the node looked where they differ ─▶ once more ─▶ decided: who was wrong
//!    │            └── nobody of another network is there: the node looks ──┘                                  │
//!    └── nothing is to be checked ─────────────────────────────────────────────────▶ over ◀── asked: somebody of the same place
//! ```
//! Until it is over, the site is not visited by anybody else: whoever offered the bundle holds its clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard};

use skep_fetch::Exchange;
use skep_schedule::hands::{Back, Believed, Brought, Round};
use skep_schedule::{Bundle as Leased, BundleUrl};
use skep_url::Url;
use tokio::sync::oneshot;

use crate::case::{Hand, Said};
use crate::coming::{Charge, Held, Purpose};
use crate::fetcher::origin;
use crate::limits::{ALONE_MAX, ALONE_OF_PLACE_MAX, ANSWER_BYTES_MAX, BUNDLE_URLS_MAX, SLOT_MS};
use crate::message::{self, Digest, Fetched, How};
use crate::node::{Node, State, hash};
use crate::seen;
use crate::trust::{Likeness, NODE, Origin, View, Work, Wrong, is_turned_away};

/// The case of one bundle.
pub struct Case {
    pub(crate) node: Arc<Node>,
    pub(crate) first: Hand,
    pub(crate) second: Option<Hand>,
    /// What was to be fetched, with host, site and pace.
    pub(crate) bundle: Leased,
    pub(crate) nonce: [u8; 16],
    pub(crate) robots: Option<skep_schedule::hands::Rules>,
    /// What is left of the time in which the bundle may be out.
    pub(crate) lease_ms: u64,
    pub(crate) done: Option<Box<dyn FnOnce(Back<Exchange>) + Send>>,
    pub(crate) is_wanted: Option<Box<dyn Fn() -> bool + Send>>,
    pub(crate) exchanges: Vec<(Url, Exchange)>,
    /// What the first one said it saw, by URL.
    pub(crate) said: BTreeMap<String, Said>,
    /// URLs that are looked at a second time.
    pub(crate) checks: BTreeSet<String>,
    /// Those of them that the node looks at itself, whoever else does.
    pub(crate) own: BTreeSet<String>,
    /// Those of them that another contributor is asked for, in this order.
    pub(crate) asked: Vec<String>,
    /// How long the site rests between two who ask it.
    pub(crate) rest_ms: u64,
    /// What the second one said.
    pub(crate) seconds: BTreeMap<String, View>,
    /// What the node saw, at first.
    pub(crate) ours: BTreeMap<String, View>,
    /// URLs that somebody else found as the first one said.
    pub(crate) confirmed: BTreeSet<String>,
    /// Those of them that the node itself found so.
    pub(crate) by_node: BTreeSet<String>,
    /// URLs at which somebody else found something.
    pub(crate) seen_elsewhere: BTreeSet<String>,
    /// What differs by place, by URL.
    pub(crate) vantages: BTreeMap<String, Vec<String>>,
    /// URLs at which the first one was turned away and the node was not, of so many that the node looked at.
    pub(crate) turned_away: (usize, usize),
    /// Fewer came back than went out, or too late to be checked.
    pub(crate) is_partial: bool,
    pub(crate) urls: u64,
    pub(crate) bytes: u64,
    /// What is held for it counts against whoever brought it, until it is over.
    #[expect(dead_code, reason = "it counts until it is dropped")]
    pub(crate) charge: Charge,
}

/// Somebody of the same place is asked whether it looks from there as the first one says.
pub struct Opinion {
    case: Case,
    theirs: Vec<(Url, Exchange)>,
    /// URLs at which the first one was alone.
    alone: Vec<String>,
    /// Nobody else of that place could have been asked.
    pub(crate) is_only_one: bool,
    tell: oneshot::Sender<Round<Exchange>>,
}

impl Case {
    /// A bundle for somebody of another network, who looks at what is to be checked; the case, where there is nothing for him.
    pub(crate) fn check(mut self: Box<Case>) -> Result<Held, Box<Case>> {
        let here = self.bundle.urls.iter().find_map(|ask| Url::parse(&ask.url).ok());
        let Some(here) = here else { return Err(self) };
        // The way to robots.txt is walked anyway where the rules are not known, and may lead to other hosts.
        let skipped = self.robots.is_none().then(|| here.robots_txt());
        let fits = |text: &&String| {
            let url = Url::parse(text).ok().filter(|url| origin(url) == origin(&here));
            url.is_some_and(|url| skipped.as_ref().is_none_or(|robots| robots.as_str() != url.as_str()))
        };
        self.asked = self
            .checks
            .iter()
            .filter(|url| !self.own.contains(*url))
            .filter(fits)
            .take(BUNDLE_URLS_MAX)
            .cloned()
            .collect();
        if self.asked.is_empty() {
            return Err(self);
        }
        let (bundle, keyed) = self.bundle_of(&self.asked);
        let (nonce, robots) = (self.nonce, self.robots);
        Ok(Held::of(bundle, nonce, keyed, robots, Purpose::Check(self)))
    }

    /// Does whoever offered the bundle still want it?
    pub(crate) fn is_still_wanted(&self) -> bool {
        self.is_wanted.as_ref().is_none_or(|is_wanted| is_wanted())
    }

    fn bundle_of(&self, urls: &[String]) -> (Leased, Vec<bool>) {
        let asks = urls.iter().filter_map(|url| self.said.get(url));
        let (urls, keyed) = asks.map(|said| (said.ask.clone(), said.keyed.is_some())).unzip();
        (Leased { urls, ..self.bundle.clone() }, keyed)
    }

    /// Somebody of another network has looked. What he found otherwise, or did not find, the node looks at.
    pub(crate) fn checked(mut self: Box<Case>, by: Hand, fetched: &BTreeMap<u16, Fetched>) {
        let node = self.node.clone();
        let mut left = self.checks.clone();
        let now_ms = node.now_ms();
        {
            let state = node.lock();
            for one in fetched.values() {
                let url = self.asked.get(usize::from(one.number)).unwrap_or(&one.url);
                let Some(said) = self.said.get(url) else { continue };
                let second = said.as_seen(one);
                let is_late = now_ms - said.time_ms > SLOT_MS as i64;
                match state.trust.compare(hash(url), &said.view, &second) {
                    Likeness::Same => drop(self.confirmed.insert(url.clone())),
                    Likeness::Nothing => {}
                    Likeness::Differ if is_late => {}
                    Likeness::Differ | Likeness::Place => {
                        let raw = said.raw(one);
                        self.seconds.insert(url.clone(), raw);
                        continue;
                    }
                }
                if second.status != 0 {
                    self.seen_elsewhere.insert(url.clone());
                }
                left.remove(url);
            }
        }
        self.second = Some(by);
        self.checks = left;
        self.hand_over();
    }

    /// Gives everything to whoever offered the bundle, who looks at what is left to be looked at.
    pub(crate) fn hand_over(mut self: Box<Case>) {
        let Some(done) = self.done.take() else { return };
        let exchanges = std::mem::take(&mut self.exchanges);
        let again = self.asks(self.checks.iter());
        let judge = Box::new(move |theirs, ours| self.looked(theirs, ours));
        done(Back::Brought(Brought { exchanges, again, judge }));
    }

    fn asks<'u>(&self, urls: impl Iterator<Item = &'u String>) -> Vec<BundleUrl> {
        urls.filter_map(|url| self.said.get(url)).map(|said| said.ask.clone()).collect()
    }

    fn our_view(&self, url: &Url, exchange: &Exchange) -> View {
        let (seen, digest) = seen::look(url, exchange, &How::THOROUGH);
        let known = self.said.get(url.as_str()).and_then(|said| said.known).filter(|_| seen.status == 304);
        match known {
            Some(known) => View { status: 200, digest: Digest::Plain(known), ..View::default() },
            None => View { status: seen.status, digest, text: seen.text, links: seen.links, head: seen.head },
        }
    }

    /// What somebody saw, in the terms of what the node saw: of a keyed digest it can tell whether it is that of the same bytes.
    fn beside(&self, view: &View, ours: &View, exchange: &Exchange) -> View {
        let Digest::Keyed(digest) = view.digest else { return *view };
        let bytes = exchange.response.bytes(exchange.head_bytes as u64, ANSWER_BYTES_MAX).unwrap_or_default();
        match message::keyed(&self.nonce, &seen::payload(exchange.head.as_ref(), &bytes)) == digest {
            true => View { digest: ours.digest, ..*view },
            false => *view,
        }
    }

    /// The node has looked as well.
    fn looked(mut self: Box<Case>, mut theirs: Vec<(Url, Exchange)>, ours: Vec<(Url, Exchange)>) -> Round<Exchange> {
        let node = self.node.clone();
        let (mut again, mut replaced, mut looked) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        // Pages are taken apart before anybody waits for it.
        let ours: Vec<(String, View, Exchange)> = ours
            .into_iter()
            .map(|(url, exchange)| (url.as_str().to_owned(), self.our_view(&url, &exchange), exchange))
            .collect();
        for (url, seen, exchange) in &ours {
            if let Some(second) = self.seconds.get(url).map(|second| self.beside(second, seen, exchange)) {
                self.seconds.insert(url.clone(), second);
            }
        }
        let (state, now_ms) = (node.lock(), node.now_ms());
        for (url, seen, exchange) in ours {
            let Some(said) = self.said.get(&url) else { continue };
            looked.insert(url.clone());
            if said.is_out_of_order(&seen, &self.nonce, now_ms) {
                continue;
            }
            let compared = state.trust.compare(hash(&url), &said.view, &seen);
            let second = self.seconds.get(&url);
            let second_differs =
                second.is_some_and(|second| state.trust.compare(hash(&url), second, &seen) == Likeness::Differ);
            // The page may have changed since.
            let is_late = now_ms - said.time_ms > SLOT_MS as i64;
            if compared != Likeness::Place && seen.status != 0 {
                self.seen_elsewhere.insert(url.clone());
            }
            match compared {
                Likeness::Same => {
                    self.confirmed.insert(url.clone());
                    self.by_node.insert(url.clone());
                }
                Likeness::Nothing => {}
                Likeness::Place => {
                    self.turned_away.0 += usize::from(is_turned_away(said.view.status));
                    self.vantages.entry(url.clone()).or_default().push(self.first.saw(&said.view));
                    replaced.insert(url.clone(), exchange);
                }
                Likeness::Differ => drop(replaced.insert(url.clone(), exchange)),
            }
            if let (Some(by), Some(second)) = (&self.second, second)
                && state.trust.compare(hash(&url), second, &seen) == Likeness::Place
            {
                self.vantages.entry(url.clone()).or_default().push(by.saw(second));
            }
            if (compared == Likeness::Differ || second_differs) && !is_late {
                self.ours.insert(url.clone(), seen);
                again.push(url);
            }
        }
        drop(state);
        self.turned_away.1 = looked.len();
        // What was to be looked at and was not, for the time was over or the site wanted to be left alone, is nobody's word: it is fetched again,
        // and whoever comes so late that nobody can look earns no trust by it.
        let unseen = |url: &str| self.checks.contains(url) && !looked.contains(url);
        theirs.retain(|(url, _)| !unseen(url.as_str()));
        self.is_partial |= self.checks.iter().any(|url| !looked.contains(url));
        // Where the node saw something else, what it saw is kept.
        for (url, exchange) in &mut theirs {
            if let Some(ours) = replaced.remove(url.as_str()) {
                *exchange = ours;
            }
        }
        if again.is_empty() {
            return self.decided(theirs, Vec::new());
        }
        let again = self.asks(again.iter());
        Round::Again(Brought {
            exchanges: theirs,
            again,
            judge: Box::new(move |theirs, ours| self.decided(theirs, ours)),
        })
    }

    /// The node has looked twice where it had to: who was wrong?
    fn decided(mut self: Box<Case>, theirs: Vec<(Url, Exchange)>, ours: Vec<(Url, Exchange)>) -> Round<Exchange> {
        let node = self.node.clone();
        let mut views: Vec<(String, View)> = Vec::with_capacity(ours.len());
        for (url, exchange) in ours {
            let (seen, url) = (self.our_view(&url, &exchange), url.as_str().to_owned());
            if let Some(second) = self.seconds.get(&url).map(|second| self.beside(second, &seen, &exchange)) {
                self.seconds.insert(url.clone(), second);
            }
            views.push((url, seen));
        }
        let mut state = node.lock();
        let (mut alone, mut second_alone) = (Vec::new(), Vec::new());
        for (url, later) in views {
            let (Some(said), Some(sooner)) = (self.said.get(&url), self.ours.get(&url)) else { continue };
            let second = self.seconds.get(&url).unwrap_or(sooner);
            match state.trust.decide(hash(&url), &said.view, second, &[*sooner, later]) {
                Wrong::Nobody => {}
                Wrong::First => alone.push(url),
                Wrong::Second => second_alone.push((url, *second)),
                Wrong::Both => {
                    second_alone.push((url.clone(), *second));
                    alone.push(url);
                }
            }
        }
        let mut again = Vec::new();
        if let Some(second) = self.second.clone().filter(|_| !second_alone.is_empty()) {
            if second.place.is_known() {
                // It may look like that from there; and whoever only checks cannot alter anything.
                for (url, view) in second_alone {
                    self.vantages.entry(url).or_default().push(second.saw(&view));
                }
            } else if state.trust.alone(&second.key, ALONE_MAX) {
                (state, again) = node.lied(state, &second.key);
            }
            state.book.touch();
        }
        if alone.is_empty() {
            return Round::Over(self.over(state, theirs, again));
        }
        if alone.iter().any(|url| self.said.get(url).is_some_and(|said| said.secret.is_some())) {
            return Round::Over(self.alone(state, theirs, again, 0));
        }
        if !self.first.place.is_known() {
            return Round::Over(self.alone(state, theirs, again, ALONE_MAX));
        }
        // The table says where it is: perhaps it looks like that from there.
        let (bundle, keyed) = self.bundle_of(&alone);
        let (tell, told) = oneshot::channel();
        let (nonce, robots) = (self.nonce, self.robots);
        let opinion = Opinion { case: *self, theirs, alone, is_only_one: false, tell };
        let held = Held::of(bundle, nonce, keyed, robots, Purpose::Opinion(Box::new(opinion)));
        if let Err(held) = node.ask_others(&mut state, held)
            && let Purpose::Opinion(opinion) = held.purpose
        {
            let Opinion { case, theirs, .. } = *opinion;
            return Round::Over(case.alone(state, theirs, again, ALONE_OF_PLACE_MAX));
        }
        drop(state);
        Round::Later(Box::pin(async move {
            match told.await {
                Ok(Round::Over(Believed { exchanges, again: more })) => {
                    again.extend(more);
                    Round::Over(Believed { exchanges, again })
                }
                Ok(round) => round,
                // The node is gone, and nothing is believed.
                Err(_) => Round::Over(Believed { exchanges: Vec::new(), again }),
            }
        }))
    }

    /// The first one was alone with what it saw; if that happened so often, it has lied.
    fn alone(
        &self,
        mut state: MutexGuard<'_, State>,
        theirs: Vec<(Url, Exchange)>,
        mut again: Vec<String>,
        most: u32,
    ) -> Believed<Exchange> {
        state.book.touch();
        if state.trust.alone(&self.first.key, most) {
            again.extend(self.node.lied(state, &self.first.key).1);
        }
        disbelieved(theirs, again)
    }

    /// Nobody lied, as far as anybody looked: what it came to is counted.
    fn over(
        mut self: Box<Case>,
        mut state: MutexGuard<'_, State>,
        mut theirs: Vec<(Url, Exchange)>,
        again: Vec<String>,
    ) -> Believed<Exchange> {
        let now_ms = self.node.now_ms();
        // It was found to lie while this was looked at: what only it saw is fetched again, and so is this.
        if state.trust.is_suspended(&self.first.key, now_ms) {
            return disbelieved(theirs, again);
        }
        if self.second.as_ref().is_some_and(|second| state.trust.is_suspended(&second.key, now_ms)) {
            self.confirmed.retain(|url| self.by_node.contains(url));
            self.seen_elsewhere.retain(|url| self.by_node.contains(url));
        }
        let mut work = Work { urls: self.urls, bytes: self.bytes, ..Work::default() };
        work.by_place = self.vantages.len() as u64;
        let mut checked = Work::default();
        for (url, exchange) in &mut theirs {
            if let Some(vantages) = self.vantages.remove(url.as_str()) {
                exchange.vantages = vantages;
            }
            let Some(said) = self.said.get(url.as_str()) else { continue };
            let was_checked = self.confirmed.contains(url.as_str());
            let hashed = hash(url.as_str());
            if was_checked {
                let second = self.second.as_ref().filter(|_| !self.by_node.contains(url.as_str()));
                let (by, origin) = second.map_or((&NODE, Origin::default()), |second| (&second.key, second.origin));
                state.trust.witness(by, origin, hashed, &said.view, now_ms);
                checked.confirmed += u64::from(second.is_some());
            }
            let Some(brought) = &mut exchange.brought else { continue };
            let confirmed = state.trust.witness(&self.first.key, self.first.origin, hashed, &said.view, now_ms);
            brought.confirmed = confirmed || was_checked;
            brought.seen_elsewhere = brought.confirmed || self.seen_elsewhere.contains(url.as_str());
            if brought.confirmed {
                work.confirmed += 1;
                work.wanted_bytes += if said.unchanged { 0 } else { exchange.response.len() };
            } else {
                state.note_unconfirmed(&self.first.key, url.as_str(), now_ms);
            }
        }
        // Whoever does not look and says that he was turned away earns no trust by it.
        let (turned_away, looked) = self.turned_away;
        match self.is_partial || turned_away > 0 {
            true => state.trust.partly(&self.first.key, work),
            false => state.trust.good(&self.first.key, work),
        }
        if turned_away * 2 > looked {
            state.trust.doubted(&self.first.key);
        }
        if let Some(second) = &self.second {
            let looked = second.looked;
            state.trust.partly(&second.key, Work { urls: looked.0, bytes: looked.1, checks: looked.0, ..checked });
        }
        state.book.touch();
        Believed { exchanges: theirs, again }
    }
}

impl Opinion {
    /// The case it is about.
    pub(crate) fn case(&self) -> &Case {
        &self.case
    }

    /// Somebody of the same place has looked.
    pub(crate) fn given(self: Box<Opinion>, by: &Hand, fetched: &BTreeMap<u16, Fetched>) {
        let all = (0..self.alone.len()).all(|number| fetched.keys().any(|known| usize::from(*known) == number));
        if !all {
            return self.unanswered();
        }
        let Opinion { mut case, theirs, alone, is_only_one, tell } = *self;
        let node = case.node.clone();
        let mut state = node.lock();
        let (mut by_place, mut lied) = (true, false);
        for (number, url) in alone.iter().enumerate() {
            let one = u16::try_from(number).ok().and_then(|number| fetched.get(&number));
            let (Some(said), Some(one), Some(ours)) = (case.said.get(url), one, case.ours.get(url)) else { continue };
            if state.trust.compare(hash(url), &said.view, &said.as_seen(one)) == Likeness::Same {
                continue;
            }
            by_place = false;
            // It looks from there as it looks from here.
            let found = theirs.iter().find(|(known, _)| known.as_str() == url).map(|(_, exchange)| exchange);
            let raw = said.raw(one);
            let second = found.map_or(raw, |exchange| case.beside(&raw, ours, exchange));
            lied |= state.trust.compare(hash(url), &second, ours) == Likeness::Same;
        }
        let believed = if by_place {
            for url in &alone {
                let Some(said) = case.said.get(url) else { continue };
                let lines = [case.first.saw(&said.view), by.saw(&said.view)];
                case.vantages.entry(url.clone()).or_default().extend(lines);
            }
            // Two who could have agreed on it beforehand: nothing is held against the first one, and no trust is earned by it. All that he brings
            // is looked at, and what the node sees is kept.
            let now_ms = node.now_ms();
            if is_only_one || !state.trust.is_proven(&by.key, now_ms) {
                case.is_partial = true;
                state.trust.doubted(&case.first.key);
            }
            Box::new(case).over(state, theirs, Vec::new())
        } else {
            // Three looks and three pages prove less.
            case.alone(state, theirs, Vec::new(), if lied { ALONE_MAX } else { ALONE_OF_PLACE_MAX })
        };
        // A crawl that has ended wants nothing any more.
        let _ended = tell.send(Round::Over(believed));
    }

    /// Nobody of the same place came back.
    pub(crate) fn unanswered(self: Box<Opinion>) {
        let Opinion { case, theirs, tell, .. } = *self;
        let node = case.node.clone();
        let _ended = tell.send(Round::Over(case.alone(node.lock(), theirs, Vec::new(), ALONE_OF_PLACE_MAX)));
    }
}

/// Only what the node saw itself is kept.
fn disbelieved(mut theirs: Vec<(Url, Exchange)>, again: Vec<String>) -> Believed<Exchange> {
    theirs.retain(|(_, exchange)| exchange.brought.is_none());
    Believed { exchanges: theirs, again }
}
