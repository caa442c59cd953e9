//! Contributors of a ring: real nodes and real volunteers, each in a namespace of its own, over a web whose truth is known.

#[path = "../site/delays.rs"]
mod delays;
#[allow(dead_code, reason = "taken as a whole from the tests of the ring")]
#[path = "../ring/net.rs"]
mod net;
#[allow(dead_code, reason = "taken as a whole from the tests of the ring")]
#[path = "../ring/ring.rs"]
mod ring;
#[path = "../site/mod.rs"]
mod site;

use delays::Delays;
use ring::{Ring, alone};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pages of each site.
const PAGES: u32 = 4;
const NODES: usize = 3;
const CONTRIBUTORS: usize = 6;
/// Volunteers that are killed and stay dead.
const DEAD: usize = 2;
/// A site is with a contributor for no longer than its node leads the slice for certain.
const LEASE: &str = "lease=150s";
/// Long enough for all to hear of the crawl before anybody leads for somebody else.
const RANK: &str = "rank=10s";
/// Longer than a lease takes to run out.
const RECOVER: &str = "recover=200s";

/// A number of the soak, or what a test takes.
fn asked(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A volunteer in a namespace of its own. It ends with this.
struct Volunteer(Child);

impl Volunteer {
    /// Who was told of one node alone.
    fn begin(ring: &Ring, number: usize, machine: usize, node: usize) -> Volunteer {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &ring.net.space(machine), env!("CARGO_BIN_EXE_skep"), "contribute"]);
        command.arg(portal(ring, node)).args(["--allow-private", "--page", "no", "--ca", "chain.pem", "--dir"]);
        command.arg(ring.site.path(&format!("contributor-{number}")));
        for resolve in ring.web.map().hosts.iter().flat_map(|place| &place.resolve) {
            command.args(["--resolve", resolve]);
        }
        let said = ring.site.path(&format!("contributor-{number}.said"));
        let said = std::fs::File::options().create(true).append(true).open(said).expect("a file");
        command.current_dir(ring.site.root()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        Volunteer(command.spawn().expect("a contributor starts"))
    }
}

impl Drop for Volunteer {
    /// SIGKILL, in the middle of whatever it does.
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn portal(ring: &Ring, node: usize) -> String {
    format!("https://{}:7070/", ring.net.of(node))
}

/// Lines of records in the archives of all nodes, copies included.
fn lines(ring: &Ring, beginning: &str) -> usize {
    let grep = format!(
        "find node-* -path '*/segments/*' -name '*.warc.gz' -exec zcat {{}} + 2>/dev/null | grep -ac '^{beginning}' || true"
    );
    ring.site.shell(&grep).text().trim().parse().expect("a number")
}

/// A ring whose nodes hand out all that they lead, and machines for volunteers.
fn handing_out(volunteers: usize, pages: u32, public: bool) -> (Ring, Vec<usize>) {
    let times = ring::TIMES.replace("lease=6s", LEASE).replace("recover=15s", RECOVER).replace("rank=0.5s", RANK);
    // From the beginning: after a restart who led last leads for a lease's time.
    let mut ring = Ring::told(pages, &times, |ring| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let names: Vec<String> = (0..NODES).map(|node| ring.net.of(node).to_string()).collect();
        let params = rcgen::CertificateParams::new(names).expect("names");
        ring.site.write("chain.pem", params.self_signed(&key).expect("a certificate").pem());
        ring.site.write("key.pem", key.serialize_pem());
        // They know contributors of one machine from those of another.
        let machines = NODES..NODES + volunteers;
        let networks: String =
            machines.map(|machine| format!("{}/32 {}\n", ring.net.of(machine), 64_500 + machine)).collect();
        for node in 0..NODES {
            ring.site.write(&format!("node-{node}/settings/networks.txt"), &networks);
        }
        let mut told = vec!["--by-contributors", "--tls", "chain.pem,key.pem"];
        if public {
            told.extend(["--public", "https://ADDRESS:7070/"]);
        }
        told.into_iter().map(str::to_owned).collect()
    });
    ring = ring.grown(NODES);
    let machines = (0..volunteers).map(|_| ring.net.machine()).collect();
    (ring, machines)
}

/// What any node has given to a volunteer who has not brought it back: hosts, and for how long it may have them.
fn out(ring: &Ring, number: usize) -> Vec<(String, Duration)> {
    let key = Delays::key(&ring.site.path(&format!("contributor-{number}")));
    // A node that does not know it says so, and shows nothing.
    let shown = |key: &String, node: usize| ring.skep(node, &["contributors", "show", key, "--json"]);
    let nodes = key.iter().flat_map(|key| (0..NODES).map(move |node| shown(key, node)));
    nodes.flat_map(|shown| Delays::out(&shown)).collect()
}

/// Nodes that have had contributors who brought something: they led, and keep account of them themselves. Whether each of them leads one
/// of the few sites is up to their keys; that one leads all of them is next to impossible.
fn helped(ring: &Ring) -> usize {
    let brought = |node: usize| {
        let known = ring.skep(node, &["contributors", "--json"]).json();
        known.iter().any(|one| one["urls"].as_u64().unwrap_or(0) > 0)
    };
    (0..NODES).filter(|node| brought(*node)).count()
}

#[test]
fn contributors_of_three_nodes_make_the_archive_that_one_would_have_made_and_killing_them_loses_nothing() {
    let (count, pages) = (asked("SKEP_CONTRIBUTORS", CONTRIBUTORS), asked("SKEP_PAGES", PAGES as usize) as u32);
    let expected = alone(pages);
    let (ring, machines) = handing_out(count, pages, true);
    // Nobody was told of any node but the first: whoever has nothing to do is sent to another.
    let begin = |number: usize| Volunteer::begin(&ring, number, machines[number], 0);
    let mut volunteers: Vec<Option<Volunteer>> = (0..count).map(|number| Some(begin(number))).collect();
    ring.crawl(0);
    let (is_over, mut killed) = (AtomicBool::new(false), 0);
    let (mut delays, mut dead) = (Delays::default(), Vec::new());
    std::thread::scope(|scope| {
        let crawled = scope.spawn(|| {
            ring.crawled(&expected);
            is_over.store(true, Ordering::Relaxed);
        });
        // After some requests, again and again, one is killed, and begins anew where it was killed. Two stay dead, with bundles in their hands.
        while !is_over.load(Ordering::Relaxed) && !crawled.is_finished() {
            if ring.web.requests().len() > 25 * (killed + 1) && killed < count {
                volunteers[killed] = None;
                if !dead.contains(&killed) {
                    volunteers[killed] = Some(begin(killed));
                }
                killed += 1;
            } else if ring.web.requests().len() > 15 && dead.len() < DEAD {
                let busy = (0..count).find(|number| !dead.contains(number) && !out(&ring, *number).is_empty());
                if let Some(number) = busy {
                    volunteers[number] = None;
                    let killed = Instant::now();
                    dead.push(number);
                    delays.expect(killed, out(&ring, number));
                    let ring = &ring;
                    scope.spawn(move || Delays::go_back(|| out(ring, number)));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_polite();
    let (theirs, all) = (lines(&ring, "hands: contributor "), lines(&ring, "skep-visit: "));
    println!("{count} contributors of {NODES} nodes, {killed} SIGKILLs, {theirs} of {all} records by contributors");
    assert!(killed > 0);
    assert_eq!(dead.len(), DEAD, "somebody had something in hand");
    assert!(delays.count() > 0, "and had not returned it before being killed");
    delays.were_short(&ring.web);
    assert!(theirs * 2 > all, "{theirs} of {all} records by contributors");
    assert!(helped(&ring) > 1, "also a node that nobody was told of has had contributors");
    ring.is_on(&expected, NODES);
}

#[test]
fn contributors_who_reach_one_node_only_work_for_all_through_it() {
    let expected = alone(PAGES);
    let (ring, machines) = handing_out(2, PAGES, false);
    // Nothing but the first node can be reached: whatever they do for others goes over the ring.
    let others: Vec<usize> = (1..NODES).collect();
    ring.net.split(&machines, &others);
    let _volunteers: Vec<Volunteer> =
        machines.iter().enumerate().map(|(number, machine)| Volunteer::begin(&ring, number, *machine, 0)).collect();
    ring.crawl(0);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_polite();
    assert!(helped(&ring) > 1, "only the node that they reach has had contributors");
    let (theirs, all) = (lines(&ring, "hands: contributor "), lines(&ring, "skep-visit: "));
    println!("2 contributors of 1 of {NODES} nodes, {theirs} of {all} records by contributors");
    assert!(theirs * 2 > all, "{theirs} of {all} records by contributors");
    ring.is_on(&expected, NODES);
}
