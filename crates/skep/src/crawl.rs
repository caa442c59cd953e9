//! `skep crawl`: archives a site, or a thousand.

mod asked;
mod drawn;
mod job;
mod live;
mod wishes;

pub use asked::Asked;
pub use job::{Fetch, Hands, Job, user_agent};
pub use live::{Live, Voice};
pub use wishes::Wishes;

use crate::failure::{Failure, Result, say};
use crate::job::{self as jobs, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::watch::Judged;
use crate::{report, search, signals, sink};
use clap::Args;
use serde_json::{Value, json};
use skep_crawl::{Ending, Event, Question, Run};
use std::sync::Arc;

/// Crawl sites into the archive: politely, byte for byte, and again from where it stopped
#[derive(Args)]
#[command(after_help = "\
A crawl is known by its seeds, or by --name. The same command again goes on where it stopped; when it had finished, it looks again at
everything it knows, and keeps what changed. Flags that are given change the crawl for good; those that are not stay as they were
(`none` lifts a bound: --pages none). They are kept in settings/crawls/NAME.toml in the archive, which may be edited while it runs.
Not kept, so to be typed each time: --resolve, --dns, --proxy, --ca, --cookies, --header, --workers.
--config FILE has the same names without the dashes, and sections for sites:
  seeds = [\"https://example.org/\", \"more-seeds.txt\"]
  scope = \"site\"
  bytes = \"10GB\"
  [site.\"slow.example.org\"]
  pace = 5000
Ctrl-C finishes what is in flight; a second one ends at once, and loses nothing that was kept.
Examples:
  skep crawl https://example.org/
  skep crawl example.org/docs/ --scope prefix --depth 3
  skep crawl seeds.txt --name elections --time 2h --contact archive@example.org
  skep crawl http://localhost:8080/ --own localhost --pace none --allow-private
While it runs, and after: skep queue, skep why URL, skep report.
Exit code 0 if it finished, 3 if it was stopped, a budget is spent or sites asked to be left alone for long, 1 if nothing could be fetched at all.")]
pub struct Typed {
    #[command(flatten)]
    asked: Asked,
    /// Give the seeds to the network of the node that runs for this archive: all of its nodes crawl them together
    #[arg(long)]
    network: bool,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut job = typed.asked.meant(place, None)?;
    job.network = typed.network;
    let name = job.settings.name.clone();
    let mut live = Live::new(place.json);
    let _watch = {
        let (folder, name, voice) = (place.archive.clone(), name.clone(), live.voice());
        let screen = live.voice();
        signals::watch(
            move || {
                owner::stop_crawl(&folder, &name);
                voice.say("finishing what is in flight; Ctrl-C again ends at once");
            },
            move || screen.clear(),
        )?
    };
    let exit = owner::perform(place, true, &jobs::Job::Crawl(Box::new(job)), &mut live)?;
    let ended = live.ended.take();
    drop(live);
    if let Some(ended) = ended.filter(|_| !place.json) {
        conclude(&ended, &name)?;
    }
    Ok(exit)
}

/// The report, and what to type next.
fn conclude(ended: &Value, name: &str) -> Result<()> {
    use std::io::Write;
    write!(std::io::stdout(), "{}", report::table(&ended["report"])).map_err(crate::failure::output)?;
    match ended["ending"].as_str().unwrap_or_default() {
        "stopped" => say("stopped; the same command goes on"),
        "budget" => {
            let budget = ended["budget"].as_str().unwrap_or("budget");
            say(&format!(
                "stopped: as many {budget} as were asked for; the same command with a larger --{budget} goes on"
            ));
        }
        "parked" => {
            let until = ended["until"].as_str().unwrap_or("later");
            say(&format!(
                "stopped: what is left are sites that asked to be left alone, the first until {until}; the same command goes on then"
            ));
        }
        "offline" => {
            let since = ended["since"].as_str().unwrap_or("long ago");
            say(&format!("stopped: the network has been down since {since}; the same command goes on"));
        }
        _ => {}
    }
    report::hints(&ended["report"]).iter().for_each(|hint| say(&format!("hint: {hint}")));
    let broken = ended["report"]["broken"].as_u64().unwrap_or(0);
    let broken = if broken > 0 { format!("`skep report {name} --broken`, ") } else { String::new() };
    say(&format!("next: {broken}`skep why URL`, `skep get URL`, `skep captures HOST --match host`"));
    Ok(())
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    if job.network {
        return crate::node::network_crawl(owned, job, tell);
    }
    not_at_a_node(owned)?;
    work(owned, job, false, tell)
}

/// At a node, sites are visited by whoever leads their slices.
pub fn not_at_a_node(owned: &Owned) -> Result<()> {
    match owned.ring.get() {
        None => Ok(()),
        Some(_) => Err(Failure::new("this archive is that of a node: its network crawls")
            .hint("`skep crawl --network …` gives it seeds")),
    }
}

/// The same, for ever.
pub fn watch(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    work(owned, job, true, tell)
}

fn work(owned: &Owned, job: &Job, watch: bool, tell: &mut dyn Tell) -> Result<Exit> {
    let name = &job.settings.name;
    let mut run = Run { watch, judges: Some(Arc::new(Judged::new(owned.archive.clone()))), ..job.run()? };
    run.fetch.own_addresses = owned.listening.clone();
    if job.hands.contributors {
        run.others = Some(crate::contributors::others(owned, job.hands.only)?);
        if !owned.contributors.node(&owned.archive)?.is_open() {
            tell.talk("no contributor can reach this archive yet: `skep serve --contributors` lets them");
        }
    }
    if job.text {
        owned.text.keep()?;
    }
    let running = owned.crawls.begin(name)?;
    raise_open_files();
    let sinks = owned.sinks.begin()?;
    sink::tell_left_out(&sinks, &mut |text| tell.talk(text));
    let mut failed = None;
    let mut good: u64 = 0;
    let ending = skep_crawl::run(&owned.archive, run, &running.control, &mut |event| {
        if let Event::Visited { outcome, url, .. } = &event {
            // That a host says what may be fetched is not yet something fetched.
            good += u64::from(is_good(outcome) && !url.ends_with("/robots.txt"));
            if !job.each {
                return;
            }
        }
        let told = if failed.is_none() { tell.line(json!(event)) } else { Ok(()) };
        if let Err(failure) = told {
            // Nobody is there to hear of it any more, or to end it: it belongs to whoever typed it.
            running.control.stop();
            failed = Some(failure);
        }
    })?;
    drop(running);
    if let Some(failure) = failed {
        return Err(failure);
    }
    let report = owned
        .ask(&Question::Report { name: Some(name.clone()), broken: false })?
        .into_iter()
        .next()
        .unwrap_or_default();
    good += report["status"].as_object().into_iter().flatten().filter(|(status, _)| is_good(status)).count() as u64;
    let mut ended = json!({ "event": "ended", "ending": "finished", "report": report });
    let exit = match ending {
        Ending::Finished if good == 0 => Exit::No,
        Ending::Finished => Exit::Done,
        Ending::Stopped => {
            ended["ending"] = json!("stopped");
            Exit::Undone
        }
        Ending::Budget(which) => {
            ended["ending"] = json!("budget");
            ended["budget"] = json!(which);
            Exit::Undone
        }
        Ending::Offline(since_ms) => {
            ended["ending"] = json!("offline");
            ended["since"] = json!(skep_warc::date::rfc3339(since_ms));
            Exit::Undone
        }
        Ending::Parked(until_ms) => {
            ended["ending"] = json!("parked");
            ended["until"] = json!(skep_warc::date::rfc3339(until_ms));
            Exit::Undone
        }
    };
    search::read_texts(owned, tell)?;
    drop(sinks);
    tell.line(ended)?;
    Ok(exit)
}

/// An answer that brought something, if not all of it, or says that nothing changed, or leads on.
fn is_good(outcome: &str) -> bool {
    outcome == "cut-off" || outcome.len() == 3 && (outcome.starts_with('2') || outcome.starts_with('3'))
}

/// Connections are files: this process may have as many as the system lets it have.
pub fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it is not allowed, it stays as it is; `skep doctor` tells.
    let _best_effort = setrlimit(Resource::Nofile, most);
}
