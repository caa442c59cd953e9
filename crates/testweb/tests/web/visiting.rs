//! The whole of a mixed web is visited; everything seen must be what the truth says.

use std::io::Read as _;

use flate2::read::GzDecoder;
use skep_testweb::{Clock, Element, Entry, Kind, Mix, Plan, Settings, Time, Web};

use crate::client::{Visitor, serve_with};

fn mixed() -> Web {
    let mix = Mix { hosts: 8, sites: 3, addresses: 3, pages: 40, ..Mix::default() };
    let clock = Clock::still(Time::BEGIN.plus_days(180));
    serve_with(Plan::mixed(11, &mix), Settings { clock: Some(clock), ..Settings::default() })
}

fn truth(web: &Web) -> Vec<Entry> {
    web.world().truth(web.now()).map(|entry| entry.unwrap()).collect()
}

#[test]
fn every_url_is_as_the_truth_says() {
    let web = mixed();
    let truth = truth(&web);
    let mut visitor = Visitor::new(&web);
    for entry in &truth {
        let seen = visitor.get(&entry.url, &[]);
        assert_eq!(seen.status, entry.status, "{}", entry.url);
        assert_eq!(seen.body.len() as u64, entry.bytes, "{}", entry.url);
        assert_eq!(seen.header("content-type"), entry.media_type.as_deref());
        assert_eq!(seen.header("etag"), entry.etag.as_deref());
        assert_eq!(seen.header("last-modified"), entry.last_modified.map(Time::http).as_deref());
        assert_eq!(seen.header("location"), entry.location.as_deref());
        assert_eq!(seen.header("date"), Some(web.now().http().as_str()));
    }
    let kinds = |kind| truth.iter().filter(|entry| entry.kind == kind).count();
    for kind in [Kind::Page, Kind::Image, Kind::Redirect, Kind::Missing, Kind::Robots, Kind::Sitemap, Kind::Feed] {
        assert!(kinds(kind) > 0, "{kind:?}");
    }
    for status in [200, 301, 308, 404, 410] {
        assert!(truth.iter().any(|entry| entry.status == status), "{status}");
    }
    assert_eq!(web.report().requests, truth.len() as u64);
}

#[test]
fn the_links_in_the_documents_are_those_of_the_truth() {
    let web = mixed();
    let mut visitor = Visitor::new(&web);
    let mut links_seen = 0;
    for entry in truth(&web).into_iter().filter(|entry| entry.status < 400) {
        let seen = visitor.get(&entry.url, &[]);
        let base = url::Url::parse(&entry.url).unwrap();
        let written: Vec<(Element, String)> = match entry.kind {
            Kind::Page => html_links(&seen.text()),
            Kind::Style => css_links(&seen.text()),
            Kind::Redirect => vec![(Element::Location, seen.header("location").unwrap().into())],
            Kind::Sitemap | Kind::Feed if entry.url.ends_with(".gz") => {
                let mut xml = String::new();
                GzDecoder::new(&seen.body[..]).read_to_string(&mut xml).unwrap();
                xml_links(&xml)
            }
            Kind::Sitemap | Kind::Feed => xml_links(&seen.text()),
            _ => continue,
        };
        let mut resolved: Vec<(Element, String)> = written
            .into_iter()
            .map(|(element, to)| {
                let mut url = base.join(&to).unwrap();
                url.set_fragment(None);
                (element, url.to_string())
            })
            .collect();
        let mut known: Vec<(Element, String)> =
            entry.links.unwrap().into_iter().map(|link| (link.element, link.url)).collect();
        resolved.sort();
        known.sort();
        assert_eq!(resolved, known, "{}", entry.url);
        links_seen += known.len();
    }
    assert!(links_seen > 3_000, "{links_seen}");
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn html_links(html: &str) -> Vec<(Element, String)> {
    let mut links = Vec::new();
    for tag in html.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let found = if tag.starts_with("a ") {
            attribute(tag, "href").map(|to| (Element::A, to))
        } else if tag.starts_with("link ") {
            let element = if tag.contains("stylesheet") { Element::Stylesheet } else { Element::Alternate };
            attribute(tag, "href").map(|to| (element, to))
        } else if tag.starts_with("script ") {
            attribute(tag, "src").map(|to| (Element::Script, to))
        } else if tag.starts_with("img ") {
            let srcset = attribute(tag, "srcset").map(|set| (Element::Srcset, set.split(' ').next().unwrap()));
            attribute(tag, "src").map(|to| (Element::Img, to)).or(srcset)
        } else {
            None
        };
        links.extend(found.map(|(element, to)| (element, to.replace("&amp;", "&"))));
    }
    links
}

fn css_links(css: &str) -> Vec<(Element, String)> {
    let mut links = Vec::new();
    for line in css.lines() {
        if let Some((before, rest)) = line.split_once("url(") {
            let element = if before.starts_with("@import") { Element::Import } else { Element::Background };
            links.push((element, rest.split(')').next().unwrap().trim_matches('"').to_string()));
        }
    }
    links
}

fn xml_links(xml: &str) -> Vec<(Element, String)> {
    let mut links = Vec::new();
    let starts: &[(&str, char)] = if xml.contains("<rss") {
        &[("<item><title>", '\0')]
    } else if xml.contains("<feed") {
        &[("<link href=\"", '"')]
    } else {
        &[("<loc>", '<')]
    };
    for (start, end) in starts {
        for piece in xml.split(start).skip(1) {
            let (piece, end) = if *end == '\0' { (piece.split_once("<link>").unwrap().1, '<') } else { (piece, *end) };
            links.push((Element::Listed, piece.split(end).next().unwrap().replace("&amp;", "&")));
        }
    }
    links
}

#[test]
fn a_second_visit_with_validators_brings_only_what_changed() {
    let web = mixed();
    let before = truth(&web);
    web.set_clock(Some(web.now().plus_days(2)), None);
    let after = truth(&web);
    let mut visitor = Visitor::new(&web);
    let (mut unchanged, mut changed, mut compared) = (0, 0, 0);
    for (old, new) in before.iter().zip(&after) {
        assert_eq!(old.url, new.url);
        if old.status != 200 || new.status != 200 {
            continue;
        }
        let since = old.last_modified.map(Time::http);
        for (name, value) in [("if-none-match", &old.etag), ("if-modified-since", &since)] {
            let Some(value) = value else { continue };
            compared += 1;
            let seen = visitor.get(&new.url, &[(name, value)]);
            if old.digest == new.digest {
                assert_eq!((seen.status, seen.body.len()), (304, 0), "{name} {}", new.url);
                unchanged += 1;
            } else {
                assert_eq!(seen.status, 200, "{name} {}", new.url);
                changed += 1;
            }
        }
    }
    assert!(unchanged > 100 && changed > 100 && compared > 300, "{unchanged} {changed} {compared}");
}

#[test]
fn compressed_answers_hold_the_same_text() {
    let web = mixed();
    let mut visitor = Visitor::new(&web);
    let mut packed = 0;
    for entry in truth(&web).into_iter().filter(|entry| entry.kind == Kind::Page && entry.status == 200) {
        let plain = visitor.get(&entry.url, &[]);
        let seen = visitor.get(&entry.url, &[("accept-encoding", "gzip")]);
        let mut body = seen.body.clone();
        if seen.header("content-encoding") == Some("gzip") {
            body.clear();
            GzDecoder::new(&seen.body[..]).read_to_end(&mut body).unwrap();
            assert!(seen.header("etag").is_none_or(|etag| Some(etag) != plain.header("etag")));
            packed += 1;
        }
        assert_eq!(body, plain.body);
    }
    assert!(packed > 50, "{packed}");
}
