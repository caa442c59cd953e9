//! Every function to fuzz, on its kept inputs and on a fixed number of seeded mutations of them.

use std::path::Path;
use std::process::Command;

const ROUNDS: &str = "3000";
const SEED: &str = "20240229";

#[test]
fn no_input_makes_a_function_panic_hang_or_grow() {
    // Cargo builds examples beside the programs, and names only those to tests.
    let programs = Path::new(env!("CARGO_BIN_EXE_xtask")).parent().expect("a program is in a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/xtask is in the project");
    let found = tempfile::tempdir().expect("a folder for findings");
    let output = Command::new(programs.join("examples/fuzz"))
        .args(["--rounds", ROUNDS, "--seed", SEED])
        .arg("--root")
        .arg(root)
        .arg("--found")
        .arg(found.path())
        .output()
        .expect("cargo has built the example");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
