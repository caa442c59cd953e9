//! Which notes are told: each of a kind once in a while, with how often it came since. Who sends nonsense all the time does not fill the log with
//! it; all of it is counted elsewhere.

use skep_ring::Key;
use skep_ring::node::{Note, What};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The same of the same node is told again after so long.
const AGAIN: Duration = Duration::from_secs(600);
/// So many kinds are remembered; while there are more, others are told as often as …
const KINDS_MAX: usize = 4_096;
/// … in so much time …
const MOMENT: Duration = Duration::from_secs(1);
/// … there are notes that are told.
const TOLD_MAX: u32 = 20;

type Kind = (What, Option<Key>, &'static str);

/// What was told lately.
pub struct Notes {
    kinds: HashMap<Kind, (Instant, u64)>,
    /// Since when what is told is counted, and how much that was.
    told: (Instant, u32),
}

impl Notes {
    pub fn new(now: Instant) -> Notes {
        Notes { kinds: HashMap::new(), told: (now, 0) }
    }

    /// How often it came since it was told, this time included; nothing if it is not to be told now.
    pub fn hear(&mut self, note: &Note, now: Instant) -> Option<u64> {
        let kind = (note.what, note.peer, note.why);
        if let Some((told, times)) = self.kinds.get_mut(&kind) {
            *times += 1;
            if now.saturating_duration_since(*told) < AGAIN {
                return None;
            }
        }
        if now.saturating_duration_since(self.told.0) >= MOMENT {
            self.told = (now, 0);
        }
        if self.told.1 >= TOLD_MAX {
            return None;
        }
        self.told.1 += 1;
        if self.kinds.len() >= KINDS_MAX {
            self.kinds.retain(|_, (told, _)| now.saturating_duration_since(*told) < AGAIN);
        }
        match self.kinds.get_mut(&kind) {
            Some((told, times)) => {
                *told = now;
                Some(std::mem::take(times))
            }
            None => {
                if self.kinds.len() < KINDS_MAX {
                    self.kinds.insert(kind, (now, 0));
                }
                Some(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(peer: u32, why: &'static str) -> Note {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&peer.to_le_bytes());
        Note { what: What::Refused, peer: Some(Key(key)), slice: None, why }
    }

    #[test]
    fn the_same_is_told_once_and_later_how_often_it_came() {
        let now = Instant::now();
        let mut notes = Notes::new(now);
        let mut hear = |peer, why, seconds| notes.hear(&note(peer, why), now + Duration::from_secs(seconds));
        assert_eq!([hear(1, "flood", 0), hear(1, "flood", 0), hear(1, "flood", 300)], [Some(1), None, None]);
        assert_eq!([hear(2, "flood", 300), hear(1, "twin", 300)], [Some(1), Some(1)], "others are told");
        assert_eq!([hear(1, "flood", 600), hear(1, "flood", 601)], [Some(3), None]);
    }

    #[test]
    fn many_who_make_noise_fill_neither_the_log_nor_the_memory() {
        let now = Instant::now();
        let mut notes = Notes::new(now);
        let told = (0..100_000).filter(|peer| notes.hear(&note(*peer, "noise"), now).is_some()).count();
        assert_eq!(told, TOLD_MAX as usize);
        for second in 0..1_000 {
            let at = now + Duration::from_millis(1_000 * second);
            for peer in 0..20 {
                let _told_or_not = notes.hear(&note(100_000 + 20 * second as u32 + peer, "noise"), at);
            }
        }
        assert!(notes.kinds.len() <= KINDS_MAX);
    }
}
