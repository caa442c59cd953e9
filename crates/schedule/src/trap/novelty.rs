//! Where the links of a page lead: into its own folders, to what is known or to what nobody has heard of.

use super::shape;
use crate::limits;

/// Counts the links of one page, while they are heard, for each folder that the page lies in.
///
/// ```text
///   https://a.example/maze/one/page      folder 0: https://a.example/
///                                        folder 1: https://a.example/maze/
///                                        folder 2: https://a.example/maze/one/        and so on, six in all
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Novelty {
    page: String,
    /// Where the names of its folders end.
    ends: FolderEnds,
    /// For each folder: links into it that were new, and all.
    folders: Vec<(u32, u32)>,
    /// The same for links to other hosts of the site.
    hosts: (u32, u32),
    /// The page it was found on.
    via: Option<String>,
    /// Known URLs that it links to, pages that others had led to: where each ends in the text behind it, and in how many of its
    /// folders they lie. Not the way back.
    met: Vec<(u32, u8)>,
    met_text: String,
    /// The shapes of the page, and how many new URLs of one of them it links to.
    shapes: Vec<u64>,
    alike: u32,
}

impl Novelty {
    /// For the page at this URL, which was found on that one.
    pub fn of(page: &str, via: Option<&str>) -> Novelty {
        let ends = folder_ends(page);
        Novelty {
            folders: vec![(0, 0); ends.as_slice().len()],
            page: page.to_owned(),
            ends,
            hosts: (0, 0),
            via: via.map(str::to_owned),
            met: Vec::with_capacity(MET_FIRST),
            met_text: String::with_capacity(MET_FIRST * page.len()),
            shapes: shape::keys(page).collect(),
            alike: 0,
        }
    }

    /// One link, of the same site and within the scope of the crawl. `new`: it had not been heard of before.
    pub fn link(&mut self, url: &str, new: bool) {
        if url == self.page {
            return;
        }
        let same = shared_bytes(url.as_bytes(), self.page.as_bytes());
        let mut inside = 0;
        for (end, (fresh, all)) in self.ends.as_slice().iter().zip(&mut self.folders) {
            if same >= *end {
                inside += 1;
                *all = all.saturating_add(1);
                *fresh = fresh.saturating_add(u32::from(new));
            }
        }
        if inside == 0 {
            self.hosts.1 = self.hosts.1.saturating_add(1);
            self.hosts.0 = self.hosts.0.saturating_add(u32::from(new));
        }
        if new && !self.shapes.is_empty() && shape::keys(url).any(|key| self.shapes.contains(&key)) {
            self.alike = self.alike.saturating_add(1);
        }
        let way_back = same == url.len() || self.via.as_deref() == Some(url);
        if !new && !way_back && self.met.len() < limits::MET_PER_PAGE_MAX {
            // Hashed when somebody asks, which is seldom.
            self.met_text.push_str(url);
            self.met.push((self.met_text.len() as u32, inside));
        }
    }

    /// Known URLs that the page links to and that lie in at least so many of its folders.
    pub(super) fn met(&self, folders: usize) -> impl Iterator<Item = u32> {
        let mut from = 0;
        self.met.iter().filter_map(move |(end, inside)| {
            let url = &self.met_text[from..*end as usize];
            from = *end as usize;
            (usize::from(*inside) >= folders).then(|| hash(url.bytes()) as u32)
        })
    }

    /// Does the page lead to new URLs of its own shape?
    pub(super) fn leads_on(&self) -> bool {
        self.alike > 0
    }

    /// The page it was found on.
    pub(super) fn via(&self) -> Option<&str> {
        self.via.as_deref()
    }

    /// Does the page lead on without end, as far as one page can show, within the folder of this level?
    pub(super) fn deepens(&self, level: usize) -> bool {
        self.folders.get(level).is_some_and(|counts| deepens(*counts))
    }

    /// The same for the hosts of the site.
    pub(super) fn floods(&self) -> bool {
        deepens(self.hosts)
    }
}

/// Known URLs for which there is room at first.
const MET_FIRST: usize = 16;

/// With how many bytes both begin.
fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0).take_while(|(a, b)| a == b).count() * 8;
    words + one[words..].iter().zip(&other[words..]).take_while(|(a, b)| a == b).count()
}

fn deepens((new, all): (u32, u32)) -> bool {
    new >= limits::DEEPENING_LINKS_MIN && u64::from(new) * 100 >= u64::from(all) * limits::DEEPENING_PERCENT
}

/// Where the names of the folders end that a URL lies in: few, so that they need no memory of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderEnds {
    ends: [usize; limits::FOLDER_LEVELS],
    count: usize,
}

impl FolderEnds {
    pub fn as_slice(&self) -> &[usize] {
        &self.ends[..self.count]
    }
}

/// Where the names of the folders end that a URL lies in, the host's first.
pub(super) fn folder_ends(url: &str) -> FolderEnds {
    let mut found = FolderEnds::default();
    let Some(host) = host_at(url) else { return found };
    for at in memchr::memchr2_iter(b'/', b'?', &url.as_bytes()[host..]).map(|at| host + at) {
        if url.as_bytes()[at] == b'?' || found.count == limits::FOLDER_LEVELS {
            break;
        }
        found.ends[found.count] = at + 1;
        found.count += 1;
    }
    found
}

/// Where the host of a URL begins.
pub(super) fn host_at(url: &str) -> Option<usize> {
    let colon = url.bytes().position(|byte| byte == b':')?;
    url[colon..].starts_with("://").then_some(colon + 3)
}

/// A digest of text that overlooks numbers, case and spacing: `2024-01: no events` and `2031-12: no events` say the same.
pub fn text_digest(text: &str) -> u64 {
    let bytes = text.bytes().filter(|b| !b.is_ascii_digit() && !b.is_ascii_whitespace());
    hash(bytes.map(|b| b.to_ascii_lowercase()))
}

/// FNV-1a, stirred at the end. Whoever finds two names with one hash has fooled nobody but himself: all tables are per site.
pub(super) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut hashing = Hashing::default();
    hashing.add(bytes);
    hashing.so_far()
}

/// A hash on its way: of what begins alike, the beginning is hashed once.
#[derive(Clone, Copy)]
pub(super) struct Hashing(u64);

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing(0xcbf2_9ce4_8422_2325)
    }
}

impl Hashing {
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of all that was added.
    pub fn so_far(self) -> u64 {
        let h = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ (h >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_count_for_each_folder_they_lead_into() {
        let mut novelty = Novelty::of("https://a.example/maze/one/page", Some("https://a.example/maze/up"));
        for (url, new) in [
            ("https://a.example/maze/one/x", true),
            ("https://a.example/maze/two/y", true),
            ("https://a.example/other", false),
            ("https://a.example/maze/up", false),      // back
            ("https://a.example/maze/", false),        // up
            ("https://a.example/maze/one/page", true), // itself
            ("https://b.a.example/maze/one/x", true),
            ("http://a.example/maze/one/x", false), // another scheme is another place
        ] {
            novelty.link(url, new);
        }
        assert_eq!(novelty.folders, [(2, 5), (2, 4), (1, 1)]);
        assert_eq!((novelty.met(0).count(), novelty.met(1).count(), novelty.met(2).count()), (2, 1, 0));
        assert_eq!(novelty.hosts, (1, 2));
        assert!(!novelty.deepens(0) && novelty.deepens(1) && !novelty.deepens(2) && !novelty.floods());
    }

    #[test]
    fn a_query_has_no_folders() {
        assert_eq!(folder_ends("https://a.example/x/y?z=/1/2/3").as_slice(), [18, 20]);
        assert_eq!(folder_ends("https://a.example/1/2/3/4/5/6/7/8").as_slice().len(), limits::FOLDER_LEVELS);
        assert!(folder_ends("https://a.example").as_slice().is_empty());
    }

    #[test]
    fn numbers_do_not_make_a_text_new() {
        assert_eq!(text_digest("2024-01: no  events"), text_digest("1999-12: No events"));
        assert_ne!(text_digest("no events"), text_digest("no event"));
    }
}
