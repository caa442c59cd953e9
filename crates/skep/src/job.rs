//! What a command asks of an archive, so that it can be done by this process or by the one that owns the archive already.

use crate::node::originals::Originals;
use crate::owner::Owned;
use crate::{
    add, captures, changes, check, contributors, crawl, diff, export, failure, get, queue, remove, report, retain,
    ring, search, serve, sink, stats, watch, why,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_crawl::Question;

/// One request, with nothing left to interpret: no relative path, no default.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "job")]
pub enum Job {
    Add(add::Job),
    /// A question about crawls, answered as it is.
    Ask(Question),
    Captures(captures::Job),
    Changes(changes::Job),
    Check(check::Job),
    Contributors(contributors::Job),
    Crawl(Box<crawl::Job>),
    /// The node of this archive is to hear nobody and to be heard by nobody, or to be among the others again: for demonstrations.
    CutOff {
        off: bool,
    },
    Diff(diff::Job),
    Export(Box<export::Job>),
    Get(get::Job),
    Import(Box<watch::import::Job>),
    Queue(queue::Job),
    Remove(remove::Job),
    Report(report::Job),
    Retain(retain::Job),
    Ring(ring::Job),
    Search(search::Job),
    Serve(Box<serve::Job>),
    Sink(Box<sink::Job>),
    Stats(stats::Job),
    /// The crawl of this name is to finish what is in flight and to end.
    Stop {
        name: String,
    },
    /// The portal of this name is to end when its answers are out.
    StopServing {
        name: String,
    },
    Watch(Box<watch::Job>),
    Why(why::Job),
}

impl Job {
    /// Whether it changes the archive, or writes a file that is to become whole: its process does not leave before it is done.
    pub fn writes(&self) -> bool {
        match self {
            Job::Add(_) | Job::Crawl(_) | Job::Export(_) | Job::Import(_) | Job::Remove(_) | Job::Retain(_) => true,
            Job::Serve(_) | Job::Watch(_) => true,
            Job::Queue(job) => job.writes(),
            Job::Sink(job) => job.writes(),
            _ => false,
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Done = 0,
    /// The answer is no: nothing found, or something found that should not be there.
    No = 1,
    Failed = 2,
    /// Done, but something was left undone.
    Undone = 3,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

/// Where a job's answer goes.
pub trait Tell {
    /// One object of the answer.
    fn line(&mut self, value: Value) -> failure::Result<()>;
    /// Bytes of the answer, as they are.
    fn bytes(&mut self, bytes: &[u8]) -> failure::Result<()>;
    /// A remark for a person.
    fn talk(&mut self, text: &str);
    /// So many of so many bytes are done.
    fn progress(&mut self, done: u64, of: u64);
}

/// Does a job with an open archive.
pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> failure::Result<Exit> {
    let archive = &*owned.archive;
    match job {
        Job::Add(job) => add::perform(owned, job, tell),
        Job::Ask(question) => {
            let told = owned.ask(question)?;
            let exit = if told.is_empty() { Exit::No } else { Exit::Done };
            told.into_iter().try_for_each(|line| tell.line(line))?;
            Ok(exit)
        }
        Job::Captures(job) => captures::perform(archive, job, tell),
        Job::Changes(job) => changes::perform(owned, job, tell),
        Job::Check(job) => check::perform(archive, job, tell),
        Job::Contributors(job) => contributors::perform(owned, job, tell),
        Job::Crawl(job) => crawl::perform(owned, job, tell),
        Job::CutOff { off } => {
            owned.ring.node()?.cut.cut(*off);
            Ok(Exit::Done)
        }
        Job::Diff(job) => diff::perform(archive, job, tell),
        Job::Export(job) => export::perform(archive, &Originals::of(owned.ring.get()), job, tell),
        Job::Get(job) => get::perform(archive, &Originals::of(owned.ring.get()), job, tell),
        Job::Import(job) => watch::import::perform(owned, job, tell),
        Job::Queue(job) => queue::perform(owned, job, tell),
        Job::Remove(job) => remove::perform(owned, job, tell),
        Job::Report(job) => report::perform(owned, job, tell),
        Job::Retain(job) => retain::perform(owned, job, tell),
        Job::Ring(job) => ring::perform(owned, job, tell),
        Job::Search(job) => search::perform(owned, job, tell),
        Job::Serve(job) => serve::perform(owned, job, tell),
        Job::Sink(job) => sink::perform(owned, job, tell),
        Job::Stats(job) => stats::perform(archive, job, tell),
        Job::Stop { name } => Ok(if owned.crawls.stop(name) { Exit::Done } else { Exit::No }),
        Job::StopServing { name } => Ok(if owned.portals.stop(name) { Exit::Done } else { Exit::No }),
        Job::Watch(job) => watch::perform(owned, job, tell),
        Job::Why(job) => why::perform(owned, job, tell),
    }
}
