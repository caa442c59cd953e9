//! All rows in one run.
//!
//! As a test it has short clocks. `SKEP_HOSTILE_MINUTES` asks for more, as `cargo xtask soak hostile` does: the clocks that a crawl
//! has when nobody shortens them, and that many minutes to end by itself; `SKEP_HOSTILE_SEED` draws another web.

use crate::trial::Setup;
use skep_testweb::Proof;
use std::time::Duration;

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

#[test]
fn all_rows_in_one_run_end_by_themselves() {
    let minutes = variable("SKEP_HOSTILE_MINUTES");
    let setup = Setup::all(variable("SKEP_HOSTILE_SEED").unwrap_or(7))
        // It would have an address for every name of the others, too.
        .without("dns-hijack")
        .public_only()
        .saying("scope = 'site'")
        .saying("exclude = ['*/of-a-million/*']")
        .ends(3);
    let trial = match minutes {
        Some(minutes) => setup.in_full(Duration::from_secs(minutes * 60)).run(),
        None => setup.without("refusals-past").without("row-38-provider-ban-silence").run(),
    };
    println!("{:<42} {:>7} {:>12} {:>8}  verdict on /", "", "deeds", "bytes", "held s");
    let mut silent = Vec::new();
    for place in &trial.web.map().hosts {
        let proof = trial.proof(&place.host);
        let fate = trial.why_of(&place.url);
        let held = proof.held_ms as f64 / 1000.0;
        println!(
            "{:<42} {:>7} {:>12} {held:>8.1}  {}: {}",
            place.host,
            proof.deeds,
            proof.bytes,
            fate.word(),
            fate.because()
        );
        let parked = fate.because().contains("asked to be left alone");
        assert!(["visited", "dead", "refused"].contains(&fate.word()) || parked, "{}: {fate:?}", place.host);
        // Those whose row is a matter of names are let through to it, and reached in spite of it.
        let is_about_names = ["row-40-", "row-42-"].iter().any(|row| place.host.starts_with(row));
        assert!(!is_about_names || proof.requests > 0, "{} was never reached: {proof:?}", place.host);
        if !misbehaved(&proof) {
            silent.push(place.host.clone());
        }
    }
    // It is an address that bans: who has learned it from other sites there does not ask the rest.
    let bans = |row: &str| {
        let mut sites = trial.web.map().hosts.iter().filter(|place| place.host.starts_with(row));
        sites.any(|place| misbehaved(&trial.proof(&place.host)))
    };
    silent.retain(|host| !host.rsplit_once('-').is_some_and(|(row, _)| row.starts_with("row-38-") && bans(row)));
    println!("{} MB at most, {}", trial.memory_bytes / 1_000_000, trial.report());
    // These two are only there for others to lead to.
    silent.retain(|host| !["row-24-elsewhere.test", "row-21-inner.test"].contains(&host.as_str()));
    assert!(silent.is_empty(), "these did nothing wrong: {silent:?}");
}

/// By an answer, a handshake, or what the name server said of it.
fn misbehaved(proof: &Proof) -> bool {
    proof.deeds > 0 || !proof.dns.is_empty()
}
