//! What is measured on, made once under `target/bench` and kept: an archive of real pages, as a peer writes it and as we write it.

use crate::long::{self, Options};
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's documentation packages: some 52,000 real pages of many authors and ages, with their images and scripts.
const PACKAGES: [&str; 9] = [
    "rust-doc",
    "postgresql-doc-15",
    "python3.11-doc",
    "libboost1.81-doc",
    "libgtk-4-doc",
    "debian-handbook",
    "python-django-doc",
    "sqlite3-doc",
    "git-doc",
];

/// Where material is kept between runs.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// The same records in two files.
pub struct Pages {
    /// What sets this file apart.
    pub what: &'static str,
    pub file: PathBuf,
    /// What becomes of bodies that nobody wants.
    pub unwanted: &'static str,
}

/// The archive of real pages, and a copy of its records by our own writer, whose members say how long they are: a reader may step over
/// what it does not want.
pub fn both(workspace: &Workspace, options: &Options, bytes: u64) -> Result<[Pages; 2]> {
    let file = pages(workspace, options, bytes)?;
    let name = file.file_name().context("no file name")?.to_string_lossy().into_owned();
    let stem = name.split('.').next().unwrap_or_default();
    let copy = folder(workspace)?.join(format!("{stem}-skep.warc.gz"));
    let made = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    if made(&copy) < made(&file) {
        println!("writing {} (once)", copy.display());
        let part = copy.with_extension("part");
        if part.exists() {
            std::fs::remove_file(&part)?;
        }
        let copier = long::build(workspace, "skep-warc", "--example", "copy_records")?;
        must(Command::new(copier).arg(&file).arg(&part), "copy")?;
        std::fs::rename(&part, &copy)?;
    }
    let (what, unwanted) = match options.file {
        Some(_) => ("the file given", "stepped over where a member's end is certain"),
        None => ("written by warcio: members without lengths", "stepped over, their ends looked for"),
    };
    let copied = "copied by Skep's writer: members with lengths";
    Ok([Pages { what, file, unwanted }, Pages { what: copied, file: copy, unwanted: "stepped over" }])
}

/// An archive of real pages of at least this many compressed bytes: the one given, or one made from the packages.
pub fn pages(workspace: &Workspace, options: &Options, bytes: u64) -> Result<PathBuf> {
    if let Some(file) = &options.file {
        if !file.is_file() {
            bail!("{} is no file", file.display());
        }
        return Ok(file.clone());
    }
    let folder = folder(workspace)?;
    let archive = folder.join(format!("pages-{}m.warc.gz", bytes / 1_000_000));
    if std::fs::metadata(&archive).is_ok_and(|found| found.len() >= bytes) {
        return Ok(archive);
    }
    needs::system()?;
    needs::venv(workspace)?;
    let unpacked = unpack(workspace)?;
    println!("writing {} (minutes, once)", archive.display());
    let mut make = Command::new(workspace.python());
    make.arg(workspace.root.join("crates/xtask/peers/make_warc.py")).arg(&unpacked).arg(&archive);
    must(make.args(["--bytes", &bytes.to_string()]), "make_warc.py")?;
    Ok(archive)
}

/// Fetches and unpacks the packages, each into a folder of its name.
fn unpack(workspace: &Workspace) -> Result<PathBuf> {
    for package in PACKAGES {
        let hint = "on a system without Debian's packages, give an archive of your own with --file";
        needs::files_of(workspace, package).context(hint)?;
    }
    Ok(needs::unpacked(workspace))
}

fn must(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{what} could not be started"))?;
    if !status.success() {
        bail!("{what} failed ({status}); its messages are above");
    }
    Ok(())
}
