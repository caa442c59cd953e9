//! Addresses that should not be followed as they stand: rows 21, 22, 26 to 28 and 47.

use crate::trial::Setup;
use skep_testweb::Row;

#[test]
fn row_21_no_private_address_is_reached_by_name_literal_or_redirect() {
    let host = "row-21-private-addresses.test";
    let trial = Setup::only("row-21-").from(&[host]).public_only().saying("scope = 'all'").run();
    let proof = trial.proof_of(host, &["redirect", "literals"]);
    for form in ["loopback", "private", "metadata", "mapped", "nat64", "six", "rebinding", "mixed"] {
        assert!(proof.dns.get(form).is_some_and(|count| *count > 0), "nobody asked where {form} is: {proof:?}");
    }
    for form in ["loopback", "private", "link-local", "metadata", "cgnat", "mapped", "nat64", "unique-local"] {
        trial.why(&format!("{form}.{host}"), "/").is("refused", "address is not a public one");
    }
    trial.why(&format!("zero.{host}"), "/").is("dead", "no-address");
    for literal in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]", "[64:ff9b::7f00:1]"] {
        trial.why(literal, "/private-addresses/").is("refused", "address is not a public one");
    }
    assert_eq!(trial.proof("row-21-inner.test").requests, 0);
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_22_ports_of_other_protocols_are_not_knocked_at() {
    let host = "row-22-ports.test";
    let trial = Setup::of(Row::Ports).saying("scope = 'site'").run();
    trial.proof_of(host, &["links", "redirect"]);
    for port in [22, 25, 6379, 6667] {
        trial.why_of(&format!("http://{host}:{port}/")).is("refused", "port");
    }
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_26_addresses_too_long_are_not_asked_for() {
    let host = "row-26-long-urls.test";
    let trial = Setup::of(Row::LongUrls).run();
    trial.proof_of(host, &["links", "redirect", "schemes"]);
    trial.why(host, &format!("/long-urls/{}", "x".repeat(8_000))).is("visited", "404");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_27_nothing_is_smuggled_into_a_request() {
    let host = "row-27-control-bytes.test";
    let trial = Setup::of(Row::ControlBytes).run();
    let proof = trial.proof_of(host, &["links", "redirect"]);
    assert!(proof.forms["links"] > 5, "{proof:?}");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_28_secrets_in_links_go_nowhere() {
    let host = "row-28-credentials.test";
    let trial = Setup::of(Row::Credentials).saying("scope = 'site'").run();
    trial.proof_of(host, &["links", "redirect", "demand", "other-name"]);
    let archived = trial.site.skep(&["captures", host, "--match", "domain", "--json"]).exits(0).text();
    assert!(!archived.contains("hunter2"), "{archived}");
    trial.why(host, "/credentials/demand").is("visited", "401");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_47_no_file_is_named_after_an_address() {
    let host = "row-47-paths.test";
    let trial = Setup::of(Row::Paths).run();
    let proof = trial.proof_of(host, &["links", "attachment"]);
    assert!(proof.forms["links"] > 20 && proof.forms["attachment"] > 5, "{proof:?}");
    // Everything that the crawl wrote lies in the archive, under names of the archive's own.
    let mut folders = vec![trial.site.root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            assert!(plain && name.len() < 80, "{name:?} in {}", folder.display());
            for part in ["passwd", "escaped", "autoexec", "cron", "nnnn", "windows"] {
                assert!(!name.contains(part), "{name}");
            }
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            }
        }
    }
    trial.kept_ordinary_pages(host);
}
