//! `skep doctor`: whether this machine is fit to crawl, and what to change where it is not.

mod machine;
mod names;

use crate::failure::{Failure, Result, say};
use crate::job::{Exit, Tell};
use crate::owner::Place;
use crate::show::{self, Column, Screen};
use clap::Args;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

/// Look at the limits of this machine: files, name servers, clock, free space, ports
#[derive(Args)]
#[command(after_help = "\
One line for each thing: its value, a verdict (fine, consider, change), and what to change and how. Nothing is changed by it. The name
servers of /etc/resolv.conf are asked for a few well-known names; other servers with --dns.
Exit code 1 if something must be changed before a crawl can work well.")]
pub struct Typed {
    /// Ask this name server instead; may be repeated
    #[arg(long, value_name = "ADDR[:PORT]")]
    dns: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub value: String,
    pub verdict: Verdict,
    /// What to change and how; empty where all is fine.
    pub advice: String,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// It will do; a large crawl wants more.
    Consider,
    /// A crawl suffers.
    Change,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Consider => "consider",
            Verdict::Change => "change",
        }
    }
}

impl Finding {
    pub fn fine(what: &'static str, value: impl Into<String>) -> Finding {
        Finding { what, value: value.into(), verdict: Verdict::Fine, advice: String::new() }
    }

    pub fn consider(what: &'static str, value: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { what, value: value.into(), verdict: Verdict::Consider, advice: advice.into() }
    }

    pub fn change(what: &'static str, value: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { what, value: value.into(), verdict: Verdict::Change, advice: advice.into() }
    }
}

const COLUMNS: &[Column] = &[
    ("what", |v| show::text(v, "what")),
    ("verdict", |v| show::text(v, "verdict")),
    ("value", |v| show::text(v, "value")),
];

pub fn run(typed: &Typed, place: &Place) -> Result<Exit> {
    let given: Vec<SocketAddr> = typed.dns.iter().map(|text| name_server(text)).collect::<Result<_>>()?;
    let began = (Instant::now(), SystemTime::now());
    let mut findings = vec![machine::open_files()];
    findings.extend(names::findings(given));
    findings.push(machine::clock(began, (Instant::now(), SystemTime::now())));
    findings.push(machine::space(&place.archive));
    findings.extend(machine::ports());

    let mut screen = Screen::new(place.json, COLUMNS);
    for finding in &findings {
        let Finding { what, value, verdict, advice } = finding;
        screen.line(json!({ "what": what, "value": value, "verdict": verdict.name(), "advice": advice }))?;
    }
    screen.finish()?;
    if !place.json {
        findings.iter().filter(|f| !f.advice.is_empty()).for_each(|f| say(&format!("{}: {}", f.what, f.advice)));
    }
    let sound = findings.iter().all(|finding| finding.verdict != Verdict::Change);
    Ok(if sound { Exit::Done } else { Exit::No })
}

/// A name server as typed: an address, with a port if it is not 53.
pub fn name_server(text: &str) -> Result<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    text.parse().or_else(|_| bare.parse().map(|ip| SocketAddr::new(ip, names::PORT))).map_err(|_| {
        Failure::new(format!("{text:?} is not the address of a name server"))
            .hint("an address looks like 192.0.2.53, 192.0.2.53:5353, 2001:db8::53 or [2001:db8::53]:5353")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_as_typed() {
        for (typed, meant) in [
            ("192.0.2.53", "192.0.2.53:53"),
            ("192.0.2.53:5353", "192.0.2.53:5353"),
            ("2001:db8::53", "[2001:db8::53]:53"),
            ("[2001:db8::53]", "[2001:db8::53]:53"),
            ("[2001:db8::53]:5353", "[2001:db8::53]:5353"),
        ] {
            assert_eq!(name_server(typed).unwrap(), meant.parse().unwrap(), "{typed}");
        }
        for wrong in ["", "dns.example", "192.0.2.53:", "1.2.3"] {
            assert!(name_server(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
