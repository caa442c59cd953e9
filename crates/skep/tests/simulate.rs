//! `skep simulate`: a table or JSON, the same for the same seed, and clear words about what cannot be.

use std::process::{Command, Output};

fn skep(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skep")).arg("simulate").args(words).output().expect("skep runs")
}

#[test]
fn a_small_network_is_simulated_and_one_seed_is_one_run() {
    let words = ["--nodes", "30", "--days", "0.01", "--slices", "2^5", "--scenario", "region", "--json"];
    let (one, again) = (skep(&words), skep(&words));
    assert_eq!(one.status.code(), Some(0), "{}", String::from_utf8_lossy(&one.stdout));
    assert_eq!(one.stdout, again.stdout);
    let told: serde_json::Value = serde_json::from_slice(&one.stdout).expect("one JSON object");
    assert_eq!((&told["nodes"], &told["slices"], &told["lost"]), (&30.into(), &32.into(), &0.into()));
    assert!(told["losses_per_slice_year"].as_f64().is_some_and(|rate| rate > 0.0 && rate < 1e-4));
    let table = skep(&words[..words.len() - 1]);
    let table = String::from_utf8(table.stdout).expect("text");
    for row in ["rules broken", "absence known after", "roster and ring in one node", "24 h, 1 h with one copy left"] {
        assert!(table.contains(row), "{row} is not in\n{table}");
    }
}

#[test]
fn what_cannot_be_simulated_is_said() {
    for (words, hint) in [
        (&["--slices", "100"][..], "2^12"),
        (&["--slices", "2^99"], "power of two"),
        (&["--nodes", "2"], "3 to 60,000"),
        (&["--days", "-1"], "--days"),
        (&["--nodes", "5000", "--scenario", "split"], "1000"),
    ] {
        let said = skep(words);
        assert_eq!(said.status.code(), Some(2), "{words:?}");
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(text.contains(hint), "{words:?}: {text}");
    }
}
