//! A web on loopback addresses, and crawls of it by the real binary.
#![allow(dead_code, missing_docs)]

use crate::site::{Ran, Site, of_output};
use serde_json::Value;
use skep_testweb::{Content, HostPlan, Plan, Policy, Settings, Shape, Web, World};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

pub const HOST: &str = "bees.test";
pub const HOME: &str = "http://bees.test/";

/// A generated host that does not change.
pub fn generated(pages: u32) -> Web {
    start(Plan::new(7).host(HostPlan::generated(HOST, Shape::pages(pages).frozen())))
}

/// A host that is this folder.
pub fn folder(folder: &Path) -> Web {
    start(Plan::new(7).host(HostPlan::new(HOST, Content::Folder(folder.to_path_buf()))))
}

pub fn start(plan: Plan) -> Web {
    let policy = Policy { agent: Some("skep".into()), ..Policy::default() };
    let settings = Settings { policy, ..Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

/// The flags with which every host of the web is found, is ours, and can be hurried.
pub fn flags(web: &Web) -> Vec<String> {
    let mut flags: Vec<String> = ["--pace", "none", "--patience", "1"].map(str::to_owned).to_vec();
    for place in &web.map().hosts {
        flags.extend(["--own".to_owned(), place.host.clone()]);
        flags.extend(place.resolve.iter().flat_map(|resolve| ["--resolve".to_owned(), resolve.clone()]));
    }
    flags
}

/// `skep crawl WORDS` with these flags.
pub fn typed<'t>(words: &[&'t str], flags: &'t [String]) -> Vec<&'t str> {
    std::iter::once("crawl").chain(words.iter().copied()).chain(flags.iter().map(String::as_str)).collect()
}

pub fn crawl(site: &Site, words: &[&str], web: &Web) -> Ran {
    site.skep(&typed(words, &flags(web)))
}

/// What can be reached from the home page: URL, status, digest.
pub fn truth(web: &Web) -> BTreeSet<(String, String, String)> {
    let entries = web.world().reachable(&[HOME], web.now(), |url| url.starts_with(HOME)).expect("the truth");
    entries.into_iter().map(|entry| (entry.url, entry.status.to_string(), entry.digest)).collect()
}

/// What the archive has, robots.txt apart.
pub fn kept(site: &Site) -> BTreeSet<(String, String, String)> {
    let listed = site.skep(&["captures", HOST, "--match", "host", "--json"]).exits(0);
    let field = |object: &Value, name: &str| match &object[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fact = |object: Value| (field(&object, "url"), field(&object, "status"), field(&object, "digest"));
    listed.json().into_iter().map(fact).filter(|(url, ..)| !url.ends_with("/robots.txt")).collect()
}

/// How often each path was asked for, robots.txt apart.
pub fn asked(web: &Web) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in web.requests().into_iter().filter(|request| request.path != "/robots.txt") {
        *asked.entry(request.path).or_default() += 1;
    }
    asked
}

/// A crawl that runs, with its events.
pub struct Running {
    pub child: Child,
    pub events: Vec<Value>,
    out: BufReader<ChildStdout>,
    talk: BufReader<ChildStderr>,
    talked: String,
}

impl Running {
    /// Begins `skep crawl WORDS --json`.
    pub fn begin(site: &Site, words: &[&str], web: &Web) -> Running {
        let flags = flags(web);
        let mut command = site.command(&typed(&[words, &["--json"]].concat(), &flags));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let talk = BufReader::new(child.stderr.take().expect("its talk"));
        Running { child, events: Vec::new(), out, talk, talked: String::new() }
    }

    /// Reads events until there are so many of a kind.
    pub fn until(&mut self, kind: &str, count: usize) {
        while self.events.iter().filter(|event| event["event"] == kind).count() < count {
            let mut line = String::new();
            if self.out.read_line(&mut line).expect("its output can be read") == 0 {
                let mut talk = String::new();
                let _ = self.talk.read_to_string(&mut talk);
                panic!("it ended before there were {count} {kind}: {talk}");
            }
            self.events.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
        }
    }

    /// Reads what it says to people until this is said.
    pub fn until_said(&mut self, what: &str) {
        while !self.talked.contains(what) {
            let read = self.talk.read_line(&mut self.talked).expect("its talk can be read");
            assert!(read > 0, "it never said {what:?}: {}", self.talked);
        }
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it can be told");
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Reads the rest and waits for its end; the events are in the output.
    pub fn hear(mut self) -> Ran {
        let mut out = self.events.iter().map(|event| format!("{event}\n")).collect::<String>().into_bytes();
        self.out.read_to_end(&mut out).expect("its output can be read");
        let mut rest = String::new();
        self.talk.read_to_string(&mut rest).expect("its talk can be read");
        let status = self.child.wait().expect("it ends");
        let stderr = format!("{}{rest}", self.talked).into_bytes();
        of_output("(begun earlier)".into(), std::process::Output { status, stdout: out, stderr })
    }
}
