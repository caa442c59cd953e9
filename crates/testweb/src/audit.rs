//! The auditor: judges how politely the web was visited, by its own clock. Pure: receive times come in as arguments.
//!
//! Sums and findings cover every request; only the list of single requests is cut, oldest first, and says by how much.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use skep_url::robots::{self, Because, Closed};

use crate::limits;

/// What counts as impolite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The name robots.txt rules are looked up for; without it, the product in each request's `User-Agent`.
    pub agent: Option<String>,
    /// Shortest time between the starts of two requests to one site; 0 asks for none.
    pub site_gap_ms: u64,
    /// Shortest time between the starts of two requests to one host; 0 asks for none. A crawl delay asks for more.
    pub host_gap_ms: u64,
    /// Most requests in flight to one address; 0 allows any.
    pub in_flight_max: u32,
    /// How much shorter than asked a gap may be; a client's clock and the server's are apart by the scheduler's whims.
    pub tolerance_ms: u64,
    /// robots.txt must be asked before anything else on a host.
    pub robots_first: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { agent: None, site_gap_ms: 0, host_gap_ms: 0, in_flight_max: 0, tolerance_ms: 0, robots_first: true }
    }
}

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Receive time of its first byte, since the web began.
    pub at_us: u64,
    /// The address it came to.
    pub address: IpAddr,
    /// Over TLS.
    pub secure: bool,
    /// Host it asked.
    pub host: &'a str,
    /// The host's site.
    pub site: &'a str,
    /// Method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// `User-Agent`.
    pub agent: &'a str,
    /// It asks for the robots.txt itself, which is always allowed.
    pub robots: bool,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When its last bytes were sent, since the web began.
    pub at_us: u64,
    /// Status.
    pub status: u16,
    /// Bytes of the body sent.
    pub bytes: u64,
}

/// A request as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its number, from 0.
    pub number: u64,
    /// Receive time of its first byte, since the web began.
    pub start_us: u64,
    /// When the last bytes of its answer were sent; `None` while in flight.
    pub end_us: Option<u64>,
    /// The address it came to.
    pub address: IpAddr,
    /// Over TLS.
    pub secure: bool,
    /// Host.
    pub host: String,
    /// Site.
    pub site: String,
    /// Method.
    pub method: String,
    /// Path and query, perhaps cut.
    pub path: String,
    /// `User-Agent`, perhaps cut.
    pub agent: String,
    /// Status; 0 while in flight.
    pub status: u16,
    /// Bytes of the body sent.
    pub bytes: u64,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offence {
    /// A path that robots.txt forbids.
    Robots,
    /// Something else before the robots.txt of the host.
    RobotsUnasked,
    /// Sooner after the last request to the host than its crawl delay.
    CrawlDelay,
    /// Sooner after the last request to the host than the policy says.
    HostGap,
    /// Sooner after the last request to the site than the policy says.
    SiteGap,
    /// Too many requests in flight to one address.
    InFlight,
    /// Before the time that `Retry-After` named.
    RetryAfter,
}

/// One impolite request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was wrong.
    pub offence: Offence,
    /// Number of the request.
    pub request: u64,
    /// When, since the web began.
    pub at_us: u64,
    /// Where.
    pub host: String,
    /// Where.
    pub site: String,
    /// Where.
    pub address: IpAddr,
    /// What was asked.
    pub path: String,
    /// Who asked.
    pub agent: String,
    /// The rule and the figure.
    pub because: String,
}

/// Sums of one host, site or address.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub requests: u64,
    pub bytes: u64,
    pub gap_us_min: Option<u64>,
    pub rest_us_min: Option<u64>,
    pub in_flight: u32,
    pub in_flight_max: u32,
    pub connections: u32,
    pub connections_max: u32,
    /// Latest receive times, sorted.
    recent: VecDeque<u64>,
    ended_us: Option<u64>,
    parked_until_us: u64,
}

impl Sums {
    /// Counts a request in; the gap to its nearest neighbour.
    fn arrive(&mut self, at_us: u64) -> Option<u64> {
        self.requests += 1;
        self.in_flight += 1;
        self.in_flight_max = self.in_flight_max.max(self.in_flight);
        let rest = if self.in_flight > 1 { Some(0) } else { self.ended_us.map(|ended| at_us.saturating_sub(ended)) };
        self.rest_us_min = least(self.rest_us_min, rest);

        let place = self.recent.partition_point(|time| *time <= at_us);
        let before = place.checked_sub(1).map(|before| at_us - self.recent[before]);
        let after = self.recent.get(place).map(|after| after - at_us);
        self.recent.insert(place, at_us);
        if self.recent.len() > limits::AUDIT_RECENT {
            self.recent.pop_front();
        }
        let gap = least(before, after);
        self.gap_us_min = least(self.gap_us_min, gap);
        gap
    }

    fn leave(&mut self, at_us: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.ended_us = self.ended_us.max(Some(at_us));
    }

    // It was counted in already when it arrived, so it sets no new highest figure.
    fn come_back(&mut self) {
        self.in_flight += 1;
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The number of a request on its way; hand it back to [`Auditor::depart`].
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    host: String,
    site: String,
    address: IpAddr,
}

/// Judges how politely the web was visited.
pub struct Auditor {
    pub(crate) policy: Policy,
    pub(crate) hosts: HashMap<String, Sums>,
    pub(crate) sites: HashMap<String, Sums>,
    pub(crate) addresses: HashMap<IpAddr, Sums>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) offences: BTreeMap<Offence, u64>,
    pub(crate) places_dropped: u64,
    pub(crate) next: u64,
    pub(crate) bytes: u64,
    requests: VecDeque<Request>,
    rules: HashMap<(bool, String), robots::Policy>,
}

impl Auditor {
    /// An auditor that has seen nothing.
    pub fn new(policy: Policy) -> Auditor {
        Auditor {
            policy,
            hosts: HashMap::new(),
            sites: HashMap::new(),
            addresses: HashMap::new(),
            statuses: BTreeMap::new(),
            findings: Vec::new(),
            offences: BTreeMap::new(),
            places_dropped: 0,
            next: 0,
            bytes: 0,
            requests: VecDeque::new(),
            rules: HashMap::new(),
        }
    }

    /// The requests still kept one by one, oldest first.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = &Request> {
        self.requests.iter()
    }

    /// Counts a connection in or out of an address.
    pub fn connection(&mut self, address: IpAddr, opened: bool) {
        let Some(place) = sums(&mut self.addresses, &address, &mut self.places_dropped) else {
            return;
        };
        place.connections = if opened { place.connections + 1 } else { place.connections.saturating_sub(1) };
        place.connections_max = place.connections_max.max(place.connections);
    }

    /// A visitor was told what a host's robots.txt says. A file that cannot be had does not undo one that could.
    pub fn learn(&mut self, secure: bool, host: &str, rules: robots::Policy) {
        let key = (secure, host.to_string());
        let known = self.rules.contains_key(&key);
        let closed = matches!(rules.decide("", "/").because, Because::Closed(_));
        if (!known || !closed) && (known || self.rules.len() < limits::AUDIT_PLACES_MAX) {
            self.rules.insert(key, rules);
        }
    }

    /// A request arrives: it is judged at once.
    pub fn arrive(&mut self, arrival: Arrival) -> Ticket {
        let number = self.next;
        self.next += 1;
        let dropped = &mut self.places_dropped;
        let mut host_gap = None;
        if let Some(place) = sums(&mut self.hosts, arrival.host, dropped) {
            host_gap = place.arrive(arrival.at_us);
        }
        let (mut site_gap, mut early_us) = (None, 0);
        if let Some(place) = sums(&mut self.sites, arrival.site, dropped) {
            site_gap = place.arrive(arrival.at_us);
            early_us = place.parked_until_us.saturating_sub(arrival.at_us);
        }
        let mut in_flight = 0;
        if let Some(place) = sums(&mut self.addresses, &arrival.address, dropped) {
            place.arrive(arrival.at_us);
            in_flight = place.in_flight;
        }
        self.judge(number, &arrival, host_gap, site_gap, in_flight, early_us);

        if self.requests.len() == limits::AUDIT_REQUESTS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(Request {
            number,
            start_us: arrival.at_us,
            end_us: None,
            address: arrival.address,
            secure: arrival.secure,
            host: arrival.host.into(),
            site: arrival.site.into(),
            method: cut(arrival.method),
            path: cut(arrival.path),
            agent: cut(arrival.agent),
            status: 0,
            bytes: 0,
        });
        Ticket { number, host: arrival.host.into(), site: arrival.site.into(), address: arrival.address }
    }

    /// The answer is about to be sent whole: from this moment its visitor may act on it. `parked_seconds`: it asks to
    /// leave the site alone for so long.
    pub fn leave(&mut self, ticket: &Ticket, departure: Departure, parked_seconds: Option<u64>) {
        let Departure { at_us, status, bytes } = departure;
        self.each_sum(ticket, |sums| sums.leave(at_us));
        if let (Some(seconds), Some(sums)) = (parked_seconds, self.sites.get_mut(&ticket.site)) {
            let until = at_us.saturating_add(seconds.saturating_mul(1_000_000));
            sums.parked_until_us = sums.parked_until_us.max(until);
        }
        if let Some(request) = self.kept(ticket) {
            (request.end_us, request.status, request.bytes) = (Some(at_us), status, bytes);
        }
    }

    /// It was not sent whole: the request is in flight again.
    pub fn come_back(&mut self, ticket: &Ticket) {
        self.each_sum(ticket, Sums::come_back);
        if let Some(request) = self.kept(ticket) {
            request.end_us = None;
        }
    }

    /// The request that left is over. Returns it, if it is still kept.
    pub fn depart(&mut self, ticket: Ticket, status: u16, bytes: u64) -> Option<&Request> {
        self.bytes += bytes;
        *self.statuses.entry(status).or_default() += 1;
        self.each_sum(&ticket, |sums| sums.bytes += bytes);
        self.kept(&ticket).map(|request| &*request)
    }

    fn kept(&mut self, ticket: &Ticket) -> Option<&mut Request> {
        let oldest = self.requests.front()?.number;
        self.requests.get_mut(usize::try_from(ticket.number.checked_sub(oldest)?).ok()?)
    }

    fn each_sum(&mut self, ticket: &Ticket, mut change: impl FnMut(&mut Sums)) {
        let sums = [
            self.hosts.get_mut(&ticket.host),
            self.sites.get_mut(&ticket.site),
            self.addresses.get_mut(&ticket.address),
        ];
        sums.into_iter().flatten().for_each(&mut change);
    }

    fn judge(
        &mut self,
        number: u64,
        arrival: &Arrival,
        host_gap: Option<u64>,
        site_gap: Option<u64>,
        in_flight: u32,
        early_us: u64,
    ) {
        let agent = self.policy.agent.clone().unwrap_or_else(|| product(arrival.agent).to_string());
        let rules = self.rules.get(&(arrival.secure, arrival.host.to_string()));
        let mut found = Vec::new();
        if !arrival.robots {
            match rules {
                None if self.policy.robots_first => {
                    found.push((Offence::RobotsUnasked, "robots.txt of this host has not been asked".to_string()));
                }
                None => {}
                Some(rules) => {
                    let decision = rules.decide(&agent, arrival.path);
                    if !decision.allowed {
                        found.push((Offence::Robots, format!("for {agent}: {}", rule(&decision.because))));
                    }
                }
            }
        }
        let tolerance_us = self.policy.tolerance_ms.saturating_mul(1_000);
        let mut gap = |offence, gap_us: Option<u64>, wanted_ms: u64| {
            if let Some(gap_us) = gap_us
                && gap_us.saturating_add(tolerance_us) < wanted_ms.saturating_mul(1_000)
            {
                found.push((offence, format!("{} ms after the last, wanted {wanted_ms}", gap_us / 1_000)));
            }
        };
        let delay = rules.and_then(|rules| rules.robots()?.crawl_delay(&agent));
        let delay_ms = delay.map_or(0, |delay| (delay.seconds * 1_000.0) as u64);
        gap(Offence::CrawlDelay, host_gap, delay_ms);
        gap(Offence::HostGap, host_gap, self.policy.host_gap_ms);
        gap(Offence::SiteGap, site_gap, self.policy.site_gap_ms);
        if self.policy.in_flight_max > 0 && in_flight > self.policy.in_flight_max {
            let most = self.policy.in_flight_max;
            found.push((Offence::InFlight, format!("{in_flight} in flight to {}, at most {most}", arrival.address)));
        }
        if early_us > tolerance_us {
            found.push((Offence::RetryAfter, format!("{} ms too early", early_us / 1_000)));
        }
        for (offence, because) in found {
            *self.offences.entry(offence).or_default() += 1;
            if self.findings.len() < limits::AUDIT_FINDINGS_MAX {
                self.findings.push(Finding {
                    offence,
                    request: number,
                    at_us: arrival.at_us,
                    host: arrival.host.into(),
                    site: arrival.site.into(),
                    address: arrival.address,
                    path: cut(arrival.path),
                    agent: cut(arrival.agent),
                    because,
                });
            }
        }
    }
}

/// The sums of a place, made on first sight while there is room.
fn sums<'m, K, Q>(places: &'m mut HashMap<K, Sums>, name: &Q, dropped: &mut u64) -> Option<&'m mut Sums>
where
    K: std::borrow::Borrow<Q> + std::hash::Hash + Eq,
    Q: std::hash::Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    if !places.contains_key(name) {
        if places.len() >= limits::AUDIT_PLACES_MAX {
            *dropped += 1;
            return None;
        }
        places.insert(name.to_owned(), Sums::default());
    }
    places.get_mut(name)
}

fn rule(because: &Because) -> String {
    match because {
        Because::Line(line) => format!("line {} `{}`", line.number, cut(&line.text)),
        Because::Closed(Closed::Status(status)) => format!("robots.txt answered {status}, so everything is forbidden"),
        other => format!("{other:?}"),
    }
}

/// The product token of a `User-Agent`: what stands before the first `/`, blank or comment.
pub fn product(agent: &str) -> &str {
    let end = agent.find(|c: char| !(c.is_ascii_alphabetic() || c == '-' || c == '_')).unwrap_or(agent.len());
    &agent[..end]
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(limits::AUDIT_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(status: u16, body: &str) -> robots::Policy {
        let body = body.as_bytes();
        robots::Policy::of(robots::Answer::Response { status, body, retry_after_seconds: None, failing_for_seconds: 0 })
    }

    fn arrival<'a>(at_ms: u64, host: &'a str, path: &'a str) -> Arrival<'a> {
        Arrival {
            at_us: at_ms * 1_000,
            address: IpAddr::from([127, 0, 0, 1]),
            secure: false,
            host,
            site: host.split_once('.').map_or(host, |(_, site)| site),
            method: "GET",
            path,
            agent: "skep/1.0 (+http://about.test/)",
            robots: path == "/robots.txt",
        }
    }

    fn answer(auditor: &mut Auditor, ticket: Ticket, at_ms: u64, status: u16, parked_seconds: Option<u64>) {
        auditor.leave(&ticket, Departure { at_us: at_ms * 1_000, status, bytes: 10 }, parked_seconds);
        auditor.depart(ticket, status, 10);
    }

    fn offences(auditor: &Auditor) -> Vec<(Offence, u64)> {
        auditor.findings.iter().map(|finding| (finding.offence, finding.request)).collect()
    }

    #[test]
    fn gaps_are_found_also_when_reported_out_of_order() {
        let mut auditor = Auditor::new(Policy { site_gap_ms: 500, robots_first: false, ..Policy::default() });
        for (at, host) in [(0, "a.x.test"), (2_000, "b.x.test"), (1_000, "a.x.test"), (1_400, "a.x.test")] {
            let ticket = auditor.arrive(arrival(at, host, "/"));
            answer(&mut auditor, ticket, at + 1, 200, None);
        }
        assert_eq!(auditor.sites["x.test"].gap_us_min, Some(400_000));
        assert_eq!(auditor.hosts["a.x.test"].gap_us_min, Some(400_000));
        assert_eq!(auditor.hosts["b.x.test"].gap_us_min, None);
        assert_eq!(offences(&auditor), [(Offence::SiteGap, 3)]);
    }

    #[test]
    fn robots_are_asked_first_and_obeyed() {
        let mut auditor = Auditor::new(Policy::default());
        auditor.arrive(arrival(0, "a.x.test", "/"));
        auditor.arrive(arrival(1, "a.x.test", "/robots.txt"));
        auditor.learn(false, "a.x.test", rules(200, "User-agent: skep\nDisallow: /private\nCrawl-delay: 2"));
        auditor.learn(false, "a.x.test", rules(500, ""));
        auditor.arrive(arrival(3_000, "a.x.test", "/private/x"));
        auditor.arrive(arrival(4_000, "a.x.test", "/public"));
        assert_eq!(offences(&auditor), [(Offence::RobotsUnasked, 0), (Offence::Robots, 2), (Offence::CrawlDelay, 3)]);
        assert_eq!(auditor.findings[1].because, "for skep: line 2 `Disallow: /private`");
        auditor.learn(true, "a.x.test", rules(500, ""));
        auditor.arrive(Arrival { secure: true, ..arrival(9_000, "a.x.test", "/public") });
        assert_eq!(offences(&auditor)[3], (Offence::Robots, 4));
    }

    #[test]
    fn requests_in_flight_and_too_early_ones_are_found() {
        let mut auditor = Auditor::new(Policy { in_flight_max: 2, robots_first: false, ..Policy::default() });
        let first = auditor.arrive(arrival(0, "a.x.test", "/"));
        auditor.arrive(arrival(1, "a.y.test", "/"));
        auditor.arrive(arrival(2, "a.z.test", "/"));
        auditor.leave(&first, Departure { at_us: 5_000, status: 503, bytes: 0 }, None);
        auditor.come_back(&first);
        answer(&mut auditor, first, 10, 503, Some(5));
        auditor.arrive(arrival(5_009, "b.x.test", "/"));
        auditor.arrive(arrival(5_010, "b.x.test", "/"));
        let found = offences(&auditor);
        assert!(found.contains(&(Offence::InFlight, 2)) && found.contains(&(Offence::RetryAfter, 3)), "{found:?}");
        assert!(!found.contains(&(Offence::RetryAfter, 4)));
        assert_eq!(auditor.addresses[&IpAddr::from([127, 0, 0, 1])].in_flight_max, 4);
    }

    #[test]
    fn memory_is_bounded_and_says_so() {
        let mut auditor = Auditor::new(Policy { host_gap_ms: 1_000, robots_first: false, ..Policy::default() });
        let count = limits::AUDIT_REQUESTS_MAX as u64 + 5;
        for at in 0..count {
            let ticket = auditor.arrive(arrival(at, "a.x.test", "/"));
            answer(&mut auditor, ticket, at, 200, None);
        }
        assert_eq!(auditor.requests().len(), limits::AUDIT_REQUESTS_MAX);
        assert_eq!(auditor.requests().next().unwrap().number, 5);
        assert_eq!(auditor.findings.len(), limits::AUDIT_FINDINGS_MAX);
        assert_eq!(auditor.offences[&Offence::HostGap], count - 1);
        assert_eq!(auditor.hosts["a.x.test"].requests, count);
    }

    #[test]
    fn products() {
        assert_eq!(product("skep/0.1 (+x)"), "skep");
        assert_eq!(product("Wget"), "Wget");
        assert_eq!(product(""), "");
    }
}
