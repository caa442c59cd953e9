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

/// How long after that more of the same is the same.
pub const SHRINK_AGAIN_MS: u64 = 1_000;

/// Places that must be silent in a row, and nobody heard between, until a canary is asked whether the network is there.
pub const OUTAGE_PLACES: usize = 4;

/// Within so long.
pub const OUTAGE_WINDOW_MS: u64 = 60_000;

/// How long a run waits for a network that is down.
pub const OUTAGE_MS_MAX: u64 = 86_400_000;

/// How long it waits for a way out that never was there: more likely it was typed wrongly.
pub const BARRED_MS_MAX: u64 = 600_000;

/// The first wait until a canary is asked again; doubled each time.
pub const PROBE_MS_MIN: u64 = 5_000;

/// Where the doubling ends.
pub const PROBE_MS_MAX: u64 = 60_000;

/// Sites that must give one answer in a row until a canary is asked whether it gives it too.
pub const PORTAL_SITES: usize = 3;

/// Addresses that must give it where nothing else was ever heard.
pub const PORTAL_ADDRESSES_BLIND: usize = 8;

/// Sites of one address that must refuse in a row, with no answer from it between, to be one refusal.
pub const BAN_SITES: usize = 4;

/// Trials that are refused, each after a longer wait, until the sites of an address are given up: half an hour in all.
pub const BAN_TRIALS_MAX: u8 = 6;

/// After the end of a ban one site goes first, and the others so much later.
pub const BAN_TRIAL_MS: u64 = 60_000;

/// Addresses about which it is remembered whether they answer; some 80 bytes each.
pub const BREAKERS_MAX: usize = 65_536;

/// Pages after which it is asked whether a site is a mirror of another one at its address.
pub const MIRROR_PAGES: u32 = 5;

/// Of a hundred of its pages, how many must have been seen from another site.
pub const MIRROR_PERCENT: u32 = 80;

/// Pages of a site that are looked at for this.
pub const MIRROR_PAGES_LOOKED: u32 = 32;

/// Mirrors at one address that make a farm of it.
pub const MIRROR_SITES: u32 = 4;

/// Pages and sites remembered for this; some 40 bytes each.
pub const MIRRORS_KEPT_MAX: usize = 65_536;

/// A process that did not look at its clock for so long was asleep, and so were its deadlines.
pub const SLEPT_MS_MIN: u64 = 4_000;

/// By how much one step of priority goes before others that have been ready for longer.
pub const PRIORITY_LEAD_MS: u64 = 60_000;

/// Lapsed leases whose late reports are still understood.
pub const LAPSED_KEPT_MAX: usize = 1_024;

const _: () = assert!(HOLD_MS >= BUNDLE_URLS_MAX as u64 * SITE_GAP_MS_MIN); // a quick site can have a whole bundle
const _: () = assert!(LEASE_MS >= 2 * HOLD_MS + SITE_GAP_MS_MAX * ANSWER_TIMES); // a bundle that turns slow still owns its lease
const _: () = assert!(BACKOFF_MS_MAX < PARK_MS_MAX);
const _: () = assert!(CRAWL_DELAY_MS_MAX <= u32::MAX as u64); // a gap fits its field

/// Segments of a path. Real ones reach 21.
pub const SEGMENTS_MAX: usize = 32;

/// Segments of the longest sequence whose repetition is looked for.
pub const REPEAT_WIDTH_MAX: usize = 4;

/// Times that one segment may stand in a row.
pub const REPEATS_OF_ONE_MAX: usize = 3;

/// Times that a sequence of segments may stand in a row.
pub const REPEATS_OF_MANY_MAX: usize = 2;

/// Times that numbers and single letters may stand in a row.
pub const REPEATS_OF_NUMBERS_MAX: usize = 6;

/// Times that one segment may stand anywhere in a path.
pub const REPEATS_ANYWHERE_MAX: usize = 5;

/// Links into a folder, never heard of, that a page must have to count as deepening.
pub const DEEPENING_LINKS_MIN: u32 = 2;

/// Of a hundred links into a folder, how many must be new for a page to count as deepening.
pub const DEEPENING_PERCENT: u64 = 50;

/// Folders of a URL that are looked at, the host's included.
pub const FOLDER_LEVELS: usize = 6;

/// Deepening pages, halved by every plain one, after which a folder is probed. The longest run on thirty thousand pages of documentation is 12.
pub const SUSPECT_RUN: u32 = 10;

/// The same where at least half of them dripped.
pub const SUSPECT_RUN_SLOW: u32 = 6;

/// More of them for each link from another site, at most twenty times.
pub const RUN_PER_FOREIGN_LINK: u32 = 2;

/// Generations that must deepen, each from a page of the one before, until a folder is a maze.
pub const MAZE_GENERATIONS: u32 = 4;

/// Deepening probes after which a probed folder is judged.
pub const PROBES: u32 = 12;

/// The same where at least half of the pages dripped.
pub const PROBES_SLOW: u32 = 6;

/// One probe in so many that links to a known page of its own, other than back, saves the folder: in a maze no two ways meet.
pub const PROBES_PER_MEETING: u32 = 8;

/// Known URLs per page that are looked at for this.
pub const MET_PER_PAGE_MAX: usize = 64;

/// Known URLs per folder that count as its menu.
pub const MENU_MAX: usize = 256;

/// Plain pages among the probes that clear a folder …
pub const PLAIN_PROBES_MIN: u32 = 2;

/// … if there is one for fewer than so many that deepened.
pub const PROBES_PER_PLAIN: u32 = 3;

/// Plain pages that a folder must have brought to be trusted.
pub const PLAIN_TRUSTED: u32 = 4;

/// Visits to a folder that may be out before it has shown anything; four more for each plain page.
pub const UNTRUSTED_OUT_MAX: u32 = 8;

/// Visits to a folder that may be out while it is probed.
pub const PROBES_OUT_MAX: u32 = 2;

/// Times that URLs of a folder are put off before one goes all the same, because nothing deeper may be waiting.
pub const PUT_OFF_MAX: u16 = 2_048;

/// Times that this happens until the probes that were had must do.
pub const FORCED_MAX: u32 = 4;

/// Folder levels below which the number of visits out is not watched.
pub const WATCHED_LEVELS: usize = 3;

/// Folders remembered per site.
pub const FOLDERS_PER_SITE_MAX: usize = 512;

/// A page drips when it took longer than this …
pub const SLOW_ANSWER_MS: u64 = 5_000;

/// … and came with fewer bytes a second than this.
pub const SLOW_BYTES_PER_S: u64 = 1_024;

/// Hosts of one site that are taken in without question.
pub const HOSTS_PER_SITE: u32 = 1_000;

/// Hosts more for each link from another site.
pub const HOSTS_PER_FOREIGN_LINK: u32 = 100;

/// Visits that every shape has.
pub const SHAPE_VISITS: u32 = 32;

/// One visit in so many must have led to new URLs of the shape: a closed set that says little is no trap.
pub const VISITS_PER_EXTENSION: u32 = 4;

/// Visits more for each distinct text that the shape brought.
pub const VISITS_PER_TEXT: u32 = 4;

/// Shapes remembered per site.
pub const SHAPES_PER_SITE_MAX: usize = 512;

/// Parameters of a query that make its shape.
pub const SHAPE_PARAMETERS_MAX: usize = 16;

/// Sites about which traps remember something.
pub const TRAP_SITES_MAX: usize = 16_384;

/// Folders and shapes remembered over all sites; some 150 bytes each.
pub const TRAP_ENTRIES_MAX: usize = 131_072;

/// Visits between two looks at whether that bound holds.
pub const TRAP_SWEEP_VISITS: u32 = 4_096;

const _: () = assert!(SUSPECT_RUN_SLOW <= SUSPECT_RUN && PROBES_SLOW <= PROBES && MAZE_GENERATIONS <= PROBES_SLOW);

/// Days that an observation counts for at least: two visits in the same second saw something of the page's time.
pub const OBSERVED_DAYS_MIN: f32 = 1.0 / 86_400.0;

/// Days after which half of what was seen of a page's changes is forgotten …
pub const FADE_DAYS: f32 = 720.0;

/// … but one visit never makes more than this share of the earlier ones forgotten.
pub const FADE_LEAST: f32 = 0.8;

/// Pages of the web at large that a site's own pages are weighed against, where a page's rate is guessed.
pub const SITE_PRIOR_PAGES: f32 = 6.0;

/// Pages that must be known before the first guess about the web at large is worth as little as they.
pub const FIRST_PRIOR_PAGES: f32 = 100.0;

/// `ln` of changes per day where nothing at all can be said: once in thirty days, within a factor of a hundred.
pub const RATE_LN_UNKNOWN: f32 = -3.4;

/// Its deviation.
pub const SPREAD_UNKNOWN: f32 = 2.3;

/// Days between two visits of the same page: five minutes at least …
pub const INTERVAL_DAYS_MIN: f32 = 300.0 / 86_400.0;

/// … and three years at most.
pub const INTERVAL_DAYS_MAX: f32 = 1_095.0;

/// Days after which a page that waits is looked at by the price of the day.
pub const REVIEW_DAYS: f32 = 7.0;

/// Mean revisit periods after which it is, where that is sooner.
pub const REVIEW_PERIODS: f32 = 0.25;

/// Days after which a page whose visit brought nothing may be visited again; twice as many each time that this happens …
pub const GIVEN_BACK_DAYS: f32 = 1.0 / 24.0;

/// … and so many at most.
pub const UNANSWERED_DAYS_MAX: f32 = 7.0;

/// Days after which a page that was not there is looked for again.
pub const FAILED_DAYS: f32 = 1.0;

/// Days after which it is looked for once more.
pub const FAILED_WEEK_DAYS: f32 = 7.0;

/// The most such days.
pub const FAILED_DAYS_MAX: f32 = 180.0;

/// What was seen later than so many days from now was seen by a clock that was wrong.
pub const CLOCK_DAYS_AHEAD: f32 = 1.0;

/// Looks for such a page at its own interval, where every page has one, before they become seldom.
pub const FAILED_LOOKS_EVERY: i32 = 5;

/// Of a hundred visits, those to new pages as long as there are any.
pub const DISCOVERY_PERCENT: u32 = 12;

/// The same by Anansi's rule.
pub const DISCOVERY_PERCENT_ANANSI: u32 = 90;

/// What Anansi's change ratio counts for at least: what did not change comes last, not never.
pub const CHANGE_RATIO_LEAST: f32 = 1.0 / 256.0;

/// Of a hundred visits, those to any page whatever, by which the others are judged.
pub const AUDIT_PERCENT: u32 = 2;

/// Days after which half of what is known of a host's hints is forgotten.
pub const TRUST_FADE_DAYS: f32 = 90.0;

/// Changes that hints are held to have left out before anything is known.
pub const UNTOLD_BEFORE: f32 = 2.0;

/// The silence of a source is worth no more than this, however much it tells: a page of which it tells nothing is taken to change a fourth as often.
pub const SILENCE_MAX: f32 = 1.386;

/// The price of a visit on the first day, times visits per page and day.
pub const PRICE_GUESS: f32 = 0.05;

/// The least price.
pub const PRICE_MIN: f32 = 1e-9;

/// The highest price.
pub const PRICE_MAX: f32 = 1e9;

/// The first step from the last price, in its logarithm.
pub const PRICE_STEP: f32 = 0.25;

/// How precisely a price is found, in its logarithm.
pub const PRICE_PRECISION: f32 = 0.01;

/// Pages of the sample on which the price is found.
pub const PRICE_SAMPLE: usize = 2_048;

/// Mean revisit periods between two prices …
pub const EPOCH_PERIODS: f32 = 1.0 / 8.0;

/// … in days, at least …
pub const EPOCH_DAYS_MIN: f32 = 1.0 / 48.0;

/// … and at most.
pub const EPOCH_DAYS_MAX: f32 = 2.0;

/// Mean revisit periods by which a visit is late when all is well: work that lies ready for every idle moment.
pub const LATE_WANTED: f32 = 0.01;

/// The most lateness, in mean revisit periods, that counts as lasting.
pub const LATE_SEEN_MAX: f32 = 0.1;

/// How the price answers to lateness at once, in its logarithm per mean revisit period.
pub const TRIM_NOW: f32 = 2.0;

/// How it answers to lateness that stays, in each mean revisit period.
pub const TRIM_LATE: f32 = 2.0;

/// How it answers to idleness, in each mean revisit period of it.
pub const TRIM_IDLE: f32 = 3.0;

/// The most that this can make of the price, in its logarithm.
pub const TRIM_MAX: f32 = 3.0;

/// Steps in which a rate of visits is found where there is no formula for it.
pub const SOLVE_STEPS_MAX: u32 = 16;

/// URLs that are looked at together when the first of them is due.
pub const BLOCK_URLS: u32 = 128;

/// Seconds of unused budget that may be caught up with.
pub const CREDIT_S: f64 = 600.0;

const _: () = assert!(FIRST_PRIOR_PAGES > 0.0 && SITE_PRIOR_PAGES > 0.0); // a prior always has weight
const _: () = assert!(AUDIT_PERCENT + DISCOVERY_PERCENT_ANANSI < 100);

// --- who stands nearest ---------------------------------------------------------------------------------------------

/// Somebody is nearer to a host if connecting takes at least so much less time there, in milliseconds …
pub const NEAR_MS_MIN: u32 = 10;

/// … and at least this part less of the time it takes from here.
pub const NEAR_PART: u32 = 4;

/// A bundle of fewer URLs is not worth the way to another node.
pub const NEAR_URLS_MIN: usize = 3;

/// For so long it counts how long connecting to a host took; nobody connects to it again, only to see, before that.
pub const NEAR_AGAIN_MS: u64 = 12 * 3_600_000;

/// A host at which there is something that others could not bring is ours for so long.
pub const NEAR_OURS_MS: u64 = 3_600_000;

/// A node that has as much to do as it takes is asked again after so long.
pub const NEAR_BUSY_MS: u64 = 5_000;

/// Hosts of which it is remembered how far they are: some five megabytes.
pub const NEAR_HOSTS_MAX: usize = 16_384;

/// Others of whom that is remembered for one host: holders of its slice, those who come and go among them.
pub const NEAR_FELLOWS_MAX: usize = 8;

/// Nodes that are left alone because they were asked in vain.
pub const NEAR_NODES_MAX: usize = 128;

const _: () = assert!(NEAR_PART > 1 && NEAR_MS_MIN > 0); // nobody is nearer by nothing
const _: () = assert!(NEAR_OURS_MS < NEAR_AGAIN_MS);
