//! Files that are meant to lead crawlers, and mislead them: rows 23 to 25 and 32.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_23_a_robots_txt_of_any_size_is_read_to_its_bound() {
    let trial = Setup::of(Row::RobotsSize).run();
    for form in ["huge", "endless", "slow", "binary", "html", "bomb", "one-line"] {
        let host = format!("row-23-robots-size-{form}.test");
        let proof = trial.proof_of(&host, &[form]);
        // What fills buffers on both sides comes on top of what is read.
        assert!(proof.bytes < 64 << 20, "{form}: {proof:?}");
        if form == "slow" {
            // Half a file may have forbidden more than came.
            assert!(proof.held_ms > 500 && proof.given_up > 0, "{proof:?}");
            trial.why(&host, "/").is("dead", "robots-unreachable");
            continue;
        }
        trial.why(&host, "/").is("visited", "200");
        trial.kept_ordinary_pages(&host);
    }
}

#[test]
fn row_24_a_robots_txt_that_leads_in_circles_is_none() {
    let trial = Setup::only("row-24-").run();
    for form in ["itself", "circle", "chain", "elsewhere", "cookie"] {
        let host = format!("row-24-robots-redirects-{form}.test");
        let proof = trial.proof_of(&host, &[form]);
        assert!(proof.forms[form] <= 6, "{form}: {proof:?}");
        trial.why(&host, "/").is("visited", "200");
        trial.kept_ordinary_pages(&host);
    }
}

#[test]
fn row_25_rules_without_number_and_patterns_of_stars_cost_little() {
    let trial = Setup::of(Row::RobotsRules).run();
    for form in ["many", "stars"] {
        let host = format!("row-25-robots-rules-{form}.test");
        trial.proof_of(&host, &[form]);
        trial.why(&host, &format!("/robots-rules/{}", "a".repeat(2_000))).is("visited", "200");
        trial.why(&host, &format!("/robots-rules/{}b", "a".repeat(2_000))).is("visited", "200");
    }
}

#[test]
fn row_32_sitemaps_do_not_grow_over_the_crawl() {
    let host = "row-32-sitemaps.test";
    let trial = Setup::of(Row::Sitemaps).saying("exclude = ['*/of-a-million/*']").run();
    let proof = trial.proof_of(host, &["entities.xml", "external.xml", "itself.xml", "chain.xml", "bomb.xml.gz"]);
    assert!(proof.bytes > 1_000_000, "{proof:?}");
    assert!(!proof.forms.contains_key("fetched-as-entity"), "{proof:?}");
}
