//! Opening at the last checkpoint, and making the next.

use super::checkpoint::{self, Checkpoint, Image, Mark};
use super::error::{Error, Result};
use super::fingerprint::Fingerprints;
use super::hosts::Hosts;
use super::pages::Pages;
use super::seen::Seen;
use super::taking::End;
use super::urls::Urls;
use super::{HostId, Options, Registry, append, hosts, states};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

impl Registry {
    /// Opens the registry in a folder as its last checkpoint left it, and says what that was; `None` if there is none and the
    /// registry is empty. Entries that were out wait again, before all others of their queue.
    pub fn open(folder: &Path, options: Options) -> Result<(Registry, Option<Checkpoint>)> {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("cannot create", folder, error))?;
        let fingerprints = Fingerprints::new(options.key);
        let found = checkpoint::read(folder, fingerprints.of_key())?;
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
        registry.remember()?;
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

    /// Puts the fingerprints that were in memory only back there: from the URLs and names themselves.
    fn remember(&mut self) -> Result<()> {
        let Registry { fingerprints, seen_urls, seen_hosts, urls, hosts, pages, .. } = self;
        if seen_urls.next() > urls.entries() || seen_hosts.next() > u64::from(hosts.count) {
            return Err(Error::damaged(&self.folder.join("checkpoint"), "its runs hold more than was heard"));
        }
        urls.walk(seen_urls.next(), |_, line| {
            seen_urls.add(fingerprints.of_url(line.crawl, &line.url))?;
            Ok(ControlFlow::Continue(()))
        })?;
        for host in seen_hosts.next() as u32..hosts.count {
            let (key, _) = hosts.name(pages, host)?;
            let crawl = hosts::crawl(pages, host)?;
            seen_hosts.add(fingerprints.of_host(crawl, &key))?;
        }
        Ok(())
    }

    /// Makes everything durable, with how far the records were folded and bytes of the caller's own. From now on this is what
    /// opening goes back to.
    pub fn checkpoint(&mut self, marks: &[Mark], extra: &[u8]) -> Result<()> {
        self.doing(|registry| {
            let number = registry.checkpoint + 1;
            let mut out: Vec<u64> = registry.out.keys().copied().collect();
            out.sort_unstable();
            let image = Image {
                checkpoint: Checkpoint { number, marks: marks.to_vec(), extra: extra.to_vec(), out },
                key_check: registry.fingerprints.of_key(),
                urls: registry.urls.sync()?,
                pages: registry.pages.sync()?,
                names_bytes: registry.hosts.names.sync()?,
                hosts: registry.hosts.count.into(),
                seen_urls: registry.seen_urls.sync()?,
                seen_hosts: registry.seen_hosts.sync()?,
                free: registry.free,
                // Who was out waits again after opening, so it counts as neither.
                crawls: registry.crawls.clone(),
            };
            checkpoint::write(&registry.folder, &image)?;
            registry.checkpoint = number;
            registry.pages.checkpointed(number)?;
            registry.seen_urls.checkpointed()?;
            registry.seen_hosts.checkpointed()
        })
    }
}
