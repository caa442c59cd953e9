//! What only one contributor has seen, of the last day: if it is found to have lied, all of that is fetched again. On disk, because a
//! node that was started anew must not forget whom it believed.
//!
//! ```text
//! settings/unconfirmed/<milliseconds since 1970>.log
//!   entry | length of URL 2 LE | key 8 | URL |   a torn last entry is passed over
//! ```
//! A file takes an hour or 64 MiB; those older than a day go, and the oldest when there are too many bytes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::limits::{UNCONFIRMED_BYTES_MAX, UNCONFIRMED_MS, UNCONFIRMED_URLS_MAX};
use crate::trust::Key;

const FILE_MS: i64 = 3_600_000;
const FILE_BYTES: u64 = 64 << 20;
const HEAD: usize = 2 + 8;

/// The folder.
pub struct Unconfirmed {
    folder: PathBuf,
    open: Option<Open>,
}

struct Open {
    since_ms: i64,
    bytes: u64,
    file: BufWriter<File>,
}

impl Unconfirmed {
    /// In a folder of settings.
    pub fn open(folder: &Path) -> Unconfirmed {
        Unconfirmed { folder: folder.join("unconfirmed"), open: None }
    }

    /// Only this contributor has seen this so far.
    pub fn note(&mut self, key: &Key, url: &str, now_ms: i64) -> std::io::Result<()> {
        let Ok(length) = u16::try_from(url.len()) else { return Ok(()) };
        let full = |open: &Open| open.bytes >= FILE_BYTES || now_ms - open.since_ms >= FILE_MS;
        if self.open.as_ref().is_none_or(full) {
            self.open = None;
            fs::create_dir_all(&self.folder)?;
            self.forget(now_ms);
            let path = self.folder.join(format!("{now_ms}.log"));
            let file = BufWriter::new(File::options().create(true).append(true).open(path)?);
            self.open = Some(Open { since_ms: now_ms, bytes: 0, file });
        }
        if let Some(open) = &mut self.open {
            open.file.write_all(&length.to_le_bytes())?;
            open.file.write_all(&key[..8])?;
            open.file.write_all(url.as_bytes())?;
            open.bytes += (HEAD + url.len()) as u64;
        }
        Ok(())
    }

    /// What was noted reaches the system.
    pub fn flush(&mut self) {
        // What is lost here is believed a little too early, as it would be after a crash.
        let _noted_again_when_seen_again = self.open.as_mut().map(|open| open.file.flush());
    }

    /// What was noted of the last day, to be read when there is time for it.
    pub fn noted(&mut self, now_ms: i64) -> Noted {
        self.flush();
        let of_the_day = |(since_ms, ..): &(i64, PathBuf, u64)| now_ms - since_ms <= UNCONFIRMED_MS + FILE_MS;
        Noted(self.files().into_iter().filter(of_the_day).map(|(_, path, _)| path).collect())
    }

    /// Oldest first: since when, where, how many bytes.
    fn files(&self) -> Vec<(i64, PathBuf, u64)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter_map(|entry| {
                let since_ms = entry.file_name().to_str()?.strip_suffix(".log")?.parse().ok()?;
                Some((since_ms, entry.path(), entry.metadata().ok()?.len()))
            })
            .collect();
        files.sort();
        files
    }

    fn forget(&self, now_ms: i64) {
        let files = self.files();
        let mut bytes: u64 = files.iter().map(|(_, _, bytes)| bytes).sum();
        for (since_ms, path, size) in files {
            if now_ms - since_ms > UNCONFIRMED_MS + FILE_MS || bytes > UNCONFIRMED_BYTES_MAX - FILE_BYTES {
                let _gone_already = fs::remove_file(path);
                bytes -= size;
            }
        }
    }
}

/// Files of the last day.
pub struct Noted(Vec<PathBuf>);

impl Noted {
    /// What only this contributor had seen when it brought it, each once.
    pub fn of(self, key: &Key) -> Vec<String> {
        let mut urls = std::collections::BTreeSet::new();
        for path in self.0 {
            // A file that is gone was too old.
            let Ok(bytes) = fs::read(&path) else { continue };
            let mut rest = &bytes[..];
            while let Some((head, more)) = rest.split_at_checked(HEAD) {
                let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
                let Some((url, more)) = more.split_at_checked(length) else { break };
                rest = more;
                if head[2..] == key[..8]
                    && urls.len() < UNCONFIRMED_URLS_MAX
                    && let Ok(url) = std::str::from_utf8(url)
                {
                    urls.insert(url.to_owned());
                }
            }
        }
        urls.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_remembered_over_a_restart_and_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut noted = Unconfirmed::open(folder.path());
        let (liar, other) = ([1; 32], [2; 32]);
        let day_ms = UNCONFIRMED_MS;
        noted.note(&liar, "http://a.test/old", 0).unwrap();
        for (key, url) in [(&liar, "http://a.test/1"), (&other, "http://a.test/2"), (&liar, "http://a.test/1")] {
            noted.note(key, url, 2 * day_ms).unwrap();
        }
        drop(noted);
        let torn = folder.path().join(format!("unconfirmed/{}.log", 2 * day_ms));
        let mut bytes = fs::read(&torn).unwrap();
        bytes.extend_from_slice(&[200, 0, 1, 1, 1]);
        fs::write(&torn, bytes).unwrap();
        let mut noted = Unconfirmed::open(folder.path());
        assert_eq!(noted.noted(2 * day_ms + 1).of(&liar), ["http://a.test/1"]);
        assert_eq!(noted.noted(2 * day_ms + 1).of(&other), ["http://a.test/2"]);
        assert!(noted.noted(2 * day_ms).of(&[3; 32]).is_empty());
        assert_eq!(noted.files().len(), 1, "what is older than a day is gone");
    }
}
