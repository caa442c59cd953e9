//! Addresses in pages that should not be followed as they stand: rows 21, 22, 26 to 28 and 47.

use std::fmt::Write as _;

use super::script::{self, HTML, Script};
use super::{Act, Asked, Row};
use crate::answer::Answer;

/// Longest path that a careful visitor asks for.
const PATH_BYTES_MAX: usize = 8_192;
/// The secret that links and cookies carry, and that must not come back at another name.
const SECRET: &str = "hunter2";
/// Its form in an `Authorization` header: base64 of `visitor:hunter2`.
const SECRET_BASIC: &str = "dmlzaXRvcjpodW50ZXIy";
/// The header that is smuggled into requests.
const INJECTED: &str = "x-injected";

/// Ports of other protocols that links lead to.
pub(crate) const BAD_PORTS: [u16; 12] = [22, 23, 25, 53, 110, 143, 2049, 5060, 6000, 6379, 6667, 10080];
/// Those that a web may listen on to see who comes.
pub(crate) const BAD_PORTS_HEARD: [u16; 5] = [5060, 6000, 6379, 6667, 10080];

pub(super) fn private_addresses(asked: &Asked) -> Option<Act> {
    if asked.host != asked.name {
        // Two names lead to the host itself, too; whoever asks here for another came over a forbidden address.
        let own = Row::PrivateAddresses
            .forms()
            .iter()
            .find(|form| matches!(form.name, "rebinding" | "mixed") && asked.host.split('.').next() == Some(form.name));
        return match own {
            Some(form) => Act::page(form.name, asked, "<p>So far nothing is wrong.</p>\n"),
            None => Act::page("reached", asked, "<p>This should not be read by anyone.</p>\n"),
        };
    }
    let forms = Row::PrivateAddresses.forms();
    if asked.path == "/" {
        let mut body = String::new();
        for form in forms.iter().filter(|form| !matches!(form.name, "redirect" | "literals")) {
            let _ = writeln!(
                body,
                "<a href=\"{}/\">{}</a>",
                asked.origin(&format!("{}.{}", form.name, asked.name)),
                form.name
            );
        }
        for form in ["redirect", "literals"] {
            let _ = writeln!(body, "<a href=\"/private-addresses/{form}\">{form}</a>");
        }
        for path in asked.ordinary {
            let _ = writeln!(body, "<a href=\"{}\">more</a>", crate::page::escape(path));
        }
        return Some(Act::front(Answer::found(super::HTML_TYPE, script::page(asked.host, &body), asked.begin)));
    }
    let (form, rest) = asked.form(Row::PrivateAddresses)?;
    let literals = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[64:ff9b::7f00:1]",
        "[fe80::1]",
        "[fc00::1]",
        "localhost",
    ];
    match form {
        "redirect" => {
            let place: usize = rest.trim_start_matches('/').parse().unwrap_or(literals.len());
            match literals.get(place) {
                Some(to) => {
                    Act::answer(form, Answer::redirect(302, &format!("http://{to}{}/private-addresses/", asked.port)))
                }
                None => {
                    let links: String = (0..literals.len())
                        .map(|place| format!("<a href=\"/private-addresses/redirect/{place}\">{place}</a>\n"))
                        .collect();
                    Act::page(form, asked, &links)
                }
            }
        }
        _ => {
            let links: String = literals
                .iter()
                .map(|literal| format!("<a href=\"http://{literal}{}/private-addresses/\">{literal}</a>\n", asked.port))
                .collect();
            Act::page(form, asked, &links)
        }
    }
}

pub(super) fn ports(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Ports)?;
    if form == "redirect"
        && let Ok(port) = rest.trim_start_matches('/').parse::<u16>()
    {
        return Act::answer(form, Answer::redirect(302, &format!("http://{}:{port}/", asked.name)));
    }
    let mut body = String::new();
    for port in BAD_PORTS {
        let _ = match form {
            "links" => writeln!(body, "<a href=\"http://{}:{port}/\">{port}</a>", asked.name),
            _ => writeln!(body, "<a href=\"/ports/redirect/{port}\">{port}</a>"),
        };
    }
    Act::page(form, asked, &body)
}

pub(super) fn long_urls(asked: &Asked) -> Option<Act> {
    if asked.path.len() > PATH_BYTES_MAX {
        return Act::page("too-long-asked", asked, "<p>What a long question.</p>\n");
    }
    let (form, _) = asked.form(Row::LongUrls)?;
    let long = |bytes: usize| format!("/long-urls/{}", "x".repeat(bytes));
    match form {
        "links" => {
            let mut body = String::new();
            for bytes in [8_000, 9_000, 64 << 10, 2 << 20] {
                let _ = writeln!(body, "<a href=\"{}\">{bytes}</a>", long(bytes));
                let _ = writeln!(body, "<a href=\"/long-urls/?q={}\">{bytes}</a>", "%C3%A4".repeat(bytes / 6));
            }
            Act::page(form, asked, &body)
        }
        "redirect" => Act::script(form, Script::answer(302, &[("Location", &long(64 << 10))], "")),
        _ => {
            let data = "A".repeat(1 << 20);
            let body = format!(
                "<a href=\"data:text/html;base64,{data}\">data</a>\n<img src=\"data:image/png;base64,{data}\">\n\
                 <a href=\"javascript:void(document.location='/long-urls/script')\">script</a>\n\
                 <a href=\"blob:http://x.test/1\">blob</a> <a href=\"mailto:a@b.test\">mail</a>\n\
                 <a href=\"ftp://x.test/\">ftp</a> <a href=\"file:///etc/passwd\">file</a>\n\
                 <a href=\"tel:1\">tel</a> <a href=\"about:blank\">about</a> <a href=\"ws://x.test/\">socket</a>\n\
                 <a href=\"http://\">no host</a> <a href=\"http:///x\">three</a> <a href=\"http://[::\">open</a>\n"
            );
            Act::page(form, asked, &body)
        }
    }
}

pub(super) fn control_bytes(asked: &Asked) -> Option<Act> {
    if asked.headers.contains_key(INJECTED) {
        return Act::page("injected", asked, "<p>A line too many.</p>\n");
    }
    let (form, rest) = asked.form(Row::ControlBytes)?;
    if form == "links" && rest.is_empty() {
        let mut body = Vec::from("<!DOCTYPE html><title>Control bytes</title>\n");
        let raw = |inside: &str| format!("/control-bytes/links/{inside}");
        for inside in [
            "a HTTP/1.1\r\nX-Injected: yes\r\n\r\n",
            "b%20HTTP/1.1%0d%0aX-Injected:%20yes%0d%0a",
            "c&#13;&#10;X-Injected: yes",
            "d\tx",
            "e\u{b}x",
            "f%00x",
            "g\u{7f}x",
            "h\u{2028}x",
        ] {
            body.extend_from_slice(format!("<a href=\"{}\">x</a>\n", raw(inside)).as_bytes());
        }
        body.extend_from_slice(
            b"<a href=\"/control-bytes/links/nul\0x\">x</a>\n<a href=\"/control-bytes/links/\xff\xfe\">x</a>\n",
        );
        return Act::script(form, Script::answer(200, &[HTML], body));
    }
    if form == "redirect" && rest.is_empty() {
        let location =
            b"HTTP/1.1 302 Found\r\nLocation: /control-bytes/redirect/a\x01b%0d%0aX-Injected:%20yes\tc d\x80\r\n\
                         Content-Length: 0\r\nConnection: close\r\n\r\n";
        return Act::script(form, Script::raw(302, &location[..]));
    }
    Act::page(form, asked, "<p>Asked as it should be.</p>\n")
}

pub(super) fn credentials(asked: &Asked) -> Option<Act> {
    let carries = |name: &str| {
        let value = asked.header(name).unwrap_or_default();
        value.contains(SECRET) || value.contains(SECRET_BASIC)
    };
    let other = format!("other.{}", asked.name);
    if asked.host == other {
        let form =
            if carries("cookie") || carries("authorization") || carries("referer") { "leaked" } else { "other-name" };
        return Act::page(form, asked, "<p>Another name.</p>\n");
    }
    let (form, _) = asked.form(Row::Credentials)?;
    let to = format!("{}/credentials/arrived", asked.origin(&other));
    match form {
        "links" => {
            let origin = asked.origin(asked.name);
            let with = origin.replacen("://", &format!("://visitor:{SECRET}@"), 1);
            let elsewhere = asked.origin(&other).replacen("://", &format!("://visitor:{SECRET}@"), 1);
            let body = format!("<a href=\"{with}/credentials/demand\">one</a> <a href=\"{elsewhere}/\">two</a>\n");
            Act::page(form, asked, &body)
        }
        "redirect" => {
            let cookie = format!("session={SECRET}; Path=/; Domain={}", asked.name);
            let strict = format!("own={SECRET}; Path=/; HttpOnly");
            Act::script(
                form,
                Script::answer(302, &[("Location", &to), ("Set-Cookie", &cookie), ("Set-Cookie", &strict)], ""),
            )
        }
        _ if carries("authorization") => Act::answer(form, Answer::redirect(302, &to)),
        _ => {
            let page = script::page("Who are you?", "<p>Say who you are.</p>\n");
            Act::script(form, Script::answer(401, &[HTML, ("WWW-Authenticate", "Basic realm=\"hostile\"")], page))
        }
    }
}

pub(super) fn paths(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Paths)?;
    if form == "attachment" {
        let names = ["../../../../tmp/escaped", "C:\\autoexec.bat", "/etc/cron.d/x", "CON", "a\\..\\..\\b"];
        let place: usize = rest.trim_start_matches('/').parse().unwrap_or(names.len());
        let Some(name) = names.get(place) else {
            let links: String =
                (0..names.len()).map(|place| format!("<a href=\"/paths/attachment/{place}\">{place}</a>\n")).collect();
            return Act::page(form, asked, &links);
        };
        let disposition = format!("attachment; filename=\"{name}\"");
        let headers = [("Content-Type", "application/octet-stream"), ("Content-Disposition", disposition.as_str())];
        return Act::script(form, Script::answer(200, &headers, "a file with a dangerous name\n"));
    }
    if !rest.is_empty() {
        return Act::answer(
            form,
            Answer::plain(200, "text/plain; charset=utf-8", "an address with a dangerous name\n"),
        );
    }
    let mut body = String::new();
    let long = "n".repeat(300);
    let longer = "n".repeat(5_000);
    for name in [
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/x",
        "..%5c..%5cwindows",
        "..\\..\\x",
        "nul%00.html",
        "CON",
        "aux.txt",
        "LPT1",
        "COM1.html",
        "C:\\windows\\system32",
        "C:%5Cx",
        "~root/x",
        "$(touch%20x)",
        "`x`",
        ";rm%20-rf%20x",
        "|x",
        "x%0a.html",
        "trailing.",
        "trailing%20",
        ".hidden",
        ".git/config",
        "-rf",
        "%E2%80%AEgpj.exe",
        "a%2Fb",
        "%25252e%25252e/",
        "UPPER",
        "upper",
        "%F0%9F%90%9D",
        "%ff%fe",
        "con::$data",
        "*?<>|",
        &long,
        &longer,
    ] {
        let _ = writeln!(body, "<a href=\"/paths/links/{}\">x</a>", crate::page::escape(name));
    }
    Act::page(form, asked, &body)
}
