//! `skep queue`: what waits, host by host; and how a host is treated.

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Column, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use skep_crawl::settings::Speed;
use skep_crawl::{Change, Question};

/// List hosts with waiting URLs, and change their pace
#[derive(Args)]
#[command(after_help = "\
A crawl that runs answers itself, and changes take effect at once; otherwise they are kept for the next run.
  --set pace=2000     at least 2,000 ms between two requests; polite for the rule; none on hosts given with --own
  --set pause         nothing more is asked of the host until --set resume
  --set drop          its waiting URLs are given up
Examples:
  skep queue
  skep queue example.org --set pace=5000
Exit code 1 if nothing waits.")]
pub struct Typed {
    /// Only this host; name or name:port
    host: Option<String>,
    /// Change how the host is treated
    #[arg(long, value_name = "pace=P|pause|resume|drop", requires = "host")]
    set: Option<String>,
    /// At most so many hosts
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    host: Option<String>,
    change: Option<Change>,
    limit: usize,
}

impl Job {
    /// Whether it changes anything.
    pub fn writes(&self) -> bool {
        self.change.is_some()
    }
}

const COLUMNS: &[Column] = &[
    ("host", |v| show::text(v, "host")),
    ("waiting", |v| show::text(v, "waiting")),
    ("overdue", |v| show::text(v, "overdue")),
    ("out", |v| show::text(v, "out")),
    ("visited", |v| show::text(v, "visited")),
    ("failed", |v| show::text(v, "failed")),
    ("state", |v| match v["parked_until"].as_str() {
        Some(until) => format!("{} until {until}", show::text(v, "state")),
        None => show::text(v, "state"),
    }),
    ("next", |v| show::text(v, "next")),
    ("pace", |v| show::text(v, "pace")),
    ("last error", |v| show::text(v, "last_error")),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let host = typed.host.map(|host| {
        // A URL stands for its host.
        let rest = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default().to_ascii_lowercase()
    });
    let job = Job { host, change: typed.set.as_deref().map(change).transpose()?, limit: typed.limit };
    let nothing = match &job.host {
        Some(host) => format!("nothing of {host} waits"),
        None => "nothing waits".to_owned(),
    };
    let mut screen = Screen::new(place.json, COLUMNS);
    let exit = owner::perform(place, false, &job::Job::Queue(job), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say(&nothing);
    }
    Ok(exit)
}

/// A change as typed.
fn change(text: &str) -> Result<Change> {
    let wrong = |why: String| {
        Failure::new(format!("--set {text} means nothing"))
            .because(why)
            .hint("--set pace=2000, --set pause, --set resume or --set drop")
    };
    match (text, text.split_once('=')) {
        ("pause", _) => Ok(Change::Pause),
        ("resume", _) => Ok(Change::Resume),
        ("drop", _) => Ok(Change::Drop),
        (_, Some(("pace", pace))) => {
            pace.parse::<Speed>().map_err(wrong)?;
            Ok(Change::Pace(pace.to_owned()))
        }
        _ => Err(wrong("it can set the pace of a host, pause it, resume it, or drop what waits".into())),
    }
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    if let (Some(host), Some(change)) = (&job.host, &job.change) {
        owned.ask(&Question::Set { host: host.clone(), change: change.clone() })?;
    }
    let hosts = owned.ask(&Question::Queue { host: job.host.clone(), limit: job.limit })?;
    let none = hosts.is_empty();
    hosts.into_iter().try_for_each(|host| tell.line(host))?;
    Ok(if none && job.change.is_none() { Exit::No } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_as_typed() {
        assert_eq!(change("pause").unwrap(), Change::Pause);
        assert_eq!(change("pace=2000").unwrap(), Change::Pace("2000".into()));
        assert_eq!(change("pace=polite").unwrap(), Change::Pace("polite".into()));
        for wrong in ["", "pace", "pace=", "pace=fast", "stop", "pause=1"] {
            assert!(change(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
