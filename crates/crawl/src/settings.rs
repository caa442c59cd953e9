//! A crawl as it is meant: one TOML file under `settings/crawls/` in the archive. People may edit it while the crawl runs.
//!
//! ```toml
//! version = 1
//! name = "example.org"
//! seeds = ["https://example.org/"]
//! scope = "host"                    # host, site, prefix, all
//! exclude = ["*/search?*"]
//! depth = 20
//! pace = "polite"                   # polite, none, or milliseconds
//!
//! [site."example.org"]
//! pace = 2000
//! pages = 10000
//! pause = false
//! weight-percent = 300              # a look at its pages is worth three at others
//!
//! [watch]                           # looked at again and again by `skep watch`
//! budget = "5/s"                    # or every-ms = 3600000; without both, once a page and day on average
//! policy = "harmonic"
//! tags = ["news"]
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use skep_archive::settings as files;
use skep_schedule::Pace;
use skep_url::scope::Rule;
use skep_url::{Part, Scope, Suffixes, Url};

use crate::error::{Error, Result};
use crate::limits::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, NAME_BYTES_MAX, PASSES_REMEMBERED, SEEDS_MAX};

pub use crate::watch_settings::{Rate, Watch};

/// The version of the file that this program writes.
pub const VERSION: u32 = 1;

/// A crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Version of the file.
    pub version: u32,
    /// What the crawl is called; its file is named so.
    pub name: String,
    /// Its number in the registry; 0 before it has one.
    pub number: u16,
    /// Where it begins.
    pub seeds: Vec<String>,
    /// How far it goes from there.
    pub scope: Reach,
    /// Patterns that take in more.
    pub include: Vec<String>,
    /// Patterns that throw out.
    pub exclude: Vec<String>,
    /// Only these types; empty for all.
    pub types: Vec<Type>,
    /// Links from a seed.
    pub depth: Option<u16>,
    /// Pages in a pass.
    pub pages: Option<u64>,
    /// Bytes in a pass.
    pub bytes: Option<u64>,
    /// Time in all, for each run.
    pub time_ms: Option<u64>,
    /// How fast.
    pub pace: Speed,
    /// Bundles out at once.
    pub concurrency: u32,
    /// Queries are cut off.
    pub strip_query: bool,
    /// Hosts of the operator: any pace, any address.
    pub own: Vec<String>,
    /// robots.txt does not count on own hosts.
    pub ignore_robots: bool,
    /// Private addresses may be visited.
    pub allow_private: bool,
    /// Hosts that may be at private addresses.
    pub private_host: Vec<String>,
    /// Whom a site's owner can write to.
    pub contact: Option<String>,
    /// Each 304 becomes a record.
    pub revisit_always: bool,
    /// Stop asking for work when less than this is free on the disk.
    pub reserve_bytes: Option<u64>,
    /// How it is looked at again, where it is watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// What differs for a site or host.
    pub site: BTreeMap<String, SiteSettings>,
    /// Which pass this is, from 1, and whether it ended.
    pub pass: Pass,
}

/// What differs for a site or host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SiteSettings {
    /// How fast.
    pub pace: Option<Speed>,
    /// Pages at most, in a pass.
    pub pages: Option<u64>,
    /// Bytes at most, in a pass.
    pub bytes: Option<u64>,
    /// Not now.
    pub pause: bool,
    /// What a look at one of its pages is worth, in hundredths of an ordinary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_percent: Option<u32>,
}

impl SiteSettings {
    /// It has a budget.
    pub fn is_bounded(&self) -> bool {
        self.pages.is_some() || self.bytes.is_some()
    }
}

/// One walk through all that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Pass {
    /// From 1; 0 before the first.
    pub number: u32,
    /// Milliseconds since 1970.
    pub begun_ms: i64,
    /// Milliseconds since 1970; `None` while it lasts.
    pub ended_ms: Option<i64>,
    /// When the passes before it began, the last ones at least, oldest first: a rebuild begins them where the crawl did.
    pub earlier_ms: Vec<i64>,
}

impl Pass {
    /// The one that follows.
    pub fn next(&self, now_ms: i64) -> Pass {
        let mut earlier_ms = self.earlier_ms.clone();
        if self.number > 0 {
            earlier_ms.push(self.begun_ms);
        }
        let forgotten = earlier_ms.len().saturating_sub(PASSES_REMEMBERED);
        earlier_ms.drain(..forgotten);
        Pass { number: self.number.saturating_add(1), begun_ms: now_ms, ended_ms: None, earlier_ms }
    }

    /// The number of the pass to which a moment belongs.
    pub fn number_at(&self, time_ms: i64) -> u32 {
        if time_ms >= self.begun_ms {
            return self.number.max(1);
        }
        let after = self.earlier_ms.iter().rev().take_while(|begun_ms| **begun_ms > time_ms).count();
        self.number.saturating_sub(1 + after as u32).max(1)
    }
}

/// How far a crawl goes from its seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The hosts of the seeds.
    #[default]
    Host,
    /// Their sites (registrable domains).
    Site,
    /// What begins as a seed does, up to its last slash.
    Prefix,
    /// Everything that is linked.
    All,
}

/// Types of content to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// Pages.
    Html,
    /// Pictures.
    Image,
    /// Style sheets.
    Style,
    /// Scripts.
    Script,
    /// Fonts.
    Font,
    /// Sound and film.
    Media,
    /// PDF and office documents.
    Document,
    /// Feeds, sitemaps, JSON, XML.
    Data,
    /// Everything else.
    Other,
}

/// How fast a site is visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// By the rule of politeness.
    #[default]
    Polite,
    /// At least so many milliseconds between requests; never below the rule on hosts that are not the operator's own.
    Millis(u64),
    /// As fast as it goes: own hosts only.
    None,
}

impl Speed {
    /// The pace that this means for a host: only an own one can be hurried.
    pub fn allowed(self, own: bool) -> Pace {
        let asked = match self {
            Speed::Polite => Pace::Polite,
            Speed::Millis(ms) => Pace::Fixed(u32::try_from(ms).unwrap_or(u32::MAX)),
            Speed::None => Pace::None,
        };
        Pace::allowed(asked, own)
    }
}

impl FromStr for Speed {
    type Err = String;
    fn from_str(text: &str) -> Result<Speed, String> {
        match text {
            "polite" => Ok(Speed::Polite),
            "none" => Ok(Speed::None),
            ms => ms
                .parse()
                .map(Speed::Millis)
                .map_err(|_| format!("`{text}` is no pace: polite, none, or milliseconds such as 2000")),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Speed::Polite => f.write_str("polite"),
            Speed::Millis(ms) => write!(f, "{ms}"),
            Speed::None => f.write_str("none"),
        }
    }
}

impl Serialize for Speed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Speed::Millis(ms) => serializer.serialize_u64(*ms),
            other => serializer.serialize_str(&other.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Speed, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(ms) => Ok(Speed::Millis(ms)),
            Written::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            version: VERSION,
            name: String::new(),
            number: 0,
            seeds: Vec::new(),
            scope: Reach::Host,
            include: Vec::new(),
            exclude: Vec::new(),
            types: Vec::new(),
            depth: None,
            pages: None,
            bytes: None,
            time_ms: None,
            pace: Speed::Polite,
            concurrency: CONCURRENCY_DEFAULT,
            strip_query: false,
            own: Vec::new(),
            ignore_robots: false,
            allow_private: false,
            private_host: Vec::new(),
            contact: None,
            revisit_always: false,
            reserve_bytes: None,
            watch: None,
            site: BTreeMap::new(),
            pass: Pass::default(),
        }
    }
}

impl Settings {
    /// The name that seeds have by themselves: the first one's host, and a mark of all of them.
    pub fn name_of(seeds: &[String]) -> String {
        let mut sorted: Vec<&str> = seeds.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let mark = blake3::hash(sorted.join("\n").as_bytes()).to_hex();
        let host = seeds.first().and_then(|seed| Url::parse(seed).ok()).map(|url| url.host_name().to_string());
        let host: String =
            host.unwrap_or_default().chars().map(|c| if is_plain(c) { c } else { '-' }).take(40).collect();
        format!("{}-{}", if host.is_empty() { "crawl" } else { &host }, &mark.as_str()[..6])
    }

    /// What is wrong with it, if anything; the first thing only.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Settings { what });
        if self.name.is_empty()
            || self.name.len() > NAME_BYTES_MAX
            || !self.name.chars().all(is_plain)
            || self.name.starts_with('.')
        {
            return wrong(format!(
                "`{}` is no name for a crawl: letters, digits, `.`, `-`, `_`, at most {NAME_BYTES_MAX}",
                self.name
            ));
        }
        if self.seeds.is_empty() || self.seeds.len() > SEEDS_MAX {
            return wrong(format!("{} seeds; a crawl has from 1 to {SEEDS_MAX}", self.seeds.len()));
        }
        if self.concurrency == 0 || self.concurrency > CONCURRENCY_MAX {
            return wrong(format!("concurrency {}; from 1 to {CONCURRENCY_MAX}", self.concurrency));
        }
        if self.pace == Speed::None && self.own.is_empty() {
            return wrong("`--pace none` works only for hosts given with `--own HOST`".into());
        }
        if self.ignore_robots && self.own.is_empty() {
            return wrong("robots.txt can be ignored only on hosts given with `--own HOST`".into());
        }
        if let Some(watch) = &self.watch {
            watch.check().or_else(wrong)?;
        }
        for (name, site) in &self.site {
            if site.pace == Some(Speed::None) && !self.is_own(name) {
                return wrong(format!("[site.\"{name}\"] pace = \"none\" works only for hosts given with `own`"));
            }
        }
        self.scope().map(|_| ())
    }

    /// Whether a host is the operator's own.
    pub fn is_own(&self, host_name: &str) -> bool {
        self.own.iter().any(|own| match own.strip_prefix('*') {
            Some(below) => host_name.to_ascii_lowercase().ends_with(&below.to_ascii_lowercase()),
            None => own.eq_ignore_ascii_case(host_name),
        })
    }

    /// The pace for a host: its own section, its site's, or that of the crawl. `none` only where it is allowed.
    pub fn pace_of(&self, host_name: &str, site: &str) -> Speed {
        let section = self.site.get(host_name).or_else(|| self.site.get(site)).and_then(|section| section.pace);
        match section.unwrap_or(self.pace) {
            Speed::None if !self.is_own(host_name) => Speed::Polite,
            pace => pace,
        }
    }

    /// What a look at a page of this host is worth, against one at an ordinary page.
    pub fn weight_of(&self, host_name: &str, site: &str) -> f32 {
        let section = self.site.get(host_name).or_else(|| self.site.get(site));
        section.and_then(|section| section.weight_percent).map_or(1.0, |percent| percent as f32 / 100.0)
    }

    /// The sections with a budget that a page of this host counts against: its own, and that of its site.
    pub fn bounded<'s>(
        &'s self,
        host_name: &'s str,
        site: &'s str,
    ) -> impl Iterator<Item = (&'s str, &'s SiteSettings)> {
        let own = Some(host_name).filter(|name| *name != site);
        let sections = own.into_iter().chain([site]).filter_map(|name| Some((name, self.site.get(name)?)));
        sections.filter(|(_, section)| section.is_bounded())
    }

    /// A mark of all that says which URLs belong to the crawl and may be asked for; never 0. To what is watched, seeds are added all the
    /// time: that changes nothing for the others.
    pub fn rules_mark(&self) -> u64 {
        let seeds = Some(&self.seeds).filter(|_| self.watch.is_none());
        let rules = (seeds, self.scope, &self.include, &self.exclude, &self.types, self.depth);
        let gates = (&self.own, self.ignore_robots, self.allow_private, &self.private_host);
        let written = serde_json::to_vec(&(rules, gates)).unwrap_or_default();
        xxhash_rust::xxh3::xxh3_64(&written).max(1)
    }

    /// Whether a section pauses this host.
    pub fn is_paused(&self, host_name: &str, site: &str) -> bool {
        [host_name, site].iter().any(|name| self.site.get(*name).is_some_and(|section| section.pause))
    }

    /// The rules that say which URLs belong to the crawl.
    pub fn scope(&self) -> Result<Scope> {
        let suffixes = Suffixes::compiled();
        let mut rules = Vec::new();
        for seed in &self.seeds {
            let url =
                Url::parse(seed).map_err(|error| Error::Settings { what: format!("`{seed}` is no seed: {error}") })?;
            let rule = rule_of(&url, self.scope, &suffixes);
            if rules.last() != Some(&rule) {
                rules.push(rule);
            }
        }
        rules.sort_by_key(|rule: &Rule| rule.to_string());
        rules.dedup();
        for (word, patterns) in [("include", &self.include), ("exclude", &self.exclude)] {
            for pattern in patterns {
                let rule = Rule::parse(&format!("{word} {pattern}"), &suffixes);
                rules.push(rule.map_err(|error| Error::Settings { what: error.to_string() })?);
            }
        }
        Scope::new(rules, suffixes).map_err(|error| Error::Settings { what: error.to_string() })
    }

    /// The file of a crawl.
    pub fn path(settings_folder: &Path, name: &str) -> PathBuf {
        settings_folder.join("crawls").join(format!("{name}.toml"))
    }

    /// Reads the file of a crawl; `None` if there is none.
    pub fn load(settings_folder: &Path, name: &str) -> Result<Option<Settings>> {
        Ok(files::load(&Settings::path(settings_folder, name), VERSION)?)
    }

    /// Replaces the file.
    pub fn store(&self, settings_folder: &Path) -> Result<()> {
        files::create_folder(&settings_folder.join("crawls"))?;
        Ok(files::store(&Settings::path(settings_folder, &self.name), self, 0o600)?)
    }

    /// The crawls of an archive, by name.
    pub fn all(settings_folder: &Path) -> Result<Vec<Settings>> {
        let folder = settings_folder.join("crawls");
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| Error::io("cannot read", &folder, error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| Error::io("cannot read", &folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
        names.sort_unstable();
        names.iter().filter_map(|name| Settings::load(settings_folder, name).transpose()).collect()
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// The rule by which a seed takes in what belongs to it.
pub fn rule_of(seed: &Url, reach: Reach, suffixes: &Suffixes) -> Rule {
    match reach {
        Reach::Host => {
            let default = matches!((seed.is_https(), seed.port()), (true, 443) | (false, 80));
            // A host that answers on the usual ports is one host, whatever the scheme.
            Rule::Host { name: seed.host_name().to_string(), port: (!default).then_some(seed.port()) }
        }
        Reach::Site => Rule::Site(seed.site(suffixes, Part::Whole).to_string()),
        Reach::Prefix => {
            let rest = seed.as_str().split_once("://").map_or(seed.as_str(), |(_, rest)| rest);
            let path = rest.split('?').next().unwrap_or(rest);
            let cut = path.rfind('/').map_or(path.len(), |at| at + 1);
            Rule::Prefix(path[..cut].to_string())
        }
        Reach::All => Rule::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crawl(seeds: &[&str]) -> Settings {
        let seeds: Vec<String> = seeds.iter().map(|seed| seed.to_string()).collect();
        Settings { name: Settings::name_of(&seeds), seeds, ..Settings::default() }
    }

    fn inside(settings: &Settings, url: &str) -> bool {
        settings.scope().unwrap().decide(&Url::parse(url).unwrap()).inside
    }

    #[test]
    fn a_file_says_what_the_settings_say() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = crawl(&["https://example.org/docs/"]);
        settings.pace = Speed::Millis(2000);
        settings.site.insert(
            "example.org".into(),
            SiteSettings { pace: Some(Speed::Polite), pages: Some(7), ..SiteSettings::default() },
        );
        settings.store(folder.path()).unwrap();
        assert_eq!(Settings::load(folder.path(), &settings.name).unwrap(), Some(settings.clone()));
        assert_eq!(Settings::all(folder.path()).unwrap(), [settings]);
        assert_eq!(Settings::load(folder.path(), "other").unwrap(), None);
    }

    #[test]
    fn a_moment_belongs_to_the_pass_that_had_begun() {
        let mut pass = Pass::default();
        for begun_ms in [100, 200, 300] {
            pass = pass.next(begun_ms);
        }
        let numbers: Vec<u32> = [0, 100, 199, 200, 299, 300, 900].map(|time_ms| pass.number_at(time_ms)).to_vec();
        assert_eq!(numbers, [1, 1, 1, 2, 2, 3, 3]);
        for begun_ms in 4..2_000 {
            pass = pass.next(begun_ms * 100);
        }
        assert_eq!((pass.number, pass.earlier_ms.len()), (1_999, PASSES_REMEMBERED));
        assert_eq!((pass.number_at(199_900), pass.number_at(199_899), pass.number_at(150_000)), (1_999, 1_998, 1_500));
    }

    #[test]
    fn seeds_name_a_crawl_whatever_their_order() {
        let (ab, ba) = (crawl(&["http://a.test/", "http://b.test/"]), crawl(&["http://b.test/", "http://a.test/"]));
        assert!(ab.name.starts_with("a.test-") && ba.name.starts_with("b.test-"));
        assert_eq!(ab.name.split('-').next_back(), ba.name.split('-').next_back());
        assert!(crawl(&["http://[::1]:8080/"]).check().is_ok());
    }

    #[test]
    fn scopes_reach_as_far_as_they_say() {
        let mut settings = crawl(&["https://www.example.org/docs/index.html"]);
        assert!(inside(&settings, "http://www.example.org/other"));
        assert!(!inside(&settings, "https://example.org/docs/"));
        settings.scope = Reach::Site;
        assert!(inside(&settings, "https://blog.example.org/"));
        settings.scope = Reach::Prefix;
        assert!(
            inside(&settings, "https://www.example.org/docs/a") && !inside(&settings, "https://www.example.org/other")
        );
        settings.exclude.push("*/a".into());
        assert!(!inside(&settings, "https://www.example.org/docs/a"));
        assert!(!inside(&crawl(&["http://127.0.0.1:8080/"]), "http://127.0.0.1:9090/"));
    }

    #[test]
    fn only_own_hosts_can_be_hurried() {
        let mut settings = crawl(&["https://example.org/"]);
        settings.pace = Speed::None;
        assert!(settings.check().unwrap_err().to_string().contains("--own"));
        settings.own.push("example.org".into());
        assert!(settings.check().is_ok());
        assert_eq!(settings.pace_of("example.org", "example.org"), Speed::None);
        assert_eq!(settings.pace_of("www.example.org", "example.org"), Speed::Polite);
        settings.pace = Speed::Polite;
        settings.site.insert("other.test".into(), SiteSettings { pace: Some(Speed::None), ..SiteSettings::default() });
        assert!(settings.check().unwrap_err().to_string().contains("other.test"));
    }
}
