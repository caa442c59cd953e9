//! A row of the hostile web, a crawl of it by the real binary, and what both sides say afterwards.

use crate::site::{Ran, Site, of_output};
use serde_json::Value;
use skep_testweb::{
    Behaviour, Clock, HostPlan, Hostile, Plan, Policy, Proof, Robots, Row, Settings, Shape, Time, Trouble, Web, World,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A crawl of one row that takes longer does not end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
/// No row may make the crawler hold more.
const MEMORY_BYTES_MAX: u64 = 500_000_000;
/// What a visitor must never do, by the names under which the server counts it.
const FORBIDDEN: [&str; 6] = ["reached", "bad-port", "too-long-asked", "injected", "leaked", "cookies-returned"];
/// So short that a silent server costs a test seconds, so long that an honest one on a busy machine is in time.
const LIMITS: &str = "connect-ms = 2000\nhandshake-ms = 2000\nfirst-byte-ms = 2000\nprogress-ms = 1000\ntotal-ms = 4000\n\
                      total-large-ms = 4000\nhtml-bytes-max = 4194304\nbody-bytes-max = 8388608\n";

/// Looked at again and again while a crawl runs: the web, what the crawl has said so far, and its process.
type Meddler = Box<dyn FnMut(&Web, &str, u32)>;

/// A crawl to be.
pub struct Setup {
    plan: Plan,
    seeds: Vec<String>,
    lines: Vec<String>,
    private: bool,
    ends: i32,
    descriptors: Option<u32>,
    meddle: Option<Meddler>,
    limits: &'static str,
    patience_permille: u32,
    ends_within: Duration,
}

impl Setup {
    /// All hosts of one row.
    pub fn of(row: Row) -> Setup {
        Setup::only(&format!("row-{:02}-", row.number()))
    }

    /// The hosts of the hostile web whose names begin like this.
    pub fn only(prefix: &str) -> Setup {
        let mut setup = Setup::all(7);
        setup.plan.hosts.retain(|host| host.name.starts_with(prefix));
        assert!(!setup.plan.hosts.is_empty(), "{prefix}");
        setup
    }

    /// All of the hostile web.
    pub fn all(seed: u64) -> Setup {
        Setup::with(Plan::hostile(seed))
    }

    /// A web of one's own.
    pub fn with(plan: Plan) -> Setup {
        Setup {
            plan,
            seeds: Vec::new(),
            lines: Vec::new(),
            private: true,
            ends: 0,
            descriptors: None,
            meddle: None,
            limits: LIMITS,
            patience_permille: 1,
            ends_within: ENDS_WITHIN,
        }
    }

    /// Every misbehaving host in another measure.
    pub fn measure(mut self, change: impl Fn(Hostile) -> Hostile) -> Setup {
        for host in &mut self.plan.hosts {
            if let Some(Trouble::Hostile(hostile)) = host.behaviour.trouble.take() {
                host.behaviour = Behaviour::hostile(change(hostile));
            }
        }
        self
    }

    /// Each host so many times, on addresses of their own: `NAME.test`, `NAME-1.test`, …
    pub fn times(mut self, count: u32) -> Setup {
        let hosts = std::mem::take(&mut self.plan.hosts);
        for (number, host) in hosts.iter().flat_map(|host| (0..count).map(move |number| (number, host))) {
            let stem = host.name.trim_end_matches(".test");
            let name = if number == 0 { host.name.clone() } else { format!("{stem}-{number}.test") };
            self.plan.hosts.push(HostPlan { name, ..host.clone() });
        }
        self
    }

    /// Without the hosts whose names end like this.
    pub fn without(mut self, ending: &str) -> Setup {
        self.plan.hosts.retain(|host| !host.name.trim_end_matches(".test").ends_with(ending));
        self
    }

    /// Only from these hosts; else from all.
    pub fn from(mut self, hosts: &[&str]) -> Setup {
        self.seeds = hosts.iter().map(|host| (*host).to_owned()).collect();
        self
    }

    /// One more line of the crawl's file.
    pub fn saying(mut self, line: &str) -> Setup {
        self.lines.push(line.to_owned());
        self
    }

    /// Where private addresses are refused, but for hosts that are ours and told by hand.
    pub fn public_only(self) -> Setup {
        Setup { private: false, ..self }
    }

    /// By a process that may have so many files and connections open.
    pub fn with_descriptors(self, descriptors: u32) -> Setup {
        Setup { descriptors: Some(descriptors), ..self }
    }

    /// While somebody meddles with the web, or with the process: with each look he gets the web, what the crawl has said so far,
    /// and the number of its process.
    pub fn meddling(self, meddle: impl FnMut(&Web, &str, u32) + 'static) -> Setup {
        Setup { meddle: Some(Box::new(meddle)), ..self }
    }

    /// With waits between tries in so many thousandths of the usual.
    pub fn patience(self, patience_permille: u32) -> Setup {
        Setup { patience_permille, ..self }
    }

    /// With the clocks that a crawl has when nobody shortens them, but for the longest, and the waits between tries a two-hundredth.
    pub fn in_full(self, within: Duration) -> Setup {
        Setup { limits: "total-large-ms = 300000\n", patience_permille: 5, ends_within: within, ..self }
    }

    /// Ends with this exit code.
    pub fn ends(self, code: i32) -> Setup {
        Setup { ends: code, ..self }
    }

    /// The web alone, not yet visited.
    pub fn begin(self) -> Trial {
        let port = skep_testweb::free_port().expect("a port");
        let plan = Plan { port: Some(port), ..self.plan };
        let clock = Clock::new(Time::from_system(std::time::SystemTime::now()), 1.0);
        let settings = Settings {
            ports: vec![port],
            clock: Some(clock),
            policy: Policy { agent: Some("skep".into()), ..Policy::default() },
            ..Settings::default()
        };
        let web = Web::start(World::build(plan).expect("a world"), settings).expect("a web");
        let site = Site::new();
        site.write("ca.pem", web.authority_pem());
        let places = &web.map().hosts;
        let seeds = || places.iter().filter(|place| self.seeds.is_empty() || self.seeds.contains(&place.host));
        let list = |items: Vec<String>| items.iter().map(|item| format!("'{item}'")).collect::<Vec<_>>().join(", ");
        let mut file = format!(
            "name = 'hostile'\nseeds = [{}]\ndns = ['{}']\nca = 'ca.pem'\npatience = {}\nallow-private = {}\n",
            list(seeds().map(|place| place.url.clone()).collect()),
            web.map().dns,
            self.patience_permille,
            self.private,
        );
        let own = places.iter().flat_map(|place| [place.host.clone(), format!("*.{}", place.host)]);
        file += &format!("pace = 'none'\nown = [{}]\n", list(own.collect()));
        if !self.private {
            let resolve = seeds().filter(|place| !is_about_names(&place.host)).flat_map(|place| &place.resolve);
            let resolve = resolve.filter(|given| !given.starts_with("*.row-21-"));
            file += &format!("resolve = [{}]\n", list(resolve.cloned().collect()));
            // Their row is what the name server says of them: nobody tells by hand where they are.
            let named = places.iter().filter(|place| is_about_names(&place.host)).map(|place| place.host.clone());
            file += &format!("private-host = [{}]\n", list(named.collect()));
        }
        for line in &self.lines {
            file += &format!("{line}\n");
        }
        site.write("crawl.toml", format!("{file}\n[limits]\n{}", self.limits));
        Trial {
            web,
            site,
            port,
            events: Vec::new(),
            ends: self.ends,
            descriptors: self.descriptors,
            meddle: self.meddle,
            ends_within: self.ends_within,
            memory_bytes: 0,
        }
    }

    /// Crawls the web until the crawl ends by itself, and looks at what must hold whatever the row.
    #[track_caller]
    pub fn run(self) -> Trial {
        let mut trial = self.begin();
        trial.crawl();
        trial.did_nothing_forbidden();
        trial.site.is_sound();
        trial
    }
}

/// A web, and what a crawl of it came to.
pub struct Trial {
    pub web: Web,
    pub site: Site,
    port: u16,
    ends: i32,
    events: Vec<Value>,
    descriptors: Option<u32>,
    meddle: Option<Meddler>,
    ends_within: Duration,
    /// The most memory that the crawl held.
    pub memory_bytes: u64,
}

impl Trial {
    /// Crawls, or crawls again.
    #[track_caller]
    pub fn crawl(&mut self) -> Ran {
        let out = self.site.path("out");
        let talk = self.site.path("talk");
        let mut command = self.site.command(&["crawl", "--config", "crawl.toml", "--json"]);
        if let Some(descriptors) = self.descriptors {
            let line = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
            let mut limited = Command::new("bash");
            limited.arg("-c").arg(line).arg(command.get_program()).args(command.get_args());
            limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            limited.current_dir(self.site.root()).stdin(Stdio::null());
            command = limited;
        }
        let mut child = command
            .stdout(File::create(&out).expect("a file"))
            .stderr(File::create(&talk).expect("a file"))
            .spawn()
            .expect("skep starts");
        let begun = Instant::now();
        let mut memory_bytes = 0;
        let status = loop {
            memory_bytes = memory_bytes.max(peak_bytes(child.id()));
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                break status;
            }
            if let Some(meddle) = &mut self.meddle {
                meddle(&self.web, &std::fs::read_to_string(&out).unwrap_or_default(), child.id());
            }
            if begun.elapsed() > self.ends_within {
                let queue = self.site.skep(&["queue", "--json"]).text();
                let _ended = child.kill().and_then(|()| child.wait());
                let said = std::fs::read_to_string(&out).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(10).collect();
                panic!("the crawl does not end by itself; its queue: {queue}\nlast said: {last:#?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |path| std::fs::read(path).expect("what it said");
        let ran =
            of_output("crawl".into(), Output { status, stdout: read(&out), stderr: read(&talk) }).exits(self.ends);
        assert!(memory_bytes < MEMORY_BYTES_MAX, "{memory_bytes} bytes of memory");
        self.events = ran.json();
        self.memory_bytes = memory_bytes;
        ran
    }

    /// The URL of a path on a host.
    pub fn url(&self, host: &str, path: &str) -> String {
        let secure = self.web.map().hosts.iter().any(|place| place.host == host && place.url.starts_with("https"));
        format!("http{}://{host}:{}{path}", if secure { "s" } else { "" }, self.port)
    }

    /// What the server knows of a host's misdeeds, when none is under way any more.
    #[track_caller]
    pub fn proof(&self, host: &str) -> Proof {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let proof = self.web.proof(host).unwrap_or_else(|| panic!("no host {host}"));
            if proof.under_way == 0 {
                return proof;
            }
            assert!(Instant::now() < patience, "{host} still misbehaves: {proof:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The proof of a host that misbehaved in each of these forms.
    #[track_caller]
    pub fn proof_of(&self, host: &str, forms: &[&str]) -> Proof {
        let proof = self.proof(host);
        for form in forms {
            assert!(proof.forms.get(*form).is_some_and(|count| *count > 0), "{host} was never {form}: {proof:?}");
        }
        proof
    }

    /// The fate of a URL, from the archive.
    #[track_caller]
    pub fn why(&self, host: &str, path: &str) -> Fate {
        self.why_of(&self.url(host, path))
    }

    #[track_caller]
    pub fn why_of(&self, url: &str) -> Fate {
        let ran = self.site.skep(&["why", url, "--json"]).exits_below(2);
        Fate(ran.json().pop().unwrap_or_else(|| panic!("nothing about {url}")))
    }

    /// URLs visited, with their outcomes.
    pub fn visited(&self) -> Vec<(String, String)> {
        let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let visits = self.events.iter().filter(|event| event["event"] == "visited");
        visits.map(|event| (text(event, "url"), text(event, "outcome"))).collect()
    }

    /// What the crawl said of this kind.
    pub fn events_of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == kind).collect()
    }

    /// The report at the end.
    #[track_caller]
    pub fn report(&self) -> &Value {
        let last = self.events.last().expect("an event");
        assert_eq!(last["event"], "ended");
        &last["report"]
    }

    /// A count of the report, by section and name.
    #[track_caller]
    pub fn counted(&self, section: &str, name: &str) -> u64 {
        self.report()[section][name].as_u64().unwrap_or(0)
    }

    /// The newest record of a URL as it stands in the archive, its header included.
    #[track_caller]
    pub fn record(&self, url: &str) -> Vec<u8> {
        self.site.skep(&["get", url, "--warc"]).exits(0).out
    }

    /// Every ordinary page of a host was kept: the trouble beside them did them no harm.
    #[track_caller]
    pub fn kept_ordinary_pages(&self, host: &str) {
        let visited: BTreeMap<String, String> = self.visited().into_iter().collect();
        let truth = self.web.world().truth(self.web.now());
        let home = self.url(host, "/");
        let mut pages = 0;
        for entry in truth.map(|entry| entry.expect("the truth")) {
            if entry.url.starts_with(&home) && entry.status == 200 && !entry.url.ends_with("robots.txt") {
                if visited.get(&entry.url).is_some_and(|outcome| outcome == "200") {
                    pages += 1;
                    continue;
                }
                // Pages that nothing leads to are nobody's fault, and a robots.txt may well forbid some.
                let fate = self.why_of(&entry.url);
                let outcomes: Vec<String> = self
                    .visited()
                    .into_iter()
                    .filter(|(url, _)| *url == entry.url)
                    .map(|(_, outcome)| outcome)
                    .collect();
                assert!(["unknown", "robots"].contains(&fate.word()), "{}: {fate:?} after {outcomes:?}", entry.url);
            }
        }
        assert!(pages > 1, "{host} has no ordinary pages");
    }

    #[track_caller]
    fn did_nothing_forbidden(&self) {
        for (host, proof) in self.web.proofs() {
            for form in FORBIDDEN {
                assert_eq!(proof.forms.get(form), None, "{host}: {form}");
            }
        }
        let web = self.web.proof(skep_testweb::WEB).expect("a proof of the whole");
        assert_eq!(web.forms.get("reached-by-address"), None, "{web:?}");
    }
}

/// Ordinary hosts, each a site and an address of its own: `www.example-0.test`, `www.example-1.test`, …
pub fn many_hosts(count: u32) -> Plan {
    let host = |number: u32| {
        HostPlan::generated(&format!("www.example-{number}.test"), Shape { links_off: 0, ..Shape::pages(6).frozen() })
            .robots(Robots::Allow)
            .on(&[skep_testweb::loopback(number)])
    };
    Plan { hosts: (0..count).map(host).collect(), ..Plan::new(43) }
}

/// The same, but so slow that most of them are still being asked when something happens to all of them.
pub fn slow_hosts(count: u32) -> Plan {
    let mut plan = many_hosts(count);
    plan.hosts.iter_mut().for_each(|host| host.behaviour = Behaviour::slow(30));
    plan
}

/// A host whose row is a matter of the name server: it must be asked.
fn is_about_names(host: &str) -> bool {
    ["row-39-", "row-40-", "row-42-"].iter().any(|row| host.starts_with(row))
}

/// The most memory that a process has held so far.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// What `skep why` says.
#[derive(Debug)]
pub struct Fate(Value);

impl Fate {
    pub fn word(&self) -> &str {
        self.0["fate"].as_str().unwrap_or_default()
    }

    /// The rule or trap.
    pub fn rule(&self) -> &str {
        self.0["rule"].as_str().unwrap_or_default()
    }

    pub fn outcome(&self) -> &str {
        self.0["last"]["outcome"].as_str().unwrap_or_default()
    }

    pub fn because(&self) -> &str {
        self.0["because"].as_str().unwrap_or_default()
    }

    pub fn has_note(&self, note: &str) -> bool {
        self.0["notes"].as_array().into_iter().flatten().any(|said| said.as_str().is_some_and(|s| s.contains(note)))
    }

    /// It is this, for that reason or with that outcome.
    #[track_caller]
    pub fn is(&self, word: &str, why: &str) -> &Fate {
        assert_eq!(self.word(), word, "{self:?}");
        assert!(self.rule() == why || self.outcome() == why || self.because().contains(why), "not {why}: {self:?}");
        self
    }

    #[track_caller]
    pub fn notes(&self, note: &str) -> &Fate {
        assert!(self.has_note(note), "nothing of {note}: {self:?}");
        self
    }
}
