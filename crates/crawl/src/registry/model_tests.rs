//! The registry beside a plain model of it: maps and lists in memory, over seeds, with reopening.

use super::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

/// Chance that the same seed repeats.
pub(super) struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 16) % bound
    }
}

/// So small that everything that happens at a million happens at a thousand.
pub(super) fn small() -> Options {
    Options { key: [7; 32], active_urls: 150, recent_urls: 64, filter_bytes: 2_000, block_bytes: 8_192, page_bytes: 1 }
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    url: String,
    known_as: String,
    host: (u16, String),
    depth: u16,
    via: Option<u64>,
    kind: u8,
    outcome: State,
    waits: Option<Class>,
    note: u16,
}

/// What the registry should say. As in the registry, a number in a queue counts if its entry waits there.
#[derive(Clone, Default)]
pub(super) struct Model {
    known: Vec<Known>,
    numbers: BTreeMap<(u16, String), u64>,
    queues: BTreeMap<(u16, String), BTreeMap<Class, VecDeque<u64>>>,
    out: BTreeSet<u64>,
    pass: BTreeMap<u16, u16>,
    conduct: BTreeMap<(u16, String), Conduct>,
}

impl Model {
    fn queue(&mut self, entry: u64, class: Class) -> &mut VecDeque<u64> {
        let host = self.known[entry as usize].host.clone();
        self.queues.entry(host).or_default().entry(class).or_default()
    }

    fn wait(&mut self, entry: u64, class: Class, front: bool) {
        // One that waits there already keeps its place.
        if self.known[entry as usize].waits == Some(class) && !self.out.contains(&entry) {
            return;
        }
        self.out.remove(&entry);
        self.known[entry as usize].waits = Some(class);
        let queue = self.queue(entry, class);
        if front { queue.push_front(entry) } else { queue.push_back(entry) }
    }

    /// What a crash leaves: those who were out are back in front.
    pub fn reopened(mut self) -> Model {
        for entry in self.out.clone().into_iter().rev() {
            let class = self.known[entry as usize].waits.unwrap();
            self.wait(entry, class, true);
        }
        self
    }
}

/// A registry and its model, which are given the same to do.
pub(super) struct World {
    pub registry: Registry,
    pub model: Model,
    pub chance: Chance,
    pub now_ms: i64,
}

impl World {
    pub fn new(registry: Registry, model: Model, seed: u64) -> World {
        World { registry, model, chance: Chance(seed), now_ms: 1_000 }
    }

    fn some_entry(&mut self) -> Option<u64> {
        let entries = self.model.known.len() as u64;
        (entries > 0).then(|| self.chance.below(entries))
    }

    /// Does one thing to both.
    pub fn act(&mut self) {
        self.now_ms += 10;
        match self.chance.below(100) {
            0..60 => self.hear(),
            60..75 => self.take(),
            75..92 => self.settle(),
            92..95 => self.give_back(),
            95..97 => self.annotate(),
            97..99 => self.promote(),
            _ if self.chance.below(20) == 0 => self.begin_pass(),
            _ => {}
        }
    }

    fn hear(&mut self) {
        let crawl = self.chance.below(2) as u16;
        let host = format!("https://h{}.example", self.chance.below(30));
        let known_as = format!("{host}/{}/é{}", "path".repeat(self.chance.below(9) as usize), self.chance.below(900));
        // One of several ways to write it; the first that is heard counts.
        let url = format!("{known_as}{}", ["", "?session=1", "?session=2"][self.chance.below(3) as usize]);
        let class = Class::ALL[self.chance.below(3) as usize];
        let via = self.some_entry().filter(|_| !known_as.ends_with('7'));
        let (depth, kind) = (self.chance.below(300) as u16, self.chance.below(20) as u8);
        let heard =
            Heard { url: &url, known_as: &known_as, host_key: &host, site: "example", depth, via, crawl, class, kind };
        let refused = self.chance.below(10) == 0;
        let fate = if refused { Fate::Keep(State::Refused { rule: 5 }, 9) } else { Fate::Queue };
        let verdict = self.registry.hear_with(&heard, || fate).unwrap();
        let id = (crawl, known_as.clone());
        if let Some(entry) = self.model.numbers.get(&id) {
            assert_eq!(verdict, Verdict::Known(*entry));
            self.registry.approach(*entry, depth).unwrap();
            let known = &mut self.model.known[*entry as usize];
            known.depth = known.depth.min(depth);
            return;
        }
        let entry = self.model.known.len() as u64;
        assert_eq!(verdict, Verdict::New(entry));
        self.model.numbers.insert(id, entry);
        let (outcome, note) = if refused { (State::Refused { rule: 5 }, 9) } else { (State::Queued, 0) };
        let host = (crawl, host);
        self.model.conduct.entry(host.clone()).or_default();
        self.model.known.push(Known { url, known_as, host, depth, via, kind, outcome, waits: None, note });
        if !refused {
            self.model.wait(entry, class, false);
        }
    }

    fn some_host(&mut self) -> Option<(HostId, (u16, String))> {
        let count = self.model.conduct.len() as u64;
        if count == 0 {
            return None;
        }
        let index = self.chance.below(count) as usize;
        let host = self.model.conduct.keys().nth(index).unwrap().clone();
        let id = self.registry.find_host(host.0, &host.1).unwrap().unwrap();
        Some((id, host))
    }

    fn take(&mut self) {
        let Some((id, host)) = self.some_host() else { return };
        let max = self.chance.below(12) as usize;
        let mut taken = Vec::new();
        self.registry.take(id, max, self.now_ms, &mut taken).unwrap();
        let mut expected: Vec<(u64, Class)> = Vec::new();
        let Model { known, queues, out, .. } = &mut self.model;
        for class in [Class::Embed, Class::Seed, Class::Page] {
            let queue = queues.entry(host.clone()).or_default().entry(class).or_default();
            while expected.len() < max
                && let Some(entry) = queue.pop_front()
            {
                if known[entry as usize].waits == Some(class) && !out.contains(&entry) {
                    out.insert(entry);
                    expected.push((entry, class));
                }
            }
        }
        // Retries come by time, not by place: any that is due will do, but as many as there are.
        let due: BTreeSet<u64> = (0..known.len() as u64)
            .filter(|entry| match known[*entry as usize] {
                Known {
                    outcome: State::Failed { not_before_ms, .. }, waits: Some(Class::Retry), host: ref at, ..
                } => *at == host && not_before_ms <= self.now_ms && !out.contains(entry),
                _ => false,
            })
            .collect();
        let retries = taken.split_off(taken.partition_point(|one| one.class != Class::Retry));
        assert_eq!(taken.iter().map(|one| (one.entry, one.class)).collect::<Vec<_>>(), expected);
        assert_eq!(retries.len(), due.len().min(max - expected.len()));
        for one in taken.iter().chain(&retries) {
            let known = &self.model.known[one.entry as usize];
            assert_eq!((&one.url, one.depth, one.via, one.kind), (&known.url, known.depth, known.via, known.kind));
            assert_eq!((one.outcome, one.note), (known.outcome, known.note));
        }
        for one in retries {
            assert!(due.contains(&one.entry));
            self.model.out.insert(one.entry);
        }
    }

    fn settle(&mut self) {
        // Mostly one that is out; sometimes any, as when records are folded again.
        let out = self.model.out.iter().copied().nth(self.chance.below(5) as usize);
        let Some(entry) = out.or_else(|| self.some_entry()) else { return };
        let crawl = self.model.known[entry as usize].host.0;
        let pass = self.model.pass.get(&crawl).copied().unwrap_or_default();
        let code = self.chance.below(600) as u16;
        let state = match self.chance.below(12) {
            0..6 => State::Visited { status: code, time_ms: self.now_ms, pass },
            6..9 => {
                let not_before_ms = self.now_ms + self.chance.below(3_000) as i64;
                State::Failed { class: code, failures: (code % 5) as u8, not_before_ms }
            }
            9 => State::Dead { class: code, failures: 5 },
            10 => State::Parked { budget: code },
            _ => State::Queued,
        };
        self.registry.set_state(entry, state).unwrap();
        match state {
            State::Queued => {
                let class = self.model.known[entry as usize].waits.unwrap_or(Class::Page);
                self.model.wait(entry, class, false);
            }
            State::Failed { .. } => {
                self.model.wait(entry, Class::Retry, false);
                self.model.known[entry as usize].outcome = state;
            }
            _ => {
                self.model.out.remove(&entry);
                self.model.known[entry as usize].waits = None;
                self.model.known[entry as usize].outcome = state;
            }
        }
    }

    fn give_back(&mut self) {
        let Some(entry) = self.model.out.first().copied() else { return };
        if self.chance.below(2) == 0 {
            let class = self.model.known[entry as usize].waits.unwrap();
            self.registry.give_back(entry, class, None).unwrap();
            self.model.wait(entry, class, true);
        } else {
            let not_before_ms = self.now_ms + 500;
            self.registry.give_back(entry, Class::Retry, Some(not_before_ms)).unwrap();
            self.model.wait(entry, Class::Retry, false);
            let outcome = &mut self.model.known[entry as usize].outcome;
            let (class, failures) = match *outcome {
                State::Failed { class, failures, .. } => (class, failures),
                _ => (0, 0),
            };
            *outcome = State::Failed { class, failures, not_before_ms };
        }
    }

    fn annotate(&mut self) {
        if let Some(entry) = self.some_entry() {
            let note = self.chance.below(1_000) as u16;
            self.registry.set_note(entry, note).unwrap();
            self.model.known[entry as usize].note = note;
        }
        if let Some((id, host)) = self.some_host() {
            let pages = self.chance.below(100) as u32;
            let change = |conduct: &mut Conduct| {
                conduct.pages += pages;
                conduct.bytes += u64::from(pages) << 33;
                conduct.paused = pages.is_multiple_of(2);
                conduct.crawl_delay_ms = Some(pages);
                conduct.trust = [pages as u8; 7];
                conduct.parked_until_ms = 1_700_000_000_000 + i64::from(pages);
            };
            self.registry.update_host(id, change).unwrap();
            change(self.model.conduct.get_mut(&host).unwrap());
        }
    }

    fn promote(&mut self) {
        let Some(entry) = self.some_entry() else { return };
        self.registry.promote(entry, Class::Embed).unwrap();
        let waits = self.model.known[entry as usize].waits;
        if matches!(waits, Some(Class::Seed | Class::Page)) && !self.model.out.contains(&entry) {
            self.model.wait(entry, Class::Embed, false);
        }
    }

    fn begin_pass(&mut self) {
        let crawl = self.chance.below(2) as u16;
        let again = |state: State| matches!(state, State::Visited { .. } | State::Dead { .. });
        let queued = self.registry.begin_pass(crawl, again).unwrap();
        *self.model.pass.entry(crawl).or_default() += 1;
        let mut expected = 0;
        for entry in 0..self.model.known.len() {
            let known = &self.model.known[entry];
            if known.host.0 == crawl && known.waits.is_none() && again(known.outcome) {
                self.model.wait(entry as u64, Class::Page, false);
                expected += 1;
            }
        }
        assert_eq!(queued, expected);
    }

    /// Everything the registry says, against the model.
    pub fn compare(&mut self) {
        let mut count = 0;
        let (model, registry) = (&self.model, &mut self.registry);
        let mut seen = Vec::new();
        registry
            .walk(0, |entry| {
                let known = &model.known[count];
                let class = known.waits;
                let state = match (model.out.contains(&(count as u64)), class, known.outcome) {
                    (true, ..) => State::Out,
                    (_, Some(_), State::Failed { .. }) | (_, None, _) => known.outcome,
                    _ => State::Queued,
                };
                assert_eq!((entry.number, &entry.url, entry.crawl), (count as u64, &known.url, known.host.0));
                assert_eq!((entry.depth, entry.via, entry.kind), (known.depth, known.via, known.kind));
                assert_eq!((entry.state, entry.outcome, entry.class), (state, known.outcome, class), "{count}");
                assert_eq!(entry.note, known.note);
                seen.push(entry.clone());
                count += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!((count, registry.entries()), (model.known.len(), model.known.len() as u64));
        for entry in seen.iter().step_by(17) {
            assert_eq!(registry.entry(entry.number).unwrap(), *entry);
            let known_as = &model.known[entry.number as usize].known_as;
            assert_eq!(registry.known(entry.crawl, known_as).unwrap(), Some(entry.number));
            assert_eq!(registry.known(entry.crawl, &format!("{known_as}?")).unwrap(), None);
            assert_eq!(registry.known(entry.crawl + 7, known_as).unwrap(), None);
        }
        let of = |wanted: &dyn Fn(u64, &Known) -> bool| {
            model.known.iter().enumerate().filter(|(at, known)| wanted(*at as u64, known)).count() as u64
        };
        for ((crawl, key), conduct) in &model.conduct {
            let id = registry.find_host(*crawl, key).unwrap().unwrap();
            let host = registry.host(id).unwrap();
            assert_eq!((&host.key, host.site.as_str(), host.crawl), (key, "example", *crawl));
            assert_eq!(host.conduct, *conduct);
            let here = |known: &Known| known.host.0 == *crawl && known.host.1 == *key;
            let out = |entry: u64| model.out.contains(&entry);
            assert_eq!(u64::from(host.out), of(&|at, known| here(known) && out(at)));
            assert_eq!(u64::from(host.waiting), of(&|at, known| here(known) && known.waits.is_some() && !out(at)));
            let visited = |known: &Known| matches!(known.outcome, State::Visited { .. });
            assert_eq!(u64::from(host.visited), of(&|_, known| here(known) && visited(known)));
        }
        for crawl in 0..2 {
            let counts = registry.counts(crawl);
            let pass = model.pass.get(&crawl).copied().unwrap_or_default();
            assert_eq!(registry.pass(crawl), pass);
            let expected =
                |wanted: &dyn Fn(u64, &Known) -> bool| of(&|at, known| known.host.0 == crawl && wanted(at, known));
            assert_eq!(counts.known, expected(&|_, _| true));
            assert_eq!(counts.out, expected(&|at, _| model.out.contains(&at)));
            assert_eq!(counts.waiting, expected(&|at, known| known.waits.is_some() && !model.out.contains(&at)));
            let in_pass = |known: &Known| matches!(known.outcome, State::Visited { pass: of, .. } if of == pass);
            assert_eq!(counts.visited_in_pass, expected(&|_, known| in_pass(known)));
            assert_eq!(counts.failed, expected(&|_, known| matches!(known.outcome, State::Failed { .. })));
            assert_eq!(counts.dead, expected(&|_, known| matches!(known.outcome, State::Dead { .. })));
        }
        assert!(registry.memory_bytes() <= small().memory_bytes_max());
    }
}

#[test]
fn it_does_what_a_plain_model_does_across_checkpoints_and_losses() {
    for seed in 1..=6 {
        let folder = tempfile::tempdir().unwrap();
        let (registry, found) = Registry::open(folder.path(), small()).unwrap();
        assert_eq!(found, None);
        let mut world = World::new(registry, Model::default(), seed);
        let mut kept = Model::default();
        for round in 0..12u8 {
            for _ in 0..world.chance.below(1_500) {
                world.act();
            }
            if world.chance.below(3) > 0 {
                let marks = [Mark { segment: (seed, u64::from(round)), records: u32::from(round) }];
                world.registry.checkpoint(&marks, &[round]).unwrap();
                kept = world.model.clone();
            }
            world.compare();
            for _ in 0..world.chance.below(300) {
                world.act();
            }
            // What came after the checkpoint is lost; the registry must not remember any of it.
            if world.chance.below(2) == 0 {
                let (registry, found) = Registry::open(folder.path(), small()).unwrap();
                assert_eq!(
                    found.map(|found| found.out),
                    (!kept.numbers.is_empty()).then(|| kept.out.iter().copied().collect())
                );
                world = World { registry, model: kept.clone().reopened(), ..world };
                world.compare();
            }
        }
    }
}
