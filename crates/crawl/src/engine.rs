//! The crawl as it runs: one thread that owns registry and schedule, hears what workers say and gives them bundles.
//!
//! ```text
//!          ┌──────── Said::Visited (synced) ── Said::Ended ────────┐
//!          ▼                                                       │
//!   ledger (registry) ──waiting──▶ schedule ──Order::Lease──▶ bundle ──▶ worker
//! ```

mod begin;
mod lease;
mod pace;
mod share;
mod tend;
mod watch;

pub(crate) use begin::number;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use skep_archive::Archive;
use skep_schedule::retry::Patience;
use skep_schedule::{AddressKey, BundleReport, Event as Told, HostId, LeaseId, Order, Pace, Schedule, Standing};
use tokio::sync::mpsc;

use crate::bundle::Ended;
use crate::control::{Asked, Change, Control, Question};
use crate::cookies::Cookies;
use crate::error::{Error, Result};
use crate::finding::Judges;
use crate::hearing::site_id;
use crate::inquiry::{Inquiry, Step};
use crate::ledger::{Ledger, name_of};
use crate::limits::PARK_WAIT_MS_MAX;
use crate::progress::{Counters, Ending, Event};
use crate::registry::{self, Class};
use crate::settings::{Pass, Settings};
use crate::visit::Visited;
use crate::worker::{Errand, Said, Shared};

/// One run of a crawl.
pub struct Run {
    /// The crawl.
    pub settings: Settings,
    /// How requests are made.
    pub fetch: skep_fetch::Settings,
    /// What the operator gives to sites.
    pub cookies: Cookies,
    /// Threads that fetch.
    pub workers: usize,
    /// How failures are tried again.
    pub patience: Patience,
    /// It goes on for ever, as the crawl's `[watch]` says.
    pub watch: bool,
    /// Says whether other bytes are another page; without it, they are.
    pub judges: Option<Arc<dyn Judges>>,
    /// Who fetches besides us.
    pub others: Option<crate::hands::Others>,
    /// It is the part of one node in what many crawl together; goes on until it is stopped.
    pub share: Option<crate::sharing::Share>,
}

/// Runs a crawl until it is finished, stopped, or out of budget.
pub fn run(archive: &Arc<Archive>, run: Run, control: &Control, tell: &mut dyn FnMut(Event)) -> Result<Ending> {
    let (say, heard) = channel();
    control.begin(say.clone())?;
    let ended = Engine::begin(archive, run, say, heard, tell).and_then(|mut engine| {
        let ended = engine.work();
        engine.end(ended)
    });
    control.end();
    ended
}

/// A lease that is out.
struct Out {
    host: HostId,
    /// Entries not yet reported, with the class they came from.
    entries: HashMap<u64, Class>,
    ended: bool,
    /// Where nodes crawl together.
    slice: Option<u32>,
    /// The hash of its site, where nodes crawl together.
    site: Option<u32>,
    /// The sections of sites and hosts against whose budgets its answers count.
    counted: Vec<String>,
}

struct Engine<'t> {
    archive: Arc<Archive>,
    shared: Arc<Shared>,
    ledger: Ledger,
    schedule: Schedule,
    crawl: u16,
    pass: u16,
    hands: Vec<mpsc::UnboundedSender<Errand>>,
    threads: Vec<std::thread::JoinHandle<Result<()>>>,
    next_hand: usize,
    heard: Receiver<Said>,
    out: HashMap<LeaseId, Out>,
    out_entries: usize,
    orders: Vec<Order>,
    /// Leases for which there was nothing to fetch.
    empty: Vec<(LeaseId, HostId)>,
    /// All that was taken for one of them was refused: what waits behind it is looked at without waiting.
    refused_all: bool,
    /// Hosts whose URLs must wait for what visits under way will show.
    held: BTreeSet<registry::HostId>,
    /// When a host has a retry that is due, on the wall clock.
    retries: BTreeSet<(i64, HostId)>,
    wake_ms: Option<u64>,
    counters: Counters,
    tell: &'t mut dyn FnMut(Event),
    ending: Option<Ending>,
    /// It goes on for ever.
    watches: bool,
    spending: Option<watch::Spending>,
    /// Something is due that has not come to wait yet.
    behind: bool,
    room: bool,
    is_open: bool,
    /// The network is down, since this moment of the wall clock.
    offline: Option<i64>,
    since_checkpoint_bytes: u64,
    since_checkpoint_links: u64,
    next_checkpoint: Instant,
    next_progress: Instant,
    next_look: Instant,
    settings_seen: Option<std::time::SystemTime>,
    begun: Instant,
    trouble: Option<Error>,
    sharing: Option<share::Sharing>,
    /// Questions that take a walk, and who asked.
    inquiries: VecDeque<(Inquiry, Sender<Result<Vec<serde_json::Value>>>)>,
}

impl<'t> Engine<'t> {
    /// Every host with waiting URLs is told to the schedule.
    fn wake_hosts(&mut self) -> Result<()> {
        let counts = self.ledger.registry.counts(self.crawl);
        let name = self.shared.settings().name.clone();
        (self.tell)(Event::Began { name, pass: self.pass.into(), known: counts.known, waiting: counts.waiting });
        let mut waiting = Vec::new();
        let crawl = self.crawl;
        self.ledger.each_host(|host| {
            if host.crawl == crawl && host.waiting > 0 {
                waiting.push(host.id);
            }
        })?;
        for host in waiting {
            self.ledger.touch(host);
        }
        self.tell_waiting()
    }

    /// Hears, folds, gives, until there is nothing left to do.
    fn work(&mut self) -> Result<Ending> {
        // What earlier runs of this pass took may be all that is allowed.
        self.check_budgets();
        loop {
            self.refused_all = false;
            self.look_around()?;
            self.look_again()?;
            self.share()?;
            self.inquire();
            self.tell_waiting()?;
            self.step(Told::Tick)?;
            self.end_empty()?;
            if self.is_over()? {
                return Ok(self.ending.unwrap_or(Ending::Finished));
            }
            match self.heard.recv_timeout(self.patience_left()) {
                Ok(said) => self.hear(said)?,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Fetch("all workers have ended".into())),
            }
            // What waits already is heard before anything is given out: one look at the queues serves all of it.
            for _ in 0..HEARD_AT_ONCE {
                // Pages with very many links take long: checkpoints and progress do not wait for all of them.
                if self.is_due(Instant::now()) {
                    break;
                }
                match self.heard.try_recv() {
                    Ok(said) => self.hear(said)?,
                    Err(_) => break,
                }
            }
            if let Some(error) = self.trouble.take() {
                return Err(error);
            }
            self.tell_waiting()?;
        }
    }

    fn hear(&mut self, said: Said) -> Result<()> {
        if matches!(said, Said::Visited(_) | Said::Lost(..) | Said::Ended(_)) {
            self.let_go();
        }
        match said {
            Said::Visited(visited) => self.visited(*visited),
            Said::Lost(visited, error) => self.lost(&visited, error),
            Said::Located(lease, address) => self.located(lease, address),
            Said::Placed(host, address) => self.step(Told::Located { host, address }),
            Said::Ended(ended) => self.ended(ended),
            Said::Doubted(urls) => self.doubted(&urls),
            Said::Network => self.look_at_network(),
            Said::Ban(address, ban) => self.banned(address, ban),
            Said::Shared(shared) => self.shared(shared),
            Said::Asked(Asked::Stop) => {
                self.stop(Ending::Stopped);
                Ok(())
            }
            Said::Asked(Asked::Question(question, answer)) => {
                let settings = Settings::all(&self.archive.layout().settings());
                match settings.and_then(|settings| Inquiry::of(&question, settings)) {
                    Ok(Some(inquiry)) => self.inquiries.push_back((inquiry, answer)),
                    Ok(None) => drop(answer.send(self.answer(&question))),
                    Err(error) => drop(answer.send(Err(error))),
                }
                Ok(())
            }
        }
    }

    fn visited(&mut self, visited: Visited) -> Result<()> {
        self.since_checkpoint_bytes += visited.bytes;
        self.since_checkpoint_links += visited.links.count() as u64;
        let folded = self.ledger.visited(self.crawl, self.pass, &visited)?;
        self.pass_on();
        if self.spending.is_some() {
            let now = skep_schedule::revisit::Moment::from_ms(visited.time_ms);
            for (url, date) in &visited.hints.dates {
                self.ledger.told(self.crawl, url, visited.hints.by, *date, now)?;
            }
        }
        if let Some(entry) = visited.entry {
            self.settle_entry(visited.lease, entry);
        }
        let name = crate::rules::origin(&visited.url).to_string();
        self.counters.visited(&name, visited.outcome, visited.bytes, visited.answer_ms);
        (self.tell)(Event::Visited {
            outcome: visited.outcome.to_string(),
            bytes: visited.bytes,
            ms: visited.answer_ms,
            new_links: folded.new_links,
            url: visited.url,
        });
        self.forget_if_done(visited.lease);
        self.check_budgets();
        Ok(())
    }

    /// Whoever saw these has lied since: they wait again, in every crawl of the archive that knows them. Rules of a host that nobody else saw
    /// are asked for again.
    fn doubted(&mut self, urls: &[String]) -> Result<()> {
        let folder = self.archive.layout().settings();
        let all = Settings::all(&folder)?;
        self.shared.robots.doubt_all(urls, &folder, skep_archive::system_clock())?;
        for url in urls {
            let known_as = crate::canonical::canonical(url);
            for crawl in all.iter().map(|settings| settings.number) {
                let Some(entry) = self.ledger.registry.known(crawl, &known_as)? else { continue };
                // Those of other crawls wait until these go on.
                if self.ledger.registry.look_again(entry)? && crawl == self.crawl {
                    let host = self.ledger.registry.host_of(entry)?;
                    self.ledger.touch(host);
                }
            }
        }
        Ok(())
    }

    /// A visit whose records could not be kept did not happen: its URL waits again.
    fn lost(&mut self, visited: &Visited, error: Error) -> Result<()> {
        if let Some(entry) = visited.entry {
            let class = self.settle_entry(visited.lease, entry).unwrap_or(Class::Page);
            self.ledger.registry.give_back(entry, class, None)?;
            self.ledger.not_visited(entry)?;
            if let Some(out) = self.out.get(&visited.lease) {
                self.ledger.touch(registry::HostId(out.host.0));
            }
            self.forget_if_done(visited.lease);
        }
        match error {
            Error::Archive(skep_archive::Error::DiskFull { .. }) => self.set_room(false)?,
            // It is fetched again, until somebody else has seen it, too: what others have copies of is for all eyes.
            Error::Archive(skep_archive::Error::Private) => {}
            error => {
                self.trouble.get_or_insert(error);
            }
        }
        Ok(())
    }

    fn located(&mut self, lease: LeaseId, address: AddressKey) -> Result<()> {
        match self.out.get(&lease).map(|out| out.host) {
            Some(host) => self.step(Told::Located { host, address }),
            None => Ok(()),
        }
    }

    fn ended(&mut self, ended: Ended) -> Result<()> {
        let Some(out) = self.out.get_mut(&ended.lease) else { return Ok(()) };
        out.ended = true;
        let host = out.host;
        let left: Vec<(u64, Class)> =
            ended.left.iter().filter_map(|entry| out.entries.remove(entry).map(|class| (*entry, class))).collect();
        self.out_entries -= left.len();
        for (entry, class) in left.into_iter().rev() {
            self.ledger.registry.give_back(entry, class, None)?;
            self.ledger.not_visited(entry)?;
        }
        self.conduct(host, |conduct| {
            if let Some(ms) = ended.crawl_delay_ms {
                conduct.crawl_delay_ms = Some(u32::try_from(ms).unwrap_or(u32::MAX));
            }
            if let Some(trouble) = ended.trouble {
                conduct.last_error = trouble.0;
                conduct.failures = conduct.failures.saturating_add(1);
            }
        })?;
        if let Some(skep_schedule::Park::Until(until_ms)) = ended.report.park {
            let site = self.ledger.registry.host(registry::HostId(host.0))?.site;
            let seconds = until_ms.saturating_sub(self.now_ms()) / 1000;
            (self.tell)(Event::Parked { site, seconds });
        }
        let waiting = self.waiting(host)?;
        let report = BundleReport { waiting, ..ended.report };
        let places = self.schedule.places();
        self.step(Told::Finished { lease: ended.lease, report })?;
        if self.schedule.places() < places && ended.trouble == Some(crate::outcome::Outcome::LOCAL_RESOURCES) {
            (self.tell)(Event::Lowered { concurrency: self.schedule.places() });
        }
        self.forget_if_done(ended.lease);
        Ok(())
    }

    fn settle_entry(&mut self, lease: LeaseId, entry: u64) -> Option<Class> {
        let class = self.out.get_mut(&lease)?.entries.remove(&entry)?;
        self.out_entries -= 1;
        Some(class)
    }

    fn forget_if_done(&mut self, lease: LeaseId) {
        if self.out.get(&lease).is_some_and(|out| out.ended && out.entries.is_empty()) {
            self.out.remove(&lease);
        }
    }

    /// URLs of a host that may be fetched now; a retry that is not due yet gets a timer.
    fn waiting(&mut self, host: HostId) -> Result<u32> {
        let known = self.ledger.registry.host(registry::HostId(host.0))?;
        if let Some(sharing) = &mut self.sharing {
            sharing.note_host(&known);
        }
        if is_spent(&self.ledger, &self.shared.settings(), &known) {
            return Ok(0);
        }
        let mut waiting = if self.leads(&known) { known.waiting } else { 0 };
        if let Some(due_ms) = known.retry_due_ms.filter(|due_ms| *due_ms > skep_archive::system_clock()) {
            waiting = waiting.saturating_sub(known.retries);
            if self.leads(&known) {
                self.retries.insert((due_ms, host));
            }
        }
        Ok(waiting)
    }

    /// Tells the schedule of every host whose queues changed.
    fn tell_waiting(&mut self) -> Result<()> {
        let due: Vec<(i64, HostId)> =
            self.retries.range(..=(skep_archive::system_clock(), HostId(u32::MAX))).copied().collect();
        for (due_ms, host) in due {
            self.retries.remove(&(due_ms, host));
            self.ledger.touch(registry::HostId(host.0));
        }
        for host in self.ledger.take_changed() {
            let known = self.ledger.registry.host(host)?;
            if known.crawl != self.crawl || known.conduct.dropped {
                continue;
            }
            let (host, site) = (HostId(host.0), site_id(&known.site));
            let urls = self.waiting(host)?;
            let pace = self.pace_of(&known);
            let settings = self.shared.settings();
            let paused = known.conduct.paused || settings.is_paused(name_of(&known.key), &known.site);
            let is_new = self.schedule.host(host).is_none();
            self.step(Told::Waiting { host, site, urls, own_pace_none: pace == Pace::None })?;
            self.step(Told::Pace { host, pace })?;
            if paused {
                self.step(Told::Pause { host })?;
            }
            // What the schedule forgot over a restart: a host's wish to be left alone, and its Crawl-delay.
            let delay_ms = known.conduct.crawl_delay_ms.map_or(0, i64::from);
            let rests_until_ms =
                known.conduct.parked_until_ms.max(known.conduct.last_visit_ms.saturating_add(delay_ms));
            let rest_ms = rests_until_ms.saturating_sub(skep_archive::system_clock());
            if is_new && rest_ms > 0 {
                let until_ms = self.now_ms() + rest_ms as u64;
                self.step(Told::Parked { site, until_ms })?;
            }
        }
        Ok(())
    }

    fn pace_of(&self, host: &registry::Host) -> Pace {
        let settings = self.shared.settings();
        let name = name_of(&host.key);
        match host.conduct.pace_ms {
            Some(ms) => Pace::allowed(Pace::Fixed(ms), settings.is_own(name)),
            None => settings.pace_of(name, &host.site).allowed(settings.is_own(name)),
        }
    }

    fn step(&mut self, event: Told) -> Result<()> {
        let mut orders = std::mem::take(&mut self.orders);
        self.schedule.step(event, self.now_ms(), &mut orders);
        for order in orders.drain(..) {
            match order {
                Order::Lease { lease, host, urls_max, pace, not_before_ms, deadline_ms } => {
                    self.lease(lease, host, urls_max, pace, not_before_ms, deadline_ms)?;
                }
                Order::Lapsed { lease, host } => self.lapsed(lease, host)?,
                Order::Locate { host } => self.locate(host)?,
                Order::GiveUp { host, why } => self.give_up(host, why)?,
                Order::Wake { at_ms } => self.wake_ms = Some(at_ms),
            }
        }
        self.orders = orders;
        Ok(())
    }

    fn conduct(&mut self, host: HostId, change: impl FnOnce(&mut registry::Conduct)) -> Result<()> {
        Ok(self.ledger.registry.update_host(registry::HostId(host.0), change)?)
    }

    fn stop(&mut self, ending: Ending) {
        if self.ending.is_none() {
            self.ending = Some(ending);
            self.shared.stop();
            let mut orders = Vec::new();
            self.schedule.step(Told::Stop, self.now_ms(), &mut orders);
        }
    }

    fn is_over(&mut self) -> Result<bool> {
        if self.out_entries > 0 || !self.out.is_empty() {
            return Ok(false);
        }
        if self.ending.is_some() || self.watches || self.sharing.is_some() {
            return Ok(self.ending.is_some());
        }
        if let Some(until_ms) = self.parked_for_long()? {
            self.stop(Ending::Parked(until_ms));
            return Ok(true);
        }
        Ok(self.schedule.is_idle()
            && self.retries.is_empty()
            && self.ledger.registry.counts(self.crawl).waiting == self.held_back()?)
    }

    /// All that is left waits at sites that asked to be left alone, for longer than a run waits: until when, on the wall clock.
    fn parked_for_long(&mut self) -> Result<Option<i64>> {
        let now_ms = self.now_ms();
        let far_ms = now_ms + PARK_WAIT_MS_MAX;
        let wall_ms = skep_archive::system_clock();
        let soon = |(due_ms, _): &(i64, HostId)| *due_ms <= wall_ms + PARK_WAIT_MS_MAX as i64;
        // Most looks end here: something is to be done within the hour.
        if self.wake_ms.is_none_or(|wake_ms| wake_ms <= far_ms) || self.retries.first().is_some_and(soon) {
            return Ok(None);
        }
        let mut until_ms = None;
        let mut others = false;
        let (crawl, schedule) = (self.crawl, &self.schedule);
        self.ledger.each_host(|host| {
            if host.crawl == crawl && host.waiting > 0 {
                // What a spent budget holds back is not told to the schedule.
                let view = schedule.host(HostId(host.id.0)).filter(|view| view.waiting > 0);
                match view.map(|view| view.standing) {
                    Some(Standing::Parked { until_ms: parked_ms }) if parked_ms > far_ms => {
                        until_ms = Some(until_ms.map_or(parked_ms, |first: u64| first.min(parked_ms)));
                    }
                    Some(Standing::Paused) | None => {}
                    Some(_) => others = true,
                }
            }
        })?;
        Ok(until_ms.filter(|_| !others).map(|until_ms| wall_ms + (until_ms - now_ms) as i64))
    }

    /// URLs that wait at hosts which somebody paused, or whose budget is spent: the crawl does not wait for them.
    fn held_back(&mut self) -> Result<u64> {
        let settings = self.shared.settings();
        let crawl = self.crawl;
        if self.ledger.registry.counts(crawl).waiting == 0 {
            return Ok(0);
        }
        let (mut held, mut bounded) = (0, Vec::new());
        self.ledger.each_host(|host| {
            let name = name_of(&host.key);
            let paused = host.conduct.paused || host.conduct.dropped || settings.is_paused(name, &host.site);
            if host.crawl == crawl && paused {
                held += u64::from(host.waiting);
            } else if host.crawl == crawl && host.waiting > 0 && settings.bounded(name, &host.site).next().is_some() {
                bounded.push(host.clone());
            }
        })?;
        let spent = bounded.iter().filter(|host| is_spent(&self.ledger, &settings, host));
        Ok(held + spent.map(|host| u64::from(host.waiting)).sum::<u64>())
    }

    /// Takes a step towards the answer of a question. Those who asked and left are not told.
    fn inquire(&mut self) {
        let Some((mut inquiry, answer)) = self.inquiries.pop_front() else { return };
        match inquiry.step(&mut self.ledger, Some(&self.schedule)) {
            Ok(Step::More) => self.inquiries.push_front((inquiry, answer)),
            Ok(Step::Told(told)) => drop(answer.send(Ok(told))),
            Ok(Step::Records(broken)) => {
                let archive = self.archive.clone();
                std::thread::spawn(move || drop(answer.send(broken.told(&archive))));
            }
            Err(error) => drop(answer.send(Err(error))),
        }
    }

    fn answer(&mut self, question: &Question) -> Result<Vec<serde_json::Value>> {
        if let Question::Set { host, change } = question {
            return self.set(host, change);
        }
        if *question == Question::Reread {
            self.look_at_settings()?;
            return Ok(vec![serde_json::json!({ "crawl": self.shared.settings().name })]);
        }
        crate::answers::answer(&mut self.ledger, &self.archive, question)
    }

    fn set(&mut self, host: &str, change: &Change) -> Result<Vec<serde_json::Value>> {
        let settings = self.shared.settings();
        let changed = crate::answers::set(&mut self.ledger, self.crawl, &settings, host, change)?;
        for id in &changed {
            let host = HostId(id.0);
            match change {
                Change::Pause => self.step(Told::Pause { host })?,
                Change::Resume => self.step(Told::Resume { host })?,
                Change::Drop => self.step(Told::Drop { host })?,
                Change::Pace(_) => {}
            }
            self.ledger.touch(*id);
        }
        self.checkpoint()?;
        Ok(vec![serde_json::json!({ "host": host, "changed": changed.len() })])
    }

    fn now_ms(&self) -> u64 {
        self.shared.elapsed_ms()
    }

    /// How long there is nothing to do unless somebody says something.
    fn patience_left(&self) -> Duration {
        if self.refused_all || !self.inquiries.is_empty() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let mut left = self.next_progress.min(self.next_checkpoint).min(self.next_look).saturating_duration_since(now);
        if let Some(wake_ms) = self.wake_ms {
            left = left.min(Duration::from_millis(wake_ms.saturating_sub(self.now_ms()).max(1)));
        }
        if let Some((due_ms, _)) = self.retries.first() {
            let wait = due_ms.saturating_sub(skep_archive::system_clock()).max(1);
            left = left.min(Duration::from_millis(wait as u64));
        }
        left.min(self.watch_patience()).min(self.share_patience())
    }

    /// Lets the workers end, keeps what is known, and says how the pass stands.
    fn end(mut self, ended: Result<Ending>) -> Result<Ending> {
        // Also when it ends in trouble: nobody is there any more to whom a lease could be given.
        self.stop(Ending::Stopped);
        self.shared.stop();
        self.hands.clear();
        self.stop_sharing();
        for thread in std::mem::take(&mut self.threads) {
            if thread.join().is_err() {
                self.trouble.get_or_insert(Error::Fetch("a worker panicked".into()));
            }
        }
        // Everything synced is folded, also when the crawl ends in trouble. Where that cannot be done, the others hear all the same that this
        // node visits nothing any more.
        let mut folded = Ok(());
        while folded.is_ok()
            && let Ok(said) = self.heard.try_recv()
        {
            folded = self.hear(said);
        }
        for (inquiry, answer) in std::mem::take(&mut self.inquiries) {
            drop(answer.send(inquiry.answered(&mut self.ledger, &self.archive)));
        }
        self.part();
        let ending = ended?;
        folded?;
        self.checkpoint()?;
        if ending == Ending::Finished {
            let folder = self.archive.layout().settings();
            let settings = Settings::clone(&self.shared.settings());
            let pass = Pass { ended_ms: Some(skep_archive::system_clock()), ..settings.pass };
            Settings { pass, ..settings }.store(&folder)?;
        }
        let progress = self.progress();
        (self.tell)(Event::Progress(progress));
        match self.trouble.take() {
            Some(error) => Err(error),
            None => Ok(ending),
        }
    }
}

/// A budget of the host or its site is spent: what waits there waits for a larger one, or for the next pass.
pub(crate) fn is_spent(ledger: &Ledger, settings: &Settings, host: &registry::Host) -> bool {
    settings.bounded(name_of(&host.key), &host.site).any(|(name, section)| {
        let spent = ledger.spent(host.crawl, name);
        section.pages.is_some_and(|pages| spent.pages >= pages)
            || section.bytes.is_some_and(|bytes| spent.bytes >= bytes)
    })
}

/// Reports heard before the schedule is asked again.
const HEARD_AT_ONCE: usize = 512;
