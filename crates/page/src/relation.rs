//! What `rel` says about a link, in `link` elements and `Link` fields.

use crate::page::LinkKind;
use crate::value::is_space;

/// What becomes of a related URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is a link of this kind.
    Link(LinkKind),
    /// It is nothing to fetch: an address for programs, or a hint to connect early.
    Nothing,
}

/// Is this word, given in lower case, among the words of the attribute?
pub fn has_word(attribute: &[u8], word: &str) -> bool {
    attribute.split(|&byte| is_space(byte)).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Which kind of link `rel`, with `type` and `as` beside it, makes. Of several words the one that is needed to show the page
/// counts.
pub fn of(rel: &[u8], media_type: &[u8], shape: &[u8]) -> Relation {
    let words = rel.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
    let mut best: Option<LinkKind> = None;
    let mut nothing = false;
    for word in words {
        match of_word(&word.to_ascii_lowercase(), media_type, shape) {
            Relation::Link(kind) => best = Some(best.map_or(kind, |other| other.min(kind))),
            Relation::Nothing => nothing = true,
        }
    }
    match best {
        Some(kind) => Relation::Link(kind),
        None if nothing => Relation::Nothing,
        None => Relation::Link(LinkKind::Alternate),
    }
}

fn of_word(word: &[u8], media_type: &[u8], shape: &[u8]) -> Relation {
    use LinkKind::*;
    Relation::Link(match word {
        b"stylesheet" => Style,
        b"icon"
        | b"shortcut"
        | b"apple-touch-icon"
        | b"apple-touch-icon-precomposed"
        | b"mask-icon"
        | b"fluid-icon" => Icon,
        b"apple-touch-startup-image" | b"image_src" => Image,
        b"manifest" => Object,
        b"modulepreload" => Script,
        b"preload" => match &shape.to_ascii_lowercase()[..] {
            b"style" => Style,
            b"script" | b"worker" => Script,
            b"font" => Font,
            b"image" => Image,
            b"audio" | b"video" | b"track" => Media,
            b"document" => Frame,
            b"embed" | b"object" => Object,
            _ => Guess,
        },
        b"prefetch" | b"prerender" => Guess,
        b"import" => Import,
        b"canonical" => Canonical,
        b"alternate" if is_feed(media_type) => Feed,
        b"feed" => Feed,
        b"sitemap" => Sitemap,
        b"next" | b"prev" | b"previous" | b"first" | b"last" | b"up" | b"top" | b"start" | b"home" | b"index"
        | b"contents" | b"toc" | b"chapter" | b"section" | b"subsection" | b"appendix" | b"glossary" | b"copyright"
        | b"author" | b"help" | b"license" | b"bookmark" | b"parent" | b"child" => Anchor,
        b"pingback"
        | b"webmention"
        | b"dns-prefetch"
        | b"preconnect"
        | b"edituri"
        | b"wlwmanifest"
        | b"profile"
        | b"schema.dc"
        | b"https://api.w.org/"
        | b"micropub"
        | b"authorization_endpoint"
        | b"token_endpoint"
        | b"hub"
        | b"me"
        | b"openid.server"
        | b"openid2.provider"
        | b"expect"
        | b"compression-dictionary" => return Relation::Nothing,
        _ => Alternate,
    })
}

fn is_feed(media_type: &[u8]) -> bool {
    let end = media_type.iter().position(|&byte| byte == b';').unwrap_or(media_type.len());
    matches!(
        &media_type[..end].trim_ascii().to_ascii_lowercase()[..],
        b"application/rss+xml"
            | b"application/atom+xml"
            | b"application/rdf+xml"
            | b"application/feed+json"
            | b"text/rss+xml"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_kinds() {
        let feed = b"application/rss+xml; charset=utf-8";
        for (rel, media_type, shape, wanted) in [
            ("stylesheet", &b""[..], "", Relation::Link(LinkKind::Style)),
            ("Alternate\tStyleSheet", b"text/css", "", Relation::Link(LinkKind::Style)),
            ("shortcut icon", b"", "", Relation::Link(LinkKind::Icon)),
            ("preload", b"", "Font", Relation::Link(LinkKind::Font)),
            ("preload", b"", "", Relation::Link(LinkKind::Guess)),
            ("alternate", feed, "", Relation::Link(LinkKind::Feed)),
            ("alternate", b"text/html", "", Relation::Link(LinkKind::Alternate)),
            ("next", b"", "", Relation::Link(LinkKind::Anchor)),
            ("pingback", b"", "", Relation::Nothing),
            ("preconnect dns-prefetch", b"", "", Relation::Nothing),
            ("", b"", "", Relation::Link(LinkKind::Alternate)),
        ] {
            assert_eq!(of(rel.as_bytes(), media_type, shape.as_bytes()), wanted, "{rel}");
        }
    }
}
