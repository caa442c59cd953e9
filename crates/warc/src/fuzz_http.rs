//! Fuzz targets for what stands inside records: HTTP heads, chunked bodies, encoded content. Each takes any bytes and panics
//! when something that must always hold does not.

use std::io::{self, BufRead, Read};

use crate::coding::{BoundError, Bounds, Coding, Decoded};
use crate::http::{Body, Deviation, Head, Parsed, Rule};

/// Bounds under which content is decoded here: small enough to be met often.
const BOUNDS: Bounds = Bounds { output_bytes_max: 1 << 20, ratio_max: 100, ratio_free_bytes: 64 << 10 };

/// Hands out at most `step` bytes at a time.
struct Crumbs<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl BufRead for Crumbs<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.bytes[..self.bytes.len().min(self.step)])
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes = &self.bytes[bytes..];
    }
}

impl Read for Crumbs<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// Any bytes as the head of a response and of a request.
pub fn fuzz_http_head(bytes: &[u8]) {
    let mut head = Head::new();
    let mut earlier = Head::new();
    type Parse = fn(&mut Head, &[u8], bool) -> Parsed;
    for parse in [Head::parse_response as Parse, Head::parse_request as Parse] {
        let whole = parse(&mut head, bytes, true);
        assert_ne!(whole, Parsed::NeedMore, "nothing more will come");
        if let Parsed::Complete { body } = whole {
            assert_eq!(head.raw(), &bytes[..body], "the head is kept as it stood");
            let mut at = 0;
            for line in head.lines() {
                assert_eq!(&bytes[line.offset..line.offset + line.line.len()], line.line);
                assert!(line.offset >= at && line.offset + line.line.len() <= body, "lines follow each other");
                assert!(line.name.len() + line.value.len() <= line.line.len());
                assert!(line.unfolded().len() <= line.value.len());
                at = line.offset + line.line.len();
            }
            assert!(head.fields().count() <= head.lines().count());
            assert!(
                head.fields().all(|f| head.header(&String::from_utf8_lossy(f.name)).is_some() || !f.name.is_ascii())
            );
            assert!(head.status().is_none_or(|status| status <= 999));
            let _ =
                (head.mime(), head.content_length(), head.is_chunked(), head.reason(), head.target(), head.method());
        }
        assert!(head.deviations().len() <= Rule::ALL.len());
        // What a part of the bytes settles, the rest does not change.
        for part in [bytes.len() / 4, bytes.len() / 2, bytes.len() * 3 / 4, bytes.len()] {
            match parse(&mut earlier, &bytes[..part], false) {
                Parsed::NeedMore => {}
                settled => {
                    assert_eq!(settled, whole, "after {part} of {} bytes", bytes.len());
                    assert_eq!(earlier.raw(), head.raw());
                    assert_eq!(earlier.deviations(), head.deviations());
                }
            }
        }
    }
}

/// Any bytes as a chunked body.
pub fn fuzz_chunked(bytes: &[u8]) {
    let mut head = Head::new();
    head.parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true);
    let run = |step: usize| -> (Vec<u8>, Vec<Deviation>, Vec<u8>) {
        let mut body = Body::new(&head, Crumbs { bytes, step });
        let mut out = Vec::new();
        body.read_to_end(&mut out).expect("a body is never an error");
        let deviations = body.deviations().copied().collect();
        let trailer = body.trailer().to_vec();
        assert!(body.into_inner().bytes.is_empty(), "everything is taken");
        (out, deviations, trailer)
    };
    let whole = run(usize::MAX);
    assert!(whole.0.len() <= bytes.len(), "nothing is invented");
    if whole.1.iter().any(|d| d.rule == Rule::NotChunked) {
        assert_eq!(whole.0, bytes, "what is not chunked passes as it stands");
    }
    for step in [1, 2, 13, 1000] {
        assert_eq!(run(step), whole, "in steps of {step}");
    }
}

/// Any bytes as encoded content; the first byte chooses the codings.
pub fn fuzz_content_coding(bytes: &[u8]) {
    const STACKS: [&[Coding]; 6] = [
        &[Coding::Gzip],
        &[Coding::Deflate],
        &[Coding::Brotli],
        &[Coding::Zstd],
        &[Coding::Gzip, Coding::Gzip],
        &[Coding::Zstd, Coding::Deflate, Coding::Brotli],
    ];
    let Some((&first, content)) = bytes.split_first() else { return };
    let codings = STACKS[usize::from(first) % STACKS.len()];
    let run = |step: usize| {
        let mut decoded = Decoded::new(Crumbs { bytes: content, step }, codings, BOUNDS);
        let mut out = Vec::new();
        let result =
            decoded.read_to_end(&mut out).map_err(|error| BoundError::of(&error).expect("only bounds are errors"));
        (out, result, decoded.deviations().iter().map(|d| d.rule).collect::<Vec<_>>())
    };
    let (out, result, deviations) = run(usize::MAX);
    assert!(out.len() as u64 <= BOUNDS.output_bytes_max.max(content.len() as u64), "the bound holds");
    assert!(deviations.len() <= Rule::ALL.len());
    for step in [1, 777] {
        let (crumbs, crumbs_result, _) = run(step);
        assert_eq!(result.is_ok(), crumbs_result.is_ok(), "in steps of {step}");
        if result.is_ok() {
            assert!(crumbs == out, "in steps of {step}: {} bytes, else {}", crumbs.len(), out.len());
        }
    }
}
