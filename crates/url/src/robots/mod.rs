//! robots.txt by RFC 9309, with an answer that says why.
//!
//! Where the RFC is silent, Google's published parser is followed, which most files are written for: frequent misspellings count,
//! a missing colon is forgiven, other records never end a group, `Allow: /index.html` also allows `/`.
//!
//! The RFC wants escapes of ordinary characters undone before comparing; Google's parser compares as written. Both are done on the
//! polite side: a `Disallow` matches in either spelling, an `Allow` only as written.

mod lines;
mod pattern;
mod policy;

use std::collections::HashMap;
use std::ops::Range;

use crate::limits;
use lines::Field;
use pattern::Pattern;
pub use policy::{Answer, Closed, Open, Policy};

/// A robots.txt file, read.
#[derive(Clone, Debug, Default)]
pub struct Robots {
    rules: Vec<Rule>,
    /// Runs of rules under one set of `User-agent` lines. Agents name runs, not rules: a file of half a megabyte with
    /// thousands of agents above thousands of rules stays as small as it is.
    runs: Vec<Range<usize>>,
    /// Product token in lower case, or `*`, to its runs; groups of one agent are one.
    groups: HashMap<Box<str>, Group>,
    crawl_delays: Vec<CrawlDelay>,
    sitemaps: Vec<Sitemap>,
    cut: bool,
}

#[derive(Clone, Debug, Default)]
struct Group {
    runs: Vec<usize>,
    crawl_delay: Option<usize>,
}

#[derive(Clone, Debug)]
struct Rule {
    allow: bool,
    pattern: Pattern,
    line: Line,
}

/// A line of robots.txt, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u32,
    /// Without comment and surrounding space.
    pub text: Box<str>,
}

/// A `Sitemap` line; it belongs to no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sitemap {
    /// Where it stands.
    pub line: u32,
    /// The address as written.
    pub url: Box<str>,
}

/// A `Crawl-delay` line: not in the RFC, in many files.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlDelay {
    /// Wanted between two requests; at most [`limits::ROBOTS_CRAWL_DELAY_SECONDS_MAX`].
    pub seconds: f64,
    /// Where it stands.
    pub line: Line,
}

/// May this URL be fetched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub allowed: bool,
    /// What decided.
    pub because: Because,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// This line is the longest match.
    Line(Line),
    /// There are rules for this agent (or for all), none of which matches.
    NoRuleMatches,
    /// No group names this agent, and none names all.
    NoGroup,
    /// robots.txt itself may always be fetched.
    RobotsTxt,
    /// There is no file to read: its absence allows.
    Open(Open),
    /// The file could not be had: nothing may be fetched.
    Closed(Closed),
}

impl Robots {
    /// Reads a file; whatever it is, something comes out. Only the first [`limits::ROBOTS_BYTES_MAX`] bytes count.
    pub fn parse(file: &[u8]) -> Robots {
        let mut robots = Robots { cut: file.len() > limits::ROBOTS_BYTES_MAX, ..Robots::default() };
        let mut agents: Vec<Box<str>> = Vec::new();
        let mut in_rules = false;
        for (number, line) in lines::split(&file[..file.len().min(limits::ROBOTS_BYTES_MAX)]) {
            let Some((field, value, text)) = lines::read(line) else { continue };
            let line = || Line { number, text: String::from_utf8_lossy(text).into() };
            match field {
                Field::UserAgent => {
                    if std::mem::take(&mut in_rules) {
                        agents.clear();
                    }
                    if let Some(agent) = lines::agent(value) {
                        robots.groups.entry(agent.clone()).or_default();
                        agents.push(agent);
                    }
                }
                Field::Allow | Field::Disallow => {
                    // A rule before any agent belongs to nobody.
                    if agents.is_empty() {
                        continue;
                    }
                    if !std::mem::replace(&mut in_rules, true) {
                        robots.begin_run(&agents);
                    }
                    let allow = field == Field::Allow;
                    robots.rules.push(Rule { allow, pattern: Pattern::new(value, allow), line: line() });
                    if let Some(run) = robots.runs.last_mut() {
                        run.end += 1;
                    }
                }
                Field::CrawlDelay => {
                    let Some(seconds) = lines::seconds(value) else { continue };
                    let place = robots.crawl_delays.len();
                    robots.crawl_delays.push(CrawlDelay { seconds, line: line() });
                    for agent in &agents {
                        if let Some(group) = robots.groups.get_mut(agent) {
                            group.crawl_delay.get_or_insert(place);
                        }
                    }
                }
                Field::Sitemap => {
                    if robots.sitemaps.len() < limits::ROBOTS_SITEMAPS_MAX && !value.is_empty() {
                        robots.sitemaps.push(Sitemap { line: number, url: String::from_utf8_lossy(value).into() });
                    }
                }
                Field::Other => {}
            }
        }
        robots
    }

    fn begin_run(&mut self, agents: &[Box<str>]) {
        let run = self.runs.len();
        self.runs.push(self.rules.len()..self.rules.len());
        for agent in agents {
            if let Some(group) = self.groups.get_mut(agent)
                && group.runs.last() != Some(&run)
            {
                group.runs.push(run);
            }
        }
    }

    /// May `agent` fetch `url`? The agent is its product token; of `Skep/1.0` the part before the slash counts. Of the
    /// URL path and query count.
    pub fn decide(&self, agent: &str, url: &str) -> Decision {
        let path = pattern::Path::of(url);
        if path.is_robots_txt() {
            return Decision { allowed: true, because: Because::RobotsTxt };
        }
        let Some(group) = self.group(agent) else {
            return Decision { allowed: true, because: Because::NoGroup };
        };
        let mut best: Option<(usize, &Rule)> = None;
        for rule in group.runs.iter().flat_map(|&run| &self.rules[self.runs[run].clone()]) {
            let Some(length) = rule.pattern.matches(&path) else { continue };
            let better = match best {
                None => true,
                Some((longest, other)) => length > longest || (length == longest && rule.allow && !other.allow),
            };
            if better {
                best = Some((length, rule));
            }
        }
        match best {
            Some((_, rule)) => Decision { allowed: rule.allow, because: Because::Line(rule.line.clone()) },
            None => Decision { allowed: true, because: Because::NoRuleMatches },
        }
    }

    /// The pause that `agent` is asked to make between requests.
    pub fn crawl_delay(&self, agent: &str) -> Option<&CrawlDelay> {
        self.crawl_delays.get(self.group(agent)?.crawl_delay?)
    }

    /// All `Sitemap` lines, in order.
    pub fn sitemaps(&self) -> &[Sitemap] {
        &self.sitemaps
    }

    /// Was the file longer than [`limits::ROBOTS_BYTES_MAX`]?
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// The rules of the agent's own group, else of the group for all.
    fn group(&self, agent: &str) -> Option<&Group> {
        let token = agent.split('/').next().unwrap_or_default().to_ascii_lowercase();
        self.groups.get(token.as_str()).filter(|_| token != "*").or_else(|| self.groups.get("*"))
    }
}
