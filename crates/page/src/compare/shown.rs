//! Two texts beside each other with what differs marked, word by word. Work is bounded, whatever the texts are.

use std::collections::HashSet;
use std::ops::Range;

use similar::{Algorithm, ChangeTag, TextDiff};
use xxhash_rust::xxh3::xxh3_64;

use super::align;
use crate::limits::{SHOWN_CONTEXT_LINES, SHOWN_LINES_MAX, SHOWN_PAIRS_MAX, SHOWN_WORK_MAX};

/// What two texts have apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Rows, from the top.
    pub rows: Vec<Row>,
    /// Lines of the old text that are not in the new one.
    pub old_lines: usize,
    /// Lines of the new text that are not in the old one.
    pub new_lines: usize,
    /// There are more lines than were compared.
    pub cut: bool,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A line that both have.
    Same(String),
    /// So many lines that both have, far from any difference.
    Folded(usize),
    /// A line as it was and as it is; one of them may be missing.
    Changed(Option<Vec<Piece>>, Option<Vec<Piece>>),
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// As it stands.
    pub text: String,
    /// The other line does not have it.
    pub marked: bool,
}

/// Compares two texts line by line, and lines that changed word by word.
pub fn show(old: &str, new: &str) -> Shown {
    let lines = |text: &'_ str| -> Vec<String> {
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.take(SHOWN_LINES_MAX + 1).map(str::to_owned).collect()
    };
    let (mut old, mut new) = (lines(old), lines(new));
    let cut = old.len().max(new.len()) > SHOWN_LINES_MAX;
    old.truncate(SHOWN_LINES_MAX);
    new.truncate(SHOWN_LINES_MAX);
    let digests = |lines: &[String]| lines.iter().map(|line| xxh3_64(line.as_bytes())).collect::<Vec<_>>();
    let places = align(&digests(&old), &digests(&new)).places(old.len(), new.len());
    let mut shown = Shown { cut, ..Shown::default() };
    let mut work_left = SHOWN_WORK_MAX;
    let mut at = 0;
    for (number, place) in places.iter().enumerate() {
        shown.same(&old[at..place.old.start], number > 0, true);
        shown.changed(&old[place.old.clone()], &new[place.new.clone()], &mut work_left);
        at = place.old.end;
    }
    shown.same(&old[at..], !places.is_empty(), false);
    shown
}

/// Where two lists of lines differ: stretches of the old one, and what stands there in the new one.
pub fn show_lines(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let digests = |lines: &[&str]| lines.iter().map(|line| xxh3_64(line.as_bytes())).collect::<Vec<_>>();
    let places = align(&digests(old), &digests(new)).places(old.len(), new.len());
    places.into_iter().map(|place| (place.old, place.new)).collect()
}

impl Shown {
    /// Of what is the same, the lines next to a difference.
    fn same(&mut self, lines: &[String], before: bool, after: bool) {
        let head = if before { SHOWN_CONTEXT_LINES } else { 0 };
        let tail = if after { SHOWN_CONTEXT_LINES } else { 0 };
        let row = |line: &String| Row::Same(line.clone());
        if lines.len() <= head + tail + 1 {
            self.rows.extend(lines.iter().map(row));
            return;
        }
        self.rows.extend(lines[..head].iter().map(row));
        self.rows.push(Row::Folded(lines.len() - head - tail));
        self.rows.extend(lines[lines.len() - tail..].iter().map(row));
    }

    fn changed(&mut self, old: &[String], new: &[String], work_left: &mut u64) {
        self.old_lines += old.len();
        self.new_lines += new.len();
        let (mut was, mut is) = (0, 0);
        for (a, b) in pairs(old, new).into_iter().chain([(old.len(), new.len())]) {
            self.rows.extend(old[was..a].iter().map(|line| Row::Changed(Some(whole(line)), None)));
            self.rows.extend(new[is..b].iter().map(|line| Row::Changed(None, Some(whole(line)))));
            if let (Some(old), Some(new)) = (old.get(a), new.get(b)) {
                let (old, new) = words(old, new, work_left);
                self.rows.push(Row::Changed(Some(old), Some(new)));
            }
            (was, is) = (a + 1, b + 1);
        }
    }
}

impl Shown {
    /// The rows of a table with two columns, as HTML: what went is inside `del`, what came inside `ins`.
    pub fn html(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            match row {
                Row::Same(line) => {
                    let line = htmlize::escape_text(line);
                    out.push_str(&format!("<tr><td>{line}</td><td>{line}</td></tr>"));
                }
                Row::Folded(count) => {
                    out.push_str(&format!("<tr class=\"fold\"><td colspan=\"2\">{count} lines are the same</td></tr>"));
                }
                Row::Changed(old, new) => {
                    out.push_str(&format!("<tr>{}{}</tr>", cell(old, "old", "del"), cell(new, "new", "ins")));
                }
            }
        }
        out
    }
}

fn cell(line: &Option<Vec<Piece>>, class: &str, element: &str) -> String {
    let Some(pieces) = line else { return "<td></td>".to_owned() };
    let mut out = format!("<td class=\"{class}\">");
    for Piece { text, marked } in pieces {
        let text = htmlize::escape_text(text.as_str());
        match marked {
            true => out.push_str(&format!("<{element}>{text}</{element}>")),
            false => out.push_str(&text),
        }
    }
    out + "</td>"
}

/// Which lines became which, in ascending order: those that share most of their words.
fn pairs(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    if old.len() == new.len() || old.len() * new.len() > SHOWN_PAIRS_MAX {
        return (0..old.len().min(new.len())).map(|at| (at, at)).collect();
    }
    let sets = |lines: &[String]| -> Vec<HashSet<u64>> {
        let set = |line: &String| line.split(' ').take(512).map(|word| xxh3_64(word.as_bytes())).collect();
        lines.iter().map(set).collect()
    };
    let (old, new) = (sets(old), sets(new));
    let mut pairs = Vec::new();
    best(&old, &new, 0..old.len(), 0..new.len(), &mut pairs);
    pairs
}

/// The best pair first, then what is before it and what is behind it.
fn best(old: &[HashSet<u64>], new: &[HashSet<u64>], a: Range<usize>, b: Range<usize>, pairs: &mut Vec<(usize, usize)>) {
    let share = |i: usize, j: usize| {
        let common = old[i].intersection(&new[j]).count();
        common * 100 / old[i].len().max(new[j].len()).max(1)
    };
    let all = a.clone().flat_map(|i| b.clone().map(move |j| (i, j)));
    let found = all
        .map(|(i, j)| (share(i, j), i, j))
        .filter(|found| found.0 >= 30)
        .max_by_key(|found| (found.0, std::cmp::Reverse(found.1), std::cmp::Reverse(found.2)));
    if let Some((_, i, j)) = found {
        best(old, new, a.start..i, b.start..j, pairs);
        pairs.push((i, j));
        best(old, new, i + 1..a.end, j + 1..b.end, pairs);
    }
}

fn whole(line: &str) -> Vec<Piece> {
    vec![Piece { text: line.to_owned(), marked: true }]
}

/// Two lines with the words that differ marked.
fn words(old: &str, new: &str, work_left: &mut u64) -> (Vec<Piece>, Vec<Piece>) {
    let count = |line: &str| line.split_whitespace().count() as u64 * 2;
    let work = count(old).saturating_mul(count(new));
    let Some(left) = work_left.checked_sub(work) else { return (whole(old), whole(new)) };
    *work_left = left;
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for change in TextDiff::configure().algorithm(Algorithm::Myers).diff_words(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                push(&mut was, change.value(), false);
                push(&mut is, change.value(), false);
            }
            ChangeTag::Delete => push(&mut was, change.value(), true),
            ChangeTag::Insert => push(&mut is, change.value(), true),
        }
    }
    (was, is)
}

fn push(pieces: &mut Vec<Piece>, text: &str, marked: bool) {
    match pieces.last_mut() {
        Some(last) if last.marked == marked => last.text.push_str(text),
        _ => pieces.push(Piece { text: text.to_owned(), marked }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> String {
        let line = |pieces: &Option<Vec<Piece>>| {
            let piece = |piece: &Piece| if piece.marked { format!("[{}]", piece.text) } else { piece.text.clone() };
            pieces.as_ref().map_or("-".to_owned(), |pieces| pieces.iter().map(piece).collect())
        };
        let row = |row: &Row| match row {
            Row::Same(line) => format!("  {line}\n"),
            Row::Folded(count) => format!("  … {count}\n"),
            Row::Changed(old, new) => format!("{} | {}\n", line(old), line(new)),
        };
        show(old, new).rows.iter().map(row).collect()
    }

    #[test]
    fn what_differs_is_marked_and_what_is_the_same_is_folded() {
        let old = "a\nb\nc\nd\ne\nf\nthe old word here\nz";
        let new = "a\nb\nc\nd\ne\nf\nthe new word here\nz\nmore";
        assert_eq!(
            told(old, new),
            "  … 3\n  d\n  e\n  f\nthe [old] word here | the [new] word here\n  z\n- | [more]\n"
        );
        assert_eq!(told("a\nb", "a\nb"), "  … 2\n");
        assert_eq!(told("", ""), "");
    }

    #[test]
    fn as_html_nothing_of_the_text_is_markup() {
        let html = show("x\nthe old <word> here", "x\nthe new <word> here\nmore").html();
        assert!(html.contains("<td class=\"old\">the <del>old</del> &lt;word&gt; here</td>"), "{html}");
        assert!(html.contains("<td class=\"new\">the <ins>new</ins> &lt;word&gt; here</td>"), "{html}");
        assert!(html.ends_with("<tr><td></td><td class=\"new\"><ins>more</ins></td></tr>"), "{html}");
    }

    #[test]
    fn lines_are_paired_with_those_they_became() {
        let old = "one two three four\nfive six seven eight";
        let new = "something else\nfive six SEVEN eight";
        assert!(told(old, &format!("entirely new\n{new}")).contains("five six [seven] eight | five six [SEVEN] eight"));
    }

    #[test]
    fn much_is_shown_in_bounded_work() {
        let text = |seed: usize| (0..3000).map(|n| format!("{} ", (n * seed) % 1009)).collect::<String>();
        let old: Vec<String> = (1..200).map(text).collect();
        let new: Vec<String> = (1..200).map(|n| text(n + 7)).collect();
        let shown = show(&old.join("\n"), &new.join("\n"));
        assert!(shown.new_lines > 0);
    }
}
