//! What others say and ask, and what they are answered. Who is no member may ask to become one, and nothing else.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use skep_archive::Capture;
use skep_url::Url;

use super::question::{Crawl, NO, Question, Wanted, Welcome, YES, position};
use super::{Machine, Shell, lock};
use crate::copy::Segment;
use crate::fact::{Fact, SignedRecord};
use crate::genesis::Slice;
use crate::key::{Key, signed};
use crate::limits::{ANSWER_RECORD_BYTES_MAX, BATCH_LINKS_MAX, QUESTION_MS_MAX, STRANGER_MS_MAX, TARGET_BYTES_MAX};
use crate::links;
use crate::message;
use crate::node::{Event, Note, What};
use crate::wire::Ears;

/// Says no, and why.
pub(super) fn no(out: &mut dyn Write, why: &str) -> io::Result<()> {
    out.write_all(&[NO])?;
    out.write_all(why.as_bytes())?;
    out.flush()
}

fn yes(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[YES])?;
    out.write_all(bytes)?;
    out.flush()
}

/// What somebody above said, who knows what it means.
fn carried(out: &mut dyn Write, said: Result<Vec<u8>, String>) -> io::Result<()> {
    match said {
        Ok(bytes) => yes(out, &bytes),
        Err(why) => no(out, &why),
    }
}

/// Plain data, or why there is none.
fn plain<T: serde::Serialize>(out: &mut dyn Write, said: Result<T, String>) -> io::Result<()> {
    carried(out, said.map(|said| postcard::to_allocvec(&said).expect("plain data encodes")))
}

impl Ears for Shell {
    fn hear(&self, from: Key, frame: Vec<u8>) {
        match message::read(&frame, message::SPEAKS) {
            Ok((messages, more)) => {
                for message in messages {
                    // The machine is behind: what matters is said again.
                    let _dropped_when_full = self.events.try_send(Event::Received { from, message });
                }
                if more {
                    let why = "it says something of a kind that this program does not know";
                    self.note(&Note { what: What::Newer, peer: Some(from), slice: None, why });
                }
            }
            Err(_) => self.refused(Some(from), "a frame that cannot be read"),
        }
    }

    fn too_long(&self, from: Key, why: &'static str) {
        self.refused(Some(from), why);
    }

    fn is_member(&self, key: &Key) -> bool {
        Shell::is_member(self, key)
    }

    fn answer(&self, from: Key, question: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
        let Some(question) = Question::decode(&question) else {
            self.refused(Some(from), "a question that cannot be read");
            return no(out, "this node does not know such a question");
        };
        if let Question::Join(record) = question {
            return self.welcome(from, &record, out);
        }
        if !self.is_member(&from) {
            self.refused(Some(from), "a question of a stranger");
            return no(out, "you are not a member of this network");
        }
        match question {
            Question::Join(_) => Ok(()),
            Question::Pull { segment, from, to } => self.give(&segment, from, to, out),
            Question::Links(batch) => self.take_links(from, &batch, out),
            Question::Captures(wanted) => self.captures_here(&wanted, out),
            Question::Record { writer, segment, record } => self.record_here(position(writer, segment, record), out),
            Question::Crawls(_) => yes(out, &postcard::to_allocvec(&Vec::<Crawl>::new()).expect("plain data encodes")),
            Question::Crawl(_) | Question::Remove { .. } => {
                self.refused(Some(from), "it tells what to do, and nobody has signed it");
                no(out, "such a thing is signed by an owner")
            }
            Question::Instructions(known) => {
                let newer = self.instructions_without(&known);
                yes(out, &postcard::to_allocvec(&newer).expect("plain data encodes"))
            }
            Question::Instruct(signed) => match self.instructed(from, signed) {
                Ok(hidden) => yes(out, &hidden.to_le_bytes()),
                Err(why) => no(out, &why),
            },
            Question::Scan { wanted, slices, after } => match after.map(|after| after.place()) {
                Some(None) => no(out, "this is no query"),
                after => self.scan_here(&wanted, &slices, after.flatten(), out),
            },
            Question::Portal { target, slices } => {
                let fits =
                    target.len() <= TARGET_BYTES_MAX && slices.iter().all(|slice| *slice < self.genesis().slices());
                let answered = if fits { self.work.answer(&target, &slices) } else { Err("that is too much".into()) };
                carried(out, answered)
            }
            Question::Bundles => carried(out, self.work.bundles()),
            Question::Contributor { address, message } => carried(out, self.work.contributor(from, address, &message)),
            Question::Follow { slice, message } => self.follow(from, slice, &message, out),
            Question::KeptBody { sha256, length } => {
                self.hear_of_body(from, sha256, length);
                yes(out, &[])
            }
            Question::WhoHasBody { sha256, length } => plain(out, Ok(self.who_has_body(sha256, length))),
            Question::SameBody { body, key, at } => plain(out, self.same_here(from, &body, key, at)),
            Question::KeepBody { body, position, url, time_ms, writes } => {
                plain(out, self.keep_here(from, &body, position, &url, time_ms, writes))
            }
            Question::PinnedBody { position: (writer, segment, record), referrer } => {
                self.give_body(from, position(writer, segment, record), &referrer, out)
            }
            Question::Proof { host } => plain(out, Ok(self.prove_here(&host))),
        }
    }
}

impl Shell {
    /// Whether a node is a member that has not left.
    pub fn is_member(&self, node: &Key) -> bool {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        roster.index(node).is_some_and(|index| !roster.is_gone(index))
    }

    /// A node with a ticket comes in: it is told what it needs, and its record is news for everybody.
    fn welcome(&self, from: Key, record: &Arc<SignedRecord>, out: &mut dyn Write) -> io::Result<()> {
        let genesis = self.genesis();
        let own = record.node() == from;
        let certified = record.record.certificate.check(genesis, &genesis.id(), self.seal.as_ref());
        let signs = self.seal.verify(&from, &signed("skep record", &record.record), &record.signature);
        if let Err(why) = certified {
            self.refused(Some(from), why);
            return no(out, why);
        }
        if self.has_expired(record) {
            self.refused(Some(from), "its invitation has expired");
            return no(out, "the invitation has expired; ask for another one (`skep network invite`)");
        }
        if !own || !signs {
            self.refused(Some(from), "a record of another node");
            return no(out, "the record is not that of the node that asks");
        }
        let admits = || lock(&self.machine).node.view.roster.admits(&record.record.certificate);
        let mut admitted = admits();
        if admitted.is_ok() {
            // Of two who come at once with a ticket for one, one comes in. Nobody hears anything before that is clear.
            self.tell(Event::Learn(vec![Fact::Record(record.clone())]));
            let came = self.wait_for(Duration::from_millis(STRANGER_MS_MAX), |machine| {
                let roster = &machine.node.view.roster;
                roster.index(&from).is_some_and(|index| !roster.is_out(index))
            });
            admitted = if came { Ok(()) } else { admits().and(Err("its record is not taken in")) };
        }
        if let Err(why) = admitted {
            self.refused(Some(from), why);
            return no(out, &format!("{why}; ask for another ticket (`skep network invite`)"));
        }
        let mut facts: Vec<Fact> = lock(&self.machine).node.view.roster.facts().map(|(_, fact)| fact).collect();
        facts.retain(|fact| !matches!(fact, Fact::Record(record) if record.node() == from));
        let times = self.membership.times.iter().map(|(name, ms)| (name.clone(), *ms)).collect();
        let welcome = Welcome { genesis: genesis.clone(), secret: self.membership.secret, times, facts };
        yes(out, &postcard::to_allocvec(&welcome).expect("plain data encodes"))
    }

    /// Whether a node that is not known yet comes too late, by the clock here: when an invitation was used only the newcomer says.
    fn has_expired(&self, record: &SignedRecord) -> bool {
        let known = lock(&self.machine).node.view.roster.index(&record.node()).is_some();
        !known && record.record.certificate.certificate.has_expired(self.clock.now().wall_ms)
    }

    fn take_links(&self, from: Key, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let batch = match self.codec.decode(bytes) {
            Ok(batch) => batch,
            Err(why) => {
                self.refused(Some(from), "links that cannot be read");
                return no(out, &why.to_string());
            }
        };
        let (count, now_ms) = (batch.links.len() as u64, self.clock.now().mono_ms);
        if batch.links.len() > BATCH_LINKS_MAX || lock(&self.budgets).take(&from, count, now_ms) < count {
            self.refused(Some(from), "more links than anybody has");
            return no(out, "that is more links than this node takes from one sender");
        }
        let (slices, places) = (self.all_slices(&batch), self.led_places(&batch));
        let (say, said) = sync_channel(1);
        self.work.links(from, batch, Box::new(move |taken| drop(say.send(taken))));
        // In time for whoever waits for it, with some to spare on the way.
        let until = Instant::now() + Duration::from_millis(QUESTION_MS_MAX * 2 / 3);
        let left = || until.saturating_duration_since(Instant::now());
        let mut taken = said.recv_timeout(left()).unwrap_or_default();
        // Safe is what a majority of the holders has.
        taken.taken = taken.taken && places.iter().all(|slice| self.wait_acknowledged(*slice, left()));
        if !taken.taken {
            let machine = lock(&self.machine);
            taken.leaders = slices.iter().filter_map(|slice| Some((*slice, self.granted(&machine, *slice)?))).collect();
        }
        yes(out, &postcard::to_allocvec(&taken).expect("plain data encodes"))
    }

    /// The links of a batch by the slices to whose leaders they are brought; what is no URL is left out. Of a site that is split that is its
    /// home; who leads there brings them to their places.
    pub(super) fn by_slice(&self, batch: links::Batch) -> BTreeMap<Slice, links::Batch> {
        let mut parts: BTreeMap<Slice, links::Batch> = BTreeMap::new();
        for link in batch.links {
            let Ok(url) = Url::parse(&link.url) else { continue };
            let slices = self.slices_of(&url.key());
            let at_home = slices.len() > 1 && self.leads(slices[0]);
            let slice = if at_home { slices.last() } else { slices.first() };
            let Some(slice) = slice else { continue };
            let part = parts.entry(*slice).or_default();
            part.crawl.clone_from(&batch.crawl);
            part.links.push(link);
        }
        parts
    }

    /// Waits until everything that is synced of a slice here, and written here, is acknowledged. False if it takes too long.
    pub fn wait_acknowledged(&self, slice: Slice, patience: Duration) -> bool {
        let own = self.archive.writer().0;
        let until = Instant::now() + patience;
        if self.archive.settle().is_err() {
            return false;
        }
        let mut wanted: Vec<(Segment, u64)> =
            self.extents(slice).into_iter().map(|it| (it.segment, it.bytes)).collect();
        wanted.retain(|(segment, _)| segment.writer == own);
        self.wait_synced(slice, &wanted, until)
    }

    /// Waits until a majority of the holders of a slice has so much of these segments.
    pub(super) fn wait_synced(&self, slice: Slice, wanted: &[(Segment, u64)], until: Instant) -> bool {
        self.wait_for(until.saturating_duration_since(Instant::now()), |machine| {
            machine.node.core.holding(slice).is_some_and(|holding| {
                let synced = |segment: &Segment| holding.acknowledged(segment, &self.key, &self.settings);
                wanted.iter().all(|(segment, bytes)| synced(segment) >= *bytes)
            })
        })
    }

    /// Waits until the machine has come so far. False if that takes too long.
    fn wait_for(&self, patience: Duration, so: impl Fn(&Machine) -> bool) -> bool {
        let until = Instant::now() + patience;
        let mut steps = lock(&self.steps);
        loop {
            if so(&lock(&self.machine)) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || *lock(&self.stopped) {
                return false;
            }
            let waited = self.stepped.wait_timeout(steps, left);
            steps = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn captures_here(&self, wanted: &Wanted, out: &mut dyn Write) -> io::Result<()> {
        let Some(query) = wanted.query() else { return no(out, "this is no query") };
        let found = match self.archive.views().captures.query(&query) {
            Ok(found) => found,
            Err(error) => return no(out, &error.to_string()),
        };
        let mut bytes = vec![YES];
        for capture in found {
            let Ok(capture) = capture else { return Err(io::Error::other("the index cannot be read")) };
            // What was fetched with secrets stays where it was fetched.
            if !capture.is_private() {
                Capture::write(&capture, &mut bytes);
            }
            if bytes.len() >= 64 << 10 {
                out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        out.write_all(&bytes)?;
        out.flush()
    }

    fn record_here(&self, position: skep_archive::Position, out: &mut dyn Write) -> io::Result<()> {
        if self.archive.views().is_hidden(position) {
            return no(out, "it was removed");
        }
        let place = match self.archive.place(position) {
            Ok(place) if place.length <= ANSWER_RECORD_BYTES_MAX => place,
            Ok(_) => return no(out, "it is too large"),
            Err(error) => return no(out, &error.to_string()),
        };
        // What is private leaves this machine for nobody: it came with a file that was added.
        match self.archive.is_private(position) {
            Ok(false) => {}
            Ok(true) => return no(out, "it is private"),
            Err(error) => return no(out, &error.to_string()),
        }
        let mut file = std::fs::File::open(&place.path)?;
        std::io::Seek::seek(&mut file, io::SeekFrom::Start(place.offset))?;
        out.write_all(&[YES])?;
        io::copy(&mut io::Read::take(file, place.length), out)?;
        out.flush()
    }
}
