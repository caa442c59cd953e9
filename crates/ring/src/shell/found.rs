//! What is with others: who holds it, and asking them. A holder that is slow is hedged by another.

use std::io::{Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use skep_archive::captures::Query;
use skep_archive::{Capture, Stored};

use super::coming::{Coming, copy_within, whole};
use super::question::{Question, Taken, Wanted, is_yes};
use super::{Machine, Shell, lock};
use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::{
    ANSWER_BYTES_MAX, ANSWER_RECORD_BYTES_MAX, HEDGE_MS, QUESTION_MS_MAX, RECORD_MS_MAX, REFUSAL_BYTES_MAX,
};
use crate::links;
use crate::message::PROTOCOL_SITES;

impl Shell {
    /// The slice of a site.
    pub fn slice_of(&self, site_hash: u32) -> Slice {
        self.genesis().slice_of(site_hash)
    }

    /// Whether this node is one of the holders of a slice, and has all of it that it knows of. Without room on its disk it may lack what
    /// is new.
    pub fn holds(&self, slice: Slice) -> bool {
        if self.full.load(Ordering::Relaxed) {
            return false;
        }
        let machine = lock(&self.machine);
        let holding = machine.node.core.holding(slice);
        holding.is_some_and(|holding| holding.latest().nodes.contains(&self.key) && holding.is_current(&self.key))
    }

    /// Holders of a slice as they are known here: those who are there first, and of them those who answered quickest lately.
    pub fn holders(&self, slice: Slice) -> Vec<Key> {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let mut holders = machine.node.view.holders(slice);
        holders.retain(|holder| *holder != self.key);
        let quickness = lock(&self.quickness);
        holders.sort_by_key(|holder| {
            let there = roster.index(holder).is_some_and(|index| roster.is_present(index));
            // Who was never asked may be the nearest.
            (!there, quickness.get(holder).copied().unwrap_or(0))
        });
        holders
    }

    /// Members that are there, this node not among them.
    pub fn others(&self) -> Vec<Key> {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let there = (0..roster.len() as u32).filter(|index| roster.is_present(*index));
        there.map(|index| roster.key(index)).filter(|key| *key != self.key).collect()
    }

    /// Who leads a slice, as far as is known here: by what this node granted, by what others said, or who should.
    pub fn leader(&self, slice: Slice) -> Option<Key> {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        if machine.node.core.leads(slice, now_ms).is_some() {
            return Some(self.key);
        }
        if let Some(leader) = self.granted(&machine, slice) {
            return Some(leader);
        }
        let there = self.holders_there(&machine, slice);
        let hint = lock(&self.hints).get(slice).filter(|hint| there.contains(hint));
        hint.or_else(|| there.first().copied())
    }

    /// To whom else this node has granted a slice.
    pub(super) fn granted(&self, machine: &Machine, slice: Slice) -> Option<Key> {
        let now_ms = self.clock.now().mono_ms;
        let leader = machine.node.core.holding(slice).and_then(|holding| holding.leader(now_ms));
        leader.filter(|leader| *leader != self.key)
    }

    /// Other holders of a slice that are there, in the order in which they should lead.
    pub(super) fn holders_there(&self, machine: &Machine, slice: Slice) -> Vec<Key> {
        let roster = &machine.node.view.roster;
        let mut holders = machine.node.view.in_order(slice, &machine.node.view.holders(slice));
        holders.retain(|node| *node != self.key && roster.index(node).is_some_and(|index| roster.is_present(index)));
        holders
    }

    /// Brings links to a node; waits for its answer. Who does not lead one of their slices takes nothing of the others: then each is tried by
    /// itself, so that it is known for each who leads. Else two that always meet in one batch would drive each other around for ever.
    pub fn send_links(&self, to: Key, mut batch: links::Batch) -> bool {
        if self.spoken(&to).is_none_or(|protocol| protocol < PROTOCOL_SITES) {
            // It would not know what to do with them.
            batch.links.iter_mut().for_each(|link| link.site = None);
        }
        let bytes = match self.codec.encode(&mut batch) {
            Ok(bytes) => bytes,
            // Long links are too much at once long before they are many.
            Err(_) if batch.links.len() > 1 => {
                let rest = batch.links.split_off(batch.links.len() / 2);
                let rest = links::Batch { crawl: batch.crawl.clone(), links: rest };
                return self.send_links(to, batch) && self.send_links(to, rest);
            }
            Err(_) => return false,
        };
        let since = Instant::now();
        let answer: Option<Taken> = self.ask(to, &Question::Links(bytes), ANSWER_BYTES_MAX).ok();
        let parts = self.by_slice(batch);
        match answer {
            Some(Taken { taken: false, .. }) if parts.len() > 1 => {
                // Who took long to say no has other troubles.
                let soon = || since.elapsed() < Duration::from_millis(QUESTION_MS_MAX);
                let count = parts.len();
                let each = parts.into_values().map(|part| soon() && self.send_links(to, part));
                each.filter(|taken| *taken).count() == count
            }
            Some(Taken { taken: true, .. }) => {
                let mut hints = lock(&self.hints);
                parts.into_keys().for_each(|slice| hints.taken(slice, to));
                true
            }
            answer => {
                let leaders = answer.map(|taken| taken.leaders).unwrap_or_default();
                let machine = lock(&self.machine);
                let mut hints = lock(&self.hints);
                for slice in parts.into_keys() {
                    let named = leaders.iter().find(|(known, leader)| *known == slice && *leader != self.key);
                    let there = self.holders_there(&machine, slice);
                    hints.refused(slice, to, named.map(|(_, leader)| *leader), &there);
                }
                false
            }
        }
    }

    /// Captures of a slice that others hold.
    pub fn captures(self: &Arc<Shell>, slice: Slice, query: &Query) -> Result<Vec<Capture>, String> {
        let question = Question::Captures(Wanted::of(query)).encode();
        let read = |answer: &mut dyn Read| {
            let patience = Duration::from_millis(QUESTION_MS_MAX);
            whole(answer, patience, &mut |length| length <= ANSWER_BYTES_MAX).map_err(|error| error.to_string())
        };
        // A holder that has nothing may be one whose disk is full.
        let bytes = self.hedged(slice, &question, read, |bytes| !bytes.is_empty())?;
        captures_of(&bytes)
    }

    /// Captures that one node has.
    pub(super) fn captures_at(&self, node: Key, query: &Query) -> Result<Vec<Capture>, String> {
        let question = Question::Captures(Wanted::of(query));
        captures_of(&self.answered(node, &question, ANSWER_BYTES_MAX, Duration::from_millis(QUESTION_MS_MAX))?)
    }

    /// The record of a capture that others hold.
    pub fn record(self: &Arc<Shell>, capture: &Capture) -> Result<Stored, String> {
        let slice = self.slice_of(capture.key.site_hash());
        let question = Question::record(capture.position).encode();
        let read = |answer: &mut dyn Read| {
            let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
            let (patience, most) = (Duration::from_millis(QUESTION_MS_MAX), Duration::from_millis(RECORD_MS_MAX));
            let mut answer = Coming::new(answer, patience, most).take(ANSWER_RECORD_BYTES_MAX);
            let length = std::io::copy(&mut answer, &mut file)
                .and_then(|length| file.flush().map(|()| length))
                .map_err(|error| error.to_string())?;
            Ok((file, length))
        };
        let (mut file, length) = self.hedged(slice, &question, read, |_| true)?;
        file.rewind().map_err(|error| error.to_string())?;
        // Open, it is read to its end; its name may go.
        Stored::open(file.path(), 0, length).map_err(|error| error.to_string())
    }

    /// Asks the holders of a slice, one after the other: the next one when one is slow, or what it says does not settle the question. The
    /// first answer that does counts; else any.
    fn hedged<T: Send + 'static>(
        self: &Arc<Shell>,
        slice: Slice,
        question: &[u8],
        read: impl Fn(&mut dyn Read) -> Result<T, String> + Clone + Send + 'static,
        settles: impl Fn(&T) -> bool,
    ) -> Result<T, String> {
        let mut last = Err(String::from("nobody holds it"));
        let (say, said) = channel();
        let mut asked = 0;
        let mut answered = 0;
        let mut holders = self.holders(slice).into_iter();
        loop {
            if let Some(holder) = holders.next() {
                let (shell, question, read, say) = (self.clone(), question.to_vec(), read.clone(), say.clone());
                asked += 1;
                std::thread::spawn(move || {
                    let patience = Duration::from_millis(QUESTION_MS_MAX);
                    let since = Instant::now();
                    let asked = shell.wire.ask(holder, &question, patience).map_err(|silence| silence.to_string());
                    let answer = asked.and_then(|mut answer| {
                        let said = is_yes(&mut answer).map_err(|error| error.to_string());
                        shell.answered_after(holder, since.elapsed());
                        said??;
                        read(&mut answer).inspect_err(|_| shell.answered_after(holder, since.elapsed()))
                    });
                    let _somebody_was_quicker = say.send(answer);
                });
            } else if answered == asked {
                return last;
            }
            let patience = if holders.len() > 0 { HEDGE_MS } else { 2 * QUESTION_MS_MAX };
            match said.recv_timeout(Duration::from_millis(patience)) {
                Ok(Ok(answer)) if settles(&answer) => return Ok(answer),
                Ok(said) => {
                    answered += 1;
                    if said.is_ok() || last.is_err() {
                        last = said;
                    }
                }
                Err(RecvTimeoutError::Timeout) if holders.len() > 0 => {}
                Err(_) => return last,
            }
        }
    }

    /// How quickly a node answers: the mean of lately, most of it what was seen last.
    pub(super) fn answered_after(&self, node: Key, took: Duration) {
        let took_us = took.as_micros().min(u128::from(u32::MAX)) as u64;
        let mut quickness = lock(&self.quickness);
        let mean = quickness.entry(node).or_insert(took_us);
        *mean = (*mean + 3 * took_us) / 4;
    }

    /// The public portal of a holder of a slice that is there.
    pub fn portal_of(&self, slice: Slice) -> Option<String> {
        let holders = self.holders(slice);
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        holders.iter().find_map(|holder| {
            let index = roster.index(holder).filter(|index| roster.is_present(*index))?;
            roster.record(index).record.portal.clone()
        })
    }

    /// Asks a node something whose answer is small.
    pub(super) fn ask<T: serde::de::DeserializeOwned>(
        &self,
        to: Key,
        question: &Question,
        most: u64,
    ) -> Result<T, String> {
        self.ask_for(to, question, most, Duration::from_millis(QUESTION_MS_MAX))
    }

    /// The same, where nothing is waited for longer than this.
    pub(super) fn ask_for<T: serde::de::DeserializeOwned>(
        &self,
        to: Key,
        question: &Question,
        most: u64,
        patience: Duration,
    ) -> Result<T, String> {
        let bytes = self.answered(to, question, most, patience)?;
        postcard::from_bytes(&bytes).map_err(|_| "an answer that makes no sense".to_owned())
    }

    /// What a node answers, all of which has come within this time: who sends a byte now and then keeps nobody waiting for ever.
    pub(super) fn answered(
        &self,
        to: Key,
        question: &Question,
        most: u64,
        patience: Duration,
    ) -> Result<Vec<u8>, String> {
        let asked = self.wire.ask(to, &question.encode(), patience);
        let mut answer = asked.map_err(|silence| silence.to_string())?;
        let mut bytes = Vec::new();
        let came = copy_within(&mut answer, &mut bytes, 1 + most.max(REFUSAL_BYTES_MAX), patience);
        came.and_then(|_| is_yes(&mut bytes.as_slice())).map_err(|error| error.to_string())??;
        Ok(bytes.split_off(1))
    }
}

fn captures_of(mut bytes: &[u8]) -> Result<Vec<Capture>, String> {
    let mut captures = Vec::new();
    while !bytes.is_empty() {
        let (capture, after) = Capture::read(bytes).ok_or("an answer that makes no sense")?;
        captures.push(capture);
        bytes = after;
    }
    Ok(captures)
}
