//! The law of the content: the same seed gives the same web, and every moment can be asked without the ones before.

use std::collections::BTreeSet;

use skep_testweb::{Entry, HostPlan, Kind, Mix, Plan, Robots, Shape, Time, World};

fn world(seed: u64) -> World {
    World::build(Plan::mixed(seed, &Mix { hosts: 6, pages: 60, ..Mix::default() })).unwrap()
}

fn truth(world: &World, t: Time) -> Vec<Entry> {
    world.truth(t).map(|entry| entry.unwrap()).collect()
}

/// What was promised to tests elsewhere: digests of a web stay what they are. Images and compressed sitemaps are left out,
/// for their bytes depend on the version of the compressor.
#[test]
fn a_seed_is_a_promise() {
    let world = world(1);
    let mut lines = String::new();
    for days in [0, 100, 400] {
        for entry in truth(&world, Time::BEGIN.plus_days(days)) {
            if entry.kind != Kind::Image && !entry.url.ends_with(".gz") {
                lines += &format!("{} {} {} {}\n", entry.url, entry.status, entry.bytes, entry.digest);
            }
        }
    }
    let hash = lines
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    assert_eq!(
        (lines.lines().count(), hash),
        (1_575, 2_767_003_743_947_582_907),
        "the content of generated webs has changed"
    );
}

#[test]
fn the_same_seed_gives_the_same_web_and_another_another() {
    let t = Time::BEGIN.plus_days(90);
    assert_eq!(truth(&world(5), t), truth(&world(5), t));
    let digests = |seed| truth(&world(seed), t).into_iter().map(|entry| entry.digest).collect::<BTreeSet<_>>();
    let pages = |seed| digests(seed).len();
    assert!(digests(5).intersection(&digests(6)).count() < pages(5) / 10);
}

#[test]
fn a_body_is_the_same_from_its_last_modification_on_and_another_before() {
    let world = World::build(Plan::new(3).host(HostPlan::generated("a.test", Shape::pages(300)))).unwrap();
    let mut changes = 0;
    for days in [3, 77, 180, 300] {
        let t = Time::BEGIN.plus_days(days).plus_ms(12_345);
        for entry in truth(&world, t) {
            let Some(since) = entry.last_modified else { continue };
            assert!(since <= t, "{}", entry.url);
            let then = world.entry(&entry.url, since).unwrap().unwrap();
            assert_eq!(
                (&then.digest, &then.etag, then.last_modified),
                (&entry.digest, &entry.etag, entry.last_modified)
            );
            if since > entry.born.unwrap_or(Time::BEGIN) {
                let before = world.entry(&entry.url, since.plus_ms(-1)).unwrap().unwrap();
                assert_ne!(before.digest, entry.digest, "{} at {t}", entry.url);
                assert_ne!(before.etag, entry.etag);
                changes += 1;
            }
        }
    }
    assert!(changes > 500, "{changes}");
}

#[test]
fn what_lives_can_be_reached_and_what_is_dead_cannot_be_had() {
    let world = World::build(Plan::new(9).host(HostPlan::generated("a.test", Shape::pages(400)))).unwrap();
    let mut mourned = 0;
    for days in [0, 50, 200, 500] {
        let t = Time::BEGIN.plus_days(days);
        let reached: BTreeSet<String> =
            world.reachable(&["http://a.test/"], t, |_| true).unwrap().into_iter().map(|entry| entry.url).collect();
        for entry in truth(&world, t) {
            let item = !matches!(entry.kind, Kind::Robots | Kind::Sitemap);
            match entry.status {
                200..400 if item => assert!(reached.contains(&entry.url), "{} at {t}", entry.url),
                410 => mourned += u32::from(reached.contains(&entry.url)),
                _ => {}
            }
            if let (Kind::Page, Some(born)) = (entry.kind, entry.born) {
                let lives = born <= t && entry.dies.is_none_or(|dies| t < dies);
                assert_eq!(entry.status == 200, lives, "{} at {t}", entry.url);
            }
        }
        let known: BTreeSet<String> = truth(&world, t).into_iter().map(|entry| entry.url).collect();
        assert!(reached.is_subset(&known));
    }
    assert!(mourned > 0, "some broken links are to be found");
}

#[test]
fn before_the_beginning_there_is_nothing() {
    let world = world(2);
    for entry in truth(&world, Time::BEGIN.plus_ms(-1)) {
        assert!(entry.status != 200 || entry.kind == Kind::Robots, "{}", entry.url);
    }
}

#[test]
fn a_frozen_web_never_changes() {
    let mix = Mix { hosts: 3, changing: false, ..Mix::default() };
    let world = World::build(Plan::mixed(4, &mix)).unwrap();
    assert_eq!(truth(&world, Time::BEGIN.plus_days(1)), truth(&world, Time::BEGIN.plus_days(2_000)));
}

#[test]
fn reaching_stops_where_it_is_not_allowed() {
    let world = World::build(Plan::new(9).host(HostPlan::generated("a.test", Shape::pages(100)))).unwrap();
    let t = Time::BEGIN.plus_days(1);
    let all = world.reachable(&[], t, |_| true).unwrap();
    let some = world.reachable(&[], t, |url| !url.contains("/private/")).unwrap();
    assert!(some.len() < all.len() && some.iter().all(|entry| !entry.url.contains("/private/")));
}

#[test]
fn plans_are_read_back_as_written_and_wrong_ones_refused() {
    let plan = Plan::mixed(1, &Mix::default());
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);

    let refused = |host: HostPlan| World::build(Plan::new(1).host(host)).unwrap_err().to_string();
    let shape = Shape::default;
    assert!(refused(HostPlan::generated("Upper.test", shape())).contains("lower-case"));
    assert!(refused(HostPlan::generated("a.test", Shape { pages: 0, ..shape() })).contains("home page"));
    assert!(refused(HostPlan::generated("a.test", Shape { fan_out: 0, ..shape() })).contains("fan_out"));
    assert!(refused(HostPlan::generated("a.test", shape()).on(&["192.0.2.1".parse().unwrap()])).contains("loopback"));
    let astray = HostPlan::generated("a.test", shape()).robots(Robots::RedirectTo("elsewhere".into()));
    assert!(refused(astray).contains("`elsewhere`"));
    assert!(refused(HostPlan::folder("a.test", "no such folder")).contains("no such folder"));
    assert!(refused(HostPlan::history("a.test", "no such repository")).contains("neither a folder nor a bundle"));
    let twice = Plan::new(1).host(HostPlan::generated("a.test", shape())).host(HostPlan::generated("a.test", shape()));
    let crowd = Plan::mixed(1, &Mix { hosts: u32::MAX, pages: u32::MAX, addresses: u32::MAX, ..Mix::default() });
    assert!(World::build(crowd).unwrap_err().to_string().contains("more than"));
    assert!(World::build(twice).unwrap_err().to_string().contains("two of that name"));
}
