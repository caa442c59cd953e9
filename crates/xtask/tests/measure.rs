//! Figures that benches and soaks are judged by: of one program, and of nothing else.

use std::process::{Command, Output};

const MEGABYTE: u64 = 1_000_000;

fn measure(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).arg("measure").args(arguments).output().expect("xtask starts")
}

fn figure(output: &Output, name: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {name}= in {text}")).parse().expect("a number")
}

#[test]
fn peak_memory_is_that_of_the_program_alone() {
    // `dd` holds one block in memory.
    let large = measure(&["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"]);
    assert!(figure(&large, "max_rss_bytes") > 190 * MEGABYTE);
    let small = measure(&["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1k", "count=1"]);
    assert!(figure(&small, "max_rss_bytes") < 100 * MEGABYTE);
}

#[test]
fn work_of_a_grandchild_counts() {
    let idle = measure(&["--", "true"]);
    let busy = measure(&["--", "sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true"]);
    assert!(figure(&busy, "cpu_ms") > figure(&idle, "cpu_ms"));
}

#[test]
fn output_and_exit_code_come_through() {
    let run = measure(&["--", "sh", "-c", "echo said; echo grumbled >&2; exit 3"]);
    assert!(String::from_utf8_lossy(&run.stdout).starts_with("said\n"));
    assert_eq!(String::from_utf8_lossy(&run.stderr), "grumbled\n");
    assert_eq!(figure(&run, "exit"), 3);
}

#[test]
fn a_program_over_its_limit_is_ended_with_its_children() {
    let run = measure(&["--limit", "1", "--", "sh", "-c", "sleep 600; true"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("time limit"), "{run:?}");
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let run = measure(&["--", "no-such-program-anywhere"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("no-such-program-anywhere"), "{run:?}");
}
