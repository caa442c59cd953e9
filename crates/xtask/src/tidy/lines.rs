//! Rust source split into what the compiler reads and what people read, line by line. Enough of the grammar to tell a comment
//! from a string; the contents of literals are blanked, so that a rule never trips over a word in a message.

/// One line of a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Counted from one.
    pub number: usize,
    /// What is compiled, with the contents of literals taken out.
    pub code: String,
    /// What stands in comments.
    pub comment: String,
}

enum Inside {
    Code,
    LineComment,
    /// Block comments nest in Rust.
    BlockComment(usize),
    Text,
    /// A raw string ends at a quote and this many hash signs.
    RawText(usize),
}

/// Splits a source file.
pub fn split(text: &str) -> Vec<Line> {
    let characters: Vec<char> = text.chars().collect();
    let at = |index: usize| characters.get(index).copied().unwrap_or('\0');
    let mut lines = Vec::new();
    let mut line = Line { number: 1, ..Line::default() };
    let mut inside = Inside::Code;
    let mut i = 0;
    while i < characters.len() {
        let c = characters[i];
        if c == '\n' {
            if matches!(inside, Inside::LineComment) {
                inside = Inside::Code;
            }
            let number = line.number + 1;
            lines.push(std::mem::take(&mut line));
            line.number = number;
            i += 1;
            continue;
        }
        match inside {
            Inside::Code => match (c, at(i + 1)) {
                ('/', '/') => {
                    inside = Inside::LineComment;
                    i += 1;
                }
                ('/', '*') => {
                    inside = Inside::BlockComment(1);
                    i += 1;
                }
                ('"', _) => {
                    line.code.push('"');
                    inside = match raw_hashes(&line.code) {
                        Some(hashes) => Inside::RawText(hashes),
                        None => Inside::Text,
                    };
                }
                ('\'', _) => {
                    let end = literal_end(&characters, i);
                    line.code.push('\'');
                    i = end.unwrap_or(i);
                }
                _ => line.code.push(c),
            },
            Inside::LineComment => line.comment.push(c),
            Inside::BlockComment(depth) => match (c, at(i + 1)) {
                ('*', '/') => {
                    inside = if depth == 1 { Inside::Code } else { Inside::BlockComment(depth - 1) };
                    i += 1;
                }
                ('/', '*') => {
                    inside = Inside::BlockComment(depth + 1);
                    i += 1;
                }
                _ => line.comment.push(c),
            },
            Inside::Text => match c {
                // An escaped line end still ends a line.
                '\\' if at(i + 1) != '\n' => i += 1,
                '"' => {
                    line.code.push('"');
                    inside = Inside::Code;
                }
                _ => {}
            },
            Inside::RawText(hashes) => {
                if c == '"' && (1..=hashes).all(|ahead| at(i + ahead) == '#') {
                    line.code.push('"');
                    inside = Inside::Code;
                    i += hashes;
                }
            }
        }
        i += 1;
    }
    lines.push(line);
    lines
}

/// How many hash signs open the raw string whose quote was just read; `None` for an ordinary string.
fn raw_hashes(code: &str) -> Option<usize> {
    let before = code.strip_suffix('"')?;
    let opened = before.trim_end_matches('#');
    let prefix = opened.strip_suffix('r')?;
    let prefix = prefix.strip_suffix(['b', 'c']).unwrap_or(prefix);
    let part_of_a_name = prefix.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    (!part_of_a_name).then_some(before.len() - opened.len())
}

/// Where the character literal that starts here ends; `None` when the quote begins a lifetime.
fn literal_end(characters: &[char], start: usize) -> Option<usize> {
    match characters.get(start + 1)? {
        '\\' => (start + 3..characters.len().min(start + 14)).find(|i| characters[*i] == '\''),
        '\n' => None,
        _ => (characters.get(start + 2) == Some(&'\'')).then_some(start + 2),
    }
}

/// The lines outside of the file's own tests: everything before the last `#[cfg(test)]` that stands at the margin.
pub fn without_tests(lines: &[Line]) -> &[Line] {
    match lines.iter().position(|line| line.code.starts_with("#[cfg(test)]")) {
        Some(first) => &lines[..first],
        None => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        split(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_the_insides_of_literals_are_not_code() {
        assert_eq!(code("let a = \"// no\"; // yes"), ["let a = \"\"; "]);
        assert_eq!(code("a /* b /* c */ d */ e"), ["a  e"]);
        assert_eq!(code(r##"r#"a "quoted" word"# + b"x\"y" + z"##), ["r#\"\" + b\"\" + z"]);
    }

    #[test]
    fn a_quote_may_be_a_lifetime_or_a_character() {
        assert_eq!(code("fn f<'a>(x: &'a str) { '\"'; '\\''; '\\u{1F41D}' }"), ["fn f<'a>(x: &'a str) { '; '; ' }"]);
    }

    #[test]
    fn a_string_over_several_lines_keeps_the_count() {
        let lines = split("let s = \"one\ntwo \\\n three\";\nlast // why");
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[3].number, lines[3].code.as_str(), lines[3].comment.as_str()), (4, "last ", " why"));
    }

    #[test]
    fn a_name_that_ends_in_r_opens_no_raw_string() {
        assert_eq!(code("for\"a\\\"b\" c"), ["for\"\" c"]);
    }

    #[test]
    fn a_files_own_tests_are_left_out() {
        let lines = split("a\n#[cfg(test)]\nmod tests {}\n");
        assert_eq!(without_tests(&lines).len(), 1);
    }
}
