//! The captures and digests views against a sorted list in memory, through puts, bulks, moves, merges and reopening.

use fjall::Database;
use skep_archive::captures::{Match, Place, Query};
use skep_archive::limits::CACHE_BYTES;
use skep_archive::memory::Shares;
use skep_archive::runs::Direction;
use skep_archive::{Capture, CaptureKind, Captures, Digest, Digests, Hidden, Key, Position, WriterKey};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// One seed, one sequence.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) * end) >> 31
    }

    fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len() as u64) as usize]
    }
}

const URLS: [&str; 14] = [
    "http://example.com/",
    "https://www.example.com/a",
    "http://example.com/a/b?q=1",
    "http://example.com:8080/a",
    "https://blog.example.com/Post/One",
    "http://blog.example.com/post/two",
    "http://example-x.com/",
    "http://example1.com/",
    "http://shop.example.co.uk/",
    "http://other.co.uk/x",
    "http://co.uk.example.net/",
    "http://192.0.2.7/p",
    "urn:uuid:7",
    "dns:example.com",
];

fn capture(chance: &mut Chance, record: u32) -> Capture {
    let mut url = chance.of(&URLS).to_string();
    // A few URLs have most captures, so that one URL fills blocks.
    if chance.below(3) == 0 {
        url = format!("http://example.com/page/{}", chance.below(400));
    }
    Capture {
        key: Key::of(&url),
        url,
        // Equal milliseconds happen.
        time_ms: (chance.below(3_000) * 1_000 + chance.below(3) * 450) as i64 - 500_000,
        position: Position { writer: WriterKey(chance.below(2) as u32), segment: chance.below(4) as u32, record },
        kind: CaptureKind::from_number(chance.below(7) as u8).unwrap(),
        status: [200, 301, 404, 0][chance.below(4) as usize],
        mime: chance.of(&["text/html", "image/png", "IMAGE/GIF", ""]).to_string(),
        digest: (chance.below(5) > 0).then(|| Digest::Sha1([chance.below(200) as u8; 20])),
        offset: chance.below(1 << 30),
        length: chance.below(100_000),
        flags: chance.below(4) as u8,
    }
}

struct World {
    folder: tempfile::TempDir,
    store: Option<Database>,
    captures: Option<Captures>,
    digests: Option<Digests>,
    hidden: Arc<Hidden>,
    model: BTreeMap<(Key, i64, Position), Capture>,
}

impl World {
    fn new() -> World {
        let mut world = World {
            folder: tempfile::tempdir().unwrap(),
            store: None,
            captures: None,
            digests: None,
            hidden: Arc::default(),
            model: BTreeMap::new(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        (self.captures, self.digests) = (None, None);
        self.store = None;
        let views = self.folder.path();
        let store = Database::builder(views.join("store")).open().unwrap();
        let room = Shares::of(CACHE_BYTES).captures;
        self.captures = Some(Captures::open(&store, &views.join("captures"), self.hidden.clone(), room).unwrap());
        self.digests = Some(Digests::open(&store, &views.join("digests"), self.hidden.clone(), room).unwrap());
        self.store = Some(store);
    }

    fn captures(&self) -> &Captures {
        self.captures.as_ref().unwrap()
    }

    fn remember(&mut self, added: Vec<Capture>) {
        self.model.extend(
            added.into_iter().map(|capture| ((capture.key.clone(), capture.time_ms, capture.position), capture)),
        );
    }

    fn put(&mut self, added: Vec<Capture>) {
        let mut batch = self.store.as_ref().unwrap().batch();
        for capture in &added {
            self.captures().put(capture, &mut batch).unwrap();
            self.digests.as_ref().unwrap().put(capture, &mut batch);
        }
        batch.commit().unwrap();
        self.remember(added);
    }

    fn bulk(&mut self, added: Vec<Capture>, chunk_bytes: usize) {
        let mut batch = self.store.as_ref().unwrap().batch();
        let mut captures = self.captures().bulk().chunk_bytes(chunk_bytes);
        let mut digests = self.digests.as_ref().unwrap().bulk();
        for capture in &added {
            captures.push(capture).unwrap();
            digests.push(capture).unwrap();
        }
        let captures = captures.stage(&mut batch).unwrap();
        let digests = digests.stage(&mut batch).unwrap();
        batch.commit().unwrap();
        captures.publish();
        digests.publish();
        self.remember(added);
    }

    fn wanted(&self, query: &Query, matches: impl Fn(&str) -> bool) -> Vec<Capture> {
        let mut wanted: Vec<Capture> = self
            .model
            .values()
            .filter(|c| {
                matches(c.key.surt())
                    && query.from_ms.is_none_or(|from| c.time_ms >= from)
                    && query.to_ms.is_none_or(|to| c.time_ms <= to)
                    && query.status.is_none_or(|status| c.status == status)
                    && query.mime.as_deref().is_none_or(|mime| match mime {
                        "image/*" => c.mime.to_lowercase().starts_with("image/"),
                        mime => c.mime == mime,
                    })
                    && (query.kinds.is_empty() || query.kinds.contains(&c.kind))
                    && (query.sites.0..=query.sites.1).contains(&c.key.site_hash())
                    && query.after.as_ref().is_none_or(|after| {
                        let order = (c.key.as_bytes(), c.time_ms, c.position);
                        let left_off = (after.key.as_bytes(), after.time_ms, after.position);
                        if query.direction == Direction::Forward { order > left_off } else { order < left_off }
                    })
                    && !self.hidden.contains(&c.position)
            })
            .cloned()
            .collect();
        if query.direction == Direction::Backward {
            wanted.reverse();
        }
        wanted.truncate(query.limit.unwrap_or(u64::MAX) as usize);
        wanted
    }

    fn ask(&self, query: &Query, matches: impl Fn(&str) -> bool) {
        let found: Vec<Capture> = self.captures().query(query).unwrap().map(Result::unwrap).collect();
        let wanted = self.wanted(query, matches);
        assert!(found == wanted, "{query:?}: {} found, {} wanted", found.len(), wanted.len());
    }

    fn compare(&self, chance: &mut Chance) {
        for direction in [Direction::Forward, Direction::Backward] {
            let query = |matching| Query { direction, ..Query::new(matching) };
            self.ask(&query(Match::All), |_| true);
            for url in URLS {
                let key = Key::of(url);
                let surt = key.surt();
                let host = surt.split(')').next().unwrap();
                let name = host.split(':').next().unwrap();
                self.ask(&query(Match::Exact(key.clone())), |s| s == surt);
                self.ask(&query(Match::Prefix(key.clone())), |s| s.starts_with(surt));
                if surt.contains(')') {
                    self.ask(&query(Match::Host(key.clone())), |s| s.starts_with(&format!("{host})")));
                    self.ask(&query(Match::Domain(key.clone())), |s| {
                        [")", ",", ":"].iter().any(|end| s.starts_with(&format!("{name}{end}")))
                    });
                }
                let mut narrow = query(Match::Exact(key.clone()));
                narrow.from_ms = Some(chance.below(3_000) as i64 * 1_000 - 500_000);
                narrow.to_ms = Some(narrow.from_ms.unwrap() + chance.below(1_000_000) as i64);
                self.ask(&narrow, |s| s == surt);
                narrow.limit = Some(chance.below(5));
                self.ask(&narrow, |s| s == surt);
            }
            self.go_on(direction, chance);
            let suffix = Key::of("http://co.uk/");
            self.ask(&query(Match::Domain(suffix)), |s| s.starts_with("uk,co,") || s.starts_with("uk,co)"));
            let (from, to) = (Key::of("http://example.com/a"), Key::of("http://example.com/page/3"));
            self.ask(&query(Match::Range(from.clone(), to.clone())), |s| from.surt() <= s && s < to.surt());
            let far = Key::of("http://example1.com/");
            self.ask(&query(Match::Range(from.clone(), far.clone())), |s| from.surt() <= s && s < far.surt());
            let mut picky = query(Match::All);
            (picky.status, picky.mime, picky.kinds) =
                (Some(200), Some("image/*".into()), vec![CaptureKind::Response, CaptureKind::Revisit]);
            (picky.from_ms, picky.to_ms, picky.limit) = (Some(0), Some(2_000_000), Some(50));
            self.ask(&picky, |_| true);
        }
        for _ in 0..60 {
            self.compare_closest(chance);
        }
        let mut count = 0;
        self.captures()
            .each(&Match::All, |row| {
                count += usize::from(!row.url().is_empty());
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(count, self.wanted(&Query::new(Match::All), |_| true).len());
        self.compare_digests();
    }

    /// From any place on, and within any sites.
    fn go_on(&self, direction: Direction, chance: &mut Chance) {
        for _ in 0..2 {
            let hashes = [chance_url(chance), chance_url(chance)].map(|url| Key::of(url).site_hash());
            let after = match self.model.len() {
                0 => None,
                count => self.model.values().nth(chance.below(count as u64) as usize).map(Place::of),
            };
            let sites = (hashes[0].min(hashes[1]), hashes[0].max(hashes[1]));
            let on = |matching: Match| Query { direction, after: after.clone(), ..Query::new(matching) };
            self.ask(&on(Match::All), |_| true);
            self.ask(&Query { sites, ..on(Match::All) }, |_| true);
            self.ask(&Query { sites, after: None, ..on(Match::All) }, |_| true);
            let key = Key::of(chance_url(chance));
            self.ask(&on(Match::Exact(key.clone())), |s| s == key.surt());
            self.ask(&on(Match::Prefix(key.clone())), |s| s.starts_with(key.surt()));
        }
    }

    fn compare_closest(&self, chance: &mut Chance) {
        let url = if chance.below(2) == 0 { "http://example.com/" } else { *chance_url(chance) };
        let (key, time_ms) = (Key::of(url), chance.below(4_000_000) as i64 - 900_000);
        let mut wanted = self.wanted(&Query::new(Match::Exact(key.clone())), |s| s == key.surt());
        let seconds_apart = |c: &Capture| c.time_ms.div_euclid(1000).abs_diff(time_ms.div_euclid(1000));
        wanted.sort_by_key(|c| (seconds_apart(c), c.time_ms.abs_diff(time_ms), c.time_ms >= time_ms));
        let found: Vec<Capture> = self.captures().closest(&key, time_ms).unwrap().map(Result::unwrap).collect();
        // Within one millisecond in the past the walk goes backward, also through positions.
        assert_eq!(found.len(), wanted.len());
        assert_eq!(
            found.iter().map(|c| c.time_ms).collect::<Vec<_>>(),
            wanted.iter().map(|c| c.time_ms).collect::<Vec<_>>()
        );
        let positions = |list: &[Capture]| list.iter().map(|c| c.position).collect::<BTreeSet<_>>();
        assert_eq!(positions(&found), positions(&wanted));
    }

    fn compare_digests(&self) {
        let mut wanted: BTreeSet<(Digest, i64, Position)> = BTreeSet::new();
        for c in self.model.values().filter(|c| c.kind.has_body() && !self.hidden.contains(&c.position)) {
            wanted.extend(c.digest.map(|digest| (digest, c.time_ms, c.position)));
        }
        let digests = self.digests.as_ref().unwrap();
        let mut found = Vec::new();
        digests.each(|digest, original| found.push((digest, original.time_ms, original.position))).unwrap();
        assert_eq!(found, wanted.iter().copied().collect::<Vec<_>>());
        for number in 0..=200 {
            let digest = Digest::Sha1([number; 20]);
            let earliest =
                wanted.iter().find(|(d, ..)| *d == digest).map(|(_, time_ms, position)| (*time_ms, *position));
            let found = digests.earliest(&digest).unwrap().map(|original| (original.time_ms, original.position));
            assert_eq!(found, earliest);
        }
    }
}

fn chance_url<'a>(chance: &mut Chance) -> &'a &'static str {
    &URLS[chance.below(URLS.len() as u64) as usize]
}

fn batch_of(chance: &mut Chance, count: u32, next: &mut u32) -> Vec<Capture> {
    (0..count)
        .map(|_| {
            *next += 1;
            capture(chance, *next)
        })
        .collect()
}

#[test]
fn the_views_answer_as_a_sorted_list_does() {
    for seed in 0..4 {
        let mut chance = Chance(seed);
        let mut world = World::new();
        let mut next = 0;
        world.compare(&mut chance);
        for step in 0..10 {
            match chance.below(6) {
                0..=1 => world.put(batch_of(&mut chance, 300, &mut next)),
                2..=3 => world.bulk(batch_of(&mut chance, 700, &mut next), 8_000),
                4 => {
                    world.captures().compact(|_| true).unwrap();
                }
                _ => {
                    world.put(batch_of(&mut chance, 50, &mut next));
                    world.open();
                }
            }
            // The same captures again, some of them with another offset: the later counts.
            let again: Vec<Capture> =
                world.model.values().step_by(37).map(|c| Capture { offset: c.offset + step, ..c.clone() }).collect();
            world.put(again);
            if step == 5 {
                let hidden: Vec<Position> = world.model.values().step_by(11).map(|c| c.position).collect();
                world.hidden.hide(hidden);
            }
            world.captures().tend().unwrap();
            world.compare(&mut chance);
        }
        world.open();
        world.compare(&mut chance);
    }
}

fn run_files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn many_runs_are_merged_and_replaced_files_go() {
    let mut chance = Chance(7);
    let mut world = World::new();
    let mut next = 0;
    for _ in 0..9 {
        world.bulk(batch_of(&mut chance, 200, &mut next), 4_000);
    }
    assert_eq!(world.captures().facts().runs, 9);
    world.captures().tend().unwrap();
    assert_eq!(world.captures().facts().runs, 1);
    assert_eq!(world.captures().facts().in_runs, 1_800);
    assert_eq!(run_files(&world.folder.path().join("captures")).len(), 1);
    world.compare(&mut chance);
}

#[test]
fn fresh_captures_move_into_a_run_when_they_are_many() {
    let mut world = World::new();
    let mut next = 0;
    let mut chance = Chance(3);
    let most = Shares::of(CACHE_BYTES).captures.fresh_entries as u32;
    while next <= most {
        world.put(batch_of(&mut chance, 4_096, &mut next));
    }
    world.captures().tend().unwrap();
    let facts = world.captures().facts();
    assert_eq!((facts.runs, facts.fresh, facts.in_runs), (1, 0, world.model.len() as u64));
    world.open();
    assert_eq!(world.captures().facts(), facts);
    world.ask(&Query::new(Match::All), |_| true);
}

#[test]
fn what_was_staged_and_not_committed_leaves_nothing() {
    let mut chance = Chance(5);
    let mut world = World::new();
    let mut next = 0;
    world.bulk(batch_of(&mut chance, 500, &mut next), 4_000);
    let folder = world.folder.path().join("captures");
    let before = run_files(&folder);

    let mut bulk = world.captures().bulk().chunk_bytes(4_000);
    for capture in batch_of(&mut chance, 500, &mut next) {
        bulk.push(&capture).unwrap();
    }
    let mut batch = world.store.as_ref().unwrap().batch();
    let staged = bulk.stage(&mut batch).unwrap();
    assert!(run_files(&folder).len() > before.len());
    drop((staged, batch));
    assert_eq!(run_files(&folder), before);

    // A crash leaves the file; opening removes what the list does not name.
    std::fs::write(folder.join("00000999.run"), b"half a run").unwrap();
    world.open();
    assert_eq!(run_files(&folder), before);
    world.compare(&mut chance);
}

#[test]
fn what_was_committed_survives_also_if_nobody_published_it() {
    let mut chance = Chance(6);
    let mut world = World::new();
    let mut next = 0;
    let added = batch_of(&mut chance, 500, &mut next);
    let mut bulk = world.captures().bulk().chunk_bytes(4_000);
    let mut batch = world.store.as_ref().unwrap().batch();
    for capture in &added {
        bulk.push(capture).unwrap();
        world.digests.as_ref().unwrap().put(capture, &mut batch);
    }
    let staged = bulk.stage(&mut batch).unwrap();
    batch.commit().unwrap();
    // As after a kill: neither published nor dropped.
    std::mem::forget(staged);
    world.remember(added);
    world.open();
    world.compare(&mut chance);
}

#[test]
fn a_missing_or_damaged_run_is_named_and_rebuild_is_the_hint() {
    let mut chance = Chance(8);
    let mut world = World::new();
    let mut next = 0;
    world.bulk(batch_of(&mut chance, 900, &mut next), 4_000);
    let folder = world.folder.path().join("captures");
    let path = folder.join(&run_files(&folder)[0]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    world.open();
    let answers: Vec<_> = world.captures().query(&Query::new(Match::All)).unwrap().collect();
    let Some(Err(error)) = answers.last() else { panic!("damage was not noticed") };
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("skep rebuild"));

    std::fs::remove_file(&path).unwrap();
    (world.captures, world.digests) = (None, None);
    let store = world.store.take().unwrap();
    let Err(error) = Captures::open(&store, &folder, Arc::default(), Shares::of(CACHE_BYTES).captures) else {
        panic!("a missing run was not noticed")
    };
    assert!(error.to_string().contains("missing") && error.hint().unwrap().contains("skep rebuild"));
}

#[test]
fn readers_never_miss_an_entry_that_is_on_its_way_into_a_run() {
    let mut chance = Chance(9);
    let mut world = World::new();
    let mut next = 0;
    world.put(batch_of(&mut chance, 3_000, &mut next));
    let wanted = world.model.len();
    let moved = std::sync::atomic::AtomicBool::new(false);
    let captures = world.captures();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                captures.compact(|_| true).unwrap();
            }
            moved.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        loop {
            let last = moved.load(std::sync::atomic::Ordering::SeqCst);
            let found = captures.query(&Query::new(Match::All)).unwrap().map(Result::unwrap).count();
            assert_eq!(found, wanted);
            if last {
                break;
            }
        }
    });
}

#[test]
fn compacting_can_drop_captures() {
    let mut chance = Chance(10);
    let mut world = World::new();
    let mut next = 0;
    world.put(batch_of(&mut chance, 400, &mut next));
    world.captures().compact(|row| row.position().segment != 2).unwrap();
    world.model.retain(|(_, _, position), _| position.segment != 2);
    world.ask(&Query::new(Match::All), |_| true);
    world.captures().compact(|_| false).unwrap();
    assert_eq!(world.captures().query(&Query::new(Match::All)).unwrap().count(), 0);
    assert!(run_files(&world.folder.path().join("captures")).is_empty());
}
