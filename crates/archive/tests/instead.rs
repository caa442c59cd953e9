//! Removals of a network in copies whose writer is gone: what holders write instead, and what they refuse of each other.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ed25519_dalek::{Signature, Signer, SigningKey};
use skep_archive::layout::{SegmentId, SegmentName, sidecar_of};
use skep_archive::sidecar::SidecarReader;
use skep_archive::{
    Archive, Binding, Closing, Entry, Error, Identity, Instead, Judge, Note, OpenOptions, Piece, Pin, RewritePlan,
    Segment, Selector, State, Sum, Taking, Wanted, WriterKey,
};
use skep_warc::deflate::Level;
use skep_warc::write::{Compression, Encoder};
use skep_warc::{Options, Reader};
use support::*;

const LATER_MS: i64 = START_MS + 1_000_000;

fn network() -> SigningKey {
    SigningKey::from_bytes(&[77; 32])
}

/// A removal as a network of these tests signs it: signature 64, until when 8 LE, selector.
fn signed_by(key: &SigningKey, selector: &str, until_ms: i64) -> Vec<u8> {
    let text = [&until_ms.to_le_bytes()[..], selector.as_bytes()].concat();
    [&key.sign(&text).to_bytes()[..], &text].concat()
}

fn read(signed: &[u8]) -> Result<Binding, &'static str> {
    let (signature, text) = signed.split_first_chunk::<64>().ok_or("it is cut short")?;
    let holds = network().verifying_key().verify_strict(text, &Signature::from_bytes(signature));
    holds.map_err(|_| "nobody signed it who may")?;
    let (until, selector) = text.split_first_chunk::<8>().ok_or("it is cut short")?;
    let selector = std::str::from_utf8(selector).ok().and_then(|text| text.parse::<Selector>().ok());
    Ok(Binding {
        signed: signed.to_vec(),
        selector: selector.ok_or("it says nothing")?,
        until_ms: i64::from_le_bytes(*until),
    })
}

/// What somebody of these tests knows of the network: everything, but for who is gone.
#[derive(Default)]
struct Knows {
    gone: AtomicBool,
}

impl Judge for Knows {
    fn binding(&self, signed: &[u8]) -> Result<Binding, &'static str> {
        read(signed)
    }
    fn is_gone(&self, _: WriterKey) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

fn remove(selector: &str) -> Binding {
    read(&signed_by(&network(), selector, LATER_MS)).unwrap()
}

/// Somebody of the network: knows its members, whose removals bind, and who is gone.
fn member(dir: &Path, secret: u8) -> Archive {
    believing(dir, secret, Arc::new(Knows { gone: true.into() }))
}

fn believing(dir: &Path, secret: u8, knows: Arc<Knows>) -> Archive {
    let archive = Archive::open(dir, OpenOptions { copies: true, ..options(secret) }).unwrap();
    (1..9).for_each(|other| archive.know_writer(Identity::from_secret([other; 32]).public()));
    archive.obey_own_removals_only();
    archive.judge_removals(knows);
    archive
}

fn pull(from: &Archive, to: &Archive, name: SegmentName) -> Result<u64, Error> {
    let taking = if name.generation > 0 { Taking::Whole } else { Taking::Tail };
    let mut at = to.copied(name, taking)?;
    from.settle()?;
    while let Some(piece) = from.piece(name, at, 3000)? {
        let mut bytes = vec![0; piece.length() as usize];
        from.piece_file(&piece)?.read_exact_at(&mut bytes, piece.from).unwrap();
        let mut copying = to.copy(Piece::parse(&piece.head()).unwrap(), taking)?;
        copying.write(&bytes)?;
        let copied = copying.finish()?;
        at = copied.bytes;
        if copied.sealed {
            break;
        }
    }
    to.settle()?;
    Ok(at)
}

fn the(archive: &Archive, id: SegmentId) -> Segment {
    archive.segments().into_iter().find(|segment| segment.name.id == id).unwrap()
}

fn closing(archive: &Archive, id: SegmentId) -> Closing {
    archive.closing(id).unwrap().unwrap()
}

/// Head and block of all records but the last.
fn records(segment: &Segment) -> Vec<(String, String)> {
    let mut reader = Reader::open(&segment.path, Options::strict()).unwrap();
    let mut records = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let mut block = Vec::new();
        std::io::Read::read_to_end(&mut record, &mut block).unwrap();
        let head = String::from_utf8_lossy(record.head().raw()).into_owned();
        records.push((head, String::from_utf8_lossy(&block).into_owned()));
    }
    assert_eq!(reader.take_findings(), []);
    if segment.state == State::Sealed {
        records.pop();
    }
    records
}

/// Everything that stands in any file, decompressed where it is compressed.
fn stands(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, bytes) in tree(dir) {
        let mut all = String::from_utf8_lossy(&bytes).into_owned();
        if name.contains(".warc.gz") {
            let mut reader = Reader::new(std::io::Cursor::new(bytes), Options::recover()).unwrap();
            while let Some(mut record) = reader.next().unwrap() {
                let mut block = Vec::new();
                std::io::Read::read_to_end(&mut record, &mut block).unwrap();
                all.push_str(&String::from_utf8_lossy(&block));
            }
        }
        if all.contains(text) {
            found.push(name);
        }
    }
    found
}

/// A writer of five pages in one segment, and holders that have all of it.
struct Ring {
    dirs: Vec<tempfile::TempDir>,
    writer: Archive,
    holders: Vec<Archive>,
    id: SegmentId,
}

fn ring(holders: u8, sealed: bool) -> Ring {
    let dirs: Vec<_> = (0..=holders).map(|_| tempfile::tempdir().unwrap()).collect();
    let writer = member(dirs[0].path(), 1);
    for page in 0..5 {
        append(&writer, &format!("http://a.example/{page}"), START_MS + page, &format!("secret {page} {page}"));
    }
    if sealed {
        writer.seal().unwrap();
    }
    writer.settle().unwrap();
    let name = writer.segments()[0].name;
    let holders: Vec<Archive> = (1..=holders)
        .map(|number| {
            let holder = member(dirs[number as usize].path(), number + 1);
            pull(&writer, &holder, name).unwrap();
            holder
        })
        .collect();
    Ring { dirs, writer, holders, id: name.id }
}

#[test]
fn holders_come_to_the_same_bytes_apart_and_nothing_but_the_blocks_is_gone() {
    let Ring { dirs, writer, holders, id } = ring(2, true);
    let [one, two] = &holders[..] else { panic!() };
    let (before, sealed) = (records(&the(one, id)), closing(one, id));
    let answered = answers(one);
    let removal = remove("url http://a.example/2");
    assert!(one.hidden_in_copies().unwrap().is_empty());
    one.remove(&removal.selector, "asked").unwrap();
    assert_eq!(one.hidden_in_copies().unwrap().into_iter().collect::<Vec<_>>(), [(id, (3, State::Sealed))]);
    for holder in [one, two] {
        let written = holder.blank_instead(id, std::slice::from_ref(&removal), false).unwrap().unwrap();
        assert_eq!(written, the(holder, id));
        // Sixteen records, of which three are blank now.
        assert_eq!(written.name.generation, 256 * (16 + 3));
        assert!(holder.blank_instead(id, std::slice::from_ref(&removal), false).unwrap().is_none());
        assert_eq!((check(holder), holder.verify(id).unwrap()), (vec![], vec![]));
    }
    assert!(one.hidden_in_copies().unwrap().is_empty());
    let (here, there) = (closing(one, id), closing(two, id));
    assert_eq!(here, there);
    assert_eq!((here.replaces, here.records), (Some(sealed.blake3), sealed.records));
    let instead = Instead { instructions: vec![removal.signed.clone()], open: false };
    assert_eq!(here.instead, Some(instead));
    let [bytes, other] = [one, two].map(|holder| std::fs::read(&the(holder, id).path).unwrap());
    assert!(bytes.len() == other.len() && bytes != other, "they differ by who signed");
    assert_eq!(bytes[..here.bytes as usize], other[..here.bytes as usize]);
    // A challenge is answered alike all the same.
    let (name, all) = (the(one, id).name, bytes.len() as u64);
    let stretch = one.stretch(name, 100, all - 100).unwrap();
    assert!(stretch.is_some() && stretch == two.stretch(name, 100, all - 100).unwrap());

    // Ids, order, heads and digests are what they were; of three records the block is gone.
    for holder in [one, two] {
        let after = records(&the(holder, id));
        assert_eq!(after.len(), before.len());
        for (number, ((head, block), (old_head, old_block))) in after.iter().zip(&before).enumerate() {
            if !(7..10).contains(&number) {
                assert_eq!((head, block), (old_head, old_block), "{number}");
                continue;
            }
            assert!(block.is_empty() && !old_block.is_empty());
            for line in old_head.lines().filter(|line| !line.is_empty()) {
                let value = line.split_once(": ").map_or(line, |(_, value)| value);
                assert!(head.contains(value), "{number} has lost {line}");
            }
            assert!(head.contains("WARC-Removed-By: <urn:uuid:"), "{head}");
        }
        let left: Vec<_> = answered.iter().filter(|answer| answer.0 != "http://a.example/2").cloned().collect();
        assert_eq!(answers(holder), left);
    }
    for (dir, here) in dirs.iter().zip([false, true, true]) {
        assert_eq!(stands(dir.path(), "secret 2").is_empty(), here);
    }

    // Who had nothing takes it; what the writer has is older, whatever it does; and the writer takes it when it comes back.
    let new = tempfile::tempdir().unwrap();
    let newcomer = member(new.path(), 7);
    pull(one, &newcomer, name).unwrap();
    assert_eq!((answers(&newcomer), check(&newcomer)), (answers(one), vec![]));
    let old = the(&writer, id).name;
    assert!(matches!(pull(&writer, one, old), Err(Error::Refused { .. })));
    writer.remove(&removal.selector, "asked").unwrap();
    assert_eq!(the(&writer, id).name.generation, 1);
    assert!(matches!(pull(&writer, two, the(&writer, id).name), Err(Error::Refused { .. })));
    pull(two, &writer, name).unwrap();
    assert_eq!((the(&writer, id).name, check(&writer)), (name, vec![]));
    assert_eq!(answers(&writer), answers(one));
    assert!(stands(dirs[0].path(), "secret 2").is_empty());
    // From there on it writes its own generations again, and the others follow.
    writer.remove(&Selector::Url("http://a.example/4".into()), "asked").unwrap();
    let own = the(&writer, id).name;
    assert_eq!(own.generation, name.generation + 1);
    pull(&writer, one, own).unwrap();
    assert_eq!((the(one, id).name, check(one)), (own, vec![]));
}

#[test]
fn removals_heard_in_any_order_come_to_the_same() {
    let Ring { dirs: _dirs, holders, id, .. } = ring(4, true);
    let page = remove("url http://a.example/1");
    let digest = records(&the(&holders[0], id))
        .into_iter()
        .find_map(|(head, block)| {
            let digest = head.lines().find_map(|line| line.strip_prefix("WARC-Payload-Digest: "))?.to_owned();
            block.contains("secret 3").then_some(digest)
        })
        .expect("responses say what they hold");
    let payload = remove(&format!("digest {digest}"));
    let all = remove("prefix http://a.example/");
    let none = remove("url http://b.example/");
    let early = read(&signed_by(&network(), "prefix http://a.example/", START_MS)).unwrap();
    let does = |holder: &Archive, removals: &[&Binding]| {
        let removals: Vec<Binding> = removals.iter().map(|removal| (*removal).clone()).collect();
        holder.blank_instead(id, &removals, false).unwrap().map(|written| written.name)
    };
    let [one, two, three, four] = &holders[..] else { panic!() };
    // What means nothing, or only what came later, is no reason.
    assert_eq!(does(one, &[&none, &early]), None);
    assert!(does(one, &[&page]).is_some() && does(one, &[&page, &payload]).is_some());
    assert!(does(two, &[&payload]).is_some() && does(two, &[&none, &page]).is_some());
    assert!(does(three, &[&payload, &page]).is_some());
    let seal = |holder: &Archive| (the(holder, id).name, closing(holder, id).blake3);
    assert!(seal(one) == seal(two) && seal(two) == seal(three));
    assert_eq!(closing(three, id).instead.unwrap().instructions.len(), 2);
    // A wider one that means them too: nobody can tell in which order it came.
    for holder in [one, two, three] {
        does(holder, &[&all]).unwrap();
    }
    does(four, &[&all]).unwrap();
    assert!(seal(one) == seal(two) && seal(two) == seal(three) && seal(three) == seal(four));
    assert_eq!((answers(one), check(one)), (vec![], vec![]));
}

#[test]
fn who_has_followed_more_removals_is_not_undone_by_who_has_followed_fewer() {
    let Ring { dirs: _dirs, holders, id, .. } = ring(3, true);
    let [one, two, three] = &holders[..] else { panic!() };
    let pages = [1, 2, 3].map(|page| remove(&format!("url http://a.example/{page}")));
    one.blank_instead(id, &pages[..1], false).unwrap().unwrap();
    two.blank_instead(id, &pages[1..], false).unwrap().unwrap();
    let (here, there) = (the(one, id).name, the(two, id).name);
    assert!(here.generation < there.generation);
    // Higher, but without what was removed here: it stays, and nobody is called a liar.
    assert!(matches!(pull(two, one, there), Err(Error::Refused { why }) if why.contains("was removed here")));
    assert_eq!(the(one, id).name, here);
    one.blank_instead(id, &pages, false).unwrap().unwrap();
    let all = the(one, id).name;
    for holder in [two, three] {
        pull(one, holder, all).unwrap();
        assert_eq!((the(holder, id).name, check(holder)), (all, vec![]));
    }
    assert_eq!(three.hidden_in_copies().unwrap().len(), 0);
}

#[test]
fn of_what_its_writer_never_closed_the_longest_copy_counts() {
    let Ring { dirs: _dirs, writer, holders, id } = ring(3, false);
    let [one, two, three] = &holders[..] else { panic!() };
    append(&writer, "http://a.example/late", START_MS + 9, "late");
    writer.settle().unwrap();
    pull(&writer, two, the(&writer, id).name).unwrap();
    let removal = [remove("url http://a.example/2")];
    assert!(one.blank_instead(id, &removal, false).unwrap().is_none(), "its writer may come back");
    one.blank_instead(id, &removal, true).unwrap().unwrap();
    let short = the(one, id).name;
    assert!(closing(one, id).instead.unwrap().open);
    // Who has more keeps it, and what it makes of it is higher.
    assert!(matches!(pull(one, two, short), Err(Error::Refused { why }) if why.contains("more of")));
    two.blank_instead(id, &removal, true).unwrap().unwrap();
    let long = the(two, id).name;
    assert!(long.generation > short.generation);
    pull(two, one, long).unwrap();
    pull(two, three, long).unwrap();
    // Who still expects the writer does not end what that may be writing.
    let (dir, knows) = (tempfile::tempdir().unwrap(), Arc::new(Knows::default()));
    let expects = believing(dir.path(), 5, knows.clone());
    pull(&writer, &expects, the(&writer, id).name).unwrap();
    assert!(matches!(pull(two, &expects, long), Err(Error::Refused { why }) if why.contains("may come back")));
    assert_eq!(the(&expects, id).state, State::Unclosed);
    knows.gone.store(true, Ordering::Relaxed);
    pull(two, &expects, long).unwrap();
    for holder in [one, three] {
        assert_eq!((answers(holder), check(holder)), (answers(two), vec![]));
        assert!(answers(holder).iter().any(|answer| answer.0 == "http://a.example/late"));
    }
    // A piece of the old tail is no longer wanted.
    let piece = writer.piece(the(&writer, id).name, 0, u64::MAX).unwrap().unwrap();
    assert!(one.copy(piece, Taking::Tail).is_err());
    // What the writer closed has no more records, whoever says so.
    let fourth = tempfile::tempdir().unwrap();
    let ended = member(fourth.path(), 6);
    writer.seal().unwrap();
    writer.settle().unwrap();
    pull(&writer, &ended, the(&writer, id).name).unwrap();
    assert!(matches!(pull(two, &ended, long), Err(Error::Refused { .. })), "here it is known how it ends");
    ended.blank_instead(id, &removal, false).unwrap().unwrap();
    assert_eq!((the(&ended, id).name, closing(&ended, id).blake3), (long, closing(two, id).blake3));
}

/// What somebody who lies would send: the members of a segment, changed, and a closing record about it.
struct Forged {
    members: Vec<Vec<u8>>,
    closing: Closing,
    signer: u8,
}

impl Forged {
    /// What a holder wrote, as it is.
    fn of(holder: &Archive, id: SegmentId) -> Forged {
        let segment = the(holder, id);
        let bytes = std::fs::read(&segment.path).unwrap();
        let mut sidecar = SidecarReader::open(&sidecar_of(&segment.path), segment.name).unwrap().unwrap();
        let mut members = Vec::new();
        while let Some(entries) = sidecar.next_frame().unwrap() {
            let whole = |entry: &Entry| bytes[entry.offset as usize..entry.end() as usize].to_vec();
            members.extend(entries.iter().filter(|entry| entry.note != Note::Closing).map(whole));
        }
        Forged { members, closing: closing(holder, id), signer: 3 }
    }

    fn instead(&mut self) -> &mut Instead {
        self.closing.instead.as_mut().unwrap()
    }

    /// Puts another head and block in the place of a record.
    fn replace(&mut self, record: usize, change: impl FnOnce(String, Vec<u8>) -> (String, Vec<u8>)) {
        let member = self.members[record].clone();
        let mut reader = Reader::new(std::io::Cursor::new(member), Options::recover()).unwrap();
        let mut found = reader.next().unwrap().unwrap();
        let head = String::from_utf8(found.head().raw().to_vec()).unwrap();
        let mut block = Vec::new();
        std::io::Read::read_to_end(&mut found, &mut block).unwrap();
        let (head, block) = change(head, block);
        self.members[record].clear();
        Encoder::new(Compression::GZIP).raw_record(head.as_bytes(), &block, &mut self.members[record]);
    }

    /// Sent to somebody: what becomes of it.
    fn sent_to(mut self, to: &Archive) -> Result<u64, Error> {
        let bytes = self.members.concat();
        (self.closing.bytes, self.closing.blake3) = (bytes.len() as u64, *blake3::hash(&bytes).as_bytes());
        let closing = self.closing.encode(&Identity::from_secret([self.signer; 32]), START_MS).unwrap();
        let dir = tempfile::tempdir().unwrap();
        drop(Archive::open(dir.path(), options(9)).unwrap());
        let name = self.closing.segment;
        let folder = dir.path().join("segments").join(self.closing.half.folder());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name.to_string()), [bytes, closing].concat()).unwrap();
        let liar = member(dir.path(), 9);
        assert_eq!(the(&liar, name.id).state, State::Sealed);
        pull(&liar, to, name)
    }
}

#[track_caller]
fn refused(sent: Result<u64, Error>, because: &str) {
    match sent {
        Err(Error::Damaged { what, .. }) if what.contains(because) => {}
        other => panic!("not refused because of {because:?}: {other:?}"),
    }
}

#[test]
fn what_a_holder_changes_beside_the_removed_blocks_is_refused() {
    let Ring { dirs, writer, holders, id } = ring(3, true);
    let [honest, has, strict] = &holders[..] else { panic!() };
    let removal = remove("url http://a.example/2");
    honest.blank_instead(id, std::slice::from_ref(&removal), false).unwrap().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let newcomer = member(empty.path(), 8);
    let forge = |change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::of(honest, id);
        change(&mut forged);
        forged
    };
    let step = |forged: &mut Forged, blanks: u32| forged.closing.segment.generation = 256 * (16 + blanks);
    let other = |head: String, block: Vec<u8>| {
        let text = String::from_utf8(block).unwrap().replace("secret 4", "sacred 4");
        (head, text.into_bytes())
    };
    let differs = "something else differs";

    // Another block, with digests that are right for it: seen by who has the old bytes, and by nobody else.
    let change = |forged: &mut Forged| {
        forged.replace(14, |head, block| {
            let digests = ["WARC-Block-Digest", "WARC-Payload-Digest"];
            let lines = head.lines().filter(|line| !digests.iter().any(|digest| line.starts_with(digest)));
            let head = lines.collect::<Vec<_>>().join("\r\n") + "\r\n";
            other(head, block)
        });
    };
    refused(forge(&change).sent_to(has), differs);
    // With those that it had: seen by everybody.
    let change = |forged: &mut Forged| forged.replace(14, other);
    refused(forge(&change).sent_to(has), differs);
    refused(forge(&change).sent_to(&newcomer), "digest");
    // A head.
    let change = |forged: &mut Forged| {
        forged.replace(14, |head, block| (head.replace("a.example/4", "b.example/4"), block));
    };
    refused(forge(&change).sent_to(has), differs);
    // One record fewer, one more, two in another order.
    let change = |forged: &mut Forged| {
        forged.members.pop();
    };
    refused(forge(&change).sent_to(has), differs);
    let change = |forged: &mut Forged| {
        let last = forged.members.last().unwrap().clone();
        forged.members.push(last);
        forged.closing.records += 1;
        forged.closing.segment.generation += 256;
    };
    refused(forge(&change).sent_to(has), "more records than its writer closed it with");
    let change = |forged: &mut Forged| forged.members.swap(4, 14);
    refused(forge(&change).sent_to(has), differs);
    // A record that nobody removed is blank, too.
    let change = |forged: &mut Forged| {
        let by = forged.members[8].clone();
        let mut reader = Reader::new(std::io::Cursor::new(by), Options::recover()).unwrap();
        let by = reader.next().unwrap().unwrap().head().text("WARC-Removed-By").unwrap().into_owned();
        forged.replace(14, |head, block| {
            let head = head.replace(&format!("Content-Length: {}", block.len()), "Content-Length: 0");
            let head =
                head.replace("WARC-Block-", "WARC-Removed-Block-").replace("WARC-Payload-", "WARC-Removed-Payload-");
            (head.replace("\r\n\r\n", &format!("\r\nWARC-Removed-By: {by}\r\n\r\n")), Vec::new())
        });
        step(forged, 4);
    };
    refused(forge(&change).sent_to(has), differs);
    refused(forge(&change).sent_to(&newcomer), "none of its removals means");

    // The wrong removal, one that nobody signed, one signed by somebody else, none at all.
    let instruction = |signed: Vec<u8>| move |forged: &mut Forged| forged.instead().instructions = vec![signed.clone()];
    let wrong = signed_by(&network(), "url http://a.example/3", LATER_MS);
    refused(forge(&instruction(wrong.clone())).sent_to(has), differs);
    refused(forge(&instruction(wrong)).sent_to(&newcomer), "none of its removals means");
    let early = signed_by(&network(), "url http://a.example/2", START_MS);
    refused(forge(&instruction(early)).sent_to(has), differs);
    let mut unsigned = removal.signed.clone();
    unsigned[..64].fill(0);
    let foreign = signed_by(&SigningKey::from_bytes(&[78; 32]), "url http://a.example/2", LATER_MS);
    for signed in [unsigned, foreign, Vec::new()] {
        for to in [has, &newcomer] {
            refused(forge(&instruction(signed.clone())).sent_to(to), "binds nobody");
        }
    }
    refused(forge(&|forged| forged.closing.instead = None).sent_to(has), "the signature is that of writer");
    // A generation that is not what it says, a holder that nobody knows, and somebody who cannot judge.
    refused(forge(&|forged| forged.closing.segment.generation += 256).sent_to(has), "its generation is not");
    refused(forge(&|forged| step(forged, 2)).sent_to(&newcomer), "its generation is not");
    refused(forge(&|forged| forged.signer = 99).sent_to(has), "is not known here");
    let alone = tempfile::tempdir().unwrap();
    let alone = Archive::open(alone.path(), OpenOptions { copies: true, ..options(7) }).unwrap();
    refused(forge(&|_| ()).sent_to(&alone), "nobody here says");

    // Nothing of all that has left a trace; and what was written by the rules is taken, whoever brings it.
    for archive in [has, strict, &writer] {
        assert_eq!((the(archive, id).name.generation, check(archive)), (0, vec![]));
    }
    assert!(newcomer.segments().is_empty());
    assert!(stands(dirs[2].path(), "sacred").is_empty());
    for to in [has, strict, &newcomer, &writer] {
        forge(&|_| ()).sent_to(to).unwrap();
        assert_eq!((answers(to), check(to)), (answers(honest), vec![]));
    }
}

#[test]
fn a_writer_who_comes_back_does_not_bring_back_what_was_removed() {
    let Ring { dirs: _dirs, writer, holders, id } = ring(2, true);
    let [one, two] = &holders[..] else { panic!() };
    let removal = [remove("url http://a.example/2")];
    let mut undone = Forged::of(one, id);
    one.blank_instead(id, &removal, false).unwrap().unwrap();
    two.blank_instead(id, &removal, false).unwrap().unwrap();
    // Its own seal, above what holders wrote.
    let before = closing(one, id);
    undone.signer = 1;
    undone.closing = Closing {
        segment: SegmentName { id, generation: before.segment.generation + 1 },
        replaces: Some(before.blake3),
        ..closing(&writer, id)
    };
    refused(undone.sent_to(one), "brings back what was removed");
    let mut dropped = Forged::of(one, id);
    dropped.signer = 1;
    dropped.closing = Closing {
        segment: SegmentName { id, generation: before.segment.generation + 1 },
        replaces: Some(before.blake3),
        instead: None,
        ..before.clone()
    };
    dropped.members.remove(8);
    refused(dropped.sent_to(one), "brings back what was removed");
    let mut kept = Forged::of(one, id);
    kept.signer = 1;
    kept.closing = Closing {
        segment: SegmentName { id, generation: before.segment.generation + 1 },
        replaces: Some(before.blake3),
        instead: None,
        ..before
    };
    kept.sent_to(one).unwrap();
    assert_eq!(check(one), []);
}

#[test]
fn what_was_replaced_in_a_copy_is_not_left_lying_beside_it() {
    let Ring { dirs, holders, id, .. } = ring(1, true);
    let old = the(&holders[0], id).path;
    let (bytes, named) = (std::fs::read(&old).unwrap(), std::fs::read(sidecar_of(&old)).unwrap());
    holders[0].blank_instead(id, &[remove("url http://a.example/2")], false).unwrap().unwrap();
    assert!(stands(dirs[1].path(), "secret 2").is_empty());
    drop(holders);
    // As if it had ended before the last step.
    std::fs::write(&old, bytes).unwrap();
    std::fs::write(sidecar_of(&old), named).unwrap();
    assert!(!stands(dirs[1].path(), "secret 2").is_empty());
    let again = member(dirs[1].path(), 2);
    assert_eq!((again.finish_opening(), check(&again)), (vec![], vec![]));
    assert!(stands(dirs[1].path(), "secret 2").is_empty());
    let names: BTreeSet<u32> = again.segments().iter().map(|segment| segment.name.generation).collect();
    assert!(names.contains(&(256 * 19)), "{names:?}");
}

#[test]
fn what_a_peer_said_of_its_records_decides_nothing() {
    let Ring { dirs: _dirs, writer, holders, id } = ring(1, true);
    let removal = [remove("url http://a.example/2")];
    holders[0].blank_instead(id, &removal, false).unwrap().unwrap();
    // Somebody sends the right bytes, and says of one page that it is the other.
    let dir = tempfile::tempdir().unwrap();
    let misled = member(dir.path(), 4);
    let mut piece = writer.piece(the(&writer, id).name, 0, u64::MAX).unwrap().unwrap();
    let mut bytes = vec![0; piece.length() as usize];
    writer.piece_file(&piece).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    for entry in &mut piece.entries {
        if let Note::Capture(capture) = &mut entry.note {
            let url = match capture.url.as_str() {
                "http://a.example/2" => "http://a.example/4",
                "http://a.example/4" => "http://a.example/2",
                _ => continue,
            };
            (capture.url, capture.key) = (url.to_owned(), skep_archive::Key::of(url));
        }
    }
    let mut copying = misled.copy(Piece::parse(&piece.head()).unwrap(), Taking::Tail).unwrap();
    copying.write(&bytes).unwrap();
    copying.finish().unwrap();
    assert_ne!(check(&misled), []);
    misled.blank_instead(id, &removal, false).unwrap().unwrap();
    assert_eq!(closing(&misled, id).blake3, closing(&holders[0], id).blake3);
    assert!(stands(dir.path(), "secret 2").is_empty() && !stands(dir.path(), "secret 4").is_empty());
    assert_eq!(misled.verify(id).unwrap(), []);
}

fn large() -> String {
    (0..60_000).map(|number| format!("{} ", number * 7919 % 10_007)).collect()
}

/// A writer with two holders, and a large body to which somebody elsewhere refers.
fn ring_with_pin() -> (Ring, Pin) {
    let ring = ring(2, false);
    let writer = &ring.writer;
    append(writer, "http://a.example/large", START_MS + 9, &large());
    writer.settle().unwrap();
    let Sum { payload, sha256, length, .. } = Sum::of(&mut large().as_bytes(), &[0; 32]).unwrap();
    let same = writer.same_body(&Wanted { payload, sha256, length, key: [0; 32] }, &|_| true).unwrap().unwrap();
    let pin = Pin {
        position: same.position,
        original: same.url,
        original_ms: same.time_ms,
        referrer: "http://b.example/".to_owned(),
        payload,
        sha256,
        length,
    };
    assert!(writer.pin(&pin).unwrap());
    writer.seal().unwrap();
    writer.settle().unwrap();
    for holder in &ring.holders {
        pull(writer, holder, the(writer, ring.id).name).unwrap();
        assert_eq!(holder.views().pins_of(pin.position).unwrap().len(), 1, "copied with its segment");
    }
    (ring, pin)
}

#[test]
fn its_writer_takes_no_body_from_holders_who_know_that_it_is_needed() {
    let (Ring { dirs, writer, holders, id }, pin) = ring_with_pin();
    let [one, two] = &holders[..] else { panic!() };
    // Written again with every body in it, it takes the place of what was there.
    let smaller = writer.rewrite(id, &RewritePlan { level: Some(Level::new(1)), ..RewritePlan::default() }).unwrap();
    for holder in [one, two] {
        pull(&writer, holder, smaller.name).unwrap();
        assert!(holder.read(pin.position).is_ok());
    }
    let part = &large()[1_000..1_200];
    let removal = remove("url http://a.example/large");
    writer.unpin(&pin).unwrap();
    writer.remove(&removal.selector, "asked").unwrap();
    let without = the(&writer, id).name;
    assert_eq!((without.generation, stands(dirs[0].path(), part)), (2, vec![]));
    // Neither who has not heard that it is removed, nor who has.
    two.remove(&removal.selector, "asked").unwrap();
    for holder in [one, two] {
        assert!(matches!(pull(&writer, holder, without), Err(Error::Refused { why }) if why.contains("stand for")));
        assert_eq!(the(holder, id).name, smaller.name);
        assert_eq!(holder.removed_and_pinned().unwrap(), [pin.position], "it is to be asked about");
    }
    assert!(one.read(pin.position).is_ok());
    for (holder, dir) in [(one, &dirs[1]), (two, &dirs[2])] {
        holder.unpin(&pin).unwrap();
        pull(&writer, holder, without).unwrap();
        assert_eq!((stands(dir.path(), part), check(holder)), (vec![], vec![]));
        assert_eq!(holder.removed_and_pinned().unwrap(), []);
    }
    // Who never had it misses nothing, whatever is pinned there.
    let dir = tempfile::tempdir().unwrap();
    let newcomer = member(dir.path(), 5);
    pull(&writer, &newcomer, without).unwrap();
    assert_eq!(newcomer.views().pins_of(pin.position).unwrap().len(), 1);
    let again = writer.rewrite(id, &RewritePlan { level: Some(Level::new(9)), ..RewritePlan::default() }).unwrap();
    pull(&writer, &newcomer, again.name).unwrap();
}

#[test]
fn a_body_to_which_others_refer_is_written_out_by_nobody_before_they_have_their_own() {
    let (Ring { dirs: _dirs, writer, holders, id }, pin) = ring_with_pin();
    let [one, two] = &holders[..] else { panic!() };
    let removal = remove("url http://a.example/large");
    let write = |holder: &Archive| holder.blank_instead(id, std::slice::from_ref(&removal), false);
    assert!(matches!(write(one), Err(Error::Refused { .. })));
    // Who has heard that it has ended writes; who has not does not take that.
    one.unpin(&pin).unwrap();
    let written = write(one).unwrap().unwrap();
    assert!(matches!(pull(one, two, written.name), Err(Error::Refused { .. })));
    assert!(two.read(pin.position).is_ok());
    two.unpin(&pin).unwrap();
    pull(one, two, written.name).unwrap();
    assert_eq!(closing(one, id), closing(two, id));
    // The writer goes by its own word: nobody else ends what it pinned.
    assert_eq!(writer.views().pins_of(pin.position).unwrap().len(), 1);
}
