//! `skep rebuild`: drops the views and builds them again.

use crate::failure::Result;
use crate::job::Exit;
use crate::owner::{self, Place};
use clap::Args;
use skep_archive::{Archive, OpenOptions};

/// Drop the views and build them again from the records
#[derive(Args)]
#[command(after_help = "\
The views (what is found where) hold nothing that is not in the segments and collections. They are built again from the sidecars
beside the files; --reparse reads the files themselves and writes the sidecars again, which takes longer.")]
pub struct Typed {
    /// Read every record again instead of the sidecars
    #[arg(long)]
    pub reparse: bool,
}

pub fn run(typed: &Typed, place: &Place) -> Result<Exit> {
    let archive = Archive::rebuild(&place.archive, OpenOptions::default(), typed.reparse)?;
    owner::as_owner(archive, |archive| {
        archive.settle()?;
        let facts = archive.views().captures.facts();
        let undone = archive.finish_opening();
        for finding in undone.iter().filter(|f| !f.mended) {
            eprintln!("left undone: {finding}");
        }
        let captures = facts.in_runs + facts.fresh;
        if place.json {
            println!(
                "{}",
                serde_json::json!({ "captures": captures, "segments": archive.segments().len(), "files": archive.collections().files().len() })
            );
        } else {
            println!(
                "{captures} captures of {} segments and {} added files",
                archive.segments().len(),
                archive.collections().files().len()
            );
        }
        Ok(if undone.iter().all(|f| f.mended) { Exit::Done } else { Exit::Undone })
    })
}
