//! Test tools that share no code with the reader: a brute-force scan for intact records, and seeded damage.
#![allow(dead_code)]

use std::io::Read;

/// A record whose every byte is there: where its member begins, and its block.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Intact {
    pub offset: u64,
    pub head: Vec<u8>,
    pub block: Vec<u8>,
}

/// Tries every offset of the file.
pub fn intact_records(file: &[u8]) -> Vec<Intact> {
    if file.starts_with(&[0x1f, 0x8b]) {
        return intact_in_gzip(file);
    }
    if file.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return intact_in_zstd(file, &[]);
    }
    if file.starts_with(&[0x5d, 0x2a, 0x4d, 0x18]) {
        return dictionary(file).map_or_else(Vec::new, |dictionary| intact_in_zstd(file, &dictionary));
    }
    plain(file).into_iter().map(|(at, head, block)| Intact { offset: at as u64, head, block }).collect()
}

fn intact_in_gzip(file: &[u8]) -> Vec<Intact> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 18 <= file.len() {
        if file[at..at + 3] != [0x1f, 0x8b, 8] {
            at += 1;
            continue;
        }
        let mut rest = &file[at..];
        let mut decoded = Vec::new();
        let whole = flate2::bufread::GzDecoder::new(&mut rest).read_to_end(&mut decoded).is_ok();
        let consumed = file.len() - at - rest.len();
        let records = if whole { plain(&decoded) } else { Vec::new() };
        // A member that begins no record is data inside another one, or a piece of a record: not ours to judge.
        if records.first().is_none_or(|(first, ..)| decoded[..*first].iter().any(|b| !b"\r\n".contains(b))) {
            at += 1;
            continue;
        }
        found.extend(records.into_iter().map(|(_, head, block)| Intact { offset: at as u64, head, block }));
        at += consumed;
    }
    found
}

/// What stands in the leading frame, which may be compressed itself.
fn dictionary(file: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(file.get(4..8)?.try_into().ok()?) as usize;
    let content = file.get(8..8 + length)?;
    match content.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        true => zstd::stream::decode_all(content).ok(),
        false => Some(content.to_vec()),
    }
}

fn intact_in_zstd(file: &[u8], dictionary: &[u8]) -> Vec<Intact> {
    let decode = |frame: &[u8]| -> std::io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        zstd::stream::read::Decoder::with_dictionary(frame, dictionary)?.read_to_end(&mut decoded)?;
        Ok(decoded)
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at + 8 <= file.len() {
        let frame = file[at..]
            .starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
            .then(|| zstd_safe::find_frame_compressed_size(&file[at..]).ok());
        let decoded = frame.flatten().and_then(|size| decode(&file[at..at + size]).ok().map(|d| (size, d)));
        match decoded {
            Some((size, decoded)) => {
                found.extend(plain(&decoded).into_iter().map(|(_, head, block)| Intact {
                    offset: at as u64,
                    head,
                    block,
                }));
                at += size;
            }
            None => at += 1,
        }
    }
    found
}

/// Whole records, outermost first. WARC: version line, fields, empty line, as many bytes as declared, two CRLF. ARC: a line, as many bytes as
/// declared, a line end, and then the end or another line.
fn plain(bytes: &[u8]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let ends = record_at(bytes, at).map(|ends| (ends, 4)).or_else(|| arc_at(bytes, at).map(|ends| (ends, 1)));
        match ends {
            Some(((head_end, block_end), end)) => {
                found.push((at, bytes[at..head_end].to_vec(), bytes[head_end..block_end].to_vec()));
                at = block_end + end;
            }
            None => at += 1,
        }
    }
    found
}

fn arc_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (head_end, length) = arc_line_at(bytes, at)?;
    let block_end = head_end.checked_add(length)?;
    let behind = bytes.get(block_end..)?.strip_prefix(b"\n")?;
    (behind.is_empty() || arc_line_at(bytes, block_end + 1).is_some()).then_some((head_end, block_end))
}

/// Where an ARC record line ends, and the length it declares: URL, address, date, then media type and length, or what version 2 puts between
/// them.
fn arc_line_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if at > 0 && bytes[at - 1] != b'\n' {
        return None;
    }
    let line = bytes.get(at..)?.iter().take(8 << 10).position(|&b| b == b'\n')?;
    let text = std::str::from_utf8(&bytes[at..at + line]).ok()?;
    let fields: Vec<&str> = text.split(' ').collect();
    let (scheme, _) = fields[0].split_once(':')?;
    let date_and_length = [fields.get(2)?, fields.last()?];
    let sound = matches!(fields.len(), 5 | 10)
        && !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_lowercase())
        && fields[1].parse::<std::net::Ipv4Addr>().is_ok()
        && fields[2].len() == 14
        && date_and_length.iter().all(|field| field.bytes().all(|b| b.is_ascii_digit()));
    let length = fields.last()?.parse().ok()?;
    sound.then_some((at + line + 1, length))
}

fn record_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let known = [&b"WARC/1.0\r\n"[..], b"WARC/1.1\r\n", b"WARC/0.17\r\n", b"WARC/0.18\r\n"];
    if !known.iter().any(|v| rest.starts_with(v)) {
        return None;
    }
    let window = &rest[..rest.len().min(64 << 10)];
    let end = window.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let mut length = None;
    let mandatory = ["warc-type:", "warc-record-id:", "warc-date:"];
    if !mandatory.iter().all(|name| text.lines().any(|l| l.to_ascii_lowercase().starts_with(name))) {
        return None; // a splice of two heads, not a record that somebody wrote
    }
    for line in text.lines().skip(1).filter(|l| !l.is_empty()) {
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return None;
        }
        if line.contains('\r') || (length.is_some() && name.eq_ignore_ascii_case("content-length")) {
            return None;
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>().ok()?);
        }
    }
    let block_end = (at + end).checked_add(length?)?;
    (bytes.get(block_end..block_end + 4)? == b"\r\n\r\n").then_some((at + end, block_end))
}

/// xorshift64*, so that a seed in a failure message replays the case.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as usize % below.max(1)
    }
}

/// Cuts, flips, zeroes, splices, repeats or removes something.
pub fn damage(file: &[u8], seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut out = file.to_vec();
    for _ in 0..=dice.roll(3) {
        if out.is_empty() {
            return out;
        }
        let at = dice.roll(out.len());
        let length = (1 + dice.roll(200)).min(out.len() - at);
        match dice.roll(6) {
            0 => out.truncate(at),
            1 => out[at] ^= 1 << dice.roll(8),
            2 => out[at..at + length].fill(0),
            3 => {
                let from = dice.roll(file.len());
                let piece = file[from..(from + length).min(file.len())].to_vec();
                out.splice(at..at, piece);
            }
            4 => {
                out.drain(at..at + length);
            }
            _ => {
                let from = dice.roll(file.len());
                let piece = file[from..].to_vec();
                out.truncate(at);
                out.extend(piece);
            }
        }
    }
    out
}
