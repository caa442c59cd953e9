//! Captures of many sites, wherever they are held, in the order of their keys: slices are ranges of the hashes that keys begin with, so
//! one slice follows the other. Each is answered for by one node that holds it; who is silent is done without, and another holder goes on
//! where it left off.
//!
//! ```text
//!  slices   0 1 2 3 4 5 …            node A: 0 3 4 ──▶ page ──▶ page …
//!  from     A B B A A here           node B: 1 2   ──▶ page              each page: captures in order, and how far it looked
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::Capture;
use skep_archive::captures::{Answer, Place, Query};
use skep_archive::runs::Direction;

use super::Shell;
use super::answers::no;
use super::coming::whole;
use super::question::{Question, Wanted, YES, is_yes};
use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::{
    ANSWER_BYTES_MAX, EVERYWHERE_AT_ONCE_MAX, EVERYWHERE_MS_MAX, SCAN_HEDGE_MS, SCAN_MS_MAX, SCAN_PAGE_BYTES,
    SCAN_PAGE_CAPTURES, SCAN_PAGE_CAPTURES_FIRST,
};
use crate::message::PROTOCOL_SCAN;

/// Captures as they are found. An error ends it: nothing that follows would be whole.
pub struct Scan {
    shell: Arc<Shell>,
    query: Query,
    /// The slices that it is about, in the order of the answer, and which of them is told now.
    order: Vec<Slice>,
    at: usize,
    owners: BTreeMap<Slice, Owner>,
    streams: Vec<Stream>,
    /// Slices of which a part was told, and where that part ended.
    left_off: BTreeMap<Slice, Place>,
    /// Nodes that did not answer.
    without: BTreeSet<Key>,
    here: Option<(Slice, Answer)>,
    /// Slices that nobody answered for when it began.
    silent: BTreeSet<Slice>,
    left: u64,
    pages: (u64, u64),
}

/// Who answers for a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Here,
    Stream(usize),
    Nobody,
}

/// What one node says.
struct Stream {
    node: Key,
    slices: Vec<Slice>,
    /// So many of them it has looked through.
    looked: usize,
    found: VecDeque<Capture>,
    pages: u32,
}

impl Stream {
    /// Whether it has looked through one of its slices, which stand in the order of the answer.
    fn has_looked(&self, slice: Slice, direction: Direction) -> bool {
        self.slices.get(self.looked).is_none_or(|next| match direction {
            Direction::Forward => slice < *next,
            Direction::Backward => slice > *next,
        })
    }
}

/// What one question brought: captures, and how many of the slices were looked through.
type Page = (Vec<Capture>, usize);

impl Shell {
    /// The captures that a query asks for, of all nodes.
    pub fn scan(self: &Arc<Shell>, query: &Query) -> Scan {
        self.scan_by(query, (SCAN_PAGE_CAPTURES_FIRST, SCAN_PAGE_CAPTURES))
    }

    /// The same, so many at first and then so many at once from each node.
    pub fn scan_by(self: &Arc<Shell>, query: &Query, pages: (u64, u64)) -> Scan {
        let mut order: Vec<Slice> = match query.matching.site() {
            Some(hash) => vec![self.slice_of(hash)],
            None => (0..self.genesis().slices()).collect(),
        };
        let forward = query.direction == Direction::Forward;
        if !forward {
            order.reverse();
        }
        let mut left_off = BTreeMap::new();
        if let Some(after) = &query.after {
            let slice = self.slice_of(after.key.site_hash());
            order.retain(|other| if forward { *other >= slice } else { *other <= slice });
            left_off.insert(slice, after.clone());
        }
        let mut scan = Scan {
            shell: self.clone(),
            query: query.clone(),
            at: 0,
            owners: BTreeMap::new(),
            streams: Vec::new(),
            left_off,
            without: BTreeSet::new(),
            here: None,
            silent: BTreeSet::new(),
            left: query.limit.unwrap_or(u64::MAX),
            pages,
            order,
        };
        scan.assign(scan.order.clone());
        scan.ask();
        scan.silent = scan.unowned().into_iter().collect();
        scan
    }

    /// Answers another node: of these slices, in their order, as much as fits.
    pub(super) fn scan_here(
        &self,
        wanted: &Wanted,
        slices: &[Slice],
        after: Option<Place>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(query) = wanted.query() else { return no(out, "this is no query") };
        if slices.len() > self.genesis().slices() as usize || !slices.iter().all(|slice| self.holds(*slice)) {
            return no(out, "this node does not hold all of it");
        }
        let began = Instant::now();
        let (mut bytes, mut left, mut looked) = (vec![YES], query.limit.unwrap_or(0), slices.len());
        let mut written = 0;
        'slices: for (at, slice) in slices.iter().enumerate() {
            if at > 0 && began.elapsed() > Duration::from_millis(SCAN_MS_MAX) {
                looked = at;
                break;
            }
            let part = self.part(&query, *slice, after.as_ref());
            let found = match self.archive.views().captures.query(&part) {
                Ok(found) => found,
                Err(error) => return Err(io::Error::other(error.to_string())),
            };
            for capture in found {
                let Ok(capture) = capture else { return Err(io::Error::other("the index cannot be read")) };
                // What was fetched with secrets stays where it was fetched.
                if capture.is_private() {
                    continue;
                }
                if left == 0 || written > SCAN_PAGE_BYTES {
                    looked = at;
                    break 'slices;
                }
                left -= u64::from(Capture::write(&capture, &mut bytes));
                if bytes.len() >= 64 << 10 {
                    written += bytes.len();
                    out.write_all(&bytes)?;
                    bytes.clear();
                }
            }
        }
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&(looked as u32).to_le_bytes());
        out.write_all(&bytes)?;
        out.flush()
    }

    /// A query for one slice, behind where that was left off.
    fn part(&self, query: &Query, slice: Slice, after: Option<&Place>) -> Query {
        let after = after.filter(|after| self.slice_of(after.key.site_hash()) == slice).cloned();
        Query { sites: self.sites(slice), after, limit: None, ..query.clone() }
    }

    fn ask_page(&self, node: Key, question: &[u8], patience: Duration) -> Result<Vec<u8>, String> {
        let since = Instant::now();
        let mut answer = self.wire.ask(node, question, patience).map_err(|silence| silence.to_string())?;
        is_yes(&mut answer).map_err(|error| error.to_string())??;
        self.answered_after(node, since.elapsed());
        let bytes = whole(answer, patience, &mut |length| length <= ANSWER_BYTES_MAX);
        // Who begins quickly and then drips is none of the quick ones.
        bytes.inspect_err(|_| self.answered_after(node, since.elapsed())).map_err(|error| error.to_string())
    }
}

impl Scan {
    /// For so many slices nobody answers.
    pub fn silent(&self) -> usize {
        self.silent.len()
    }

    /// Decides who answers for these slices.
    fn assign(&mut self, slices: Vec<Slice>) {
        self.owners.extend(slices.iter().map(|slice| (*slice, Owner::Nobody)));
        for (node, mut slices) in self.shell.share(slices.into_iter(), &self.without, PROTOCOL_SCAN) {
            slices.sort_unstable();
            if self.query.direction == Direction::Backward {
                slices.reverse();
            }
            let owner = if node == self.shell.key { Owner::Here } else { Owner::Stream(self.streams.len()) };
            self.owners.extend(slices.iter().map(|slice| (*slice, owner)));
            if owner != Owner::Here {
                self.streams.push(Stream { node, slices, looked: 0, found: VecDeque::new(), pages: 0 });
            }
        }
    }

    /// Gets the next page of the stream that is needed now, and the first of some that are needed soon. Who is slow is given up for others;
    /// where there is nobody else, it gets the time it needs.
    fn ask(&mut self) {
        let mut needed = self.needed();
        for patience_ms in [SCAN_HEDGE_MS, EVERYWHERE_MS_MAX, EVERYWHERE_MS_MAX] {
            let (mut missed, new) = (Vec::new(), self.streams.len());
            let said = self.ask_all(&needed, Duration::from_millis(patience_ms));
            for (stream, said) in needed.into_iter().zip(said) {
                match said.ok().and_then(|bytes| self.read(stream, &bytes)) {
                    Some(page) => self.take(stream, page),
                    None => {
                        self.without.insert(self.streams[stream].node);
                        missed.extend_from_slice(self.rest(stream));
                    }
                }
            }
            if missed.is_empty() {
                return;
            }
            self.assign(missed);
            if patience_ms < EVERYWHERE_MS_MAX {
                // Slow is better than not at all.
                self.without.clear();
                self.assign(self.unowned());
            }
            needed = (new..self.streams.len()).collect();
        }
        // Whoever has not answered by now does not.
        for stream in needed {
            let rest: Vec<Slice> = self.rest(stream).to_vec();
            self.owners.extend(rest.into_iter().map(|slice| (slice, Owner::Nobody)));
        }
    }

    fn ask_all(&self, streams: &[usize], patience: Duration) -> Vec<Result<Vec<u8>, String>> {
        let asked: Vec<(Key, Vec<u8>)> = streams.iter().map(|stream| self.question(*stream)).collect();
        let shell = &self.shell;
        std::thread::scope(|scope| {
            let ask = |(node, question): &(Key, Vec<u8>)| {
                let (node, question) = (*node, question.clone());
                scope.spawn(move || shell.ask_page(node, &question, patience))
            };
            let threads: Vec<_> = asked.iter().map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a fault".into()))).collect()
        })
    }

    /// Slices that are still to be told, and that nobody answers for.
    fn unowned(&self) -> Vec<Slice> {
        let left = self.order[self.at..].iter().copied();
        left.filter(|slice| self.owners.get(slice) == Some(&Owner::Nobody)).collect()
    }

    /// Slices of a stream that it has not looked through.
    fn rest(&self, stream: usize) -> &[Slice] {
        let stream = &self.streams[stream];
        &stream.slices[stream.looked..]
    }

    /// Streams without a page, in the order in which they are needed.
    fn needed(&self) -> Vec<usize> {
        let mut needed = Vec::new();
        for slice in &self.order[self.at..] {
            let Some(Owner::Stream(number)) = self.owners.get(slice).copied() else { continue };
            let stream = &self.streams[number];
            let lacks = stream.found.is_empty() && !stream.has_looked(*slice, self.query.direction);
            if lacks && (stream.pages == 0 || needed.is_empty()) && !needed.contains(&number) {
                needed.push(number);
            }
            if needed.len() == EVERYWHERE_AT_ONCE_MAX {
                break;
            }
        }
        needed
    }

    fn question(&self, stream: usize) -> (Key, Vec<u8>) {
        let slices = self.rest(stream).to_vec();
        let page = if self.streams[stream].pages == 0 { self.pages.0 } else { self.pages.1 };
        let wanted = Wanted::of(&Query { limit: Some(page.min(self.left)), ..self.query.clone() });
        let after = slices.iter().find_map(|slice| self.left_off.get(slice));
        (self.streams[stream].node, Question::scan(wanted, slices, after).encode())
    }

    /// Reads a page; `None` if it is not whole, or not what was asked for.
    fn read(&self, stream: usize, bytes: &[u8]) -> Option<Page> {
        let slices = self.rest(stream);
        let (mut captures, mut rest): (Vec<Capture>, _) = (Vec::new(), bytes);
        let mut at = 0;
        while !rest.starts_with(&0u32.to_le_bytes()) {
            let (capture, after) = Capture::read(rest)?;
            let slice = self.shell.slice_of(capture.key.site_hash());
            at += slices[at..].iter().position(|asked| *asked == slice)?;
            if captures.last().is_some_and(|last| !self.is_behind(&capture, &Place::of(last))) {
                return None;
            }
            // What was told by somebody else before is not told again.
            if self.left_off.get(&slice).is_none_or(|told| self.is_behind(&capture, told)) {
                captures.push(capture);
            }
            rest = after;
        }
        let looked = u32::from_le_bytes(*rest.get(4..)?.first_chunk()?) as usize;
        let fits = looked <= slices.len() && (looked > 0 || !captures.is_empty()) && at <= looked;
        fits.then_some((captures, looked))
    }

    fn is_behind(&self, capture: &Capture, place: &Place) -> bool {
        let order = (capture.key.as_bytes(), capture.time_ms, capture.position);
        let place = (place.key.as_bytes(), place.time_ms, place.position);
        if self.query.direction == Direction::Forward { order > place } else { order < place }
    }

    fn take(&mut self, stream: usize, (captures, looked): Page) {
        if let Some(last) = captures.last() {
            self.left_off.insert(self.shell.slice_of(last.key.site_hash()), Place::of(last));
        }
        let stream = &mut self.streams[stream];
        stream.looked += looked;
        stream.pages += 1;
        stream.found.extend(captures);
    }

    fn step(&mut self) -> Result<Option<Capture>, String> {
        while let Some(slice) = self.order.get(self.at).copied() {
            match self.owners.get(&slice).copied().unwrap_or(Owner::Nobody) {
                Owner::Nobody if self.silent.contains(&slice) => self.at += 1,
                Owner::Nobody => return Err(format!("nobody answers for slice {slice} any more")),
                Owner::Here => {
                    if self.here.as_ref().is_none_or(|(here, _)| *here != slice) {
                        let part = self.shell.part(&self.query, slice, self.left_off.get(&slice));
                        let found = self.shell.archive.views().captures.query(&part);
                        self.here = Some((slice, found.map_err(|error| error.to_string())?));
                    }
                    match self.here.as_mut().and_then(|(_, found)| found.next()) {
                        Some(Ok(capture)) => return Ok(Some(capture)),
                        Some(Err(error)) => return Err(error.to_string()),
                        None => self.at += 1,
                    }
                }
                Owner::Stream(number) => {
                    let stream = &mut self.streams[number];
                    let is_next = |capture: &Capture| self.shell.slice_of(capture.key.site_hash()) == slice;
                    if stream.found.front().is_some_and(is_next) {
                        return Ok(stream.found.pop_front());
                    }
                    if stream.has_looked(slice, self.query.direction) {
                        self.at += 1;
                    } else {
                        self.ask();
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan {
    type Item = Result<Capture, String>;

    fn next(&mut self) -> Option<Result<Capture, String>> {
        if self.left == 0 {
            return None;
        }
        let step = self.step().transpose();
        self.left = if matches!(step, Some(Ok(_))) { self.left - 1 } else { 0 };
        step
    }
}
