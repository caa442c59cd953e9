//! Bodies without end, without pace and without an honest length: rows 11 to 17.

use super::script::{self, ENDLESS, HTML, Script, Then, head};
use super::{Act, Asked, Hostile, Row};

/// Silence, unless said otherwise: longer than any visitor should wait.
const HOLD_MS: u64 = 600_000;
/// Time between two bytes of a slow server.
const SLOW_MS: u64 = 10_000;
/// Time between two pieces of a radio stream of about 128 kbit/s.
const RADIO_MS: u64 = 64;
/// Bytes of an oversized part of a chunked body.
const OVERSIZE_BYTES: u64 = 4 << 20;

pub(super) fn endless(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Endless)?;
    let every_ms = hostile.ms_or(0);
    let script = match form {
        "zeros" => {
            let headers = [("Content-Type", "application/octet-stream")];
            Script::stream(200, &headers).repeat(vec![0; 64 * 1024], ENDLESS, every_ms)
        }
        "chunks" => Script::raw(200, head(200, &[HTML, ("Transfer-Encoding", "chunked")])).repeat(
            b"1000\r\n".iter().copied().chain([b'x'; 0x1000]).chain(*b"\r\n").collect::<Vec<u8>>(),
            ENDLESS,
            every_ms,
        ),
        "page" => Script::stream(200, &[HTML]).send("<!DOCTYPE html><title>Endless</title>\n").repeat(
            "<p>And so on, and so on. <a href=\"/endless/page?again\">More</a></p>\n",
            ENDLESS,
            every_ms,
        ),
        _ => {
            let headers = [("Content-Type", "audio/mpeg"), ("icy-name", "Endless Radio"), ("icy-br", "128")];
            Script::stream(200, &headers).repeat(vec![0xff; 1_024], ENDLESS, hostile.ms_or(RADIO_MS))
        }
    };
    Act::script(form, script)
}

pub(super) fn slow(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Slow)?;
    let ms = hostile.ms_or(SLOW_MS);
    let page = script::page("Slow", "<p>Patience.</p>\n");
    let script = match form {
        "body" => {
            let length = page.len().to_string();
            Script::raw(200, head(200, &[HTML, ("Content-Length", &length)])).drip(page, ms).then(Then::Keep)
        }
        "head" => {
            let head = String::from_utf8_lossy(&head(200, &[HTML, ("Content-Length", "0")])).into_owned();
            Script { steps: Vec::new(), ..Script::raw(200, "") }.drip(head, ms)
        }
        "chunks" => {
            let chunks: Vec<u8> = page.bytes().flat_map(|byte| [b'1', b'\r', b'\n', byte, b'\r', b'\n']).collect();
            Script::raw(200, head(200, &[HTML, ("Transfer-Encoding", "chunked")])).drip(chunks, ms).send("0\r\n\r\n")
        }
        _ => Script::silence(ms.max(hostile.ms_or(HOLD_MS))),
    };
    Act::script(form, script)
}

pub(super) fn silent(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Silent)?;
    Act::script(form, Script::silence(hostile.ms_or(HOLD_MS)))
}

pub(super) fn length_long(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::LengthLong)?;
    let page = script::page("Short", "<p>There should be more.</p>\n<a href=\"/\">home</a>\n");
    let length = (page.len() + 100_000).to_string();
    let then = match form {
        "closed" => Then::Close,
        "reset" => Then::Reset,
        _ => Then::Hold { ms: hostile.ms_or(HOLD_MS) },
    };
    Act::script(form, Script::raw(200, head(200, &[HTML, ("Content-Length", &length)])).send(page).then(then))
}

pub(super) fn length_short(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::LengthShort)?;
    let page = script::page("Long", "<p>There is more than was said.</p>\n<a href=\"/\">home</a>\n");
    let more: Vec<u8> = match form {
        "text" => b"and this is more\n".repeat(1_000),
        "answer" => {
            let forged = script::page("Forged", "<p>An answer nobody asked for.</p>\n");
            let length = forged.len().to_string();
            [head(200, &[HTML, ("Content-Length", &length)]), forged.into_bytes()].concat()
        }
        _ => page.clone().into_bytes(),
    };
    let length = if form == "nothing-declared" { 0 } else { page.len() }.to_string();
    let start = Script::raw(200, head(200, &[HTML, ("Content-Length", &length)]));
    let start = if form == "nothing-declared" { start } else { start.send(page) };
    Act::script(form, start.send(more).then(Then::Keep))
}

pub(super) fn lengths(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Lengths)?;
    let page = script::page("Lengths", "<p>How long is this?</p>\n<a href=\"/\">home</a>\n");
    let length = page.len().to_string();
    let list = format!("{length}, {length}");
    let plus = format!("+{length}");
    let named: Vec<(&str, &str)> = match form {
        "and-chunked" => vec![("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
        "twice" => vec![("Content-Length", &length), ("Content-Length", "7")],
        "twice-equal" => vec![("Content-Length", &length), ("Content-Length", &length)],
        "list" => vec![("Content-Length", &list)],
        "negative" => vec![("Content-Length", "-1")],
        "plus" => vec![("Content-Length", &plus)],
        "huge" => vec![("Content-Length", "99999999999999999999999999")],
        "words" => vec![("Content-Length", "quite long")],
        _ => vec![("Content-Length", "")],
    };
    let headers: Vec<(&str, &str)> = [HTML].into_iter().chain(named).collect();
    let body = if form == "and-chunked" { format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len()) } else { page };
    Act::script(form, Script::raw(200, head(200, &headers)).send(body))
}

pub(super) fn chunks(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Chunks)?;
    let page = script::page("Chunks", "<p>In pieces.</p>\n<a href=\"/\">home</a>\n");
    let size = page.len();
    let oversize = hostile.bytes_or(OVERSIZE_BYTES);
    let start = Script::raw(200, head(200, &[HTML, ("Transfer-Encoding", "chunked")]));
    let good = format!("{size:x}\r\n{page}\r\n");
    let script = match form {
        "no-number" => start.send(good).send(format!("xyz\r\n{page}\r\n0\r\n\r\n")),
        "overflow" => start.send(good).send(format!("fffffffffffffffffff\r\n{page}\r\n0\r\n\r\n")),
        "bare-lf" => start.send(format!("{size:x}\n{page}\n0\n\n")),
        "no-last" => start.send(good),
        "extension" => {
            start.send(format!("{size:x};name=")).repeat("x", oversize, 0).send(format!("\r\n{page}\r\n0\r\n\r\n"))
        }
        "trailers" => {
            let line = "X-Trailer: a line that comes after everything\r\n";
            start.send(good).send("0\r\n").repeat(line, oversize / line.len() as u64, 0).send("\r\n")
        }
        "long-size" => start.repeat("0", oversize, 0).send(format!("{size:x}\r\n{page}\r\n0\r\n\r\n")),
        _ => start.send(format!("{:x}\r\n{page}", size + 1_000)).then(Then::Reset),
    };
    Act::script(form, script)
}
