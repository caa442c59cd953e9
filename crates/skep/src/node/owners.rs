//! What owners of sites want: said on a page of any node, proven by a file on their host, done by all nodes.

use super::told::{self, Wished};
use super::{Node, crawling};
use crate::crawl::{Hands, Job};
use crate::failure::{Failure, Result};
use skep_archive::system_clock;
use skep_crawl::Settings;
use skep_fetch::{Ask, Dns, Fetcher};
use skep_portal::{Unheard, Wish};
use skep_ring::Hash;
use skep_ring::instruction::What;
use skep_ring::limits::QUESTION_MS_MAX;
use skep_ring::shell::Proof;
use skep_url::Url;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Where the file is looked for.
pub const PLACE: &str = "/.well-known/skep.txt";
/// Bytes of it that are read.
const PROOF_BYTES_MAX: u64 = 4 << 10;

/// The line that proves whose a host is; the same at all nodes, and known to nobody else.
pub fn line(node: &Node, host: &str) -> String {
    let secret = [&node.shell.membership().secret[..], host.as_bytes()].concat();
    format!("skep-owner {:016x}", Hash::of("skep owner", &secret).number())
}

/// A site is asked for the file this often at most: anybody may say that it is theirs.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Sites that are asked at once …
const LOOKS_AT_ONCE_MAX: usize = 8;
/// … and within [`LOOK_EVERY`].
const LOOKS_MAX: usize = 30;
/// Between a request by https that was answered and the one by http.
const GAP: Duration = Duration::from_secs(1);
/// A site that is slow keeps no other owner waiting: each of the two requests is given up then.
const LOOK_MAX: Duration = Duration::from_secs(12);

// Whoever asked this node to look still waits when it has.
const _: () = assert!(2 * LOOK_MAX.as_millis() + GAP.as_millis() < QUESTION_MS_MAX as u128);

/// Which sites were asked for the file lately.
#[derive(Default)]
pub struct Looks {
    /// By the hash of the site.
    at: BTreeMap<u32, Instant>,
    out: usize,
}

impl Looks {
    /// Whether a site may be asked now; if so, [`Looks::end`] follows. Otherwise says after how long it may.
    fn begin(&mut self, site: u32, now: Instant) -> std::result::Result<(), Duration> {
        self.at.retain(|_, at| now < *at + LOOK_EVERY);
        let waits = |at: &Instant| *at + LOOK_EVERY - now;
        match self.at.get(&site) {
            Some(at) => return Err(waits(at)),
            None if self.at.len() >= LOOKS_MAX => return Err(self.at.values().map(waits).min().unwrap_or(LOOK_EVERY)),
            None if self.out >= LOOKS_AT_ONCE_MAX => return Err(GAP),
            None => {}
        }
        self.at.insert(site, now);
        self.out += 1;
        Ok(())
    }

    fn end(&mut self) {
        self.out -= 1;
    }
}

/// A look that is under way; it has ended when this goes.
struct Looking<'l>(&'l Mutex<Looks>);

fn lock(looks: &Mutex<Looks>) -> MutexGuard<'_, Looks> {
    looks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'l> Looking<'l> {
    /// See [`Looks::begin`].
    fn begin(looks: &'l Mutex<Looks>, site: u32) -> std::result::Result<Looking<'l>, Duration> {
        lock(looks).begin(site, Instant::now()).map(|()| Looking(looks))
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        lock(self.0).end();
    }
}

/// Has the node that leads the site look at the file, and tells everybody.
pub fn wish(node: &Arc<Node>, host: &str, wish: Wish) -> std::result::Result<String, Unheard> {
    match node.shell.proof(host) {
        Proof::Proven => proven(node, host, wish).map_err(|failure| Unheard { told: failure.what, later: false }),
        Proof::Later(told) => Err(Unheard { told, later: true }),
        Proof::No(told) => Err(Unheard { told, later: false }),
    }
}

/// Looks at the file.
pub fn prove(node: &Node, host: &str) -> Proof {
    look(node, host).unwrap_or_else(|failure| Proof::No(failure.what))
}

fn look(node: &Node, host: &str) -> Result<Proof> {
    let wrong = |error: &dyn std::fmt::Display| Failure::new("The crawl's settings make no sense.").because(error);
    let settings = match node.glue.wanted() {
        Some(crawl) => crawl.settings(&node.consent).map_err(|error| wrong(&error))?,
        None => told::within(Settings::default(), &node.consent),
    };
    let url = Url::parse(&format!("http://{host}/")).map_err(|error| wrong(&error))?;
    // Whoever runs this node says which hosts may be hurried.
    let looking = match settings.is_own(host) {
        true => Ok(None),
        false => Looking::begin(&node.looks, url.key().site_hash()).map(Some),
    };
    let _looking = match looking {
        Ok(looking) => looking,
        Err(wait) => {
            let wait = wait.as_secs() + 1;
            let told = format!("{host} was asked for the file just now, or others are. Again in {wait} s.");
            return Ok(Proof::Later(told));
        }
    };
    let job =
        Job { settings, fetch: node.fetch.clone(), each: false, text: false, hands: Hands::default(), network: true };
    let (file, wanted) = (read(job.run()?.fetch, host, LOOK_MAX)?, line(node, host));
    Ok(match file.lines().any(|line| line.trim() == wanted) {
        true => Proof::Proven,
        false => Proof::No(format!("The file at {host}{PLACE} does not have the line {wanted:?}.")),
    })
}

/// The host is whose the wish is: everybody is told, also while nothing is crawled.
fn proven(node: &Arc<Node>, host: &str, wish: Wish) -> Result<String> {
    let at_ms = system_clock() as u64;
    let (wished, done) = match wish {
        Wish::Slow(seconds) => (
            Wished { at_ms, pace_ms: Some(u64::from(seconds) * 1000), pause: false },
            format!("No node asks {host} for anything more often than every {seconds} seconds from now on."),
        ),
        Wish::Stop => {
            (Wished { at_ms, pace_ms: None, pause: true }, format!("No node asks {host} for anything any more."))
        }
        Wish::Welcome => {
            (Wished { at_ms, pace_ms: None, pause: false }, format!("All nodes come to {host} at the usual pace."))
        }
    };
    let name = node.glue.wanted().map_or_else(|| told::ANY.to_owned(), |crawl| crawl.name);
    // What was asked for here before is said again with it: each node has one list.
    crawling::instruct_after(node, |before| {
        let mut wishes = told::wishes(before);
        wishes.site.insert(host.to_owned(), wished);
        let sites = toml::to_string(&wishes).map_err(|error| error.to_string())?;
        Ok(What::Sites { name, sites })
    })?;
    Ok(done)
}

/// The file, by https where the host has it, else by http.
fn read(settings: skep_fetch::Settings, host: &str, patience: Duration) -> Result<String> {
    let wrong = |error: &dyn std::fmt::Display| Failure::new(format!("{host} cannot be asked.")).because(error);
    let settings = Arc::new(settings);
    let dns = Arc::new(Dns::new(&settings).map_err(|error| wrong(&error))?);
    let fetcher = Fetcher::new(settings, dns).map_err(|error| wrong(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| wrong(&error))?;
    let (mut why, mut answered) = (String::new(), false);
    for scheme in ["https", "http"] {
        let url = Url::parse(&format!("{scheme}://{host}{PLACE}")).map_err(|error| wrong(&error))?;
        if answered {
            runtime.block_on(async { tokio::time::sleep(GAP).await });
        }
        let ask = Ask { body_bytes_max: Some(PROOF_BYTES_MAX), ..Ask::new(&url) };
        let asked = runtime.block_on(async { timeout(patience, fetcher.session(&url).get(&ask)).await });
        let Ok(exchange) = asked else {
            (why, answered) = ("it did not answer in time".into(), true);
            continue;
        };
        if exchange.status() == Some(200) {
            let body = exchange.response.bytes(exchange.head_bytes as u64, PROOF_BYTES_MAX);
            return Ok(String::from_utf8_lossy(&body.map_err(|error| wrong(&error))?).into_owned());
        }
        answered = exchange.status().is_some();
        why = match (exchange.status(), &exchange.fault) {
            (Some(status), _) => format!("its answer was {status}"),
            (None, Some(fault)) => fault.to_string(),
            (None, None) => "it did not answer".into(),
        };
    }
    Err(Failure::new(format!("There is no file at {host}{PLACE}: {why}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_looked_at_once_in_a_while_and_few_are_at_once() {
        let (mut looks, begin) = (Looks::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(looks.begin(1, begin), Ok(()));
        assert_eq!(looks.begin(1, begin + second), Err(LOOK_EVERY - second), "while it is looked at");
        looks.end();
        assert_eq!(looks.begin(1, begin + 2 * second), Err(LOOK_EVERY - 2 * second), "and afterwards");
        let others = 2..2 + LOOKS_AT_ONCE_MAX as u32;
        others.clone().for_each(|site| assert_eq!(looks.begin(site, begin), Ok(())));
        assert_eq!(looks.begin(50, begin), Err(GAP), "as many as may be");
        looks.end();
        assert_eq!(looks.begin(50, begin), Ok(()));
        others.for_each(|_| looks.end());
        assert_eq!(looks.begin(1, begin + LOOK_EVERY), Ok(()), "a minute later");
        looks.end();
        // Whoever has many hosts hurries this node no more than whoever has one.
        let mut looked = 0;
        while looks.begin(100 + looked, begin + LOOK_EVERY).is_ok() {
            looks.end();
            looked += 1;
        }
        assert!(looked as usize <= LOOKS_MAX && looks.at.len() <= LOOKS_MAX);
    }

    #[test]
    fn a_host_that_says_nothing_is_not_waited_for() {
        // It takes connections, by https and by http, and no more.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut settings = skep_fetch::Settings::new("skep");
        settings.allow_private = true;
        settings.resolve = vec![format!("silent.test={}", silent.local_addr().unwrap()).parse().unwrap()];
        let begun = Instant::now();
        let failure = read(settings, "silent.test", Duration::from_millis(300)).unwrap_err();
        assert!(failure.what.ends_with("it did not answer in time."), "{}", failure.what);
        assert!(begun.elapsed() < LOOK_MAX, "{:?}", begun.elapsed());
    }
}
