//! Numbers of segments that a node of a network has given out. Others may hold what is no longer here, under numbers that nobody here
//! remembers: one that was used twice would name two segments, and the copy of the first would pass for one of the second.
//!
//! `settings/numbers.toml`: `version = 1`, `below = 65`. Numbers below that may have been used; they are set aside some at a time, so
//! that a new segment seldom waits for this file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::limits::NUMBERS_AHEAD;
use crate::settings;

const FILE: &str = "numbers.toml";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    below: u32,
}

/// Numbers that were set aside.
#[derive(Debug)]
pub struct Numbers {
    path: PathBuf,
    below: u32,
}

impl Numbers {
    /// The numbers of an archive in which `next` would be the next one by what is there; returns the one that is.
    pub fn open(settings_folder: &Path, next: u32) -> Result<(Numbers, u32)> {
        let path = settings_folder.join(FILE);
        let file: Option<File> = settings::load(&path, VERSION)?;
        let next = match file {
            Some(file) => file.below.max(next),
            // Also where nothing is written yet: whoever opens the archive sees that it is one of a network.
            None => {
                settings::store(&path, &File { version: VERSION, below: next }, 0o644)?;
                next
            }
        };
        Ok((Numbers { path, below: next }, next))
    }

    /// Whether the archive is one of a network.
    pub fn are_kept(settings_folder: &Path) -> bool {
        settings_folder.join(FILE).exists()
    }

    /// A number is about to be used.
    pub fn give_out(&mut self, number: u32) -> Result<()> {
        if number < self.below {
            return Ok(());
        }
        let below = number.saturating_add(NUMBERS_AHEAD);
        settings::store(&self.path, &File { version: VERSION, below }, 0o644)?;
        self.below = below;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_out_once_whatever_was_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (mut numbers, next) = Numbers::open(dir.path(), 1).unwrap();
        assert_eq!(next, 1);
        assert!(Numbers::are_kept(dir.path()), "also before one is used");
        assert_eq!(Numbers::open(dir.path(), 1).unwrap().1, 1, "nothing was used yet");
        (1..=3).for_each(|number| numbers.give_out(number).unwrap());
        let (mut numbers, next) = Numbers::open(dir.path(), 1).unwrap();
        assert!(next > 3, "the segments are gone, their numbers are not free");
        numbers.give_out(next).unwrap();
        assert_eq!(Numbers::open(dir.path(), 1_000).unwrap().1, 1_000);
    }
}
