//! The part of a text that best shows why it was found. Pure.

use crate::limits::PASSAGE_CHARS;
use crate::words::Words;
use std::collections::{HashSet, VecDeque};

/// A part of a text, on one line, and which bytes of it are words that were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// The text.
    pub text: String,
    /// From byte to byte, ascending.
    pub marks: Vec<(usize, usize)>,
}

/// The first stretch with most different words that were looked for; the beginning, if there is none.
pub fn passage(text: &str, looked_for: &HashSet<&str>) -> Passage {
    let mut words = Words::of(text);
    let mut word = String::new();
    // Words that were looked for within one passage's length, and the best such stretch so far.
    let mut near: VecDeque<(usize, usize, String)> = VecDeque::new();
    let (mut best, mut best_count) = (None, 0);
    while let Some((from, to)) = words.next(&mut word) {
        if !looked_for.contains(word.as_str()) {
            continue;
        }
        near.push_back((from, to, word.clone()));
        while near.front().is_some_and(|first| to - first.0 > PASSAGE_CHARS) {
            near.pop_front();
        }
        let different: HashSet<&str> = near.iter().map(|(_, _, word)| word.as_str()).collect();
        if different.len() > best_count {
            best_count = different.len();
            best = near.front().map(|first| (first.0, to));
        }
        if best_count == looked_for.len() {
            break;
        }
    }
    let (from, to) = best.unwrap_or((0, 0));
    let (begin, end) = around(text, from, to);
    marked(text[begin..end].trim(), begin > 0, end < text.len(), looked_for)
}

/// Widens a stretch to a passage's length, between words.
fn around(text: &str, from: usize, to: usize) -> (usize, usize) {
    let spare = PASSAGE_CHARS.saturating_sub(to - from);
    let begin = text.floor_char_boundary(from.saturating_sub(spare / 3));
    let end = text.floor_char_boundary((begin + PASSAGE_CHARS.max(to - begin)).min(text.len()));
    let begin = match begin {
        0 => 0,
        begin => text[begin..from].find(char::is_whitespace).map_or(begin, |blank| begin + blank),
    };
    let end = match end == text.len() {
        true => end,
        false => text[to.min(end)..end].rfind(char::is_whitespace).map_or(end, |blank| to.min(end) + blank),
    };
    (begin, end)
}

fn marked(part: &str, before: bool, behind: bool, looked_for: &HashSet<&str>) -> Passage {
    let mut text = String::with_capacity(part.len() + 8);
    if before {
        text.push_str("… ");
    }
    text.extend(part.chars().map(|c| if c.is_control() { ' ' } else { c }));
    if behind {
        text.push_str(" …");
    }
    let mut marks: Vec<(usize, usize)> = Vec::new();
    let (mut words, mut word) = (Words::of(&text), String::new());
    while let Some((from, to)) = words.next(&mut word) {
        if looked_for.contains(word.as_str()) {
            // Pairs of characters overlap.
            match marks.last_mut().filter(|last| last.1 >= from) {
                Some(last) => last.1 = to,
                None => marks.push((from, to)),
            }
        }
    }
    Passage { text, marks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, looked_for: &[&str]) -> String {
        let passage = passage(text, &looked_for.iter().copied().collect());
        let mut out = String::new();
        let mut at = 0;
        for (from, to) in passage.marks {
            out += &format!("{}[{}]", &passage.text[at..from], &passage.text[from..to]);
            at = to;
        }
        out + &passage.text[at..]
    }

    #[test]
    fn the_stretch_with_most_of_the_words_is_shown() {
        let text = format!("bees {} the woven Hive\nof many bees {}", "x ".repeat(400), "y ".repeat(400));
        let found = shown(&text, &["bees", "hive", "woven"]);
        assert!(found.starts_with("… x") && found.contains("the [woven] [Hive] of many [bees] y"), "{found}");
        assert!(found.ends_with("y …") && found.len() < 2 * PASSAGE_CHARS);
    }

    #[test]
    fn short_texts_and_texts_without_the_words_are_shown_from_their_beginning() {
        assert_eq!(shown("A hive.", &["hive"]), "A [hive].");
        assert_eq!(shown("A hive.", &[]), "A hive.");
        assert_eq!(shown("", &["hive"]), "");
        assert!(shown(&"word ".repeat(1000), &["hive"]).ends_with("word …"));
        assert_eq!(shown("東京都に", &["東京", "京都"]), "[東京都]に");
        let dense = "東京都に行く人".repeat(500);
        assert!(shown(&dense, &["行く"]).contains("[行く]"));
    }
}
