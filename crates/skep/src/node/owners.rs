//! What owners of sites want: said on a page of any node, proven by a file on their host, done by all nodes.

use super::told::{Wished, Wishes};
use super::{Node, crawling};
use crate::crawl::{Hands, Job};
use crate::failure::{Failure, Result};
use skep_archive::system_clock;
use skep_fetch::{Ask, Dns, Fetcher};
use skep_portal::Wish;
use skep_ring::Hash;
use skep_ring::instruction::What;
use skep_url::Url;
use std::sync::Arc;

/// Where the file is looked for.
pub const PLACE: &str = "/.well-known/skep.txt";
/// Bytes of it that are read.
const PROOF_BYTES_MAX: u64 = 4 << 10;

/// The line that proves whose a host is; the same at all nodes, and known to nobody else.
pub fn line(node: &Node, host: &str) -> String {
    let secret = [&node.shell.membership().secret[..], host.as_bytes()].concat();
    format!("skep-owner {:016x}", Hash::of("skep owner", &secret).number())
}

/// Looks at the file, and tells everybody.
pub fn wish(node: &Arc<Node>, host: &str, wish: Wish) -> Result<String> {
    let Some(crawl) = node.glue.wanted() else {
        return Err(Failure::new("The network crawls nothing just now: nobody comes."));
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::new("The crawl's settings make no sense.").because(error);
    let settings = crawl.settings(&node.consent).map_err(|error| wrong(&error))?;
    let job =
        Job { settings, fetch: node.fetch.clone(), each: false, text: false, hands: Hands::default(), network: true };
    let wanted = line(node, host);
    let file = read(job.run()?.fetch, host)?;
    if !file.lines().any(|line| line.trim() == wanted) {
        return Err(Failure::new(format!("The file at {host}{PLACE} does not have the line {wanted:?}.")));
    }
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
    // What was asked for here before is said again with it: each node has one list.
    let mut wishes = Wishes::default();
    for signed in node.shell.instructions().iter().filter(|signed| signed.instruction.node == node.shell.key()) {
        match &signed.instruction.what {
            What::Sites { name, sites } if *name == crawl.name => wishes = toml::from_str(sites).unwrap_or_default(),
            _ => {}
        }
    }
    wishes.site.insert(host.to_owned(), wished);
    let sites = toml::to_string(&wishes).map_err(|error| wrong(&error))?;
    crawling::instruct(crawling::folder(node), node, What::Sites { name: crawl.name, sites })?;
    Ok(done)
}

/// The file, by https where the host has it, else by http.
fn read(settings: skep_fetch::Settings, host: &str) -> Result<String> {
    let wrong = |error: &dyn std::fmt::Display| Failure::new(format!("{host} cannot be asked.")).because(error);
    let settings = Arc::new(settings);
    let dns = Arc::new(Dns::new(&settings).map_err(|error| wrong(&error))?);
    let fetcher = Fetcher::new(settings, dns).map_err(|error| wrong(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| wrong(&error))?;
    let mut why = String::new();
    for scheme in ["https", "http"] {
        let url = Url::parse(&format!("{scheme}://{host}{PLACE}")).map_err(|error| wrong(&error))?;
        let ask = Ask { body_bytes_max: Some(PROOF_BYTES_MAX), ..Ask::new(&url) };
        let exchange = runtime.block_on(async { fetcher.session(&url).get(&ask).await });
        if exchange.status() == Some(200) {
            let body = exchange.response.bytes(exchange.head_bytes as u64, PROOF_BYTES_MAX);
            return Ok(String::from_utf8_lossy(&body.map_err(|error| wrong(&error))?).into_owned());
        }
        why = match (exchange.status(), &exchange.fault) {
            (Some(status), _) => format!("its answer was {status}"),
            (None, Some(fault)) => fault.to_string(),
            (None, None) => "it did not answer".into(),
        };
    }
    Err(Failure::new(format!("There is no file at {host}{PLACE}: {why}.")))
}
