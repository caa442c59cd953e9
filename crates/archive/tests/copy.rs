//! Copies between archives: prefixes that grow, seals that hold, damage that is found, removals that arrive.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use skep_archive::layout::SegmentName;
use skep_archive::{Archive, Error, Held, OpenOptions, Piece, Selector, State, Taking};
use support::*;

fn held(archive: &Archive) -> Vec<Held> {
    archive.settle().unwrap();
    archive.held(0, u32::MAX).unwrap()
}

/// What a holder has from others, made by this process.
fn holder(dir: &Path, secret: u8) -> Archive {
    Archive::open(dir, OpenOptions { copies: true, ..options(secret) }).unwrap()
}

/// The bytes of a piece, as they would travel.
fn bytes_of(from: &Archive, piece: &Piece) -> Vec<u8> {
    let mut bytes = vec![0; piece.length() as usize];
    from.piece_file(piece).unwrap().read_exact_at(&mut bytes, piece.from).unwrap();
    bytes
}

/// Pulls what a segment has, in pieces of about `size` bytes; `change` may alter what travels.
fn pull(
    from: &Archive,
    to: &Archive,
    name: SegmentName,
    taking: Taking,
    size: u64,
    change: &mut dyn FnMut(&mut Vec<u8>),
) -> Result<u64, Error> {
    let mut at = to.copied(name, taking)?;
    while let Some(piece) = from.piece(name, at, size)? {
        let mut bytes = bytes_of(from, &piece);
        change(&mut bytes);
        // The head travels too.
        let piece = Piece::parse(&piece.head()).unwrap();
        let mut copying = to.copy(piece, taking)?;
        bytes.chunks(1000).try_for_each(|part| copying.write(part))?;
        let copied = copying.finish()?;
        at = copied.bytes;
        if copied.sealed {
            break;
        }
    }
    Ok(at)
}

fn pull_all(from: &Archive, to: &Archive) {
    for held in held(from) {
        let here = to.segments().into_iter().find(|segment| segment.name.id == held.name.id);
        let whole = held.name.generation > 0;
        match here {
            Some(here) if here.name == held.name && here.state == State::Sealed => {}
            _ if held.name.id.writer == to.writer() => {}
            _ => {
                let taking = if whole { Taking::Whole } else { Taking::Tail };
                assert_eq!(pull(from, to, held.name, taking, 2500, &mut |_| ()).unwrap(), held.bytes);
            }
        }
    }
}

#[test]
fn a_copy_grows_with_two_writers_and_answers_like_them() {
    let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let writers = [open(dirs[0].path(), 1), open(dirs[1].path(), 2)];
    let copy = holder(dirs[2].path(), 3);
    for round in 0..4 {
        for (number, writer) in writers.iter().enumerate() {
            for page in 0..3 {
                let url = format!("http://site{page}.example/{number}/{round}");
                append(writer, &url, START_MS + round, &format!("{number} {round} {page} {}", "text ".repeat(200)));
            }
            pull_all(writer, &copy);
        }
        // Everything synced is answered, though nothing is sealed yet.
        let mut all: Vec<_> = writers.iter().flat_map(answers).collect();
        let mut copied = answers(&copy);
        all.sort();
        copied.sort();
        assert_eq!(copied, all, "round {round}");
    }
    assert!(held(&copy).iter().all(|held| !held.sealed));
    for writer in &writers {
        writer.seal().unwrap();
        pull_all(writer, &copy);
    }
    for segment in held(&copy).iter().filter(|held| held.name.id.writer != copy.writer()) {
        assert!(segment.sealed);
        assert_eq!(copy.verify(segment.name.id).unwrap(), []);
        let of = writers.iter().find(|writer| writer.writer() == segment.name.id.writer).unwrap();
        assert_eq!(copy.closing(segment.name.id).unwrap(), of.closing(segment.name.id).unwrap());
        // A challenge over any bytes is answered alike by both.
        let (from, bytes) = (segment.bytes / 3, segment.bytes - segment.bytes / 3);
        let stretch = copy.stretch(segment.name, from, bytes).unwrap();
        assert!(stretch.is_some() && stretch == of.stretch(segment.name, from, bytes).unwrap());
        assert_eq!(copy.stretch(segment.name, from, bytes + 1).unwrap(), None);
        assert_eq!(copy.stretch(segment.name, u64::MAX, 1).unwrap(), None);
    }
    assert_eq!(check(&copy), []);
    let (live, live_digests) = (captures(&copy), digests(&copy));
    assert_eq!(live.len(), 24);
    copy.close().unwrap();
    // The copy is an archive like any other: rebuilt, it says the same.
    let again = Archive::rebuild(dirs[2].path(), OpenOptions { copies: true, ..options(3) }, true).unwrap();
    assert_eq!((captures(&again), digests(&again)), (live, live_digests));
}

#[test]
fn pieces_that_do_not_fit_are_refused_and_change_nothing() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, copy) = (open(one.path(), 1), holder(two.path(), 2));
    append(&writer, "http://a.example/1", START_MS, "one");
    append(&writer, "http://a.example/2", START_MS, "two");
    let name = held(&writer)[0].name;
    let whole = writer.piece(name, 0, u64::MAX).unwrap().unwrap();
    let refused = |piece: Piece, taking: Taking| match copy.copy(piece, taking).map(|_| ()) {
        Err(Error::Refused { why }) => why,
        other => panic!("{other:?}"),
    };
    let mut late = whole.clone();
    late.entries.remove(0);
    late.from = late.entries[0].offset;
    assert!(refused(late, Taking::Tail).contains("goes on at byte 0"));
    let mut gap = whole.clone();
    gap.to += 1;
    assert!(refused(gap, Taking::Tail).contains("do not fill it"));
    let mut elsewhere = whole.clone();
    elsewhere.half = skep_archive::layout::HalfSlice::of(!elsewhere.half.range().0, 8);
    assert!(refused(elsewhere, Taking::Tail).contains("of another slice"));
    let mut own = whole.clone();
    own.name.id.writer = copy.writer();
    assert!(refused(own, Taking::Tail).contains("not another writer's"));
    // Cut short, and never finished: the next one begins at the same byte.
    let bytes = bytes_of(&writer, &whole);
    let mut short = copy.copy(whole.clone(), Taking::Tail).unwrap();
    short.write(&bytes[..10]).unwrap();
    assert!(refused(whole.clone(), Taking::Tail).contains("is being copied already"));
    assert!(short.finish().is_err());
    let mut dropped = copy.copy(whole.clone(), Taking::Tail).unwrap();
    dropped.write(&bytes).unwrap();
    assert!(dropped.write(b"more").is_err());
    drop(dropped);
    assert_eq!(captures(&copy).len(), 0);
    assert_eq!(pull(&writer, &copy, name, Taking::Tail, 500, &mut |_| ()).unwrap(), whole.to);
    assert_eq!(answers(&copy), answers(&writer));
    // The head of a piece: frozen, and any change is noticed.
    let head = whole.head();
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/piece/two-fetches");
    if std::env::var_os("SKEP_FREEZE").is_some() {
        std::fs::write(&frozen, &head).unwrap();
    }
    assert_eq!(std::fs::read(&frozen).unwrap(), head, "a head is written otherwise than it was");
    for at in 0..head.len() {
        assert!(Piece::parse(&head[..at]).is_err(), "{at}");
        let mut changed = head.clone();
        changed[at] ^= 1;
        assert_ne!(Piece::parse(&changed).as_ref(), Ok(&whole), "{at}");
    }
}

#[test]
fn an_altered_byte_is_found_and_healed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, copy) = (open(one.path(), 1), holder(two.path(), 2));
    for page in 0..20 {
        append(&writer, &format!("http://a.example/{page}"), START_MS + page, &format!("body {page}"));
    }
    writer.seal().unwrap();
    let segment = held(&writer)[0];
    // A peer that alters one byte of one piece: found when the seal arrives, and nothing of the copy is kept.
    let mut pieces = 0;
    let mut alter = |bytes: &mut Vec<u8>| {
        pieces += 1;
        if pieces == 2 {
            bytes[100] ^= 4;
        }
    };
    let error = pull(&writer, &copy, segment.name, Taking::Tail, 2000, &mut alter).unwrap_err();
    assert!(matches!(&error, Error::Damaged { what, .. } if what.contains("BLAKE3 differs")), "{error}");
    assert_eq!(copy.copied(segment.name, Taking::Tail).unwrap(), 0);
    pull(&writer, &copy, segment.name, Taking::Tail, 2000, &mut |_| ()).unwrap();
    assert_eq!((answers(&copy), check(&copy)), (answers(&writer), vec![]));
    assert!(matches!(
        copy.copy(writer.piece(segment.name, 0, 1).unwrap().unwrap(), Taking::Tail),
        Err(Error::Refused { .. })
    ));

    // A bit flips on the disk of one, then of the other: each is healed by the copy of the other, the writer's own too.
    for (hurt, whole) in [(&copy, &writer), (&writer, &copy)] {
        let path = hurt.segments().iter().find(|s| s.name.id == segment.name.id).unwrap().path.clone();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        assert!(!hurt.verify(segment.name.id).unwrap().is_empty());
        // Another who is no better cannot take its place.
        let error = pull(whole, hurt, segment.name, Taking::Whole, 2000, &mut |bytes| bytes[0] ^= 1).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        pull(whole, hurt, segment.name, Taking::Whole, 2000, &mut |_| ()).unwrap();
        assert_eq!(hurt.verify(segment.name.id).unwrap(), []);
        assert_eq!((answers(hurt).len(), check(hurt)), (20, vec![]));
    }
    writer.close().unwrap();
    copy.close().unwrap();
    assert_eq!(holder(two.path(), 2).opened(), []);
}

#[test]
fn a_writer_removes_everywhere_and_the_bytes_go() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, copy) = (holder(one.path(), 1), holder(two.path(), 2));
    for page in 0..4 {
        append(&writer, &format!("http://a.example/{page}"), START_MS + page, &format!("secret {page}"));
    }
    writer.seal().unwrap();
    pull_all(&writer, &copy);
    assert_eq!(captures(&copy).len(), 4);
    // By the writer: the rewritten generation takes the place of the copy.
    writer.remove(&Selector::Url("http://a.example/1".into()), "asked").unwrap();
    pull_all(&writer, &copy);
    assert_eq!(answers(&copy), answers(&writer));
    assert_eq!(captures(&copy).len(), 3);
    // By a holder: hidden at once there, and nowhere else until whoever wrote it removes it too.
    let removed = copy.remove(&Selector::Url("http://a.example/2".into()), "asked").unwrap();
    assert_eq!(removed.only_hidden.len(), 3);
    assert_eq!(captures(&copy).len(), 2);
    pull_all(&copy, &writer);
    assert_eq!(captures(&writer).len(), 3);
    assert_eq!(writer.follow_removals().unwrap(), []);
    assert_eq!(captures(&writer).len(), 3);
    writer.remove(&Selector::Url("http://a.example/2".into()), "asked").unwrap();
    pull_all(&writer, &copy);
    assert_eq!(answers(&copy), answers(&writer));
    for (archive, dir) in [(&writer, &one), (&copy, &two)] {
        assert_eq!(check(archive), []);
        let names: Vec<_> =
            tree(&dir.path().join("segments")).into_keys().filter(|name| name.contains("000001")).collect();
        assert!(names.iter().any(|name| name.ends_with("000001.g2.warc.gz")), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with("000001.g1.warc.gz")), "{names:?}");
        for (path, bytes) in tree(&dir.path().join("segments")).iter().filter(|(name, _)| name.ends_with(".warc.gz")) {
            let mut reader =
                skep_warc::Reader::new(std::io::Cursor::new(bytes.clone()), skep_warc::Options::recover()).unwrap();
            while let Some(mut record) = reader.next().unwrap() {
                let mut text = Vec::new();
                std::io::Read::read_to_end(&mut record, &mut text).unwrap();
                let text = String::from_utf8_lossy(&text).into_owned();
                assert!(!text.contains("secret 1") && !text.contains("secret 2"), "{path}");
            }
        }
    }
}

fn copier() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.parent().unwrap().parent().unwrap().join("examples").join("copier");
    assert!(path.is_file(), "{} is missing; `cargo build --examples` makes it", path.display());
    path
}

#[test]
fn a_copy_that_is_killed_is_a_prefix_and_goes_on() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = Archive::open(one.path(), OpenOptions { segment_bytes_max: 60_000, ..options(1) }).unwrap();
    for page in 0..120 {
        let body: String = (0..400).map(|word| format!("{} ", word * (page + 7) % 977)).collect();
        append(&writer, &format!("http://site{}.example/{page}", page % 5), START_MS + page, &body);
    }
    let all = answers(&writer);
    writer.close().unwrap();
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    let mut seed = 3_u64;
    for kill in 0..8 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lines = 1 + (seed >> 33) as usize % 12;
        let mut child = Command::new(copier()).arg(one.path()).arg(two.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..lines {
            line.clear();
            if out.read_line(&mut line).unwrap() == 0 {
                break;
            }
            let (name, bytes) = line.trim().split_once(' ').unwrap();
            told.insert(name.to_owned(), bytes.parse().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let copy = holder(two.path(), 2);
        assert!(copy.opened().iter().all(|finding| finding.mended), "kill {kill}: {:?}", copy.opened());
        for (name, bytes) in &told {
            let here = held(&copy).into_iter().find(|held| held.name.to_string() == *name).unwrap();
            assert!(here.bytes >= *bytes, "kill {kill}: {name} had {bytes} bytes, has {}", here.bytes);
        }
        for segment in copy.segments() {
            let original =
                std::fs::read(one.path().join(segment.path.strip_prefix(copy.layout().root()).unwrap())).unwrap();
            let copied = std::fs::read(&segment.path).unwrap();
            assert!(original.starts_with(&copied), "kill {kill}: {} is no prefix", segment.name);
        }
        let found = answers(&copy);
        assert!(found.iter().all(|answer| all.contains(answer)));
    }
    let status = Command::new(copier()).arg(one.path()).arg(two.path()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let copy = holder(two.path(), 2);
    assert_eq!((answers(&copy), check(&copy)), (all, vec![]));
}

#[test]
fn with_own_removals_only_what_a_copy_says_hides_nothing() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, liar) = (holder(one.path(), 1), holder(two.path(), 2));
    append(&writer, "http://a.example/1", START_MS, "one");
    append(&writer, "http://a.example/2", START_MS, "two");
    writer.obey_own_removals_only();
    pull_all(&writer, &liar);
    liar.remove(&Selector::Url("http://a.example/1".into()), "out of spite").unwrap();
    pull_all(&liar, &writer);
    assert_eq!((captures(&liar).len(), captures(&writer).len()), (1, 2));
    assert_eq!((check(&writer), check(&liar)), (vec![], vec![]), "nothing is wrong with a record that binds nobody");
    // The record itself is kept, as any other, and a reopened archive is none the wiser.
    writer.close().unwrap();
    let writer = holder(one.path(), 1);
    assert_eq!(captures(&writer).len(), 2);
    // What is removed here is removed; what was captured later is not.
    let selector = Selector::Url("http://a.example/1".into());
    append(&writer, "http://a.example/1", START_MS + 1_000, "again");
    let removed = writer.remove_until(&selector, "asked", START_MS + 1_000).unwrap();
    assert!(!removed.positions.is_empty());
    assert_eq!(captures(&writer).len(), 2);
    assert_eq!(selector.to_string().parse(), Ok(selector));
}

#[test]
fn a_record_that_is_said_to_be_blank_in_a_segment_as_it_was_written_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, copy) = (holder(one.path(), 1), holder(two.path(), 2));
    append(&writer, "http://a.example/1", START_MS, "one");
    let name = held(&writer)[0].name;
    let mut piece = writer.piece(name, 0, u64::MAX).unwrap().unwrap();
    piece.entries[1].note = skep_archive::Note::Blank;
    assert!(matches!(copy.copy(piece, Taking::Tail), Err(Error::Damaged { .. })));
    pull_all(&writer, &copy);
    assert_eq!(answers(&copy), answers(&writer));
}

#[test]
fn segments_that_are_lost_leave_no_number_free() {
    let dir = tempfile::tempdir().unwrap();
    let node = holder(dir.path(), 1);
    append(&node, "http://a.example/1", START_MS, "one");
    let first = held(&node)[0].name.id.number;
    node.close().unwrap();
    for folder in ["segments", "views"] {
        std::fs::remove_dir_all(dir.path().join(folder)).unwrap();
    }
    let node = holder(dir.path(), 1);
    append(&node, "http://a.example/1", START_MS, "another one");
    assert!(held(&node)[0].name.id.number > first);
}

#[test]
fn what_is_private_is_not_appended_where_others_have_copies() {
    let [own, joint] = [1, 2].map(|_| tempfile::tempdir().unwrap());
    let private = || fetch_of("http://private.example/", 1_000, "secret", true);
    let one = Archive::open(own.path(), options(1)).unwrap();
    let [_, response, _] = one.append(private()).unwrap().wait().unwrap().positions[..] else {
        panic!("three records")
    };
    assert!(one.is_private(response).unwrap());
    let node = holder(joint.path(), 2);
    let refused = node.append(private()).map(drop);
    assert!(matches!(refused, Err(Error::Private)), "{refused:?}");
    let public = append(&node, "http://public.example/", 1_000, "open").positions[1];
    assert!(!node.is_private(public).unwrap());
    drop(node);
    // It is one of a network also when nobody copies just now.
    let node = Archive::open(joint.path(), options(2)).unwrap();
    assert!(matches!(node.append(private()).map(drop), Err(Error::Private)));
    assert_eq!(captures(&node).iter().filter(|capture| capture.is_private()).count(), 0);
}
