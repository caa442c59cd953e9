//! Everything known of the crawls of an archive: the registry, kept in step with the records.
//!
//! ```text
//!  a visit, synced ──▶ visited() ──▶ state of its entry; its links ──▶ rules ──▶ registry ──▶ queues
//!  after a crash: the same, from the records behind the last checkpoint (catch_up)
//! ```
//! Folding a record twice gives what folding it once gives: a known URL is known, a state is set to what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use skep_archive::layout::HalfSlice;
use skep_archive::{Archive, Capture, CaptureKind, Position};
use skep_page::{Link, LinkKind};
use skep_schedule::retry::{self, Patience, Retry};
use skep_url::{Part, Splits, Suffixes, Url};

use crate::canonical::canonical;
use crate::checks;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::heard;
use crate::hearing::{Filed, host_key_at, site_id};
use crate::hops::Hops;
use crate::judge::Hints;
use crate::limits::JUDGED_AT_ONCE;
use crate::links::Turnover;
use crate::memo::{self, Memos, Spent};
use crate::metadata;
use crate::outcome::Outcome;
use crate::recorded::{Recorded, Segment, each_record};
use crate::registry::{self, Class, HostId, Registry, State};
use crate::registry_key::RegistryKey;
use crate::rules::{Refusal, Rules};
use crate::settings::{Settings, SiteSettings};
use crate::sharing;
use crate::traps::Traps;
use crate::visit::Visited;
use crate::watching::Watching;

/// The registry, the rules of every crawl, and how far the records are folded.
pub struct Ledger {
    /// Every known URL.
    pub registry: Registry,
    /// What looks like a trap.
    pub traps: Traps,
    crawls: BTreeMap<u16, Rules>,
    memos: Memos,
    marks: BTreeMap<Segment, u32>,
    /// Hosts whose queues changed since somebody looked.
    changed: BTreeSet<HostId>,
    patience: Patience,
    /// What is watched by this run.
    pub(crate) watching: Option<Watching>,
    /// Where nodes crawl together: links from one slice to another, on their way.
    pub(crate) crossing: Option<Crossing>,
    pub(crate) suffixes: Suffixes,
}

/// Links that lead from one slice to another.
pub(crate) struct Crossing {
    pub bits: u8,
    pub links: Vec<(u32, sharing::Link)>,
    /// Sites whose URLs are in many slices.
    pub splits: Arc<Splits>,
}

/// What folding a visit came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Links that nobody had heard of, and that are taken.
    pub new_links: u32,
    /// It will be tried again then, in milliseconds since 1970.
    pub again_ms: Option<i64>,
}

impl Ledger {
    /// Opens the registry of an archive and brings it up to date with the records.
    pub fn open(archive: &Archive, key: &RegistryKey, patience: Patience) -> Result<Ledger> {
        let folder = archive.layout().views().join("registry");
        let options = registry::Options::within(key.0, usize::try_from(archive.others_bytes()).unwrap_or(usize::MAX));
        let (registry, checkpoint) = Registry::open(&folder, options)?;
        let checkpoint = checkpoint.unwrap_or_default();
        let (traps, memos) = memo::apart(&checkpoint.extra);
        let traps = Traps::load(traps);
        let marks = checkpoint.marks.iter().map(|mark| (mark.segment, mark.records)).collect();
        let mut ledger = Ledger {
            registry,
            traps,
            crawls: BTreeMap::new(),
            memos,
            marks,
            changed: BTreeSet::new(),
            patience,
            watching: None,
            crossing: sharing::shared_bits(&archive.layout().settings())?.map(|bits| Crossing {
                bits,
                links: Vec::new(),
                splits: Arc::default(),
            }),
            suffixes: Suffixes::compiled(),
        };
        for settings in Settings::all(&archive.layout().settings())? {
            ledger.set_rules(Arc::new(settings))?;
        }
        // What belongs to a network is folded by whoever leads it, slice by slice: links to elsewhere must not be lost here.
        if ledger.crossing.is_none() {
            ledger.catch_up(archive, &|_| true)?;
        }
        Ok(ledger)
    }

    /// Folds what is in the archive of these slices, whoever wrote it, and is not folded yet.
    pub(crate) fn take_over(&mut self, archive: &Archive, slices: &BTreeSet<u32>) -> Result<()> {
        self.fold_slices(archive, slices, &|_| true)
    }

    /// The same while they are led: what this node writes itself is folded as it happens, so only what others wrote is looked at.
    pub(crate) fn follow(&mut self, archive: &Archive, slices: &BTreeSet<u32>) -> Result<()> {
        let own = archive.writer();
        self.fold_slices(archive, slices, &|segment| segment.name.id.writer != own)
    }

    fn fold_slices(
        &mut self,
        archive: &Archive,
        slices: &BTreeSet<u32>,
        of: &dyn Fn(&skep_archive::Segment) -> bool,
    ) -> Result<()> {
        let bits = self.crossing.as_ref().map_or(0, |crossing| crossing.bits);
        self.catch_up(archive, &|segment| {
            let (first, last) = segment.half.range();
            let slices = slices.range(sharing::slice_of(first, bits)..=sharing::slice_of(last, bits)).next();
            slices.is_some() && of(segment)
        })
    }

    /// The rules of a crawl, from now on.
    pub fn set_rules(&mut self, settings: Arc<Settings>) -> Result<()> {
        let number = settings.number;
        let learned = match self.crawls.get(&number) {
            Some(rules) => rules.learned().to_vec(),
            None => self.memos.get(&number).map(|memo| memo.learned.clone()).unwrap_or_default(),
        };
        self.crawls.insert(number, Rules::new(settings, learned)?);
        Ok(())
    }

    /// The rules of a crawl count from now on also for what earlier ones refused. Says whether there are others than before.
    pub fn judge_again(&mut self, crawl: u16) -> Result<bool> {
        let Some(settings) = self.crawls.get(&crawl).map(|rules| rules.settings().clone()) else { return Ok(false) };
        let (mark, pass) = (settings.rules_mark(), self.registry.pass(crawl));
        let memo = self.memos.entry(crawl).or_default();
        let before = std::mem::replace(&mut memo.rules, mark);
        if before == mark || before == 0 {
            return Ok(false);
        }
        memo.widened = pass;
        let mut from = 0;
        while from < self.registry.entries() {
            let mut refused = Vec::new();
            self.registry.walk(from, |entry| {
                from = entry.number + 1;
                if entry.crawl == crawl && matches!(entry.state, State::Refused { .. } | State::Parked { .. }) {
                    refused.push(entry.clone());
                }
                if refused.len() < JUDGED_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            for entry in &refused {
                self.judge_entry(crawl, entry, &settings)?;
            }
        }
        Ok(true)
    }

    fn judge_entry(&mut self, crawl: u16, entry: &registry::Entry, settings: &Settings) -> Result<()> {
        let Ok(url) = Url::parse(&entry.url) else { return Ok(()) };
        let rule = if let State::Refused { rule } = entry.state { rule } else { 0 };
        let unrobbed = Outcome(rule) == Outcome::ROBOTS && settings.ignore_robots && settings.is_own(url.host_name());
        let by_rules = !matches!(Refusal::from_number(rule), None | Some(Refusal::Redirects | Refusal::Long));
        let is_parked = matches!(entry.state, State::Parked { .. });
        if !(by_rules || is_of_gate(rule) || unrobbed || is_parked) {
            return Ok(());
        }
        let kind = LinkKind::ALL.get(usize::from(entry.kind)).copied().unwrap_or(LinkKind::Anchor);
        let site = site_id(url.site(&self.suffixes, Part::Whole));
        let Some(rules) = self.rules(crawl) else { return Ok(()) };
        let state = match rules.judge(&entry.url, kind, Hops::unpack(entry.depth)) {
            Err(refusal) => State::Refused { rule: refusal as u16 },
            Ok(()) if !by_rules => State::Queued,
            Ok(()) => {
                self.traps.admit(&url, site, false, false).map_or_else(|code| State::Trap { code }, |()| State::Queued)
            }
        };
        if state != entry.state {
            self.registry.set_state(entry.number, state)?;
            self.touch(entry.host);
        }
        Ok(())
    }

    /// Whether the pages of this pass are to be read for links that earlier rules let lie, also where they have not changed.
    pub fn hears_again(&self, crawl: u16) -> bool {
        let pass = self.registry.pass(crawl);
        let widened = self.memos.get(&crawl).map_or(0, |memo| memo.widened);
        widened > 0 && pass <= widened.saturating_add(1)
    }

    /// The rules of a crawl.
    pub fn rules(&mut self, crawl: u16) -> Option<&mut Rules> {
        self.crawls.get_mut(&crawl)
    }

    /// The number of a crawl by its name.
    pub fn number_of(&self, name: &str) -> Option<u16> {
        self.crawls.iter().find(|(_, rules)| rules.settings().name == name).map(|(number, _)| *number)
    }

    /// Hosts whose queues changed since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.changed)
    }

    /// Something about the queues of this host changed.
    pub fn touch(&mut self, host: HostId) {
        self.changed.insert(host);
    }

    /// Goes through all hosts of all crawls.
    pub fn each_host(&mut self, mut each: impl FnMut(&registry::Host)) -> Result<()> {
        self.registry.top_hosts(0, |host| {
            each(host);
            None::<()>
        })?;
        Ok(())
    }

    /// A seed. Returns whether nobody had heard of it.
    pub fn seed(&mut self, crawl: u16, url: &str) -> Result<bool> {
        self.put(crawl, url, None, Hops::SEED, Class::Seed, LinkKind::Anchor)
    }

    /// Folds a visit: what became of the URL, and what it links to.
    pub fn visited(&mut self, crawl: u16, pass: u16, visited: &Visited) -> Result<Folded> {
        let mut folded = Folded::default();
        let mut via = visited.entry;
        if visited.from_queue {
            let entry = match visited.entry {
                Some(entry) => entry,
                None => self.entry_of(crawl, visited)?,
            };
            via = Some(entry);
            let before = if self.is_watched(crawl) { Some(self.registry.standing(entry)?.outcome) } else { None };
            if !self.is_late(entry, visited)? {
                folded.again_ms = self.settle(entry, pass, visited)?;
            }
            if let Some(before) = before {
                self.observed(crawl, entry, visited, before)?;
            }
        }
        self.note_conduct(crawl, via, visited)?;
        folded.new_links = self.hear_links(crawl, visited, via)?;
        if let Some(position) = visited.position {
            self.mark(position);
        }
        Ok(folded)
    }

    /// Whether a host was visited after another node gave it up, which is heard of only now: then somebody tries it again.
    fn is_visited_since(&mut self, host: HostId, time_ms: i64) -> Result<bool> {
        Ok(self.crossing.is_some() && self.registry.host(host)?.conduct.last_visit_ms > time_ms)
    }

    /// Whether a later visit is known already: copies of what others wrote come in any order.
    fn is_late(&mut self, entry: u64, visited: &Visited) -> Result<bool> {
        if self.crossing.is_none() {
            return Ok(false);
        }
        // Also where it waits or is out to be looked at again.
        let known = self.registry.standing(entry)?.outcome;
        Ok(matches!(known, State::Visited { time_ms, .. } if time_ms > visited.time_ms))
    }

    /// Whether somebody wants this crawl looked at again and again.
    pub(crate) fn is_watched(&self, crawl: u16) -> bool {
        self.crawls.get(&crawl).is_some_and(|rules| rules.settings().watch.is_some())
    }

    /// What a visit says about its host: the same live, after a crash, and in a rebuild.
    fn note_conduct(&mut self, crawl: u16, entry: Option<u64>, visited: &Visited) -> Result<()> {
        let host = match entry {
            Some(entry) => Some(self.registry.host_of(entry)?),
            None => self.host_named(crawl, visited)?,
        };
        let Some(host) = host else { return Ok(()) };
        self.spend(crawl, host, visited)?;
        self.registry.update_host(host, |conduct| {
            conduct.last_visit_ms = conduct.last_visit_ms.max(visited.time_ms);
            conduct.bytes = conduct.bytes.saturating_add(visited.bytes);
            conduct.pages = conduct.pages.saturating_add(u32::from(visited.outcome.as_status().is_some()));
            // A check line does not say how long it took: what counts must be the same after a rebuild.
            if visited.outcome.as_status().is_some_and(|status| status != 304) {
                let answer_ms = u32::try_from(visited.answer_ms).unwrap_or(u32::MAX);
                conduct.slowest_ms = conduct.slowest_ms.max(answer_ms);
            }
            match visited.outcome.failure() {
                Some(_) => conduct.last_error = visited.outcome.0,
                None => conduct.failures = 0,
            }
            if let Some(park_ms) = visited.park_ms.filter(|ms| *ms > 0) {
                // Counted from the end of the answer, as the site does. When it was asked and how long that took are recorded in whole
                // milliseconds, each a little less than it was.
                let wait_ms = park_ms.saturating_add(visited.answer_ms).saturating_add(2) as i64;
                conduct.parked_until_ms = conduct.parked_until_ms.max(visited.time_ms.saturating_add(wait_ms));
            }
        })?;
        Ok(())
    }

    /// Counts a visit against the budgets of the crawl and of the site.
    fn spend(&mut self, crawl: u16, host: HostId, visited: &Visited) -> Result<()> {
        let Some(settings) = self.crawls.get(&crawl).map(|rules| rules.settings().clone()) else { return Ok(()) };
        let pages = u64::from(visited.from_queue && visited.outcome.as_status().is_some());
        let bounded = match settings.site.values().any(SiteSettings::is_bounded) {
            true => Some(self.registry.host(host)?),
            false => None,
        };
        let names = bounded.iter().flat_map(|host| settings.bounded(name_of(&host.key), &host.site));
        let spent = &mut self.memos.entry(crawl).or_default().spent;
        for name in names.map(|(name, _)| name).chain([memo::ALL]) {
            match spent.get_mut(name) {
                Some(spent) => spent.add(pages, visited.bytes),
                None => spent.entry(name.to_owned()).or_default().add(pages, visited.bytes),
            }
        }
        Ok(())
    }

    /// What this pass took so far: of the crawl as a whole, or of a site or host with a budget.
    pub fn spent(&self, crawl: u16, name: &str) -> Spent {
        self.memos.get(&crawl).and_then(|memo| memo.spent.get(name)).copied().unwrap_or_default()
    }

    fn host_named(&mut self, crawl: u16, visited: &Visited) -> Result<Option<HostId>> {
        match Url::parse(&visited.url) {
            Ok(url) => Ok(self.registry.find_host(crawl, &host_key_at(&url, visited.place))?),
            Err(_) => Ok(None),
        }
    }

    /// The entry of a URL that was visited, although its being heard of may not be folded yet.
    fn entry_of(&mut self, crawl: u16, visited: &Visited) -> Result<u64> {
        if let Some(entry) = self.registry.known(crawl, &canonical(&visited.url))? {
            return Ok(entry);
        }
        self.put(crawl, &visited.url, visited.place, visited.hops, Class::Page, LinkKind::Anchor)?;
        let entry = self.registry.known(crawl, &canonical(&visited.url))?;
        entry.ok_or_else(|| Error::Registry(format!("{} was put into the registry and is not there", visited.url)))
    }

    /// Sets the state of a visited entry. Returns when it is tried again.
    fn settle(&mut self, entry: u64, pass: u16, visited: &Visited) -> Result<Option<i64>> {
        let seen = State::Visited { status: visited.outcome.0, time_ms: visited.time_ms, pass };
        let Some(failure) = visited.outcome.failure() else {
            self.registry.set_state(entry, seen)?;
            return Ok(None);
        };
        let class = visited.outcome.0;
        let state = match self.patience.next(visited.failures, failure) {
            Retry::After(ms) => {
                let not_before_ms = visited.time_ms.saturating_add(ms as i64);
                self.registry.set_state(entry, State::Failed { class, failures: visited.failures, not_before_ms })?;
                let host = self.registry.host_of(entry)?;
                self.changed.insert(host);
                return Ok(Some(not_before_ms));
            }
            Retry::Dead => State::Dead { class, failures: visited.failures },
            Retry::Never if visited.outcome.as_status().is_some() || visited.outcome == Outcome::CUT_OFF => seen,
            Retry::Never if failure == retry::Outcome::Refused => State::Refused { rule: class },
            Retry::Never => State::Dead { class, failures: visited.failures },
        };
        self.registry.set_state(entry, state)?;
        if visited.robots_line > 0 {
            self.registry.set_note(entry, visited.robots_line)?;
        }
        Ok(None)
    }

    fn put(
        &mut self,
        crawl: u16,
        url: &str,
        place: Option<u32>,
        hops: Hops,
        class: Class,
        kind: LinkKind,
    ) -> Result<bool> {
        let Ok(parsed) = Url::parse(url) else { return Ok(false) };
        let filed = Filed { url: &parsed, place };
        self.hear(crawl, filed, hops, class, kind, None, registry::Fate::Queue)
    }

    /// Everything up to this record is folded.
    pub fn mark(&mut self, position: Position) {
        let mark = self.marks.entry((position.writer.0.into(), position.segment.into())).or_default();
        *mark = (*mark).max(position.record + 1);
    }

    /// Makes what is folded so far survive a crash.
    pub fn checkpoint(&mut self) -> Result<()> {
        let marks: Vec<registry::Mark> = self
            .marks
            .iter()
            .map(|(segment, records)| registry::Mark { segment: *segment, records: *records })
            .collect();
        for (number, rules) in &self.crawls {
            self.memos.entry(*number).or_default().learned = rules.learned().to_vec();
        }
        Ok(self.registry.checkpoint(&marks, &memo::together(self.traps.store(), &self.memos))?)
    }

    /// Folds every record behind the marks, of the segments that are to be looked at.
    fn catch_up(&mut self, archive: &Archive, of: &dyn Fn(&skep_archive::Segment) -> bool) -> Result<()> {
        archive.settle()?;
        let marks = self.marks.clone();
        let from = |segment: &Segment| marks.get(segment).copied().unwrap_or(0);
        // Mostly nothing is behind the marks; the views say so, and no sidecar is read.
        let mut is_folded = true;
        for id in archive.segments().iter().filter(|segment| of(segment)).map(|segment| segment.name.id) {
            let seen = archive.views().mark(id)?.map(|mark| mark.records);
            is_folded &= seen.is_some_and(|seen| seen <= from(&(id.writer.0.into(), id.number.into())));
        }
        if is_folded {
            return Ok(());
        }
        // What is folded was seen then, not now: a watch that runs knows nothing of it before it recalls it.
        let watching = self.watching.take();
        let folded = each_record(archive, of, &from, &mut |record| match record {
            Recorded::Answer(answer, capture, block, position) => self.fold_metadata(capture, answer, &block, position),
            Recorded::Checks(block, position) => self.fold_checks(block, position),
            Recorded::Heard(block, half, position) => self.fold_heard(block, half, position),
            Recorded::Other(position) => {
                self.mark(position);
                Ok(())
            }
        });
        self.watching = watching;
        if let Some(watching) = &mut self.watching {
            watching.recall_anew();
        }
        folded
    }

    fn fold_metadata(
        &mut self,
        capture: &Capture,
        answer: Option<&Capture>,
        block: &[u8],
        position: Position,
    ) -> Result<()> {
        let (Ok(meta), Some(answer)) = (metadata::parse(block), answer) else {
            self.mark(position);
            return Ok(());
        };
        let Some(crawl) = self.number_of(&meta.crawl) else {
            self.mark(position);
            return Ok(());
        };
        let outcome = Outcome::from_id(&meta.verdict).unwrap_or(Outcome::status(answer.status));
        if outcome == Outcome::PROBE {
            self.mark(position);
            return Ok(());
        }
        let (tells_all, turnover) = (meta.links.since.is_none(), Turnover::read(&meta.links));
        let gone = meta.links.gone;
        let links = meta.links.links.into_iter().filter_map(|link| {
            let kind = LinkKind::from_code(&link.code)?;
            Some(Link { url: link.url, kind, nofollow: link.nofollow })
        });
        let robots = Url::parse(&capture.url).is_ok_and(|url| url.robots_txt() == url);
        let known = if robots { self.registry.known(crawl, &canonical(&capture.url))? } else { None };
        let visited = Visited {
            lease: skep_schedule::LeaseId(0),
            entry: known,
            from_queue: !robots || known.is_some(),
            url: capture.url.clone(),
            parts: None,
            hops: Hops { depth: meta.depth, redirects: meta.redirects },
            outcome,
            time_ms: answer.time_ms,
            answer_ms: meta.timings.total_ms.unwrap_or(0).into(),
            bytes: answer.length,
            failures: u8::from(outcome.failure().is_some()),
            park_ms: meta.retry_after_ms,
            address: None,
            links: links.collect(),
            tells_all,
            came: None,
            gone,
            turnover,
            via: meta.via,
            text_digest: answer.digest.as_ref().map_or(0, |digest| xxhash_rust::xxh3::xxh3_64(digest.bytes())),
            follow: !meta.directives.iter().any(|directive| directive == "nofollow")
                && !matches!(outcome, Outcome::CHALLENGE | Outcome::SOFT_MISSING),
            digest: None,
            mime: answer.mime.clone(),
            robots_line: 0,
            found: found(meta.found.as_deref(), answer),
            due: None,
            hints: Hints::default(),
            place: self.crossing.as_ref().map(|_| capture.key.site_hash()),
            position: Some(position),
            claim: None,
            referring: None,
            large: None,
        };
        let pass = self.pass_at(crawl, answer.time_ms)?;
        let visited = Visited { failures: self.failures_after(&visited, crawl)?, ..visited };
        self.visited(crawl, pass, &visited)?;
        Ok(())
    }

    /// Failures in a row, as the registry has them, and this one.
    fn failures_after(&mut self, visited: &Visited, crawl: u16) -> Result<u8> {
        if visited.outcome.failure().is_none() {
            return Ok(0);
        }
        let Some(entry) = self.registry.known(crawl, &canonical(&visited.url))? else { return Ok(1) };
        Ok(match self.registry.state(entry)? {
            State::Failed { failures, .. } => failures.saturating_add(1),
            _ => 1,
        })
    }

    /// What waits for a host that was given up is dead in this pass.
    pub fn given_up(&mut self, host: HostId, outcome: Outcome) -> Result<()> {
        self.registry.drop_waiting(host, State::Dead { class: outcome.0, failures: 0 })?;
        Ok(())
    }

    fn fold_checks(&mut self, block: &[u8], position: Position) -> Result<()> {
        if let Ok(checks) = checks::parse(block)
            && let Some(crawl) = self.number_of(&checks.crawl)
        {
            for check in &checks.checks {
                let pass = self.pass_at(crawl, check.time_ms)?;
                let of_host = match &check.outcome {
                    checks::Outcome::Fault(id) => Outcome::from_id(id)
                        .filter(|outcome| matches!(*outcome, Outcome::HOST_GIVEN_UP | Outcome::HOST_BANNED)),
                    _ => None,
                };
                if let Some(outcome) = of_host {
                    if let Some(host) = self.registry.find_host(crawl, &checks.host)?
                        && !self.is_visited_since(host, check.time_ms)?
                    {
                        self.given_up(host, outcome)?;
                    }
                    continue;
                }
                let Some(entry) = self.registry.find(check.fingerprint)? else { continue };
                let (outcome, robots_line) = match &check.outcome {
                    checks::Outcome::NotModified => (Outcome(304), 0),
                    checks::Outcome::Robots { line } => (Outcome::ROBOTS, *line),
                    checks::Outcome::Fault(id) | checks::Outcome::Refused(id) => {
                        (Outcome::from_id(id).unwrap_or(Outcome::CONNECT_FAILED), 0)
                    }
                };
                let visited = Visited { robots_line, ..Visited::bare(entry, outcome, check.time_ms, check.failures) };
                let before = self.registry.standing(entry)?.outcome;
                if !self.is_late(entry, &visited)? {
                    self.settle(entry, pass, &visited)?;
                }
                self.observed(crawl, entry, &visited, before)?;
                self.note_conduct(crawl, Some(entry), &visited)?;
            }
        }
        self.mark(position);
        Ok(())
    }

    fn fold_heard(&mut self, block: &[u8], half: HalfSlice, position: Position) -> Result<()> {
        let mut links: Vec<(sharing::Link, Class)> = Vec::new();
        let mut each = |heard: heard::Heard<'_>| {
            let (site, gone) = (heard.source.and_then(referrer_in), heard.class == HEARD_GONE);
            let link = sharing::Link { site, gone, ..sharing::Link::to(heard.url, heard.depth) };
            links.push((link, class_of(heard.class)));
        };
        if let Ok(name) = heard::parse(block, &mut each)
            && let Some(crawl) = self.number_of(&name)
        {
            for (link, class) in links {
                self.fold_link(crawl, &link, class, half)?;
            }
        }
        self.mark(position);
        Ok(())
    }

    /// A link from elsewhere, as a record has it.
    pub(crate) fn fold_link(&mut self, crawl: u16, link: &sharing::Link, class: Class, half: HalfSlice) -> Result<()> {
        if !link.gone {
            let hops = Hops { depth: link.depth, redirects: 0 };
            // Where nodes crawl together, the slice of the record says where the URL is filed.
            let key = self.crossing.as_ref().and_then(|_| Url::parse(&link.url).ok()).map(|url| url.key());
            let place = key.map(|key| half.file(key).site_hash());
            self.put(crawl, &link.url, place, hops, class, LinkKind::Anchor)?;
        }
        let Some(site) = link.site.filter(|_| self.is_watched(crawl)) else { return Ok(()) };
        if let Some(entry) = self.registry.known(crawl, &canonical(&link.url))? {
            self.registry.refer(entry, site, !link.gone)?;
        }
        Ok(())
    }

    /// The pass of a crawl to which a moment belongs. What was known when it began is due again from then on.
    fn pass_at(&mut self, crawl: u16, time_ms: i64) -> Result<u16> {
        let Some(rules) = self.crawls.get(&crawl) else { return Ok(1) };
        // Nodes begin when they begin: together they are in one pass.
        if self.crossing.is_some() {
            return Ok(self.registry.pass(crawl).max(1));
        }
        let number = rules.settings().pass.number_at(time_ms);
        let pass = u16::try_from(number).unwrap_or(u16::MAX);
        self.reach_pass(crawl, pass)?;
        Ok(pass)
    }

    /// Begins passes until it is this one. Returns whether there was one to begin.
    pub fn reach_pass(&mut self, crawl: u16, pass: u16) -> Result<bool> {
        let behind = self.registry.pass(crawl) < pass;
        while self.registry.pass(crawl) < pass {
            let next = self.registry.pass(crawl) + 1;
            self.registry.begin_pass(crawl, |state| is_due_again(state, next))?;
            self.memos.entry(crawl).or_default().spent.clear();
        }
        Ok(behind)
    }
}

/// The short words for what another node found on its pages; whatever else was heard of comes first.
pub(crate) const HEARD_LINK: &str = "link";
pub(crate) const HEARD_EMBED: &str = "embed";
/// The short word for what a page of another slice no longer links to.
pub(crate) const HEARD_GONE: &str = "gone";
const REFERRER: &str = "site:";

/// A linking site as the source of what was heard.
pub(crate) fn source_of(site: registry::Referrer) -> String {
    format!("{REFERRER}{}", site.bit())
}

fn referrer_in(source: &str) -> Option<registry::Referrer> {
    registry::Referrer::from_bit(source.strip_prefix(REFERRER)?.parse().ok()?)
}

/// Where a URL waits that was heard of under this word.
pub(crate) fn class_of(word: &str) -> Class {
    match word {
        HEARD_LINK => Class::Page,
        HEARD_EMBED => Class::Embed,
        _ => Class::Seed,
    }
}

/// What a visit found, as its record says it; one that does not is judged by what was kept of it.
fn found(said: Option<&str>, answer: &Capture) -> Finding {
    let kept = if answer.kind == CaptureKind::Revisit { Finding::Same } else { Finding::Changed };
    said.and_then(Finding::from_id).unwrap_or(kept)
}

/// What a new pass looks at again: everything that was visited or tried, but not in this pass already. Robots and the gate in front of
/// private addresses are asked again, too: both may say something else by now.
fn is_due_again(state: State, now: u16) -> bool {
    match state {
        State::Visited { pass, .. } => pass < now,
        State::Dead { .. } | State::Parked { .. } => true,
        State::Refused { rule } => Outcome(rule) == Outcome::ROBOTS || is_of_gate(rule),
        _ => false,
    }
}

/// The gate in front of addresses refused it.
fn is_of_gate(rule: u16) -> bool {
    matches!(Outcome(rule), Outcome::ADDRESS_REFUSED | Outcome::OWN_ADDRESS | Outcome::PORT_REFUSED)
}

/// The name in `scheme://name:port`.
pub fn name_of(host_key: &str) -> &str {
    let name = host_key.split_once("://").map_or(host_key, |(_, rest)| rest);
    // A queue of a site that is split.
    let name = name.split_once('/').map_or(name, |(name, _)| name);
    match name.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}
