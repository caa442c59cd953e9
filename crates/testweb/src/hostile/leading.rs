//! Files that are meant to lead crawlers, and mislead them: rows 23 to 25 and 32.

use std::fmt::Write as _;

use super::coded;
use super::script::{self, ENDLESS, Script};
use super::{Act, Asked, Hostile, Row};
use crate::answer::Answer;
use crate::chance::Chance;

const TEXT: (&str, &str) = ("Content-Type", "text/plain; charset=utf-8");
const XML: (&str, &str) = ("Content-Type", "application/xml");
/// Bytes of a robots.txt that is too large, unless said otherwise.
const ROBOTS_BYTES: u64 = 100 << 20;
/// What a visitor reads of a robots.txt at least (RFC 9309, section 2.5), rounded up.
const ROBOTS_READ_BYTES: usize = 512 * 1024;
/// Bytes that the bomb among the sitemaps decodes to.
const SITEMAP_BYTES: u64 = 1 << 30;

pub(super) fn robots_size(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    if asked.path != "/robots.txt" {
        return None;
    }
    const RULES: &str = "User-agent: *\nDisallow: /private/\n";
    const COMMENT: &str = "# a line that says nothing, again and again, until nobody wants to read on\n";
    let bytes = hostile.bytes_or(ROBOTS_BYTES);
    let form = Row::RobotsSize.forms().iter().find(|form| form.name == hostile.whole())?.name;
    let script = match form {
        "huge" => Script::stream(200, &[TEXT])
            .send(RULES)
            .repeat(COMMENT, bytes / COMMENT.len() as u64, 0)
            .meaning(200, RULES),
        "endless" => {
            Script::stream(200, &[TEXT]).send(RULES).repeat(COMMENT, ENDLESS, hostile.ms_or(0)).meaning(200, RULES)
        }
        "slow" => Script::stream(200, &[TEXT]).drip(RULES.repeat(20), hostile.ms_or(10_000)).meaning(200, RULES),
        "binary" => {
            let body: Vec<u8> =
                (0..ROBOTS_READ_BYTES as u64 / 8).flat_map(|n| asked.chance.at(n).bits().to_le_bytes()).collect();
            Script::answer(200, &[("Content-Type", "application/octet-stream")], &body).meaning(200, body)
        }
        "html" => {
            let body = script::page("Welcome", "<p>Disallow: / is what this page does not mean.</p>\n");
            Script::answer(200, &[script::HTML], &body).meaning(200, body)
        }
        // Whoever gives up on it has no rules; whoever decodes it has none either.
        "bomb" => Script::answer(200, &[TEXT, ("Content-Encoding", "gzip")], coded::gzip_file(bytes)).meaning(200, ""),
        _ => Script::stream(200, &[TEXT])
            .send("User-agent: *\nDisallow: /private/")
            .repeat("x", bytes, 0)
            .send("\n")
            .meaning(200, "User-agent: *\n"),
    };
    Act::script(form, script)
}

pub(super) fn robots_redirects(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let form = Row::RobotsRedirects.forms().iter().find(|form| form.name == hostile.whole())?.name;
    let hop: u64 = match asked.path.strip_prefix("/robots.txt")? {
        "" => 0,
        rest => rest.strip_prefix("?hop=")?.parse().ok()?,
    };
    let to = match form {
        "itself" => "/robots.txt".to_string(),
        "circle" => if hop == 0 { "/robots.txt?hop=1" } else { "/robots.txt" }.to_string(),
        "chain" => format!("/robots.txt?hop={}", hop.wrapping_add(1)),
        "elsewhere" => format!("{}/robots.txt", asked.origin("row-24-elsewhere.test")),
        _ if asked.header("cookie").is_some_and(|cookie| cookie.contains("seen=yes")) => {
            return Act::answer(form, Answer::plain(200, TEXT.1, "User-agent: *\nDisallow: /private/\n"));
        }
        _ => "/robots.txt".to_string(),
    };
    // Redirects that do not end within five mean that there is no robots.txt; one elsewhere means what is there.
    let mut script = Script::answer(302, &[("Location", &to), ("Set-Cookie", "seen=yes; Path=/")], "");
    script =
        if form == "elsewhere" { script.meaning(200, "User-agent: *\nDisallow:\n") } else { script.meaning(302, "") };
    Act::script(form, script)
}

pub(super) fn robots_rules(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let form = Row::RobotsRules.forms().iter().find(|form| form.name == hostile.whole())?.name;
    if let Some(path) = asked.path.strip_prefix("/robots-rules/") {
        return Act::page(form, asked, &format!("<p>{} letters.</p>\n", path.len()));
    }
    if asked.path == "/" {
        let almost = "a".repeat(2_000);
        let body =
            format!("<a href=\"/robots-rules/{almost}\">near</a> <a href=\"/robots-rules/{almost}b\">nearer</a>\n");
        return Some(Act::front(Answer::found(super::HTML_TYPE, script::page(asked.host, &body), asked.begin)));
    }
    if asked.path != "/robots.txt" {
        return None;
    }
    let mut body = String::from("User-agent: *\n");
    if form == "many" {
        for rule in 0..100_000 {
            let _ = writeln!(body, "Disallow: /private/{rule}/*/x$");
        }
    } else {
        for rule in 1..200 {
            let _ = writeln!(body, "Disallow: /{}c{rule}$", "*a".repeat(rule));
        }
    }
    let meaning = body.as_bytes()[..body.len().min(ROBOTS_READ_BYTES)].to_vec();
    Act::script(form, Script::answer(200, &[TEXT], body).meaning(200, meaning))
}

pub(super) fn sitemaps(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let origin = asked.origin(asked.host);
    let address = |form: &str| format!("{origin}/sitemaps/{form}");
    if asked.path == "/robots.txt" {
        let mut body = String::from("User-agent: *\nDisallow:\n");
        let named = Row::Sitemaps.forms().iter().filter(|form| hostile.form.as_deref().is_none_or(|f| f == form.name));
        for form in named {
            let _ = writeln!(body, "Sitemap: {}", address(form.name));
        }
        return Some(Act::front(Answer::found(TEXT.1, body, asked.begin)));
    }
    let (form, rest) = asked.form(Row::Sitemaps)?;
    let index = |urls: &[String]| {
        let mut out = String::from(
            "<?xml version=\"1.0\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        urls.iter().for_each(|url| out += &format!("<sitemap><loc>{url}</loc></sitemap>\n"));
        out + "</sitemapindex>\n"
    };
    const OPEN: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
    let hop: u64 = rest.trim_start_matches("?hop=").parse().unwrap_or(0);
    let script = match form {
        "entities.xml" => {
            let mut out = String::from("<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [\n<!ENTITY e0 \"lol\">\n");
            for level in 1..12 {
                let inner = format!("&e{};", level - 1).repeat(10);
                let _ = writeln!(out, "<!ENTITY e{level} \"{inner}\">");
            }
            let _ = write!(out, "]>\n{OPEN}<url><loc>{origin}/&e11;</loc></url>\n</urlset>\n");
            Script::answer(200, &[XML], out)
        }
        "external.xml" => {
            let body = format!(
                "<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [\n<!ENTITY file SYSTEM \"file:///etc/hostname\">\n\
                 <!ENTITY net SYSTEM \"{}\">\n]>\n{OPEN}<url><loc>{origin}/&file;&net;</loc></url>\n</urlset>\n",
                address("fetched-as-entity")
            );
            Script::answer(200, &[XML], body)
        }
        "itself.xml" => Script::answer(200, &[XML], index(&[address("itself.xml"), address("itself.xml")])),
        "chain.xml" => {
            let next = address(&format!("chain.xml?hop={}", hop.wrapping_add(1)));
            Script::answer(200, &[XML], index(&[next]))
        }
        // Each index names ten more: a tree without leaves.
        "nested.xml" => {
            let more: Vec<String> = (0..10)
                .map(|n| address(&format!("nested.xml?hop={}", hop.wrapping_mul(10).wrapping_add(n + 1))))
                .collect();
            Script::answer(200, &[XML], index(&more))
        }
        "bomb.xml.gz" => {
            let body = coded::gzip_file(hostile.bytes_or(SITEMAP_BYTES));
            Script::answer(200, &[("Content-Type", "application/gzip")], body)
        }
        "million.xml" => Script::stream(200, &[XML])
            .send(format!("<?xml version=\"1.0\"?>\n{OPEN}"))
            .count(format!("<url><loc>{origin}/of-a-million/"), ".html</loc></url>\n", 1_000_000)
            .send("</urlset>\n"),
        _ => {
            let mut out = format!("<?xml version=\"1.0\"?>\n{OPEN}");
            for number in 0..100 {
                let host = format!("{}-{number}.foreign.test", crate::words::word(Chance::new(number)));
                let _ = writeln!(out, "<url><loc>http://{host}/</loc></url>");
            }
            Script::answer(200, &[XML], out + "</urlset>\n")
        }
    };
    Act::script(form, script)
}
