//! The part of one node in a crawl of many: slices are taken over and given up, links come and go, and the next leader hears how
//! long each site is to be left alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use skep_archive::layout::HalfSlice;
use skep_archive::{Archive, Key, Position};
use skep_page::LinkKind;
use skep_url::{Part, Url};

use super::Engine;
use super::pace::{self, Paces};
use crate::canonical::canonical;
use crate::chance::{self, Ids};
use crate::control::Shared;
use crate::error::Result;
use crate::heard::{self, Heard, Put};
use crate::hearing::{Filed, host_key_at, place_of, site_id};
use crate::hops::Hops;
use crate::ledger::{HEARD_EMBED, HEARD_GONE, HEARD_LINK, Ledger, source_of};
use crate::limits::{
    FORWARD_AGAIN_MS, LINKS_IN_MAX, POLITE_HELD_MS, POLITE_MS, UNREADABLE_MS_MAX, UNREADABLE_WAIT_MS_MAX,
};
use crate::outbox::Outbox;
use crate::progress::Event;
use crate::records::Encoders;
use crate::registry::{self, Class, State};
use crate::sharing::{Back, Leading, Link, Node, Outlet, Politeness, Share, slice_of};
use crate::worker::Said;

/// Links to what this node leads itself go the same way as all others, only shorter.
const HERE: Node = [0; 32];
/// What waits for nobody in particular is looked at so often.
const LOOK_MS: u64 = 200;

/// What an engine keeps of being one of many.
pub(super) struct Sharing {
    pub(super) leading: Arc<Leading>,
    pub(super) outlet: Arc<dyn Outlet>,
    say: Sender<Said>,
    pub(super) run: [u8; 16],
    outbox: Outbox,
    folder: PathBuf,
    encoders: Encoders,
    ids: Ids,
    /// New leases, with what former leaders knew: nothing begins before the last request under an older lease is over.
    coming: BTreeMap<u32, (Instant, Vec<Vec<u8>>)>,
    /// Those of them whose copies could not be read so far.
    unreadable: BTreeMap<u32, Unreadable>,
    /// Slices of which others' records came that may not be folded yet.
    arrived: BTreeSet<u32>,
    /// Slices in which requests may begin, as it was when last looked at.
    awake: BTreeSet<u32>,
    /// Slices whose sites have been asked something since the others heard of it.
    pub(super) news: BTreeSet<u32>,
    /// Sites that are split.
    pub(super) paces: Paces,
    next_look: Instant,
    next_news: Instant,
    /// Heard links on their way to the disk, and for which batch.
    hearing: HashMap<u64, (Vec<Link>, u64, HalfSlice)>,
    backs: HashMap<u64, Waiting>,
    next: u64,
}

/// A copy that cannot be read: it is tried again at growing distances, because others may repair it, and in the end somebody else leads.
#[derive(Clone, Copy, Debug)]
struct Unreadable {
    since: Instant,
    wait: Duration,
    again: Instant,
    given_up: bool,
}

impl Unreadable {
    fn new(now: Instant) -> Unreadable {
        Unreadable { since: now, wait: Duration::from_millis(FORWARD_AGAIN_MS), again: now, given_up: false }
    }

    /// It could not be read once more. True when it is time to give up, once.
    fn failed(&mut self, now: Instant) -> bool {
        self.again = now + self.wait;
        self.wait = (2 * self.wait).min(Duration::from_millis(UNREADABLE_WAIT_MS_MAX));
        let late = now.saturating_duration_since(self.since) >= Duration::from_millis(UNREADABLE_MS_MAX);
        late && !std::mem::replace(&mut self.given_up, late)
    }
}

/// Somebody waits to hear that a batch is safe.
struct Waiting {
    left: usize,
    safe: bool,
    back: Back,
}

impl Sharing {
    pub(super) fn begin(share: Share, say: Sender<Said>, archive: &Archive) -> Result<Sharing> {
        let folder = archive.layout().views();
        let Share { leading, outlet } = share;
        let mut outbox = Outbox::default();
        for link in Outbox::stored(&folder)? {
            if let Ok(url) = Url::parse(&link.url) {
                outbox.put(leading.slice_of(&url), link, true, 0);
            }
        }
        let drawn = chance::draw()?;
        let mut run = [0; 16];
        run.copy_from_slice(&drawn[..16]);
        // What was led under an earlier run is led anew, or not at all.
        leading.slices().into_iter().for_each(|slice| leading.rest(slice));
        let now = Instant::now();
        Ok(Sharing {
            leading,
            outlet,
            say,
            run,
            outbox,
            folder,
            encoders: Encoders::new(skep_warc::deflate::Level::new(1), archive.layout().root().to_path_buf()),
            ids: Ids::new(chance::draw()?),
            coming: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            arrived: BTreeSet::new(),
            awake: BTreeSet::new(),
            news: BTreeSet::new(),
            paces: Paces::default(),
            next_look: now,
            next_news: now,
            hearing: HashMap::new(),
            backs: HashMap::new(),
            next: 0,
        })
    }

    pub(super) fn leading(&self) -> Arc<Leading> {
        self.leading.clone()
    }

    pub(super) fn outlet(&self) -> Arc<dyn Outlet> {
        self.outlet.clone()
    }

    /// So many links wait that no page should add to them.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// The slice of what waits at a host.
    pub(super) fn slice_of(&self, host: &registry::Host) -> u32 {
        slice_of(place_of(&host.key).unwrap_or_else(|| pace::site_of(host)), self.leading.bits())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A batch is safe only when what was passed on of it is.
    fn pass(&mut self, batch: u64) {
        if let Some(waiting) = self.backs.get_mut(&batch) {
            waiting.left += 1;
        }
    }

    fn settle(&mut self, batch: u64, safe: bool) {
        let Some(waiting) = self.backs.get_mut(&batch) else { return };
        waiting.left -= 1;
        waiting.safe &= safe;
        if waiting.left == 0
            && let Some(waiting) = self.backs.remove(&batch)
        {
            (waiting.back)(waiting.safe);
        }
    }

    /// Records links as heard; each record is told of when it is synced. Returns how many records there are.
    fn record(&mut self, links: Vec<Link>, crawl: &str, hash: u32, batch: u64, archive: &Archive) -> usize {
        let mut records = 0;
        let mut links = links.into_iter().peekable();
        while links.peek().is_some() {
            let mut block = heard::Batch::new(crawl);
            let mut recorded = Vec::new();
            while let Some(link) = links.peek() {
                let source = link.site.map(source_of);
                let (class, source) = (word_of(link), source.as_deref());
                let heard = Heard { url: &link.url, depth: link.depth, class, source };
                match block.put(&heard) {
                    Put::Full => break,
                    Put::Taken => recorded.extend(links.next()),
                    Put::NotAUrl => drop(links.next()),
                }
            }
            if recorded.is_empty() {
                continue;
            }
            let number = self.number();
            let (say, refused) = (self.say.clone(), self.say.clone());
            self.hearing.insert(number, (recorded, batch, HalfSlice::of(hash, self.leading.bits())));
            records += 1;
            let append = self.encoders.heard(hash, skep_archive::system_clock(), block.finish(), self.ids.next());
            let told = Box::new(move |kept: skep_archive::Result<skep_archive::Acknowledged>| {
                let position = kept.ok().and_then(|kept| kept.positions.last().copied());
                let _given_up = say.send(Said::Shared(Shared::Heard(number, position)));
            });
            if append.map(|append| archive.append_then(append, told)).is_ok_and(|appended| appended.is_ok()) {
                continue;
            }
            let _given_up = refused.send(Said::Shared(Shared::Heard(number, None)));
        }
        records
    }
}

/// Folds what is not folded yet of some slices.
type Fold = fn(&mut Ledger, &Archive, &BTreeSet<u32>) -> Result<()>;

/// The short word under which a link is recorded.
fn word_of(link: &Link) -> &'static str {
    match link {
        Link { gone: true, .. } => HEARD_GONE,
        Link { needed: true, .. } => HEARD_EMBED,
        Link { depth: 0, .. } => "seed",
        _ => HEARD_LINK,
    }
}

/// Under which hash a link is to be recorded; `None` if that is not for this node to say. Of a site that is split the home's leader says it:
/// what is known there stays, what is not goes to its place; and who leads that place records what it is brought, whatever it remembers of
/// slices that it led once.
fn where_to(ledger: &mut Ledger, leading: &Leading, url: &Url, known: Option<u64>) -> Result<Option<u32>> {
    let (key, splits) = (url.key(), leading.splits());
    let home = key.site_hash();
    let leads = |hash: u32| leading.may(slice_of(hash, leading.bits()));
    if splits.of(home).is_none() {
        return Ok(leads(home).then_some(home));
    }
    let known = known.map(|entry| ledger.hash_of(entry, url)).transpose()?;
    let stays = |at: &u32| splits.is_place(home, *at) && (leads(home) || leads(*at));
    let hash = known.filter(stays).unwrap_or_else(|| splits.place(&key, skep_archive::system_clock()));
    Ok((leads(home) || hash != home && leads(hash)).then_some(hash))
}

impl Engine<'_> {
    /// Whether what waits at a host may be fetched by this node.
    pub(super) fn leads(&self, host: &registry::Host) -> bool {
        self.sharing.as_ref().is_none_or(|sharing| {
            sharing.leading.may_fetch(&host.key) && sharing.leading.may_visit(pace::site_of(host))
        })
    }

    /// A bundle of a host goes out; says of which slice.
    pub(super) fn note_bundle(&mut self, host: &registry::Host) -> Option<u32> {
        let sharing = self.sharing.as_mut()?;
        let slice = sharing.slice_of(host);
        sharing.news.insert(slice);
        Some(slice)
    }

    pub(super) fn shared(&mut self, shared: Shared) -> Result<()> {
        let now_ms = self.now_ms();
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        match shared {
            Shared::Lead(slice, until, Some(politeness)) => {
                sharing.leading.rest(slice);
                sharing.coming.insert(slice, (until, politeness));
                self.take_over()
            }
            Shared::Lead(slice, until, None) => {
                if let Some(coming) = sharing.coming.get_mut(&slice) {
                    coming.0 = until;
                } else {
                    sharing.leading.renew(slice, until);
                }
                Ok(())
            }
            Shared::Stop(slice) => {
                sharing.leading.rest(slice);
                sharing.coming.remove(&slice);
                sharing.unreadable.remove(&slice);
                sharing.next_look = Instant::now();
                // Whoever leads next waits for it, also where nothing had begun.
                sharing.news.insert(slice);
                Ok(())
            }
            Shared::Links(links, back) => self.take_in(links, back),
            Shared::Sent(number, safe) => {
                sharing.outbox.settled(number, safe, now_ms);
                Ok(())
            }
            Shared::Heard(number, position) => self.heard_of(number, position),
            Shared::Visit(site, until, politeness) => self.begin_visit(site, until, &politeness),
            Shared::Heed(site, politeness) => {
                self.heed(site, &[politeness]);
                Ok(())
            }
            Shared::Passed(batch, safe) => {
                sharing.settle(batch, safe);
                Ok(())
            }
        }
    }

    /// Everything about being one of many that has its time.
    pub(super) fn share(&mut self) -> Result<()> {
        let now = Instant::now();
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        if now >= sharing.next_look {
            sharing.next_look = now + Duration::from_millis(LOOK_MS);
            self.take_over()?;
            self.follow_others();
            self.look_at_leases()?;
            self.look_at_paces()?;
            self.open()?;
        }
        self.send_links()?;
        if self.sharing.as_ref().is_some_and(|sharing| now >= sharing.next_news) {
            self.tell_polite();
        }
        Ok(())
    }

    pub(super) fn share_patience(&self) -> Duration {
        let Some(sharing) = &self.sharing else { return Duration::MAX };
        let mut left = sharing.next_look.saturating_duration_since(Instant::now());
        if let Some(due_ms) = sharing.outbox.due_ms() {
            left = left.min(Duration::from_millis(due_ms.saturating_sub(self.now_ms())));
        }
        // What is due may wait for somebody's answer, which is heard when it comes.
        left.max(Duration::from_millis(20))
    }

    /// Slices whose lease is new are ours when the last bundle of an older lease is back: what others wrote is folded, what they knew
    /// of sites is held to, and what waits there may go.
    fn take_over(&mut self) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let out: BTreeSet<u32> = self.out.values().filter_map(|out| out.slice).collect();
        let now = Instant::now();
        let waits = |slice: &u32| sharing.unreadable.get(slice).is_some_and(|one| now < one.again);
        let ready = sharing.coming.keys().filter(|slice| !out.contains(slice) && !waits(slice));
        let ready: BTreeSet<u32> = ready.copied().collect();
        if ready.is_empty() || self.ending.is_some() {
            return Ok(());
        }
        let ready = self.fold(ready, Ledger::take_over);
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let now_ms = skep_archive::system_clock();
        for slice in &ready {
            sharing.unreadable.remove(slice);
            let Some((until, politeness)) = sharing.coming.remove(slice) else { continue };
            let known = politeness.iter().filter_map(|one| Politeness::decode(one));
            for politeness in known.filter(|politeness| politeness.run != sharing.run) {
                for (site, left) in politeness.left(now_ms) {
                    self.shared.clocks.hold(site, tokio::time::Instant::now() + left);
                }
            }
            sharing.leading.begin(*slice, until);
        }
        self.pass_on();
        self.hear_seeds_led()?;
        self.look_at_leases()
    }

    /// What others wrote of a slice may come when it is led here already: from a node that was killed and is back, or because nobody waits
    /// for ever for a copy. What only those records tell of nobody would hear of otherwise before somebody else leads.
    fn follow_others(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        let bits = sharing.leading.bits();
        for half in self.archive.take_arrived() {
            let (first, last) = half.range();
            sharing.arrived.extend(slice_of(first, bits)..=slice_of(last, bits));
        }
        // Whatever is not led is folded when it is taken over.
        let led: BTreeSet<u32> = sharing.leading.slices().into_iter().collect();
        sharing.arrived.retain(|slice| led.contains(slice));
        let now = Instant::now();
        let waits = |slice: &u32| sharing.unreadable.get(slice).is_some_and(|one| now < one.again);
        let ready: BTreeSet<u32> = sharing.arrived.iter().filter(|slice| !waits(slice)).copied().collect();
        if ready.is_empty() || self.ending.is_some() {
            return;
        }
        let folded = self.fold(ready, Ledger::follow);
        if let Some(sharing) = &mut self.sharing {
            sharing.arrived.retain(|slice| !folded.contains(slice));
            sharing.unreadable.retain(|slice, _| !folded.contains(slice));
        }
        self.pass_on();
    }

    /// Folds what others wrote of these slices; returns those of which all could be read. One that cannot be read holds back nobody else.
    fn fold(&mut self, slices: BTreeSet<u32>, how: Fold) -> BTreeSet<u32> {
        // Where links go follows from splits as they are known now.
        if let (Some(sharing), Some(crossing)) = (&self.sharing, &mut self.ledger.crossing) {
            crossing.splits = sharing.leading.splits();
        }
        let Err(together) = how(&mut self.ledger, &self.archive, &slices) else { return slices };
        let (count, mut folded) = (slices.len(), BTreeSet::new());
        for slice in slices {
            let alone = match count {
                1 => Err(together.to_string()),
                _ => how(&mut self.ledger, &self.archive, &BTreeSet::from([slice])).map_err(|error| error.to_string()),
            };
            let Err(why) = alone else {
                folded.insert(slice);
                continue;
            };
            let Some(sharing) = &mut self.sharing else { break };
            let now = Instant::now();
            if !sharing.unreadable.contains_key(&slice) {
                let text = format!("what was copied of slice {slice} cannot be taken over yet: {why}");
                (self.tell)(Event::Note { text });
            }
            if sharing.unreadable.entry(slice).or_insert(Unreadable::new(now)).failed(now) {
                sharing.outlet.give_up(slice);
            }
        }
        folded
    }

    /// Hosts of slices that came to be led, or are led no longer, are told to the schedule anew.
    fn look_at_leases(&mut self) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let led = sharing.leading.slices().into_iter().filter(|slice| sharing.leading.may(*slice));
        let awake: BTreeSet<u32> = led.collect();
        let changed: BTreeSet<u32> = awake.symmetric_difference(&sharing.awake).copied().collect();
        sharing.awake = awake;
        if changed.is_empty() {
            return Ok(());
        }
        sharing.news.extend(&changed);
        let (crawl, mut hosts) = (self.crawl, Vec::new());
        self.ledger.each_host(|host| {
            if host.crawl == crawl && host.waiting > 0 && changed.contains(&sharing.slice_of(host)) {
                hosts.push(host.id);
            }
        })?;
        hosts.into_iter().for_each(|host| self.ledger.touch(host));
        self.tell_waiting()
    }

    /// Links of pages that were just folded go on their way.
    pub(super) fn pass_on(&mut self) {
        let now_ms = self.now_ms();
        // Where depth decides what is fetched, a nearer way there is news.
        let limited = self.shared.settings().depth.is_some();
        if let (Some(sharing), Some(crossing)) = (&mut self.sharing, &mut self.ledger.crossing) {
            for (slice, link) in crossing.links.drain(..) {
                sharing.outbox.put(slice, link, limited, now_ms);
            }
        }
    }

    fn send_links(&mut self) -> Result<()> {
        let now_ms = self.now_ms();
        while let Some(sharing) = &mut self.sharing {
            let (leading, outlet) = (&sharing.leading, &sharing.outlet);
            let leader = |slice| if leading.may(slice) { Some(HERE) } else { outlet.leader(slice) };
            let Some((number, to, links)) = sharing.outbox.take(now_ms, &leader) else { break };
            let say = sharing.say.clone();
            let back: Back = Box::new(move |safe| {
                let _given_up = say.send(Said::Shared(Shared::Sent(number, safe)));
            });
            if to == HERE {
                self.take_in(links, back)?;
            } else {
                outlet.send(&self.shared.settings().name, to, links, back);
            }
        }
        Ok(())
    }

    /// Links that others found, or this node in another slice. All of them are taken, or none: who does not lead takes nothing.
    fn take_in(&mut self, links: Vec<Link>, back: Back) -> Result<()> {
        let settings = self.shared.settings();
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let bits = sharing.leading.bits();
        let mut parsed = Vec::with_capacity(links.len());
        // Links to sites that are split, and that somebody else is to record.
        let mut passed: BTreeMap<u32, Vec<Link>> = BTreeMap::new();
        for link in links {
            let Ok(url) = Url::parse(&link.url) else { continue };
            let known = self.ledger.registry.known(self.crawl, &canonical(url.as_str()))?;
            let belongs = where_to(&mut self.ledger, &sharing.leading, &url, known)?;
            if belongs.is_none() || parsed.len() == LINKS_IN_MAX {
                back(false);
                return Ok(());
            }
            match belongs {
                Some(hash) if sharing.leading.may(slice_of(hash, bits)) => parsed.push((link, url, hash)),
                Some(hash) => passed.entry(slice_of(hash, bits)).or_default().push(link),
                None => {}
            }
        }
        let mut halves: BTreeMap<HalfSlice, (u32, Vec<Link>)> = BTreeMap::new();
        let watched = self.ledger.is_watched(self.crawl);
        for (mut link, url, hash) in parsed {
            link.site = link.site.filter(|_| watched);
            let known = match self.ledger.registry.known(self.crawl, &canonical(url.as_str()))? {
                Some(entry) if self.ledger.hash_of(entry, &url)? == hash => Some(entry),
                // What is known of another slice does not follow from the records of this one.
                _ => None,
            };
            let mut put =
                |link: Link| halves.entry(HalfSlice::of(hash, bits)).or_insert((hash, Vec::new())).1.push(link);
            if let (Some(entry), Some(site)) = (known, link.site)
                && self.ledger.registry.is_referred(entry, site)? == link.gone
            {
                // It is known, and how near: what is new is that this site links to it, or does no more.
                let depth = Hops::unpack(self.ledger.registry.depth(entry)?).depth;
                if link.gone || settings.depth.is_none() || link.depth >= depth {
                    put(Link { depth, ..link });
                    continue;
                }
            }
            if link.gone {
                continue;
            }
            let nearer = match (known, settings.depth) {
                (None, _) => true,
                (Some(entry), Some(_)) => link.depth < Hops::unpack(self.ledger.registry.depth(entry)?).depth,
                (Some(_), None) => false,
            };
            if !nearer || settings.depth.is_some_and(|depth| link.depth > depth) {
                continue;
            }
            let Some(rules) = self.ledger.rules(self.crawl) else { break };
            if !rules.is_inside(url.as_str()) && !link.needed {
                if link.depth > 0 {
                    continue; // whoever sent it goes by other rules
                }
                rules.learn(&url)?; // a seed that has moved
            }
            let site = site_id(url.site(&self.ledger.suffixes, Part::Whole));
            let key = host_key_at(&url, Some(hash));
            let new_host = self.ledger.registry.find_host(self.crawl, &key)?.is_none();
            if let Err(code) = self.ledger.traps.admit(&url, site, new_host, true) {
                let fate = registry::Fate::Keep(State::Trap { code }, 0);
                let hops = Hops { depth: link.depth, redirects: 0 };
                let filed = Filed { url: &url, place: Some(hash) };
                self.ledger.hear(self.crawl, filed, hops, Class::Page, LinkKind::Anchor, None, fate)?;
                continue;
            }
            put(link);
        }
        let batch = sharing.number();
        // One more than there are records, so that none of them ends the batch before the last is on its way.
        sharing.backs.insert(batch, Waiting { left: 1, safe: true, back });
        for (hash, links) in halves.into_values() {
            let records = sharing.record(links, &settings.name, hash, batch, &self.archive);
            if let Some(waiting) = sharing.backs.get_mut(&batch) {
                waiting.left += records;
            }
        }
        // Places are many, leaders few.
        let mut passing: BTreeMap<Node, Vec<Link>> = BTreeMap::new();
        for (slice, links) in passed {
            match sharing.outlet.leader(slice) {
                Some(to) => passing.entry(to).or_default().extend(links),
                None => {
                    sharing.pass(batch);
                    sharing.settle(batch, false);
                }
            }
        }
        for (to, links) in passing {
            sharing.pass(batch);
            let say = sharing.say.clone();
            let safe: Back = Box::new(move |safe| {
                let _given_up = say.send(Said::Shared(Shared::Passed(batch, safe)));
            });
            sharing.outlet.send(&settings.name, to, links, safe);
        }
        sharing.settle(batch, true);
        Ok(())
    }

    /// Links are recorded: now they are known.
    fn heard_of(&mut self, number: u64, position: Option<Position>) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let Some((links, batch, half)) = sharing.hearing.remove(&number) else { return Ok(()) };
        if let Some(position) = position {
            for link in &links {
                self.ledger.fold_link(self.crawl, link, crate::ledger::class_of(word_of(link)), half)?;
            }
            self.ledger.mark(position);
        }
        sharing.settle(batch, position.is_some());
        Ok(())
    }

    /// Seeds of what is led here that nobody had heard of.
    pub(super) fn hear_seeds_led(&mut self) -> Result<()> {
        let settings = self.shared.settings();
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let mut seeds = Vec::new();
        for seed in &settings.seeds {
            let Ok(url) = Url::parse(seed) else { continue };
            if sharing.leading.may(sharing.leading.slice_of(&url))
                && self.ledger.registry.known(self.crawl, &canonical(url.as_str()))?.is_none()
            {
                seeds.push(Link::to(url.as_str(), 0));
            }
        }
        for links in seeds.chunks(LINKS_IN_MAX) {
            // What is lost here is heard when the slice is taken over the next time, or the settings are read.
            self.take_in(links.to_vec(), Box::new(|_| ()))?;
        }
        Ok(())
    }

    /// The next leaders hear how long each site is to be left alone.
    fn tell_polite(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        sharing.next_news = Instant::now() + Duration::from_millis(POLITE_MS);
        if sharing.news.is_empty() {
            return;
        }
        let mut slices: BTreeMap<u32, Vec<(String, u32)>> =
            sharing.news.iter().map(|slice| (*slice, Vec::new())).collect();
        for (site, wait) in self.shared.clocks.waits(Duration::from_millis(POLITE_HELD_MS)) {
            let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
            for slice in sharing.leading.slices_of_site(Key::of(&format!("http://{site}/")).site_hash()) {
                if let Some(waits) = slices.get_mut(&slice) {
                    waits.push((site.clone(), wait_ms));
                }
            }
        }
        let made_ms = skep_archive::system_clock();
        let out: BTreeSet<u32> = self.out.values().filter_map(|out| out.slice).collect();
        for (slice, waits) in slices {
            let politeness = Politeness { run: sharing.run, made_ms, waits }.encode();
            sharing.outlet.polite(slice, politeness, out.contains(&slice));
        }
        // While somebody is out there, there is news.
        sharing.news.retain(|slice| out.contains(slice));
    }

    pub(super) fn store_outbox(&mut self) -> Result<()> {
        self.pass_on();
        self.sharing.as_ref().map_or(Ok(()), |sharing| sharing.outbox.store(&sharing.folder))
    }

    /// Links that are not safe elsewhere yet.
    pub(super) fn unsent(&self) -> u64 {
        self.sharing.as_ref().map_or(0, |sharing| sharing.outbox.len() as u64)
    }

    /// URLs that wait where this node leads.
    pub(super) fn waiting_led(&mut self) -> Result<u64> {
        let Some(sharing) = &self.sharing else { return Ok(self.ledger.registry.counts(self.crawl).waiting) };
        let (crawl, mut waiting) = (self.crawl, 0);
        self.ledger.each_host(|host| {
            if host.crawl == crawl && host.waiting > 0 && sharing.leading.may_fetch(&host.key) {
                waiting += u64::from(host.waiting);
            }
        })?;
        Ok(waiting)
    }

    /// Nothing is led any more.
    pub(super) fn stop_sharing(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            for slice in sharing.leading.slices() {
                sharing.leading.rest(slice);
                sharing.news.insert(slice);
            }
            sharing.coming.clear();
            sharing.unreadable.clear();
        }
    }

    /// The last words to the others, when the last answer has come: how long sites are to be left alone, and that nothing more is taken.
    pub(super) fn part(&mut self) {
        self.end_paces();
        self.tell_polite();
        if let Some(sharing) = &mut self.sharing {
            sharing.backs.drain().for_each(|(_, waiting)| (waiting.back)(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_a_place_takes_what_it_is_brought_whatever_it_remembers_of_other_slices() {
        const BITS: u8 = 8;
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path(), skep_archive::OpenOptions::create()).unwrap();
        let key = crate::registry_key::RegistryKey::load(&archive.layout().settings()).unwrap();
        let mut ledger = Ledger::open(&archive, &key, Default::default()).unwrap();
        let site = skep_url::key::hash_of_site("bees.test");
        let mut splits = skep_url::Splits::default();
        splits.add(site, skep_url::Split { bits: 2, since_ms: 0 });
        let (splits, leading) = (Arc::new(splits), Leading::new(BITS));
        ledger.crossing = Some(crate::ledger::Crossing { bits: BITS, links: Vec::new(), splits: splits.clone() });
        leading.split(splits.clone());
        let seeds = vec!["http://bees.test/".into()];
        let settings = crate::Settings { name: "test".into(), number: 1, seeds, ..Default::default() };
        ledger.set_rules(Arc::new(settings)).unwrap();
        let urls = (0..).map(|number| Url::parse(&format!("http://bees.test/{number}")).unwrap());
        let placed = |url: &Url| splits.place(&url.key(), i64::MAX);
        let mut urls = urls.filter(|url| placed(url) == site ^ 1 << 31);
        // Filed at home once; where others had split the site otherwise; and where nothing of it belongs.
        let (home, place, other, nowhere) = (site, site ^ 1 << 31, site ^ 1 << 30, site ^ 1 << 29);
        let filed: Vec<(Url, u32)> = urls.by_ref().zip([home, other, nowhere]).collect();
        for (url, at) in &filed {
            let half = HalfSlice::of(*at, BITS);
            ledger.fold_link(1, &Link::to(url.as_str(), 1), Class::Page, half).unwrap();
        }
        let mut to = |led: &[u32], url: &Url| {
            leading.slices().into_iter().for_each(|slice| leading.rest(slice));
            let until = Instant::now() + Duration::from_secs(60);
            led.iter().for_each(|place| assert!(leading.begin(slice_of(*place, BITS), until)));
            let known = ledger.registry.known(1, &canonical(url.as_str())).unwrap();
            where_to(&mut ledger, &leading, url, known).unwrap()
        };
        for (url, at) in &filed {
            assert_eq!(to(&[place], url), Some(place), "{at:x}");
            let stays = if *at == nowhere { place } else { *at };
            assert_eq!(to(&[home], url), Some(stays), "what is known at a place stays there");
            assert_eq!(to(&[nowhere], url), None);
            assert_eq!(to(&[], url), None);
        }
        assert_eq!(to(&[place, other], &filed[1].0), Some(other));
        let new = urls.next().unwrap();
        assert_eq!([to(&[place], &new), to(&[home], &new), to(&[other], &new)], [Some(place), Some(place), None]);
    }

    #[test]
    fn what_cannot_be_read_is_tried_ever_less_often_and_given_up_once() {
        let begun = Instant::now();
        let mut unreadable = Unreadable::new(begun);
        let (mut now, mut tries, mut given_up) = (begun, 0, 0);
        while now < begun + Duration::from_millis(4 * UNREADABLE_MS_MAX) {
            given_up += u32::from(unreadable.failed(now));
            assert!(unreadable.again > now && unreadable.again - now <= Duration::from_millis(UNREADABLE_WAIT_MS_MAX));
            (now, tries) = (unreadable.again, tries + 1);
        }
        assert_eq!(given_up, 1);
        assert!(tries < 20, "{tries}");
    }
}
