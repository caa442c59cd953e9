//! What a holder writes instead of a writer who is gone: the next generation of a segment of somebody else, without the blocks that removals of
//! the network mean. Read top to bottom.
//!
//! ```text
//!  what is here ──▶ which records do the removals mean? ──▶ all others copied, these blank ──▶ closing record, version 2, signed by the holder
//!  what comes   ──▶ the same is done with what is here, and its BLAKE3 must be the one that came
//! ```
//! Everything before the closing record follows from which records are there and which of them are blank, so that holders who do it apart, and heard
//! of the removals in any order, come to the same bytes under the same name:
//! ```text
//!  WARC-Removed-By   in every blank record the id of the closing record of this file, which follows from the segment alone
//!  members           blank records and the closing record are wrapped, not compressed: no program does that in another way
//!  generation        256 × (records + blank ones): more of it is always higher, the same is always the same
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::{Arc, PoisonError};

use skep_warc::write::RecordId;
use skep_warc::{Head, Options, Reader, Severity};

use crate::archive::{Archive, Shared};
use crate::capture::{Capture, Position, WriterKey};
use crate::catalog::{Segment, State};
use crate::check;
use crate::closing::{Closing, Instead};
use crate::copy::Busy;
use crate::describe;
use crate::error::{Error, Result};
use crate::follow::SegmentCommit;
use crate::identity::{self, writer_of};
use crate::keeper::hash;
use crate::layout::{SegmentId, SegmentName, part_of, sidecar_of};
use crate::limits::{INSTEAD_INSTRUCTIONS_BYTES_MAX, INSTEAD_STEP};
use crate::own;
use crate::read::Stored;
use crate::remove::{Matcher, Selector};
use crate::rewrite::{Output, REMOVED_BY, blank_head, closing_of, delete_generation, sealed_entries, verify};
use crate::settings::sync_folder_of;
use crate::sidecar::{Entry, Note, SidecarReader, SidecarWriter};

/// A removal that binds whoever has a copy: what the network signed, and what it says.
#[derive(Debug, Clone)]
pub struct Binding {
    /// As it was signed; not read here.
    pub signed: Vec<u8>,
    /// What is removed …
    pub selector: Selector,
    /// … as far as it was captured before this moment, in milliseconds since 1970.
    pub until_ms: i64,
}

/// Who knows the network.
pub trait Judge: Send + Sync {
    /// Reads what was signed; an error says why it binds nobody.
    fn binding(&self, signed: &[u8]) -> std::result::Result<Binding, &'static str>;
    /// Whether a writer will never come back to close what it was writing.
    fn is_gone(&self, writer: WriterKey) -> bool;
}

/// The id of the closing record of a segment that a holder wrote, and of what removed its blank records.
pub fn removed_by(id: SegmentId) -> RecordId {
    let first = SegmentName { id, generation: 0 };
    identity::record_id(&[b"instead", first.to_string().as_bytes()])
}

/// The generation that so many records are, of which so many are blank. What the writer makes by itself, one after the other, stays below.
fn generation(records: u32, blanks: u32) -> Option<u32> {
    INSTEAD_STEP.checked_mul(records.checked_add(blanks)?)
}

impl Archive {
    /// Who says which removals bind: from now on a generation that a holder wrote by them may take the place of what is here.
    pub fn judge_removals(&self, judge: Arc<dyn Judge>) {
        self.shared.copies().judge = Some(judge);
    }

    /// Segments of other writers in which records are hidden here that still have their block: how many, and how far along the segment is.
    pub fn hidden_in_copies(&self) -> Result<BTreeMap<SegmentId, (usize, State)>> {
        self.settle()?;
        let mut hidden: BTreeMap<SegmentId, usize> = BTreeMap::new();
        for position in self.views().hidden_with_block()? {
            if position.writer != self.writer() && position.writer != WriterKey::FOREIGN {
                *hidden.entry(SegmentId::from(position)).or_default() += 1;
            }
        }
        let catalog = self.shared.catalog();
        let here = |(id, records): (SegmentId, usize)| Some((id, (records, catalog.get(id)?.state)));
        Ok(hidden.into_iter().filter_map(here).collect())
    }

    /// Writes a segment of another writer again, without the blocks that these removals mean, because its writer is gone. What was never
    /// closed is left as it is, unless `unclosed` says that nobody will. `None` if there is nothing to be done.
    pub fn blank_instead(&self, id: SegmentId, bindings: &[Binding], unclosed: bool) -> Result<Option<Segment>> {
        let shared = &self.shared;
        let refuse = |why: String| Err(Error::Refused { why });
        if shared.read_only {
            return Err(Error::NotWritable { why: "the archive was opened for reading only" });
        }
        if id.writer == self.writer() || id.writer == WriterKey::FOREIGN {
            return refuse(format!("segment {id} is not another writer's"));
        }
        let _no_piece_meanwhile = Busy::take(shared, id)?;
        let _one_at_a_time = shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        shared.following.settle()?;
        let segment = shared.catalog().get(id).cloned();
        let segment = segment.ok_or_else(|| Error::NotFound { what: format!("segment {id}") })?;
        if segment.state == State::Unclosed && !unclosed {
            return Ok(None);
        }
        let here = Here::of(shared, segment)?;
        let meant = Meant::of(&here, bindings)?;
        if meant.records.is_empty() {
            return Ok(None);
        }
        // Which of its blocks may go already is not the same everywhere: all of them or none.
        if meant.is_pinned(shared, id)? {
            return refuse(format!(
                "revisits elsewhere stand for a body in segment {id}, and have none of their own yet"
            ));
        }
        here.is_intact()?;
        let instructions = here.with(meant.by.iter().map(|by| bindings[*by].signed.clone()));
        if instructions.iter().map(Vec::len).sum::<usize>() > INSTEAD_INSTRUCTIONS_BYTES_MAX {
            return refuse(format!("more removals mean segment {id} than a closing record has room for"));
        }
        let said_ms = meant.by.iter().map(|by| bindings[*by].until_ms).max().unwrap_or_default();
        let written = here.write_again(shared, &meant, instructions, said_ms)?;
        shared.copies().forget(id);
        Ok(Some(written))
    }
}

/// A segment as it stands here.
struct Here {
    segment: Segment,
    /// What its records are, without the closing record …
    entries: Vec<Entry>,
    /// … which is this one, if it has one.
    closing: Option<Closing>,
    /// Where its records end.
    bytes: u64,
}

impl Here {
    fn of(shared: &Shared, segment: Segment) -> Result<Here> {
        if segment.state == State::Sealed {
            let mut entries = sealed_entries(&segment)?;
            let closing = closing_of(&segment, &entries)?;
            let bytes = entries.pop().map_or(0, |entry| entry.offset);
            describe_again(&segment, bytes, &mut entries)?;
            return Ok(Here { segment, entries, closing: Some(closing), bytes });
        }
        let sidecar = sidecar_of(&segment.path);
        let missing = || Error::damaged(&sidecar, 0, "does not describe its segment", "open the archive again");
        let mark = shared.views.mark(segment.name.id)?.filter(|mark| mark.generation == segment.name.generation);
        let bytes = mark.map_or(0, |mark| mark.bytes);
        let mut reader = SidecarReader::open(&sidecar, segment.name)?.ok_or_else(missing)?;
        let mut entries = Vec::new();
        while let Some(frame) = reader.next_frame()? {
            entries.extend(frame.into_iter().filter(|entry| entry.end() <= bytes));
        }
        match entries.last().map(Entry::end) {
            Some(end) if end == bytes => {
                describe_again(&segment, bytes, &mut entries)?;
                Ok(Here { segment, entries, closing: None, bytes })
            }
            _ => Err(missing()),
        }
    }

    /// The number that the next record would have.
    fn records(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.record + 1)
    }

    /// Whether its writer said how it ends.
    fn has_ended(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.instead.as_ref().is_none_or(|instead| !instead.open))
    }

    /// The removals by which holders wrote it, and these.
    fn with(&self, more: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
        let all: BTreeSet<Vec<u8>> = self.followed().iter().cloned().chain(more).collect();
        all.into_iter().collect()
    }

    fn followed(&self) -> &[Vec<u8>] {
        let instead = self.closing.as_ref().and_then(|closing| closing.instead.as_ref());
        instead.map_or(&[], |instead| instead.instructions.as_slice())
    }

    /// Nobody vouches for bytes that are not those which were sealed.
    fn is_intact(&self) -> Result<()> {
        self.closing.as_ref().map_or(Ok(()), |closing| verify(&self.segment, self.bytes, closing.blake3))
    }

    /// Puts the generation in its place in which the records that are meant have no block.
    fn write_again(self, shared: &Shared, meant: &Meant, instructions: Vec<Vec<u8>>, said_ms: i64) -> Result<Segment> {
        shared.take_room(self.bytes)?;
        let old = &self.segment;
        let blanks = self.entries.iter().filter(|entry| is_blank(entry, meant)).count() as u32;
        let generation = generation(self.records(), blanks).filter(|generation| *generation > old.name.generation);
        let generation = generation
            .ok_or_else(|| Error::Refused { why: format!("{} was rewritten too often to be blanked", old.name) })?;
        let name = SegmentName { generation, ..old.name };
        let path = old.path.with_file_name(name.to_string());
        let part = part_of(&path);
        let mut output = Output::create(&part)?;
        let mut entries = self.write(meant, &mut output)?;
        let replaces = match &self.closing {
            Some(closing) => closing.blake3,
            None => {
                let found = File::open(&old.path).and_then(|file| hash(&file, self.bytes));
                found.map_err(|error| Error::io("cannot read", &old.path, error))?
            }
        };
        let closing = Closing {
            segment: name,
            half: old.half,
            records: self.records(),
            bytes: output.bytes,
            blake3: *output.hasher.finalize().as_bytes(),
            replaces: Some(replaces),
            removals: self.closing.as_ref().map(|closing| closing.removals.clone()).unwrap_or_default(),
            instead: Some(Instead { instructions, open: !self.has_ended() }),
        };
        let member = closing.encode(&shared.identity, said_ms)?;
        entries.push(Entry::place(name.id, self.records(), output.bytes, member.len() as u64, Note::Closing));
        output.put(&member)?;
        output.finish()?;

        let mut sidecar = SidecarWriter::create(&sidecar_of(&path), name)?;
        sidecar.append(&entries)?;
        sidecar.sync()?;
        std::fs::rename(&part, &path).map_err(|error| Error::io("cannot rename", &part, error))?;
        sync_folder_of(&path)?;
        let segment = Segment { name, half: old.half, path: path.clone(), state: State::Sealed };
        shared.catalog.write().unwrap_or_else(PoisonError::into_inner).set(segment.clone());
        let sidecar_bytes = Some(sidecar.length());
        let commit = SegmentCommit { name, path, entries, sealed: true, sidecar_bytes };
        shared.following.put(vec![commit], |_| ())?;
        shared.following.settle()?;
        delete_generation(&old.path)?;
        Ok(segment)
    }

    /// Everything before the closing record, the same wherever it is written.
    fn write<W: Write>(&self, meant: &Meant, output: &mut Output<W>) -> Result<Vec<Entry>> {
        let (id, path) = (self.segment.name.id, &self.segment.path);
        let from = File::open(path).map_err(|error| Error::io("cannot open", path, error))?;
        let removed_by = removed_by(id);
        let mut written = Vec::with_capacity(self.entries.len() + 1);
        // What is kept is copied as it stands, and so is what is no whole record.
        let mut kept = 0;
        for entry in &self.entries {
            let offset = output.bytes + entry.offset - kept;
            if !is_blank(entry, meant) {
                written.push(Entry::place(id, entry.record, offset, entry.length, entry.note.clone()));
                continue;
            }
            output.copy(&from, path, kept, entry.offset)?;
            kept = entry.end();
            let mut stored = Stored::open(path, entry.offset, entry.length)?;
            let member = own::wrap_head(&head_of_blank(stored.record()?.head(), removed_by.as_uri()));
            written.push(Entry::place(id, entry.record, offset, member.len() as u64, Note::Blank));
            output.put(&member)?;
        }
        output.copy(&from, path, kept, self.bytes)?;
        Ok(written)
    }
}

/// The sidecar of a copy came with it, and nobody signed that: what is removed is decided by the records themselves.
fn describe_again(segment: &Segment, bytes: u64, entries: &mut [Entry]) -> Result<()> {
    let io = |error| Error::io("cannot read", &segment.path, error);
    let unlike = |offset| {
        let what = "the sidecar does not name what stands here";
        Error::damaged(&segment.path, offset, what, "`skep rebuild --reparse` reads the records again")
    };
    let mut reader = Reader::at(&segment.path, 0, Some(bytes), Options::recover()).map_err(io)?;
    let mut named = entries.iter_mut();
    while let Some(mut record) = reader.next().map_err(io)? {
        let (offset, head) = (record.offset(), record.head().clone());
        let note = describe::describe(&head, &mut record as &mut dyn BufRead).map_err(io)?.filed_in(Some(segment.half));
        let end = record.finish().map_err(io)?;
        if end.damaged {
            continue;
        }
        let entry = named.next().filter(|entry| (entry.offset, entry.length) == (offset, end.length));
        let entry = entry.ok_or_else(|| unlike(offset))?;
        // A removal of another writer is a record like others.
        if !matches!((&note, &entry.note), (Note::Removal(_), Note::Plain)) {
            *entry = Entry::place(segment.name.id, entry.record, offset, end.length, note);
        }
    }
    named.next().map_or(Ok(()), |entry| Err(unlike(entry.offset)))
}

fn is_blank(entry: &Entry, meant: &Meant) -> bool {
    entry.note == Note::Blank || meant.records.contains(&entry.record)
}

/// The head of a blank record, whether or not it was blank before.
fn head_of_blank(head: &Head, removed_by: &str) -> Vec<u8> {
    if head.get(REMOVED_BY).is_none() {
        return blank_head(head.raw(), removed_by);
    }
    let by = |line: &&[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.eq_ignore_ascii_case(REMOVED_BY.as_bytes())
    };
    let raw = head.raw().strip_suffix(b"\r\n").unwrap_or(head.raw());
    let lines: Vec<&[u8]> = raw.split_inclusive(|byte| *byte == b'\n').filter(|line| !by(line)).collect();
    [lines.concat().as_slice(), format!("{REMOVED_BY}: <{removed_by}>\r\n\r\n").as_bytes()].concat()
}

/// What a blank record was, as far as its head still says it.
fn was(head: &Head) -> Option<Capture> {
    let mut capture = describe::capture(head, "", &mut std::io::empty()).ok()??;
    capture.digest = head.text("WARC-Removed-Payload-Digest").and_then(|text| text.parse().ok());
    Some(capture)
}

/// Which records of a segment removals mean.
#[derive(Default)]
struct Meant {
    /// Those that still have their block.
    records: BTreeSet<u32>,
    /// The removals that mean any record, by their place in the list.
    by: BTreeSet<usize>,
}

impl Meant {
    /// Whether a block that would go is pinned.
    fn is_pinned(&self, shared: &Shared, id: SegmentId) -> Result<bool> {
        let position = |record: &u32| Position { writer: id.writer, segment: id.number, record: *record };
        let positions: Vec<Position> = self.records.iter().map(position).collect();
        Ok(!shared.views.pinned(&positions)?.is_empty())
    }

    fn of(here: &Here, bindings: &[Binding]) -> Result<Meant> {
        let mut blank = Vec::new();
        for entry in here.entries.iter().filter(|entry| entry.note == Note::Blank) {
            let mut stored = Stored::open(&here.segment.path, entry.offset, entry.length)?;
            blank.extend(was(stored.record()?.head()));
        }
        // The first record says what the file is; nothing of the web is in it.
        let full = here.entries.iter().filter(|entry| entry.record > 0);
        let full: Vec<(u32, &Capture)> = full
            .filter_map(|entry| match &entry.note {
                Note::Capture(capture) => Some((entry.record, &**capture)),
                _ => None,
            })
            .collect();
        let meaning = Meaning::of(bindings, full.iter().map(|(_, capture)| *capture).chain(&blank));
        let mut meant = Meant::default();
        for (record, capture) in full {
            let by = meaning.by(capture);
            if !by.is_empty() {
                meant.records.insert(record);
                meant.by.extend(by);
            }
        }
        meant.by.extend(blank.iter().flat_map(|capture| meaning.by(capture)));
        Ok(meant)
    }
}

/// What removals mean, made so that many of them are asked at once.
struct Meaning<'b> {
    bindings: &'b [Binding],
    urls: HashMap<String, Vec<usize>>,
    wider: Vec<(Matcher, usize)>,
    /// URL and time of fetches that brought a payload which is meant: what was asked and noted goes with it.
    fetches: HashMap<(crate::Key, i64), Vec<usize>>,
}

impl<'b> Meaning<'b> {
    fn of<'c>(bindings: &'b [Binding], all: impl Iterator<Item = &'c Capture>) -> Meaning<'b> {
        let mut meaning = Meaning { bindings, urls: HashMap::new(), wider: Vec::new(), fetches: HashMap::new() };
        let mut digests = Vec::new();
        for (at, binding) in bindings.iter().enumerate() {
            match Matcher::new(&binding.selector) {
                Matcher::Surt(surt) => meaning.urls.entry(surt).or_default().push(at),
                Matcher::Digest(digest) => digests.push((digest, at)),
                matcher => meaning.wider.push((matcher, at)),
            }
        }
        if !digests.is_empty() {
            for capture in all {
                for (_, at) in digests.iter().filter(|(digest, _)| capture.digest == Some(*digest)) {
                    meaning.fetches.entry((capture.key.clone(), capture.time_ms)).or_default().push(*at);
                }
            }
        }
        meaning
    }

    /// The removals that mean a record.
    fn by(&self, capture: &Capture) -> Vec<usize> {
        let wider = self.wider.iter().filter(|(matcher, _)| matcher.matches(capture)).map(|(_, at)| at);
        let url = self.urls.get(capture.key.surt()).into_iter().flatten();
        let fetch = match self.fetches.is_empty() {
            true => None,
            false => self.fetches.get(&(capture.key.clone(), capture.time_ms)),
        };
        let all = wider.chain(url).chain(fetch.into_iter().flatten());
        all.copied().filter(|at| capture.time_ms < self.bindings[*at].until_ms).collect()
    }
}

/// Whether a generation that a holder wrote may take the place of what is here: `new` is where it stands now, its bytes are those that it was sealed
/// with, and `key` signed it. [`Error::Damaged`] if it is not what it says; [`Error::Refused`] if it may be, and what is here is more.
pub(crate) fn judge(shared: &Shared, new: &Segment, closing: &Closing, instead: &Instead, key: [u8; 32]) -> Result<()> {
    let wrong =
        |what: &str| Err(Error::damaged(&new.path, closing.bytes, what, "it is copied again from another holder"));
    let refuse = |why: String| Err(Error::Refused { why });
    let Some(judge) = shared.copies().judge.clone() else {
        return wrong("somebody else than its writer wrote it, and nobody here says which removals bind");
    };
    if shared.key_of(writer_of(&key)) != Some(key) {
        return wrong("the holder that wrote it is not known here");
    }
    let mut bindings = Vec::with_capacity(instead.instructions.len());
    for signed in &instead.instructions {
        match judge.binding(signed) {
            Ok(binding) => bindings.push(binding),
            Err(why) => return wrong(&format!("a removal that it names binds nobody: {why}")),
        }
    }
    // Whoever writes on must not find its segment ended.
    if instead.open && !judge.is_gone(new.name.id.writer) {
        return refuse(format!("who writes {} may come back, and has not closed it", new.name.id));
    }
    let here = shared.catalog().get(new.name.id).cloned();
    if here.as_ref().is_some_and(|here| new.name.id.writer == shared.identity.writer() && here.state != State::Sealed) {
        return refuse(format!("{} is being written here", new.name.id));
    }
    // What is damaged here says nothing.
    let here = here.and_then(|here| Here::of(shared, here).ok()).filter(|here| here.is_intact().is_ok());
    let (mut end, mut blanks) = (0, 0);
    if let Some(here) = here {
        let meant = Meant::of(&here, &bindings)?;
        if meant.is_pinned(shared, new.name.id)? {
            return refuse(format!(
                "revisits elsewhere stand for a body in {}, and have none of their own yet",
                new.name
            ));
        }
        let mut expected = Output::nowhere(&here.segment.path);
        let entries = here.write(&meant, &mut expected)?;
        let (bytes, records) = (expected.bytes, here.records());
        if records > closing.records || here.has_ended() && instead.open {
            return refuse(format!("more of {} is here", new.name));
        }
        let found = match bytes.cmp(&closing.bytes) {
            std::cmp::Ordering::Equal => Some(closing.blake3),
            std::cmp::Ordering::Less if records < closing.records => {
                let found = File::open(&new.path).and_then(|file| hash(&file, bytes));
                Some(found.map_err(|error| Error::io("cannot read", &new.path, error))?)
            }
            _ => None,
        };
        if found != Some(*expected.hasher.finalize().as_bytes()) {
            // Somebody who has not heard yet of all that is removed here.
            if here.followed().iter().any(|followed| !instead.instructions.contains(followed)) {
                return refuse(format!("{} shows what was removed here", new.name));
            }
            return wrong("something else differs in it than the blocks that were removed");
        }
        if bytes < closing.bytes && here.has_ended() {
            return wrong("it has more records than its writer closed it with");
        }
        (end, blanks) = (bytes, entries.iter().filter(|entry| entry.note == Note::Blank).count() as u32);
    }
    if end < closing.bytes {
        match alone(new, closing, end, &bindings)? {
            Ok(more) => blanks += more,
            Err(what) => return wrong(&what),
        }
    }
    match generation(closing.records, blanks) == Some(new.name.generation) {
        true => Ok(()),
        false => wrong("its generation is not the one that its records are"),
    }
}

/// Records of which nothing is here to compare with: they hold what their digests say, and none is blank that no removal means. Says how many are
/// blank.
fn alone(
    new: &Segment,
    closing: &Closing,
    from: u64,
    bindings: &[Binding],
) -> Result<std::result::Result<u32, String>> {
    let io = |error| Error::io("cannot read", &new.path, error);
    let open = |options| Reader::at(&new.path, from, Some(closing.bytes - from), options).map_err(io);
    let mut found = None;
    check::records(&mut open(Options::strict())?, &new.path, Severity::Damage, &mut |finding| {
        found.get_or_insert(finding);
    })?;
    if let Some(finding) = found {
        return Ok(Err(finding.to_string()));
    }
    let expected = format!("<{}>", removed_by(new.name.id).as_uri());
    let mut reader = open(Options::recover())?;
    let (mut blanks, mut blank) = (0, Vec::new());
    while let Some(record) = reader.next().map_err(io)? {
        let head = record.head();
        let Some(by) = head.text(REMOVED_BY) else { continue };
        if by != expected || head.content_length() != Some(0) {
            return Ok(Err("a blank record in it is not as holders write them".into()));
        }
        blanks += 1;
        blank.push(was(head));
    }
    let meaning = Meaning::of(bindings, blank.iter().flatten());
    let meant = |capture: &Option<Capture>| capture.as_ref().is_some_and(|capture| !meaning.by(capture).is_empty());
    // Where the writer had removed something itself, its removals are named and not here.
    match closing.removals.is_empty() && !blank.iter().all(meant) {
        true => Ok(Err("a record in it is blank that none of its removals means".into())),
        false => Ok(Ok(blanks)),
    }
}

/// Whether a generation of the writer's own leaves blank what is blank here by removals of the network: whoever comes back does not undo them.
pub(crate) fn stays_blank(here: &Segment, new: &Segment, bytes: u64) -> Result<bool> {
    let mut entries = sealed_entries(here)?;
    entries.retain(|entry| entry.note == Note::Blank);
    let mut blank = BTreeSet::new();
    for entry in &entries {
        let mut stored = Stored::open(&here.path, entry.offset, entry.length)?;
        blank.extend(stored.record()?.head().get("WARC-Record-ID").map(<[u8]>::to_vec));
    }
    let io = |error| Error::io("cannot read", &new.path, error);
    let mut reader = Reader::at(&new.path, 0, Some(bytes), Options::recover()).map_err(io)?;
    let mut seen = BTreeSet::new();
    while let Some(record) = reader.next().map_err(io)? {
        let head = record.head();
        let Some(id) = head.get("WARC-Record-ID").filter(|id| blank.contains(*id)) else { continue };
        if head.get(REMOVED_BY).is_none() || head.content_length() != Some(0) {
            return Ok(false);
        }
        seen.insert(id.to_vec());
    }
    Ok(seen.len() == blank.len())
}
