//! What a page links to, as one thread hands it to another: all addresses in one text.

use crate::page::{Link, LinkKind};

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
    /// None yet, with room for so many links of so many bytes each.
    pub(crate) fn with_room(links: usize, bytes_each: usize) -> Outlinks {
        Outlinks { text: String::with_capacity(links * bytes_each), links: Vec::with_capacity(links) }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
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

    /// Forgets all.
    pub fn clear(&mut self) {
        self.text.clear();
        self.links.clear();
    }

    /// Forgets those of this kind.
    pub fn remove_kind(&mut self, kind: LinkKind) {
        if self.links.iter().any(|(_, other, _)| *other == kind) {
            let mut others = Outlinks::default();
            self.iter()
                .filter(|link| link.kind != kind)
                .for_each(|link| others.push(link.url, link.kind, link.nofollow));
            *self = others;
        }
    }

    /// Adds one behind the others.
    pub(crate) fn push(&mut self, url: &str, kind: LinkKind, nofollow: bool) {
        // A page is never so large that its links do not fit; if one were, it would have fewer.
        let Ok(end) = u32::try_from(self.text.len() + url.len()) else { return };
        self.text.push_str(url);
        self.links.push((end, kind, nofollow));
    }

    /// The address of one.
    pub(crate) fn url(&self, index: usize) -> &str {
        let from = index.checked_sub(1).map_or(0, |before| self.links[before].0);
        &self.text[from as usize..self.links[index].0 as usize]
    }

    /// Another reference to one: the stronger kind counts, and every one must say `nofollow`.
    pub(crate) fn again(&mut self, index: usize, kind: LinkKind, nofollow: bool) {
        let (_, strongest, all) = &mut self.links[index];
        *strongest = (*strongest).min(kind);
        *all &= nofollow;
    }
}

impl Outlink<'_> {
    /// The same by itself.
    pub fn to_link(self) -> Link {
        Link { url: self.url.to_owned(), kind: self.kind, nofollow: self.nofollow }
    }
}

impl FromIterator<Link> for Outlinks {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Outlinks {
        let mut all = Outlinks::default();
        links.into_iter().for_each(|link| all.push(&link.url, link.kind, link.nofollow));
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
        let mut all: Outlinks = links.iter().cloned().collect();
        let read: Vec<Link> = all.iter().map(Outlink::to_link).collect();
        assert_eq!(read, links);
        assert_eq!((0..3).map(|index| all.url(index)).collect::<Vec<_>>(), links.each_ref().map(|link| &link.url));
        // What a page needs to be shown is stronger than what it leads to.
        all.again(0, LinkKind::Image, true);
        all.again(1, LinkKind::Anchor, false);
        all.remove_kind(LinkKind::Redirect);
        let left = [link("http://a.test/", LinkKind::Image, false), link("http://b.test/ü", LinkKind::Image, false)];
        assert_eq!(all, left.into_iter().collect());
        assert_eq!(Outlinks::default().iter().count(), 0);
    }
}
