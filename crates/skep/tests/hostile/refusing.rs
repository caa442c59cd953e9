//! Hosts that turn visitors away: rows 36 to 38 and 45.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_36_challenges_are_marked_and_backed_off_from() {
    let trial = Setup::of(Row::Challenges).ends(0).run();
    for form in ["moment", "proof-of-work", "denied", "captcha"] {
        let host = format!("row-36-challenges-{form}.test");
        let proof = trial.proof_of(&host, &[form]);
        assert!(proof.forms[form] <= 10, "{proof:?}");
        trial.why(&host, "/").is("dead", "challenge");
    }
    trial.why("row-36-challenges-cloaked.test", "/").is("visited", "200");
}

#[test]
fn row_37_refusals_are_obeyed_and_the_crawl_says_until_when() {
    // A date in the past counts as no date, and that is half a minute each time: too long for a test.
    let trial = Setup::of(Row::Refusals).without("past").ends(3).run();
    for form in ["bare", "seconds", "date", "year", "words", "unavailable"] {
        trial.proof_of(&format!("row-37-refusals-{form}.test"), &[form]);
    }
    // Several bundles of an own host are under way when the first is refused; nobody comes back after that.
    assert!(trial.proof("row-37-refusals-year.test").forms["year"] <= 8);
    trial.why("row-37-refusals-year.test", "/").is("visited", "200");
}

#[test]
fn row_38_a_crawl_of_an_address_that_bans_us_ends() {
    let trial = Setup::of(Row::ProviderBan).run();
    for form in ["forbidden", "too-many", "reset", "silence"] {
        let hosts: Vec<String> = (0..5).map(|n| format!("row-38-provider-ban-{form}-{n}.test")).collect();
        let deeds: u64 = hosts.iter().map(|host| trial.proof(host).deeds).sum();
        assert!(deeds > 0, "{form}");
    }
}

#[test]
fn row_45_a_crawl_behind_a_portal_ends() {
    let trial = Setup::of(Row::Portal).run();
    trial.proof_of("row-45-portal-page.test", &["page"]);
}
