//! `skep watch` and its like, as somebody typed it: a portal and events.
#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]

use crate::site::Site;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Something that watches and serves. It ends with this.
pub struct Watched {
    child: Child,
    pub address: String,
    events: BufReader<ChildStdout>,
    said: Option<std::thread::JoinHandle<String>>,
}

/// Nothing of what is waited for takes as long as this.
const PATIENCE: Duration = Duration::from_secs(60);

impl Watched {
    pub fn begin(site: &Site, typed: &[&str]) -> Watched {
        Watched::of(site.command(&[typed, &["--listen", "127.0.0.1:0", "--json"]].concat()))
    }

    pub fn of(mut command: Command) -> Watched {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts");
        let mut talk = child.stderr.take().expect("its talk");
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            let _until_it_ends = talk.read_to_string(&mut text);
            text
        });
        let events = BufReader::new(child.stdout.take().expect("its events"));
        let mut watched = Watched { child, address: String::new(), events, said: Some(said) };
        let portal = loop {
            let event = watched.event();
            if event["event"] == "serving" {
                break event["portal"].as_str().expect("an address").to_owned();
            }
        };
        watched.address = portal.trim_start_matches("http://").trim_end_matches('/').to_owned();
        watched
    }

    /// The next event.
    pub fn event(&mut self) -> Value {
        let mut line = String::new();
        if self.events.read_line(&mut line).expect("its events") == 0 {
            let said = self.said.take().map(|said| said.join().unwrap_or_default());
            panic!("it ended: {}", said.unwrap_or_default());
        }
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub fn until_visited(&mut self, wanted: impl Fn(&str, &str) -> bool) {
        loop {
            let event = self.event();
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            if event["event"] == "visited" && wanted(text("url"), text("outcome")) {
                return;
            }
        }
    }

    /// Asks again and again until there is an answer.
    pub fn until<T>(&self, mut ask: impl FnMut(&Watched) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(answer) = ask(self) {
                return answer;
            }
            assert!(since.elapsed() < PATIENCE, "it never came");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn until_found(&self, target: &str, text: &str) -> String {
        self.until(|watched| Some(watched.get(target).1).filter(|body| body.contains(text)))
    }

    pub fn port(&self) -> u16 {
        self.address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    pub fn get(&self, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)
            .expect("it is sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
    }

    /// Ctrl-C: its exit code and what it said to people.
    pub fn end(mut self) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is told");
        let _rest = self.events.read_to_string(&mut String::new());
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        (code, self.said.take().map(|said| said.join().unwrap_or_default()).unwrap_or_default())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _gone = self.child.wait();
    }
}
