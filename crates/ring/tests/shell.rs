//! Five nodes in one process: real archives, real machines, and a wire in memory that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_archive::captures::{Match, Place, Query};
use skep_archive::runs::Direction;
use skep_archive::{Append, Archive, Capture, Encoded, Key as UrlKey, OpenOptions};
use skep_ring::instruction::{SignedInstruction, What};
use skep_ring::key::Seal;
use skep_ring::links::Batch;
use skep_ring::message::Politeness;
use skep_ring::node::Note;
use skep_ring::shell::membership::{Founding, Newcomer};
use skep_ring::shell::{Back, Membership, Parts, Running, Shell, Status, Taken, Work};
use skep_ring::wire::memory::Hub;
use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Ed25519, Hash, Key, Slice, Wire};
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId};

const NODES: usize = 5;
const BITS: u8 = 3;
/// Nothing takes so long, unless it never happens.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a node would crawl.
#[derive(Default)]
struct Led {
    led: Mutex<BTreeMap<Slice, Instant>>,
    /// What owners told all nodes.
    told: Mutex<Vec<Arc<SignedInstruction>>>,
    /// How often what was noted.
    notes: Mutex<BTreeMap<String, u32>>,
}

impl Work for Led {
    fn lead(&self, slice: Slice, until: Instant, _: Option<Vec<Politeness>>) {
        self.led.lock().unwrap().insert(slice, until);
    }
    fn stop(&self, slice: Slice) -> bool {
        self.led.lock().unwrap().remove(&slice);
        false
    }
    fn links(&self, _: Key, _: Batch, back: Back) {
        back(Taken::default());
    }
    fn instructed(&self, instructions: &[Arc<SignedInstruction>]) {
        *self.told.lock().unwrap() = instructions.to_vec();
    }
    fn answer(&self, target: &str, slices: &[Slice]) -> Result<Vec<u8>, String> {
        Ok(format!("{target} {}", slices.len()).into_bytes())
    }
    fn note(&self, note: &Note) {
        *self.notes.lock().unwrap().entry(format!("{:?}: {}", note.what, note.why)).or_default() += 1;
    }
}

/// One node: what is on its disk, and what runs.
struct Machine {
    folder: tempfile::TempDir,
    membership: Membership,
    secret: [u8; 32],
    up: Option<(Running, Arc<Led>, Arc<dyn Ears>)>,
}

/// How nodes reach each other.
enum Way {
    Memory(Arc<Hub>),
    Quic,
}

struct World {
    way: Way,
    machines: Vec<Machine>,
    written: usize,
    removed: BTreeSet<String>,
}

/// As fast as it goes on a busy machine without calling anybody absent who is there.
fn times() -> BTreeMap<String, u64> {
    let times = [
        ("ping", 300),
        ("silence", 3_000),
        ("unseen", 6_000),
        ("compare", 500),
        ("lease", 5_000),
        ("rank", 300),
        ("recover", 13_000),
        ("repair-late", 8_000),
        ("repair-soon", 6_000),
        ("keep", 3_000),
        ("summary", 1_000),
        ("audit", 2_000),
        ("answer", 1_000),
        ("tail", 100),
    ];
    times.into_iter().map(|(name, ms)| (name.to_owned(), ms)).collect()
}

fn now_ms() -> u64 {
    skep_archive::system_clock() as u64
}

fn open(folder: &Path, secret: [u8; 32]) -> Arc<Archive> {
    let options = || OpenOptions {
        bits: BITS,
        secret: Some(secret),
        copies: true,
        disk_reserve_bytes: 0,
        segment_bytes_max: 64 << 10,
        ..OpenOptions::create()
    };
    // Who asked for something when the node before ended may still hold it for a moment.
    let since = Instant::now();
    loop {
        match Archive::open(folder, options()) {
            Err(skep_archive::Error::Locked { .. }) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return Arc::new(opened.unwrap()),
        }
    }
}

fn newcomer(listen: SocketAddr) -> Newcomer {
    Newcomer { capacity_gb: 1000, zone: String::new(), listen, relays: Vec::new() }
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

impl World {
    /// A network with its first node.
    fn new(way: Way) -> World {
        let owner = Ed25519::from_secret(&[200; 32]);
        let secret = [1; 32];
        let founding =
            Founding { name: "test".into(), slice_bits: BITS, copies: 3, suffixes: Hash([0; 32]), times: times() };
        let node = Ed25519::from_secret(&secret).key();
        let membership = Membership::found(founding, &newcomer(anywhere()), node, &owner, [7; 32], now_ms()).unwrap();
        let mut world = World { way, machines: Vec::new(), written: 0, removed: BTreeSet::new() };
        world.machines.push(Machine { folder: tempfile::tempdir().unwrap(), membership, secret, up: None });
        world.start(0, Vec::new());
        world
    }

    fn wire(&self, secret: [u8; 32], listen: SocketAddr) -> (Arc<dyn Wire>, Option<Arc<Quic>>) {
        match &self.way {
            Way::Memory(hub) => (hub.wire(Ed25519::from_secret(&secret).key()), None),
            Way::Quic => {
                // The socket of the node before is free when all its threads have ended.
                let since = Instant::now();
                let wire = loop {
                    match Quic::bind(&secret, listen, &[]) {
                        Err(_) if since.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
                        bound => break bound.unwrap(),
                    }
                };
                (wire.clone(), Some(wire))
            }
        }
    }

    fn start(&mut self, at: usize, facts: Vec<skep_ring::fact::Fact>) {
        let (wire, quic) = self.wire(self.machines[at].secret, self.machines[at].membership.listen);
        self.start_with(at, facts, wire, quic);
    }

    fn start_with(
        &mut self,
        at: usize,
        facts: Vec<skep_ring::fact::Fact>,
        wire: Arc<dyn Wire>,
        quic: Option<Arc<Quic>>,
    ) {
        let machine = &mut self.machines[at];
        if let Some(address) = wire.addresses().first() {
            // The same place after a restart.
            machine.membership.listen = *address;
        }
        let led = Arc::new(Led::default());
        let running = Shell::start(Parts {
            membership: machine.membership.clone(),
            secret: machine.secret,
            archive: open(machine.folder.path(), machine.secret),
            wire,
            work: led.clone(),
            facts,
            portal: None,
        })
        .unwrap();
        let ears = running.ears();
        match (&self.way, quic) {
            (Way::Memory(hub), _) => hub.attach(running.shell.key(), &ears),
            (Way::Quic, quic) => quic.unwrap().listen(&ears),
        }
        running.shell.want(true);
        machine.up = Some((running, led, ears));
    }

    /// A node joins with a ticket of the first one.
    fn join(&mut self) -> usize {
        let at = self.machines.len();
        let secret = [at as u8 + 1; 32];
        let (wire, quic) = self.wire(secret, anywhere());
        let first = self.shell(0);
        let there = self.machines[0].membership.listen;
        let founder = Ed25519::from_secret(&[200; 32]);
        let ticket = self.machines[0]
            .membership
            .invite(&founder, [90 + at as u8; 32], 1, now_ms() + 60_000, vec![(first.key(), there)])
            .unwrap();
        let (node, owner) = (Ed25519::from_secret(&secret), Ed25519::from_secret(&[201 + at as u8; 32]));
        let (membership, facts) =
            Membership::join(&ticket, &newcomer(anywhere()), &node, &owner, &*wire, now_ms()).unwrap();
        assert_eq!(membership.secret, [7; 32]);
        self.machines.push(Machine { folder: tempfile::tempdir().unwrap(), membership, secret, up: None });
        self.start_with(at, facts, wire, quic);
        at
    }

    fn stop(&mut self, at: usize) {
        let (running, led, ears) = self.machines[at].up.take().expect("it runs");
        drop(ears);
        running.stop();
        drop(led);
    }

    fn shell(&self, at: usize) -> Arc<Shell> {
        self.machines[at].up.as_ref().expect("it runs").0.shell.clone()
    }

    fn up(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.machines.len()).filter(|at| self.machines[*at].up.is_some())
    }

    fn statuses(&self) -> Vec<Status> {
        self.up().map(|at| self.shell(at).status()).collect()
    }

    /// Waits until something is so.
    fn until(&self, what: &str, so: impl Fn(&World) -> bool) {
        let since = Instant::now();
        while !so(self) {
            if since.elapsed() > PATIENCE {
                for (at, status) in self.up().zip(self.statuses()) {
                    eprintln!(
                        "node {at} {}: acts {} leads {} held by {:?} {:?} {:?}",
                        &status.node[..8],
                        status.acts,
                        status.leads,
                        status.held_by,
                        status.unsettled,
                        status.counts
                    );
                    eprintln!("  {:?}", self.machines[at].up.as_ref().unwrap().1.notes.lock().unwrap());
                    for one in &status.held {
                        let holders: Vec<&str> = one.holders.iter().map(|key| &key[..8]).collect();
                        eprintln!(
                            "  {} {} {holders:?} leader {:?} bytes {} copies {} to {:?} suspended {} surplus {}",
                            one.slice,
                            one.epoch,
                            one.leader.as_ref().map(|key| &key[..8]),
                            one.bytes,
                            one.copies,
                            one.copying_to.as_ref().map(|key| &key[..8]),
                            one.suspended.len(),
                            one.surplus
                        );
                    }
                }
                panic!("{what}: not after {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every slice is led by one, and has all its copies.
    fn settled(&self) {
        self.until("settled, and every slice led", |world| {
            let statuses = world.statuses();
            let led: u32 = statuses.iter().map(|status| status.leads).sum();
            led == 1 << BITS && statuses.iter().all(|status| status.settled && status.acts)
        });
    }

    /// Who may fetch in a slice now.
    fn leader(&self, slice: Slice) -> Option<usize> {
        let now = Instant::now();
        let leads = |at: &usize| {
            let led = &self.machines[*at].up.as_ref().expect("it runs").1;
            led.led.lock().unwrap().get(&slice).is_some_and(|until| now < *until)
        };
        let leaders: Vec<usize> = self.up().filter(leads).collect();
        assert!(leaders.len() <= 1, "slice {slice} is led by {leaders:?}");
        leaders.first().copied()
    }

    /// Whoever leads a page's slice writes it.
    fn write(&mut self, count: usize) {
        for _ in 0..count {
            let url = format!("http://site{}.example/{}", self.written % 23, self.written);
            let slice = self.shell(self.up().next().unwrap()).slice_of(UrlKey::of(&url).site_hash());
            self.until("somebody leads", |world| world.leader(slice).is_some());
            let Some(leader) = self.leader(slice) else { continue };
            let archive = self.archive(leader);
            archive
                .append(page(&url, &format!("page {} {}", self.written, "text ".repeat(300))))
                .unwrap()
                .wait()
                .unwrap();
            self.written += 1;
        }
    }

    fn archive(&self, at: usize) -> Arc<Archive> {
        self.shell(at).archive().clone()
    }

    /// How many nodes that run have each page.
    fn copies(&self) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for at in self.up() {
            let archive = self.archive(at);
            archive.settle().unwrap();
            for capture in archive.views().captures.query(&Query::new(Match::All)).unwrap() {
                *copies.entry(capture.unwrap().url).or_default() += 1;
            }
        }
        copies
    }

    fn all_written(&self) -> BTreeSet<String> {
        let written = (0..self.written).map(|number| format!("http://site{}.example/{number}", number % 23));
        written.filter(|url| !self.removed.contains(url)).collect()
    }

    fn is_everything_on(&self, least: usize) -> bool {
        let copies = self.copies();
        self.all_written().iter().all(|url| copies.get(url).copied().unwrap_or(0) >= least)
    }

    /// Every page is on at least so many nodes.
    fn everything_is_on(&self, least: usize) {
        let copies = self.copies();
        for url in self.all_written() {
            assert!(copies.get(&url).copied().unwrap_or(0) >= least, "{url} is on {:?} nodes", copies.get(&url));
        }
    }

    fn end(mut self) {
        let up: Vec<usize> = self.up().collect();
        up.into_iter().for_each(|at| self.stop(at));
    }
}

fn page(url: &str, body: &str) -> Append {
    let mut id = [2; 16];
    id[..8].copy_from_slice(&Hash::of("id", url.as_bytes()).number().to_le_bytes());
    let response =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (id, date) = (RecordId::uuid(id), rfc3339(now_ms() as i64));
    let mut bytes = Vec::new();
    Record::response(&id, &date, url, response.as_bytes())
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
    Append { site_hash: UrlKey::of(url).site_hash(), records: vec![Encoded::describing(bytes).unwrap()] }
}

/// The whole story over one way.
fn story(way: Way) {
    let mut world = World::new(way);
    world.settled();
    world.write(20);
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    world.everything_is_on(3);
    world.write(60);
    world.settled();
    world.everything_is_on(3);

    // What was sealed is sealed alike everywhere, and any node answers for what others hold.
    (0..NODES).for_each(|at| world.archive(at).seal().unwrap());
    world.settled();
    let shell = world.shell(4);
    let elsewhere: Vec<String> = world.all_written().into_iter().collect();
    let (mut here, mut there) = (0, 0);
    for url in &elsewhere {
        let key = UrlKey::of(url);
        let slice = shell.slice_of(key.site_hash());
        if shell.holds(slice) {
            here += 1;
            continue;
        }
        let found = shell.captures(slice, &Query::new(Match::Exact(key))).unwrap();
        assert_eq!(found.len(), 1, "{url}");
        let mut record = shell.record(&found[0]).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut record.record_of(url.as_bytes()).unwrap(), &mut text).unwrap();
        assert!(text.contains("page "), "{text}");
        there += 1;
    }
    assert!(here > 0 && there > 0, "{here} here, {there} elsewhere");

    // What is asked of all is answered for each slice once.
    let all = shell.everywhere(&|nodes| format!("how many of {nodes}?"));
    let theirs = all.said.iter().map(|said| -> usize {
        let said = String::from_utf8_lossy(said).into_owned();
        assert!(said.starts_with(&format!("how many of {}? ", all.nodes)), "{said}");
        said.rsplit(' ').next().unwrap().parse().unwrap()
    });
    assert_eq!(all.here.len() + theirs.sum::<usize>(), 1 << BITS);
    assert!(all.silent == 0 && !all.here.is_empty() && all.nodes > 1, "{all:?}");
    drop(shell);

    // A crawl is known everywhere.
    let settings = "seeds = []".to_owned();
    let owner = Ed25519::from_secret(&[203; 32]);
    world.shell(2).instruct(What::Crawl { name: "news".into(), settings }, &owner).unwrap();
    world.until("a crawl is known everywhere", |world| {
        world.up().all(|at| world.machines[at].up.as_ref().unwrap().1.told.lock().unwrap().len() == 1)
    });

    // Something is removed: by who made the network, everywhere; by an owner, nowhere but at home.
    let url = world.all_written().into_iter().next().unwrap();
    let remove = || What::Remove { selector: format!("url {url}"), reason: "asked".into() };
    assert!(world.shell(2).instruct(remove(), &owner).is_err());
    assert!(world.copies()[&url] >= 3);
    world.shell(1).instruct(remove(), &Ed25519::from_secret(&[200; 32])).unwrap();
    world.until("it is removed everywhere", |world| !world.copies().contains_key(&url));
    world.removed.insert(url);
    world.settled();

    // One stops and comes back: others lead meanwhile, and it catches up.
    world.stop(1);
    world.write(30);
    world.start(1, Vec::new());
    world.settled();
    world.everything_is_on(3);

    // All stop, and all come back.
    (0..NODES).for_each(|at| world.stop(at));
    (0..NODES).for_each(|at| world.start(at, Vec::new()));
    world.settled();
    world.write(20);
    world.settled();
    world.everything_is_on(3);

    // One is lost with its disk: its copies are made anew by others.
    world.stop(3);
    world.until("its copies are made anew", |world| world.is_everything_on(3));

    // One leaves while that one is still missing: copies first.
    world.shell(2).tell(skep_ring::Event::Leave);
    world.until("it has left", |world| world.shell(2).has_left());
    world.stop(2);
    world.until("three hold everything", |world| world.statuses().iter().all(|status| status.settled));
    world.everything_is_on(3);
    world.end();
}

#[test]
fn captures_of_all_sites_are_found_in_order_whoever_is_silent() {
    let hub = Hub::new();
    let mut world = World::new(Way::Memory(hub.clone()));
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    world.write(70);
    world.settled();
    let keys: Vec<Key> = (0..NODES).map(|at| world.shell(at).key()).collect();
    let shell = world.shell(4);
    let find = |query: &Query, pages: (u64, u64)| {
        let scan = shell.scan_by(query, pages);
        assert_eq!(scan.silent(), 0);
        scan.map(Result::unwrap).collect::<Vec<Capture>>()
    };
    let everything = Query::new(Match::All);
    let all = find(&everything, (200, 4_000));
    assert_eq!(all.iter().map(|capture| capture.url.clone()).collect::<BTreeSet<_>>(), world.all_written());
    assert!(all.len() == 70 && all.is_sorted());
    let backward = Query { direction: Direction::Backward, ..everything.clone() };
    for pages in [(1, 1), (2, 3), (7, 5)] {
        assert_eq!(find(&everything, pages), all);
        let mut round = find(&backward, pages);
        round.reverse();
        assert_eq!(round, all);
    }
    // From any place on, and no further than it is asked for.
    for (at, capture) in all.iter().enumerate().step_by(9) {
        let after = Some(Place::of(capture));
        let on = Query { after: after.clone(), limit: Some(11), ..everything.clone() };
        assert_eq!(find(&on, (3, 4)), all[at + 1..].iter().take(11).cloned().collect::<Vec<_>>());
        let back = find(&Query { after, ..backward.clone() }, (3, 4));
        assert_eq!(back, all[..at].iter().rev().cloned().collect::<Vec<_>>());
    }
    // One that answered at first is silent: others go on where it left off.
    for gone in 0..4 {
        let mut scan = shell.scan_by(&everything, (2, 2));
        let mut found: Vec<Capture> = scan.by_ref().take(20).map(Result::unwrap).collect();
        hub.split(&keys[gone..=gone], &keys[4..]);
        found.extend(scan.map(Result::unwrap));
        assert_eq!(found, all, "without {gone}");
        hub.heal();
    }
    // Nobody answers: what is here is told, and that this is not all. Who ends in the middle says so.
    let mut scan = shell.scan_by(&everything, (1, 1));
    hub.split(&keys[..4], &keys[4..]);
    let alone = shell.scan(&everything);
    let silent = (0..1 << BITS).filter(|slice| !shell.holds(*slice)).count();
    assert_eq!(alone.silent(), silent);
    assert!(silent > 0);
    let here: Vec<Capture> = alone.map(Result::unwrap).collect();
    assert!(here.iter().all(|capture| shell.holds(shell.slice_of(capture.key.site_hash()))));
    assert!(here.len() < all.len());
    assert!(scan.any(|capture| capture.is_err()) && scan.next().is_none());
    hub.heal();
    drop(shell);
    world.end();
}

#[test]
fn five_nodes_copy_lead_restart_repair_and_leave() {
    story(Way::Memory(Hub::new()));
}

#[test]
fn the_same_over_quic() {
    story(Way::Quic);
}
