//! Heads that break the rules: rows 18 to 20 and 29.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_18_headers_that_are_none() {
    let host = "row-18-headers.test";
    let trial = Setup::of(Row::Headers).run();
    let proof = trial.proof_of(
        host,
        &["no-colon", "nul", "bare-lf", "bare-cr", "blanks", "folded", "many", "long", "endless", "bytes"],
    );
    assert!(proof.bytes > 256 << 10, "{proof:?}");
    for form in ["no-colon", "bare-lf", "blanks", "folded", "bytes"] {
        trial.why(host, &format!("/headers/{form}")).is("visited", "200");
    }
    for form in ["many", "long", "endless"] {
        let fate = trial.why(host, &format!("/headers/{form}"));
        fate.notes("head-too-large");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_19_status_lines_that_are_none() {
    let host = "row-19-status-lines.test";
    let trial = Setup::of(Row::StatusLines).run();
    trial.proof_of(host, &["0.9", "icy", "2.0", "garbage", "999", "0", "99", "1000", "words", "no-reason"]);
    trial.why(host, "/status-lines/999").is("visited", "999");
    trial.why(host, "/status-lines/icy").is("visited", "200");
    trial.why(host, "/status-lines/no-reason").is("visited", "200");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_20_interim_answers_have_an_end() {
    let host = "row-20-interim.test";
    let trial = Setup::of(Row::Interim).run();
    trial.proof_of(host, &["flood", "endless", "upgrade", "204-body", "304-body", "hints"]);
    trial.why(host, "/interim/flood").notes("interim-flood");
    trial.why(host, "/interim/endless").notes("interim-flood");
    trial.why(host, "/interim/hints").is("visited", "200");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_29_cookies_are_not_collected() {
    let host = "row-29-cookies.test";
    let trial = Setup::of(Row::Cookies).run();
    let proof = trial.proof_of(host, &["many", "growing", "foreign"]);
    assert!(proof.bytes > 10_000 && proof.deeds < 2_000, "{proof:?}");
    trial.kept_ordinary_pages(host);
}
