//! What a contributor does, and why not more, on the terminal it was started from: drawn anew every second below what it says.

use crate::failure::printable;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Lines about bundles in hand.
const IN_HAND_MAX: usize = 12;
const EVERY: Duration = Duration::from_secs(1);

/// The screen; nothing where nobody looks at a terminal. It goes with this.
pub struct Screen {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    drawing: Option<JoinHandle<()>>,
}

impl Screen {
    /// About the contributor whose folder this is.
    pub fn begin(folder: PathBuf) -> Screen {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let over = Arc::new(AtomicBool::new(bar.is_hidden()));
        let (drawn, told) = (bar.clone(), over.clone());
        let draw = move || {
            while !told.load(Ordering::Relaxed) {
                if let Ok(status) = skep_contribute::control::say(&folder, "status") {
                    drawn.set_message(text(&status));
                }
                std::thread::park_timeout(EVERY);
            }
        };
        // A screen that cannot be drawn is no reason not to work.
        let drawing = if bar.is_hidden() { None } else { std::thread::Builder::new().spawn(draw).ok() };
        Screen { bar, over, drawing }
    }

    /// Says something above it.
    pub fn say(&self, line: &str) {
        match self.bar.is_hidden() {
            true => crate::failure::say(line),
            false => self.bar.println(line.chars().map(printable).collect::<String>()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(drawing) = self.drawing.take() {
            drawing.thread().unpark();
            let _drawn_no_more = drawing.join();
        }
        self.bar.finish_and_clear();
    }
}

fn bytes(value: &Value) -> String {
    let number = value.as_f64().unwrap_or(0.0);
    match number {
        0.0..1e6 => format!("{:.0} kB", number / 1e3),
        1e6..1e9 => format!("{:.1} MB", number / 1e6),
        _ => format!("{:.2} GB", number / 1e9),
    }
}

/// What stands there.
fn text(status: &Value) -> String {
    let word = |name: &str| -> String { status[name].as_str().unwrap_or_default().chars().map(printable).collect() };
    let mut text = format!(
        "{}: {} pages, {} bundles returned; {} connections; {} this month, {} on disk\n",
        word("state"),
        status["pages"],
        status["bundles-returned"],
        status["connections"],
        bytes(&status["month-bytes"]),
        bytes(&status["disk-bytes"])
    );
    if !word("why-not-more").is_empty() {
        text.push_str(&format!("  why not more: {}\n", word("why-not-more")));
    }
    let in_hand: Vec<&Value> = status["in-hand"].as_array().into_iter().flatten().collect();
    for one in in_hand.iter().take(IN_HAND_MAX) {
        let word = |name: &str| -> String { one[name].as_str().unwrap_or_default().chars().map(printable).collect() };
        text.push_str(&format!("  {}: {}\n", word("host"), word("doing")));
    }
    if in_hand.len() > IN_HAND_MAX {
        text.push_str(&format!("  and {} more\n", in_hand.len() - IN_HAND_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_says_what_is_done_and_why_not_more() {
        let in_hand: Vec<Value> =
            (0..14).map(|n| json!({ "host": format!("h{n}\u{7}"), "doing": "3 of 40" })).collect();
        let status = json!({
            "state": "waiting", "pages": 12, "bundles-returned": 3, "connections": 2, "month-bytes": 1_500_000, "disk-bytes": 0,
            "why-not-more": "only between 22 and 6", "in-hand": in_hand,
        });
        let text = text(&status);
        assert!(text.starts_with("waiting: 12 pages, 3 bundles returned; 2 connections; 1.5 MB this month"), "{text}");
        assert!(text.contains("why not more: only between 22 and 6") && text.contains("h0\u{fffd}: 3 of 40"), "{text}");
        assert!(text.ends_with("and 2 more\n"), "{text}");
    }
}
