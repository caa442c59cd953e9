//! What the auditor reports, as data and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::audit::{Auditor, Finding, Sums};
use crate::policy::Offence;

/// How politely the web was visited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests seen.
    pub requests: u64,
    /// Bytes of bodies sent.
    pub bytes: u64,
    /// Requests no longer kept one by one; all sums and findings cover them.
    pub requests_dropped: u64,
    /// Requests whose host, site or address is in no sum, because there were too many of them.
    pub places_dropped: u64,
    /// Shortest time between the starts of two requests to any one host.
    pub host_gap_ms_min: Option<f64>,
    /// Shortest time between the starts of two requests to any one site.
    pub site_gap_ms_min: Option<f64>,
    /// Most requests in flight to any one address.
    pub in_flight_max: u32,
    /// Answers by status; 0 for those given up.
    pub statuses: BTreeMap<u16, u64>,
    /// Findings by kind; complete.
    pub offences: BTreeMap<Offence, u64>,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// By host name.
    pub hosts: BTreeMap<String, Visits>,
    /// By site.
    pub sites: BTreeMap<String, Visits>,
    /// By address.
    pub addresses: BTreeMap<IpAddr, Visits>,
}

/// The sums of one host, site or address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visits {
    /// Requests.
    pub requests: u64,
    /// Bytes of bodies sent.
    pub bytes: u64,
    /// Shortest time between the starts of two requests.
    pub gap_ms_min: Option<f64>,
    /// Shortest time between the end of all earlier answers and the next request; 0 when they overlapped.
    pub rest_ms_min: Option<f64>,
    /// Most requests in flight.
    pub in_flight_max: u32,
    /// Most connections open; counted for addresses.
    pub connections_max: u32,
}

impl From<&Sums> for Visits {
    fn from(place: &Sums) -> Visits {
        Visits {
            requests: place.requests,
            bytes: place.bytes,
            gap_ms_min: place.gap_us_min.map(ms),
            rest_ms_min: place.rest_us_min.map(ms),
            in_flight_max: place.in_flight_max,
            connections_max: place.connections_max,
        }
    }
}

fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

impl Auditor {
    /// Everything seen so far.
    pub fn report(&self) -> Report {
        let shortest = |gaps: &mut dyn Iterator<Item = &Sums>| gaps.filter_map(|place| place.gap_us_min).min().map(ms);
        Report {
            requests: self.next,
            bytes: self.bytes,
            requests_dropped: self.next - self.requests().len() as u64,
            places_dropped: self.places_dropped,
            host_gap_ms_min: shortest(&mut self.hosts.values()),
            site_gap_ms_min: shortest(&mut self.sites.values()),
            in_flight_max: self.addresses.values().map(|place| place.in_flight_max).max().unwrap_or(0),
            statuses: self.statuses.clone(),
            offences: self.offences.clone(),
            findings: self.findings.clone(),
            hosts: self.hosts.iter().map(|(name, place)| (name.clone(), place.into())).collect(),
            sites: self.sites.iter().map(|(name, place)| (name.clone(), place.into())).collect(),
            addresses: self.addresses.iter().map(|(address, place)| (*address, place.into())).collect(),
        }
    }
}

impl Report {
    /// Nothing was impolite.
    pub fn polite(&self) -> bool {
        self.offences.is_empty()
    }

    /// How often something of this kind was found.
    pub fn count(&self, offence: Offence) -> u64 {
        self.offences.get(&offence).copied().unwrap_or(0)
    }

    /// A table for people: addresses, sites, hosts, then the findings.
    pub fn table(&self) -> String {
        let mut out = format!("{} requests, {} bytes; answers", self.requests, self.bytes);
        for (status, count) in &self.statuses {
            let _ = write!(out, " {status}×{count}");
        }
        out.push('\n');
        if self.requests_dropped > 0 {
            let _ = writeln!(out, "{} requests are no longer listed one by one", self.requests_dropped);
        }
        if self.places_dropped > 0 {
            let _ = writeln!(out, "{} requests are missing in the sums: too many hosts", self.places_dropped);
        }
        let addresses = self.addresses.iter().map(|(address, visits)| (address.to_string(), visits));
        rows(&mut out, "ADDRESS", addresses);
        rows(&mut out, "SITE", self.sites.iter().map(|(name, visits)| (name.clone(), visits)));
        rows(&mut out, "HOST", self.hosts.iter().map(|(name, visits)| (name.clone(), visits)));
        if self.polite() {
            out.push_str("\nno offence found\n");
            return out;
        }
        out.push_str("\nOFFENCES\n");
        for (offence, count) in &self.offences {
            let _ = writeln!(out, "{count:>8} {}", name(*offence));
        }
        for finding in &self.findings {
            let _ = writeln!(
                out,
                "{:>12.3} ms  {}  {}{}  {}",
                ms(finding.at_us),
                name(finding.offence),
                finding.host,
                finding.path,
                finding.because
            );
        }
        let told: u64 = self.offences.values().sum();
        if told > self.findings.len() as u64 {
            let _ = writeln!(out, "… and {} more", told - self.findings.len() as u64);
        }
        out
    }
}

fn rows<'v>(out: &mut String, title: &str, rows: impl Iterator<Item = (String, &'v Visits)>) {
    let _ = writeln!(
        out,
        "\n{title:<40} {:>9} {:>12} {:>12} {:>12} {:>9} {:>11}",
        "requests", "bytes", "gap ms", "rest ms", "in flight", "connections"
    );
    let figure = |ms: Option<f64>| ms.map_or("-".to_string(), |ms| format!("{ms:.3}"));
    for (name, visits) in rows {
        let _ = writeln!(
            out,
            "{name:<40} {:>9} {:>12} {:>12} {:>12} {:>9} {:>11}",
            visits.requests,
            visits.bytes,
            figure(visits.gap_ms_min),
            figure(visits.rest_ms_min),
            visits.in_flight_max,
            visits.connections_max
        );
    }
}

fn name(offence: Offence) -> &'static str {
    match offence {
        Offence::Robots => "robots",
        Offence::RobotsUnasked => "robots-unasked",
        Offence::RobotsStale => "robots-stale",
        Offence::CrawlDelay => "crawl-delay",
        Offence::HostGap => "host-gap",
        Offence::SiteGap => "site-gap",
        Offence::SiteRest => "site-rest",
        Offence::InFlight => "in-flight",
        Offence::RetryAfter => "retry-after",
    }
}
