//! The candidates of a `srcset` attribute, as the HTML standard splits them.

use crate::value::is_space;

/// The URL of each candidate, in order.
pub fn candidates(set: &str) -> impl Iterator<Item = &str> {
    let mut rest = set;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii() && is_space(c as u8));
        if rest.is_empty() {
            return None;
        }
        let end = rest.bytes().position(is_space).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        rest = if bare.len() < url.len() { after } else { after_descriptors(after) };
        Some(bare)
    })
}

/// What follows the comma that ends a candidate; commas in parentheses do not.
fn after_descriptors(text: &str) -> &str {
    let mut inside = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => inside = true,
            b')' => inside = false,
            b',' if !inside => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits() {
        for (set, wanted) in [
            ("a.png 1x, b.png 2x", &["a.png", "b.png"][..]),
            (" ,, a.png ,b.png", &["a.png", "b.png"]),
            ("a,b.png 1x,c.png", &["a,b.png", "c.png"]),
            ("a.png,, b.png", &["a.png", "b.png"]),
            ("a.png calc(1x, 2x), b.png", &["a.png", "b.png"]),
            ("data:image/png;base64,AA== 1x\n, x 100w 50h", &["data:image/png;base64,AA==", "x"]),
            ("a.png x(,", &["a.png"]),
            ("", &[]),
            (" , ", &[]),
        ] {
            assert_eq!(candidates(set).collect::<Vec<_>>(), wanted, "{set:?}");
        }
    }
}
