//! The test web, visited over real sockets by a client that shares no code with it.

mod auditing;
mod client;
mod commands;
mod folders;
mod handshakes;
mod histories;
mod hostile;
mod law;
mod naming;
mod nonsense;
mod running;
mod secure;
mod visiting;
