//! `skep check`: is everything what it says it is?

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Place};
use crate::show::{self, Column, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::Archive;
use skep_warc::{Finding, Options, Reader, Severity, check_record, repair, wacz};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Check files, or the whole archive: structure, digests, seals, sidecars
#[derive(Args)]
#[command(after_help = "\
With files: every record is held against the WARC (or ARC) standard, its digests are computed, the HTTP message is looked at. Each finding
names file and offset. Without files: the archive's own segments in the same way, their seals, sidecars and removals, and copies of added
files; of files that were added in place, whether they are unchanged.
--repair writes NAME.repaired.warc.gz beside the file, with every record that can be had, and never over it; for the archive it writes
sidecars and views again.
Exit codes: 0 nothing found, 1 findings, 3 repaired. Notices alone are no findings.")]
pub struct Typed {
    /// ARC, WARC (plain, .gz, .zst) or WACZ files; none means the archive
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write what can be had of a damaged file beside it
    #[arg(long)]
    repair: bool,
    /// Leave out notices: what is allowed, but worth knowing
    #[arg(long)]
    quiet: bool,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {}

const COLUMNS: &[Column] = &[
    ("severity", |v| show::text(v, "severity")),
    ("file", |v| show::text(v, "file")),
    ("offset", |v| show::text(v, "offset")),
    ("rule", |v| show::text(v, "rule")),
    ("what", |v| show::text(v, "what")),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut screen = Screen::new(place.json, COLUMNS);
    if typed.files.is_empty() {
        let mut exit = owner::perform(place, false, &job::Job::Check(Job {}), &mut screen)?;
        screen.finish()?;
        if exit == Exit::No && typed.repair {
            let archive = Archive::rebuild(&place.archive, place.options(), true)?;
            exit = owner::as_owner(archive, |owned| {
                let again = perform(&owned.archive, &Job {}, &mut screen)?;
                Ok(if again == Exit::Done { Exit::Undone } else { Exit::No })
            })?;
            screen.finish()?;
            say(if exit == Exit::Undone {
                "repaired: sidecars and views were written again"
            } else {
                "some of it cannot be repaired from here"
            });
        } else if exit == Exit::Done {
            say("nothing is wrong");
        }
        return Ok(exit);
    }
    let mut exit = Exit::Done;
    let total: u64 = typed.files.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let mut before = 0;
    for path in &typed.files {
        let summary = check_file(path, typed.quiet, &mut screen, before, total)?;
        before += path.metadata().map_or(0, |m| m.len());
        if summary.wrong > 0 {
            exit = Exit::No;
        }
        screen.finish()?;
        say(&format!(
            "{}: {} records, {} block and {} payload digests verified, {}",
            path.display(),
            summary.records,
            summary.blocks,
            summary.payloads,
            if summary.wrong == 0 { "nothing is wrong".to_owned() } else { format!("{} findings", summary.wrong) }
        ));
        if typed.repair && summary.wrong > 0 {
            let (beside, records, truncated) = repair_file(path)?;
            say(&format!("{}: {records} records, {truncated} of them not whole", beside.display()));
        }
    }
    Ok(if exit == Exit::No && typed.repair { Exit::Undone } else { exit })
}

pub fn perform(archive: &Archive, _: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let mut found = Vec::new();
    archive.check(&mut |finding| found.push(finding))?;
    // What opening the archive just now had to give up is not there any more to be found.
    for finding in archive.opened().iter().filter(|finding| !finding.mended) {
        if !found.iter().any(|known| known.path == finding.path) {
            found.push(finding.clone());
        }
    }
    let exit = if found.iter().any(|f| !f.mended) { Exit::No } else { Exit::Done };
    for finding in found {
        tell.line(json!({
            "file": finding.path.display().to_string(),
            "offset": finding.offset,
            "rule": finding.rule,
            "severity": if finding.mended { "mended" } else { "damage" },
            "what": finding.what,
        }))?;
    }
    Ok(exit)
}

#[derive(Default)]
struct Summary {
    records: u64,
    blocks: u64,
    payloads: u64,
    wrong: u64,
}

fn check_file(path: &Path, quiet: bool, screen: &mut Screen, before: u64, total: u64) -> Result<Summary> {
    let failed = |error: io::Error| Failure::reading(path, error);
    let mut summary = Summary::default();
    if !wacz::is_package(path).map_err(failed)? {
        let mut reader = Reader::open(path, Options::strict()).map_err(failed)?;
        check_records(&mut reader, path, "", quiet, screen, (before, total), &mut summary)?;
        return Ok(summary);
    }
    let entries = match wacz::entries(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            summary.wrong += 1;
            screen.line(object(path, "", "package-damaged", Severity::Damage, 0, None, &error.to_string()))?;
            return Ok(summary);
        }
        other => other.map_err(failed)?,
    };
    for entry in entries {
        if entry.name_is_unsafe() {
            summary.wrong += 1;
            screen.line(object(path, "", "package-name", Severity::Violation, entry.start, None, &entry.name))?;
        } else if entry.holds_records() {
            let mut reader = entry.reader(path, Options::strict()).map_err(failed)?;
            check_records(&mut reader, path, &entry.name, quiet, screen, (before, total), &mut summary)?;
        }
    }
    Ok(summary)
}

fn check_records(
    reader: &mut Reader,
    path: &Path,
    entry: &str,
    quiet: bool,
    screen: &mut Screen,
    (before, total): (u64, u64),
    summary: &mut Summary,
) -> Result<()> {
    let failed = |error: io::Error| Failure::reading(path, error);
    loop {
        let more = match reader.next().map_err(failed)? {
            Some(mut record) => {
                let verified = check_record(&mut record).map_err(failed)?;
                record.finish().map_err(failed)?;
                summary.records += 1;
                summary.blocks += u64::from(verified.block);
                summary.payloads += u64::from(verified.payload);
                true
            }
            None => false,
        };
        for finding in reader.take_findings() {
            let severity = finding.rule.severity();
            summary.wrong += u64::from(severity > Severity::Notice);
            if severity > Severity::Notice || !quiet {
                screen.line(of_finding(path, entry, &finding))?;
            }
        }
        if !more {
            return Ok(());
        }
        if summary.records.is_multiple_of(64) {
            screen.progress(before + reader.raw_offset(), total);
        }
    }
}

fn of_finding(path: &Path, entry: &str, finding: &Finding) -> Value {
    let what = match finding.detail.as_str() {
        "" => finding.rule.text().to_owned(),
        detail => format!("{} ({detail})", finding.rule.text()),
    };
    object(path, entry, finding.rule.id(), finding.rule.severity(), finding.offset, finding.record, &what)
}

fn object(
    path: &Path,
    entry: &str,
    rule: &str,
    severity: Severity,
    offset: u64,
    record: Option<u64>,
    what: &str,
) -> Value {
    let file = if entry.is_empty() { path.display().to_string() } else { format!("{}!{entry}", path.display()) };
    let severity = match severity {
        Severity::Notice => "notice",
        Severity::Violation => "violation",
        Severity::Damage => "damage",
    };
    json!({ "file": file, "offset": offset, "record": record, "rule": rule, "severity": severity, "what": what })
}

/// Writes every record that can be had beside the file; never over anything.
fn repair_file(path: &Path) -> Result<(PathBuf, u64, u64)> {
    let failed = |error: io::Error| Failure::reading(path, error);
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let (stem, kind) = match stem.rsplit_once('.') {
        Some((stem, kind @ ("warc" | "arc"))) => (stem, kind),
        _ => (stem, "warc"),
    };
    let beside = path.with_file_name(format!("{stem}.repaired.{kind}.gz"));
    let writing = |error: io::Error| Failure::new(format!("cannot write {}", beside.display())).because(error);
    if wacz::is_package(path).map_err(failed)? {
        return Err(
            Failure::new(format!("{} is a package", path.display())).hint("unpack it and repair the WARC files inside")
        );
    }
    let file = File::create_new(&beside).map_err(|error| {
        let failure = writing(error);
        if beside.exists() {
            failure.hint("move the earlier repair away first: nothing is ever written over")
        } else {
            failure
        }
    })?;
    let mut reader = Reader::open(path, Options::recover()).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let written = repair(&mut reader, &mut out).and_then(|repaired| {
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(repaired)
    });
    match written {
        Ok(repaired) => Ok((beside, repaired.records, repaired.truncated)),
        Err(error) => {
            // Half a repair would stand in the way of the next one. It is ours: it was made a moment ago.
            let _told_anyway = std::fs::remove_file(&beside);
            Err(writing(error))
        }
    }
}
