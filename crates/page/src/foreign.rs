//! Inside `svg` and `math` or not: as much of tree construction as decides which text is markup.
//!
//! Elements are remembered only from an `svg` or `math` start tag on, so ordinary pages pay nothing. What an HTML tree would know
//! besides (which HTML elements are open around and inside) is guessed: an end tag of a usual HTML container that
//! nothing inside `svg` matches closes the `svg`, for the container is nearly always open around it.

use crate::element::Element;
use crate::limits;
use crate::scan::Tag;

/// The namespace of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Space {
    #[default]
    Html,
    Svg,
    Math,
}

/// What may stand inside an open foreign element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Foreign,
    /// HTML, as in `foreignObject`.
    Html,
    /// HTML except `mglyph` and `malignmark`, as in `mi`.
    Text,
    /// Foreign, except that `svg` begins a new drawing: `annotation-xml`.
    Annotation,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    element: Element,
    space: Space,
    content: Content,
}

/// The open elements from the outermost `svg` or `math` on.
#[derive(Debug, Default)]
pub struct Foreign {
    open: Vec<Open>,
}

impl Foreign {
    /// Is the current element foreign, so that CDATA sections count?
    pub fn is_inside(&self) -> bool {
        self.open.last().is_some_and(|top| top.content != Content::Html)
    }

    /// Takes a start tag in and says which namespace its element has.
    pub fn start(&mut self, tag: &Tag<'_>) -> Space {
        let element = tag.element;
        if self.open.is_empty() && !matches!(element, Element::Svg | Element::Math) {
            return Space::Html;
        }
        if !self.takes_html(element) {
            let breaks_out = element.breaks_out()
                || element == Element::Font
                    && ["color", "face", "size"].iter().any(|name| tag.attribute(name).is_some());
            if !breaks_out {
                let space = self.open.last().map_or(Space::Html, |top| top.space);
                self.push(tag, space);
                return space;
            }
            self.leave();
        }
        match element {
            Element::Svg => {
                self.push(tag, Space::Svg);
                Space::Svg
            }
            Element::Math => {
                self.push(tag, Space::Math);
                Space::Math
            }
            _ => Space::Html,
        }
    }

    /// Takes an end tag in.
    pub fn end(&mut self, element: Element) {
        let Some(top) = self.open.last() else { return };
        if matches!(top.content, Content::Html | Content::Text) {
            // Most end tags here belong to HTML elements inside the integration point.
            let closes = element == top.element || matches!(element, Element::Svg | Element::Math);
            if closes {
                self.close(element);
            }
            return;
        }
        if matches!(element, Element::Br | Element::P) || !self.close(element) && closes_around(element) {
            self.leave();
        }
    }

    /// The same for XML, where tags nest as they are written and only `svg` matters.
    pub fn xml(&mut self, tag: &Tag<'_>, is_end: bool) -> Space {
        let inside = !self.open.is_empty();
        match (tag.element, is_end) {
            (Element::Svg, false) => {
                self.push(tag, Space::Svg);
                Space::Svg
            }
            (Element::Svg, true) => {
                self.open.pop();
                Space::Svg
            }
            _ if inside => Space::Svg,
            _ => Space::Html,
        }
    }

    fn takes_html(&self, element: Element) -> bool {
        self.open.last().is_none_or(|top| match top.content {
            Content::Html => true,
            Content::Text => !matches!(element, Element::Mglyph | Element::Malignmark),
            Content::Annotation => element == Element::Svg,
            Content::Foreign => false,
        })
    }

    /// Closes elements until HTML may follow.
    fn leave(&mut self) {
        while self.open.last().is_some_and(|top| !matches!(top.content, Content::Html | Content::Text)) {
            self.open.pop();
        }
    }

    /// Closes the innermost open element of that name and all inside it.
    fn close(&mut self, element: Element) -> bool {
        let Some(at) = self.open.iter().rposition(|open| open.element == element) else { return false };
        self.open.truncate(at);
        true
    }

    fn push(&mut self, tag: &Tag<'_>, space: Space) {
        if tag.self_closing || self.open.len() >= limits::FOREIGN_DEPTH_MAX {
            return;
        }
        let content = match (space, tag.element) {
            (Space::Svg, Element::ForeignObject | Element::Desc | Element::Title) => Content::Html,
            (Space::Math, Element::Mi | Element::Mo | Element::Mn | Element::Ms | Element::Mtext) => Content::Text,
            (Space::Math, Element::AnnotationXml) => {
                let html = tag.attribute("encoding").is_some_and(|encoding| {
                    encoding.eq_ignore_ascii_case(b"text/html")
                        || encoding.eq_ignore_ascii_case(b"application/xhtml+xml")
                });
                if html { Content::Html } else { Content::Annotation }
            }
            _ => Content::Foreign,
        };
        self.open.push(Open { element: tag.element, space, content });
    }
}

/// HTML elements that stand around drawings and whose end tag is rarely astray.
fn closes_around(element: Element) -> bool {
    use Element::*;
    element.is_block() && !matches!(element, Hr | Select | Option | Optgroup)
        || matches!(element, A | B | Button | Em | I | Label | Small | Span | Strong | Td | Th | U)
}
