//! The links of a page by html5ever, which builds a whole tree: what the scanner is compared with.
//!
//! Only where links stand is decided here, element by element. What a `srcset`, a style sheet or a refresh holds is read by the
//! package itself from a page that has nothing else, so that a difference is one of tokenizing.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use skep_page::{Input, read};
use skep_url::Url;
use skep_warc::http::Head;

struct Element {
    name: &'static QualName,
    attributes: Vec<(String, String)>,
    text: String,
}

#[derive(Default)]
struct Sink {
    elements: RefCell<Vec<Element>>,
}

/// Handles: 0 is the document, elements count from 2 in steps of two, the odd number after one is its template content.
impl TreeSink for Sink {
    type Handle = usize;
    type Output = Vec<Element>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Vec<Element> {
        self.elements.into_inner()
    }

    fn get_document(&self) -> usize {
        0
    }

    fn get_template_contents(&self, target: &usize) -> usize {
        target + 1
    }

    fn same_node(&self, x: &usize, y: &usize) -> bool {
        x == y
    }

    fn elem_name(&self, target: &usize) -> ExpandedName<'_> {
        self.elements.borrow()[target / 2 - 1].name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> usize {
        let mut elements = self.elements.borrow_mut();
        // Names are borrowed from a cell for as long as the sink lives; a test may leak them.
        let name = Box::leak(Box::new(name));
        elements.push(Element { name, attributes: pairs(attributes), text: String::new() });
        elements.len() * 2
    }

    fn create_comment(&self, _: StrTendril) -> usize {
        self.create_element(QualName::new(None, "".into(), "".into()), Vec::new(), ElementFlags::default())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> usize {
        self.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &usize, child: NodeOrText<usize>) {
        if let NodeOrText::AppendText(text) = child
            && *parent >= 2
        {
            self.elements.borrow_mut()[parent / 2 - 1].text.push_str(&text);
        }
    }

    fn add_attrs_if_missing(&self, target: &usize, attributes: Vec<Attribute>) {
        let element = &mut self.elements.borrow_mut()[target / 2 - 1];
        for (name, value) in pairs(attributes) {
            if element.attributes.iter().all(|(known, _)| *known != name) {
                element.attributes.push((name, value));
            }
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &usize) -> bool {
        let elements = self.elements.borrow();
        let element = &elements[target / 2 - 1];
        let encoding = attribute(element, "encoding").unwrap_or_default().to_ascii_lowercase();
        &*element.name.local == "annotation-xml" && ["text/html", "application/xhtml+xml"].contains(&encoding.as_str())
    }

    fn append_before_sibling(&self, _: &usize, _: NodeOrText<usize>) {}
    fn append_based_on_parent_node(&self, _: &usize, _: &usize, _: NodeOrText<usize>) {}
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn set_quirks_mode(&self, _: QuirksMode) {}
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn remove_from_parent(&self, _: &usize) {}
    fn reparent_children(&self, _: &usize, _: &usize) {}
}

fn pairs(attributes: Vec<Attribute>) -> Vec<(String, String)> {
    let name = |attribute: &Attribute| match &attribute.name.prefix {
        Some(prefix) => format!("{prefix}:{}", attribute.name.local),
        None => attribute.name.local.to_string(),
    };
    attributes.iter().map(|attribute| (name(attribute), attribute.value.to_string())).collect()
}

fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    element.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The URLs of all links.
pub fn links(url: &Url, text: &str) -> BTreeSet<String> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let elements = parse_document(Sink::default(), options).one(StrTendril::from(text));
    let html = |element: &&Element| element.name.ns == html5ever::ns!(html);
    let named_base = elements.iter().filter(html).filter(|element| &*element.name.local == "base");
    let base = named_base.filter_map(|element| attribute(element, "href")).next();
    let base = base.and_then(|reference| url.join(reference).ok()).unwrap_or_else(|| url.clone());
    let mut found = BTreeSet::new();
    let mut add = |reference: &str| found.extend(base.join(reference).ok().map(|link| link.as_str().to_owned()));
    let (mut held, mut styles) = (Vec::new(), Vec::new());
    for element in &elements {
        let value = |name: &str| attribute(element, name).filter(|value| !value.is_empty());
        if let Some(style) = value("style") {
            held.push(format!("<p style=\"{}\">", quoted(style)));
        }
        let name = &*element.name.local;
        if name == "style" && element.name.ns != html5ever::ns!(mathml) {
            styles.push(&element.text);
        }
        if element.name.ns == html5ever::ns!(svg) {
            if ["a", "image", "feImage", "use", "script"].contains(&name) {
                value("href").or_else(|| value("xlink:href")).map(&mut add);
            }
            continue;
        }
        if element.name.ns != html5ever::ns!(html) {
            value("href").map(&mut add);
            continue;
        }
        match name {
            "a" | "area" => {
                attribute(element, "href").map(&mut add);
            }
            "img" | "source" => {
                value("src").map(&mut add);
                value("data-src").map(&mut add);
                for set in [value("srcset"), value("data-srcset")].into_iter().flatten() {
                    held.push(format!("<img srcset=\"{}\">", quoted(set)));
                }
            }
            "iframe" | "frame" | "video" | "audio" => {
                value("src").map(&mut add);
                value("data-src").map(&mut add);
                if matches!(name, "video" | "audio") {
                    value("poster").map(&mut add);
                }
            }
            "track" | "bgsound" | "embed" | "script" => {
                value("src").map(&mut add);
            }
            "object" => {
                value("data").map(&mut add);
            }
            "body" | "table" | "tbody" | "tfoot" | "thead" | "tr" | "td" | "th" => {
                value("background").map(&mut add);
            }
            "input" if value("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) => {
                value("src").map(&mut add);
            }
            "form"
                if !value("method").is_some_and(|m| ["post", "dialog"].contains(&m.to_ascii_lowercase().as_str())) =>
            {
                value("action").map(&mut add);
            }
            "meta" if value("http-equiv").is_some_and(|pragma| pragma.eq_ignore_ascii_case("refresh")) => {
                held.push(format!(
                    "<meta http-equiv=refresh content=\"{}\">",
                    quoted(value("content").unwrap_or_default())
                ));
            }
            "link" => {
                let part = |name: &str| quoted(value(name).unwrap_or_default());
                held.push(format!(
                    "<link rel=\"{}\" type=\"{}\" as=\"{}\" href=\"{}\" imagesrcset=\"{}\">",
                    part("rel"),
                    part("type"),
                    part("as"),
                    part("href"),
                    part("imagesrcset")
                ));
            }
            _ => {}
        }
    }
    // On a page of its own, so that no link there is one to itself.
    let page = format!("<meta charset=utf-8><base href=\"{}\">{}", quoted(base.as_str()), held.concat());
    let elsewhere: Url = "http://elsewhere.invalid/".parse().unwrap();
    found.extend(
        read(&Input { url: &elsewhere, head: None, body: page.as_bytes() }).links.into_iter().map(|link| link.url),
    );
    let sheet = head_of("text/css; charset=utf-8");
    for style in styles {
        let page = read(&Input { url: &base, head: Some(&sheet), body: style.as_bytes() });
        found.extend(page.links.into_iter().map(|link| link.url));
    }
    found.remove(url.as_str());
    found
}

fn head_of(media_type: &str) -> Head {
    let mut head = Head::new();
    let _ = head.parse_response(format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n").as_bytes(), true);
    head
}

fn quoted(value: &str) -> String {
    value.replace('&', "&amp;").replace('"', "&quot;")
}

/// The URLs that the scanner finds; `None` where it did not read the page to its end.
pub fn scanned(url: &Url, text: &str) -> Option<BTreeSet<String>> {
    let head = head_of("text/html; charset=utf-8");
    let page = read(&Input { url, head: Some(&head), body: text.as_bytes() });
    page.cut.is_none().then(|| page.links.into_iter().map(|link| link.url).collect())
}
