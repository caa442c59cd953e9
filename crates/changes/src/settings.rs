//! `settings/changes.toml`: what people decided about changes.
//!
//! ```toml
//! version = 1
//! death = "confirmed"                  # or "five-failures", as HyperDog counted, or "at-once"
//! host-down-days = 14                  # a host that nobody could reach for so long is down
//!
//! [[site]]
//! match = "https://example.org/news/"  # a URL prefix, or a host
//! keep = ["main"]                      # only these parts of a page count
//! ignore = ["#clock", ".ad"]           # these do not
//! ignore-text = ['Visitor \d+']        # nor does text like this
//! ```

use serde::Deserialize;
use skep_archive::Archive;
use skep_page::version::Rules;
use skep_url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::limits::{HOST_DOWN_MS, SITES_MAX};

const FILE: &str = "changes.toml";
const VERSION: u32 = 1;

/// What was decided.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When a page counts as gone.
    pub death: Death,
    /// A host that nobody could reach for so many milliseconds is down.
    pub host_down_ms: i64,
    sites: Vec<Site>,
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

#[derive(Debug, Clone)]
struct Site {
    matching: String,
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
    site: Vec<TypedSite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TypedSite {
    #[serde(rename = "match")]
    matching: String,
    #[serde(default)]
    keep: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    ignore_text: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { death: Death::default(), host_down_ms: HOST_DOWN_MS, sites: Vec::new(), none: Rules::default() }
    }
}

impl Settings {
    /// What was decided for this archive.
    pub fn of(archive: &Archive) -> Result<Settings> {
        let path = archive.layout().settings().join(FILE);
        match skep_archive::settings::load::<Typed>(&path, VERSION)? {
            None => Ok(Settings::default()),
            Some(typed) => Settings::meant(typed),
        }
    }

    /// The same from text.
    pub fn read(text: &str) -> Result<Settings> {
        Settings::meant(toml::from_str(text).map_err(|error| Error::Rules(error.to_string()))?)
    }

    fn meant(typed: Typed) -> Result<Settings> {
        if typed.site.len() > SITES_MAX {
            return Err(Error::Rules(format!("there are more than {SITES_MAX} sites")));
        }
        let mut sites = Vec::new();
        for TypedSite { matching, keep, ignore, ignore_text } in typed.site {
            let rules = Rules::read(&keep, &ignore, &ignore_text)
                .map_err(|error| Error::Rules(format!("for {matching:?}, {error}")))?;
            let digest = xxh3_64(format!("{keep:?}{ignore:?}{ignore_text:?}").as_bytes());
            sites.push(Site { matching, rules, digest });
        }
        // The longest name that fits is the most particular.
        sites.sort_by_key(|site| std::cmp::Reverse(site.matching.len()));
        let host_down_ms = typed.host_down_days.map_or(HOST_DOWN_MS, |days| i64::from(days) * 86_400_000);
        Ok(Settings { death: typed.death, host_down_ms, sites, none: Rules::default() })
    }

    /// The rules for a URL, and a number that tells them from others.
    pub fn rules(&self, url: &Url) -> (&Rules, u64) {
        let fits = |site: &&Site| match site.matching.contains("://") {
            true => url.as_str().starts_with(&site.matching),
            false => url.host_name() == site.matching,
        };
        self.sites.iter().find(fits).map_or((&self.none, 0), |site| (&site.rules, site.digest))
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
