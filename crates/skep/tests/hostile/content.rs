//! Content that hurts whoever looks into it: rows 30, 31, 33 and 46.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_30_markup_without_measure_is_read_within_bounds() {
    let host = "row-30-markup.test";
    let forms = ["tags", "nesting", "attribute", "links", "comment", "attributes", "open-tag"];
    let trial = Setup::of(Row::Markup).saying("exclude = ['*/of-a-million/*']").run();
    let proof = trial.proof_of(host, &forms);
    assert!(proof.bytes > 10 << 20, "{proof:?}");
    for form in forms {
        trial.why(host, &format!("/markup/{form}")).is("visited", "200");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_31_texts_that_make_patterns_explode_do_not() {
    let host = "row-31-patterns.test";
    let forms = ["text", "entities", "css", "srcset", "headers"];
    let trial = Setup::of(Row::Patterns).run();
    trial.proof_of(host, &forms);
    for form in forms {
        trial.why(host, &format!("/patterns/{form}")).is("visited", "200");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_33_links_are_found_whatever_the_charset_is_called() {
    let host = "row-33-charsets.test";
    let forms = ["utf-16", "utf-7", "latin-as-utf-8", "utf-8-as-latin", "mixed", "unknown", "shift-jis"];
    let trial = Setup::of(Row::Charsets).run();
    trial.proof_of(host, &forms);
    for form in forms {
        trial.why(host, &format!("/charsets/{form}")).is("visited", "200");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_46_files_are_kept_and_never_opened() {
    let host = "row-46-opaque.test";
    let forms = ["eicar", "program.exe", "page.jpg", "names.tar", "program.html", "polyglot.gif", "sniff"];
    let trial = Setup::of(Row::Opaque).run();
    trial.proof_of(host, &forms);
    for form in forms {
        trial.why(host, &format!("/opaque/{form}")).is("visited", "200");
    }
    trial.kept_ordinary_pages(host);
}
