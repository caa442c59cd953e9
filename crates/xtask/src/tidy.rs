//! `cargo xtask tidy`: the rules of the house as programs. Each rule is a function from text to findings; a finding names the
//! file, the line and the reason.

mod documents;
mod hearts;
mod layers;
mod licences;
mod lines;
mod text;

use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};

/// One thing to put right.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    file: PathBuf,
    line: usize,
    reason: String,
}

impl Finding {
    fn new(file: impl AsRef<Path>, line: usize, reason: impl Into<String>) -> Finding {
        Finding { file: file.as_ref().to_path_buf(), line, reason: reason.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.reason)
    }
}

/// A tracked file that is text.
pub struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn ends_with(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

/// Runs every rule; fails when one finds something.
pub fn run(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let sources = read(workspace, &files);
    let packages = layers::packages(&workspace.metadata(false)?);
    let mut findings = Vec::new();
    let mut check = |rule: &str, found: Vec<Finding>| {
        println!("  {:<58} {}", rule, if found.is_empty() { "ok".into() } else { format!("{} found", found.len()) });
        findings.extend(found);
    };

    check("packages look only down", layers::look_down(&packages, &sources));
    check("every package is on the map", documents::packages_named(&packages, &sources));
    check("hearts hold no clock, socket, spawn or chance", hearts::pure(&sources));
    check("nothing is left over", sources.iter().flat_map(text::leftovers).collect());
    check("no test is switched off", sources.iter().flat_map(text::ignored).collect());
    check("no file of this machine, no registry's address", sources.iter().flat_map(text::machine_paths).collect());
    check("a file is one thing", sources.iter().flat_map(text::too_long).collect());
    check("a module is named for what it holds", files.iter().flat_map(|file| text::nameless(file)).collect());
    check("documents name files that exist", documents::name_files(&sources, &files));
    check("fuzzing starts from kept inputs", documents::inputs_kept(&sources, &files));
    check("licences of dependencies are on the list", licences::check(workspace)?);

    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found one thing to put right, above"),
        many => bail!("tidy found {many} things to put right, above"),
    }
}

/// Binary files, fixtures and inputs for fuzzing are no text; the lock file is cargo's own.
fn read(workspace: &Workspace, files: &[PathBuf]) -> Vec<Source> {
    let written_by_people = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name != "Cargo.lock")
            && !path.iter().any(|part| part == "fixtures" || part == "fuzz")
    };
    files
        .iter()
        .filter(written_by_people)
        .filter_map(|path| {
            let text = std::fs::read_to_string(workspace.root.join(path)).ok()?;
            Some(Source { path: path.clone(), text })
        })
        .collect()
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into() }
}
