//! The decoders behind one face: bytes in, bytes out, and where they stand.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::gzip::Gzip;
use super::{Coding, PROBE_BYTES, ZSTD_WINDOW_LOG_MAX};
use crate::http::Rule;

/// Output of a trial that is thrown away, in bytes.
const TRIAL_BYTES: usize = 4 * PROBE_BYTES;

/// A cut stream without signature must give at least so many bytes to be believed.
const UNSIGNED_BYTES_MIN: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    More,
    /// Nothing more will come out.
    End,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub consumed: usize,
    pub produced: usize,
    pub state: State,
    pub deviation: Option<Rule>,
}

impl Progress {
    pub fn more(consumed: usize, produced: usize) -> Progress {
        Progress { consumed, produced, state: State::More, deviation: None }
    }

    pub fn end(consumed: usize, produced: usize, deviation: Option<Rule>) -> Progress {
        Progress { consumed, produced, state: State::End, deviation }
    }
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(super) enum Decoder {
    Gzip(Gzip),
    Inflate { inflate: Decompress, done: bool },
    Brotli { state: Box<Brotli>, done: bool },
    Zstd { context: DCtx<'static>, frame_ended: bool, fresh: bool },
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decoder::Gzip(_) => "Gzip",
            Decoder::Inflate { .. } => "Inflate",
            Decoder::Brotli { .. } => "Brotli",
            Decoder::Zstd { .. } => "Zstd",
        })
    }
}

impl Decoder {
    /// A decoder for bytes that begin with `first`, or `None` when these are not encoded that way. `ended`: they are all.
    pub fn probe(coding: Coding, first: &[u8], ended: bool) -> Option<Decoder> {
        match coding {
            Coding::Gzip => first.starts_with(&[0x1f, 0x8b, 8]).then(|| Decoder::Gzip(Gzip::new())),
            Coding::Zstd => is_zstd(first).then(Decoder::zstd),
            Coding::Brotli => fits(Decoder::brotli(), first, ended, false).then(Decoder::brotli),
            Coding::Deflate => {
                let zlib = matches!(first, [cmf, flags, ..]
                    if cmf & 15 == 8 && cmf >> 4 <= 7 && (usize::from(*cmf) << 8 | usize::from(*flags)) % 31 == 0);
                if zlib && fits(Decoder::inflate(true), first, ended, true) {
                    return Some(Decoder::inflate(true));
                }
                fits(Decoder::inflate(false), first, ended, false).then(|| Decoder::inflate(false))
            }
        }
    }

    fn inflate(zlib: bool) -> Decoder {
        Decoder::Inflate { inflate: Decompress::new(zlib), done: false }
    }

    fn brotli() -> Decoder {
        // Strict: windows up to 16 MiB as RFC 7932 has them, not the 1 GiB of the large-window extension.
        let alloc = StandardAlloc::default;
        Decoder::Brotli { state: Box::new(Brotli::new_strict(alloc(), alloc(), alloc())), done: false }
    }

    fn zstd() -> Decoder {
        let mut context = DCtx::create();
        context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).expect("a window log within zstd's range");
        Decoder::Zstd { context, frame_ended: true, fresh: true }
    }

    /// Decodes from `input` into `out`. `ended`: no input follows, and `input` is empty.
    pub fn decode(&mut self, input: &[u8], ended: bool, out: &mut [u8]) -> Progress {
        match self {
            Decoder::Gzip(gzip) => gzip.decode(input, ended, out),
            Decoder::Inflate { done: true, .. } | Decoder::Brotli { done: true, .. } => {
                Progress::end(0, 0, (!input.is_empty()).then_some(Rule::ContentAfterEnd))
            }
            Decoder::Inflate { inflate, done } => {
                let (consumed, produced, status) = inflate_step(inflate, input, out);
                match status {
                    Ok(ended) => {
                        *done = ended;
                        Progress::more(consumed, produced)
                    }
                    Err(()) => Progress::end(consumed, produced, Some(Rule::ContentDamaged)),
                }
            }
            Decoder::Brotli { state, done } => brotli_step(state, done, input, out),
            Decoder::Zstd { context, frame_ended, fresh } => {
                if ended && *frame_ended {
                    return Progress::end(0, 0, None);
                }
                zstd_step(context, frame_ended, fresh, input, out)
            }
        }
    }
}

/// One call of inflate: bytes taken, bytes given, and whether the stream ended or is broken.
pub(super) fn inflate_step(inflate: &mut Decompress, input: &[u8], out: &mut [u8]) -> (usize, usize, Result<bool, ()>) {
    let (in_before, out_before) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, out, FlushDecompress::None);
    let consumed = (inflate.total_in() - in_before) as usize;
    let produced = (inflate.total_out() - out_before) as usize;
    (consumed, produced, status.map(|s| s == Status::StreamEnd).map_err(|_| ()))
}

fn brotli_step(state: &mut Brotli, done: &mut bool, input: &[u8], out: &mut [u8]) -> Progress {
    let (mut available_in, mut consumed) = (input.len(), 0);
    let (mut available_out, mut produced, mut total) = (out.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut available_in,
        &mut consumed,
        input,
        &mut available_out,
        &mut produced,
        out,
        &mut total,
        state,
    );
    match result {
        BrotliResult::ResultFailure => Progress::end(consumed, produced, Some(Rule::ContentDamaged)),
        BrotliResult::ResultSuccess => {
            *done = true;
            Progress::more(consumed, produced)
        }
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Progress::more(consumed, produced),
    }
}

fn zstd_step(
    context: &mut DCtx<'static>,
    frame_ended: &mut bool,
    fresh: &mut bool,
    input: &[u8],
    out: &mut [u8],
) -> Progress {
    let mut from = InBuffer::around(input);
    let mut to = OutBuffer::around(out);
    let result = context.decompress_stream(&mut to, &mut from);
    let (consumed, produced) = (from.pos(), to.pos());
    match result {
        Ok(hint) => {
            *frame_ended = hint == 0;
            *fresh &= hint != 0;
            Progress::more(consumed, produced)
        }
        Err(code) => {
            let rule = match zstd_safe::get_error_name(code) {
                "Frame requires too much memory for decoding" => Rule::ContentWindow,
                "Unknown frame descriptor" if *frame_ended && !*fresh => Rule::ContentAfterEnd,
                "Restored data doesn't match checksum" => Rule::ContentChecksum,
                _ => Rule::ContentDamaged,
            };
            Progress::end(consumed, produced, Some(rule))
        }
    }
}

/// A zstd frame or a skippable one.
fn is_zstd(first: &[u8]) -> bool {
    first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || matches!(first, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Whether a trial of `decoder` on the first bytes meets nothing impossible. `signed`: a header and a checksum speak for it.
fn fits(mut decoder: Decoder, first: &[u8], ended: bool, signed: bool) -> bool {
    let mut out = vec![0; PROBE_BYTES];
    let (mut consumed, mut produced) = (0, 0);
    while produced < TRIAL_BYTES {
        let input = &first[consumed..];
        let step = decoder.decode(input, input.is_empty() && ended, &mut out);
        consumed += step.consumed;
        produced += step.produced;
        let done = matches!(decoder, Decoder::Inflate { done: true, .. } | Decoder::Brotli { done: true, .. });
        if done {
            // Plain text can pass for a short stream with much behind it.
            return signed || consumed == first.len() || produced >= consumed;
        }
        if step.state == State::End {
            return false;
        }
        if step.consumed == 0 && step.produced == 0 {
            break;
        }
    }
    // Cut off: believed only when it gave about as much as it took, which a few bytes of text do not.
    !ended || (produced > 0 && (signed || produced >= consumed.max(UNSIGNED_BYTES_MIN)))
}
