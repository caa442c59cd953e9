//! Contributors of one node work for all: what waits for them elsewhere, and what they say there through this node.

use std::net::IpAddr;
use std::time::Duration;

use super::coming::whole;
use super::question::{Question, is_yes};
use super::{Shell, lock};
use crate::key::Key;
use crate::limits::{BUNDLES_MS_MAX, CONTRIBUTOR_BYTES_MAX, QUESTION_MS_MAX};

impl Shell {
    /// Other nodes that are there, with their public portals.
    pub fn portals(&self) -> Vec<(Key, Option<String>)> {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let there = (0..roster.len() as u32).filter(|index| roster.is_present(*index));
        let others = there.filter(|index| roster.key(*index) != self.key);
        others.map(|index| (roster.key(index), roster.record(index).record.portal.clone())).collect()
    }

    /// What waits at another node for contributors, in the words of whoever hands out.
    pub fn bundles_at(&self, node: Key) -> Result<Vec<u8>, String> {
        self.carried(node, &Question::Bundles, BUNDLES_MS_MAX)
    }

    /// What a contributor says to another node through this one; and its answer.
    pub fn pass_on(&self, node: Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, String> {
        if message.len() > CONTRIBUTOR_BYTES_MAX {
            return Err(format!("at most {CONTRIBUTOR_BYTES_MAX} bytes are passed on at once"));
        }
        self.carried(node, &Question::Contributor { address, message: message.to_vec() }, QUESTION_MS_MAX)
    }

    fn carried(&self, node: Key, question: &Question, patience_ms: u64) -> Result<Vec<u8>, String> {
        let asked = self.wire.ask(node, &question.encode(), Duration::from_millis(patience_ms));
        let mut answer = asked.map_err(|silence| silence.to_string())?;
        is_yes(&mut answer).map_err(|error| error.to_string())??;
        let patience = Duration::from_millis(patience_ms);
        whole(answer, patience, &mut |length| length <= ANSWER_BYTES_MAX).map_err(|error| error.to_string())
    }
}

/// Bundles with their URLs come to more than what is said for them.
const ANSWER_BYTES_MAX: u64 = 4 * CONTRIBUTOR_BYTES_MAX as u64;
