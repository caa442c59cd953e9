//! So many threads, and what waits for one of them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that are started when there is something to do for them.
pub struct Pool {
    name: &'static str,
    most: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

impl Pool {
    pub fn new(name: &'static str, most: usize) -> Pool {
        Pool { name, most, shared: Arc::default() }
    }

    /// Does this when a thread is free. How much waits is bounded by whoever asks.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return;
        }
        state.jobs.push_back(Box::new(job));
        if state.idle < state.jobs.len() && state.threads < self.most {
            let shared = self.shared.clone();
            let spawned = std::thread::Builder::new().name(self.name.into()).spawn(move || work(&shared));
            state.threads += usize::from(spawned.is_ok());
        }
        self.shared.more.notify_one();
    }

    /// What waits is dropped; what was begun goes on to its end.
    pub fn stop(&self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopped = true;
        state.jobs.clear();
        self.shared.more.notify_all();
        while state.threads > 0 {
            state = self.shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work(shared: &Shared) {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.stopped {
        let Some(job) = state.jobs.pop_front() else {
            state.idle += 1;
            state = shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            continue;
        };
        drop(state);
        job();
        state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    }
    state.threads -= 1;
    shared.more.notify_all();
}
