//! What many pages of a host share: when its header changes, all of them change, and that is one event of the host.
//!
//! ```text
//!  keyspace view-changes-places  | writer 4 BE | segment 4 BE | record 4 BE |   ─▶  | classes 4 | day 4 | places n 1 ( place 8 ) … | host … |
//!  keyspace view-changes-shared  | host … | 00 | day 4 BE | place 8 BE |        ─▶  ( position 12 ) …   captures in which that became of a place
//! ```
//! Numbers are little-endian unless said otherwise. What became of a place is one number: what was there, and what came instead.
//! When so many pages of a host have it on one day, changes that consist of nothing else become `template`, those that were told
//! already are told again under their keys, and the host has an event of its own. All of it follows from what is counted for the
//! host and the day, in whatever order it was counted.

use std::collections::{BTreeMap, BTreeSet};

use skep_archive::{Batch, Position, WriterKey};
use skep_page::compare::{Class, Classes};

use crate::error::Result;
use crate::event::{Details, Event, Kept, TEMPLATE, names};
use crate::hosts::{self, Day, day_of};
use crate::limits::{SHARED_POSITIONS_MAX, TEMPLATE_PAGES_MIN, TEMPLATE_PLACES_MAX, TEMPLATE_SHARE, TEMPLATES_MAX};
use crate::log::{position_key, told};

const PLACES: &str = "changes-places";
const SHARED: &str = "changes-shared";

/// Where a page changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The event's classes as judged for the page alone.
    pub classes: Classes,
    /// Of which host.
    pub host: String,
    /// On which day.
    pub day: u32,
    /// What became of its places.
    pub places: Vec<u64>,
}

impl Changed {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.classes.0.to_le_bytes().to_vec();
        out.extend_from_slice(&self.day.to_le_bytes());
        out.push(self.places.len() as u8);
        self.places.iter().for_each(|place| out.extend_from_slice(&place.to_le_bytes()));
        out.extend_from_slice(self.host.as_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Changed> {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        let four = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (places, host) = rest.split_at_checked(usize::from(head[8]) * 8)?;
        let place = |place: &[u8]| place.try_into().map(u64::from_le_bytes).unwrap_or_default();
        Some(Changed {
            classes: Classes(four(0)),
            host: String::from_utf8(host.to_vec()).ok()?,
            day: four(4),
            places: places.chunks_exact(8).map(place).collect(),
        })
    }

    /// What a page that changed in these places says of its host's templates; nothing for one that changed all over.
    pub fn of(event: &Event, host: &str, places: &[u64]) -> Option<Changed> {
        let text = [Class::TextMajor, Class::TextMinor].into_iter().collect();
        let some = !places.is_empty() && places.len() <= TEMPLATE_PLACES_MAX && event.classes.meets(text);
        let mut places = places.to_vec();
        places.sort_unstable();
        places.dedup();
        some.then(|| Changed { classes: event.classes, host: host.to_owned(), day: day_of(event.time_ms), places })
    }

    fn classes(&self, templates: &[u64]) -> Classes {
        let mut classes = self.classes;
        if self.places.iter().all(|place| templates.contains(place)) {
            classes.remove(Class::TextMajor);
            classes.remove(Class::TextMinor);
            classes.insert(Class::Template);
        }
        classes
    }
}

fn shared_row(host: &str, day: u32, place: u64) -> Vec<u8> {
    [hosts::row(host, day), place.to_be_bytes().to_vec()].concat()
}

fn positions(value: &[u8]) -> BTreeSet<Position> {
    let four = |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let position =
        |bytes: &[u8]| Position { writer: WriterKey(four(bytes, 0)), segment: four(bytes, 4), record: four(bytes, 8) };
    value.chunks_exact(12).map(position).collect()
}

/// A capture that was judged now.
#[derive(Debug)]
pub struct Placed {
    /// Its record.
    pub position: Position,
    /// Where its page changed; `None` for one that says nothing of templates.
    pub changed: Option<Changed>,
    /// It was judged before.
    pub again: bool,
}

/// Takes in where pages changed, for every capture that was judged now. Changes classes of `events`, adds those that are to be told
/// again, and the events of hosts.
pub fn fold(
    batch: &mut Batch<'_>,
    days: &mut BTreeMap<(String, u32), Day>,
    judged: Vec<Placed>,
    events: &mut Vec<Event>,
) -> Result<()> {
    let mut touched: BTreeMap<(String, u32), BTreeMap<u64, BTreeSet<Position>>> = BTreeMap::new();
    let mut now: BTreeMap<Position, Changed> = BTreeMap::new();
    for Placed { position, changed, again } in judged {
        if !again && changed.is_none() {
            continue;
        }
        let key = position_key(position);
        let before = match again {
            true => batch.get(PLACES, &key)?.and_then(|value| Changed::decode(&value)),
            false => None,
        };
        if before.is_none() && changed.is_none() {
            continue;
        }
        for (which, is_now) in [(&before, false), (&changed, true)] {
            let Some(which) = which else { continue };
            let of_day = touched.entry((which.host.clone(), which.day)).or_default();
            for place in &which.places {
                let all = match of_day.entry(*place) {
                    std::collections::btree_map::Entry::Occupied(all) => all.into_mut(),
                    std::collections::btree_map::Entry::Vacant(all) => {
                        let value = batch.get(SHARED, &shared_row(&which.host, which.day, *place))?;
                        all.insert(positions(&value.unwrap_or_default()))
                    }
                };
                match is_now {
                    true if all.len() < SHARED_POSITIONS_MAX => drop(all.insert(position)),
                    true => {}
                    false => drop(all.remove(&position)),
                }
            }
        }
        match changed {
            Some(changed) => {
                batch.put(PLACES, &key, &changed.encode());
                now.insert(position, changed);
            }
            None => batch.delete(PLACES, &key),
        }
    }
    for ((host, day), places) in &touched {
        for (place, all) in places {
            let row = shared_row(host, *day, *place);
            let value: Vec<u8> = all
                .iter()
                .flat_map(|position| [position.writer.0, position.segment, position.record])
                .flat_map(u32::to_le_bytes)
                .collect();
            match value.is_empty() {
                true => batch.delete(SHARED, &row),
                false => batch.put(SHARED, &row, &value),
            }
        }
        if let std::collections::btree_map::Entry::Vacant(known) = days.entry((host.clone(), *day)) {
            known.insert(hosts::kept(batch, host, *day)?);
        }
    }
    let mut again: BTreeSet<Position> = now.keys().copied().collect();
    for ((host, day), known) in days.iter_mut() {
        let places = touched.get(&(host.clone(), *day));
        if places.is_none() && known.templates.is_empty() {
            continue;
        }
        let visited = known.pages.estimate();
        let mut shared: BTreeMap<u64, BTreeSet<Position>> = places.cloned().unwrap_or_default();
        for place in &known.templates {
            if !shared.contains_key(place) {
                let value = batch.get(SHARED, &shared_row(host, *day, *place))?.unwrap_or_default();
                shared.insert(*place, positions(&value));
            }
        }
        let is_template =
            |all: &BTreeSet<Position>| all.len() >= TEMPLATE_PAGES_MIN && all.len() as f64 > visited * TEMPLATE_SHARE;
        let mut templates: Vec<u64> = Vec::new();
        for (place, all) in &shared {
            let (was, is) = (known.templates.contains(place), is_template(all));
            if is && templates.len() < TEMPLATES_MAX {
                templates.push(*place);
            }
            if was != is {
                again.extend(all.iter().copied());
            }
        }
        known.templates = templates;
        let first = known.templates.iter().filter_map(|place| shared.get(place)?.first().copied()).min();
        if known.template_told != first {
            if let Some(old) = known.template_told {
                events.push(of_host(batch, host, old, events, true)?);
            }
            if let Some(first) = first {
                events.push(of_host(batch, host, first, events, false)?);
            }
            known.template_told = first;
        }
    }
    retell(batch, days, &again, now, events)
}

/// Gives every event the classes that its host's templates leave it.
fn retell(
    batch: &Batch<'_>,
    days: &BTreeMap<(String, u32), Day>,
    again: &BTreeSet<Position>,
    mut now: BTreeMap<Position, Changed>,
    events: &mut Vec<Event>,
) -> Result<()> {
    let at: BTreeMap<Position, usize> = events.iter().enumerate().map(|(at, event)| (event.key, at)).collect();
    for position in again {
        let changed = match now.remove(position) {
            Some(changed) => Some(changed),
            None => batch.get(PLACES, &position_key(*position))?.and_then(|value| Changed::decode(&value)),
        };
        let Some(changed) = changed else { continue };
        let templates = days.get(&(changed.host.clone(), changed.day)).map_or(&[][..], |day| &day.templates);
        let classes = changed.classes(templates);
        match at.get(position) {
            Some(at) => set(&mut events[*at], classes),
            None => {
                let Some(value) = told(batch, *position)? else { continue };
                if let Some(mut event) = Kept::decode(&value).and_then(|kept| kept.event()) {
                    set(&mut event, classes);
                    events.push(event);
                }
            }
        }
    }
    Ok(())
}

fn set(event: &mut Event, classes: Classes) {
    event.classes = classes;
    event.details.classes = names(classes);
}

/// The event of a host, made from that of the first of its pages; or what takes it back.
fn of_host(batch: &Batch<'_>, host: &str, page: Position, events: &[Event], taken_back: bool) -> Result<Event> {
    let key = Position { record: page.record | TEMPLATE, ..page };
    let known = match events.iter().find(|event| event.key == page) {
        Some(event) => Some(event.clone()),
        None => told(batch, page)?.as_deref().and_then(Kept::decode).and_then(|kept| kept.event()),
    };
    let page = known.unwrap_or_else(|| Event { url: format!("http://{host}/"), ..Event::default() });
    if taken_back {
        return Ok(Event { key, classes: Classes::default(), share: 0, details: Details::default(), ..page });
    }
    let classes = Classes::of(Class::HostTemplate);
    let details = Details { classes: names(classes), ..page.details };
    Ok(Event { key, classes, details, ..page })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_page_changed_reads_back() {
        let changed =
            Changed { classes: Classes(5), host: "example.org:80".into(), day: 77, places: vec![1, u64::MAX] };
        assert_eq!(Changed::decode(&changed.encode()), Some(changed));
        assert_eq!(Changed::decode(&[0; 5]), None);
    }
}
