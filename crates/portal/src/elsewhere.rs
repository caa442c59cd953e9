//! What other nodes of a network hold: asked of them where it is not here. Everything that shows captures finds them through these
//! few functions, so that whoever asks cannot tell.

use crate::access::May;
use crate::find::{Looking, Sites};
use crate::pages::{Unheard, Wish};
use crate::portal::{Portal, Scope};
use crate::trouble::Trouble;
use axum::http::StatusCode;
use serde_json::Value;
use skep_archive::captures::{Match, Query};
use skep_archive::{Capture, Key, Stored};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// The other nodes. Calls may wait for them.
pub trait Elsewhere: Send + Sync {
    /// Whether captures of sites with this hash are with others only.
    fn is_elsewhere(&self, site_hash: u32) -> bool;
    /// The same for what is asked of one site: one that is split may be here in part, and the rest with others only.
    fn is_in_part_elsewhere(&self, matching: &Match) -> bool {
        matching.site().is_some_and(|hash| self.is_elsewhere(hash))
    }
    /// Captures of one URL of such a site, in the order of the query. An error says why nobody answers.
    fn captures(&self, site_hash: u32, query: &Query) -> Result<Vec<Capture>, String>;
    /// Captures of any number of sites, here and elsewhere, in the order of the query.
    fn scan(&self, query: &Query) -> Scanned;
    /// The record of such a capture.
    fn record(&self, capture: &Capture) -> Result<Stored, String>;
    /// The public portal of somebody who has such captures, where people are to be led there instead of being answered here.
    fn portal_of(&self, site_hash: u32) -> Option<String>;
    /// Asks all nodes the same, each about sites that it holds. `target` is told how many they are.
    fn everywhere(&self, target: &dyn Fn(usize) -> String) -> Everywhere;
    /// The same of those only who hold something of these sites, by their hashes.
    fn everywhere_of(&self, _sites: &BTreeSet<u32>, target: &dyn Fn(usize) -> String) -> Everywhere {
        self.everywhere(target)
    }
    /// Where on a host a file proves whose it is, and the line in it.
    fn owner_proof(&self, host: &str) -> (String, String);
    /// Tells all nodes what the owner of a host wants, if the file proves it; what follows, or why nothing does.
    fn owner_wish(&self, host: &str, wish: Wish) -> Result<String, Unheard>;
    /// How the network stands, as this node sees it.
    fn status(&self) -> Value;
    /// Takes URLs for what the network crawls; tells what became of them, or why nothing did.
    fn seed(&self, urls: Vec<String>) -> Result<Value, String>;
    /// Numbers for machines that watch this one: name, meaning, value.
    fn metrics(&self) -> Vec<(&'static str, &'static str, u64)>;
}

/// Captures that come from many nodes, as they are found.
pub struct Scanned {
    /// In the order of the query. After an error there is nothing more: somebody who answered at first does no longer.
    pub captures: Box<dyn Iterator<Item = Result<Capture, String>> + Send>,
    /// Slices for which nobody answers.
    pub silent: usize,
}

/// What all nodes of a network say to one question: each of some sites, none of them twice.
pub struct Everywhere {
    /// Tells the sites that are answered for here from others.
    pub name: u64,
    /// Whether a site, by its hash, is answered for here.
    pub here: Box<dyn Fn(u32) -> bool + Sync>,
    /// What the others said.
    pub said: Vec<Value>,
    /// How many answer, this node among them.
    pub nodes: usize,
    /// Slices for which nobody answered.
    pub silent: usize,
}

impl Everywhere {
    /// What is answered for here.
    pub fn sites(&self) -> Sites<'_> {
        Sites { name: self.name, fits: &*self.here }
    }
}

/// Answers other nodes' portals.
#[derive(Clone)]
pub struct Asker(Weak<Portal>);

impl Asker {
    /// Of a portal, as long as it serves.
    pub(crate) fn new(portal: &Arc<Portal>) -> Asker {
        Asker(Arc::downgrade(portal))
    }

    /// What is here of some sites, as far as everybody may see it.
    pub fn answer(&self, target: &str, name: u64, fits: &(dyn Fn(u32) -> bool + Sync)) -> Result<Value, String> {
        let portal = self.0.upgrade().ok_or("the portal is closed")?;
        let _behind = portal.archive.settle();
        let (scope, now_ms) = (Scope::Everything, portal.now_ms());
        let sites = Some(Sites { name, fits });
        let look = Looking { portal: &portal, scope: &scope, may: May::Read, now_ms, sites };
        crate::api::answer_another(&look, target).map_err(|trouble| trouble.told)
    }
}

/// Captures as they are found.
pub type Found<'p> = Box<dyn Iterator<Item = Result<Capture, Trouble>> + 'p>;

fn silent(why: String) -> Trouble {
    let told = "The nodes that hold this part of the archive do not answer just now.".into();
    Trouble { status: StatusCode::BAD_GATEWAY, told, log: Some(format!("other nodes do not answer: {why}")) }
}

impl Portal {
    /// The captures that a query asks for, here or elsewhere.
    pub fn query(&self, query: &Query) -> Result<Found<'_>, Trouble> {
        self.spread(query).map(|(found, _)| found)
    }

    /// The same; says of how many slices nobody tells anything.
    pub fn spread(&self, query: &Query) -> Result<(Found<'_>, usize), Trouble> {
        let Some(others) = self.elsewhere.as_deref() else { return Ok((self.query_here(query)?, 0)) };
        let site = query.matching.site();
        if site.is_some() && !others.is_in_part_elsewhere(&query.matching) {
            return Ok((self.query_here(query)?, 0));
        }
        if let (Some(hash), Match::Exact(_)) = (site, &query.matching) {
            let found = others.captures(hash, query).map_err(silent)?;
            return Ok((Box::new(found.into_iter().map(Ok)), 0));
        }
        let scanned = others.scan(query);
        match site {
            // Perhaps its holders are older, and know how to answer about one site.
            Some(hash) if scanned.silent > 0 && query.after.is_none() => {
                let found = others.captures(hash, query).map_err(silent)?;
                Ok((Box::new(found.into_iter().map(Ok)), 0))
            }
            Some(_) if scanned.silent > 0 => {
                Err(silent("nobody who holds it can go on where an answer left off".into()))
            }
            _ => Ok((Box::new(scanned.captures.map(|capture| capture.map_err(silent))), scanned.silent)),
        }
    }

    /// The captures of a query that are here.
    pub fn query_here(&self, query: &Query) -> Result<Found<'_>, Trouble> {
        Ok(Box::new(self.archive.views().captures.query(query)?.map(|capture| capture.map_err(Trouble::from))))
    }

    /// The captures of one URL from the one closest to a time outward, here or elsewhere.
    pub fn closest(&self, key: &Key, time_ms: i64) -> Result<Found<'_>, Trouble> {
        match self.all_elsewhere(key)? {
            Some(mut found) => {
                let seconds = |ms: i64| ms.div_euclid(1000);
                found.sort_by_key(|capture| {
                    let apart = seconds(capture.time_ms).abs_diff(seconds(time_ms));
                    (apart, capture.time_ms.abs_diff(time_ms), capture.time_ms)
                });
                Ok(Box::new(found.into_iter().map(Ok)))
            }
            None => Ok(Box::new(
                self.archive.views().captures.closest(key, time_ms)?.map(|capture| capture.map_err(Trouble::from)),
            )),
        }
    }

    /// The same for a time that stands for its whole second: of the captures of one second the newest first.
    pub fn closest_second(&self, key: &Key, time_ms: i64) -> Result<Found<'_>, Trouble> {
        match self.all_elsewhere(key)? {
            Some(mut found) => {
                let seconds = |ms: i64| ms.div_euclid(1000);
                found.sort_by_key(|capture| {
                    let second = seconds(capture.time_ms);
                    (second.abs_diff(seconds(time_ms)), second, std::cmp::Reverse(capture.time_ms))
                });
                Ok(Box::new(found.into_iter().map(Ok)))
            }
            None => Ok(Box::new(
                self.archive
                    .views()
                    .captures
                    .closest_second(key, time_ms)?
                    .map(|capture| capture.map_err(Trouble::from)),
            )),
        }
    }

    /// The record of a capture, here or elsewhere.
    pub fn read(&self, capture: &Capture) -> Result<Stored, Trouble> {
        match self.others(Some(capture.key.site_hash())) {
            Some((others, _)) => others.record(capture).map_err(silent),
            None => Ok(self.archive.read_capture(capture)?),
        }
    }

    /// Where people are led who ask for a URL that is not here: to the portal of a holder, with the same question.
    pub fn leads_to(&self, url: &str, target: &str) -> Option<String> {
        let (others, hash) = self.others(Some(Key::of(url).site_hash()))?;
        others.portal_of(hash).map(|portal| format!("{}{target}", portal.trim_end_matches('/')))
    }

    fn all_elsewhere(&self, key: &Key) -> Result<Option<Vec<Capture>>, Trouble> {
        let (exact, Some(others)) = (Match::Exact(key.clone()), self.elsewhere.as_deref()) else { return Ok(None) };
        if !others.is_in_part_elsewhere(&exact) {
            return Ok(None);
        }
        others.captures(key.site_hash(), &Query::new(exact)).map(Some).map_err(silent)
    }

    fn others(&self, site_hash: Option<u32>) -> Option<(&dyn Elsewhere, u32)> {
        let (others, hash) = (self.elsewhere.as_deref()?, site_hash?);
        others.is_elsewhere(hash).then_some((others, hash))
    }
}
