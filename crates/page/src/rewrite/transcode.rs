//! Charsets that do not share their bytes with ASCII: text is rewritten in UTF-8 and goes back to what it was.

use encoding_rs::{Decoder, Encoder, EncoderResult, Encoding, UTF_16BE, UTF_16LE};

/// Is this a charset in which a byte of ASCII may be part of another character?
pub fn is_needed(charset: &'static Encoding) -> bool {
    !charset.is_ascii_compatible()
}

/// From the charset to UTF-8 and back.
pub struct Transcoder {
    decoder: Decoder,
    to: To,
    /// Bytes of a character that is not yet whole.
    held: Vec<u8>,
}

enum To {
    BigEndian,
    LittleEndian,
    Other(Encoder),
}

impl std::fmt::Debug for Transcoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcoder").field("charset", &self.decoder.encoding().name()).finish_non_exhaustive()
    }
}

impl Transcoder {
    pub fn new(charset: &'static Encoding) -> Transcoder {
        let to = if charset == UTF_16BE {
            To::BigEndian
        } else if charset == UTF_16LE {
            To::LittleEndian
        } else {
            To::Other(charset.new_encoder())
        };
        // A byte order mark is text like any other, and comes out again.
        Transcoder { decoder: charset.new_decoder_without_bom_handling(), to, held: Vec::new() }
    }

    /// To UTF-8.
    pub fn decode(&mut self, bytes: &[u8], last: bool) -> String {
        let room = self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3 + 16);
        let mut text = String::with_capacity(room);
        let (_, _, _) = self.decoder.decode_to_string(bytes, &mut text, last);
        text
    }

    /// Back again: `text` is UTF-8, and may end inside a character.
    pub fn encode(&mut self, text: &[u8], last: bool, out: &mut Vec<u8>) {
        self.held.extend_from_slice(text);
        let length = match std::str::from_utf8(&self.held) {
            Ok(_) => self.held.len(),
            Err(error) => error.valid_up_to(),
        };
        let whole: Vec<u8> = self.held.drain(..length).collect();
        let text = String::from_utf8_lossy(&whole);
        match &mut self.to {
            To::BigEndian => out.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            To::LittleEndian => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            To::Other(encoder) => encode(encoder, &text, last, out),
        }
    }
}

fn encode(encoder: &mut Encoder, text: &str, last: bool, out: &mut Vec<u8>) {
    let mut rest = text;
    let mut buffer = [0; 4_096];
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut buffer, last);
        out.extend_from_slice(&buffer[..written]);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                out.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes());
            }
        }
    }
}
