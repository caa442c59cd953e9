//! Webs without end, and how little of them is fetched.
//!
//! Three tests, from cheap to learned:
//!
//! ```text
//!   url_rule    the URL alone: repeating segments, too deep, escapes within escapes
//!   shapes      URLs alike but for numbers and tokens share a budget that grows with what they bring
//!   mazes       folders, hosts and sites where every page leads to more that nobody has seen
//! ```
//! What tells a maze from a large real site is not how much is new at first, but whether that ever ends: a page of
//! documentation soon leads to pages that are known, a maze never does. A folder in which page after page *deepens* (at least
//! half of its links into the folder lead to URLs never heard of) is *probed*: only its deepest URLs are visited, the others
//! wait. If the probes bring plain pages, or pages that link to known ones beside them, all is well and everything that waited
//! goes on; if generation after generation deepens and no two ways ever meet, the folder is a maze, and what waited is
//! refused. Nothing is refused for being many.
//!
//! [`Traps::admit`] is asked when a URL is heard of, [`Traps::gate`] when it is about to be visited, and [`Traps::learn`] is told
//! of every visit, also of those that failed.

mod maze;
mod novelty;
mod rule;
mod shape;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skep_url::Url;

use crate::id::SiteId;
use crate::limits;

pub use novelty::{Novelty, text_digest};
pub use rule::url_rule;

use maze::Mazes;
use shape::Shapes;

/// Why a URL is not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Trap {
    /// `/a/b/a/b/a/b/`.
    RepeatingSegments,
    /// More segments than anybody needs.
    TooDeep,
    /// More bytes than a [`Url`] can have: for text that [`skep_url::UrlError::TooLong`] kept from becoming one.
    TooLong,
    /// An address in an address in an address.
    NestedEscapes,
    /// URLs of this shape bring nothing new any more.
    ShapeBudget,
    /// Hosts without end below one domain.
    SubdomainFlood,
    /// Pages without end in one folder.
    Maze,
    /// A maze that also drips.
    Tarpit,
    /// One of many sites at one address that show the same pages: see [`crate::mirror`].
    MirrorFarm,
}

impl Trap {
    /// All of them.
    pub const ALL: [Trap; 9] = [
        Trap::RepeatingSegments,
        Trap::TooDeep,
        Trap::TooLong,
        Trap::NestedEscapes,
        Trap::ShapeBudget,
        Trap::SubdomainFlood,
        Trap::Maze,
        Trap::Tarpit,
        Trap::MirrorFarm,
    ];

    /// The short name under which it is stored and counted.
    pub fn id(self) -> &'static str {
        match self {
            Trap::RepeatingSegments => "repeating-segments",
            Trap::TooDeep => "too-deep",
            Trap::TooLong => "too-long",
            Trap::NestedEscapes => "nested-escapes",
            Trap::ShapeBudget => "shape-budget",
            Trap::SubdomainFlood => "subdomain-flood",
            Trap::Maze => "maze",
            Trap::Tarpit => "tarpit",
            Trap::MirrorFarm => "mirror-farm",
        }
    }

    /// The trap of that name.
    pub fn from_id(id: &str) -> Option<Trap> {
        Trap::ALL.into_iter().find(|trap| trap.id() == id)
    }

    /// For a person who asks why.
    pub fn text(self) -> &'static str {
        match self {
            Trap::RepeatingSegments => "its path repeats itself, as links do that are meant for another folder",
            Trap::TooDeep => "its path has more than 32 segments",
            Trap::TooLong => "it is longer than 8,192 bytes",
            Trap::NestedEscapes => "its query holds an address within an address within an address",
            Trap::ShapeBudget => {
                "URLs that differ from it only in numbers and tokens brought the same text again and again"
            }
            Trap::SubdomainFlood => "its site has hosts without end: each one leads to more that nobody has heard of",
            Trap::Maze => "its folder has pages without end: each one leads to more that nobody has heard of",
            Trap::Tarpit => "its folder has pages without end, and they drip",
            Trap::MirrorFarm => "its site is one of many at one address that show the same pages",
        }
    }
}

/// What may be done with a URL whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Visit it.
    Go,
    /// Put it back at the end of the queue: others must come first.
    Later,
    /// Do not visit it.
    Never(Trap),
}

/// A URL that was heard of.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The URL.
    pub url: &'a Url,
    /// Its site.
    pub site: SiteId,
    /// Its host has not been heard of before.
    pub new_host: bool,
    /// Somebody asked for it by name: a seed.
    pub asked_for: bool,
    /// It was found on a page of another site.
    pub foreign: bool,
}

/// A visit that ended, well or not.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The URL.
    pub url: &'a Url,
    /// Its site.
    pub site: SiteId,
    /// Links between a seed and it.
    pub depth: u16,
    /// What came: nothing where the visit failed, or the answer was no page of its own (an error, a redirect, a 304).
    pub page: Option<PageSeen<'a>>,
}

/// A page that came.
#[derive(Clone, Copy, Debug)]
pub struct PageSeen<'a> {
    /// Where its links lead: empty for a file without links that others link to, which is where a way ends; nothing for what
    /// a page only embeds, which says nothing about ways.
    pub novelty: Option<&'a Novelty>,
    /// [`text_digest`] of its text; a digest of the bytes where there is no text.
    pub digest: u64,
    /// How long the answer took.
    pub answer_ms: u64,
    /// How long it was.
    pub bytes: u64,
}

/// What has been learned about every site; bounded, and small enough to be kept in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traps {
    sites: BTreeMap<SiteId, SiteTraps>,
    #[serde(skip)]
    learned: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct SiteTraps {
    mazes: Mazes,
    shapes: Shapes,
    hosts: u32,
    /// URLs of it that were found on other sites.
    foreign: u32,
}

impl Traps {
    /// Nothing learned yet.
    pub fn new() -> Traps {
        Traps::default()
    }

    /// May this URL become one that waits?
    pub fn admit(&mut self, candidate: &Candidate<'_>) -> Result<(), Trap> {
        if candidate.asked_for {
            return Ok(());
        }
        if let Some(trap) = url_rule(candidate.url) {
            return Err(trap);
        }
        let site = self.site(candidate.site);
        if candidate.foreign {
            site.foreign = site.foreign.saturating_add(1);
            site.mazes.foreign(candidate.url.as_str());
        }
        if candidate.new_host {
            let most =
                limits::HOSTS_PER_SITE.saturating_add(site.foreign.saturating_mul(limits::HOSTS_PER_FOREIGN_LINK));
            if site.hosts >= most && !candidate.foreign {
                site.mazes.has_all_hosts();
                return Err(Trap::SubdomainFlood);
            }
            site.hosts += 1;
        }
        match site.mazes.verdict(candidate.url.as_str()) {
            Some(trap) => Err(trap),
            None if site.shapes.spent(candidate.url.as_str()) => Err(Trap::ShapeBudget),
            None => Ok(()),
        }
    }

    /// May this URL, in the form of [`Url::as_str`], be visited now? A `Go` is followed by one [`Traps::learn`].
    pub fn gate(&mut self, url: &str, site: SiteId, depth: u16) -> Gate {
        if depth == 0 {
            return Gate::Go; // a seed, or something else that was asked for
        }
        let site = self.site(site);
        if site.shapes.spent(url) {
            return Gate::Never(Trap::ShapeBudget);
        }
        site.mazes.gate(url, depth)
    }

    /// What a visit showed.
    pub fn learn(&mut self, visit: &Visit<'_>) {
        self.learned = self.learned.wrapping_add(1);
        if self.learned.is_multiple_of(limits::TRAP_SWEEP_VISITS) {
            self.sweep();
        }
        let site = self.site(visit.site);
        if let Some(page) = &visit.page {
            site.shapes.learn(visit.url, page.digest, page.novelty.is_some_and(Novelty::leads_on));
        }
        site.mazes.learn(visit);
    }

    /// Folders and hosts that were found to be mazes, over all sites.
    pub fn mazes(&self) -> usize {
        self.sites.values().map(|site| site.mazes.flagged()).sum()
    }

    fn site(&mut self, id: SiteId) -> &mut SiteTraps {
        if self.sites.len() >= limits::TRAP_SITES_MAX && !self.sites.contains_key(&id) {
            self.forget_half();
        }
        self.sites.entry(id).or_default()
    }

    /// Keeps the whole within its bound.
    fn sweep(&mut self) {
        while self.sites.len() > 1
            && self.sites.values().map(SiteTraps::entries).sum::<usize>() > limits::TRAP_ENTRIES_MAX
        {
            self.forget_half();
        }
    }

    /// Verdicts are worth more than counts, and large sites more than small ones.
    fn forget_half(&mut self) {
        let mut sizes: Vec<(u64, SiteId)> = self.sites.iter().map(|(id, site)| (site.worth(), *id)).collect();
        sizes.sort_unstable();
        for (_, id) in &sizes[..sizes.len().div_ceil(2)] {
            self.sites.remove(id);
        }
    }
}

impl SiteTraps {
    fn worth(&self) -> u64 {
        self.mazes.flagged() as u64 * 1_000_000 + self.mazes.visits() + self.shapes.visits()
    }

    fn entries(&self) -> usize {
        self.mazes.len() + self.shapes.len()
    }
}
