//! `skep demo`: Skep at work on three small sites of its own, without a network and without arguments.

mod guide;
mod ring;
mod server;
mod sites;

use crate::crawl;
use crate::failure::{Failure, Result, say};
use crate::job::{self as jobs, Exit};
use crate::owner::{self, Place};
use crate::{signals, watch};
use clap::Args;
use guide::Guide;
use server::Server;
use sites::SITES;
use skep_crawl::{Settings, Speed, Watch};
use std::path::{Path, PathBuf};

/// See it work: three small sites on this machine that change every few seconds, watched and archived, with the portal beside them
#[derive(Args)]
#[command(after_help = "\
Nothing is needed and nothing leaves this machine. A short tour is printed: a page, its versions, a difference, the live stream, why.
What is kept goes to a folder of its own that is gone when the demo ends; with --archive DIR it stays.
Examples:
  skep demo
  skep demo --archive ./demo --listen 127.0.0.1:8080
  skep demo --nodes 5                           a ring of five on this machine: kill one, and see that nothing gets lost")]
pub struct Typed {
    /// Where the portal listens; port 0 takes a free one (by default 127.0.0.1:7070, or a free one where that is taken)
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// So many nodes crawl the sites together, as a ring; keys kill, cut off, heal and add one
    #[arg(long, value_name = "N", conflicts_with = "listen")]
    nodes: Option<usize>,
}

/// The name of its watch.
const NAME: &str = "demo";
/// Every page is looked at again after so long.
const EVERY_MS: u64 = 1_000;
/// What is kept stays where the folder was named, whatever its name is.
pub fn run(typed: Typed, place: &Place, is_named: bool) -> Result<Exit> {
    let folder = Folder::of(is_named.then_some(&*place.archive))?;
    let place = Place { archive: folder.path().to_owned(), memory_bytes: place.memory_bytes, json: place.json };
    let server =
        Server::start().map_err(|error| Failure::new("the sites of the demo cannot be served").because(error))?;
    if let Some(nodes) = typed.nodes {
        return ring::run(nodes, folder.path(), server.port());
    }
    let job = watch::Job::new(watched(server.port()), typed.listen.as_deref())?;
    let mut guide = Guide::new(&place);
    let _watch = {
        let (folder, voice, screen) = (place.archive.clone(), guide.voice(), guide.voice());
        signals::watch(
            move || {
                voice.say("ending; Ctrl-C again ends at once");
                owner::stop_crawl(&folder, NAME);
            },
            move || screen.clear(),
        )?
    };
    owner::perform(&place, true, &jobs::Job::Watch(Box::new(job)), &mut guide)?;
    drop(guide);
    if matches!(folder, Folder::Named(_)) && !place.json {
        say(&format!("what was kept is in {}: `skep serve --archive {0}`", place.archive.display()));
    }
    Ok(Exit::Done)
}

/// A watch of the three sites.
fn watched(port: u16) -> crawl::Job {
    let settings = Settings {
        name: NAME.into(),
        seeds: SITES.iter().map(|site| format!("http://{site}/")).collect(),
        own: SITES.map(str::to_owned).to_vec(),
        pace: Speed::None,
        watch: Some(Watch { every_ms: Some(EVERY_MS), tags: vec![NAME.into()], ..Watch::default() }),
        ..Settings::default()
    };
    let resolve = SITES.iter().map(|site| format!("{site}=127.0.0.1:{port}")).collect();
    crawl::Job {
        settings,
        fetch: crawl::Fetch::of(resolve),
        each: true,
        text: false,
        hands: crawl::Hands::default(),
        network: false,
    }
}

/// Where it is kept.
enum Folder {
    Named(PathBuf),
    /// Gone with this.
    Own(tempfile::TempDir),
}

impl Folder {
    fn of(named: Option<&Path>) -> Result<Folder> {
        if let Some(named) = named {
            return Ok(Folder::Named(named.to_owned()));
        }
        let own = tempfile::Builder::new().prefix("skep-demo-").tempdir();
        own.map(Folder::Own).map_err(|error| Failure::new("there is no folder for the demo").because(error))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Named(path) => path,
            Folder::Own(own) => own.path(),
        }
    }
}
