//! Every bound of this package, with its unit.

/// Links from a seed to a page, at most.
pub const DEPTH_MAX: u16 = 4_000;
/// Redirects in a row.
pub const REDIRECT_HOPS_MAX: u8 = 10;
/// Bundles out at once, if nothing else is said: a laptop's worth.
pub const CONCURRENCY_DEFAULT: u32 = 64;
/// Bundles out at once, at most.
pub const CONCURRENCY_MAX: u32 = 10_000;
/// URLs that travel together.
pub const BUNDLE_URLS_MAX: u32 = 100;
/// Visits whose records are on their way to the disk, for one worker: memory for bodies is bounded by it.
pub const UNSYNCED_VISITS_MAX: usize = 256;
/// The same in bytes.
pub const UNSYNCED_BYTES_MAX: u32 = 64 << 20;
/// A visit waits so long at most, in milliseconds, for word whether another slice has its large body; then it is kept.
pub const SHARED_BODY_MS_MAX: u64 = 4_000;
/// A registry follows its records by at most so much.
pub const CHECKPOINT_BYTES: u64 = 64 << 20;
/// By at most so many links: two seconds or so of folding when a crawl that was killed begins again.
pub const CHECKPOINT_LINKS: u64 = 500_000;
/// And by at most so long.
pub const CHECKPOINT_MS: u64 = 10_000;
/// Progress is told so often.
pub const PROGRESS_MS: u64 = 1_000;
/// A server that says that a page is as it was is believed for so many looks, …
pub const BELIEVED_LOOKS: i64 = 32;
/// … for so many milliseconds at least …
pub const BELIEVED_MS_MIN: i64 = 600_000;
/// … and at most, …
pub const BELIEVED_MS_MAX: i64 = 30 * 86_400_000;
/// … but for so many looks at least; …
pub const BELIEVED_LOOKS_MIN: i64 = 4;
/// … where nobody knows how often it is looked at, for so many records that say so.
pub const BELIEVED_RECORDS: u32 = 3;
/// The crawl's file of settings and the free space are looked at so often.
pub const LOOK_AROUND_MS: u64 = 2_000;
/// Descriptors kept for what is not a connection.
pub const FILES_RESERVED: u64 = 128;
/// A run does not wait longer than this for a site that asked to be left alone, when nothing else is left to do.
pub const PARK_WAIT_MS_MAX: u64 = 3_600_000;
/// Hosts whose robots.txt is kept in memory.
pub const ROBOTS_CACHED_HOSTS_MAX: usize = 20_000;
/// Bytes of those files. Rules that were read from them take up a few times as much.
pub const ROBOTS_CACHED_BYTES_MAX: usize = 16 << 20;
/// Pages of one text, more than others between them, after which a host is asked for what cannot be there.
pub const SOFT_ALIKE: u8 = 5;
/// Folders of a host in which it is asked.
pub const SOFT_FOLDERS_MAX: usize = 8;
/// Pages that were there and are all led to one place, after which whoever is led there found nothing.
pub const SOFT_LED: usize = 5;
/// Hosts that a run has at hand in this respect.
pub const SOFT_HOSTS_MAX: usize = 20_000;

/// A watch asks a host again for something that cannot be there after so many milliseconds.
pub const SOFT_ASKED_MS: i64 = 30 * 86_400_000;

/// The same for one that did not answer.
pub const SOFT_AGAIN_MS: i64 = 3_600_000;

/// A page whose words differ from those of the page for what is not there in no more than so many bits of 64 is such a page.
pub const SOFT_BITS_MAX: u32 = 6;
/// A robots.txt is read to here; RFC 9309 asks for 500 KiB.
pub const ROBOTS_BYTES_MAX: u64 = 512 << 10;
/// Hosts whose place in the scope is kept in memory.
pub const HOST_MEMOS_MAX: usize = 100_000;
/// Hosts of which a run remembers that their addresses are kept.
pub const NAMES_KEPT_MAX: usize = 16_384;
/// Refused URLs that are judged again at once, when rules change.
pub const JUDGED_AT_ONCE: usize = 10_000;
/// Payload digests of a moment ago, which the view does not show yet.
pub const RECENT_DIGESTS_MAX: usize = 65_536;
/// Bodies up to here are decoded and parsed.
pub const PARSED_BYTES_MAX: u64 = 64 << 20;
/// Decoded to encoded bytes, at most, once [`RATIO_FROM_BYTES`] came out.
pub const DECODE_RATIO_MAX: u64 = 200;
/// Below this a high ratio is harmless.
pub const RATIO_FROM_BYTES: u64 = 1 << 20;
/// Sitemaps read for one host.
pub const SITEMAPS_PER_HOST_MAX: u32 = 500;
/// Seeds of one crawl.
pub const SEEDS_MAX: usize = 1_000_000;
/// Passes whose beginnings are remembered.
pub const PASSES_REMEMBERED: usize = 1_000;
/// A pattern of the user, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// The largest HEARD record, in URLs.
pub const HEARD_URLS_MAX: usize = 1_000;
/// A URL as fetched, in bytes.
pub const URL_BYTES_MAX: usize = 8_192;
/// In `skep queue` and reports: the hosts named, at most.
pub const HOSTS_LISTED_MAX: usize = 50;

// --- other hands ---------------------------------------------------------------------------------------------------

/// A rest between two requests that only those speak of who brought the robots.txt.
pub const HANDS_DELAY_MS_MAX: u64 = 30_000;
/// A wait for which only other hands say that a site asked.
pub const HANDS_PARK_MS_MAX: u64 = 3_600_000;

// --- the network ---------------------------------------------------------------------------------------------------

/// Sites remembered as having answered, to be asked when nobody else does.
pub const CANARIES_MAX: usize = 3;
/// They are looked at anew so often.
pub const CANARY_NOTED_MS: u64 = 1_000;
/// How long the turn of a canary is waited for.
pub const CANARY_TURN_MS: u64 = 10_000;
/// How long others wait for what a canary says.
pub const DOUBT_MS_MAX: u64 = 60_000;
/// Bytes of a body by which it is told whether two answers are the same; its length counts as well.
pub const ALIKE_BYTES_MAX: u64 = 16 << 10;
/// The last visits that are fetched again if a portal answered them.
pub const ALIKE_KEPT_MAX: usize = 1_024;

// --- nodes that crawl together -------------------------------------------------------------------------------------

/// Links that travel together.
pub const FORWARD_LINKS_MAX: usize = 1_000;
/// A link waits so long for others to the same leader.
pub const FORWARD_WAIT_MS: u64 = 1_000;
/// What could not be brought is tried again after so long.
pub const FORWARD_AGAIN_MS: u64 = 2_000;
/// Links remembered as sent.
pub const FORWARDED_REMEMBERED_MAX: usize = 1 << 20;
/// Links that are not safe elsewhere yet; while there are more, no page is fetched that could add to them.
pub const OUTBOX_LINKS_MAX: usize = 1 << 20;
/// A site of which more URLs are known here than this is told of, so that it may be split.
pub const SITE_URLS_MAX: u64 = 1 << 20;
/// Hosts with fewer URLs are not looked at for that …
pub const LARGE_HOST_URLS_MIN: u64 = 256;
/// … which is done so often: it is a walk through all hosts.
pub const LARGE_MS: u64 = 10 * 60_000;
/// Links taken in from others in one go.
pub const LINKS_IN_MAX: usize = 10_000;
/// How politely the sites of a slice were visited, as it travels with a lease.
pub const POLITE_BYTES_MAX: usize = 30 << 10;
/// A site's name in it: longer than any that can be looked up.
pub const POLITE_SITE_BYTES_MAX: usize = 255;
/// It is told so often, where there is news.
pub const POLITE_MS: u64 = 500;
/// Where many nodes watch together, a node sees so often which slices it leads.
pub const LED_LOOK_MS: u64 = 200;
/// A wait up to here is waited out anew by the next leader, whatever the clocks say.
pub const POLITE_WAIT_SURE_MS: u64 = 60_000;
/// Hosts of a site that is split whose waits one message can tell …
pub const HEEDED_MAX: usize = 1_024;
/// … and all messages together.
pub const HEEDED_KEPT_MAX: usize = 16_384;
/// What such a site wanted in a turn that is over is told once more so often, as long as it holds.
pub const REMIND_MS: u64 = 60_000;
/// How long a request that is under way may hold up the next leader.
pub const POLITE_HELD_MS: u64 = 10_000;
/// A slice whose copy cannot be read for so long is left to another leader; until then it is tried again …
pub const UNREADABLE_MS_MAX: u64 = 30_000;
/// … at growing distances, at most this one.
pub const UNREADABLE_WAIT_MS_MAX: u64 = 60_000;

// --- the records of a visit -----------------------------------------------------------------------------------------

/// Records up to here are wrapped, not deflated: setting up the tables costs more than the bytes are worth.
pub const WRAPPED_RECORD_BYTES_MAX: usize = 1_024;
/// A response in a file is encoded in memory up to this size; a larger one goes to a file again.
pub const ENCODED_IN_MEMORY_BYTES_MAX: u64 = 4 << 20;
/// A 304 is recorded again after so long; sooner it is a check line.
pub const REVISIT_AGAIN_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Links in one metadata record.
pub const LINKS_MAX: usize = 100_000;
/// The lines of the links in one metadata record.
pub const LINK_LINES_BYTES_MAX: usize = 8 << 20;
/// Differences between one full list of a page's links and the next.
pub const LINK_CHAIN_MAX: u8 = 10;
/// A value in a metadata record; a longer one is cut.
pub const META_VALUE_BYTES_MAX: usize = 4 << 10;
/// The title of a page; a longer one is cut.
pub const TITLE_BYTES_MAX: usize = 1 << 10;
/// Lines of one name in a metadata record, those of links apart.
pub const META_REPEATED_MAX: usize = 64;
/// A metadata record that is read.
pub const META_BYTES_MAX: usize = 16 << 20;
/// Check lines in one record.
pub const CHECKS_MAX: usize = 10_000;
/// A check line with its end.
pub const CHECK_LINE_BYTES_MAX: usize = 40;
/// Different outcomes in one record of checks: two digits.
pub const CHECK_OUTCOMES_MAX: usize = 36 * 36;
/// The parameter of an outcome in a check line: three digits.
pub const CHECK_PARAMETER_MAX: u16 = 36 * 36 * 36 - 1;
/// The time between the first and the last check in one record: six digits of milliseconds, 25 days.
pub const CHECKS_SPAN_MS_MAX: u64 = 36_u64.pow(6) - 1;
/// The block of a record of heard URLs.
pub const HEARD_BYTES_MAX: usize = 1 << 20;
/// URLs in a record of heard URLs that is read.
pub const HEARD_READ_URLS_MAX: usize = 100_000;
/// What a record of heard URLs may expand to when it is read.
pub const HEARD_TEXT_BYTES_MAX: usize = 64 << 20;
/// Pages named as sources in one record of heard URLs.
pub const HEARD_SOURCES_MAX: usize = 1_000;

/// Every page of a watch after so many milliseconds, at least: moments are counted in seconds.
pub const EVERY_MS_MIN: u64 = 1_000;
/// Visits a day for each page of a watch, on average, where nothing else is said.
pub const VISITS_PER_PAGE_DEFAULT: f32 = 1.0;
/// Tags of a watch.
pub const TAGS_MAX: usize = 64;
/// Bytes of a tag.
pub const TAG_BYTES_MAX: usize = 100;
/// Sites whose pages lend each other what is known of them; pages of others go by what is known of all.
pub const WATCHED_SITES_MAX: usize = 65_536;
/// Blocks of 128 URLs that are recalled, or looked through for what is due, before somebody else has a turn.
pub const BLOCKS_AT_ONCE: u32 = 64;
/// Entries, or hosts, that are looked at for a question before somebody else has a turn.
pub const INQUIRED_AT_ONCE: u64 = 8_192;
/// Bytes that are read of an answer whose type is not wanted: as much as keeps the connection for the next one.
pub const UNWANTED_BYTES_MAX: u64 = 64 << 10;
/// Hosts of a queue that are listed.
pub const QUEUE_HOSTS_MAX: usize = 100_000;
/// Broken links listed.
pub const BROKEN_MAX: usize = 100_000;
/// URLs of a host whose dates are listed.
pub const SCHEDULE_URLS_MAX: usize = 100;
/// Pages by which the freshness of a watch is reckoned.
pub const FRESH_SAMPLE: usize = 4_096;
/// Seeds of a watch that are told with how it stands.
pub const TOLD_SEEDS_MAX: usize = 100;

// What is written can be read, and what a sidecar should repeat is not too long for it.
const _: () = assert!(LINK_LINES_BYTES_MAX + 3 * META_REPEATED_MAX * 2 * META_VALUE_BYTES_MAX < META_BYTES_MAX);
const _: () =
    assert!(CHECKS_MAX * CHECK_LINE_BYTES_MAX + CHECK_OUTCOMES_MAX * 80 < skep_archive::limits::NOTE_BYTES_MAX);
const _: () = assert!(FORWARD_LINKS_MAX <= LINKS_IN_MAX && POLITE_HELD_MS <= POLITE_WAIT_SURE_MS);
const _: () = assert!(HEARD_BYTES_MAX < skep_archive::limits::NOTE_BYTES_MAX);
const _: () =
    assert!(HEARD_URLS_MAX <= HEARD_READ_URLS_MAX && HEARD_URLS_MAX * 3 * URL_BYTES_MAX < HEARD_TEXT_BYTES_MAX);
const _: () = assert!(22 + 1 + 6 + 1 + 2 + 1 + 3 + 1 + 2 + 1 == CHECK_LINE_BYTES_MAX);
