//! `skep diff`: what two captures of a URL have apart, word by word.

use crate::captures::{Matching, match_of};
use crate::failure::{Failure, Result, output, printable, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Place};
use crate::show::Collected;
use crate::when;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::Query;
use skep_archive::{Archive, Capture, CaptureKind, Key};
use skep_changes::{Settings, text_of};
use skep_page::compare::{Mask, Piece, Row, Shown, compare, show};
use skep_warc::date;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Show what two captures of a URL have apart, word by word
#[derive(Args)]
#[command(after_help = "\
Without times, the newest version and the one before it that reads otherwise. What is compared is the text that a reader sees; rules for a site in the
archive's settings/changes.toml count here too.
Examples:
  skep diff https://example.org/terms
  skep diff https://example.org/terms --from 2024 --to 2026-06 --html terms.html
Exit code 1 if there are not two versions, or if their text is the same.")]
pub struct Typed {
    /// The URL
    url: String,
    /// The capture nearest to this time is the old one
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// The capture nearest to this time is the new one
    #[arg(long, value_name = "T")]
    to: Option<String>,
    /// Write a page with both beside each other to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Older captures that are read to find one whose text is another: pages differ by more than their text at every look.
const LOOKED_MAX: usize = 64;

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    url: String,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let job = Job {
        from_ms: typed.from.as_deref().map(when::earliest).transpose()?,
        to_ms: typed.to.as_deref().map(when::earliest).transpose()?,
        url: typed.url.clone(),
    };
    let mut told = Collected::default();
    let exit = owner::perform(place, false, &job::Job::Diff(job), &mut told)?;
    let Some(mut found) = told.0.pop() else {
        say(&format!("there are not two versions of {}", typed.url));
        return Ok(exit);
    };
    let take = |found: &mut Value, name: &str| found[name].take().as_str().unwrap_or_default().to_owned();
    let (old, new) = (take(&mut found, "old_text"), take(&mut found, "new_text"));
    let shown = show(&old, &new);
    if let Some(path) = &typed.html {
        std::fs::write(path, page(&found, &shown))
            .map_err(|error| Failure::new(format!("cannot write {}", path.display())).because(error))?;
    }
    let text = match (place.json, &typed.html) {
        (true, _) => format!("{}\n", as_object(found, &shown)),
        (false, Some(path)) => {
            say(&format!(
                "{} lines before, {} lines after differ: {}",
                shown.old_lines,
                shown.new_lines,
                path.display()
            ));
            String::new()
        }
        (false, None) => as_text(&found, &shown, std::io::stdout().is_terminal()),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output)?;
    if shown.cut {
        say("note: only the beginning was compared");
    }
    Ok(exit)
}

pub fn perform(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    archive.settle()?;
    let settings = Settings::of(archive)?;
    let Some((old, new)) = chosen(archive, &settings, job)? else { return Ok(Exit::No) };
    let (Some(was), Some(is)) = (text_of(archive, &old, &settings)?, text_of(archive, &new, &settings)?) else {
        return Err(Failure::new(format!("a capture of {} cannot be read", job.url))
            .hint("`skep check` says what is wrong with the archive"));
    };
    let found = compare(&was, &is, &mut Mask::default());
    let side = |capture: &Capture| json!({ "url": capture.url, "time": date::rfc3339(capture.time_ms), "position": capture.position.to_string() });
    tell.line(json!({
        "from": side(&old),
        "to": side(&new),
        "classes": found.classes.iter().map(|class| class.name()).collect::<Vec<_>>(),
        "magnitude": f64::from(found.share) / 10_000.0,
        "words_added": found.words_added,
        "words_removed": found.words_removed,
        "links_added": found.links_added,
        "links_removed": found.links_removed,
        "title": [was.meta.title, is.meta.title],
        "old_text": was.text,
        "new_text": is.text,
    }))?;
    Ok(if was.text == is.text { Exit::No } else { Exit::Done })
}

/// The captures that are meant; without times, the newest version and the one before that reads otherwise.
fn chosen(archive: &Archive, settings: &Settings, job: &Job) -> Result<Option<(Capture, Capture)>> {
    let view = &archive.views().captures;
    let fits = |c: &Capture| {
        let readable = c.kind != CaptureKind::Revisit || c.digest.is_some();
        !c.is_private() && matches!(c.status, 0 | 200..=299 | 304) && readable && is_page(c)
    };
    let nearest = |at_ms: i64| -> Result<Option<Capture>> {
        for capture in view.closest(&Key::of(&job.url), at_ms)? {
            let capture = capture?;
            if fits(&capture) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    };
    let newest_first = |to_ms: Option<i64>| {
        let mut query = Query::new(match_of(&job.url, Matching::Exact));
        query.direction = skep_archive::runs::Direction::Backward;
        query.to_ms = to_ms;
        view.query(&query)
    };
    let newest = || -> Result<Option<Capture>> {
        for capture in newest_first(None)? {
            let capture = capture?;
            if fits(&capture) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    };
    // The last one that has another text; where none has, the last with other bytes.
    let before = |new: &Capture| -> Result<Option<Capture>> {
        let text = |capture: &Capture| text_of(archive, capture, settings).map(|version| version.map(|read| read.text));
        let (is, mut known, mut last, mut looked) = (text(new)?, BTreeSet::from([new.digest]), None, 0);
        for capture in newest_first(Some(new.time_ms))? {
            let capture = capture?;
            let other = capture.position != new.position && (capture.digest.is_none() || known.insert(capture.digest));
            if !fits(&capture) || !other {
                continue;
            }
            if text(&capture)?.is_some_and(|was| Some(was) != is) {
                return Ok(Some(capture));
            }
            last.get_or_insert(capture);
            looked += 1;
            if looked == LOOKED_MAX {
                break;
            }
        }
        Ok(last)
    };
    let new = match job.to_ms {
        Some(at_ms) => nearest(at_ms)?,
        None => newest()?,
    };
    let Some(new) = new else { return Ok(None) };
    let old = match job.from_ms {
        Some(at_ms) => nearest(at_ms)?,
        None => before(&new)?,
    };
    Ok(old.filter(|old| old.position != new.position).map(|old| (old, new)))
}

fn is_page(capture: &Capture) -> bool {
    matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource)
}

fn as_object(mut found: Value, shown: &Shown) -> Value {
    let line = |pieces: &Option<Vec<Piece>>| {
        let piece = |piece: &Piece| json!({ "text": piece.text, "marked": piece.marked });
        pieces.as_ref().map(|pieces| pieces.iter().map(piece).collect::<Vec<_>>())
    };
    let changed = shown.rows.iter().filter_map(|row| match row {
        Row::Changed(old, new) => Some(json!({ "old": line(old), "new": line(new) })),
        _ => None,
    });
    found["changed"] = changed.collect();
    if let Some(object) = found.as_object_mut() {
        object.remove("old_text");
        object.remove("new_text");
    }
    found
}

/// For a terminal in colours, for a file with signs around what went and came: `[-old-]` and `{+new+}`.
fn as_text(found: &Value, shown: &Shown, colours: bool) -> String {
    let side = |name: &str| found[name]["time"].as_str().unwrap_or_default().to_owned();
    let mut out = format!("--- {}\n+++ {}\n", side("from"), side("to"));
    let signs = match colours {
        true => [("\u{1b}[31m", "\u{1b}[0m"), ("\u{1b}[32m", "\u{1b}[0m")],
        false => [("[-", "-]"), ("{+", "+}")],
    };
    let clean = |text: &str| text.chars().map(printable).collect::<String>();
    let line = |pieces: &[Piece], (begin, end): (&str, &str)| {
        let piece = |piece: &Piece| match piece.marked {
            true => format!("{begin}{}{end}", clean(&piece.text)),
            false => clean(&piece.text),
        };
        pieces.iter().map(piece).collect::<String>()
    };
    for row in &shown.rows {
        match row {
            Row::Same(text) => out += &format!("  {}\n", clean(text)),
            Row::Folded(count) => out += &format!("  … {count} lines are the same\n"),
            Row::Changed(old, new) => {
                out.extend(old.iter().map(|old| format!("- {}\n", line(old, signs[0]))));
                out.extend(new.iter().map(|new| format!("+ {}\n", line(new, signs[1]))));
            }
        }
    }
    for (name, sign) in [("links_removed", '-'), ("links_added", '+')] {
        for link in found[name].as_array().into_iter().flatten().filter_map(Value::as_str) {
            out += &format!("{sign} link {}\n", clean(link));
        }
    }
    out
}

const STYLE: &str = "body{font:16px/1.5 sans-serif;margin:2em auto;max-width:90em;padding:0 1em}table{border-collapse:collapse;width:100%;\
    table-layout:fixed}td,th{vertical-align:top;padding:.2em .6em;border-bottom:1px solid #ddd;overflow-wrap:anywhere;text-align:left}\
    del{background:#fdd}ins{background:#cfc;text-decoration:none}.fold td{color:#767676;text-align:center}";

/// A page of its own, without scripts and without anything from elsewhere.
fn page(found: &Value, shown: &Shown) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let side = |name: &str, field: &str| escaped(found[name][field].as_str().unwrap_or_default());
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{url}</title><style>{STYLE}</style>\n<h1>{url}</h1>\n\
         <table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>{}</tbody></table>\n</html>\n",
        side("from", "time"),
        side("to", "time"),
        shown.html(),
        url = side("to", "url"),
    )
}
