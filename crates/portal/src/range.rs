//! The header Range: one part of a body. Pure.

/// What a Range header asks of a body of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything: no range, one that is not understood, or several at once.
    Whole,
    /// From the first byte to the last, both included.
    Part {
        /// The first byte.
        first: u64,
        /// The last byte.
        last: u64,
    },
    /// Nothing that the body has.
    Unsatisfiable,
}

/// Reads a Range header against a body of `length` bytes.
pub fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(ranges) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else { return Wanted::Whole };
    if ranges.contains(',') {
        return Wanted::Whole;
    }
    let Some((first, last)) = ranges.trim().split_once('-') else { return Wanted::Whole };
    let number = |text: &str| match text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        true => None,
        // More digits than fit are behind the end of everything.
        false => Some(text.parse::<u64>().unwrap_or(u64::MAX)),
    };
    match (number(first), number(last), first.is_empty(), last.is_empty()) {
        (None, Some(suffix), true, _) => match length.min(suffix) {
            0 => Wanted::Unsatisfiable,
            count => Wanted::Part { first: length - count, last: length - 1 },
        },
        (Some(first), _, _, true) if first < length => Wanted::Part { first, last: length - 1 },
        (Some(first), Some(last), ..) if first <= last && first < length => {
            Wanted::Part { first, last: last.min(length - 1) }
        }
        (Some(first), Some(last), ..) if first > last => Wanted::Whole,
        (Some(_), _, _, true) | (Some(_), Some(_), ..) => Wanted::Unsatisfiable,
        _ => Wanted::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |first, last| Wanted::Part { first, last };
        for (header, wanted_of_ten) in [
            (None, Wanted::Whole),
            (Some("bytes=0-0"), part(0, 0)),
            (Some("bytes=2-"), part(2, 9)),
            (Some("bytes=2-100"), part(2, 9)),
            (Some("bytes=-3"), part(7, 9)),
            (Some("bytes=-100"), part(0, 9)),
            (Some("bytes=9-9"), part(9, 9)),
            (Some("bytes=10-"), Wanted::Unsatisfiable),
            (Some("bytes=10-12"), Wanted::Unsatisfiable),
            (Some("bytes=-0"), Wanted::Unsatisfiable),
            (Some("bytes=99999999999999999999999-"), Wanted::Unsatisfiable),
            (Some("bytes=5-2"), Wanted::Whole),
            (Some("bytes=1-2,4-5"), Wanted::Whole),
            (Some("bytes=a-b"), Wanted::Whole),
            (Some("bytes=-"), Wanted::Whole),
            (Some("lines=1-2"), Wanted::Whole),
            (Some(""), Wanted::Whole),
        ] {
            assert_eq!(wanted(header, 10), wanted_of_ten, "{header:?}");
        }
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Unsatisfiable);
    }
}
