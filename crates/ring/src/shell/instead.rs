//! Removals in copies whose writers are gone: nobody else writes those segments again, so whoever has them does. Read top to bottom.
//!
//! ```text
//!  writer there                     writes its segments again; holders copy that
//!  absent for less than `expire`    waited for: hidden everywhere meanwhile
//!  absent for longer                what it closed is written by whoever has it
//!  left, retired                    what it never closed, too
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use skep_archive::layout::SegmentId;
use skep_archive::{Binding, Error, Judge, State, WriterKey};

use super::{Shell, lock};
use crate::copy::writer_of;
use crate::instruction::{SignedInstruction, What};
use crate::message::PROTOCOL_INSTEAD;
use crate::node::{Note, What as Noticed};
use crate::roster::Gone;

/// Segments in which nothing was to be done, and how everything stood then.
pub(super) type Looked = HashMap<SegmentId, Stood>;

/// Hidden records that have their block, how far along their segment was, why its writer was not waited for, and the sum of the versions of all
/// removals.
type Stood = (usize, State, Gone, u64);

/// What the archive is told of the network, as long as the node runs.
struct Judging(Weak<Shell>);

impl Judge for Judging {
    fn binding(&self, signed: &[u8]) -> Result<Binding, &'static str> {
        self.0.upgrade().ok_or("this node is ending")?.binding(signed)
    }

    fn is_gone(&self, writer: WriterKey) -> bool {
        let shell = self.0.upgrade();
        shell.is_some_and(|shell| shell.gone_writers().get(&writer.0) == Some(&Gone::ForGood))
    }
}

impl Shell {
    /// The archive asks who may have said that something is removed from all copies, and who is gone.
    pub(super) fn judge_removals(self: &Arc<Shell>) {
        self.archive.judge_removals(Arc::new(Judging(Arc::downgrade(self))));
    }

    /// Whoever brought it: a key with which the network was made has signed it, or it binds nobody.
    fn binding(&self, bytes: &[u8]) -> Result<Binding, &'static str> {
        let read = postcard::take_from_bytes::<SignedInstruction>(bytes);
        let (signed, _) = read.ok().filter(|(_, rest)| rest.is_empty()).ok_or("it is no instruction")?;
        let genesis = self.genesis();
        signed.check(genesis, &genesis.id(), None, self.seal.as_ref(), self.clock.now().wall_ms)?;
        binding_of(&signed)
    }

    /// Writes segments again that removals mean and whose writers will not.
    pub(super) fn remove_instead(&self, looked: &mut Looked) {
        let (gone, instructions) = (self.gone_writers(), self.instructions());
        let bindings: Vec<Binding> = instructions.iter().filter_map(|signed| binding_of(signed).ok()).collect();
        if gone.is_empty() || bindings.is_empty() || !self.everybody_speaks(PROTOCOL_INSTEAD) {
            return;
        }
        let versions = bindings.iter().fold(0u64, |sum, binding| sum.wrapping_add(binding.until_ms as u64));
        let hidden = self.archive.hidden_in_copies().unwrap_or_default();
        looked.retain(|id, _| hidden.contains_key(id));
        // These wait until those who refer to a body in them have their own.
        let pinned: HashSet<SegmentId> = match self.archive.removed_and_pinned() {
            Ok(pinned) => pinned.into_iter().map(SegmentId::from).collect(),
            Err(_) => return,
        };
        for (id, (records, state)) in hidden {
            let Some(gone) = gone.get(&id.writer.0) else { continue };
            let stands = (records, state, *gone, versions);
            if *lock(&self.stopped) || looked.get(&id) == Some(&stands) || pinned.contains(&id) {
                continue;
            }
            match self.archive.blank_instead(id, &bindings, *gone == Gone::ForGood) {
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                // Hidden by this node alone, or not closed by who may come back.
                Ok(None) => drop(looked.insert(id, stands)),
                Err(_) => {
                    let why = "something that is removed could not be written out of a copy yet";
                    self.note(&Note { what: Noticed::Refused, peer: None, slice: None, why });
                }
            }
        }
    }

    /// Whether everybody who is there speaks a protocol: who does not would take what comes for altered.
    pub(super) fn everybody_speaks(&self, protocol: u16) -> bool {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let mut there = (0..roster.len() as u32).filter(|index| roster.is_present(*index));
        there.all(|index| roster.record(index).record.protocol.0 >= protocol)
    }

    fn gone_writers(&self) -> HashMap<u32, Gone> {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let gone = |index| Some((writer_of(&roster.key(index)), roster.gone(index, now_ms, self.settings.expire_ms)?));
        (0..roster.len() as u32).filter_map(gone).collect()
    }
}

/// What an instruction removes from all copies.
fn binding_of(signed: &SignedInstruction) -> Result<Binding, &'static str> {
    let What::Remove { selector, .. } = &signed.instruction.what else { return Err("it removes nothing") };
    let selector = selector.parse().map_err(|_| "it does not say what it removes")?;
    let bytes = postcard::to_allocvec(signed).expect("plain data encodes");
    Ok(Binding { signed: bytes, selector, until_ms: signed.instruction.version as i64 })
}
