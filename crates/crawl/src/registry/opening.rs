//! Opening at the last checkpoint, and making the next.

use super::checkpoint::{self, Checkpoint, Image, Mark};
use super::error::{Error, Result};
use super::familiar::Familiar;
use super::fingerprint::Fingerprints;
use super::hosts::Hosts;
use super::pages::Pages;
use super::seen::Seen;
use super::taking::End;
use super::urls::Urls;
use super::{HostId, Options, Registry, append, hosts, states};
use std::collections::HashMap;
use std::path::Path;

impl Registry {
    /// Opens the registry in a folder as its last checkpoint left it, and says what that was; `None` if there is none and the
    /// registry is empty. Entries that were out wait again, before all others of their queue.
    pub fn open(folder: &Path, options: Options) -> Result<(Registry, Option<Checkpoint>)> {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("cannot create", folder, error))?;
        let fingerprints = Fingerprints::new(options.key);
        let found = match checkpoint::read(folder, fingerprints.of_key()) {
            // What an earlier version kept is in the records, and is folded from them again.
            Err(Error::Older { .. }) => {
                std::fs::remove_dir_all(folder).map_err(|error| Error::io("cannot remove", folder, error))?;
                std::fs::create_dir_all(folder).map_err(|error| Error::io("cannot create", folder, error))?;
                None
            }
            found => found?,
        };
        let is_new = found.is_none();
        let image = found.unwrap_or_default();
        let damaged = |what: &str| Error::damaged(&folder.join("checkpoint"), what);

        let seen_urls = Seen::open(folder, "urls", options.urls_room(), &image.seen_urls)?;
        let seen_hosts = Seen::open(folder, "hosts", options.hosts_room(), &image.seen_hosts)?;
        let hosts = Hosts {
            names: append::Append::open(folder.join("names"), image.names_bytes)?,
            count: u32::try_from(image.hosts).map_err(|_| damaged("it has more hosts than can be numbered"))?,
        };
        let mut registry = Registry {
            folder: folder.to_owned(),
            fingerprints,
            familiar: Familiar::default(),
            seen_urls,
            seen_hosts,
            urls: Urls::open(folder, image.urls)?,
            hosts,
            pages: Pages::open(folder, image.checkpoint.number, image.pages, options.page_bytes)?,
            free: image.free,
            crawls: image.crawls,
            out: HashMap::new(),
            out_by_host: HashMap::new(),
            last_host: None,
            checkpoint: image.checkpoint.number,
            stale: false,
        };
        let agree = registry.seen_urls.next() == registry.urls.entries();
        if !agree || registry.seen_hosts.next() != u64::from(registry.hosts.count) {
            return Err(damaged("it counts other entries than fingerprints"));
        }
        for entry in image.checkpoint.out.iter().rev() {
            registry.check_entry(*entry).map_err(|_| damaged("an entry that was out does not exist"))?;
            let record = states::read(&mut registry.pages, *entry)?;
            // As if it were out now, and given back.
            let crawl = hosts::crawl(&mut registry.pages, record.host)?;
            registry.mark_out(*entry, HostId(record.host), crawl);
            registry.enter(*entry, record, record, End::Front)?;
        }
        Ok((registry, (!is_new).then_some(image.checkpoint)))
    }

    /// Makes everything durable, with how far the records were folded and bytes of the caller's own. From now on this is what
    /// opening goes back to.
    pub fn checkpoint(&mut self, marks: &[Mark], extra: &[u8]) -> Result<()> {
        self.doing(|registry| {
            let image = registry.sync(marks, extra)?;
            checkpoint::write(&registry.folder, &image)?;
            registry.checkpointed(image.checkpoint.number)
        })
    }

    /// Makes durable what the next checkpoint names. Until it stands, the last one does.
    pub(super) fn sync(&mut self, marks: &[Mark], extra: &[u8]) -> Result<Image> {
        let mut out: Vec<u64> = self.out.keys().copied().collect();
        out.sort_unstable();
        let number = self.checkpoint + 1;
        Ok(Image {
            checkpoint: Checkpoint { number, marks: marks.to_vec(), extra: extra.to_vec(), out },
            key_check: self.fingerprints.of_key(),
            urls: self.urls.sync()?,
            pages: self.pages.sync()?,
            names_bytes: self.hosts.names.sync()?,
            hosts: self.hosts.count.into(),
            seen_urls: self.seen_urls.sync()?,
            seen_hosts: self.seen_hosts.sync()?,
            free: self.free,
            crawls: self.crawls.clone(),
        })
    }

    /// The checkpoint stands: what only the one before needed is given up.
    fn checkpointed(&mut self, number: u64) -> Result<()> {
        self.checkpoint = number;
        self.pages.checkpointed(number)?;
        self.seen_urls.checkpointed()?;
        self.seen_hosts.checkpointed()
    }
}
