//! `skep serve`, as somebody typed it.
#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]

use crate::site::Site;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};

/// A portal that was typed, and what it says. It ends with this.
pub struct Portal {
    pub child: Child,
    pub address: String,
    pub said: BufReader<ChildStderr>,
    log: File,
}

impl Portal {
    pub fn begin(site: &Site, more: &[&str]) -> Portal {
        Portal::begin_at(site, &[["--listen", "127.0.0.1:0"].as_slice(), more].concat())
    }

    /// Where `more` says.
    pub fn begin_at(site: &Site, more: &[&str]) -> Portal {
        let typed = [["serve"].as_slice(), more].concat();
        // A file takes lines whether or not somebody reads them.
        let log = tempfile::tempfile_in(site.root()).expect("a file");
        let lines = log.try_clone().expect("the same file");
        let mut child = site.command(&typed).stdout(lines).stderr(Stdio::piped()).spawn().expect("skep starts");
        let mut said = BufReader::new(child.stderr.take().expect("its talk"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it talks");
        let address = line
            .trim()
            .strip_prefix("serving http://")
            .or_else(|| line.trim().strip_prefix("serving https://"))
            .unwrap_or_else(|| panic!("{line}"))
            .trim_end_matches('/')
            .to_owned();
        Portal { child, address, said, log }
    }

    pub fn port(&self) -> u16 {
        self.address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    pub fn get(&self, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        let host = &self.address;
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it is sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
    }

    fn signal(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is told");
    }

    /// Ctrl-C: its exit code, its log, and what it said to people.
    pub fn end(mut self) -> (i32, String, String) {
        self.signal();
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        let mut log = String::new();
        self.log.rewind().and_then(|()| self.log.read_to_string(&mut log)).expect("text");
        (code, log, said)
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _gone = self.child.wait();
    }
}
