//! The holder nearest to a site fetches for whoever leads: one of three nodes is near to the web, the others are far from it.

use crate::ring::{Ring, TIMES, alone};
use serde_json::Value;

/// Pages of each site: bundles worth giving away.
const PAGES: u32 = 14;
/// So much longer is the way to the web for those who are far from it.
const FAR_MS: u32 = 120;
/// The node that is near to the web; it is not the one that made the network.
const NEAR: usize = 2;
const FAR: [usize; 2] = [0, 1];

/// Three nodes that hold everything. Leases are long enough to have bundles fetched under them, and all have heard of the crawl before
/// anybody leads for somebody else.
fn three() -> Ring {
    let times =
        TIMES.replace("lease=6s", "lease=90s").replace("recover=15s", "recover=130s").replace("rank=0.5s", "rank=5s");
    let mut first = Ring::told(PAGES, &times, |_| ["--near", "on"].map(str::to_owned).to_vec());
    first.net.far(0, FAR_MS);
    let mut ring = first.grown(3);
    ring.net.far(1, FAR_MS);
    ring
}

fn near(status: &Value, name: &str) -> i64 {
    status["near"][name].as_i64().unwrap_or(0)
}

/// Lines of records that a node wrote itself, whoever has copies.
fn written(ring: &Ring, node: usize, beginning: &str) -> usize {
    let identity = skep_archive::Identity::load(&ring.archive(node).join("settings")).expect("a key").expect("a key");
    let grep = format!(
        "find node-{node}/segments -name '{}-*.warc.gz' -exec zcat {{}} + 2>/dev/null | grep -ac '^{beginning}' || true",
        identity.writer()
    );
    ring.site.shell(&grep).text().trim().parse().expect("a number")
}

#[test]
fn the_node_nearest_to_a_site_fetches_and_whoever_leads_writes() {
    let expected = alone(PAGES);
    let ring = three();
    ring.crawl(0);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_on(&expected, 3);
    ring.is_polite();
    let twice: Vec<_> = ring.fetches().into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "fetched more than once: {twice:?}");

    // Those who are far wrote what they lead, and most of it was fetched by the one who is near.
    let statuses: Vec<Value> = ring.up().into_iter().map(|node| ring.status(node)).collect();
    let hands = format!("hands: node {}", &statuses[NEAR]["node"].as_str().expect("its key")[..16]);
    let theirs: usize = FAR.iter().map(|node| written(&ring, *node, "skep-visit: ")).sum();
    let by_near: usize = FAR.iter().map(|node| written(&ring, *node, &hands)).sum();
    let (near_asked, far_asked) = (ring.asked_by(&[NEAR]), ring.asked_by(&FAR));
    println!(
        "{by_near} of {theirs} records of far nodes by the near one; requests: near {near_asked}, far {far_asked}"
    );
    assert!(by_near * 2 > theirs, "{by_near} of {theirs}");
    assert!(near_asked > far_asked, "near {near_asked}, far {far_asked}");
    assert_eq!(written(&ring, NEAR, "hands: node "), 0, "nobody is nearer than the near one");

    // The gain is told.
    let sum = |name: &str| FAR.iter().map(|node| near(&statuses[*node], name)).sum::<i64>();
    println!("near: {} {} {}", statuses[0]["near"], statuses[1]["near"], statuses[NEAR]["near"]);
    assert!(sum("urls") >= by_near as i64);
    assert!(sum("back") > 0 && sum("hosts") > 0 && sum("connect_ms_saved") > 0);
    assert!(near(&statuses[NEAR], "followed") >= sum("back") && sum("out") == 0);
    let helped = FAR.into_iter().find(|node| near(&statuses[*node], "back") > 0).expect("one that was helped");
    assert!(ring.skep(helped, &["ring"]).text().contains("ms of connecting saved"));
    assert!(ring.get(helped, "/ring").1.contains("nearer to other holders"));
    let metrics = ring.get(helped, "/metrics").1;
    let metric = format!("skep_ring_near_bundles {}", near(&statuses[helped], "back"));
    assert!(metrics.contains(&metric), "{metric}: {metrics}");
}

/// A bundle of one who is far is with the one who is near.
fn given(ring: &Ring) {
    ring.until("a bundle with the near node", &FAR, |all| all.iter().any(|one| near(one, "out") > 0));
}

/// All of them are back, one way or the other.
fn all_back(ring: &Ring) {
    ring.until("all bundles back", &FAR, |all| all.iter().all(|one| near(one, "out") == 0));
}

#[test]
fn a_near_node_that_is_cut_off_stops_before_who_leads_goes_on() {
    let expected = alone(PAGES);
    let ring = three();
    ring.crawl(0);
    given(&ring);
    // It still reaches the web, and does not hear any more that nobody listens.
    ring.net.split(&[NEAR], &FAR);
    all_back(&ring);
    let asked = ring.asked_by(&FAR);
    ring.until("fetched by who leads", &FAR, |_| ring.asked_by(&FAR) > asked);
    ring.net.heal(&[NEAR], &FAR);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_polite();
}

#[test]
fn a_near_node_that_is_killed_in_the_middle_of_a_bundle_loses_nothing() {
    let expected = alone(PAGES);
    let mut ring = three();
    ring.crawl(0);
    given(&ring);
    ring.kill(NEAR);
    all_back(&ring);
    ring.start(NEAR, &[]);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_on(&expected, 3);
    ring.is_polite();
}
