//! Who is compared, and how each is called: recursively from the first page, everything of this host, as fast as it goes.

use super::Bench;
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    Skep,
    Bare,
    BareField,
    Wget,
    WgetWarc,
    Wget2,
    Httrack,
    Scrapy,
}

impl Who {
    /// Is it our own, and must it therefore work?
    pub fn is_ours(self) -> bool {
        matches!(self, Who::Skep | Who::Bare | Who::BareField)
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    pub who: Who,
    pub name: &'static str,
    /// Slow and steady ones are not run more often than this.
    pub rounds_max: u32,
}

/// Where a run finds the site and leaves what it keeps.
pub struct Called<'a> {
    pub into: &'a Path,
    pub address: SocketAddr,
    /// Answers are gzip for those who ask.
    pub packed: bool,
    /// What there is, for the one that does not look for itself.
    pub list: &'a Path,
}

/// Ourselves first: our log is the list of the bare loop.
const PROGRAMS: [Program; 8] = [
    Program { who: Who::Skep, name: "skep crawl", rounds_max: 9 },
    Program { who: Who::Bare, name: "bare loop, our parts", rounds_max: 9 },
    Program { who: Who::BareField, name: "bare loop, lol_html", rounds_max: 9 },
    Program { who: Who::Wget2, name: "wget2", rounds_max: 9 },
    Program { who: Who::Wget, name: "wget", rounds_max: 9 },
    Program { who: Who::WgetWarc, name: "wget --warc-file", rounds_max: 2 },
    Program { who: Who::Httrack, name: "httrack", rounds_max: 1 },
    Program { who: Who::Scrapy, name: "scrapy", rounds_max: 1 },
];

/// Everybody, with versions printed; what can be installed is.
pub fn all(workspace: &Workspace) -> Result<Vec<Program>> {
    needs::programs(&[("wget", "wget"), ("wget2", "wget2"), ("httrack", "httrack")])?;
    scrapy(workspace)?;
    let nginx = needs::nginx(workspace)?;
    let mut said = vec![version(Command::new(nginx).arg("-v"))];
    for name in ["wget", "wget2", "httrack"] {
        said.push(version(Command::new(name).arg("--version")));
    }
    let mut python = Command::new(workspace.python());
    python.args(["-c", "import scrapy, sys; print('Scrapy', scrapy.__version__, 'Python', sys.version.split()[0])"]);
    said.push(version(python.env("PYTHONPATH", scrapy_folder(workspace))));
    println!("peers: {}", said.join("; "));
    Ok(PROGRAMS.to_vec())
}

impl Program {
    pub fn command(&self, bench: &Bench<'_>, called: &Called<'_>) -> Command {
        let Called { into, address, packed, list } = *called;
        let url = format!("http://{address}/");
        match self.who {
            Who::Skep => {
                let mut skep = Command::new(&bench.skep);
                skep.arg("crawl").arg(&url).arg("--archive").arg(into);
                skep.args(["--own", "127.0.0.1", "--pace", "none", "--allow-private"]);
                skep
            }
            Who::Bare | Who::BareField => {
                let mut bare = Command::new(&bench.bareloop);
                bare.arg(address.to_string()).arg("127.0.0.1").arg(list);
                bare.arg(if self.who == Who::Bare { "ours" } else { "field" });
                bare
            }
            Who::Wget | Who::WgetWarc => {
                let mut wget = Command::new("wget");
                wget.args(["--quiet", "--recursive", "--level=inf", "--page-requisites", "--no-proxy"]);
                wget.args(["--execute=robots=off", "--tries=1", "--timeout=30"]);
                if packed {
                    wget.arg("--compression=auto");
                }
                if self.who == Who::WgetWarc {
                    wget.arg("--warc-file=site");
                }
                wget.arg(&url).current_dir(into);
                wget
            }
            Who::Wget2 => {
                let mut wget2 = Command::new("wget2");
                wget2.args(["--quiet", "--recursive", "--level=0", "--page-requisites", "--no-proxy", "--robots=off"]);
                wget2.args(["--tries=1", "--timeout=30", "--max-threads=8", "--no-config"]);
                wget2.arg(&url).current_dir(into);
                wget2
            }
            Who::Httrack => {
                let mut httrack = Command::new("httrack");
                httrack.arg(&url).arg("-O").arg(into);
                httrack.args(["--quiet", "--robots=0", "--depth=9999", "--sockets=16", "--max-rate=0"]);
                httrack.args(["--connection-per-second=0", "--disable-security-limits", "--retries=0", "-I0"]);
                httrack
            }
            Who::Scrapy => {
                let mut scrapy = super::super::peer(bench.workspace, "scrapy_links.py");
                scrapy.arg(&url).env("PYTHONPATH", scrapy_folder(bench.workspace)).current_dir(into);
                scrapy
            }
        }
    }

    /// Whether it ended as it should; wget's 8 says that some pages were not there, which is so.
    pub fn ends_well(&self, exit: i32) -> bool {
        exit == 0 || exit == 8 && matches!(self.who, Who::Wget | Who::WgetWarc | Who::Wget2)
    }
}

/// The first line a program prints about itself.
fn version(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return "absent".into() };
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned()
}

const SCRAPY_PINS: &str = "crates/xtask/peers/scrapy.txt";

fn scrapy_folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("peers/scrapy")
}

/// Installs Scrapy and what it needs, pinned, beside the environment of the tests, which has no use for it.
fn scrapy(workspace: &Workspace) -> Result<()> {
    let folder = scrapy_folder(workspace);
    let pins = std::fs::read_to_string(workspace.root.join(SCRAPY_PINS)).with_context(|| SCRAPY_PINS)?;
    let stamp = folder.join("complete");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == pins) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    println!("installing what {SCRAPY_PINS} pins");
    let mut pip = Command::new(workspace.python());
    pip.args([
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-deps",
        "--requirement",
        SCRAPY_PINS,
    ]);
    if !pip.arg("--target").arg(&folder).current_dir(&workspace.root).status()?.success() {
        bail!("pip could not install what {SCRAPY_PINS} pins");
    }
    Ok(std::fs::write(stamp, pins)?)
}
