//! Name servers, certificates and addresses that mislead: rows 39 to 42.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_39_names_that_lead_nowhere_do_not_hold_up_the_rest() {
    // A name server that has an address for every name would have one for all others, too.
    let trial = Setup::of(Row::Dns).without("hijack").run();
    for form in ["servfail", "refused", "nothing", "cname-loop", "cname-chain", "garbage", "empty"] {
        let host = format!("row-39-dns-{form}.test");
        let proof = trial.proof(&host);
        assert!(proof.dns.values().sum::<u64>() > 0 && proof.requests == 0, "{proof:?}");
        let fate = trial.why(&host, "/");
        assert!(fate.word() == "dead" && fate.outcome() != "robots-unreachable", "{form}: {fate:?}");
    }
    for form in ["short-ttl", "many", "cut", "forged"] {
        let host = format!("row-39-dns-{form}.test");
        assert!(trial.proof(&host).dns[form] > 0);
        trial.why(&host, "/").is("visited", "200");
        trial.kept_ordinary_pages(&host);
    }
}

#[test]
fn row_40_a_name_server_that_throttles_is_asked_again() {
    let trial = Setup::of(Row::DnsThrottle).times(12).patience(20).run();
    let throttled: u64 = trial.web.proofs().values().filter_map(|proof| proof.dns.get("throttled")).sum();
    assert!(throttled > 0, "nobody was throttled");
    for form in ["refuse", "drop"] {
        let host = format!("row-40-dns-throttle-{form}");
        for name in (1..12).map(|number| format!("{host}-{number}.test")).chain([format!("{host}.test")]) {
            trial.why(&name, "/").is("visited", "200");
        }
    }
}

#[test]
fn row_41_faulty_certificates_are_recorded_and_faulty_handshakes_end() {
    let trial = Setup::of(Row::Tls).run();
    for form in ["expired", "future", "self-signed", "wrong-host"] {
        let host = format!("row-41-tls-{form}.test");
        trial.proof_of(&host, &[form]);
        trial.why(&host, "/").is("visited", "200").notes("certificate");
        trial.kept_ordinary_pages(&host);
    }
    for (form, verdict) in [
        ("long-chain", "tls-chain-too-large"),
        ("legacy", "legacy-tls"),
        ("unrecognised", "tls-failed"),
        ("clear-text", "not-tls"),
        ("closed", "tls-closed"),
        ("dripping", "timeout-handshake"),
    ] {
        let host = format!("row-41-tls-{form}.test");
        trial.proof_of(&host, &[form]);
        trial.why(&host, "/").is("dead", verdict);
    }
}

#[test]
fn row_42_a_black_hole_in_the_newer_network_is_gone_around() {
    let host = "row-42-black-hole-six.test";
    let trial = Setup::of(Row::BlackHole).run();
    let proof = trial.proof(host);
    assert!(proof.dns["aaaa"] > 0 && proof.requests > 0, "{proof:?}");
    trial.kept_ordinary_pages(host);
}
