//! What the people who watch a site say about its pages: which parts count, and which do not.

use std::fmt;

use regex::{Regex, RegexBuilder};

use super::selector::{NoSelector, Selectors};
use crate::limits;

/// Rules for the pages of a site; by default none.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Only what stands inside these counts; everything, if there are none.
    pub(super) keep: Selectors,
    /// What stands inside these does not count.
    pub(super) ignore: Selectors,
    /// Text that does not count.
    pub(super) patterns: Vec<Regex>,
}

/// Why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRules {
    /// A selector is none.
    Selector(NoSelector),
    /// A regular expression is none, or needs too much.
    Pattern(String),
}

impl fmt::Display for NoRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRules::Selector(wrong) => wrong.fmt(f),
            NoRules::Pattern(wrong) => f.write_str(wrong),
        }
    }
}

impl std::error::Error for NoRules {}

impl Rules {
    /// Reads rules as people write them. Patterns are matched in linear time.
    pub fn read(keep: &[String], ignore: &[String], patterns: &[String]) -> Result<Rules, NoRules> {
        let compile = |pattern: &String| {
            let built = RegexBuilder::new(pattern).size_limit(limits::PATTERN_BYTES_MAX).build();
            built.map_err(|error| NoRules::Pattern(format!("the pattern {pattern:?} cannot be used: {error}")))
        };
        if patterns.len() > limits::SITE_RULES_MAX {
            return Err(NoRules::Pattern(format!("there are more than {} patterns", limits::SITE_RULES_MAX)));
        }
        Ok(Rules {
            keep: Selectors::read(keep).map_err(NoRules::Selector)?,
            ignore: Selectors::read(ignore).map_err(NoRules::Selector)?,
            patterns: patterns.iter().map(compile).collect::<Result<_, _>>()?,
        })
    }
}
