//! What goes wrong with machines, disks and networks, and what must hold all the same.

use crate::ring::{Ring, alone};
use crate::small::Small;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;

/// Pages of each site.
const PAGES: u32 = 6;

/// Room for a node with all its tables, and the reserve that it keeps free.
const DISK_MEGABYTES: u32 = 320;

/// Waits until the crawl is well under way.
fn under_way(ring: &Ring, visits: u64) {
    let up = ring.up();
    ring.until("visits", &up, |all| {
        let visits_of = |one: &serde_json::Value| one["crawl"]["progress"]["visits"].as_u64().unwrap_or(0);
        all.iter().map(visits_of).sum::<u64>() >= visits
    });
}

#[test]
fn nodes_that_are_killed_restarted_lost_or_come_and_go_during_a_crawl_lose_nothing() {
    let expected = alone(PAGES);
    let mut ring = Ring::of(5, PAGES);
    ring.crawl(0);
    under_way(&ring, 10);

    // The one that leads most is killed, and comes back. What was safe on most of its holders before is there while it is not, and every
    // other portal answers for what all holders had.
    let (mut noted, safe, leader) = (ring.noted(2), ring.kept_on(3), ring.leads_most());
    ring.kill(leader);
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&safe);
    under_way(&ring, 15);
    noted.extend(ring.noted(2));
    ring.start(leader, &[]);
    // A sixth comes in meanwhile, and one that was there leaves.
    let sixth = ring.join();
    ring.skep(2, &["ring", "leave"]).exits(0);
    ring.ends(2);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected);
    ring.is_on(&expected, 3);
    ring.nothing_is_lost(&noted);
    ring.is_polite();
    assert!(ring.up().contains(&sixth));

    // Two at once, killed; then every surviving portal still answers.
    let noted = ring.noted(3);
    ring.kill(3);
    ring.kill(4);
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);
    ring.start(3, &[]);
    ring.start(4, &[]);
    ring.settled();

    // One is lost with its disk: what it held is copied from others.
    let noted = ring.noted(2);
    let fetches = ring.fetches();
    ring.kill(3);
    std::fs::remove_dir_all(ring.archive(3)).expect("its disk is gone");
    ring.until("repaired", &ring.up(), |all| all.iter().all(|one| one["settled"] == true));
    ring.is_on(&expected, 3);
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);

    // All are restarted, one after the other.
    for node in ring.up() {
        ring.stop(node);
        ring.start(node, &[]);
    }
    ring.until("settled again", &ring.up(), |all| all.iter().all(|one| one["settled"] == true && one["acts"] == true));
    ring.is_on(&expected, 3);
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);
    assert_eq!(ring.fetches(), fetches, "fetched anew what nobody had lost");
}

#[test]
fn two_nodes_that_are_lost_at_once_with_their_disks_take_nothing_with_them() {
    let expected = alone(3);
    let mut ring = Ring::of(5, 3);
    ring.crawl(0);
    ring.crawled(&expected);
    ring.is_on(&expected, 3);
    let (noted, fetches) = (ring.noted(3), ring.fetches());
    // Of some slices one holder remains, which is too few to agree upon anything: it goes on alone, and others copy from it.
    for node in [1, 3] {
        ring.kill(node);
        std::fs::remove_dir_all(ring.archive(node)).expect("its disk is gone");
    }
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);
    ring.until("repaired", &ring.up(), |all| all.iter().all(|one| one["settled"] == true && one["acts"] == true));
    ring.is_on(&expected, 3);
    assert_eq!(ring.union(), expected);
    // Copied from who was left, and not fetched once more.
    ring.nothing_is_lost(&noted);
    assert_eq!(ring.fetches(), fetches, "fetched anew what nobody had lost");
    ring.portals_answer(&expected);
    ring.is_polite();
}

#[test]
fn a_ring_that_is_split_under_a_crawl_hurries_nobody_and_heals() {
    let expected = alone(PAGES);
    let ring = Ring::of(5, PAGES);
    ring.crawl(0);
    under_way(&ring, 10);
    let (few, many) = ([0, 1], [2, 3, 4]);
    let by_many = ring.asked_by(&many);
    let noted = ring.noted(2);
    ring.net.split(&few, &many);
    // The larger part calls the others absent and goes on; the smaller one fetches nothing any more.
    ring.until("the few stop", &few, |all| all.iter().all(|one| one["leads"] == 0 && one["acts"] == false));
    let by_few = ring.asked_by(&few);
    ring.until("the many go on", &many, |all| {
        all.iter().all(|one| {
            let absent = one["nodes"].as_array().into_iter().flatten().filter(|node| node["state"] == "absent").count();
            absent == 2
        })
    });
    ring.until("the many fetch", &many, |_| ring.asked_by(&many) > by_many);
    // Nor do they ask a site whose it is: they cannot know who leads it.
    let hosts: BTreeSet<&str> = expected.iter().filter_map(|(url, _)| url.split('/').nth(2)).collect();
    assert!(hosts.len() > 5, "{hosts:?}");
    std::thread::scope(|scope| {
        for (node, host) in few.iter().flat_map(|node| hosts.iter().map(move |host| (*node, *host))) {
            let ring = &ring;
            scope.spawn(move || {
                let (status, said) = ring.post(node, "/owner", &format!("host={host}&wish=stop"));
                assert!(status >= 400, "{host} at {node}: {status} {said}");
            });
        }
    });
    assert_eq!(ring.asked_by(&few), by_few, "the few fetched while they were few");
    ring.portals_answer_for_their_own();
    ring.net.heal(&few, &many);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected);
    ring.is_on(&expected, 3);
    ring.nothing_is_lost(&noted);
    ring.is_polite();
    ring.portals_answer(&expected);
}

#[test]
fn a_node_whose_disk_is_full_says_so_and_the_others_carry_on() {
    let expected = alone(PAGES);
    let mut ring = Ring::new(PAGES);
    let small = Small::mount(&ring.archive(1), DISK_MEGABYTES);
    for _ in 1..5 {
        ring.join();
    }
    ring.settled();
    ring.crawl(0);
    under_way(&ring, 10);
    let noted = ring.noted(2);
    small.fill();
    ring.until("it says that its disk is full", &[1], |all| {
        all.iter().all(|one| (one["full"] == true || one["mute"] == true) && one["leads"] == 0)
    });
    // The others crawl everything, and each page is on two of them at least.
    let others = [0, 2, 3, 4];
    ring.crawled_by(&others, &expected);
    ring.is_polite();
    ring.portals_answer(&expected);
    assert!(ring.skep(1, &["ring"]).text().contains("disk"), "{}", ring.skep(1, &["ring"]).text());
    // When there is room again it goes on by itself.
    small.empty();
    ring.settled();
    ring.is_on(&expected, 3);
    assert_eq!(ring.union(), expected);
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);
}

#[test]
fn a_flipped_bit_is_repaired_and_a_removal_followed_everywhere() {
    let expected = alone(3);
    let mut ring = Ring::of(5, 3);
    ring.crawl(2);
    ring.crawled(&expected);
    ring.skep(0, &["ring", "stop", crate::ring::CRAWL]).exits(0);
    // What is open is sealed when a node ends, and copied as sealed.
    for node in ring.up() {
        ring.stop(node);
        ring.start(node, &[]);
    }
    ring.settled();

    let noted = ring.noted(3);
    // One bit of a sealed segment flips on one disk.
    let segment = sealed(&ring, 1);
    let before = std::fs::read(&segment).expect("a segment");
    let file = std::fs::File::options().read(true).write(true).open(&segment).expect("a segment");
    let at = before.len() as u64 / 2;
    file.write_all_at(&[before[at as usize] ^ 1], at).expect("a bit");
    let since = std::time::Instant::now();
    while std::fs::read(&segment).expect("a segment") != before {
        assert!(since.elapsed() < crate::ring::PATIENCE, "never repaired: {}", ring.said(1));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    ring.settled();
    ring.nothing_is_lost(&noted);
    ring.portals_answer(&expected);

    // Who neither made the network nor wrote a page removes it for nobody else; who made it removes it everywhere, whoever holds it.
    let is_alone = |digest: &String| expected.iter().filter(|(_, other)| other == digest).count() == 1;
    let is_page = |url: &String| url.contains(".html") && !url.contains("/missing/");
    let page = expected.iter().find(|(url, digest)| is_page(url) && is_alone(digest));
    let (url, _) = page.expect("a page whose body is that of no other");
    let shown = |node: usize| ring.get(node, &format!("/web/2030id_/{url}")).0;
    let wrote: Vec<serde_json::Value> =
        ring.up().into_iter().flat_map(|node| ring.skep(node, &["--json", "captures", url]).json()).collect();
    let is_writer = |node: usize| {
        let own = skep_archive::Identity::load(&ring.archive(node).join("settings")).expect("a key").expect("a key");
        let own = format!("{}:", own.writer());
        wrote.iter().any(|capture| capture["position"].as_str().is_some_and(|position| position.starts_with(&own)))
    };
    // Its body as it stands in the records, and in those of no other page.
    let body = ring.up().into_iter().flat_map(|node| ring.blocks(node)).find_map(|(of, block)| {
        let body = block.strip_prefix(b"HTTP/").filter(|_| of == *url)?;
        let at = body.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        (body.len() > at + 64).then(|| body[at..].to_vec())
    });
    let body = body.expect("a body that is found again");
    let with_body = || ring.up().into_iter().map(|node| ring.records_with(node, &body)).collect::<Vec<_>>();
    let has_it = with_body();
    assert!(has_it.iter().flatten().all(|of| of == url), "{has_it:?}");
    assert!(has_it.iter().filter(|of| !of.is_empty()).count() >= 3, "{has_it:?}");

    let other = (1..5).find(|node| !is_writer(*node)).expect("somebody who did not write it");
    ring.skep(other, &["remove", url, "--reason", "not mine to remove"]);
    // Also when all have copied what it said.
    ring.settled();
    let statuses: Vec<u16> = (0..5).map(shown).collect();
    let others_show = (0..5).filter(|node| *node != other && statuses[*node] != 404).count() >= 2;
    assert!(others_show, "node {other} has removed {url} for others: {statuses:?}, written at {wrote:?}");
    ring.skep(0, &["remove", url, "--reason", "asked by its owner"]).exits(0);
    ring.until("removed everywhere", &ring.up(), |_| ring.up().into_iter().all(|node| shown(node) == 404));
    ring.settled();
    assert!(ring.union().iter().all(|(kept, _)| kept != url));
    // Not only hidden: no segment of anybody has its bytes any more.
    ring.until("written out everywhere", &ring.up(), |_| with_body().iter().all(|of| of.is_empty()));
    ring.portals_answer(&expected.iter().filter(|(of, _)| of != url).cloned().collect());
}

/// A sealed segment with something in it, in the archive of a node.
fn sealed(ring: &Ring, node: usize) -> std::path::PathBuf {
    let found = ring
        .site
        .shell(&format!("find {} -name '*.warc.gz' -size +2k | sort", ring.archive(node).join("segments").display()));
    let own_first = found.text();
    let path = own_first.lines().next().expect("a segment").to_owned();
    path.into()
}
