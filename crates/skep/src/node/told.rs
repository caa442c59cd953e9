//! What a network crawls, made of what its owners told: one crawl from its settings, the seeds given at every node and the wishes of sites,
//! within what whoever runs this node allows.

use super::Consent;
use serde::{Deserialize, Serialize};
use skep_crawl::{Settings, SiteSettings, Speed};
use skep_ring::instruction::{SignedInstruction, What};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A crawl of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crawl {
    /// Its name.
    pub name: String,
    /// When it was begun or ended; the newest one that runs is the one that is crawled.
    pub version: u64,
    /// Whether it goes on.
    pub runs: bool,
    /// Its settings, as all nodes have them.
    pub settings: String,
}

/// What owners of sites asked for at one node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Wishes {
    #[serde(default)]
    pub site: BTreeMap<String, Wished>,
}

/// How the owner of a site wants it to be visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Wished {
    /// When that was said, in milliseconds since 1970.
    pub at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace_ms: Option<u64>,
    #[serde(default)]
    pub pause: bool,
}

/// Under this name wishes are said while nothing is crawled.
pub const ANY: &str = "any";

/// What owners of sites asked for last, whatever was crawled when they said so: a wish outlives the crawl that it came from.
pub fn wishes<'i>(instructions: impl IntoIterator<Item = &'i Arc<SignedInstruction>>) -> Wishes {
    let mut all = Wishes::default();
    for signed in instructions {
        let What::Sites { sites, .. } = &signed.instruction.what else { continue };
        let wishes: Wishes = toml::from_str(sites).unwrap_or_default();
        for (host, mut wish) in wishes.site {
            // Nobody knows of a wish before it was made: one that says so would count for ever.
            wish.at_ms = wish.at_ms.min(signed.instruction.version);
            let known = all.site.entry(host).or_insert(wish);
            if wish.at_ms > known.at_ms {
                *known = wish;
            }
        }
    }
    all
}

/// The crawls that instructions come to. One whose settings make no sense is none.
pub fn crawls(instructions: &[Arc<SignedInstruction>]) -> BTreeMap<String, Crawl> {
    let said = instructions.iter().map(|signed| (&signed.instruction.what, signed.instruction.version));
    let stopped: BTreeMap<&String, u64> = said
        .clone()
        .filter_map(|(what, version)| match what {
            What::Stop { name } => Some((name, version)),
            _ => None,
        })
        .collect();
    let wished = wishes(instructions).site;
    let mut crawls = BTreeMap::new();
    for (what, begun) in said.clone() {
        let What::Crawl { name, settings } = what else { continue };
        let Ok(mut settings) = toml::from_str::<Settings>(settings) else { continue };
        settings.name.clone_from(name);
        for (what, _) in said.clone().filter(|(what, _)| what.crawl() == Some(name)) {
            let What::Seeds { seeds, .. } = what else { continue };
            let new: Vec<String> = seeds.iter().filter(|seed| !settings.seeds.contains(seed)).cloned().collect();
            settings.seeds.extend(new);
        }
        // Who was made welcome before this crawl began asks nothing of it: what it says of a site itself stays.
        let asking = wished.iter().filter(|(_, wish)| wish.pause || wish.pace_ms.is_some() || wish.at_ms > begun);
        asking.for_each(|(host, wish)| obey(settings.site.entry(host.clone()).or_default(), *wish));
        let ended = stopped.get(name).copied().unwrap_or(0);
        if is_sound(&settings)
            && let Ok(settings) = toml::to_string(&settings)
        {
            let (version, runs) = (begun.max(ended), begun > ended);
            crawls.insert(name.clone(), Crawl { name: name.clone(), version, runs, settings });
        }
    }
    crawls
}

fn obey(site: &mut SiteSettings, wish: Wished) {
    (site.pace, site.pause) = (wish.pace_ms.map(Speed::Millis), wish.pause);
}

/// Whether a crawl could be run at all.
fn is_sound(settings: &Settings) -> bool {
    within(settings.clone(), &Consent::default()).check().is_ok()
}

/// Settings as they count here. Which hosts are somebody's own, and may be hurried or stand at private addresses, is said by whoever runs this
/// machine, and by nobody else.
pub fn within(mut settings: Settings, consent: &Consent) -> Settings {
    settings.own.clone_from(&consent.own);
    settings.allow_private = consent.allow_private;
    settings.private_host.clear();
    settings.ignore_robots = false;
    settings.reserve_bytes = None;
    // Each node would spend all of it. So it would with pages and bytes, which a crawl has that was begun before these were refused: to it
    // they are a bound all the same. What is for one site is counted by who leads it.
    if let Some(watch) = &mut settings.watch {
        watch.budget = None;
    }
    if settings.pace == Speed::None && settings.own.is_empty() {
        settings.pace = Speed::Polite;
    }
    settings
}

impl Crawl {
    /// Its settings as they count here.
    pub fn settings(&self, consent: &Consent) -> Result<Settings, toml::de::Error> {
        toml::from_str(&self.settings).map(|settings| within(settings, consent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_ring::{Ed25519, Hash, Key};

    fn said(node: u8, version: u64, what: What) -> Arc<SignedInstruction> {
        let owner = Ed25519::from_secret(&[7; 32]);
        Arc::new(SignedInstruction::new(Hash([1; 32]), Key([node; 32]), version, what, &owner))
    }

    fn begun(version: u64, settings: &Settings) -> Arc<SignedInstruction> {
        let settings = toml::to_string(settings).unwrap();
        said(1, version, What::Crawl { name: "bees".into(), settings })
    }

    fn plain() -> Settings {
        Settings { name: "bees".into(), seeds: vec!["http://a.test/".into()], ..Settings::default() }
    }

    #[test]
    fn seeds_of_all_nodes_come_together_and_undo_nothing() {
        let seeds = |node, version, url: &str| {
            said(node, version, What::Seeds { name: "bees".into(), seeds: vec![url.into()] })
        };
        let wish = |at_ms, pause| {
            let site = BTreeMap::from([("a.test".to_owned(), Wished { at_ms, pace_ms: None, pause })]);
            What::Sites { name: "bees".into(), sites: toml::to_string(&Wishes { site }).unwrap() }
        };
        let all = [
            begun(10, &plain()),
            seeds(1, 30, "http://b.test/"),
            seeds(2, 20, "http://c.test/"),
            said(1, 40, wish(40, false)),
            said(2, 50, wish(60, true)),
        ];
        let crawl = &crawls(&all)["bees"];
        let settings = crawl.settings(&Consent::default()).unwrap();
        assert_eq!(settings.seeds, ["http://a.test/", "http://b.test/", "http://c.test/"]);
        assert!(crawl.runs && settings.site["a.test"].pause, "the newer wish counts, wherever it was said");
        // Another crawl begins: what was asked for goes on, whatever name it was said under, and is not asked for again to be heard.
        let wasps = Settings { name: "wasps".into(), ..plain() };
        let other = |version| {
            said(1, version, What::Crawl { name: "wasps".into(), settings: toml::to_string(&wasps).unwrap() })
        };
        let later = [&all[..], &[said(2, 70, What::Stop { name: "bees".into() }), other(80)]].concat();
        assert!(crawls(&later)["wasps"].settings(&Consent::default()).unwrap().site["a.test"].pause);
        // A wish that claims to be from the future is as old as what it stands in, and not for ever the last.
        let forged = [&all[..], &[said(3, 45, wish(u64::MAX, false))]].concat();
        assert!(crawls(&forged)["bees"].settings(&Consent::default()).unwrap().site["a.test"].pause);
        assert!(
            !crawls(&[&all[..], &[said(3, 70, wish(70, false))]].concat())["bees"]
                .settings(&Consent::default())
                .unwrap()
                .site["a.test"]
                .pause
        );
        // Who posts a seed without having heard that the crawl has ended does not begin it again.
        let stopped = [&all[..], &[said(2, 15, What::Stop { name: "bees".into() })]].concat();
        assert!(!crawls(&stopped)["bees"].runs);
    }

    #[test]
    fn what_only_the_operator_may_allow_is_taken_from_nobody_else() {
        let hostile = Settings {
            own: vec!["victim.test".into()],
            pace: Speed::None,
            ignore_robots: true,
            allow_private: true,
            private_host: vec!["router.test".into()],
            ..plain()
        };
        let crawl = &crawls(&[begun(1, &hostile)])["bees"];
        let here = crawl.settings(&Consent::default()).unwrap();
        assert!(here.own.is_empty() && here.private_host.is_empty() && !here.ignore_robots && !here.allow_private);
        assert_eq!(here.pace, Speed::Polite);
        let consent = Consent { own: vec!["mine.test".into()], allow_private: true };
        let here = crawl.settings(&consent).unwrap();
        assert_eq!((here.own, here.allow_private, here.ignore_robots), (vec!["mine.test".to_owned()], true, false));
        // A budget of visits would be spent by each of all nodes; that of a site is for whoever leads it. One of pages stays a bound for each.
        let watch = skep_crawl::Watch { budget: "5/s".parse().ok(), ..Default::default() };
        let site = SiteSettings { pages: Some(3), bytes: Some(5), ..SiteSettings::default() };
        let site = BTreeMap::from([("a.test".to_owned(), site)]);
        let greedy = Settings { watch: Some(watch), pages: Some(7), bytes: Some(9), site: site.clone(), ..plain() };
        let here = crawls(&[begun(1, &greedy)])["bees"].settings(&Consent::default()).unwrap();
        assert_eq!(here.watch, Some(skep_crawl::Watch::default()));
        assert_eq!((here.pages, here.bytes, here.site), (Some(7), Some(9), site));
    }

    #[test]
    fn a_crawl_whose_settings_make_no_sense_is_none() {
        let named = |name: &str| {
            let settings = toml::to_string(&plain()).unwrap();
            said(1, 1, What::Crawl { name: name.into(), settings })
        };
        assert!(crawls(&[named("../../owner")]).is_empty(), "a name is no path");
        assert!(crawls(&[said(1, 1, What::Crawl { name: "bees".into(), settings: "seeds = 7".into() })]).is_empty());
        assert_eq!(crawls(&[named("wasps")]).len(), 1);
    }
}
