//! The whole way of a link: from the outbox of an engine in one process over QUIC to the engine of a node in another, where it is looked up,
//! recorded and synced, copied by a majority of the holders, acknowledged, and known.
//!
//! ```text
//!  this process                                                                        another process
//!  two nodes: engine, outbox ──▶ shell, codec ══ QUIC ══▶ shell, sender's budget ──▶ one node: engine, registry, traps
//!       ▲      follow: copy what is synced ◀═══════════════ archive: heard record, sync ◀──┘
//!       └─────────────────────── acknowledged ◀═══════════ a majority of three has it
//! ```
//! Nothing is fetched: whatever is heard of waits at sites that are paused.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use skep_archive::{Archive, OpenOptions};
use skep_crawl::sharing::{self, Leading, Outlet, Share};
use skep_crawl::{Control, Event, Reach, Run, Settings, SiteSettings};
use skep_ring::links::{Batch, Link, is_link};
use skep_ring::message::Politeness;
use skep_ring::shell::membership::{Founding, Newcomer};
use skep_ring::shell::{Back, Membership, Parts, Running, Shell, Taken, Work};
use skep_ring::ticket::Ticket;
use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Ed25519, Hash, Key, Seal, Slice, Wire};
use skep_url::{Part, Suffixes, Url};

use super::Failed;

const BITS: u8 = 4;
/// With the one that takes links in, as many nodes as copies: each follows it.
const SENDERS: u8 = 2;
const CRAWL: &str = "docs";
const SEED: &str = "http://seed.example/";
/// The file that names the sites of all links, for both processes.
const SITES: &str = "sites";
/// The thread of an engine, as the system names it.
const ENGINE: &str = "engine";
const SETTLED_MAX: Duration = Duration::from_secs(240);
const SILENT_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many links, none twice: the same again on sites of other names, because a crawl of this size has too few of them.
pub fn many(links: &[Link], count: usize) -> Vec<Link> {
    let suffixes = Suffixes::compiled();
    let (mut known, mut all) = (HashSet::new(), Vec::with_capacity(count));
    for copy in 0.. {
        let before = all.len();
        for link in links {
            if all.len() == count {
                return all;
            }
            let Some(url) = renamed(&link.url, copy, &suffixes) else { continue };
            if is_link(&url) && Url::parse(&url).is_ok() && known.insert(url.clone()) {
                all.push(Link { url, ..link.clone() });
            }
        }
        if all.len() == before {
            break;
        }
    }
    all
}

/// The same URL on a site of another name.
fn renamed(url: &str, copy: u32, suffixes: &Suffixes) -> Option<String> {
    let parsed = Url::parse(url).ok()?;
    if copy == 0 {
        return Some(url.to_owned());
    }
    let is_address = parsed.host_name().starts_with('[') || parsed.host_name().parse::<std::net::IpAddr>().is_ok();
    let host_at = url.find("://")? + 3;
    let site_at = host_at + url[host_at..].find(parsed.site(suffixes, Part::Whole))?;
    (!is_address).then(|| format!("{}c{copy}-{}", &url[..site_at], &url[site_at..]))
}

/// Between a node and its engine, as the program has it.
struct Between {
    leading: Arc<Leading>,
    control: Control,
    shell: OnceLock<Weak<Shell>>,
    leases: Mutex<HashMap<Slice, (Instant, Vec<Vec<u8>>)>>,
    tally: Option<Arc<Tally>>,
}

impl Between {
    fn shell(&self) -> Option<Arc<Shell>> {
        self.shell.get().and_then(Weak::upgrade)
    }

    /// The engine hears now.
    fn began(&self) {
        for (slice, (until, politeness)) in &*lock(&self.leases) {
            self.control.lead(*slice, *until, Some(politeness.clone()));
        }
    }
}

impl Work for Between {
    fn lead(&self, slice: Slice, until: Instant, politeness: Option<Vec<Politeness>>) {
        let politeness: Option<Vec<Vec<u8>>> = politeness.map(|all| all.iter().map(|one| one.to_vec()).collect());
        match &politeness {
            Some(politeness) => {
                self.leading.offer(slice);
                lock(&self.leases).insert(slice, (until, politeness.clone()));
            }
            None => {
                if let Some(lease) = lock(&self.leases).get_mut(&slice) {
                    lease.0 = until;
                }
                self.leading.renew(slice, until);
            }
        }
        self.control.lead(slice, until, politeness);
    }

    fn stop(&self, slice: Slice) -> bool {
        self.leading.stop(slice);
        lock(&self.leases).remove(&slice).is_some() && self.control.stop_leading(slice)
    }

    fn links(&self, _: Key, batch: Batch, back: Back) {
        let heard = batch.links.into_iter().map(|link| sharing::Link {
            url: link.url,
            depth: link.depth,
            needed: link.needed,
            site: link.site.and_then(sharing::Referrer::from_bit),
            gone: link.gone,
        });
        let back = move |taken| back(Taken { taken, leaders: Vec::new() });
        self.control.hear(heard.collect(), Box::new(back));
    }

    fn instructed(&self, _: &[Arc<skep_ring::instruction::SignedInstruction>]) {}

    fn answer(&self, _: &str, _: &[Slice]) -> Result<Vec<u8>, String> {
        Err("nobody asks here".into())
    }

    fn note(&self, _: &skep_ring::node::Note) {}
}

/// The way of an engine to the others.
struct Way(Arc<Between>);

impl Outlet for Way {
    fn leader(&self, slice: u32) -> Option<sharing::Node> {
        let shell = self.0.shell()?;
        shell.leader(slice).filter(|leader| *leader != shell.key()).map(|leader| leader.0)
    }

    fn send(&self, crawl: &str, to: sharing::Node, links: Vec<sharing::Link>, back: sharing::Back) {
        let (Some(shell), Some(tally)) = (self.0.shell(), self.0.tally.clone()) else { return back(false) };
        let count = links.len() as u64;
        let told = links.into_iter().map(|link| Link {
            url: link.url,
            depth: link.depth,
            needed: link.needed,
            gone: link.gone,
            site: link.site.map(sharing::Referrer::bit),
        });
        let batch = Batch { crawl: crawl.to_owned(), links: told.collect() };
        tally.begin();
        std::thread::spawn(move || {
            let begun = Instant::now();
            let safe = shell.send_links(Key(to), batch);
            tally.settled(count, begun.elapsed(), safe);
            back(safe);
        });
    }

    fn polite(&self, slice: u32, politeness: Vec<u8>, out: bool) {
        if let Some(shell) = self.0.shell() {
            shell.polite(slice, politeness, out);
        }
    }

    fn give_up(&self, slice: u32) {
        if let Some(shell) = self.0.shell() {
            shell.decline(slice);
        }
    }
}

/// One node, and the engine that it will have.
struct Node {
    running: Running,
    archive: Arc<Archive>,
    between: Arc<Between>,
    _ears: Arc<dyn Ears>,
}

impl Node {
    fn start(
        membership: Membership,
        secret: [u8; 32],
        folder: &Path,
        wire: Arc<Quic>,
        facts: Vec<skep_ring::fact::Fact>,
        tally: Option<Arc<Tally>>,
    ) -> Result<Node, Failed> {
        let options = OpenOptions { bits: BITS, secret: Some(secret), copies: true, ..OpenOptions::create() };
        let archive = Arc::new(Archive::open(folder, options)?);
        sharing::share(&archive.layout().settings(), [7; 32], BITS)?;
        let between = Arc::new(Between {
            leading: Arc::new(Leading::new(BITS)),
            control: Control::default(),
            shell: OnceLock::new(),
            leases: Mutex::default(),
            tally,
        });
        let (way, work) = (wire.clone() as Arc<dyn Wire>, between.clone() as Arc<dyn Work>);
        let (portal, relay) = (None, None);
        let kept = archive.clone();
        let running = Shell::start(Parts { membership, secret, archive: kept, wire: way, work, facts, portal, relay })?;
        let _once = between.shell.set(Arc::downgrade(&running.shell));
        let ears = running.ears();
        wire.listen(&ears);
        Ok(Node { running, archive, between, _ears: ears })
    }

    /// The engine runs until it is stopped; says how many URLs it knows then.
    fn crawl(&self, settings: Settings) -> std::io::Result<JoinHandle<Result<u64, String>>> {
        let (between, archive) = (self.between.clone(), self.archive.clone());
        std::thread::Builder::new().name(ENGINE.into()).spawn(move || {
            let mut fetch = skep_fetch::Settings::new("skep-bench");
            // Nobody is there: no name is asked for outside of this machine.
            fetch.name_servers = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
            let share = Share { leading: between.leading.clone(), outlet: Arc::new(Way(between.clone())) };
            let run = Run {
                settings,
                fetch,
                cookies: Default::default(),
                workers: 1,
                patience: Default::default(),
                watch: false,
                judges: None,
                others: None,
                share: Some(share),
            };
            let mut known = 0;
            let ended = skep_crawl::run(&archive, run, &between.control, &mut |event| match event {
                Event::Began { .. } => between.began(),
                Event::Progress(progress) => known = progress.known,
                _ => {}
            });
            ended.map(|_| known).map_err(|error| error.to_string())
        })
    }

    fn end(self, engine: JoinHandle<Result<u64, String>>) -> Result<u64, Failed> {
        self.between.control.stop();
        let known = engine.join().map_err(|_| "an engine panicked")?;
        self.running.stop();
        Ok(known?)
    }
}

/// The crawl as all three have it: everything belongs to it, and every site is paused.
fn settings(folder: &Path) -> Result<Settings, Failed> {
    let sites = std::fs::read_to_string(folder.join(SITES))?;
    let paused = |site: &str| (site.to_owned(), SiteSettings { pause: true, ..SiteSettings::default() });
    Ok(Settings {
        name: CRAWL.into(),
        seeds: vec![SEED.into()],
        scope: Reach::All,
        site: sites.lines().map(paused).collect(),
        ..Settings::default()
    })
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn newcomer() -> Newcomer {
    Newcomer { capacity_gb: 1000, zone: String::new(), listen: anywhere(), relays: Vec::new() }
}

fn now_ms() -> u64 {
    skep_archive::system_clock() as u64
}

fn until(what: &str, so: impl Fn() -> bool) -> Result<(), Failed> {
    let since = Instant::now();
    while !so() {
        if since.elapsed() > SETTLED_MAX {
            return Err(format!("never {what}").into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// The other process: makes a network and leads all of it; says its ticket, and that it leads once the others have joined. Takes links in until its
/// input ends, and then says how many URLs it knows.
pub fn receive(folder: &Path) -> Result<(), Failed> {
    let (secret, owner) = ([1; 32], Ed25519::from_secret(&[9; 32]));
    // Leases are long: nobody hands over while it is measured.
    let times = [("rank", 100), ("answer", 500), ("compare", 1_000), ("ping", 1_000), ("silence", 30_000)];
    let times = times.into_iter().map(|(name, ms)| (name.to_owned(), ms)).collect();
    let copies = 1 + SENDERS;
    let founding = Founding { name: "bench".into(), slice_bits: BITS, copies, suffixes: Hash::default(), times };
    let key = Ed25519::from_secret(&secret).key();
    let membership = Membership::found(founding, &newcomer(), key, &owner, [5; 32], now_ms())?;
    let wire = Quic::bind(&secret, anywhere(), &[])?;
    let there = vec![(wire.key(), wire.addresses()[0])];
    let ticket = membership.invite(&owner, [8; 32], u32::from(SENDERS), now_ms() + 600_000, there)?;
    let node = Node::start(membership, secret, &folder.join("receiver"), wire, Vec::new(), None)?;
    let engine = node.crawl(settings(folder)?)?;
    node.running.shell.want(true);
    println!("{}", ticket.to_text());
    let mut said = std::io::stdin().lines();
    said.next().ok_or("nobody joined")??;
    until("led by the first node, with three holders everywhere", || {
        let leading = &node.between.leading;
        node.running.shell.status().settled && (0..1 << BITS).all(|slice| leading.may(slice))
    })?;
    println!("ready");
    while said.next().is_some() {}
    println!("{}", node.end(engine)?);
    Ok(())
}

/// The other process, while this one needs it.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _status = self.0.wait();
    }
}

/// What processes have taken of the machine so far, in seconds: all of their threads, and their engines alone.
#[derive(Clone, Copy, Default)]
struct Used {
    all: f64,
    engines: f64,
}

impl Used {
    fn by(process: u32) -> Option<Used> {
        let process = Path::new("/proc").join(process.to_string());
        let stat = std::fs::read_to_string(process.join("stat")).ok()?;
        let words: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |at: usize| words.get(at)?.parse::<f64>().ok();
        let mut used = Used { all: (ticks(11)? + ticks(12)?) / 100.0, engines: 0.0 };
        for thread in std::fs::read_dir(process.join("task")).ok()? {
            let thread = thread.ok()?.path();
            // It may have ended since.
            let Ok(name) = std::fs::read_to_string(thread.join("comm")) else { continue };
            if name.trim() == ENGINE {
                let taken = std::fs::read_to_string(thread.join("schedstat")).ok()?;
                used.engines += taken.split(' ').next()?.parse::<f64>().ok()? / 1e9;
            }
        }
        Some(used)
    }
}

/// A moment, and what this process and the other had taken by then.
type Mark = (Instant, [Option<Used>; 2]);

/// What became of links, from the first batch that went out to the last that is safe.
struct Tally {
    expected: u64,
    processes: [u32; 2],
    state: Mutex<Counted>,
    changed: Condvar,
}

#[derive(Default)]
struct Counted {
    begun: Option<Mark>,
    ended: Option<Mark>,
    safe: u64,
    batches: u64,
    again: u64,
    waited: Duration,
}

impl Tally {
    fn mark(&self) -> Mark {
        (Instant::now(), self.processes.map(Used::by))
    }

    fn begin(&self) {
        lock(&self.state).begun.get_or_insert_with(|| self.mark());
    }

    fn settled(&self, links: u64, waited: Duration, safe: bool) {
        let mut state = lock(&self.state);
        if safe {
            state.safe += links;
            state.batches += 1;
            state.waited += waited;
        } else {
            state.again += 1;
        }
        if state.safe >= self.expected && state.ended.is_none() {
            state.ended = Some(self.mark());
        }
        self.changed.notify_all();
    }

    /// Until all of them are safe.
    fn wait(&self) -> Result<MutexGuard<'_, Counted>, Failed> {
        let mut state = lock(&self.state);
        while state.ended.is_none() {
            let before = state.safe;
            let same = |state: &mut Counted| state.ended.is_none() && state.safe == before;
            let waited = self.changed.wait_timeout_while(state, SILENT_MAX, same);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.ended.is_none() && state.safe == before {
                let said = format!("{before} of {} links are acknowledged, and then none for a minute", self.expected);
                return Err(said.into());
            }
        }
        Ok(state)
    }
}

/// Forwards links, half of them from each of two nodes, to the one that leads all of their slices. The files are beside the archive: what is synced
/// is synced to that disk.
pub fn forward(archive: &Path, links: &[Link], figures: &mut BTreeMap<String, f64>) -> Result<(), Failed> {
    let folder = tempfile::tempdir_in(archive.parent().unwrap_or(archive))?;
    let suffixes = Suffixes::compiled();
    let urls = links.iter().map(|link| link.url.as_str()).chain([SEED]);
    let sites = urls.filter_map(|url| Some(Url::parse(url).ok()?.site(&suffixes, Part::Whole).to_owned()));
    let sites: BTreeSet<String> = sites.collect();
    std::fs::write(folder.path().join(SITES), sites.iter().map(|site| format!("{site}\n")).collect::<String>())?;
    let mut receive = Command::new(std::env::current_exe()?);
    receive.arg("receive").arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut receiver = Receiver(receive.spawn()?);
    let mut tell = receiver.0.stdin.take().ok_or("no way to the other process")?;
    let mut said = BufReader::new(receiver.0.stdout.take().ok_or("no way from the other process")?).lines();
    let mut hear = || -> Result<String, Failed> { Ok(said.next().ok_or("the other process ended")??) };

    let ticket = Ticket::parse(&hear()?)?;
    let expected = links.len() as u64;
    let processes = [std::process::id(), receiver.0.id()];
    let tally = Arc::new(Tally { expected, processes, state: Mutex::default(), changed: Condvar::new() });
    let mut nodes = Vec::new();
    for number in 0..SENDERS {
        let secret = [2 + number; 32];
        let (node, owner) = (Ed25519::from_secret(&secret), Ed25519::from_secret(&[20 + number; 32]));
        let wire = Quic::bind(&secret, anywhere(), &[])?;
        let (membership, facts) = Membership::join(&ticket, &newcomer(), &node, &owner, &*wire as &dyn Wire, now_ms())?;
        let home = folder.path().join(format!("sender-{number}"));
        let node = Node::start(membership, secret, &home, wire, facts, Some(tally.clone()))?;
        // What an engine finds there when it begins goes on its way as links of pages do.
        let views = node.archive.layout().views();
        std::fs::create_dir_all(&views)?;
        let mut outbox = std::io::BufWriter::new(std::fs::File::create(views.join("outbox"))?);
        for link in links.iter().skip(usize::from(number)).step_by(usize::from(SENDERS)) {
            writeln!(outbox, "{} {} {}", link.depth, u8::from(link.needed), link.url)?;
        }
        outbox.flush()?;
        nodes.push(node);
    }
    writeln!(tell, "joined")?;
    hear()?;
    until("settled, as the senders see it", || nodes.iter().all(|node| node.running.shell.status().settled))?;
    let mut engines = Vec::new();
    for node in &nodes {
        engines.push(node.crawl(settings(folder.path())?)?);
    }
    let (begun, ended) = {
        let state = tally.wait()?;
        figures.insert("way_links".into(), state.safe as f64);
        figures.insert("way_batches".into(), state.batches as f64);
        figures.insert("way_again".into(), state.again as f64);
        figures.insert("way_batch_ms".into(), state.waited.as_secs_f64() * 1e3 / state.batches.max(1) as f64);
        (state.begun, state.ended)
    };
    let ((since, before), (at, after)) = begun.zip(ended).ok_or("nothing went out")?;
    figures.insert("way_s".into(), at.duration_since(since).as_secs_f64());
    for (name, (before, after)) in ["send", "receive"].into_iter().zip(before.into_iter().zip(after)) {
        let (before, after) = before.zip(after).ok_or("the system does not say what a process takes")?;
        figures.insert(format!("way_{name}_cpu_s"), after.all - before.all);
        figures.insert(format!("way_{name}_engine_s"), after.engines - before.engines);
    }
    for (node, engine) in nodes.into_iter().zip(engines) {
        node.end(engine)?;
    }
    drop(tell);
    figures.insert("way_known".into(), hear()?.parse()?);
    Ok(())
}
