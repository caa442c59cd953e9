//! Who is believed, and how much is checked. Pure: time and chance come in.
//!
//! ```text
//!  new key ── proof of work, subnet's quota ──▶ everything is checked ── 10 good bundles ──▶ 1 bundle in n, and 2 % of URLs always
//!                                                     ▲                                                │
//!                                                     └──── one proven lie: suspended, n = 0, what nobody else saw is fetched again
//! ```
//! A check is a second fetch in the same slot of ten minutes, by a contributor of another network or by the node. Two views that differ are no
//! proof: the node looks, and looks again, which tells who was alone, or that the page is never twice the same. Where the table of networks
//! says where somebody is, one more of that place is asked: what differs by place is kept as such. A page may have changed between two looks:
//! whoever was alone once is checked in full from then on, and has lied if it happens again and again. A known page proves a lie at once.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::limits::{
    CHANGED_ONE_IN, CLASSES_MAX, CONTRIBUTORS_MAX, FLOOR_PERMILLE, GOOD_BUNDLES, KEYS_AROUND_MAX, KEYS_AROUND_PER_BIT,
    KEYS_PER_BIT, KEYS_PER_NODE_MAX, KEYS_PER_SUBNET_MAX, NOISE_BITS, SUSPENDED_MS, UNCONFIRMED_MS, WITNESSED_MAX,
    WORK_BITS,
};
use crate::message::{Digest, Fetched};

/// The public key of a contributor.
pub type Key = [u8; 32];
/// A network: the number of its announced prefix. Contributors of one network do not confirm each other.
pub type Network = u64;
/// A URL, by its hash.
pub type UrlHash = u64;

/// From where somebody looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// His network.
    pub network: Network,
    /// The wider one around it, of which new keys are counted as well: who has that has as many of the narrow ones as he likes.
    pub around: Option<Network>,
    /// The node that says so, by a number, where he speaks through another one: it might say of anybody that he is anywhere.
    pub through: Option<u64>,
}

impl Origin {
    /// Do they see for each other? Not from one network, and not on the word of one other node.
    pub fn is_apart(self, other: Origin) -> bool {
        self.network != other.network && (self.through.is_none() || self.through != other.through)
    }
}

impl From<Network> for Origin {
    fn from(network: Network) -> Origin {
        Origin { network, around: None, through: None }
    }
}

/// Where a network is, by the two letters of its country; zeros where nobody says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place(pub [u8; 2]);

impl Place {
    /// Does the table say where it is?
    pub fn is_known(self) -> bool {
        self != Place::default()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_known() { std::str::from_utf8(&self.0).unwrap_or_default() } else { "" })
    }
}

/// The node, where it is one of two who looked.
pub const NODE: Key = [0; 32];

/// What somebody saw at a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The status; 0 if no answer came.
    pub status: u16,
    /// Of the payload; two are compared only if they are of one kind.
    pub digest: Digest,
    /// Simhash of the text.
    pub text: u64,
    /// Digest of the set of links.
    pub links: u64,
    /// Digest of the headers that matter; 0 where nobody said what they are.
    pub head: u64,
}

impl View {
    /// As somebody told it.
    pub fn of(told: &Fetched) -> View {
        let Fetched { status, digest, text, links, head, .. } = *told;
        View { status, digest, text, links, head }
    }
}

/// How a URL behaves when it is fetched twice in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The same bytes.
    Stable,
    /// The same text and links, other bytes.
    Noisy,
    /// Anything.
    Volatile,
}

/// What two fetches in a row of a URL showed, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct History {
    alike: u8,
    other_bytes: u8,
    other_text: u8,
    other_links: u8,
    other_head: u8,
}

/// How two views compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// The same bytes, or near enough for a page of its class.
    Same,
    /// Nothing can be said: the page is never twice the same.
    Nothing,
    /// One of them is turned away, by place: 403, 451 and their like, or gets no answer at all.
    Place,
    /// They differ as no two looks at this page should.
    Differ,
}

/// Who was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nobody: the page is never twice the same, or differs by place.
    Nobody,
    /// The one whose result is checked.
    First,
    /// The one who checked.
    Second,
    /// Both, each in another way or in the same.
    Both,
}

/// An answer that turns somebody away, which may be by place; 0: none at all.
pub fn is_turned_away(status: u16) -> bool {
    matches!(status, 0 | 401 | 403 | 406 | 407 | 429 | 451 | 503 | 511)
}

/// What is known of a contributor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Milliseconds since 1970.
    pub since_ms: i64,
    /// When it last asked.
    pub last_ms: i64,
    /// Its network, as it was last seen.
    pub network: Network,
    /// The address it last came from.
    #[serde(default)]
    pub address: String,
    /// Its team.
    #[serde(default)]
    pub team: String,
    /// Good bundles in a row.
    pub good: u32,
    /// Bundles that came back.
    pub bundles: u64,
    /// URLs in them.
    pub urls: u64,
    /// Bytes that sites sent it, as far as it says.
    pub bytes: u64,
    /// URLs that were checked and found right, or that others confirmed.
    pub confirmed: u64,
    /// Differences by place.
    pub by_place: u64,
    /// What it is owed: confirmed and wanted work.
    pub credit: u64,
    /// Proven lies.
    pub lies: u32,
    /// Until when nothing is given to it; `i64::MAX` until a person says otherwise.
    pub suspended_until_ms: i64,
    /// A person trusts it: only the floor is checked.
    #[serde(default)]
    pub vouched: bool,
    /// How often it was alone with what it saw.
    #[serde(default)]
    pub doubts: u32,
    /// The same since ten bundles in a row were good.
    #[serde(default)]
    pub alone: u32,
    /// URLs that it fetched a second time, to check what others brought.
    #[serde(default)]
    pub checks: u64,
}

impl Standing {
    /// In a word.
    pub fn word(&self, now_ms: i64) -> &'static str {
        match () {
            () if self.suspended_until_ms > now_ms => "suspended",
            () if self.vouched => "vouched",
            () if self.good >= GOOD_BUNDLES => "trusted",
            () => "new",
        }
    }
}

/// What became of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// It may ask.
    Welcome,
    /// So many bits of work first.
    Work(u8),
    /// Not before then.
    Suspended(i64),
    /// Too many new keys from its subnet today, or too many in all.
    Crowded,
}

/// A result that only one network has seen so far.
#[derive(Clone, Debug)]
struct Witness {
    view: View,
    by: Vec<(Key, Origin)>,
    time_ms: i64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    standings: BTreeMap<Key, Standing>,
    newcomers: HashMap<Network, (i64, u32)>,
    classes: HashMap<UrlHash, History>,
    witnessed: HashMap<UrlHash, Witness>,
    order: VecDeque<(i64, UrlHash)>,
}

const DAY_MS: i64 = 86_400_000;

impl Trust {
    /// What was known before.
    pub fn with(standings: BTreeMap<Key, Standing>) -> Trust {
        Trust { standings, ..Trust::default() }
    }

    /// Everybody.
    pub fn standings(&self) -> &BTreeMap<Key, Standing> {
        &self.standings
    }

    /// One of them.
    pub fn of(&mut self, key: &Key) -> Option<&mut Standing> {
        self.standings.get_mut(key)
    }

    /// Somebody comes. `bits`: what his proof of work is worth.
    pub fn greet(&mut self, key: &Key, origin: impl Into<Origin>, bits: u8, now_ms: i64) -> Greeting {
        let Origin { network, around, through } = origin.into();
        if let Some(known) = self.standings.get_mut(key) {
            (known.last_ms, known.network) = (now_ms, network);
            return match known.suspended_until_ms > now_ms {
                true => Greeting::Suspended(known.suspended_until_ms),
                false => Greeting::Welcome,
            };
        }
        self.newcomers.retain(|_, (since_ms, _)| now_ms - *since_ms < DAY_MS);
        let newcomers = |of: Network| self.newcomers.get(&of).map_or(0, |(_, count)| *count);
        let (count, count_around) = (newcomers(network), around.map_or(0, newcomers));
        let too_many_through = through.is_some_and(|node| newcomers(node) >= KEYS_PER_NODE_MAX);
        let too_many = count >= KEYS_PER_SUBNET_MAX || count_around >= KEYS_AROUND_MAX || too_many_through;
        if too_many || self.standings.len() >= CONTRIBUTORS_MAX {
            return Greeting::Crowded;
        }
        let more = (count / KEYS_PER_BIT).max(count_around / KEYS_AROUND_PER_BIT);
        let wanted = WORK_BITS.saturating_add(u8::try_from(more).unwrap_or(u8::MAX));
        if bits < wanted {
            return Greeting::Work(wanted);
        }
        for of in [Some(network), around, through].into_iter().flatten() {
            let (since_ms, count) = self.newcomers.entry(of).or_default();
            (*since_ms, *count) = (now_ms, *count + 1);
        }
        let standing = Standing { since_ms: now_ms, last_ms: now_ms, network, ..Standing::default() };
        self.standings.insert(*key, standing);
        Greeting::Welcome
    }

    /// Does it know its trade: may it check what others bring?
    pub fn is_proven(&self, key: &Key, now_ms: i64) -> bool {
        let standing = self.standings.get(key).filter(|known| known.suspended_until_ms <= now_ms);
        standing.is_some_and(|known| known.vouched || known.good >= GOOD_BUNDLES)
    }

    /// Which of so many URLs are fetched a second time. `is_changed` tells those that are said to be other than the archive has them; `chance`
    /// gives random numbers.
    pub fn checks(
        &self,
        key: &Key,
        urls: usize,
        is_changed: impl Fn(usize) -> bool,
        chance: &mut dyn FnMut() -> u64,
    ) -> Vec<usize> {
        let (good, vouched) = self.standings.get(key).map_or((0, false), |known| (known.good, known.vouched));
        let all = match (vouched, good) {
            (true, _) => false,
            (false, good) if good < GOOD_BUNDLES => true,
            (false, good) => chance().is_multiple_of(u64::from(good)),
        };
        let mut is_drawn =
            |at: usize| chance() % 1_000 < FLOOR_PERMILLE || is_changed(at) && chance().is_multiple_of(CHANGED_ONE_IN);
        (0..urls).filter(|at| all || is_drawn(*at)).collect()
    }

    /// Was it alone with what it saw, and has not brought enough since to be believed again?
    pub fn is_doubted(&self, key: &Key) -> bool {
        self.standings.get(key).is_some_and(|known| known.alone > 0)
    }

    /// The class of a URL, as far as it showed; nothing before it was fetched twice in a row.
    pub fn class(&self, url: UrlHash) -> Option<Class> {
        let history = self.classes.get(&url)?;
        Some(match history {
            History { other_text: 0, other_links: 0, other_bytes: 0, .. } => Class::Stable,
            History { other_text: 0, .. } => Class::Noisy,
            _ => Class::Volatile,
        })
    }

    /// Somebody whom we believe fetched a URL twice in a row.
    pub fn learn(&mut self, url: UrlHash, one: &View, two: &View) {
        if self.classes.len() >= CLASSES_MAX && !self.classes.contains_key(&url) {
            self.classes.clear(); // learned anew by those who are checked next
        }
        let history = self.classes.entry(url).or_default();
        let more = |count: &mut u8| *count = count.saturating_add(1);
        if one.head != two.head {
            more(&mut history.other_head);
        }
        if one.digest == two.digest {
            return more(&mut history.alike);
        }
        more(&mut history.other_bytes);
        if (one.text ^ two.text).count_ones() > NOISE_BITS {
            more(&mut history.other_text);
        }
        if one.links != two.links {
            more(&mut history.other_links);
        }
    }

    /// How two views of a URL, in one slot of time, compare.
    pub fn compare(&self, url: UrlHash, one: &View, two: &View) -> Likeness {
        if one.status != two.status {
            return match is_turned_away(one.status) || is_turned_away(two.status) {
                true => Likeness::Place,
                false => Likeness::Differ,
            };
        }
        let history = self.classes.get(&url).copied().unwrap_or_default();
        // The same bytes under another `Location` or `Content-Type` are another page.
        let heads_differ = one.head != 0 && two.head != 0 && one.head != two.head;
        if heads_differ && history.other_head == 0 {
            return Likeness::Differ;
        }
        // Where the headers are never twice the same, the bytes speak still: they may prove a difference, and confirm nobody.
        let same = if heads_differ { Likeness::Nothing } else { Likeness::Same };
        if one.digest == two.digest {
            return same;
        }
        match self.class(url) {
            Some(Class::Volatile) => Likeness::Nothing,
            // Whoever was told that nothing changed has seen no text: of a page with other bytes each time that says nothing.
            Some(Class::Noisy) if [one, two].iter().any(|view| view.text == 0 && view.links == 0) => Likeness::Nothing,
            Some(Class::Noisy) => {
                let text = (one.text ^ two.text).count_ones() <= NOISE_BITS;
                let links = one.links == two.links || history.other_links > 0;
                if text && links { same } else { Likeness::Differ }
            }
            Some(Class::Stable) | None => Likeness::Differ,
        }
    }

    /// Two views differ; the node looked, and looked again. Who was wrong?
    pub fn decide(&mut self, url: UrlHash, first: &View, second: &View, ours: &[View; 2]) -> Wrong {
        self.learn(url, &ours[0], &ours[1]);
        let agrees =
            |trust: &Trust, view: &View| ours.iter().any(|our| trust.compare(url, view, our) != Likeness::Differ);
        match (agrees(self, first), agrees(self, second)) {
            (true, true) => Wrong::Nobody,
            (false, true) => Wrong::First,
            (true, false) => Wrong::Second,
            (false, false) => Wrong::Both,
        }
    }

    /// A contributor brought a payload. Says whether somebody of another network saw the same; else it is remembered for a day.
    pub fn witness(&mut self, key: &Key, origin: impl Into<Origin>, url: UrlHash, view: &View, now_ms: i64) -> bool {
        let origin = origin.into();
        while let Some((time_ms, old)) = self.order.front().copied() {
            if now_ms - time_ms <= UNCONFIRMED_MS && self.order.len() <= WITNESSED_MAX {
                break;
            }
            self.order.pop_front();
            if self.witnessed.get(&old).is_some_and(|witness| witness.time_ms <= time_ms) {
                self.witnessed.remove(&old);
            }
        }
        let before = self.witnessed.get(&url).map(|witness| witness.view);
        let same = before.is_some_and(|before| self.compare(url, &before, view) == Likeness::Same);
        let witness =
            self.witnessed.entry(url).or_insert_with(|| Witness { view: *view, by: Vec::new(), time_ms: now_ms });
        if before.is_some() && !same {
            *witness = Witness { view: *view, by: Vec::new(), time_ms: now_ms };
        }
        if witness.by.is_empty() {
            self.order.push_back((now_ms, url));
        }
        if witness.by.len() < 4 && witness.by.iter().all(|(_, known)| known.is_apart(origin)) {
            witness.by.push((*key, origin));
        }
        witness.by.len() > 1
    }

    /// How many networks saw the payload that was seen last.
    pub fn witnesses(&self, url: UrlHash) -> usize {
        self.witnessed.get(&url).map_or(0, |witness| witness.by.len())
    }

    /// A bundle is back and nothing was wrong with it.
    pub fn good(&mut self, key: &Key, work: Work) {
        if let Some(known) = self.standings.get_mut(key) {
            known.good = known.good.saturating_add(1);
            if known.good >= GOOD_BUNDLES {
                known.alone = 0;
            }
            known.count(work);
        }
    }

    /// The same, where less came back than was given: it counts, but earns no trust.
    pub fn partly(&mut self, key: &Key, work: Work) {
        if let Some(known) = self.standings.get_mut(key) {
            known.count(work);
        }
    }

    /// It was alone with what it saw. Once, that is no proof: the page may have changed meanwhile, or look like that from there; but it is
    /// believed as little as one who has just come. Says whether it happened so often that it has lied.
    pub fn alone(&mut self, key: &Key, most: u32) -> bool {
        self.standings.get_mut(key).is_some_and(|known| {
            (known.good, known.vouched) = (0, false);
            (known.doubts, known.alone) = (known.doubts.saturating_add(1), known.alone.saturating_add(1));
            known.alone >= most
        })
    }

    /// Others were not turned away where it says it was, again and again: all that it brings is looked at.
    pub fn doubted(&mut self, key: &Key) {
        if let Some(known) = self.standings.get_mut(key) {
            (known.good, known.vouched) = (0, false);
        }
    }

    /// Is nothing given to it now?
    pub fn is_suspended(&self, key: &Key, now_ms: i64) -> bool {
        self.standings.get(key).is_some_and(|known| known.suspended_until_ms > now_ms)
    }

    /// One proven lie. Returns what nobody else has seen of the last day: it is fetched again.
    pub fn lied(&mut self, key: &Key, now_ms: i64) -> Vec<UrlHash> {
        if let Some(known) = self.standings.get_mut(key) {
            known.lies = known.lies.saturating_add(1);
            (known.good, known.vouched, known.alone) = (0, false, 0);
            let times = 1i64 << known.lies.saturating_sub(1).min(12);
            known.suspended_until_ms = known.suspended_until_ms.max(now_ms.saturating_add(SUSPENDED_MS * times));
        }
        let mut again = Vec::new();
        for (url, witness) in &mut self.witnessed {
            let before = witness.by.len();
            witness.by.retain(|(by, _)| by != key);
            if witness.by.len() < before && witness.by.len() < 2 && now_ms - witness.time_ms <= UNCONFIRMED_MS {
                again.push(*url);
            }
        }
        self.witnessed.retain(|_, witness| !witness.by.is_empty());
        again.sort_unstable();
        again
    }
}

/// What a bundle came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// URLs that came back.
    pub urls: u64,
    /// Bytes that sites sent.
    pub bytes: u64,
    /// URLs that were checked and found right, or confirmed by others.
    pub confirmed: u64,
    /// Bytes of those that were wanted.
    pub wanted_bytes: u64,
    /// Differences by place.
    pub by_place: u64,
    /// URLs that were fetched to check others.
    pub checks: u64,
}

impl Standing {
    fn count(&mut self, work: Work) {
        let more = |count: &mut u64, by: u64| *count = count.saturating_add(by);
        more(&mut self.bundles, 1);
        more(&mut self.urls, work.urls);
        more(&mut self.bytes, work.bytes);
        more(&mut self.confirmed, work.confirmed);
        more(&mut self.by_place, work.by_place);
        more(&mut self.checks, work.checks);
        more(&mut self.credit, work.confirmed.saturating_add(work.wanted_bytes / 1_024));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ALONE_MAX;

    fn view(n: u8, text: u64) -> View {
        View { status: 200, digest: Digest::Plain([n; 20]), text, links: 7, head: 9 }
    }

    fn known(trust: &mut Trust, key: u8, network: Network) -> Key {
        assert_eq!(trust.greet(&[key; 32], network, 60, 0), Greeting::Welcome);
        [key; 32]
    }

    #[test]
    fn ten_good_bundles_and_then_less_is_checked_but_never_nothing() {
        let mut trust = Trust::default();
        let key = known(&mut trust, 1, 1);
        let mut seed = 1u64;
        let mut chance = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for _ in 0..GOOD_BUNDLES {
            assert_eq!(trust.checks(&key, 100, |_| false, &mut chance).len(), 100);
            trust.good(&key, Work::default());
        }
        let some: usize = (0..200).map(|_| trust.checks(&key, 100, |_| false, &mut chance).len()).sum();
        assert!((1_500..4_500).contains(&some), "one bundle in ten, and two of a hundred: {some}");
        (0..990).for_each(|_| trust.good(&key, Work::default()));
        let few: usize = (0..1_000).map(|_| trust.checks(&key, 100, |_| false, &mut chance).len()).sum();
        assert!((1_500..3_000).contains(&few), "the floor is two of a hundred: {few}");
        let more: usize = (0..1_000).map(|_| trust.checks(&key, 100, |at| at < 10, &mut chance).len()).sum();
        assert!((600..1_400).contains(&more.saturating_sub(few)), "and one in ten of those that changed: {more}");
    }

    #[test]
    fn one_lie_takes_it_all_away_and_sends_for_what_nobody_else_saw() {
        let mut trust = Trust::default();
        let (liar, other) = (known(&mut trust, 1, 1), known(&mut trust, 2, 2));
        (0..20).for_each(|_| trust.good(&liar, Work::default()));
        let seen = view(1, 5);
        assert!(!trust.witness(&liar, 1, 10, &seen, 0));
        assert!(!trust.witness(&liar, 1, 11, &seen, 0));
        assert!(trust.witness(&other, 2, 11, &seen, 5), "another network saw the same");
        assert!(!trust.witness(&other, 2, 12, &seen, 5));
        assert_eq!(trust.lied(&liar, 1_000), [10, 11]);
        let standing = &trust.standings()[&liar];
        assert_eq!((standing.good, standing.lies, standing.word(1_000)), (0, 1, "suspended"));
        assert_eq!(trust.greet(&liar, 1, 60, 1_000), Greeting::Suspended(1_000 + SUSPENDED_MS));
        assert_eq!(trust.greet(&liar, 1, 60, 1_000 + SUSPENDED_MS), Greeting::Welcome);
        assert_eq!(trust.checks(&liar, 5, |_| false, &mut || 999).len(), 5, "and begins anew");
    }

    #[test]
    fn two_of_one_network_do_not_confirm_each_other() {
        let mut trust = Trust::default();
        let (one, two) = (known(&mut trust, 1, 7), known(&mut trust, 2, 7));
        let seen = view(1, 5);
        assert!(!trust.witness(&one, 7, 1, &seen, 0) && !trust.witness(&two, 7, 1, &seen, 0));
        assert!(trust.witness(&NODE, 0, 1, &seen, 0));
        assert!(!trust.witness(&one, 7, 1, &view(2, 5), 0), "another payload begins anew");
    }

    #[test]
    fn one_node_does_not_make_many_networks_of_those_who_speak_through_it() {
        let mut trust = Trust::default();
        let through = |network, node: u64| Origin { through: Some(node << 40), ..Origin::from(network) };
        let seen = view(1, 5);
        assert!(!trust.witness(&[1; 32], through(1, 70), 1, &seen, 0));
        assert!(!trust.witness(&[2; 32], through(2, 70), 1, &seen, 0), "on the word of the same node");
        assert!(!trust.witness(&[3; 32], 1, 1, &seen, 0) && !trust.witness(&[3; 32], through(1, 71), 1, &seen, 0));
        assert!(trust.witness(&[4; 32], through(2, 71), 1, &seen, 0), "another node, another network");
        for network in 0..u64::from(KEYS_PER_NODE_MAX) {
            let mut key = [9; 32];
            key[..8].copy_from_slice(&network.to_le_bytes());
            assert_eq!(trust.greet(&key, through(network, 72), 63, 0), Greeting::Welcome);
        }
        assert_eq!(trust.greet(&[8; 32], through(9_999, 72), 63, 0), Greeting::Crowded);
        assert_eq!(trust.greet(&[8; 32], 9_999, 63, 0), Greeting::Welcome, "who comes himself");
    }

    #[test]
    fn new_keys_cost_work_and_count_against_their_subnet() {
        let mut trust = Trust::default();
        assert_eq!(trust.greet(&[1; 32], 5, 0, 0), Greeting::Work(WORK_BITS));
        let mut wanted = Vec::new();
        for key in 0..KEYS_PER_SUBNET_MAX {
            let key = [key as u8 + 1; 32];
            let Greeting::Work(bits) = trust.greet(&key, 5, 0, 0) else { panic!() };
            assert_eq!(trust.greet(&key, 5, bits, 0), Greeting::Welcome);
            wanted.push(bits);
        }
        assert!(wanted.is_sorted() && wanted[15] > wanted[0] + 5, "{wanted:?}");
        assert_eq!(trust.greet(&[99; 32], 5, 63, 0), Greeting::Crowded);
        assert_eq!(trust.greet(&[99; 32], 6, 63, 0), Greeting::Welcome, "another subnet");
        assert_eq!(trust.greet(&[98; 32], 5, 63, DAY_MS), Greeting::Welcome, "another day");
    }

    #[test]
    fn who_has_a_wide_network_does_not_have_as_many_keys_as_it_has_narrow_ones() {
        let mut trust = Trust::default();
        let of = |narrow: u64| Origin { around: Some(77 << 40), ..Origin::from(narrow) };
        let mut wanted = Vec::new();
        for narrow in 0..u64::from(KEYS_AROUND_MAX) {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&narrow.to_le_bytes());
            let Greeting::Work(bits) = trust.greet(&key, of(narrow), 0, 0) else { panic!() };
            assert_eq!(trust.greet(&key, of(narrow), bits, 0), Greeting::Welcome);
            wanted.push(bits);
        }
        assert!(wanted.is_sorted() && wanted.last() > wanted.first(), "each costs a little more");
        assert_eq!(trust.greet(&[9; 32], of(99_999), 63, 0), Greeting::Crowded);
        assert_eq!(trust.greet(&[9; 32], 99_999, 63, 0), Greeting::Welcome, "elsewhere");
        assert_eq!(trust.greet(&[8; 32], of(99_999), 63, DAY_MS), Greeting::Welcome, "another day");
    }

    #[test]
    fn a_page_that_is_never_twice_the_same_makes_nobody_a_liar() {
        let mut trust = Trust::default();
        let (a, b) = (view(1, 0), view(2, 0xffff));
        assert_eq!(trust.compare(1, &a, &b), Likeness::Differ);
        assert_eq!(trust.decide(1, &a, &b, &[view(3, 0xff00_0000), view(4, 0)]), Wrong::Nobody);
        assert_eq!(trust.class(1), Some(Class::Volatile));
        assert_eq!(trust.compare(1, &a, &b), Likeness::Nothing);
        // Other bytes, the same text: noisy. Another text there is a lie, and so are other links.
        assert_eq!(trust.decide(2, &view(1, 5), &view(2, 5), &[view(3, 5), view(4, 5)]), Wrong::Nobody);
        assert_eq!(trust.compare(2, &view(8, 5), &view(9, 4)), Likeness::Same);
        assert_eq!(trust.compare(2, &view(8, 5), &view(9, 0xffff_ffff)), Likeness::Differ);
        assert_eq!(trust.compare(2, &view(8, 5), &View { links: 8, ..view(9, 5) }), Likeness::Differ);
        assert_eq!(trust.compare(2, &view(8, 5), &View { links: 0, ..view(9, 0) }), Likeness::Nothing, "a 304");
    }

    #[test]
    fn the_same_bytes_under_other_headers_are_another_page() {
        let mut trust = Trust::default();
        let truth = view(1, 5);
        let forged = View { head: 10, ..truth };
        assert_eq!(trust.compare(1, &forged, &truth), Likeness::Differ);
        assert_eq!(trust.compare(1, &View { head: 0, ..truth }, &truth), Likeness::Same, "nobody said what they are");
        assert_eq!(trust.decide(1, &forged, &truth, &[truth, truth]), Wrong::First);
        // A page whose headers are never twice the same makes nobody a liar, and confirms nobody.
        let ours = [View { head: 11, ..truth }, View { head: 12, ..truth }];
        assert_eq!(trust.decide(2, &forged, &truth, &ours), Wrong::Nobody);
        assert_eq!(trust.compare(2, &forged, &truth), Likeness::Nothing);
    }

    #[test]
    fn whoever_sends_other_headers_where_they_vary_may_not_alter_the_bytes() {
        let mut trust = Trust::default();
        let head = |head, view: View| View { head, ..view };
        let truth = view(1, 5);
        trust.learn(1, &head(11, truth), &head(12, truth));
        assert_eq!(trust.class(1), Some(Class::Stable));
        let altered = head(13, view(2, 77));
        assert_eq!(trust.compare(1, &altered, &head(14, truth)), Likeness::Differ);
        assert_eq!(trust.decide(1, &altered, &head(14, truth), &[head(15, truth), head(16, truth)]), Wrong::First);
        assert_eq!(trust.compare(1, &head(11, altered), &head(11, truth)), Likeness::Differ, "nor under the same ones");
        // Where the bytes vary as well, but not the text.
        trust.learn(2, &head(11, view(3, 5)), &head(12, view(4, 5)));
        assert_eq!(trust.class(2), Some(Class::Noisy));
        assert_eq!(trust.compare(2, &head(13, view(5, 5)), &head(14, view(6, 5))), Likeness::Nothing);
        assert_eq!(trust.compare(2, &head(13, view(5, 0xffff_ffff)), &head(14, view(6, 5))), Likeness::Differ);
        assert_eq!(trust.compare(2, &head(14, view(5, 5)), &head(14, view(6, 5))), Likeness::Same);
    }

    #[test]
    fn once_alone_is_checked_in_full_and_again_and_again_is_a_lie() {
        let mut trust = Trust::default();
        let key = known(&mut trust, 1, 1);
        let good = |trust: &mut Trust| (0..GOOD_BUNDLES).for_each(|_| trust.good(&key, Work::default()));
        good(&mut trust);
        assert!(!trust.alone(&key, ALONE_MAX), "the page may have changed meanwhile");
        assert_eq!(trust.checks(&key, 5, |_| false, &mut || 999).len(), 5, "everything is checked");
        assert!(!trust.alone(&key, ALONE_MAX) && trust.is_doubted(&key));
        good(&mut trust);
        assert!(!trust.is_doubted(&key));
        assert!(!trust.alone(&key, ALONE_MAX) && !trust.alone(&key, ALONE_MAX), "counted anew after good work");
        assert!(trust.alone(&key, ALONE_MAX));
    }

    #[test]
    fn no_figure_runs_over() {
        let mut trust = Trust::default();
        let key = known(&mut trust, 1, 1);
        let work = Work { bytes: u64::MAX, confirmed: u64::MAX, wanted_bytes: u64::MAX, ..Work::default() };
        (0..2).for_each(|_| trust.good(&key, work));
        assert_eq!((trust.standings()[&key].bytes, trust.standings()[&key].credit), (u64::MAX, u64::MAX));
    }

    #[test]
    fn whoever_disagrees_with_a_steady_page_is_wrong() {
        let mut trust = Trust::default();
        let (truth, lie) = (view(1, 5), view(2, 5));
        assert_eq!(trust.decide(1, &lie, &truth, &[truth, truth]), Wrong::First);
        assert_eq!(trust.decide(1, &truth, &lie, &[truth, truth]), Wrong::Second);
        assert_eq!(trust.decide(1, &lie, &view(3, 5), &[truth, truth]), Wrong::Both);
        let turned_away = View { status: 403, ..view(9, 0) };
        assert_eq!(trust.compare(1, &turned_away, &truth), Likeness::Place);
        assert_eq!(trust.decide(1, &turned_away, &truth, &[truth, truth]), Wrong::Nobody);
        let gone = View { status: 404, ..view(9, 0) };
        assert_eq!(trust.decide(1, &gone, &truth, &[truth, truth]), Wrong::First);
    }
}
