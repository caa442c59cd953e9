//! README is typed in and believed: every command of its first run prints what README shows.

use std::path::Path;
use std::process::Command;

/// A command and the lines that follow it.
fn session(readme: &str) -> Vec<(Vec<&str>, String)> {
    let block = readme.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a first run");
    let mut steps: Vec<(Vec<&str>, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ skep "), steps.last_mut()) {
            (Some(arguments), _) => steps.push((arguments.split_whitespace().collect(), String::new())),
            (None, Some((_, printed))) => {
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => panic!("the first run begins with a command"),
        }
    }
    steps
}

#[test]
fn the_first_run_prints_what_readme_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/skep is in the project");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let archive = tempfile::tempdir().expect("a folder for the archive");
    let steps = session(&readme);
    assert!(steps.len() >= 3);
    for (arguments, shown) in steps {
        let run = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(&arguments)
            .current_dir(root)
            .env("SKEP_ARCHIVE", archive.path().join("skep-archive"))
            .output()
            .expect("skep starts");
        let talk = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{arguments:?}: {talk}");
        // README shows paths as they were typed; Skep prints them whole.
        let whole = format!("{}/", root.canonicalize().expect("a folder").display());
        let printed = String::from_utf8_lossy(&run.stdout).replace(&whole, "");
        assert_eq!(printed, shown, "{arguments:?}: README shows something else");
    }
}

/// The test of the demo runs what the first of these does.
#[test]
fn the_commands_at_the_top_are_the_demo_the_tests_and_a_watch() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/skep is in the project");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("commands");
    let typed: Vec<&str> = block.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    assert_eq!(typed, ["cargo run --release -- demo", "cargo xtask test", "skep watch https://example.org/"]);
    for command in ["demo", "watch"] {
        let help = Command::new(env!("CARGO_BIN_EXE_skep")).args(["help", command]).output().expect("skep starts");
        assert!(help.status.success() && !help.stdout.is_empty(), "skep help {command}");
    }
}
