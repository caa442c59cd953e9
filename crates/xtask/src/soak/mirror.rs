//! The mirror test with a documentation of 30,000 pages: same pages as wget, readable by everybody, replayed by pywb.

use crate::limits;
use crate::long::Options;
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};

pub fn run(workspace: &Workspace, _options: &Options) -> Result<()> {
    needs::system()?;
    needs::venv(workspace)?;
    let Some(documentation) = needs::documentation(workspace, &["rust-doc"])? else {
        bail!("without Debian's packages there is nothing to crawl");
    };
    let mut test = workspace.cargo();
    test.args(["test", "--release", "--quiet", "--workspace", "--test", "mirror", "--"]);
    test.args(["--exact", "a_large_documentation_is_mirrored_as_wget_does", "--nocapture"]);
    test.envs(documentation.variables()).env("SKEP_PYTHON", std::path::absolute(workspace.python())?);
    test.env("SKEP_MIRROR_PAGES", limits::MIRROR_PAGES.to_string());
    if !test.status().context("cargo could not be started")?.success() {
        bail!("the mirror differs; what it says is above");
    }
    Ok(())
}
