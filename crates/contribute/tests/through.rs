//! A contributor who knows one node works for another through it: two real nodes, spoken to as contributors speak.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_archive::Identity;
use skep_contribute::limits::{PASSED_BYTES_MAX, PASSED_MAX};
use skep_contribute::message::{self, Answer, Bundle, Digest, Fetched, Request, VERSION};
use skep_contribute::neighbours::{NotPassed, Others, through};
use skep_contribute::trust::Key;
use skep_contribute::{Node, envelope};
use skep_schedule::hands::{Back, Offer, Rules};
use skep_schedule::{Bundle as Leased, BundleUrl, Hands, LeaseId, Pace};

const PATIENCE: Duration = Duration::from_secs(30);
const NOW_MS: i64 = 1_790_000_000_000;

/// The way from one node to others, as the ring is.
struct Way {
    from: Key,
    to: Vec<Arc<Node>>,
    /// What is passed on while this is held waits.
    gate: Arc<Mutex<()>>,
}

impl Others for Way {
    fn nodes(&self) -> Vec<(Key, Option<String>)> {
        self.to.iter().map(|node| (node.key(), None)).collect()
    }

    fn waiting(&self, node: &Key) -> Result<Vec<u8>, String> {
        self.to.iter().find(|one| one.key() == *node).map(|one| one.waiting()).ok_or_else(|| "nobody".into())
    }

    fn pass_on(&self, node: &Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, String> {
        let _open = self.gate.lock().expect("no panic");
        let found = self.to.iter().find(|one| one.key() == *node);
        found.map(|one| one.handle_through(self.from, address, message)).ok_or_else(|| "nobody".into())
    }
}

fn node(number: u8) -> (tempfile::TempDir, Arc<Node>) {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::start(folder.path(), Identity::from_secret([number; 32]), Arc::new(|| NOW_MS)).expect("a node");
    (folder, node)
}

struct Volunteer {
    identity: Identity,
    address: IpAddr,
    home: Arc<Node>,
}

impl Volunteer {
    fn new(home: &Arc<Node>, number: u8) -> Volunteer {
        let address = IpAddr::from([198, 51, number, 1]);
        Volunteer { identity: Identity::from_secret([number; 32]), address, home: home.clone() }
    }

    fn sealed(&self, to: &Key, request: &Request) -> Vec<u8> {
        envelope::seal_requests(std::slice::from_ref(request), to, &self.identity, NOW_MS)
    }

    /// Says something to a node, through its own.
    fn says(&self, to: &Key, request: &Request) -> Result<Answer, NotPassed> {
        let sealed = self.sealed(to, request);
        let answer = self.home.pass_on(to, self.address, &sealed)?;
        let opened = envelope::open_answers(&answer, &envelope::signature_of(&sealed)).expect("an answer");
        assert_eq!(opened.key, *to, "signed by the one that was meant");
        Ok(opened.message.into_iter().next().expect("an answer"))
    }

    fn greets(&self, to: &Key) {
        let mut proof = 0;
        loop {
            let hello = Request::Hello { version: VERSION, proof, holds: Vec::new(), team: String::new() };
            match self.says(to, &hello).expect("passed on") {
                Answer::Welcome { .. } => return,
                Answer::Work { bits, seed } => proof = message::prove(&seed, &self.identity.public(), bits),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn offer(to: &Node) -> std::sync::mpsc::Receiver<&'static str> {
    let (told, came) = std::sync::mpsc::channel();
    let told = Mutex::new(told);
    let offer = Offer {
        known: vec![None],
        bundle: Leased {
            lease: LeaseId(1),
            host: "a.test:80".into(),
            site: "a.test".into(),
            urls: vec![BundleUrl { url: "http://a.test/".into(), ..BundleUrl::default() }],
            pace: Pace::None,
            not_before_ms: 0,
            deadline_ms: 0,
        },
        nonce: [3; 16],
        robots: Some(Rules::default()),
        lease: Duration::from_secs(540),
        only: true,
        is_wanted: Box::new(|| true),
        done: Box::new(move |back| {
            let what = match back {
                Back::Brought(_) => "brought",
                Back::Nobody => "nobody",
                Back::Lost => "lost",
            };
            let _nobody_waits = told.lock().expect("no panic").send(what);
        }),
    };
    assert!(to.give(offer).is_ok(), "it is taken");
    came
}

fn linked() -> (Vec<tempfile::TempDir>, Arc<Node>, Arc<Node>, Arc<Mutex<()>>) {
    let ((one, home), (two, leader)) = (node(1), node(2));
    let gate: Arc<Mutex<()>> = Arc::default();
    let way = Way { from: home.key(), to: vec![leader.clone()], gate: gate.clone() };
    home.know_others(Box::new(way)).expect("a thread");
    (vec![one, two], home, leader, gate)
}

#[test]
fn whoever_finds_nothing_to_do_works_for_another_node_through_his_own() {
    let (_folders, home, leader, _) = linked();
    let came = offer(&leader);
    let volunteer = Volunteer::new(&home, 7);
    volunteer.greets(&home.key());
    let since = Instant::now();
    let sent_to = loop {
        match volunteer.says(&home.key(), &Request::Ask { bundles: 1 }).expect("it answers") {
            Answer::Elsewhere { address } => break address,
            Answer::Later { .. } => std::thread::sleep(Duration::from_millis(20)),
            other => panic!("{other:?}"),
        }
        assert!(since.elapsed() < PATIENCE, "it is never sent anywhere");
    };
    assert_eq!(sent_to, through(&leader.key()), "it has no public portal");
    volunteer.greets(&leader.key());
    let Ok(Answer::Bundles(bundles)) = volunteer.says(&leader.key(), &Request::Ask { bundles: 1 }) else {
        panic!("a bundle")
    };
    let [Bundle { id, .. }] = bundles[..] else { panic!("one bundle") };
    let none = Fetched { fault: "connect-refused".into(), digest: Digest::None, ..Fetched::default() };
    let done = volunteer.says(&leader.key(), &Request::Results { bundle: id, results: vec![none] });
    assert_eq!(done, Ok(Answer::Done { bundle: id }));
    assert_eq!(came.recv_timeout(PATIENCE), Ok("brought"), "whoever leads judges what came");
    let known = |node: &Node| node.report()["contributors"].as_array().map_or(0, Vec::len);
    assert_eq!((known(&home), known(&leader)), (1, 1), "each keeps account for itself");
}

#[test]
fn only_what_contributors_of_a_node_say_to_another_is_passed_on_and_not_without_bounds() {
    let (_folders, home, leader, gate) = linked();
    let ask = Request::Ask { bundles: 1 };
    let stranger = Volunteer::new(&home, 7);
    assert_eq!(stranger.says(&leader.key(), &ask), Err(NotPassed::Unknown));
    stranger.greets(&home.key());
    let refused = Answer::Refused { why: message::Refusal::Unknown };
    assert_eq!(stranger.says(&leader.key(), &ask), Ok(refused), "the other one does not know him");
    let elsewhere = stranger.sealed(&[9; 32], &ask);
    assert_eq!(home.pass_on(&leader.key(), stranger.address, &elsewhere), Err(NotPassed::Unknown), "not for that one");
    assert!(matches!(stranger.says(&[9; 32], &ask), Err(NotPassed::Silent(_))));
    let long = vec![0; PASSED_BYTES_MAX + 1];
    assert_eq!(home.pass_on(&leader.key(), stranger.address, &long), Err(NotPassed::TooLong));
    // So many at once, and of each no more than one.
    let many: Vec<Volunteer> = (20..21 + PASSED_MAX as u8).map(|number| Volunteer::new(&home, number)).collect();
    many.iter().for_each(|one| one.greets(&home.key()));
    let closed = gate.lock().expect("no panic");
    std::thread::scope(|scope| {
        let (leader, ask) = (&leader, &ask);
        let waiting: Vec<_> = many[1..].iter().map(|one| scope.spawn(move || one.says(&leader.key(), ask))).collect();
        let since = Instant::now();
        while home.passing() < PASSED_MAX {
            assert!(since.elapsed() < PATIENCE, "they never come");
            std::thread::yield_now();
        }
        assert_eq!(many[0].says(&leader.key(), ask), Err(NotPassed::Busy));
        drop(closed);
        assert!(waiting.into_iter().all(|one| one.join().expect("no panic").is_ok()));
    });
    assert!(many[0].says(&leader.key(), &ask).is_ok());
    home.decide(&skep_contribute::node::hex(&stranger.identity.public()), false).expect("known");
    assert_eq!(stranger.says(&leader.key(), &ask), Err(NotPassed::Unknown), "one who is suspended here");
}
