//! `cargo xtask soak NAME`: what needs hours or gigabytes to show. A soak fails like a test does.

mod fuzz;
mod kill;
mod memory;

use crate::long::Entry;

/// Every soak.
pub const ALL: &[Entry] = &[
    Entry { name: "fuzz", what: "seeded mutations of the kept inputs against every function to fuzz", run: fuzz::run },
    Entry {
        name: "kill",
        what: "1,000 SIGKILLs of a writer, then opening after one with a 1 GiB segment",
        run: kill::run,
    },
    Entry { name: "memory", what: "add, check and rebuild 2 GB of archive under 300 MB of memory", run: memory::run },
];
