//! `skep contributors`: who lends bandwidth to this archive, and whom it believes; and the way from a crawl to them.

use crate::failure::{Failure, Result, printable};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Collected};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_archive::{Archive, Identity, system_clock};
use skep_contribute::Node;
use skep_crawl::hands;
use std::sync::{Arc, Mutex, PoisonError};

/// Who lends bandwidth to this archive, how much each is believed, and who is not
#[derive(Args)]
#[command(after_help = "\
A KEY is the beginning of a contributor's key, or of the name under which it appears in records.
trust    new: everything it brings is fetched a second time; trusted: one bundle in n, and 2 % of URLs always; vouched: 2 % of URLs;
         suspended: nothing is given to it
credit   confirmed and wanted work: one for each URL, and one for each KiB
show     also says which bundles one has now, and how long until they are given to others
Examples:
  skep contributors
  skep contributors suspend 4f1c
Exit code 1 if there is none.")]
pub struct Typed {
    #[command(subcommand)]
    action: Option<Action>,
}

/// What to do.
#[derive(Subcommand, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    /// All of them (the default)
    List,
    /// One of them
    Show {
        /// The beginning of its key or name
        key: String,
    },
    /// Give nothing more to one, until somebody trusts it again
    Suspend {
        /// The beginning of its key or name
        key: String,
    },
    /// Believe one: only the floor of 2 % of URLs is checked
    Trust {
        /// The beginning of its key or name
        key: String,
    },
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    action: Action,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    let job = Job { action: typed.action.unwrap_or(Action::List) };
    let exit = owner::perform(place, false, &job::Job::Contributors(job), &mut told)?;
    show::objects(&told.0, place.json, line)?;
    Ok(exit)
}

fn line(one: &Value) -> String {
    let text = |name: &str| -> String { one[name].as_str().unwrap_or_default().chars().map(printable).collect() };
    let number = |name: &str| one[name].as_u64().unwrap_or(0);
    let mut told = format!(
        "{:<12}  {:<9}  pages {:<8}  bytes {:<12}  confirmed {:<8}  lies {:<3}  credit {:<8}  last seen {}  {}\n",
        text("name"),
        text("trust"),
        number("urls"),
        number("bytes"),
        number("confirmed"),
        number("lies"),
        number("credit"),
        text("last"),
        text("team")
    );
    for bundle in one["out"].as_array().into_iter().flatten() {
        let host: String = bundle["host"].as_str().unwrap_or_default().chars().map(printable).collect();
        let seconds = bundle["left-ms"].as_u64().unwrap_or(0) / 1_000;
        told += &format!("  has {} of {host} for {seconds} s more\n", bundle["urls"]);
    }
    told
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let node = owned.contributors.node(&owned.archive)?;
    let decided = |key: &str, trusted: bool| {
        let no = |why| Failure::new(why).hint("`skep contributors` lists them");
        node.decide(key, trusted).map_err(no)
    };
    let which = match &job.action {
        Action::List => None,
        Action::Show { key } => Some(key.to_ascii_lowercase()),
        Action::Suspend { key } => Some(decided(key, false)?),
        Action::Trust { key } => Some(decided(key, true)?),
    };
    let report = node.report();
    let mut count = 0;
    for one in report["contributors"].as_array().into_iter().flatten() {
        let fits = |name: &str, which: &str| one[name].as_str().is_some_and(|text| text.starts_with(which));
        if which.as_deref().is_none_or(|which| fits("key", which) || fits("name", which)) {
            count += 1;
            let mut one = one.clone();
            if matches!(job.action, Action::Show { .. }) {
                one["out"] = node.out(one["key"].as_str().unwrap_or_default()).into();
            }
            tell.line(one)?;
        }
    }
    Ok(if count == 0 { Exit::No } else { Exit::Done })
}

/// The node that this process is to contributors, made when it is first needed.
#[derive(Default)]
pub struct Contributors(Mutex<Option<Arc<Node>>>);

impl Contributors {
    pub fn node(&self, archive: &Archive) -> Result<Arc<Node>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = &*made {
            return Ok(node.clone());
        }
        let folder = archive.layout().settings();
        let wrong = |why: String| Failure::new("contributors cannot be looked after").because(why);
        let identity = Identity::load(&folder)?.ok_or_else(|| wrong("the archive has no key yet".into()))?;
        let node = Node::start(&folder, identity, Arc::new(system_clock)).map_err(wrong)?;
        Ok(made.insert(node).clone())
    }
}

/// Who fetches besides this process. `only`: nobody but contributors.
pub fn others(owned: &Owned, only: bool) -> Result<hands::Others> {
    Ok(hands::Others { hands: owned.contributors.node(&owned.archive)?, only })
}
