//! Exchanges over real sockets, with servers that do exactly what a test says.

mod fidelity;
mod server;
mod sessions;
