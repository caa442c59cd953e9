//! What owners tell all nodes, at a node that runs: checked, made durable, followed, passed on. Read top to bottom.
//!
//! ```text
//!  settings/instructions.log   | "skep instructions 1\n" | then for each: length 4 LE | first 8 bytes of the BLAKE3 | postcard |
//! ```

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use skep_archive::{Entry, Matcher, Note as Noted, Selector};

use super::question::Question;
use super::{Shell, lock};
use crate::instruction::{About, Instruction, Instructions, SignedInstruction, What};
use crate::key::{Hash, Key, Seal};
use crate::limits::{ANSWER_BYTES_MAX, EVERYWHERE_AT_ONCE_MAX, QUESTION_MS_MAX};
use crate::node::{Note, What as Noticed};

const FILE: &str = "instructions.log";
const TITLE: &[u8] = b"skep instructions 1\n";

/// Instructions, and what is left to do because of them.
pub(super) struct Told {
    path: PathBuf,
    instructions: Instructions,
    /// Removals that may mean something which is here.
    unfollowed: BTreeSet<About>,
    removals: Removals,
}

/// What removals mean, for whoever brings new records.
#[derive(Default)]
struct Removals {
    urls: HashMap<String, (About, i64)>,
    wider: Vec<(Matcher, About, i64)>,
}

impl Removals {
    fn add(&mut self, about: About, selector: &Selector, until_ms: i64) {
        match Matcher::new(selector) {
            Matcher::Surt(surt) => drop(self.urls.insert(surt, (about, until_ms))),
            matcher => {
                self.wider.retain(|(_, known, _)| *known != about);
                self.wider.push((matcher, about, until_ms));
            }
        }
    }

    /// The removals that mean one of these records.
    fn meant(&self, entries: &[Entry]) -> BTreeSet<About> {
        let mut meant = BTreeSet::new();
        if self.urls.is_empty() && self.wider.is_empty() {
            return meant;
        }
        for entry in entries {
            let Noted::Capture(capture) = &entry.note else { continue };
            let wider = self.wider.iter().filter(|(matcher, ..)| matcher.matches(capture));
            let wider = wider.map(|(_, about, until_ms)| (about, until_ms));
            let exact = self.urls.get(capture.key.surt()).map(|(about, until_ms)| (about, until_ms));
            let before = wider.chain(exact).filter(|(_, until_ms)| capture.time_ms < **until_ms);
            meant.extend(before.map(|(about, _)| about.clone()));
        }
        meant
    }
}

impl Told {
    /// What was told before; all removals are looked at again, because the last of them may not have been followed to its end.
    pub(super) fn open(settings: &Path) -> io::Result<Told> {
        let path = settings.join(FILE);
        let mut told = Told {
            path,
            instructions: Instructions::default(),
            unfollowed: BTreeSet::new(),
            removals: Removals::default(),
        };
        let bytes = match std::fs::read(&told.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(told),
            Err(error) => return Err(error),
        };
        // Who may say so was asked when it came.
        for signed in read(&bytes)? {
            told.learn(signed, true);
        }
        Ok(told)
    }

    fn learn(&mut self, signed: Arc<SignedInstruction>, founder: bool) -> bool {
        if !self.instructions.learn(signed.clone(), founder) {
            return false;
        }
        let Instruction { version, what, .. } = &signed.instruction;
        if let What::Remove { selector, .. } = what
            && let Ok(selector) = selector.parse()
        {
            self.removals.add(signed.about(), &selector, *version as i64);
            self.unfollowed.insert(signed.about());
        }
        true
    }

    /// Everything, under another name, which then takes the place of the old file.
    fn store(&self) -> io::Result<()> {
        let fresh = self.path.with_extension("log.new");
        let mut out = TITLE.to_vec();
        for signed in self.instructions.all() {
            let bytes = postcard::to_allocvec(&**signed).expect("plain data encodes");
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(&blake3::hash(&bytes).as_bytes()[..8]);
            out.extend_from_slice(&bytes);
        }
        let mut file = File::create(&fresh)?;
        file.write_all(&out)?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

fn read(bytes: &[u8]) -> io::Result<Vec<Arc<SignedInstruction>>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not a file of instructions of this version");
    let mut rest = bytes.strip_prefix(TITLE).ok_or_else(wrong)?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (sum, after) = after.split_first_chunk::<8>().ok_or_else(wrong)?;
        let (entry, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        if blake3::hash(entry).as_bytes()[..8] != *sum {
            return Err(wrong());
        }
        all.push(Arc::new(postcard::from_bytes(entry).map_err(|_| wrong())?));
        rest = after;
    }
    Ok(all)
}

impl Shell {
    /// Tells all nodes something; `owner` is the seal of this node's owner, or of who made the network. Says how many records it hid at all
    /// nodes that are there.
    pub fn instruct(self: &Arc<Shell>, what: What, owner: &dyn Seal) -> Result<u64, String> {
        self.instruct_after(|_| Ok(what), owner)
    }

    /// The same for what follows from what was said here before: a list that one more is added to. Nothing else is said here meanwhile,
    /// so that of two who add at once nobody's is lost.
    pub fn instruct_after(
        self: &Arc<Shell>,
        what: impl FnOnce(&[Arc<SignedInstruction>]) -> Result<What, String>,
        owner: &dyn Seal,
    ) -> Result<u64, String> {
        let signed = {
            let _one_at_a_time = lock(&self.saying);
            let mut before = self.instructions();
            before.retain(|signed| signed.instruction.node == self.key);
            let (what, network, now) = (what(&before)?, self.genesis().id(), self.clock.now());
            let signed = |version| SignedInstruction::new(network, self.key, version, what.clone(), owner);
            let known = lock(&self.told_to_all).instructions.get(&signed(0).about()).cloned();
            let after = known.map_or(0, |known| known.instruction.version.saturating_add(1));
            let signed = Arc::new(signed(now.wall_ms.max(after)));
            self.check_instruction(&signed)?;
            if !self.take_in(vec![signed.clone()])? {
                return Err("there are too many instructions already".into());
            }
            signed
        };
        let mut hidden = self.follow_removals();
        let (question, others) = (Question::Instruct(signed), self.others());
        for part in others.chunks(EVERYWHERE_AT_ONCE_MAX) {
            hidden += self.tell_all(part, &question);
        }
        Ok(hidden)
    }

    /// Who is not reached, or does not say how much it hid, hears of it when it compares.
    fn tell_all(&self, others: &[Key], question: &Question) -> u64 {
        let patience = Duration::from_millis(QUESTION_MS_MAX);
        let ask = |node: Key| -> Option<u64> {
            let count = self.answered(node, question, 8, patience).ok()?;
            Some(u64::from_le_bytes(count.try_into().ok()?))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = others.iter().map(|node| scope.spawn(|| ask(*node).unwrap_or(0))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        })
    }

    /// All instructions about crawls, as far as they count.
    pub fn instructions(&self) -> Vec<Arc<SignedInstruction>> {
        lock(&self.told_to_all).instructions.all().cloned().collect()
    }

    /// What somebody lacks who knows these.
    pub(super) fn instructions_without(&self, known: &[Hash]) -> Vec<Arc<SignedInstruction>> {
        lock(&self.told_to_all).instructions.without(known)
    }

    /// An instruction that a member passes on: followed if whoever signed it may say so, whoever brings it.
    pub(super) fn instructed(&self, from: Key, signed: Arc<SignedInstruction>) -> Result<u64, String> {
        if let Err(why) = self.check_instruction(&signed) {
            self.refused(Some(from), why);
            return Err(why.to_owned());
        }
        self.take_in(vec![signed])?;
        Ok(self.follow_removals())
    }

    /// Compares instructions with somebody.
    pub(super) fn compare_instructions(&self, with: Key) {
        let known = lock(&self.told_to_all).instructions.all().map(|signed| signed.hash()).collect();
        let asked = self.ask(with, &Question::Instructions(known), ANSWER_BYTES_MAX);
        let mut newer: Vec<Arc<SignedInstruction>> = asked.unwrap_or_default();
        newer.retain(|signed| match self.check_instruction(signed) {
            Ok(()) => true,
            Err(why) => {
                self.refused(Some(with), why);
                false
            }
        });
        if self.take_in(newer).is_err() {
            self.refused(None, "what owners told could not be written down");
        }
        self.follow_removals();
    }

    fn check_instruction(&self, signed: &SignedInstruction) -> Result<(), &'static str> {
        let owner = {
            let machine = lock(&self.machine);
            let roster = &machine.node.view.roster;
            // Lists of a node outlive it: whoever comes later hears of them, too, from those who knew it.
            let lasts = matches!(signed.instruction.what, What::Seeds { .. } | What::Sites { .. });
            let is_out = |index: u32| if lasts { roster.is_displaced(index) } else { roster.is_out(index) };
            let index = roster.index(&signed.instruction.node).filter(|index| !is_out(*index));
            index.map(|index| roster.record(index).owner())
        };
        let genesis = self.genesis();
        signed.check(genesis, &genesis.id(), owner, self.seal.as_ref(), self.clock.now().wall_ms)
    }

    /// Takes in instructions that were checked, durably, before anything follows from them. True if one of them is news.
    fn take_in(&self, all: Vec<Arc<SignedInstruction>>) -> Result<bool, String> {
        let mut told = lock(&self.told_to_all);
        let admission = &self.genesis().admission;
        let mut crawls = false;
        let mut news = false;
        for signed in all {
            let founder = admission.contains(&signed.instruction.by);
            if told.learn(signed.clone(), founder) {
                news = true;
                crawls |= signed.instruction.what.crawl().is_some();
            }
        }
        if news {
            told.store().map_err(|error| format!("{} cannot be written: {error}", told.path.display()))?;
        }
        drop(told);
        if crawls {
            // One after the other, so that the last that is told is the newest.
            let _in_order = lock(&self.telling);
            self.work.instructed(&self.instructions());
        }
        Ok(news)
    }

    /// Records came: removals that mean them are followed again.
    pub(super) fn came(&self, entries: &[Entry]) {
        let mut told = lock(&self.told_to_all);
        let meant = told.removals.meant(entries);
        told.unfollowed.extend(meant);
    }

    /// Removes here what is to be removed; says how many records were hidden. What cannot be done yet is tried again.
    pub(super) fn follow_removals(&self) -> u64 {
        let _one_at_a_time = lock(&self.removing);
        let mut hidden = 0;
        let todo = std::mem::take(&mut lock(&self.told_to_all).unfollowed);
        for about in todo {
            let Some(signed) = lock(&self.told_to_all).instructions.get(&about).cloned() else { continue };
            let Instruction { version, what: What::Remove { selector, reason }, .. } = &signed.instruction else {
                continue;
            };
            let Ok(selector) = selector.parse::<Selector>() else { continue };
            match self.archive.remove_until(&selector, reason, *version as i64) {
                Ok(removed) => hidden += removed.positions.len() as u64,
                Err(skep_archive::Error::NotFound { .. } | skep_archive::Error::Refused { .. }) => {}
                Err(_) => {
                    lock(&self.told_to_all).unfollowed.insert(about);
                    let why = "a removal could not be followed yet";
                    self.note(&Note { what: Noticed::Refused, peer: None, slice: None, why });
                }
            }
        }
        hidden
    }

    /// Removes something here alone: nothing of it is shown by this node any more, and it goes out of what this node wrote.
    pub fn remove_here(&self, selector: &Selector, reason: &str) -> Result<u64, String> {
        match self.archive.remove(selector, reason) {
            Ok(removed) => Ok(removed.positions.len() as u64),
            Err(skep_archive::Error::NotFound { .. }) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }
}
