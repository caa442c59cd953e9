//! The crawl that the network runs, at this node: begun when it is wanted, ended when it is not.

use super::told::Crawl;
use super::{Consent, Node, near};
use crate::crawl::{Fetch, Hands, Job};
use crate::failure::{Failure, Result, say};
use crate::job::{Exit, Tell};
use crate::owner::Owned;
use crate::watch::Judged;
use serde_json::json;
use skep_crawl::{Event, Question, Run};
use skep_ring::instruction::{SignedInstruction, What};
use skep_ring::shell::membership;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A crawl that is to end is told so this often, until it has ended.
const STOP_AGAIN: Duration = Duration::from_millis(50);
/// A crawl that could not go on is begun again after so long.
const AGAIN: Duration = Duration::from_secs(5);

/// Runs what the network crawls, until the process is to end or the node has left.
pub fn supervise(owned: &Owned, node: &Arc<Node>, fetch: &Fetch, hands: Hands) {
    let glue = &node.glue;
    let mut current: Option<Crawl> = None;
    while let Some(wanted) = glue.wait(current.as_ref()) {
        if wanted == current {
            continue;
        }
        current.clone_from(&wanted);
        let Some(crawl) = wanted else {
            node.shell.want(false);
            continue;
        };
        std::thread::scope(|scope| {
            let begun = scope.spawn(|| run(owned, node, &crawl, fetch, hands));
            node.shell.want(true);
            let mut goes_on = true;
            let mut followed = crawl.clone();
            while !begun.is_finished() {
                if goes_on {
                    match glue.wait(Some(&followed)) {
                        // What was visited once is watched from now on, or no more: that is another run.
                        Some(Some(wanted)) if wanted == followed => {}
                        Some(Some(wanted))
                            if wanted.name == followed.name && is_watch(&wanted) == is_watch(&followed) =>
                        {
                            change(owned, node, &wanted);
                            followed = wanted;
                        }
                        _ => goes_on = false,
                    }
                } else {
                    // It may be just beginning, and is told again.
                    owned.crawls.stop(&crawl.name);
                    std::thread::sleep(STOP_AGAIN);
                }
            }
            current = Some(followed);
            match begun.join() {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    failure.print();
                    // Perhaps it was a passing fault; what the network wants is still wanted.
                    current = None;
                    std::thread::sleep(AGAIN);
                }
                Err(_) => say("the crawl of the network ended by a fault of this program"),
            }
        });
        // However it ended: others need not wait for this node where a site is split. A turn that it still has runs out.
        for (site, _) in node.shell.splits().iter() {
            node.shell.pace(site, false, false, None);
        }
        node.shell.want(false);
    }
}

/// Whether it goes on when everything was visited: pages are looked at again.
fn is_watch(crawl: &Crawl) -> bool {
    crawl.settings(&Consent::default()).is_ok_and(|settings| settings.watch.is_some())
}

/// More seeds, another pace: the crawl that runs reads them, and goes on.
fn change(owned: &Owned, node: &Node, crawl: &Crawl) {
    let folder = owned.archive.layout().settings();
    let changed = || -> Result<()> {
        let wrong = |error| Failure::new("its settings make no sense").because(error);
        let mut settings = crawl.settings(&node.consent).map_err(wrong)?;
        // What stands there now is what it goes by.
        owned.ask(&Question::Reread)?;
        if let Some(known) = skep_crawl::Settings::load(&folder, &crawl.name)? {
            (settings.number, settings.pass) = (known.number, known.pass);
        }
        settings.store(&folder)?;
        owned.ask(&Question::Reread).map(drop)
    };
    if let Err(failure) = changed() {
        say(&format!("note: the crawl {} could not be changed: {}", crawl.name, failure.what));
    }
}

fn run(owned: &Owned, node: &Node, crawl: &Crawl, fetch: &Fetch, hands: Hands) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the network's crawl {} cannot be set up", crawl.name)).because(error)
    };
    let mut settings = crawl.settings(&node.consent).map_err(|error| wrong(&error))?;
    let folder = owned.archive.layout().settings();
    if let Some(known) = skep_crawl::Settings::load(&folder, &crawl.name)? {
        (settings.number, settings.pass) = (known.number, known.pass);
    }
    let watch = settings.watch.is_some();
    let job = Job { settings, fetch: fetch.clone(), each: false, text: false, hands, network: true };
    let judges = Some(Arc::new(Judged::new(owned.archive.clone())) as Arc<dyn skep_crawl::Judges>);
    // What this node leads it hands out; what comes back is kept here, where the slice is led.
    let contributors = hands.contributors.then(|| crate::contributors::others(owned, hands.only)).transpose()?;
    let mut run = Run { judges, watch, share: Some(node.glue.share()), ..job.run()? };
    run.fetch.own_addresses = owned.listening.clone();
    run.others = near::others(node, &run, contributors);
    let running = owned.crawls.begin(&crawl.name)?;
    crate::crawl::raise_open_files();
    node.glue.begins(&crawl.name, &running.control);
    let crawl = || {
        skep_crawl::run(&owned.archive, run, &running.control, &mut |event| match event {
            Event::Began { .. } => node.glue.began(),
            Event::Progress(progress) => node.glue.tell_progress(json!(progress)),
            Event::Note { text } => say(&format!("note: {text}")),
            _ => {}
        })
    };
    let ended = if watch { crate::watch::following(owned, crawl) } else { crawl() };
    node.glue.ended();
    node.glue.follows(None);
    drop(running);
    ended?;
    Ok(())
}

/// `skep crawl --network`: the seeds go to everybody.
pub fn network_crawl(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let node = owned.ring.node()?;
    if job.hands.contributors || !job.fetch.headers.is_empty() || !job.fetch.cookies.is_empty() {
        return Err(Failure::new("a crawl of the network has no cookies, headers or contributors")
            .because("what is fetched with secrets stays where it was fetched, and is copied to nobody")
            .hint("each node hands out what it leads if it is started so: `skep node --contributors`"));
    }
    if job.settings.watch.as_ref().is_some_and(|watch| watch.budget.is_some()) {
        return Err(Failure::new("a watch of the network has no budget over all pages")
            .because("each node plans visits to what it leads, and nobody counts those of all nodes")
            .hint(
                "--every 1d looks at each page once a day; without it they share out one visit a day for each page",
            ));
    }
    if job.settings.pages.is_some() || job.settings.bytes.is_some() {
        return Err(Failure::new("a crawl of the network has no --pages and no --bytes")
            .because("each node counts what it fetches itself, and would spend all of them: nobody counts for all nodes")
            .hint(
                "[site.\"example.org\"] with pages or bytes, in a file for --config, is counted by whoever leads that site; --depth bounds all of it, \
                 `skep ring stop NAME` ends it",
            ));
    }
    if let Some(other) = node.glue.wanted().filter(|other| other.name != job.settings.name) {
        return Err(Failure::new(format!("the network crawls {} already", other.name)).hint(format!(
            "`skep ring stop {}` ends it; more seeds for it: `skep crawl --network --name {} URL`",
            other.name, other.name
        )));
    }
    let mut settings = job.settings.clone();
    (settings.number, settings.pass) = (0, skep_crawl::Pass::default());
    if !settings.own.is_empty() || settings.allow_private || !settings.private_host.is_empty() {
        tell.talk("--own, --allow-private, --private-host: only at nodes that were started with them (`skep node --own HOST`)");
    }
    (settings.own, settings.private_host) = (Vec::new(), Vec::new());
    (settings.allow_private, settings.ignore_robots) = (false, false);
    let text = toml::to_string(&settings)
        .map_err(|error| Failure::new("the crawl's settings cannot be written").because(error))?;
    instruct(owned.archive.layout().settings(), &node, What::Crawl { name: settings.name.clone(), settings: text })?;
    tell.line(json!({ "event": "given", "crawl": settings.name, "nodes": node.shell.others().len() + 1 }))?;
    tell.talk(&format!(
        "{} goes to {} nodes; how it stands: `skep ring`",
        settings.name,
        node.shell.others().len() + 1
    ));
    Ok(Exit::Done)
}

/// More seeds for what the network crawls.
pub fn seed(node: &Arc<Node>, urls: Vec<String>) -> Result<serde_json::Value> {
    let Some(crawl) = node.glue.wanted() else {
        return Err(
            Failure::new("the network crawls nothing just now").hint("`skep crawl --network URL` gives it something")
        );
    };
    let wrong = |error| Failure::new("the crawl's settings make no sense").because(error);
    let known = crawl.settings(&node.consent).map_err(wrong)?.seeds;
    let new: Vec<String> = urls.into_iter().filter(|url| !known.contains(url)).collect();
    let told = json!({ "crawl": crawl.name, "new": new.len() });
    if new.is_empty() {
        return Ok(told);
    }
    // What was given here before is said again with it: each node has one list.
    instruct_after(node, |before| {
        let mut seeds = Vec::new();
        for signed in before {
            match &signed.instruction.what {
                What::Seeds { name, seeds: before } if *name == crawl.name => seeds.extend(before.iter().cloned()),
                _ => {}
            }
        }
        seeds.extend(new);
        Ok(What::Seeds { name: crawl.name, seeds })
    })?;
    Ok(told)
}

/// The network no longer crawls this.
pub fn stop(node: &Arc<Node>, name: &str) -> Result<Exit> {
    let Some(crawl) = node.glue.known(name).filter(|crawl| crawl.runs) else { return Ok(Exit::No) };
    instruct(folder(node), node, What::Stop { name: crawl.name })?;
    Ok(Exit::Done)
}

/// The settings of the archive of a node.
pub fn folder(node: &Node) -> PathBuf {
    node.shell.archive().layout().settings()
}

/// Tells all nodes, under the name of this node's owner. Says how many records that hid.
pub fn instruct(settings: PathBuf, node: &Arc<Node>, what: What) -> Result<u64> {
    let wrong = |why: String| Failure::new("the network cannot be told from here").because(why);
    let owner = membership::owner(&settings, || Err("there is no owner's key here".into())).map_err(wrong)?;
    node.shell.instruct(what, &owner).map_err(wrong)
}

/// The same for what is said again with more to it: see [`skep_ring::shell::Shell::instruct_after`].
pub fn instruct_after(
    node: &Arc<Node>,
    what: impl FnOnce(&[Arc<SignedInstruction>]) -> std::result::Result<What, String>,
) -> Result<u64> {
    let wrong = |why: String| Failure::new("the network cannot be told from here").because(why);
    let owner = membership::owner(&folder(node), || Err("there is no owner's key here".into())).map_err(wrong)?;
    node.shell.instruct_after(what, &owner).map_err(wrong)
}

/// All crawls, for whoever asks how the network stands.
pub fn crawls(node: &Node) -> Vec<Crawl> {
    node.glue.crawls()
}
