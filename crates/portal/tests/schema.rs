//! schemathesis (pinned in the peers' environment) asks everything that the OpenAPI document allows, and much that it does not: no server
//! error, no answer outside the document.

mod site;

use site::{Site, Warc};
use skep_portal::{Access, Settings};
use std::path::PathBuf;
use std::process::Command;

/// Requests made up for each operation and phase.
const EXAMPLES: &str = "40";

#[test]
fn schemathesis_finds_no_answer_outside_the_document() {
    let Some(python) = std::env::var_os("SKEP_PYTHON").map(PathBuf::from) else {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        return;
    };
    let warc = Warc::new()
        .page(
            "http://example.org/",
            "2014-01-26T20:06:24Z",
            "text/html",
            b"<img src=/a.png><link rel=stylesheet href=/b.css>",
        )
        .same("http://example.org/", "2015-01-26T20:06:24Z", b"<img src=/a.png><link rel=stylesheet href=/b.css>", None)
        .page("http://example.org/a.png", "2014-01-26T20:06:24Z", "image/png", b"png")
        .resource("urn:note:1", "2014-01-26T20:06:25Z", "text/plain", b"a note")
        .private("http://example.org/secret", "2014-01-26T20:06:25Z", b"secret");
    let hash = skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, b"key").hex();
    let access =
        Access::default().with_users(&format!("[[token]]\nsha256 = \"{hash}\"\nmay = \"administer\"")).unwrap();
    let site = Site::with(&[("one", "one.warc.gz", warc.bytes)], |settings| Settings { access, ..settings });
    let folder = tempfile::tempdir().unwrap();
    // As anybody, and as somebody who may do everything. What is said there may be of the right form and still name no file and no URL.
    let unsaid = ["--exclude-checks", "positive_data_acceptance,negative_data_rejection"];
    let everything = [&["--header", "Authorization: Bearer key"], &unsaid[..]].concat();
    for more in [&[][..], &everything] {
        let output = Command::new(python.with_file_name("schemathesis"))
            .arg("run")
            .arg(format!("http://{}/api/v1/openapi.json", site.serving.address()))
            .args(["--max-examples", EXAMPLES, "--seed", "1", "--checks", "all"])
            .args(["--phases", "examples,coverage,fuzzing"])
            .args(["--generation-database", "none", "--no-color", "--max-failures", "5"])
            .args(more)
            .env("HYPOTHESIS_STORAGE_DIRECTORY", folder.path())
            .current_dir(folder.path())
            .output()
            .expect("schemathesis stands beside the interpreter named by SKEP_PYTHON");
        let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{more:?}: {said}");
        assert!(said.contains("15 selected / 15 total"), "not all was asked:\n{said}");
    }
    // Whoever looks at the log finds nothing that broke.
    let log = site.log.lock().unwrap();
    assert!(log.len() > 500, "{} requests", log.len());
    assert_eq!(log.iter().filter(|line| line.contains("\" 500 ")).count(), 0);
}
