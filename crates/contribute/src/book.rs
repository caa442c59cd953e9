//! What is known of contributors, in `settings/contributors.json`: written whole, at most every few seconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::trust::{Key, Standing};

/// The file under `settings`.
pub const FILE: &str = "contributors.json";
const VERSION: u32 = 1;
const EVERY: Duration = Duration::from_secs(2);

/// The file, and whether it is behind.
pub struct Book {
    path: PathBuf,
    behind: bool,
    written: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    contributors: BTreeMap<String, Standing>,
}

impl Book {
    /// The book in a folder of settings.
    pub fn open(folder: &Path) -> Result<Book, String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Book { path: folder.join(FILE), behind: false, written: None })
    }

    /// What it says.
    pub fn load(&self) -> Result<BTreeMap<Key, Standing>, String> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        let read =
            |why: String| format!("{} is damaged ({why}); move it away, and trust is earned anew", self.path.display());
        let written: Written = serde_json::from_slice(&bytes).map_err(|error| read(error.to_string()))?;
        if written.version > VERSION {
            return Err(format!("{} was written by a newer skep", self.path.display()));
        }
        let keys = written.contributors.into_iter().map(|(key, standing)| unhex(&key).map(|key| (key, standing)));
        keys.collect::<Option<_>>().ok_or_else(|| read("a key is not 64 hexadecimal digits".into()))
    }

    /// Something changed.
    pub fn touch(&mut self) {
        self.behind = true;
    }

    /// Writes what changed, if it is time. What cannot be written now is tried again.
    pub fn keep(&mut self, standings: &BTreeMap<Key, Standing>) {
        if self.written.is_none_or(|written| written.elapsed() >= EVERY) {
            self.keep_now(standings);
        }
    }

    /// The same where nobody will come again: a lie that was found out in the last second is not forgotten.
    pub fn keep_now(&mut self, standings: &BTreeMap<Key, Standing>) {
        if !self.behind {
            return;
        }
        let contributors = standings.iter().map(|(key, standing)| (crate::node::hex(key), standing.clone())).collect();
        let text = serde_json::to_vec_pretty(&Written { version: VERSION, contributors }).unwrap_or_default();
        self.written = Some(Instant::now());
        self.behind = write_whole(&self.path, &text).is_err();
    }
}

/// Writes a file beside, syncs it, and puts it in its place.
pub fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = std::fs::File::create(&beside)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

/// 64 hexadecimal digits.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if text.len() != 64 {
        return None;
    }
    for (at, pair) in text.as_bytes().chunks_exact(2).enumerate() {
        out[at] = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path()).unwrap();
        assert!(book.load().unwrap().is_empty());
        let standings = BTreeMap::from([([7; 32], Standing { good: 3, credit: 9, ..Standing::default() })]);
        book.touch();
        book.keep(&standings);
        assert_eq!(book.load().unwrap(), standings);
        let later = BTreeMap::from([([7; 32], Standing { lies: 1, ..Standing::default() })]);
        book.touch();
        book.keep(&later);
        assert_eq!(book.load().unwrap(), standings, "it is not time yet");
        book.keep_now(&later);
        assert_eq!(book.load().unwrap(), later);
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(book.load().unwrap_err().contains("move it away"));
    }
}
