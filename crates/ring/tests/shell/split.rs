//! A site that is split, whole at every node and visited by one at a time.

use super::*;

#[test]
fn a_site_that_is_split_is_found_whole_and_visited_by_one_node_at_a_time() {
    let mut world = World::new(Way::Memory(Hub::new()));
    world.settled();
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    let (site, owner) = (UrlKey::of("http://large.example/").site_hash(), Ed25519::from_secret(&[200; 32]));
    let (first, before) = (world.shell(0), "http://www.large.example/before");
    let home = first.slice_of(site);
    world.until("the home is led", |world| world.leader(home).is_some());
    world.archive(world.leader(home).unwrap()).append(page(before, "before")).unwrap().wait().unwrap();
    assert!(first.split(site, BITS + 1, &owner).unwrap_err().contains("1 to 3 bits"));
    assert_eq!(first.split(site, 2, &owner).unwrap().bits, 2);
    world.until("known everywhere", |world| world.up().all(|at| world.shell(at).splits().of(site).is_some()));
    assert!(first.split(site, 3, &owner).unwrap_err().contains("split once"));
    let splits = first.splits();
    assert_eq!(first.slices_of_site(site).iter().collect::<BTreeSet<_>>().len(), 4);

    // Whoever leads a place writes what belongs there.
    let urls: Vec<String> = (0..40).map(|number| format!("http://www.large.example/{number:02}")).collect();
    for url in &urls {
        let place = splits.place(&UrlKey::of(url), i64::MAX);
        let slice = first.slice_of(place);
        world.until("the place is led", |world| world.leader(slice).is_some());
        let Some(leader) = world.leader(slice) else { panic!("led a moment ago") };
        world.archive(leader).append(Append { site_hash: place, ..page(url, "large") }).unwrap().wait().unwrap();
    }
    // What had to be fetched for a page of another place stands there.
    let probe = "http://www.large.example/never-there";
    let own = splits.candidates(&UrlKey::of(probe));
    let other = splits.places(site).into_iter().find(|place| !own.contains(place)).unwrap();
    let slice = first.slice_of(other);
    world.until("the place is led", |world| world.leader(slice).is_some());
    let leader = world.leader(slice).expect("led a moment ago");
    world.archive(leader).append(Append { site_hash: other, ..page(probe, "probe") }).unwrap().wait().unwrap();
    world.settled();
    for at in world.up() {
        let shell = world.shell(at);
        let found = shell.captures_of_places(&Query::new(Match::Exact(UrlKey::of(probe)))).unwrap();
        assert_eq!(found.iter().map(|one| one.url.as_str()).collect::<Vec<_>>(), [probe], "node {at}");
        for url in urls.iter().map(String::as_str).chain([before]) {
            let found = shell.captures_of_places(&Query::new(Match::Exact(UrlKey::of(url)))).unwrap();
            assert_eq!(found.iter().map(|one| one.url.as_str()).collect::<Vec<_>>(), [url], "node {at}");
            let place = found[0].key.site_hash();
            assert!(shell.slices_of(&UrlKey::of(url)).contains(&shell.slice_of(place)));
            assert!(shell.holds(shell.slice_of(place)) || shell.record(&found[0]).is_ok(), "node {at}: {url}");
        }
        // All of it, in one order, also in parts, and in the index over everything.
        let host = Match::Host(UrlKey::of("http://www.large.example/"));
        let all = |query: &Query| -> Vec<String> { shell.scan_places(query).map(|one| one.unwrap().url).collect() };
        let expected: Vec<String> = urls.iter().cloned().chain([before, probe].map(str::to_owned)).collect();
        assert_eq!(all(&Query::new(host.clone())), expected, "node {at}");
        let backward = Query { direction: Direction::Backward, ..Query::new(host.clone()) };
        assert_eq!(all(&backward), expected.iter().rev().cloned().collect::<Vec<_>>(), "node {at}");
        let tenth = shell.captures_of_places(&Query::new(Match::Exact(UrlKey::of(&urls[9])))).unwrap().remove(0);
        let rest = Query { after: Some(Place::of(&tenth)), limit: Some(5), ..Query::new(host) };
        assert_eq!(all(&rest), urls[10..15], "node {at}");
        let everything = shell.scan(&Query::new(Match::All)).map(|one| one.unwrap().url);
        assert_eq!(everything.collect::<BTreeSet<_>>(), expected.into_iter().collect(), "node {at}");
    }

    // Nobody visits without a turn, one has it at a time, and what one heard all hear.
    let turn = |world: &World| -> Option<usize> {
        let now = Instant::now();
        let has = |at: &usize| {
            let visits = &world.machines[*at].up.as_ref().unwrap().1.visits;
            visits.lock().unwrap().as_ref().is_some_and(|(until, _)| now < *until)
        };
        let all: Vec<usize> = world.up().filter(has).collect();
        assert!(all.len() <= 1, "{all:?} visit at once");
        all.first().copied()
    };
    assert_eq!(turn(&world), None);
    world.up().for_each(|at| world.shell(at).pace(site, true, false, None));
    let mut had = BTreeSet::new();
    for number in 0..NODES {
        world.until("somebody's turn", |world| turn(world).is_some_and(|at| !had.contains(&at)));
        let at = turn(&world).unwrap();
        had.insert(at);
        let told = world.machines[at].up.as_ref().unwrap().1.visits.lock().unwrap().take().unwrap().1;
        if number > 0 {
            assert!(told.iter().any(|one| **one == [number as u8]), "node {at} was told {told:?}");
        }
        world.shell(at).pace(site, false, false, Some(vec![number as u8 + 1]));
    }
    // Whoever leads the home hears of all of them but itself.
    world.until("heard of", |world| {
        let heeded = |at: usize| world.machines[at].up.as_ref().unwrap().1.heeded.lock().unwrap().len();
        world.up().map(heeded).sum::<usize>() >= NODES - 1
    });
    world.end();
}
