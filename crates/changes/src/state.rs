//! What is remembered of a URL from one visit to the next.
//!
//! ```text
//!   key     | key of the URL … | 00 | XXH3-64 of the URL 8 BE |
//!   value   | 2 | told 1, position 12 | newest: time 8, position 12 | health 1, since 8, count 4, hash 8 | good 1 [ good ] |
//!           | texts n 1 ( text 8, position 12 ) … | mask … |
//!   good    | position of the body 12 | position of the capture 12 | since 8 | same 8 | digest algorithm 1, 0 none | digest … |
//!           | print 1 [ rules 2, ruled 8, markup 8, text 8, links 8, meta 8, facts 8, words 4 ] |
//!   before: 1, without what was told
//! ```
//! Numbers are little-endian unless said otherwise.

use skep_archive::{Digest, Position, WriterKey};
use skep_page::compare::{Mask, NEAR_EMPTY};
use skep_page::version::Fingerprint;

use crate::limits::{EMPTY_BELIEVED, TEXTS_REMEMBERED};

const VERSION: u8 = 2;

/// What is remembered of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The newest capture that was judged: time and position.
    pub newest: Option<(i64, Position)>,
    /// How it answers.
    pub health: Health,
    /// The last good version.
    pub good: Option<Good>,
    /// The record with the body of the version that was told last: who follows the stream has its text.
    pub told: Option<Position>,
    /// Texts before that one, the newest first, and the captures that had them.
    pub texts: Vec<(u64, Position)>,
    /// Parts that change all the time.
    pub mask: Mask,
}

/// How a URL answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Health {
    /// Well.
    #[default]
    Well,
    /// Not found, so many times since then; where it led for good before, or nothing.
    Failing { since_ms: i64, count: u32, moved: Option<u64> },
    /// That was confirmed.
    Gone,
    /// It leads elsewhere for good; what that comes to, as told, and where it led last instead, which is told once it leads there again.
    Moved { target: u64, instead: Option<u64> },
    /// No page came, so many times; what the text came to.
    Suspect { count: u32, text: u64 },
}

/// A version that was good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Good {
    /// The record with the body.
    pub body: Position,
    /// The record of the capture.
    pub capture: Position,
    /// When it was first seen.
    pub since_ms: i64,
    /// When it was last seen.
    pub same_ms: i64,
    /// The digest of its payload.
    pub digest: Option<Digest>,
    /// What it comes to, once somebody needed to know, and by which rules of the site.
    pub print: Option<(Fingerprint, u64)>,
}

impl Health {
    /// Where it leads for good, as far as was told: a failure since then does not bring it back.
    pub fn moved(self) -> Option<u64> {
        match self {
            Health::Moved { target, .. } => Some(target),
            Health::Failing { moved, .. } => moved,
            _ => None,
        }
    }

    /// A page that lost nearly all of its text, and came like that again and again, is what it is.
    pub fn believes(self, reason: &str, came: u64) -> bool {
        let stays = matches!(self, Health::Suspect { count, text } if text == came && count + 1 >= EMPTY_BELIEVED);
        reason == NEAR_EMPTY && stays
    }
}

impl State {
    /// Remembers a text that is no longer shown.
    pub fn remember(&mut self, text: u64, capture: Position) {
        self.texts.retain(|(known, _)| *known != text);
        self.texts.insert(0, (text, capture));
        self.texts.truncate(TEXTS_REMEMBERED);
    }

    /// As kept.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.told.is_some().into()];
        put_position(self.told.unwrap_or_default(), &mut out);
        let (time_ms, position) = self.newest.unwrap_or((i64::MIN, Position::default()));
        put_time(time_ms, &mut out);
        put_position(position, &mut out);
        let (number, since, count, hash) = match self.health {
            Health::Well => (0, 0, 0, 0),
            Health::Failing { since_ms, count, moved: None } => (1, since_ms, count, 0),
            Health::Failing { since_ms, count, moved: Some(target) } => (5, since_ms, count, target),
            Health::Gone => (2, 0, 0, 0),
            Health::Moved { target, instead: None } => (3, 0, 0, target),
            Health::Moved { target, instead: Some(instead) } => (6, instead as i64, 0, target),
            Health::Suspect { count, text } => (4, 0, count, text),
        };
        out.push(number);
        put_time(since, &mut out);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&hash.to_le_bytes());
        out.push(self.good.is_some().into());
        if let Some(good) = &self.good {
            good.encode(&mut out);
        }
        out.push(self.texts.len() as u8);
        for (text, capture) in &self.texts {
            out.extend_from_slice(&text.to_le_bytes());
            put_position(*capture, &mut out);
        }
        self.mask.encode(&mut out);
        out
    }

    /// What was kept; `None` for what was not written here.
    pub fn decode(bytes: &[u8]) -> Option<State> {
        let mut from = Bytes(bytes);
        let told = match from.byte()? {
            VERSION => {
                let (is, told) = (from.byte()?, from.position()?);
                (is == 1).then_some(told)
            }
            1 => None,
            _ => return None,
        };
        let newest = (from.time()?, from.position()?);
        let (number, since_ms, count, hash) = (from.byte()?, from.time()?, from.four()?, from.eight()?);
        let health = match number {
            0 => Health::Well,
            1 => Health::Failing { since_ms, count, moved: None },
            2 => Health::Gone,
            3 => Health::Moved { target: hash, instead: None },
            4 => Health::Suspect { count, text: hash },
            5 => Health::Failing { since_ms, count, moved: Some(hash) },
            6 => Health::Moved { target: hash, instead: Some(since_ms as u64) },
            _ => return None,
        };
        let good = if from.byte()? == 1 { Some(Good::decode(&mut from)?) } else { None };
        let mut texts = Vec::new();
        for _ in 0..from.byte()? {
            texts.push((from.eight()?, from.position()?));
        }
        let newest = (newest.0 != i64::MIN).then_some(newest);
        Some(State { newest, health, good, told, texts, mask: Mask::decode(from.0)? })
    }
}

impl Good {
    fn encode(&self, out: &mut Vec<u8>) {
        put_position(self.body, out);
        put_position(self.capture, out);
        put_time(self.since_ms, out);
        put_time(self.same_ms, out);
        match &self.digest {
            None => out.push(0),
            Some(digest) => {
                out.push(digest.algorithm());
                out.extend_from_slice(digest.bytes());
            }
        }
        out.push(self.print.is_some().into());
        if let Some((print, ruled)) = &self.print {
            out.extend_from_slice(&print.rules.to_le_bytes());
            for number in [*ruled, print.markup, print.text, print.links, print.meta, print.facts] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&print.words.to_le_bytes());
        }
    }

    fn decode(from: &mut Bytes<'_>) -> Option<Good> {
        let (body, capture, since_ms, same_ms) = (from.position()?, from.position()?, from.time()?, from.time()?);
        let digest = match from.byte()? {
            0 => None,
            algorithm => Some(Digest::from_parts(algorithm, from.take(Digest::width(algorithm)?)?)?),
        };
        let print = match from.byte()? {
            0 => None,
            _ => {
                let rules = u16::from_le_bytes(*from.array()?);
                let ruled = from.eight()?;
                let (markup, text, links) = (from.eight()?, from.eight()?, from.eight()?);
                let (meta, facts, words) = (from.eight()?, from.eight()?, from.four()?);
                Some((Fingerprint { rules, markup, text, links, meta, facts, words }, ruled))
            }
        };
        Some(Good { body, capture, since_ms, same_ms, digest, print })
    }
}

fn put_time(time_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&time_ms.to_le_bytes());
}

fn put_position(position: Position, out: &mut Vec<u8>) {
    for part in [position.writer.0, position.segment, position.record] {
        out.extend_from_slice(&part.to_le_bytes());
    }
}

/// What is left to be read.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<&'b [u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|bytes| bytes[0])
    }

    fn four(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn eight(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn time(&mut self) -> Option<i64> {
        self.array().map(|bytes| i64::from_le_bytes(*bytes))
    }

    fn position(&mut self) -> Option<Position> {
        Some(Position { writer: WriterKey(self.four()?), segment: self.four()?, record: self.four()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_read_back() {
        let position = |record| Position { writer: WriterKey(7), segment: 1, record };
        let print = Fingerprint { rules: 1, markup: 2, text: 3, links: 4, meta: 5, facts: 6, words: 7 };
        let good = Good {
            body: position(1),
            capture: position(2),
            since_ms: -5,
            same_ms: 6,
            digest: Digest::from_parts(2, &[9; 20]),
            print: Some((print, 8)),
        };
        let mut full = State {
            newest: Some((5, position(3))),
            good: Some(good.clone()),
            told: Some(position(4)),
            ..State::default()
        };
        (0..20).for_each(|n| full.remember(n % 12, position(n as u32)));
        assert_eq!(full.texts.len(), TEXTS_REMEMBERED);
        let bare = State { good: Some(Good { digest: None, print: None, ..good }), ..State::default() };
        for mut state in [State::default(), full, bare] {
            for health in [
                Health::Well,
                Health::Failing { since_ms: 9, count: 2, moved: None },
                Health::Failing { since_ms: 9, count: 2, moved: Some(77) },
                Health::Gone,
                Health::Moved { target: 77, instead: None },
                Health::Moved { target: 77, instead: Some(u64::MAX - 3) },
                Health::Suspect { count: 3, text: 1 },
            ] {
                state.health = health;
                let bytes = state.encode();
                assert_eq!(State::decode(&bytes), Some(state.clone()));
                assert!((0..bytes.len()).all(|cut| State::decode(&bytes[..cut]).is_none()));
                let before = [&[1], &bytes[14..]].concat();
                assert_eq!(State::decode(&before), Some(State { told: None, ..state.clone() }));
            }
        }
    }
}
