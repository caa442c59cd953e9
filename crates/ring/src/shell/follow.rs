//! Whoever leads a slice may have something fetched by another holder of it: who that could be, the way there, and whether whoever asks
//! this node leads at all. What is said is the business of those above.

use std::io::{self, Write};
use std::time::Duration;

use super::answers::no;
use super::question::{Question, YES, is_yes};
use super::{Shell, lock};
use crate::genesis::Slice;
use crate::key::Key;
use crate::message::{Ballot, PROTOCOL_FOLLOW};
use crate::wire::Answer;

/// Who leads a slice that is held here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Led {
    /// The slice.
    pub slice: Slice,
    /// Who, as this node has granted it.
    pub by: Key,
    /// For how long, for certain.
    pub left: Duration,
    /// Under which lease.
    ballot: Ballot,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It says no, and why.
    Refused(String),
    /// It says nothing; it may have heard all the same.
    Silent(String),
}

impl Shell {
    /// Other holders of a slice that are there and know how to fetch for who leads, with the zones in which they stand. Who speaks an older
    /// protocol is not among them.
    pub fn followers(&self, slice: Slice) -> Vec<(Key, String)> {
        let there = {
            let machine = lock(&self.machine);
            let zone = |key: Key| {
                let record = machine.node.view.roster.record_of(&key)?;
                Some((key, record.record.certificate.certificate.zone.clone()))
            };
            self.holders_there(&machine, slice).into_iter().filter_map(zone).collect::<Vec<_>>()
        };
        let knows = |key: &Key| self.spoken(key).is_some_and(|protocol| protocol >= PROTOCOL_FOLLOW);
        there.into_iter().filter(|(key, _)| knows(key)).collect()
    }

    /// The zone in which this node stands.
    pub fn zone(&self) -> &str {
        &self.membership.certificate.certificate.zone
    }

    /// Asks another holder of a slice that this node leads to fetch something. The answer is read as it comes.
    pub fn have_followed(
        &self,
        node: Key,
        slice: Slice,
        message: &[u8],
        patience: Duration,
    ) -> Result<Answer, NoAnswer> {
        let question = Question::Follow { slice, message: message.to_vec() }.encode();
        let silent = |error: &dyn std::fmt::Display| NoAnswer::Silent(error.to_string());
        let mut answer = self.wire.ask(node, &question, patience).map_err(|silence| silent(&silence))?;
        is_yes(&mut answer).map_err(|error| silent(&error))?.map_err(NoAnswer::Refused)?;
        Ok(answer)
    }

    /// Who leads a slice by what was granted here, while this node is in view itself: who may be called absent follows nobody.
    fn led(&self, slice: Slice) -> Option<Led> {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        let holding = machine.node.core.holding(slice).filter(|_| machine.node.core.may_act())?;
        let (ballot, left_ms) = holding.led(now_ms, &self.settings)?;
        let follows = ballot.by != self.key && holding.latest().nodes.contains(&self.key);
        follows.then_some(Led { slice, by: ballot.by, left: Duration::from_millis(left_ms), ballot })
    }

    /// Does it still lead, under the same lease? One that gave it back, or began anew, has forgotten what it asked for.
    pub fn still_leads(&self, led: &Led) -> bool {
        self.led(led.slice).is_some_and(|now| now.ballot == led.ballot)
    }

    pub(super) fn follow(&self, from: Key, slice: Slice, message: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let led = if slice < self.genesis().slices() { self.led(slice) } else { None };
        let Some(led) = led.filter(|led| led.by == from) else {
            return no(out, "you do not lead there, as far as this node knows");
        };
        match self.work.follow(&led, message) {
            Ok(tell) => {
                out.write_all(&[YES])?;
                tell(out)
            }
            Err(why) => no(out, &why),
        }
    }
}
