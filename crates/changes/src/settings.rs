//! `settings/changes.toml`: what people decided about changes.
//!
//! ```toml
//! version = 1
//! death = "confirmed"                  # or "five-failures", as HyperDog counted, or "at-once"
//! host-down-days = 14                  # a host that nobody could reach for so long is down
//!
//! [[site]]
//! match = "https://example.org/news/"  # a URL prefix, or with $ behind it that URL alone, or a host
//! keep = ["main"]                      # only these parts of a page count
//! ignore = ["#clock", ".ad"]           # these do not
//! ignore-text = ['Visitor \d+']        # nor does text like this
//! ```

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use skep_archive::Archive;
use skep_page::version::Rules;
use skep_url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::decided::{self, Decided};
use crate::error::{Error, Result};
use crate::limits::{HOST_DOWN_MS, SITES_MAX};

const FILE: &str = "changes.toml";

/// What was decided.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When a page counts as gone.
    pub death: Death,
    /// A host that nobody could reach for so many milliseconds is down.
    pub host_down_ms: i64,
    sites: Decided<Site>,
    none: Rules,
}

/// When a page counts as gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Death {
    /// Not found three times over a week, or "gone" twice.
    #[default]
    Confirmed,
    /// Five failures, however close to each other.
    FiveFailures,
    /// The first failure: for a site of one's own, or one that never errs.
    AtOnce,
}

/// Settings at hand: a file that is as it was is not read again, for patterns of many sites take long to be.
#[derive(Debug, Default)]
pub struct SettingsAtHand(Mutex<Option<(Stamp, Arc<Settings>)>>);

/// What tells a file from what it was: which it is, its length, when it was written; nothing where there is none.
type Stamp = Option<(u64, u64, i64, i64)>;

impl SettingsAtHand {
    /// What was decided for this archive, which is always the same one.
    pub fn of(&self, archive: &Archive) -> Result<Arc<Settings>> {
        let facts = archive.layout().settings().join(FILE).metadata().ok();
        let stamp = facts.map(|facts| (facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec()));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, settings)) = known.as_ref().filter(|(of, _)| *of == stamp) {
            return Ok(settings.clone());
        }
        let settings = Arc::new(Settings::of(archive)?);
        *known = Some((stamp, settings.clone()));
        Ok(settings)
    }
}

#[derive(Debug, Clone)]
struct Site {
    said: SiteRules,
    rules: Rules,
    /// Tells these rules from others.
    digest: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Typed {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default)]
    death: Death,
    host_down_days: Option<u16>,
    #[serde(default)]
    site: Vec<SiteRules>,
}

/// Rules that are written behind others.
#[derive(Serialize)]
struct More<'m> {
    site: &'m [SiteRules],
}

/// The rules of a site, as people said them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SiteRules {
    /// What they are about: a URL prefix, a whole URL with `$` behind it, or a host.
    #[serde(rename = "match")]
    pub about: String,
    /// Only these parts of a page count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// These do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Nor does text like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_text: Vec<String>,
}

impl SiteRules {
    /// What rules for this URL and no other are about.
    pub fn for_url(url: &str) -> String {
        format!("{url}{}", decided::END)
    }

    fn rules(&self) -> Result<Rules> {
        Rules::read(&self.keep, &self.ignore, &self.ignore_text)
            .map_err(|error| Error::Rules(format!("for {:?}, {error}", self.about)))
    }

    /// Adds what others say about the same.
    fn join(&mut self, other: &SiteRules) {
        let lists = [(&mut self.keep, &other.keep), (&mut self.ignore, &other.ignore)];
        for (list, more) in lists.into_iter().chain([(&mut self.ignore_text, &other.ignore_text)]) {
            let new: Vec<String> = more.iter().filter(|one| !list.contains(one)).cloned().collect();
            list.extend(new);
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            death: Death::default(),
            host_down_ms: HOST_DOWN_MS,
            sites: Decided::default(),
            none: Rules::default(),
        }
    }
}

impl Settings {
    /// What was decided for this archive.
    pub fn of(archive: &Archive) -> Result<Settings> {
        decided::load(archive, FILE)?.map_or_else(|| Ok(Settings::default()), Settings::meant)
    }

    /// The same from text.
    pub fn read(text: &str) -> Result<Settings> {
        Settings::meant(decided::read(text, Error::Rules)?)
    }

    fn meant(typed: Typed) -> Result<Settings> {
        let mut sites = Vec::new();
        for said in typed.site {
            let rules = said.rules()?;
            let digest = xxh3_64(format!("{:?}{:?}{:?}", said.keep, said.ignore, said.ignore_text).as_bytes());
            sites.push((said.about.clone(), Site { said, rules, digest }));
        }
        let sites = Decided::new(sites, SITES_MAX).map_err(Error::Rules)?;
        let host_down_ms = typed.host_down_days.map_or(HOST_DOWN_MS, |days| i64::from(days) * 86_400_000);
        Ok(Settings { death: typed.death, host_down_ms, sites, none: Rules::default() })
    }

    /// Every rule as it was said, the most particular first.
    pub fn said(&self) -> impl Iterator<Item = &SiteRules> {
        self.sites.iter().map(|(_, site)| &site.said)
    }

    /// Adds rules to those of the archive whose settings are in this folder. What is said there already stays.
    pub fn add(folder: &Path, rules: &[SiteRules]) -> Result<()> {
        // Who adds at the same time adds to what this one wrote.
        static ADDING: Mutex<()> = Mutex::new(());
        let _alone = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let path = folder.join(FILE);
        let mut file: toml::Table = skep_archive::settings::load(&path, decided::VERSION)?.unwrap_or_default();
        let version = toml::Value::Integer(decided::VERSION.into());
        file.entry("version").or_insert(version);
        let known = file.get("site").cloned().map_or(Ok(Vec::new()), Vec::<SiteRules>::deserialize);
        let mut known = known.map_err(|error| Error::Rules(error.to_string()))?;
        let (before, mut joined) = (known.len(), false);
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, one) in known.iter().enumerate() {
            places.entry(one.about.clone()).or_insert(place);
        }
        for said in rules {
            said.rules()?;
            match places.get(&said.about) {
                Some(place) => {
                    joined |= *place < before;
                    known[*place].join(said);
                }
                None => {
                    places.insert(said.about.clone(), known.len());
                    known.push(said.clone());
                }
            }
        }
        // What somebody wrote stays as it was written, remarks included, where there is only more of it.
        if !joined && let Some(text) = skep_archive::settings::read(&path, decided::VERSION)? {
            let more = toml::to_string(&More { site: &known[before..] });
            let whole = format!("{}\n\n{}", text.trim_end(), more.map_err(|error| Error::Rules(error.to_string()))?);
            if Settings::read(&whole).is_ok() {
                return Ok(skep_archive::settings::replace(&path, whole.as_bytes(), 0o600)?);
            }
        }
        let sites = toml::Value::try_from(&known).map_err(|error| Error::Rules(error.to_string()))?;
        file.insert("site".into(), sites);
        // Nothing is written that would not be read.
        Settings::read(&toml::to_string(&file).map_err(|error| Error::Rules(error.to_string()))?)?;
        Ok(skep_archive::settings::store(&path, &file, 0o600)?)
    }

    /// The rules for a URL, and a number that tells them from others.
    pub fn rules(&self, url: &Url) -> (&Rules, u64) {
        self.sites.of(url.as_str()).map_or((&self.none, 0), |site| (&site.rules, site.digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_rules_count() {
        let settings = Settings::read(
            "version = 1\n[[site]]\nmatch = \"example.org\"\nignore = [\"nav\"]\n\
             [[site]]\nmatch = \"https://example.org/news/\"\nkeep = [\"main\"]\nignore-text = ['\\d+']\n",
        )
        .unwrap();
        let ruled = |url: &str| settings.rules(&Url::parse(url).unwrap()).1;
        let (host, news) = (ruled("https://example.org/"), ruled("https://example.org/news/1"));
        assert!(host != 0 && news != 0 && host != news);
        assert_eq!((ruled("https://www.example.org/"), ruled("http://example.org/news/1")), (0, host));
        assert_eq!(settings.death, Death::Confirmed);
    }

    #[test]
    fn rules_are_added_to_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let said = |about: &str, ignore: &str| SiteRules {
            about: about.into(),
            ignore: vec![ignore.into()],
            ..SiteRules::default()
        };
        let written = "version = 1\n# ours\ndeath = \"at-once\" # they never err\n";
        std::fs::write(folder.path().join(FILE), written).unwrap();
        Settings::add(folder.path(), &[said("example.org", "#clock"), said("http://a.test/", ".ad")]).unwrap();
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.starts_with(written), "what was written stays: {text}");
        Settings::add(folder.path(), &[said("example.org", ".ad"), said("example.org", "#clock")]).unwrap();
        assert_eq!(Settings::add(folder.path(), &[said("b.test", "a > b")]).unwrap_err().id(), "rules");
        let read = Settings::read(&std::fs::read_to_string(folder.path().join(FILE)).unwrap()).unwrap();
        let all: Vec<(&str, &[String])> = read.said().map(|said| (said.about.as_str(), &said.ignore[..])).collect();
        assert_eq!(read.death, Death::AtOnce);
        assert_eq!(
            all,
            [
                ("http://a.test/", &[".ad".to_owned()][..]),
                ("example.org", &["#clock".to_owned(), ".ad".to_owned()][..])
            ]
        );
    }

    #[test]
    fn rules_are_read_once_and_again_when_they_are_others() {
        let folder = tempfile::tempdir().unwrap();
        let options = skep_archive::OpenOptions { disk_reserve_bytes: 0, ..skep_archive::OpenOptions::create() };
        let archive = Archive::open(folder.path(), options).unwrap();
        let path = archive.layout().settings().join(FILE);
        let at_hand = SettingsAtHand::default();
        let none = at_hand.of(&archive).unwrap();
        assert_eq!(none.said().count(), 0);
        std::fs::write(&path, "version = 1\n[[site]]\nmatch = \"a.test\"\nkeep = [\"main\"]\n").unwrap();
        let first = at_hand.of(&archive).unwrap();
        assert_eq!(first.said().count(), 1);
        assert!(Arc::ptr_eq(&first, &at_hand.of(&archive).unwrap()));
        std::fs::write(&path, "version = 1\n[[site]]\nmatch = \"a.test\"\nkeep = [\"a > b\"]\n").unwrap();
        assert_eq!(at_hand.of(&archive).unwrap_err().id(), "rules");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(at_hand.of(&archive).unwrap().said().count(), 0);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for wrong in [
            "version = 1\n[[site]]\nmatch = \"a\"\nkeep = [\"a > b\"]",
            "version = 1\n[[site]]\nmatch = \"a\"\nignore-text = [\"(\"]",
            "version = 1\ndeath = \"never\"",
            "version = 1\n[[site]]\nkeep = []",
            "version = 1\n[[site]]\nmatch = \"a\"\ndrop = []",
        ] {
            assert_eq!(Settings::read(wrong).unwrap_err().id(), "rules", "{wrong}");
        }
    }
}
