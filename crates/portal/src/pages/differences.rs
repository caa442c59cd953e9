//! Two texts beside each other with what differs marked. Pure, but for a bound on the time it may take.

use crate::answer::escape;
use crate::limits::{COMPARED_LINES_MAX, COMPARED_WORDS_MAX, COMPARING_MS, CONTEXT_LINES};
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices_deadline};
use std::time::{Duration, Instant};

/// What two texts have apart.
pub struct Differences {
    /// Rows of a table with two columns.
    pub rows: String,
    /// Lines of the old text that are not in the new one.
    pub old_lines: usize,
    /// Lines of the new text that are not in the old one.
    pub new_lines: usize,
    /// Whether there are more lines than were compared.
    pub cut: bool,
}

/// Compares two texts line by line, and lines that changed word by word.
pub fn between(old: &str, new: &str) -> Differences {
    let lines = |text: &'_ str| -> Vec<String> {
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (mut old, mut new) = (lines(old), lines(new));
    let cut = old.len().max(new.len()) > COMPARED_LINES_MAX;
    old.truncate(COMPARED_LINES_MAX);
    new.truncate(COMPARED_LINES_MAX);
    let deadline = Instant::now() + Duration::from_millis(COMPARING_MS);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut out = Differences { rows: String::new(), old_lines: 0, new_lines: 0, cut };
    for (number, op) in ops.iter().enumerate() {
        let (was, is) = (&old[op.old_range()], &new[op.new_range()]);
        match op {
            DiffOp::Equal { .. } => out.equal(was, number > 0, number + 1 < ops.len()),
            _ => out.changed(was, is, deadline),
        }
    }
    out
}

impl Differences {
    /// Of what is the same, the lines next to a change.
    fn equal(&mut self, lines: &[String], before: bool, after: bool) {
        let head = if before { CONTEXT_LINES } else { 0 };
        let tail = if after { CONTEXT_LINES } else { 0 };
        if lines.len() <= head + tail + 1 {
            lines.iter().for_each(|line| self.same(line));
            return;
        }
        lines[..head].iter().for_each(|line| self.same(line));
        let folded = lines.len() - head - tail;
        self.rows.push_str(&format!("<tr class=\"fold\"><td colspan=\"2\">{folded} lines are the same</td></tr>"));
        lines[lines.len() - tail..].iter().for_each(|line| self.same(line));
    }

    fn same(&mut self, line: &str) {
        let line = escape(line);
        self.rows.push_str(&format!("<tr><td>{line}</td><td>{line}</td></tr>"));
    }

    fn changed(&mut self, old: &[String], new: &[String], deadline: Instant) {
        self.old_lines += old.len();
        self.new_lines += new.len();
        for row in 0..old.len().max(new.len()) {
            let (was, is) = match (old.get(row), new.get(row)) {
                (Some(was), Some(is)) => words(was, is, deadline),
                (was, is) => (
                    was.map_or(String::new(), |was| format!("<del>{}</del>", escape(was))),
                    is.map_or(String::new(), |is| format!("<ins>{}</ins>", escape(is))),
                ),
            };
            let class =
                |text: &str, name: &str| if text.is_empty() { String::new() } else { format!(" class=\"{name}\"") };
            self.rows.push_str(&format!(
                "<tr><td{}>{was}</td><td{}>{is}</td></tr>",
                class(&was, "old"),
                class(&is, "new")
            ));
        }
    }
}

/// Two lines with the words that differ marked.
fn words(old: &str, new: &str, deadline: Instant) -> (String, String) {
    let long = old.split(' ').count().max(new.split(' ').count()) > COMPARED_WORDS_MAX;
    if long || Instant::now() >= deadline {
        return (format!("<del>{}</del>", escape(old)), format!("<ins>{}</ins>", escape(new)));
    }
    let (mut was, mut is) = (String::new(), String::new());
    for change in TextDiff::configure().deadline(deadline).diff_words(old, new).iter_all_changes() {
        let word = escape(change.value());
        match change.tag() {
            ChangeTag::Equal => {
                was.push_str(&word);
                is.push_str(&word);
            }
            ChangeTag::Delete => was.push_str(&format!("<del>{word}</del>")),
            ChangeTag::Insert => is.push_str(&format!("<ins>{word}</ins>")),
        }
    }
    (was.replace("</del><del>", ""), is.replace("</ins><ins>", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_marked_and_what_is_the_same_is_folded() {
        let found =
            between("a\nb\nc\nd\ne\nf\nthe old <word> here\nz", "a\nb\nc\nd\ne\nf\nthe new <word> here\nz\nmore");
        assert_eq!((found.old_lines, found.new_lines, found.cut), (1, 2, false));
        assert!(found.rows.contains("3 lines are the same"), "{}", found.rows);
        assert!(found.rows.contains("the <del>old</del> &lt;word&gt; here</td>"), "{}", found.rows);
        assert!(found.rows.contains("the <ins>new</ins> &lt;word&gt; here</td>"), "{}", found.rows);
        assert!(found.rows.ends_with("<tr><td></td><td class=\"new\"><ins>more</ins></td></tr>"), "{}", found.rows);
        let same = between("a\nb", "a\nb");
        assert_eq!((same.old_lines, same.new_lines), (0, 0));
        let none = between("", "");
        assert!(none.rows.is_empty());
    }
}
