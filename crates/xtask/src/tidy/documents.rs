//! Documents are checked like code: what they name is there, and what is there is named.

use super::layers::Package;
use super::text::has_word;
use super::{Finding, Source};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Folders in the root whose paths are checked wherever they appear, also in a command to type.
const OURS: [&str; 5] = ["crates/", "docs/", ".ci/", ".config/", ".cargo/"];

/// Every package stands on the map.
pub fn packages_named(packages: &[Package], sources: &[Source]) -> Vec<Finding> {
    let map = Path::new("ARCHITECTURE.md");
    let Some(source) = sources.iter().find(|source| source.path == map) else {
        return vec![Finding::new(map, 1, "the map is absent")];
    };
    packages
        .iter()
        .filter_map(|package| package.folder.file_name()?.to_str())
        .filter(|folder| !has_word(&source.text, folder))
        .map(|folder| Finding::new(map, 1, format!("crates/{folder} is not on the map")))
        .collect()
}

/// Paths in the documents exist: in backticks, in links, and in commands to type.
pub fn name_files(sources: &[Source], files: &[PathBuf]) -> Vec<Finding> {
    let known = Known::of(files);
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| is_document(source)) {
        let mut fenced = false;
        for (index, line) in source.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let mut absent = |path: &str| {
                let reason = format!("`{path}` does not exist");
                found.push(Finding::new(&source.path, index + 1, reason));
            };
            if fenced {
                line.split_whitespace()
                    .filter(|word| OURS.iter().any(|folder| word.starts_with(folder)) && is_plain(word))
                    .filter(|word| !known.holds(word))
                    .for_each(&mut absent);
                continue;
            }
            for quoted in line.split('`').skip(1).step_by(2) {
                quoted.split_whitespace().filter(|word| known.misses(word)).for_each(&mut absent);
            }
            for link in links(line) {
                let folder = source.path.parent().unwrap_or(Path::new(""));
                if !known.holds(&normal(&folder.join(link)).to_string_lossy()) {
                    absent(link);
                }
            }
        }
    }
    found
}

/// Every function to fuzz has kept inputs: `pub fn fuzz_<name>` in `crates/<package>/src` asks for files in
/// `crates/<package>/fuzz/<name>`.
pub fn inputs_kept(sources: &[Source], files: &[PathBuf]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.ends_with("rs")) {
        let mut parts = source.path.iter();
        let (Some(crates), Some(package), Some(src)) = (parts.next(), parts.next(), parts.next()) else { continue };
        if crates != "crates" || src != "src" {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("pub fn fuzz_") else { continue };
            let name = rest.split('(').next().unwrap_or_default();
            let kept = Path::new("crates").join(package).join("fuzz").join(name);
            if !files.iter().any(|file| file.starts_with(&kept)) {
                let reason = format!("fuzz_{name} has no kept inputs: put some into {}", kept.display());
                found.push(Finding::new(&source.path, index + 1, reason));
            }
        }
    }
    found
}

fn is_document(source: &Source) -> bool {
    let in_root = source.path.components().count() == 1;
    source.ends_with("md") && (in_root || source.path.starts_with("docs"))
}

/// Files and folders of the project, for looking up.
struct Known {
    paths: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Known {
    fn of(files: &[PathBuf]) -> Known {
        let mut known = Known { paths: BTreeSet::new(), names: BTreeSet::new() };
        for file in files {
            for path in file.ancestors().filter(|path| *path != Path::new("")) {
                known.paths.insert(path.to_string_lossy().into_owned());
            }
            known.names.extend(file.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        known
    }

    fn holds(&self, path: &str) -> bool {
        self.paths.contains(path.trim_end_matches('/'))
    }

    /// Whether a quoted word is meant as a file of the project and is none. Media types, URLs, files that an archive will
    /// have and patterns are no such words; source files and documents are, by bare name or by the end of their path.
    fn misses(&self, word: &str) -> bool {
        let word = word.trim_end_matches(['.', ',', ';', ':']);
        if !is_plain(word) || word.starts_with('/') {
            return false;
        }
        if OURS.iter().any(|folder| word.starts_with(folder)) {
            return !self.holds(word);
        }
        let is_source = [".rs", ".md"].iter().any(|ending| word.ends_with(ending) && word.len() > ending.len());
        if !is_source {
            return false;
        }
        match word.contains('/') {
            true => !self.paths.iter().any(|path| path == word || path.ends_with(&format!("/{word}"))),
            false => !self.names.contains(word),
        }
    }
}

/// A word that can be a path: no pattern, no gap to fill in, no address.
fn is_plain(word: &str) -> bool {
    !word.contains(['*', '<', '>', '{', '$', '…', '(', '=']) && !word.contains("://") && !word.contains("...")
}

/// Targets of Markdown links that point into the project.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', '#', ' ']).next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    fn absent(path: &str, text: &str) -> Vec<String> {
        let files = ["README.md", "docs/formats/keys.md", "crates/url/src/limits.rs"].map(PathBuf::from);
        name_files(&[source(path, text)], &files).into_iter().map(|found| found.reason).collect()
    }

    #[test]
    fn paths_that_exist_are_fine_and_others_are_not() {
        assert!(
            absent("README.md", "`crates/url/src/limits.rs`, `crates/url`, `src/limits.rs`, `limits.rs`").is_empty()
        );
        assert_eq!(absent("README.md", "see `crates/url/src/gone.rs` and `gone.rs`").len(), 2);
        assert_eq!(absent("README.md", "\n`cargo run crates/url/gone.gz`"), ["`crates/url/gone.gz` does not exist"]);
    }

    #[test]
    fn media_types_patterns_and_files_of_an_archive_are_not_ours() {
        assert!(absent("README.md", "`text/html` `crates/*/src` `settings/archive.toml` `crates/<name>`").is_empty());
    }

    #[test]
    fn commands_to_type_are_checked() {
        assert_eq!(absent("README.md", "```sh\nskep add crates/url/a.warc.gz\n```\n").len(), 1);
        assert!(absent("README.md", "```sh\nskep add a.warc.gz\n```\n").is_empty());
    }

    #[test]
    fn links_are_followed_from_the_documents_own_folder() {
        assert!(absent("docs/formats/keys.md", "[up](../../README.md#top) [web](https://example.org/)").is_empty());
        assert_eq!(absent("docs/formats/keys.md", "[gone](other.md)").len(), 1);
    }

    #[test]
    fn a_package_that_is_not_on_the_map_is_found() {
        let package = |folder: &str| serde_json::json!({ "name": "x", "manifest_path": folder, "dependencies": [] });
        let metadata = serde_json::json!({
            "workspace_root": "/p",
            "packages": [package("/p/crates/url/Cargo.toml"), package("/p/crates/warc/Cargo.toml")],
        });
        let found =
            packages_named(&super::super::layers::packages(&metadata), &[source("ARCHITECTURE.md", "the url part")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].reason.contains("crates/warc"));
    }

    #[test]
    fn a_function_to_fuzz_has_kept_inputs() {
        let sources = [source("crates/url/src/robots.rs", "\npub fn fuzz_robots(bytes: &[u8]) {}\n")];
        let found = inputs_kept(&sources, &[PathBuf::from("crates/warc/fuzz/robots/long-line")]);
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(inputs_kept(&sources, &[PathBuf::from("crates/url/fuzz/robots/long-line")]).is_empty());
    }
}
