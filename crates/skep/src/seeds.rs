//! Where a crawl begins, as typed: URLs, bare names of hosts, and files with one of them a line.

use crate::failure::{Failure, Result};
use skep_url::{Credentials, Url};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of a file of seeds.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Seeds, and what opens them.
#[derive(Debug, Default)]
pub struct Seeds {
    /// In the form in which they are fetched, each once.
    pub urls: Vec<String>,
    /// URLs with the credentials that stood in them.
    pub credentials: Vec<(Url, Credentials)>,
}

/// Reads them. A word with `://` is a URL; else, if a file of this name is there, it is a file; else it is a URL whose scheme was not
/// typed. `-` is standard input.
pub fn read(typed: &[String]) -> Result<Seeds> {
    let mut seeds = Seeds::default();
    let mut seen = HashSet::new();
    for word in typed {
        let path = Path::new(word);
        if word == "-" {
            read_lines(path, std::io::stdin().lock(), &mut seeds, &mut seen)?;
        } else if word.contains("://") || !(path.is_file() || is_path(word)) {
            add(word, &mut seeds, &mut seen)?;
        } else {
            let file = std::fs::File::open(path).map_err(|error| {
                Failure::reading(path, error)
                    .hint("a crawl begins at URLs, hosts (example.org) or files with one of them a line")
            })?;
            read_lines(path, file.take(FILE_BYTES_MAX), &mut seeds, &mut seen)?;
        }
    }
    Ok(seeds)
}

/// Words that can only be meant as files.
fn is_path(word: &str) -> bool {
    word.starts_with(['/', '.', '~']) || word.ends_with(".txt") || word.ends_with(".csv")
}

fn read_lines(path: &Path, file: impl Read, seeds: &mut Seeds, seen: &mut HashSet<String>) -> Result<()> {
    let before = seeds.urls.len();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line =
            line.map_err(|error| Failure::reading(path, error).hint("a file of seeds is text with a URL a line"))?;
        // A fragment is never sent, so what follows a blank and `#` can only be a remark.
        let text = line.trim_start_matches('\u{feff}').split(" #").next().unwrap_or_default().trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        add(text, seeds, seen).map_err(|failure| Failure {
            what: format!("line {} of {}: {}", number + 1, path.display(), failure.what),
            ..failure
        })?;
    }
    if seeds.urls.len() == before && seen.is_empty() {
        return Err(Failure::new(format!("{} holds no URL", path.display()))
            .hint("write one URL a line; lines that begin with # are remarks"));
    }
    Ok(())
}

fn add(word: &str, seeds: &mut Seeds, seen: &mut HashSet<String>) -> Result<()> {
    let (url, credentials) = url(word)?;
    if let Some(credentials) = credentials {
        seeds.credentials.push((url.clone(), credentials));
    }
    if seen.insert(url.as_str().to_owned()) {
        seeds.urls.push(url.as_str().to_owned());
    }
    Ok(())
}

/// A URL as typed; `example.org` means `https://example.org/`.
pub fn url(word: &str) -> Result<(Url, Option<Credentials>)> {
    let whole = if word.contains("://") { word.to_owned() } else { format!("https://{word}") };
    let named = |(url, _): &(Url, _)| is_host(word, url);
    Url::with_credentials(&whole).map_err(|error| error.to_string()).and_then(|read| {
        if named(&read) { Ok(read) } else { Err("there is no such file, and as a host it lacks a dot".to_owned()) }
    }).map_err(|why| {
        Failure::new(format!("{word:?} is no place to begin"))
            .because(why)
            .hint("write a URL such as https://example.org/, a host such as example.org, or a file with one of them a line")
    })
}

/// Without a scheme only what looks like a host is taken for one: `sees.txt` mistyped, or `reports`, is not.
fn is_host(word: &str, url: &Url) -> bool {
    let name = url.host_name();
    word.contains("://") || name.contains(['.', ':']) || name == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(typed: &[&str]) -> Vec<String> {
        read(&typed.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>()).unwrap().urls
    }

    #[test]
    fn words_become_urls() {
        assert_eq!(urls(&["example.org"]), ["https://example.org/"]);
        assert_eq!(urls(&["HTTP://Example.org:80/a b#c"]), ["http://example.org/a%20b"]);
        assert_eq!(
            urls(&["example.org/news", "example.org:8080", "localhost:81"]),
            ["https://example.org/news", "https://example.org:8080/", "https://localhost:81/"]
        );
        assert_eq!(urls(&["bücher.example", "https://xn--bcher-kva.example/"]), ["https://xn--bcher-kva.example/"]);
    }

    #[test]
    fn files_are_read_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seeds");
        std::fs::write(&path, "\u{feff}# ours\nexample.org\r\n\n  https://b.example/#top # remark\nexample.org\n")
            .unwrap();
        assert_eq!(urls(&[path.to_str().unwrap()]), ["https://example.org/", "https://b.example/"]);
        std::fs::write(&path, "example.org\nftp://b.example/\n").unwrap();
        let failure = read(&[path.display().to_string()]).unwrap_err();
        assert!(failure.what.starts_with("line 2 of "), "{}", failure.what);
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(read(&[path.display().to_string()]).unwrap_err().what.contains("holds no URL"));
        std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
        assert!(read(&[path.display().to_string()]).is_err());
    }

    #[test]
    fn what_is_neither_is_explained() {
        for wrong in ["seeds", "ftp://example.org/", "http://", "", "./absent", "absent.txt", "https://exa mple.org/"] {
            let failure = read(&[wrong.to_owned()]).unwrap_err();
            assert!(failure.hint.is_some(), "{wrong}: {failure:?}");
        }
    }

    #[test]
    fn credentials_are_kept_apart() {
        let seeds = read(&["https://me:secret@example.org/in".to_owned()]).unwrap();
        assert_eq!(seeds.urls, ["https://example.org/in"]);
        assert_eq!(seeds.credentials[0].0.host_name(), "example.org");
        assert_eq!(seeds.credentials[0].1.password, b"secret");
    }
}
