//! Bundles of what this node leads go to the holder nearest to the site; and this node fetches for others who lead what it holds.

use super::Node;
use crate::failure::say;
use clap::ValueEnum;
use serde::Serialize;
use skep_contribute::follower::{Follower, Memory};
use skep_contribute::nearest::{Handing, Nearest, No, Way};
use skep_contribute::trust::Key;
use skep_crawl::{Run, hands};
use skep_fetch::Exchange;
use skep_ring::shell::{NoAnswer, Shell};
use skep_schedule::Hands;
use skep_schedule::hands::Offer;
use skep_schedule::near::Gain;
use skep_url::Url;
use std::io::Read;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Who is asked how near it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Holders in other zones than this node's.
    Auto,
    /// All other holders.
    On,
    /// Nobody; and nothing is fetched for others.
    Off,
}

/// What a node knows of that.
pub struct Near {
    when: When,
    memory: Arc<Memory>,
}

/// What came of it, for people and machines.
#[derive(Serialize)]
pub struct Sums {
    pub when: When,
    /// Hosts that are nearer to another holder.
    pub hosts: u64,
    /// Bundles that are with others now.
    pub out: u64,
    #[serde(flatten)]
    pub gain: Gain,
    /// Bundles that were fetched here for others.
    pub followed: u64,
}

impl Near {
    pub fn new(when: When) -> Near {
        Near { when, memory: Arc::default() }
    }

    pub fn sums(&self) -> Sums {
        let (near, now_ms) = (self.memory.lock(), self.memory.now_ms());
        let (hosts, gain) = (near.nearer_elsewhere(now_ms) as u64, near.gain());
        Sums { when: self.when, hosts, out: self.memory.out(), gain, followed: self.memory.followed() }
    }
}

/// Who fetches besides this machine: whoever stands nearer, then contributors. From here on this node fetches for others, too.
pub fn others(node: &Node, run: &Run, contributors: Option<hands::Others>) -> Option<hands::Others> {
    // What is fetched with secrets, or through somebody, is fetched from here.
    let is_plain = run.fetch.proxy.is_none() && run.fetch.headers.is_empty() && run.cookies.is_empty();
    let only = contributors.as_ref().is_some_and(|others| others.only);
    if node.near.when == When::Off || !is_plain {
        return contributors;
    }
    let name = run.settings.name.clone();
    match Follower::start(run.fetch.clone(), node.near.memory.clone()) {
        Ok(follower) => node.glue.follows(Some((name.clone(), Arc::new(follower)))),
        Err(why) => say(&format!("note: nothing is fetched for others: {why}")),
    }
    // What contributors alone are to fetch is not for nodes.
    if only {
        return contributors;
    }
    let settings = run.settings.clone();
    let handing = Handing {
        crawl: name,
        is_for_others: Box::new(move |url| !settings.is_own(url.host_name())),
        clock: Arc::new(skep_archive::system_clock),
    };
    let way = Others { shell: Arc::downgrade(&node.shell), when: node.near.when };
    let nearest: Arc<dyn Hands<Offer<Exchange>> + Send + Sync> =
        Arc::new(Nearest::new(handing, node.near.memory.clone(), Box::new(way)));
    let hands = match contributors {
        Some(contributors) => Arc::new(vec![nearest, contributors.hands]),
        None => nearest,
    };
    Some(hands::Others { hands, only: false })
}

/// Other holders, and the way to them.
struct Others {
    shell: Weak<Shell>,
    when: When,
}

impl Way for Others {
    fn others(&self, url: &Url) -> Vec<Key> {
        let Some(shell) = self.shell.upgrade() else { return Vec::new() };
        let there = shell.followers(shell.slice_of(url.key().site_hash())).into_iter();
        let is_asked = |zone: &str| self.when == When::On || zone != shell.zone();
        there.filter(|(_, zone)| is_asked(zone)).map(|(key, _)| key.0).collect()
    }

    fn ask(&self, node: &Key, url: &Url, question: &[u8], patience: Duration) -> Result<Box<dyn Read + Send>, No> {
        let shell = self.shell.upgrade().ok_or(No::Refused)?;
        let slice = shell.slice_of(url.key().site_hash());
        shell.have_followed(skep_ring::Key(*node), slice, question, patience).map_err(|no| match no {
            NoAnswer::Refused(_) => No::Refused,
            NoAnswer::Silent(_) => No::Silent,
        })
    }
}
