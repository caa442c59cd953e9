//! Content that hurts whoever looks into it: rows 30, 31, 33 and 46.

use super::script::{self, HTML, Script};
use super::{Act, Asked, Hostile, Row};

pub(super) fn markup(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Markup)?;
    let start = Script::stream(200, &[HTML]).send("<!DOCTYPE html>\n<title>Markup</title>\n<body>\n");
    let end = "<a href=\"/\">home</a>\n";
    let size = |bytes: u64| hostile.bytes_or(bytes);
    let script = match form {
        "tags" => start.repeat("<b>", size(30_000_000) / 3, 0).send(end),
        "nesting" => start.repeat("<div>", size(500_000) / 5, 0).send(end),
        "attribute" => start.send("<a href=\"/x\" title=\"").repeat("x", size(5 << 20), 0).send("\">x</a>\n").send(end),
        "attributes" => start.send("<a href=\"/x\"").count(" a", "=x", size(1_200_000) / 12).send(">x</a>\n").send(end),
        "links" => start.count("<a href=\"/of-a-million/", "\">x</a>\n", size(36_000_000) / 36).send(end),
        "comment" => start.send("<!-- ").repeat("- <a href=\"/commented\"> ", size(8 << 20) / 24, 0),
        _ => start.send("<a href=\"").repeat("/never/closed ", size(8 << 20) / 14, 0),
    };
    Act::script(form, script)
}

pub(super) fn patterns(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Patterns)?;
    let bytes = hostile.bytes_or(1 << 20);
    let page = Script::stream(200, &[HTML]).send("<!DOCTYPE html>\n<title>Patterns</title>\n");
    let script = match form {
        // Each of these is the worst case of a pattern that is found in the wild: nested quantifiers, blanks before an
        // end that never comes, quotes that never close, addresses that nearly are one.
        "text" => page
            .repeat("a", bytes / 4, 0)
            .send("!\n")
            .repeat(" ", bytes / 4, 0)
            .send("x\n<script>var u = \"")
            .repeat("http://a.", bytes / 36, 0)
            .repeat("\\\"", bytes / 8, 0)
            .send("</script>\n"),
        "entities" => page.repeat("&amp;&#38;&#x26;&#0;&#x110000;&#99999999999;&notit;&", bytes / 50, 0),
        "css" => {
            let css = Script::stream(200, &[("Content-Type", "text/css")]);
            css.repeat("@import url(", bytes / 24, 0).repeat("a{b:url(\"", bytes / 18, 0).repeat("/*", bytes / 8, 0)
        }
        "srcset" => page.send("<img srcset=\"").repeat("a 1x, ,,,( ", bytes / 11, 0).send("\">\n"),
        _ => {
            let link = "<".repeat(20_000);
            let media = format!("text/html; charset={}", "\"\\".repeat(5_000));
            let body = script::page("Patterns", "<p>Look at the head.</p>\n");
            Script::answer(200, &[("Content-Type", media.as_str()), ("Link", link.as_str())], body)
        }
    };
    Act::script(form, script)
}

pub(super) fn charsets(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Charsets)?;
    let page = "<!DOCTYPE html>\n<title>Gr\u{fc}\u{df}e</title>\n<p>\u{201c}Stra\u{df}e\u{201d} \u{20ac}</p>\n\
                <a href=\"/charsets/found?q=\u{fc}\">\u{fc}ber</a>\n";
    let latin: Vec<u8> = page.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
    let (media, body): (&str, Vec<u8>) = match form {
        "utf-16" => ("text/html", page.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        "utf-7" => {
            let body = "<!DOCTYPE html>\n<title>+AEE-</title>\n+ADw-script+AD4-alert(1)+ADw-/script+AD4-\n\
                        +ADw-a href=\"/charsets/utf-seven\"+AD4-x+ADw-/a+AD4-\n";
            ("text/html; charset=utf-7", body.into())
        }
        "latin-as-utf-8" => ("text/html; charset=utf-8", latin),
        "utf-8-as-latin" => ("text/html; charset=iso-8859-1", page.into()),
        "mixed" => ("text/html; charset=utf-8", [page.as_bytes(), &latin, b"<meta charset=koi8-r>\n\xf0\xff"].concat()),
        "unknown" => ("text/html; charset=klingon-8; charset=utf-8", page.into()),
        _ => {
            let body = b"<!DOCTYPE html>\n<meta charset=\"shift_jis\">\n<title>\x83\x65\x83\x58\x83\x67</title>\n\
                         <a href=\"/charsets/\x95\x5c?q=\x83\x65\">\x81\x5c</a>\n";
            ("text/html", body.to_vec())
        }
    };
    Act::script(form, Script::answer(200, &[("Content-Type", media)], body))
}

pub(super) fn opaque(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Opaque)?;
    let program =
        [b"MZ\x90\0\x03\0\0\0".as_slice(), &[0; 52], b"\x80\0\0\0This program cannot be run here.\r\r\n$"].concat();
    let page = script::page("Inside", "<a href=\"/opaque/found-inside\">x</a>\n<script>alert(1)</script>\n");
    let (media, body): (&str, Vec<u8>) = match form {
        // The harmless test pattern of virus scanners, in two halves so that this file does not hold it.
        "eicar" => (
            "text/plain",
            ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat().into(),
        ),
        "program.exe" => ("application/octet-stream", program),
        "page.jpg" => ("image/jpeg", page.into()),
        "names.tar" => ("application/x-tar", tar("../../../../tmp/escaped", b"out of the archive\n")),
        "program.html" => ("text/html", program),
        "polyglot.gif" => ("image/gif", [b"GIF89a/*".as_slice(), page.as_bytes(), b"*/=1;\0;"].concat()),
        _ => ("", [b"\0\x01\x02".as_slice(), page.as_bytes()].concat()),
    };
    let headers = [("Content-Type", media)];
    Act::script(form, Script::answer(200, if media.is_empty() { &[] } else { &headers }, body))
}

/// An archive of one file, in the form of 1988.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut out = header.to_vec();
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(512) + 1_024, 0);
    out
}
