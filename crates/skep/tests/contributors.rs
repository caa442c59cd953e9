//! Contributors by the real binary: real processes, real sockets, a web whose truth is known.

#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "site/volunteers.rs"]
mod volunteers;
#[path = "site/web.rs"]
mod web;

use portal::Portal;
use serde_json::Value;
use site::Site;
use skep_archive::{Identity, system_clock};
use skep_contribute::envelope;
use skep_contribute::message::{Answer, Bundle, Fetched, Request as Asked, Rules, Task};
use skep_schedule::Pace;
use skep_testweb::{Content, HostPlan, Plan, Policy, Request, Robots, Settings, Shape, Web, World};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use volunteers::{Contributor, Ground, crawl, kept, lines, words};

/// Frozen hosts, each a site of its own.
fn hosts(count: u32, pages: u32) -> Web {
    let host = |number| HostPlan::generated(&format!("bees{number}.test"), Shape::pages(pages).frozen());
    let plan = (0..count).fold(Plan::new(11), |plan, number| plan.host(host(number)));
    let policy = Policy { agent: Some("skep".into()), ..Policy::polite() };
    let settings = Settings { policy, ..Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

/// A number of the soaks, or what a test takes.
fn asked(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
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
    // had finished is still there.
    let (mut visited, mut killed, mut longest, mut last) = (0u64, 0u32, Duration::ZERO, Instant::now());
    for line in events {
        let event: Value = serde_json::from_str(&line.expect("its output can be read")).expect("an event");
        if event["event"] == "visited" {
            visited += 1;
            (longest, last) = (longest.max(last.elapsed()), Instant::now());
            if visited % 9 == 0 && visited <= u64::from(9 * (count - 2)) {
                let number = killed.wrapping_mul(2_654_435_761) % count;
                killed += 1;
                contributors[number as usize].kill_now();
                contributors[number as usize] = begin(number);
            }
        }
        if event["event"] == "ended" {
            assert_eq!(event["ending"], "finished", "{event}");
        }
    }
    assert!(running.wait().expect("it ends").success());
    let where_they_stood = if matches!(ground, Ground::Namespaces(_)) { "namespaces" } else { "loopback addresses" };
    println!(
        "{count} contributors in {where_they_stood}, {killed} SIGKILLs, {visited} visits, at most {longest:.1?} between two"
    );
    assert!(killed > 0);
    // A bundle that a killed one had goes out again when it comes back, or when its lease is over.
    let most = Duration::from_millis(2 * skep_contribute::limits::LEASE_MS_MAX);
    assert!(longest < most, "{longest:?} without a visit");
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

/// Bytes that ended in each span, and the most requests at once.
fn flow(requests: &[Request], span_us: u64) -> (u64, usize) {
    let ended: Vec<(u64, u64)> =
        requests.iter().filter_map(|request| request.end_us.map(|end_us| (end_us, request.bytes))).collect();
    let within =
        |from: u64| ended.iter().filter(|(at, _)| (from..from + span_us).contains(at)).map(|(_, b)| b).sum::<u64>();
    let most = ended.iter().map(|(at, _)| within(*at)).max().unwrap_or(0);
    let at_once = |at: u64| {
        requests
            .iter()
            .filter(|request| request.start_us <= at && request.end_us.is_none_or(|end_us| end_us > at))
            .count()
    };
    (most, requests.iter().map(|request| at_once(request.start_us)).max().unwrap_or(0))
}

#[test]
fn rate_connections_and_quota_hold_as_seen_from_outside() {
    const RATE: u64 = 200_000;
    const FILE: usize = 200_000;
    const HOSTS: u32 = 5;
    // Three quarters of what the rate allows. The hosts are ours: they rest no longer than the contributor itself lets them.
    let quota = RATE * u64::from(asked("SKEP_SECONDS", 90)) * 3 / 4;
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
    let more = ["--rate", "200kB/s", "--connections", "2", "--month", &month];
    let contributor = Contributor::begin(&site, 1, &portal.address, Some(&web), &more);
    let status = contributor.until(&site, "out of bytes", |status| {
        status["why-not-more"].as_str().is_some_and(|why| why.contains("of this month are used"))
    });
    assert!(status["month-bytes"].as_u64().is_some_and(|bytes| bytes <= quota), "{status}");
    // Answers under way are cut off; then nothing more.
    std::thread::sleep(Duration::from_secs(2));
    let theirs = || -> Vec<Request> {
        web.requests().into_iter().filter(|request| request.agent.contains("contributor of")).collect()
    };
    let before = theirs();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(theirs().len(), before.len(), "it has stopped");
    let total: u64 = before.iter().map(|request| request.bytes).sum();
    assert!(total <= quota && total > quota / 4, "{total}");
    let span_seconds = 10;
    let (most, at_once) = flow(&before, span_seconds * 1_000_000);
    // What was sent before a span and ended in it: a file for each connection.
    assert!(most <= RATE * span_seconds + 2 * FILE as u64, "{most} bytes in {span_seconds} s");
    assert!(at_once <= 2, "{at_once} at once");
    println!("{total} bytes of {quota}, at most {most} in {span_seconds} s, at most {at_once} connections at once");
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
}

/// A node that wishes contributors ill: says whatever it is told to say.
struct IllNode {
    address: String,
    /// What contributors brought, by bundle.
    brought: Arc<Mutex<BTreeMap<u64, Vec<Fetched>>>>,
}

/// What it says to a request that comes so often, and at which time it says so.
type Says = Box<dyn Fn(&Asked, usize) -> (Answer, i64) + Send + Sync>;

impl IllNode {
    /// `cut`: how many bytes of the first answers are sent.
    fn begin(cut: &'static [usize], says: Says) -> IllNode {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let brought: Arc<Mutex<BTreeMap<u64, Vec<Fetched>>>> = Arc::default();
        let (kept, says) = (brought.clone(), Arc::new(says));
        let counts: Arc<Mutex<(usize, BTreeMap<&'static str, usize>)>> = Arc::default();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, says, counts) = (kept.clone(), says.clone(), counts.clone());
                std::thread::spawn(move || while IllNode::answer(&stream, cut, &kept, &says, &counts).is_some() {});
            }
        });
        IllNode { address, brought }
    }

    /// One message on a connection; `None` when it is over.
    fn answer(
        mut stream: &TcpStream,
        cut: &[usize],
        kept: &Mutex<BTreeMap<u64, Vec<Fetched>>>,
        says: &Says,
        counts: &Mutex<(usize, BTreeMap<&'static str, usize>)>,
    ) -> Option<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let text = String::from_utf8(head).ok()?.to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let identity = Identity::from_secret([66; 32]);
        // It answers also for a node that is another one.
        let opened = envelope::open_requests(&body, &identity.public());
        let opened = opened.or_else(|_| envelope::open_requests(&body, &BEYOND)).ok()?;
        let (mut answers, mut time_ms) = (Vec::new(), system_clock());
        for request in &opened.message {
            let name = match request {
                Asked::Hello { .. } => "hello",
                Asked::Ask { .. } => "ask",
                _ => "other",
            };
            if let Asked::Results { bundle, results } = request {
                kept.lock().expect("no panic").insert(*bundle, results.clone());
            }
            let number = {
                let mut counts = counts.lock().expect("no panic");
                let number = counts.1.entry(name).or_default();
                *number += 1;
                *number
            };
            let (answer, at_ms) = says(request, number);
            answers.push(answer);
            time_ms = at_ms;
        }
        let sealed = envelope::seal_answers(&answers, &opened.signature, &identity, time_ms);
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sealed.len()).into_bytes();
        answer.extend(sealed);
        let message = {
            let mut counts = counts.lock().expect("no panic");
            counts.0 += 1;
            counts.0 - 1
        };
        match cut.get(message) {
            Some(bytes) => {
                stream.write_all(&answer[..*bytes]).ok()?;
                stream.shutdown(std::net::Shutdown::Both).ok()
            }
            None => stream.write_all(&answer).ok(),
        }
    }

    fn brought(&self) -> BTreeMap<u64, Vec<Fetched>> {
        self.brought.lock().expect("no panic").clone()
    }
}

/// The key of a node for which an ill one answers.
const BEYOND: [u8; 32] = [7; 32];

fn bundle(id: u64, host: &str, urls: &[&str]) -> Bundle {
    Bundle {
        id,
        host: host.to_owned(),
        urls: urls.iter().map(|url| Task { url: (*url).to_owned(), ..Task::default() }).collect(),
        pace: Pace::None,
        robots: Some(Rules::default()),
        lease_ms: 60_000,
        nonce: [1; 16],
    }
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
