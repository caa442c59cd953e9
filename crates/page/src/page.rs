//! What is known of a page after reading it.

/// Everything that [`crate::read`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// What kind of file it is.
    pub kind: Kind,
    /// The name of its charset as the Encoding Standard spells it; `UTF-8` for what is not text.
    pub charset: &'static str,
    /// The title, white space collapsed.
    pub title: Option<String>,
    /// The language, as declared.
    pub language: Option<String>,
    /// The URL under which the page would like to be known.
    pub canonical: Option<String>,
    /// What it links to, by first occurrence, each URL once.
    pub links: Vec<Link>,
    /// What it asks of crawlers.
    pub directives: Directives,
    /// Statements about use, as seen: `Content-Signal`, `tdm-reservation` and others, name in lower case and value.
    pub signals: Vec<(String, String)>,
    /// The URL that references are resolved against, where the page names one.
    pub base: Option<String>,
    /// The first bound that was met; the rest of the page was not read.
    pub cut: Option<Cut>,
}

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// HTML or XHTML.
    Html,
    /// A drawing with links of its own.
    Svg,
    /// A style sheet.
    Css,
    /// A sitemap or a sitemap index, as XML or text.
    Sitemap,
    /// RSS, Atom or JSON Feed.
    Feed,
    /// robots.txt.
    Robots,
    /// Anything else: only its head was read.
    #[default]
    Other,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// As a browser would send it: WHATWG form, no fragment, no credentials, `http` or `https`.
    pub url: String,
    /// How the page refers to it; the strongest, where it does in several ways.
    pub kind: LinkKind,
    /// Every reference to it says `nofollow`.
    pub nofollow: bool,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $code:literal),* $(,)?) => {
        /// How a page refers to a URL, the strongest first: of two references to one URL, the one earlier in this list counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LinkKind {
            $($(#[$doc])* $kind,)*
        }

        impl LinkKind {
            /// Every kind, the strongest first.
            pub const ALL: &'static [LinkKind] = &[$(LinkKind::$kind,)*];

            /// A short word for records. It never changes.
            pub fn code(self) -> &'static str {
                match self { $(LinkKind::$kind => $code,)* }
            }

            /// The kind that this word stands for.
            pub fn from_code(code: &str) -> Option<LinkKind> {
                match code { $($code => Some(LinkKind::$kind),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A style sheet.
    Style "style",
    /// A style sheet that a style sheet imports.
    Import "import",
    /// A script.
    Script "script",
    /// A font.
    Font "font",
    /// A picture.
    Image "image",
    /// Sound, film or its subtitles.
    Media "media",
    /// What `object`, `embed` and the like show; a web app manifest.
    Object "object",
    /// A page inside the page.
    Frame "frame",
    /// The site's icon.
    Icon "icon",
    /// Where the server sends to: `Location`.
    Redirect "redirect",
    /// Where the page sends to after a while.
    Refresh "refresh",
    /// A sitemap.
    Sitemap "sitemap",
    /// A feed, or an entry of one.
    Feed "feed",
    /// A link to follow.
    Anchor "anchor",
    /// A link on a part of a picture.
    Area "area",
    /// Where a form asks with GET.
    Form "form",
    /// The page in another form or language, or any other relation.
    Alternate "alternate",
    /// A `Link` field of the answer.
    Header "header",
    /// The page under its proper URL.
    Canonical "canonical",
    /// Perhaps a link: what scripts are known to turn into one.
    Guess "guess",
}

impl LinkKind {
    /// Is it needed to show the page?
    pub fn is_embed(self) -> bool {
        use LinkKind::*;
        matches!(self, Style | Import | Script | Font | Image | Media | Object | Frame | Icon)
    }
}

/// What a page asks of crawlers, in its head or in the head of the answer, for all or for Skep by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Directives {
    /// Not to be shown as a copy.
    pub noarchive: bool,
    /// Its links are not to be followed.
    pub nofollow: bool,
    /// Not to be found by search.
    pub noindex: bool,
    /// No part of its text is to be shown by search.
    pub nosnippet: bool,
    /// Its images are not to be found by search.
    pub noimageindex: bool,
    /// Not to be translated.
    pub notranslate: bool,
    /// Not to be used for training (`noai`).
    pub noai: bool,
    /// Its images are not to be used for training (`noimageai`).
    pub noimageai: bool,
}

/// Which bound a page met; all of them are in [`crate::limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Its bytes.
    Bytes,
    /// Its links.
    Links,
    /// One attribute's bytes; that attribute was passed over.
    Attribute,
    /// The attributes of one tag; the rest of them were passed over.
    Attributes,
    /// The work it causes.
    Work,
    /// Bytes of styles; the rest of them was passed over.
    Css,
    /// XML that is nested too deep, or declares entities of its own.
    Xml,
    /// Entries of a feed.
    Entries,
}

impl Cut {
    /// A short word for records. It never changes.
    pub fn id(self) -> &'static str {
        match self {
            Cut::Bytes => "bytes",
            Cut::Links => "links",
            Cut::Attribute => "attribute",
            Cut::Attributes => "attributes",
            Cut::Work => "work",
            Cut::Css => "css",
            Cut::Xml => "xml",
            Cut::Entries => "entries",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back() {
        for &kind in LinkKind::ALL {
            assert_eq!(LinkKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(LinkKind::from_code("other"), None);
    }
}
