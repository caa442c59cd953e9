//! Payloads that this run brought. One record has the bytes; what brings the same bytes later refers to it, but only once that
//! record is on the disk, and only while nobody has removed it.
//!
//! ```text
//!  nobody has it ──▶ claimed ──▶ synced: known        others wait for the word
//!                       └──────▶ lost: nobody has it  and the first of them claims it
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skep_archive::Position;
use tokio::sync::Notify;

use crate::limits::RECENT_DIGESTS_MAX;
use crate::remembered::Original;

/// What became of the payloads of this run, as far as it is remembered.
pub struct Payloads {
    recent: Mutex<Recent>,
    settled: Notify,
}

/// A payload by its digest, and the slice whose records may refer to each other: one that another node holds may go without a word.
pub type Name = ([u8; 20], u32);

/// Two generations: when the young one is full, the old one is forgotten.
struct Recent {
    /// Nothing was there before, and nothing was forgotten since: what is not here is nowhere.
    is_all: bool,
    young: HashMap<Name, Standing>,
    old: HashMap<Name, Standing>,
}

#[derive(Clone)]
enum Standing {
    /// Its record is on its way to the disk.
    Claimed,
    /// This record has it.
    Kept(Original, Position),
}

/// Who has a payload.
#[derive(Debug)]
pub enum Whose {
    /// A record that is there.
    Known(Original),
    /// Whoever asked: nobody else in this run. The archive may have had it before, where that is said.
    Ours(Claim, Before),
}

/// Whether the archive may have a payload from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It has to be asked.
    Perhaps,
    /// This run knows all that there is.
    Never,
}

/// The right to keep a payload. Dropped without a word, nobody has it.
pub struct Claim {
    payloads: Arc<Payloads>,
    name: Name,
}

impl Payloads {
    /// `is_all`: the archive has none yet.
    pub fn new(is_all: bool) -> Arc<Payloads> {
        let recent = Recent { is_all, young: HashMap::new(), old: HashMap::new() };
        Arc::new(Payloads { recent: Mutex::new(recent), settled: Notify::new() })
    }

    /// Who has this payload. Waits for whoever is about to keep it; `is_there` says whether a record still is.
    pub async fn whose(self: &Arc<Payloads>, name: Name, is_there: impl Fn(Position) -> bool) -> Whose {
        loop {
            // Made before the look, so that nothing said after it is missed.
            let settled = self.settled.notified();
            {
                let mut recent = self.lock();
                match recent.get(&name) {
                    Some(Standing::Kept(original, position)) if is_there(*position) => {
                        return Whose::Known(original.clone());
                    }
                    Some(Standing::Claimed) => {}
                    _ => {
                        recent.put(name, Standing::Claimed);
                        let before = if recent.is_all { Before::Never } else { Before::Perhaps };
                        return Whose::Ours(Claim { payloads: self.clone(), name }, before);
                    }
                }
            }
            settled.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn get(&self, name: &Name) -> Option<&Standing> {
        self.young.get(name).or_else(|| self.old.get(name))
    }

    fn put(&mut self, name: Name, standing: Standing) {
        if self.young.len() >= RECENT_DIGESTS_MAX {
            self.is_all &= self.old.is_empty();
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, standing);
    }
}

impl Claim {
    /// The record that has the payload is synced.
    pub fn kept(self, original: Original, position: Position) {
        self.payloads.lock().put(self.name, Standing::Kept(original, position));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut recent = self.payloads.lock();
        let Recent { young, old, .. } = &mut *recent;
        for generation in [young, old] {
            if matches!(generation.get(&self.name), Some(Standing::Claimed)) {
                generation.remove(&self.name);
            }
        }
        drop(recent);
        self.payloads.settled.notify_waiters();
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Claim")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::WriterKey;

    const NAME: Name = ([7; 20], 0);
    const AT: Position = Position { writer: WriterKey(1), segment: 1, record: 3 };

    fn original(url: &str) -> Original {
        Original { url: url.to_owned(), time_ms: 1 }
    }

    fn claim(whose: Whose) -> Claim {
        match whose {
            Whose::Ours(claim, _) => claim,
            Whose::Known(original) => panic!("{original:?} has it"),
        }
    }

    #[tokio::test]
    async fn a_record_that_was_lost_is_referred_to_by_nobody() {
        let payloads = Payloads::new(true);
        drop(claim(payloads.whose(NAME, |_| true).await));
        let again = claim(payloads.whose(NAME, |_| true).await);
        again.kept(original("http://a.test/"), AT);
        assert!(matches!(payloads.whose(NAME, |_| true).await, Whose::Known(found) if found.url == "http://a.test/"));
    }

    #[tokio::test]
    async fn who_brings_the_same_waits_until_the_first_record_is_safe_or_lost() {
        let payloads = Payloads::new(true);
        for is_lost in [true, false] {
            let first = claim(payloads.whose(NAME, |_| false).await);
            let settle = async {
                match is_lost {
                    true => drop(first),
                    false => first.kept(original("http://a.test/"), AT),
                }
            };
            let (second, ()) = tokio::join!(payloads.whose(NAME, |_| true), settle);
            assert_eq!(matches!(second, Whose::Ours(..)), is_lost);
        }
    }

    #[tokio::test]
    async fn a_record_that_was_removed_is_referred_to_by_nobody() {
        let payloads = Payloads::new(true);
        claim(payloads.whose(NAME, |_| true).await).kept(original("http://a.test/"), AT);
        claim(payloads.whose(NAME, |position| position != AT).await);
    }

    #[tokio::test]
    async fn slices_do_not_refer_to_each_other() {
        let payloads = Payloads::new(true);
        claim(payloads.whose(NAME, |_| true).await).kept(original("http://a.test/"), AT);
        claim(payloads.whose((NAME.0, 1), |_| true).await);
        assert!(matches!(payloads.whose(NAME, |_| true).await, Whose::Known(_)));
    }

    #[tokio::test]
    async fn what_was_forgotten_is_looked_up() {
        let payloads = Payloads::new(true);
        for number in 0..=2 * RECENT_DIGESTS_MAX as u32 {
            let mut digest = [0; 20];
            digest[..4].copy_from_slice(&number.to_le_bytes());
            payloads.lock().put((digest, 0), Standing::Kept(original(""), AT));
        }
        assert!(matches!(payloads.whose(NAME, |_| true).await, Whose::Ours(_, Before::Perhaps)));
    }
}
