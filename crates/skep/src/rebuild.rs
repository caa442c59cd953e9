//! `skep rebuild`: drops the views and builds them again.

use crate::failure::{Result, say};
use crate::job::{Exit, Tell};
use crate::owner::{self, Place};
use crate::search;
use crate::show::{self, Column, Screen};
use clap::Args;
use serde_json::json;
use skep_archive::Archive;
use skep_archive::captures::Match;
use std::ops::ControlFlow;

/// Drop the views and build them again from the records
#[derive(Args)]
#[command(after_help = "\
The views (what is found where) hold nothing that is not in the segments and collections. They are built again from the sidecars
beside the files; --reparse reads the files themselves and writes the sidecars again, which takes longer. What was added by a CDXJ index
stays as the index had it. An index of texts, where the archive keeps one, is built again too; --text makes the archive keep one from now on.")]
pub struct Typed {
    /// Read every record again instead of the sidecars
    #[arg(long)]
    pub reparse: bool,
    /// Keep an index of the texts of all pages, for `skep search`
    #[arg(long)]
    pub text: bool,
}

const COLUMNS: &[Column] = &[("rebuilt", |v| {
    let [captures, segments, files] = ["captures", "segments", "files"].map(|name| show::text(v, name));
    let texts = v["texts"].as_u64().map_or(String::new(), |texts| format!(", {texts} texts"));
    format!("{captures} captures of {segments} segments and {files} added files{texts}")
})];

pub fn run(typed: &Typed, place: &Place) -> Result<Exit> {
    let archive = Archive::rebuild(&place.archive, place.options(), typed.reparse)?;
    owner::as_owner(archive, |owned| {
        let archive = &*owned.archive;
        if typed.text {
            owned.text.keep()?;
        }
        archive.settle()?;
        let mut captures: u64 = 0;
        archive.views().captures.each(&Match::All, |_| {
            captures += 1;
            ControlFlow::Continue(())
        })?;
        let undone = archive.finish_opening();
        for finding in undone.iter().filter(|f| !f.mended) {
            say(&format!("left undone: {finding}"));
        }
        let (segments, files) = (archive.segments().len(), archive.collections().files().len());
        let mut screen = Screen::new(place.json, COLUMNS);
        search::read_texts(owned, &mut screen)?;
        let mut rebuilt = json!({ "captures": captures, "segments": segments, "files": files });
        if owned.text.is_kept() {
            rebuilt["texts"] = json!(owned.text.documents()?);
        }
        screen.line(rebuilt)?;
        screen.finish()?;
        Ok(if undone.iter().all(|f| f.mended) { Exit::Done } else { Exit::Undone })
    })
}
