//! The life of contributors by the real binary: real processes, real sockets, a web whose truth is known.

#[path = "site/delays.rs"]
mod delays;
#[path = "site/ill_node.rs"]
mod ill_node;
#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "site/volunteers.rs"]
mod volunteers;
#[path = "site/web.rs"]
mod web;

use delays::Delays;
use ill_node::{IllNode, bundle};
use portal::Portal;
use serde_json::Value;
use site::Site;
use skep_archive::system_clock;
use skep_contribute::message::{Answer, Request as Asked};
use skep_testweb::{HostPlan, Plan, Policy, Request, Robots, Settings, Shape, Web, World};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};
use volunteers::{Contributor, Ground, asked, crawl, kept, lines, words};

/// Contributors that are killed and stay dead.
const DEAD: usize = 2;

/// Frozen hosts, each a site of its own.
fn hosts(count: u32, pages: u32) -> Web {
    let host = |number| HostPlan::generated(&format!("bees{number}.test"), Shape::pages(pages).frozen());
    let plan = (0..count).fold(Plan::new(11), |plan, number| plan.host(host(number)));
    let policy = Policy { agent: Some("skep".into()), ..Policy::polite() };
    let settings = Settings { policy, ..Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

#[test]
fn six_contributors_make_the_archive_that_we_would_have_made_and_killing_them_loses_nothing() {
    let (count, pages) = (asked("SKEP_CONTRIBUTORS", 6), asked("SKEP_PAGES", 5));
    let (alone, ours) = (Site::new(), hosts(count, pages));
    alone.skep(&words(&crawl(&ours, &[]))).exits(0);
    let ground = Ground::new(count);
    let (site, web) = (Site::filled(), hosts(count, pages));
    let (_portal, node) = ground.portal(&site);
    let begin = |number: u32| ground.begin(&site, number, &node, Some(&web), &["--connections", "2"]);
    let mut contributors: Vec<Contributor> = (0..count).map(begin).collect();
    for contributor in &mut contributors {
        contributor.until_said("welcome at");
    }
    let mut command = site.command(&words(&crawl(&web, &["--by-contributors", "--json"])));
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("skep starts");
    let events = BufReader::new(running.stdout.take().expect("its output")).lines();
    // After some visits, again and again, one is killed in the middle of whatever it does, and begins anew where it was killed: what it
    // had finished is still there. Two others stay dead, with bundles in their hands.
    let keys: Vec<String> = contributors.iter().map(|one| Delays::key(&one.folder).expect("a key")).collect();
    let out = &|number: usize| Delays::out(&site.skep(&["contributors", "show", &keys[number], "--json"]).exits(0));
    let (mut delays, mut dead) = (Delays::default(), Vec::new());
    let (mut visited, mut killed, mut longest, mut last) = (0u64, 0u32, Duration::ZERO, Instant::now());
    std::thread::scope(|scope| {
        for line in events {
            let event: Value = serde_json::from_str(&line.expect("its output can be read")).expect("an event");
            if event["event"] == "visited" {
                visited += 1;
                (longest, last) = (longest.max(last.elapsed()), Instant::now());
                if visited % 9 == 0 && visited <= u64::from(9 * (count - 2)) {
                    let number = killed.wrapping_mul(2_654_435_761) % count;
                    killed += 1;
                    if !dead.contains(&(number as usize)) {
                        contributors[number as usize].kill_now();
                        contributors[number as usize] = begin(number);
                    }
                } else if visited > 6 && dead.len() < DEAD {
                    let busy = (0..count as usize).find(|number| !dead.contains(number) && !out(*number).is_empty());
                    if let Some(number) = busy {
                        contributors[number].kill_now();
                        let killed = Instant::now();
                        dead.push(number);
                        delays.expect(killed, out(number));
                        scope.spawn(move || Delays::go_back(|| out(number)));
                    }
                }
            }
            if event["event"] == "ended" {
                assert_eq!(event["ending"], "finished", "{event}");
            }
        }
    });
    assert!(running.wait().expect("it ends").success());
    let where_they_stood = if matches!(ground, Ground::Namespaces(_)) { "namespaces" } else { "loopback addresses" };
    println!(
        "{count} contributors in {where_they_stood}, {killed} SIGKILLs, {visited} visits, at most {longest:.1?} between two"
    );
    assert!(killed > 0);
    // A bundle that a killed one had goes out again when it comes back, or when its lease is over.
    let most = Duration::from_millis(2 * skep_contribute::limits::LEASE_MS_MAX);
    assert!(longest < most, "{longest:?} without a visit");
    assert_eq!(dead.len(), DEAD, "somebody had something in hand");
    assert!(delays.count() > 0, "and had not returned it before being killed");
    delays.were_short(&web);
    assert_eq!(kept(&site, &web), kept(&alone, &ours), "the same archive, whoever's hands");
    let report = web.report();
    assert!(report.polite(), "{}", report.table());
    let (theirs, all) = (lines(&site, "hands: contributor "), lines(&site, "skep-visit: "));
    assert!(theirs * 2 > all, "{theirs} of {all} records by contributors");
    assert_eq!(lines(&site, "sources: "), theirs, "each says how many saw it");
    let known = site.skep(&["contributors", "--json"]).exits(0).json();
    assert!(known.len() >= count as usize && known.iter().all(|one| one["lies"] == 0), "{known:?}");
    let confirmed: u64 = known.iter().filter_map(|one| one["confirmed"].as_u64()).sum();
    assert!(confirmed > 0, "newcomers are checked, and were right: {known:?}");
    site.is_sound();
}

#[test]
fn robots_txt_is_asked_for_once_whatever_a_host_answers() {
    // A page leads to the next one: each is a bundle of its own.
    let chain = Shape {
        pages: 3,
        images: 0,
        styles: 0,
        scripts: 0,
        files: 0,
        redirects: 0,
        missing: 0,
        fan_out: 1,
        links_more: 0,
        ..Shape::default()
    };
    let kinds =
        [Robots::Html, Robots::Status(404), Robots::Status(403), Robots::Allow, Robots::Redirect(1), Robots::Own];
    let plan = kinds.iter().enumerate().fold(Plan::new(3), |plan, (number, robots)| {
        plan.host(HostPlan::generated(&format!("asked{number}.test"), chain.clone().frozen()).robots(robots.clone()))
    });
    let (site, web) = (Site::filled(), web::start(plan));
    let portal = Portal::begin(&site, &["--contributors"]);
    let mut contributor = Contributor::begin(&site, 1, &portal.address, Some(&web), &[]);
    contributor.until_said("welcome at");
    // At a pace: of a host without one several bundles may be out at once, before any of them has brought the rules.
    site.skep(&words(&crawl(&web, &["--by-contributors"]))).exits(0);
    for (number, kind) in kinds.iter().enumerate() {
        let host = format!("asked{number}.test");
        let of_host: Vec<_> = web.requests().into_iter().filter(|request| request.host == host).collect();
        let theirs = |request: &&Request| request.agent.contains("contributor of");
        let (robots, pages): (Vec<_>, Vec<_>) =
            of_host.iter().filter(theirs).partition(|request| request.path == "/robots.txt");
        assert!(pages.len() >= 3, "{kind:?}: {} pages", pages.len());
        // The node may ask besides: to check what was brought, and whether a portal answers for everybody.
        let asked: Vec<_> = of_host.iter().map(|request| (request.start_us, &request.path, &request.agent)).collect();
        assert_eq!(robots.len(), 1, "{kind:?}: asked for with more than the first of its bundles: {asked:#?}");
    }
}

#[test]
fn a_contributor_that_is_to_finish_ends_though_its_node_is_gone() {
    let (site, web) = (Site::filled(), hosts(1, 40));
    let portal = Portal::begin(&site, &["--contributors"]);
    let mut command = site.command(&words(&crawl(&web, &["--by-contributors"])));
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("skep starts");
    let mut worker = Contributor::begin(&site, 1, &portal.address, Some(&web), &["--team", "bees"]);
    // The rules and the first page came alone; now there is a bundle of many pages in its hands.
    worker.until(&site, "at work", |status| status["pages"].as_u64() > Some(4));
    let status = worker.told(&site, "--status");
    assert!(status["seen-from"].as_str().is_some_and(|address| address.starts_with("127.")), "{status}");
    let (status, page) = portal.get("/contributors");
    assert!(status == 200 && page.contains("id=\"board\"") && page.contains("<td>bees</td>"), "{page}");
    assert_eq!(portal.get("/-/board.js").0, 200);
    drop(portal);
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    worker.told(&site, "--finish-and-stop");
    worker.until_said("returned at the next start");
    assert_eq!(worker.child.wait().expect("it ends").code(), Some(3));
    assert!(std::fs::read_dir(worker.folder.join("work")).expect("a folder").count() > 0, "what it has stays");
}

#[test]
fn pause_resume_hours_and_finish_do_what_they_say() {
    let (site, web) = (Site::filled(), hosts(2, 40));
    let portal = Portal::begin(&site, &["--contributors"]);
    let mut command = site.command(&words(&crawl(&web, &["--by-contributors"])));
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("skep starts");
    let theirs = |web: &Web| web.requests().iter().filter(|request| request.agent.contains("contributor of")).count();
    // Not now: an hour that is over by twelve hours.
    let hour: u32 = site.shell("date +%-H").text().trim().parse().expect("an hour");
    let other = format!("{}-{}", (hour + 11) % 24, (hour + 12) % 24);
    let sleeper = Contributor::begin(&site, 2, &portal.address, Some(&web), &["--hours", &other]);
    let worker = Contributor::begin(&site, 1, &portal.address, Some(&web), &[]);
    worker.until(&site, "at work", |status| status["pages"].as_u64() > Some(2));
    let paused = worker.told(&site, "--pause");
    assert_eq!(paused["state"], "paused");
    assert!(paused["why-not-more"].as_str().is_some_and(|why| why.contains("--resume")), "{paused}");
    // What was under way comes to its end; then nothing.
    std::thread::sleep(Duration::from_millis(700));
    let before = theirs(&web);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(theirs(&web), before, "nothing is fetched in a pause");
    worker.told(&site, "--resume");
    worker.until(&site, "at work again", |status| status["pages"].as_u64() > paused["pages"].as_u64());
    let slept = sleeper.told(&site, "--status");
    assert!(
        slept["pages"] == 0 && slept["why-not-more"].as_str().is_some_and(|why| why.contains("only between")),
        "{slept}"
    );
    // A second one in the same folder is refused.
    let folder = worker.folder.display().to_string();
    let second =
        site.skep(&["contribute", &format!("http://{}", portal.address), "--dir", &folder, "--page", "no"]).exits(2);
    assert!(second.talk.contains("--dir"), "{}", second.talk);
    let mut worker = worker;
    worker.told(&site, "--finish-and-stop");
    worker.until_said("finished; thank you");
    assert!(worker.child.wait().expect("it ends").success());
    assert_eq!(
        std::fs::read_dir(worker.folder.join("work")).expect("a folder").count(),
        0,
        "nothing is left to return"
    );
    site.skep(&["contribute", "--status", "--dir", &folder]).exits(2);
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
}

#[test]
fn a_pause_outlasts_whoever_was_told_of_it() {
    let site = Site::new();
    let begin = || Contributor::begin(&site, 1, "127.0.0.1:9", None, &[]);
    let mut worker = begin();
    worker.until_said("seccomp");
    assert_eq!(worker.told(&site, "--pause")["state"], "paused");
    worker.kill_now();
    let mut worker = begin();
    worker.until_said("paused, as it was when it ended");
    assert_eq!(worker.told(&site, "--status")["state"], "paused");
    assert_ne!(worker.told(&site, "--resume")["state"], "paused");
    worker.kill_now();
    let mut worker = begin();
    worker.until_said("seccomp");
    assert_ne!(worker.told(&site, "--status")["state"], "paused");
    worker.told(&site, "--pause");
    // Who is told to stop is told something else than to rest.
    worker.told(&site, "--finish-and-stop");
    worker.until_said("finished; thank you");
    let mut worker = begin();
    worker.until_said("seccomp");
    assert_ne!(worker.told(&site, "--status")["state"], "paused");
}

#[test]
fn ctrl_c_finishes_what_is_in_hand() {
    let web = web::generated(3);
    let says = |request: &Asked, number: usize| {
        let answer = match (request, number) {
            (Asked::Hello { .. }, _) => Answer::Welcome { pseudonym: "bee".into() },
            (Asked::Ask { .. }, 1) => Answer::Bundles(vec![bundle(1, web::HOST, &[web::HOME; 4])]),
            (Asked::Results { bundle, .. }, _) => Answer::Done { bundle: *bundle },
            _ => Answer::Later { seconds: 1, why: String::new() },
        };
        (answer, system_clock())
    };
    let node = IllNode::begin(&[], Box::new(says));
    let site = Site::new();
    let folder = site.path("bee");
    let mut typed = vec!["contribute".to_owned(), format!("http://{}", node.address), "--allow-private".into()];
    typed.extend(["--page", "no", "--dir"].map(str::to_owned));
    typed.push(folder.display().to_string());
    let resolved = web.map().hosts.iter().flat_map(|place| &place.resolve);
    typed.extend(resolved.flat_map(|resolve| ["--resolve".to_owned(), resolve.clone()]));
    let mut command = site.command(&words(&typed));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    // As a terminal has it: all that one command starts gets the signal.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().expect("skep starts");
    let said = BufReader::new(child.stderr.take().expect("its talk"));
    let mut bee = Contributor { child, folder, said };
    bee.until(&site, "at work", |status| status["pages"].as_u64() > Some(0));
    site.shell(&format!("kill -INT -- -{}", bee.child.id()));
    let said = bee.until_said("finished; thank you");
    assert!(bee.child.wait().expect("it ends").success(), "{said}");
    let statuses: Vec<u16> = node.brought()[&1].iter().map(|fetched| fetched.status).collect();
    assert_eq!(statuses, [200; 4], "{said}");
}

#[test]
fn the_unit_is_one_that_systemd_understands() {
    let site = Site::new();
    let typed = [
        "contribute",
        "https://node.example",
        "--rate",
        "2MB/s",
        "--month",
        "50GB",
        "--hours",
        "22-06",
        "--cpu",
        "25%",
        "--resolve",
        "bees.test=192.0.2.7",
        "--ca",
        "chain.pem",
        "--dns",
        "192.168.7.1:53",
        "--dns",
        "1.2.3.4:53",
        "--install",
    ];
    site.write("chain.pem", "");
    let ran = site.skep(&typed).exits(0);
    assert!(ran.talk.contains("--status --dir /var/lib/skep-contribute"), "{}", ran.talk);
    let unit = ran.text();
    for line in [
        "IPAddressDeny=10.0.0.0/8",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CPUQuota=25%",
        "DynamicUser=yes",
        // A signal to all would end the fetcher before it is done; who was told to stop is not started again.
        "KillMode=mixed",
        "RestartPreventExitStatus=3",
        // Most name servers of homes are in a private network.
        "IPAddressAllow=192.168.7.1",
    ] {
        assert!(unit.lines().any(|found| found.starts_with(line)), "{line}: {unit}");
    }
    assert!(!unit.contains("IPAddressAllow=1.2.3.4"), "{unit}");
    let ca = site.path("chain.pem").display().to_string();
    assert!(ca.starts_with("/tmp/") && unit.contains(&format!("BindReadOnlyPaths=\"{ca}\"")), "{ca}: {unit}");
    for words in [format!("\"--ca\" \"{ca}\""), "\"--resolve\" \"bees.test=192.0.2.7\"".to_owned()] {
        assert!(unit.contains(&words), "{words}: {unit}");
    }
    site.write("skep-contribute.service", &unit);
    // Of other units of this machine it may have much to say.
    let verified =
        site.shell("command -v systemd-analyze && systemd-analyze verify --man=no ./skep-contribute.service 2>&1");
    let (found, said) =
        verified.text().split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("it is there");
    assert!(found.ends_with("systemd-analyze"), "{found}");
    let of_ours: Vec<&str> = said.lines().filter(|line| line.contains("skep-contribute")).collect();
    assert!(of_ours.is_empty(), "{of_ours:?}");
}

#[test]
fn wrong_words_are_explained() {
    let site = Site::new();
    site.write("networks.txt", "192.0.2.0/24 64500 DE\n");
    site.write("nonsense.txt", "nonsense\n");
    for (typed, hint) in [
        (vec!["contribute"], "skep contribute https://"),
        (vec!["contribute", "http://node.example"], "https"),
        (vec!["contribute", "https://node.example", "--hours", "late"], "22-06"),
        (vec!["contribute", "https://node.example", "--cpu", "lots"], "25%"),
        (vec!["contribute", "https://node.example", "--rate", "fast"], "500MB"),
        (vec!["contribute", "https://node.example", "--rate", "0"], "no bound"),
        (vec!["contribute", "https://node.example", "--month", "0GB"], "no bound"),
        (vec!["contribute", "https://node.example", "--hours", "7-7"], "22-06"),
        (vec!["contribute", "https://node.example", "--avoid", "https://example.org/"], ".de for a country"),
        (vec!["contribute", "https://node.example", "--networks", "networks.txt"], "--avoid .de"),
        (vec!["contribute", "https://node.example", "--networks", "nonsense.txt"], "192.0.2.0/24 64500 DE"),
        (vec!["contribute", "--status", "--dir", "nowhere"], "starts one"),
    ] {
        let ran = site.skep(&typed).exits(2);
        assert!(ran.talk.contains(hint), "{typed:?}: {}", ran.talk);
    }
}

#[test]
fn a_node_refuses_what_makes_no_sense_and_goes_on() {
    let site = Site::filled();
    let portal = Portal::begin(&site, &["--contributors"]);
    let post = |body: &[u8]| -> (u16, Vec<u8>) {
        let mut stream = std::net::TcpStream::connect(&portal.address).expect("somebody listens");
        let head = format!(
            "POST /contribute HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            portal.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it is sent");
        let _it_may_have_heard_enough = stream.write_all(body);
        let mut bytes = Vec::new();
        let _cut_off = stream.read_to_end(&mut bytes);
        let status = String::from_utf8_lossy(bytes.get(9..12).unwrap_or_default()).parse().unwrap_or(0);
        (status, bytes)
    };
    for body in [&b""[..], b"nonsense", &[0; 200], &vec![7; 100_000]] {
        let (status, answer) = post(body);
        assert_eq!(status, 200);
        assert!(answer.windows(4).any(|window| window == b"SKN1"), "a signed refusal");
    }
    assert_eq!(post(&vec![0; 5 << 20]).0, 413);
    let without = Site::filled();
    let plain = Portal::begin(&without, &[]);
    let mut contributor = Contributor::begin(&without, 1, &plain.address, None, &[]);
    contributor.until_said("has to be started with --contributors");
    let mut contributor = Contributor::begin(&site, 1, &portal.address, None, &[]);
    contributor.until_said("welcome at");
    let name = site.skep(&["contributors", "--json"]).exits(0).each("name").pop().expect("one");
    assert_eq!(site.skep(&["contributors", "suspend", &name, "--json"]).exits(0).each("trust"), ["suspended"]);
    contributor.until_said("wants no more");
    assert_eq!(contributor.child.wait().expect("it ends").code(), Some(3));
    assert_eq!(site.skep(&["contributors", "trust", &name, "--json"]).exits(0).each("trust"), ["vouched"]);
    site.skep(&["contributors", "suspend", "ffffffffffffffff"]).exits(2);
}
