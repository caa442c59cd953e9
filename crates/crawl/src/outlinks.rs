//! What a page links to, as one thread hands it to another: all addresses in one text.

use skep_page::{Link, LinkKind};

/// The links of a page. A list of strings would cost one allocation each, let go by another thread than made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlinks {
    text: String,
    /// Where each address ends in the text.
    links: Vec<(u32, LinkKind, bool)>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlink<'o> {
    /// The address.
    pub url: &'o str,
    /// How the page refers to it.
    pub kind: LinkKind,
    /// Every reference to it says `nofollow`.
    pub nofollow: bool,
}

impl Outlinks {
    /// How many.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// In the order of the page.
    pub fn iter(&self) -> impl Iterator<Item = Outlink<'_>> {
        let mut from = 0;
        self.links.iter().map(move |(end, kind, nofollow)| {
            let url = &self.text[from..*end as usize];
            from = *end as usize;
            Outlink { url, kind: *kind, nofollow: *nofollow }
        })
    }

    fn push(&mut self, link: &Link) {
        // A page is never so large that its links do not fit; if one were, it would have fewer.
        let Ok(end) = u32::try_from(self.text.len() + link.url.len()) else { return };
        self.text.push_str(&link.url);
        self.links.push((end, link.kind, link.nofollow));
    }
}

impl From<&[Link]> for Outlinks {
    fn from(links: &[Link]) -> Outlinks {
        let bytes = links.iter().map(|link| link.url.len()).sum();
        let mut all = Outlinks { text: String::with_capacity(bytes), links: Vec::with_capacity(links.len()) };
        links.iter().for_each(|link| all.push(link));
        all
    }
}

impl FromIterator<Link> for Outlinks {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Outlinks {
        let mut all = Outlinks::default();
        links.into_iter().for_each(|link| all.push(&link));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let link = |url: &str, kind, nofollow| Link { url: url.into(), kind, nofollow };
        let links = [
            link("http://a.test/", LinkKind::Anchor, false),
            link("http://b.test/ü", LinkKind::Image, true),
            link("http://a.test/x", LinkKind::Redirect, false),
        ];
        let all = Outlinks::from(&links[..]);
        assert_eq!(all, links.iter().cloned().collect());
        let read: Vec<Link> = all.iter().map(|out| link(out.url, out.kind, out.nofollow)).collect();
        assert_eq!(read, links);
        assert_eq!(Outlinks::default().iter().count(), 0);
    }
}
