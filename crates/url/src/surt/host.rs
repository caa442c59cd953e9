//! Host names as the CDX world writes them: international names by IDNA 2003, dots tidied, IPv4 in its plain form.
//!
//! The rules are those of 2003 on purpose. Keys of twenty years of indexes were made with them (`straße.de` is `strasse.de`
//! there), and a key that follows today's UTS #46 would not find what they name. For fetching see [`crate::Url`].

use std::borrow::Cow;
use std::net::Ipv4Addr;

use stringprep::tables;
use unicode_normalization::UnicodeNormalization;

const LABEL_BYTES_MAX: usize = 63;

/// The canonical bytes of a host, still unescaped and without regard to upper and lower case.
pub(super) fn canonical(raw: &[u8]) -> Vec<u8> {
    let bytes = super::escape::unescape(raw);
    let named = if bytes.is_ascii() { None } else { to_ascii(&valid_text(&bytes)) };
    let dotted = tidy_dots(named.as_deref().unwrap_or(&bytes));
    match ipv4(&dotted) {
        Some(address) => address.to_string().into_bytes(),
        None => dotted,
    }
}

/// The text in `bytes`; what is not UTF-8 is left out.
fn valid_text(bytes: &[u8]) -> String {
    bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// IDNA 2003 `ToASCII` over a whole name; `None` where a label is empty, too long or has a prohibited character.
fn to_ascii(name: &str) -> Option<Vec<u8>> {
    let mut labels: Vec<&str> = match name.is_ascii() {
        true => name.split('.').collect(),
        false => name.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).collect(),
    };
    let ends_in_dot = labels.last() == Some(&"");
    if ends_in_dot {
        labels.pop();
    }
    let mut out = Vec::with_capacity(name.len() + 8);
    for (i, label) in labels.iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label_to_ascii(label)?.as_bytes());
    }
    if ends_in_dot {
        out.push(b'.');
    }
    Some(out)
}

fn label_to_ascii(label: &str) -> Option<Cow<'_, str>> {
    let fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    if label.is_ascii() {
        return fits(label).then_some(Cow::Borrowed(label));
    }
    let prepared = nameprep(label)?;
    if prepared.is_ascii() {
        return fits(&prepared).then_some(Cow::Owned(prepared));
    }
    if prepared.starts_with("xn--") || prepared.len() > 16 * LABEL_BYTES_MAX {
        return None;
    }
    let encoded = format!("xn--{}", idna::punycode::encode_str(&prepared)?);
    fits(&encoded).then_some(Cow::Owned(encoded))
}

/// RFC 3491, with unassigned code points let through (a look-up, not a registration).
fn nameprep(label: &str) -> Option<String> {
    let folded: String = label.chars().filter(|&c| !tables::commonly_mapped_to_nothing(c)).flat_map(fold).collect();
    let prepared = nfkc_of_unicode_3_2(&folded);
    let prohibited = |c: char| {
        tables::non_ascii_space_character(c)
            || tables::non_ascii_control_character(c)
            || tables::private_use(c)
            || tables::non_character_code_point(c)
            || tables::surrogate_code(c)
            || tables::inappropriate_for_plain_text(c)
            || tables::inappropriate_for_canonical_representation(c)
            || tables::change_display_properties_or_deprecated(c)
            || tables::tagging_character(c)
    };
    if prepared.chars().any(prohibited) {
        return None;
    }
    let right_to_left = |c: char| !tables::unassigned_code_point(c) && tables::bidi_r_or_al(c);
    let left_to_right = |c: char| !tables::unassigned_code_point(c) && tables::bidi_l(c);
    if prepared.chars().any(right_to_left) {
        let framed = prepared.starts_with(right_to_left) && prepared.ends_with(right_to_left);
        if !framed || prepared.chars().any(left_to_right) {
            return None;
        }
    }
    Some(prepared)
}

/// Table B.2 of RFC 3454; a letter whose lower case came after Unicode 3.2 is lowered first.
fn fold(c: char) -> impl Iterator<Item = char> {
    let newer = tables::case_fold_for_nfkc(c).eq([c]).then(|| c.to_lowercase().flat_map(tables::case_fold_for_nfkc));
    let known = newer.is_none().then(|| tables::case_fold_for_nfkc(c));
    newer.into_iter().flatten().chain(known.into_iter().flatten())
}

/// IDNA 2003 stands on Unicode 3.2: a character that came later is inert, whatever later tables make of it.
fn nfkc_of_unicode_3_2(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(tables::unassigned_code_point) {
        out.extend(rest[..at].nfkc());
        let newer = rest[at..].chars().next().unwrap_or_default();
        out.push(newer);
        rest = &rest[at + newer.len_utf8()..];
    }
    out.extend(rest.nfkc());
    out
}

/// No dot at either end, and each pair of dots made one: `a..b` is `a.b`, but of three or four dots in a row two stay,
/// as in every index there is.
fn tidy_dots(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = memchr::memmem::find(rest, b"..") {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    let start = out.iter().take_while(|&&b| b == b'.').count();
    out.drain(..start);
    out.truncate(out.iter().rposition(|&b| b != b'.').map_or(0, |last| last + 1));
    out
}

/// An IPv4 address in one of the forms that the C library reads: one to four numbers, each decimal or octal, the last
/// one filling the bytes that are left. A lone number is always decimal, and only its low 32 bits count.
pub(super) fn ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    if !host.first()?.is_ascii_digit() || !host.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return None;
    }
    if !host.contains(&b'.') {
        let low = host.iter().fold(0u32, |n, digit| n.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
        return Some(Ipv4Addr::from(low));
    }
    if host[0] == b'0' && host.iter().any(|b| matches!(b, b'8' | b'9')) {
        return None;
    }
    let parts: Vec<u64> = host.split(|&b| b == b'.').map(number).collect::<Option<_>>()?;
    let (&last, leading) = parts.split_last()?;
    if parts.len() > 4 || leading.iter().any(|&part| part > 255) || last >> (8 * (4 - leading.len())) != 0 {
        return None;
    }
    let high = leading.iter().zip([24, 16, 8]).map(|(part, shift)| part << shift).sum::<u64>();
    u32::try_from(high | last).ok().map(Ipv4Addr::from)
}

fn number(digits: &[u8]) -> Option<u64> {
    let (radix, digits) = match digits {
        [] => return None,
        [b'0', rest @ ..] => (8, rest),
        _ => (10, digits),
    };
    digits.iter().try_fold(0u64, |n, &digit| {
        let digit = u64::from(digit - b'0');
        if digit >= radix { None } else { n.checked_mul(radix)?.checked_add(digit) }
    })
}

/// What follows a leading `www.`, `www1.`, `www23.`, …; hosts that differ only in it are taken for one.
pub(super) fn without_www(host: &[u8]) -> &[u8] {
    let Some(rest) = host.strip_prefix(b"www") else { return host };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b".").unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(host: &str, wanted: &str) {
        assert_eq!(String::from_utf8_lossy(&canonical(host.as_bytes())), wanted, "{host}");
    }

    #[test]
    fn ipv4_in_every_form_the_c_library_reads() {
        becomes("127.0.0.1", "127.0.0.1");
        becomes("127.1", "127.0.0.1");
        becomes("2130706433", "127.0.0.1");
        becomes("0177.0.0.01", "127.0.0.1");
        becomes("10.0.258", "10.0.1.2");
        becomes("10.0.65535", "10.0.255.255");
        becomes("1.010.1.1", "1.8.1.1");
        becomes("39024579298", "22.11.210.226");
        becomes("010", "0.0.0.10");
    }

    #[test]
    fn almost_addresses_stay_names() {
        for name in
            ["10.0.65536", "256.1.1.1", "1.2.3.4.5", "010.8.1.1", "0400.1.1.1", "0x7f.0.0.1", "1.1.1.256", "1.09.1.1"]
        {
            becomes(name, name);
        }
    }

    #[test]
    fn international_names_by_the_rules_of_2003() {
        becomes("bücher.ch", "xn--bcher-kva.ch");
        becomes("BÜCHER.ch", "xn--bcher-kva.ch");
        becomes("straße.de", "strasse.de");
        becomes("☃.com", "xn--n3h.com");
        becomes("foo。com", "foo.com");
        becomes("😀.com", "xn--e28h.com");
        becomes("a\u{ad}.com", "a.com");
        becomes("ẞ.com", "ss.com");
        becomes("Ӏ.ru", "xn--s5a.ru");
    }

    #[test]
    fn a_name_that_idna_refuses_keeps_its_bytes() {
        becomes("ü..com", "ü.com");
        becomes("אa.com", "אa.com");
        assert_eq!(canonical(b"\xfc.com"), b"\xfc.com");
        assert_eq!(canonical(b"foo%80com"), b"foocom");
    }

    #[test]
    fn dots_are_tidied() {
        becomes(".a.com.", "a.com");
        becomes("a..com...", "a.com");
        becomes("a....com", "a..com");
        becomes("....", "");
    }

    #[test]
    fn www_with_any_number_goes_once() {
        for (host, wanted) in [
            ("www.foo.com", "foo.com"),
            ("www12.foo.com", "foo.com"),
            ("www.www2.foo.com", "www2.foo.com"),
            ("www2foo.com", "www2foo.com"),
            ("wwwa.foo.com", "wwwa.foo.com"),
            ("www", "www"),
        ] {
            assert_eq!(without_www(host.as_bytes()), wanted.as_bytes());
        }
    }
}
