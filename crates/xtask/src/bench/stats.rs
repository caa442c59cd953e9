//! Counting: what a collection of a million captures amounts to, and the versions of one of its URLs, from the start of a process to the
//! last byte of its answer; as a command, and over HTTP by a portal that was just started.

use super::best;
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure;
use crate::table::{Table, count};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const COLLECTION: &str = "counted";

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let skep = long::build_dist(workspace, "skep", "--bin", "skep")?;
    let captures = options.count.unwrap_or(limits::STATS_CAPTURES);
    let (archive, url) = archive(workspace, &skep, captures)?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&skep);
        command.arg("--archive").arg(&archive).args(arguments);
        command
    };
    // The first run also reads the files into memory.
    let stats = best(&command(&["--json", "stats", "--collection", COLLECTION]), options.runs + 1, None)?;
    let sums: serde_json::Value = serde_json::from_str(stats.stdout.trim()).context("no JSON object was printed")?;
    if sums["captures"].as_u64() != Some(captures) {
        bail!("{} captures were counted instead of {captures}", sums["captures"]);
    }
    let versions = best(&command(&["--json", "captures", &url]), options.runs, None)?;
    println!(
        "{} captures, {} URLs, {} versions, {} duplicates; {} captures of one URL",
        count(captures),
        count(sums["urls"].as_u64().unwrap_or(0)),
        count(sums["versions"].as_u64().unwrap_or(0)),
        count(sums["duplicates"].as_u64().unwrap_or(0)),
        versions.stdout.lines().count()
    );
    let mut table = Table::new(&["from the start of a process", "wall ms", "CPU ms"]);
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1000.0);
    table.row(&["skep stats".into(), ms(stats.wall), ms(stats.cpu)]);
    table.row(&["skep captures URL".into(), ms(versions.wall), ms(versions.cpu)]);
    let mut slowest = stats.wall.max(versions.wall);
    let pages = [
        ("portal: statistics", format!("/api/v1/statistics?collection={COLLECTION}")),
        ("portal: versions and duplicates of a URL", format!("/api/v1/url?url={url}")),
    ];
    for (name, target) in &pages {
        let mut quickest: Option<Duration> = None;
        for _ in 0..options.runs.max(1) {
            let took = served(&mut command(&["serve", "--listen", "127.0.0.1:0"]), target)?;
            quickest = Some(quickest.map_or(took, |known| known.min(took)));
        }
        let took = quickest.unwrap_or_default();
        slowest = slowest.max(took);
        table.row(&[(*name).to_owned(), ms(took)]);
    }
    print!("\n{}", table.render());
    let within = if slowest <= limits::STATS_MAX { "reached" } else { "SHORT" };
    println!("\nslowest  {} ms: {within} (asked at most {} ms)", ms(slowest), limits::STATS_MAX.as_millis());
    Ok(())
}

/// An archive with a collection of so many made-up captures, and one of their URLs with several; made once.
fn archive(workspace: &Workspace, skep: &Path, captures: u64) -> Result<(PathBuf, String)> {
    let folder = material::folder(workspace)?.join(format!("stats-{captures}"));
    let (archive, chosen) = (folder.join("archive"), folder.join("url"));
    if let Ok(url) = std::fs::read_to_string(&chosen) {
        return Ok((archive, url));
    }
    println!("making {} captures (once)", count(captures));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let lookup = long::build_dist(workspace, "skep-archive", "--example", "lookup")?;
    let index = folder.join("captures.cdxj");
    let mut make = Command::new(lookup);
    make.arg(folder.join("view")).args(["--captures", &captures.to_string(), "--look-ups", "1"]);
    measure::measure(make.arg("--cdxj").arg(&index), limits::BENCH_RUN_MAX, None)?.ok()?;
    let (mut files, mut url, mut run, mut last, mut longest) =
        (BTreeSet::new(), String::new(), 0u64, String::new(), 0u64);
    for line in BufReader::new(std::fs::File::open(&index)?).lines() {
        let line = line?;
        let Some((key, rest)) = line.split_once(' ') else { continue };
        let fields: serde_json::Value =
            rest.split_once(' ').map(|(_, json)| serde_json::from_str(json)).context("no fields")??;
        let name = fields["filename"].as_str().context("a line names no file")?;
        if !files.contains(name) {
            files.insert(name.to_owned());
        }
        run = if key == last { run + 1 } else { 1 };
        key.clone_into(&mut last);
        if run > longest {
            longest = run;
            fields["url"].as_str().context("a line has no URL")?.clone_into(&mut url);
        }
    }
    // The index names files; what is in them is not looked at, so holes will do.
    for name in &files {
        std::fs::File::create(folder.join(name))?.set_len(limits::STATS_FILE_BYTES)?;
    }
    let mut add = Command::new(skep);
    add.arg("--archive").arg(&archive).args(["add", "--collection", COLLECTION]).arg(&index);
    measure::measure(&add, limits::BENCH_RUN_MAX, None)?.ok()?;
    std::fs::remove_dir_all(folder.join("view"))?;
    std::fs::remove_file(&index)?;
    std::fs::write(&chosen, &url)?;
    Ok((archive, url))
}

/// Ends a portal that was started, whatever happens.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _gone_already = self.0.wait();
    }
}

/// From the start of a portal to the end of its first answer.
fn served(command: &mut Command, target: &str) -> Result<Duration> {
    let began = Instant::now();
    let child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("skep serve could not be started")?;
    let mut serving = Serving(child);
    let mut said = BufReader::new(serving.0.stderr.take().context("no pipe")?).lines();
    let address = loop {
        let line = said.next().context("skep serve ended")??;
        if let Some((_, behind)) = line.split_once("http://127.0.0.1:") {
            break format!("127.0.0.1:{}", behind.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
        }
    };
    let mut stream = TcpStream::connect(&address).with_context(|| address.clone())?;
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let took = began.elapsed();
    if !answer.starts_with(b"HTTP/1.1 200") {
        bail!("{target} was answered with {}", String::from_utf8_lossy(&answer[..answer.len().min(500)]));
    }
    Ok(took)
}
