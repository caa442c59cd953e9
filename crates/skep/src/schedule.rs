//! `skep schedule`: when pages are looked at again, and why.

use crate::failure::{Result, printable, say};
use crate::job::{self, Exit};
use crate::owner::{self, Place};
use crate::show::{self, Collected};
use clap::Args;
use serde_json::Value;
use skep_crawl::Question;

/// Tell when a URL, or the pages of a host, are looked at again: how often it is believed to change, the next look, why
#[derive(Args)]
#[command(after_help = "\
A watch that runs answers itself; otherwise what is on disk does. Of a host up to 100 pages are told.
Examples:
  skep schedule https://example.org/news
  skep schedule example.org --json
Exit code 1 if nothing that is watched is known of it.")]
pub struct Typed {
    /// A URL (with https:// or http://), or a host
    #[arg(value_name = "URL|HOST")]
    what: String,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    // A name with a path can only be a URL.
    let asks = match typed.what.contains("://") || !typed.what.contains('/') {
        true => vec![typed.what.clone()],
        false => vec![format!("https://{}", typed.what), format!("http://{}", typed.what)],
    };
    for what in asks {
        owner::perform(place, false, &job::Job::Ask(Question::Schedule { what }), &mut told)?;
        if !told.0.is_empty() {
            break;
        }
    }
    if told.0.is_empty() {
        say(&format!("no watch has looked at {} yet", typed.what));
        return Ok(Exit::No);
    }
    show::objects(&told.0, place.json, table)?;
    Ok(Exit::Done)
}

fn table(page: &Value) -> String {
    let number = |name: &str| page[name].as_f64().unwrap_or(0.0);
    let between = |place: usize| page["between"][place].as_f64().unwrap_or(0.0);
    let mut out = format!("{}\n", show::text(page, "url").chars().map(printable).collect::<String>());
    let mut row = |name: &str, text: String| out += &format!("  {name:<11}{text}\n");
    row("watch", show::text(page, "watch"));
    row("state", show::text(page, "state"));
    row(
        "changes",
        format!(
            "{:.4} a day, between {:.4} and {:.4}; {:.1} seen",
            number("changes_per_day"),
            between(0),
            between(1),
            number("changes_seen")
        ),
    );
    row(
        "importance",
        format!("{:.2}, {} other sites link to it", number("importance"), show::text(page, "referring_sites")),
    );
    row("last", show::text(page, "last"));
    row("next", show::text(page, "next"));
    row("because", show::text(page, "because"));
    out
}
