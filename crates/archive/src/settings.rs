//! Settings: small versioned TOML files, each replaced as a whole or not at all.
//!
//! ```text
//!  write NAME.new ─▶ sync it ─▶ rename over NAME ─▶ sync the folder
//! ```
//! Every file begins with `version = N`. A file of a newer version is refused, never guessed at.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{SETTINGS_BYTES_MAX, SLICE_BITS_MAX};

/// The version of the archive's folder and formats that this program writes.
pub const ARCHIVE_VERSION: u32 = 1;

/// `settings/archive.toml`: what the whole archive agrees on. Its presence makes a folder an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveSettings {
    /// Version of the folder and its formats.
    pub version: u32,
    /// How many bits of the site hash number a slice: 2^bits slices.
    pub bits: u8,
}

/// The file of [`ArchiveSettings`] under `settings`.
pub const ARCHIVE_FILE: &str = "archive.toml";

impl ArchiveSettings {
    /// Reads the file; `None` if there is none.
    pub fn load(folder: &Path) -> Result<Option<ArchiveSettings>> {
        let path = folder.join(ARCHIVE_FILE);
        let settings: Option<ArchiveSettings> = load(&path, ARCHIVE_VERSION)?;
        match settings {
            Some(settings) if settings.bits > SLICE_BITS_MAX => {
                Err(damaged(&path, format!("bits = {} is more than {SLICE_BITS_MAX}", settings.bits)))
            }
            settings => Ok(settings),
        }
    }

    /// Replaces the file.
    pub fn store(&self, folder: &Path) -> Result<()> {
        store(&folder.join(ARCHIVE_FILE), self, 0o644)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Reads a settings file whose `version` is at most `known`; `None` if there is no file.
pub fn load<T: DeserializeOwned>(path: &Path, known: u32) -> Result<Option<T>> {
    let Some(text) = read(path, known)? else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| damaged(path, error.message()))
}

/// The text of such a file, for whoever reads the rest of it.
pub fn read(path: &Path, known: u32) -> Result<Option<String>> {
    let text = match read_bounded(path) {
        Ok(text) => text,
        Err(error) if error.is_missing_file() => return Ok(None),
        Err(error) => return Err(error),
    };
    let version: Version = toml::from_str(&text).map_err(|error| damaged(path, error.message()))?;
    if version.version > known || version.version == 0 {
        return Err(Error::Newer { path: path.to_path_buf(), found: version.version, known });
    }
    Ok(Some(text))
}

/// Replaces a settings file atomically: after a crash there is the old one or the new one.
pub fn store<T: Serialize>(path: &Path, settings: &T, mode: u32) -> Result<()> {
    let text = toml::to_string(settings).map_err(|error| damaged(path, error.to_string()))?;
    replace(path, text.as_bytes(), mode)
}

/// Replaces any file atomically.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        let mut file = File::options().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    };
    write().map_err(|error| Error::io("cannot write", path, error))?;
    sync_folder_of(path)
}

/// Makes the names in a file's folder durable.
pub fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder)
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Error::io("cannot sync", folder, error))
}

/// Creates a folder and what is missing above it, durably.
pub fn create_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_folder(above)?;
    }
    match std::fs::create_dir(folder) {
        Ok(()) => sync_folder_of(folder),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(Error::io("cannot create", folder, error)),
    }
}

fn read_bounded(path: &Path) -> Result<String> {
    let length = path.metadata().map_err(|error| Error::io("cannot read", path, error))?.len();
    if length > SETTINGS_BYTES_MAX {
        return Err(damaged(path, format!("{length} bytes is more than a settings file has")));
    }
    let bytes = std::fs::read(path).map_err(|error| Error::io("cannot read", path, error))?;
    String::from_utf8(bytes).map_err(|_| damaged(path, "not UTF-8"))
}

fn damaged(path: &Path, what: impl Into<String>) -> Error {
    Error::damaged(path, 0, what, "put the file back from a copy, or correct it by hand: it is TOML")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ArchiveSettings::load(dir.path()).unwrap(), None);
        for bits in [0, 4, 16] {
            let settings = ArchiveSettings { version: ARCHIVE_VERSION, bits };
            settings.store(dir.path()).unwrap();
            assert_eq!(ArchiveSettings::load(dir.path()).unwrap(), Some(settings));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn newer_and_damaged_settings_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ARCHIVE_FILE);
        for (text, says) in [
            ("version = 2\nbits = 0\n", "format version 2"),
            ("version = 1\nbits = 99\n", "more than 16"),
            ("version = 1\n", "bits"),
            ("bits = 3\n", "version"),
            ("version = ", "archive.toml"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = ArchiveSettings::load(dir.path()).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(ArchiveSettings::load(dir.path()).unwrap_err().to_string().contains("UTF-8"));
    }
}
