//! Five nodes in one process: real archives, real machines, and a wire in memory that can be cut.

mod bodies;
mod drip;
mod split;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_archive::captures::{Match, Place, Query};
use skep_archive::runs::Direction;
use skep_archive::{
    Append, Archive, Capture, Digest, Encoded, Key as UrlKey, OpenOptions, Pin, Role, Same, State, Sum, Wanted,
    WriterKey,
};
use skep_ring::fact::{Fact, SignedRetirement};
use skep_ring::instruction::{SignedInstruction, What};
use skep_ring::key::Seal;
use skep_ring::links::Batch;
use skep_ring::message::Politeness;
use skep_ring::node::Note;
use skep_ring::pace::Site;
use skep_ring::shell::membership::{Founding, Newcomer};
use skep_ring::shell::question::{self, Question};
use skep_ring::shell::{Back, Body, Membership, Parts, Proven, Running, Shell, Status, Sums, Taken, Work};
use skep_ring::ticket::Ticket;
use skep_ring::wire::memory::Hub;
use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Ed25519, Event, Hash, Key, Slice, Wire};
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};

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
    /// Until when a site that is split may be visited, and what was told with that.
    visits: Mutex<Option<(Instant, Vec<Politeness>)>>,
    heeded: Mutex<Vec<Politeness>>,
}

impl Work for Led {
    fn lead(&self, slice: Slice, until: Instant, _: Option<Vec<Politeness>>) {
        self.led.lock().unwrap().insert(slice, until);
    }
    fn stop(&self, slice: Slice) -> bool {
        self.led.lock().unwrap().remove(&slice);
        false
    }
    fn visit(&self, _: Site, until: Option<Instant>, politeness: Vec<Politeness>) {
        *self.visits.lock().unwrap() = until.map(|until| (until, politeness));
    }
    fn heed(&self, _: Site, politeness: Politeness) {
        self.heeded.lock().unwrap().push(politeness);
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
        World::expiring(way, None)
    }

    /// The same, where somebody absent is waited for only so long, in milliseconds.
    fn expiring(way: Way, expire_ms: Option<u64>) -> World {
        let mut times = times();
        times.extend(expire_ms.map(|ms| ("expire".to_owned(), ms)));
        let owner = Ed25519::from_secret(&[200; 32]);
        let secret = [1; 32];
        let founding = Founding { name: "test".into(), slice_bits: BITS, copies: 3, suffixes: Hash([0; 32]), times };
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

    fn start(&mut self, at: usize, facts: Vec<Fact>) {
        let (wire, quic) = self.wire(self.machines[at].secret, self.machines[at].membership.listen);
        self.start_with(at, facts, wire, quic);
    }

    fn start_with(&mut self, at: usize, facts: Vec<Fact>, wire: Arc<dyn Wire>, quic: Option<Arc<Quic>>) {
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
            relay: None,
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
    world.shell(2).tell(Event::Leave);
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

/// Files of a node in which a text stands, looked for as it is and in every record.
fn stands(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // What is gone by now does not contain it.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let name = path.display().to_string();
            let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            let mut here = holds(&bytes);
            if name.contains(".warc.gz") {
                let options = skep_warc::Options::recover();
                let mut reader = skep_warc::Reader::new(std::io::Cursor::new(bytes), options).unwrap();
                while let Some(mut record) = reader.next().unwrap() {
                    let mut block = Vec::new();
                    std::io::Read::read_to_end(&mut record, &mut block).unwrap();
                    here |= holds(&block);
                }
            }
            if here {
                found.push(name);
            }
        }
    }
    found
}

impl World {
    /// Pages that a node wrote, in segments that it closed or that it did not: their URLs, and what stands in them and nowhere else.
    fn written_by(&self, at: usize, closed: bool) -> Vec<(String, String)> {
        let archive = self.archive(at);
        archive.settle().unwrap();
        let state = if closed { State::Sealed } else { State::Open };
        let segments: BTreeSet<u32> = archive
            .segments()
            .into_iter()
            .filter(|segment| segment.name.id.writer == archive.writer() && segment.state == state)
            .map(|segment| segment.name.id.number)
            .collect();
        let captures = archive.views().captures.query(&Query::new(Match::All)).unwrap().map(Result::unwrap);
        let captures = captures.filter(|capture| {
            capture.position.writer == archive.writer() && segments.contains(&capture.position.segment)
        });
        captures
            .map(|capture| {
                let number = capture.url.rsplit('/').next().unwrap().to_owned();
                (capture.url, format!("page {number} text"))
            })
            .collect()
    }

    fn remove(&mut self, at: usize, url: &str) {
        let what = What::Remove { selector: format!("url {url}"), reason: "asked".into() };
        self.shell(at).instruct(what, &Ed25519::from_secret(&[200; 32])).unwrap();
        self.removed.insert(url.to_owned());
    }

    /// In no file of a node that runs any of these texts stands.
    fn until_gone(&self, what: &str, texts: &[String]) {
        self.until(what, |world| {
            let folders = world.up().map(|at| world.machines[at].folder.path());
            folders.into_iter().all(|folder| texts.iter().all(|text| stands(folder, text).is_empty()))
        });
    }

    /// Everybody who has a segment of this writer has the same of it, and finds nothing wrong with it. Says how many holders wrote.
    fn agree_about(&self, writer: WriterKey) -> usize {
        let mut seals: BTreeMap<(u32, u32), BTreeSet<[u8; 32]>> = BTreeMap::new();
        let mut instead = BTreeSet::new();
        for at in self.up() {
            let archive = self.archive(at);
            for segment in archive.segments().into_iter().filter(|segment| segment.name.id.writer == writer) {
                let (id, generation) = (segment.name.id, segment.name.generation);
                let Some(closing) = archive.closing(id).unwrap() else { continue };
                seals.entry((id.number, generation)).or_default().insert(closing.blake3);
                if closing.instead.is_some() {
                    instead.insert(id.number);
                }
                assert_eq!(archive.verify(id).unwrap(), []);
            }
        }
        assert!(seals.values().all(|seals| seals.len() == 1), "{seals:?}");
        instead.len()
    }
}

#[test]
fn what_is_removed_goes_out_of_the_copies_of_a_node_that_is_lost_and_retired() {
    let mut world = World::new(Way::Memory(Hub::new()));
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    world.write(50);
    world.settled();
    (0..NODES).for_each(|at| world.archive(at).seal().unwrap());
    world.write(50);
    world.settled();
    world.everything_is_on(3);
    // Whoever wrote something that it closed, and something that it never will.
    let lost = (1..NODES).find(|at| [true, false].iter().all(|closed| !world.written_by(*at, *closed).is_empty()));
    let lost = lost.expect("somebody wrote before and after");
    let [closed, open] = [true, false].map(|closed| world.written_by(lost, closed));
    let (writer, key) = (world.archive(lost).writer(), world.shell(lost).key());
    let texts = [closed[0].1.clone(), open[0].1.clone()];
    world.stop(lost);
    world.machines[lost].folder = tempfile::tempdir().unwrap();
    let founder = Ed25519::from_secret(&[200; 32]);
    let network = world.shell(0).genesis().id();
    let retirement = SignedRetirement::new(network, key, &founder);
    for (url, _) in [&closed[0], &open[0]] {
        world.remove(0, url);
    }
    let copies = world.copies();
    assert!(world.removed.iter().all(|url| !copies.contains_key(url)), "hidden at once");
    let somewhere =
        |world: &World, text: &str| world.up().any(|at| !stands(world.machines[at].folder.path(), text).is_empty());
    assert!(texts.iter().all(|text| somewhere(&world, text)), "nobody knows that it will not come back");
    world.shell(0).tell(Event::Learn(vec![Fact::Retirement(Arc::new(retirement))]));
    world.until_gone("the removed bytes are nowhere", &texts);
    world.until("its copies are made anew", |world| world.is_everything_on(3));
    world.settled();
    assert!(world.agree_about(writer) >= 2, "what it closed, and what it did not");
    // Nothing else is gone, and none of it comes back with who was away.
    let kept: Vec<&(String, String)> = closed[1..].iter().chain(&open[1..]).collect();
    assert!(kept.iter().all(|(_, text)| somewhere(&world, text)));
    let again = world.up().find(|at| *at != 0).unwrap();
    world.stop(again);
    world.start(again, Vec::new());
    world.settled();
    world.until_gone("the removed bytes are nowhere, still", &texts);
    world.everything_is_on(3);
    for at in world.up() {
        let mut findings = Vec::new();
        world.archive(at).check(&mut |finding| findings.push(finding)).unwrap();
        findings.retain(|finding| finding.path.display().to_string().contains(&writer.to_string()));
        assert_eq!(findings, [], "node {at}");
    }
    world.end();
}

#[test]
fn a_writer_that_was_absent_for_long_takes_what_holders_wrote_meanwhile() {
    let mut world = World::expiring(Way::Memory(Hub::new()), Some(4_000));
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    world.write(50);
    world.settled();
    (0..NODES).for_each(|at| world.archive(at).seal().unwrap());
    world.settled();
    let away = (1..NODES).find(|at| !world.written_by(*at, true).is_empty()).expect("somebody wrote");
    let writer = world.archive(away).writer();
    let (url, text) = world.written_by(away, true)[0].clone();
    world.stop(away);
    world.remove(0, &url);
    world.until_gone("holders have not waited for ever", std::slice::from_ref(&text));
    assert!(!stands(world.machines[away].folder.path(), &text).is_empty());
    world.start(away, Vec::new());
    world.until_gone("it has followed, too", std::slice::from_ref(&text));
    world.settled();
    world.until("all have the same", |world| {
        let generations: Vec<BTreeMap<u32, u32>> = world
            .up()
            .map(|at| {
                let segments = world.archive(at).segments().into_iter();
                let segments = segments.filter(|segment| segment.name.id.writer == writer);
                segments.map(|segment| (segment.name.id.number, segment.name.generation)).collect()
            })
            .collect();
        let mut highest: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, generation) in generations.iter().flatten() {
            let known = highest.entry(*number).or_default();
            *known = (*known).max(*generation);
        }
        generations.iter().flatten().all(|(number, generation)| highest[number] == *generation)
    });
    assert!(world.agree_about(writer) >= 1);
    world.settled();
    world.everything_is_on(3);
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

#[test]
fn of_those_who_add_to_one_list_at_once_nobody_is_lost() {
    let world = World::new(Way::Memory(Hub::new()));
    let shell = world.shell(0);
    let owner = Ed25519::from_secret(&[200; 32]);
    let seeds_of = |before: &[Arc<SignedInstruction>]| -> Vec<String> {
        let of = |signed: &Arc<SignedInstruction>| match &signed.instruction.what {
            What::Seeds { seeds, .. } => seeds.clone(),
            _ => Vec::new(),
        };
        before.iter().flat_map(of).collect()
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (shell, owner) = (&shell, &owner);
            scope.spawn(move || {
                for number in 0..10 {
                    let added = shell.instruct_after(
                        |before| {
                            let mut seeds = seeds_of(before);
                            seeds.push(format!("http://site{thread}.example/{number}"));
                            Ok(What::Seeds { name: "news".into(), seeds })
                        },
                        owner,
                    );
                    added.unwrap();
                }
            });
        }
    });
    assert_eq!(seeds_of(&shell.instructions()).into_iter().collect::<BTreeSet<_>>().len(), 80);
    drop(shell);
    world.end();
}

#[test]
fn a_ticket_that_is_used_up_and_a_node_that_was_retired_learn_nothing_and_what_was_said_there_lasts() {
    let mut world = World::new(Way::Memory(Hub::new()));
    let at = world.join();
    let first = world.shell(0);
    let (founder, there) = (Ed25519::from_secret(&[200; 32]), world.machines[0].membership.listen);
    let owner = Ed25519::from_secret(&[201 + at as u8; 32]);
    let invited = |world: &World, bearer: u8, uses| {
        let named = vec![(first.key(), there)];
        world.machines[0].membership.invite(&founder, [bearer; 32], uses, now_ms() + 60_000, named).unwrap()
    };
    let comes = |world: &World, ticket: &Ticket, secret: u8| {
        let (wire, _) = world.wire([secret; 32], anywhere());
        let node = Ed25519::from_secret(&[secret; 32]);
        // Each a little later than the one before: who came first stays.
        let now_ms = now_ms() + u64::from(secret);
        Membership::join(ticket, &newcomer(anywhere()), &node, &owner, &*wire, now_ms).map(drop)
    };
    // With a ticket for two, two are told the secret, and as often as they ask.
    let ticket = invited(&world, 150, 2);
    let told: Vec<Result<(), String>> = [100, 101, 100, 102].map(|secret| comes(&world, &ticket, secret)).into();
    assert!(told[..3].iter().all(Result::is_ok), "{told:?}");
    let late = told[3].as_ref().unwrap_err();
    assert!(late.contains("the invitation is used up"), "{late}");

    // A node asks what a site wants, and is retired.
    let what = What::Sites { name: "news".into(), sites: "asked for".into() };
    world.shell(at).instruct(what.clone(), &owner).unwrap();
    let knows = |world: &World, at: usize| {
        let told = world.machines[at].up.as_ref().unwrap().1.told.lock().unwrap();
        told.iter().any(|signed| signed.instruction.what == what)
    };
    world.until("it is told", |world| knows(world, 0));
    let (key, network) = (world.shell(at).key(), first.genesis().id());
    world.stop(at);
    let retirement = SignedRetirement::new(network, key, &owner);
    first.tell(Event::Learn(vec![Fact::Retirement(Arc::new(retirement))]));
    world.until("it is retired", |_| !first.is_member(&key));
    let again = comes(&world, &invited(&world, 151, 1), at as u8 + 1).unwrap_err();
    assert!(again.contains("the node was retired"), "{again}");
    // Who joins then hears of it all the same.
    let newcomer = world.join();
    world.until("the newcomer knows what was asked for", |world| knows(world, newcomer));
    drop(first);
    world.end();
}
