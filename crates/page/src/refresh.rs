//! Where a page sends to after a while: the value of `Refresh` and of `<meta http-equiv=refresh>`.

/// The reference in such a value, as the HTML standard finds it. `None`: the page is only loaded again, or the value is none.
pub fn reference(value: &str) -> Option<&str> {
    let space = |c: char| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let value = value.trim_start_matches(space);
    let rest = value.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == value.len() && !rest.starts_with('.') {
        return None;
    }
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let after_time = rest.trim_start_matches(space);
    let rest = after_time.strip_prefix([';', ',']).unwrap_or(after_time);
    if !rest.is_empty() && rest.len() == after_time.len() && after_time.len() == value.len() {
        return None;
    }
    let rest = rest.trim_start_matches(space);
    if rest.is_empty() {
        return None;
    }
    let after_word = rest.get(..3).filter(|word| word.eq_ignore_ascii_case("url")).and_then(|_| {
        rest[3..].trim_start_matches(space).strip_prefix('=').map(|after| after.trim_start_matches(space))
    });
    let rest = after_word.unwrap_or(rest);
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => Some(rest[1..].split(quote).next().unwrap_or_default()),
        _ => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_reference() {
        for (value, wanted) in [
            ("0;url=/a", Some("/a")),
            (" 5 ; URL = '/a b' x", Some("/a b")),
            ("0, /a", Some("/a")),
            ("0 /a", Some("/a")),
            ("0.5; url=\"/a", Some("/a")),
            ("3; urls/x", Some("urls/x")),
            (".5; url=/a", Some("/a")),
            ("30", None),
            ("30;", None),
            ("", None),
            ("url=/a", None),
            ("x; url=/a", None),
        ] {
            assert_eq!(reference(value), wanted, "{value:?}");
        }
    }
}
