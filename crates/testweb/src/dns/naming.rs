//! What the name server says about a name, and what it does instead: rows 21, 39, 40 and 42. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::message::{self, A, AAAA, Data, Question, Record};
use crate::behaviour::Behaviour;
use crate::hostile::{Hostile, Row};
use crate::world::{Host, World};

/// How long an honest answer may be kept.
const TTL_SECONDS: u32 = 60;
/// Addresses in an answer of too many.
const MANY: u32 = 200;
/// Questions in a second above which a throttling server refuses.
const THROTTLE_PER_SECOND: u64 = 20;
/// How late a late answer is, unless said otherwise.
const LATE_MS: u64 = 5_000;
/// What the names begin with that aliases lead to.
const ALIAS: &str = "alias-";

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The host that it is about.
    pub host: Option<String>,
    /// Under which name it is counted.
    pub form: String,
    pub reply: Reply,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// An answer.
    Answer { code: u8, records: Vec<Record> },
    /// The same, after a while.
    Late { ms: u64, records: Vec<Record> },
    /// An answer to another question first, then this one.
    Forged { records: Vec<Record> },
    /// Over UDP only that there is more; over TCP this.
    Cut { records: Vec<Record> },
    /// Bytes that are no message.
    Garbage,
    /// Nothing.
    Nothing,
}

/// A question, and what decides about the answer beside the world.
pub(super) struct Asked<'a> {
    pub question: &'a Question,
    /// Questions about this host so far, this one included.
    pub number: u64,
    /// Questions in this second so far, this one included.
    pub in_second: u64,
}

/// The host that a name means, and the part of the name before the host's own.
pub(super) fn host_of<'w>(world: &'w World, name: &str) -> Option<&'w Host> {
    world.host(name).or_else(|| {
        let (label, rest) = name.split_once('.')?;
        world.host(rest).filter(|_| label.starts_with(ALIAS))
    })
}

/// What is said to a question about a host. `hijacker`: a host whose address is given for names that are not there.
pub(super) fn say(asked: &Asked, host: Option<&Host>, behaviour: &Behaviour, hijacker: Option<&Host>) -> Said {
    let Question { name, kind, .. } = asked.question;
    let fitting = |records: Vec<Record>| records.into_iter().filter(|record| record.fits(*kind)).collect::<Vec<_>>();
    let answer = |records| Reply::Answer { code: message::NO_ERROR, records: fitting(records) };
    let honest = |host: &Host, ttl| host.plan.addresses.iter().map(|a| Record::address(*a, ttl)).collect::<Vec<_>>();
    let Some(host) = host else {
        return match hijacker {
            Some(host) => Said {
                host: Some(host.plan.name.clone()),
                form: "hijack".into(),
                reply: answer(honest(host, TTL_SECONDS)),
            },
            None => {
                let reply = Reply::Answer { code: message::NAME_ERROR, records: Vec::new() };
                Said { host: None, form: "name-error".into(), reply }
            }
        };
    };
    let said = |form: &str, reply| Said { host: Some(host.plan.name.clone()), form: form.into(), reply };
    let own = || honest(host, TTL_SECONDS);
    let honestly = || said(if *kind == AAAA { "aaaa" } else { "a" }, answer(own()));
    let Some(hostile) = behaviour.as_hostile() else {
        return honestly();
    };
    match hostile.row {
        Row::PrivateAddresses if *name != host.plan.name => {
            let label = name.split('.').next().unwrap_or_default();
            let Some((form, records)) = private(label, asked.number, own()) else {
                return honestly();
            };
            said(form, answer(records))
        }
        Row::DnsThrottle if asked.in_second > THROTTLE_PER_SECOND => match hostile.whole() {
            "refuse" => said("throttled", Reply::Answer { code: message::REFUSED, records: Vec::new() }),
            _ => said("throttled", Reply::Nothing),
        },
        Row::BlackHole if *kind == AAAA => {
            said("aaaa", answer(vec![Record::address(Ipv6Addr::LOCALHOST.into(), TTL_SECONDS)]))
        }
        Row::Dns => {
            let form = hostile.whole();
            said(form, trouble(hostile, form, asked, host, fitting(own())))
        }
        _ => honestly(),
    }
}

/// The form and the addresses of a name that leads where it should not; at every second question, for one that changes.
fn private(label: &str, number: u64, own: Vec<Record>) -> Option<(&'static str, Vec<Record>)> {
    let form = Row::PrivateAddresses.forms().iter().find(|form| form.name == label)?.name;
    if form == "mixed" {
        let more = ["metadata", "private", "six"].into_iter().filter_map(message::forbidden);
        return Some((form, own.into_iter().chain(more.map(|address| Record::address(address, 0))).collect()));
    }
    if form == "rebinding" && !number.is_multiple_of(2) {
        return Some((form, own.into_iter().map(|record| Record { ttl_seconds: 0, ..record }).collect()));
    }
    Some((form, vec![Record::address(message::forbidden(form)?, 0)]))
}

fn trouble(hostile: &Hostile, form: &str, asked: &Asked, host: &Host, own: Vec<Record>) -> Reply {
    let code = |code| Reply::Answer { code, records: Vec::new() };
    let alias = |from: &str, to: String| Record { name: Some(from.into()), ttl_seconds: 1, data: Data::Alias(to) };
    let name = asked.question.name.as_str();
    match form {
        "servfail" => code(message::SERVER_FAILURE),
        "refused" => code(message::REFUSED),
        "empty" => code(message::NO_ERROR),
        "nothing" => Reply::Nothing,
        "garbage" => Reply::Garbage,
        "forged" => Reply::Forged { records: own },
        "late" => Reply::Late { ms: hostile.ms_or(LATE_MS), records: own },
        "cut" => Reply::Cut { records: own },
        "cname-loop" => {
            let other = format!("{ALIAS}loop.{}", host.plan.name);
            let records = vec![alias(&host.plan.name, other.clone()), alias(&other, host.plan.name.clone())];
            Reply::Answer { code: message::NO_ERROR, records }
        }
        "cname-chain" => {
            let hop =
                name.strip_prefix(ALIAS).and_then(|rest| rest.split('.').next()?.parse::<u64>().ok()).unwrap_or(0);
            let next = format!("{ALIAS}{}.{}", hop.saturating_add(1), host.plan.name);
            Reply::Answer { code: message::NO_ERROR, records: vec![alias(name, next)] }
        }
        "many" if asked.question.kind == A => {
            // The first works; at the others nobody listens.
            let more = (0..MANY - 1).map(|n| IpAddr::from(Ipv4Addr::new(127, 9, 9, (n % 254 + 1) as u8)));
            let records = own.into_iter().take(1).chain(more.map(|address| Record::address(address, TTL_SECONDS)));
            Reply::Answer { code: message::NO_ERROR, records: records.collect() }
        }
        "short-ttl" => {
            let records = own.into_iter().map(|record| Record { ttl_seconds: 1, ..record }).collect();
            Reply::Answer { code: message::NO_ERROR, records }
        }
        _ => Reply::Answer { code: message::NO_ERROR, records: own },
    }
}
