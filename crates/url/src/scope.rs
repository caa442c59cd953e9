//! Which URLs belong to a crawl, and the rule that says so.
//!
//! ```text
//! host example.org            one name, any port; `host example.org:8080` one port
//! site a.example.org          the registrable domain of that name
//! domain a.example.org        that name and everything below it
//! prefix example.org/docs/    what begins so; the scheme does not count
//! url https://example.org/    this one
//! all                         everything
//! include *.example.org/*     a glob over the whole URL; only `*` is special, the scheme may be left out
//! include ~ ^https://[^/]+/d  a regular expression, anywhere in the URL
//! exclude …                   the same two kinds, and they win over everything else
//! ```
//! A URL is in when a rule takes it in and no `exclude` throws it out. Patterns run in linear time, whatever they are.

use std::collections::HashMap;
use std::fmt;

use regex::{RegexSet, RegexSetBuilder};

use crate::fetch::Url;
use crate::limits;
use crate::site::{Part, Suffixes};

/// One rule, as meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Everything.
    All,
    /// A name, and a port if one is given.
    Host {
        /// Lower-case ASCII.
        name: String,
        /// Any, if none.
        port: Option<u16>,
    },
    /// A registrable domain.
    Site(String),
    /// A name and everything below it.
    Domain(String),
    /// The beginning of a URL, without its scheme.
    Prefix(String),
    /// One URL.
    Url(Url),
    /// Takes in what the pattern matches.
    Include(Pattern),
    /// Throws out what the pattern matches.
    Exclude(Pattern),
}

/// A pattern over whole URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `*` stands for any run of characters.
    Glob(String),
    /// A regular expression.
    Regex(String),
}

/// Why a line is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The line as given.
    pub rule: String,
    /// What is wrong with it and what to write instead.
    pub because: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scope rule '{}': {}", self.rule, self.because)
    }
}

impl std::error::Error for RuleError {}

/// Does a URL belong, and which rule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// The answer.
    pub inside: bool,
    /// The rule; `None` when no rule takes the URL in.
    pub rule: Option<&'a Rule>,
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.inside, self.rule) {
            (true, Some(rule)) => write!(f, "in scope by '{rule}'"),
            (false, Some(rule)) => write!(f, "out of scope by '{rule}'"),
            (_, None) => write!(f, "out of scope: no rule takes it in"),
        }
    }
}

/// The rules of a crawl, ready to be asked.
#[derive(Clone, Debug)]
pub struct Scope {
    rules: Vec<Rule>,
    all: Option<usize>,
    hosts: HashMap<(String, Option<u16>), usize>,
    sites: HashMap<String, usize>,
    domains: HashMap<String, usize>,
    urls: HashMap<Url, usize>,
    /// By what stands before the first slash, so that a long list is not walked.
    prefixes: HashMap<String, Vec<usize>>,
    include: Patterns,
    exclude: Patterns,
    suffixes: Suffixes,
}

#[derive(Clone, Debug)]
struct Patterns {
    set: RegexSet,
    rules: Vec<usize>,
}

impl Scope {
    /// Reads rules, one per item; blank ones and those that begin with `#` are skipped.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>, suffixes: Suffixes) -> Result<Scope, RuleError> {
        let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rules = lines.map(|line| Rule::parse(line, &suffixes)).collect::<Result<Vec<_>, _>>()?;
        Scope::new(rules, suffixes)
    }

    /// Makes rules ready to be asked.
    pub fn new(rules: Vec<Rule>, suffixes: Suffixes) -> Result<Scope, RuleError> {
        if rules.len() > limits::SCOPE_RULES_MAX {
            return Err(RuleError {
                rule: format!("{} rules", rules.len()),
                because: format!("more than {} do not fit in one scope", limits::SCOPE_RULES_MAX),
            });
        }
        let patterns = |wanted: fn(&Rule) -> Option<&Pattern>| {
            let found: Vec<(usize, &Pattern)> =
                rules.iter().enumerate().filter_map(|(i, rule)| Some((i, wanted(rule)?))).collect();
            Patterns::new(&found, &rules)
        };
        let include = patterns(|rule| if let Rule::Include(pattern) = rule { Some(pattern) } else { None })?;
        let exclude = patterns(|rule| if let Rule::Exclude(pattern) = rule { Some(pattern) } else { None })?;
        let mut scope = Scope {
            all: None,
            hosts: HashMap::new(),
            sites: HashMap::new(),
            domains: HashMap::new(),
            urls: HashMap::new(),
            prefixes: HashMap::new(),
            include,
            exclude,
            suffixes,
            rules,
        };
        for (i, rule) in scope.rules.iter().enumerate() {
            match rule {
                Rule::All => {
                    scope.all.get_or_insert(i);
                }
                Rule::Host { name, port } => {
                    scope.hosts.entry((name.clone(), *port)).or_insert(i);
                }
                Rule::Site(site) => {
                    scope.sites.entry(site.clone()).or_insert(i);
                }
                Rule::Domain(name) => {
                    scope.domains.entry(name.clone()).or_insert(i);
                }
                Rule::Url(url) => {
                    scope.urls.entry(url.clone()).or_insert(i);
                }
                Rule::Prefix(prefix) => {
                    let authority = prefix.split('/').next().unwrap_or_default();
                    scope.prefixes.entry(authority.to_owned()).or_default().push(i);
                }
                Rule::Include(_) | Rule::Exclude(_) => {}
            }
        }
        Ok(scope)
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Does the URL belong? Of several rules that decide alike the first is named.
    pub fn decide(&self, url: &Url) -> Verdict<'_> {
        if let Some(rule) = self.exclude.first(url) {
            return Verdict { inside: false, rule: self.rules.get(rule) };
        }
        let rule = self.first_inside(url).and_then(|rule| self.rules.get(rule));
        Verdict { inside: rule.is_some(), rule }
    }

    fn first_inside(&self, url: &Url) -> Option<usize> {
        let name = url.host_name();
        let host = |port| self.hosts.get(&(name.to_owned(), port)).copied();
        let below = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest));
        [
            self.all,
            host(None),
            host(Some(url.port())),
            self.sites.get(url.site(&self.suffixes, Part::Whole)).copied(),
            below.filter_map(|name| self.domains.get(name).copied()).min(),
            self.urls.get(url).copied(),
            self.first_prefix(url),
            self.include.first(url),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn first_prefix(&self, url: &Url) -> Option<usize> {
        let text = without_scheme(url.as_str());
        let authority = text.split('/').next().unwrap_or_default();
        let fits =
            |&&rule: &&usize| matches!(&self.rules[rule], Rule::Prefix(prefix) if text.starts_with(prefix.as_str()));
        self.prefixes.get(authority)?.iter().find(fits).copied()
    }
}

impl Patterns {
    fn new(patterns: &[(usize, &Pattern)], rules: &[Rule]) -> Result<Patterns, RuleError> {
        let build = |sources: &[String], bytes: usize| RegexSetBuilder::new(sources).size_limit(bytes).build();
        let sources: Vec<String> = patterns.iter().map(|(_, pattern)| pattern.source()).collect();
        for ((rule, _), source) in patterns.iter().zip(&sources) {
            build(std::slice::from_ref(source), limits::SCOPE_REGEX_BYTES_MAX)
                .map_err(|error| RuleError { rule: rules[*rule].to_string(), because: regex_message(&error) })?;
        }
        let bytes = limits::SCOPE_REGEX_BYTES_MAX.saturating_mul(sources.len().max(1));
        let set = build(&sources, bytes).map_err(|error| RuleError {
            rule: format!("{} patterns", sources.len()),
            because: regex_message(&error),
        })?;
        Ok(Patterns { set, rules: patterns.iter().map(|&(rule, _)| rule).collect() })
    }

    fn first(&self, url: &Url) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        self.set.matches(url.as_str()).iter().next().and_then(|i| self.rules.get(i).copied())
    }
}

fn regex_message(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large: use fewer repetitions".to_owned(),
        error => format!("not a regular expression: {}", error.to_string().lines().last().unwrap_or_default().trim()),
    }
}

impl Pattern {
    fn source(&self) -> String {
        match self {
            Pattern::Regex(source) => source.clone(),
            Pattern::Glob(glob) => {
                let parts: Vec<String> = glob.split('*').map(regex::escape).collect();
                format!("(?s)^(?:https?://)?{}$", parts.join(".*"))
            }
        }
    }

    fn parse(text: &str) -> Pattern {
        match text.strip_prefix('~') {
            Some(source) => Pattern::Regex(source.trim_start().to_owned()),
            None => Pattern::Glob(text.to_owned()),
        }
    }
}

impl Rule {
    /// Reads one rule; the suffix list says what the site of a name is.
    pub fn parse(line: &str, suffixes: &Suffixes) -> Result<Rule, RuleError> {
        let line = line.trim();
        let wrong = |because: String| RuleError { rule: line.to_owned(), because };
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if (word == "all") != rest.is_empty() {
            return Err(wrong(match word {
                "all" => "'all' stands alone".to_owned(),
                _ => KINDS.to_owned(),
            }));
        }
        // Names are read through the same door as URLs, so that `BÜCHER.example` means what it means there.
        let named = |text: &str| {
            let text = without_scheme(text);
            Url::parse(&format!("http://{text}")).map_err(|error| wrong(format!("{text}: {error}")))
        };
        Ok(match word {
            "all" => Rule::All,
            "host" => {
                let url = named(rest)?;
                let port = rest.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse().ok());
                Rule::Host { name: url.host_name().to_owned(), port: port.filter(|&port: &u16| port == url.port()) }
            }
            "site" => Rule::Site(named(rest)?.site(suffixes, Part::Whole).to_owned()),
            "domain" => Rule::Domain(named(rest.strip_prefix("*.").unwrap_or(rest))?.host_name().to_owned()),
            "prefix" => {
                let url = match rest.contains("://") {
                    true => Url::parse(rest).map_err(|error| wrong(error.to_string()))?,
                    false => named(rest)?,
                };
                Rule::Prefix(without_scheme(url.as_str()).to_owned())
            }
            "url" => Rule::Url(Url::parse(rest).map_err(|error| wrong(error.to_string()))?),
            "include" => Rule::Include(Pattern::parse(rest)),
            "exclude" => Rule::Exclude(Pattern::parse(rest)),
            _ => return Err(wrong(KINDS.to_owned())),
        })
    }
}

const KINDS: &str = "a rule is 'all', or one of host, site, domain, prefix, url, include, exclude with what it is about, \
                     as in 'site example.org' or 'exclude *.pdf'";

fn without_scheme(url: &str) -> &str {
    url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Glob(glob) => f.write_str(glob),
            Pattern::Regex(source) => write!(f, "~ {source}"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::All => f.write_str("all"),
            Rule::Host { name, port: None } => write!(f, "host {name}"),
            Rule::Host { name, port: Some(port) } => write!(f, "host {name}:{port}"),
            Rule::Site(site) => write!(f, "site {site}"),
            Rule::Domain(name) => write!(f, "domain {name}"),
            Rule::Prefix(prefix) => write!(f, "prefix {prefix}"),
            Rule::Url(url) => write!(f, "url {url}"),
            Rule::Include(pattern) => write!(f, "include {pattern}"),
            Rule::Exclude(pattern) => write!(f, "exclude {pattern}"),
        }
    }
}
