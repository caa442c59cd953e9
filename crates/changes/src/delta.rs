//! The delta of a text: what an indexer needs to make the new text from the one it has.
//!
//! ```json
//! {"of":"text","from":"9f3c…","to":"07aa…","lines":[12,-1,"a line that is new",40]}
//! ```
//! Lines of the old text from its beginning: so many stay, so many (negative) go, and what is a text comes in between. `from` and `to`
//! are the XXH3-64 of the two texts, lines ended by LF; `from` is null where the new text is told whole.

use serde_json::Value;
use skep_archive::{Archive, Position};
use skep_page::compare::{Class, show_lines};
use skep_page::version::Nature;
use skep_url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::bodies::Bodies;
use crate::error::Result;
use crate::event::Kept;
use crate::limits::DELTA_LINES_MAX;
use crate::retain;
use crate::settings::Settings;

/// One step from the old text to the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// So many lines stay.
    Keep(usize),
    /// So many go.
    Drop(usize),
    /// This line comes.
    Add(String),
}

/// How a text becomes another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// What the old text comes to; nothing where the new one is told whole.
    pub from: Option<u64>,
    /// What the new text comes to.
    pub to: u64,
    /// From the top.
    pub steps: Vec<Step>,
}

/// It is no delta of the text it was applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoDelta;

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// What a text comes to.
pub fn text_hash(text: &str) -> u64 {
    let mut all = String::with_capacity(text.len() + 1);
    for line in lines(text) {
        all.push_str(line);
        all.push('\n');
    }
    xxh3_64(all.as_bytes())
}

impl Delta {
    /// What leads from one text to another; from none, all of it.
    pub fn between(old: Option<&str>, new: &str) -> Delta {
        let new_lines = lines(new);
        let old_lines = old.map(lines).filter(|old| old.len().max(new_lines.len()) <= DELTA_LINES_MAX);
        let to = text_hash(new);
        let Some((old, old_lines)) = old.zip(old_lines) else {
            let steps = new_lines.into_iter().map(|line| Step::Add(line.to_owned())).collect();
            return Delta { from: None, to, steps };
        };
        let mut steps = Vec::new();
        let mut at = 0;
        for (gone, come) in show_lines(&old_lines, &new_lines) {
            if gone.start > at {
                steps.push(Step::Keep(gone.start - at));
            }
            if !gone.is_empty() {
                steps.push(Step::Drop(gone.len()));
            }
            steps.extend(new_lines[come].iter().map(|line| Step::Add((*line).to_owned())));
            at = gone.end;
        }
        if old_lines.len() > at {
            steps.push(Step::Keep(old_lines.len() - at));
        }
        Delta { from: Some(text_hash(old)), to, steps }
    }

    /// The new text, made from the old one.
    pub fn apply(&self, old: &str) -> std::result::Result<String, NoDelta> {
        let old_lines = match self.from {
            None => Vec::new(),
            Some(from) if from == text_hash(old) => lines(old),
            Some(_) => return Err(NoDelta),
        };
        let mut left = old_lines.into_iter();
        let mut new = String::new();
        let mut push = |line: &str| {
            new.push_str(line);
            new.push('\n');
        };
        for step in &self.steps {
            match step {
                Step::Keep(count) | Step::Drop(count) if *count > left.len() => return Err(NoDelta),
                Step::Keep(count) => left.by_ref().take(*count).for_each(&mut push),
                Step::Drop(count) => left.by_ref().take(*count).for_each(drop),
                Step::Add(line) => push(line),
            }
        }
        if left.len() > 0 || text_hash(&new) != self.to {
            return Err(NoDelta);
        }
        Ok(new)
    }

    /// As told.
    pub fn json(&self) -> String {
        let step = |step: &Step| match step {
            Step::Keep(count) => Value::from(*count),
            Step::Drop(count) => Value::from(-(*count as i64)),
            Step::Add(line) => Value::from(line.as_str()),
        };
        let from = self.from.map_or("null".to_owned(), |from| format!("\"{from:016x}\""));
        let lines = Value::Array(self.steps.iter().map(step).collect());
        format!("{{\"of\":\"text\",\"from\":{from},\"to\":\"{:016x}\",\"lines\":{lines}}}", self.to)
    }

    /// What was told; `None` for what was not told here.
    pub fn read(value: &Value) -> Option<Delta> {
        let hash = |value: &Value| u64::from_str_radix(value.as_str()?, 16).ok();
        let step = |value: &Value| match value {
            Value::String(line) => Some(Step::Add(line.clone())),
            value => {
                let count = value.as_i64()?;
                let lines = usize::try_from(count.unsigned_abs()).ok()?;
                Some(if count < 0 { Step::Drop(lines) } else { Step::Keep(lines) })
            }
        };
        let steps = value["lines"].as_array()?.iter().map(step).collect::<Option<_>>()?;
        let from = if value["from"].is_null() { None } else { Some(hash(&value["from"])?) };
        Some(Delta { from, to: hash(&value["to"])?, steps })
    }

    /// The delta of an event: from the version that was told before it, to its own. `None` where there is no text, or no longer.
    pub fn of(archive: &Archive, settings: &Settings, kept: &Kept<'_>) -> Result<Option<Delta>> {
        let Some(event) = kept.event().filter(|event| kept.key == kept.record() && !event.classes.is_empty()) else {
            return Ok(None);
        };
        let text = |position: &str| -> Result<Option<String>> {
            let (Ok(position), Ok(url)) = (position.parse::<Position>(), Url::parse(&event.url)) else {
                return Ok(None);
            };
            let Some(body) = archive.at(position)? else { return Ok(None) };
            let version = body.version(&url, settings);
            Ok(matches!(version.nature, Nature::Page | Nature::Text).then_some(version.text))
        };
        // Noise and walls leave whoever follows with the text that was told before them.
        let tells = |class: Class| !class.is_silent() || class == Class::Template;
        let told = event.classes.iter().any(tells) || event.details.reason.as_deref() == Some(retain::REASON);
        if !told || !matches!(event.details.http.status, 0 | 200..=299) {
            return Ok(None);
        }
        let place = &event.details.archive;
        let Some(new) = text(place.body.as_ref().unwrap_or(&place.position))? else { return Ok(None) };
        let old = match event.details.prev.as_ref().and_then(|prev| prev.told.as_ref()) {
            Some(told) => text(told)?,
            None => None,
        };
        Ok(Some(Delta::between(old.as_deref(), &new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_text_is_made_from_the_old_one() {
        let texts = ["", "a\nb\nc", "a\nx\nc\n\nd", "c\na", "one \"line\"\n", "a\nb\nc\nd\ne\nf"];
        for old in texts {
            for new in texts {
                let delta = Delta::between(Some(old), new);
                let read = Delta::read(&serde_json::from_str(&delta.json()).unwrap()).unwrap();
                assert_eq!(read, delta);
                let made = read.apply(old).unwrap();
                assert_eq!(lines(&made), lines(new), "{old:?} to {new:?}");
                assert_eq!(
                    Delta::between(None, new).apply("anything").map(|made| text_hash(&made)),
                    Ok(text_hash(new))
                );
            }
        }
        let delta = Delta::between(Some("a\nb"), "a\nc");
        assert_eq!(delta.steps, [Step::Keep(1), Step::Drop(1), Step::Add("c".into())]);
        assert_eq!(delta.apply("a\nz"), Err(NoDelta), "a text that is not the one it begins with");
        assert_eq!(Delta { steps: vec![Step::Keep(9)], ..delta }.apply("a\nb"), Err(NoDelta));
    }
}
