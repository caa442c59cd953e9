//! Reading: every record of one large file, its body inflated, with and without its digests verified. "Digests" are those of
//! block and payload, for everyone. Twice: on a file as others write it, and on one whose members say how long they are. "Heads alone"
//! is a reader that wants no bodies: it inflates none where it is certain where the next record begins; peers cannot do that. Each row
//! says what became of the bodies.

use super::{best, peer, versions};
use crate::limits;
use crate::long::{self, Options};
use crate::material::{self, Pages};
use crate::measure::{self, Run};
use crate::needs;
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked: times FastWARC with digests and without, times warcio, and cores in use out of two.
const ASKED_DIGESTS: f64 = 1.5;
const ASKED_PLAIN: f64 = 2.0;
const ASKED_WARCIO: f64 = 10.0;
const ASKED_CORES: f64 = 1.7;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let readbench = long::build_dist(workspace, "skep-warc", "--example", "readbench")?;
    needs::venv(workspace)?;
    let both = material::both(workspace, options, limits::PAGES_BYTES_MIN)?;
    versions(workspace, &["FastWARC", "warcio"])?;
    for pages in &both {
        beside_peers(workspace, options, &readbench, pages)?;
    }
    Ok(())
}

fn beside_peers(workspace: &Workspace, options: &Options, readbench: &Path, pages: &Pages) -> Result<()> {
    let file = &pages.file;
    println!("\nfile: {} ({}), {}", file.display(), megabytes(std::fs::metadata(file)?.len()), pages.what);
    let ours = |arguments: &[&str]| {
        let mut command = Command::new(readbench);
        command.arg(file).args(arguments);
        command
    };
    let theirs = |script: &str, arguments: &[&str]| {
        let mut command = peer(workspace, script);
        command.arg(file).args(arguments);
        command
    };
    let plain = best(&ours(&[]), options.runs, None)?;
    let heads = best(&ours(&["--heads"]), options.runs, None)?;
    let fast = best(&theirs("read_fastwarc.py", &[]), options.runs, None)?;
    let verified = best(&ours(&["--digests"]), options.runs, None)?;
    let fast_blocks = best(&theirs("read_fastwarc.py", &["--digests"]), options.runs, None)?;
    let fast_verified = best(&theirs("read_fastwarc.py", &["--digests", "--payload"]), options.runs, None)?;
    let older = older_fastwarc(workspace)?;
    let before = |arguments: &[&str]| {
        let mut command = theirs("read_fastwarc.py", arguments);
        command.env("PYTHONPATH", &older);
        command
    };
    let fast_before = best(&before(&[]), options.runs, None)?;
    let fast_before_blocks = best(&before(&["--digests"]), options.runs, None)?;
    // Slow and steady: once is enough.
    let warcio = best(&theirs("read_warcio.py", &[]), 1, None)?;
    let warcio_verified = best(&theirs("read_warcio.py", &["--digests"]), 1, None)?;
    let parallel = best(&ours(&["--digests", "--threads", "2"]), options.runs, None)?;

    let rows = [
        ("skep, two threads, digests", &parallel, None),
        ("skep, heads alone", &heads, None),
        ("skep", &plain, None),
        ("FastWARC", &fast, Some(&plain)),
        (OLDER, &fast_before, Some(&plain)),
        ("warcio", &warcio, Some(&plain)),
        ("skep, digests", &verified, None),
        ("FastWARC, block digests alone", &fast_blocks, Some(&verified)),
        ("FastWARC, digests", &fast_verified, Some(&verified)),
        ("the same before 1.0, block digests alone", &fast_before_blocks, Some(&verified)),
        ("warcio, digests", &warcio_verified, Some(&verified)),
    ];
    let records = plain.figure("records")?;
    for (who, run, _) in &rows {
        if run.figure("records")? != records {
            bail!("{who} counts {} records, we count {records}: nothing to compare", run.figure("records")?);
        }
    }
    let mut table = Table::new(&["", "records/CPU s", "CPU s", "wall s", "memory", "bodies", "skep is"]);
    for (who, run, beside) in &rows {
        table.row(&[
            (*who).to_owned(),
            count(rate(run, records) as u64),
            format!("{:.2}", run.cpu.as_secs_f64()),
            format!("{:.2}", run.wall.as_secs_f64()),
            megabytes(run.max_rss_bytes),
            bodies(run, records),
            beside.map(|ours| ratio(rate(ours, records), rate(run, records))).unwrap_or_default(),
        ]);
    }
    print!("\n{} records\n{}", count(records), table.render());
    let times = |ours: &Run, theirs: &Run| rate(ours, records) / rate(theirs, records);
    let cores = parallel.cpu.as_secs_f64() / parallel.wall.as_secs_f64();
    println!();
    for (beside, ours, theirs, asked) in [
        ("FastWARC, digests".to_owned(), &verified, &fast_verified, ASKED_DIGESTS),
        ("FastWARC".to_owned(), &plain, &fast, ASKED_PLAIN),
        ("FastWARC, our heads alone".to_owned(), &heads, &fast, ASKED_PLAIN),
        (format!("{OLDER}, digests"), &verified, &fast_before_blocks, ASKED_DIGESTS),
        (OLDER.to_owned(), &plain, &fast_before, ASKED_PLAIN),
        ("warcio".to_owned(), &plain, &warcio, ASKED_WARCIO),
        ("warcio, our heads alone".to_owned(), &heads, &warcio, ASKED_WARCIO),
    ] {
        let (times, bodies) = (times(ours, theirs), bodies(ours, records));
        println!("beside {beside} {times:.2}× (our bodies: {bodies}): {}", verdict(times, asked));
    }
    println!("two threads keep {cores:.2} cores busy: {}", verdict(cores, ASKED_CORES));
    if options.instructions {
        let counted = measure::instructions(&ours(&["--digests"]), 10 * limits::BENCH_RUN_MAX)?;
        println!("instructions with digests: {} ({} per record)", count(counted), count(counted / records.max(1)));
    }
    Ok(())
}

/// The last FastWARC in C++ over zlib; from 1.0 on it is another program, in Rust over zlib-rs.
const OLDER: &str = "FastWARC 0.15.2";

/// Installs it beside the pinned one; the folder goes first on the path of those who want it.
fn older_fastwarc(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("peers/fastwarc-0.15.2");
    if !folder.join("fastwarc").is_dir() {
        let mut pip = Command::new(workspace.python());
        pip.args([
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-deps",
            "FastWARC==0.15.2",
            "--target",
        ]);
        if !pip.arg(&folder).status()?.success() {
            bail!("pip could not install FastWARC 0.15.2");
        }
    }
    Ok(folder)
}

/// What became of the bodies. Peers count none that they did not inflate: they inflate all.
fn bodies(run: &Run, records: u64) -> String {
    match run.figure("stepped_over").unwrap_or(0) {
        0 => "all inflated".to_owned(),
        stepped_over => format!("{:.0} % stepped over", 100.0 * stepped_over as f64 / records.max(1) as f64),
    }
}

fn rate(run: &Run, records: u64) -> f64 {
    records as f64 / run.cpu.as_secs_f64()
}
