//! A web to test against: many hosts on loopback addresses, pages that change by a law, and an auditor that judges by
//! its own clock how politely it was visited.
//!
//! ```no_run
//! use skep_testweb::{HostPlan, Offence, Plan, Policy, Robots, Scheme, Settings, Shape, Web, World};
//!
//! let plan = Plan::new(7)
//!     .host(HostPlan::generated("news.example-1.test", Shape::pages(200)).robots(Robots::CrawlDelay(1)))
//!     .host(HostPlan::generated("shop.example-2.test", Shape::pages(50)).scheme(Scheme::Https));
//! let policy = Policy { site_gap_ms: 500, in_flight_max: 2, ..Policy::default() };
//! let web = Web::start(World::build(plan)?, Settings { policy, ..Settings::default() })?;
//!
//! let place = &web.map().hosts[0];                   // tell the client: place.resolve, e.g. "NAME=127.0.0.1:40123"
//! // … let the client visit place.url, trusting web.authority_pem() …
//!
//! for entry in web.world().truth(web.now()) {        // what it should have seen
//!     let entry = entry?;
//!     println!("{} {} {}", entry.url, entry.status, entry.bytes);
//! }
//! let report = web.report();                         // how it behaved
//! assert!(report.polite(), "{}", report.table());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **The law of the content.** What a host says about a path at moment `t` is a pure function of seed, host, path and `t`:
//! births, deaths and each change of each page are given in closed form, so the truth of any moment can be asked at once,
//! before, during and after a test ([`World::truth`], [`World::entry`], [`World::answer`], [`World::reachable`]). A host can
//! also be a folder of files, or a git history whose commit at `t` is the host at `t`.
//!
//! **The clock** is virtual: it starts where the test says, runs at any speed, and can be set while the web runs
//! ([`Web::set_clock`]).
//!
//! **The auditor** notes each request when its first byte arrives and when its last byte has gone out, and finds gaps that are
//! too short per host and site, rests shorter than the answers before them ask for, too much at once per address, anything
//! robots.txt forbids, anything asked before robots.txt or long after it, and visits before a refusal allows them
//! ([`Report`], [`Policy::polite`]).
//!
//! **The hostile web** ([`Row`], [`Hostile`]) is what the real one does to crawlers, row by row, switched on per host before
//! or while the web runs, and proven from the server's side ([`Web::proof`]):
//! ```no_run
//! use skep_testweb::{Clock, Plan, Policy, Settings, Time, Web, World, free_port};
//!
//! let port = free_port()?;                           // names carry no port, so links do
//! let plan = Plan { port: Some(port), ..Plan::hostile(7) };
//! let clock = Clock::new(Time::from_system(std::time::SystemTime::now()), 1.0); // dates in `Retry-After` are real
//! let settings = Settings { ports: vec![port], clock: Some(clock), policy: Policy::polite(), ..Settings::default() };
//! let web = Web::start(World::build(plan)?, settings)?;
//!
//! // … let the client ask the name server at web.map().dns, and visit http://row-01-maze.test:PORT/ and all others …
//!
//! let proof = web.proof("row-01-maze.test").expect("a host of the plan");
//! println!("{} pages of the maze in {} requests", proof.forms["maze"], proof.requests);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! **The name server** knows the web's hosts and no others ([`Map::dns`]), and is wrong about them where they say so.
//!
//! Map of the code, the heart first:
//! ```text
//! plan       a web as described (JSON)             clock      moments, and a clock that is told what time has elapsed
//! layout     items, paths, births, changes         robots     robots.txt in all its forms
//! graph      links                                 behaviour  misbehaviour, host by host
//! page       HTML, CSS, PNG                        audit      judges requests; report shows what it found
//! generated  answers, sitemaps, feeds              conditional  validators, ranges, encodings
//! world      all hosts; truth tells all about it   policy     what counts as impolite
//! hostile    the rows of the hostile web           proof      what the server knows of its misdeeds
//! changing   a web without bytes that changes as the literature says, and a judge of how fresh copies of it are
//! ---------- below here are files, processes, sockets and threads ----------
//! folder, history    hosts from files and from git
//! server, answering, connection, handshake, sending, playing, control, tls, dns, pits
//! ```
//! Nothing here follows links, asks other name servers or leaves the loopback addresses. The truth of a world is that of its
//! hosts when they behave.

mod answer;
mod answering;
mod audit;
mod behaviour;
mod chance;
pub mod changing;
mod clock;
mod conditional;
mod connection;
mod control;
mod dns;
mod folder;
mod generated;
mod graph;
mod handshake;
mod history;
mod hostile;
mod layout;
pub mod limits;
mod media;
mod page;
mod pits;
mod plan;
mod playing;
mod policy;
mod proof;
mod report;
mod robots;
mod sending;
mod server;
mod tls;
mod truth;
mod words;
mod world;

pub use answer::{Answer, Body};
pub use audit::{Arrival, Auditor, Departure, Finding, Request, Ticket};
pub use behaviour::{Behaviour, Trouble};
pub use clock::{Clock, NoTime, Time};
pub use folder::Folder;
pub use graph::{Element, Link};
pub use history::{History, HistoryError};
pub use hostile::{Form, Hostile, Row, Side};
pub use layout::{Kind, Shape};
pub use plan::{Content, HostPlan, Mix, Plan, Scheme, Validators, loopback};
pub use policy::{Offence, Policy, Refused, product};
pub use proof::{Proof, WEB};
pub use report::{Report, Visits};
pub use robots::Robots;
pub use server::{Map, Place, Settings, StartError, Web, free_port};
pub use tls::Authority;
pub use truth::Entry;
pub use world::{Host, PlanError, World};
