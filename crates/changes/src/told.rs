//! An event as it is told: a CloudEvent in one line of JSON. Logs are told from their beginning by the million, so the line is put
//! together from what is kept, without formats.

use skep_archive::Position;
use skep_url::Url;
use skep_warc::date;

use crate::cursor::Cursor;
use crate::delta::Delta;
use crate::event::{HOST, Kept, SCHEMA, TEMPLATE};

/// A key as told: the position of its record, and what else is told of that one.
pub(crate) fn key_text(key: Position) -> String {
    let mut text = String::new();
    push_key(key, &mut text);
    text
}

impl Kept<'_> {
    /// The key as told: the position of its record, and what else is told of that one.
    pub fn key_text(&self) -> String {
        key_text(self.key)
    }

    /// As told: a CloudEvent in one line of JSON, without its end. The attributes `cursor` and `key` are ours.
    pub fn json(&self, cursor: &Cursor, out: &mut String) {
        self.json_with(cursor, None, out);
    }

    /// The same with the delta of the text: in the data, for an attribute of a CloudEvent is of a simple type.
    pub fn json_with(&self, cursor: &Cursor, delta: Option<&Delta>, out: &mut String) {
        out.reserve(self.details.len() + self.url.len() + 512);
        out.push_str("{\"specversion\":\"1.0\",\"id\":\"");
        let cursor_from = out.len();
        out.push_str(&cursor.node);
        out.push(':');
        push_number(cursor.number, out);
        let cursor_to = out.len();
        out.push_str("\",\"source\":\"urn:skep:");
        out.push_str(&cursor.node);
        out.push_str("\",\"type\":\"");
        out.push_str(self.kind());
        out.push_str("\",\"time\":\"");
        out.push_str(&date::rfc3339(self.time_ms));
        out.push_str("\",\"subject\":");
        push_text(self.url, out);
        out.push_str(",\"partitionkey\":");
        match self.host() {
            // What takes another event back has no details.
            "" => {
                let host = Url::parse(self.url).map(|url| url.host_name().to_owned()).unwrap_or_default();
                push_text(&host, out);
            }
            host => push_text(host, out),
        }
        out.push_str(",\"datacontenttype\":\"application/json\",\"dataschema\":\"");
        out.push_str(SCHEMA);
        out.push_str("\",\"cursor\":\"");
        out.extend_from_within(cursor_from..cursor_to);
        out.push_str("\",\"key\":\"");
        push_key(self.key, out);
        out.push_str("\",\"data\":");
        // Details are an object, as they were written; more goes before its end.
        let data_from = out.len();
        out.push_str(self.details);
        // What takes another event back says nothing of it.
        if !self.was.is_empty() && !self.classes.is_empty() {
            let names = self.was.iter().map(|class| format!("\"{}\"", class.name())).collect::<Vec<_>>();
            push_field("was", &format!("[{}]", names.join(",")), data_from, out);
        }
        if let Some(delta) = delta {
            push_field("delta", &delta.json(), data_from, out);
        }
        out.push('}');
    }
}

/// Puts a field into the object with which a text ends; what does not end with one stays as it is.
fn push_field(name: &str, json: &str, object_from: usize, out: &mut String) {
    if out.len() > object_from && out.ends_with('}') {
        out.pop();
        let comma = if out.ends_with('{') { "" } else { "," };
        for part in [comma, "\"", name, "\":", json, "}"] {
            out.push_str(part);
        }
    }
}

/// Appends the key as told.
fn push_key(key: Position, out: &mut String) {
    for shift in (0..8).rev() {
        out.push(char::from(b"0123456789abcdef"[(key.writer.0 >> (shift * 4) & 15) as usize]));
    }
    for number in [key.segment, key.record & !(HOST | TEMPLATE)] {
        out.push(':');
        push_number(number.into(), out);
    }
    out.push_str(match key.record {
        record if record & HOST != 0 => "/host",
        record if record & TEMPLATE != 0 => "/template",
        _ => "",
    });
}

/// Appends a number.
fn push_number(mut number: u64, out: &mut String) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[from..].iter().copied().map(char::from));
}

/// Appends a text as JSON.
fn push_text(text: &str, out: &mut String) {
    let plain = text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    match plain {
        true => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        false => out.push_str(&serde_json::Value::from(text).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::push_number;

    #[test]
    fn numbers_have_all_their_digits() {
        for number in [0, 9, 10, 1_000_000, u64::MAX] {
            let mut text = String::new();
            push_number(number, &mut text);
            assert_eq!(text, number.to_string());
        }
    }
}
