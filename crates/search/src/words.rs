//! The words of a text, for every language alike: letters and digits that stand together, in lower case. Han, kana and Hangul, which are
//! written without blanks or bent at their ends, become overlapping pairs of characters. Nothing is stemmed and no word is left out.

use crate::limits::WORD_BYTES_MAX;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Goes through the words of a text.
#[derive(Clone, Debug)]
pub struct Words<'t> {
    text: &'t str,
    at: usize,
    /// The character here ended the pair before.
    paired: bool,
}

/// Whether a character is written without blanks around words.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11ff | 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x3130..=0x318f | 0x31a0..=0x31bf
        | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff | 0xf900..=0xfaff
        | 0xff66..=0xff9f | 0x20000..=0x3ffff)
}

impl<'t> Words<'t> {
    /// From the beginning.
    pub fn of(text: &'t str) -> Words<'t> {
        Words { text, at: 0, paired: false }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Puts the next word into `word`, and says which bytes of the text it is.
    pub fn next(&mut self, word: &mut String) -> Option<(usize, usize)> {
        word.clear();
        while let Some(c) = self.char_at(self.at) {
            let (from, next) = (self.at, self.at + c.len_utf8());
            let paired = std::mem::take(&mut self.paired);
            self.at = next;
            if is_dense(c) {
                match self.char_at(next).filter(|c| is_dense(*c)) {
                    Some(second) => {
                        self.paired = true;
                        word.extend([c, second]);
                        return Some((from, next + second.len_utf8()));
                    }
                    None if paired => {}
                    None => {
                        word.push(c);
                        return Some((from, next));
                    }
                }
            } else if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
                while let Some(c) = self.char_at(self.at).filter(|c| c.is_alphanumeric() && !is_dense(*c)) {
                    self.at += c.len_utf8();
                    if word.len() < WORD_BYTES_MAX {
                        word.extend(c.to_lowercase());
                    }
                }
                word.truncate(word.floor_char_boundary(WORD_BYTES_MAX));
                return Some((from, self.at));
            }
        }
        None
    }

    /// All words.
    pub fn all(text: &str) -> Vec<String> {
        let (mut words, mut word, mut found) = (Words::of(text), String::new(), Vec::new());
        while words.next(&mut word).is_some() {
            found.push(word.clone());
        }
        found
    }
}

/// The same for the index.
#[derive(Clone, Default)]
pub struct WordTokenizer;

/// Words one after another, as the index takes them.
pub struct WordStream<'t> {
    words: Words<'t>,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'t> = WordStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> WordStream<'t> {
        WordStream { words: Words::of(text), token: Token::default() }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((from, to)) = self.words.next(&mut self.token.text) else { return false };
        (self.token.offset_from, self.token.offset_to) = (from, to);
        // The position of the first word is 0: tokens begin one before it.
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_many_scripts() {
        for (text, words) in [
            ("", ""),
            ("The Quick-brown fox's 42nd JUMP!", "the quick brown fox s 42nd jump"),
            ("Straße ÄÖÜ İstanbul Ελλάδα Привет", "straße äöü i\u{307}stanbul ελλάδα привет"),
            ("東京都に行く", "東京 京都 都に に行 行く"),
            ("中 文", "中 文"),
            ("Rust言語2024年", "rust 言語 2024 年"),
            ("한국어 검색", "한국 국어 검색"),
            ("a\u{0}b\u{202e}c", "a b c"),
        ] {
            assert_eq!(Words::all(text).join(" "), words, "{text}");
        }
        let long = "x".repeat(10_000);
        assert_eq!(Words::all(&long), ["x".repeat(WORD_BYTES_MAX)]);
        let long = "é".repeat(10_000);
        assert!(Words::all(&long)[0].len() <= WORD_BYTES_MAX);
    }

    #[test]
    fn bytes_and_positions_are_those_of_the_text() {
        let text = "Ä bc, 東京都";
        let mut stream = WordTokenizer;
        let mut stream = stream.token_stream(text);
        let mut found = Vec::new();
        while stream.advance() {
            let token = stream.token();
            found.push((token.position, &text[token.offset_from..token.offset_to], token.text.clone()));
        }
        let expected = [(0, "Ä", "ä"), (1, "bc", "bc"), (2, "東京", "東京"), (3, "京都", "京都")];
        assert_eq!(found, expected.map(|(position, part, word)| (position, part, word.to_owned())));
    }
}
