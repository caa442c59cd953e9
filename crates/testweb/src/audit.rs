//! The auditor: judges how politely the web was visited, by its own clock. Pure: receive times come in as arguments.
//!
//! Sums and findings cover every request; only the list of single requests is cut, oldest first, and says by how much.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use skep_url::robots::{self, Because, Closed};

use crate::clock::Time;
use crate::limits;
use crate::policy::{Offence, Policy, Refused, product};

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Receive time of its first byte, since the web began.
    pub at_us: u64,
    /// What the web's clock showed then.
    pub now: Time,
    /// The address it came to …
    pub address: IpAddr,
    /// … and the one it came from.
    pub from: IpAddr,
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
    /// The address it came to …
    pub address: IpAddr,
    /// … and the one it came from.
    pub from: IpAddr,
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
    /// What the answer took that ended last.
    answer_us: u64,
    parked_until_us: u64,
}

/// How a request follows on others to the same host, site or address.
#[derive(Clone, Copy, Debug, Default)]
struct Follows {
    /// The time to its nearest neighbour.
    gap_us: Option<u64>,
    /// The time since the last answer; 0 when one is in flight.
    rest_us: Option<u64>,
    /// What that answer took.
    answer_us: u64,
    /// So long before the end of the time for which a refusal asked.
    early_us: u64,
}

impl Sums {
    /// Counts a request in.
    fn arrive(&mut self, at_us: u64) -> Follows {
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
        let gap_us = least(before, after);
        self.gap_us_min = least(self.gap_us_min, gap_us);
        let early_us = self.parked_until_us.saturating_sub(at_us);
        Follows { gap_us, rest_us: rest, answer_us: self.answer_us, early_us }
    }

    fn leave(&mut self, began_us: u64, at_us: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.ended_us.is_none_or(|ended| ended <= at_us) {
            self.ended_us = Some(at_us);
            self.answer_us = at_us.saturating_sub(began_us);
        }
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
    at_us: u64,
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
    rules: HashMap<(bool, String), Known>,
}

/// The rules that visitors of a host know, and when they last asked for them.
struct Known {
    rules: robots::Policy,
    asked: Time,
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

    /// A visitor was told what a host's robots.txt says. A file that cannot be had does not undo one that could, but it was
    /// asked for.
    pub fn learn(&mut self, secure: bool, host: &str, rules: robots::Policy, now: Time) {
        let key = (secure, host.to_string());
        let closed = matches!(rules.decide("", "/").because, Because::Closed(_));
        let room = self.rules.len() < limits::AUDIT_PLACES_MAX;
        match self.rules.entry(key) {
            Entry::Occupied(mut known) => {
                known.get_mut().asked = now;
                if !closed {
                    known.get_mut().rules = rules;
                }
            }
            Entry::Vacant(unknown) if room => {
                unknown.insert(Known { rules, asked: now });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// A request arrives: it is judged at once.
    pub fn arrive(&mut self, arrival: Arrival) -> Ticket {
        let number = self.next;
        self.next += 1;
        let dropped = &mut self.places_dropped;
        let mut at_host = Follows::default();
        if let Some(place) = sums(&mut self.hosts, arrival.host, dropped) {
            at_host = place.arrive(arrival.at_us);
        }
        let mut at_site = Follows::default();
        if let Some(place) = sums(&mut self.sites, arrival.site, dropped) {
            at_site = place.arrive(arrival.at_us);
        }
        let mut in_flight = 0;
        if let Some(place) = sums(&mut self.addresses, &arrival.address, dropped) {
            place.arrive(arrival.at_us);
            in_flight = place.in_flight;
        }
        self.judge(number, &arrival, at_host, at_site, in_flight);

        if self.requests.len() == limits::AUDIT_REQUESTS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(Request {
            number,
            start_us: arrival.at_us,
            end_us: None,
            address: arrival.address,
            from: arrival.from,
            secure: arrival.secure,
            host: arrival.host.into(),
            site: arrival.site.into(),
            method: cut(arrival.method),
            path: cut(arrival.path),
            agent: cut(arrival.agent),
            status: 0,
            bytes: 0,
        });
        Ticket {
            number,
            at_us: arrival.at_us,
            host: arrival.host.into(),
            site: arrival.site.into(),
            address: arrival.address,
        }
    }

    /// The answer is about to be sent whole: from this moment its visitor may act on it. `retry_after_seconds`: what its
    /// `Retry-After` means, in either form.
    pub fn leave(&mut self, ticket: &Ticket, departure: Departure, retry_after_seconds: Option<u64>) {
        let Departure { at_us, status, bytes } = departure;
        self.each_sum(ticket, |sums| sums.leave(ticket.at_us, at_us));
        let parked_us = self.policy.parked_us(status, retry_after_seconds);
        let place = match self.policy.refused {
            Refused::Site => self.sites.get_mut(&ticket.site),
            Refused::Host => self.hosts.get_mut(&ticket.host),
        };
        if let (Some(sums), true) = (place, parked_us > 0) {
            sums.parked_until_us = sums.parked_until_us.max(at_us.saturating_add(parked_us));
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

    fn judge(&mut self, number: u64, arrival: &Arrival, at_host: Follows, at_site: Follows, in_flight: u32) {
        let agent = self.policy.agent.clone().unwrap_or_else(|| product(arrival.agent).to_string());
        let known = self.rules.get(&(arrival.secure, arrival.host.to_string()));
        let mut found = Vec::new();
        if !arrival.robots {
            match known {
                None if self.policy.robots_first => {
                    found.push((Offence::RobotsUnasked, "robots.txt of this host has not been asked".to_string()));
                }
                None => {}
                Some(known) => {
                    let decision = known.rules.decide(&agent, arrival.path);
                    if !decision.allowed {
                        found.push((Offence::Robots, format!("for {agent}: {}", rule(&decision.because))));
                    }
                    let age_seconds = u64::try_from(arrival.now.seconds() - known.asked.seconds()).unwrap_or(0);
                    let most = self.policy.robots_age_seconds_max;
                    if most > 0 && age_seconds > most {
                        let because = format!("robots.txt was asked {age_seconds} s ago, at most {most}");
                        found.push((Offence::RobotsStale, because));
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
        let delay = known.and_then(|known| known.rules.robots()?.crawl_delay(&agent));
        let delay_ms = delay.map_or(0, |delay| (delay.seconds * 1_000.0) as u64);
        gap(Offence::CrawlDelay, at_host.gap_us, delay_ms);
        gap(Offence::HostGap, at_host.gap_us, self.policy.host_gap_ms);
        gap(Offence::SiteGap, at_site.gap_us, self.policy.site_gap_ms);
        let wanted_us = self.policy.rest_us(at_site.answer_us);
        if let Some(rest_us) = at_site.rest_us
            && rest_us.saturating_add(tolerance_us) < wanted_us
        {
            let (rest, wanted, took) = (rest_us / 1_000, wanted_us / 1_000, at_site.answer_us / 1_000);
            found.push((Offence::SiteRest, format!("{rest} ms after an answer of {took} ms, wanted {wanted}")));
        }
        if self.policy.in_flight_max > 0 && in_flight > self.policy.in_flight_max {
            let most = self.policy.in_flight_max;
            found.push((Offence::InFlight, format!("{in_flight} in flight to {}, at most {most}", arrival.address)));
        }
        let early_us = at_site.early_us.max(at_host.early_us);
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
            now: Time::BEGIN.plus_ms(at_ms as i64),
            address: IpAddr::from([127, 0, 0, 1]),
            from: IpAddr::from([127, 0, 0, 1]),
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
        auditor.learn(
            false,
            "a.x.test",
            rules(200, "User-agent: skep\nDisallow: /private\nCrawl-delay: 2"),
            Time::BEGIN,
        );
        auditor.learn(false, "a.x.test", rules(500, ""), Time::BEGIN);
        auditor.arrive(arrival(3_000, "a.x.test", "/private/x"));
        auditor.arrive(arrival(4_000, "a.x.test", "/public"));
        assert_eq!(offences(&auditor), [(Offence::RobotsUnasked, 0), (Offence::Robots, 2), (Offence::CrawlDelay, 3)]);
        assert_eq!(auditor.findings[1].because, "for skep: line 2 `Disallow: /private`");
        auditor.learn(true, "a.x.test", rules(500, ""), Time::BEGIN);
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
    fn a_site_rests_for_a_multiple_of_its_last_answer() {
        let mut auditor = Auditor::new(Policy { robots_first: false, ..Policy::polite() });
        let mut ask = |at_ms, host, took_ms| {
            let ticket = auditor.arrive(arrival(at_ms, host, "/"));
            answer(&mut auditor, ticket, at_ms + took_ms, 200, None);
            auditor.findings.len()
        };
        assert_eq!(ask(0, "a.x.test", 10), 0);
        assert_eq!(ask(510, "b.x.test", 400), 0, "half a second after the end");
        assert_eq!(ask(1_500, "a.y.test", 1), 0, "another site");
        assert_eq!(ask(2_700, "a.x.test", 10), 1, "1.8 s after 0.4 s");
        assert_eq!(ask(3_190, "a.x.test", 30_000), 1, "within the tolerance");
        assert_eq!(ask(93_300, "a.x.test", 1), 1, "a minute is enough");
        let two = [arrival(200_000, "a.x.test", "/"), arrival(200_600, "b.x.test", "/")].map(|a| auditor.arrive(a));
        assert_eq!(offences(&auditor), [(Offence::SiteRest, 3), (Offence::SiteRest, 7)], "nor two at once");
        drop(two);
    }

    #[test]
    fn robots_are_asked_again_after_a_day() {
        let mut auditor = Auditor::new(Policy { robots_age_seconds_max: 86_400, ..Policy::default() });
        auditor.learn(false, "a.x.test", rules(200, ""), Time::BEGIN);
        let hour = 3_600_000;
        auditor.arrive(arrival(24 * hour, "a.x.test", "/"));
        assert!(auditor.findings.is_empty());
        auditor.arrive(arrival(25 * hour, "a.x.test", "/"));
        assert_eq!(offences(&auditor), [(Offence::RobotsStale, 1)]);
        auditor.learn(false, "a.x.test", rules(500, ""), Time::BEGIN.plus_days(1));
        auditor.arrive(arrival(26 * hour, "a.x.test", "/"));
        assert_eq!(auditor.findings.len(), 1, "it was asked, and what was known still counts");
    }

    #[test]
    fn a_refusal_without_a_time_parks_the_site_or_the_host() {
        for (refused, found) in [(Refused::Site, 2), (Refused::Host, 1)] {
            let policy = Policy { refused_ms_min: 30_000, refused, robots_first: false, ..Policy::default() };
            let mut auditor = Auditor::new(policy);
            let ticket = auditor.arrive(arrival(0, "a.x.test", "/"));
            answer(&mut auditor, ticket, 10, 429, None);
            auditor.arrive(arrival(29_000, "a.x.test", "/"));
            auditor.arrive(arrival(29_500, "b.x.test", "/"));
            auditor.arrive(arrival(30_010, "a.x.test", "/"));
            assert_eq!(auditor.offences[&Offence::RetryAfter], found, "{refused:?}");
        }
    }
}
