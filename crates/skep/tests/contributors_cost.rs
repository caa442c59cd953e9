//! What contributors cost: bytes and processor time at the node, processor time at the contributor. Small here; a bench asks for more.

#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "site/volunteers.rs"]
mod volunteers;
#[path = "site/web.rs"]
mod web;

use portal::Portal;
use site::Site;
use skep_archive::{Identity, system_clock};
use skep_contribute::message::{self, Answer, Bundle, Fetched, How, Request, Task, VERSION, Whole};
use skep_contribute::{envelope, seen};
use skep_testweb::{Content, HostPlan, Plan, Validators, Web, loopback};
use skep_url::Url;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use volunteers::{Contributor, crawl, words};

/// A number that a bench asks for, or what a test takes.
fn asked(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// In which Linux tells processor time, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of a process and its children that are still there, in seconds.
fn cpu_seconds(process: u32) -> f64 {
    let own = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks: Vec<f64> = own
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let below: f64 = children.split_whitespace().filter_map(|child| child.parse().ok()).map(cpu_seconds).sum();
    ticks.iter().sum::<f64>() / TICKS_PER_SECOND + below
}

/// Passes everything on between contributors and a node, from the address it came from, and counts it.
struct Relay {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Relay {
    fn start(to: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, bytes) = (listener.local_addr().expect("an address"), Arc::new(AtomicU64::new(0)));
        let (to, counted) = (to.parse::<SocketAddr>().expect("an address"), bytes.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = counted.clone();
                std::thread::spawn(move || pass_on(stream, to, &counted));
            }
        });
        Relay { address, bytes }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn pass_on(theirs: TcpStream, to: SocketAddr, counted: &Arc<AtomicU64>) {
    let Ok(from) = theirs.peer_addr() else { return };
    let Ok(ours) = connect_from(from.ip(), to) else { return };
    let copy = |from: &TcpStream, to: &TcpStream, counted: Arc<AtomicU64>| {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            counted.fetch_add(read as u64, Ordering::Relaxed);
            if to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        let _closed = to.shutdown(std::net::Shutdown::Both);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| copy(&theirs, &ours, counted.clone()));
        copy(&ours, &theirs, counted.clone());
    });
}

fn connect_from(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(to).await
    })?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Pages of text, a folder for each host; the first links to all others.
struct Pages {
    hosts: u32,
    pages: u32,
}

impl Pages {
    fn word(n: u64) -> String {
        let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let sounds = ["ba", "ke", "lo", "mi", "nu", "ra", "se", "to", "vi", "wa"];
        (0..2 + hash % 3).map(|at| sounds[((hash >> (3 * at)) % 10) as usize]).collect()
    }

    /// Paths as long as those of the web are.
    fn path(host: u32, number: u32) -> String {
        let word = |at: u64| Pages::word(u64::from(host) << 50 | u64::from(number) << 30 | at);
        match number {
            0 => "index.html".into(),
            _ => format!("{}/{}-{}-{}-{number}.html", Pages::word(u64::from(number / 10)), word(1), word(2), word(3)),
        }
    }

    fn page(&self, host: u32, number: u32, version: u32) -> String {
        let seed = u64::from(host) << 40 | u64::from(number) << 20 | u64::from(version);
        let mut text = format!("<!doctype html><title>Page {number} of {host}</title><body>\n");
        if number == 0 {
            (1..self.pages)
                .for_each(|other| text.push_str(&format!("<a href=\"/{}\">{other}</a>\n", Pages::path(host, other))));
        }
        // From four to forty kilobytes.
        let length = 4_000 + (seed.wrapping_mul(2_654_435_761) >> 7) % 36_000;
        let mut n = seed << 16;
        while (text.len() as u64) < length {
            n += 1;
            text.push_str(&Pages::word(n));
            text.push(if n % 15 == 0 { '\n' } else { ' ' });
        }
        text
    }

    fn write(&self, site: &Site, host: u32, number: u32, version: u32) {
        site.write(&format!("web{host}/{}", Pages::path(host, number)), self.page(host, number, version));
    }

    /// Serves all of them. Each visit brings the body; every other host compresses it.
    fn serve(&self, site: &Site, validators: Validators) -> Web {
        let mut plan = Plan::new(3);
        for host in 0..self.hosts {
            let gzip = host % 2 == 1;
            (0..self.pages).for_each(|number| self.write(site, host, number, 0));
            site.write(&format!("web{host}/robots.txt"), "User-agent: *\nAllow: /\n");
            let content = Content::Folder(site.path(&format!("web{host}")));
            let place = [loopback(host % 200)];
            let host = HostPlan::new(&format!("h{host}.test"), content).on(&place);
            plan = plan.host(HostPlan { validators, gzip, ..host });
        }
        web::start(plan)
    }
}

fn bytes_of(web: &Web, from: u64, theirs: bool) -> (u64, u64) {
    let requests = web.requests().into_iter().filter(|request| request.number >= from);
    let those = requests.filter(|request| request.agent.contains("contributor of") == theirs);
    those.fold((0, 0), |(count, bytes), request| (count + 1, bytes + request.bytes))
}

fn next_request(web: &Web) -> u64 {
    web.requests().last().map_or(0, |request| request.number + 1)
}

#[test]
fn a_daily_scan_costs_the_node_a_twenty_fifth_of_what_is_fetched() {
    let pages = Pages { hosts: asked("SKEP_HOSTS", 4), pages: asked("SKEP_PAGES", 20) };
    let site = Site::filled();
    let web = pages.serve(&site, Validators::None);
    let own = ["--own", "*.test", "--pace", "none"];
    site.skep(&words(&crawl(&web, &own))).exits(0);
    let portal = Portal::begin(&site, &["--contributors"]);
    let relay = Relay::start(&portal.address);
    let contributors: Vec<Contributor> = (0..asked("SKEP_CONTRIBUTORS", 2))
        .map(|number| {
            let mut one = Contributor::begin(&site, number, &relay.address.to_string(), Some(&web), &[]);
            one.until_said("welcome at");
            one
        })
        .collect();
    for name in site.skep(&["contributors", "--json"]).exits(0).each("name") {
        site.skep(&["contributors", "trust", &name]).exits(0);
    }
    // A day later: one page in fifty is another one.
    let total = pages.hosts * pages.pages;
    let changed: Vec<u32> = (0..total).filter(|at| at % 50 == 7).collect();
    for at in &changed {
        pages.write(&site, at / pages.pages, at % pages.pages, 1);
    }
    let scan = |what: &str| {
        let (from, before) = (next_request(&web), relay.bytes());
        // At the usual pace: bundles are full then.
        site.skep(&words(&crawl(&web, &["--own", "*.test", "--pace", "polite", "--by-contributors"]))).exits(0);
        let (fetches, fetched) = bytes_of(&web, from, true);
        let (looks, looked) = bytes_of(&web, from, false);
        let node = relay.bytes() - before + looked;
        println!(
            "{what}: {fetches} fetches of {fetched} bytes by contributors; the node: {} bytes with them, {looks} looks of {looked} bytes of its \
             own; 1/{:.1} of what was fetched, {:.1} bytes per URL",
            relay.bytes() - before,
            fetched as f64 / node as f64,
            node as f64 / f64::from(total)
        );
        (fetched, node)
    };
    let (fetched, node) = scan(&format!("{total} URLs, {} of them changed", changed.len()));
    let (_, quiet) = scan(&format!("{total} URLs, none of them changed"));
    // Bundles are small here, and so are messages: a bench with full bundles holds what was asked for.
    assert!(node * 8 < fetched, "{node} bytes for {fetched}");
    if total >= 2_000 {
        let verdict = |held: bool| if held { "reached" } else { "SHORT" };
        println!("node's bytes at most 1/25 of those fetched: {}", verdict(node * 25 <= fetched));
        println!("at most 80 bytes per unchanged URL: {}", verdict(quiet <= 80 * u64::from(total)));
    }
    drop(contributors);
}

#[test]
fn a_contributor_needs_little_more_of_its_processor_than_a_crawl() {
    let pages = Pages { hosts: asked("SKEP_HOSTS", 4), pages: asked("SKEP_PAGES", 5) };
    let (alone, site) = (Site::new(), Site::filled());
    let web = pages.serve(&alone, Validators::None);
    // At one pace for both: a process that wakes up for each page needs more than one that finds many waiting.
    let own = ["--own", "*.test", "--pace", "polite"];
    let crawled = |site: &Site, own: &[&str]| -> f64 {
        let mut typed = String::new();
        for word in site.command(&words(&crawl(&web, own))).get_args() {
            typed.push_str(&format!(" '{}'", word.to_string_lossy()));
        }
        let skep = env!("CARGO_BIN_EXE_skep");
        let told = site.shell(&format!("bash -c '{skep} \"$@\" >/dev/null 2>&1; times' times {typed} | tail -1"));
        let seconds = |text: &str| -> f64 {
            let (minutes, seconds) = text.trim_end_matches('s').split_once('m').expect("minutes and seconds");
            minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
        };
        told.text().split_whitespace().map(seconds).sum()
    };
    let local = crawled(&alone, &own);
    let fetched = web.requests().len();
    let hurried = crawled(&Site::new(), &["--own", "*.test", "--pace", "none"]);
    let portal = Portal::begin(&site, &["--contributors"]);
    let connections = pages.hosts.to_string();
    let more = ["--connections", &connections];
    let mut contributors: Vec<Contributor> =
        (0..2).map(|number| Contributor::begin(&site, number, &portal.address, Some(&web), &more)).collect();
    for one in &mut contributors {
        one.until_said("welcome at");
    }
    for name in site.skep(&["contributors", "--json"]).exits(0).each("name") {
        site.skep(&["contributors", "trust", &name]).exits(0);
    }
    let before: f64 = contributors.iter().map(|one| cpu_seconds(one.child.id())).sum();
    site.skep(&words(&crawl(&web, &["--own", "*.test", "--pace", "polite", "--by-contributors"]))).exits(0);
    let theirs: f64 = contributors.iter().map(|one| cpu_seconds(one.child.id())).sum::<f64>() - before;
    let brought: u64 = contributors.iter().filter_map(|one| one.told(&site, "--status")["pages"].as_u64()).sum();
    assert!(brought >= u64::from(pages.hosts * pages.pages), "{brought}");
    let (ours_us, theirs_us) = (local * 1e6 / fetched as f64, theirs * 1e6 / brought as f64);
    println!(
        "skep crawl: {fetched} fetches, {ours_us:.0} us of processor time each ({:.0} us at no pace at all); contributors: {brought} fetches, \
         {theirs_us:.0} us each: {:.2} times",
        hurried * 1e6 / fetched as f64,
        theirs_us / ours_us
    );
    if fetched >= 2_000 {
        let held = theirs_us <= 1.3 * ours_us;
        println!(
            "a contributor's CPU per page at most 1.3 times that of a crawl: {}",
            if held { "reached" } else { "SHORT" }
        );
    }
}

/// Volunteers who know the web without looking, so that the node has all of the machine.
struct Known;

impl Known {
    fn body(url: &str) -> String {
        let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
        let mut text = format!("<!doctype html><title>{path} of {host}</title>\n");
        if path.is_empty() {
            let pages = asked("SKEP_PAGES", 10);
            (1..pages).for_each(|page| text.push_str(&format!("<a href=\"/{}\">{page}</a>\n", Pages::path(1, page))));
        }
        let mut n = url.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        while text.len() < 2_000 {
            n = n.wrapping_add(1);
            text.push_str(&Pages::word(n));
            text.push(' ');
        }
        text
    }

    fn whole(url: &str) -> Whole {
        let body = if url.ends_with("/robots.txt") { "User-agent: *\nAllow: /\n".into() } else { Known::body(url) };
        let mime = if url.ends_with("/robots.txt") { "text/plain" } else { "text/html" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n", body.len());
        let request = format!("GET {url} HTTP/1.1\r\n\r\n").into_bytes();
        let (response, head_bytes) = (format!("{head}{body}").into_bytes(), head.len() as u32);
        Whole { request, response, head_bytes, ..Whole::default() }
    }

    fn fetched(number: u16, url: &str, whole: &Whole, how: &How) -> Fetched {
        let parsed = Url::parse(url).expect("a URL");
        let made = seen::exchange(whole).expect("an exchange");
        Fetched { time_ms: system_clock(), ..seen::fetched(number, &parsed, &made, how) }
    }

    /// The same web for whoever looks himself, each host at an address of its own. Returns the port.
    fn serve() -> u16 {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut out = stream.try_clone().expect("the same");
                    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                    while let Some(first) = lines.next() {
                        let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
                        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                        let host =
                            head.iter().find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned));
                        let url = format!("http://{}{path}", host.unwrap_or_default());
                        if out.write_all(&Known::whole(&url).response).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }
}

/// One who knows.
struct Knowing {
    identity: Identity,
    node: [u8; 32],
    stream: BufReader<TcpStream>,
}

impl Knowing {
    fn new(number: u8, node: &str) -> Knowing {
        let from = IpAddr::from([127, 0, 20 + number, 1]);
        let stream = connect_from(from, node.parse().expect("an address")).expect("a connection");
        let mut one = Knowing {
            identity: Identity::from_secret([number + 1; 32]),
            node: [0; 32],
            stream: BufReader::with_capacity(256 << 10, stream),
        };
        let mut proof = 0;
        loop {
            match one.say(&Request::Hello { version: VERSION, proof, holds: Vec::new(), team: String::new() }) {
                Answer::Welcome { .. } => return one,
                Answer::Work { bits, seed } => proof = message::prove(&seed, &one.identity.public(), bits),
                other => panic!("{other:?}"),
            }
        }
    }

    fn say(&mut self, request: &Request) -> Answer {
        self.say_all(std::slice::from_ref(request)).pop().expect("an answer")
    }

    fn say_all(&mut self, requests: &[Request]) -> Vec<Answer> {
        let sealed = envelope::seal_requests(requests, &self.node, &self.identity, system_clock());
        let head = format!(
            "POST /contribute HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            self.stream.get_ref().peer_addr().expect("an address"),
            sealed.len()
        );
        let message = [head.as_bytes(), &sealed].concat();
        self.stream.get_mut().write_all(&message).expect("it is sent");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("an answer");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
            assert!(!line.is_empty(), "the node hung up");
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the answer");
        let opened = envelope::open_answers(&body, &envelope::signature_of(&sealed)).expect("an answer of the node");
        self.node = opened.key;
        opened.message
    }

    fn bring(&mut self, bundle: &Bundle) {
        let first = &bundle.urls[0].url;
        let robots =
            bundle.robots.is_none().then(|| Url::parse(first).expect("a URL").robots_txt().as_str().to_owned());
        let mut wholes: Vec<(u16, String, Whole)> = Vec::new();
        wholes.extend(robots.map(|url| (message::ROBOTS, url.clone(), Known::whole(&url))));
        let task = |(number, task): (usize, &Task)| (number as u16, task.url.clone(), Known::whole(&task.url));
        wholes.extend(bundle.urls.iter().enumerate().map(task));
        let results: Vec<Fetched> = wholes
            .iter()
            .map(|(number, url, whole)| {
                let mut fetched = Known::fetched(*number, url, whole, &bundle.how(*number));
                if *number >= message::ROBOTS {
                    fetched.url.clone_from(url);
                }
                fetched
            })
            .collect();
        let results = Request::Results { bundle: bundle.id, results };
        loop {
            match self.say(&results) {
                Answer::Want { bodies, .. } => {
                    let body = |(number, offset): &(u16, u64)| {
                        let whole = wholes.iter().find(|(known, ..)| known == number).map(|(.., whole)| whole);
                        let bytes = envelope::plain(whole.expect("one of ours"));
                        let (bundle, total) = (bundle.id, bytes.len() as u64);
                        Request::Body { bundle, number: *number, offset: *offset, total, bytes }
                    };
                    for some in bodies.chunks(64) {
                        let requests: Vec<Request> = some.iter().map(body).collect();
                        if self.say_all(&requests).iter().any(|answer| matches!(answer, Answer::Done { .. })) {
                            return;
                        }
                    }
                }
                Answer::Done { .. } => return,
                Answer::Refused { why } => panic!("{why:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The processors that this process may use; nothing where nobody tells.
fn processors() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let spans = list.trim().split(',').filter_map(|span| {
        let (from, to) = span.split_once('-').unwrap_or((span, span));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?)
    });
    spans.flatten().collect()
}

/// All threads of a process, and what it starts from now on, stay on these processors. False where the system has no such thing.
fn stays_on(process: u32, processors: &[u32]) -> bool {
    let list: Vec<String> = processors.iter().map(u32::to_string).collect();
    let mut command = std::process::Command::new("taskset");
    command.args(["-a", "-c", "-p", &list.join(","), &process.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What a node is asked for: checked URLs a second, on two cores.
const RATE_ON_TWO_CORES: f64 = 5_000.0;

#[test]
fn a_node_hands_out_and_takes_back_many_urls() {
    let (hosts, pages) = (asked("SKEP_HOSTS", 10), asked("SKEP_PAGES", 10));
    let web = Known::serve();
    let site = Site::filled();
    let portal = Portal::begin(&site, &["--contributors"]);
    let over = Arc::new(AtomicBool::new(false));
    let mut typed = vec!["crawl".to_owned()];
    for host in 0..hosts {
        typed.push(format!("http://h{host}.test/"));
        let at = IpAddr::from([127, 1, (host / 250) as u8, (host % 250 + 1) as u8]);
        typed.extend(["--resolve".to_owned(), format!("h{host}.test={at}:{web}")]);
    }
    typed.extend(["--name", "bees", "--own", "*.test", "--pace", "none", "--patience", "1"].map(str::to_owned));
    typed.extend(["--concurrency", "512"].map(str::to_owned));
    let mut typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    // What the archive has it fetched itself.
    site.skep(&typed).exits(0);
    typed.push("--by-contributors");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let mut one = Knowing::new(number, &portal.address);
            let over = over.clone();
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match one.say(&Request::Ask { bundles: 4 }) {
                        Answer::Bundles(bundles) => bundles.iter().for_each(|bundle| one.bring(bundle)),
                        Answer::Later { .. } => std::thread::sleep(Duration::from_millis(20)),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        for name in site.skep(&["contributors", "--json"]).exits(0).each("name") {
            site.skep(&["contributors", "trust", &name]).exits(0);
        }
        let scan = |what: &str| {
            let (since, before) = (Instant::now(), cpu_seconds(portal.child.id()));
            let mut child =
                site.command(&typed).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("skep starts");
            let mut talk = String::new();
            child.stderr.take().expect("its talk").read_to_string(&mut talk).expect("text");
            assert!(child.wait().expect("it ends").success(), "{talk}");
            let (seconds, cpu) = (since.elapsed().as_secs_f64(), cpu_seconds(portal.child.id()) - before);
            let urls = f64::from(hosts * pages);
            println!(
                "{what}: {urls} URLs in {seconds:.1} s by the clock, {:.0} a second; {:.0} us of the node's processor time each, which would be \
                 {:.0} a second if it had all of two cores",
                urls / seconds,
                cpu * 1e6 / urls,
                2.0 * urls / cpu
            );
            (urls / seconds, 2.0 * urls / cpu)
        };
        scan("unchanged");
        let (_, by_cpu) = scan("unchanged, a second time");
        // Those who bring it need processors, too: the node has one of its own, everybody else the others, and by the clock it does half of
        // what it is to do on two.
        let all = processors();
        let (ours, others) = all.split_first().map_or((&[][..], &[][..]), |(_, others)| (&all[..1], others));
        let is_apart = !others.is_empty() && stays_on(portal.child.id(), ours) && stays_on(std::process::id(), others);
        let by_clock = is_apart.then(|| scan("unchanged, the node on one core and the contributors on the others").0);
        let _as_before = stays_on(std::process::id(), &all);
        over.store(true, Ordering::Relaxed);
        if hosts * pages >= 10_000 {
            let verdict = |rate: f64, least: f64| if rate >= least { "reached" } else { "SHORT" };
            let half = RATE_ON_TWO_CORES / 2.0;
            match by_clock {
                Some(rate) => println!(
                    "by the clock, the node on one core: {rate:.0} URLs a second, {half:.0} are half of what two cores are asked for: {}",
                    verdict(rate, half)
                ),
                None => println!("by the clock: not measured, for the node cannot have a core of its own here"),
            }
            println!(
                "by the node's processor time, as if it had all of two cores: {by_cpu:.0} URLs a second, {RATE_ON_TWO_CORES:.0} are asked for: {}",
                verdict(by_cpu, RATE_ON_TWO_CORES)
            );
        }
    });
    let known = site.skep(&["contributors", "--json"]).exits(0).json();
    assert!(known.iter().all(|one| one["lies"] == 0), "{known:?}");
    let listed = site.skep(&["captures", "h1.test", "--match", "host", "--json"]).exits(0).json();
    assert!(listed.len() as u32 > pages, "every page, and robots.txt");
}
