//! Bodies that records on their way stand for, and bodies that are about to go: never the same ones.
//!
//! Whoever writes a record that says "the same as before" looks first whether that body is there. Whoever removes bodies for which no record
//! stands looks, too, and cannot see one that is not written yet.
//!
//! ```text
//!  who writes     held ──▶ is the body there? ──▶ append ──▶ synced: no longer held
//!  who removes    going: what is not held ──▶ settle ──▶ what stands for it? ──▶ removed: no longer going
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::Digest;

/// Which bodies are held, and which are about to go.
#[derive(Debug, Default)]
pub struct Referred(Mutex<Both>);

#[derive(Debug, Default)]
struct Both {
    held: HashMap<Digest, u32>,
    going: HashMap<Digest, u32>,
}

/// While there is one, nobody removes the body because no record stands for it.
#[derive(Debug)]
pub struct Referring {
    referred: Arc<Referred>,
    digest: Digest,
}

/// Bodies that are about to go: while there is this, nobody begins to refer to them.
#[derive(Debug)]
pub struct Going {
    referred: Arc<Referred>,
    digests: HashSet<Digest>,
}

impl Referred {
    /// Holds a body, before anybody looks whether it is there. `None` if it is about to go.
    pub fn hold(self: &Arc<Referred>, digest: Digest) -> Option<Referring> {
        let mut both = self.lock();
        if both.going.contains_key(&digest) {
            return None;
        }
        *both.held.entry(digest).or_default() += 1;
        Some(Referring { referred: self.clone(), digest })
    }

    /// Of these bodies, those that nobody holds are about to go.
    pub fn going(self: &Arc<Referred>, digests: impl IntoIterator<Item = Digest>) -> Going {
        let mut both = self.lock();
        let digests: HashSet<Digest> = digests.into_iter().filter(|digest| !both.held.contains_key(digest)).collect();
        for digest in &digests {
            *both.going.entry(*digest).or_default() += 1;
        }
        Going { referred: self.clone(), digests }
    }

    fn lock(&self) -> MutexGuard<'_, Both> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Going {
    /// Whether a body is one of them.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.digests.contains(digest)
    }
}

fn less(counts: &mut HashMap<Digest, u32>, digest: &Digest) {
    if let Some(count) = counts.get_mut(digest) {
        *count -= 1;
        if *count == 0 {
            counts.remove(digest);
        }
    }
}

impl Drop for Referring {
    fn drop(&mut self) {
        less(&mut self.referred.lock().held, &self.digest);
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let mut both = self.referred.lock();
        for digest in &self.digests {
            less(&mut both.going, digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_does_not_go_and_what_goes_is_not_held() {
        let referred = Arc::new(Referred::default());
        let [one, other] = [1, 2].map(|byte| Digest::Sha1([byte; 20]));
        let (first, second) = (referred.hold(one).unwrap(), referred.hold(one).unwrap());
        drop(first);
        let going = referred.going([one, other]);
        assert!(!going.contains(&one) && going.contains(&other));
        assert!(referred.hold(other).is_none() && referred.hold(one).is_some());
        drop(second);
        let again = referred.going([one, other]);
        assert!(again.contains(&one) && again.contains(&other));
        drop(going);
        assert!(referred.hold(other).is_none(), "somebody else still removes it");
        drop(again);
        assert!(referred.hold(one).is_some() && referred.hold(other).is_some());
        assert!(referred.lock().held.is_empty() && referred.lock().going.is_empty());
    }
}
