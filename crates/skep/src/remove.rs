//! `skep remove`: takes records out of every answer, and their bytes out of the archive's own segments.

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::node::{Node, crawling};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_archive::Selector;
use skep_ring::Seal;
use skep_ring::instruction::What as Told;
use skep_ring::shell::membership;
use std::sync::Arc;

/// Remove a URL, everything below a prefix, or a payload
#[derive(Args)]
#[command(after_help = "\
What is removed is hidden at once. Then the archive's own segments are written anew: the records keep their headers and digests, but no
block, and the removal itself is kept with its reason. Files that were added from elsewhere are never changed: there it is only hidden.
At a node with the key of who made the network it is removed for all: each node writes its own segments anew, and, where a writer has left, was
retired, or has been absent for a week, whoever has copies of them.
Examples:
  skep remove https://example.org/private --reason 'asked by its owner, letter of 3 May'
  skep remove --prefix https://example.org/members/ --reason 'not public'
  skep remove --digest sha1:2WAXX5NUWNNCS2BDKCO5OVDQBJVNKIVV --reason 'unlawful'
Exit code 1 if there is nothing to remove, 3 if some bytes could not be removed yet.")]
pub struct Typed {
    /// Every record about this URL
    #[arg(required_unless_present_any = ["prefix", "digest"], conflicts_with_all = ["prefix", "digest"])]
    url: Option<String>,
    /// Every record about a URL that begins so; `*.example.org` for all its hosts
    #[arg(long, value_name = "P", conflicts_with = "digest")]
    prefix: Option<String>,
    /// Every record with this payload
    #[arg(long, value_name = "D")]
    digest: Option<String>,
    /// Why; kept for ever
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    what: What,
    reason: String,
}

#[derive(Serialize, Deserialize)]
enum What {
    Url(String),
    Prefix(String),
    Digest(String),
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let what = match (typed.url, typed.prefix, typed.digest) {
        (Some(url), ..) => What::Url(url),
        (_, Some(prefix), _) => What::Prefix(prefix),
        (.., digest) => What::Digest(digest.unwrap_or_default()),
    };
    if typed.reason.trim().is_empty() {
        return Err(Failure::new("a removal needs a reason").hint("--reason 'asked by its owner'"));
    }
    let job = Job { what, reason: typed.reason };
    let columns: &[show::Column] = &[
        ("removed", |v| format!("removed {} records", show::text(v, "removed"))),
        ("hidden", |v| format!("{} of them in files from elsewhere, only hidden", show::text(v, "only_hidden"))),
        ("record", |v| {
            format!(
                "removal {}",
                v["records"]
                    .as_array()
                    .map(|r| r.iter().filter_map(|p| p.as_str()).collect::<Vec<_>>().join(" "))
                    .unwrap_or_default()
            )
        }),
    ];
    let mut screen = Screen::new(place.json, columns);
    let exit = owner::perform(place, false, &job::Job::Remove(job), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say("nothing to remove");
    }
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let selector = match &job.what {
        What::Url(url) => Selector::Url(url.clone()),
        What::Prefix(prefix) => Selector::Prefix(prefix.clone()),
        What::Digest(text) => {
            let wrong = |_| {
                Failure::new(format!("{text:?} is not a digest"))
                    .hint("a digest looks like sha1:2WAXX5NUWNNCS2BDKCO5OVDQBJVNKIVV")
            };
            Selector::Digest(text.parse().map_err(wrong)?)
        }
    };
    if let Some(node) = owned.ring.get() {
        return everywhere(&node, &selector, &job.reason, tell);
    }
    let removed = match owned.archive.remove(&selector, &job.reason) {
        Err(skep_archive::Error::NotFound { .. }) => return Ok(Exit::No),
        other => other?,
    };
    for finding in &removed.undone {
        tell.talk(&format!("left undone: {finding}"));
    }
    let text = |positions: &[skep_archive::Position]| positions.iter().map(ToString::to_string).collect::<Vec<_>>();
    tell.line(json!({
        "removed": removed.positions.len(),
        "only_hidden": removed.only_hidden.len(),
        "positions": text(&removed.positions),
        "records": text(&removed.records),
        "undone": removed.undone.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))?;
    Ok(if removed.undone.is_empty() { Exit::Done } else { Exit::Undone })
}

/// In a network, by all who hold it, where the key is here that may say so for all; else by this node alone.
fn everywhere(node: &Arc<Node>, selector: &Selector, reason: &str, tell: &mut dyn Tell) -> Result<Exit> {
    let folder = crawling::folder(node);
    let wrong = |why: String| Failure::new("it could not be removed").because(why);
    let owner = membership::owner(&folder, || Err("there is no owner's key here".into())).map_err(wrong)?;
    let removed = if node.shell.genesis().admission.contains(&owner.key()) {
        let what = Told::Remove { selector: selector.to_string(), reason: reason.to_owned() };
        node.shell.instruct(what, &owner).map_err(wrong)?
    } else {
        tell.talk(
            "hidden at this node, and taken out of what it wrote; for all nodes only who made the network removes something",
        );
        node.shell.remove_here(selector, reason).map_err(wrong)?
    };
    if removed == 0 {
        return Ok(Exit::No);
    }
    tell.line(json!({ "removed": removed, "only_hidden": 0, "positions": [], "records": [], "undone": [] }))?;
    Ok(Exit::Done)
}
