//! `cargo xtask test`: the spine. Each step says what it is, how long it took and, when it fails, what to do about it.

use crate::needs::{self, Runner};
use crate::tidy;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a run of the tests may leave out.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Only the tests of this package (its name, such as skep-warc); everything else runs as always
    #[arg(long, short)]
    package: Option<String>,
}

/// Where the corpora are, or why their tests will not run.
#[derive(Debug, PartialEq, Eq)]
pub enum Corpora {
    At(PathBuf),
    Absent(String),
}

impl Corpora {
    /// Where `SKEP_CORPORA` says, else beside the workspace.
    pub fn find(workspace: &Workspace) -> Corpora {
        let beside = workspace.root.join("../shared/corpora");
        corpora(std::env::var_os("SKEP_CORPORA").map(PathBuf::from), beside)
    }
}

/// Runs everything; the first failure ends it.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let corpora = Corpora::find(workspace);
    let scope: Vec<&str> = match &options.package {
        Some(package) => vec!["--package", package],
        None => vec!["--workspace"],
    };
    let mut log = Log::begin();

    log.step("format", || {
        let hint = "`cargo fmt` puts it right";
        let scope = options.package.as_deref().map_or(vec!["--all"], |package| vec!["--package", package]);
        must(workspace.cargo().args(["fmt", "--check"]).args(scope), hint)
    })?;
    log.step("tidy", || tidy::run(workspace))?;
    log.step("clippy", || {
        let hint =
            "a warning is an error here; the lint's page says why, `#[expect(…, reason = \"…\")]` is the exception";
        let mut clippy = workspace.cargo();
        clippy.args(["clippy", "--release", "--quiet", "--all-targets"]).args(&scope).args(["--", "-D", "warnings"]);
        must(&mut clippy, hint)
    })?;
    log.step("build", || {
        let hint = "the compiler's messages are above";
        must(workspace.cargo().args(["test", "--release", "--quiet", "--no-run"]).args(&scope), hint)
    })?;
    let mut runner = Runner::CargoTest;
    let mut documentation = None;
    let mut replaywebpage = PathBuf::new();
    log.step("what the tests need", || {
        runner = needs::runner(workspace);
        needs::system()?;
        needs::venv(workspace)?;
        replaywebpage = needs::replaywebpage(workspace)?;
        documentation = needs::documentation(workspace, &needs::DOCUMENTATION)?;
        Ok(())
    })?;
    log.step("tests", || {
        let mut tests = workspace.cargo();
        match runner {
            Runner::Nextest => {
                // The long ones wait most of the time: for the pace of a site, for a lease to end.
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let at_once = (cores + cores.div_ceil(2)).to_string();
                tests.args(["nextest", "run", "--release", "--no-tests", "pass", "--test-threads", &at_once])
            }
            Runner::CargoTest => tests.args(["test", "--release", "--tests"]),
        };
        tests.args(&scope).env("SKEP_PYTHON", absolute(workspace.python())?).env("SKEP_CHROMEDRIVER", "chromedriver");
        tests.env("SKEP_REPLAYWEBPAGE", &replaywebpage);
        // What needs namespaces fails then where it cannot have them, and does not pass without having run.
        tests.envs(needs::has_namespaces().then_some(("SKEP_NAMESPACES", "1")));
        tests.envs(documentation.iter().flat_map(needs::Documentation::variables));
        match &corpora {
            Corpora::At(folder) => {
                println!("corpora: {}", folder.display());
                tests.env("SKEP_CORPORA", folder);
            }
            Corpora::Absent(why) => {
                println!("corpus tests not run: {why}");
                tests.env_remove("SKEP_CORPORA");
            }
        }
        let hint =
            "the failures are listed above; `cargo nextest run --release -p PACKAGE NAME` runs one of them again";
        must(&mut tests, hint)
    })?;
    log.step("examples in the documentation", || {
        if !has_library(&workspace.metadata(false)?, options.package.as_deref()) {
            println!("a program without a library has none");
            return Ok(());
        }
        let hint = "an example in a doc comment no longer compiles or no longer holds";
        must(workspace.cargo().args(["test", "--release", "--quiet", "--doc"]).args(&scope), hint)
    })?;

    log.summary();
    println!("  tests ran under {}", if runner == Runner::Nextest { "cargo nextest" } else { "cargo test" });
    match &corpora {
        Corpora::At(folder) => println!("  corpus tests ran on {}", folder.display()),
        Corpora::Absent(why) => println!("  corpus tests not run: {why}"),
    }
    if documentation.is_none() {
        println!("  mirror tests not run: without apt-get there is no documentation to crawl");
    }
    if let Some(package) = &options.package {
        println!("  only {package} was tested: leave --package out before anything lands");
    }
    println!("  not part of this: `cargo xtask soak` and `cargo xtask bench`, which take their time");
    Ok(())
}

/// A value that somebody set wins, also when it is wrong: then the tests fail and say which file they miss.
fn corpora(set: Option<PathBuf>, beside: PathBuf) -> Corpora {
    match set {
        Some(folder) if folder.as_os_str().is_empty() => Corpora::Absent("SKEP_CORPORA is set to nothing".into()),
        Some(folder) => Corpora::At(folder.canonicalize().unwrap_or(folder)),
        None => match beside.canonicalize() {
            Ok(folder) => Corpora::At(folder),
            Err(_) => Corpora::Absent("SKEP_CORPORA is not set and there is no ../shared/corpora".into()),
        },
    }
}

/// Whether cargo finds a library to look for examples in; it takes having none for an error.
fn has_library(metadata: &serde_json::Value, package: Option<&str>) -> bool {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .filter(|found| package.is_none_or(|name| found["name"] == name))
        .flat_map(|found| list(&found["targets"]))
        .any(|target| list(&target["kind"]).iter().any(|kind| kind == "lib"))
}

/// Tests run in their package's folder, so the path must hold from anywhere. Links stay as they are: an environment's
/// interpreter is a link, and what it links to knows nothing of the environment.
fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).with_context(|| format!("{} has no absolute form", path.display()))
}

fn must(command: &mut Command, hint: &str) -> Result<()> {
    let name = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let status = command.status().with_context(|| format!("cargo {name} could not be started"))?;
    if !status.success() {
        bail!("cargo {name} failed\nhint: {hint}");
    }
    Ok(())
}

/// Headings, and what each step took.
struct Log {
    began: Instant,
    done: Vec<(&'static str, Duration)>,
}

impl Log {
    fn begin() -> Log {
        Log { began: Instant::now(), done: Vec::new() }
    }

    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n== {name}");
        let began = Instant::now();
        let result = work();
        let took = began.elapsed();
        match &result {
            Ok(()) => println!("== {name}: done in {:.1} s", took.as_secs_f64()),
            Err(_) => println!("== {name}: FAILED after {:.1} s", took.as_secs_f64()),
        }
        self.done.push((name, took));
        result
    }

    fn summary(&self) {
        println!("\n== all passed in {}", spelled(self.began.elapsed()));
        for (name, took) in &self.done {
            println!("  {:<30} {:>8.1} s", name, took.as_secs_f64());
        }
    }
}

fn spelled(took: Duration) -> String {
    let seconds = took.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpora_that_somebody_named_win_even_when_absent() {
        let named = PathBuf::from("no/such/folder");
        assert_eq!(corpora(Some(named.clone()), std::env::temp_dir()), Corpora::At(named));
    }

    #[test]
    fn without_corpora_their_tests_are_named_as_not_run() {
        assert!(matches!(corpora(None, PathBuf::from("no/such/folder")), Corpora::Absent(_)));
        assert!(matches!(corpora(Some(PathBuf::new()), std::env::temp_dir()), Corpora::Absent(_)));
    }

    #[test]
    fn corpora_beside_the_project_are_found_and_made_absolute() {
        let Corpora::At(folder) = corpora(None, std::env::temp_dir()) else { panic!("a folder that exists") };
        assert!(folder.is_absolute());
    }

    #[test]
    fn a_package_with_only_a_program_has_no_library() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "targets": [{ "kind": ["bin"] }] },
            { "name": "b", "targets": [{ "kind": ["lib"] }, { "kind": ["test"] }] },
        ] });
        assert!(has_library(&metadata, None));
        assert!(has_library(&metadata, Some("b")));
        assert!(!has_library(&metadata, Some("a")));
    }
}
