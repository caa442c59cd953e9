//! Heads of HTTP messages: well-formed, odd, and broken.

use skep_warc::http::limits::HTTP_HEAD_BYTES_MAX;
use skep_warc::http::{Head, Parsed, Rule};

fn response(message: &[u8]) -> (Head, usize) {
    let mut head = Head::new();
    match head.parse_response(message, true) {
        Parsed::Complete { body } => (head, body),
        other => panic!("{other:?} for {:?}", String::from_utf8_lossy(message)),
    }
}

fn rules(head: &Head) -> Vec<Rule> {
    head.deviations().iter().map(|d| d.rule).collect()
}

#[test]
fn a_clean_response_is_kept_as_it_stands() {
    let message = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\nset-cookie: a=1\r\nSet-Cookie:  b=2 \r\nX-Empty:\r\n\r\nbody";
    let (head, body) = response(message);
    assert_eq!(&message[body..], b"body");
    assert_eq!(head.raw(), &message[..body]);
    assert_eq!(head.first_line(), b"HTTP/1.1 200 OK");
    assert_eq!((head.version(), head.status(), head.reason()), (Some((1, 1)), Some(200), &b"OK"[..]));
    let names: Vec<_> = head.fields().map(|f| String::from_utf8_lossy(f.name).into_owned()).collect();
    assert_eq!(names, ["Content-Type", "set-cookie", "Set-Cookie", "X-Empty"]);
    assert_eq!(head.headers("SET-COOKIE").collect::<Vec<_>>(), [b"a=1", b"b=2"]);
    assert_eq!(head.header("x-empty"), Some(&b""[..]));
    assert_eq!(head.header("x"), None);
    assert_eq!(head.media_type(), Some(&b"text/html"[..]));
    assert_eq!(head.fields().nth(2).unwrap().line, b"Set-Cookie:  b=2 ");
    assert!(head.deviations().is_empty(), "{:?}", head.deviations());
}

/// Status line → status, reason, what is reported.
#[test]
fn status_lines_of_the_field() {
    use Rule::*;
    let table: &[(&str, Option<u16>, &str, &[Rule])] = &[
        ("HTTP/1.0 404 Not Found", Some(404), "Not Found", &[]),
        ("HTTP/1.1 200", Some(200), "", &[]),
        ("HTTP/1.1 200 ", Some(200), "", &[]),
        ("HTTP/2 200", Some(200), "", &[]),
        ("HTTP/2.0 301 Moved", Some(301), "Moved", &[]),
        ("http/1.1 200 ok", Some(200), "ok", &[]),
        ("HTTP/1.1  200   Fine ", Some(200), "Fine", &[]),
        ("HTTP/1.1\t200\tOK", Some(200), "OK", &[]),
        ("HTTP/1.1 0 OK", Some(0), "OK", &[]),
        ("HTTP/1.1 99 NOT OK 404 x", Some(99), "NOT OK 404 x", &[]),
        ("HTTP/1.1 099 HELLO", Some(99), "HELLO", &[]),
        ("HTTP 200 Document follows", Some(200), "Document follows", &[Version]),
        ("ICY 200 OK", Some(200), "OK", &[Version]),
        ("NCSA/1.5.1 200 OK", Some(200), "OK", &[Version]),
        ("HTTP/1. 1 200 OK", Some(200), "OK", &[Version]),
        ("HTTP/:1.1 200 OK", Some(200), "OK", &[Version]),
        ("HTTP/1.1: 200 OK", Some(200), "OK", &[Version]),
        ("HTTP:/1.1 200 OK", Some(200), "OK", &[Version]),
        ("HTTP/1.1 :200 OK", Some(200), "OK", &[Status]),
        ("HTTP/1.1 200: OK", Some(200), ": OK", &[Status]),
        ("HTTP/1.1 200OK", Some(200), "OK", &[Status]),
        ("HTTP/1.1 OK", None, "OK", &[Status]),
        ("HTTP/1.1 1000 BOO", None, "1000 BOO", &[Status]),
        ("HTTP/1.1", None, "", &[Status]),
        ("HTTP", None, "", &[Version, Status]),
        (":HTTP/1.1 200 OK", Some(200), "OK", &[LeadingBytes]),
        ("\r\n\r\nHTTP/1.1 200 OK", Some(200), "OK", &[LeadingBytes]),
        ("HTTP/1.1 200 OK\r\n and more", Some(200), "OK\r\n and more", &[StatusFolded]),
        ("HTTP/1.1\r\n 200 OK", Some(200), "OK", &[StatusFolded]),
        ("HTTP/1.\r1 200 OK", Some(200), "OK", &[BareCr, Version]),
        ("HTTP/1.1 200 O\0K", Some(200), "O\0K", &[Nul]),
    ];
    for (line, status, reason, deviations) in table {
        let message = format!("{line}\r\nA: b\r\n\r\nx");
        let (head, body) = response(message.as_bytes());
        assert_eq!(head.status(), *status, "{line:?}");
        assert_eq!(String::from_utf8_lossy(head.reason()), *reason, "{line:?}");
        assert_eq!(head.header("a"), Some(&b"b"[..]), "{line:?}");
        assert_eq!(&message[body..], "x", "{line:?}");
        assert_eq!(rules(&head), *deviations, "{line:?}");
    }
}

#[test]
fn what_is_no_http_is_all_body() {
    for message in [
        "",
        "<html>",
        "https://example.org/ is a link",
        "http://example.org/",
        "HTTPS is fine",
        "HT:TP/1.1 200 OK\r\n\r\n",
        "Chapter 100 of a book\n\n",
        "X/1 20 times",
    ] {
        assert_eq!(Head::new().parse_response(message.as_bytes(), true), Parsed::NotHttp, "{message:?}");
    }
}

#[test]
fn line_ends_and_where_the_body_begins() {
    for (message, body, deviation) in [
        ("HTTP/1.1 200 OK\nA: b\n\nbody", "body", Some(Rule::LineEnd)),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\nbody", "body", Some(Rule::LineEnd)),
        ("HTTP/1.1 200 OK\n\r\nA: b\r\n\r\nbody", "A: b\r\n\r\nbody", Some(Rule::LineEnd)),
        ("HTTP/1.1 200 OK\r\nA: b\r\r\n\r\nbody", "body", Some(Rule::BareCr)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", "", Some(Rule::HeadUnended)),
        ("HTTP/1.1 200 OK\r\nA: b", "", Some(Rule::HeadUnended)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n<html>\n<p>text", "<html>\n<p>text", Some(Rule::HeadUnended)),
        ("HTTP/1.1 200 OK\r\n\r\n", "", None),
        ("HTTP/1.1 200 OK\r\n\r\n\r\n", "\r\n", None),
    ] {
        let (head, at) = response(message.as_bytes());
        assert_eq!(&message[at..], body, "{message:?}");
        assert_eq!(rules(&head).first(), deviation.as_ref(), "{message:?}");
    }
}

#[test]
fn odd_fields_are_kept_and_named() {
    let (head, _) = response(
        b"HTTP/1.1 200 OK\r\nFolded: one\r\n\ttwo\r\n  three\r\nSpace : x\r\nno colon here\r\n: empty name\r\nNul: a\0b\r\nBare: a\rb\r\nB\xe4d: \xff\r\nLast: ::\r\n\r\n",
    );
    let folded = head.fields().next().unwrap();
    assert_eq!(folded.value, b"one\r\n\ttwo\r\n  three");
    assert_eq!(&*folded.unfolded(), b"one two three");
    assert_eq!(folded.line, b"Folded: one\r\n\ttwo\r\n  three");
    assert_eq!(head.header("space"), Some(&b"x"[..]));
    assert_eq!(head.header("nul"), Some(&b"a\0b"[..]));
    assert_eq!(head.header("bare"), Some(&b"a\rb"[..]));
    assert_eq!(head.header("last"), Some(&b"::"[..]));
    assert_eq!(head.fields().count(), 6);
    assert_eq!(head.lines().count(), 8);
    assert_eq!(head.lines().nth(2).unwrap().line, b"no colon here");
    use Rule::*;
    let mut found = rules(&head);
    found.sort();
    let mut wanted = vec![Folded, SpaceBeforeColon, NoColon, Nul, BareCr, FieldName];
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn a_first_field_with_leading_space_is_a_field() {
    let (head, _) = response(b"HTTP/1.1 200 OK\r\n X-Frame-Options:DENY\r\nA: b\r\n\r\n");
    assert_eq!(head.reason(), b"OK");
    assert_eq!(head.header("x-frame-options"), Some(&b"DENY"[..]));
    assert_eq!(rules(&head), [Rule::SpaceBeforeColon]);
}

#[test]
fn media_types_as_indexes_want_them() {
    for (value, media, mime) in [
        ("text/html", "text/html", Some("text/html")),
        ("Text/HTML; Charset=X", "Text/HTML", Some("text/html")),
        ("  text/html charset=x", "text/html", Some("text/html")),
        ("text/html;charset=x", "text/html", Some("text/html")),
        ("text/html, text/plain", "text/html,", Some("text/html,")),
        ("", "", None),
        (";", "", None),
    ] {
        let (head, _) = response(format!("HTTP/1.1 200 OK\r\nContent-Type: {value}\r\n\r\n").as_bytes());
        assert_eq!(head.media_type().unwrap(), media.as_bytes(), "{value:?}");
        assert_eq!(head.mime().as_deref(), mime, "{value:?}");
    }
    assert_eq!(response(b"HTTP/1.1 200 OK\r\n\r\n").0.mime(), None);
    let (head, _) = response(b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-type: c/d\r\n\r\n");
    assert_eq!((head.mime().as_deref(), rules(&head)), (Some("a/b"), vec![Rule::ContentTypeRepeated]));
}

#[test]
fn content_length_is_a_number_or_a_deviation() {
    for (fields, length, deviates) in [
        ("Content-Length: 5\r\n", Some(5), false),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Some(5), false),
        ("Content-Length: 5, 5\r\n", Some(5), false),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", None, true),
        ("Content-Length: -1\r\n", None, true),
        ("Content-Length: 99999999999999999999\r\n", None, true),
        ("Content-Length:\r\n", None, true),
        ("", None, false),
    ] {
        let (head, _) = response(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes());
        assert_eq!(head.content_length(), length, "{fields:?}");
        assert_eq!(rules(&head).contains(&Rule::ContentLengthInvalid), deviates, "{fields:?}");
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let message = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
    let (head, body) = response(message);
    assert_eq!((head.status(), &message[body..]), (Some(200), &b"body"[..]));
    assert_eq!(head.raw(), &message[..body]);
    assert_eq!(head.fields().count(), 1);
    assert_eq!(rules(&head), [Rule::Interim]);
    assert_eq!(response(b"HTTP/1.1 100 Continue\r\n\r\n").0.status(), Some(100));
    assert_eq!(response(b"HTTP/1.1 101 Switching\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").0.status(), Some(101));
}

/// However the bytes arrive, the answer is the same, and it comes as soon as the head is whole.
#[test]
fn a_growing_window_gives_the_same_answer() {
    let message = b"HTTP/1.1 200 OK\r\nA: b\r\n  c\r\n\r\nbody of the message";
    let (whole, body) = response(message);
    let mut head = Head::new();
    for length in 0..=message.len() {
        match head.parse_response(&message[..length], false) {
            Parsed::NeedMore => assert!(length < body, "still more wanted at {length}"),
            Parsed::Complete { body: at } => {
                assert_eq!(at, body);
                assert_eq!(head.raw(), whole.raw());
                assert_eq!(head.fields().collect::<Vec<_>>(), whole.fields().collect::<Vec<_>>());
            }
            Parsed::NotHttp => panic!("at {length}"),
        }
    }
    assert_eq!(head.parse_response(b"<html>", false), Parsed::NeedMore);
    assert_eq!(head.parse_response(b"<html><head></head>", false), Parsed::NotHttp);
}

#[test]
fn a_head_without_end_is_cut_at_the_bound() {
    let mut message = b"HTTP/1.1 200 OK\r\n".to_vec();
    while message.len() < HTTP_HEAD_BYTES_MAX + 100 {
        message.extend_from_slice(b"Field: value\r\n");
    }
    let mut head = Head::new();
    let Parsed::Complete { body } = head.parse_response(&message, false) else { panic!() };
    assert!(body <= HTTP_HEAD_BYTES_MAX && body > HTTP_HEAD_BYTES_MAX - 100);
    assert_eq!(rules(&head), [Rule::HeadTooLong]);
    let endless = [b"HTTP/1.1 200 ".to_vec(), vec![b'a'; HTTP_HEAD_BYTES_MAX]].concat();
    assert_eq!(head.parse_response(&endless, false), Parsed::NotHttp);
    assert_eq!(head.parse_response(&endless[..HTTP_HEAD_BYTES_MAX - 1], false), Parsed::NeedMore);
}

#[test]
fn requests() {
    let table: &[(&str, &str, &str, Option<(u8, u8)>, &[Rule])] = &[
        ("GET / HTTP/1.1", "GET", "/", Some((1, 1)), &[]),
        ("POST http://a.example/b?c HTTP/1.0", "POST", "http://a.example/b?c", Some((1, 0)), &[]),
        ("M-SEARCH * HTTP/1.1", "M-SEARCH", "*", Some((1, 1)), &[]),
        ("GET /a b HTTP/1.1", "GET", "/a b", Some((1, 1)), &[Rule::RequestLine]),
        ("GET /", "GET", "/", None, &[Rule::Version]),
        ("GET  HTTP/1.1", "GET", "", Some((1, 1)), &[Rule::RequestLine]),
    ];
    for (line, method, target, version, deviations) in table {
        let message = format!("{line}\r\nHost: a.example\r\n\r\nbody");
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_request(message.as_bytes(), true) else { panic!("{line}") };
        assert_eq!(String::from_utf8_lossy(head.method()), *method);
        assert_eq!(String::from_utf8_lossy(head.target()), *target);
        assert_eq!(head.version(), *version, "{line}");
        assert_eq!(head.header("host"), Some(&b"a.example"[..]));
        assert_eq!(&message[body..], "body");
        assert_eq!(rules(&head), *deviations, "{line}");
    }
    for message in ["", "<html>", "no request here\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", " GET / HTTP/1.1\r\n\r\n"] {
        assert_eq!(Head::new().parse_request(message.as_bytes(), true), Parsed::NotHttp, "{message:?}");
    }
    assert_eq!(Head::new().parse_request(b"GE", false), Parsed::NeedMore);
    assert_eq!(Head::new().parse_request(b"GET / HT", false), Parsed::NeedMore);
}

#[test]
fn a_head_of_blank_continuation_lines_takes_as_long_as_its_bytes() {
    let lines = HTTP_HEAD_BYTES_MAX / 2 - 100;
    let message = [b"HTTP/1.1 200 OK\nA: b\n".as_slice(), &b" \n".repeat(lines), b" c\n \nD:\n \n e\n\n"].concat();
    let (head, body) = response(&message);
    assert_eq!(body, message.len());
    let fields: Vec<_> = head.fields().map(|field| field.unfolded().into_owned()).collect();
    assert_eq!(fields, [b"b c".to_vec(), b"e".to_vec()]);
    assert_eq!(head.fields().map(|field| field.line.len()).collect::<Vec<_>>(), [4 + 2 * lines + 5, 7]);
}
