//! What was visited is looked at again, when the schedule says so. What is remembered of each URL lies in the registry; here is what
//! all of them have in common, and the order in which their blocks are looked through.
//!
//! ```text
//!  a visit ──▶ observed: memory of its URL ──▶ calendar ──▶ release: due, so it waits in its host's queue ──▶ lease, visit
//!                  ▲                                            ▲
//!  a sitemap ──▶ told                                 a new budget: all blocks at once
//! ```
//! The observations of a memory follow from the records and are the same after a rebuild; when it is due follows from the price
//! of the day. A run recalls the memories of its crawl block by block while it works already. Where nodes crawl together, each looks
//! again at what it leads: whenever that changes, or somebody else's records are folded, everything is recalled once more.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use skep_archive::Key;
use skep_schedule::limits::{AUDIT_PERCENT, BLOCK_URLS, CLOCK_DAYS_AHEAD, PRICE_SAMPLE};
use skep_schedule::revisit::hint::{self, Source, Trusts};
use skep_schedule::revisit::{Calendar, Due, Found, Memory, Moment, Policy, Pool, Revisits, importance};
use skep_schedule::{SiteId, retry};

use crate::canonical::canonical;
use crate::dates::Told;
use crate::error::Result;
use crate::finding::Finding;
use crate::hearing::{place_of, site_id};
use crate::ledger::{Ledger, name_of};
use crate::limits::{BLOCKS_AT_ONCE, WATCHED_SITES_MAX};
use crate::links::Turnover;
use crate::outcome::Outcome;
use crate::registry::{Host, HostId, Registry, State};
use crate::settings::Watch;
use crate::sharing::slice_of;
use crate::visit::Visited;

/// What all pages of a watch have in common.
pub struct Watching {
    crawl: u16,
    /// The price, the policy, the budget.
    pub revisits: Revisits,
    calendar: Calendar,
    pools: HashMap<SiteId, Pool>,
    trusts: HashMap<HostId, Trusts>,
    places: HashMap<HostId, Place>,
    /// One bit for each block whose memories are counted, and the first that may not be.
    recalled: Vec<u64>,
    next_block: u32,
    audits_owed: u32,
    /// The latest moment at which something was released, by the clock.
    clock: Moment,
    /// What it recalls is kept; not where somebody only asks.
    keeps: bool,
    /// Pages that nobody watches yet, for whoever asks what watching them would come to.
    asked: Vec<Memory>,
    chance: u64,
    /// Where nodes crawl together: the slices that are led here.
    led: Option<Led>,
}

/// Slices, of two to the power of `bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    pub slices: BTreeSet<u32>,
    pub bits: u8,
}

impl Led {
    fn has(&self, host: &Host) -> bool {
        let hash = place_of(&host.key).unwrap_or_else(|| Key::of(&format!("{}/", host.key)).site_hash());
        self.slices.contains(&slice_of(hash, self.bits))
    }
}

/// Where an entry belongs.
#[derive(Clone, Copy)]
struct Place {
    crawl: u16,
    site: SiteId,
    weight: f32,
    is_led: bool,
}

/// How a watch stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// Pages that are looked at again.
    pub pages: u64,
    /// Of these, as many were reckoned with.
    pub sampled: u64,
    /// The share of them that is believed to be up to date.
    pub fresh: f64,
    /// When that page was last looked at which was not for longest.
    pub oldest_ms: Option<i64>,
    /// Pages that are due and wait.
    pub overdue: u64,
    /// Bundles that these make.
    pub overdue_bundles: u64,
}

impl Watching {
    /// Nothing recalled yet.
    pub fn new(crawl: u16, watch: &Watch, now: Moment) -> Watching {
        Watching {
            crawl,
            revisits: Revisits::new(watch.policy, watch.budget(), now),
            calendar: Calendar::default(),
            pools: HashMap::new(),
            trusts: HashMap::new(),
            places: HashMap::new(),
            recalled: Vec::new(),
            next_block: 0,
            audits_owed: 0,
            clock: now,
            keeps: true,
            asked: Vec::new(),
            chance: u64::from(now.0),
            led: None,
        }
    }

    /// Nothing is recalled any more; what was learned of the price and of chance stays.
    pub(crate) fn recall_anew(&mut self) {
        self.revisits.recall_anew();
        self.calendar = Calendar::default();
        self.pools.clear();
        self.trusts.clear();
        self.places.clear();
        self.recalled.clear();
        self.next_block = 0;
    }

    /// Whether a page is looked at again by this watch, here.
    fn minds(&self, of: Place) -> bool {
        of.crawl == self.crawl && of.is_led
    }

    /// When something is due, or a price is to be found.
    pub fn next(&self) -> Moment {
        let due = self.calendar.first().map_or(Moment::NEVER, |(due, _)| due);
        due.min(self.revisits.epoch_ends())
    }

    /// What a page is worth. Anansi counts links, those that lead to the page and those that lead from it; a visit that did not look for
    /// links leaves it as it was.
    fn worth(&self, memory: &Memory, turnover: Option<Turnover>, referring_sites: u32, weight: f32) -> f32 {
        match (self.revisits.policy(), turnover) {
            (Policy::Anansi, Some(turnover)) => (referring_sites as f32 + turnover.count as f32).max(1.0) * weight,
            (Policy::Anansi, None) if memory.last().is_some() => memory.importance(),
            _ => importance(referring_sites, weight),
        }
    }

    fn draw(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(1);
        mixed(self.chance)
    }

    /// The same for the URLs of a block in the same round.
    fn bundle_chance(&self, entry: u64, memory: &Memory) -> f32 {
        let last = memory.last().map_or(0.0, |last| f64::from(last.0) / 86_400.0);
        // Within a tenth of a period a bundle is in the same round.
        let round = (last * f64::from(self.revisits.visits_per_page()) * 10.0) as u64;
        (mixed(u64::from(block_of(entry)) << 24 ^ round) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// splitmix64.
fn mixed(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn block_of(entry: u64) -> u32 {
    (entry / u64::from(BLOCK_URLS)) as u32
}

/// What a visit says about its page, given whether the page was known.
enum Said {
    Found(Found),
    /// Nothing there, or we may not ask for it.
    Missing,
    /// No page came, and that says nothing: an outage, a wall, a login.
    Nothing,
}

fn said(visited: &Visited, before: State) -> Said {
    let status = visited.outcome.0;
    match status {
        304 => Said::Found(Found::Same),
        300..=399 => {
            let was = matches!(before, State::Visited { status, .. } if (300..=399).contains(&status) && status != 304);
            match status {
                _ if was => Said::Found(Found::Same),
                301 | 308 => Said::Found(Found::Changed(None)),
                // For now it is shown elsewhere: a wall, a login, a pause. Whether the page changed meanwhile nobody has seen.
                _ => Said::Nothing,
            }
        }
        200..=299 => match visited.found {
            Finding::Same => Said::Found(Found::Same),
            Finding::First | Finding::Changed => Said::Found(Found::Changed(None)),
            Finding::Nothing => Said::Nothing,
        },
        _ if is_missing(visited.outcome) => Said::Missing,
        _ => Said::Nothing,
    }
}

/// The page is not there, or is nobody's business. A login or a refusal in front of it says nothing of that, as any other trouble: so do
/// changes judge it, for which it is suspect.
fn is_missing(outcome: Outcome) -> bool {
    let is_refused = outcome.failure() == Some(retry::Outcome::Refused);
    matches!(outcome, Outcome::SOFT_MISSING | Outcome(404 | 410)) || is_refused
}

impl Ledger {
    /// From now on this crawl is watched.
    pub(crate) fn watch(&mut self, crawl: u16, watch: &Watch, now: Moment) {
        self.watching = Some(Watching::new(crawl, watch, now));
    }

    /// What is to be recalled before the watch of a crawl can be asked about: nothing where it runs.
    pub(crate) fn to_recall(&self, crawl: u16, watch: &Watch, now: Moment) -> Option<Box<Watching>> {
        let runs = self.watching.as_ref().is_some_and(|watching| watching.crawl == crawl);
        (!runs).then(|| Box::new(Watching { keeps: false, ..Watching::new(crawl, watch, now) }))
    }

    /// Recalls some of it. Says whether there is more.
    pub(crate) fn recall_for(&mut self, asked: &mut Option<Box<Watching>>, now: Moment) -> Result<bool> {
        let Some(asking) = asked.take() else { return Ok(false) };
        let running = self.watching.replace(*asking);
        let recalled = match self.recall_some(now) {
            Ok(false) => self.reprice(1.0, now).map(|()| false),
            more => more,
        };
        *asked = std::mem::replace(&mut self.watching, running).map(Box::new);
        recalled
    }

    /// Asks about a watch: the one that runs, or the one that was recalled.
    pub(crate) fn with_watch<T>(
        &mut self,
        recalled: Option<Box<Watching>>,
        ask: impl FnOnce(&mut Ledger) -> Result<T>,
    ) -> Result<T> {
        let Some(recalled) = recalled else { return ask(self) };
        let running = self.watching.replace(*recalled);
        let answer = ask(self);
        self.watching = running;
        answer
    }

    /// Where nodes crawl together: what is led here is looked at again here, and nothing else.
    pub(crate) fn watch_led(&mut self, led: Led) {
        if let Some(watching) = self.watching.as_mut().filter(|watching| watching.led.as_ref() != Some(&led)) {
            watching.led = Some(led);
            watching.recall_anew();
        }
    }

    /// Another budget or policy, which holds at once; also other weights.
    pub(crate) fn watch_otherwise(&mut self, watch: &Watch, now: Moment) -> Result<()> {
        let sample = self.sample(PRICE_SAMPLE)?;
        if let Some(watching) = &mut self.watching {
            watching.places.clear();
            watching.revisits.set(watch.policy, watch.budget(), &sample);
            watching.calendar.all_due(now);
        }
        Ok(())
    }

    fn place_of(&mut self, watching: &mut Watching, host: HostId) -> Result<Place> {
        if let Some(place) = watching.places.get(&host) {
            return Ok(*place);
        }
        let known = self.registry.host(host)?;
        let weight = match self.rules(known.crawl) {
            Some(rules) => rules.settings().weight_of(name_of(&known.key), &known.site),
            None => 1.0,
        };
        let is_led = watching.led.as_ref().is_none_or(|led| led.has(&known));
        let place = Place { crawl: known.crawl, site: site_id(&known.site), weight, is_led };
        if watching.places.len() >= WATCHED_SITES_MAX {
            watching.places.clear();
        }
        watching.places.insert(host, place);
        Ok(place)
    }

    /// Recalls some more of what is remembered. Says whether there is more.
    pub(crate) fn recall_some(&mut self, now: Moment) -> Result<bool> {
        let Some(mut watching) = self.watching.take() else { return Ok(false) };
        let blocks = self.registry.entries().div_ceil(u64::from(BLOCK_URLS)) as u32;
        let until = watching.next_block.saturating_add(BLOCKS_AT_ONCE).min(blocks);
        let mut recalled = Ok(());
        while watching.next_block < until && recalled.is_ok() {
            let block = watching.next_block;
            recalled = self.recall(&mut watching, block, now);
            // The last block is not full yet: whoever comes into it later is observed live.
            watching.next_block += 1;
        }
        let more = watching.next_block < blocks;
        self.watching = Some(watching);
        recalled.map(|()| more)
    }

    fn recall(&mut self, watching: &mut Watching, block: u32, now: Moment) -> Result<()> {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        if watching.recalled.len() <= word {
            watching.recalled.resize(word + 1, 0);
        }
        if watching.recalled[word] & bit != 0 {
            return Ok(());
        }
        watching.recalled[word] |= bit;
        let mut memories = Vec::new();
        self.registry.memories(block, &mut memories)?;
        for (place, memory) in memories.iter_mut().enumerate() {
            let entry = u64::from(block) * u64::from(BLOCK_URLS) + place as u64;
            let standing = self.registry.standing(entry)?;
            let of = self.place_of(watching, standing.host)?;
            if !watching.minds(of) {
                continue;
            }
            if memory.last().is_some() {
                let pool = pool_of(&mut watching.pools, of.site);
                watching.revisits.recalled(memory, pool);
                let chance = watching.bundle_chance(entry, memory);
                if watching.revisits.set_right(memory, now, chance) && watching.keeps {
                    self.registry.remember(entry, memory)?;
                }
                if memory.is_out() && !standing.waits {
                    watching.revisits.given_back(memory, now);
                    if watching.keeps {
                        self.registry.remember(entry, memory)?;
                    }
                }
                continue;
            }
            // Visited before anybody watched.
            let seen_ms = match standing.outcome {
                State::Visited { time_ms, .. } => Some(time_ms),
                State::Dead { .. } => Some(now.ms()),
                State::Refused { rule } if rule == Outcome::ROBOTS.0 => Some(now.ms()),
                _ => None,
            };
            let Some(seen_ms) = seen_ms else { continue };
            let worth = importance(self.registry.referring_sites(entry)?, of.weight);
            let chance = watching.bundle_chance(entry, memory);
            let pool = pool_of(&mut watching.pools, of.site);
            *memory = watching.revisits.first_at(worth, pool, Moment::from_ms(seen_ms), now, chance);
            match standing.outcome {
                State::Visited { status: ..400, .. } => {}
                State::Visited { status, .. } if !is_missing(Outcome(status)) => {
                    watching.revisits.unanswered(memory, now);
                }
                _ => watching.revisits.failed(memory, now),
            }
            if watching.keeps {
                self.registry.remember(entry, memory)?;
            } else if watching.asked.len() < PRICE_SAMPLE {
                watching.asked.push(*memory);
            }
        }
        self.head(watching, block, &memories, now);
        Ok(())
    }

    /// What a visit found goes into the memory of its URL. `before` is what the registry knew of it. Saying it twice changes nothing.
    pub(crate) fn observed(&mut self, crawl: u16, entry: u64, visited: &Visited, before: State) -> Result<()> {
        let Some(watch) = self.rules(crawl).and_then(|rules| rules.settings().watch.clone()) else { return Ok(()) };
        // A failure that is tried again soon is none yet.
        if matches!(self.registry.state(entry)?, State::Failed { .. }) {
            return Ok(());
        }
        let now = Moment::from_ms(visited.time_ms);
        let live = self.watching.as_ref().is_some_and(|watching| watching.crawl == crawl);
        // Folding what happened before this run: the price of then is not known, the observation is.
        let mut watching = match self.watching.take_if(|_| live) {
            Some(watching) => watching,
            None => Watching::new(crawl, &watch, now),
        };
        let observed = self.observe(&mut watching, entry, visited, before, live, now);
        if live {
            self.watching = Some(watching);
        }
        observed
    }

    fn observe(
        &mut self,
        watching: &mut Watching,
        entry: u64,
        visited: &Visited,
        before: State,
        live: bool,
        now: Moment,
    ) -> Result<()> {
        let block = block_of(entry);
        if live {
            self.recall(watching, block, now)?;
        }
        let mut memory = self.registry.memory(entry)?;
        let host = self.registry.host_of(entry)?;
        let of = self.place_of(watching, host)?;
        let worth = watching.worth(&memory, visited.turnover, self.registry.referring_sites(entry)?, of.weight);
        let chance = watching.bundle_chance(entry, &memory);
        if live {
            watching.revisits.set_right(&mut memory, now, chance);
        }
        let (known, hinted) = (memory.last().is_some(), Source::ALL.map(|source| (source, memory.said(source))));
        let said = said(visited, before);
        if known && memory.last() >= Some(now) {
            if !memory.is_out() {
                return Ok(());
            }
            // Twice within a second: the second look says nothing.
            watching.revisits.given_back(&mut memory, now);
        } else {
            let pool = pool_of(&mut watching.pools, of.site);
            if !known {
                memory = watching.revisits.first(worth, pool, now, chance);
            }
            memory.set_importance(worth);
            match said {
                Said::Found(found) if known => {
                    watching.revisits.visited(&mut memory, pool, found, now, chance);
                    if let Some(ratio) = visited.turnover.and_then(|turnover| turnover.ratio) {
                        watching.revisits.links_changed(&mut memory, ratio, now, chance);
                    }
                    for (source, told) in hinted.into_iter().filter(|_| live) {
                        if let Some(told) = told {
                            self.believe(watching, host, source, told, found != Found::Same, now)?;
                        }
                    }
                }
                Said::Found(_) => {}
                Said::Missing => watching.revisits.failed(&mut memory, now),
                Said::Nothing => watching.revisits.unanswered(&mut memory, now),
            }
        }
        self.registry.remember(entry, &memory)?;
        if live {
            watching.calendar.sooner(block, memory.due());
        }
        Ok(())
    }

    /// A look showed whether a source of hints was right: it told of a change, or named the page and told of none. What that comes to
    /// stays with the host.
    fn believe(
        &mut self,
        watching: &mut Watching,
        host: HostId,
        source: Source,
        told: bool,
        changed: bool,
        now: Moment,
    ) -> Result<()> {
        let trusts = trusts_of(&mut watching.trusts, &mut self.registry, host)?;
        trusts.observe(source, told, changed, now);
        let kept = trusts.encode();
        Ok(self.registry.update_host(host, |conduct| conduct.trust = kept)?)
    }

    /// Why a page that waits is looked at.
    pub(crate) fn why_due(&mut self, entry: u64) -> Result<Option<Due>> {
        let now = Moment::from_ms(skep_archive::system_clock());
        let memory = self.registry.memory(entry)?;
        let watching = self.watching.as_ref().filter(|_| memory.last().is_some());
        Ok(watching.map(|watching| watching.revisits.why(&memory, now, watching.bundle_chance(entry, &memory))))
    }

    /// A sitemap or a feed says when a page changed. Believed as far as what its host said there was right before.
    pub(crate) fn told(&mut self, crawl: u16, url: &str, by: Source, date: Told, now: Moment) -> Result<()> {
        let Some(entry) = self.registry.known(crawl, &canonical(url))? else { return Ok(()) };
        let before = self.registry.memory(entry)?;
        let Some(last) = before.last() else { return Ok(()) };
        let Some(changed) = hint::says_changed(Moment::from_ms(date.from_ms), Moment::from_ms(date.to_ms), last, now)
        else {
            return Ok(());
        };
        let host = self.registry.host_of(entry)?;
        let Some(watching) = &mut self.watching else { return Ok(()) };
        let trust = *trusts_of(&mut watching.trusts, &mut self.registry, host)?.of(by);
        let chance = watching.bundle_chance(entry, &before);
        let mut memory = before;
        watching.revisits.told(&mut memory, by, &trust, changed, now, chance);
        if memory == before {
            return Ok(());
        }
        self.registry.remember(entry, &memory)?;
        watching.calendar.sooner(block_of(entry), memory.due());
        Ok(())
    }

    /// Pages that are due come to wait in the queues of their hosts. Says how many, and whether there may be more.
    pub(crate) fn release(&mut self, now: Moment) -> Result<(u32, bool)> {
        let Some(mut watching) = self.watching.take() else { return Ok((0, false)) };
        if watching.clock > now.plus_days(CLOCK_DAYS_AHEAD) {
            watching.calendar.all_due(now);
            watching.revisits.clock_set_back(now);
        }
        watching.clock = now;
        let released = self.release_of(&mut watching, now);
        self.watching = Some(watching);
        released
    }

    fn release_of(&mut self, watching: &mut Watching, now: Moment) -> Result<(u32, bool)> {
        let mut released = 0;
        let mut memories = Vec::new();
        for _ in 0..BLOCKS_AT_ONCE {
            let Some((_, block)) = watching.calendar.first().filter(|(due, _)| *due <= now) else {
                return Ok((released, false));
            };
            released += self.release_block(watching, block, now, now, &mut memories)?;
        }
        Ok((released, true))
    }

    /// What would be next comes to wait before its time; for a policy that leaves no moment unused.
    pub(crate) fn release_next(&mut self, now: Moment) -> Result<u32> {
        let Some(mut watching) = self.watching.take() else { return Ok(0) };
        let released = match watching.calendar.first() {
            Some((due, block)) => self.release_block(&mut watching, block, now, due.max(now), &mut Vec::new()),
            None => Ok(0),
        };
        self.watching = Some(watching);
        released
    }

    /// Looks through a block as if it were `then`.
    fn release_block(
        &mut self,
        watching: &mut Watching,
        block: u32,
        now: Moment,
        then: Moment,
        memories: &mut Vec<Memory>,
    ) -> Result<u32> {
        let mut released = 0;
        let whole = watching.calendar.review(block, now, watching.revisits.review_days());
        self.registry.memories(block, memories)?;
        for (place, memory) in memories.iter_mut().enumerate() {
            let entry = u64::from(block) * u64::from(BLOCK_URLS) + place as u64;
            let chance = watching.bundle_chance(entry, memory);
            let before = *memory;
            let wrong = watching.revisits.set_right(memory, now, chance);
            if memory.last().is_none() || !(whole || wrong || memory.due() <= then) {
                continue;
            }
            let standing = self.registry.standing(entry)?;
            let of = self.place_of(watching, standing.host)?;
            if !watching.minds(of) {
                *memory = Memory::UNKNOWN;
                continue;
            }
            // It was given out, but nobody will come back from it: its host was given up, a rule refused it.
            if memory.is_out() && !standing.waits {
                watching.revisits.unanswered(memory, now);
            }
            let chance = watching.bundle_chance(entry, memory);
            if watching.revisits.look(memory, then, chance) {
                if self.registry.look_again(entry)? {
                    self.touch(standing.host);
                }
                released += 1;
                watching.audits_owed += AUDIT_PERCENT;
            }
            if *memory != before {
                self.registry.remember(entry, memory)?;
            }
        }
        self.head(watching, block, memories, now);
        if watching.audits_owed >= 100 && watching.revisits.policy().believes() {
            watching.audits_owed -= 100;
            released += self.audit(watching)?;
        }
        Ok(released)
    }

    /// Any page whatever is looked at: only that tells what hints leave out, and how fresh copies really are.
    fn audit(&mut self, watching: &mut Watching) -> Result<u32> {
        let entry = watching.draw() % self.registry.entries().max(1);
        let standing = self.registry.standing(entry)?;
        let mut memory = self.registry.memory(entry)?;
        let of = self.place_of(watching, standing.host)?;
        if !watching.minds(of) || standing.waits || !watching.revisits.audit(&mut memory) {
            return Ok(0);
        }
        self.registry.remember(entry, &memory)?;
        if self.registry.look_again(entry)? {
            self.touch(standing.host);
        }
        Ok(1)
    }

    fn head(&mut self, watching: &mut Watching, block: u32, memories: &[Memory], now: Moment) {
        let known = memories.iter().filter(|memory| memory.last().is_some());
        let Some(due) = known.map(Memory::due).min() else {
            return watching.calendar.set(block, Moment::NEVER);
        };
        // A block is looked at whole from time to time, also where nothing in it is due for long, or all of it is out.
        let review = now.plus_days(watching.revisits.review_days());
        watching.calendar.set(block, due.min(review));
    }

    /// A new price, where it is time for one. `used` is the share of the budget that was used since the last.
    pub(crate) fn reprice(&mut self, used: f32, now: Moment) -> Result<()> {
        let sample = self.sample(PRICE_SAMPLE)?;
        let crawl = self.watching.as_ref().map_or(0, |watching| watching.crawl);
        let waiting = self.overdue(crawl)?.0;
        if let Some(watching) = &mut self.watching {
            watching.revisits.end_epoch(&sample, used, waiting, now);
        }
        Ok(())
    }

    /// Pages of a crawl that are due and wait, and the bundles they make.
    pub(crate) fn overdue(&mut self, crawl: u16) -> Result<(u64, u64)> {
        let (mut pages, mut bundles) = (0, 0);
        let led = self.watching.as_ref().and_then(|watching| watching.led.clone());
        self.each_host(|host| {
            if host.crawl == crawl && led.as_ref().is_none_or(|led| led.has(host)) {
                pages += u64::from(host.again);
                bundles += u64::from(host.again.div_ceil(crate::limits::BUNDLE_URLS_MAX));
            }
        })?;
        Ok((pages, bundles))
    }

    /// Memories of the watch, by chance; all of them where there are no more than that.
    pub(crate) fn sample(&mut self, most: usize) -> Result<Vec<Memory>> {
        let Some(mut watching) = self.watching.take() else { return Ok(Vec::new()) };
        let sample = self.sample_of(&mut watching, most);
        self.watching = Some(watching);
        sample
    }

    fn sample_of(&mut self, watching: &mut Watching, most: usize) -> Result<Vec<Memory>> {
        let entries = self.registry.entries();
        let mut sample: Vec<Memory> = watching.asked.iter().take(most).copied().collect();
        let all = entries <= most as u64;
        // Some may be nobody's, or another crawl's: not for ever.
        for number in 0..if all { entries } else { most as u64 * 4 } {
            let entry = if all { number } else { watching.draw() % entries };
            let memory = self.registry.memory(entry)?;
            if memory.last().is_none() {
                continue;
            }
            let host = self.registry.host_of(entry)?;
            let of = self.place_of(watching, host)?;
            if watching.minds(of) {
                sample.push(memory);
            }
            if sample.len() >= most {
                break;
            }
        }
        Ok(sample)
    }

    /// How the watch of a crawl stands.
    pub(crate) fn standing_of(&mut self, crawl: u16, most: usize, now: Moment) -> Result<Standing> {
        let (overdue, overdue_bundles) = self.overdue(crawl)?;
        let sample = self.sample(most)?;
        let mut fresh = 0.0;
        for memory in &sample {
            let days = memory.last().map_or(0.0, |last| now.days_since(last));
            let of = |(weight, change): (f32, f32)| weight * (-change * days).exp();
            fresh += f64::from(memory.unheard().rates().into_iter().map(of).sum::<f32>());
        }
        Ok(Standing {
            pages: self.watching.as_ref().map_or(0, |watching| watching.revisits.pages()),
            sampled: sample.len() as u64,
            fresh: if sample.is_empty() { 1.0 } else { fresh / sample.len() as f64 },
            oldest_ms: sample.iter().filter_map(Memory::last).min().map(Moment::ms),
            overdue,
            overdue_bundles,
        })
    }
}

/// How far the hints of a host are believed; as it was, where somebody saw it before.
fn trusts_of<'t>(
    trusts: &'t mut HashMap<HostId, Trusts>,
    registry: &mut Registry,
    host: HostId,
) -> Result<&'t mut Trusts> {
    if trusts.len() >= WATCHED_SITES_MAX && !trusts.contains_key(&host) {
        trusts.clear();
    }
    match trusts.entry(host) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(new) => Ok(new.insert(Trusts::decode(registry.host(host)?.conduct.trust))),
    }
}

/// What the pages of a site lend each other; where there are too many sites, all others lend each other.
fn pool_of(pools: &mut HashMap<SiteId, Pool>, site: SiteId) -> &mut Pool {
    let known = pools.len() < WATCHED_SITES_MAX || pools.contains_key(&site);
    pools.entry(if known { site } else { SiteId(u32::MAX) }).or_default()
}

#[cfg(test)]
mod tests;
