//! What waits at a host is taken, comes back, or is settled.
//!
//! An entry's record says in which queue it waits; the queue itself only says in which order. A number in a queue counts if the
//! entry's record names that queue and the entry is not out; otherwise it is passed over. So an entry can be settled without being
//! looked for in its queue, which is what folding records again after a crash does all the time.

use super::error::{Error, Result};
use super::limits::RETRIES_LOOKED_AT_MAX;
use super::states::{self, Class, Outcome, Record, State};
use super::{Crawl, EntryNumber, HostId, Registry, hosts, queues};

/// An entry that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub entry: EntryNumber,
    /// The URL.
    pub url: String,
    /// Links from a seed.
    pub depth: u16,
    /// The entry of the page on which it was first heard of.
    pub via: Option<EntryNumber>,
    /// The kind of that link.
    pub kind: u8,
    /// The queue it comes from.
    pub class: Class,
    /// The last outcome; `Queued` if there was none.
    pub outcome: State,
    /// Failures in a row.
    pub failures: u8,
    /// The caller's code.
    pub note: u16,
}

/// Where an entry belongs and how it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its host.
    pub host: HostId,
    /// The last outcome; `Queued` if there was none.
    pub outcome: State,
    /// It waits in a queue, or is out.
    pub waits: bool,
}

/// Which end of its queue an entry goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

impl Registry {
    /// Takes up to so many entries of a host, class by class; a retry only when it is due. They are out until they are given back
    /// or set to another state.
    pub fn take(&mut self, host: HostId, max: usize, now_ms: i64, out: &mut Vec<Taken>) -> Result<()> {
        self.take_of(host, &Class::ALL, max, now_ms, out)
    }

    /// The same of these classes only.
    pub fn take_of(
        &mut self,
        host: HostId,
        classes: &[Class],
        max: usize,
        now_ms: i64,
        out: &mut Vec<Taken>,
    ) -> Result<()> {
        self.check_host(host)?;
        self.doing(|registry| {
            let full = out.len().saturating_add(max);
            for class in classes.iter().copied() {
                let length = hosts::queue(&mut registry.pages, host.0, class)?.length;
                if class == Class::Retry {
                    registry.take_retries(host, full, now_ms, out)?;
                } else {
                    // As many as there are now: none comes back while we take.
                    for _ in 0..length {
                        if out.len() >= full {
                            return Ok(());
                        }
                        if let Some((entry, record)) = registry.pop(host, class)? {
                            registry.take_out(entry, class, &record, out)?;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Retries that are due are taken, the others go to the end of the queue.
    fn take_retries(&mut self, host: HostId, full: usize, now_ms: i64, out: &mut Vec<Taken>) -> Result<()> {
        let length = hosts::queue(&mut self.pages, host.0, Class::Retry)?.length;
        if length == 0 || out.len() >= full || hosts::retry_due_ms(&mut self.pages, host.0)? > now_ms {
            return Ok(());
        }
        let mut due_ms: Option<i64> = None;
        for _ in 0..length.min(RETRIES_LOOKED_AT_MAX) {
            if out.len() >= full {
                return Ok(());
            }
            let Some((entry, record)) = self.pop(host, Class::Retry)? else { continue };
            if record.time_ms <= now_ms {
                self.take_out(entry, Class::Retry, &record, out)?;
            } else {
                due_ms = Some(due_ms.map_or(record.time_ms, |due_ms| due_ms.min(record.time_ms)));
                self.push(host.0, Class::Retry, entry, End::Back)?;
            }
        }
        // All were looked at: nothing is due before the first of them. Otherwise the next call looks at the rest.
        if let Some(due_ms) = due_ms.filter(|_| length <= RETRIES_LOOKED_AT_MAX) {
            hosts::set_retry_due_ms(&mut self.pages, host.0, due_ms)?;
        }
        Ok(())
    }

    /// The next number of a queue, if it counts.
    fn pop(&mut self, host: HostId, class: Class) -> Result<Option<(EntryNumber, Record)>> {
        let mut queue = hosts::queue(&mut self.pages, host.0, class)?;
        let popped = queues::pop(&mut self.pages, &mut self.free, &mut queue)?;
        hosts::set_queue(&mut self.pages, host.0, class, &queue)?;
        let Some(entry) = popped else { return Ok(None) };
        let record = states::read(&mut self.pages, entry)?;
        let counts = record.waits == Some(class) && record.host == host.0 && !self.out.contains_key(&entry);
        Ok(counts.then_some((entry, record)))
    }

    fn push(&mut self, host: u32, class: Class, entry: EntryNumber, end: End) -> Result<()> {
        let mut queue = hosts::queue(&mut self.pages, host, class)?;
        let put = match end {
            End::Front => queues::push_front,
            End::Back => queues::push,
        };
        put(&mut self.pages, &mut self.free, &mut queue, entry)?;
        hosts::set_queue(&mut self.pages, host, class, &queue)
    }

    fn take_out(&mut self, entry: EntryNumber, class: Class, record: &Record, out: &mut Vec<Taken>) -> Result<()> {
        let line = self.urls.get(entry)?;
        let host = HostId(record.host);
        hosts::count_waiting(&mut self.pages, host.0, -1)?;
        let counts = &mut self.crawl_mut(line.crawl).counts;
        counts.waiting = counts.waiting.saturating_sub(1);
        self.mark_out(entry, host, line.crawl);
        out.push(Taken {
            entry,
            url: line.url,
            depth: record.depth,
            via: line.via,
            kind: line.kind,
            class,
            outcome: record.outcome_state(),
            failures: record.failures,
            note: record.note,
        });
        Ok(())
    }

    pub(super) fn mark_out(&mut self, entry: EntryNumber, host: HostId, crawl: u16) {
        if self.out.insert(entry, (host, crawl)).is_none() {
            *self.out_by_host.entry(host).or_default() += 1;
            self.crawl_mut(crawl).counts.out += 1;
        }
    }

    /// Says whether the entry was out.
    fn mark_in(&mut self, entry: EntryNumber) -> bool {
        let Some((host, crawl)) = self.out.remove(&entry) else { return false };
        let left = self.out_by_host.remove(&host).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            self.out_by_host.insert(host, left);
        }
        self.crawl_mut(crawl).counts.out -= 1;
        true
    }

    /// An entry comes back unvisited: to the front of a queue, or, with a time, to those that are tried again then.
    pub fn give_back(&mut self, entry: EntryNumber, class: Class, not_before_ms: Option<i64>) -> Result<()> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let before = states::read(&mut registry.pages, entry)?;
            let mut record = before;
            record.waits = Some(class);
            if let Some(not_before_ms) = not_before_ms {
                if record.outcome != Outcome::Failed {
                    (record.outcome, record.code, record.failures) = (Outcome::Failed, 0, 0);
                }
                record.set_time(not_before_ms);
                record.waits = Some(Class::Retry);
                return registry.enter(entry, before, record, End::Back);
            }
            registry.enter(entry, before, record, End::Front)
        })
    }

    /// Says what became of an entry, whether it is out or not. A failed one waits for its time; a queued one waits again; all
    /// others wait no longer. Saying the same again changes nothing.
    pub fn set_state(&mut self, entry: EntryNumber, state: State) -> Result<()> {
        self.check_entry(entry)?;
        if state == State::Out {
            return Err(Error::Refused { why: "an entry is out when it was taken, not by being said to be".into() });
        }
        self.doing(|registry| {
            let before = states::read(&mut registry.pages, entry)?;
            let mut record = before;
            record.enter(state);
            record.waits = match state {
                State::Queued => Some(before.waits.unwrap_or(Class::Page)),
                State::Failed { .. } => Some(Class::Retry),
                _ => None,
            };
            registry.enter(entry, before, record, End::Back)
        })
    }

    /// Where an entry belongs, what became of it last, and whether it waits or is out.
    pub fn standing(&mut self, entry: EntryNumber) -> Result<Standing> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let record = states::read(&mut registry.pages, entry)?;
            let waits = record.waits.is_some() || registry.out.contains_key(&entry);
            Ok(Standing { host: HostId(record.host), outcome: record.outcome_state(), waits })
        })
    }

    /// An entry that rests waits to be looked at again. Says whether it does: one that waits already, or is out, stays where it is.
    pub fn look_again(&mut self, entry: EntryNumber) -> Result<bool> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let before = states::read(&mut registry.pages, entry)?;
            if before.waits.is_some() || registry.out.contains_key(&entry) {
                return Ok(false);
            }
            registry.enter(entry, before, Record { waits: Some(Class::Again), ..before }, End::Back)?;
            Ok(true)
        })
    }

    /// Lets an entry that waits, wait in another queue: a page that turns out to be needed by another.
    pub fn promote(&mut self, entry: EntryNumber, class: Class) -> Result<()> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let before = states::read(&mut registry.pages, entry)?;
            let waits_later = before.waits.is_some_and(|waits| class < waits && waits < Class::Retry);
            if !waits_later || registry.out.contains_key(&entry) {
                return Ok(());
            }
            registry.enter(entry, before, Record { waits: Some(class), ..before }, End::Back)
        })
    }

    /// Keeps a code of the caller's with an entry.
    pub fn set_note(&mut self, entry: EntryNumber, note: u16) -> Result<()> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let record = states::read(&mut registry.pages, entry)?;
            states::write(&mut registry.pages, entry, &Record { note, ..record })
        })
    }

    pub(super) fn enter(&mut self, entry: EntryNumber, before: Record, after: Record, end: End) -> Result<()> {
        let was_out = self.mark_in(entry);
        if after != before {
            states::write(&mut self.pages, entry, &after)?;
        }
        self.settle(entry, before, after, was_out, end)
    }

    /// Brings queues and counts in line with a record that changed.
    pub(super) fn settle(
        &mut self,
        entry: EntryNumber,
        before: Record,
        after: Record,
        was_out: bool,
        end: End,
    ) -> Result<()> {
        let host = after.host;
        let stays = before.waits == after.waits && !was_out;
        if let Some(class) = after.waits {
            if class == Class::Retry {
                let none = hosts::queue(&mut self.pages, host, class)?.length == 0;
                if none || after.time_ms < hosts::retry_due_ms(&mut self.pages, host)? {
                    hosts::set_retry_due_ms(&mut self.pages, host, after.time_ms)?;
                }
            }
            if !stays {
                self.push(host, class, entry, end)?;
            }
        }
        let waited = before.waits.is_some() && !was_out;
        let change = i64::from(after.waits.is_some()) - i64::from(waited);
        if change != 0 {
            hosts::count_waiting(&mut self.pages, host, change)?;
        }
        if before.outcome != after.outcome {
            hosts::count_outcome(&mut self.pages, host, before.outcome, after.outcome)?;
        }
        let crawl = hosts::crawl(&mut self.pages, host)?;
        let Crawl { pass, counts } = self.crawl_mut(crawl);
        counts.waiting = counts.waiting.saturating_add_signed(change);
        if before.outcome != after.outcome {
            counts.of(before.outcome).into_iter().for_each(|count| *count = count.saturating_sub(1));
            counts.of(after.outcome).into_iter().for_each(|count| *count += 1);
        }
        let in_pass = |record: &Record| record.outcome == Outcome::Visited && record.pass == *pass;
        match (in_pass(&before), in_pass(&after)) {
            (false, true) => counts.visited_in_pass += 1,
            (true, false) => counts.visited_in_pass = counts.visited_in_pass.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }
}
