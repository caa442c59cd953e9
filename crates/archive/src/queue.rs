//! What waits for the committer, and what waits for the views: two bounded lanes between threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// A bounded first-in, first-out lane whose size is counted in bytes. One item is always let in, however large.
#[derive(Debug)]
pub struct Lane<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    bytes_max: u64,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, u64)>,
    bytes: u64,
    /// Items put in, and items finished; equal when nothing waits and nothing is being worked on.
    put: u64,
    finished: u64,
    closed: bool,
    failed: Option<Error>,
    /// Threads that wait for a change: waking nobody costs a system call too.
    waiting: u32,
}

impl<T> Lane<T> {
    /// A lane that makes those who put wait while more than `bytes_max` bytes are in it.
    pub fn new(bytes_max: u64) -> Lane<T> {
        let state =
            State { items: VecDeque::new(), bytes: 0, put: 0, finished: 0, closed: false, failed: None, waiting: 0 };
        Lane { state: Mutex::new(state), changed: Condvar::new(), bytes_max }
    }

    /// Puts an item in, waiting for room. Returns its ticket, for [`Lane::wait_for`].
    pub fn put(&self, item: T, bytes: u64) -> Result<u64> {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.closed {
                return Err(Error::NotWritable { why: "the archive is being closed" });
            }
            if state.bytes == 0 || state.bytes + bytes <= self.bytes_max {
                break;
            }
            state = self.wait(state);
        }
        state.items.push_back((item, bytes));
        state.bytes += bytes;
        state.put += 1;
        self.wake(&state);
        Ok(state.put)
    }

    /// Takes what waits: the first item, and those behind it as long as `more` lets them join, up to `bytes_max` bytes.
    /// Waits until there is one; `None` when the lane is closed and empty.
    pub fn take(&self, bytes_max: u64, more: impl Fn(&T, &T) -> bool) -> Option<Taken<T>> {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.closed {
                return None;
            }
            state = self.wait(state);
        }
        let mut taken = Taken { items: Vec::new(), bytes: 0 };
        while let Some((item, bytes)) = state.items.front() {
            let joins = taken.items.first().is_none_or(|first| more(first, item) && taken.bytes + bytes <= bytes_max);
            if !joins {
                break;
            }
            taken.bytes += bytes;
            taken.items.extend(state.items.pop_front().map(|(item, _)| item));
        }
        Some(taken)
    }

    /// Says that `count` items of `bytes` bytes are done. Their bytes count until then. After a failure nothing is finished any more:
    /// whoever waits must hear of it, not believe that what was only taken out was done.
    pub fn finish(&self, count: usize, bytes: u64) {
        let mut state = self.lock();
        state.bytes -= bytes;
        if state.failed.is_none() {
            state.finished += count as u64;
        }
        self.wake(&state);
    }

    /// Nothing more goes in; whoever waits is told why.
    pub fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        self.wake(&state);
    }

    /// Nothing more goes in; what waits is still worked off.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(&state);
    }

    /// The ticket of the last item put in.
    pub fn last_ticket(&self) -> u64 {
        self.lock().put
    }

    /// Why nothing goes in any more, if something failed.
    pub fn failure(&self) -> Option<Error> {
        self.lock().failed.clone()
    }

    /// Waits until the item with this ticket, and all before it, are finished.
    pub fn wait_for(&self, ticket: u64) -> Result<()> {
        let mut state = self.lock();
        while state.finished < ticket {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            state = self.wait(state);
        }
        Ok(())
    }

    // A panic elsewhere leaves the lane as consistent as it was: every change above is complete before it unlocks.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, mut state: MutexGuard<'g, State<T>>) -> MutexGuard<'g, State<T>> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    fn wake(&self, state: &State<T>) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

/// Items taken together, to be given back to [`Lane::finish`] as a count.
#[derive(Debug)]
pub struct Taken<T> {
    /// The items, first in first.
    pub items: Vec<T>,
    /// Their bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn items_come_out_in_order_and_together_up_to_the_bound() {
        let lane = Lane::new(100);
        for (item, bytes) in [(1, 10), (2, 10), (30, 10), (4, 200)] {
            if item == 4 {
                lane.close();
                assert!(lane.put(item, bytes).is_err());
            } else {
                lane.put(item, bytes).unwrap();
            }
        }
        assert_eq!(lane.take(15, |_, _| true).unwrap().items, [1]);
        assert_eq!(lane.take(100, |_, next| *next < 30).unwrap().items, [2]);
        assert_eq!(lane.take(100, |_, _| true).unwrap().items, [30]);
        assert!(lane.take(100, |_, _| true).is_none());
    }

    #[test]
    fn who_puts_waits_for_room_and_tickets_are_waited_for() {
        let lane = Arc::new(Lane::new(10));
        assert_eq!(lane.put("large", 50).unwrap(), 1);
        let other = lane.clone();
        let putter = std::thread::spawn(move || {
            let ticket = other.put("next", 5).unwrap();
            other.wait_for(ticket).unwrap();
            ticket
        });
        let taken = lane.take(1000, |_, _| true).unwrap();
        assert_eq!(taken.items, ["large"]);
        lane.finish(1, taken.bytes);
        let taken = lane.take(1000, |_, _| true).unwrap();
        assert_eq!(taken.items, ["next"]);
        lane.finish(1, taken.bytes);
        assert_eq!(putter.join().unwrap(), 2);
    }

    #[test]
    fn a_failure_reaches_everybody() {
        let lane = Lane::new(10);
        let ticket = lane.put("a", 5).unwrap();
        lane.fail(Error::Views { what: "broken".into() });
        assert!(lane.wait_for(ticket).is_err());
        assert!(lane.put("b", 1).unwrap_err().to_string().contains("broken"));
    }

    #[test]
    fn what_was_taken_out_after_a_failure_is_not_taken_for_done() {
        let lane = Lane::new(10);
        let done = lane.put("done", 1).unwrap();
        let taken = lane.take(1, |_, _| false).unwrap();
        lane.finish(1, taken.bytes);
        let failed = lane.put("failed", 1).unwrap();
        let taken = lane.take(1, |_, _| false).unwrap();
        lane.fail(Error::Views { what: "broken".into() });
        lane.finish(1, taken.bytes);
        lane.wait_for(done).unwrap();
        assert!(lane.wait_for(failed).unwrap_err().to_string().contains("broken"));
    }
}
