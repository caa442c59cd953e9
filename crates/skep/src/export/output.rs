//! A file that appears when it is whole: written under another name beside it, synced, then renamed. Nothing is written over.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file on its way. Dropped, it leaves nothing behind.
pub struct Part {
    temporary: NamedTempFile,
}

const PREFIX: &str = ".skep-export-";
const SUFFIX: &str = ".part";

impl Part {
    /// Begins a file in the folder that `target` will be in.
    pub fn beside(target: &Path) -> Result<Part> {
        let folder = target.parent().unwrap_or(Path::new("."));
        let temporary = Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| writing(folder, error))?;
        Ok(Part { temporary })
    }

    /// Another handle to write with.
    pub fn file(&self) -> Result<File> {
        self.temporary.as_file().try_clone().map_err(|error| writing(self.temporary.path(), error))
    }

    /// Gives it its name. Returns its length.
    pub fn keep(self, target: &Path) -> Result<u64> {
        let failed = |error| writing(target, error);
        self.temporary.as_file().sync_all().map_err(failed)?;
        let bytes = self.temporary.as_file().metadata().map_err(failed)?.len();
        self.temporary.persist_noclobber(target).map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => exists(target),
            _ => writing(target, refused.error),
        })?;
        sync_folder_of(target)?;
        Ok(bytes)
    }
}

pub fn sync_folder_of(target: &Path) -> Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| writing(folder, error))
}

/// Refuses a name that is taken.
pub fn is_free(target: &Path) -> Result<()> {
    match target.symlink_metadata() {
        Ok(_) => Err(exists(target)),
        Err(_) => Ok(()),
    }
}

fn exists(target: &Path) -> Failure {
    Failure::new(format!("{} exists already", target.display()))
        .hint("nothing is written over: name another file, or remove this one")
}

/// A file that could not be written, with the hint that fits.
pub fn writing(path: &Path, error: io::Error) -> Failure {
    let failure = Failure::new(format!("cannot write {}", path.display()));
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let failure = failure.because(error);
    match full {
        true => failure.hint("nothing was left behind; name a place with more room, or select less"),
        false => failure,
    }
}

/// `NAME.warc.gz` as the n-th of several: `NAME-00002.warc.gz`.
pub fn numbered(target: &Path, number: u32) -> PathBuf {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (stem, ending) = match name.find(".warc").filter(|at| *at > 0) {
        Some(at) => name.split_at(at),
        None => (name.as_str(), ""),
    };
    target.with_file_name(format!("{stem}-{number:05}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_there_when_it_is_whole_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.wacz");
        let part = Part::beside(&target).unwrap();
        part.file().unwrap().write_all(b"half").unwrap();
        assert!(is_free(&target).is_ok());
        drop(part);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "given up, nothing stays");
        let part = Part::beside(&target).unwrap();
        part.file().unwrap().write_all(b"whole").unwrap();
        assert_eq!(part.keep(&target).unwrap(), 5);
        assert!(is_free(&target).unwrap_err().what.contains("exists already"));
        let late = Part::beside(&target).unwrap();
        assert!(late.keep(&target).unwrap_err().what.contains("exists already"));
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn several_files_are_numbered_before_the_ending() {
        let name = |typed: &str| numbered(Path::new(typed), 2).display().to_string();
        assert_eq!(name("/a/news.2019.warc.gz"), "/a/news.2019-00002.warc.gz");
        assert_eq!(name("/a/news"), "/a/news-00002");
        assert_eq!(name("/a/.warc"), "/a/.warc-00002");
    }
}
