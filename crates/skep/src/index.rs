//! `skep index`: a CDXJ index of files, on standard output.

use crate::failure::{Failure, Result, output, say};
use crate::job::Exit;
use crate::sorted::Sorted;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use skep_archive::{cdx, cdxj};
use skep_warc::{Finding, Severity, wacz};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Write the index of ARC and WARC files to standard output
#[derive(Args)]
#[command(after_help = "\
The lines are those of `cdxj-indexer --sort`, so that pywb, OutbackCDX and others take them as they are. What is wrong with a file is
told on standard error; the exit code is then 3. Bodies that the index needs nothing of are stepped over where the file says how
long they are (Skep's own files do): `skep check` is what reads and verifies everything.
Examples:
  skep index *.warc.gz > index.cdxj
  skep index --format cdx11 crawl.arc.gz > crawl.cdx")]
pub struct Typed {
    /// ARC, WARC (plain, .gz, .zst) or WACZ files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The form of the index
    #[arg(long, value_enum, default_value = "cdxj", value_name = "cdxj|cdx11", hide_possible_values = true)]
    format: Format,
    /// cdx11 only: also requests, metadata and other records
    #[arg(long)]
    all: bool,
    /// Cores to use
    #[arg(long, value_name = "N", default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Cdxj,
    Cdx11,
}

pub fn run(typed: Typed) -> Result<Exit> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    if typed.format == Format::Cdx11 {
        writeln!(out, "{}", cdx::HEADER).map_err(output)?;
        let mut wrong = false;
        for path in &typed.files {
            let written = cdx::write_file(path, cdx::Options { all: typed.all }, &mut out)
                .map_err(|error| Failure::reading(path, error))?;
            wrong |= tell(path, &written.findings);
        }
        out.flush().map_err(output)?;
        return Ok(if wrong { Exit::Undone } else { Exit::Done });
    }
    let mut lines = Sorted::default();
    let mut wrong = false;
    let bar = progress(&typed.files);
    let tick = |bytes: u64| bar.iter().for_each(|bar| bar.inc(bytes));
    for path in &typed.files {
        let filename = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let mut findings = Vec::new();
        let failed = |error| Failure::reading(path, error);
        if wacz::is_package(path).map_err(failed)? {
            for entry in wacz::archives(path).map_err(failed)? {
                let name = entry.name.rsplit('/').next().unwrap_or(&entry.name).to_owned();
                index_entry(path, &entry, &name, &mut lines, &mut findings).map_err(failed)?;
            }
        } else {
            let mut of_file = Vec::new();
            cdxj::index_file(path, &filename, typed.threads, &mut of_file, &mut findings, &tick).map_err(failed)?;
            lines.extend(of_file)?;
        }
        wrong |= tell(path, &findings);
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    lines.each(|line| out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(output))?;
    out.flush().map_err(output)?;
    Ok(if wrong { Exit::Undone } else { Exit::Done })
}

/// Tells what is wrong with a file; notices are nothing wrong.
fn tell(path: &Path, findings: &[Finding]) -> bool {
    let mut wrong = false;
    for finding in findings.iter().filter(|f| f.rule.severity() > Severity::Notice) {
        say(&format!("{}: {finding}", path.display()));
        wrong = true;
    }
    wrong
}

/// Offsets inside a package's entry count from the entry's beginning, as other tools address it.
fn index_entry(
    path: &Path,
    entry: &wacz::Entry,
    name: &str,
    lines: &mut Sorted,
    findings: &mut Vec<Finding>,
) -> io::Result<()> {
    let mut reader = entry.reader(path, skep_warc::Options::skim())?;
    let base = if entry.deflated { 0 } else { entry.start };
    let mut found = Vec::new();
    while let Some(mut record) = reader.next()? {
        let offset = record.offset() - base;
        let line = cdxj::line_of(&mut record)?;
        let end = record.finish()?;
        found.extend(line.map(|line| line.text(offset, end.length, name)));
    }
    findings.extend(reader.take_findings());
    lines.extend(found).map_err(|failure| io::Error::other(failure.what))
}

fn progress(files: &[PathBuf]) -> Option<ProgressBar> {
    let total = files.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let form = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    io::stderr().is_terminal().then(|| {
        ProgressBar::new(total)
            .with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
    })
}
