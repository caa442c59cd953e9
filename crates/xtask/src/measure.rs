//! What one run of a program costs: wall time, CPU time and the most memory it held.
//!
//! The kernel keeps a process's peak memory only for its parent, as a maximum over all children, so each run gets a fresh
//! parent of its own: this program again, started as `measured`, with that one child. Its own few megabytes are the least that
//! can be measured.
//!
//! ```text
//! xtask bench ──▶ xtask measured REPORT -- program …      REPORT: wall_us cpu_us max_rss_bytes exit
//!      ▲                          │ one child, getrusage(CHILDREN)
//!      └────── stdout, stderr ────┘
//! ```

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a run cost and what it said.
#[derive(Debug, Clone)]
pub struct Run {
    pub wall: Duration,
    /// User and system time of the program and of everything it waited for.
    pub cpu: Duration,
    pub max_rss_bytes: u64,
    /// The exit code; 128 and more for a signal, as shells have it.
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The run, if it ended well.
    pub fn ok(self) -> Result<Run> {
        if self.exit == 0 {
            return Ok(self);
        }
        let said: Vec<&str> = self.stderr.lines().rev().take(12).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        bail!("exit code {}; it said:\n{}", self.exit, said.join("\n"))
    }

    /// A number that the program printed as `name=123`.
    pub fn figure(&self, name: &str) -> Result<u64> {
        let value = self.stdout.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let value = value.with_context(|| format!("no `{name}=` in what it printed: {}", self.stdout.trim()))?;
        value.parse().with_context(|| format!("`{name}={value}` is no number"))
    }
}

/// Runs a program to its end under a time limit. Its standard output and error are kept, or, with `into`, its standard output
/// goes to a file.
pub fn measure(command: &Command, limit: Duration, into: Option<&Path>) -> Result<Run> {
    let name = command.get_program().to_string_lossy().into_owned();
    let report = report_path();
    let mut helper = Command::new("/proc/self/exe");
    helper.arg("measured").arg(&report).arg("--").arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => helper.env(key, value),
            None => helper.env_remove(key),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        helper.current_dir(folder);
    }
    match into {
        Some(path) => {
            let file = std::fs::File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
            helper.stdout(file)
        }
        None => helper.stdout(Stdio::piped()),
    };
    // A group of its own, so that a time limit ends the helper and its child together.
    let mut child = helper.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let group = Pid::from_raw(child.id().cast_signed());
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait()));
    let Ok(ended) = waiting.recv_timeout(limit) else {
        killpg(group, Signal::SIGKILL).context("a program over its time limit could not be ended")?;
        waiting.recv().ok();
        std::fs::remove_file(&report).ok();
        bail!("{name} was ended after its time limit of {} s", limit.as_secs());
    };
    ended.with_context(|| format!("{name} could not be waited for"))?;
    let text = |handle: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&handle.join().unwrap_or_default()).into_owned()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    let figures = std::fs::read_to_string(&report).with_context(|| format!("{name} left no figures: {stderr}"));
    std::fs::remove_file(&report).ok();
    let figures: Vec<u64> = figures?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [wall_us, cpu_us, max_rss_bytes, exit] = figures[..] else { bail!("{name}: {}", stderr.trim()) };
    Ok(Run {
        wall: Duration::from_micros(wall_us),
        cpu: Duration::from_micros(cpu_us),
        max_rss_bytes,
        exit: i32::try_from(exit).unwrap_or(i32::MAX),
        stdout,
        stderr,
    })
}

/// The helper's side: one child, its figures into the report.
pub fn measured(report: &Path, program: &[String]) -> Result<()> {
    let [name, arguments @ ..] = program else { bail!("nothing to measure") };
    let began = Instant::now();
    let status = Command::new(name).args(arguments).status().with_context(|| format!("{name} could not be started"))?;
    let wall = began.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the kernel gave no figures")?;
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let exit = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Linux counts the peak in KiB.
    let figures = format!("{} {} {} {}\n", wall.as_micros(), cpu_us, usage.max_rss() * 1024, exit);
    std::fs::write(report, figures).with_context(|| format!("{} cannot be written", report.display()))
}

/// Instructions that a program executes, counted by valgrind; independent of what else the machine does, and slow.
pub fn instructions(command: &Command, limit: Duration) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args());
    let run = measure(&valgrind, limit, None)?.ok().context("valgrind")?;
    let line = run.stderr.lines().find(|line| line.contains("I refs:")).context("valgrind printed no count")?;
    let digits: String =
        line.split("I refs:").last().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().context("valgrind's count is no number")
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks early has given what there was.
            let _whatever_came = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn report_path() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("xtask-{}-{}.figures", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}
