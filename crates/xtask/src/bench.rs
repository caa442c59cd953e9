//! `cargo xtask bench NAME`: our figures beside those of peers, on the same input, with the peers' versions. CPU time is what
//! is compared, because it is what the machine's other work disturbs least.

mod contributors;
mod copy;
mod crawl;
mod forward;
mod freshness;
mod index;
mod lookup;
mod postgres;
mod registry;
mod replay;
mod ring;
mod served;
mod stats;
mod stream;
mod warc_read;

use crate::limits;
use crate::long::Entry;
use crate::measure::{self, Run};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Every bench.
pub const ALL: &[Entry] = &[
    Entry {
        name: "warc-read",
        what: "records per CPU second over 500 MB of real pages, beside FastWARC and warcio",
        run: warc_read::run,
    },
    Entry {
        name: "crawl",
        what: "pages per CPU second of `skep crawl` beside a bare loop, wget2, wget with WARC, httrack and Scrapy",
        run: crawl::run,
    },
    Entry { name: "index", what: "CPU time of `skep index` beside cdxj-indexer, and of `skep add`", run: index::run },
    Entry {
        name: "lookup",
        what: "exact and closest look-ups among 10 million captures, beside pywb's index",
        run: lookup::run,
    },
    Entry {
        name: "registry",
        what: "links checked per CPU second against 10 million known URLs, beside a store of full URLs",
        run: registry::run,
    },
    Entry {
        name: "postgres",
        what: "changes per second carried into a real PostgreSQL, beside what HyperDog's databases took",
        run: postgres::run,
    },
    Entry {
        name: "replay",
        what: "pages and records served per second, beside pywb; rewriting beside a bare pass of lol_html",
        run: replay::run,
    },
    Entry {
        name: "forward",
        what: "bytes per link that goes to another node, and how many are acknowledged a minute, on the links of a crawl of real pages",
        run: forward::run,
    },
    Entry {
        name: "bandwidth",
        what: "bytes that a daily scan costs a node, beside those that its contributors fetch",
        run: contributors::bandwidth,
    },
    Entry {
        name: "dispatch",
        what: "URLs that a node hands out and takes back per second; a contributor's CPU time per page beside a crawl's",
        run: contributors::dispatch,
    },
    Entry {
        name: "copy",
        what: "segments from one node to another, beside a bare stream and TLS on TCP; five nodes that crawl together, beside one",
        run: copy::run,
    },
    Entry { name: "cdx", what: "look-ups per second over HTTP, beside pywb", run: replay::index },
    Entry {
        name: "stats",
        what: "statistics, versions and duplicates of a million captures, from the start of a process",
        run: stats::run,
    },
    Entry {
        name: "freshness",
        what: "how fresh a budget of visits keeps copies of a changing web, policy by policy, beside one that knows all rates",
        run: freshness::run,
    },
    Entry {
        name: "stream",
        what: "events from captures and check lines, replayed, and followed by a thousand at once",
        run: stream::run,
    },
    Entry {
        name: "indexer",
        what: "bytes that an indexer receives who follows the stream, beside one that downloads every page daily",
        run: stream::indexer,
    },
    Entry {
        name: "revisit-cost",
        what: "CPU time and bytes of deciding when a URL is looked at again",
        run: freshness::cost,
    },
];

/// Runs a program several times; the run with the least CPU time counts.
fn best(command: &Command, runs: u32, into: Option<&Path>) -> Result<Run> {
    let mut best: Option<Run> = None;
    for _ in 0..runs.max(1) {
        let name = command.get_program().to_string_lossy().into_owned();
        let run = measure::measure(command, limits::BENCH_RUN_MAX, into)?.ok().with_context(|| name)?;
        if best.as_ref().is_none_or(|best| run.cpu < best.cpu) {
            best = Some(run);
        }
    }
    best.context("no run")
}

/// A script of ours in the peers' environment.
fn peer(workspace: &Workspace, script: &str) -> Command {
    let mut command = Command::new(workspace.python());
    command.arg(workspace.root.join("crates/xtask/peers").join(script));
    // A warning about an older interface is no figure.
    command.env("PYTHONWARNINGS", "ignore");
    command
}

/// Names and versions of what we are compared with.
fn versions(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    let script = "import importlib.metadata, sys; \
                  print('python', sys.version.split()[0], *(f'{n} {importlib.metadata.version(n)}' for n in sys.argv[1:]), sep=', ')";
    let output = Command::new(workspace.python()).args(["-c", script]).args(packages).output()?;
    println!("peers: {}", String::from_utf8_lossy(&output.stdout).trim());
    Ok(())
}
