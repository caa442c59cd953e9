//! How long bundles are delayed whose contributors were killed, and stay dead.
#![allow(missing_docs)]

use crate::site::Ran;
use skep_archive::Identity;
use skep_contribute::limits::{LATER_SECONDS_BUSY, LEASE_MS_MAX};
use skep_contribute::node::hex;
use skep_testweb::Web;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The node looks so often for what is overdue.
const SCAN: Duration = Duration::from_millis(200);
/// The node is asked by a command of which nobody knows when in its course it is answered; and it has more to do than to look.
const HEARD: Duration = Duration::from_secs(2);
/// Then it is the first to be given out: to whoever asks next, when its site has rested. A busy machine takes a while for that. Whoever
/// comes next may have taken another bundle a moment ago, and asks when that is done: at the latest when its own lease ends.
const TAKEN: Duration = Duration::from_secs(LATER_SECONDS_BUSY as u64 + 8);

/// Bundles that somebody had when he was killed: since when he is dead, until when they were his, and of which host.
#[derive(Default)]
pub struct Delays(Vec<(Instant, Instant, String)>);

impl Delays {
    /// The key of a contributor, by its folder.
    pub fn key(folder: &Path) -> Option<String> {
        Identity::load(folder).ok().flatten().map(|identity| hex(&identity.public()))
    }

    /// The hosts of which a contributor has bundles, by what its node says, and for how long.
    pub fn out(shown: &Ran) -> Vec<(String, Duration)> {
        let out = shown.json().into_iter().flat_map(|one| one["out"].as_array().cloned().unwrap_or_default());
        let bundle = |bundle: serde_json::Value| {
            let url = skep_url::Url::parse(bundle["host"].as_str().expect("a host")).expect("a URL");
            let host = url.host_name().to_owned();
            let left = Duration::from_millis(bundle["left-ms"].as_u64().expect("a duration"));
            assert!(left <= Duration::from_millis(LEASE_MS_MAX), "{host} is out for {left:?}");
            (host, left)
        };
        out.map(bundle).collect()
    }

    /// Somebody has just been killed who had these.
    pub fn expect(&mut self, killed: Instant, out: Vec<(String, Duration)>) {
        let now = Instant::now();
        self.0.extend(out.into_iter().map(|(host, left)| (killed, now + left, host)));
    }

    /// Watches what somebody has who was killed and stays dead: a scan after its time is over nothing is his any more, however long it takes until
    /// somebody else takes it.
    pub fn go_back(out: impl Fn() -> Vec<(String, Duration)>) {
        // Hosts whose time is over, by what the node says, and since when that is known.
        let mut over: HashMap<String, Instant> = HashMap::new();
        loop {
            let asked = Instant::now();
            let left = out();
            if left.is_empty() {
                return;
            }
            let next = left.iter().map(|(_, left)| *left).min().unwrap_or_default();
            for (host, left) in left {
                if !left.is_zero() {
                    over.remove(&host);
                    continue;
                }
                let since = *over.entry(host.clone()).or_insert_with(Instant::now);
                let late = asked.saturating_duration_since(since);
                assert!(late <= SCAN + HEARD, "{host} is still a dead one's, {late:?} after its time was over");
            }
            std::thread::sleep(next.max(SCAN));
        }
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Each of the hosts was asked again in time: not later than the lease's end, one scan, and a turn of whoever is to take it.
    pub fn were_short(&self, web: &Web) {
        let requests = web.requests();
        let most = SCAN + TAKEN + self.0.iter().map(|(killed, until, _)| *until - *killed).max().unwrap_or_default();
        for (killed, until, host) in &self.0 {
            let killed_us = web.us(*killed);
            let next_us =
                requests.iter().filter(|it| it.host == *host).map(|it| it.start_us).find(|us| *us > killed_us);
            let next_us = next_us.unwrap_or_else(|| panic!("nobody asked {host} again"));
            // Who took it next may have been killed, too, before he asked anything: then his lease is the one that counts.
            let is_of_another = self
                .0
                .iter()
                .any(|(later, ends, of)| of == host && *later > *killed && *ends > *until && web.us(*later) < next_us);
            let late = Duration::from_micros(next_us.saturating_sub(web.us(*until)));
            println!(
                "{host}: asked again {late:.1?} after the end of its lease, at the latest after {most:.1?}{}",
                if is_of_another { ", if nobody else had it meanwhile who was killed" } else { "" }
            );
            if is_of_another {
                continue;
            }
            assert!(
                late <= most,
                "{host} was asked again {late:?} after the end of its lease, at most {most:?} are asked"
            );
        }
    }
}
