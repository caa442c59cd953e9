//! Where the project is, which files it tracks, and what cargo says of it.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's folder and what is found from there.
pub struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
}

impl Workspace {
    /// Cargo names xtask's own folder when it runs it; started by hand, the current folder counts.
    pub fn find() -> Result<Workspace> {
        let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => std::env::current_dir().context("the current folder cannot be read")?,
        };
        for folder in start.ancestors() {
            if folder.join("crates/xtask/Cargo.toml").is_file() {
                return Ok(Workspace { root: folder.to_path_buf() });
            }
        }
        bail!("no workspace with crates/xtask above {}; run `cargo xtask` inside the project", start.display())
    }

    /// Cargo, as this process was started by, in the project's folder.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        // What cargo says of xtask itself is nobody else's: build scripts that listen to it would build their packages anew each
        // time cargo is called by hand and by xtask in turn.
        let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)).for_each(|(name, _)| {
            command.env_remove(name);
        });
        command
    }

    /// Where cargo puts what it builds.
    pub fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.root.join("target"),
        }
    }

    /// The interpreter of the peers' environment.
    pub fn python(&self) -> PathBuf {
        self.target().join("venv/bin/python")
    }

    /// What `cargo metadata` says; with `dependencies`, of every package in the lock file.
    pub fn metadata(&self, dependencies: bool) -> Result<serde_json::Value> {
        let mut command = self.cargo();
        command.args(["metadata", "--format-version", "1", "--locked"]);
        if !dependencies {
            command.arg("--no-deps");
        }
        let output = command.output().context("cargo metadata could not be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata printed something other than JSON")
    }

    /// Every file that is tracked or about to be, relative to the root, sorted. Without git (an unpacked release), every
    /// file outside of `target`.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output();
        let mut files = match listed {
            Ok(output) if output.status.success() => output
                .stdout
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty())
                .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
                .filter(|name| self.root.join(name).is_file())
                .collect(),
            _ => {
                let mut found = Vec::new();
                walk(&self.root, Path::new(""), &mut found)?;
                found
            }
        };
        files.sort();
        files.dedup();
        Ok(files)
    }
}

fn walk(root: &Path, under: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let folder = root.join(under);
    for entry in std::fs::read_dir(&folder).with_context(|| format!("{} cannot be listed", folder.display()))? {
        let entry = entry?;
        let path = under.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if path != Path::new("target") && path != Path::new(".git") {
                walk(root, &path, found)?;
            }
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}
