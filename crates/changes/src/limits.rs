//! Every bound of this package, with its unit.

/// Captures judged in one batch, which becomes visible as a whole.
pub const BATCH_CAPTURES_MAX: usize = 4_096;

/// URLs that a thread takes at once to judge them.
pub const JUDGED_AT_ONCE: usize = 16;

/// Threads that judge.
pub const JUDGING_THREADS_MAX: usize = 16;

/// Check lines taken in in one batch.
pub const BATCH_LINES_MAX: usize = 16_384;

/// Bytes of a body, decoded, that are read to be compared.
pub const BODY_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a record, as stored and decoded, for which buffers are kept at hand; a larger one is read as a stream.
pub const KEPT_BYTES_MAX: usize = 1 << 20;

/// A body may become so many times larger by decoding …
pub const DECODE_RATIO_MAX: u64 = 1_000;

/// … from so many bytes on.
pub const RATIO_FROM_BYTES: u64 = 16 << 20;

/// Texts that are remembered of a URL, to know when one comes back.
pub const TEXTS_REMEMBERED: usize = 8;

/// Captures of a URL that are judged again when one of an earlier time becomes known; of a URL with more, the newest.
pub const REFOLDED_CAPTURES_MAX: usize = 4_096;

/// Of these, so many are only looked at for what the others are compared with: which parts always change is learned from fewer.
pub const REFOLDED_BEFORE: usize = 2 * TEXTS_REMEMBERED;

/// What is dated so many milliseconds after something that was kept later was dated by a clock that was wrong, or the other was.
pub const CLOCK_OFF_MS: i64 = 86_400_000;

/// Links named in an event, added and removed each; the others are counted.
pub const EVENT_LINKS_MAX: usize = 50;

/// Facts named in an event; the others are counted.
pub const EVENT_FACTS_MAX: usize = 16;

/// Bytes of an ETag or a date in an event; longer ones are left out.
pub const VALIDATOR_BYTES_MAX: usize = 256;

/// Bytes of new text shown in an event.
pub const SNIPPET_BYTES_MAX: usize = 280;

/// Bytes of a URL in an event; longer ones are cut in lists of links, and a page with one is not watched.
pub const URL_BYTES_MAX: usize = 16 << 10;

/// Captures that a body may stand in, when the first ones cannot be read.
pub const ORIGINALS_MAX: usize = 4;

/// Sites with rules of their own.
pub const SITES_MAX: usize = 10_000;

/// A page that is not found any more is gone after so many failures …
pub const GONE_FAILURES: u32 = 3;

/// … over so many milliseconds; a server that says "gone" itself is believed at the second time.
pub const GONE_MS: i64 = 7 * 86_400_000;

/// Failures after which HyperDog dropped a page, for those who choose it.
pub const FIVE_FAILURES: u32 = 5;

/// A page that lost nearly all of its text is believed at this visit in a row.
pub const EMPTY_BELIEVED: u32 = 3;

/// A host is down when nobody could reach it for so many milliseconds since its last answer.
pub const HOST_DOWN_MS: i64 = 14 * 86_400_000;

/// So many pages of a host at least make a template …
pub const TEMPLATE_PAGES_MIN: usize = 5;

/// … and more than this share of those visited on the day.
pub const TEMPLATE_SHARE: f64 = 0.3;

/// Places of a page that are looked at; one that changed in more changed all over.
pub const TEMPLATE_PLACES_MAX: usize = 16;

/// Templates of a host that are remembered for a day.
pub const TEMPLATES_MAX: usize = 64;

/// Captures that are remembered for a place that many pages of a host share.
pub const SHARED_POSITIONS_MAX: usize = 65_536;

/// Lines of a text that are compared for a delta; a longer one is told whole.
pub const DELTA_LINES_MAX: usize = 65_536;

/// Bytes of the metadata of a visit that are read for the reason of it.
pub const VISIT_BYTES_MAX: u64 = 64 << 10;

/// Rules of retention.
pub const RETENTION_RULES_MAX: usize = 10_000;
/// Captures that retention takes in hand together, of some 350 bytes each; where more go, they go in parts.
pub const RETENTION_CAPTURES_AT_ONCE: usize = 100_000;

/// Sinks of an archive; each has a thread.
pub const SINKS_MAX: usize = 64;

/// Bytes of the name of a sink.
pub const SINK_NAME_BYTES_MAX: usize = 64;

/// How often the records are looked at for changes while sinks work.
pub const SINK_FOLLOW_MS: u64 = 500;

/// How often a sink that has nothing to do looks for more.
pub const SINK_LOOK_MS: u64 = 250;

/// The first wait after a failure; it doubles …
pub const SINK_WAIT_MS_FIRST: u64 = 1_000;

/// … up to this one.
pub const SINK_WAIT_MS_MAX: u64 = 10 * 60_000;

/// The longest wait that another side may ask for.
pub const SINK_ASKED_MS_MAX: u64 = 86_400_000;

/// The wait where the archive itself, not the other side, is in trouble.
pub const SINK_ARCHIVE_MS: u64 = 5_000;

/// A delivery that is not acknowledged by then has failed.
pub const SINK_DELIVERY_MS_MAX: u64 = 120_000;

/// How long sinks may work when their process is done with everything else.
pub const SINK_FINISH_MS_MAX: u64 = 10_000;

/// A cursor that only moved over what nobody wants is written after so many events …
pub const SINK_CURSOR_EVENTS_MAX: u64 = 10_000;

/// … or milliseconds.
pub const SINK_CURSOR_MS_MAX: i64 = 2_000;

/// Events that are looked at for the time of the one that a cursor names, which may be taken back.
pub const SINK_CURSOR_LOOKED_MAX: usize = 1_024;

/// When the log was built again, a sink goes on by time, this long before the latest event it had.
pub const SINK_OVERLAP_MS: i64 = 3_600_000;

/// Tries after which events are given up that are refused although nothing else was …
pub const SINK_REFUSED_TRIES: u32 = 6;

/// … if they are no more than these: many that are refused together say something about the other side.
pub const SINK_REFUSED_ALL_MAX: usize = 16;

/// Bytes of an error that are kept.
pub const SINK_ERROR_BYTES_MAX: usize = 500;

/// Events in one request to a webhook.
pub const WEBHOOK_BATCH_EVENTS: usize = 100;

/// Bytes of events in one request to a webhook.
pub const WEBHOOK_BATCH_BYTES: usize = 512 << 10;

/// A webhook that does not answer by then has failed.
pub const WEBHOOK_MS_MAX: u64 = 30_000;

/// How long it is listened to what a webhook has to say about its status.
pub const WEBHOOK_SAID_MS_MAX: u64 = 1_000;

/// Bytes of an answer that are read.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Events that a message for people names; the others are counted.
pub const CHAT_EVENTS_MAX: usize = 10;

/// Characters of a message for people: the least that a chat service takes.
pub const CHAT_CHARS_MAX: usize = 1_900;

/// Events in one mail.
pub const MAIL_EVENTS_MAX: usize = 5_000;

/// Bytes of events in one mail.
pub const MAIL_BYTES_MAX: usize = 5 << 20;

/// Events that the text of a mail names; all of them are attached.
pub const MAIL_ROWS_MAX: usize = 100;

/// How long events are put together before a mail goes, where mails may come more often than that.
pub const MAIL_GATHER_MS_MAX: u64 = 30_000;

/// Messages on their way to NATS at once.
pub const NATS_BATCH_EVENTS: usize = 1_000;

/// Bytes on their way to NATS at once.
pub const NATS_BATCH_BYTES: usize = 4 << 20;

/// An acknowledgement of NATS that is not there by then does not come.
pub const NATS_ACK_MS_MAX: u64 = 10_000;

/// How long NATS remembers the names of messages, in a stream that we make.
pub const NATS_DUPLICATES_MS: u64 = 10 * 60_000;

/// Keys of events that are remembered, to tell one that is told anew from one that is sent again.
pub const NATS_KEYS_MAX: usize = 100_000;

/// Rows in one transaction with PostgreSQL.
pub const POSTGRES_BATCH_EVENTS: usize = 8_000;

/// Bytes of events in one transaction with PostgreSQL.
pub const POSTGRES_BATCH_BYTES: usize = 32 << 20;

/// A database that does not answer by then has failed.
pub const POSTGRES_CONNECT_MS_MAX: u64 = 10_000;

/// Bytes of a URL that an index of PostgreSQL can hold.
pub const POSTGRES_URL_BYTES_MAX: usize = 2_600;
