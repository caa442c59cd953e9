//! The binary: what it prints, and with which exit code it ends.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use skep_testweb::{Entry, Map, Plan};

use crate::client::Client;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skep-testweb")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn truth_show_and_plan_agree() {
    let web = ["--seed", "3", "--hosts", "3", "--pages", "20"];
    let truth = run(&[&["truth"], &web[..]].concat());
    assert!(truth.status.success());
    let entries: Vec<Entry> = text(&truth.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let page = entries.iter().find(|entry| entry.bytes > 1_000 && entry.status == 200).unwrap();
    let shown = run(&[&["show", &page.url], &web[..]].concat());
    assert_eq!((shown.status.code(), shown.stdout.len() as u64), (Some(0), page.bytes));

    let reachable = run(&[&["truth", "--reachable"], &web[..]].concat());
    assert!(text(&reachable.stdout).lines().count() > 50);
    let missing = entries.iter().find(|entry| entry.status == 404).unwrap();
    assert_eq!(run(&[&["show", &missing.url], &web[..]].concat()).status.code(), Some(1));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let plan = run(&[&["plan"], &web[..]].concat());
    assert_eq!(serde_json::from_slice::<Plan>(&plan.stdout).unwrap().hosts.len(), 3);
    std::fs::write(&file, plan.stdout).unwrap();
    let again = run(&["truth", "--plan", file.to_str().unwrap()]);
    assert_eq!(again.stdout, truth.stdout);
}

#[test]
fn serving_prints_a_map_and_ends_with_a_judgement() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    let mut child = Command::new(env!("CARGO_BIN_EXE_skep-testweb"))
        .args([
            "serve",
            "--hosts",
            "2",
            "--pages",
            "5",
            "--https",
            "1000",
            "--allow-all",
            "--judge",
            "--authority-file",
        ])
        .arg(&authority)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let map: Map = serde_json::from_str(&line).unwrap();
    let place = &map.hosts[0];
    let pem = std::fs::read_to_string(authority).unwrap();
    let mut client = Client::secure(place.addresses[0], &place.host, &pem).unwrap();
    assert_eq!(client.get(&place.host, "/", &[]).status, 200);
    drop(client);

    let control: SocketAddr = map.control["http://".len()..].trim_end_matches('/').parse().unwrap();
    let mut client = Client::plain(control);
    client.write(b"POST /stop HTTP/1.1\r\nHost: c\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.receive(false).unwrap().text(), "stopping\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("robots-unasked"));
}

#[test]
fn wrong_use_is_explained() {
    for (arguments, told) in [
        (&["truth", "--folder", "files.test"][..], "is not NAME=DIR"),
        (&["truth", "--folder", "files.test=/no/such/folder"], "/no/such/folder"),
        (&["truth", "--git", "past.test=/no/such/repository"], "neither a folder nor a bundle"),
        (&["truth", "--plan", "/no/such/plan"], "cannot be read"),
        (&["truth", "--host", "b.test"], "there is no host `b.test`"),
        (&["truth", "--at", "noon"], "is no time"),
        (&["show", "http://b.test/"], "of no host"),
        (&["serve", "--link-port", "8080", "--port", "8081"], "add --port 8080"),
        (&["nonsense"], "unrecognized subcommand"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(told), "{arguments:?}: {}", text(&output.stderr));
    }
}
