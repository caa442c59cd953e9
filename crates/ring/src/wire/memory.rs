//! Nodes of one process: everything is carried in memory, and may be cut.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::{Answer, Ears, Silence, Wire};
use crate::key::Key;

/// What connects the nodes of one process.
#[derive(Default)]
pub struct Hub {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ears: HashMap<Key, Weak<dyn Ears>>,
    cut: HashSet<(Key, Key)>,
}

impl Hub {
    /// A hub without nodes.
    pub fn new() -> Arc<Hub> {
        Arc::default()
    }

    /// The wire of a node, which is heard by nobody before [`Hub::attach`].
    pub fn wire(self: &Arc<Hub>, key: Key) -> Arc<Line> {
        Arc::new(Line { hub: self.clone(), key, traffic: Default::default() })
    }

    /// A node listens from now on.
    pub fn attach(&self, key: Key, ears: &Arc<dyn Ears>) {
        self.lock().ears.insert(key, Arc::downgrade(ears));
    }

    /// Two groups do not hear each other any more.
    pub fn split(&self, one: &[Key], other: &[Key]) {
        let mut state = self.lock();
        for a in one {
            for b in other {
                state.cut.extend([(*a, *b), (*b, *a)]);
            }
        }
    }

    /// Everybody hears everybody again.
    pub fn heal(&self) {
        self.lock().cut.clear();
    }

    fn ears(&self, from: Key, to: Key) -> Option<Arc<dyn Ears>> {
        let state = self.lock();
        if state.cut.contains(&(from, to)) {
            return None;
        }
        state.ears.get(&to)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One node's end.
pub struct Line {
    hub: Arc<Hub>,
    key: Key,
    traffic: [AtomicU64; 2],
}

impl Wire for Line {
    fn key(&self) -> Key {
        self.key
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        Vec::new()
    }

    fn place(&self, _: Key, _: &[SocketAddr], _: Option<&str>) {}

    fn say(&self, to: Key, frame: Vec<u8>) {
        self.traffic[0].fetch_add(frame.len() as u64, Ordering::Relaxed);
        if let Some(ears) = self.hub.ears(self.key, to) {
            ears.hear(self.key, frame);
        }
    }

    fn ask(&self, to: Key, question: &[u8], _: Duration) -> Result<Answer, Silence> {
        let Some(ears) = self.hub.ears(self.key, to) else { return Err(Silence("nobody is there".into())) };
        let (reader, mut writer) = std::io::pipe().map_err(|error| Silence(error.to_string()))?;
        let (from, question) = (self.key, question.to_vec());
        std::thread::spawn(move || {
            // Who asked sees the end of the answer, whatever ended it.
            let _asker_left = ears.answer(from, question, &mut writer).and_then(|()| writer.flush());
        });
        Ok(Box::new(reader) as Box<dyn Read + Send>)
    }

    fn traffic(&self) -> (u64, u64) {
        (self.traffic[0].load(Ordering::Relaxed), self.traffic[1].load(Ordering::Relaxed))
    }

    fn close(&self) {
        self.hub.lock().ears.remove(&self.key);
    }
}
