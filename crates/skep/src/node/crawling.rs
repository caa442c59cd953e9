//! The crawl that the network runs, at this node: begun when it is wanted, ended when it is not.

use super::Node;
use crate::crawl::{Fetch, Hands, Job};
use crate::failure::{Failure, Result, say};
use crate::job::{Exit, Tell};
use crate::owner::Owned;
use crate::watch::Judged;
use serde_json::json;
use skep_archive::system_clock;
use skep_crawl::{Event, Run};
use skep_ring::shell::{Crawl, Work};
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
            while !begun.is_finished() {
                if goes_on {
                    goes_on = glue.wait(Some(&crawl)) == Some(Some(crawl.clone()));
                } else {
                    // It may be just beginning, and is told again.
                    owned.crawls.stop(&crawl.name);
                    std::thread::sleep(STOP_AGAIN);
                }
            }
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
        node.shell.want(false);
    }
}

fn run(owned: &Owned, node: &Node, crawl: &Crawl, fetch: &Fetch, hands: Hands) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the network's crawl {} cannot be set up", crawl.name)).because(error)
    };
    let mut settings: skep_crawl::Settings = toml::from_str(&crawl.settings).map_err(|error| wrong(&error))?;
    let folder = owned.archive.layout().settings();
    if let Some(known) = skep_crawl::Settings::load(&folder, &crawl.name)? {
        (settings.number, settings.pass) = (known.number, known.pass);
    }
    let job = Job { settings, fetch: fetch.clone(), each: false, text: false, hands, network: true };
    let judges = Some(Arc::new(Judged(owned.archive.clone())) as Arc<dyn skep_crawl::Judges>);
    // What this node leads it hands out; what comes back is kept here, where the slice is led.
    let others = hands.contributors.then(|| crate::contributors::others(owned, hands.only)).transpose()?;
    let mut run = Run { judges, others, share: Some(node.glue.share()), ..job.run()? };
    run.fetch.own_addresses = owned.listening.clone();
    let running = owned.crawls.begin(&crawl.name)?;
    crate::crawl::raise_open_files();
    node.glue.begins(&crawl.name, &running.control);
    let ended = skep_crawl::run(&owned.archive, run, &running.control, &mut |event| match event {
        Event::Began { .. } => node.glue.began(),
        Event::Progress(progress) => node.glue.tell_progress(json!(progress)),
        Event::Note { text } => say(&format!("note: {text}")),
        _ => {}
    });
    node.glue.ended();
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
    if let Some(other) = node.glue.wanted().filter(|other| other.name != job.settings.name) {
        return Err(Failure::new(format!("the network crawls {} already", other.name)).hint(format!(
            "`skep ring stop {}` ends it; more seeds for it: `skep crawl --network --name {} URL`",
            other.name, other.name
        )));
    }
    let mut settings = job.settings.clone();
    (settings.number, settings.pass) = (0, skep_crawl::Pass::default());
    let text = toml::to_string(&settings)
        .map_err(|error| Failure::new("the crawl's settings cannot be written").because(error))?;
    let version = node.glue.known(&settings.name).map_or(0, |known| known.version + 1).max(system_clock() as u64);
    let crawl = Crawl { name: settings.name.clone(), version, runs: true, settings: text };
    spread(&node, crawl)?;
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
    let Some(mut crawl) = node.glue.wanted() else {
        return Err(
            Failure::new("the network crawls nothing just now").hint("`skep crawl --network URL` gives it something")
        );
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::new("the crawl's settings make no sense").because(error);
    let mut settings: skep_crawl::Settings = toml::from_str(&crawl.settings).map_err(|error| wrong(&error))?;
    let new: Vec<String> = urls.into_iter().filter(|url| !settings.seeds.contains(url)).collect();
    let told = json!({ "crawl": crawl.name, "new": new.len() });
    if new.is_empty() {
        return Ok(told);
    }
    settings.seeds.extend(new);
    crawl.settings = toml::to_string(&settings).map_err(|error| wrong(&error))?;
    crawl.version = (crawl.version + 1).max(system_clock() as u64);
    spread(node, crawl)?;
    Ok(told)
}

/// The network no longer crawls this.
pub fn stop(node: &Arc<Node>, name: &str) -> Result<Exit> {
    let Some(mut crawl) = node.glue.known(name).filter(|crawl| crawl.runs) else { return Ok(Exit::No) };
    crawl.version = (crawl.version + 1).max(system_clock() as u64);
    crawl.runs = false;
    spread(node, crawl)?;
    Ok(Exit::Done)
}

pub fn spread(node: &Arc<Node>, crawl: Crawl) -> Result<()> {
    node.glue.take(crawl.clone())?;
    node.shell.spread_crawl(&crawl);
    Ok(())
}

/// All crawls, for whoever asks how the network stands.
pub fn crawls(node: &Node) -> Vec<Crawl> {
    node.glue.crawls()
}
