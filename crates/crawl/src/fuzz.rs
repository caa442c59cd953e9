//! Functions over any bytes that check what must hold for all of them. Tests run them on seeded mutations of the inputs kept
//! in `fuzz/`.

use crate::checks::{self, Checks};
use crate::heard::{self, Batch, Heard, Put};
use crate::limits::{CHECK_LINE_BYTES_MAX, LINKS_MAX, URL_BYTES_MAX};
use crate::links::{Difference, Link, LinkSet, Links, LinksDigest, ReadLink};
use crate::metadata::{self, Meta, Metadata};

/// Metadata blocks: what was read can be written, and is then read as it was.
pub fn fuzz_metadata(input: &[u8]) {
    let Ok(meta) = metadata::parse(input) else { return };
    assert!(meta.links.links.len() <= LINKS_MAX && meta.links.gone.len() <= LINKS_MAX);
    let once = again(&meta);
    assert_eq!(again(&once), once, "one form, once written");
    let mut set = LinkSet::default();
    let applied = set.apply(&meta.links);
    assert!(applied || set.is_empty(), "what does not fit changes nothing");
    if once.links.since.is_none() {
        assert!(set.apply(&once.links), "a full list is whole");
    }
}

fn again(meta: &Meta) -> Meta {
    let links: Vec<Link<'_>> = meta.links.links.iter().map(ReadLink::as_link).collect();
    let directives: Vec<&str> = meta.directives.iter().map(String::as_str).collect();
    let notes: Vec<&str> = meta.notes.iter().map(String::as_str).collect();
    let metadata = Metadata {
        crawl: &meta.crawl,
        depth: meta.depth,
        redirects: meta.redirects,
        via: meta.via.as_deref(),
        kind: meta.kind.as_deref(),
        verdict: &meta.verdict,
        found: meta.found.as_deref(),
        due: None,
        timings: meta.timings,
        hands: meta.hands.as_deref(),
        sources: meta.sources.as_deref(),
        vantages: &meta.vantages,
        tls_fault: meta.tls_fault.as_deref(),
        charset: meta.charset.as_deref(),
        title: meta.title.as_deref(),
        language: meta.language.as_deref(),
        canonical: meta.canonical.as_deref(),
        directives: &directives,
        signals: &meta.signals,
        notes: &notes,
        retry_after_ms: meta.retry_after_ms,
        park_until_ms: meta.park_until_ms,
        links: match meta.links.since {
            None => Links::Full(&links),
            Some(since) => Links::Difference(Difference {
                since,
                came: links,
                gone: meta.links.gone.iter().map(String::as_str).collect(),
                count: meta.links.count.unwrap_or(0),
                digest: meta.links.digest.unwrap_or(LinksDigest([0; 16])),
            }),
        },
    };
    let mut block = Vec::new();
    metadata.write(&mut block);
    metadata::parse(&block).expect("what is written can be read")
}

/// Records of checks: likewise, and no line is too long.
pub fn fuzz_checks(input: &[u8]) {
    let Ok(read) = checks::parse(input) else { return };
    let again = |read: &Checks| {
        let (block, count) = checks::encode(&read.crawl, &read.host, &read.checks);
        let end = memchr::memmem::find(&block, b"\n\n").expect("an empty line ends the head") + 2;
        assert!(block[end..].split_inclusive(|b| *b == b'\n').all(|line| line.len() <= CHECK_LINE_BYTES_MAX));
        let written = checks::parse(&block).expect("what is written can be read");
        assert_eq!(written.checks.len(), count);
        written
    };
    let once = again(&read);
    assert_eq!(once.checks.len(), read.checks.len(), "one record has room for what one record held");
    assert!(
        once.checks.iter().zip(&read.checks).all(|(a, b)| (a.fingerprint, a.time_ms) == (b.fingerprint, b.time_ms))
    );
    assert_eq!(again(&once), once, "one form, once written");
}

/// Records of heard URLs: only URLs come out, and they come out again.
pub fn fuzz_heard(input: &[u8]) {
    let mut all = Vec::new();
    let crawl = heard::parse(input, &mut |heard| {
        assert!((1..=URL_BYTES_MAX).contains(&heard.url.len()) && heard.url.bytes().all(|b| b.is_ascii_graphic()));
        all.push((heard.url.to_owned(), heard.depth, heard.class.to_owned(), heard.source.map(str::to_owned)));
    });
    let Ok(crawl) = crawl else { return };
    let mut batch = Batch::new(&crawl);
    let mut taken = Vec::new();
    for (url, depth, class, source) in &all {
        // Only a URL of ours is kept as a source.
        let source = source.as_deref().filter(|s| s.len() <= URL_BYTES_MAX && s.bytes().all(|b| b.is_ascii_graphic()));
        let source = source.filter(|source| !source.is_empty());
        match batch.put(&Heard { url, depth: *depth, class, source }) {
            Put::Taken => taken.push((url.clone(), *depth, class.clone(), source.map(str::to_owned))),
            Put::Full | Put::NotAUrl => break,
        }
    }
    let mut read = Vec::new();
    let keep = &mut |heard: Heard<'_>| {
        read.push((heard.url.to_owned(), heard.depth, heard.class.to_owned(), heard.source.map(str::to_owned)));
    };
    heard::parse(&batch.finish(), keep).expect("what is written can be read");
    assert_eq!(read, taken);
}
