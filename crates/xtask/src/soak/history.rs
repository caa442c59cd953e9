//! Five years of a real site, commit by commit: the test of the stream of changes, asked for all of them.

use crate::long::{self, Options};
use crate::test::Corpora;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let corpora = match Corpora::find(workspace) {
        Corpora::At(folder) => folder,
        Corpora::Absent(why) => bail!("the history is one of the corpora: {why}"),
    };
    let corpora = corpora.to_str().context("the corpora's folder has a name that is not text")?;
    let commits = options.count.unwrap_or(u64::MAX).min(usize::MAX as u64).to_string();
    let name = "a_real_history_is_told_as_it_was";
    long::test(workspace, "skep", "history", name, &[("SKEP_CORPORA", corpora), ("SKEP_HISTORY_COMMITS", &commits)])
}
