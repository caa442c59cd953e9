//! Bodies that slices share, told by nodes whose archives are real.

use std::sync::atomic::AtomicBool;

use skep_ring::shell::Owned;

use super::*;

/// A text long enough to be shared, in which its name stands and no other body's.
fn large(name: &str) -> String {
    (0..40_000).map(|number| format!("{name}{number} ")).collect()
}

fn body_of(text: &str, referrer: &str) -> (Body, [u8; 32], [u8; 32]) {
    let key = *blake3::hash(referrer.as_bytes()).as_bytes();
    let Sum { payload, sha256, length, keyed } = Sum::of(&mut text.as_bytes(), &key).unwrap();
    let Digest::Sha1(payload) = payload else { panic!("records have SHA-1") };
    (Body { payload, sha256, length, referrer: referrer.to_owned() }, key, keyed)
}

impl World {
    /// Some sites of slices that different nodes lead: the first is led by one, the others by others.
    fn sites_led_apart(&self) -> Vec<String> {
        let shell = self.shell(0);
        let slice = |number: &u32| shell.slice_of(UrlKey::of(&format!("http://apart{number}.example/")).site_hash());
        let led = |number: &u32| self.leader(slice(number)).expect("somebody leads");
        let others = (1..200).filter(|number| led(number) != led(&0));
        let chosen: Vec<u32> = [0].into_iter().chain(others.take(3)).collect();
        chosen.into_iter().map(|number| format!("http://apart{number}.example")).collect()
    }

    fn leads(&self, url: &str) -> usize {
        let slice = self.shell(0).slice_of(UrlKey::of(url).site_hash());
        self.until("somebody leads", |world| world.leader(slice).is_some());
        self.leader(slice).expect("somebody leads")
    }

    /// Whoever leads there looks for a body in other slices.
    fn looked_for(&self, text: &str, referrer: &str) -> Option<Same> {
        let (body, key, keyed) = body_of(text, referrer);
        let (say, said) = std::sync::mpsc::channel();
        self.shell(self.leads(referrer)).same_body(body, key, keyed, move |same| say.send(same).unwrap());
        said.recv_timeout(PATIENCE).unwrap()
    }

    /// Whoever leads there writes a body, and tells of it.
    fn keep(&self, url: &str, text: &str) {
        let shell = self.shell(self.leads(url));
        shell.archive().append(page(url, text)).unwrap().wait().unwrap();
        let (body, ..) = body_of(text, url);
        shell.kept_body(body.sha256, body.length);
    }

    /// The same for a revisit that stands for a body of another slice, once it is pinned there.
    fn refer(&self, url: &str, text: &str) -> Same {
        let since = Instant::now();
        let same = loop {
            match self.looked_for(text, url) {
                Some(same) => break same,
                None => assert!(since.elapsed() < PATIENCE, "{url} is never pinned"),
            }
        };
        let archive = self.archive(self.leads(url));
        archive.append(revisit(&pin_of(&same, text, url), true)).unwrap().wait().unwrap();
        same
    }

    /// On how many nodes a URL has this body itself, every byte of it.
    fn with_own(&self, url: &str, text: &str) -> usize {
        let (body, key, _) = body_of(text, url);
        let wanted = Wanted { payload: Digest::Sha1(body.payload), sha256: body.sha256, length: body.length, key };
        let has = |at: &usize| {
            let archive = self.archive(*at);
            archive.settle().unwrap();
            let found = archive.views().captures.exact(&UrlKey::of(url)).unwrap().map(Result::unwrap);
            let mut positions = found.map(|capture| capture.position);
            positions.any(|position| archive.same_body_at(position, &wanted).unwrap().is_some())
        };
        self.up().filter(has).count()
    }

    fn instruct_removal(&self, selector: &str) {
        let what = What::Remove { selector: selector.to_owned(), reason: "asked".into() };
        let any = self.up().next().expect("one runs");
        self.shell(any).instruct(what, &Ed25519::from_secret(&[200; 32])).unwrap();
    }
}

#[test]
fn a_body_that_slices_share_is_pinned_and_goes_only_when_each_has_its_own() {
    let mut world = World::new(Way::Memory(Hub::new()));
    for _ in 1..NODES {
        world.join();
    }
    world.settled();
    let sites = world.sites_led_apart();
    let url = |site: usize, name: &str| format!("{}/{name}", sites[site]);

    // Nobody has it; then somebody has; another body with the same name of another algorithm is not the same.
    let bees = large("bees");
    assert_eq!(world.looked_for(&bees, &url(1, "bees")), None);
    world.keep(&url(0, "bees"), &bees);
    let same = world.refer(&url(1, "bees"), &bees);
    assert_eq!(
        (same.url.as_str(), same.position.writer),
        (url(0, "bees").as_str(), world.archive(world.leads(&sites[0])).writer())
    );
    let (mut body, key, keyed) = body_of(&bees, &url(2, "bees"));
    body.sha256[0] ^= 1;
    let (say, said) = std::sync::mpsc::channel();
    world.shell(world.leads(&sites[2])).same_body(body, key, keyed, move |same| say.send(same).unwrap());
    assert_eq!(said.recv_timeout(PATIENCE).unwrap(), None, "its SHA-1 and its length alone make no body");
    assert_eq!(world.looked_for(&bees, &url(0, "again")), None, "slices refer to others, not to themselves");
    world.until("it is counted", |world| {
        let sums: Vec<Sums> = world.statuses().into_iter().map(|status| status.bodies).collect();
        sums.iter().map(|sums| sums.referrers).sum::<u64>() == 1
            && sums.iter().map(|sums| sums.saved_bytes).sum::<u64>() == bees.len() as u64
    });
    world.settled();
    assert_eq!(world.with_own(&url(1, "bees"), &bees), 0);

    // Others that go in other ways: the referrer before, and both by their digest.
    let [wasps, ants] = ["wasps", "ants"].map(large);
    for (name, text) in [("wasps", &wasps), ("ants", &ants)] {
        world.keep(&url(0, name), text);
        world.refer(&url(2, name), text);
    }
    world.settled();
    world.instruct_removal(&format!("url {}", url(2, "wasps")));
    let digest = Sum::of(&mut ants.as_bytes(), &[0; 32]).unwrap().payload;
    world.instruct_removal(&format!("digest {digest}"));
    world.instruct_removal(&format!("url {}", url(0, "wasps")));

    // Its owner removes the original, while one of those who refer to it is down; nobody asked for the referrer to go.
    let down = world.leads(&sites[1]);
    world.stop(down);
    world.instruct_removal(&format!("url {}", url(0, "bees")));
    assert!(world.copies().keys().all(|found| *found != url(0, "bees")), "hidden at once");
    world.start(down, Vec::new());
    world.until("the referrer has its own", |world| world.with_own(&url(1, "bees"), &bees) >= 3);
    world.until("no removed body waits", |world| {
        world.up().all(|at| world.archive(at).removed_and_pinned().unwrap().is_empty())
    });
    world.until_gone("nobody needs these any more", &["wasps39999 ".to_owned(), "ants39999 ".to_owned()]);
    world.settled();
    assert!(world.with_own(&url(1, "bees"), &bees) >= 3);
    world.end();
}

/// A revisit of a URL, and beside it for which body of another slice it stands.
fn revisit(pin: &Pin, refers: bool) -> Append {
    let url = &pin.referrer;
    let length = pin.length;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
    let digest = skep_warc::digest::Digest::parse(&pin.payload.to_string()).unwrap();
    let mut id = [7; 16];
    id[..8].copy_from_slice(&Hash::of("revisit", url.as_bytes()).number().to_le_bytes());
    let (id, date) = (RecordId::uuid(id), rfc3339(now_ms() as i64));
    let mut bytes = Vec::new();
    Record::revisit(&id, &date, url, Revisit::IdenticalPayload(digest), head.as_bytes())
        .refers_to_target_uri(&pin.original)
        .refers_to_date(&rfc3339(pin.original_ms))
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
    let mut records = vec![Encoded::describing(bytes).unwrap()];
    if refers {
        records.insert(0, pin.encode(Role::Reference, now_ms() as i64).unwrap());
    }
    Append { site_hash: UrlKey::of(url).site_hash(), records }
}

/// A node that says of any body that it has it.
struct Liar {
    inner: Arc<dyn Ears>,
    writer: u32,
    url: String,
    asked: AtomicUsize,
}

impl Ears for Liar {
    fn hear(&self, from: Key, frame: Vec<u8>) {
        self.inner.hear(from, frame);
    }
    fn too_long(&self, from: Key, why: &'static str) {
        self.inner.too_long(from, why);
    }
    fn is_member(&self, key: &Key) -> bool {
        self.inner.is_member(key)
    }
    fn answer(&self, from: Key, question: Vec<u8>, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let Some(Question::SameBody { .. }) = Question::decode(&question) else {
            return self.inner.answer(from, question, out);
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let proven = Proven {
            position: (self.writer, 1, 2),
            url: self.url.clone(),
            time_ms: 1,
            record: "urn:uuid:00000000-0000-4000-8000-000000000000".into(),
            proof: Hash([0; 32]),
        };
        out.write_all(&[question::YES])?;
        out.write_all(&postcard::to_allocvec(&proven).unwrap())?;
        out.flush()
    }
}

#[test]
fn who_says_that_it_has_a_body_and_does_not_prove_it_is_not_believed() {
    let hub = Hub::new();
    let mut world = World::new(Way::Memory(hub.clone()));
    for _ in 1..3 {
        world.join();
    }
    world.settled();
    let sites = world.sites_led_apart();
    let (text, referrer) = (large("bees"), format!("{}/bees", sites[1]));
    let liar = world.leads(&sites[0]);
    let (shell, ears) = (world.shell(liar), world.machines[liar].up.as_ref().unwrap().2.clone());
    let lies = Arc::new(Liar {
        inner: ears,
        writer: world.archive(liar).writer().0,
        url: format!("{}/bees", sites[0]),
        asked: AtomicUsize::new(0),
    });
    let heard: Arc<dyn Ears> = lies.clone();
    hub.attach(shell.key(), &heard);
    let (body, ..) = body_of(&text, &referrer);
    shell.kept_body(body.sha256, body.length);
    let asker = world.leads(&referrer);
    world.until("the liar is asked", |world| {
        assert_eq!(world.looked_for(&text, &referrer), None);
        lies.asked.load(Ordering::Relaxed) > 0
    });
    let notes = world.machines[asker].up.as_ref().unwrap().1.notes.lock().unwrap();
    assert!(notes.keys().any(|note| note.contains("does not prove it")), "{notes:?}");
    drop((notes, shell, heard, lies));
    world.end();
}

/// A node that answers some questions with a byte now and then, for ever.
struct Slow {
    inner: Arc<dyn Ears>,
    slowly: fn(&Question) -> bool,
    pause: Duration,
    asked: AtomicUsize,
    over: AtomicBool,
}

impl Slow {
    /// In the place of a node's own ears, from now on.
    fn instead_of(world: &World, at: usize, pause: Duration, slowly: fn(&Question) -> bool) -> Arc<Slow> {
        let Way::Memory(hub) = &world.way else { panic!("what is heard over sockets is not held up") };
        let inner = world.machines[at].up.as_ref().unwrap().2.clone();
        let slow = Arc::new(Slow { inner, slowly, pause, asked: AtomicUsize::new(0), over: AtomicBool::new(false) });
        let heard: Arc<dyn Ears> = slow.clone();
        hub.attach(world.shell(at).key(), &heard);
        slow
    }

    /// Whoever still waits for an answer has it now.
    fn end(self: Arc<Slow>) {
        self.over.store(true, Ordering::Relaxed);
        let since = Instant::now();
        while Arc::strong_count(&self) > 1 && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Ears for Slow {
    fn hear(&self, from: Key, frame: Vec<u8>) {
        self.inner.hear(from, frame);
    }
    fn too_long(&self, from: Key, why: &'static str) {
        self.inner.too_long(from, why);
    }
    fn is_member(&self, key: &Key) -> bool {
        self.inner.is_member(key)
    }
    fn answer(&self, from: Key, question: Vec<u8>, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        if !Question::decode(&question).is_some_and(|question| (self.slowly)(&question)) {
            return self.inner.answer(from, question, out);
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        out.write_all(&[question::YES])?;
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(self.pause);
            out.write_all(&[0])?;
            out.flush()?;
        }
        Ok(())
    }
}

impl World {
    /// What a node answers whoever says that a body is to go to which a URL refers.
    fn asked_to_keep(&self, at: usize, from: usize, pin: &Pin, writes: bool) -> Result<Owned, String> {
        let Digest::Sha1(payload) = pin.payload else { panic!("records have SHA-1") };
        let question = Question::KeepBody {
            body: Body { payload, sha256: pin.sha256, length: pin.length, referrer: pin.referrer.clone() },
            position: (pin.position.writer.0, pin.position.segment, pin.position.record),
            url: pin.original.clone(),
            time_ms: pin.original_ms,
            writes,
        };
        let mut answer = Vec::new();
        let ears = self.machines[at].up.as_ref().unwrap().2.clone();
        ears.answer(self.shell(from).key(), question.encode(), &mut answer).unwrap();
        match answer.split_first() {
            Some((&question::YES, said)) => Ok(postcard::from_bytes(said).unwrap()),
            no => Err(String::from_utf8_lossy(no.unwrap().1).into_owned()),
        }
    }

    /// A network of three nodes, in which the sites of [`World::sites_led_apart`] are everywhere.
    fn of_three() -> (World, Vec<String>) {
        let mut world = World::new(Way::Memory(Hub::new()));
        for _ in 1..3 {
            world.join();
        }
        world.settled();
        let sites = world.sites_led_apart();
        (world, sites)
    }
}

fn pin_of(same: &Same, text: &str, referrer: &str) -> Pin {
    let Sum { payload, sha256, length, .. } = Sum::of(&mut text.as_bytes(), &[0; 32]).unwrap();
    Pin {
        position: same.position,
        original: same.url.clone(),
        original_ms: same.time_ms,
        referrer: referrer.to_owned(),
        payload,
        sha256,
        length,
    }
}

#[test]
fn who_answers_with_a_byte_now_and_then_is_not_waited_for() {
    let (world, sites) = World::of_three();
    let (text, referrer) = (large("bees"), format!("{}/bees", sites[1]));
    let asker = world.leads(&referrer);
    let others = world.up().filter(|at| *at != asker);
    let slow: Vec<Arc<Slow>> = others
        .map(|at| {
            let pause = Duration::from_secs(1);
            Slow::instead_of(&world, at, pause, |question| matches!(question, Question::WhoHasBody { .. }))
        })
        .collect();
    let since = Instant::now();
    assert_eq!(world.looked_for(&text, &referrer), None);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    assert!(slow.iter().any(|slow| slow.asked.load(Ordering::Relaxed) > 0));
    slow.into_iter().for_each(Slow::end);
    world.end();
}

#[test]
fn who_brings_a_body_slowly_holds_up_nobody_else() {
    let (world, sites) = World::of_three();
    let (bees, ants) = (large("bees"), large("ants"));
    let [original, referrer] = [0, 1].map(|site| format!("{}/bees", sites[site]));
    let [writer, leader] = [&original, &referrer].map(|url| world.leads(url));
    let slowly = (0..3).find(|at| ![writer, leader].contains(at)).unwrap();
    world.keep(&original, &bees);
    let pin = pin_of(&world.refer(&referrer, &bees), &bees, &referrer);
    let other = format!("{}/ants", sites[1]);
    world.keep(&format!("{}/ants", sites[0]), &ants);
    let of_ants = pin_of(&world.refer(&other, &ants), &ants, &other);
    world.settled();
    let slow = Slow::instead_of(&world, slowly, Duration::from_millis(50), |question| {
        matches!(question, Question::PinnedBody { .. })
    });
    std::thread::scope(|scope| {
        let world = &world;
        scope.spawn(|| world.asked_to_keep(leader, slowly, &pin, true));
        world.until("it is asked for the body", |_| slow.asked.load(Ordering::Relaxed) > 0);
        let said = world.asked_to_keep(leader, slowly, &of_ants, true).unwrap_err();
        assert!(said.contains("just now"), "one at a time: {said}");
        let since = Instant::now();
        assert_eq!(world.asked_to_keep(leader, writer, &of_ants, false).unwrap_err(), "nobody was asked");
        for pin in [&of_ants, &pin] {
            assert_eq!(world.asked_to_keep(leader, writer, pin, true), Ok(Owned::Own));
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
        // Nobody would look after that pair any more.
        assert_eq!(world.looked_for(&bees, &referrer), None);
        slow.over.store(true, Ordering::Relaxed);
    });
    slow.end();
    world.end();
}

#[test]
fn a_revisit_gets_a_body_of_its_own_only_for_what_is_said_beside_it() {
    let (world, sites) = World::of_three();
    let bees = large("bees");
    let url = |site: usize, name: &str| format!("{}/{name}", sites[site]);
    let (original, referrer, neighbour) = (url(0, "bees"), url(1, "bees"), url(1, "neighbour"));
    let (writer, leader) = (world.leads(&original), world.leads(&referrer));
    world.keep(&original, &bees);
    let pin = pin_of(&world.refer(&referrer, &bees), &bees, &referrer);
    // A revisit that stands for what its own slice has.
    let archive = world.archive(leader);
    let said = archive.append(revisit(&Pin { referrer: neighbour.clone(), ..pin.clone() }, false)).unwrap();
    said.wait().unwrap();
    world.settled();
    let others = [
        Pin { referrer: neighbour, ..pin.clone() },
        Pin { sha256: [1; 32], ..pin.clone() },
        Pin { position: skep_archive::Position { record: pin.position.record + 1, ..pin.position }, ..pin.clone() },
    ];
    for other in others {
        assert_eq!(world.asked_to_keep(leader, writer, &other, true), Ok(Owned::Nobody), "{other:?}");
    }
    let small = Pin { length: 1_000, ..pin.clone() };
    assert!(world.asked_to_keep(leader, writer, &small, true).is_err());
    assert_eq!(world.with_own(&referrer, &bees), 0);
    assert_eq!(world.asked_to_keep(leader, writer, &pin, true), Ok(Owned::Own));
    drop(archive);
    world.end();
}
