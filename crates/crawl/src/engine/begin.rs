//! How a run begins: the crawl gets its number and its pass, the registry is brought up to date, seeds are heard, workers start.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use skep_archive::Archive;
use skep_schedule::{Config, Schedule};
use tokio::sync::mpsc;

use super::share::Sharing;
use super::{Engine, Run};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::limits::{BUNDLE_URLS_MAX, CHECKPOINT_MS, FILES_RESERVED, HEARD_URLS_MAX, PROGRESS_MS};
use crate::progress::{Counters, Event};
use crate::registry_key::RegistryKey;
use crate::settings::Settings;
use crate::sharing;
use crate::worker::{self, Said, Shared};

impl<'t> Engine<'t> {
    pub(super) fn begin(
        archive: &Arc<Archive>,
        run: Run,
        say: Sender<Said>,
        heard: Receiver<Said>,
        tell: &'t mut dyn FnMut(Event),
    ) -> Result<Engine<'t>> {
        let folder = archive.layout().settings();
        let key = RegistryKey::load(&folder)?;
        let settings = number(run.settings, &folder)?;
        settings.check()?;
        settings.store(&folder)?;
        let mut ledger = Ledger::open(archive, &key, run.patience)?;
        if ledger.crossing.is_some() != run.share.is_some() {
            let what = match run.share.is_some() {
                true => "this archive is not that of a node",
                false => "this archive is that of a node: what it crawls, it crawls with its network",
            };
            return Err(Error::Settings { what: what.into() });
        }
        let sharing = run.share.map(|share| Sharing::begin(share, say.clone(), archive)).transpose()?;
        let settings = begin_pass(settings, &folder, &mut ledger, run.watch)?;
        let (crawl, pass) = (settings.number, settings.pass.number.min(u32::from(u16::MAX)) as u16);
        let settings = Arc::new(settings);
        ledger.set_rules(settings.clone())?;
        if sharing.is_none() {
            hear_seeds(archive, &mut ledger, &settings)?;
        }
        let fetch = Arc::new(run.fetch);
        let dns = skep_fetch::Dns::new(&fetch).map_err(|error| Error::Fetch(error.to_string()))?;
        let zero = tokio::time::Instant::now();
        let shared = Arc::new(Shared {
            archive: archive.clone(),
            remembered: crate::remembered::Remembered::new(archive.clone()),
            robots: crate::robots::Robots::open(&folder)?,
            clocks: crate::clocks::Clocks::default(),
            soft: crate::soft::Soft::new(archive.clone()),
            network: crate::network::Network::new(run.patience.scale_permille),
            settings: std::sync::Mutex::new(settings.clone()),
            fetch,
            dns: Arc::new(dns),
            cookies: run.cookies,
            judges: run.judges,
            again: pass > 1 || run.watch,
            zero,
            key,
            backoff_ms: skep_schedule::limits::BACKOFF_MS_MIN * u64::from(run.patience.scale_permille) / 1_000,
            others: run.others,
            leading: sharing.as_ref().map(Sharing::leading),
            outlet: sharing.as_ref().map(Sharing::outlet),
            stopping: false.into(),
            names: Default::default(),
            hears_again: false.into(),
        });
        let mut hands = Vec::new();
        let mut threads = Vec::new();
        for number in 0..run.workers.max(1) {
            let (give, take) = mpsc::unbounded_channel();
            let (shared, say) = (shared.clone(), say.clone());
            let thread = std::thread::Builder::new()
                .name(format!("skep-fetch-{number}"))
                .spawn(move || worker::run(shared, take, say));
            threads.push(thread.map_err(|error| Error::Fetch(format!("no thread for a worker: {error}")))?);
            hands.push(give);
        }
        let places = places();
        let config = Config {
            concurrency: settings.concurrency.min(places),
            own_concurrency: settings.concurrency.min(places),
            bundle_urls_max: BUNDLE_URLS_MAX,
            late_ms: shared.fetch.limits.exchange_ms_max(),
            pace: settings.pace.allowed(false),
            locate_first: true,
            backoff_permille: run.patience.scale_permille,
            ..Config::default()
        };
        let now = Instant::now();
        let mut engine = Engine {
            archive: archive.clone(),
            shared,
            ledger,
            schedule: Schedule::new(config),
            crawl,
            pass,
            hands,
            threads,
            next_hand: 0,
            heard,
            out: HashMap::new(),
            out_entries: 0,
            orders: Vec::new(),
            empty: Vec::new(),
            refused_all: false,
            held: BTreeSet::new(),
            retries: BTreeSet::new(),
            wake_ms: None,
            counters: Counters::default(),
            tell,
            ending: None,
            watches: run.watch,
            spending: None,
            behind: false,
            room: true,
            is_open: true,
            offline: None,
            since_checkpoint_bytes: 0,
            since_checkpoint_links: 0,
            next_checkpoint: now + Duration::from_millis(CHECKPOINT_MS),
            next_progress: now + Duration::from_millis(PROGRESS_MS),
            next_look: now,
            settings_seen: None,
            begun: now,
            trouble: None,
            inquiries: VecDeque::new(),
            sharing,
        };
        engine.judge_again()?;
        engine.begin_watch();
        engine.wake_hosts()?;
        Ok(engine)
    }
}

/// Bundles for which there are descriptors: a connection and a file each, beside what archive, registry and look-ups need.
pub(super) fn places() -> u32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    u32::try_from(limit.saturating_sub(FILES_RESERVED) / 2).unwrap_or(u32::MAX).max(1)
}

/// Gives a new crawl its number; one that is known keeps its number and its pass.
pub(crate) fn number(mut settings: Settings, folder: &Path) -> Result<Settings> {
    let all = Settings::all(folder)?;
    if sharing::shared_bits(folder)?.is_some() {
        let number = sharing::number_of(&settings.name);
        if let Some(other) = all.iter().find(|known| known.number == number && known.name != settings.name) {
            let what = format!("this network crawls {} under the same number: choose another name", other.name);
            return Err(Error::Settings { what });
        }
        let known = all.into_iter().find(|known| known.name == settings.name);
        (settings.number, settings.pass) = (number, known.map(|known| known.pass).unwrap_or_default());
        return Ok(settings);
    }
    match all.iter().find(|known| known.name == settings.name) {
        Some(known) => (settings.number, settings.pass) = (known.number, known.pass.clone()),
        None => {
            let last = all.iter().map(|known| known.number).max().unwrap_or(0);
            settings.number = last
                .checked_add(1)
                .ok_or(Error::Settings { what: "this archive has no room for another crawl".into() })?;
        }
    }
    Ok(settings)
}

/// A crawl that was finished begins its next pass; one that was not goes on.
fn begin_pass(mut settings: Settings, folder: &Path, ledger: &mut Ledger, watch: bool) -> Result<Settings> {
    // What is watched has no passes: the schedule says when each page is looked at again.
    if watch && settings.pass.number > 0 && settings.pass.ended_ms.take().is_some() {
        settings.store(folder)?;
    }
    if settings.pass.number == 0 || settings.pass.ended_ms.is_some() {
        settings.pass = settings.pass.next(skep_archive::system_clock());
        settings.store(folder)?;
    }
    let pass = settings.pass.number.min(u32::from(u16::MAX)) as u16;
    // The pass of the registry follows that of the settings, also when a crash came between the two.
    if ledger.reach_pass(settings.number, pass)? {
        ledger.checkpoint()?;
    }
    Ok(settings)
}

/// Seeds that nobody heard of yet are recorded and queued.
fn hear_seeds(archive: &Archive, ledger: &mut Ledger, settings: &Settings) -> Result<()> {
    let mut new = Vec::new();
    for seed in &settings.seeds {
        let url = skep_url::Url::parse(seed)
            .map_err(|error| Error::Settings { what: format!("`{seed}` is no seed: {error}") })?;
        if ledger.registry.known(settings.number, &crate::canonical::canonical(url.as_str()))?.is_none() {
            new.push(url);
        }
    }
    let mut encoders =
        crate::records::Encoders::new(skep_warc::deflate::Level::new(1), archive.layout().root().to_path_buf());
    for urls in new.chunks(HEARD_URLS_MAX) {
        let mut batch = crate::heard::Batch::new(&settings.name);
        for url in urls {
            batch.put(&crate::heard::Heard { url: url.as_str(), depth: 0, class: "seed", source: None });
        }
        let hash = urls.first().map_or(0, |url| url.key().site_hash());
        let id = crate::chance::Ids::new(crate::chance::draw()?).next();
        let refused = |error| Error::Settings { what: format!("the seeds cannot be recorded: {error}") };
        let append = encoders.heard(hash, skep_archive::system_clock(), batch.finish(), id).map_err(refused)?;
        let acknowledged = archive.append(append)?.wait()?;
        for url in urls {
            ledger.seed(settings.number, url.as_str())?;
        }
        if let Some(position) = acknowledged.positions.last() {
            ledger.mark(*position);
        }
    }
    Ok(())
}
