//! Nodes as somebody typed them: real processes, one in each namespace.

use super::net::Net;
use super::site::{Ran, Site, ran};
use serde_json::Value;
use skep_testweb::{Mix, Plan, Policy, Settings, Web, World};
use skep_warc::digest::{Algorithm, Digest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before it counts as a hang.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// As fast as it goes on a busy machine without calling anybody absent who is there.
pub const TIMES: &str = "ping=0.5s,silence=4s,unseen=6s,compare=1s,lease=6s,rank=0.5s,recover=15s,repair-late=8s,repair-soon=6s,keep=5s,\
                     summary=2s,audit=4s,answer=2s,tail=0.2s";
pub const CRAWL: &str = "bees";
/// Earns so many places that each of a few nodes leads some of the slices, whatever its key.
const CAPACITY: &str = "1TB";

pub struct Ring {
    pub net: Net,
    pub site: Site,
    pub web: Web,
    nodes: Vec<Option<Child>>,
    /// What every node is told when it starts, with its own ADDRESS.
    told: Vec<String>,
}

fn policy() -> Policy {
    let in_flight_max = u32::from(skep_schedule::limits::ADDRESS_IN_FLIGHT_MAX);
    Policy { agent: Some("skep".into()), in_flight_max, ..Policy::polite() }
}

/// A web of sites that link to each other, each at an address of its own.
fn plan(pages: u32, address: impl Fn(u8) -> IpAddr) -> Plan {
    let mix = Mix {
        hosts: 12,
        sites: 12,
        addresses: 12,
        pages,
        https_permille: 0,
        robots: false,
        changing: false,
        troubled: false,
    };
    let mut plan = Plan::mixed(11, &mix);
    for (number, host) in plan.hosts.iter_mut().enumerate() {
        host.addresses = vec![address(number as u8)];
    }
    plan
}

fn serve(plan: Plan) -> Web {
    let settings = Settings { policy: policy(), ..Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

/// What one node alone captures: URLs and digests.
pub fn alone(pages: u32) -> BTreeSet<(String, String)> {
    let web = serve(plan(pages, |number| IpAddr::from([127, 0, 1, 1 + number])));
    let site = Site::new();
    let mut typed: Vec<String> =
        ["crawl", &web.map().hosts[0].url, "--scope", "all", "--name", CRAWL, "--pace", "none"]
            .map(str::to_owned)
            .to_vec();
    for place in &web.map().hosts {
        typed.extend(["--own".to_owned(), place.host.clone()]);
        typed.extend(place.resolve.iter().flat_map(|resolve| ["--resolve".to_owned(), resolve.clone()]));
    }
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    site.skep(&typed).exits(0);
    kept(&site.archive(), &web)
}

/// What an archive holds of the web: URL and digest, robots.txt apart.
fn kept(archive: &std::path::Path, web: &Web) -> BTreeSet<(String, String)> {
    listed(archive, web, "digest")
}

/// URLs of what an archive holds of the web, each with something else about the capture.
fn listed(archive: &std::path::Path, web: &Web, what: &str) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for place in &web.map().hosts {
        let folder = archive.display().to_string();
        let typed = ["--archive", &folder, "--json", "captures", &place.host, "--match", "host"];
        let listed = ran(Command::new(env!("CARGO_BIN_EXE_skep")).args(typed));
        let text = |capture: &Value, name: &str| capture[name].as_str().unwrap_or_default().to_owned();
        let pages = listed.json().into_iter().filter(|it| !text(it, "url").ends_with("/robots.txt"));
        all.extend(pages.map(|capture| (text(&capture, "url"), text(&capture, what))));
    }
    all
}

impl Ring {
    /// A network whose first node runs, and a web to crawl.
    pub fn new(pages: u32) -> Ring {
        Ring::timed(pages, TIMES)
    }

    /// The same, with other durations.
    pub fn timed(pages: u32, times: &str) -> Ring {
        Ring::told(pages, times, |_| Vec::new())
    }

    /// The same, whose nodes are all told something when they start; what that needs is there before them.
    pub fn told(pages: u32, times: &str, told: impl FnOnce(&Ring) -> Vec<String>) -> Ring {
        Ring::over(|net| plan(pages, |number| net.web(number)), times, told)
    }

    /// The same over another web.
    pub fn over(web: impl FnOnce(&Net) -> Plan, times: &str, told: impl FnOnce(&Ring) -> Vec<String>) -> Ring {
        let mut net = Net::new();
        let web = serve(web(&net));
        let first = net.machine();
        let mut ring = Ring { net, site: Site::new(), web, nodes: vec![None], told: Vec::new() };
        let listen = format!("{}:7079", ring.net.of(first));
        let create = ["network", "create", "--name", "meadow", "--slices", "16", "--capacity", CAPACITY];
        ring.skep(0, &[&create[..], &["--listen", &listen, "--times", times]].concat()).exits(0);
        ring.told = told(&ring);
        ring.start(0, &[]);
        ring
    }

    /// With so many nodes, settled.
    pub fn of(nodes: usize, pages: u32) -> Ring {
        Ring::new(pages).grown(nodes)
    }

    /// So many nodes in all, settled.
    pub fn grown(mut self, nodes: usize) -> Ring {
        for _ in self.nodes.len()..nodes {
            self.join();
        }
        self.settled();
        self
    }

    pub fn archive(&self, node: usize) -> PathBuf {
        self.site.path(&format!("node-{node}"))
    }

    /// Types a command at a node.
    pub fn skep(&self, node: usize, typed: &[&str]) -> Ran {
        let folder = self.archive(node).display().to_string();
        ran(self.site.command(&[&["--archive", &folder], typed].concat()).env_remove("SKEP_ARCHIVE"))
    }

    pub fn start(&mut self, node: usize, more: &[&str]) {
        let folder = self.archive(node).display().to_string();
        let (listen, portal) = (format!("{}:7079", self.net.of(node)), format!("{}:7070", self.net.of(node)));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.net.space(node), env!("CARGO_BIN_EXE_skep"), "--archive", &folder]);
        command.args(["--json", "node", "--listen", &listen, "--portal", &portal, "--allow-private"]);
        command.args(["--capacity", CAPACITY]);
        let address = self.net.of(node).to_string();
        command.args(self.told.iter().map(|word| word.replace("ADDRESS", &address))).args(more);
        for place in &self.web.map().hosts {
            for resolve in &place.resolve {
                command.args(["--resolve", resolve]);
            }
        }
        let talk = std::fs::File::options().create(true).append(true).open(self.talk(node)).expect("a file");
        command.current_dir(self.site.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(talk);
        let mut child = command.spawn().expect("a node starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("text");
        assert!(line.contains("\"node\""), "node {node} never began: {line} {}", self.said(node));
        self.nodes[node] = Some(child);
    }

    fn talk(&self, node: usize) -> PathBuf {
        self.site.path(&format!("node-{node}.talk"))
    }

    /// What a node said to people.
    pub fn said(&self, node: usize) -> String {
        std::fs::read_to_string(self.talk(node)).unwrap_or_default()
    }

    /// One more node comes in.
    pub fn join(&mut self) -> usize {
        self.join_away_from(&[])
    }

    /// One more node comes in, on a machine from which some were never reached.
    pub fn join_away_from(&mut self, others: &[usize]) -> usize {
        let ticket = self.skep(0, &["network", "invite"]).exits(0).text().trim().to_owned();
        let node = self.net.machine();
        self.net.split(&[node], others);
        self.nodes.push(None);
        self.start(node, &["--join", &ticket]);
        node
    }

    pub fn up(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].is_some()).collect()
    }

    /// Of those that run, the one that leads most.
    pub fn leads_most(&self) -> usize {
        let led = |node: &usize| self.status(*node)["leads"].as_u64().unwrap_or(0);
        self.up().into_iter().max_by_key(led).expect("a node")
    }

    /// `kill -9`.
    pub fn kill(&mut self, node: usize) {
        let mut child = self.nodes[node].take().expect("it runs");
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
    }

    /// Ctrl-C, to its end.
    pub fn stop(&mut self, node: usize) {
        let mut child = self.nodes[node].take().expect("it runs");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is told");
        let code = child.wait().expect("it ends");
        assert!(code.success(), "node {node} ended with {code}: {}", self.said(node));
    }

    /// Waits for a node that ends by itself.
    pub fn ends(&mut self, node: usize) {
        let code = self.nodes[node].take().expect("it runs").wait().expect("it ends");
        assert!(code.success(), "node {node} ended with {code}: {}", self.said(node));
    }

    pub fn pid(&self, node: usize) -> u32 {
        self.nodes[node].as_ref().expect("it runs").id()
    }

    pub fn status(&self, node: usize) -> Value {
        self.skep(node, &["--json", "ring"]).json().pop().unwrap_or_default()
    }

    /// How a node stands, for whoever looks why a test failed.
    fn tell(&self, node: usize) {
        let mut status = self.status(node);
        let held = status["held"].take();
        status["nodes"].as_array_mut().into_iter().flatten().for_each(|node| node["places"] = Value::Null);
        eprintln!("node {node}: {status}");
        held.as_array().into_iter().flatten().for_each(|one| eprintln!("  {one}"));
        eprintln!("{}", self.said(node));
    }

    /// Waits until something is so at all nodes that run.
    pub fn until(&self, what: &str, nodes: &[usize], so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let since = Instant::now();
        loop {
            let statuses: Vec<Value> = nodes.iter().map(|node| self.status(*node)).collect();
            if so(&statuses) {
                return statuses;
            }
            if since.elapsed() > PATIENCE {
                nodes.iter().for_each(|node| self.tell(*node));
                panic!("never {what}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Every slice has its holders, and every holder all of it.
    pub fn settled(&self) {
        self.until("settled", &self.up(), |all| all.iter().all(|one| one["settled"] == true && one["acts"] == true));
    }

    /// Gives the seed to a node.
    pub fn crawl(&self, node: usize) {
        let seed = &self.web.map().hosts[0].url;
        let typed = ["crawl", "--network", seed, "--scope", "all", "--name", CRAWL, "--patience", "1"];
        self.skep(node, &typed).exits(0);
    }

    /// Waits until everything that is expected was captured by somebody, nothing is left to do, and all copies are made.
    pub fn crawled(&self, expected: &BTreeSet<(String, String)>) {
        let idle = |one: &Value| {
            let progress = &one["crawl"]["progress"];
            let nothing = |name: &str| progress[name].as_u64().unwrap_or(0) == 0;
            progress.is_object() && nothing("waiting") && nothing("out") && nothing("unsent")
        };
        let since = Instant::now();
        loop {
            self.until("idle and settled", &self.up(), |all| {
                all.iter().all(|one| idle(one) && one["settled"] == true && one["acts"] == true)
            });
            let union = self.union();
            if expected.is_subset(&union) {
                return;
            }
            if since.elapsed() > PATIENCE {
                let missing: Vec<_> = expected.difference(&union).collect();
                for node in self.up() {
                    self.tell(node);
                    eprintln!("{}", self.skep(node, &["why", &missing[0].0]).text());
                }
                panic!("missing: {missing:?}");
            }
        }
    }

    /// Waits until these nodes have nothing left to do, and have captured everything that is expected, on two of them at least.
    pub fn crawled_by(&self, nodes: &[usize], expected: &BTreeSet<(String, String)>) {
        let since = Instant::now();
        loop {
            let each: Vec<_> = nodes.iter().map(|node| kept(&self.archive(*node), &self.web)).collect();
            let on = |page: &(String, String)| each.iter().filter(|kept| kept.contains(page)).count();
            let short = expected.iter().map(|page| (page, on(page))).find(|(_, on)| *on < 2);
            let Some((page, on)) = short else { return };
            if since.elapsed() > PATIENCE {
                self.up().into_iter().for_each(|node| self.tell(node));
                panic!("{page:?} is on {on} of {nodes:?}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What each node that runs holds.
    pub fn each(&self) -> BTreeMap<usize, BTreeSet<(String, String)>> {
        self.up().into_iter().map(|node| (node, kept(&self.archive(node), &self.web))).collect()
    }

    pub fn union(&self) -> BTreeSet<(String, String)> {
        self.each().into_values().flatten().collect()
    }

    /// What is on so many of the nodes that run.
    pub fn kept_on(&self, copies: usize) -> BTreeSet<(String, String)> {
        let mut on: BTreeMap<(String, String), usize> = BTreeMap::new();
        self.each().into_values().flatten().for_each(|page| *on.entry(page).or_default() += 1);
        on.into_iter().filter(|(_, nodes)| *nodes >= copies).map(|(page, _)| page).collect()
    }

    /// URLs and positions that are on so many of the nodes that run: a capture that is fetched anew has another position.
    pub fn noted(&self, copies: usize) -> BTreeSet<(String, String)> {
        let mut on: BTreeMap<(String, String), usize> = BTreeMap::new();
        for node in self.up() {
            for record in listed(&self.archive(node), &self.web, "position") {
                *on.entry(record).or_default() += 1;
            }
        }
        on.retain(|_, nodes| *nodes >= copies);
        assert!(!on.is_empty(), "nothing is on {copies} nodes");
        on.into_keys().collect()
    }

    /// These very records are still there, at one at least of the nodes that run.
    pub fn nothing_is_lost(&self, noted: &BTreeSet<(String, String)>) {
        let there = self.noted(1);
        let lost: Vec<_> = noted.difference(&there).collect();
        if !lost.is_empty() {
            self.up().into_iter().for_each(|node| self.tell(node));
            panic!("lost: {lost:?}");
        }
    }

    /// Every page comes to be on this many nodes.
    pub fn is_on(&self, expected: &BTreeSet<(String, String)>, copies: usize) {
        let since = Instant::now();
        loop {
            let each = self.each();
            let on = |page: &(String, String)| -> Vec<usize> {
                each.iter().filter(|(_, kept)| kept.contains(page)).map(|(node, _)| *node).collect()
            };
            let short = expected.iter().map(|page| (page, on(page))).find(|(_, on)| on.len() < copies);
            let Some((page, on)) = short else { return };
            if since.elapsed() > PATIENCE {
                self.up().into_iter().for_each(|node| self.tell(node));
                panic!("{page:?} is on {on:?}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Of what the segments of a node hold, the URLs of all records in whose blocks these bytes are.
    pub fn records_with(&self, node: usize, bytes: &[u8]) -> BTreeSet<String> {
        let found =
            self.blocks(node).into_iter().filter(|(_, block)| block.windows(bytes.len()).any(|part| part == bytes));
        found.map(|(url, _)| url).collect()
    }

    /// What the segments of a node hold, as any reader of WARC finds it: the URL and the block of each record that has one. A segment that is
    /// written again meanwhile is there in one form or the other.
    pub fn blocks(&self, node: usize) -> Vec<(String, Vec<u8>)> {
        let segments = self.archive(node).join("segments").display().to_string();
        let files = self.site.shell(&format!("find {segments} -name '*.warc.gz'")).text();
        let mut blocks = Vec::new();
        for file in files.lines() {
            // It may have been replaced since.
            let Ok(mut reader) = skep_warc::Reader::open(file, skep_warc::Options::recover()) else {
                continue;
            };
            while let Ok(Some(mut record)) = reader.next() {
                let url = record.head().target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
                let mut block = Vec::new();
                // The last one may be on its way to the disk.
                let _cut_short = record.read_to_end(&mut block);
                blocks.extend(url.map(|url| (url, block)));
            }
        }
        blocks
    }

    /// Asks a node's portal.
    pub fn get(&self, node: usize, target: &str) -> (u16, String) {
        self.asked(node, &format!("GET {target}"), "")
    }

    /// Sends a form to a node's portal.
    pub fn post(&self, node: usize, target: &str, form: &str) -> (u16, String) {
        self.asked(node, &format!("POST {target}"), form)
    }

    fn asked(&self, node: usize, what: &str, form: &str) -> (u16, String) {
        let (status, _, body) = self.exchanged(node, &format!("{what} HTTP/1.1"), form);
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Status, head and body of an answer.
    fn exchanged(&self, node: usize, what: &str, form: &str) -> (u16, String, Vec<u8>) {
        let at = format!("{}:7070", self.net.of(node));
        let mut stream = TcpStream::connect(&at).expect("a portal listens");
        let length = match form.len() {
            0 => String::new(),
            length => format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"),
        };
        write!(stream, "{what}\r\nHost: {at}\r\nConnection: close\r\n{length}\r\n{form}").expect("it is sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("{bytes:?}"));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head, bytes[end + 4..].to_vec())
    }

    /// What a node's portal replays of a URL: led to the time of the capture, then the bytes that were captured.
    fn replayed(&self, node: usize, url: &str) -> (u16, Vec<u8>) {
        // Answers to the older version of the protocol do not come in pieces.
        let asked = |target: &str| self.exchanged(node, &format!("GET {target} HTTP/1.0"), "");
        let (status, head, body) = asked(&format!("/web/2030id_/{url}"));
        let led = head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")));
        match led {
            Some((_, to)) if status == 302 => {
                let (status, _, body) = asked(to);
                (status, body)
            }
            _ => (status, body),
        }
    }

    /// Every node's portal replays and lists any page.
    pub fn portals_answer(&self, expected: &BTreeSet<(String, String)>) {
        for node in self.up() {
            self.portal_answers(node, expected.iter().step_by(5));
        }
    }

    /// Every node's portal replays and lists what it holds itself, whomever it reaches.
    pub fn portals_answer_for_their_own(&self) {
        for (node, held) in self.each() {
            self.portal_answers(node, held.iter().step_by(5));
        }
    }

    fn portal_answers<'p>(&self, node: usize, pages: impl Iterator<Item = &'p (String, String)>) {
        for (url, digest) in pages {
            let asked = url.replace('%', "%25").replace('&', "%26").replace('+', "%2B");
            let (status, body) = self.get(node, &format!("/cdx?url={asked}&output=json"));
            assert!(status == 200 && body.contains(url.as_str()), "node {node}: {url}: {status} {body}");
            let (status, body) = self.replayed(node, url);
            let came = Digest::of(Algorithm::Sha1, &body).to_string();
            // The status is that of the capture: some pages led elsewhere, some were missing. No page of the portal has these bytes.
            let known = status == 200 || url.contains("/moved/") || url.contains("/missing/");
            assert!(known && came == *digest, "node {node}: {url}: {status} {came} {digest}");
        }
    }

    /// No site was hurried, whoever asked.
    pub fn is_polite(&self) {
        let report = self.web.report();
        assert!(report.polite(), "{}", report.table());
    }

    /// Requests of these nodes so far, as the web saw them come.
    pub fn asked_by(&self, nodes: &[usize]) -> usize {
        let from: Vec<IpAddr> = nodes.iter().map(|node| self.net.of(*node)).collect();
        self.web.requests().iter().filter(|request| from.contains(&request.from)).count()
    }

    /// How often each page was fetched.
    pub fn fetches(&self) -> BTreeMap<String, usize> {
        let mut fetches = BTreeMap::new();
        for request in self.web.requests().into_iter().filter(|request| request.path != "/robots.txt") {
            *fetches.entry(format!("http://{}{}", request.host, request.path)).or_default() += 1;
        }
        fetches
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ended_already = child.kill();
            let _reaped = child.wait();
        }
    }
}
