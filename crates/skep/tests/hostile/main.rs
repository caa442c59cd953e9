//! The hostile web, row by row: the real binary is let loose on hosts that misbehave, the server proves that they did, and the
//! crawl ends by itself, with a verdict on each and without having done anything it must not do.

#[path = "../site/mod.rs"]
mod site;
mod trial;

mod coded;
mod content;
mod endless;
mod framing;
mod heads;
mod leading;
mod names;
mod pointing;
mod refusing;
mod together;
mod visitor;
