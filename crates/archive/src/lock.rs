//! The owner's lock: one process at a time opens an archive.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};

/// Held while the archive is open. The system lets go of it when the process ends, however it ends; the file stays.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the archive in `root`, or says who holds it.
    pub fn take(root: &Path) -> Result<Lock> {
        let path = root.join("lock");
        let open = |error| Error::io("cannot open", &path, error);
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(open)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _unreadable_is_unknown = file.take(32).read_to_string(&mut text);
                return Err(Error::Locked { path: root.to_path_buf(), owner: text.trim().parse().ok() });
            }
            Err(error) => return Err(Error::io("cannot lock", &path, error.into())),
        }
        let note = |file: &mut File| -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The number only helps a person; on a full disk the lock itself still holds.
        let _number_is_a_courtesy = note(&mut file);
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_names_its_holder_and_is_free_again_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::take(dir.path()).unwrap();
        match Lock::take(dir.path()) {
            Err(Error::Locked { owner, .. }) => assert_eq!(owner, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(held);
        Lock::take(dir.path()).unwrap();
    }
}
