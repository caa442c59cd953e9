//! `skep changes`: what was born, changed, moved or died.

use crate::failure::{Failure, Result, output, printable, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::{signals, when};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_changes::{Cursor, Delta, Filter, From, Settings};
use skep_page::compare::{Class, Classes};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tell what was born, changed, moved or died: two captures of a URL are an event, whoever made them
#[derive(Args)]
#[command(after_help = "\
Classes: new, gone, returned, moved, text.major (a twentieth of the words or more), text.minor, reverted, data (prices and other
structured data, and files that are no text), links, meta; of hosts: host.down, host.up, host.moved, host.robots, host.sitemap,
host.template (many of its pages changed in the same place). Told only when asked for: suspect (a challenge or an outage came instead of
the page), template (the page changed only there), volatile (parts that always change), markup, bytes. `text` stands for both of its
kinds, `host` for all of hosts, `all` for everything.
Examples:
  skep changes --since 2026-11 --host example.org           what happened there since then
  skep changes --class text --min-change 1%                 only text, only more than a word
  skep changes --json --delta --mime text/html              with what an indexer needs to keep texts up to date
  skep changes --follow --json                              one CloudEvent a line, as it happens
  skep changes --since c41f22abmi2k3l4m:1042                what came behind that event
Each event has a cursor, its place in this stream, and a key, the record of its capture: one that is told again has the same key, as has
one by which it is taken back (withdrawn).
Exit code 1 if there is none.")]
pub struct Typed {
    /// Only what came behind this cursor, or was seen at this time or later; `now` with --follow for what is yet to come
    #[arg(long, value_name = "CURSOR|TIME|now")]
    since: Option<String>,
    /// Go on as more is seen, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Only this host; `*.example.org` for all below it
    #[arg(long, value_name = "H")]
    host: Option<String>,
    /// Only URLs that begin like this
    #[arg(long, value_name = "P")]
    prefix: Option<String>,
    /// Only this class; may be given several times
    #[arg(long = "class", value_name = "C")]
    classes: Vec<String>,
    /// Only this media type; `image/*` for all of a kind
    #[arg(long, value_name = "TYPE")]
    mime: Option<String>,
    /// Only pages that were visited for the watch or crawl of this name
    #[arg(long, value_name = "NAME")]
    watch: Option<String>,
    /// With each event, what leads from the text that was told before to the text now (in --json: `data.delta`)
    #[arg(long)]
    delta: bool,
    /// Only changes of at least this share of the words; what is born or dies is told all the same
    #[arg(long, value_name = "1%")]
    min_change: Option<String>,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    after: Option<String>,
    since_ms: Option<i64>,
    follow: bool,
    host: Option<String>,
    prefix: Option<String>,
    classes: Option<u32>,
    share_min: u16,
    #[serde(default)]
    mime: Option<String>,
    #[serde(default)]
    watch: Option<String>,
    #[serde(default)]
    delta: bool,
}

/// How often the archive is looked at for more, and whoever asked is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const STILL: &str = "still";
/// As a cursor: the newest there is.
const NOW: &str = "now";

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let follow = typed.follow;
    let job = typed.meant()?;
    let stopped = Arc::new(AtomicBool::new(false));
    let _watch = match follow {
        true => {
            let stopped = Arc::clone(&stopped);
            Some(signals::watch(move || stopped.store(true, Ordering::Relaxed), || ())?)
        }
        false => None,
    };
    let mut printer = Printer { json: place.json, stopped, events: 0 };
    let exit = owner::perform(place, false, &job::Job::Changes(job), &mut printer)?;
    if exit == Exit::No && !follow {
        say("no change that fits");
    }
    Ok(exit)
}

impl Typed {
    fn meant(self) -> Result<Job> {
        let (mut after, mut since_ms) = (None, None);
        match self.since.as_deref() {
            None => {}
            Some(NOW) => after = Some(NOW.to_owned()),
            Some(text) if text.parse::<Cursor>().is_ok() => after = self.since.clone(),
            Some(text) => since_ms = Some(when::earliest(text)?),
        }
        let mut classes = None;
        for name in &self.classes {
            let named = Classes::from_name(name).ok_or_else(|| {
                let all: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
                Failure::new(format!("{name:?} is no class of change")).hint(format!("there are: {}", all.join(", ")))
            })?;
            classes = Some(classes.unwrap_or(0) | named.0);
        }
        Ok(Job {
            after,
            since_ms,
            follow: self.follow,
            host: self.host.as_deref().map(host).transpose()?,
            prefix: self.prefix,
            classes,
            share_min: self.min_change.as_deref().map(share).transpose()?.unwrap_or(0),
            mime: self.mime,
            watch: self.watch,
            delta: self.delta,
        })
    }
}

/// A host as typed, as the stream has it; `*.` before it stays.
pub fn host(text: &str) -> Result<String> {
    skep_changes::host(text).map_err(|why| {
        Failure::new(format!("{text:?} is no host")).because(why).hint(
            "a host looks like example.org or *.example.org; --prefix http://example.org:8080/ chooses by the address",
        )
    })
}

/// A share as typed, `1%` or `0.01`, in ten thousandths.
pub fn share(text: &str) -> Result<u16> {
    let (number, factor) = text.trim().strip_suffix('%').map_or((text.trim(), 10_000.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=10_000.0).contains(&(number * factor)) => Ok((number * factor).round() as u16),
        _ => Err(Failure::new(format!("{text:?} is not a share")).hint("a share looks like 1%, 0.5% or 0.01")),
    }
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let archive = &*owned.archive;
    let filter = Filter {
        host: job.host.clone(),
        prefix: job.prefix.clone(),
        classes: job.classes.map(Classes),
        share_min: job.share_min,
        mime: job.mime.clone(),
        watch: job.watch.clone(),
        since_ms: job.since_ms,
    };
    let filter = if job.delta { filter.with_text() } else { filter };
    let settings = if job.delta { Some(Settings::of(archive)?) } else { None };
    let mut from = match job.after.as_deref() {
        Some(NOW) => {
            owned.changes.follow(archive, skep_archive::system_clock(), &mut |_| ())?;
            From::End
        }
        after => after.and_then(|after| after.parse().ok()).map_or(From::Start, From::After),
    };
    let mut told = false;
    loop {
        owned.changes.follow(archive, skep_archive::system_clock(), &mut |_| ())?;
        let (mut line, mut failed) = (String::new(), None);
        let cursor = owned.changes.read(archive, &from, &filter, |cursor, event| {
            line.clear();
            let delta = settings.as_ref().and_then(|settings| Delta::of(archive, settings, event).ok().flatten());
            event.json_with(cursor, delta.as_ref(), &mut line);
            let value = serde_json::from_str(&line).unwrap_or(Value::Null);
            told = true;
            match tell.line(value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => {
                    failed = Some(failure);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        if !job.follow {
            return Ok(if told { Exit::Done } else { Exit::No });
        }
        from = From::After(cursor);
        // Whoever asked may be gone without a word.
        tell.line(json!({ "event": STILL }))?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Prints events as they come.
struct Printer {
    json: bool,
    stopped: Arc<AtomicBool>,
    events: u64,
}

impl Tell for Printer {
    fn line(&mut self, value: Value) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Failure { reader_left: true, ..Failure::new("stopped") });
        }
        let mut out = std::io::stdout().lock();
        if value["event"] == STILL {
            return out.flush().map_err(output);
        }
        self.events += 1;
        let text = if self.json { value.to_string() } else { row(&value) };
        writeln!(out, "{text}").map_err(output)
    }

    fn bytes(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn talk(&mut self, text: &str) {
        say(text);
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

/// An event for a person: when, what, how much, where, and the beginning of what is new.
fn row(event: &Value) -> String {
    let data = &event["data"];
    let classes: Vec<&str> = data["classes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let share = match data["magnitude"].as_f64() {
        Some(share) if share > 0.0 => format!("{:.1}%", share * 100.0),
        _ => "-".to_owned(),
    };
    let said = ["/http/redirect", "/reason", "/text/snippet"].iter().find_map(|path| data.pointer(path)?.as_str());
    let said: String =
        said.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect();
    let time = event["time"].as_str().unwrap_or_default();
    let subject = event["subject"].as_str().unwrap_or_default();
    let was: Vec<&str> = data["was"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (what, said) = match (classes.is_empty(), was.is_empty()) {
        (true, _) => ("withdrawn".to_owned(), "what was told of it then is taken back".to_owned()),
        (false, true) => (classes.join(" "), said),
        (false, false) => (format!("{} (was {})", classes.join(" "), was.join(" ")), said),
    };
    let line = format!("{time:<24}  {what:<18}  {share:>6}  {subject}  {said}");
    let mut text: String = line.trim_end().chars().map(printable).collect();
    // What came and what went of the text, below.
    for step in event.pointer("/data/delta/lines").and_then(Value::as_array).into_iter().flatten() {
        let told = match (step.as_str(), step.as_i64()) {
            (Some(line), _) => format!("+ {line}"),
            (None, Some(count)) if count < 0 => format!("- {} lines", -count),
            _ => continue,
        };
        text.push_str("\n    ");
        text.extend(told.chars().map(printable));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_host_is_told_with_a_hint() {
        assert_eq!(host("*.Example.ORG").unwrap(), "*.example.org");
        assert!(host("example.org:8080").unwrap_err().hint.is_some());
    }

    #[test]
    fn what_is_taken_back_or_told_as_less_says_so() {
        let told = |data: Value| {
            row(&json!({ "time": "2024-03-01T00:00:00Z", "subject": "http://example.org/", "data": data }))
        };
        let less = told(json!({ "classes": ["template"], "was": ["text.minor"], "magnitude": 0.02 }));
        assert_eq!(less, "2024-03-01T00:00:00Z      template (was text.minor)    2.0%  http://example.org/");
        let back = told(json!({ "classes": [], "magnitude": 0.0 }));
        assert!(
            back.contains("  withdrawn  ")
                && back.ends_with("http://example.org/  what was told of it then is taken back")
        );
    }

    #[test]
    fn shares_as_typed() {
        for (typed, meant) in [("1%", 100), ("0.5 %", 50), ("0.01", 100), ("100%", 10_000), ("0", 0)] {
            assert_eq!(share(typed).unwrap(), meant, "{typed}");
        }
        for wrong in ["", "%", "-1%", "101%", "some", "2", "NaN"] {
            assert!(share(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
