//! What a command asks of an archive, so that it can be done by this process or by the one that owns the archive already.

use crate::{add, captures, check, failure, get, remove, stats};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_archive::Archive;

/// One request, with nothing left to interpret: no relative path, no default.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "job")]
pub enum Job {
    Add(add::Job),
    Captures(captures::Job),
    Check(check::Job),
    Get(get::Job),
    Remove(remove::Job),
    Stats(stats::Job),
}

impl Job {
    /// Whether it changes the archive.
    pub fn writes(&self) -> bool {
        matches!(self, Job::Add(_) | Job::Remove(_))
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
pub fn perform(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> failure::Result<Exit> {
    match job {
        Job::Add(job) => add::perform(archive, job, tell),
        Job::Captures(job) => captures::perform(archive, job, tell),
        Job::Check(job) => check::perform(archive, job, tell),
        Job::Get(job) => get::perform(archive, job, tell),
        Job::Remove(job) => remove::perform(archive, job, tell),
        Job::Stats(job) => stats::perform(archive, job, tell),
    }
}
