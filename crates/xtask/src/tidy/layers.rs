//! Packages look only down. The ranks are those of ARCHITECTURE.md; a new package gets its rank here first.

use super::{Finding, Source};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where a package stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rank {
    /// In the product; uses lower ranks only.
    Layer(u8),
    /// A web to test against: uses rank 0, is used by tests only.
    Beside,
    /// The chores: may use anything, nothing uses them.
    Above,
}

use Rank::{Above, Beside, Layer};

const RANKS: &[(&str, Rank)] = &[
    ("skep", Layer(4)),
    ("skep-portal", Layer(3)),
    ("skep-crawl", Layer(2)),
    ("skep-ring", Layer(2)),
    ("skep-contribute", Layer(2)),
    ("skep-changes", Layer(2)),
    ("skep-search", Layer(2)),
    ("skep-graph", Layer(2)),
    ("skep-store", Layer(2)),
    ("skep-schedule", Layer(1)),
    ("skep-fetch", Layer(1)),
    ("skep-page", Layer(1)),
    ("skep-archive", Layer(1)),
    ("skep-warc", Layer(0)),
    ("skep-url", Layer(0)),
    ("skep-testweb", Beside),
    ("xtask", Above),
];

fn rank(name: &str) -> Option<Rank> {
    RANKS.iter().find(|(known, _)| *known == name).map(|(_, rank)| *rank)
}

/// A package of the workspace and which others it uses.
pub struct Package {
    pub name: String,
    /// `crates/<folder>`, relative to the root.
    pub folder: PathBuf,
    uses: Vec<Use>,
}

struct Use {
    name: String,
    only_tests: bool,
}

/// Reads the packages out of `cargo metadata --no-deps`.
pub fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let root = text(&metadata["workspace_root"]);
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            let folder = manifest.parent().unwrap_or(Path::new("")).to_path_buf();
            let of_ours = |dependency: &&Value| dependency["path"].is_string();
            Package {
                name: text(&package["name"]),
                folder: folder.strip_prefix(&root).map(Path::to_path_buf).unwrap_or(folder),
                uses: list(&package["dependencies"])
                    .iter()
                    .filter(of_ours)
                    .map(|used| Use { name: text(&used["name"]), only_tests: used["kind"] == "dev" })
                    .collect(),
            }
        })
        .collect()
}

/// Every use between packages against the ranks, and every package's name against its folder.
pub fn look_down(packages: &[Package], sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages {
        let manifest = package.folder.join("Cargo.toml");
        let line_of = |name: &str| {
            let text = sources.iter().find(|source| source.path == manifest).map_or("", |source| source.text.as_str());
            text.lines().position(|line| line.starts_with(name)).map_or(1, |index| index + 1)
        };
        let folder = package.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if package.name != folder && package.name != format!("skep-{folder}") {
            let reason = format!("the package of {folder} is called `skep-{folder}`, not `{}`", package.name);
            found.push(Finding::new(&manifest, line_of("name"), reason));
        }
        let Some(own) = rank(&package.name) else {
            let reason = format!("`{}` has no rank: give it one in crates/xtask/src/tidy/layers.rs", package.name);
            found.push(Finding::new(&manifest, line_of("name"), reason));
            continue;
        };
        for used in &package.uses {
            if let Some(reason) = forbidden(own, used) {
                let reason = format!("`{}` may not use `{}`: {reason}", package.name, used.name);
                found.push(Finding::new(&manifest, line_of(&used.name), reason));
            }
        }
    }
    found
}

fn forbidden(own: Rank, used: &Use) -> Option<String> {
    match (own, rank(&used.name)?) {
        (Above, _) => None,
        (_, Above) => Some("the chores serve the project, not the product".into()),
        (_, Beside) if used.only_tests => None,
        (_, Beside) => Some("a web to test against belongs to dev-dependencies".into()),
        (Beside, Layer(0)) => None,
        (Beside, Layer(other)) => Some(format!("beside the layers, only rank 0 is in reach; it has rank {other}")),
        (Layer(own), Layer(other)) if other < own => None,
        (Layer(own), Layer(other)) => Some(format!("packages look down, from rank {own} not to rank {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    fn package(name: &str, folder: &str, uses: &[(&str, bool)]) -> Package {
        let uses =
            uses.iter().map(|(name, only_tests)| Use { name: (*name).into(), only_tests: *only_tests }).collect();
        Package { name: name.into(), folder: folder.into(), uses }
    }

    fn reasons(package: Package) -> Vec<Finding> {
        look_down(
            &[package],
            &[source("crates/warc/Cargo.toml", "[package]\nname = \"x\"\nskep-archive.workspace = true\n")],
        )
    }

    #[test]
    fn down_is_allowed_and_up_and_sideways_are_not() {
        assert!(
            reasons(package("skep-archive", "crates/archive", &[("skep-warc", false), ("skep-url", false)])).is_empty()
        );
        let up = reasons(package("skep-warc", "crates/warc", &[("skep-archive", false)]));
        assert_eq!((up.len(), up[0].line), (1, 3));
        assert_eq!(reasons(package("skep-warc", "crates/warc", &[("skep-url", false)])).len(), 1);
        assert_eq!(reasons(package("skep-warc", "crates/warc", &[("skep-url", true)])).len(), 1);
    }

    #[test]
    fn the_test_web_is_for_tests_and_the_chores_are_for_nobody() {
        assert!(reasons(package("skep-fetch", "crates/fetch", &[("skep-testweb", true)])).is_empty());
        assert_eq!(reasons(package("skep-fetch", "crates/fetch", &[("skep-testweb", false)])).len(), 1);
        assert_eq!(reasons(package("skep-testweb", "crates/testweb", &[("skep-archive", false)])).len(), 1);
        assert_eq!(reasons(package("skep", "crates/skep", &[("xtask", true)])).len(), 1);
        assert!(reasons(package("xtask", "crates/xtask", &[("skep-warc", true), ("skep-testweb", false)])).is_empty());
    }

    #[test]
    fn a_package_needs_a_rank_and_its_folders_name() {
        assert_eq!(reasons(package("skep-honey", "crates/honey", &[])).len(), 1);
        assert_eq!(reasons(package("skep-url", "crates/addresses", &[])).len(), 1);
    }

    #[test]
    fn uses_are_read_from_what_cargo_says() {
        let metadata = serde_json::json!({
            "workspace_root": "/p",
            "packages": [{
                "name": "skep-archive", "manifest_path": "/p/crates/archive/Cargo.toml",
                "dependencies": [
                    { "name": "skep-url", "path": "/p/crates/url", "kind": null },
                    { "name": "skep-testweb", "path": "/p/crates/testweb", "kind": "dev" },
                    { "name": "blake3", "kind": null },
                ],
            }],
        });
        let read = packages(&metadata);
        assert_eq!(read[0].folder, Path::new("crates/archive"));
        let uses: Vec<_> = read[0].uses.iter().map(|used| (used.name.as_str(), used.only_tests)).collect();
        assert_eq!(uses, [("skep-url", false), ("skep-testweb", true)]);
    }
}
