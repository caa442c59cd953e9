//! Printing: tables for people, one object a line for machines, progress only on a terminal.

use crate::failure::{self, Result, output, printable, say};
use crate::job::Tell;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// One column of a table: its title and how to show an object in it.
pub type Column = (&'static str, fn(&Value) -> String);

/// Prints what a job tells.
pub struct Screen {
    out: BufWriter<Stdout>,
    json: bool,
    columns: &'static [Column],
    waiting: Vec<Vec<String>>,
    widths: Vec<usize>,
    titled: bool,
    bar: Option<ProgressBar>,
    /// Whether somebody can see a bar. Asked once: progress is told with every record.
    has_terminal: bool,
}

/// Rows that are looked at to find the widths of columns.
const ROWS_MEASURED: usize = 200;

impl Screen {
    pub fn new(json: bool, columns: &'static [Column]) -> Screen {
        Screen {
            out: BufWriter::new(io::stdout()),
            json,
            columns,
            waiting: Vec::new(),
            widths: columns.iter().map(|(title, _)| title.len()).collect(),
            titled: false,
            bar: None,
            has_terminal: io::stderr().is_terminal(),
        }
    }

    /// To be called at the end: prints what waits.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.print_waiting()?;
        self.out.flush().map_err(output)
    }

    fn print_waiting(&mut self) -> Result<()> {
        for row in &self.waiting {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if !self.titled && !self.waiting.is_empty() && io::stdout().is_terminal() {
            let titles = self.columns.iter().map(|(title, _)| title.to_uppercase()).collect();
            self.print_row(titles)?;
        }
        self.titled |= !self.waiting.is_empty();
        for row in std::mem::take(&mut self.waiting) {
            self.print_row(row)?;
        }
        Ok(())
    }

    fn print_row(&mut self, row: Vec<String>) -> Result<()> {
        let last = row.len().saturating_sub(1);
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
            // Control characters of a hostile URL must not reach the terminal.
            line.extend(cell.chars().map(printable));
            if i < last {
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()) + 2));
            }
        }
        writeln!(self.out, "{line}").map_err(output)
    }
}

impl Tell for Screen {
    fn line(&mut self, value: Value) -> failure::Result<()> {
        if self.json {
            return writeln!(self.out, "{value}").map_err(output);
        }
        self.waiting.push(self.columns.iter().map(|(_, show)| show(&value)).collect());
        if self.waiting.len() >= ROWS_MEASURED || self.titled { self.print_waiting() } else { Ok(()) }
    }

    fn bytes(&mut self, bytes: &[u8]) -> failure::Result<()> {
        self.out.write_all(bytes).map_err(output)
    }

    fn talk(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text.chars().map(printable).collect::<String>()),
            None => say(text),
        }
    }

    fn progress(&mut self, done: u64, of: u64) {
        if !self.has_terminal {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let form = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
            ProgressBar::new(of)
                .with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(of);
        bar.set_position(done);
    }
}

/// Takes the objects of an answer, for commands that show them in a form of their own.
#[derive(Default)]
pub struct Collected(pub Vec<Value>);

impl Tell for Collected {
    fn line(&mut self, value: Value) -> failure::Result<()> {
        self.0.push(value);
        Ok(())
    }
    fn bytes(&mut self, _: &[u8]) -> failure::Result<()> {
        Ok(())
    }
    fn talk(&mut self, text: &str) {
        say(text);
    }
    fn progress(&mut self, _: u64, _: u64) {}
}

/// Prints objects: each in its form, a blank line between; or one a line for machines.
pub fn objects(objects: &[Value], json: bool, form: fn(&Value) -> String) -> Result<()> {
    let mut out = BufWriter::new(io::stdout());
    for (number, object) in objects.iter().enumerate() {
        let text = if json { format!("{object}\n") } else { form(object) };
        let between = if json || number == 0 { "" } else { "\n" };
        write!(out, "{between}{text}").map_err(output)?;
    }
    out.flush().map_err(output)
}

/// A field as text; nothing where it is absent.
pub fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Bytes for a person.
pub fn bytes(count: u64) -> String {
    let mut amount = count as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if amount < 1000.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1000.0;
    }
    format!("{amount:.1} TB")
}
