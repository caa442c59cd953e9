//! Heads that break the rules: rows 18 to 20 and 29.

use super::script::{self, ENDLESS, HTML, Script, Then, head};
use super::{Act, Asked, Hostile, Row};

/// Bytes of an oversized header.
const LONG_BYTES: u64 = 1 << 20;
/// Header lines, and interim answers, that are too many.
const MANY: u64 = 10_000;
/// Bytes of a `Cookie` header that no careful visitor sends.
const COOKIE_BYTES_MAX: usize = 8 * 1024;

pub(super) fn headers(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Headers)?;
    let page = script::page("Headers", "<p>See above.</p>\n<a href=\"/\">home</a>\n");
    let end = format!("Content-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len());
    let start = Script::raw(200, "HTTP/1.1 200 OK\r\n");
    let bytes = hostile.bytes_or(LONG_BYTES);
    let script = match form {
        "no-colon" => start.send("a line without any\r\n"),
        "nul" => start.send(&b"X-Nul: a\0b\r\n"[..]),
        "bare-lf" => Script::raw(200, format!("HTTP/1.1 200 OK\nX: y\n{}", end.replace("\r\n", "\n"))),
        "bare-cr" => start.send("X-Carriage: a\rb\r\n"),
        "blanks" => start.send("X Blank: a\r\nX-Before : b\r\n : c\r\n"),
        "folded" => start.send("X-Folded: a\r\n  b\r\n\tc\r\n"),
        "many" => start.repeat("X-Line: one of many\r\n", MANY, 0),
        "long" => start.send("X-Long: ").repeat("x", bytes, 0).send("\r\n"),
        "endless" => start.repeat("X-Line: one of ever more\r\n", ENDLESS, hostile.ms_or(0)),
        _ => start.send(&b"X-Bytes: \xe9\xff\x80\r\n\xe9t\xe9: summer\r\n"[..]),
    };
    Act::script(form, if form == "bare-lf" { script } else { script.send(end) })
}

pub(super) fn status_lines(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::StatusLines)?;
    let page = script::page("Status", "<p>What status?</p>\n<a href=\"/\">home</a>\n");
    let rest = format!("Content-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len());
    let (status, line) = match form {
        "0.9" => return Act::script(form, Script::raw(0, page)),
        "icy" => (200, "ICY 200 OK\r\n"),
        "2.0" => (200, "HTTP/2.0 200 OK\r\n"),
        "garbage" => (0, "\x16\x03\x01 what is this\r\n"),
        "999" => (999, "HTTP/1.1 999 Request denied\r\n"),
        "0" => (0, "HTTP/1.1 0 Nothing\r\n"),
        "99" => (99, "HTTP/1.1 99 Too short\r\n"),
        "1000" => (0, "HTTP/1.1 1000 Too long\r\n"),
        "words" => (0, "HTTP/1.1 OK fine\r\n"),
        "glued" => (0, "HTTP/1.1 200OK\r\n"),
        "no-reason" => (200, "HTTP/1.1 200\r\n"),
        _ => (200, "\r\n\r\n\r\nHTTP/1.1 200 OK\r\n"),
    };
    Act::script(form, Script::raw(status, format!("{line}{rest}")))
}

pub(super) fn interim(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Interim)?;
    let page = script::page("Interim", "<p>At last.</p>\n<a href=\"/\">home</a>\n");
    let length = page.len().to_string();
    let last = [head(200, &[HTML, ("Content-Length", &length)]), page.clone().into_bytes()].concat();
    let nothing = Script { steps: Vec::new(), ..Script::raw(200, "") };
    let script = match form {
        "flood" => nothing.repeat("HTTP/1.1 102 Processing\r\n\r\n", MANY, 0).send(last),
        "endless" => nothing.repeat("HTTP/1.1 100 Continue\r\n\r\n", ENDLESS, hostile.ms_or(0)),
        "upgrade" => {
            let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: gopher\r\nConnection: Upgrade\r\n\r\n";
            Script::raw(101, answer).send("iThis is gopher now\r\n.\r\n")
        }
        "204-body" => Script::raw(204, head(204, &[HTML, ("Content-Length", &length)])).send(page).then(Then::Keep),
        "304-body" => Script::raw(304, head(304, &[HTML, ("Content-Length", &length)])).send(page).then(Then::Keep),
        _ => Script::raw(200, "HTTP/1.1 103 Early Hints\r\nLink: </hinted.css>; rel=preload; as=style\r\n\r\n")
            .send(last)
            .then(Then::Keep),
    };
    Act::script(form, script)
}

pub(super) fn cookies(asked: &Asked) -> Option<Act> {
    if asked.header("cookie").is_some_and(|cookie| cookie.len() > COOKIE_BYTES_MAX) {
        return Act::page("cookies-returned", asked, "<p>So many cookies.</p>\n");
    }
    let (form, rest) = asked.form(Row::Cookies)?;
    let next: u64 = rest.trim_start_matches('/').parse().unwrap_or(0) + 1;
    let page =
        script::page("Cookies", &format!("<a href=\"/cookies/{form}/{next}\">next</a> <a href=\"/\">home</a>\n"));
    let mut head = String::from("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n");
    match form {
        "many" => (0..1_000).for_each(|n| head += &format!("Set-Cookie: c{n}={n}; Path=/\r\n")),
        "giant" => head += &format!("Set-Cookie: giant={}; Path=/\r\n", "x".repeat(LONG_BYTES as usize)),
        "growing" => {
            let value = "x".repeat(100);
            (0..100).for_each(|n| head += &format!("Set-Cookie: c{next}x{n}={value}; Path=/\r\n"));
        }
        _ => {
            for domain in ["test", ".com", "example.com", "127.0.0.1", ""] {
                head += &format!("Set-Cookie: foreign=yes; Domain={domain}; Path=/\r\n");
            }
        }
    }
    head += &format!("Content-Length: {}\r\n\r\n{page}", page.len());
    Act::script(form, Script::raw(200, head).then(Then::Keep))
}
