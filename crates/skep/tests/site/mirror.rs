//! Folders behind nginx under names of their own, crawled by wget and by us, and what others make of our archive.
#![allow(missing_docs)]

use crate::nginx::{Host, Line, Nginx};
use crate::python::{Peers, places, run, text};
use crate::site::Site;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who alone asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    Skep,
    Wget,
}

/// URLs that only one of them asks for, all for one reason.
pub struct Exception {
    pub only: Only,
    pub because: &'static str,
    pub urls: fn(&Mirror) -> BTreeSet<String>,
}

/// What was asked for: URL and status.
type Asked = BTreeMap<String, u16>;

pub struct Mirror {
    peers: Peers,
    nginx: PathBuf,
    documentation: PathBuf,
    hosts: Vec<(&'static str, PathBuf)>,
    site: Site,
}

/// What pywb says of one page.
#[derive(Deserialize)]
struct Shown {
    status: u16,
    body: String,
    embeds: Vec<(String, String, u16, String)>,
}

/// What FastWARC says of one file.
#[derive(Deserialize)]
struct Verified {
    kinds: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Mirror {
    /// The packages, or `None` with a word about it.
    pub fn find(packages: &[&str]) -> Option<Mirror> {
        let (Some(documentation), Some(nginx)) =
            (std::env::var_os("SKEP_DOCUMENTATION"), std::env::var_os("SKEP_NGINX"))
        else {
            eprintln!("mirror tests not run: SKEP_DOCUMENTATION and SKEP_NGINX are not set");
            return None;
        };
        let documentation = PathBuf::from(documentation);
        for package in packages {
            assert!(documentation.join(package).is_dir(), "{package} is not in {}", documentation.display());
        }
        Some(Mirror { peers: Peers::find()?, nginx: nginx.into(), documentation, hosts: Vec::new(), site: Site::new() })
    }

    pub fn serve(&mut self, name: &'static str, folder: &str) {
        self.hosts.push((name, self.documentation.join(folder)));
    }

    /// A host with one page.
    pub fn serve_page(&mut self, name: &'static str, page: &str) {
        self.site.write(&format!("{name}/index.html"), page);
        self.hosts.push((name, self.site.path(name)));
    }

    /// A host whose pages, of a thousand links each, link to every page of another.
    pub fn serve_list(&mut self, name: &'static str, of: &str) {
        let root = self.root(of).to_path_buf();
        let mut files = Vec::new();
        walk(&root, &mut files);
        let mut paths: Vec<String> = files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "html"))
            .map(|file| file.strip_prefix(&root).expect("below it").to_string_lossy().into_owned())
            .collect();
        paths.sort();
        let mut first = format!("<title>Lists</title><a href='http://{of}/'>{of}</a>\n");
        for (number, part) in paths.chunks(1000).enumerate() {
            let links = part.iter().map(|path| format!("<a href=\"http://{of}/{path}\">{path}</a>\n"));
            self.site.write(
                &format!("{name}/{number}.html"),
                format!("<title>{number}</title>{}", links.collect::<String>()),
            );
            first.push_str(&format!("<a href='{number}.html'>{number}</a>\n"));
        }
        self.serve_page(name, &first);
    }

    fn root(&self, host: &str) -> &Path {
        let found = self.hosts.iter().find(|(name, _)| *name == host);
        &found.unwrap_or_else(|| panic!("nobody serves {host}")).1
    }

    fn nginx(&self, folder: &str) -> Nginx {
        let folder = self.site.path(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let hosts: Vec<Host<'_>> = self.hosts.iter().map(|(name, root)| Host { name, root }).collect();
        Nginx::start(&self.nginx, &folder, &hosts, false).expect("nginx starts")
    }

    /// Both crawl from `start`; what they ask for is the same but for `different`, and every exception is one. Returns the
    /// pages.
    pub fn crawled_as_by_wget(&self, start: &str, different: &[Exception]) -> Vec<String> {
        let (pages, ours) = self.skep(start);
        let theirs = self.wget(start);
        let mut unexplained = Vec::new();
        let mut exceptions: Vec<(&Exception, BTreeSet<String>, usize)> =
            different.iter().map(|exception| (exception, (exception.urls)(self), 0)).collect();
        let urls: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for url in urls {
            let only = match (ours.get(url), theirs.get(url)) {
                (Some(one), Some(other)) if one == other => continue,
                (Some(one), Some(other)) => {
                    unexplained.push(format!("{url}: {one} for skep, {other} for wget"));
                    continue;
                }
                (_, None) => Only::Skep,
                (None, _) => Only::Wget,
            };
            let covers = |exception: &Exception, urls: &BTreeSet<String>| exception.only == only && urls.contains(url);
            match exceptions.iter_mut().find(|(exception, urls, _)| covers(exception, urls)) {
                Some((.., met)) => *met += 1,
                None => unexplained.push(format!("{url}: only {only:?}")),
            }
        }
        println!("{} URLs, {} pages; wget {}", ours.len(), pages.len(), theirs.len());
        for (exception, _, met) in &exceptions {
            println!("only {:?}, {met} URLs: {}", exception.only, exception.because);
            assert!(*met > 0, "an exception that is none");
        }
        assert!(unexplained.is_empty(), "{} differ:\n{}", unexplained.len(), unexplained.join("\n"));
        pages
    }

    /// What `<meta http-equiv=refresh content="0;URL='there'">` leads to on any page, for somebody who takes the quotes for a part
    /// of the URL.
    pub fn quoted_refreshes(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (name, root) in &self.hosts {
            let mut files = Vec::new();
            walk(root, &mut files);
            for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "html")) {
                let page = std::fs::read(file).expect("a page");
                let page = String::from_utf8_lossy(&page);
                let Some((_, rest)) = page.split_once("content=\"0;URL='") else { continue };
                let (there, _) = rest.split_once('"').expect("an end");
                let path = file.strip_prefix(root).expect("below it").to_string_lossy();
                let at = skep_url::Url::parse(&format!("http://{name}/{path}")).expect("a URL");
                let to = at.join(&format!("'{there}")).expect("a URL").as_str().to_owned();
                found.insert(to.split('#').next().unwrap_or_default().to_owned());
            }
        }
        found
    }

    fn skep(&self, start: &str) -> (Vec<String>, Asked) {
        let nginx = self.nginx("nginx-skep");
        let mut words: Vec<String> = ["crawl", start, "--pace", "none", "--allow-private"].map(str::to_owned).to_vec();
        for (name, _) in &self.hosts {
            words.extend(["--own".into(), (*name).into()]);
            words.extend(["--include".into(), format!("http://{name}/*")]);
            words.extend(["--resolve".into(), format!("{name}={}", nginx.address())]);
        }
        self.site.skep(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
        let log = nginx.stop().expect("a log");
        let mut seen = BTreeSet::new();
        for line in &log {
            assert!(seen.insert((&line.host, &line.path)), "asked for twice: {line:?}");
        }
        let is_page = |line: &&Line| line.status == 200 && line.media == "text/html";
        (log.iter().filter(is_page).map(url).collect(), asked(&log))
    }

    /// wget knows no other way to a host than its name, but takes the server for a proxy, which nginx does not mind.
    fn wget(&self, start: &str) -> Asked {
        let nginx = self.nginx("nginx-wget");
        let into = self.site.path("wget");
        std::fs::create_dir_all(&into).expect("a folder");
        let domains: Vec<&str> = self.hosts.iter().map(|(name, _)| *name).collect();
        let status = Command::new("wget")
            .args(
                "--no-config --quiet --recursive --level=inf --page-requisites --span-hosts --tries=1 --timeout=60"
                    .split(' '),
            )
            .args(["--execute=use_proxy=yes".into(), format!("--execute=http_proxy=http://{}/", nginx.address())])
            .arg(format!("--domains={}", domains.join(",")))
            .arg(start)
            .current_dir(&into)
            .stdin(Stdio::null())
            .status()
            .expect("wget is installed");
        // 8: the server answered with an error, as it does where a link is broken.
        assert!(matches!(status.code(), Some(0 | 8)), "{status}");
        asked(&nginx.stop().expect("a log"))
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.site.archive().join("segments"), &mut found);
        found.retain(|path| path.to_string_lossy().ends_with(".warc.gz"));
        found.sort();
        assert!(!found.is_empty(), "no segments");
        found
    }

    /// `skep check` finds nothing, `warcio check` finds nothing, and FastWARC reads as many records as there are, every digest right.
    pub fn is_sound_for_everybody(&self) {
        self.site.is_sound();
        let segments = self.segments();
        let checked = run(self.peers.program("warcio").arg("check").args(&segments));
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        let told = text(&run(self.peers.script("verify.py").args(&segments)));
        for (segment, line) in segments.iter().zip(told.lines()) {
            let verified: Verified = serde_json::from_str(line).expect("JSON");
            assert!(verified.wrong.is_empty(), "{}: {:?}", segment.display(), verified.wrong);
            let records: usize = verified.kinds.values().sum();
            assert_eq!(records, places(segment).len(), "{}: {:?}", segment.display(), verified.kinds);
        }
        assert_eq!(told.lines().count(), segments.len());
    }

    /// So many of the pages, with their pictures, styles and scripts, through pywb: each is there, and is what was on the disk.
    pub fn is_replayed_by_pywb(&self, pages: &[String], count: usize) {
        let segments = self.segments();
        let (index, code) = crate::python::skep_index(&segments);
        assert_eq!(code, Some(0));
        let index = self.site.write("index.cdxj", index);
        let folders: BTreeSet<&Path> = segments.iter().map(|segment| segment.parent().expect("a folder")).collect();
        let sample = self.sample(pages, count);
        let mut replay = self.peers.script("replay.py");
        replay
            .arg(&index)
            .args(&folders)
            .stdin(std::fs::File::open(self.site.write("sample", sample.join("\n"))).expect("a file"));
        let told = text(&run(&mut replay));
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for (url, line) in sample.iter().zip(told.lines()) {
            let shown: Shown = serde_json::from_str(line).expect("JSON");
            assert_eq!((shown.status, &shown.body), (200, &self.digest(url)), "{url}");
            for (embed, kind, status, body) in shown.embeds {
                if !self.file(&embed).exists() {
                    assert_eq!(status, 404, "{embed} of {url}, which is not there either");
                    continue;
                }
                assert_eq!((status, &body), (200, &self.digest(&embed)), "{embed} of {url}");
                *kinds.entry(kind).or_default() += 1;
            }
        }
        assert_eq!(told.lines().count(), sample.len());
        println!("{} pages replayed with {kinds:?}", sample.len());
        assert!(kinds.contains_key("picture") && kinds.contains_key("style"), "{kinds:?}");
    }

    /// Pages with pictures first, up to half of them, then some of every part.
    fn sample(&self, pages: &[String], count: usize) -> Vec<String> {
        let is_pictured = |page: String| page.contains("<img") || page.contains("<object");
        let (pictured, plain): (Vec<&String>, Vec<&String>) =
            pages.iter().partition(|url| std::fs::read_to_string(self.file(url)).is_ok_and(is_pictured));
        let mut sample = spread(&pictured, count / 2);
        sample.extend(spread(&plain, count - sample.len()));
        assert_eq!(sample.len(), count);
        sample
    }

    fn file(&self, url: &str) -> PathBuf {
        let rest = url.strip_prefix("http://").expect("one of ours");
        let (host, path) = rest.split_once('/').expect("a path");
        let root = self.root(host);
        let path = path.split('?').next().unwrap_or_default();
        match path {
            "" => root.join("index.html"),
            _ if path.ends_with('/') => root.join(path).join("index.html"),
            _ => root.join(path),
        }
    }

    fn digest(&self, url: &str) -> String {
        let file = self.file(url);
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, &bytes).hex()
    }
}

/// So many at even distances.
fn spread(all: &[&String], count: usize) -> Vec<String> {
    let count = count.min(all.len());
    (0..count).map(|number| all[number * all.len() / count].clone()).collect()
}

fn url(line: &Line) -> String {
    format!("http://{}{}", line.host, line.path)
}

fn asked(log: &[Line]) -> Asked {
    log.iter().filter(|line| line.path != "/robots.txt").map(|line| (url(line), line.status)).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}
