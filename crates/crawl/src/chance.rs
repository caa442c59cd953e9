//! Random bytes for names of records and for keys: one draw from the system, then a keyed counter.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// 32 bytes that nobody can guess.
pub fn draw() -> Result<[u8; 32]> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 32];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::io("cannot read", path, error))?;
    Ok(bytes)
}

/// Names for records: never the same twice.
#[derive(Debug)]
pub struct Ids {
    key: [u8; 32],
    count: u64,
}

impl Ids {
    /// Names that follow from this key.
    pub fn new(key: [u8; 32]) -> Ids {
        Ids { key, count: 0 }
    }

    /// The next one.
    pub fn next(&mut self) -> [u8; 16] {
        self.count += 1;
        let hash = blake3::keyed_hash(&self.key, &self.count.to_le_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut ids = Ids::new(draw().unwrap());
        assert_ne!(ids.next(), ids.next());
        assert_ne!(draw().unwrap(), draw().unwrap());
    }
}
