//! What a reader found wrong: one rule, one place.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Allowed or harmless, but worth knowing.
    Notice,
    /// Against the specification, yet every byte is accounted for.
    Violation,
    /// Bytes were skipped, lost or cannot be trusted.
    Damage,
}

macro_rules! rules {
    ($($name:ident $severity:ident $id:literal $text:literal;)*) => {
        /// The rules a record, a member or a file can break. The identifier is stable and meant for machines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $text] $name,)* }
        impl Rule {
            /// All rules, for documentation and tests.
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];
            /// Stable identifier.
            pub fn id(self) -> &'static str { match self { $(Rule::$name => $id,)* } }
            /// One sentence for a person.
            pub fn text(self) -> &'static str { match self { $(Rule::$name => $text,)* } }
            /// How much it matters.
            pub fn severity(self) -> Severity { match self { $(Rule::$name => Severity::$severity,)* } }
        }
    };
}

rules! {
    FileEmpty Violation "file-empty" "the file holds no record";
    Garbage Damage "garbage" "bytes that belong to no record were skipped";
    ContainerDamaged Damage "container-damaged" "compressed data could not be decoded";
    ContainerChecksum Damage "container-checksum" "decoded data does not match its checksum or length";
    ContainerTruncated Damage "container-truncated" "compressed data ends in the middle";
    ContainerPadding Notice "container-padding" "zero bytes between or after members";
    ContainerSwitch Violation "container-switch" "compression changes in the middle of the file";
    MemberEmpty Notice "member-empty" "a compressed member holds no byte";
    MemberManyRecords Violation "member-many-records" "a compressed member holds more than one record, so that records cannot be read at random";
    MemberSplitsRecord Violation "member-splits-record" "a record spans several compressed members";
    MemberLengthField Notice "member-length-field" "the sl field of a gzip member does not give its length";
    DictionaryMissing Damage "zstd-dictionary" "the zstd dictionary is missing or cannot be used";
    Version Violation "version" "the version is not one of WARC/0.17, 0.18, 1.0, 1.1";
    VersionLine Violation "version-line" "the version line is malformed";
    HeadLineEnd Violation "head-line-end" "a head line does not end with CRLF";
    HeadLine Violation "head-line" "a head line has no colon or an empty name";
    HeadCharacters Violation "head-characters" "a head line holds control characters or invalid UTF-8";
    HeadUnended Damage "head-unended" "the head is not followed by an empty line";
    HeadTooLong Damage "head-too-long" "the head is longer than accepted";
    LengthMissing Violation "length-missing" "Content-Length is missing";
    LengthInvalid Violation "length-invalid" "Content-Length is not a number";
    LengthTooLarge Damage "length-too-large" "the next record begins before the declared length is reached";
    LengthDoubtful Damage "length-doubtful" "no record end stands where the declared length points";
    BlockTruncated Damage "block-truncated" "the block ends before its declared length";
    EndMissing Violation "end-missing" "the block is not followed by two CRLF";
    EndExtra Violation "end-extra" "more than two CRLF follow the block";
    FieldMissing Violation "field-missing" "a mandatory field is missing";
    FieldEmpty Violation "field-empty" "a field has no value";
    FieldRepeated Violation "field-repeated" "a field that may stand once is repeated";
    FieldNotAllowed Violation "field-not-allowed" "a field that this type of record must not have";
    FieldAdvised Notice "field-advised" "a field that this type of record should, or should not, have";
    TypeUnknown Notice "type-unknown" "the record type is not one of the standard's";
    ProfileUnknown Notice "profile-unknown" "the profile of a revisit is not one of the standard's";
    DateInvalid Violation "date-invalid" "the date is not of the form the standard asks for";
    UriInvalid Violation "uri-invalid" "an identifier or target is not a URI";
    AddressInvalid Violation "address-invalid" "the address is not an IP address";
    ContentTypeInvalid Violation "content-type-invalid" "the content type is malformed";
    ContentTypeUnexpected Violation "content-type-unexpected" "the content type does not fit the type of record";
    DigestInvalid Violation "digest-invalid" "a digest cannot be understood";
    DigestUnknown Notice "digest-unknown" "a digest is of an algorithm that is not known here and was not verified";
    DigestBlock Violation "digest-block" "the block does not match its digest";
    DigestPayload Violation "digest-payload" "the payload does not match its digest";
    DigestPayloadTransfer Notice "digest-payload-transfer" "the payload digest was computed over the transfer-encoded bytes";
    SegmentNumber Violation "segment-number" "WARC-Segment-Number does not fit the type of record";
    NumberInvalid Violation "number-invalid" "a numeric field is not a number";
    HttpMalformed Violation "http-malformed" "the HTTP message inside is malformed";
    ArcLine Violation "arc-line" "an ARC record line deviates from its form";
    ArcHeader Violation "arc-header" "the ARC version block is missing or malformed";
    PackageDamaged Damage "package-damaged" "the package cannot be read as a ZIP file";
    PackageName Violation "package-name" "an entry name of the package points outside of it";
    More Damage "more-findings" "more is wrong than was kept to be told";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// One deviation, where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was broken.
    pub rule: Rule,
    /// Offset in the file (of the compressed member where there is one).
    pub offset: u64,
    /// Number of the record it concerns, counted from 0, where there is one.
    pub record: Option<u64>,
    /// The value or the number of bytes in question.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.id(), self.rule.text())?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        write!(f, " at offset {}", self.offset)
    }
}

/// Findings waiting to be taken; bounded, and honest about what did not fit.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    dropped: u64,
    /// Of these, those that nobody was told of yet, and where the first of them was.
    untold: Option<(u64, u64)>,
}

impl Findings {
    pub(crate) fn push(&mut self, rule: Rule, offset: u64, record: Option<u64>, detail: impl Into<String>) {
        if self.kept.len() < crate::limits::FINDINGS_MAX {
            let mut detail = detail.into();
            if detail.len() > crate::limits::DETAIL_BYTES_MAX {
                detail.truncate(detail.floor_char_boundary(crate::limits::DETAIL_BYTES_MAX));
                detail.push('…');
                detail.shrink_to_fit();
            }
            self.kept.push(Finding { rule, offset, record, detail });
        } else {
            self.dropped += 1;
            self.untold.get_or_insert((0, offset)).0 += 1;
        }
    }
    /// What was found since the last call; one last finding stands for all that could not be kept.
    pub fn take(&mut self) -> Vec<Finding> {
        let mut taken = std::mem::take(&mut self.kept);
        if let Some((count, offset)) = self.untold.take() {
            taken.push(Finding { rule: Rule::More, offset, record: None, detail: format!("{count} more") });
        }
        taken
    }
    /// What is waiting.
    pub fn as_slice(&self) -> &[Finding] {
        &self.kept
    }
    /// How many more were found than could be kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_fit_is_counted_and_told() {
        let mut findings = Findings::default();
        let many = crate::limits::FINDINGS_MAX as u64 + 5;
        (0..many).for_each(|offset| findings.push(Rule::Garbage, offset, None, ""));
        let taken = findings.take();
        let last = taken.last().unwrap();
        assert_eq!((last.rule, last.offset, last.detail.as_str()), (Rule::More, many - 5, "5 more"));
        assert_eq!((findings.dropped(), findings.take()), (5, vec![]));
    }

    #[test]
    fn a_long_value_is_told_by_its_beginning() {
        let mut findings = Findings::default();
        findings.push(Rule::LengthInvalid, 0, None, "é".repeat(1 << 20));
        let kept = findings.take();
        assert!(kept[0].detail.ends_with("é…") && kept[0].detail.len() <= crate::limits::DETAIL_BYTES_MAX + 3);
    }
}
