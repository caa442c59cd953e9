//! What is left when a process or a machine stops at any moment, and when a disk returns something else than was written.

use super::model_tests::{Chance, Model, World, small};
use super::*;
use crate::registry::limits::PAGE_BYTES;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn opens_as(folder: &Path, model: &Model, seed: u64) {
    let (registry, _) = Registry::open(folder, small()).unwrap();
    let mut world = World::new(registry, model.clone().reopened(), seed);
    world.compare();
    // And it can be worked with.
    (0..200).for_each(|_| world.act());
    world.registry.checkpoint(&[], &[]).unwrap();
    world.compare();
}

#[test]
fn a_copy_taken_at_any_moment_opens_at_the_last_checkpoint() {
    for seed in 1..=6 {
        let folders = tempfile::tempdir().unwrap();
        let live = folders.path().join("live");
        let (registry, _) = Registry::open(&live, small()).unwrap();
        let mut world = World::new(registry, Model::default(), seed);
        let mut kept = Model::default();
        for round in 0..8 {
            for _ in 0..world.chance.below(1_200) {
                world.act();
            }
            let taken = folders.path().join(format!("{round}"));
            copy(&live, &taken);
            opens_as(&taken, &kept, seed);

            // All is synced, the checkpoint is not replaced yet.
            let image = world.registry.sync(&[], &[]).unwrap();
            let before = folders.path().join(format!("{round}-before"));
            copy(&live, &before);
            opens_as(&before, &kept, seed);

            // It is replaced, but nothing that only the old one needed is given up yet.
            checkpoint::write(&live, &image).unwrap();
            let after = folders.path().join(format!("{round}-after"));
            copy(&live, &after);
            opens_as(&after, &world.model, seed);

            world.registry.checkpoint(&[], &[]).unwrap();
            kept = world.model.clone();
        }
    }
}

/// A power cut loses any part of what was written since the last sync, in any order. The journal is synced before a page is
/// overwritten, so it is whole; of pages and logs each piece may be the old or the new one.
#[test]
fn after_a_power_cut_any_mixture_of_old_and_new_pages_opens_at_the_last_checkpoint() {
    for seed in 1..=10 {
        let folders = tempfile::tempdir().unwrap();
        let (live, old) = (folders.path().join("live"), folders.path().join("old"));
        let (registry, _) = Registry::open(&live, small()).unwrap();
        let mut world = World::new(registry, Model::default(), seed);
        (0..4_000).for_each(|_| world.act());
        world.registry.checkpoint(&[], &[]).unwrap();
        let kept = world.model.clone();
        copy(&live, &old);
        // With ten pages in memory most are overwritten before the next checkpoint.
        (0..4_000).for_each(|_| world.act());
        let mut chance = Chance(seed);
        for cut in 0..5 {
            let mixed = folders.path().join(format!("mixed-{cut}"));
            copy(&live, &mixed);
            for (_, name) in pages::FILES {
                let (before, mut now) = (fs::read(old.join(name)).unwrap(), fs::read(mixed.join(name)).unwrap());
                now.truncate(before.len() + chance.below((now.len() - before.len()) as u64 + 1) as usize);
                for (page, bytes) in now.chunks_mut(PAGE_BYTES).enumerate() {
                    if let Some(before) = before.get(page * PAGE_BYTES..(page + 1) * PAGE_BYTES)
                        && chance.below(2) == 0
                    {
                        // Half of a page may be new and half old.
                        let cut = chance.below(PAGE_BYTES as u64) as usize;
                        bytes[..cut].copy_from_slice(&before[..cut]);
                    }
                }
                fs::write(mixed.join(name), now).unwrap();
            }
            for name in ["urls", "frames", "names"] {
                let (before, now) = (fs::read(old.join(name)).unwrap(), fs::read(live.join(name)).unwrap());
                let length = before.len() + chance.below((now.len() - before.len()) as u64 + 1) as usize;
                fs::write(mixed.join(name), &now[..length]).unwrap();
            }
            // A journal entry that was being written, and did not get there.
            let mut journal = fs::read(live.join("journal")).unwrap();
            journal.extend_from_slice(&[0x5a; 1_000]);
            fs::write(mixed.join("journal"), journal).unwrap();
            opens_as(&mixed, &kept, seed);
        }
    }
}

/// Everything there is to know, or the error.
fn tell(folder: &Path) -> Result<Vec<String>> {
    let (mut registry, _) = Registry::open(folder, small())?;
    let mut told = Vec::new();
    registry.walk(0, |entry| {
        told.push(format!("{entry:?}"));
        ControlFlow::Continue(())
    })?;
    for entry in 0..registry.entries() {
        let crawl = registry.entry(entry)?.crawl;
        let url = registry.url(entry)?;
        let known_as = url.split('?').next().unwrap_or_default();
        told.push(format!("{:?}", registry.known(crawl, known_as)?));
    }
    for host in 0..registry.hosts_known() {
        told.push(format!("{:?}", registry.host(HostId(host))?));
        let mut taken = Vec::new();
        registry.take(HostId(host), 1_000, i64::MAX, &mut taken)?;
        told.push(format!("{taken:?}"));
    }
    Ok(told)
}

#[test]
fn damage_is_told_and_never_believed() {
    let folders = tempfile::tempdir().unwrap();
    let (whole, hurt) = (folders.path().join("whole"), folders.path().join("hurt"));
    let (registry, _) = Registry::open(&whole, small()).unwrap();
    let mut world = World::new(registry, Model::default(), 5);
    (0..3_000).for_each(|_| world.act());
    world.registry.checkpoint(&[], b"extra").unwrap();
    drop(world);
    let expected = tell({
        copy(&whole, &hurt);
        &hurt
    })
    .unwrap();
    let mut chance = Chance(11);
    let mut told = 0;
    for file in fs::read_dir(&whole).unwrap() {
        let file = file.unwrap();
        let bytes = fs::read(file.path()).unwrap();
        for _ in 0..12 {
            fs::remove_dir_all(&hurt).unwrap();
            copy(&whole, &hurt);
            let mut changed = bytes.clone();
            match chance.below(4) {
                0 => changed.truncate(chance.below(bytes.len() as u64 + 1) as usize),
                1 if !bytes.is_empty() => {
                    let at = chance.below(bytes.len() as u64) as usize;
                    let end = (at + 700).min(bytes.len());
                    changed[at..end].fill(0);
                }
                _ if !bytes.is_empty() => {
                    let at = chance.below(bytes.len() as u64) as usize;
                    changed[at] ^= 1 << chance.below(8);
                }
                _ => {}
            }
            fs::write(hurt.join(file.file_name()), changed).unwrap();
            match tell(&hurt) {
                Ok(found) => assert!(found == expected, "{:?} is believed", file.file_name()),
                Err(error) => {
                    assert!(error.rebuild_helps(), "{error}");
                    assert!(error.to_string().contains("`skep rebuild`"), "{error}");
                    told += 1;
                }
            }
        }
        // A file that is gone.
        fs::remove_dir_all(&hurt).unwrap();
        copy(&whole, &hurt);
        fs::remove_file(hurt.join(file.file_name())).unwrap();
        if let Ok(found) = tell(&hurt) {
            // Without its checkpoint a registry is empty, and folded anew; without its journal there is nothing to undo.
            let empty = file.file_name() == "checkpoint" && found.is_empty();
            assert!(empty || found == expected, "{:?}", file.file_name());
        }
    }
    assert!(told > 50, "{told}");
}

/// A registry whose process ended some time after a checkpoint.
fn left_in_the_middle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(folder.path(), small()).unwrap();
    let mut world = World::new(registry, Model::default(), 3);
    (0..4_000).for_each(|_| world.act());
    world.registry.checkpoint(&[], &[]).unwrap();
    (0..4_000).for_each(|_| world.act());
    folder
}

#[test]
fn a_lost_journal_is_noticed_where_pages_are_younger_than_the_checkpoint() {
    let folder = left_in_the_middle();
    fs::write(folder.path().join("journal"), b"").unwrap();
    let error = tell(folder.path()).map(drop).expect_err("it is noticed");
    assert!(error.to_string().contains("younger than the checkpoint"), "{error}");
}

#[test]
fn another_key_or_a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(folder.path(), small()).unwrap();
    registry.checkpoint(&[], &[]).unwrap();
    drop(registry);
    let other = Options { key: [8; 32], ..small() };
    assert!(matches!(Registry::open(folder.path(), other), Err(Error::OtherKey { .. })));

    set_version(folder.path(), 9);
    assert!(matches!(Registry::open(folder.path(), small()), Err(Error::Newer { found: 9, .. })));
}

#[test]
fn a_registry_of_an_earlier_version_begins_anew() {
    let folder = left_in_the_middle();
    set_version(folder.path(), 2);
    // What is empty again has no marks, so the caller folds all records.
    let (registry, checkpoint) = Registry::open(folder.path(), small()).unwrap();
    assert_eq!((registry.entries(), registry.hosts_known(), checkpoint), (0, 0, None));
    let mut world = World::new(registry, Model::default(), 4);
    (0..4_000).for_each(|_| world.act());
    world.registry.checkpoint(&[], &[]).unwrap();
}

fn set_version(folder: &Path, version: u8) {
    let path = folder.join("checkpoint");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = version;
    let end = bytes.len() - 8;
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
}

#[test]
fn memory_does_not_grow_with_the_number_of_urls() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { active_urls: 4_096, recent_urls: 1_024, filter_bytes: 64 << 10, block_bytes: 64 << 10, ..small() };
    let (mut registry, _) = Registry::open(folder.path(), options.clone()).unwrap();
    let mut memory = Vec::new();
    for n in 0..160_000u32 {
        let (url, host) =
            (format!("https://h{}.example/page/{n}", n % 5_000), format!("https://h{}.example", n % 5_000));
        let heard = Heard {
            url: &url,
            known_as: &url,
            host_key: &host,
            site: "example",
            depth: 1,
            via: None,
            crawl: 0,
            class: Class::Page,
            kind: 0,
        };
        assert_eq!(registry.hear(&heard).unwrap(), Verdict::New(n.into()));
        if (n + 1) % 40_000 == 0 {
            memory.push(registry.memory_bytes());
        }
    }
    assert!(memory.iter().all(|bytes| *bytes <= options.memory_bytes_max()), "{memory:?}");
    assert!(memory[3] < memory[0] + (1 << 20), "{memory:?}");
}

#[test]
fn what_is_not_there_is_refused_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(folder.path(), small()).unwrap();
    let heard = |url| Heard {
        url,
        known_as: url,
        host_key: "https://a.example",
        site: "a.example",
        depth: 0,
        via: None,
        crawl: 65_535,
        class: Class::Seed,
        kind: 0,
    };
    let long = "x".repeat(limits::URL_BYTES_MAX + 1);
    assert!(matches!(registry.hear(&heard(&long)), Err(Error::Refused { .. })));
    assert!(matches!(registry.entry(0), Err(Error::NotFound { .. })));
    assert!(matches!(registry.take(HostId(0), 1, 0, &mut Vec::new()), Err(Error::NotFound { .. })));
    let entry = registry.hear(&heard(&long[1..])).unwrap().entry();
    assert!(matches!(registry.set_state(entry, State::Out), Err(Error::Refused { .. })));
    assert_eq!(registry.url(entry).unwrap(), long[1..]);
    let refused = Fate::Keep(State::Refused { rule: 3 }, 77);
    let other = registry.hear_with(&heard(""), || refused).unwrap().entry();
    let told = registry.entry(other).unwrap();
    assert_eq!((told.state, told.note, told.class), (State::Refused { rule: 3 }, 77, None));
    assert_eq!(registry.counts(65_535).waiting, 1);
    let host = registry.find_host(65_535, "https://a.example").unwrap().unwrap();
    assert_eq!(registry.drop_waiting(host, State::Refused { rule: 4 }).unwrap(), 1);
    assert_eq!(registry.waiting(host).unwrap(), 0);
    let found = fingerprint_of(&small().key, 65_535, "");
    assert_eq!(registry.find(found).unwrap(), Some(other));
}
