//! What a person sees of a crawl while it runs: on a terminal a few lines that are drawn anew, elsewhere a line now and then; machines get
//! one object for each event.

use super::drawn::Drawn;
use crate::failure::{Result, output, printable, say};
use crate::job::Tell;
use crate::show;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A line so often where there is no terminal.
const LINE_MS: u64 = 5_000;
/// Hosts and classes of errors that are shown.
const SHOWN: usize = 4;

/// Shows a crawl.
pub struct Live {
    json: bool,
    voice: Voice,
    next_line_ms: u64,
    title: String,
    happened: String,
    /// How it ended, once it did.
    pub ended: Option<Value>,
}

/// Says something above the drawn lines; clones share the terminal.
#[derive(Clone)]
pub struct Voice {
    drawn: Option<Arc<Mutex<Drawn>>>,
}

impl Voice {
    pub fn say(&self, text: &str) {
        match self.drawn() {
            Some(mut drawn) => drawn.say(text),
            None => say(text),
        }
    }

    /// Takes the drawn lines away.
    pub fn clear(&self) {
        if let Some(mut drawn) = self.drawn() {
            drawn.clear();
        }
    }

    /// `None` where there is no terminal.
    fn drawn(&self) -> Option<MutexGuard<'_, Drawn>> {
        self.drawn.as_ref().map(|drawn| drawn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Live {
    pub fn new(json: bool) -> Live {
        let terminal = !json && std::io::stderr().is_terminal();
        let drawn = terminal.then(Arc::default);
        Live {
            json,
            voice: Voice { drawn },
            next_line_ms: LINE_MS,
            title: String::new(),
            happened: String::new(),
            ended: None,
        }
    }

    pub fn voice(&self) -> Voice {
        self.voice.clone()
    }

    fn event(&mut self, event: Value) {
        let text = |name: &str| show::text(&event, name);
        match event["event"].as_str().unwrap_or_default() {
            "began" => {
                self.title = format!("{}, pass {}", text("name"), text("pass"));
                let number = |name: &str| event[name].as_u64().unwrap_or(0);
                let goes_on = number("known") > number("waiting");
                let standing = if goes_on {
                    format!(", {} known, {} waiting", text("known"), text("waiting"))
                } else {
                    String::new()
                };
                self.voice.say(&format!("crawl {}{standing}", self.title));
            }
            "serving" => {
                self.voice.say(&format!("portal {}", text("portal")));
            }
            "progress" => self.progress(&event),
            "note" => self.voice.say(&format!("note: {}", text("text"))),
            "paused" => self.voice.say(&format!("paused: {} since {}", text("why"), text("since"))),
            "resumed" => self.voice.say(&format!("the network is there again after {} s: the crawl goes on", text("seconds"))),
            "lowered" => self.voice.say(&format!(
                "note: too few file descriptors, ports or memory, concurrency lowered to {}; `skep doctor` says what to change",
                text("concurrency")
            )),
            "turned-away" => {
                self.happened = format!("all sites at {} refuse; they are left alone for {} s", text("address"), text("seconds"));
            }
            "parked" => self.happened = format!("{} asked to be left alone for {} s", text("site"), text("seconds")),
            "gave-up" => self.happened = format!("{} was given up: {}", text("host"), text("why")),
            "ended" => self.ended = Some(event),
            _ => {}
        }
    }

    fn progress(&mut self, progress: &Value) {
        if let Some(mut drawn) = self.voice.drawn() {
            drawn.draw(screen(&self.title, progress, &self.happened));
            return;
        }
        let elapsed_ms = progress["elapsed_ms"].as_u64().unwrap_or(0);
        if elapsed_ms >= self.next_line_ms {
            self.next_line_ms = elapsed_ms + LINE_MS;
            say(&line(progress));
        }
    }
}

impl Tell for Live {
    fn line(&mut self, value: Value) -> Result<()> {
        if self.json {
            // Whoever reads along wants it now.
            let mut out = std::io::stdout().lock();
            writeln!(out, "{value}").and_then(|()| out.flush()).map_err(output)?;
        } else {
            self.event(value.clone());
        }
        if value["event"] == "ended" {
            self.ended = Some(value);
        }
        Ok(())
    }

    fn bytes(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn talk(&mut self, text: &str) {
        self.voice.say(text);
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

impl Drop for Live {
    fn drop(&mut self) {
        self.voice.clear();
    }
}

/// How it stands, in one line.
fn line(progress: &Value) -> String {
    let number = |name: &str| progress[name].as_u64().unwrap_or(0);
    let mut out = format!(
        "{}  {} visited, {:.1}/s, {}, {} waiting, {} out",
        clock(number("elapsed_ms")),
        number("visits"),
        progress["rate"].as_f64().unwrap_or(0.0),
        show::bytes(number("bytes")),
        number("waiting"),
        number("out"),
    );
    if let Some(left_ms) = progress["left_ms"].as_u64() {
        out += &format!(", {} left", clock(left_ms));
    }
    let errors = errors(progress);
    if !errors.is_empty() {
        out += &format!(", errors: {errors}");
    }
    if progress["disk_full"] == true {
        out += ", waiting for room on the disk";
    }
    if progress["offline"] == true {
        out += ", waiting for the network";
    }
    out
}

/// How it stands, in a few lines.
fn screen(title: &str, progress: &Value, happened: &str) -> Vec<String> {
    let number = |name: &str| progress[name].as_u64().unwrap_or(0);
    let left = progress["left_ms"].as_u64().map(|ms| format!("   {} left", clock(ms))).unwrap_or_default();
    let slowest = progress["slowest"].as_array().map(Vec::as_slice).unwrap_or_default();
    let slowest: Vec<String> = slowest
        .iter()
        .take(SHOWN)
        .map(|pair| format!("{} {} ms", pair[0].as_str().unwrap_or_default(), pair[1].as_u64().unwrap_or(0)))
        .collect();
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let last = match happened {
        _ if progress["disk_full"] == true => {
            "waiting: less room on the disk than --reserve; it goes on when there is room".to_owned()
        }
        _ if progress["offline"] == true => {
            "waiting: the network is down; it goes on when it is there again".to_owned()
        }
        "" => "Ctrl-C finishes what is in flight; the same command goes on".to_owned(),
        happened => happened.to_owned(),
    };
    let lines = [
        format!("{title}   {}{left}", clock(number("elapsed_ms"))),
        format!(
            "visited {}   {:.1}/s   {}",
            number("visits"),
            progress["rate"].as_f64().unwrap_or(0.0),
            show::bytes(number("bytes"))
        ),
        format!(
            "waiting {}   out {}   known {}   hosts {}",
            number("waiting"),
            number("out"),
            number("known"),
            number("hosts")
        ),
        format!("slowest {}", or_none(slowest.join("   "))),
        format!("errors  {}", or_none(errors(progress))),
        last,
    ];
    // Names of hosts are somebody else's words.
    lines.map(|line| line.chars().map(printable).collect()).to_vec()
}

/// Errors by class, the most frequent first.
fn errors(progress: &Value) -> String {
    let Some(errors) = progress["errors"].as_object() else { return String::new() };
    let mut counted: Vec<(&String, u64)> =
        errors.iter().map(|(class, count)| (class, count.as_u64().unwrap_or(0))).collect();
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<String> = counted.iter().take(SHOWN).map(|(class, count)| format!("{class} {count}")).collect();
    let more: u64 = counted.iter().skip(SHOWN).map(|(_, count)| count).sum();
    if more > 0 { format!("{}   others {more}", shown.join("   ")) } else { shown.join("   ") }
}

/// A span as a clock shows it.
fn clock(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{seconds:02}"),
        days => format!("{days}d {hours:02}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn progress() -> Value {
        json!({
            "event": "progress", "elapsed_ms": 3_725_000, "visits": 1_234, "rate": 12.34, "bytes": 5_600_000, "waiting": 70, "out": 8,
            "known": 1_312, "hosts": 2, "left_ms": 90_000_000, "errors": { "gone": 3, "timeout": 12, "dns": 1, "tls": 1, "busy": 1 },
            "slowest": [["a.test\u{1b}[2J", 900], ["b.test", 20]], "disk_full": false
        })
    }

    #[test]
    fn one_line_says_how_it_stands() {
        assert_eq!(
            line(&progress()),
            "01:02:05  1234 visited, 12.3/s, 5.6 MB, 70 waiting, 8 out, 1d 01:00:00 left, errors: timeout 12   gone 3   busy 1   dns 1   \
             others 1"
        );
        assert_eq!(line(&json!({})), "00:00:00  0 visited, 0.0/s, 0 B, 0 waiting, 0 out");
    }

    #[test]
    fn the_screen_says_more_and_lets_no_host_write_on_it() {
        let shown = screen("a, pass 1", &progress(), "");
        assert_eq!(shown[0], "a, pass 1   01:02:05   1d 01:00:00 left");
        assert!(shown[3].contains("b.test 20 ms") && !shown.concat().contains('\u{1b}'), "{shown:?}");
        assert!(shown[5].starts_with("Ctrl-C"));
        let full = screen("a", &json!({ "disk_full": true }), "");
        assert!(full[5].contains("--reserve") && full[4].ends_with("none"), "{full:?}");
    }
}
