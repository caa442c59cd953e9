//! Every bound of this package, with its unit.

use std::time::Duration;

// --- words ----------------------------------------------------------------------------------------------------------

/// Bytes of a word; a longer one is cut, in texts and in queries alike.
pub const WORD_BYTES_MAX: usize = 64;

// --- queries --------------------------------------------------------------------------------------------------------

/// Characters of a query.
pub const QUERY_CHARS_MAX: usize = 1000;
/// Words, phrases and filters of a query.
pub const QUERY_PARTS_MAX: usize = 32;
/// Words of a query, those of phrases included.
pub const QUERY_WORDS_MAX: usize = 64;

// --- reading captures -----------------------------------------------------------------------------------------------

/// Bytes of a record's block that are read for its text.
pub const BLOCK_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a page, decoded, that are read for its text.
pub const BODY_BYTES_MAX: u64 = 16 << 20;
/// Bytes of text that are indexed of one page.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a title that are indexed and shown.
pub const TITLE_BYTES_MAX: usize = 1 << 10;
/// Captures with the payload of a revisit that are tried.
pub const ORIGINALS_MAX: usize = 16;

// --- following the records ------------------------------------------------------------------------------------------

/// Memory of the index writer, in bytes; it writes to disk when it has gathered so much.
pub const WRITER_BYTES: usize = 48 << 20;
/// Bytes of text gathered before they become findable together.
pub const BATCH_TEXT_BYTES: usize = 256 << 20;
/// Entries of tables gathered before they are written together.
pub const BATCH_ENTRIES: usize = 50_000;
/// After this, what failed is tried again.
pub const TRY_AGAIN: Duration = Duration::from_secs(10);
/// How often the records are looked at for new ones.
pub const TICK: Duration = Duration::from_millis(500);
/// Entries deleted at once when the tables are emptied.
pub const CLEARED_AT_ONCE: usize = 10_000;

// --- answering ------------------------------------------------------------------------------------------------------

/// Results of one page, at most.
pub const RESULTS_MAX: usize = 100;
/// Results that paging reaches.
pub const REACH_MAX: usize = 10_000;
/// Documents taken from the index at a time.
pub const CANDIDATES_AT_ONCE: usize = 200;
/// Documents looked at for one page of results: some are of other dates or may not be shown.
pub const CANDIDATES_MAX: usize = 20_000;
/// Captures of one URL looked at to find the one with a text.
pub const CAPTURES_MAX: usize = 1000;
/// Characters of a passage shown with a result.
pub const PASSAGE_CHARS: usize = 240;

const _: () = assert!(RESULTS_MAX <= REACH_MAX && CANDIDATES_AT_ONCE <= CANDIDATES_MAX);
const _: () = assert!(WRITER_BYTES >= 15 << 20); // the index asks for as much
