//! What a reader must survive and report, each on a file made here: containers that are put together wrongly, heads and lengths that lie,
//! both ARC versions, dictionaries, packages, parts, filters, and records larger than memory should hold.

use skep_warc::{Container, Filter, Options, Reader, RecordKind, Version, read_parts, repair, wacz};
use std::io::{self, Cursor, Read, Write};

fn record(kind: &str, uri: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:12345678-0000-0000-0000-0000{:08x}>\r\n\
         WARC-Date: 2020-01-02T03:04:05Z\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        uri.len(),
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn page(number: usize) -> Vec<u8> {
    let body = format!("page {number} ").repeat(50 + number * 7);
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    record("response", &format!("http://a.example/{number}"), block.as_bytes())
}

/// A page that does not compress.
fn noisy_page(number: usize) -> Vec<u8> {
    let mut noise = number as u64 + 1;
    let body = (0..20_000).map(|_| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    });
    let block: Vec<u8> = b"HTTP/1.1 200 OK\r\n\r\n".iter().copied().chain(body).collect();
    record("response", &format!("http://a.example/{number}"), &block)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// With an extra field in its header.
fn gzip_with_extra(bytes: &[u8], extra: impl Fn(u32, u32) -> Vec<u8>) -> Vec<u8> {
    let member = gzip(bytes);
    let length = member.len() + 2 + extra(0, 0).len();
    let field = extra(length as u32, bytes.len() as u32);
    let mut out = member[..10].to_vec();
    out[3] |= 4;
    out.extend((field.len() as u16).to_le_bytes());
    out.extend(field);
    out.extend(&member[10..]);
    out
}

fn sl(length: u32, decoded: u32) -> Vec<u8> {
    [&b"sl\x08\x00"[..], &length.to_le_bytes(), &decoded.to_le_bytes()].concat()
}

struct Seen {
    uris: Vec<String>,
    rules: Vec<&'static str>,
    damaged: usize,
    blocks: Vec<Vec<u8>>,
}

fn see(mut reader: Reader) -> Seen {
    let mut seen = Seen { uris: Vec::new(), rules: Vec::new(), damaged: 0, blocks: Vec::new() };
    while let Some(mut record) = reader.next().unwrap() {
        seen.uris.push(String::from_utf8_lossy(record.head().target_uri().unwrap_or_default()).into_owned());
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        seen.blocks.push(block);
        seen.damaged += usize::from(record.finish().unwrap().damaged);
    }
    seen.rules = reader.take_findings().iter().map(|f| f.rule.id()).collect();
    seen
}

/// From a file, which can be looked at again where that helps.
fn recover(bytes: Vec<u8>) -> Seen {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    see(Reader::of_file(file, 0, None, Options::recover()).unwrap())
}

fn strict(bytes: Vec<u8>) -> Seen {
    see(Reader::new(Cursor::new(bytes), Options::strict()).unwrap())
}

fn pages(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(page).collect()
}

#[test]
fn a_well_formed_file_gives_no_finding_in_any_container() {
    let plain = pages(5).concat();
    let members: Vec<u8> = pages(5).iter().flat_map(|p| gzip(p)).collect();
    let frames: Vec<u8> = pages(5).iter().flat_map(|p| zstd::bulk::compress(p, 3).unwrap()).collect();
    for bytes in [plain, members, frames] {
        let seen = strict(bytes);
        assert_eq!((seen.uris.len(), seen.rules.len(), seen.damaged), (5, 0, 0), "{:?}", seen.rules);
        assert_eq!(seen.uris[4], "http://a.example/4");
    }
}

#[test]
fn members_that_are_put_together_wrongly_are_read_and_reported() {
    let plain = pages(4).concat();
    let whole = strict(gzip(&plain));
    assert_eq!((whole.uris.len(), whole.rules), (4, vec!["member-many-records"]));

    let cut = pages(1).concat().len() / 2;
    let split = strict([gzip(&plain[..cut]), gzip(&plain[cut..])].concat());
    assert_eq!(split.uris.len(), 4);
    assert!(split.rules.contains(&"member-splits-record"), "{:?}", split.rules);

    let in_head = strict([gzip(&plain[..40]), gzip(&plain[40..])].concat());
    assert_eq!(in_head.uris.len(), 4);
    assert!(in_head.rules.contains(&"member-splits-record"), "{:?}", in_head.rules);

    let empty = strict([gzip(&page(0)), gzip(b""), gzip(b""), gzip(&page(1))].concat());
    assert_eq!((empty.uris.len(), empty.rules), (2, vec!["member-empty", "member-empty"]));

    let padded = strict([gzip(&page(0)), vec![0; 5000], gzip(&page(1)), vec![0; 3]].concat());
    assert_eq!((padded.uris.len(), padded.rules), (2, vec!["container-padding", "container-padding"]));

    let switched = strict([gzip(&page(0)), page(1)].concat());
    assert_eq!((switched.uris.len(), switched.rules), (2, vec!["container-switch"]));
    let switched = strict([page(0), gzip(&page(1))].concat());
    assert_eq!((switched.uris.len(), switched.rules), (2, vec!["container-switch"]));
}

#[test]
fn extra_fields_of_gzip_headers_do_not_matter() {
    let right: Vec<u8> = pages(3).iter().flat_map(|p| gzip_with_extra(p, sl)).collect();
    // wget 1.14 forgot the two bytes that give the field's length.
    let wget = |length: u32, decoded: u32| [&b"sl"[..], &length.to_le_bytes(), &decoded.to_le_bytes()].concat();
    let broken: Vec<u8> = pages(3).iter().flat_map(|p| gzip_with_extra(p, wget)).collect();
    let other = |_, _| b"LX\x04\x00\x01\x02\x03\x04".to_vec();
    let alexa: Vec<u8> = pages(3).iter().flat_map(|p| gzip_with_extra(p, other)).collect();
    for bytes in [right, broken, alexa] {
        let seen = strict(bytes);
        assert_eq!((seen.uris.len(), seen.rules.len()), (3, 0), "{:?}", seen.rules);
    }
}

#[test]
fn damage_in_compressed_data_costs_only_what_it_hits() {
    let members: Vec<Vec<u8>> = pages(5).iter().map(|p| gzip(p)).collect();
    let mut checksum = members.clone();
    let at = checksum[2].len() - 6;
    checksum[2][at] ^= 1;
    let seen = recover(checksum.concat());
    assert_eq!(seen.uris.len(), 5);
    assert!(seen.rules.contains(&"container-checksum"), "{:?}", seen.rules);
    assert_eq!(seen.damaged, 1);

    let mut data = members.clone();
    let middle = data[2].len() / 2;
    data[2][middle..middle + 20].fill(0xff);
    let seen = recover(data.concat());
    assert!(seen.uris.len() >= 4 && seen.uris.contains(&"http://a.example/3".to_owned()), "{:?}", seen.uris);
    assert!(seen.rules.iter().any(|r| r.starts_with("container-")), "{:?}", seen.rules);

    let all = members.concat();
    let seen = recover(all[..all.len() - 30].to_vec());
    assert_eq!(seen.uris.len(), 5, "the last record comes as far as it goes");
    assert!(seen.rules.contains(&"container-truncated") && seen.rules.contains(&"block-truncated"), "{:?}", seen.rules);

    let garbage =
        [members[0].clone(), b"\x1f\x8b\x08 this is no member \x1f\x8b".repeat(100), members[1].clone()].concat();
    let seen = recover(garbage);
    assert_eq!((seen.uris.len(), seen.rules), (2, vec!["garbage"]));
}

#[test]
fn lengths_that_lie() {
    let text = |length: &str| {
        let page_one = String::from_utf8(page(1)).unwrap();
        let line = page_one.lines().find(|l| l.starts_with("Content-Length")).unwrap().to_owned() + "\r\n";
        let other = if length.is_empty() { String::new() } else { format!("Content-Length: {length}\r\n") };
        [page(0), page_one.replacen(&line, &other, 1).into_bytes(), page(2)].concat()
    };
    for (length, rule) in [
        ("", "length-missing"),
        ("-1", "length-invalid"),
        ("many", "length-invalid"),
        ("99999999999999999999", "length-invalid"),
        ("100000", "length-too-large"),
        ("18446744073709551615", "length-doubtful"),
        ("10", "length-doubtful"),
    ] {
        let seen = recover(text(length));
        let rules = seen.rules.clone();
        assert!(seen.uris.contains(&"http://a.example/2".to_owned()), "{length}: {rules:?}");
        assert!(rules.contains(&rule), "{length}: {rules:?}");
        assert_eq!(seen.uris.len(), 3, "{length}");
    }
    // In a compressed file the member bounds the block.
    let wrong = String::from_utf8(page(1)).unwrap().replacen("Content-Length: ", "Content-Length: 9", 1);
    let seen = recover([gzip(&page(0)), gzip(wrong.as_bytes()), gzip(&page(2))].concat());
    assert_eq!(seen.uris.len(), 3);
    assert!(seen.rules.contains(&"length-too-large"), "{:?}", seen.rules);
}

#[test]
fn heads_in_every_shape() {
    let feeds = String::from_utf8(page(0)).unwrap().replace("\r\n", "\n");
    let seen = strict([feeds.into_bytes(), page(1)].concat());
    assert_eq!(seen.uris.len(), 2);
    assert!(seen.rules.contains(&"head-line-end"), "{:?}", seen.rules);

    let folded = b"WARC/1.0\r\nWARC-Type:\r\n resource\r\nWARC-Target-URI: http://a.example/\r\n\tfolded\r\nWARC-Record-ID: <urn:x:1>\r\n\
                   WARC-Date: 2020-01-02T03:04:05Z\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";
    let mut reader = Reader::new(Cursor::new(folded.to_vec()), Options::strict()).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!(record.head().kind(), RecordKind::Resource);
    assert_eq!(record.head().target_uri().unwrap(), b"http://a.example/ folded");
    assert_eq!(record.head().raw().len(), folded.len() - 7);

    for (version, expected) in [
        ("WARC/0.17", Version::Warc(0, 17)),
        ("WARC/0.18", Version::Warc(0, 18)),
        ("WARC/1.1", Version::Warc(1, 1)),
        ("warc/1.0", Version::Warc(1, 0)),
    ] {
        let text = String::from_utf8(page(0)).unwrap().replacen("WARC/1.0", version, 1);
        let mut reader = Reader::new(Cursor::new(text.into_bytes()), Options::strict()).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().head().version(), expected);
        assert!(reader.next().unwrap().is_none());
        assert!(reader.take_findings().is_empty(), "{version}");
    }
    for version in ["WARC/1.2", "WARC/2.0", "WARC/0.19", "WARC/x", "WARC/1.0 "] {
        let text = String::from_utf8(page(0)).unwrap().replacen("WARC/1.0", version, 1);
        let seen = strict(text.into_bytes());
        assert_eq!(seen.uris.len(), 1, "{version}");
        assert!(seen.rules.iter().any(|r| r.starts_with("version")), "{version}: {:?}", seen.rules);
    }

    let long = format!("WARC/1.0\r\nX: {}\r\n\r\n", "y".repeat(2 << 20));
    let seen = recover([page(0), long.into_bytes(), page(1)].concat());
    assert_eq!(seen.uris.len(), 2);
    assert!(seen.rules.contains(&"head-too-long"), "{:?}", seen.rules);

    let unended = recover([page(0), b"WARC/1.0\r\nWARC-Type: resource\r\n".to_vec(), page(1)].concat());
    assert_eq!(unended.uris, ["http://a.example/0", "", "http://a.example/1"]);
    assert!(unended.rules.contains(&"head-unended"), "{:?}", unended.rules);

    assert_eq!(strict(Vec::new()).rules, ["file-empty"]);
    assert_eq!(recover(vec![0; 10_000]).uris.len(), 0);
}

#[test]
fn ends_of_records() {
    let bare = page(0);
    let bare = &bare[..bare.len() - 4];
    let seen = strict([bare, &page(1)].concat());
    assert_eq!((seen.uris.len(), seen.rules), (2, vec!["end-missing"]));
    let seen = strict([page(0), b"\r\n\r\n".to_vec(), page(1)].concat());
    assert_eq!((seen.uris.len(), seen.rules), (2, vec!["end-extra"]));
}

#[test]
fn rules_of_the_standard_are_reported_with_their_offset() {
    let wrong = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: yesterday\r\nWARC-Filename: a\r\n\
                  WARC-Filename: b\r\nWARC-IP-Address: 999.1.1.1\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let offset = page(0).len() as u64;
    let mut reader = Reader::new(Cursor::new([&page(0), &wrong[..]].concat()), Options::strict()).unwrap();
    while reader.next().unwrap().is_some() {}
    let findings = reader.take_findings();
    assert!(findings.iter().all(|f| f.offset == offset && f.record == Some(1)), "{findings:?}");
    let rules: std::collections::BTreeSet<&str> = findings.iter().map(|f| f.rule.id()).collect();
    for rule in [
        "field-not-allowed",
        "field-missing",
        "field-repeated",
        "date-invalid",
        "address-invalid",
        "content-type-unexpected",
    ] {
        assert!(rules.contains(rule), "{rule} is missing in {rules:?}");
    }
}

#[test]
fn arc_files_of_both_versions() {
    let body = "HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>old</p>\n";
    let one = format!(
        "filedesc://one.arc 0.0.0.0 20000102030405 text/plain 76\n1 0 Somebody\nURL IP-address Archive-date Content-type Archive-length\n\n\n\
         http://a.example/ 192.0.2.1 20000102030406 text/html {0}\n{body}\nhttp://a.example/a b 192.0.2.1 20000102030407 text/html {0}\n{body}\n",
        body.len()
    );
    let two = format!(
        "filedesc://two.arc 0.0.0.0 20000102030405 text/plain 200 - - 0 two.arc 122\n2 0 Somebody\n\
         URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length\n\n\n\
         http://a.example/ 192.0.2.1 20000102030406 text/html 200 abc - 209 two.arc {}\n{body}\n",
        body.len()
    );
    let seen = recover(one.clone().into_bytes());
    assert_eq!(seen.uris, ["filedesc://one.arc", "http://a.example/", "http://a.example/a b"]);
    assert_eq!(seen.blocks[2], body.as_bytes());
    let mut reader = Reader::new(Cursor::new(two.into_bytes()), Options::recover()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().head().kind(), RecordKind::ArcHeader);
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.head().version(), record.head().get("Result-code").unwrap()), (Version::Arc2, &b"200"[..]));
    // A length that lies, and one that is no number.
    let lying =
        one.replace(&format!("text/html {}", body.len()), "text/html 4").replacen("text/html 4\n", "text/html -1\n", 1);
    let seen = recover(lying.into_bytes());
    assert_eq!(seen.uris.len(), 3);
    assert!(seen.rules.contains(&"length-invalid") && seen.rules.contains(&"length-doubtful"), "{:?}", seen.rules);
}

#[test]
fn zstandard_with_a_dictionary_in_its_first_frame() {
    let samples: Vec<Vec<u8>> = (0..200).map(page).collect();
    let dictionary = zstd::dict::from_samples(&samples, 8 << 10).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let frames: Vec<u8> = pages(5).iter().flat_map(|p| compressor.compress(p).unwrap()).collect();
    let leading =
        |bytes: &[u8]| [&0x184d_2a5d_u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let squeezed = zstd::bulk::compress(&dictionary, 3).unwrap();
    for dictionary in [dictionary.clone(), squeezed] {
        let seen = strict([leading(&dictionary), frames.clone()].concat());
        assert_eq!((seen.uris.len(), seen.rules.len()), (5, 0), "{:?}", seen.rules);
    }
    let without = recover(frames);
    assert_eq!(without.uris.len(), 0);
    assert!(without.rules.contains(&"zstd-dictionary") || without.rules.contains(&"garbage"), "{:?}", without.rules);
}

#[test]
fn a_filter_steps_over_members_whose_length_is_known() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    // Noise that does not inflate: had the members been decoded, it would be found.
    let mut bytes = Vec::new();
    for number in 0..6 {
        let mut member = gzip_with_extra(&noisy_page(number), sl);
        if number % 2 == 1 {
            let end = member.len();
            member[end - 20..end - 8].fill(0xff);
        }
        bytes.extend(member);
    }
    file.write_all(&bytes).unwrap();
    let wanted = Filter { uri_prefix: Some(b"http://a.example/4".to_vec()), ..Filter::default() };
    let mut reader = Reader::open(file.path(), Options::recover().filtered(wanted)).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.number(), record.head().target_uri().unwrap()), (4, &b"http://a.example/4"[..]));
    assert!(reader.next().unwrap().is_none());
    assert!(reader.take_findings().is_empty());
    for (filter, expected) in [
        (Filter { kinds: vec![RecordKind::Request], ..Filter::default() }, 0),
        (Filter { from_ms: Some(1_577_934_245_000), ..Filter::default() }, 6),
        (Filter { to_ms: Some(1_577_934_244_999), ..Filter::default() }, 0),
    ] {
        let plain = see(Reader::new(Cursor::new(pages(6).concat()), Options::recover().filtered(filter)).unwrap());
        assert_eq!(plain.uris.len(), expected);
    }
}

#[test]
fn a_length_field_that_lies_is_not_believed() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let lie = |_, decoded| sl(5000, decoded);
    let bytes: Vec<u8> = (0..4).flat_map(|n| gzip_with_extra(&noisy_page(n), lie)).collect();
    file.write_all(&bytes).unwrap();
    let wanted = Filter { uri_prefix: Some(b"http://a.example/3".to_vec()), ..Filter::default() };
    let seen = see(Reader::open(file.path(), Options::recover().filtered(wanted)).unwrap());
    assert_eq!(seen.uris, ["http://a.example/3"]);
    assert!(seen.rules.contains(&"member-length-field"), "{:?}", seen.rules);
}

#[test]
fn several_cores_see_what_one_sees_even_where_a_body_holds_an_archive() {
    // A WARC file as the body of a record, incompressible and therefore stored: its members stand in the outer file byte for byte.
    let members: Vec<Vec<u8>> = (0..300).map(|number| gzip(&noisy_page(number))).collect();
    let inner = members.concat();
    let outer = record("resource", "http://a.example/crawl.warc.gz", &inner);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for _ in 0..3 {
        file.write_all(&gzip(&outer)).unwrap();
        file.write_all(&members[..50].concat()).unwrap();
    }
    let list = |reader: &mut Reader, _| -> io::Result<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        while let Some(record) = reader.next()? {
            let offset = record.offset();
            found.push((offset, record.finish()?.block_bytes));
        }
        Ok(found)
    };
    let all = |threads: usize| {
        let mut found = Vec::new();
        read_parts(file.path(), threads, &Options::recover(), list, |part| {
            found.extend(part);
            Ok(())
        })
        .unwrap();
        found
    };
    let one = all(1);
    assert_eq!(one.len(), 153);
    assert_eq!(all(2), one);
    assert_eq!(all(4), one);
}

/// Makes a block of any size without holding it.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = (into.len() as u64).min(self.0) as usize;
        into[..count].fill(b'z');
        self.0 -= count as u64;
        Ok(count)
    }
}

#[test]
fn a_block_larger_than_four_gigabytes_streams() {
    let length = (4u64 << 30) + 12_345;
    let head = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n\
         WARC-Target-URI: http://a.example/big\r\nContent-Length: {length}\r\n\r\n"
    );
    let file = Cursor::new(head).chain(Zeros(length)).chain(Cursor::new([b"\r\n\r\n".to_vec(), page(1)].concat()));
    let mut reader = Reader::new(file, Options::recover()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().finish().unwrap().block_bytes, length);
    assert_eq!(reader.next().unwrap().unwrap().head().target_uri().unwrap(), b"http://a.example/1");
    let resident = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = resident.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 200_000, "{peak}");
}

#[test]
fn ranges_and_places() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let members: Vec<Vec<u8>> = pages(4).iter().map(|p| gzip(p)).collect();
    file.write_all(&members.concat()).unwrap();
    let offset = (members[0].len() + members[1].len()) as u64;
    let mut reader = Reader::at(file.path(), offset, Some(members[2].len() as u64), Options::recover()).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.offset(), record.head().target_uri().unwrap()), (offset, &b"http://a.example/2"[..]));
    assert_eq!(record.finish().unwrap().length, members[2].len() as u64);
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.container(), Container::Gzip);
}

#[test]
fn packages_are_read_in_place() {
    let members: Vec<u8> = pages(3).iter().flat_map(|p| gzip(p)).collect();
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut package = zip::ZipWriter::new(&mut file);
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        package.start_file("datapackage.json", options).unwrap();
        package.write_all(b"{}").unwrap();
        package.start_file("archive/data.warc.gz", options).unwrap();
        package.write_all(&members).unwrap();
        package.finish().unwrap();
        assert!(wacz::is_package(file.path()).unwrap());
        let entries = wacz::archives(file.path()).unwrap();
        assert_eq!(entries.len(), 1);
        let seen = see(entries[0].reader(file.path(), Options::strict()).unwrap());
        assert_eq!((seen.uris.len(), seen.rules.len()), (3, 0));
    }
    let mut broken = tempfile::NamedTempFile::new().unwrap();
    broken.write_all(b"PK\x03\x04 and nothing else").unwrap();
    assert_eq!(wacz::entries(broken.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_repaired_file_is_well_formed_and_holds_what_could_be_had() {
    let mut broken = [page(0), b"garbage".to_vec(), page(1)].concat();
    broken.extend(&page(2)[..page(2).len() - 100]);
    let mut out = Vec::new();
    let repaired = repair(&mut Reader::new(Cursor::new(gzip(&broken)), Options::recover()).unwrap(), &mut out).unwrap();
    assert_eq!((repaired.records, repaired.changed, repaired.truncated), (3, 1, 1));
    let before = recover(broken);
    let after = strict(out);
    assert_eq!(after.rules, Vec::<&str>::new());
    assert_eq!((after.uris, after.blocks), (before.uris, before.blocks));
}

/// Heads without an end, one behind the other: as many as there are, in the time of their bytes.
#[test]
fn heads_fused_in_very_great_numbers_are_each_returned_once() {
    let head = |number: usize| format!("WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{number}>\r\nA: b");
    let fused: String = (0..12_000).map(head).collect();
    assert!(fused.len() < skep_warc::limits::HEAD_BYTES_MAX && 3 * fused.len() > 2 * skep_warc::limits::HEAD_BYTES_MAX);
    let seen = recover([fused.as_bytes(), b"\r\n\r\n", &page(1)].concat());
    assert_eq!(seen.uris.len(), 12_001);
    // Longer than a head may be: the beginnings are passed over until what is left is not.
    let longer = fused.repeat(3);
    let seen = recover([longer.as_bytes(), b"\r\n\r\n", &page(1)].concat());
    assert!(seen.uris.len() > 12_001 && seen.uris.len() < 36_001, "{}", seen.uris.len());
    assert_eq!(seen.uris.last(), recover(page(1)).uris.last());
}
