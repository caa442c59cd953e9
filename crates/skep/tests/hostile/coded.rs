//! Bodies that are not what they are said to be: rows 8 to 10.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_08_bombs_are_kept_as_sent_and_not_read() {
    let host = "row-08-bombs.test";
    let trial = Setup::of(Row::Bombs).run();
    trial.proof_of(host, &["gzip", "deflate", "br", "zstd"]);
    for form in ["gzip", "deflate", "br", "zstd"] {
        trial.why(host, &format!("/bombs/{form}")).is("visited", "200").notes("bomb");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_09_encodings_within_encodings_have_a_depth() {
    let host = "row-09-nested.test";
    let trial = Setup::of(Row::Nested).run();
    trial.proof_of(host, &["two", "three", "ten", "bomb", "list"]);
    trial.why(host, "/nested/bomb").is("visited", "200").notes("bomb");
    trial.why(host, "/nested/ten").is("visited", "200");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_10_what_the_encoding_is_called_does_not_matter() {
    let host = "row-10-mislabelled.test";
    let trial = Setup::of(Row::Mislabelled).run();
    let forms =
        ["gzip-is-plain", "plain-is-gzip", "br-is-gzip", "deflate-is-raw", "gzip-is-cut", "gzip-then-more", "unknown"];
    trial.proof_of(host, &forms);
    for form in forms {
        trial.why(host, &format!("/mislabelled/{form}")).is("visited", "200");
    }
    trial.kept_ordinary_pages(host);
}
