//! A few lines at the bottom of a terminal that are drawn anew in their place, and talk above them. Each drawing is one write, and lines are
//! written over before what is left of them is cleared, so nothing flickers. The terminal is left as it was found: no mode is changed.
//!
//! ```text
//!  ESC[nA      up to the first drawn line          ESC[K   clear the rest of this line
//!  ESC[J       clear everything below
//! ```

use crate::failure::printable;
use std::io::Write;

/// Width and height where the terminal does not tell.
const SIZE: (usize, usize) = (80, 24);

/// What is drawn now.
#[derive(Default)]
pub struct Drawn {
    lines: Vec<String>,
    /// Of these, so many stand on the terminal.
    standing: usize,
}

impl Drawn {
    /// Draws these lines in the place of those that are there.
    pub fn draw(&mut self, lines: Vec<String>) {
        self.lines = lines;
        let bytes = self.drawing(size());
        put(&bytes);
    }

    /// Says something above them.
    pub fn say(&mut self, text: &str) {
        let bytes = self.saying(text, size());
        put(&bytes);
    }

    /// Takes them away.
    pub fn clear(&mut self) {
        let bytes = format!("{}\x1b[J", self.to_first());
        if std::mem::take(&mut self.standing) > 0 {
            put(&bytes);
        }
        self.lines.clear();
    }

    fn to_first(&self) -> String {
        if self.standing > 0 { format!("\r\x1b[{}A", self.standing) } else { String::new() }
    }

    fn drawing(&mut self, (width, height): (usize, usize)) -> String {
        let mut out = self.to_first();
        let fitting = &self.lines[..self.lines.len().min(height.saturating_sub(1))];
        for line in fitting {
            // The last column stays free: some terminals wrap when it is written to.
            out.extend(line.chars().map(printable).take(width.saturating_sub(1)));
            out += "\x1b[K\n";
        }
        if fitting.len() < self.standing {
            out += "\x1b[J";
        }
        self.standing = fitting.len();
        out
    }

    fn saying(&mut self, text: &str, size: (usize, usize)) -> String {
        let mut out = format!("{}\x1b[J", self.to_first());
        out.extend(text.chars().map(printable));
        out.push('\n');
        self.standing = 0;
        out + &self.drawing(size)
    }
}

fn put(bytes: &str) {
    let mut err = std::io::stderr().lock();
    let _nobody_looks = err.write_all(bytes.as_bytes()).and_then(|()| err.flush());
}

fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &[&str]) -> Drawn {
        Drawn { lines: lines.iter().map(|line| (*line).to_owned()).collect(), standing: 0 }
    }

    #[test]
    fn lines_are_drawn_over_each_other() {
        let mut drawn = drawn(&["one", "two"]);
        assert_eq!(drawn.drawing((80, 24)), "one\x1b[K\ntwo\x1b[K\n");
        drawn.lines[1] = "three".into();
        assert_eq!(drawn.drawing((80, 24)), "\r\x1b[2Aone\x1b[K\nthree\x1b[K\n");
        drawn.lines.pop();
        assert_eq!(drawn.drawing((80, 24)), "\r\x1b[2Aone\x1b[K\n\x1b[J");
    }

    #[test]
    fn talk_goes_above() {
        let mut drawn = drawn(&["one"]);
        drawn.drawing((80, 24));
        assert_eq!(drawn.saying("hear", (80, 24)), "\r\x1b[1A\x1b[Jhear\none\x1b[K\n");
    }

    #[test]
    fn nothing_wraps_scrolls_or_commands_the_terminal() {
        let mut drawn = drawn(&["a\x1b[2Jlong line", "two", "three"]);
        assert_eq!(drawn.drawing((5, 3)), "a\u{fffd}[2\x1b[K\ntwo\x1b[K\n");
    }
}
