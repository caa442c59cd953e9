//! Rules that look at one file at a time.

use super::lines::{self, Line};
use super::{Finding, Source};
use crate::limits;
use std::path::Path;

/// Markers of unfinished work: in comments of Rust files, anywhere in scripts and settings. Documents may speak of them.
pub fn leftovers(source: &Source) -> Vec<Finding> {
    const WORDS: [&str; 3] = ["TODO", "FIXME", "XXX"];
    const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];
    let marked = |text: &str| WORDS.into_iter().find(|word| has_word(text, word));
    let mut found = Vec::new();
    if source.ends_with("rs") {
        for Line { number, code, comment } in lines::split(&source.text) {
            if let Some(word) = marked(&comment) {
                found.push(Finding::new(&source.path, number, format!("{word}: finish it, or say why it is as it is")));
            }
            if let Some(name) = MACROS.into_iter().find(|name| has_word(&code, name)) {
                found.push(Finding::new(&source.path, number, format!("{name} is left over")));
            }
        }
    } else if !source.ends_with("md") {
        for (number, line) in numbered(&source.text) {
            if let Some(word) = marked(line) {
                found.push(Finding::new(&source.path, number, format!("{word}: finish it, or say why it is as it is")));
            }
        }
    }
    found
}

/// A test that does not run proves nothing.
pub fn ignored(source: &Source) -> Vec<Finding> {
    if !source.ends_with("rs") {
        return Vec::new();
    }
    lines::split(&source.text)
        .iter()
        .filter(|line| line.code.replace(' ', "").contains("#[ignore"))
        .map(|line| {
            Finding::new(&source.path, line.number, "a test is switched off: make it run, or a soak, or remove it")
        })
        .collect()
}

/// Folders of somebody's machine and addresses of package registries; both differ from place to place.
pub fn machine_paths(source: &Source) -> Vec<Finding> {
    // Written apart, so that this file passes its own rule.
    const FOLDERS: [&str; 4] =
        [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
    const REGISTRIES: [&str; 5] = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("registry", ".npmjs"),
        concat!("deb", ".debian"),
        concat!("files.python", "hosted"),
    ];
    let mut found = Vec::new();
    for (number, line) in numbered(&source.text) {
        // After a host or after `file://` it is part of a URL; only a path that starts here is a folder.
        let starts_here =
            |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '}' | '/'));
        for folder in FOLDERS {
            if line.match_indices(folder).any(|(at, _)| starts_here(at)) {
                found.push(Finding::new(&source.path, number, format!("{folder} is a folder of one machine")));
            }
        }
        for registry in REGISTRIES {
            if line.contains(registry) {
                found.push(Finding::new(
                    &source.path,
                    number,
                    format!("{registry}: leave the choice of registry to the reader"),
                ));
            }
        }
    }
    found
}

/// Longer than this, a source file is more than one thing.
pub fn too_long(source: &Source) -> Vec<Finding> {
    if !source.ends_with("rs") {
        return Vec::new();
    }
    let code = lines::split(&source.text).iter().filter(|line| !line.code.trim().is_empty()).count();
    if code <= limits::FILE_CODE_LINES_MAX {
        return Vec::new();
    }
    let reason = format!("{code} lines of code, at most {}: split it by what it does", limits::FILE_CODE_LINES_MAX);
    vec![Finding::new(&source.path, 1, reason)]
}

/// Module names that say nothing of what is inside.
pub fn nameless(file: &Path) -> Vec<Finding> {
    const NAMES: [&str; 8] = ["utils", "util", "common", "helpers", "helper", "types", "misc", "shared"];
    if !file.starts_with("crates") || file.extension().is_none_or(|extension| extension != "rs") {
        return Vec::new();
    }
    file.with_extension("")
        .iter()
        .filter_map(|part| NAMES.into_iter().find(|name| part == *name))
        .map(|name| Finding::new(file, 1, format!("`{name}` says nothing of what it holds; name it for its subject")))
        .collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Whether a word occurs that is not part of a longer one.
pub fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        !text[..at].ends_with(joins) && (word.ends_with('!') || !after.starts_with(joins))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn unfinished_work_is_found_where_it_is_meant() {
        let text = "let a = \"TODO\"; // fine\n// TODO: later\nfn f() { todo!() }\nlet mastodon = TODO_LIST;\n";
        let lines: Vec<usize> = leftovers(&source("crates/a/src/b.rs", text)).iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 3]);
        assert_eq!(leftovers(&source("a.py", "x = 1  # FIXME")).len(), 1);
        assert!(leftovers(&source("CONTRIBUTING.md", "no TODO stays")).is_empty());
    }

    #[test]
    fn switched_off_tests_are_found_and_speech_of_them_is_not() {
        let text = "/// no #[ignore]\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n";
        assert_eq!(ignored(&source("a.rs", text))[0].line, 3);
    }

    #[test]
    fn a_machines_folder_is_told_from_a_part_of_a_url() {
        let folder = format!("open(\"{}x\")", concat!("/ro", "ot/"));
        assert_eq!(machine_paths(&source("a.rs", &folder)).len(), 1);
        let url = format!("http://example.org{}x", concat!("/wo", "rk/"));
        assert!(machine_paths(&source("a.rs", &url)).is_empty());
        let url = format!("file://{}someone/x", concat!("/ho", "me/"));
        assert!(machine_paths(&source("a.rs", &url)).is_empty());
        let registry = format!("https://{}/crates/x", concat!("crates", ".io"));
        assert_eq!(machine_paths(&source("a.md", &registry)).len(), 1);
    }

    #[test]
    fn comments_and_blank_lines_do_not_make_a_file_long() {
        let long = "x;\n".repeat(limits::FILE_CODE_LINES_MAX);
        assert!(too_long(&source("a.rs", &format!("{long}// why\n\n"))).is_empty());
        assert_eq!(too_long(&source("a.rs", &format!("{long}y;\n"))).len(), 1);
    }

    #[test]
    fn names_that_say_nothing_are_found_as_file_and_as_folder() {
        assert_eq!(nameless(Path::new("crates/url/src/utils.rs")).len(), 1);
        assert_eq!(nameless(Path::new("crates/url/tests/common/mod.rs")).len(), 1);
        assert!(nameless(Path::new("crates/url/src/commonplace.rs")).is_empty());
    }
}
