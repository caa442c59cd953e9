//! `skep watch`: an archive of sites that stays up to date for ever.

pub mod import;
mod judged;

pub use judged::Judged;

use crate::crawl::{self, Asked, Live};
use crate::failure::{Failure, Result, say};
use crate::job::{self as jobs, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::{amount, serve, show, signals};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_changes::Retention;
use skep_crawl::{Question, Rate, Settings, Watch};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Watch sites: crawl them, look again at the right moment, serve what was kept and what changed
#[derive(Args)]
#[command(after_help = "\
It crawls the sites, serves the portal, prints its address, and goes on until Ctrl-C; the same command goes on after that, and `skep watch`
alone goes on with the only watch of the archive. When a page is looked at again follows from how often it was found changed, what it is
worth, and the budget; sitemaps and feeds are believed as far as they were right before. Every other flag is that of `skep crawl`.
Policies: harmonic (few changes missed), fresh (copies up to date), uniform, daily, anansi, hyperdog.
While it runs: the same command with another --budget, --every, --policy or --tag changes it at once; so does editing
settings/crawls/NAME.toml, where [site.\"example.org\"] weight-percent = 300 makes pages of a site worth more.
Examples:
  skep watch https://example.org/
  skep watch example.org/news/ --scope prefix --every 10m --tag news
  skep watch sites.txt --name press --budget 2/s --policy fresh
  skep watch https://example.org/ --budget 500/day --plan
  skep watch --import url-watches.json --name pages
  skep watch --network https://example.org/ --every 1d
Then: skep changes --follow, skep schedule URL, skep diff URL, and the portal's pages about changes.")]
pub struct Typed {
    #[command(flatten)]
    asked: Asked,
    /// Look at every page again after so long, as in 10m, 2h or 1d
    #[arg(long, value_name = "DURATION", conflicts_with = "budget")]
    every: Option<String>,
    /// So many visits in all, new pages included, as in 5/s or 100000/day (by default one a day for each page, shared out by the policy)
    #[arg(long, value_name = "N/s|N/day")]
    budget: Option<String>,
    /// By what the next look is chosen
    #[arg(long, value_name = "harmonic|fresh|uniform|daily|anansi|hyperdog", conflicts_with = "every")]
    policy: Option<String>,
    /// What the watch is filed under; may be repeated
    #[arg(long, value_name = "T")]
    tag: Vec<String>,
    /// Where the portal listens; port 0 takes a free one (by default 127.0.0.1:7070, or a free one where that is taken)
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Who may write to it and who may read, as `skep serve --auth` has it: needed to keep rules from the portal's page of watches
    #[arg(long, value_name = "FILE")]
    auth: Option<PathBuf>,
    /// Say what would be checked how often, how fresh copies would be, and how much traffic that is; do nothing
    #[arg(long)]
    plan: bool,
    /// Take over watches of changedetection.io (url-watches.json) or urlwatch (urls.yaml); says what cannot be, and begins nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "seeds", "config"])]
    import: Option<PathBuf>,
    /// Let the network of the node that runs for this archive watch: each of its nodes looks again at what it leads
    #[arg(long, conflicts_with_all = ["plan", "import", "listen", "auth"])]
    network: bool,
}

/// What flags say about a watch.
#[derive(Default, Serialize, Deserialize)]
pub struct Change {
    every: Option<String>,
    budget: Option<String>,
    policy: Option<String>,
    tags: Vec<String>,
}

impl Change {
    /// A watch as it is meant from now on; what nothing is said about stays.
    fn apply(&self, watch: &mut Watch) -> Result<()> {
        if let Some(every) = &self.every {
            (watch.every_ms, watch.budget) = (Some(amount::duration_ms(every)?), None);
        }
        if let Some(budget) = &self.budget {
            (watch.every_ms, watch.budget) = (None, Some(rate(budget)?));
        }
        if let Some(policy) = &self.policy {
            let read = policy.parse();
            watch.policy = read.map_err(|why: String| Failure::new(format!("--policy {policy}")).because(why))?;
            watch.every_ms = None;
        }
        if !self.tags.is_empty() {
            watch.tags.clone_from(&self.tags);
        }
        watch.check().map_err(|why| Failure::new("this cannot be watched").because(why).hint("`skep help watch`"))
    }
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    crawl: Box<crawl::Job>,
    portal: serve::Job,
    /// Another address will do where this one is taken.
    anywhere: bool,
}

impl Job {
    /// A watch whose portal listens there.
    pub fn new(crawl: crawl::Job, listen: Option<&str>) -> Result<Job> {
        let portal = serve::Job::at(listen.unwrap_or(serve::LISTEN))?;
        Ok(Job { crawl: Box::new(crawl), portal, anywhere: listen.is_none() })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.crawl.settings.name
    }
}

/// How often what the settings say about retention is applied.
const RETAIN: Duration = Duration::from_secs(3_600);

/// How often the stream of changes is brought up to date while nobody asks for it: what it learns of noise is used by the next visit.
const FOLLOW: Duration = Duration::from_secs(1);

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let change = Change { every: typed.every, budget: typed.budget, policy: typed.policy, tags: typed.tag };
    if let Some(file) = &typed.import {
        return import::run(file, typed.asked.name(), change, place);
    }
    let mut crawl = typed.asked.meant(place, Some(&only))?;
    let watch = crawl.settings.watch.get_or_insert_default();
    change.apply(watch)?;
    if typed.network {
        crawl.network = true;
        return owner::perform(place, true, &jobs::Job::Crawl(Box::new(crawl)), &mut Live::new(place.json));
    }
    let watch = watch.clone();
    let contributors = crawl.hands.contributors;
    let mut job = Job::new(crawl, typed.listen.as_deref())?;
    job.portal.contributors = contributors;
    if let Some(file) = &typed.auth {
        job.portal.admit(file)?;
    }
    if typed.plan {
        return plan(&job, &watch, place);
    }
    attend(job, place)
}

/// Watches until somebody ends it.
pub fn attend(job: Job, place: &Place) -> Result<Exit> {
    let mut live = Live::new(place.json);
    let name = job.name().to_owned();
    let _watch = {
        let (folder, voice, screen) = (place.archive.clone(), live.voice(), live.voice());
        signals::watch(
            move || {
                owner::stop_crawl(&folder, &name);
                voice.say("finishing what is in flight; Ctrl-C again ends at once");
            },
            move || screen.clear(),
        )?
    };
    let exit = owner::perform(place, true, &jobs::Job::Watch(Box::new(job)), &mut live)?;
    let ended = live.ended.take();
    drop(live);
    match ended {
        Some(ended) if !place.json && ended["ending"] == "stopped" => {
            say("stopped; the same command goes on, `skep changes` tells what changed");
            Ok(Exit::Done)
        }
        Some(ended) if ended["ending"] == "stopped" => Ok(Exit::Done),
        _ => Ok(exit),
    }
}

fn rate(text: &str) -> Result<Rate> {
    text.parse().map_err(|why: String| {
        Failure::new(format!("--budget {text} is no budget")).because(why).hint("--budget 5/s, --budget 100000/day")
    })
}

/// The only watch there is.
fn only(folder: &std::path::Path) -> Result<String> {
    let mut names: Vec<String> = Settings::all(folder)?
        .into_iter()
        .filter(|settings| settings.watch.is_some())
        .map(|settings| settings.name)
        .collect();
    match names.len() {
        1 => Ok(names.remove(0)),
        0 => Err(Failure::new("nothing says what to watch").hint("`skep watch https://example.org/`")),
        _ => Err(Failure::new("this archive has several watches")
            .because(names.join(", "))
            .hint(format!("`skep watch --name {}` goes on with one of them", names[0]))),
    }
}

/// Says what watching would come to.
fn plan(job: &Job, watch: &Watch, place: &Place) -> Result<Exit> {
    let question = Question::Plan { name: job.name().to_owned(), watch: watch.clone() };
    let known = Settings::load(&place.archive.join("settings"), job.name())?.is_some();
    let mut told = show::Collected::default();
    if known {
        owner::perform(place, false, &jobs::Job::Ask(question), &mut told)?;
    }
    let foreseen = told.0.first().filter(|plan| plan["pages"].as_u64().unwrap_or(0) > 0);
    let foreseen = foreseen.cloned().unwrap_or_else(|| {
        say(&format!("nothing of {} is known yet: this is what its budget says, and what pages are like", job.name()));
        say("hint: `skep crawl` with the same seeds brings a first copy; then ask again");
        skep_crawl::foreseen_of_unknown(watch)
    });
    show::objects(std::slice::from_ref(&foreseen), place.json, planned)?;
    Ok(Exit::Done)
}

fn planned(plan: &Value) -> String {
    let number = |name: &str| plan[name].as_f64();
    let pages = plan["pages"].as_u64().filter(|pages| *pages > 0).map_or("?".to_owned(), |pages| pages.to_string());
    let mut out = format!("{pages} pages, {}, {}\n", show::text(plan, "budget"), show::text(plan, "policy"));
    if let Some(visits) = number("visits_per_day") {
        out += &format!("  visits     {visits:.1} a day in all\n");
    }
    if let Some(visits) = number("visits_per_page_and_day") {
        out += &format!("  visits     {visits:.3} a day for each page\n");
    }
    if let Some(bytes) = number("bytes_per_day") {
        out += &format!("  traffic    {} a day, by what looks brought so far\n", show::bytes(bytes as u64));
    }
    if let Some(fresh) = number("fresh") {
        out += &format!("  fresh      {:.1} % of copies at any moment, as far as is known\n", fresh * 100.0);
    }
    for class in plan["classes"].as_array().into_iter().flatten() {
        let pages = class["pages"].as_f64().unwrap_or(0.0);
        if pages > 0.0 {
            out += &format!("  {pages:<10} {}\n", show::text(class, "often"));
        }
    }
    out
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let instead = "`skep watch --network …` lets all of its nodes look again and again";
    crawl::not_at_a_node(owned).map_err(|failure| failure.hint(instead))?;
    if owned.crawls.running().as_deref() == Some(job.name()) {
        return change(owned, job, tell);
    }
    // What makes no sense is told now, not when it should be applied.
    Retention::of(&owned.archive)?;
    let portal = serve::Begun::begin(owned, &job.portal, job.anywhere)?;
    tell.line(portal.told.clone())?;
    let watched = following(owned, || crawl::watch(owned, &job.crawl, tell));
    portal.end();
    watched
}

/// Watches, and keeps the stream of changes near the records meanwhile.
pub fn following<T>(owned: &Owned, watch: impl FnOnce() -> T) -> T {
    let followed = Ending::default();
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| follow(owned, &followed));
        let watched = watch();
        followed.end();
        let _nothing_to_report = follower.join();
        watched
    })
}

/// It runs already: it goes on as it is meant now.
fn change(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let folder = owned.archive.layout().settings();
    let stored = Settings::load(&folder, job.name())?.unwrap_or_default();
    let meant = &job.crawl.settings;
    Settings { number: stored.number, pass: stored.pass.clone(), ..meant.clone() }.store(&folder)?;
    owned.ask(&Question::Reread)?;
    let watch = meant.watch.clone().unwrap_or_default();
    tell.line(json!({ "event": "changed", "name": job.name(), "watch": watch }))?;
    tell.talk(&format!("the watch {} runs already; what was asked for holds from now on", job.name()));
    Ok(Exit::Done)
}

/// Keeps the stream of changes near the records, and of each page the versions that are to be kept; not at a node, where copies of these
/// are with others.
fn follow(owned: &Owned, ending: &Ending) {
    let mut retained: Option<Instant> = None;
    let (mut judging, mut keeping) = (Said::default(), Said::default());
    while !ending.within(FOLLOW) {
        let followed = owned.changes.follow(&owned.archive, skep_archive::system_clock(), &mut |_| ());
        let wrong = followed.as_ref().err().map(|error| format!("no change is told until this is mended: {error}"));
        judging.news(wrong).iter().for_each(|text| say(text));
        let retains = owned.ring.get().is_none();
        if retains && followed.is_ok() && retained.is_none_or(|at| at.elapsed() >= RETAIN) {
            retained = Some(Instant::now());
            let wrong = retain(owned).err();
            let wrong = wrong.map(|failure| format!("all versions are kept until this is mended: {}", failure.what));
            keeping.news(wrong).iter().for_each(|text| say(text));
        }
    }
}

/// What is wrong, said when it begins and not again while it lasts.
#[derive(Default)]
struct Said(Option<String>);

impl Said {
    /// What is to be said.
    fn news(&mut self, wrong: Option<String>) -> Option<String> {
        let before = std::mem::replace(&mut self.0, wrong);
        self.0.clone().filter(|wrong| before.as_ref() != Some(wrong))
    }
}

fn retain(owned: &Owned) -> Result<()> {
    if let Some(retention) = Retention::of(&owned.archive)? {
        owned.changes.retain(&owned.archive, &retention, skep_archive::system_clock(), false)?;
    }
    Ok(())
}

#[derive(Default)]
struct Ending {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Ending {
    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn within(&self, wait: Duration) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        *self.changed.wait_timeout_while(over, wait, |over| !*over).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::Said;

    #[test]
    fn what_is_wrong_is_said_once_while_it_lasts() {
        let mut said = Said::default();
        let told = [None, Some("a"), Some("a"), Some("b"), None, None, Some("b")];
        let heard: Vec<Option<String>> = told.map(|wrong| said.news(wrong.map(str::to_owned))).into();
        assert_eq!(
            heard.iter().map(Option::as_deref).collect::<Vec<_>>(),
            [None, Some("a"), None, Some("b"), None, None, Some("b")]
        );
    }
}
