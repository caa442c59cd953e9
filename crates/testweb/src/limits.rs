//! Every bound of the test web, with its unit.

/// Hosts in one plan.
pub const HOSTS_MAX: usize = 100_000;
/// Items (pages, images, redirects, …) of one kind on one generated host.
pub const ITEMS_MAX: u32 = 10_000_000;
/// Links from one page to its children; bounds the size of a page and the work of dating it.
pub const FAN_OUT_MAX: u32 = 1_000;
/// Bytes of one generated body.
pub const PAGE_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// Bytes of a generated robots.txt.
pub const ROBOTS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Redirects followed from one robots.txt to find what it finally says (RFC 9309, section 2.3.1.2).
pub const ROBOTS_HOPS_MAX: usize = 5;
/// URLs in one sitemap of a generated host; small, so that an ordinary host already has several.
pub const SITEMAP_URLS: usize = 500;
/// Entries in a feed.
pub const FEED_ENTRIES: usize = 20;
/// Ordinary pages linked from the front page of a hostile host.
pub const ORDINARY_LINKS: usize = 12;

/// Connections open at once over all addresses; more wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a request head, and so of the buffer of one connection.
pub const REQUEST_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Header lines of a request.
pub const REQUEST_HEADERS_MAX: usize = 200;
/// Bytes of a request body that are read and thrown away before the answer; more closes the connection.
pub const REQUEST_BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Time in which a request head, or a TLS handshake, must be complete.
pub const REQUEST_HEAD_MS: u64 = 30_000;
/// Time given to answers in flight when the web stops.
pub const STOP_MS: u64 = 2_000;
/// Time given to the last words on a connection that is being closed.
pub const GOODBYE_MS: u64 = 1_000;
/// Longest delay that a behaviour may put before an answer.
pub const DELAY_MS_MAX: u64 = 600_000;
/// Questions that the name server has under way, and connections to it; more are not heard.
pub const DNS_UNDER_WAY_MAX: usize = 1_000;
/// Names whose questions are counted one by one.
pub const DNS_NAMES_MAX: usize = 100_000;
/// A connection that is not taken in this time finds the queue full.
pub const QUEUE_FULL_MS: u64 = 50;
/// Connections that fill the shortest queue of any system.
pub const QUEUE_FULL_MAX: usize = 16;
/// Certificates kept ready, one per host name.
pub const CERTIFICATES_MAX: usize = 10_000;
/// Bytes read from a file at a time, and pieces waiting for a slow reader.
pub const FILE_PIECE_BYTES: usize = 64 * 1024;
/// Pieces of a file waiting for a slow reader.
pub const FILE_PIECES: usize = 4;

/// Requests kept one by one in the auditor; its sums and its findings go on beyond.
pub const AUDIT_REQUESTS_MAX: usize = 100_000;
/// Findings kept one by one; beyond, they are counted by kind.
pub const AUDIT_FINDINGS_MAX: usize = 1_000;
/// Hosts, sites and addresses the auditor keeps sums for.
pub const AUDIT_PLACES_MAX: usize = HOSTS_MAX;
/// Latest receive times kept per host and site, so that requests reported out of order still find their neighbours.
pub const AUDIT_RECENT: usize = 64;
/// Bytes kept of a path or user agent in the auditor.
pub const AUDIT_TEXT_BYTES_MAX: usize = 512;

/// Changes of files in one git history.
pub const HISTORY_CHANGES_MAX: usize = 5_000_000;
/// Bytes of one file in a git history.
pub const HISTORY_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Symbolic links followed from one path in a git history.
pub const HISTORY_LINKS_MAX: usize = 8;
/// Files listed by the truth of one folder.
pub const FOLDER_FILES_MAX: usize = 1_000_000;
/// Folders within folders that the truth of a folder walks down.
pub const FOLDER_DEPTH_MAX: usize = 64;

const _: () = assert!(ROBOTS_BYTES_MAX > 2 * 512_000); // "huge" must be able to pass what RFC 9309 obliges a crawler to read
const _: () = assert!(STOP_MS < REQUEST_HEAD_MS); // stopping never waits for an idle peer
