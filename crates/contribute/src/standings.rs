//! How contributors stand, for people and programs; and what people decide about them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::node::{Node, State, hex, unhex};
use crate::trust::{Key, Standing};

impl Node {
    /// How everything stands, for people and programs.
    pub fn report(&self) -> Value {
        let (now_ms, elapsed_ms) = (self.now_ms(), self.elapsed_ms());
        let state = self.lock();
        let (waiting, out) = state.dispatch.counts();
        let contributors: Vec<Value> =
            state.trust.standings().iter().map(|(key, known)| self.line(key, known, now_ms)).collect();
        json!({
            "open": self.is_open(),
            "key": hex(&self.key()),
            "there": state.dispatch.there(elapsed_ms),
            "bundles": { "waiting": waiting, "out": out },
            "teams": teams(state.trust.standings().values(), now_ms),
            "contributors": contributors,
        })
    }

    /// What a contributor has in hand, as far as this node gave it out.
    pub fn out(&self, key: &str) -> Vec<Value> {
        let elapsed_ms = self.elapsed_ms();
        let state = self.lock();
        let Some(key) = unhex(key) else { return Vec::new() };
        let urls = |id| state.held.get(&id).map_or(0, |held| held.bundle.urls.len());
        let line = |(id, host, left_ms): (u64, &str, u64)| json!({ "bundle": id, "host": host, "urls": urls(id), "left-ms": left_ms });
        state.dispatch.with(&key, elapsed_ms).map(line).collect()
    }

    fn line(&self, key: &Key, known: &Standing, now_ms: i64) -> Value {
        json!({
            "key": hex(key),
            "name": self.pseudonym(key),
            "team": known.team,
            "since": skep_warc::date::rfc3339(known.since_ms),
            "last": skep_warc::date::rfc3339(known.last_ms),
            "there": is_there(known, now_ms),
            "trust": known.word(now_ms),
            "good": known.good,
            "bundles": known.bundles,
            "urls": known.urls,
            "bytes": known.bytes,
            "confirmed": known.confirmed,
            "checks": known.checks,
            "by-place": known.by_place,
            "lies": known.lies,
            "credit": known.credit,
        })
    }

    /// A person suspends a contributor, or trusts it; `which` is the beginning of a key or of a name. Says whom. What a contributor that is
    /// suspended has in hand goes to others when its lease is over, not at once: perhaps it is fetched just now.
    pub fn decide(&self, which: &str, trusted: bool) -> Result<String, String> {
        let mut state = self.lock();
        let key = find(self, &state, which)?;
        let State { trust, book, .. } = &mut *state;
        if let Some(known) = trust.of(&key) {
            (known.suspended_until_ms, known.vouched) = if trusted { (0, true) } else { (i64::MAX, false) };
        }
        book.touch();
        book.keep(trust.standings());
        Ok(hex(&key))
    }
}

fn find(node: &Node, state: &State, which: &str) -> Result<Key, String> {
    let which = which.to_ascii_lowercase();
    let fits =
        |key: &Key| !which.is_empty() && (hex(key).starts_with(&which) || node.pseudonym(key).starts_with(&which));
    let mut found = state.trust.standings().keys().filter(|key| fits(key));
    match (found.next(), found.next()) {
        (Some(key), None) => Ok(*key),
        (Some(_), Some(_)) => Err(format!("several contributors begin with {which}")),
        (None, _) => Err(format!("no contributor begins with {which}")),
    }
}

fn is_there(known: &Standing, now_ms: i64) -> bool {
    now_ms - known.last_ms < crate::limits::THERE_MS as i64
}

/// What teams came to, most credit first. Who changes his team takes with him what he did.
fn teams<'s>(standings: impl Iterator<Item = &'s Standing>, now_ms: i64) -> Vec<Value> {
    #[derive(Default)]
    struct Team {
        members: u64,
        there: u64,
        urls: u64,
        bytes: u64,
        credit: u64,
    }
    let mut teams: BTreeMap<&str, Team> = BTreeMap::new();
    for known in standings.filter(|known| !known.team.is_empty()) {
        let team = teams.entry(&known.team).or_default();
        team.members += 1;
        team.there += u64::from(is_there(known, now_ms));
        // What was written before figures were bounded is shown as it is.
        team.urls = team.urls.saturating_add(known.urls);
        team.bytes = team.bytes.saturating_add(known.bytes);
        team.credit = team.credit.saturating_add(known.credit);
    }
    let mut ordered: Vec<(&str, Team)> = teams.into_iter().collect();
    ordered.sort_by_key(|(_, team)| std::cmp::Reverse(team.credit));
    let line = |(name, team): (&str, Team)| {
        let Team { members, there, urls, bytes, credit } = team;
        json!({ "team": name, "members": members, "there": there, "urls": urls, "bytes": bytes, "credit": credit })
    };
    ordered.into_iter().map(line).collect()
}
