//! Bodies without end, without pace and without an honest length: rows 11 to 17.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_11_bodies_that_never_end_are_cut_and_kept() {
    let host = "row-11-endless.test";
    let trial = Setup::of(Row::Endless).run();
    let proof = trial.proof_of(host, &["zeros", "chunks", "page", "radio"]);
    assert!(proof.bytes > 8 << 20 && proof.given_up >= 4, "{proof:?}");
    for (form, cut) in
        [("zeros", "cut-length"), ("chunks", "cut-length"), ("page", "cut-length"), ("radio", "cut-time")]
    {
        trial.why(host, &format!("/endless/{form}")).is("visited", "200").notes(cut);
    }
    let record = trial.record(&trial.url(host, "/endless/zeros"));
    assert!(String::from_utf8_lossy(&record[..record.len().min(2_000)]).contains("WARC-Truncated: length"));
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_12_a_byte_now_and_then_is_not_waited_for() {
    let host = "row-12-slow.test";
    let trial = Setup::of(Row::Slow).run();
    let proof = trial.proof_of(host, &["body", "head", "chunks", "first-byte"]);
    assert!(proof.held_ms > 4_000 && proof.given_up >= 4, "{proof:?}");
    trial.why(host, "/slow/body").is("visited", "cut-off").notes("too-slow");
    trial.why(host, "/slow/first-byte").is("dead", "timeout-first-byte");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_13_silence_is_not_waited_for() {
    let trial = Setup::of(Row::Silent).run();
    let plain = trial.proof_of("row-13-silent.test", &["plain"]);
    let handshake = trial.proof_of("row-13-silent-handshake.test", &["handshake"]);
    assert!(plain.held_ms > 1_500 && plain.given_up > 0, "{plain:?}");
    assert!(handshake.held_ms > 1_500 && handshake.given_up > 0, "{handshake:?}");
    trial.why("row-13-silent.test", "/silent/plain").is("dead", "timeout-first-byte");
    trial.why("row-13-silent-handshake.test", "/").is("dead", "");
    trial.kept_ordinary_pages("row-13-silent.test");
}

#[test]
fn row_14_what_came_of_a_longer_answer_is_kept_when_no_more_of_it_comes() {
    let host = "row-14-length-long.test";
    let trial = Setup::of(Row::LengthLong).run();
    let proof = trial.proof_of(host, &["closed", "reset", "held"]);
    assert!(proof.held_ms > 500, "{proof:?}");
    trial.why(host, "/length-long/closed").is("visited", "cut-off").notes("cut-disconnect");
    trial.why(host, "/length-long/reset").is("visited", "cut-off").notes("cut-disconnect");
    trial.why(host, "/length-long/held").is("visited", "cut-off").notes("cut-time");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_15_what_comes_after_an_answer_is_no_answer() {
    let host = "row-15-length-short.test";
    let trial = Setup::of(Row::LengthShort).run();
    trial.proof_of(host, &["text", "answer", "nothing-declared"]);
    // What comes late is noticed by nobody: the connection is closed by then, or is not used again.
    for form in ["text", "answer", "nothing-declared"] {
        trial.why(host, &format!("/length-short/{form}")).is("visited", "200");
    }
    // The answer that nobody asked for was not taken for that of the next page.
    for (url, _) in trial.visited() {
        let body = trial.site.skep(&["get", &url]).exits_below(2).text();
        assert!(url.contains("length-short") || !body.contains("nobody asked for"), "{url}");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_16_lengths_that_contradict_do_not_confuse() {
    let host = "row-16-lengths.test";
    let trial = Setup::of(Row::Lengths).run();
    let forms = ["and-chunked", "twice", "twice-equal", "list", "negative", "plus", "huge", "words", "empty"];
    trial.proof_of(host, &forms);
    for form in forms {
        let fate = trial.why(host, &format!("/lengths/{form}"));
        assert!(fate.word() == "visited" && ["200", "malformed"].contains(&fate.outcome()), "{form}: {fate:?}");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_17_chunks_that_are_none_end_the_answer() {
    let host = "row-17-chunks.test";
    let trial = Setup::of(Row::Chunks).run();
    let forms = ["no-number", "overflow", "bare-lf", "no-last", "extension", "trailers", "long-size", "cut"];
    let proof = trial.proof_of(host, &forms);
    assert!(proof.bytes > 100_000, "{proof:?}");
    for form in forms {
        let fate = trial.why(host, &format!("/chunks/{form}"));
        assert!(fate.word() == "visited" && ["200", "cut-off"].contains(&fate.outcome()), "{form}: {fate:?}");
    }
    trial.kept_ordinary_pages(host);
}
