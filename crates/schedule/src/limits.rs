//! Every bound of this package, with its unit.

/// Between the end of an answer and the next request to the same site, whatever else is said.
pub const SITE_GAP_MS_MIN: u64 = 500;

/// A slow site is left alone for this many times the duration of its last answer.
pub const ANSWER_TIMES: u64 = 5;

/// The gap that slowness alone can reach; a Crawl-delay may ask for more.
pub const SITE_GAP_MS_MAX: u64 = 60_000;

/// The longest Crawl-delay that is kept as it stands; who asks for more gets this.
pub const CRAWL_DELAY_MS_MAX: u64 = 86_400_000;

/// The first wait after a refusal without `Retry-After`, or after a host failed; doubled each time.
pub const BACKOFF_MS_MIN: u64 = 30_000;

/// Where the doubling ends.
pub const BACKOFF_MS_MAX: u64 = 3_600_000;

/// The longest wait that `Retry-After` can ask for.
pub const PARK_MS_MAX: u64 = 7 * 86_400_000;

/// As often as this the server's own `Retry-After` is taken at its word; who goes on refusing is left alone for longer.
pub const PARKS_AT_WORD: u8 = 3;

/// After so many refusals in a row, without one answer between, a host is given up.
pub const PARKS_MAX: u8 = 10;

/// After so many failures in a row a URL is dead, and a host is given up.
pub const FAILURES_MAX: u8 = 5;

/// How long a lease lasts.
pub const LEASE_MS: u64 = 600_000;

/// URLs in one bundle.
pub const BUNDLE_URLS_MAX: u32 = 100;

/// URLs below which the bundle of an own host without pace is not split further.
pub const OWN_BUNDLE_URLS_MIN: u32 = 4;

/// How long a bundle should take at the site's present gap: a slow site must not sit on a place that others wait for.
pub const HOLD_MS: u64 = 60_000;

/// Leases out at once.
pub const CONCURRENCY: u32 = 64;

/// Leases out at once on one own host without pace.
pub const OWN_CONCURRENCY: u32 = 8;

/// Leases out at once on one address.
pub const ADDRESS_IN_FLIGHT_MAX: u16 = 2;

/// Hosts of one site that are looked at to find one whose address has room.
pub const HOSTS_TRIED_MAX: usize = 16;

/// How long the answer to a [`Locate`](crate::Order::Locate) is waited for.
pub const LOCATE_MS_MAX: u64 = 30_000;

/// How long fewer leases are given after this machine ran out of something.
pub const LOCAL_REST_MS: u64 = 30_000;

/// By how much one step of priority goes before others that have been ready for longer.
pub const PRIORITY_LEAD_MS: u64 = 60_000;

/// Lapsed leases whose late reports are still understood.
pub const LAPSED_KEPT_MAX: usize = 1_024;

const _: () = assert!(HOLD_MS >= BUNDLE_URLS_MAX as u64 * SITE_GAP_MS_MIN); // a quick site can have a whole bundle
const _: () = assert!(LEASE_MS >= 2 * HOLD_MS + SITE_GAP_MS_MAX * ANSWER_TIMES); // a bundle that turns slow still owns its lease
const _: () = assert!(BACKOFF_MS_MAX < PARK_MS_MAX);
const _: () = assert!(CRAWL_DELAY_MS_MAX <= u32::MAX as u64); // a gap fits its field
