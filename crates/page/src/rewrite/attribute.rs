//! What an attribute means for a replay.

use crate::element::Element;
use crate::foreign::Space;
use crate::relation::has_word;
use crate::scan::Tag;

/// What an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that concerns a replay.
    Nothing,
    /// An address, with the modifier of its replay.
    Address(&'static str),
    Base,
    SourceSet,
    Style,
    Handler,
    /// A whole page.
    Page,
    Refresh,
    /// Something that a replay must not have: a digest of bytes that have changed, a policy for another address, an order to fetch
    /// or to connect.
    Dropped,
}

/// What a `script` element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptType {
    Script,
    ImportMap,
    /// Orders to fetch pages ahead.
    Rules,
    /// Data, templates, other languages.
    Data,
}

/// What the attribute of that name means on this tag.
pub fn meaning(tag: &Tag<'_>, name: &[u8]) -> Meaning {
    use Meaning::{Address, Dropped, Handler, Nothing};
    // Most attributes are of these.
    if let b"class" | b"id" | b"title" | b"alt" | b"name" | b"width" | b"height" | b"role" | b"rel" | b"type" = name {
        return Nothing;
    }
    let mut lower = [0; 16];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return if is_handler(name) { Handler } else { Nothing };
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let html = tag.space == Space::Html;
    match &*lower {
        b"href" => match (tag.space, tag.element) {
            (Space::Html, Element::A | Element::Area) => Address("mp_"),
            (Space::Html, Element::Base) => Meaning::Base,
            (Space::Html, Element::Link) => related(tag),
            (Space::Html, _) => Nothing,
            _ => drawn(tag),
        },
        b"xlink:href" if !html => drawn(tag),
        b"src" => match tag.element {
            Element::Script => script(tag),
            Element::Iframe | Element::Frame | Element::Embed => Address("if_"),
            Element::Img
            | Element::Image
            | Element::Input
            | Element::Audio
            | Element::Video
            | Element::Source
            | Element::Track
            | Element::Bgsound => Address("im_"),
            _ => Nothing,
        },
        b"srcset" | b"imagesrcset" => Meaning::SourceSet,
        b"style" => Meaning::Style,
        b"background" if html => Address("im_"),
        b"poster" | b"lowsrc" | b"dynsrc" => Address("im_"),
        b"data" if tag.element == Element::Object => Address("if_"),
        b"codebase" if tag.element == Element::Object || named(tag, "applet") => Address("im_"),
        b"longdesc" if tag.element == Element::Img => Address("mp_"),
        b"action" if tag.element == Element::Form => Address("mp_"),
        b"formaction" => Address("mp_"),
        b"srcdoc" if tag.element == Element::Iframe => Meaning::Page,
        b"content" if tag.element == Element::Meta => meta(tag),
        b"value" if named(tag, "param") => {
            let name = tag.attribute("name").unwrap_or_default().to_ascii_lowercase();
            if matches!(&name[..], b"movie" | b"src" | b"href" | b"url" | b"filename") {
                Address("im_")
            } else {
                Nothing
            }
        }
        b"integrity" if matches!(tag.element, Element::Script | Element::Link) => Dropped,
        b"nonce" | b"ping" | b"attributionsrc" => Dropped,
        b"csp" if tag.element == Element::Iframe => Dropped,
        b"manifest" if tag.element == Element::Html => Dropped,
        name if is_handler(name) => Handler,
        _ => Nothing,
    }
}

/// What the content of a `script` element is.
pub fn script_type(tag: &Tag<'_>) -> ScriptType {
    let Some(kind) = tag.attribute("type") else { return ScriptType::Script };
    let kind = kind.trim_ascii().to_ascii_lowercase();
    match &kind[..] {
        b"" | b"module" => ScriptType::Script,
        b"importmap" => ScriptType::ImportMap,
        b"speculationrules" => ScriptType::Rules,
        kind if is_script(kind) => ScriptType::Script,
        _ => ScriptType::Data,
    }
}

/// Is this media type, in lower case, one of scripts?
pub fn is_script(media_type: &[u8]) -> bool {
    let Some(slash) = media_type.iter().position(|&byte| byte == b'/') else { return false };
    let name = media_type[slash + 1..].split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let name = name.strip_prefix(b"x-").unwrap_or(name);
    matches!(&media_type[..slash], b"text" | b"application")
        && (matches!(name, b"javascript" | b"ecmascript" | b"jscript" | b"livescript")
            || name.starts_with(b"javascript1."))
}

fn is_handler(name: &[u8]) -> bool {
    name.len() > 3 && name[..2].eq_ignore_ascii_case(b"on") && name.iter().all(u8::is_ascii_alphanumeric)
}

fn named(tag: &Tag<'_>, name: &str) -> bool {
    tag.name.eq_ignore_ascii_case(name.as_bytes())
}

fn script(tag: &Tag<'_>) -> Meaning {
    let is_module = tag.attribute("type").is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"module"));
    Meaning::Address(if is_module { "esm_" } else { "js_" })
}

/// An address in a drawing or a formula.
fn drawn(tag: &Tag<'_>) -> Meaning {
    Meaning::Address(match tag.element {
        Element::A => "mp_",
        Element::Script => "js_",
        _ if tag.space == Space::Math => "mp_",
        _ => "im_",
    })
}

/// What a `link` element leads to.
fn related(tag: &Tag<'_>) -> Meaning {
    let rel = tag.attribute("rel").unwrap_or_default();
    let has = |word| has_word(rel, word);
    if has("preconnect") || has("dns-prefetch") || has("prerender") {
        return Meaning::Dropped;
    }
    Meaning::Address(if has("stylesheet") {
        "cs_"
    } else if has("modulepreload") {
        "esm_"
    } else if has("preload") || has("prefetch") {
        match &tag.attribute("as").unwrap_or_default().to_ascii_lowercase()[..] {
            b"script" => "js_",
            b"style" => "cs_",
            b"worker" | b"sharedworker" => "wkr_",
            b"fetch" => "xr_",
            b"document" => "if_",
            b"" if has("prefetch") => "mp_",
            _ => "im_",
        }
    } else if has("import") {
        "if_"
    } else if ["icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "apple-touch-startup-image"]
        .into_iter()
        .any(has)
    {
        "im_"
    } else {
        "mp_"
    })
}

/// What the content of a `meta` element is.
fn meta(tag: &Tag<'_>) -> Meaning {
    let Some(pragma) = tag.attribute("http-equiv") else { return Meaning::Nothing };
    match &pragma.trim_ascii().to_ascii_lowercase()[..] {
        b"refresh" => Meaning::Refresh,
        b"content-security-policy"
        | b"content-security-policy-report-only"
        | b"x-content-security-policy"
        | b"x-webkit-csp"
        | b"x-frame-options"
        | b"set-cookie"
        | b"origin-trial" => Meaning::Dropped,
        _ => Meaning::Nothing,
    }
}
