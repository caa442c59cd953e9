//! Crawling: one site behind nginx, as fast as each program can, once with plain answers and once with gzip. The server's log counts the
//! pages; CPU time is the program's own. Programs run one after another, round by round, so that a busy minute of the machine falls on
//! all of them; the least disturbed run of each counts.
//!
//! Two bare loops stand beside us, built in the profile that we are built in. What is asked is asked of the one made of the
//! field's parts, lol_html, url and libdeflate: that is the loop which anybody would write for the least that an archiving
//! crawler must do. The other has our own page reader in their place. It is no bar, because a part of ours that becomes faster
//! makes it faster too; it shows what a crawler costs beyond its parts: finding out what to fetch, records, registry, index, syncing.
//! Both allocate as every program does that says nothing about it; we have an allocator of our own, because threads hand over to others.

#[path = "../../../skep/tests/site/nginx.rs"]
pub(super) mod nginx;
mod programs;
pub(super) mod site;

use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure::{self, Run};
use crate::needs;
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use nginx::{Host, Line, Nginx};
use programs::{Called, Program, Who};
use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is asked of pages per CPU second: times each of these.
const ASKED_BARE: f64 = 0.7;
const ASKED_WGET2: f64 = 1.0;
const ASKED_WGET2_GZIP: f64 = 2.0;
const ASKED_WGET_WARC: f64 = 4.0;
const ASKED_SCRAPY: f64 = 30.0;

/// What each run needs.
struct Bench<'a> {
    workspace: &'a Workspace,
    site: PathBuf,
    /// Each run has a new folder in it: where files were just deleted, some file systems make new ones slowly, and whoever writes a file for
    /// each page would pay for the run before it.
    folder: PathBuf,
    runs: Cell<u32>,
    skep: PathBuf,
    bareloop: PathBuf,
}

/// What a program showed so far.
struct Shown {
    program: Program,
    pages: usize,
    answers: usize,
    packed: usize,
    /// The run with the least CPU time.
    best: Option<Run>,
    wall: Duration,
    /// Why there is no figure.
    absent: Option<String>,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    needs::venv(workspace)?;
    let bench = Bench {
        workspace,
        site: site::make(workspace)?,
        folder: material::folder(workspace)?.join("crawl"),
        runs: Cell::new(0),
        skep: long::build_dist(workspace, "skep", "--bin", "skep")?,
        bareloop: long::build_field(workspace, "bareloop")?,
    };
    if bench.folder.exists() {
        std::fs::remove_dir_all(&bench.folder)?;
    }
    let programs = programs::all(workspace)?;
    println!("site: {} pages in {}", count(site::pages(&bench.site)?), bench.site.display());
    for packed in [false, true] {
        let shown = bench.rounds(&programs, packed, options.runs)?;
        print(&shown, packed);
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

impl Bench<'_> {
    /// Every program, `runs` times.
    fn rounds(&self, programs: &[Program], packed: bool, runs: u32) -> Result<Vec<Shown>> {
        let mut shown: Vec<Shown> = programs.iter().map(|program| Shown::new(program.clone())).collect();
        for round in 0..runs.max(1) {
            for one in &mut shown {
                if round >= one.program.rounds_max || one.absent.is_some() {
                    continue;
                }
                match self.once(&one.program, packed) {
                    Ok((run, log)) => one.take(run, &log),
                    // A peer may be missing or fail; the table says so. We may not.
                    Err(error) if !one.program.who.is_ours() => one.absent = Some(format!("{error:#}")),
                    Err(error) => return Err(error.context(one.program.name)),
                }
            }
        }
        Ok(shown)
    }

    /// One run against a server of its own.
    fn once(&self, program: &Program, packed: bool) -> Result<(Run, Vec<Line>)> {
        self.runs.set(self.runs.get() + 1);
        let folder = self.folder.join(self.runs.get().to_string());
        let (server, into) = (folder.join("server"), folder.join("into"));
        for folder in [&server, &into] {
            std::fs::create_dir_all(folder)?;
        }
        let list = self.folder.join("list");
        let hosts = [Host { name: "127.0.0.1", root: &self.site }];
        let nginx = Nginx::start(&needs::nginx(self.workspace)?, &server, &hosts, packed)?;
        let called = Called { into: &into, address: nginx.address(), packed, list: &list };
        let command = program.command(self, &called);
        let run = measure::measure(&command, limits::CRAWL_RUN_MAX, None)?;
        let log = nginx.stop()?;
        if !program.ends_well(run.exit) {
            run.ok()?;
            bail!("an exit code that is not expected");
        }
        if program.who == Who::Skep {
            sound(&self.skep, &into)?;
            write_list(&list, &log)?;
        }
        Ok((run, log))
    }
}

/// What we wrote is as it should be.
fn sound(skep: &Path, archive: &Path) -> Result<()> {
    let mut check = std::process::Command::new(skep);
    check.arg("check").arg("--archive").arg(archive);
    measure::measure(&check, limits::BENCH_RUN_MAX, None)?.ok().context("skep check")?;
    Ok(())
}

/// What the bare loop is told to fetch: everything that was there when we crawled.
fn write_list(list: &Path, log: &[Line]) -> Result<()> {
    let mut seen = HashSet::new();
    let paths: String = log
        .iter()
        .filter(|line| line.status == 200 && seen.insert(&line.path))
        .map(|line| format!("{}\n", line.path))
        .collect();
    std::fs::write(list, paths).with_context(|| format!("{} cannot be written", list.display()))
}

impl Shown {
    fn new(program: Program) -> Shown {
        Shown { program, pages: 0, answers: 0, packed: 0, best: None, wall: Duration::MAX, absent: None }
    }

    fn take(&mut self, run: Run, log: &[Line]) {
        let pages = |line: &&Line| line.status == 200 && line.media == "text/html";
        let found: HashSet<&str> = log.iter().filter(pages).map(|line| line.path.as_str()).collect();
        self.wall = self.wall.min(run.wall);
        self.pages = found.len();
        self.answers = log.len();
        self.packed = log.iter().filter(pages).filter(|line| line.encoding == "gzip").count();
        println!(
            "{:<24} {:>6} pages, CPU {:>7.2} s, wall {:>7.2} s, {}",
            self.program.name,
            self.pages,
            run.cpu.as_secs_f64(),
            run.wall.as_secs_f64(),
            megabytes(run.max_rss_bytes)
        );
        if self.best.as_ref().is_none_or(|best| run.cpu < best.cpu) {
            self.best = Some(run);
        }
    }

    /// Pages per CPU second.
    fn rate(&self) -> Option<f64> {
        self.best.as_ref().map(|run| self.pages as f64 / run.cpu.as_secs_f64())
    }

    /// Pages per second.
    fn speed(&self) -> Option<f64> {
        self.best.as_ref().map(|_| self.pages as f64 / self.wall.as_secs_f64())
    }
}

fn print(shown: &[Shown], packed: bool) {
    let Some(ours) = shown.iter().find(|one| one.program.who == Who::Skep) else { return };
    let (Some(rate), Some(speed)) = (ours.rate(), ours.speed()) else { return };
    println!("\nanswers {}", if packed { "gzip" } else { "plain" });
    let heads = ["", "pages", "answers", "of them gzip", "us CPU/page", "pages/CPU s", "pages/s", "memory", "skep is"];
    let mut table = Table::new(&heads);
    for one in shown {
        let Some(run) = &one.best else {
            table.row(&[one.program.name.to_owned(), "no figure".to_owned()]);
            continue;
        };
        table.row(&[
            one.program.name.to_owned(),
            count(one.pages as u64),
            count(one.answers as u64),
            count(one.packed as u64),
            format!("{:.0}", run.cpu.as_secs_f64() * 1e6 / one.pages.max(1) as f64),
            count(one.rate().unwrap_or(0.0) as u64),
            count(one.speed().unwrap_or(0.0) as u64),
            megabytes(run.max_rss_bytes),
            ratio(rate, one.rate().unwrap_or(0.0)),
        ]);
    }
    print!("{}", table.render());
    for one in shown {
        if let Some(why) = &one.absent {
            println!("{}: {why}", one.program.name);
        }
    }
    println!();
    let of = |who: Who| shown.iter().find(|one| one.program.who == who);
    let bars = [
        (Who::Bare, None),
        (Who::BareField, Some(ASKED_BARE)),
        (Who::Wget2, Some(if packed { ASKED_WGET2_GZIP } else { ASKED_WGET2 })),
        (Who::WgetWarc, Some(ASKED_WGET_WARC)),
        (Who::Scrapy, Some(ASKED_SCRAPY)),
    ];
    for (who, asked) in bars {
        let Some(one) = of(who) else { continue };
        match one.rate() {
            Some(theirs) => {
                let held = asked.map_or("nothing asked".to_owned(), |asked| verdict(rate / theirs, asked));
                println!("CPU beside {:<24} {:.2}×: {held}", one.program.name, rate / theirs);
            }
            None => println!("CPU beside {:<24} no figure", one.program.name),
        }
    }
    for one in shown.iter().filter(|one| !one.program.who.is_ours()) {
        if let Some(theirs) = one.speed() {
            println!(
                "wall clock beside {:<17} {:.2}×: {}",
                one.program.name,
                speed / theirs,
                verdict(speed / theirs, 1.0)
            );
        }
    }
}
