//! Links are heard: the part of folding a visit that costs the most, because a page has dozens of links.
//!
//! ```text
//!  a link ──▶ inside the scope? ──▶ known? ──▶ rules ──▶ traps ──▶ registry: queued, or kept as refused
//!             (its host decides)    (90 % are)
//! ```

use skep_page::LinkKind;
use skep_schedule::SiteId;
use skep_schedule::trap::Novelty;
use skep_url::{Part, Url};

use crate::canonical::canonical;
use crate::error::Result;
use crate::hops::Hops;
use crate::ledger::Ledger;
use crate::registry::{self, Class, Heard, Referrer, State};
use crate::rules::{Rank, Refusal, hops_over, is_of, origin};
use crate::sharing::{Link, slice_of};
use crate::visit::Visited;

/// The page whose links are heard.
struct Page<'v> {
    visited: &'v Visited,
    origin: &'v str,
    site: SiteId,
    inside: bool,
    entry: Option<u64>,
    /// Which sites link to a page is worth knowing.
    watched: bool,
    /// The slice of the page, where nodes crawl together.
    slice: Option<u32>,
}

/// A URL, and where it is filed: at its site's home, unless the site is split.
#[derive(Clone, Copy)]
pub(crate) struct Filed<'u> {
    pub url: &'u Url,
    pub place: Option<u32>,
}

impl<'u> From<&'u Url> for Filed<'u> {
    fn from(url: &'u Url) -> Filed<'u> {
        Filed { url, place: None }
    }
}

/// What became of a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Known,
    Taken,
    Refused,
    Outside,
}

impl Ledger {
    /// Hears the links of a visited page, and lets the search for traps learn from them. Returns how many are new and taken.
    pub(crate) fn hear_links(&mut self, crawl: u16, visited: &Visited, entry: Option<u64>) -> Result<u32> {
        let Some(rules) = self.rules(crawl) else { return Ok(0) };
        let inside = rules.is_inside(&visited.url);
        let strip_query = rules.settings().strip_query;
        let parsed = match &visited.parts {
            Some(_) => None,
            None => Url::parse(&visited.url).ok(),
        };
        let Some(url) = visited.parts.as_ref().or(parsed.as_ref()) else { return Ok(0) };
        let site = site_id(url.site(&self.suffixes, Part::Whole));
        let watched = self.is_watched(crawl);
        let hash = || visited.place.unwrap_or_else(|| url.key().site_hash());
        let slice = self.crossing.as_ref().map(|crossing| slice_of(hash(), crossing.bits));
        let page = Page { visited, origin: origin(&visited.url), site, inside, entry, watched, slice };
        let leads = visited.from_queue && !is_part(&visited.mime);
        let mut novelty = leads.then(|| Novelty::of(&visited.url, visited.via.as_deref()));
        let mut taken = 0;
        // Rules that let more in than before are for all links, also for those that the page had already.
        let came = visited.came.as_ref().filter(|_| !self.hears_again(crawl));
        for (place, link) in (0..).zip(visited.links.iter()).filter(|_| visited.follow) {
            let is_new = came.is_none_or(|came| came.binary_search(&place).is_ok());
            let url = if strip_query { link.url.split('?').next().unwrap_or(link.url) } else { link.url };
            let (fate, site) = self.hear_link(crawl, url, link.kind, is_new, &page)?;
            taken += u32::from(fate == Fate::Taken);
            let of_site = fate != Fate::Outside && site == page.site && !link.kind.is_embed();
            if let Some(novelty) = novelty.as_mut().filter(|_| of_site) {
                novelty.link(url, fate != Fate::Known);
            }
        }
        if watched && visited.follow {
            visited.gone.iter().try_for_each(|url| self.hear_gone(crawl, url, &page))?;
        }
        if visited.from_queue {
            self.traps.learn(url, visited, site, novelty.as_ref());
        }
        Ok(taken)
    }

    /// A URL that was given out has come back as it was: the search for traps need not wait for it.
    pub(crate) fn not_visited(&mut self, entry: u64) -> Result<()> {
        if let Ok(url) = Url::parse(&self.registry.url(entry)?) {
            let site = site_id(url.site(&self.suffixes, Part::Whole));
            self.traps.not_visited(&url, site);
        }
        Ok(())
    }

    fn hear_link(
        &mut self,
        crawl: u16,
        url: &str,
        kind: LinkKind,
        is_new: bool,
        page: &Page<'_>,
    ) -> Result<(Fate, SiteId)> {
        let outside = (Fate::Outside, page.site);
        let Some(rules) = self.rules(crawl) else { return Ok(outside) };
        let mut inside = rules.is_inside(url);
        // A seed that has moved: the crawl goes where the seed went.
        let moved = kind == LinkKind::Redirect && page.visited.hops.depth == 0 && page.visited.from_queue;
        if moved
            && page.inside
            && !inside
            && let Ok(target) = Url::parse(url)
        {
            rules.learn(&target)?;
            inside = true;
        }
        if !inside && !kind.is_embed() {
            return Ok(outside);
        }
        let known_as = canonical(url);
        if let Some(entry) = self.registry.known(crawl, &known_as)? {
            let site = self.site_of(url, page);
            if page.watched && site != page.site && !kind.is_embed() && is_new {
                self.refer(entry, url, page)?;
            }
            let fate = self.hear_again(crawl, entry, url, kind, page)?;
            return Ok((fate, site));
        }
        let Ok(parsed) = Url::parse(url) else { return Ok(outside) };
        let site = site_id(parsed.site(&self.suffixes, Part::Whole));
        let place = match self.where_new(&parsed, page) {
            Place::Here(place) => Ok(place),
            Place::Elsewhere(slice) => Err(slice),
        };
        if let Err(slice) = place {
            // What the page had when it was visited before was told then.
            return Ok((if is_new { self.pass_on(crawl, slice, url, kind, page) } else { Fate::Known }, site));
        }
        let Some(rules) = self.rules(crawl) else { return Ok(outside) };
        let from = page.visited.hops;
        let (hops, class, fate) = match rules.admit(url, kind, from, page.inside) {
            Err(Refusal::Scope) => return Ok(outside),
            Err(refusal) => {
                let refused = State::Refused { rule: refusal as u16 };
                (hops_over(kind, from).unwrap_or(from.deeper()), Class::Page, registry::Fate::Keep(refused, 0))
            }
            Ok(taken) => {
                let key = host_key_at(&parsed, place.unwrap_or_default());
                let new_host = self.registry.find_host(crawl, &key)?.is_none();
                let fate = match self.traps.admit(&parsed, site, new_host, site != page.site) {
                    Ok(()) => registry::Fate::Queue,
                    Err(code) => registry::Fate::Keep(State::Trap { code }, 0),
                };
                (taken.hops, class_of(taken.rank), fate)
            }
        };
        let filed = Filed { url: &parsed, place: place.unwrap_or_default() };
        self.hear(crawl, filed, hops, class, kind, page.entry, fate)?;
        if page.watched
            && site != page.site
            && let Some(entry) = self.registry.known(crawl, &known_as)?
        {
            self.registry.refer(entry, Referrer::of(page.site.0), true)?;
        }
        Ok((if fate == registry::Fate::Queue { Fate::Taken } else { Fate::Refused }, site))
    }

    /// A known URL may have come nearer to a seed. Pages that are under way at once tell of a URL in any order, and after a rebuild in
    /// another one: how far it is must not depend on who was first. Where depth decides what is fetched, that holds however long ago
    /// it was heard of; elsewhere a look at old entries would cost more than it tells. Only visits count whose
    /// records have all links: a rebuild must hear the same.
    fn hear_again(&mut self, crawl: u16, entry: u64, url: &str, kind: LinkKind, page: &Page<'_>) -> Result<Fate> {
        if !page.visited.tells_all {
            return Ok(Fate::Known);
        }
        let from = page.visited.hops;
        let depth = hops_over(kind, from).unwrap_or(from.deeper()).pack();
        let limited = self.rules(crawl).is_some_and(|rules| rules.settings().depth.is_some());
        if !(limited || self.registry.is_recent(entry)) || self.registry.depth(entry)? <= depth {
            return Ok(Fate::Known);
        }
        let Some(rules) = self.rules(crawl) else { return Ok(Fate::Known) };
        let admitted = rules.admit(url, kind, from, page.inside);
        if matches!(admitted, Err(Refusal::Scope)) {
            return Ok(Fate::Known);
        }
        self.registry.approach(entry, depth)?;
        let too_deep = State::Refused { rule: Refusal::Depth as u16 };
        if admitted.is_err() || self.registry.state(entry)? != too_deep {
            return Ok(Fate::Known);
        }
        let Ok(parsed) = Url::parse(url) else { return Ok(Fate::Known) };
        let site = site_id(parsed.site(&self.suffixes, Part::Whole));
        let (state, fate) = match self.traps.admit(&parsed, site, false, site != page.site) {
            Ok(()) => (State::Queued, Fate::Taken),
            Err(code) => (State::Trap { code }, Fate::Refused),
        };
        self.registry.set_state(entry, state)?;
        let host = self.registry.host_of(entry)?;
        self.touch(host);
        Ok(fate)
    }

    /// A page of another site links to a known URL. What is known of a slice follows from its records: in another slice it is told to
    /// whoever leads there, also where that is this node.
    fn refer(&mut self, entry: u64, url: &str, page: &Page<'_>) -> Result<()> {
        let site = Referrer::of(page.site.0);
        let elsewhere = match Url::parse(url) {
            Ok(url) if self.crossing.is_some() => {
                let hash = self.hash_of(entry, &url)?;
                self.elsewhere(hash, page)
            }
            _ => None,
        };
        let Some(slice) = elsewhere else { return Ok(self.registry.refer(entry, site, true)?) };
        let depth = Hops::unpack(self.registry.depth(entry)?).depth;
        self.cross(slice, Link { site: Some(site), ..Link::to(url, depth) });
        Ok(())
    }

    /// A page no longer has a link. What it led to stays known; its site counts no more among those that link there.
    fn hear_gone(&mut self, crawl: u16, url: &str, page: &Page<'_>) -> Result<()> {
        let Ok(parsed) = Url::parse(url) else { return Ok(()) };
        let is_inside = self.rules(crawl).is_some_and(|rules| rules.is_inside(url));
        if !is_inside || site_id(parsed.site(&self.suffixes, Part::Whole)) == page.site {
            return Ok(());
        }
        let site = Referrer::of(page.site.0);
        let known = self.registry.known(crawl, &canonical(url))?;
        let hash = match known {
            _ if self.crossing.is_none() => 0,
            Some(entry) => self.hash_of(entry, &parsed)?,
            None => parsed.key().site_hash(),
        };
        if let Some(slice) = self.elsewhere(hash, page) {
            self.cross(slice, Link { site: Some(site), gone: true, ..Link::to(url, 0) });
        } else if !page.visited.tells_all
            && let Some(entry) = known
        {
            // A full list does not say what went: a rebuild must come to the same.
            self.registry.refer(entry, site, false)?;
        }
        Ok(())
    }

    fn cross(&mut self, slice: u32, link: Link) {
        if let Some(crossing) = &mut self.crossing {
            crossing.links.push((slice, link));
        }
    }

    /// The slice of a hash, if it is another one than the page's.
    fn elsewhere(&self, hash: u32, page: &Page<'_>) -> Option<u32> {
        let (crossing, from) = (self.crossing.as_ref()?, page.slice?);
        let to = slice_of(hash, crossing.bits);
        (to != from).then_some(to)
    }

    /// Under which hash a known URL is filed.
    pub(crate) fn hash_of(&mut self, entry: u64, url: &Url) -> Result<u32> {
        let home = url.key().site_hash();
        if self.crossing.as_ref().is_none_or(|crossing| crossing.splits.of(home).is_none()) {
            return Ok(home);
        }
        let host = self.registry.host_of(entry)?;
        Ok(place_of(&self.registry.host(host)?.key).unwrap_or(home))
    }

    /// Where a URL belongs that is not known here. At the home of its site it is decided, when nobody has heard of it there: from then on that its
    /// site is split, it goes to its place. So links to such a site are told to its home first, and what was heard of before stays there.
    fn where_new(&self, url: &Url, page: &Page<'_>) -> Place {
        let Some(crossing) = &self.crossing else { return Place::Here(None) };
        let key = url.key();
        match self.elsewhere(key.site_hash(), page) {
            // Also from another place of the site: only its home knows whether the link is new.
            Some(home) => Place::Elsewhere(home),
            None => {
                let place = crossing.splits.place(&key, page.visited.time_ms);
                match self.elsewhere(place, page) {
                    Some(slice) => Place::Elsewhere(slice),
                    None => Place::Here((place != key.site_hash()).then_some(place)),
                }
            }
        }
    }

    /// A link that is taken goes to whoever leads its target.
    fn pass_on(&mut self, crawl: u16, slice: u32, url: &str, kind: LinkKind, page: &Page<'_>) -> Fate {
        let Some(rules) = self.rules(crawl) else { return Fate::Outside };
        match rules.admit(url, kind, page.visited.hops, page.inside) {
            Err(Refusal::Scope) => Fate::Outside,
            Err(_) => Fate::Refused,
            Ok(taken) => {
                let needed = taken.rank == Rank::Embed;
                let site = (page.watched && !kind.is_embed()).then(|| Referrer::of(page.site.0));
                self.cross(slice, Link { needed, site, ..Link::to(url, taken.hops.depth) });
                Fate::Taken
            }
        }
    }

    /// The site of a known URL; most are of the page's own host.
    fn site_of(&self, url: &str, page: &Page<'_>) -> SiteId {
        if is_of(url, page.origin) {
            return page.site;
        }
        match Url::parse(url) {
            Ok(url) => site_id(url.site(&self.suffixes, Part::Whole)),
            Err(_) => page.site,
        }
    }

    /// Puts a URL into the registry. Returns whether nobody had heard of it.
    pub(crate) fn hear<'u>(
        &mut self,
        crawl: u16,
        filed: impl Into<Filed<'u>>,
        hops: Hops,
        class: Class,
        kind: LinkKind,
        via: Option<u64>,
        fate: registry::Fate,
    ) -> Result<bool> {
        let Filed { url, place } = filed.into();
        let heard = Heard {
            crawl,
            url: url.as_str(),
            known_as: &canonical(url.as_str()),
            host_key: &host_key_at(url, place),
            site: url.site(&self.suffixes, Part::Whole),
            depth: hops.pack(),
            via,
            class,
            kind: kind as u8,
        };
        match self.registry.hear_with(&heard, || fate)? {
            registry::Verdict::New(entry) => {
                let host = self.registry.host_of(entry)?;
                self.touch(host);
                Ok(true)
            }
            registry::Verdict::Known(entry) => {
                self.registry.approach(entry, hops.pack())?;
                Ok(false)
            }
        }
    }
}

fn class_of(rank: Rank) -> Class {
    match rank {
        Rank::Embed => Class::Embed,
        Rank::First => Class::Seed,
        Rank::Page => Class::Page,
    }
}

/// What a page only embeds: it says nothing about the ways of a site.
fn is_part(mime: &str) -> bool {
    mime.starts_with("image/") || ["font", "css", "javascript"].iter().any(|part| mime.contains(part))
}

/// The number under which the schedule knows a site.
pub fn site_id(site: &str) -> SiteId {
    SiteId(skep_url::key::hash_of_site(site))
}

/// Where a URL belongs that is not known here.
enum Place {
    /// Here: at the home of its site, or at another place of it.
    Here(Option<u32>),
    /// In another slice.
    Elsewhere(u32),
}

/// The unit of queues: scheme, name and port.
pub fn host_key(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host())
}

/// The same where a site is split: each place has a queue of its own.
pub fn host_key_at(url: &Url, place: Option<u32>) -> String {
    match place.filter(|place| *place != url.key().site_hash()) {
        Some(place) => format!("{}{PLACE}{place:08x}", host_key(url)),
        None => host_key(url),
    }
}

const PLACE: &str = "/~";

/// The place of a queue, if it is not that of a site's home.
pub fn place_of(host_key: &str) -> Option<u32> {
    u32::from_str_radix(host_key.rsplit_once(PLACE)?.1, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::registry_key::RegistryKey;
    use crate::settings::Settings;
    use skep_archive::{Archive, OpenOptions};
    use skep_page::Link;
    use skep_schedule::retry::Patience;
    use std::sync::Arc;

    const SEED: &str = "http://bees.test/";
    const TOLD: &str = "http://bees.test/told";

    /// Pages so far from a seed tell of one URL, in this order. What became of it, and how far it is.
    fn told_from(depths: &[u16], limit: Option<u16>) -> (State, u16) {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        let seeds = vec![SEED.into()];
        let settings = Settings { name: "test".into(), number: 1, seeds, depth: limit, ..Settings::default() };
        ledger.set_rules(Arc::new(settings)).unwrap();
        assert!(ledger.seed(1, SEED).unwrap());
        for depth in depths {
            let url = format!("http://bees.test/{depth}");
            let hops = Hops { depth: *depth, redirects: 0 };
            ledger
                .hear(1, &Url::parse(&url).unwrap(), hops, Class::Page, LinkKind::Anchor, None, registry::Fate::Queue)
                .unwrap();
            let entry = ledger.registry.known(1, &canonical(&url)).unwrap().unwrap();
            let link = Link { url: TOLD.to_owned(), kind: LinkKind::Anchor, nofollow: false };
            let bare = Visited::bare(entry, Outcome(200), 1_790_000_000_000, 0);
            let links = [link].into_iter().collect();
            ledger
                .visited(1, 1, &Visited { url, hops, links, tells_all: true, mime: "text/html".into(), ..bare })
                .unwrap();
        }
        let entry = ledger.registry.known(1, &canonical(TOLD)).unwrap().unwrap();
        let told = ledger.registry.entry(entry).unwrap();
        (told.state, Hops::unpack(told.depth).depth)
    }

    #[test]
    fn a_url_is_as_near_as_the_nearest_page_says_whoever_was_first() {
        assert_eq!(told_from(&[1, 2], None), (State::Queued, 2));
        assert_eq!(told_from(&[2, 1], None), (State::Queued, 2));
        assert_eq!(told_from(&[5, 3, 4], None), (State::Queued, 4));
    }

    #[test]
    fn what_was_too_deep_is_taken_when_a_nearer_page_tells_of_it() {
        let too_deep = State::Refused { rule: Refusal::Depth as u16 };
        assert_eq!(told_from(&[4, 3], Some(3)), (too_deep, 4));
        assert_eq!(told_from(&[3, 4], Some(3)), (too_deep, 4));
        assert_eq!(told_from(&[3, 2], Some(3)), (State::Queued, 3));
        assert_eq!(told_from(&[2, 3], Some(3)), (State::Queued, 3));
    }

    #[test]
    fn only_what_came_or_went_since_the_visit_before_goes_to_other_slices() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        ledger.crossing = Some(crate::ledger::Crossing { bits: 16, links: Vec::new(), splits: Arc::default() });
        let settings = Settings {
            name: "test".into(),
            number: 1,
            seeds: vec![SEED.into()],
            scope: crate::settings::Reach::All,
            watch: Some(Default::default()),
            ..Settings::default()
        };
        ledger.set_rules(Arc::new(settings)).unwrap();
        ledger.seed(1, SEED).unwrap();
        let entry = ledger.registry.known(1, &canonical(SEED)).unwrap().unwrap();
        let urls = ["http://wasps.example/", "http://ants.example/", "http://flies.example/", "http://bees.test/own"];
        let mut visit = |links: &[&str], came: Option<Vec<u32>>, gone: &[&str]| {
            let link = |url: &&str| Link { url: (*url).to_owned(), kind: LinkKind::Anchor, nofollow: false };
            let visited = Visited {
                url: SEED.into(),
                links: links.iter().map(link).collect(),
                tells_all: came.is_none(),
                came,
                gone: gone.iter().map(|url| (*url).to_owned()).collect(),
                mime: "text/html".into(),
                ..Visited::bare(entry, Outcome(200), 1_790_000_000_000, 0)
            };
            ledger.visited(1, 1, &visited).unwrap();
            let crossing = ledger.crossing.as_mut().unwrap();
            crossing.links.drain(..).map(|(_, link)| (link.url, link.gone, link.site)).collect::<Vec<_>>()
        };
        let site = Some(Referrer::of(skep_url::key::hash_of_site("bees.test")));
        let told = |url: &str, gone: bool| (url.to_owned(), gone, site);
        assert_eq!(visit(&[urls[0], urls[1], urls[3]], None, &[]), [told(urls[0], false), told(urls[1], false)]);
        assert_eq!(
            visit(&[urls[1], urls[2], urls[3]], Some(vec![1]), &[urls[0]]),
            [told(urls[2], false), told(urls[0], true)]
        );
        assert_eq!(visit(&[urls[1], urls[2]], Some(Vec::new()), &[urls[3]]), []);
    }

    #[test]
    fn what_is_new_of_a_site_that_is_split_is_told_to_its_home_and_from_there_to_its_place() {
        const BITS: u8 = 8;
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        let (site, since_ms) = (skep_url::key::hash_of_site("bees.test"), 1_790_000_000_000);
        let mut splits = skep_url::Splits::default();
        splits.add(site, skep_url::Split { bits: 2, since_ms });
        let places = splits.places(site);
        let splits = Arc::new(splits);
        ledger.crossing = Some(crate::ledger::Crossing { bits: BITS, links: Vec::new(), splits: splits.clone() });
        let seeds = vec![SEED.into()];
        let settings = Settings { name: "test".into(), number: 1, seeds, ..Settings::default() };
        ledger.set_rules(Arc::new(settings)).unwrap();
        ledger.seed(1, SEED).unwrap();
        let entry = ledger.registry.known(1, &canonical(SEED)).unwrap().unwrap();
        let visit = |ledger: &mut Ledger, links: &[String], place: Option<u32>, time_ms: i64| {
            let link = |url: &String| Link { url: url.clone(), kind: LinkKind::Anchor, nofollow: false };
            let visited = Visited {
                url: SEED.into(),
                links: links.iter().map(link).collect(),
                tells_all: true,
                mime: "text/html".into(),
                place,
                ..Visited::bare(entry, Outcome(200), time_ms, 0)
            };
            ledger.visited(1, 1, &visited).unwrap();
            let crossing = ledger.crossing.as_mut().unwrap();
            crossing.links.drain(..).map(|(slice, link)| (link.url, slice)).collect::<Vec<_>>()
        };
        let urls = |name: &str| (0..20).map(|number| format!("http://bees.test/{name}/{number}")).collect::<Vec<_>>();
        let place = |url: &String| splits.place(&Url::parse(url).unwrap().key(), i64::MAX);
        let since_ms = since_ms as i64;

        // Before, everything is heard at home, and stays there.
        let old = urls("old");
        assert_eq!(visit(&mut ledger, &old, None, since_ms - 1), []);
        assert_eq!(visit(&mut ledger, &old, None, since_ms + 1), []);
        // Afterwards the home tells each place what is new there.
        let new = urls("new");
        let told: Vec<(String, u32)> = (new.iter().filter(|url| place(url) != site))
            .map(|url| (url.clone(), slice_of(place(url), BITS)))
            .collect();
        assert!(told.len() > 5 && told.len() < 20, "{} of 20", told.len());
        assert_eq!(visit(&mut ledger, &new, None, since_ms), told);
        assert_eq!(visit(&mut ledger, &new, Some(site), since_ms), told, "as its record says it");
        // Pages of another place ask the home, for whatever is not known here.
        let more = urls("more");
        let home: Vec<(String, u32)> = more.iter().map(|url| (url.clone(), slice_of(site, BITS))).collect();
        assert_eq!(visit(&mut ledger, &more, Some(places[3]), since_ms), home);

        // What is recorded in a slice waits in a queue of that place.
        let (placed, half) = (told[0].0.clone(), skep_archive::layout::HalfSlice::of(place(&told[0].0), BITS));
        ledger.fold_link(1, &crate::sharing::Link::to(&placed, 1), Class::Page, half).unwrap();
        let known = ledger.registry.known(1, &canonical(&placed)).unwrap().unwrap();
        let host = ledger.registry.host_of(known).unwrap();
        let host = ledger.registry.host(host).unwrap();
        assert_eq!(place_of(&host.key), Some(place(&placed)));
        assert_eq!((crate::ledger::name_of(&host.key), host.site.as_str()), ("bees.test", "bees.test"));
        assert_eq!(ledger.hash_of(known, &Url::parse(&placed).unwrap()).unwrap(), place(&placed));
        assert_eq!(visit(&mut ledger, &[placed], None, since_ms), [], "known is known");
        let kept = ledger.registry.known(1, &canonical(&old[0])).unwrap().unwrap();
        assert_eq!(ledger.hash_of(kept, &Url::parse(&old[0]).unwrap()).unwrap(), site);
    }

    #[test]
    fn a_known_url_that_becomes_a_seed_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), OpenOptions::create()).unwrap();
        let key = RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Patience::default()).unwrap();
        let hops = Hops { depth: 7, redirects: 1 };
        let url = Url::parse(TOLD).unwrap();
        assert!(ledger.hear(1, &url, hops, Class::Page, LinkKind::Anchor, None, registry::Fate::Queue).unwrap());
        assert!(!ledger.seed(1, TOLD).unwrap());
        let entry = ledger.registry.known(1, &canonical(TOLD)).unwrap().unwrap();
        assert_eq!(Hops::unpack(ledger.registry.depth(entry).unwrap()), Hops::SEED);
    }
}
