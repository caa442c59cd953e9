//! The package against data that nobody here wrote: test suites of others and the real web.
//! Where the data is not at hand the tests say so and pass; the behaviours have fixtures of their own elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use skep_url::robots::Robots;
use skep_url::surt;

/// The file, or nothing where there is no corpus at all.
fn corpus(path: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(path);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn json(path: &str) -> Option<Value> {
    corpus(path).map(|bytes| serde_json::from_slice(&bytes).expect(path))
}

fn json_lines(path: &str) -> Option<Vec<Value>> {
    let text = String::from_utf8(corpus(path)?).expect(path);
    Some(text.lines().map(|line| serde_json::from_str(line).expect(path)).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn robots_of_google() {
    let Some(cases) = json("vectors/robots/google-cases.json") else { return };
    let mut wrong = Vec::new();
    for case in cases.as_array().expect("an array") {
        let robots = Robots::parse(text(&case["robots"]).as_bytes());
        let decision = robots.decide(text(&case["agent"]), text(&case["url"]));
        if Some(decision.allowed) != case["allowed"].as_bool() {
            wrong.push(format!("{case} {decision:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn robots_of_the_real_web() {
    let Some(files) = json_lines("vectors/robots/real-files.jsonl") else { return };
    let Some(decisions) = json_lines("vectors/robots/real-decisions.jsonl") else { return };
    let latin1 = |text: &str| text.chars().map(|c| u8::try_from(u32::from(c)).expect("latin-1")).collect::<Vec<u8>>();
    let files: BTreeMap<&str, Robots> =
        files.iter().map(|file| (text(&file["file"]), Robots::parse(&latin1(text(&file["body"]))))).collect();
    let mut wrong = Vec::new();
    for case in &decisions {
        let decision = files[text(&case["file"])].decide(text(&case["agent"]), text(&case["url"]));
        if Some(decision.allowed) != case["allowed"].as_bool() {
            wrong.push(format!("{case} {decision:?}"));
        }
    }
    let share = wrong.len() as f64 / decisions.len() as f64;
    eprintln!("real robots.txt: {} of {} differ", wrong.len(), decisions.len());
    assert!(share <= 0.005, "{}", wrong.join("\n"));
}

#[test]
fn surt_x() {
    let _ = surt::key("");
}
