//! Sites that are split: an archive of a network remembers which, so that whoever opens it finds their captures wherever they are filed.
//!
//! ```text
//!  settings/splits.toml   version = 1, then for each site: [[site]] hash, bits, since_ms, also = [other bits]
//! ```
//! `also` stands only where somebody else had split the same site at the same time, which counts no more: what was filed so stays where it is.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skep_url::{Key, Split, Splits};

use crate::archive::Archive;
use crate::capture::Position;
use crate::error::Result;
use crate::layout::SegmentId;
use crate::settings;

const FILE: &str = "splits.toml";
const FILE_VERSION: u32 = 1;

#[derive(Default, Serialize, Deserialize)]
struct File {
    version: u32,
    #[serde(default)]
    site: Vec<Site>,
}

#[derive(Serialize, Deserialize)]
struct Site {
    hash: u32,
    bits: u8,
    since_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<u8>,
}

/// What the settings know of splits.
pub(crate) fn load(folder: &Path) -> Result<Arc<Splits>> {
    let file: Option<File> = settings::load(&folder.join(FILE), FILE_VERSION)?;
    let mut splits = Splits::default();
    for site in file.unwrap_or_default().site {
        splits.add(site.hash, Split { bits: site.bits, since_ms: site.since_ms });
        site.also.into_iter().for_each(|bits| splits.add_also(site.hash, bits));
    }
    Ok(Arc::new(splits))
}

impl Archive {
    /// These sites are split, from now on and when the archive is opened again; so are those that were told before.
    pub fn know_splits(&self, splits: &Arc<Splits>) -> Result<()> {
        let folder = self.layout().settings();
        let known = load(&folder);
        let mut all = known.as_ref().map(|known| Splits::clone(known)).unwrap_or_default();
        all.add_all(splits);
        self.views().captures.know_splits(Arc::new(all.clone()));
        if *known? != all {
            let site = all.iter().map(|(hash, split)| {
                let also = all.also(hash).collect();
                Site { hash, bits: split.bits, since_ms: split.since_ms, also }
            });
            settings::store(&folder.join(FILE), &File { version: FILE_VERSION, site: site.collect() }, 0o644)?;
        }
        Ok(())
    }

    /// A key as the record at a position is filed under it, if that is here.
    pub fn filed(&self, position: Position, key: Key) -> Key {
        match self.half_of(SegmentId::from(position)) {
            Some(half) => half.file(key),
            None => key,
        }
    }
}
