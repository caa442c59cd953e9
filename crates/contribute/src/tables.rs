//! Tables that people put among the settings, and may replace while the node runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::known_pages::KnownPages;
use crate::networks::Networks;

const NETWORKS: &str = "networks.txt";
const KNOWN_PAGES: &str = "known-pages.txt";
const EVERY: Duration = Duration::from_secs(5);

/// The tables, as they were last read.
pub struct Tables {
    /// Which network an address belongs to.
    pub networks: Networks,
    /// Pages whose content is known.
    pub known_pages: KnownPages,
    folder: PathBuf,
    read: [Option<SystemTime>; 2],
    looked: Instant,
}

impl Tables {
    /// In a folder of settings.
    pub fn open(folder: &Path) -> Tables {
        let mut tables = Tables {
            networks: Networks::default(),
            known_pages: KnownPages::default(),
            folder: folder.to_path_buf(),
            read: [None; 2],
            looked: Instant::now(),
        };
        tables.read();
        tables
    }

    /// Reads what was replaced, if it is time to look.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= EVERY {
            self.read();
        }
    }

    fn read(&mut self) {
        self.looked = Instant::now();
        for (number, name) in [NETWORKS, KNOWN_PAGES].into_iter().enumerate() {
            let path = self.folder.join(name);
            let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
            if modified == self.read[number] {
                continue;
            }
            self.read[number] = modified;
            // A table that is taken away is empty; lines that are none are passed over.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            match number {
                0 => self.networks = Networks::parse(&text).0,
                _ => self.known_pages = KnownPages::parse(&text).0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_while_the_node_runs() {
        let folder = tempfile::tempdir().unwrap();
        let mut tables = Tables::open(folder.path());
        let address = "192.0.2.7".parse().unwrap();
        assert_ne!(tables.networks.of(address).0, 64500);
        std::fs::write(folder.path().join(NETWORKS), "192.0.2.0/24 64500 DE\n").unwrap();
        tables.read();
        assert_eq!(tables.networks.of(address).0, 64500);
        std::fs::remove_file(folder.path().join(NETWORKS)).unwrap();
        tables.read();
        assert_ne!(tables.networks.of(address).0, 64500);
    }
}
