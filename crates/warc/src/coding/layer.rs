//! One coding over a source of bytes, and the stack they form.

use std::io::{self, BufRead, Read};

use super::decoder::{Decoder, State};
use super::{BoundError, Bounds, Coding, PROBE_BYTES, STEP_BYTES};
use crate::http::{Deviations, Rule};

/// Encoded bytes: the body itself, or what the coding on top of ours gives.
#[derive(Debug)]
pub(super) enum Source<R> {
    Base(R),
    Layer(Box<Layer<R>>),
}

impl<R> Source<R> {
    pub fn base(&self) -> &R {
        match self {
            Source::Base(base) => base,
            Source::Layer(layer) => layer.source.base(),
        }
    }

    pub fn collect(&self, into: &mut Deviations) {
        if let Source::Layer(layer) = self {
            layer.deviations.as_slice().iter().for_each(|d| into.note_at(d.rule, d.offset));
            layer.source.collect(into);
        }
    }
}

impl<R: BufRead> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Source::Base(base) => base.fill_buf(),
            Source::Layer(layer) => layer.fill_buf(),
        }
    }

    fn consume(&mut self, bytes: usize) {
        match self {
            Source::Base(base) => base.consume(bytes),
            Source::Layer(layer) => layer.consume(bytes),
        }
    }
}

impl<R: BufRead> Read for Source<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let read = ready.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing was looked at yet.
    Fresh,
    /// Bytes go through the decoder.
    Decoding,
    /// The body is not encoded: bytes pass.
    Passing,
    Ended,
    Failed(BoundError),
}

/// Removes one coding.
#[derive(Debug)]
pub(super) struct Layer<R> {
    source: Source<R>,
    coding: Coding,
    bounds: Bounds,
    mode: Mode,
    decoder: Option<Decoder>,
    /// The first encoded bytes, read ahead to judge them; used up before the source is asked again.
    ahead: Vec<u8>,
    ahead_from: usize,
    /// Decoded bytes `out[out_from..out_to]` wait to be read.
    out: Vec<u8>,
    out_from: usize,
    out_to: usize,
    consumed: u64,
    produced: u64,
    deviations: Deviations,
}

impl<R: BufRead> Layer<R> {
    pub fn new(source: Source<R>, coding: Coding, bounds: Bounds) -> Layer<R> {
        Layer {
            source,
            coding,
            bounds,
            mode: Mode::Fresh,
            decoder: None,
            ahead: Vec::new(),
            ahead_from: 0,
            out: Vec::new(),
            out_from: 0,
            out_to: 0,
            consumed: 0,
            produced: 0,
            deviations: Deviations::default(),
        }
    }

    /// Reads the first bytes and decides whether they are encoded as declared.
    fn begin(&mut self) -> io::Result<()> {
        let mut ended = false;
        while self.ahead.len() < PROBE_BYTES && !ended {
            let input = self.source.fill_buf()?;
            ended = input.is_empty();
            let taken = input.len().min(PROBE_BYTES - self.ahead.len());
            self.ahead.extend_from_slice(&input[..taken]);
            self.source.consume(taken);
        }
        self.decoder = Decoder::probe(self.coding, &self.ahead, ended);
        self.mode = match self.decoder {
            Some(_) => Mode::Decoding,
            None => {
                if !self.ahead.is_empty() {
                    self.deviations.note(Rule::ContentAlreadyDecoded, 0);
                }
                Mode::Passing
            }
        };
        if self.mode == Mode::Decoding {
            self.out.resize(STEP_BYTES, 0);
        }
        Ok(())
    }

    /// Decodes until there is output or nothing more will come.
    fn decode(&mut self) -> io::Result<()> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let mut idle = 0;
        while self.out_from == self.out_to && self.mode == Mode::Decoding {
            let from_ahead = self.ahead_from < self.ahead.len();
            let input = if from_ahead { &self.ahead[self.ahead_from..] } else { self.source.fill_buf()? };
            let ended = input.is_empty();
            let step = decoder.decode(input, ended, &mut self.out);
            assert!(step.consumed <= input.len() && step.produced <= self.out.len());
            if from_ahead {
                self.ahead_from += step.consumed;
            } else {
                self.source.consume(step.consumed);
            }
            self.consumed += step.consumed as u64;
            self.produced += step.produced as u64;
            (self.out_from, self.out_to) = (0, step.produced);
            if let Some(rule) = step.deviation {
                self.deviations.note_at(rule, self.consumed);
            }
            if self.produced > self.bounds.output_bytes_max {
                self.mode = Mode::Failed(BoundError::TooLarge { output_bytes_max: self.bounds.output_bytes_max });
            } else if self.produced > self.bounds.ratio_free_bytes
                && self.produced / self.bounds.ratio_max.max(1) > self.consumed
            {
                self.mode = Mode::Failed(BoundError::Bomb { ratio_max: self.bounds.ratio_max });
            } else if step.state == State::End || (ended && step.produced == 0) {
                if ended && step.state != State::End {
                    self.deviations.note_at(Rule::ContentTruncated, self.consumed);
                }
                self.mode = Mode::Ended;
            }
            // A decoder that neither takes nor gives will never do either; one idle step is a change of stage.
            idle = if step.consumed + step.produced == 0 { idle + 1 } else { 0 };
            if idle > 2 && self.mode == Mode::Decoding {
                self.deviations.note_at(Rule::ContentDamaged, self.consumed);
                self.mode = Mode::Ended;
            }
            if let Mode::Failed(error) = self.mode {
                self.out_to = 0;
                return Err(error.into());
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Layer<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.mode == Mode::Fresh {
            self.begin()?;
        }
        if let Mode::Failed(error) = self.mode {
            return Err(error.into());
        }
        if self.mode == Mode::Passing {
            if self.ahead_from < self.ahead.len() {
                return Ok(&self.ahead[self.ahead_from..]);
            }
            return self.source.fill_buf();
        }
        if self.out_from == self.out_to {
            self.decode()?;
        }
        Ok(&self.out[self.out_from..self.out_to])
    }

    fn consume(&mut self, bytes: usize) {
        if self.mode != Mode::Passing {
            assert!(bytes <= self.out_to - self.out_from);
            self.out_from += bytes;
        } else if self.ahead_from < self.ahead.len() {
            assert!(bytes <= self.ahead.len() - self.ahead_from);
            self.ahead_from += bytes;
        } else {
            self.source.consume(bytes);
        }
    }
}
