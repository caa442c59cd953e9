//! What `skep crawl` and `skep watch` are asked for alike.

use super::{Hands, Job, Wishes};
use crate::failure::Result;
use crate::owner::Place;
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags of a crawl, whether it ends or goes on for ever.
#[derive(Args)]
pub struct Asked {
    #[command(flatten)]
    wishes: Wishes,
    /// Take everything that no flag says from this TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Let contributors fetch what they have room for; the portal of `skep watch` hands it out, or `skep serve --contributors`
    #[arg(long)]
    contributors: bool,
    /// Let contributors fetch all of it; this machine only checks
    #[arg(long)]
    by_contributors: bool,
    /// Keep an index of the texts of all pages in the archive, for `skep search`
    #[arg(long)]
    text: bool,
}

/// Finds out which crawl is meant where nothing says so, given the folder of the settings.
type Which<'w> = &'w dyn Fn(&Path) -> Result<String>;

impl Asked {
    /// The name that was typed.
    pub fn name(&self) -> Option<String> {
        self.wishes.name()
    }

    /// As meant.
    pub fn meant(self, place: &Place, which: Option<Which<'_>>) -> Result<Job> {
        let folder = place.archive.join("settings");
        let mut wishes = match &self.config {
            Some(path) => self.wishes.over(Wishes::load(path)?),
            None => self.wishes,
        };
        if let Some(which) = which.filter(|_| wishes.is_nameless()) {
            wishes.call(which(&folder)?);
        }
        let mut job = wishes.meant(&folder, place.json)?;
        job.text = self.text;
        job.hands = Hands { contributors: self.contributors || self.by_contributors, only: self.by_contributors };
        Ok(job)
    }
}
