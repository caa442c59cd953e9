//! Every bound of this package, with its unit.

// --- messages -------------------------------------------------------------------------------------------------------

/// Bundles handed out at once.
pub const BATCH_BUNDLES_MAX: usize = 100;
/// What is said in one message.
pub const TOGETHER_MAX: usize = 128;
/// URLs and validators of the bundles of one answer; one bundle may have more.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// URLs of a bundle.
pub const BUNDLE_URLS_MAX: usize = 100;
/// A URL.
pub const URL_BYTES_MAX: usize = 8_192;
/// A validator, a name, a reason.
pub const TEXT_BYTES_MAX: usize = 4_096;
/// A media type, a fault, a note.
pub const NAME_BYTES_MAX: usize = 512;
/// A request as it was sent: its URL, two validators, and what else a request has.
pub const REQUEST_BYTES_MAX: usize = 32 << 10;
/// Any message of somebody who is not known yet, unpacked: a greeting.
pub const STRANGER_BYTES_MAX: usize = 64 << 10;
/// Any message, as sent.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Any message, unpacked. What is in it is bounded besides.
pub const UNPACKED_BYTES_MAX: usize = 16 << 20;
/// Bodies, or pieces of one, on their way to the node in one message.
pub const PIECE_BYTES_MAX: usize = 1 << 20;
/// The same through another node.
pub const PASSED_PIECE_BYTES: usize = PIECE_BYTES_MAX / 2;
/// An exchange that a contributor returns.
pub const WHOLE_BYTES_MAX: u64 = 72 << 20;
/// An answer of a site that a contributor takes; larger ones are for the node itself.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Files asked for on the way to a robots.txt, redirects included.
pub const ROBOTS_HOPS_MAX: usize = 6;
/// A robots.txt.
pub const ROBOTS_BYTES_MAX: u64 = 512 << 10;
/// How far clocks may be apart.
pub const CLOCK_MS_MAX: u64 = 600_000;
/// Hosts that a contributor did not want, as far as they are remembered.
pub const DECLINED_MAX: usize = 256;
/// For so long a contributor is not offered a host that it did not want: its owner's day has room again, or his wishes are others.
pub const DECLINED_MS: u64 = 3_600_000;
/// Bundles that one contributor has, in hand or on its disk: what a greeting can name.
pub const HOLDS_MAX: usize = 400;

// --- the node -------------------------------------------------------------------------------------------------------

/// A contributor that has not asked for so long is not there.
pub const THERE_MS: u64 = 90_000;
/// A bundle that may be fetched by the node waits so long for a contributor.
pub const OFFER_MS: u64 = 3_000;
/// Bundles that wait for contributors, for each of those who are there, beyond what is out.
pub const WAITING_PER_HAND: usize = 16;
/// Bundles that wait for contributors in all, where nobody else may fetch them.
pub const WAITING_MAX: usize = 100_000;
/// What has just come is shared by those who are there; after so long it is for whoever asks.
pub const FAIR_MS: u64 = 5_000;
/// Bundles that are out and of which a node still knows when it begins again.
pub const TAKEN_MAX: usize = 100_000;
/// The shortest lease.
pub const LEASE_MS_MIN: u64 = 15_000;
/// Time for one URL of a bundle, beside its gap.
pub const URL_MS: u64 = 3_000;
/// The longest time that a bundle is out.
pub const LEASE_MS_MAX: u64 = 300_000;
/// Two looks at a page are compared if they are no further apart.
pub const SLOT_MS: u64 = 600_000;
/// The longest time that a check of what was brought is out.
pub const CHECK_MS_MAX: u64 = 150_000;
/// How long a check of another contributor may wait to be taken, before the node makes it.
pub const CHECK_TAKEN_MS: u64 = 30_000;
/// Contributors drawn for a check: whoever of them asks first makes it.
pub const CHECKERS: usize = 4;
/// Of what is checked the node looks at one URL in so many itself, whoever is there.
pub const OWN_CHECK_ONE_IN: u64 = 40;
/// The same where so few are there that one can wait for what his partner brought.
pub const OWN_CHECK_ONE_IN_FEW: u64 = 10;
/// A bundle of a host with a known page gets it once in so many times.
pub const KNOWN_PAGE_ONE_IN: u64 = 8;
/// Known pages of a node.
pub const KNOWN_PAGES_MAX: usize = 100_000;
/// How long until an idle contributor asks again.
pub const LATER_SECONDS: u32 = 3;
/// Whoever asked in vain so often is sent to another node of the network where bundles wait.
pub const IDLE_ASKS: u32 = 2;
/// Whoever has been here so long goes where bundles wait and nobody is there.
pub const TURN_MS: u64 = 60_000;
/// How often other nodes are asked what waits there, while contributors are here.
pub const NEIGHBOURS_MS: u64 = 2_000;
/// So many of them at once, drawn anew each time.
pub const NEIGHBOURS_MAX: usize = 8;
/// Whoever was sent to a node and is back here before that gets there through this one: its portal cannot be reached by him.
pub const SENT_MS: u64 = 600_000;
/// Contributors of whom that is remembered.
pub const SENT_MAX: usize = 10_000;
/// Messages of contributors that are passed on at once, one of each.
pub const PASSED_MAX: usize = 16;
/// A message that is passed on.
pub const PASSED_BYTES_MAX: usize = 1 << 20;
/// How long until one asks again that has something to do.
pub const LATER_SECONDS_BUSY: u32 = 12;
/// Of a lease a contributor uses so many hundredths, counted from asking; the node waits for all of it, counted from giving.
pub const LEASE_USED_PERCENT: u64 = 80;
/// Bodies on their way from one contributor.
pub const COMING_BYTES_MAX: u64 = 256 << 20;
/// Bodies on their way from all of them.
pub const COMING_ALL_BYTES_MAX: u64 = 1 << 30;
/// Bundles that one who has just come may have at once; one more for each that comes back, half as many for each that does not.
pub const OUT_AT_FIRST: usize = 32;
/// URLs that the node fetches itself because contributors could not.
pub const OURS_MAX: usize = 100_000;
/// Contributors known to a node.
pub const CONTRIBUTORS_MAX: usize = 1_000_000;

// --- trust ----------------------------------------------------------------------------------------------------------

/// Good bundles before less is checked.
pub const GOOD_BUNDLES: u32 = 10;
/// The share of URLs that is always checked, in thousandths.
pub const FLOOR_PERMILLE: u64 = 20;
/// So often alone with what it saw before ten bundles in a row were good, it has lied: once or twice a page may have changed between two
/// looks, or look like that from its network.
pub const ALONE_MAX: u32 = 3;
/// The same for one whose place is known, and of which nobody else is there to speak for it.
pub const ALONE_OF_PLACE_MAX: u32 = 10;
/// URLs of a bundle for one who was alone and has not brought ten good ones since: what he lies about he can be caught with soon, and what
/// merely looks otherwise from his network is seldom among so few.
pub const DOUBTED_URLS_MAX: usize = 20;
/// Of pages that are said to have changed one in so many is checked besides: few change, and whoever alters something says so.
pub const CHANGED_ONE_IN: u64 = 10;
/// What nobody else saw for so long is fetched again when its source has lied.
pub const UNCONFIRMED_MS: i64 = 86_400_000;
/// A first suspension; each further one takes twice as long.
pub const SUSPENDED_MS: i64 = 86_400_000;
/// Results on disk that only one has seen, to be fetched again if it lied; the oldest are forgotten first.
pub const UNCONFIRMED_BYTES_MAX: u64 = 1 << 30;
/// URLs that are fetched again after one lie.
pub const UNCONFIRMED_URLS_MAX: usize = 1_000_000;
/// Results that may still be found false, per node.
pub const WITNESSED_MAX: usize = 1_000_000;
/// URLs whose class is known, per node.
pub const CLASSES_MAX: usize = 1_000_000;
/// Bits of simhash in which two versions of a noisy page may differ.
pub const NOISE_BITS: u32 = 3;
/// Leading zero bits that a proof of work needs, at the least.
pub const WORK_BITS: u8 = 18;
/// One bit more for each so many new keys of a subnet within a day.
pub const KEYS_PER_BIT: u32 = 2;
/// New keys of a subnet within a day; further ones wait.
pub const KEYS_PER_SUBNET_MAX: u32 = 16;
/// New keys within a day of a wide network: a /16, or a /32 of IPv6, of which one owner may have all 65,536 narrow ones.
pub const KEYS_AROUND_MAX: u32 = 256;
/// One bit more for each so many of these.
pub const KEYS_AROUND_PER_BIT: u32 = 32;
/// New keys within a day that come through one other node.
pub const KEYS_PER_NODE_MAX: u32 = 256;
/// Bits of work that a contributor does for a node, at the most.
pub const WORK_BITS_MAX: u8 = 28;
/// The same small body from so many hosts of one bundle batch is nobody's page.
pub const ALIKE_HOSTS: usize = 4;

// --- the volunteer's own rules --------------------------------------------------------------------------------------

/// No two requests to a site are closer, whatever a bundle says.
pub const OWN_GAP_MS: u64 = 500;
/// Requests to one site and day, whatever bundles say.
pub const OWN_SITE_DAY_MAX: u32 = 10_000;
/// Bundles of one host that are taken from one answer of a node: it has no more than one out.
pub const HOST_BUNDLES_MAX: usize = 1;
/// Sites remembered.
pub const SITES_MAX: usize = 100_000;
/// Bundles in hand for each connection.
pub const IN_HAND_PER_CONNECTION: usize = 2;
/// A contributor that is to finish asks a node that does not answer so many times; so does one at a node it was sent to, if it has results
/// for it.
pub const FINISH_TRIES: u32 = 3;
/// Whoever was sent to a node and has asked there in vain so often, with nothing in hand, goes home.
pub const HOME_ASKS: u32 = 10;
/// Nodes that wanted nothing more of a contributor and to which it does not go again while it runs.
pub const SHUNNED_MAX: usize = 1_000;
/// Bytes of exchanges after which nothing more is fetched for a bundle: what is brought has to be carried in time.
pub const BUNDLE_BYTES_MAX: u64 = 64 << 20;
/// Where a rate is bounded, a bundle holds no more than goes over the line in so many seconds.
pub const CARRY_SECONDS: u64 = 60;
/// Results for a node that is not spoken to any more are kept so long: it has given them to others since.
pub const WORK_KEPT_MS: u64 = 3_600_000;
/// No two connections to an address are handed over closer, whatever names lead there.
pub const ADDRESS_GAP_MS: u64 = 250;
/// Addresses remembered.
pub const ADDRESSES_MAX: usize = 10_000;
/// Connections that the broker makes at once.
pub const CONNECTING_MAX: usize = 256;
/// A fetcher that has not answered so long after it should have is ended: nothing it does then is within its owner's wishes.
pub const STUCK_MS: u64 = 60_000;
/// A node has no room for a body so often in a row: then everything else goes first.
pub const NO_ROOM_TRIES: u32 = 5;
/// Nodes whose keys are remembered, beside the one that the owner named; others are met anew each time.
pub const NODES_MAX: usize = 1_000;
/// Months whose bytes are remembered, for clocks that are wrong for a while.
pub const MONTHS_MAX: usize = 12;
/// No network of an owner is larger, whatever a table of routes says.
pub const OWN_PREFIX_BITS_MIN: u32 = 16;
/// Ports that are connected to, unless the owner allows private networks.
pub const PORTS: [u16; 2] = [80, 443];
/// Open files of the fetcher.
pub const FETCHER_FILES_MAX: u64 = 256;
/// Least memory that the fetcher needs.
pub const FETCHER_MEMORY_MIN: u64 = 128 << 20;
/// A frame between the three processes.
pub const FRAME_BYTES_MAX: usize = 80 << 20;
/// Bytes that the fetcher may read before it asks again, where nothing bounds it.
pub const GRANT_BYTES: u64 = 128 << 10;
/// The system's room for bytes that nobody has read yet, where a rate is bounded.
pub const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;
/// What may lie there unread when a connection is closed: the system makes twice the room that it is asked for.
pub const UNREAD_BYTES: u64 = 2 * RECEIVE_BUFFER_BYTES as u64;

const _: () = assert!(ANSWER_BYTES_MAX < WHOLE_BYTES_MAX && WHOLE_BYTES_MAX <= FRAME_BYTES_MAX as u64);
const _: () = assert!(PIECE_BYTES_MAX < MESSAGE_BYTES_MAX && MESSAGE_BYTES_MAX <= UNPACKED_BYTES_MAX);
const _: () = assert!(BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX < u16::MAX as usize);
const _: () = assert!(LEASE_USED_PERCENT < 100);
const _: () = assert!(URL_BYTES_MAX + 2 * TEXT_BYTES_MAX < REQUEST_BYTES_MAX);
const _: () = assert!(HOLDS_MAX * 10 + TEXT_BYTES_MAX < STRANGER_BYTES_MAX); // a greeting fits
const _: () = assert!(PASSED_PIECE_BYTES + (64 << 10) < PASSED_BYTES_MAX);
const _: () = assert!(BATCH_BUNDLES_MAX <= HOLDS_MAX && OUT_AT_FIRST <= HOLDS_MAX);
const _: () = assert!(BUNDLE_BYTES_MAX + WHOLE_BYTES_MAX < COMING_BYTES_MAX && COMING_BYTES_MAX < COMING_ALL_BYTES_MAX);
const _: () = assert!(CARRY_SECONDS * 1_000 < LEASE_MS_MAX);
const _: () = assert!(WORK_BITS as u32 + KEYS_PER_SUBNET_MAX / KEYS_PER_BIT <= WORK_BITS_MAX as u32);
const _: () = assert!(WORK_BITS as u32 + KEYS_AROUND_MAX / KEYS_AROUND_PER_BIT <= WORK_BITS_MAX as u32);
const _: () = assert!(LEASE_MS_MAX + CHECK_TAKEN_MS + CHECK_MS_MAX < SLOT_MS); // a check is within the slot of what it checks

// --- nodes that fetch for each other --------------------------------------------------------------------------------

/// A node says so soon whether it has room, or is not waited for.
pub const ROOM_MS_MAX: u64 = 2_000;
/// Between saying that there is room and beginning no more time passes than this.
pub const TICKET_MS_MAX: u64 = 10_000;
/// To connect once, a node has a site for so long.
pub const MEASURE_MS: u64 = 12_000;
/// The shortest time for which a node has a site to fetch from …
pub const GRANT_MS_MIN: u64 = 5_000;
/// … and the longest: if it breaks off, nobody else asks the site before that.
pub const GRANT_MS_MAX: u64 = 120_000;
/// What is said to a node: a bundle with its URLs. One that is longer is fetched by whoever leads.
pub const FOLLOW_QUESTION_BYTES_MAX: usize = 1 << 20;
/// An answer of a site that a node brings; larger ones are for whoever leads.
pub const FOLLOW_ANSWER_BYTES_MAX: u64 = 8 << 20;
/// One part of what it says: an answer with its head and its request.
pub const FOLLOW_PART_BYTES_MAX: usize = 10 << 20;
/// Answers of one bundle; what is left then goes back.
pub const FOLLOW_BUNDLE_BYTES_MAX: u64 = 16 << 20;
/// Bundles that a node fetches at once for others …
pub const FOLLOWED_MAX: usize = 32;
/// … and for one of them. Each takes one of the places for questions that nodes have at each other.
pub const FOLLOWED_PER_LEADER_MAX: usize = 8;
/// Bundles that whoever leads has with others at once, each with a thread that waits.
pub const HANDED_MAX: usize = 32;

const _: () = assert!(GRANT_MS_MAX < LEASE_MS_MAX && MEASURE_MS < GRANT_MS_MAX);
const _: () = assert!(ROOM_MS_MAX < TICKET_MS_MAX && GRANT_MS_MIN < MEASURE_MS);
const _: () = assert!(FOLLOW_ANSWER_BYTES_MAX as usize + (1 << 20) < FOLLOW_PART_BYTES_MAX);
const _: () = assert!(FOLLOWED_PER_LEADER_MAX <= FOLLOWED_MAX);
