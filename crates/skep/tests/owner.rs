//! One process owns an archive; whoever comes meanwhile is answered by it, and nobody notices the change of owners.

mod site;

use site::files::{HOME, Warc, history};
use site::{Ran, Site, of_output};
use std::process::{Child, Stdio};

const BIG: &str = "http://big.example/";

/// More than pipes and sockets hold: whoever prints it and is not heard waits.
fn big() -> String {
    "all work and no play makes a dull page\n".repeat(200_000)
}

fn filled() -> Site {
    let site = Site::new();
    site.write("history.warc.gz", history().page(BIG, "2020-01-01T00:00:00Z", &big()).bytes);
    site.skep(&["add", "history.warc.gz"]).exits(0);
    site
}

fn start(site: &Site, typed: &[&str]) -> Child {
    site.command(typed).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts")
}

fn end(child: Child) -> Ran {
    of_output("(started earlier)".into(), child.wait_with_output().expect("it ends"))
}

fn control(site: &Site) -> std::path::PathBuf {
    site.archive().join("control")
}

#[test]
fn the_owner_answers_for_everybody() {
    let site = filled();
    let expected = [
        ["captures", HOME, "--json"].as_slice(),
        &["stats", "--json"],
        &["get", HOME, "--raw"],
        &["get", HOME, "--warc"],
    ]
    .map(|typed| (typed, site.skep(typed).exits(0).out));
    let owner = site.begin(&["get", BIG]);
    assert!(control(&site).exists());
    for (typed, alone) in &expected {
        assert!(site.skep(typed).exits(0).out == *alone, "{typed:?}");
    }
    // The answer no, failures with their hints, and bytes of any length pass the socket as well.
    site.skep(&["captures", "absent.example"]).exits(1);
    site.skep(&["stats", "--collection", "absent"]).fails("there is no collection").hints("added");
    site.skep(&["remove", "--digest", "sha1:x", "--reason", "x"]).fails("is not a digest").hints("sha1:");
    assert_eq!(site.skep(&["get", BIG]).exits(0).text(), big());
    site.is_sound();
    assert_eq!(owner.hear().exits(0).text(), big());
    assert!(!control(&site).exists(), "the socket goes with its owner");
}

#[test]
fn what_is_written_through_the_owner_is_there_at_once_and_afterwards() {
    let site = filled();
    let owner = site.begin(&["get", BIG]);
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2021-01-01T00:00:00Z", "more").bytes);
    assert_eq!(site.skep(&["add", "more.warc.gz", "--json"]).exits(0).each("result"), ["added"]);
    assert_eq!(site.skep(&["add", "more.warc.gz", "--json"]).exits(0).each("result"), ["there already"]);
    assert_eq!(site.skep(&["get", "more.example"]).exits(0).text(), "more");
    site.skep(&["remove", HOME, "--reason", "x"]).exits(0);
    site.skep(&["captures", HOME]).exits(1);
    owner.hear().exits(0);
    assert_eq!(site.skep(&["get", "more.example"]).exits(0).text(), "more");
    site.skep(&["captures", HOME]).exits(1);
    site.is_sound();
}

#[test]
fn what_needs_the_archive_to_itself_says_who_has_it() {
    let site = filled();
    let owner = site.begin(&["get", BIG]);
    let pid = owner.child.id().to_string();
    site.skep(&["rebuild"]).fails(&format!("in use by process {pid}")).hints(&pid);
    owner.hear().exits(0);
    site.skep(&["rebuild"]).exits(0);
}

#[test]
fn everybody_who_adds_at_once_succeeds() {
    let site = Site::new();
    let names: Vec<String> = (0..6).map(|n| format!("file-{n}.warc.gz")).collect();
    for (n, name) in names.iter().enumerate() {
        let mut file = Warc::gzip();
        for page in 0..200 {
            file =
                file.page(&format!("http://host-{n}.example/{page}"), "2020-01-01T00:00:00Z", &format!("{n} {page}"));
        }
        site.write(name, file.bytes);
    }
    // The archive does not exist yet: they also agree on who makes it. The first file is added by two of them.
    let children: Vec<Child> =
        names.iter().chain(&names[..1]).map(|name| start(&site, &["add", "--json", name])).collect();
    let mut results: Vec<String> = children.into_iter().flat_map(|child| end(child).exits(0).each("result")).collect();
    results.sort();
    assert_eq!(results, ["added", "added", "added", "added", "added", "added", "there already"]);
    let stats = site.skep(&["stats", "--json"]).exits(0).json().remove(0);
    assert_eq!((stats["captures"].as_u64(), stats["hosts"].as_u64()), (Some(1200), Some(6)));
    assert_eq!(site.skep(&["get", "http://host-5.example/199"]).exits(0).text(), "5 199");
    site.is_sound();
    site.skep(&["rebuild", "--reparse"]).exits(0);
    assert_eq!(site.skep(&["stats", "--json"]).exits(0).json()[0]["captures"], 1200);
}

#[test]
fn an_owner_that_is_done_lets_others_finish() {
    let site = filled();
    let owner = site.begin(&["get", BIG]);
    let asking = site.begin(&["get", BIG]);
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2021-01-01T00:00:00Z", &big()).bytes);
    let adding = start(&site, &["add", "more.warc.gz"]);
    // From here on the owner has nothing of its own to do.
    let owner = std::thread::spawn(move || owner.hear());
    assert_eq!(asking.hear().exits(0).text(), big());
    end(adding).exits(0);
    owner.join().expect("the owner ends").exits(0);
    site.skep(&["captures", "more.example"]).exits(0);
    site.is_sound();
}

#[test]
fn readers_who_leave_do_not_disturb_the_owner() {
    let site = filled();
    let owner = site.begin(&["get", BIG]);
    site.begin(&["get", BIG]).kill();
    let ran = site.shell(&format!("set -o pipefail; skep get {BIG} | head -1")).exits(0);
    assert_eq!((ran.text().lines().count(), ran.talk.as_str()), (1, ""));
    site.skep(&["captures", HOME]).exits(0);
    assert_eq!(owner.hear().exits(0).text(), big());
}

#[test]
fn a_killed_owner_leaves_nothing_that_hinders() {
    let site = filled();
    site.begin(&["get", BIG]).kill();
    assert!(control(&site).exists(), "the socket of the dead is still there");
    assert_eq!(site.skep(&["captures", HOME, "--json"]).exits(0).json().len(), 5);
    site.begin(&["get", BIG]).kill();
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2021-01-01T00:00:00Z", "more").bytes);
    site.skep(&["add", "more.warc.gz"]).exits(0);
    site.is_sound();
    assert!(!control(&site).exists());
}

#[test]
fn an_asker_whose_owner_dies_is_told_to_ask_again() {
    let site = filled();
    let owner = site.begin(&["get", BIG]);
    let asking = site.begin(&["get", BIG]);
    owner.kill();
    let ran = asking.hear().fails("stopped in the middle of its answer").hints("type the command again");
    assert!(ran.out.len() < big().len());
    assert_eq!(site.skep(&["get", BIG]).exits(0).text(), big());
}
