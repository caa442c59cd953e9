//! A git history as a host that moves through its commits.

use std::fs;
use std::path::Path;
use std::process::Command;

use skep_testweb::{Clock, Content, HostPlan, Plan, Settings, Time, Validators, Web, World};
use tempfile::TempDir;

use crate::client::{Client, Response, serve_with};

fn git(folder: &Path, date: &str, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@a.test", "-c", "commit.gpgSign=false"])
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(folder: &Path, date: &str, files: &[(&str, &str)]) {
    for (name, body) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if body.is_empty() {
            fs::remove_file(path).unwrap();
        } else {
            fs::write(path, body).unwrap();
        }
    }
    git(folder, date, &["add", "--all"]);
    git(folder, date, &["commit", "--quiet", "--allow-empty", "--message", "x"]);
}

/// Three days: two files, then a change, a link and a merge, then a deletion.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, "", &["init", "--quiet", "--initial-branch=main"]);
    let news =
        [("index.html", "one"), ("docs/index.html", "docs"), ("docs/ü \"x\".txt", "odd"), ("sub/a/deep.css", "p{}")];
    commit(root, "2001-01-01T12:00:00Z", &news);
    std::os::unix::fs::symlink("../index.html", root.join("docs/home.html")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("docs/broken.html")).unwrap();
    commit(root, "2001-01-02T12:00:00Z", &[("index.html", "two")]);
    git(root, "2001-01-02T13:00:00Z", &["checkout", "--quiet", "-b", "side"]);
    commit(root, "2001-01-02T14:00:00Z", &[("side.html", "side")]);
    git(root, "2001-01-02T15:00:00Z", &["checkout", "--quiet", "main"]);
    git(root, "2001-01-02T16:00:00Z", &["merge", "--quiet", "--no-ff", "--message", "m", "side"]);
    commit(root, "2001-01-03T12:00:00Z", &[("docs/index.html", ""), ("docs/home.html", ""), ("docs/broken.html", "")]);
    folder
}

fn web(repository: &Path) -> Web {
    let plan = Plan::new(1).host(HostPlan::history("past.test", repository));
    let clock = Clock::still("2001-01-01T12:00:00Z".parse().unwrap());
    serve_with(plan, Settings { clock: Some(clock), ..Settings::default() })
}

fn get(web: &Web, path: &str, headers: &[(&str, &str)]) -> Response {
    Client::plain(web.address("past.test").unwrap()).get("past.test", path, headers)
}

fn check_all(web: &Web) {
    let at = |text: &str| web.set_clock(Some(text.parse().unwrap()), None);
    let body = |path| {
        let seen = get(web, path, &[]);
        (seen.status, if seen.status == 200 { seen.text() } else { String::new() })
    };
    let gone = (404, String::new());

    at("2001-01-01T11:59:59Z");
    assert_eq!(body("/"), gone);
    at("2001-01-01T12:00:00Z");
    assert_eq!(body("/"), (200, "one".into()));
    assert_eq!(body("/docs/"), (200, "docs".into()));
    assert_eq!(body("/docs/%C3%BC%20%22x%22.txt"), (200, "odd".into()));
    assert_eq!(get(web, "/docs", &[]).header("location"), Some("/docs/"));
    assert_eq!(get(web, "/sub/a", &[]).status, 301);
    assert_eq!(
        (body("/sub/a/"), body("/side.html"), body("/docs/home.html")),
        (gone.clone(), gone.clone(), gone.clone())
    );
    let css = get(web, "/sub/a/deep.css", &[]);
    assert_eq!(css.header("content-type"), Some("text/css"));

    at("2001-01-02T12:00:00Z");
    let home = get(web, "/", &[]);
    assert_eq!((home.text(), home.header("last-modified")), ("two".into(), Some("Tue, 02 Jan 2001 12:00:00 GMT")));
    assert_eq!(body("/docs/home.html"), (200, "two".into()), "links are followed");
    assert_eq!(body("/docs/broken.html"), gone);
    assert_eq!(body("/side.html"), gone, "what is on a side branch is not there before it is merged");
    let etag = home.header("etag").unwrap();
    assert_eq!(get(web, "/", &[("if-none-match", etag)]).status, 304);
    assert_eq!(get(web, "/sub/a/deep.css", &[("if-modified-since", "Mon, 01 Jan 2001 12:00:00 GMT")]).status, 304);

    at("2001-01-02T20:00:00Z");
    assert_eq!(body("/side.html"), (200, "side".into()));
    assert_eq!(get(web, "/side.html", &[]).header("last-modified"), Some("Tue, 02 Jan 2001 16:00:00 GMT"));
    at("2030-01-01");
    assert_eq!((body("/docs/"), body("/docs/home.html")), (gone.clone(), gone));
    assert_eq!(body("/"), (200, "two".into()));
    at("2001-01-01T12:00:00Z");
    assert_eq!(body("/"), (200, "one".into()), "the clock may also be set back");
}

#[test]
fn a_repository_moves_through_its_commits() {
    let repository = repository();
    check_all(&web(repository.path()));
}

#[test]
fn a_bundle_does_the_same() {
    let repository = repository();
    // Without HEAD the only branch must be found.
    git(repository.path(), "", &["bundle", "create", "--quiet", "site.bundle", "main"]);
    check_all(&web(&repository.path().join("site.bundle")));
}

#[test]
fn the_truth_lists_the_files_of_the_moment() {
    let repository = repository();
    let world = World::build(Plan::new(1).host(HostPlan::history("past.test", repository.path()))).unwrap();
    let urls = |at: &str| -> Vec<String> {
        let entries = world.truth(at.parse::<Time>().unwrap()).map(|entry| entry.unwrap());
        entries.filter(|entry| entry.status == 200).map(|entry| entry.url.replace("http://past.test", "")).collect()
    };
    assert_eq!(urls("2000-01-01"), Vec::<String>::new());
    assert_eq!(urls("2001-01-04"), ["/", "/docs/%C3%BC%20%22x%22.txt", "/index.html", "/side.html", "/sub/a/deep.css"]);
    let entry = world.entry("http://past.test/", "2001-01-02".parse().unwrap()).unwrap().unwrap();
    assert_eq!((entry.bytes, entry.digest.as_str()), (3, "sha1:7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG"));
}

#[test]
fn validators_can_be_left_out_and_branches_named() {
    let repository = repository();
    let content = Content::History { repository: repository.path().into(), revision: Some("side".into()) };
    let host = HostPlan { validators: Validators::Etag, ..HostPlan::new("past.test", content) };
    let world = World::build(Plan::new(1).host(host)).unwrap();
    let answer = world.answer("http://past.test/side.html", "2002-01-01".parse().unwrap()).unwrap().unwrap();
    assert_eq!((answer.status, answer.last_modified), (200, None));
    assert!(answer.etag.is_some());

    let wrong = Content::History { repository: repository.path().into(), revision: Some("--all".into()) };
    let refused = World::build(Plan::new(1).host(HostPlan::new("past.test", wrong))).unwrap_err().to_string();
    assert!(refused.contains("git says"), "{refused}");
}
