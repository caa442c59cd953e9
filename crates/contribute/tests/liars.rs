//! Liars among contributors, in virtual time: the real trust, a web that is known, and volunteers of every kind.

use skep_contribute::limits::{
    ALONE_MAX, ALONE_OF_PLACE_MAX, DOUBTED_URLS_MAX, FLOOR_PERMILLE, GOOD_BUNDLES, OWN_CHECK_ONE_IN,
};
use skep_contribute::message::Digest;
use skep_contribute::trust::{Greeting, Key, Likeness, NODE, Network, Place, Trust, View, Work, Wrong};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a volunteer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Honest,
    /// Says what was there the last time, and does not look.
    NeverFetches,
    /// Says that nothing changed.
    Unchanged,
    /// Other links.
    Links,
    /// Another body.
    Bodies,
    /// The body as it is, under headers that lead elsewhere.
    Headers,
    /// Another body under other headers: where those are never twice the same, they excuse nothing.
    Both,
    /// What it saw itself some time ago; where a digest is keyed and an old one is worthless, it looks.
    Replays,
    /// Two of them, who tell the same tale.
    Pair(u64),
}

const LIARS: [Kind; 8] = [
    Kind::NeverFetches,
    Kind::Unchanged,
    Kind::Links,
    Kind::Bodies,
    Kind::Headers,
    Kind::Both,
    Kind::Replays,
    Kind::Pair(77),
];

/// Of the volunteers a quarter is of each; the table of networks does not know the last.
const PLACES: [Place; 4] = [Place(*b"FR"), Place(*b"DE"), Place(*b"US"), Place([0, 0])];
/// From here one page in forty looks otherwise.
const WALLED: Place = Place(*b"DE");

impl Kind {
    /// Does what it makes up differ from what the archive has? Who has not looked, or says that nothing changed, says what stands there.
    fn alters(self) -> bool {
        matches!(self, Kind::Links | Kind::Bodies | Kind::Headers | Kind::Both | Kind::Pair(_))
    }

    fn name(self) -> String {
        format!("{self:?}").split('(').next().unwrap_or_default().to_owned()
    }
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

struct Volunteer {
    key: Key,
    network: Network,
    place: Place,
    kind: Kind,
    bundles: u32,
    /// URLs that it could have been caught with, since it began to lie.
    falsified: u64,
    caught_after: Option<u64>,
    lost: bool,
}

/// A body that the archive has: who vouches for it, and whether it is true.
struct Kept {
    by: Key,
    true_one: bool,
    confirmed: bool,
}

struct World {
    trust: Trust,
    chance: Chance,
    volunteers: Vec<Volunteer>,
    /// The version of each URL.
    versions: Vec<u64>,
    archive: HashMap<u64, Kept>,
    now_ms: i64,
    next_key: u64,
    wronged: u64,
    by_place: u64,
    /// Honest ones who were alone with what they saw, for the page had changed.
    alone: u64,
}

/// Where the node is.
const HERE: Place = Place(*b"US");
const URLS: u64 = 40_000;
const BUNDLE: usize = 100;
/// Of so many checks one finds that the page has changed since.
const CHANGES_ONE_IN: u64 = 50_000;

fn digest(url: u64, version: u64, salt: u64) -> Digest {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&url.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[16..20].copy_from_slice(&(salt as u32).to_le_bytes());
    Digest::Plain(bytes)
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            trust: Trust::default(),
            chance: Chance(seed),
            volunteers: Vec::new(),
            versions: vec![0; URLS as usize],
            archive: HashMap::new(),
            now_ms: 0,
            next_key: 1,
            wronged: 0,
            by_place: 0,
            alone: 0,
        };
        // One in ten is a liar: two of each kind.
        let liars = 2 * LIARS.len();
        for number in 0..10 * liars {
            let kind = if number < liars { LIARS[number % LIARS.len()] } else { Kind::Honest };
            world.join(kind, 1_000 + number as u64);
        }
        world
    }

    fn join(&mut self, kind: Kind, network: Network) {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.next_key.to_le_bytes());
        self.next_key += 1;
        assert_eq!(self.trust.greet(&key, network, 63, self.now_ms), Greeting::Welcome);
        let place = PLACES[network as usize % PLACES.len()];
        let volunteer =
            Volunteer { key, network, place, kind, bundles: 0, falsified: 0, caught_after: None, lost: false };
        self.volunteers.push(volunteer);
    }

    /// What is there; some pages have other bytes each time, some nothing in common with themselves, and a few other headers each time.
    fn truth(&mut self, url: u64, from: Place) -> View {
        let walled = u64::from(url % 40 == 13 && from == WALLED) << 40;
        let version = self.versions[url as usize] + walled;
        let (noise, text) = match url % 20 {
            0 => (self.chance.next(), self.chance.next()),
            1 | 2 => (self.chance.next(), url.wrapping_mul(31) ^ version.wrapping_mul(0x5bd1_e995_7b17_0a3d)),
            _ => (0, url.wrapping_mul(31) ^ version.wrapping_mul(0x5bd1_e995_7b17_0a3d)),
        };
        let varies = if url % 100 == 4 { self.chance.next() << 8 } else { 0 };
        let head = 1 + (url.wrapping_mul(7) ^ version ^ varies);
        View { status: 200, digest: digest(url, version, noise), text, links: url ^ version, head }
    }

    /// What a volunteer says, and whether that is a lie.
    fn says(&mut self, who: usize, url: u64) -> (View, bool) {
        let truth = self.truth(url, self.volunteers[who].place);
        let (kind, bundles) = (self.volunteers[who].kind, self.volunteers[who].bundles);
        let checked_at_the_floor = bundles > 8 * GOOD_BUNDLES;
        if kind == Kind::Honest || !checked_at_the_floor || !self.chance.one_in(8) {
            return (truth, false);
        }
        let version = self.versions[url as usize];
        let told = match kind {
            Kind::Honest => truth,
            Kind::NeverFetches => View { digest: digest(url, version.wrapping_sub(1), 1), text: !truth.text, ..truth },
            Kind::Unchanged => {
                View { digest: digest(url, version.wrapping_sub(1), 0), text: truth.text.rotate_left(7), ..truth }
            }
            Kind::Links => View { digest: digest(url, version, 9), links: truth.links ^ 1, ..truth },
            Kind::Headers => View { head: truth.head ^ 0xff00, ..truth },
            Kind::Both => {
                View { digest: digest(url, version, 11), text: !truth.text, head: truth.head ^ 0xff00, ..truth }
            }
            Kind::Bodies => View { digest: digest(url, version, 10), text: !truth.text, ..truth },
            Kind::Replays if url % 10 == 3 => truth,
            Kind::Replays => {
                let old = version.wrapping_sub(1);
                let text = url.wrapping_mul(31) ^ old.wrapping_mul(0x5bd1_e995_7b17_0a3d);
                View { digest: digest(url, old, 0), text, links: url ^ old, ..truth }
            }
            Kind::Pair(tale) => View { digest: digest(url, version, tale), text: tale, links: tale, ..truth },
        };
        (told, told != truth)
    }

    /// One bundle of one volunteer, from asking to judgement.
    fn bundle(&mut self, who: usize) {
        let (key, network) = (self.volunteers[who].key, self.volunteers[who].network);
        if self.volunteers[who].lost || self.trust.greet(&key, network, 63, self.now_ms) != Greeting::Welcome {
            return;
        }
        let start = self.chance.next() % (URLS - BUNDLE as u64);
        let urls = if self.trust.is_doubted(&key) { DOUBTED_URLS_MAX } else { BUNDLE };
        let said: Vec<(u64, View, bool)> = (0..urls as u64)
            .map(|n| {
                let (view, lie) = self.says(who, start + n);
                (start + n, view, lie)
            })
            .collect();
        let mut chance = Chance(self.chance.next());
        let kind = self.volunteers[who].kind;
        let is_changed = |at: usize| match said[at] {
            (_, _, true) => kind.alters(),
            (url, _, false) => !self.archive.contains_key(&url),
        };
        let checks = self.trust.checks(&key, urls, is_changed, &mut || chance.next());
        let checks: BTreeSet<usize> = checks.into_iter().collect();
        self.volunteers[who].bundles += 1;
        if said.iter().any(|(.., lie)| *lie) {
            self.volunteers[who].falsified += said.iter().filter(|(url, ..)| url % 20 != 0).count() as u64;
        }
        let (mut alone, mut confirmed) = (None, BTreeSet::new());
        for at in checks {
            let (url, view, _) = said[at];
            // Between two looks a page may change.
            if self.chance.one_in(CHANGES_ONE_IN) {
                self.versions[url as usize] += 1;
                self.archive.remove(&url);
            }
            // By one of another network who knows his trade, nearly always; he may be of the same pair.
            let other = (self.chance.next() % self.volunteers.len() as u64) as usize;
            let by_other = !self.chance.one_in(OWN_CHECK_ONE_IN)
                && self.volunteers[other].network != network
                && !self.volunteers[other].lost
                && self.trust.is_proven(&self.volunteers[other].key, self.now_ms);
            let second = if by_other { self.says(other, url).0 } else { self.truth(url, HERE) };
            match self.trust.compare(url, &view, &second) {
                Likeness::Same => {
                    confirmed.insert(at);
                }
                Likeness::Nothing | Likeness::Place => {}
                Likeness::Differ => {
                    let ours = [self.truth(url, HERE), self.truth(url, HERE)];
                    let wrong = self.trust.decide(url, &view, &second, &ours);
                    if matches!(wrong, Wrong::First | Wrong::Both)
                        && let Some(most) = self.most(who, url, &view, &ours[0])
                    {
                        alone = Some(alone.map_or(most, |known: u32| known.min(most)));
                    }
                    // Whoever only checks cannot alter anything: where he may be right from his place, he is left alone.
                    if wrong == Wrong::Second && by_other && !self.volunteers[other].place.is_known() {
                        self.is_alone(other, ALONE_MAX);
                    }
                }
            }
        }
        if let Some(most) = alone {
            self.is_alone(who, most);
            return;
        }
        let mut work = Work { urls: urls as u64, ..Work::default() };
        for (at, (url, view, lie)) in said.iter().enumerate() {
            let steady = url % 20 != 0;
            if confirmed.contains(&at) {
                self.trust.witness(&NODE, 0, *url, view, self.now_ms);
            }
            let seen = self.trust.witness(&key, network, *url, view, self.now_ms) || confirmed.contains(&at);
            work.confirmed += u64::from(seen);
            if steady {
                let kept = Kept { by: key, true_one: !lie, confirmed: seen };
                self.archive.insert(*url, kept);
            }
        }
        self.trust.good(&key, work);
    }

    /// Who was alone with what he saw is not believed, and has lied if that happens again and again.
    fn is_alone(&mut self, who: usize, most: u32) {
        let key = self.volunteers[who].key;
        self.alone += u64::from(self.volunteers[who].kind == Kind::Honest);
        if self.trust.alone(&key, most) {
            self.catch(who);
        }
    }

    /// Before anything is held against somebody, another one of his place is asked, where the table says where that is. How often may he be alone,
    /// if he is? Less often if it looks from there as it looks to the node; if neither is so, less is proven.
    fn most(&mut self, who: usize, url: u64, view: &View, ours: &View) -> Option<u32> {
        let (place, network) = (self.volunteers[who].place, self.volunteers[who].network);
        if !place.is_known() {
            return Some(ALONE_MAX);
        }
        let others: Vec<usize> = (0..self.volunteers.len())
            .filter(|other| {
                let other = &self.volunteers[*other];
                other.place == place && other.network != network && !other.lost
            })
            .collect();
        let asked = others[(self.chance.next() % others.len() as u64) as usize];
        let said = self.says(asked, url).0;
        if self.trust.compare(url, view, &said) == Likeness::Same {
            self.by_place += 1;
            return None;
        }
        let lie = self.trust.compare(url, &said, ours) == Likeness::Same;
        Some(if lie { ALONE_MAX } else { ALONE_OF_PLACE_MAX })
    }

    fn catch(&mut self, who: usize) {
        let key = self.volunteers[who].key;
        if self.volunteers[who].lost {
            return;
        }
        if self.volunteers[who].kind == Kind::Honest {
            self.wronged += 1;
        }
        let again = self.trust.lied(&key, self.now_ms);
        let again: BTreeSet<u64> = again.into_iter().collect();
        // What only it had seen is fetched again; nothing of it stays.
        self.archive.retain(|url, kept| kept.by != key || (kept.confirmed && !again.contains(url)));
        let volunteer = &mut self.volunteers[who];
        if volunteer.caught_after.is_none() && volunteer.kind != Kind::Honest {
            volunteer.caught_after = Some(volunteer.falsified);
        }
        volunteer.lost = true;
        // It comes back under a fresh key.
        let (kind, network) = (volunteer.kind, volunteer.network);
        if kind != Kind::Honest && self.now_ms < 2 * 86_400_000 {
            self.join(kind, network);
        }
    }

    /// Rounds in which everybody has a turn; pages change now and then.
    fn run(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.now_ms += 600_000;
            for _ in 0..URLS / 4_000 {
                let url = self.chance.next() % URLS;
                self.versions[url as usize] += 1;
                self.archive.remove(&url);
            }
            for who in 0..self.volunteers.len() {
                self.bundle(who);
            }
        }
    }
}

/// What all worlds came to.
#[derive(Default)]
struct Came {
    /// Liars of each kind: caught within a thousand URLs, and all.
    caught: BTreeMap<String, (usize, usize)>,
    /// The least share of honest bodies that were confirmed.
    confirmed: f64,
    altered: u64,
    wronged: u64,
    by_place: u64,
    alone: u64,
}

fn worlds(seeds: std::ops::Range<u64>) -> Came {
    let mut came = Came { confirmed: 1.0, ..Came::default() };
    for seed in seeds {
        let mut world = World::new(seed);
        world.run(500);
        for volunteer in world.volunteers.iter().filter(|volunteer| volunteer.kind != Kind::Honest) {
            // Who never had a thousand URLs to be caught with says nothing.
            if volunteer.falsified >= 1_000 || volunteer.caught_after.is_some() {
                let (caught, liars) = came.caught.entry(volunteer.kind.name()).or_default();
                *liars += 1;
                *caught += usize::from(volunteer.caught_after.is_some_and(|after| after <= 1_000));
            }
        }
        let honest: Vec<&Kept> = world.archive.values().filter(|kept| kept.true_one).collect();
        let confirmed = honest.iter().filter(|kept| kept.confirmed).count() as f64 / honest.len().max(1) as f64;
        came.confirmed = came.confirmed.min(confirmed);
        came.altered += world.archive.values().filter(|kept| !kept.true_one && kept.confirmed).count() as u64;
        came.wronged += world.wronged;
        came.by_place += world.by_place;
        came.alone += world.alone;
    }
    came
}

/// Fewer of a kind say nothing of it.
const OF_A_KIND_MIN: usize = 100;

#[test]
fn liars_are_caught_honest_work_is_confirmed_and_nothing_altered_is() {
    assert_eq!(FLOOR_PERMILLE, 20);
    let seeds: u64 = std::env::var("SKEP_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2);
    let came = worlds(1..seeds + 1);
    let (caught, liars) = came.caught.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!(
        "{caught} of {liars} liars caught within 1000 URLs, {:.3} of honest bodies confirmed, {} altered; {} differences by place, {} times an \
         honest one was alone, {} called liars; {:?}",
        came.confirmed, came.altered, came.by_place, came.alone, came.wronged, came.caught
    );
    assert!(liars >= 2 * LIARS.len() * seeds as usize, "{liars}");
    assert!(came.alone > 0, "pages that change between two looks");
    assert!(came.by_place > 0, "pages that look otherwise from one place");
    let is_enough = |(caught, liars): (usize, usize)| caught as f64 > 0.85 * liars as f64;
    assert!(is_enough((caught, liars)), "{caught} of {liars} caught within a thousand URLs");
    for (kind, of_it) in came.caught.iter().filter(|(_, (_, liars))| *liars >= OF_A_KIND_MIN) {
        assert!(is_enough(*of_it), "{kind}: {of_it:?} caught within a thousand URLs");
    }
    assert!(came.confirmed >= 0.9, "{} of honest bodies confirmed", came.confirmed);
    assert_eq!(came.altered, 0, "altered bodies that count as confirmed");
    assert_eq!(came.wronged, 0, "honest volunteers called liars");
}
