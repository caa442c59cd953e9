//! What contributors never do, whatever a node says and a site sends: by the real binary, as seen from outside.

#[path = "site/gauge.rs"]
mod gauge;
#[path = "site/ill_node.rs"]
mod ill_node;
#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "site/volunteers.rs"]
mod volunteers;
#[path = "site/web.rs"]
mod web;

use gauge::{Gauge, ROOM_BYTES};
use ill_node::{BEYOND, IllNode, bundle};
use portal::Portal;
use site::Site;
use skep_archive::system_clock;
use skep_contribute::limits::{CARRY_SECONDS, IN_HAND_PER_CONNECTION};
use skep_contribute::message::{Answer, Bundle, Request as Asked};
use skep_testweb::{Content, HostPlan, Plan, Request};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use volunteers::{Contributor, Ground, PATIENCE, asked, crawl, words};

#[test]
fn what_the_fetcher_must_not_be_able_to_do_it_cannot_do() {
    let site = Site::new();
    let mut contributor = Contributor::begin(&site, 1, "127.0.0.1:9", None, &[]);
    let said = contributor.until_said("seccomp");
    assert!(!said.contains("not held"), "{said}");
    let folder = contributor.folder.display().to_string();
    let tried = site.skep(&["contribute", "--try-sandbox", "--dir", &folder]).exits(0);
    assert!(tried.text().lines().count() >= 18, "{}", tried.text());
    assert!(!tried.text().contains("POSSIBLE"), "{}", tried.text());
    for hostile in [
        "read a file",
        "connect",
        "run a program",
        "start a thread",
        "see the environment",
        "signal its parent",
        "make its parent the owner of a descriptor",
        "speak to devices",
        "run what was written",
    ] {
        assert!(tried.text().contains(&format!("refused   {hostile}")), "{}", tried.text());
    }
}

#[test]
fn the_fetcher_has_no_terminal_and_no_file_that_somebody_left_open() {
    let site = Site::new();
    site.write("secret", "nobody's business");
    // Not closed by whoever is started: as a shell leaves what was opened with `exec 9<file`.
    let left_open = rustix::io::dup(std::fs::File::open(site.path("secret")).expect("a file")).expect("a descriptor");
    let mut contributor = Contributor::begin(&site, 1, "127.0.0.1:9", None, &[]);
    drop(left_open);
    contributor.until_said("seccomp");
    let open = |process: u32| -> Vec<(String, String)> {
        let listed = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors").flatten();
        let read = |entry: std::fs::DirEntry| {
            let to = std::fs::read_link(entry.path()).ok()?.display().to_string();
            Some((entry.file_name().to_str()?.to_owned(), to))
        };
        listed.filter_map(read).collect()
    };
    let main = contributor.child.id();
    assert!(open(main).iter().any(|(_, to)| to.ends_with("/secret")), "it was handed down: {:?}", open(main));
    for role in ["broker", "fetcher"] {
        let open = open(in_role(main, role));
        assert!(!open.iter().any(|(_, to)| to.ends_with("/secret")), "{role}: {open:?}");
    }
    let open = open(in_role(main, "fetcher"));
    assert!(open.contains(&("2".into(), "/dev/null".into())), "{open:?}");
}

#[test]
fn rate_connections_and_quota_hold_as_seen_from_outside() {
    const RATE: u64 = 200_000;
    const FILE: usize = 200_000;
    const HOSTS: u32 = 5;
    // More than the rate allows in the time that is asked for. What is fetched and has yet to be returned counts against the quota as well: two
    // bundles for each of two connections, each of no more than goes over the line in a minute. The hosts are ours: they rest no longer than the
    // contributor itself lets them.
    let seconds = u64::from(asked("SKEP_SECONDS", 90));
    let time = Duration::from_secs(seconds);
    let quota = RATE * (seconds + seconds.min(2 * IN_HAND_PER_CONNECTION as u64 * CARRY_SECONDS));
    let files = quota as u32 / FILE as u32 / HOSTS + 10;
    let site = Site::filled();
    let mut plan = Plan::new(5);
    for number in 0..HOSTS {
        let mut links = String::from("<title>files</title>");
        for file in 0..files {
            links.push_str(&format!("<a href='{file}.txt'>{file}</a>\n"));
            let text: String = (0..FILE / 8)
                .map(|n| format!("{:07x} ", (n as u32 ^ file << 9 ^ number << 20).wrapping_mul(2_654_435_761) >> 4))
                .collect();
            site.write(&format!("files{number}/{file}.txt"), &text.as_bytes()[..FILE]);
        }
        site.write(&format!("files{number}/index.html"), links);
        plan = plan
            .host(HostPlan::new(&format!("files{number}.test"), Content::Folder(site.path(&format!("files{number}")))));
    }
    let web = web::start(plan);
    let portal = Portal::begin(&site, &["--contributors"]);
    let mut command = site.command(&words(&crawl(&web, &["--by-contributors", "--own", "*.test", "--pace", "none"])));
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("skep starts");
    let month = quota.to_string();
    // Whatever comes from or goes to anybody passes the gauge: sites, and the node.
    let gauge = Gauge::default();
    let node = gauge.before(portal.address.parse().expect("an address"), false).to_string();
    let mut more = ["--rate", "200kB/s", "--connections", "2", "--month", &month].map(str::to_owned).to_vec();
    for place in &web.map().hosts {
        let at = gauge.before(place.addresses[0], true);
        more.extend(["--resolve".to_owned(), format!("{}={at}", place.host)]);
    }
    let since = Instant::now();
    let contributor = Contributor::begin(&site, 1, &node, None, &words(&more));
    let status = contributor.until(&site, "out of bytes", |status| {
        status["why-not-more"].as_str().is_some_and(|why| why.contains("of this month are used"))
    });
    let took = since.elapsed();
    assert!(took >= time, "{took:?} of {time:?}");
    assert!(status["month-bytes"].as_u64().is_some_and(|bytes| bytes <= quota), "{status}");
    // Answers under way are cut off; then nothing more.
    std::thread::sleep(Duration::from_secs(2));
    let theirs = || -> Vec<Request> {
        web.requests().into_iter().filter(|request| request.agent.contains("contributor of")).collect()
    };
    let before = theirs();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(theirs().len(), before.len(), "it has stopped");
    // A quarter of a second's bytes may go to the node at once, and a twentieth is granted beside; what the contributor has not taken yet, or
    // does not take any more, lies in the system's room for each connection: two to sites, one to the node.
    let at_once_bytes = RATE / 4 + RATE / 20 + 3 * ROOM_BYTES;
    let total = gauge.bytes();
    let status = contributor.until(&site, "counted", |_| true);
    let counted = status["month-bytes"].as_u64().expect("a number");
    println!("{total} bytes passed, {counted} are counted");
    assert!(total <= counted + at_once_bytes, "{total} bytes passed, {counted} are counted");
    assert!(total <= quota + at_once_bytes && total > quota / 3, "{total} bytes of {quota}");
    for seconds in [1, 2, 5, 10, 30] {
        let most = gauge.most_within(Duration::from_secs(seconds));
        println!("at most {most} bytes in {seconds} s");
        assert!(most <= RATE * seconds + at_once_bytes, "{most} bytes in {seconds} s");
    }
    let at_once = gauge.at_once();
    assert!((1..=2).contains(&at_once), "{at_once} connections to sites at once");
    println!("{total} bytes of {quota} with the node's in {took:.1?}, at most {at_once} connections to sites at once");
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
}

#[test]
fn a_node_leads_no_contributor_into_its_owners_network() {
    let trap = TcpListener::bind("127.0.0.1:0").expect("a port");
    trap.set_nonblocking(true).expect("it can be asked whether somebody came");
    let port = trap.local_addr().expect("an address").port();
    let welcome = || Answer::Welcome { pseudonym: "prey".into() };
    let says = move |request: &Asked, number: usize| {
        let tomorrow_ms = system_clock() + 86_400_000;
        match (request, number) {
            // More work than anybody does; an answer from the beginning of time; a clock a day off.
            (Asked::Hello { .. }, ..=3) => (Answer::Work { bits: 60, seed: [0; 16] }, tomorrow_ms),
            (Asked::Hello { .. }, 4) => (welcome(), i64::MIN),
            (Asked::Hello { .. }, _) => (welcome(), tomorrow_ms),
            (Asked::Ask { .. }, 1) => {
                (Answer::Elsewhere { address: format!("https://127.0.0.1:{port}/") }, tomorrow_ms)
            }
            (Asked::Ask { .. }, 2) => {
                let bundles = vec![
                    bundle(1, "127.0.0.1", &[&format!("http://127.0.0.1:{port}/")]),
                    bundle(2, "192.168.77.1", &["http://192.168.77.1/", "http://192.168.77.1/admin"]),
                    bundle(3, "a.test", &["http://a.test/", "http://b.test/"]),
                    bundle(4, "169.254.169.254", &["http://169.254.169.254/latest/meta-data/"]),
                    bundle(5, "router", &["http://router/"]),
                    bundle(6, "127.0.0.1", &["nonsense"]),
                ];
                (Answer::Bundles(bundles), tomorrow_ms)
            }
            (Asked::Ask { .. }, ..=6) => (Answer::Later { seconds: 1, why: String::new() }, tomorrow_ms),
            (Asked::Ask { .. }, _) => (Answer::Stop { why: "enough".into() }, tomorrow_ms),
            (Asked::Results { bundle, .. }, _) => (Answer::Done { bundle: *bundle }, tomorrow_ms),
            _ => (Answer::Later { seconds: 1, why: String::new() }, tomorrow_ms),
        }
    };
    // The first answers break off: in the head, in the body, one byte before the end of the envelope's.
    let node = IllNode::begin(&[5, 60], Box::new(says));
    let site = Site::new();
    let (url, folder) = (format!("http://{}", node.address), site.path("prey").display().to_string());
    let mut command = site.command(&["contribute", &url, "--dir", &folder, "--page", "no", "--connections", "250"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("skep starts");
    let said = BufReader::new(child.stderr.take().expect("its talk"));
    let mut prey = Contributor { child, folder: site.path("prey"), said };
    let said = prey.until_said("wants no more");
    assert_eq!(prey.child.wait().expect("it ends").code(), Some(3), "{said}");
    for words in ["not sent on: ", "holds other hosts", "refused by its owner's rules", "no node of this kind"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(trap.accept().is_err(), "nobody came: {said}");
    let brought = node.brought();
    assert_eq!(brought.keys().copied().collect::<Vec<_>>(), [1, 2, 4, 5], "{said}");
    for fetched in brought.values().flatten() {
        assert!(fetched.status == 0 && fetched.fault.ends_with("-refused"), "{fetched:?}");
    }
}

/// A site on an address like those of sites, which leads whoever asks for anything to places that are nobody's to ask.
struct Misleading {
    /// Host, path and agent.
    asked: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl Misleading {
    /// A host is named after the place to which it leads, by its number: its robots.txt, or its pages.
    fn begin(at: IpAddr, places: Vec<String>) -> Misleading {
        let listener = TcpListener::bind((at, 80)).expect("port 80");
        let asked: Arc<Mutex<Vec<(String, String, String)>>> = Arc::default();
        let (heard, places) = (asked.clone(), Arc::new(places));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heard, places) = (heard.clone(), places.clone());
                std::thread::spawn(move || {
                    let mut out = stream.try_clone().expect("the same");
                    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                    while let Some(first) = lines.next() {
                        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                        let field = |name: &str| {
                            let lower = |line: &&String| line.to_ascii_lowercase().starts_with(name);
                            head.iter().find(lower).map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
                        };
                        let (path, host) = (first.split(' ').nth(1).unwrap_or("/").to_owned(), field("host:"));
                        let digits: String = host.chars().filter(char::is_ascii_digit).collect();
                        let number: usize = digits.parse().unwrap_or(0);
                        let of_robots = host.starts_with("robots");
                        let status = [301, 302, 303, 307, 308][number % 5];
                        let answer = match (path.as_str(), of_robots) {
                            ("/robots.txt", true) => format!("{status} Gone\r\nLocation: {}robots.txt", places[number]),
                            ("/robots.txt", false) => "404 Not Found".into(),
                            _ => format!("{status} Gone\r\nLocation: {}", places[number]),
                        };
                        heard.lock().expect("no panic").push((host, path, field("user-agent:")));
                        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                        if out.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Misleading { asked }
    }
}

#[test]
fn no_redirect_leads_a_contributor_to_a_special_address() {
    let ground = Ground::new(1);
    // None of these is announced anywhere, but for the first, where the site is.
    let Ground::Namespaces(_) = &ground else {
        println!("not run: nobody may make namespaces here");
        return;
    };
    let IpAddr::V4(here) = ground.here() else { panic!("an IPv4 address") };
    let net = here.octets()[1];
    let public = IpAddr::from([9, 9, net, 9]);
    let traps: Vec<IpAddr> =
        [[169, 254, net, 254], [192, 168, net, 1], [172, 31, net, 1], [100, 64, net, 1], [198, 18, net, 1]]
            .into_iter()
            .map(IpAddr::from)
            .collect();
    assert!(ground.routes_to(&[&[public][..], &traps].concat()), "it is the router");
    let trap = |at: &IpAddr| {
        let trap = TcpListener::bind((*at, 80)).expect("port 80");
        trap.set_nonblocking(true).expect("it can be asked whether somebody came");
        trap
    };
    let trapped: Vec<IpAddr> = traps.iter().copied().chain([ground.here()]).collect();
    let traps: Vec<TcpListener> = trapped.iter().map(trap).collect();
    let mapped = format!("http://[::ffff:192.168.{net}.1]/");
    let literals =
        ["http://127.0.0.1/", "http://[::1]/", "http://0.0.0.0/", "http://localhost/", "http://router/", &mapped];
    let mut places: Vec<String> = trapped.iter().map(|at| format!("http://{at}/")).collect();
    places.extend(literals.map(str::to_owned));
    let web = Misleading::begin(public, places.clone());

    let site = Site::filled();
    let (_portal, node) = ground.portal(&site);
    let mut typed = ["crawl", "--name", "bees", "--by-contributors", "--patience", "1", "--scope", "all"]
        .map(str::to_owned)
        .to_vec();
    let mut more = Vec::new();
    let hosts: Vec<String> =
        (0..places.len()).flat_map(|number| ["robots", "page"].map(|kind| format!("{kind}{number}.test"))).collect();
    for host in &hosts {
        more.extend(["--resolve".to_owned(), format!("{host}={public}:80")]);
        typed.push(format!("http://{host}/"));
    }
    typed.extend(more.iter().cloned());
    let mut prey = ground.begin_with(&site, 0, &node, None, &words(&more));
    prey.until_said("welcome at");
    let before = ground.sent_to_itself(0);
    let mut command = site.command(&words(&typed));
    let ran = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("skep runs");
    assert!(ran.code().is_some(), "{ran}");

    let asked = web.asked.lock().expect("no panic").clone();
    let theirs = |host: &str, path: &str| {
        asked.iter().any(|(h, p, agent)| h == host && p == path && agent.contains("contributor of"))
    };
    for host in &hosts {
        assert!(theirs(host, "/robots.txt"), "{host}: {asked:?}");
        assert!(theirs(host, "/") || host.starts_with("robots"), "{host}: {asked:?}");
    }
    // To nobody else, and not to itself.
    assert!(traps.iter().all(|trap| trap.accept().is_err()), "somebody came");
    assert_eq!(ground.sent_to_itself(0), before, "and nobody looked at home");
    prey.told(&site, "--finish-and-stop");
    let said = prey.until_said("finished; thank you");
    assert!(said.contains("refused by its owner's rules"), "{said}");
    // They were there to be met.
    for (trap, at) in traps.iter().zip(&trapped) {
        let _came = TcpStream::connect((*at, 80)).expect("a trap");
        let since = Instant::now();
        while trap.accept().is_err() {
            assert!(since.elapsed() < PATIENCE, "{at} lets nobody in");
            std::thread::yield_now();
        }
    }
}

#[test]
fn no_node_speaks_for_another_and_none_ends_a_contributor_but_the_one_that_its_owner_named() {
    let welcome = || Answer::Welcome { pseudonym: "prey".into() };
    let enough = || Answer::Stop { why: "enough".into() };
    let says = move |request: &Asked, _: usize| {
        (if matches!(request, Asked::Hello { .. }) { welcome() } else { enough() }, system_clock())
    };
    let other = IllNode::begin(&[], Box::new(says));
    let beyond = skep_contribute::neighbours::through(&BEYOND);
    let elsewhere = format!("http://{}/", other.address);
    let says = move |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => welcome(),
            (Asked::Ask { .. }, 1) => Answer::Elsewhere { address: beyond.clone() },
            (Asked::Ask { .. }, 2 | 3) => Answer::Elsewhere { address: elsewhere.clone() },
            _ => enough(),
        };
        (answer, system_clock())
    };
    let home = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let mut prey = Contributor::begin(&site, 1, &home.address, None, &[]);
    prey.until_said("through http");
    prey.until_said("another node than 07070707");
    prey.until_said("wants no more: enough");
    prey.until_said("wanted nothing of us");
    let said = prey.until_said("wants no more");
    assert_eq!(prey.child.wait().expect("it ends").code(), Some(3), "{said}");
}

#[test]
fn a_thousand_bundles_of_one_host_are_fetched_one_by_one_at_its_owners_pace() {
    let web = web::generated(3);
    let says = |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "prey".into() },
            (Asked::Ask { .. }, ..=4) => {
                let many = (0..100).map(|n| bundle(1_000 * number as u64 + n, web::HOST, &[web::HOME, web::HOME]));
                Answer::Bundles(many.collect())
            }
            (Asked::Results { bundle, .. }, _) => Answer::Done { bundle: *bundle },
            _ => Answer::Stop { why: "enough".into() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let mut prey = Contributor::begin(&site, 1, &node.address, Some(&web), &[]);
    prey.until_said("wants no more");
    assert_eq!(prey.child.wait().expect("it ends").code(), Some(3));
    let mut asked: Vec<(u64, Option<u64>)> =
        web.requests().iter().map(|request| (request.start_us, request.end_us)).collect();
    asked.sort_unstable();
    assert!(asked.len() >= 4, "{asked:?}");
    for pair in asked.windows(2) {
        let ended_us = pair[0].1.expect("an answer");
        assert!(pair[1].0 >= ended_us + 450_000, "two requests {} us apart", pair[1].0.saturating_sub(ended_us));
    }
}

#[test]
fn a_node_has_nothing_fetched_that_was_not_asked_for() {
    let web = web::generated(3);
    let says = |request: &Asked, number: usize| {
        let unasked = |from: u64| {
            let many = (from..from + 100).map(|n| bundle(n, &format!("h{n}"), &[web::HOME]));
            Answer::Bundles(many.collect())
        };
        let answer = match (request, number) {
            (Asked::Hello { .. }, ..=3) => unasked(1_000 * number as u64),
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "prey".into() },
            (Asked::Ask { .. }, 1) => unasked(1),
            (Asked::Results { bundle, .. }, _) => Answer::Done { bundle: *bundle },
            (Asked::Ask { .. }, ..=4) => Answer::Later { seconds: 1, why: String::new() },
            _ => Answer::Stop { why: "enough".into() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let mut prey = Contributor::begin(&site, 1, &node.address, Some(&web), &["--connections", "1"]);
    prey.until_said("welcome at");
    let status = prey.told(&site, "--status");
    assert!(status["in-hand"].as_array().expect("a list").len() <= 2, "{status}");
    prey.until_said("wants no more");
    assert!(node.brought().keys().all(|id| *id <= 2), "{:?}", node.brought().keys());
}

#[test]
fn who_greets_again_names_what_it_is_fetching() {
    let web = web::generated(3);
    let (named, greeted) = std::sync::mpsc::channel();
    let says = move |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { holds, .. }, _) => {
                let _nobody_waits_any_more = named.send(holds.clone());
                Answer::Welcome { pseudonym: "prey".into() }
            }
            // Four seconds, at the pace of its owner.
            (Asked::Ask { .. }, 1) => Answer::Bundles(vec![bundle(1, web::HOST, &[web::HOME; 8])]),
            (Asked::Ask { .. }, 2) => Answer::Refused { why: skep_contribute::message::Refusal::Unknown },
            (Asked::Results { bundle, .. }, _) => Answer::Done { bundle: *bundle },
            _ => Answer::Later { seconds: 1, why: String::new() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let _prey = Contributor::begin(&site, 1, &node.address, Some(&web), &[]);
    let holds = || greeted.recv_timeout(PATIENCE).expect("a greeting");
    assert_eq!((holds(), holds()), (vec![], vec![1]), "else the node gives it to somebody else meanwhile");
}

#[test]
fn what_is_declined_is_declined_again_when_the_answer_was_lost() {
    let said: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let heard = said.clone();
    let says = move |request: &Asked, number: usize| {
        heard.lock().expect("no panic").push(request.clone());
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "prey".into() },
            (Asked::Ask { .. }, 1) => Answer::Bundles(vec![bundle(1, "a.test", &["http://a.test/"])]),
            (Asked::Ask { .. }, _) => Answer::Stop { why: "enough".into() },
            // As a node says it that does not know the word.
            _ => Answer::Refused { why: skep_contribute::message::Refusal::Nonsense },
        };
        (answer, system_clock())
    };
    // The first time nobody hears what is said to it, neither on the connection that stood nor on a new one.
    let node = IllNode::begin(&[usize::MAX, usize::MAX, 5, 5], Box::new(says));
    let site = Site::new();
    let mut prey = Contributor::begin(&site, 1, &node.address, None, &["--avoid", "a.test"]);
    let told = prey.until_said("wants no more");
    let said = said.lock().expect("no panic").clone();
    let again = said.iter().rposition(|request| matches!(request, Asked::Hello { .. })).expect("a greeting");
    let Asked::Hello { holds, .. } = &said[again] else { panic!("{said:?}") };
    assert!(again > 0 && *holds == [1], "{said:?} {told}");
    let declined = said[again..].iter().filter(|request| **request == Asked::Decline { bundle: 1 }).count();
    assert_eq!(declined, 1, "{said:?} {told}");
}

#[test]
fn a_node_that_never_has_room_keeps_nobody_who_is_to_stop() {
    let web = web::generated(3);
    let says = |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "prey".into() },
            (Asked::Ask { .. }, 1) => Answer::Bundles(vec![bundle(1, web::HOST, &[web::HOME])]),
            (Asked::Results { bundle, .. }, _) => Answer::Want { bundle: *bundle, bodies: vec![(0, 0)] },
            (Asked::Body { .. }, _) => Answer::Refused { why: skep_contribute::message::Refusal::TooMuch },
            _ => Answer::Later { seconds: 1, why: String::new() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let mut prey = Contributor::begin(&site, 1, &node.address, Some(&web), &[]);
    prey.until(&site, "waiting for room", |_| !node.brought().is_empty());
    prey.told(&site, "--finish-and-stop");
    prey.until_said("1 bundles are returned at the next start");
    assert_eq!(prey.child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_request_ends_with_its_lease_and_is_left_to_the_node() {
    // A server that takes a request and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut all = Vec::new();
        let _closed_or_reset = stream.read_to_end(&mut all);
        ended.send(all).expect("somebody waits");
    });
    let says = move |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "slow".into() },
            (Asked::Ask { .. }, 1) => {
                let slow = bundle(1, "slow.test", &["http://slow.test/", "http://slow.test/next"]);
                Answer::Bundles(vec![Bundle { lease_ms: 8_000, ..slow }])
            }
            (Asked::Results { .. }, _) => Answer::Stop { why: "enough".into() },
            _ => Answer::Later { seconds: 1, why: String::new() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let at = format!("slow.test=127.0.0.1:{port}");
    let mut contributor = Contributor::begin(&site, 1, &node.address, None, &["--resolve", &at]);
    contributor.until_said("wants no more");
    let asked = end.recv().expect("the connection is closed");
    assert!(asked.starts_with(b"GET / HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&asked));
    let brought = node.brought();
    let [fetched] = &brought[&1][..] else { panic!("{brought:?}") };
    assert!(fetched.too_large && fetched.status == 0 && fetched.fault == "timeout-total", "{fetched:?}");
}

/// The number of a process that this one started for a role.
fn in_role(parent: u32, role: &str) -> u32 {
    let numbers = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |number: &u32| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{number}/{name}")).unwrap_or_default();
        let above = read("status").lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        above == Some(parent) && read("cmdline").split('\0').any(|word| word == role)
    };
    numbers.find(is_it).expect("it is there")
}

#[test]
fn a_fetcher_that_ends_is_started_anew() {
    let site = Site::new();
    let mut contributor = Contributor::begin(&site, 1, "127.0.0.1:9", None, &[]);
    contributor.until_said("seccomp");
    let first = in_role(contributor.child.id(), "fetcher");
    site.shell(&format!("kill -9 {first}"));
    let said = contributor.until_said("is started anew");
    let again = contributor.until_said("seccomp");
    assert!(!again.contains("not held"), "{said}{again}");
    assert_ne!(in_role(contributor.child.id(), "fetcher"), first);
}

#[test]
fn a_fetcher_that_is_stuck_is_ended() {
    let web = web::generated(3);
    let says = |request: &Asked, number: usize| {
        let short = || Bundle { lease_ms: 4_000, ..bundle(1, web::HOST, &[web::HOME]) };
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "bee".into() },
            (Asked::Ask { .. }, 3) => Answer::Bundles(vec![short()]),
            _ => Answer::Later { seconds: 1, why: String::new() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let mut contributor = Contributor::begin(&site, 1, &node.address, Some(&web), &[]);
    contributor.until_said("welcome at");
    // As one that turns round and round over a page.
    let stuck = in_role(contributor.child.id(), "fetcher");
    site.shell(&format!("kill -STOP {stuck}"));
    contributor.until_said("the fetcher does not answer");
    contributor.until_said("is started anew");
    contributor.until_said("seccomp");
    assert_ne!(in_role(contributor.child.id(), "fetcher"), stuck);
}
