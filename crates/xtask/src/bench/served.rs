//! Two servers over the same archive files, ours and pywb, each asked by wrk for the same list of paths; one process each, one after
//! the other, files warm.

use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A page of the archive: 14 digits and its URL.
pub struct Page {
    pub time: String,
    pub url: String,
}

/// The material of a bench.
pub struct Served {
    folder: PathBuf,
    pub warc: PathBuf,
    pub pages: Vec<Page>,
}

/// A server that runs; it ends with this.
pub struct Server {
    child: Child,
    /// Where it listens: `127.0.0.1:PORT`.
    address: String,
    /// The name that it is asked under.
    host: String,
}

/// What wrk saw, and what the server spent.
#[derive(Clone, Copy)]
pub struct Load {
    pub per_second: f64,
    pub p99_ms: f64,
    pub cpu_us_each: f64,
    pub memory_bytes: u64,
}

impl Served {
    /// Makes the archive for both, once, and lists pages of it.
    pub fn make(workspace: &Workspace, options: &Options) -> Result<Served> {
        needs::venv(workspace)?;
        needs::programs(&[("wrk", "wrk")])?;
        let skep = long::build_dist(workspace, "skep", "--bin", "skep")?;
        let warc = material::pages(workspace, options, limits::SERVED_BYTES)?;
        let folder = material::folder(workspace)?.join("served");
        let ready = folder.join("complete");
        if !ready.is_file() {
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
            std::fs::create_dir_all(&folder)?;
            println!("indexing {} for both (once)", warc.display());
            must(Command::new(&skep).arg("add").arg(&warc).arg("--archive").arg(folder.join("archive")), "skep add")?;
            let manager = workspace.python().with_file_name("wb-manager");
            must(Command::new(&manager).args(["init", "bench"]).current_dir(&folder), "wb-manager init")?;
            must(Command::new(&manager).args(["add", "bench"]).arg(&warc).current_dir(&folder), "wb-manager add")?;
            std::fs::write(folder.join("config.yaml"), "framed_replay: false\nenable_memento: true\n")?;
            std::fs::write(&ready, "")?;
        }
        let pages = pages(&folder.join("collections/bench/indexes/index.cdxj"))?;
        Ok(Served { folder, warc, pages })
    }

    /// Ours.
    pub fn skep(&self, workspace: &Workspace) -> Result<Server> {
        let skep = long::build_dist(workspace, "skep", "--bin", "skep")?;
        let mut command = Command::new(skep);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--archive"]).arg(self.folder.join("archive"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("skep serve")?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let said = lines.next().context("skep serve said nothing")??;
        let said: serde_json::Value = serde_json::from_str(&said)?;
        // Somebody must read the log, as somebody would.
        std::thread::spawn(move || lines.for_each(drop));
        let place = |name: &str| {
            let url = said[name].as_str().unwrap_or_default();
            url.trim_start_matches("http://").trim_end_matches('/').to_owned()
        };
        Ok(Server { child, address: place("portal"), host: place("replay") })
    }

    /// pywb.
    pub fn pywb(&self, workspace: &Workspace) -> Result<Server> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(workspace.python().with_file_name("wayback"));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]).current_dir(&self.folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("wayback")?;
        let address = format!("127.0.0.1:{port}");
        let server = Server { child, host: address.clone(), address };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            if begun.elapsed() > Duration::from_secs(60) {
                bail!("wayback does not listen");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }
}

impl Server {
    /// Asked under the portal's name, not under that of archived pages.
    pub fn portal(mut self) -> Server {
        self.host.clone_from(&self.address);
        self
    }

    /// Asks for these paths, round and round.
    pub fn load(&self, workspace: &Workspace, paths: &[String]) -> Result<Load> {
        let list = material::folder(workspace)?.join("served/paths");
        std::fs::write(&list, paths.join("\n"))?;
        let script = workspace.root.join("crates/xtask/peers/paths.lua");
        let mut wrk = Command::new("wrk");
        wrk.args(["--threads", "1", "--connections", "8", "--latency", "--timeout", "20s"]);
        wrk.args(["--header", &format!("Host: {}", self.host), "--script"]).arg(script);
        wrk.env("PATHS", &list);
        let run = |seconds: u64| -> Result<String> {
            let mut wrk = clone(&wrk);
            wrk.args(["--duration", &format!("{seconds}s")]).arg(format!("http://{}", self.address));
            let output = wrk.output().context("wrk could not be started")?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        run(limits::SERVED_WARM_SECONDS)?;
        let before = self.cpu()?;
        let said = run(limits::SERVED_SECONDS)?;
        let spent = self.cpu()? - before;
        if said.contains("Non-2xx") || said.contains("Socket errors") {
            bail!("not every answer was one:\n{said}");
        }
        let after = |word: &str| {
            let line = said.lines().find(|line| line.trim_start().starts_with(word));
            line.and_then(|line| line.split_whitespace().last()).map(str::to_owned)
        };
        let per_second: f64 = after("Requests/sec:").context("no rate")?.parse()?;
        let asked = said.lines().find(|line| line.contains(" requests in ")).context("no count")?;
        let asked: f64 = asked.split_whitespace().next().context("no count")?.parse()?;
        let p99_ms = milliseconds(&after("99%").context("no latency")?).context("no latency")?;
        let cpu_us_each = spent.as_secs_f64() * 1e6 / asked.max(1.0);
        Ok(Load { per_second, p99_ms, cpu_us_each, memory_bytes: self.memory()? })
    }

    /// CPU time of the process so far, in ticks of ten milliseconds.
    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
        let kilobytes: u64 = line.split_whitespace().nth(1).context("no VmHWM")?.parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that has ended already is as good.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Both versions, and what they are measured on.
pub fn versions(workspace: &Workspace) -> Result<()> {
    super::versions(workspace, &["pywb"])?;
    let wrk = Command::new("wrk").arg("-v").output().context("wrk could not be started")?;
    println!("{}", String::from_utf8_lossy(&wrk.stdout).lines().next().unwrap_or_default());
    Ok(())
}

/// HTML pages that were found, spread over the index.
fn pages(cdxj: &Path) -> Result<Vec<Page>> {
    let text = std::fs::read_to_string(cdxj).with_context(|| format!("{} cannot be read", cdxj.display()))?;
    let all: Vec<Page> = text
        .lines()
        .filter_map(|line| {
            let (_key, rest) = line.split_once(' ')?;
            let (time, json) = rest.split_once(' ')?;
            let entry: serde_json::Value = serde_json::from_str(json).ok()?;
            let page = entry["mime"] == "text/html" && entry["status"] == "200";
            page.then(|| Page { time: time.to_owned(), url: entry["url"].as_str().unwrap_or_default().to_owned() })
        })
        .collect();
    let step = (all.len() / limits::SERVED_PAGES).max(1);
    Ok(all.into_iter().step_by(step).collect())
}

fn clone(command: &Command) -> Command {
    let mut same = Command::new(command.get_program());
    same.args(command.get_args());
    same.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    same
}

/// `1.23ms`, `456.00us`, `1.20s`.
fn milliseconds(text: &str) -> Option<f64> {
    let split = text.find(|byte: char| byte.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    Some(match &text[split..] {
        "us" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        _ => number * 6e4,
    })
}

fn must(command: &mut Command, what: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("{what} could not be started"))?;
    if !output.status.success() {
        bail!("{what} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_of_wrk_are_read() {
        for (text, ms) in [("1.50ms", 1.5), ("250.00us", 0.25), ("2.00s", 2_000.0), ("1.00m", 60_000.0)] {
            assert_eq!(milliseconds(text), Some(ms));
        }
        assert_eq!(milliseconds("nothing"), None);
    }
}
