//! Every bound of this package, with its unit. What meets one is cut there and says so in [`crate::Page::cut`].

/// Bytes of a page, decoded, that are read.
pub const PAGE_BYTES_MAX: usize = 64 << 20;

/// Links kept of one page, by first occurrence.
pub const LINKS_MAX: usize = 20_000;

/// Bytes of one attribute that are read; a longer one is no link.
pub const ATTRIBUTE_BYTES_MAX: usize = 16 << 10;

/// Attributes kept of one tag.
pub const ATTRIBUTES_MAX: usize = 1_024;

/// Open elements remembered inside `svg` and `math`, which decide where text is markup. Deeper ones are not told apart.
pub const FOREIGN_DEPTH_MAX: usize = 64;

/// Work on one page. A step is a byte looked at, or what costs about as much (a nanosecond or less); finding and resolving a
/// link is charged with [`LINK_STEPS`] more.
pub const STEPS_MAX: u64 = 250_000_000;

/// What a link costs beyond its bytes.
pub const LINK_STEPS: u64 = 250;

/// Bytes of styles that are read on one page, attributes and `style` elements together, or of one style sheet.
pub const CSS_BYTES_MAX: usize = 8 << 20;

/// Longest URL that is a link.
pub const URL_BYTES_MAX: usize = skep_url::limits::URL_BYTES_MAX;

/// Bytes at the beginning of a page in which a declaration of its charset counts (HTML standard).
pub const PRESCAN_BYTES: usize = 1_024;

/// Bytes that are looked at to guess a charset that nobody declared.
pub const CHARSET_GUESS_BYTES_MAX: usize = 64 << 10;

/// Bytes at the beginning of a body that tell what it is.
pub const SNIFF_BYTES: usize = 1_024;

/// Bytes kept of a title.
pub const TITLE_BYTES_MAX: usize = 1_024;

/// Signals kept of one page.
pub const SIGNALS_MAX: usize = 64;

/// Bytes kept of one signal's value.
pub const SIGNAL_BYTES_MAX: usize = 1_024;

/// Bytes of all header fields of one name that are read.
pub const HEADER_BYTES_MAX: usize = 64 << 10;

/// Bytes of a sitemap, decoded, that are read (sitemaps.org).
pub const SITEMAP_BYTES_MAX: usize = 50 << 20;

/// URLs read of one sitemap (sitemaps.org).
pub const SITEMAP_URLS_MAX: usize = 50_000;

/// Sitemaps that one sitemap index may name.
pub const SITEMAP_INDEX_MAX: usize = 50_000;

/// Bytes of text inside one XML element that is read.
pub const XML_TEXT_BYTES_MAX: usize = 16 << 10;

/// Entries read of one feed.
pub const FEED_ENTRIES_MAX: usize = 5_000;

/// Bytes of a feed that are read.
pub const FEED_BYTES_MAX: usize = 16 << 20;

/// Visible text kept of one page, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Bytes of a body that are searched for marks of a challenge page. Real ones are small.
pub const CHALLENGE_BYTES_MAX: usize = 64 << 10;

/// Bytes of a page, style sheet or script that rewriting holds back to see a whole tag, string or inline script. What is longer
/// passes as it is.
pub const HELD_BYTES_MAX: usize = 8 << 20;

/// Pages inside pages (`srcdoc`) that are rewritten.
pub const INNER_PAGES_MAX: u8 = 3;

/// Open brackets that are remembered of a script. Deeper ones are not told apart.
pub const BRACKETS_MAX: usize = 16 << 10;

/// Bytes of a style sheet looked at to find the name before a parenthesis.
pub const CSS_NAME_BYTES_MAX: usize = 64;

/// Blocks of visible text that are compared of one page; the rest is passed over.
pub const BLOCKS_MAX: usize = 100_000;

/// Facts of structured data that are compared of one page.
pub const FACTS_MAX: usize = 256;

/// Bytes kept of the value of one fact.
pub const FACT_BYTES_MAX: usize = 256;

/// Bytes of structured data that are read in one `script` element.
pub const FACTS_SCRIPT_BYTES_MAX: usize = 512 << 10;

/// Places on a page that are remembered as changing often.
pub const SLOTS_MAX: usize = 32;

/// Selectors, and patterns, that the rules of one site may have.
pub const SITE_RULES_MAX: usize = 64;

/// Parts of one selector, and names and attributes of one part.
pub const SELECTOR_PARTS_MAX: usize = 8;

/// Open elements that are remembered for one selector.
pub const SELECTOR_OPEN_MAX: usize = 64;

/// Memory for one compiled pattern of a site's rules, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Lines that are shown beside each other of each text.
pub const SHOWN_LINES_MAX: usize = 20_000;

/// Words times words that are compared, over all pairs of lines; the lines after that are marked whole.
pub const SHOWN_WORK_MAX: u64 = 50_000_000;

/// Lines that stay before and after a difference.
pub const SHOWN_CONTEXT_LINES: usize = 3;

/// Pairs of lines that are looked at to find which became which, in one place.
pub const SHOWN_PAIRS_MAX: usize = 4_096;

const _: () = assert!(ATTRIBUTE_BYTES_MAX >= URL_BYTES_MAX); // every URL that can be fetched fits into an attribute
const _: () = assert!(STEPS_MAX > 2 * PAGE_BYTES_MAX as u64); // an ordinary page of the largest size is read whole
