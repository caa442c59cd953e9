//! Bounds on HTTP messages inside records.

/// Longest head (first line and fields, interim responses included) that is looked for, in bytes. Browsers stop at 256 KiB.
pub const HTTP_HEAD_BYTES_MAX: usize = 1 << 20;

/// Bytes that must be at hand before a message is judged not to be HTTP.
pub const SNIFF_BYTES: usize = 16;

/// Stray bytes accepted before the status line, as browsers do.
pub const LEADING_BYTES_MAX: usize = 4;

/// Longest protocol word other than HTTP that may begin a status line (`ICY`, `NCSA/1.5.1`), in bytes.
pub const PROTOCOL_BYTES_MAX: usize = 11;

/// Longest method of a request, in bytes.
pub const METHOD_BYTES_MAX: usize = 32;

/// Longest chunk size line, extensions included, in bytes.
pub const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// A first chunk up to this size is held back until the line end behind it proves that the body is chunked at all, in bytes.
pub const CHUNK_PROOF_BYTES_MAX: usize = 64 << 10;

/// Trailer fields kept behind the last chunk, in bytes; more are skipped.
pub const TRAILER_BYTES_MAX: usize = 64 << 10;

const _: () = assert!(SNIFF_BYTES > LEADING_BYTES_MAX + "HTTP/1.1".len());
const _: () = assert!(SNIFF_BYTES > PROTOCOL_BYTES_MAX + " 200".len()); // what is judged is at hand
const _: () = assert!(HTTP_HEAD_BYTES_MAX < u32::MAX as usize); // offsets in a head are u32
