//! One polite exchange: a URL in, an [`Exchange`] out. Never decides whether to try again, whether to ask at all, or what a
//! page means.
//!
//! ```no_run
//! use skep_fetch::{Ask, Dns, Fetcher, Settings};
//! use skep_url::Url;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Arc::new(Settings::new("skep/0.1 (+https://example.org/about-our-crawler)"));
//! let dns = Arc::new(Dns::new(&settings)?); // one per process
//! let fetcher = Fetcher::new(settings, dns)?; // one per worker
//! let url = Url::parse("https://example.org/")?;
//! let mut session = fetcher.session(&url);
//! let exchange = session.get(&Ask::new(&url)).await;
//! match &exchange.fault {
//!     None => println!("{} bytes as they were sent", exchange.response.len()),
//!     Some(fault) => println!("{}: {fault}", fault.id()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **The bytes read from the socket are the record.** There is no HTTP library between: an answer is read into the buffer that
//! becomes [`Exchange::response`], its head is looked at where it stands, and its body is counted, not copied. Nothing that a
//! server sends is refused; what is odd about it is listed in [`Exchange::notes`] and [`Exchange::fault`].
//!
//! **The address gate.** Only a socket address that passed the [`Gate`] reaches `connect`; names never do.
//!
//! ```text
//! session    connects, asks, reads, keeps the connection or not: the spine
//!   request    the bytes that are sent, and the form in which they are recorded
//!   dns        names to addresses: overrides, cache, one look-up for all who wait
//!   gate       which addresses and ports may be connected to (pure)
//!   connect    races IPv6 and IPv4; proxy leads through HTTP and SOCKS proxies; broker: others connect
//!   tls        handshake; certificates are judged afterwards and recorded
//!   receive    the read loop and its clocks
//!   message    where a head ends, how long a body is, what is odd about them (pure)
//!   spool      memory first, then a file without a name
//! ```

mod broker;
mod connect;
mod dns;
mod exchange;
mod fault;
mod gate;
pub mod limits;
mod message;
mod proxy;
mod receive;
mod request;
mod session;
mod settings;
mod spool;
mod stream;
mod tls;

pub use broker::{Broker, Connected, Meter, Promise};
pub use dns::{Dns, Resolved};
pub use exchange::{Ask, Brought, Exchange, Note, Recorded, Secret, Timings, Wanted, request_for_record};
pub use fault::{Break, Class, ConnectFault, DnsFault, Fault, ProxyFault, Stage, TlsFault};
pub use gate::{Gate, Listening, is_bad_port};
pub use limits::Limits;
pub use session::{Fetcher, Session};
pub use settings::{HeaderRule, Override, Proxy, ProxyKind, Settings, SetupError, origin};
pub use spool::{Spool, SpoolReader};
pub use tls::Tls;
