//! Contributors, as somebody typed them; where they stand; and what an archive has that they filled.
#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]

use crate::site::Site;
use serde_json::Value;
use skep_testweb::Web;
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long anything here may take before it counts as a hang.
pub const PATIENCE: Duration = Duration::from_secs(1_200);

/// A contributor that was typed. It ends with this.
pub struct Contributor {
    pub child: Child,
    pub folder: PathBuf,
    pub said: BufReader<std::process::ChildStderr>,
}

impl Contributor {
    /// On this machine, from a loopback address of its own.
    pub fn begin(site: &Site, number: u32, node: &str, web: Option<&Web>, more: &[&str]) -> Contributor {
        Ground::Loopback.begin(site, number, &format!("http://{node}"), web, more)
    }

    /// Reads what it says until this is said.
    pub fn until_said(&mut self, what: &str) -> String {
        let mut all = String::new();
        while !all.contains(what) {
            let read = self.said.read_line(&mut all).expect("its talk can be read");
            assert!(read > 0, "it never said {what:?}: {all}");
        }
        all
    }

    pub fn told(&self, site: &Site, word: &str) -> Value {
        let folder = self.folder.display().to_string();
        let told = site.skep(&["contribute", word, "--dir", &folder, "--json"]).exits(0);
        told.json().pop().expect("how it stands")
    }

    /// Asks how it stands until it stands so.
    pub fn until(&self, site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            // It answers once its socket is there.
            let status = if self.folder.join("control").exists() { self.told(site, "--status") } else { Value::Null };
            if is_so(&status) {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "never {what}: {status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// SIGKILL, in the middle of whatever it does.
    pub fn kill_now(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Contributor {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A crawl of all hosts of a web at the usual pace.
pub fn crawl(web: &Web, more: &[&str]) -> Vec<String> {
    let mut typed = vec!["crawl".to_owned()];
    typed.extend(web.map().hosts.iter().map(|place| format!("http://{}/", place.host)));
    typed.extend(["--name", "bees", "--allow-private", "--patience", "1"].map(str::to_owned));
    for place in &web.map().hosts {
        typed.extend(place.resolve.iter().flat_map(|resolve| ["--resolve".to_owned(), resolve.clone()]));
    }
    typed.extend(more.iter().map(|word| (*word).to_owned()));
    typed
}

pub fn words(typed: &[String]) -> Vec<&str> {
    typed.iter().map(String::as_str).collect()
}

/// What an archive has of a web: URL, status, digest.
pub fn kept(site: &Site, web: &Web) -> BTreeSet<(String, String, String)> {
    let mut kept = BTreeSet::new();
    for place in &web.map().hosts {
        let listed = site.skep(&["captures", &place.host, "--match", "host", "--json"]).exits(0);
        kept.extend(listed.json().into_iter().map(|capture| {
            let text = |name: &str| capture[name].as_str().map_or_else(|| capture[name].to_string(), str::to_owned);
            (text("url"), text("status"), text("digest"))
        }));
    }
    kept
}

/// Records that say whose hands fetched them.
pub fn lines(site: &Site, beginning: &str) -> usize {
    let grep = format!(
        "find archive/segments -name '*.warc.gz' -exec zcat {{}} + 2>/dev/null | grep -ac '^{beginning}' || true"
    );
    site.shell(&grep).text().trim().parse().expect("a number")
}

/// Where contributors stand.
pub enum Ground {
    /// On loopback addresses of this machine: where nobody may make namespaces.
    Loopback,
    /// Each in a network namespace of its own, behind one bridge; these are removed with this.
    Namespaces(Namespaces),
}

pub struct Namespaces {
    name: String,
    net: u8,
    made: Vec<String>,
    passed: Mutex<HashMap<SocketAddr, SocketAddr>>,
}

fn ip(words: &str) -> bool {
    let ran = Command::new("ip").args(words.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

impl Ground {
    /// Namespaces for so many, where this machine lets us make them. Where `SKEP_NAMESPACES` is set they are not done without.
    pub fn new(count: u32) -> Ground {
        let number = std::process::id() % 10_000;
        let (name, net) = (format!("sk{number}"), 64 + (number % 128) as u8);
        let mut made = Namespaces { name, net, made: Vec::new(), passed: Mutex::default() };
        if rustix::process::geteuid().is_root() && made.make(count) {
            return Ground::Namespaces(made);
        }
        assert!(std::env::var_os("SKEP_NAMESPACES").is_none(), "SKEP_NAMESPACES is set, and none can be made here");
        Ground::Loopback
    }

    /// The address at which they reach this machine.
    pub fn here(&self) -> IpAddr {
        match self {
            Ground::Loopback => Ipv4Addr::LOCALHOST.into(),
            Ground::Namespaces(made) => Ipv4Addr::new(10, made.net, 0, 1).into(),
        }
    }

    /// A portal that they reach: over TLS, unless they are on this machine. Returns how its URL begins.
    pub fn portal(&self, site: &Site) -> (crate::portal::Portal, String) {
        let (listen, tls) = (format!("{}:0", self.here()), "chain.pem,key.pem");
        match self {
            Ground::Loopback => {
                let portal = crate::portal::Portal::begin(site, &["--contributors"]);
                let url = format!("http://{}", portal.address);
                (portal, url)
            }
            Ground::Namespaces(_) => {
                let key = rcgen::KeyPair::generate().expect("a key");
                let params = rcgen::CertificateParams::new(vec![self.here().to_string()]).expect("a name");
                let pem = params.self_signed(&key).expect("a certificate").pem();
                site.write("chain.pem", pem);
                site.write("key.pem", key.serialize_pem());
                let typed = ["--contributors", "--tls", tls, "--listen", &listen];
                let portal = crate::portal::Portal::begin_at(site, &typed);
                let url = format!("https://{}", portal.address);
                (portal, url)
            }
        }
    }

    /// Where they reach an address of this machine. A test web stays on loopback addresses: what comes from a namespace is passed on.
    fn reached_at(&self, address: SocketAddr) -> SocketAddr {
        let Ground::Namespaces(made) = self else { return address };
        let mut passed = made.passed.lock().expect("no panic");
        *passed.entry(address).or_insert_with(|| {
            let listener = TcpListener::bind((self.here(), 0)).expect("a port");
            let at = listener.local_addr().expect("an address");
            std::thread::spawn(move || {
                for theirs in listener.incoming().flatten() {
                    std::thread::spawn(move || pass_on(&theirs, address));
                }
            });
            at
        })
    }

    /// Contributors reach these addresses over this machine, and whatever else they ask for: it is their router. False where they have none.
    pub fn routes_to(&self, addresses: &[IpAddr]) -> bool {
        let Ground::Namespaces(made) = self else { return false };
        let way = self.here();
        addresses.iter().all(|address| ip(&format!("addr add {address}/32 dev {}", made.name)))
            && made.made.iter().all(|space| ip(&format!("netns exec {space} ip route add default via {way}")))
    }

    /// Packets that contributor `number` sent to its own machine.
    pub fn sent_to_itself(&self, number: usize) -> u64 {
        let Ground::Namespaces(made) = self else { panic!("all of them are on one machine") };
        let file = "/sys/class/net/lo/statistics/tx_packets";
        let ran =
            Command::new("ip").args(["netns", "exec", &made.made[number], "cat", file]).output().expect("a count");
        String::from_utf8_lossy(&ran.stdout).trim().parse().expect("a number")
    }

    /// Starts contributor `number` for the node at this URL.
    pub fn begin(&self, site: &Site, number: u32, node: &str, web: Option<&Web>, more: &[&str]) -> Contributor {
        self.begin_with(site, number, node, web, &[&["--allow-private"][..], more].concat())
    }

    /// The same by the rules that hold where its owner says nothing else.
    pub fn begin_with(&self, site: &Site, number: u32, node: &str, web: Option<&Web>, more: &[&str]) -> Contributor {
        let folder = site.path(&format!("contributor-{number}"));
        let mut typed = vec!["contribute".to_owned(), node.to_owned()];
        typed.extend(["--page", "no", "--dir"].map(str::to_owned));
        typed.push(folder.display().to_string());
        match self {
            Ground::Loopback => typed.extend(["--from".to_owned(), format!("127.0.{}.1", 10 + number)]),
            Ground::Namespaces(_) => typed.extend(["--ca".to_owned(), site.path("chain.pem").display().to_string()]),
        }
        for place in web.iter().flat_map(|web| &web.map().hosts) {
            for address in &place.addresses {
                typed.extend(["--resolve".to_owned(), format!("{}={}", place.host, self.reached_at(*address))]);
            }
        }
        typed.extend(more.iter().map(|word| (*word).to_owned()));
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let mut command = site.command(&typed);
        if let Ground::Namespaces(made) = self {
            let space = &made.made[number as usize % made.made.len()];
            let mut inside = Command::new("ip");
            inside.args(["netns", "exec", space]).arg(command.get_program()).args(command.get_args());
            if let Some(folder) = command.get_current_dir() {
                inside.current_dir(folder);
            }
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => inside.env(name, value),
                    None => inside.env_remove(name),
                };
            }
            command = inside;
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("skep starts");
        let said = BufReader::new(child.stderr.take().expect("its talk"));
        Contributor { child, folder, said }
    }
}

/// Everything that comes from one side goes to the other, until one of them ends.
fn pass_on(theirs: &TcpStream, to: SocketAddr) {
    let Ok(ours) = TcpStream::connect(to) else { return };
    let copy = |from: &TcpStream, to: &TcpStream| {
        let (mut from, mut into) = (from, to);
        let _ended = std::io::copy(&mut from, &mut into);
        let _closed = to.shutdown(Shutdown::Write);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| copy(theirs, &ours));
        copy(&ours, theirs);
    });
}

impl Namespaces {
    fn make(&mut self, count: u32) -> bool {
        let (name, net) = (self.name.clone(), self.net);
        if !ip(&format!("link add {name} type bridge"))
            || !ip(&format!("addr add 10.{net}.0.1/16 dev {name}"))
            || !ip(&format!("link set {name} up"))
        {
            return false;
        }
        for number in 0..count {
            let (space, ours, theirs) =
                (format!("{name}n{number}"), format!("{name}v{number}"), format!("{name}w{number}"));
            if !ip(&format!("netns add {space}")) {
                return false;
            }
            self.made.push(space.clone());
            let steps = [
                format!("link add {ours} type veth peer name {theirs}"),
                format!("link set {theirs} netns {space}"),
                format!("link set {ours} master {name}"),
                format!("link set {ours} up"),
                format!("netns exec {space} ip addr add 10.{net}.{}.1/16 dev {theirs}", 10 + number),
                format!("netns exec {space} ip link set {theirs} up"),
                format!("netns exec {space} ip link set lo up"),
            ];
            if !steps.iter().all(|step| ip(step)) {
                return false;
            }
        }
        true
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Their ends of the wires go with them.
        for space in &self.made {
            ip(&format!("netns del {space}"));
        }
        ip(&format!("link del {}", self.name));
    }
}

/// A number of the soaks, or what a test takes.
pub fn asked(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
