//! What the tests need beyond Rust, and how it gets here: cargo-nextest, a few Debian packages, and the peers' Python
//! environment with every version pinned. What need not be installed is only unpacked: real documentation, a web server.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which program runs the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// One process per test, a time limit for each.
    Nextest,
    /// Cargo's own; the same tests without time limits.
    CargoTest,
}

/// cargo-nextest, installed from source when absent; where that fails the tests still run, under `cargo test`.
pub fn runner(workspace: &Workspace) -> Runner {
    if quiet(workspace.cargo().args(["nextest", "--version"])) {
        return Runner::Nextest;
    }
    println!("cargo-nextest is absent; `cargo install --locked cargo-nextest` (a few minutes, once)");
    let installed = workspace.cargo().args(["install", "--locked", "cargo-nextest"]).status();
    if installed.is_ok_and(|status| status.success()) && quiet(workspace.cargo().args(["nextest", "--version"])) {
        return Runner::Nextest;
    }
    println!("cargo-nextest could not be installed; the tests run under `cargo test`, without a time limit for each");
    Runner::CargoTest
}

/// Something of the system that a test calls, and the Debian package that brings it.
struct Need {
    package: &'static str,
    why: &'static str,
    present: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need { package: "git", why: "sites made from a repository's history", present: || on_path("git") },
    Need { package: "python3", why: "the peers' environment", present: || on_path("python3") },
    Need {
        package: "python3-venv",
        why: "the peers' environment",
        present: || quiet(Command::new("python3").args(["-c", "import venv, ensurepip"])),
    },
    Need {
        package: "python3-dev",
        why: "the brotli binding that pywb asks for is compiled on the spot",
        present: || {
            let header = "import os, sysconfig; \
                          raise SystemExit(not os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'))";
            quiet(Command::new("python3").args(["-c", header]))
        },
    },
    Need { package: "gcc", why: "the same", present: || on_path("cc") || on_path("gcc") },
    Need { package: "wget", why: "archives that another crawler writes", present: || on_path("wget") },
    Need { package: "chromium", why: "archived pages in a real browser", present: || on_path("chromium") },
    Need { package: "chromium-driver", why: "the same", present: || on_path("chromedriver") },
    Need { package: "postgresql", why: "changes carried into a database", present: has_postgresql },
    Need {
        package: "nats-server",
        why: "changes carried to a broker",
        present: || on_path("nats-server") || is_program(Path::new("/usr/sbin/nats-server")),
    },
    Need {
        package: "iproute2",
        why: "rings of nodes, each on a network of its own",
        present: || on_path("ip") || is_program(Path::new("/usr/sbin/ip")),
    },
    Need { package: "npm", why: "ReplayWeb.page, which shows exported packages", present: || on_path("npm") },
];

/// Debian keeps its programs off the path, in a folder for each version.
pub fn has_postgresql() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    on_path("initdb") || versions.into_iter().any(|version| is_program(&version.path().join("bin/initdb")))
}

/// Installs the Debian packages whose commands are absent; says what to install where it may not.
pub fn system() -> Result<()> {
    let absent: Vec<&Need> = NEEDS.iter().filter(|need| !(need.present)()).collect();
    if absent.is_empty() {
        println!("nothing missing from the system");
        return Ok(());
    }
    let names: Vec<&str> = absent.iter().map(|need| need.package).collect();
    for need in &absent {
        println!("missing: {} ({})", need.package, need.why);
    }
    if !on_path("apt-get") || !is_root() {
        let install = format!("apt-get install {}", names.join(" "));
        bail!(
            "the tests need {}; install what your system calls so (Debian: `sudo {install}`) and run this again",
            names.join(", ")
        );
    }
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"][..], &names].concat())?;
    for need in absent {
        if !(need.present)() {
            bail!("{} is installed, and what it should bring is still absent ({})", need.package, need.why);
        }
    }
    Ok(())
}

/// Installs commands that only a bench calls, as far as that is possible here: `(command, package)`.
pub fn programs(wanted: &[(&str, &str)]) -> Result<()> {
    let absent: Vec<&str> = wanted.iter().filter(|(name, _)| !on_path(name)).map(|(_, package)| *package).collect();
    if absent.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") || !is_root() {
        println!("absent, and not installed for you: {}", absent.join(", "));
        return Ok(());
    }
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"][..], &absent].concat())
}

/// The files of a Debian package that need not be installed, fetched and unpacked once, in a folder of its name.
pub fn files_of(workspace: &Workspace, package: &str) -> Result<PathBuf> {
    let own = unpacked(workspace).join(package);
    if own.is_dir() {
        return Ok(own);
    }
    if !on_path("apt-get") || !on_path("dpkg-deb") {
        bail!("apt-get and dpkg-deb are needed to fetch {package}");
    }
    println!("fetching {package}");
    let part = unpacked(workspace).join(format!("{package}.part"));
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    let packages = part.join("package");
    std::fs::create_dir_all(&packages).with_context(|| format!("{} cannot be made", packages.display()))?;
    let download = || {
        let mut command = Command::new("apt-get");
        // As root, apt would rather download as a user who cannot write here, and says so each time.
        command.args(["-o", "APT::Sandbox::User=root", "--quiet", "--quiet", "download", package]);
        command.current_dir(&packages);
        command
    };
    if !download().status().is_ok_and(|status| status.success()) {
        // The usual reason on a fresh machine: no package lists yet.
        must(Command::new("apt-get").args(["--quiet", "--quiet", "update"]), "apt-get update")?;
        must(&mut download(), "apt-get download")?;
    }
    let file =
        std::fs::read_dir(&packages)?.next().with_context(|| format!("apt-get left no file for {package}"))??;
    let files = part.join("files");
    must(Command::new("dpkg-deb").arg("-x").arg(file.path()).arg(&files), "dpkg-deb")?;
    std::fs::rename(&files, &own)?;
    std::fs::remove_dir_all(&part)?;
    Ok(own)
}

/// Where packages are unpacked.
pub fn unpacked(workspace: &Workspace) -> PathBuf {
    workspace.target().join("bench/pages")
}

/// nginx: the one that is installed, or Debian's, unpacked. Installing it would start a web server for everybody.
pub fn nginx(workspace: &Workspace) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    if let Some(found) = folders.map(|folder| folder.join("nginx")).find(|path| is_program(path)) {
        return Ok(found);
    }
    let found = std::path::absolute(files_of(workspace, "nginx")?.join("usr/sbin/nginx"))?;
    if !quiet(Command::new(&found).arg("-v")) {
        bail!("{} does not run here; install nginx (its service is not needed) and run this again", found.display());
    }
    Ok(found)
}

/// The documentation that the mirror tests crawl, and the server in front of it. Where there are no Debian packages they cannot
/// run, which is said, and is no failure.
pub fn documentation(workspace: &Workspace, packages: &[&str]) -> Result<Option<Documentation>> {
    if !on_path("apt-get") && !packages.iter().all(|package| unpacked(workspace).join(package).is_dir()) {
        println!("the mirror tests will not run: without apt-get there is no {}", packages.join(", "));
        return Ok(None);
    }
    for package in packages {
        files_of(workspace, package)?;
    }
    Ok(Some(Documentation { folder: std::path::absolute(unpacked(workspace))?, nginx: nginx(workspace)? }))
}

/// What the mirror tests are told.
pub struct Documentation {
    folder: PathBuf,
    nginx: PathBuf,
}

impl Documentation {
    /// As environment variables.
    pub fn variables(&self) -> [(&'static str, &Path); 2] {
        [("SKEP_DOCUMENTATION", &self.folder), ("SKEP_NGINX", &self.nginx)]
    }
}

/// The packages of the test; the soak asks for more.
pub const DOCUMENTATION: [&str; 2] = ["git-doc", "postgresql-doc-15"];

/// ReplayWeb.page as it is published, and the hash that npm must find it to have.
const REPLAYWEBPAGE: &str = "replaywebpage@2.4.6";
const REPLAYWEBPAGE_INTEGRITY: &str =
    "sha512-uG50jESRld0p+fY7+nUxIWl7hvfimreNjSmaNkc/a9a8gBdmb7PH4J42Iib+vgk9KrHd0HLScVT++LgqV5fwpQ==";

/// ReplayWeb.page, unpacked: a page, its script and its service worker, complete as they are. Nothing is installed: what npm would install
/// besides is for those who build them anew.
pub fn replaywebpage(workspace: &Workspace) -> Result<PathBuf> {
    let own = std::path::absolute(workspace.target().join(REPLAYWEBPAGE))?;
    if own.is_dir() {
        return Ok(own);
    }
    println!("fetching {REPLAYWEBPAGE}");
    let part = own.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(&part).with_context(|| format!("{} cannot be made", part.display()))?;
    let mut pack = Command::new("npm");
    pack.args(["pack", REPLAYWEBPAGE, "--json"]).current_dir(&part).stderr(Stdio::inherit());
    let packed = pack.output().context("npm could not be started")?;
    if !packed.status.success() {
        bail!("npm pack failed ({}; it needs a registry within reach)", packed.status);
    }
    let told: serde_json::Value =
        serde_json::from_slice(&packed.stdout).context("npm pack told something else than JSON")?;
    if told[0]["integrity"] != REPLAYWEBPAGE_INTEGRITY {
        bail!("{REPLAYWEBPAGE} is another file than it was: {}", told[0]["integrity"]);
    }
    let file = told[0]["filename"].as_str().context("npm pack names no file")?;
    must(Command::new("tar").args(["-xzf", file]).current_dir(&part), "tar")?;
    std::fs::rename(part.join("package"), &own)?;
    std::fs::remove_dir_all(&part)?;
    Ok(own)
}

/// The pins, beside the program that installs them.
const REQUIREMENTS: &str = "crates/xtask/requirements.txt";

/// The peers' environment under `target/venv`. A stamp with the pins and the interpreter's version, written last, says that
/// it is complete; anything else is built anew.
pub fn venv(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("venv");
    let stamp = folder.join("complete");
    let pins = std::fs::read_to_string(workspace.root.join(REQUIREMENTS))
        .with_context(|| format!("{REQUIREMENTS} cannot be read"))?;
    let version = Command::new("python3").arg("--version").output().context("python3 could not be started")?;
    let wanted = format!("{}{pins}", String::from_utf8_lossy(&version.stdout));
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && workspace.python().is_file() {
        println!("peers in {} are as pinned", folder.display());
        return Ok(());
    }
    println!("making {} from {REQUIREMENTS}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    must(Command::new("python3").args(["-m", "venv"]).arg(&folder), "python3 -m venv")?;
    let pip = || {
        let mut command = Command::new(workspace.python());
        command.args(["-m", "pip", "--disable-pip-version-check"]);
        command
    };
    must(
        pip().args(["install", "--quiet", "--requirement", REQUIREMENTS]).current_dir(&workspace.root),
        "pip install (it needs a package index within reach)",
    )?;
    let frozen = pip().args(["freeze", "--all"]).output().context("pip could not be started")?;
    let unmet = unmet_pins(&pins, &String::from_utf8_lossy(&frozen.stdout));
    if !unmet.is_empty() {
        bail!("pip installed other versions than {REQUIREMENTS} pins: {}", unmet.join(", "));
    }
    std::fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

/// Pins that `pip freeze` does not confirm. Names compare as pip compares them: case and `-`, `_`, `.` do not count.
fn unmet_pins(pins: &str, frozen: &str) -> Vec<String> {
    let normal = |line: &str| {
        let (name, version) = line.split_once("==")?;
        Some(format!("{}=={}", name.trim().to_lowercase().replace(['_', '.'], "-"), version.trim()))
    };
    let installed: Vec<String> = frozen.lines().filter_map(normal).collect();
    pins.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(normal)
        .filter(|pin| !installed.contains(pin))
        .collect()
}

fn apt(arguments: &[&str]) -> Result<()> {
    println!("apt-get {}", arguments.join(" "));
    must(
        Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()),
        "apt-get",
    )
}

fn must(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{what} could not be started"))?;
    if !status.success() {
        bail!("{what} failed ({status}); its messages are above");
    }
    Ok(())
}

/// Whether a command succeeds; its output is of no interest.
fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Whether a command of this name can be started.
pub fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| is_program(&folder.join(name))))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// May this make network namespaces?
pub fn has_namespaces() -> bool {
    is_root() && quiet(Command::new("ip").args(["netns", "list"]))
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_counts_as_met_whatever_its_spelling() {
        let pins = "# peers\ncdxj_indexer==1.5.0\nPy3AMF==0.9.1\nzope.event==6.2\n";
        assert!(unmet_pins(pins, "cdxj-indexer==1.5.0\npy3amf==0.9.1\nzope-event==6.2\n").is_empty());
    }

    #[test]
    fn another_version_and_an_absent_package_are_unmet() {
        assert_eq!(unmet_pins("warcio==1.8.1\nsurt==0.3.1\n", "warcio==1.8.0\n"), ["warcio==1.8.1", "surt==0.3.1"]);
    }

    #[test]
    fn a_command_is_found_on_the_path_or_not_at_all() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-command-anywhere"));
    }
}
