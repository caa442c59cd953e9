//! The closing record: the last record of a sealed segment, which says what all bytes before it were.
//!
//! A `metadata` record whose block is
//! ```text
//!  skep-closing: 1
//!  segment: c41f22ab-000001.warc.gz
//!  half-slice: 8/11.0
//!  records: 17                        records before this one
//!  bytes: 81234                       bytes before this one
//!  blake3: <64 hexadecimal digits>    of those bytes
//!  replaces: <64 digits>              only in a rewritten segment: the BLAKE3 that the generation before it had
//!  removal: urn:uuid:…                only then, once for each removal that asked for it
//!  writer: <64 digits>                the Ed25519 public key
//!  signature: <128 digits>            over all lines before this one
//! ```
//! Version 2 is what a holder writes instead of a writer who is gone, because removals bind it (`instead.rs`):
//! ```text
//!  skep-closing: 2
//!  …                                  as above; `replaces` is always there
//!  end: closed                        or `open`: the writer never closed what this replaces
//!  instruction: <digits>              once for each of the removals that bind, as the network signed it
//!  writer: <64 digits>                the holder
//!  signature: <128 digits>
//! ```

use skep_warc::date::rfc3339;
use skep_warc::write::Record;

use crate::error::Result;
use crate::identity::{self, Identity, hex, unhex, unhex_all};
use crate::layout::{HalfSlice, SegmentName};
use crate::own::{self, FieldsBlock, lines, once};

const VERSION: &str = "1";
/// The version of what a holder writes instead of the writer.
const INSTEAD_VERSION: &str = "2";
/// How the block of every closing record begins.
pub const TITLE: &str = "skep-closing: ";

/// What a closing record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The file's name when it was sealed.
    pub segment: SegmentName,
    /// Its half-slice.
    pub half: HalfSlice,
    /// Records before the closing record.
    pub records: u32,
    /// Bytes before the closing record.
    pub bytes: u64,
    /// BLAKE3 of those bytes.
    pub blake3: [u8; 32],
    /// BLAKE3 of what a rewritten segment replaces.
    pub replaces: Option<[u8; 32]>,
    /// Record ids of the removals that asked for the rewriting.
    pub removals: Vec<String>,
    /// A holder wrote it, instead of the writer.
    pub instead: Option<Instead>,
}

/// Why somebody else than its writer wrote a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instead {
    /// The removals that bind whoever has a copy, as the network signed them: not read here.
    pub instructions: Vec<Vec<u8>>,
    /// The writer never closed what this replaces, so that somebody may have more of it.
    pub open: bool,
}

impl Closing {
    /// The signed block.
    pub fn block(&self, identity: &Identity) -> String {
        let mut block = FieldsBlock::default();
        block
            .line("skep-closing", if self.instead.is_some() { INSTEAD_VERSION } else { VERSION })
            .line("segment", &self.segment.to_string())
            .line("half-slice", &self.half.folder())
            .line("records", &self.records.to_string())
            .line("bytes", &self.bytes.to_string())
            .line("blake3", &hex(&self.blake3));
        if let Some(replaces) = &self.replaces {
            block.line("replaces", &hex(replaces));
        }
        for removal in &self.removals {
            block.line("removal", removal);
        }
        if let Some(instead) = &self.instead {
            block.line("end", if instead.open { "open" } else { "closed" });
            for instruction in &instead.instructions {
                block.line("instruction", &hex(instruction));
            }
        }
        sign(block, identity)
    }

    /// The whole record: compressed, or, if a holder writes it, as long as any other holder's.
    pub fn encode(&self, identity: &Identity, time_ms: i64) -> Result<Vec<u8>> {
        if self.instead.is_some() {
            let (id, block) = (crate::instead::removed_by(self.segment.id), self.block(identity));
            return own::wrap(&Record::metadata(&id, &rfc3339(time_ms), own::FIELDS, block.as_bytes()));
        }
        let id =
            identity::record_id(&[b"closing", &identity.public(), self.segment.to_string().as_bytes(), &self.blake3]);
        let block = self.block(identity);
        own::encode(&Record::metadata(&id, &rfc3339(time_ms), own::FIELDS, block.as_bytes()))
    }

    /// The whole key that signed a block, of which a segment's name has only a part.
    pub fn signer(block: &[u8]) -> Result<[u8; 32], String> {
        Signed::parse(block, "skep-closing", version_of(block)).map(|signed| signed.key)
    }

    /// Reads a block; an error says which line is missing, wrong, or not signed by who it says.
    pub fn parse(block: &[u8]) -> Result<Closing, String> {
        let version = version_of(block);
        let signed = Signed::parse(block, "skep-closing", version)?;
        let number = |name: &str| -> Result<u64, String> {
            once(&signed.lines, name)?.parse().map_err(|_| format!("{name} is not a number"))
        };
        let hash =
            |name: &str, value: &str| unhex::<32>(value).ok_or_else(|| format!("{name} is not 64 hexadecimal digits"));
        let segment: SegmentName =
            once(&signed.lines, "segment")?.parse().map_err(|()| "segment is not the name of one".to_string())?;
        let half = once(&signed.lines, "half-slice")?;
        let half = half.split_once('/').and_then(|(bits, slice)| HalfSlice::parse(bits, slice));
        let instead = if version == INSTEAD_VERSION { Some(Instead::parse(&signed.lines)?) } else { None };
        if instead.is_none() && signed.writer != segment.id.writer {
            return Err(format!("the signature is that of writer {}, not of {}", signed.writer, segment.id.writer));
        }
        let replaces = instead.is_some() || signed.lines.iter().any(|(name, _)| *name == "replaces");
        Ok(Closing {
            segment,
            half: half.ok_or("half-slice is not the folder of one")?,
            records: u32::try_from(number("records")?).map_err(|_| "records is too large")?,
            bytes: number("bytes")?,
            blake3: hash("blake3", once(&signed.lines, "blake3")?)?,
            replaces: if replaces { Some(hash("replaces", once(&signed.lines, "replaces")?)?) } else { None },
            removals: signed
                .lines
                .iter()
                .filter(|(name, _)| *name == "removal")
                .map(|(_, id)| id.to_string())
                .collect(),
            instead,
        })
    }
}

impl Instead {
    fn parse(lines: &[(&str, &str)]) -> Result<Instead, String> {
        let open = match once(lines, "end")? {
            "open" => true,
            "closed" => false,
            _ => return Err("end is neither open nor closed".into()),
        };
        let signed = lines.iter().filter(|(name, _)| *name == "instruction");
        let instructions: Option<Vec<Vec<u8>>> = signed.map(|(_, digits)| unhex_all(digits)).collect();
        let instructions = instructions.ok_or("instruction is not in hexadecimal digits")?;
        match instructions.is_empty() {
            true => Err("no instruction says why somebody else than its writer wrote it".into()),
            false => Ok(Instead { instructions, open }),
        }
    }
}

/// Which of the two versions a block says it is.
fn version_of(block: &[u8]) -> &'static str {
    let second = [TITLE.as_bytes(), INSTEAD_VERSION.as_bytes(), b"\r\n"].concat();
    if block.starts_with(&second) { INSTEAD_VERSION } else { VERSION }
}

/// Ends a block with who wrote it and the signature over everything before the last line.
pub fn sign(mut block: FieldsBlock, identity: &Identity) -> String {
    block.line("writer", &hex(&identity.public()));
    let signature = identity.sign(block.as_str().as_bytes());
    block.line("signature", &hex(&signature));
    block.as_str().to_string()
}

/// A signed block whose signature holds.
#[derive(Debug)]
pub struct Signed<'b> {
    /// Its lines.
    pub lines: Vec<(&'b str, &'b str)>,
    /// Whose signature it is …
    pub key: [u8; 32],
    /// … and the short name of that key.
    pub writer: crate::WriterKey,
}

impl<'b> Signed<'b> {
    /// Reads a block whose first line is `title: version` and whose last is the signature over the rest.
    pub fn parse(block: &'b [u8], title: &str, version: &str) -> Result<Signed<'b>, String> {
        let lines = lines(block)?;
        match lines.first() {
            Some((name, value)) if *name == title && *value == version => {}
            Some((name, value)) if *name == title => return Err(format!("{title} {value} is not known here")),
            _ => return Err(format!("the block does not begin with {title}")),
        }
        let public = unhex::<32>(once(&lines, "writer")?).ok_or("writer is not 64 hexadecimal digits")?;
        let signature = unhex::<64>(once(&lines, "signature")?).ok_or("signature is not 128 hexadecimal digits")?;
        let end =
            block.windows(12).rposition(|window| window == b"\nsignature: ").ok_or("signature is not the last line")?;
        if lines.last().is_none_or(|(name, _)| *name != "signature") {
            return Err("signature is not the last line".into());
        }
        if !identity::verifies(&public, &block[..end + 1], &signature) {
            return Err("the signature does not hold".into());
        }
        Ok(Signed { lines, key: public, writer: identity::writer_of(&public) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SegmentId;

    fn sample(identity: &Identity) -> Closing {
        Closing {
            segment: SegmentName { id: SegmentId { writer: identity.writer(), number: 3 }, generation: 2 },
            half: HalfSlice::of(0x1100_0000, 8),
            records: 17,
            bytes: 81_234,
            blake3: [0xab; 32],
            replaces: Some([1; 32]),
            removals: vec!["urn:uuid:a".into(), "urn:uuid:b".into()],
            instead: None,
        }
    }

    fn by_a_holder(closing: Closing, instructions: &[&[u8]]) -> Closing {
        let instructions = instructions.iter().map(|signed| signed.to_vec()).collect();
        Closing { instead: Some(Instead { instructions, open: true }), ..closing }
    }

    #[test]
    fn what_is_signed_reads_back() {
        let identity = Identity::from_secret([3; 32]);
        let closing = sample(&identity);
        assert_eq!(Closing::parse(closing.block(&identity).as_bytes()), Ok(closing.clone()));
        let plain = Closing { replaces: None, removals: vec![], ..closing };
        assert_eq!(Closing::parse(plain.block(&identity).as_bytes()), Ok(plain));
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let identity = Identity::from_secret([3; 32]);
        let block = sample(&identity).block(&identity).into_bytes();
        for at in 0..block.len() {
            let mut changed = block.clone();
            changed[at] ^= 1;
            // White space at the end of the signature line, after what is signed, is nobody's loss.
            if changed[at..].iter().all(u8::is_ascii_whitespace) || block[at..] == *b"\r\n" || block[at..] == *b"\n" {
                continue;
            }
            assert!(Closing::parse(&changed).is_err(), "byte {at}");
        }
        assert!(Closing::parse(b"").is_err());
    }

    #[test]
    fn another_writer_cannot_close_a_segment() {
        let (one, two) = (Identity::from_secret([3; 32]), Identity::from_secret([4; 32]));
        let error = Closing::parse(sample(&one).block(&two).as_bytes()).unwrap_err();
        assert!(error.contains("the signature is that of writer"), "{error}");
    }

    #[test]
    fn a_holder_closes_it_only_by_an_instruction() {
        let (one, two) = (Identity::from_secret([3; 32]), Identity::from_secret([4; 32]));
        let closing = by_a_holder(sample(&one), &[b"one", b"", &[0xff; 300]]);
        let block = closing.block(&two);
        assert_eq!(Closing::parse(block.as_bytes()), Ok(closing.clone()));
        assert_eq!(Closing::signer(block.as_bytes()), Ok(two.public()));
        let error = Closing::parse(by_a_holder(sample(&one), &[]).block(&two).as_bytes()).unwrap_err();
        assert!(error.contains("no instruction"), "{error}");
        let bare = Closing { replaces: None, ..closing };
        assert_eq!(Closing::parse(bare.block(&two).as_bytes()), Err("replaces is missing".into()));
        // What one signed cannot be turned into the other kind.
        let other = block.replacen("skep-closing: 2", "skep-closing: 1", 1);
        assert_eq!(Closing::parse(other.as_bytes()), Err("the signature does not hold".into()));
    }
}
