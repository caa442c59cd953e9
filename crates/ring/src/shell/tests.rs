//! What the shell does beside its machine, with nodes of one process.

use super::membership::{Founding, Newcomer};
use super::*;
use crate::links::{Batch, Link};
use crate::wire::memory::Hub;
use skep_archive::OpenOptions;
use std::sync::{OnceLock, Weak};

/// Nothing takes so long, unless it never happens.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many slices that any two nodes lead some of those that a third does not hold.
const BITS: u8 = 6;
/// Longer than anybody waits here: who leads next was told, or does not lead.
const LEASE_MS: u64 = 600_000;

/// A crawl that leads what it was told, and knows nothing of a lease that it was not told of.
#[derive(Default)]
struct Crawling {
    led: Mutex<BTreeSet<Slice>>,
    /// URLs that others told of.
    heard: Mutex<Vec<String>>,
    shell: OnceLock<Weak<Shell>>,
}

impl Crawling {
    fn shell(&self) -> Option<Arc<Shell>> {
        self.shell.get().and_then(Weak::upgrade)
    }
}

impl Work for Crawling {
    fn lead(&self, slice: Slice, _: Instant, politeness: Option<Vec<Politeness>>) {
        if politeness.is_some() {
            lock(&self.led).insert(slice);
        }
    }
    /// How the sites stand is told at once, before whoever asks has heard the answer.
    fn stop(&self, slice: Slice) -> bool {
        let led = lock(&self.led).remove(&slice);
        if let Some(shell) = self.shell().filter(|_| led) {
            shell.polite(slice, vec![1], false);
        }
        led
    }
    fn links(&self, _: Key, batch: Batch, back: Back) {
        let urls: Vec<String> = batch.links.iter().map(|link| link.url.clone()).collect();
        let slices = self.shell().map(|shell| shell.by_slice(batch)).unwrap_or_default();
        let led = lock(&self.led).clone();
        let taken = slices.keys().all(|slice| led.contains(slice));
        if taken {
            lock(&self.heard).extend(urls);
        }
        back(Taken { taken, leaders: Vec::new() });
    }
    fn instructed(&self, _: &[Arc<SignedInstruction>]) {}
    fn answer(&self, _: &str, _: &[Slice]) -> Result<Vec<u8>, String> {
        Err("there is no portal".into())
    }
    fn contributor(&self, through: Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, String> {
        Ok(format!("{} at {address} through {through}", String::from_utf8_lossy(message)).into_bytes())
    }
    fn follow(&self, from: &Led, message: &[u8]) -> Result<Telling, String> {
        let said = format!("{} for {} in {}", String::from_utf8_lossy(message), from.by, from.slice);
        // As long as it leads for certain, and no longer than that.
        assert!(!from.left.is_zero() && from.left <= Duration::from_millis(LEASE_MS * 8 / 10));
        Ok(Box::new(move |out: &mut dyn Write| said.split(' ').try_for_each(|word| out.write_all(word.as_bytes()))))
    }
    fn note(&self, _: &Note) {}
}

struct Member {
    running: Running,
    crawling: Arc<Crawling>,
    _ears: Arc<dyn Ears>,
    _folder: tempfile::TempDir,
}

impl Member {
    fn shell(&self) -> &Arc<Shell> {
        &self.running.shell
    }

    fn led(&self) -> BTreeSet<Slice> {
        lock(&self.crawling.led).clone()
    }

    /// Whether everything is held by those who should hold it, as far as this node knows.
    fn sees_wish(&self) -> bool {
        let machine = lock(&self.shell().machine);
        let view = &machine.node.view;
        (0..1 << BITS).all(|slice| {
            let wish = view.wish(slice, |_| true).0.into_iter();
            let wish: BTreeSet<Key> = wish.map(|index| view.roster.key(index)).collect();
            let held: BTreeSet<Key> = view.holders(slice).into_iter().collect();
            held == wish
        })
    }
}

/// So many nodes that hold everything this often, and want to lead.
fn ring(nodes: u8, copies: u8) -> Vec<Member> {
    leasing(nodes, copies, LEASE_MS)
}

/// The same, with leases of such a length.
fn leasing(nodes: u8, copies: u8, lease_ms: u64) -> Vec<Member> {
    let (hub, owner) = (Hub::new(), Ed25519::from_secret(&[200; 32]));
    let now_ms = || skep_archive::system_clock() as u64;
    let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let new = || Newcomer { capacity_gb: 1000, zone: String::new(), listen, relays: Vec::new() };
    let times = [("ping", 200), ("silence", 30_000), ("unseen", 60_000), ("compare", 200), ("lease", lease_ms)];
    let soon = [
        ("rank", 100),
        ("recover", 2 * lease_ms + 61_000),
        ("repair-late", 500),
        ("repair-soon", 500),
        ("answer", 500),
    ];
    let times: BTreeMap<String, u64> = times.into_iter().chain(soon).map(|(name, ms)| (name.to_owned(), ms)).collect();
    let mut members: Vec<Member> = Vec::new();
    let mut first: Option<Membership> = None;
    for number in 1..=nodes {
        let secret = [number; 32];
        let node = Ed25519::from_secret(&secret);
        let wire = hub.wire(crate::key::Seal::key(&node));
        let (membership, facts) = match &first {
            None => {
                let suffixes = Hash([0; 32]);
                let founding =
                    Founding { name: "test".into(), slice_bits: BITS, copies, suffixes, times: times.clone() };
                let founded = Membership::found(founding, &new(), wire.key(), &owner, [7; 32], now_ms()).unwrap();
                first = Some(founded.clone());
                (founded, Vec::new())
            }
            Some(first) => {
                let there = vec![(members[0].shell().key(), listen)];
                let ticket = first.invite(&owner, [90 + number; 32], 1, now_ms() + 60_000, there).unwrap();
                let other = Ed25519::from_secret(&[201 + number; 32]);
                Membership::join(&ticket, &new(), &node, &other, &*wire, now_ms()).unwrap()
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            bits: BITS,
            secret: Some(secret),
            copies: true,
            disk_reserve_bytes: 0,
            ..OpenOptions::create()
        };
        let archive = Arc::new(Archive::open(folder.path(), options).unwrap());
        let crawling = Arc::new(Crawling::default());
        let work = crawling.clone() as Arc<dyn Work>;
        let running =
            Shell::start(Parts { membership, secret, archive, wire, work, facts, portal: None, relay: None }).unwrap();
        crawling.shell.set(Arc::downgrade(&running.shell)).unwrap();
        let ears = running.ears();
        hub.attach(running.shell.key(), &ears);
        running.shell.want(true);
        members.push(Member { running, crawling, _ears: ears, _folder: folder });
    }
    until("held as it should be, and all of it led", || {
        members.iter().map(|member| member.led().len()).sum::<usize>() == 1 << BITS
            && members.iter().all(|member| member.sees_wish() && member.shell().status().settled)
    });
    members
}

impl Member {
    /// What the ring wishes that this node leads.
    fn wished(&self) -> BTreeSet<Slice> {
        let machine = lock(&self.shell().machine);
        let view = &machine.node.view;
        let first = |slice: &Slice| view.wish(*slice, |_| true).0.first().map(|index| view.roster.key(*index));
        (0..1 << BITS).filter(|slice| first(slice) == Some(self.shell().key())).collect()
    }
}

#[test]
fn as_many_nodes_as_copies_lead_side_by_side_what_the_ring_wishes() {
    let members = leasing(3, 3, 2_000);
    until("led by whom the ring wishes for", || members.iter().all(|member| member.led() == member.wished()));
    assert!(members.iter().all(|member| member.led().len() > 5), "each leads some");
    end(members);
}

/// The address of a site that is in this slice.
fn site_in(slice: Slice, member: &Member) -> String {
    let mut sites = (0..).map(|number| format!("http://site-{number}.example/"));
    let site = sites.find(|url| member.shell().slice_of(skep_archive::Key::of(url).site_hash()) == slice);
    site.expect("some site is there")
}

#[track_caller]
fn until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < PATIENCE, "never {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn end(members: Vec<Member>) {
    members.into_iter().for_each(|member| member.running.stop());
}

#[test]
fn what_was_stopped_while_the_machine_led_on_is_led_again() {
    let members = ring(1, 1);
    let all = members[0].led();
    assert_eq!(all.len(), 1 << BITS);
    members[0].shell().stop_all();
    until("all of it led again", || members[0].led() == all);
    end(members);
}

#[test]
fn a_lease_that_is_given_back_is_heard_of_however_soon_it_is_known_how_its_sites_stand() {
    let members = ring(2, 2);
    let (gives, takes) = (&members[0], &members[1]);
    assert!(!gives.led().is_empty() || !takes.led().is_empty());
    gives.shell().want(false);
    until("taken over", || gives.led().is_empty() && takes.led().len() == 1 << BITS);
    gives.shell().want(true);
    takes.shell().want(false);
    until("taken over again", || takes.led().is_empty() && gives.led().len() == 1 << BITS);
    end(members);
}

#[test]
fn links_that_are_too_long_for_one_batch_go_in_several() {
    let members = ring(2, 1);
    let (sender, leader) = (&members[0], &members[1]);
    until("something led by the second", || !leader.led().is_empty());
    let slice = *leader.led().first().expect("it leads something");
    let (site, mut chance) = (site_in(slice, sender), Chance::new(1));
    let mut long = || (0..400).map(|_| format!("{:016x}", chance.number())).collect::<String>();
    let link = |rest: String| Link { url: format!("{site}{rest}"), depth: 1, needed: false, gone: false, site: None };
    let links: Vec<Link> = (0..1_000).map(|_| link(long())).collect();
    assert!(sender.shell().send_links(leader.shell().key(), Batch { crawl: "test".into(), links }));
    end(members);
}

#[test]
fn of_links_for_two_leaders_that_go_to_one_of_them_it_takes_its_own() {
    let members = ring(3, 1);
    let [sender, one, other] = [0, 1, 2].map(|at: usize| &members[at]);
    let urls = [one, other].map(|leader| site_in(*leader.led().first().expect("it leads something"), sender));
    let heard = |member: &Member| lock(&member.crawling.heard).clone();
    let batch = |urls: &[String]| {
        let link = |url: &String| Link { url: url.clone(), depth: 1, needed: false, gone: false, site: None };
        Batch { crawl: "test".into(), links: urls.iter().map(link).collect() }
    };
    assert!(!sender.shell().send_links(one.shell().key(), batch(&urls)), "one of them was not taken");
    assert_eq!((heard(one), heard(other)), (vec![urls[0].clone()], Vec::new()));
    assert!(sender.shell().send_links(other.shell().key(), batch(&urls[1..])));
    assert_eq!(heard(other), [urls[1].clone()]);
    end(members);
}

#[test]
fn what_a_contributor_says_is_carried_to_another_node_and_bounded() {
    let members = ring(2, 1);
    let [one, other] = [0, 1].map(|at: usize| members[at].shell());
    assert_eq!(one.portals(), [(other.key(), None)]);
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    let said = one.pass_on(other.key(), address, b"hello").unwrap();
    assert_eq!(String::from_utf8_lossy(&said), format!("hello at {address} through {}", one.key()));
    assert_eq!(one.bundles_at(other.key()).unwrap_err(), NO_CONTRIBUTORS);
    let long = vec![0; crate::limits::CONTRIBUTOR_BYTES_MAX + 1];
    assert!(one.pass_on(other.key(), address, &long).is_err());
    end(members);
}

#[test]
fn holders_fetch_for_who_leads_and_for_nobody_else_and_older_ones_are_not_asked() {
    let mut members = ring(3, 3);
    let at = (0..3).find(|at| !members[*at].led().is_empty()).expect("somebody leads");
    let leader = members[at].shell().clone();
    let slice = *members[at].led().first().expect("something");
    let keys: BTreeSet<Key> =
        members.iter().map(|member| member.shell().key()).filter(|key| *key != leader.key()).collect();
    let followers = || leader.followers(slice).into_iter().map(|(key, _)| key).collect::<BTreeSet<Key>>();
    until("both others follow", || followers() == keys);
    for follower in &keys {
        let mut said = String::new();
        let answer = leader.have_followed(*follower, slice, b"fetch", PATIENCE).expect("an answer");
        io::Read::read_to_string(&mut { answer }, &mut said).unwrap();
        assert_eq!(said, format!("fetchfor{}in{slice}", leader.key()));
    }
    // Who does not lead there is refused, and so is what does not exist.
    let other = members.iter().position(|member| keys.contains(&member.shell().key())).expect("another");
    let refused = |from: &Shell, to: Key, slice| match from.have_followed(to, slice, b"fetch", PATIENCE) {
        Err(NoAnswer::Refused(why)) => why,
        Err(NoAnswer::Silent(why)) => panic!("{why}"),
        Ok(_) => panic!("it is fetched"),
    };
    let third = *keys.iter().find(|key| **key != members[other].shell().key()).expect("a third");
    for to in [leader.key(), third] {
        assert!(refused(members[other].shell(), to, slice).contains("do not lead"));
    }
    assert!(refused(&leader, third, 1 << BITS).contains("do not lead"));

    // One of them speaks an older protocol from now on.
    let older = members.remove(other);
    grows_older(&leader, older, other as u8 + 1, (2, 1));
    until("one is left who knows how", || followers() == BTreeSet::from([third]));
    end(members);
}

/// A node ends, and another one is told that it speaks older protocols from now on.
fn grows_older(told: &Shell, older: Member, secret: u8, protocol: message::Speaks) {
    let (key, seal) = (older.shell().key(), Ed25519::from_secret(&[secret; 32]));
    older.running.stop();
    let known = lock(&told.machine).node.view.roster.record_of(&key).expect("it is known").record.clone();
    let record = crate::fact::NodeRecord { sequence: known.sequence + 1, protocol, ..known };
    told.tell(Event::Learn(vec![Fact::Record(Arc::new(crate::fact::SignedRecord::new(record, &seal)))]));
}

#[test]
fn a_leader_of_an_older_protocol_is_not_asked_whose_a_host_is() {
    let mut members = ring(3, 3);
    let at = (0..3).find(|at| !members[*at].led().is_empty()).expect("somebody leads");
    let leader = members.remove(at);
    let slice = *leader.led().first().expect("something");
    let host = skep_url::Url::parse(&site_in(slice, &leader)).unwrap().host_name().to_owned();
    let asker = members[0].shell().clone();
    until("it is known who leads", || asker.leader(slice) == Some(leader.shell().key()));
    // Whoever visits no sites says so, as soon as it is asked.
    assert_eq!(asker.proof(&host), Proof::No(NOT_VISITING.into()));
    let key = leader.shell().key();
    grows_older(&asker, leader, at as u8 + 1, (3, 1));
    until("it is known what it speaks", || asker.spoken(&key) == Some(3));
    match asker.proof(&host) {
        Proof::Later(why) => assert!(why.contains(&key.short()) && why.contains("older program"), "{why}"),
        proof => panic!("{proof:?}"),
    }
    end(members);
}

#[test]
fn who_may_not_act_looks_at_no_host_in_the_place_of_who_leads() {
    let mut members = leasing(3, 3, 2_000);
    let Member { running, _folder: folder, .. } = members.remove(0);
    let membership = running.shell.membership().clone();
    running.stop();
    end(members);
    // It is started again where it hears nobody: whatever became of the others meanwhile, it knows nothing of it.
    let options = || OpenOptions {
        bits: BITS,
        secret: Some([1; 32]),
        copies: true,
        disk_reserve_bytes: 0,
        ..OpenOptions::create()
    };
    let since = Instant::now();
    let archive = loop {
        match Archive::open(folder.path(), options()) {
            // Who asked for something when it ended may still hold it for a moment.
            Err(skep_archive::Error::Locked { .. }) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => break Arc::new(opened.unwrap()),
        }
    };
    let (node, work) = (Ed25519::from_secret(&[1; 32]), Arc::new(Crawling::default()));
    let wire = Hub::new().wire(crate::key::Seal::key(&node));
    let parts =
        Parts { membership, secret: [1; 32], archive, wire, work, facts: Vec::new(), portal: None, relay: None };
    let running = Shell::start(parts).unwrap();
    let ears = running.ears();
    let alone = Member { running, crawling: Arc::default(), _ears: ears, _folder: folder };
    let shell = alone.shell();
    let first = |slice: &Slice| shell.in_order(*slice).first() == Some(&shell.key());
    let slice = (0..1 << BITS).find(first).expect("it would come first somewhere");
    let host = skep_url::Url::parse(&site_in(slice, &alone)).unwrap().host_name().to_owned();
    until("of nobody who leads is known here", || {
        !shell.leads(slice) && shell.granted(&lock(&shell.machine), slice).is_none()
    });
    assert!(!shell.status().acts && first(&slice));
    assert_eq!(shell.prove_here(&host), proof::elsewhere(&host));
    end(vec![alone]);
}

#[test]
fn what_is_private_is_answered_to_no_member() {
    use skep_archive::captures::{Match, Query};
    use skep_warc::write::{Compression, Encoder, Record, RecordId};
    let members = ring(2, 1);
    let [holder, asker] = [0, 1].map(|at: usize| members[at].shell());
    let slice = *members[0].led().first().expect("something");
    let url = site_in(slice, &members[0]);
    // Nothing private is written here: it comes with a file of somebody.
    let mut bytes = Vec::new();
    for (number, time) in ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].into_iter().enumerate() {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nbody {number}");
        let id = RecordId::uuid([number as u8; 16]);
        let record = Record::response(&id, time, &url, response.as_bytes());
        let record = if number == 0 { record } else { record.field(skep_archive::PRIVATE, "cookie") };
        record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    }
    let file = members[0]._folder.path().join("added.warc.gz");
    std::fs::write(&file, bytes).unwrap();
    let mut additions = holder.archive.additions().unwrap();
    additions.add(&file, "theirs", false, &mut |_| ()).unwrap();
    additions.commit().unwrap();
    drop(additions);
    holder.archive.settle().unwrap();
    let query = Query::new(Match::Exact(skep_archive::Key::of(&url)));
    let captures: Vec<_> =
        holder.archive.views().captures.query(&query).unwrap().map(|capture| capture.unwrap()).collect();
    assert_eq!(captures.iter().filter(|capture| capture.is_private()).count(), 1, "{captures:?}");
    for capture in &captures {
        let mut answer =
            asker.wire.ask(holder.key(), &Question::record(capture.position).encode(), PATIENCE).expect("an answer");
        assert_eq!(question::is_yes(&mut answer).unwrap().is_ok(), !capture.is_private(), "{capture:?}");
    }
    end(members);
}

#[test]
fn what_nobody_signed_who_may_is_neither_crawled_nor_removed() {
    let members = ring(2, 1);
    let [victim, liar] = [0, 1].map(|at: usize| members[at].shell());
    let ask = |question: Question| -> Result<(), String> {
        let mut answer = liar.wire.ask(victim.key(), &question.encode(), PATIENCE).unwrap();
        question::is_yes(&mut answer).unwrap()
    };
    let crawl = question::Crawl { name: "x".into(), version: u64::MAX, runs: true, settings: String::new() };
    assert!(ask(Question::Crawl(crawl)).is_err());
    let all = || "prefix http://".to_owned();
    assert!(ask(Question::Remove { selector: all(), reason: "x".into() }).is_err());
    let liars = Ed25519::from_secret(&[203; 32]);
    let said = |what, owner: &Ed25519| {
        let now_ms = skep_archive::system_clock() as u64;
        Arc::new(SignedInstruction::new(victim.genesis().id(), liar.key(), now_ms, what, owner))
    };
    let remove = || crate::instruction::What::Remove { selector: all(), reason: "x".into() };
    let stop = || crate::instruction::What::Stop { name: "x".into() };
    assert!(ask(Question::Instruct(said(remove(), &liars))).is_err(), "an owner removes nothing for all");
    assert!(ask(Question::Instruct(said(stop(), &Ed25519::from_secret(&[9; 32])))).is_err(), "not its owner");
    assert!(victim.instructions().is_empty());
    assert_eq!(ask(Question::Instruct(said(stop(), &liars))), Ok(()));
    assert_eq!(victim.instructions().len(), 1);
    assert!(lock(&victim.counts)[&What::Refused] >= 4);
    end(members);
}
