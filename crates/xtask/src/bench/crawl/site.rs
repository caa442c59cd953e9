//! The site that is crawled: two documentations of Debian under one root, and beside each file that compresses well the same packed.

use crate::material;
use crate::needs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Package, where its pages are, and the folder of the site they become.
const PARTS: [(&str, &str, &str); 2] = [
    ("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", "postgres"),
    ("libgtk-4-doc", "usr/share/doc/libgtk-4-doc", "gtk"),
];

/// Makes the site, once.
pub fn make(workspace: &Workspace) -> Result<PathBuf> {
    let site = material::folder(workspace)?.join("crawl-site");
    if site.is_dir() {
        return Ok(site);
    }
    println!("making {} (once)", site.display());
    let part = site.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(&part)?;
    let mut links = String::new();
    for (package, inside, name) in PARTS {
        let from = needs::files_of(workspace, package)?.join(inside);
        must(Command::new("cp").arg("-r").arg(&from).arg(part.join(name)), "cp")?;
        for index in indexes(&part, Path::new(name))? {
            links.push_str(&format!("<li><a href=\"{}\">{name}</a></li>\n", index.display()));
        }
    }
    std::fs::write(
        part.join("index.html"),
        format!("<!DOCTYPE html><title>Documentation</title><ul>\n{links}</ul>\n"),
    )?;
    let mut pack = Command::new("find");
    pack.arg(&part).args(["-type", "f", "("]);
    for (number, kind) in ["html", "css", "js", "svg", "txt", "json"].iter().enumerate() {
        pack.args(if number > 0 { &["-o"][..] } else { &[] }).args(["-name", &format!("*.{kind}")]);
    }
    must(pack.args([")", "-exec", "gzip", "--keep", "-6", "{}", "+"]), "gzip")?;
    std::fs::rename(&part, &site)?;
    Ok(site)
}

/// How many pages there are, linked or not.
pub fn pages(site: &Path) -> Result<u64> {
    let listed = Command::new("find").arg(site).args(["-name", "*.html"]).output().context("find")?;
    Ok(listed.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// The first pages of a documentation, relative to the site: its own, or those of the folders in it.
fn indexes(site: &Path, name: &Path) -> Result<Vec<PathBuf>> {
    let own = name.join("index.html");
    if site.join(&own).is_file() {
        return Ok(vec![own]);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(site.join(name))?
        .map(|entry| Ok(name.join(entry?.file_name()).join("index.html")))
        .collect::<std::io::Result<_>>()?;
    found.retain(|path| site.join(path).is_file());
    found.sort();
    Ok(found)
}

fn must(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{what} could not be started"))?;
    if !status.success() {
        bail!("{what} failed ({status}); its messages are above");
    }
    Ok(())
}
