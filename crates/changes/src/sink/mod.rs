//! Sinks: the stream of changes carried elsewhere, to a database, a broker, a mailbox, whoever answers HTTP.
//!
//! ```text
//!  log ──▶ what a sink wants, in batches ──▶ carried, acknowledged ──▶ its cursor, in settings
//!               (filter)                     (else: later, at growing distances)
//! ```
//! - A sink has a definition and a cursor, two small files under `settings/sinks`. The cursor moves when the other side has
//!   acknowledged, so each event arrives at least once, and one that arrives again has the same key.
//! - Each sink runs on a thread of its own: one that is slow or down lags, and slows nobody else.
//! - What the other side refuses for what it is (a row that breaks a rule of a table) is found by halving the batch, put aside
//!   with the reason, and the stream goes on.
//!
//! Where to begin reading: `deliver` is the life of one sink, `run` starts and ends them.

mod backoff;
mod batch;
mod carrier;
mod definition;
mod deliver;
mod http;
mod nats;
mod postgres;
mod run;
mod sign;
mod smtp;
mod state;
mod template;
mod tls;
mod webhook;

pub use definition::{Definition, Kind, Wanted, check_name};
pub use nats::public_nkey;
pub use postgres::{KnownUrl, read_back};
pub use run::{Running, Since, Sinks, Standing};
pub use sign::{new_secret, signature};
pub use state::State;
pub use template::Template;
