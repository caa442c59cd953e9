//! Two captures of a URL beside each other: as text with what differs marked, or as they looked.

use super::frame::{self, and_scope, encoded, in_scope, link, moment};
use crate::answer::{Answer, escape};
use crate::api::capture::address;
use crate::api::url;
use crate::cdx::params::Params;
use crate::changes::trouble;
use crate::find::Looking;
use crate::limits::{COMPARED_BYTES_MAX, COMPARED_CHOICES_MAX};
use crate::portal::Origin;
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{replay, time};
use skep_archive::{Capture, Key};
use skep_changes::Settings;
use skep_page::Input;
use skep_page::version::{Nature, Version};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::date;
use std::io::{BufRead, Read};

/// Compares two captures; without times, the two newest versions.
pub fn page(look: &Looking<'_>, params: &Params, visit: &Visit) -> Result<Answer, Trouble> {
    let asked = super::url::asked(params)?;
    let url = asked.text("url");
    let (captures, _) = url::captures(look, &asked)?;
    let firsts = url::firsts(&captures);
    let versions: Vec<&Capture> =
        captures.iter().enumerate().filter(|(index, _)| firsts[*index] == *index).map(|(_, capture)| capture).collect();
    let Some(newest) = versions.last() else {
        return Err(Trouble::missing("There is no capture of this URL here."));
    };
    let before = versions.len().checked_sub(2).and_then(|index| versions.get(index)).unwrap_or(newest);
    let old = chosen(look, params, "a", url)?.unwrap_or_else(|| (*before).clone());
    let new = chosen(look, params, "b", url)?.unwrap_or_else(|| (*newest).clone());
    let rendered = params.get("view") == Some("rendered");
    let (a, b) = (time::digits(old.time_ms), time::digits(new.time_ms));
    let here = format!("/compare?url={}{}&a={a}&b={b}", encoded(url), and_scope(look));
    let mut body = format!("<p class=\"url\"><code>{}</code></p>\n{}", escape(url), in_scope(look));
    body.push_str(&form(look, url, &versions, &a, &b, rendered));
    body.push_str(&match rendered {
        false => format!("<p>Text. {}</p>\n", link(&format!("{here}&view=rendered"), "As it looked")),
        true => format!("<p>As it looked. {}</p>\n", link(&here, "Text")),
    });
    if rendered {
        let origin = match &look.portal.origin {
            Origin::Own => visit.base.clone(),
            Origin::Other { origin, .. } => origin.clone(),
        };
        body.push_str(&frames(look, &origin, url, [&old, &new]));
        return Ok(frame::framing(look, "Two versions", &body, Some(&origin)));
    }
    body.push_str(&texts(look, url, &old, &new));
    Ok(frame::page(look, "Two versions", &body))
}

fn chosen(look: &Looking<'_>, params: &Params, name: &str, url: &str) -> Result<Option<Capture>, Trouble> {
    let Some(time_ms) = params.moment(name, time::earliest)? else { return Ok(None) };
    let key = Key::of(url);
    replay::pick(look.nearest(&key, time_ms)?, url)
}

fn form(look: &Looking<'_>, url: &str, versions: &[&Capture], a: &str, b: &str, rendered: bool) -> String {
    let skipped = versions.len().saturating_sub(COMPARED_CHOICES_MAX);
    let choice = |name: &str, label: &str, chosen: &str| {
        let mut out = format!("<label>{label} <select name=\"{name}\">");
        let mut there = false;
        for version in &versions[skipped..] {
            let digits = time::digits(version.time_ms);
            let selected = if digits == chosen { " selected" } else { "" };
            there |= digits == chosen;
            out.push_str(&format!("<option value=\"{digits}\"{selected}>{}</option>", date::rfc3339(version.time_ms)));
        }
        if !there {
            out.push_str(&format!("<option value=\"{0}\" selected>{0}</option>", escape(chosen)));
        }
        out.push_str("</select></label> ");
        out
    };
    let collection = match look.scope.name() {
        crate::portal::EVERYTHING => String::new(),
        name => format!("<input type=\"hidden\" name=\"collection\" value=\"{}\">", escape(name)),
    };
    format!(
        "<form action=\"/compare\"><input type=\"hidden\" name=\"url\" value=\"{}\">{collection}{}{}{}<button>Compare</button></form>\n",
        escape(url),
        if rendered { "<input type=\"hidden\" name=\"view\" value=\"rendered\">" } else { "" },
        choice("a", "Before", a),
        choice("b", "After", b),
    )
}

fn frames(look: &Looking<'_>, origin: &str, url: &str, captures: [&Capture; 2]) -> String {
    let apart = matches!(look.portal.origin, Origin::Other { .. });
    let sandbox = match (look.portal.scripts, apart) {
        (true, true) => "allow-scripts allow-same-origin",
        (true, false) => "allow-scripts",
        (false, true) => "allow-same-origin",
        (false, false) => "",
    };
    let one = |capture: &Capture, title: &str| {
        let digits = time::digits(capture.time_ms);
        format!(
            "<section><h2>{title}: {}</h2><iframe src=\"{}\" title=\"{title}\" sandbox=\"{sandbox}\" referrerpolicy=\"same-origin\"></iframe></section>",
            moment(&date::rfc3339(capture.time_ms)),
            escape(&address(&format!("{origin}/{}/{digits}mp_/{url}", look.scope.name())))
        )
    };
    format!("<div class=\"frames\">{}{}</div>\n", one(captures[0], "Before"), one(captures[1], "After"))
}

fn texts(look: &Looking<'_>, url: &str, old: &Capture, new: &Capture) -> String {
    let (was, is) = match (text(look, old), text(look, new)) {
        (Ok(was), Ok(is)) => (was, is),
        (Err(trouble), _) | (_, Err(trouble)) => {
            look.portal.note(&trouble);
            return format!("<p class=\"wrong\">{}</p>\n", escape(&trouble.told));
        }
    };
    let (Some(was), Some(is)) = (was, is) else {
        let same = old.digest.is_some() && old.digest == new.digest;
        let told = if same { "Both have the same payload." } else { "This is no text; its payloads differ." };
        return format!("<p>{told}</p>\n");
    };
    let found = skep_page::compare::show(&was, &is);
    let head = |capture: &Capture, title: &str| {
        let to = address(&format!("/{}/{}/{url}", look.scope.name(), time::digits(capture.time_ms)));
        format!(
            "<th scope=\"col\">{title}: <a href=\"{}\">{}</a></th>",
            escape(&to),
            moment(&date::rfc3339(capture.time_ms))
        )
    };
    let told = match (found.old_lines, found.new_lines) {
        (0, 0) => "The text is the same.".to_owned(),
        (old, new) => format!("{old} lines before, {new} lines after differ."),
    };
    let cut = if found.cut { " Only the beginning was compared." } else { "" };
    format!(
        "<p>{told}{cut}</p>\n<table class=\"differences\"><thead><tr>{}{}</tr></thead><tbody>{}</tbody></table>\n",
        head(old, "Before"),
        head(new, "After"),
        found.html()
    )
}

/// The text of a capture by the rules for its site, as `skep diff` has it; `None` for what is none.
fn text(look: &Looking<'_>, capture: &Capture) -> Result<Option<String>, Trouble> {
    let Ok(url) = Url::parse(&capture.url) else { return Ok(None) };
    let settings = Settings::of(&look.portal.archive).map_err(trouble)?;
    replay::open(look, capture, |shown, mut source| {
        let mut body = Vec::new();
        let decoded: Box<dyn BufRead + '_> = match shown.body_head {
            Some(head) => Box::new(coding::decode(head, &mut source, Bounds::default())),
            None => Box::new(&mut source),
        };
        decoded.take(COMPARED_BYTES_MAX).read_to_end(&mut body).map_err(|error| Trouble::reading(&error))?;
        let version = Version::read(&Input { url: &url, head: shown.head, body: &body }, settings.rules(&url).0);
        let kind = shown.media_type.to_ascii_lowercase();
        let plain = ["text/", "json", "xml", "javascript"].iter().any(|name| kind.contains(name));
        Ok(match version.nature {
            Nature::Page | Nature::Text => Some(version.text),
            Nature::Code | Nature::File => plain.then(|| String::from_utf8_lossy(&body).into_owned()),
        })
    })
}
