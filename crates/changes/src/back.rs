//! The log from its end: what people want to see first. Each capture is shown once, as it was told last.

use std::ops::ControlFlow;

use skep_archive::{Archive, Position};

use crate::cursor::Cursor;
use crate::error::Result;
use crate::event::Kept;
use crate::filter::Filter;
use crate::log::{Changes, EVENTS, KEYS, damaged, node, position_key};

impl Changes {
    /// Shows events from the newest back, or from those before the number `before`. Looks at `looked_max` of them at most, and says
    /// whether it left older ones out for that reason. What takes another event back is not shown, nor what it takes back.
    pub fn newest_first(
        &self,
        archive: &Archive,
        before: Option<u64>,
        looked_max: usize,
        filter: &Filter,
        mut each: impl FnMut(&Cursor, &Kept<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        let views = archive.views();
        let mut cursor = Cursor { node: node(archive)?, number: 0 };
        let end = before.unwrap_or(u64::MAX).to_be_bytes();
        for (looked, item) in views.keyspace(EVENTS)?.range(..end).rev().enumerate() {
            if looked == looked_max {
                return Ok(true);
            }
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            cursor.number = key.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged("a key"))?;
            let event = Kept::decode(&value).ok_or_else(|| damaged("an event"))?;
            if !filter.shows(&event) || views.is_hidden(event.record()) {
                continue;
            }
            let last = views.get(KEYS, &position_key(event.key))?;
            if last.as_deref() == Some(key.as_ref()) && each(&cursor, &event).is_break() {
                break;
            }
        }
        Ok(false)
    }

    /// What was told last of a capture, as kept; `None` if nothing was, or if it was removed.
    pub fn last_of(&self, archive: &Archive, key: Position) -> Result<Option<Vec<u8>>> {
        let views = archive.views();
        match views.get(KEYS, &position_key(key))? {
            Some(number) if !views.is_hidden(key) => Ok(views.get(EVENTS, &number)?),
            _ => Ok(None),
        }
    }
}
