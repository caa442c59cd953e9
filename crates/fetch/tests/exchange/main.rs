//! Exchanges over real sockets, with servers that do exactly what a test says.

mod fidelity;
mod gate;
mod names;
mod oddities;
mod proxies;
mod secure;
mod server;
mod sessions;
