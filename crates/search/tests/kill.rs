//! Killed at any moment, the index goes on where it was, and is what it would have been.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use support::*;

const CHILD: &str = "SKEP_TEXT_CHILD";

/// Not a test by itself: the process that is killed. Says after each page how many are findable or on their way.
#[test]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let archive = open(folder.as_ref());
    let text = keeping(&archive);
    let before = documents(&text, "hive").len() as i64;
    for number in before.. {
        page(
            &archive,
            &format!("http://host{}.example/{number}", number % 3),
            number,
            "A hive",
            &format!("text {number}"),
        );
        if number % 4 == 0 {
            text.settle().unwrap();
        }
        println!("\nwritten {number}");
    }
}

#[test]
fn an_index_that_was_killed_is_as_if_it_had_not_been() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("archive");
    for lines in [1, 3, 6, 9] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, &folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(said.filter(|line| line.starts_with("written")).take(lines).count(), lines);
        child.kill().unwrap();
        child.wait().unwrap();
        let archive = open(&folder);
        let text = keeping(&archive);
        let after = documents(&text, "hive");
        assert!(after.len() >= lines);
        let (archive, text) = rebuilt(&folder, archive, text);
        assert_eq!(documents(&text, "hive"), after);
        drop(text);
        drop(archive);
    }
}
