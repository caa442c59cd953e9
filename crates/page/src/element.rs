//! The elements that matter for links, text and tokenizing, by name.

/// A name of at most eight bytes as a number, the last byte lowest.
const fn packed(name: &str) -> u64 {
    let bytes = name.as_bytes();
    assert!(bytes.len() <= 8);
    let (mut number, mut at) = (0, 0);
    while at < bytes.len() {
        number = number << 8 | bytes[at] as u64;
        at += 1;
    }
    number
}

macro_rules! elements {
    (short: $($short:ident $name:literal),* ; long: $($long:ident $long_name:literal),* ;) => {
        /// What a tag is, as far as anything here depends on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Element {
            $($short,)*
            $($long,)*
            /// Any other; the number tells most of them apart.
            Other(u64),
        }

        impl Element {
            /// The element of a name of at most eight bytes in lower case, packed.
            #[allow(non_upper_case_globals)] // the constants are named for their elements
            pub fn of_packed(number: u64) -> Element {
                $(const $short: u64 = packed($name);)*
                match number {
                    $($short => Element::$short,)*
                    _ => Element::Other(number),
                }
            }

            /// The element of a name of more than eight bytes, in any case.
            pub fn of_long(name: &[u8]) -> Element {
                $(if name.eq_ignore_ascii_case($long_name.as_bytes()) { return Element::$long; })*
                let step = |sum: u64, byte: &u8| (sum ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01B3);
                Element::Other(name.iter().fold(0xCBF2_9CE4_8422_2325, step))
            }

            /// The name in lower case; empty for others.
            pub fn name(self) -> &'static str {
                match self {
                    $(Element::$short => $name,)*
                    $(Element::$long => $long_name,)*
                    Element::Other(_) => "",
                }
            }
        }
    };
}

elements! {
    short:
    // Links, metadata, and content that is not markup.
    A "a", Area "area", Audio "audio", Base "base", Bgsound "bgsound", Body "body", Embed "embed", FeImage "feimage",
    Form "form", Frame "frame", Frameset "frameset", Head "head", Html "html", Iframe "iframe", Image "image", Img "img",
    Input "input", Link "link", Math "math", Meta "meta", Noembed "noembed", Noframes "noframes", Noscript "noscript",
    Object "object", Script "script", Source "source", Style "style", Svg "svg", Table "table", Tbody "tbody", Td "td",
    Template "template", Textarea "textarea", Tfoot "tfoot", Th "th", Thead "thead", Title "title", Tr "tr", Track "track",
    Use "use", Video "video", Xmp "xmp",
    // Integration points of svg and math, and what does not leave them.
    Desc "desc", Mglyph "mglyph", Mi "mi", Mn "mn", Mo "mo", Ms "ms", Mtext "mtext",
    // Blocks, and what else leaves svg and math.
    Address "address", Article "article", Aside "aside", B "b", Big "big", Br "br", Button "button", Caption "caption",
    Center "center", Code "code", Dd "dd", Details "details", Dialog "dialog", Dir "dir", Div "div", Dl "dl", Dt "dt",
    Em "em", Fieldset "fieldset", Figure "figure", Font "font", Footer "footer", H1 "h1", H2 "h2", H3 "h3", H4 "h4",
    H5 "h5", H6 "h6", Header "header", Hgroup "hgroup", Hr "hr", I "i", Label "label", Legend "legend", Li "li",
    Listing "listing", Main "main", Menu "menu", Nav "nav", Nobr "nobr", Ol "ol", Optgroup "optgroup", Option "option",
    P "p", Picture "picture", Pre "pre", Ruby "ruby", S "s", Search "search", Section "section", Select "select",
    Small "small", Span "span", Strike "strike", Strong "strong", Sub "sub", Summary "summary", Sup "sup", Tt "tt", U "u",
    Ul "ul", Var "var";
    long:
    AnnotationXml "annotation-xml", Blockquote "blockquote", Figcaption "figcaption", ForeignObject "foreignobject",
    Malignmark "malignmark", Plaintext "plaintext";
}

impl Default for Element {
    fn default() -> Element {
        Element::Other(0)
    }
}

impl Element {
    /// Does its start tag leave `svg` and `math`? (`font` does with certain attributes.)
    pub fn breaks_out(self) -> bool {
        use Element::*;
        matches!(
            self,
            B | Big
                | Blockquote
                | Body
                | Br
                | Center
                | Code
                | Dd
                | Div
                | Dl
                | Dt
                | Em
                | Embed
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Head
                | Hr
                | I
                | Img
                | Li
                | Listing
                | Menu
                | Meta
                | Nobr
                | Ol
                | P
                | Pre
                | Ruby
                | S
                | Small
                | Span
                | Strong
                | Strike
                | Sub
                | Sup
                | Table
                | Tt
                | U
                | Ul
                | Var
        )
    }

    /// Does it begin on a line of its own?
    pub fn is_block(self) -> bool {
        use Element::*;
        matches!(
            self,
            Address
                | Article
                | Aside
                | Blockquote
                | Body
                | Caption
                | Center
                | Dd
                | Details
                | Dialog
                | Dir
                | Div
                | Dl
                | Dt
                | Fieldset
                | Figcaption
                | Figure
                | Footer
                | Form
                | Frameset
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Header
                | Hgroup
                | Hr
                | Html
                | Legend
                | Li
                | Listing
                | Main
                | Menu
                | Nav
                | Ol
                | Optgroup
                | Option
                | P
                | Plaintext
                | Pre
                | Search
                | Section
                | Select
                | Summary
                | Table
                | Tbody
                | Tfoot
                | Thead
                | Tr
                | Ul
                | Xmp
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_elements_agree() {
        for (name, wanted) in [("a", Element::A), ("textarea", Element::Textarea), ("h1", Element::H1)] {
            assert_eq!(Element::of_packed(packed(name)), wanted);
            assert_eq!(wanted.name(), name);
        }
        assert_eq!(Element::of_long(b"ForeignObject"), Element::ForeignObject);
        assert_eq!(Element::of_long(b"LinearGradient"), Element::of_long(b"lineargradient"));
        assert_ne!(Element::of_packed(packed("g")), Element::of_packed(packed("path")));
    }
}
