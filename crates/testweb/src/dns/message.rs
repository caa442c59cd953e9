//! Messages of the name server: questions read, answers written (RFC 1035, section 4). Pure.
//!
//! ```text
//! header   | id 2 | flags 2 | questions 2 | answers 2 | authorities 2 | more 2 |
//! question | labels: length 1, bytes …, 0 | type 2 | class 2 |
//! answer   | name, here always a pointer or labels | type 2 | class 2 | ttl 4 | length 2 | data |
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Types of records that are asked for.
pub(super) const A: u16 = 1;
pub(super) const CNAME: u16 = 5;
pub(super) const AAAA: u16 = 28;
/// The pseudo-record in which a resolver says how large an answer may be (RFC 6891).
const OPT: u16 = 41;

/// Response codes.
pub(super) const NO_ERROR: u8 = 0;
pub(super) const SERVER_FAILURE: u8 = 2;
pub(super) const NAME_ERROR: u8 = 3;
pub(super) const REFUSED: u8 = 5;

/// Bytes of an answer over UDP to a resolver that does not ask for more.
const UDP_BYTES: usize = 512;
/// Bytes of an answer over UDP, whatever is asked.
const UDP_BYTES_MAX: usize = 4_096;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub id: u16,
    /// Recursion was asked for.
    pub recursion: bool,
    /// In lower case, without the last dot.
    pub name: String,
    pub kind: u16,
    /// The question's bytes, which the answer repeats, letters in the case in which they came.
    raw: Vec<u8>,
    /// Bytes that the answer may have over UDP.
    pub udp_bytes: usize,
}

/// Data of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Address(IpAddr),
    Alias(String),
}

/// One record of an answer; `None` for the name that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub name: Option<String>,
    pub ttl_seconds: u32,
    pub data: Data,
}

impl Question {
    /// Reads a message with one question; anything else is none.
    pub fn read(message: &[u8]) -> Option<Question> {
        let two = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        let flags = two(2)?;
        let (response, opcode) = (flags >> 15, flags >> 11 & 15);
        if response != 0 || opcode != 0 || two(4)? != 1 {
            return None;
        }
        let mut at = 12;
        let mut name = String::new();
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            // A pointer has nowhere to point to in the first name of a message.
            if length > 63 || name.len() + length > 253 {
                return None;
            }
            if !name.is_empty() {
                name.push('.');
            }
            name.extend(message.get(at..at + length)?.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
            at += length;
        }
        let kind = two(at)?;
        two(at + 2)?;
        let raw = message[12..at + 4].to_vec();
        let udp_bytes = offered(message, at + 4, two(10)?).unwrap_or(UDP_BYTES).clamp(UDP_BYTES, UDP_BYTES_MAX);
        Some(Question { id: two(0)?, recursion: flags & 0x0100 != 0, name, kind, raw, udp_bytes })
    }

    /// An answer. `bytes_max`: cut to no records at all when it is longer, and marked so.
    pub fn answer(&self, code: u8, records: &[Record], bytes_max: usize) -> Vec<u8> {
        let message = self.write(code, records, false);
        if message.len() <= bytes_max { message } else { self.cut() }
    }

    /// The same question by another number, as someone might forge it who did not see it.
    pub fn of_another(&self) -> Question {
        Question { id: !self.id, ..self.clone() }
    }

    /// An answer that says that it is cut: ask again over TCP.
    pub fn cut(&self) -> Vec<u8> {
        self.write(NO_ERROR, &[], true)
    }

    fn write(&self, code: u8, records: &[Record], cut: bool) -> Vec<u8> {
        let mut out = self.id.to_be_bytes().to_vec();
        let flags = 0x8480 | u16::from(self.recursion) << 8 | u16::from(cut) << 9 | u16::from(code & 15);
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&(records.len() as u16).to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.raw);
        for record in records {
            match &record.name {
                None => out.extend_from_slice(&[0xc0, 12]), // the name in the question
                Some(name) => out.extend_from_slice(&labels(name)),
            }
            let (kind, data) = match &record.data {
                Data::Address(IpAddr::V4(address)) => (A, address.octets().to_vec()),
                Data::Address(IpAddr::V6(address)) => (AAAA, address.octets().to_vec()),
                Data::Alias(name) => (CNAME, labels(name)),
            };
            out.extend_from_slice(&kind.to_be_bytes());
            out.extend_from_slice(&1u16.to_be_bytes());
            out.extend_from_slice(&record.ttl_seconds.to_be_bytes());
            out.extend_from_slice(&(data.len() as u16).to_be_bytes());
            out.extend_from_slice(&data);
        }
        out
    }
}

/// The size that a resolver offers to take over UDP, from its first additional record.
fn offered(message: &[u8], at: usize, additional: u16) -> Option<usize> {
    let record = message.get(at..)?;
    (additional > 0 && record.starts_with(&[0, 0, OPT as u8])).then_some(())?;
    Some(usize::from(u16::from_be_bytes([*record.get(3)?, *record.get(4)?])))
}

fn labels(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        out.push(label.len().min(63) as u8);
        out.extend_from_slice(&label.as_bytes()[..label.len().min(63)]);
    }
    out.push(0);
    out
}

impl Record {
    /// An address of the name that was asked.
    pub fn address(address: IpAddr, ttl_seconds: u32) -> Record {
        Record { name: None, ttl_seconds, data: Data::Address(address) }
    }

    /// It is of the type that was asked for.
    pub fn fits(&self, kind: u16) -> bool {
        match &self.data {
            Data::Address(IpAddr::V4(_)) => kind == A,
            Data::Address(IpAddr::V6(_)) => kind == AAAA,
            Data::Alias(_) => true,
        }
    }
}

/// Addresses that a careful visitor never connects to, by the name of their form.
pub(super) fn forbidden(form: &str) -> Option<IpAddr> {
    let six = |text: [u16; 8]| IpAddr::V6(Ipv6Addr::from(text));
    Some(match form {
        "loopback" => Ipv4Addr::LOCALHOST.into(),
        "private" => Ipv4Addr::new(10, 0, 0, 1).into(),
        "link-local" => Ipv4Addr::new(169, 254, 7, 7).into(),
        "metadata" | "rebinding" => Ipv4Addr::new(169, 254, 169, 254).into(),
        "cgnat" => Ipv4Addr::new(100, 64, 0, 1).into(),
        "zero" => Ipv4Addr::UNSPECIFIED.into(),
        "mapped" => six([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1]),
        "nat64" => six([0x64, 0xff9b, 0, 0, 0, 0, 0x7f00, 1]),
        "six" => Ipv6Addr::LOCALHOST.into(),
        "unique-local" => six([0xfd00, 0, 0, 0, 0, 0, 0, 1]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, kind: u16, more: &[u8]) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(!more.is_empty())];
        message.extend_from_slice(&labels(name));
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        message.extend_from_slice(more);
        message
    }

    #[test]
    fn questions_are_read() {
        let question = Question::read(&ask("WWW.Example.test", A, &[])).unwrap();
        assert_eq!((question.name.as_str(), question.kind, question.id), ("www.example.test", A, 0xabcd));
        assert_eq!(question.udp_bytes, 512);
        let question = Question::read(&ask("a.test", AAAA, &[0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!(question.udp_bytes, 1_232);
    }

    #[test]
    fn nonsense_is_no_question() {
        let good = ask("a.test", A, &[]);
        for length in 0..good.len() {
            assert!(Question::read(&good[..length]).is_none(), "{length}");
        }
        let mut pointer = good.clone();
        pointer[12] = 0xc0;
        assert!(Question::read(&pointer).is_none());
        let mut response = good.clone();
        response[2] |= 0x80;
        assert!(Question::read(&response).is_none());
        assert!(Question::read(&[0xff; 600]).is_none());
    }

    #[test]
    fn answers_repeat_the_question_and_are_cut_when_too_long() {
        let asked = ask("A.test", A, &[]);
        let question = Question::read(&asked).unwrap();
        let one = Record::address(Ipv4Addr::new(127, 0, 0, 9).into(), 60);
        let answer = question.answer(NO_ERROR, std::slice::from_ref(&one), 512);
        assert_eq!(&answer[..12], &[0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(&answer[12..asked.len()], &asked[12..]);
        assert!(answer.ends_with(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 9]));
        let many = question.answer(NO_ERROR, &vec![one; 200], 512);
        assert_eq!((many.len(), many[2] & 2, many[7]), (asked.len(), 2, 0));
    }
}
