//! `cargo xtask soak NAME`: what needs hours or gigabytes to show. A soak fails like a test does.

mod contributors;
mod crawl_kill;
mod fuzz;
mod history;
mod hostile;
mod kill;
mod liars;
mod memory;
mod mirror;
mod polite;
mod restart;
mod serve_load;
mod simulate;
mod steady;

use crate::long::Entry;

/// Every soak.
pub const ALL: &[Entry] = &[
    Entry {
        name: "contributors",
        what: "20 contributors of a node and of a ring, in namespaces of their own, killed at random: the archive is that of a local crawl, no site is hurried",
        run: contributors::many,
    },
    Entry {
        name: "crawl-kill",
        what: "50 SIGKILLs of a crawl of 20,000 pages: nothing acknowledged is lost or fetched again",
        run: crawl_kill::run,
    },
    Entry { name: "fuzz", what: "seeded mutations of the kept inputs against every function to fuzz", run: fuzz::run },
    Entry {
        name: "history",
        what: "five years of a real site, commit by commit: what the stream tells after each pass is what the commit did",
        run: history::run,
    },
    Entry {
        name: "hostile",
        what: "every row of the hostile web in one run: it ends by itself, under 500 MB, with a verdict on each",
        run: hostile::run,
    },
    Entry {
        name: "kill",
        what: "1,000 SIGKILLs of a writer, then opening after one with a 1 GiB segment",
        run: kill::run,
    },
    Entry {
        name: "liars",
        what: "100 worlds in which one contributor in ten lies: they are caught, and nothing altered is confirmed",
        run: liars::run,
    },
    Entry {
        name: "limits",
        what: "ten minutes of a contributor with 200 kB/s and two connections: it exceeds neither, as the web sees it",
        run: contributors::limits,
    },
    Entry {
        name: "mirror",
        what: "30,000 pages of documentation: the same as wget fetches, sound for warcio and FastWARC, replayed by pywb",
        run: mirror::run,
    },
    Entry {
        name: "polite",
        what: "2,000 hosts on 300 sites and 50 addresses: an auditor finds no fault with how they are visited",
        run: polite::run,
    },
    Entry {
        name: "restart",
        what: "SIGKILL of a crawl that knows 5 million URLs: it fetches again within 5 seconds; a million URLs of others are led within 30",
        run: restart::run,
    },
    Entry {
        name: "serve-load",
        what: "an hour of mixed load while a crawl writes: no error, no stale or torn answer, memory does not grow",
        run: serve_load::run,
    },
    Entry {
        name: "simulate",
        what: "a ring of 20,000 nodes and 2^18 slices in virtual time: no rule broken, memory, load, repair, losses",
        run: simulate::run,
    },
    Entry {
        name: "steady",
        what: "half an hour of passes while pages change and hosts fail: memory, descriptors and threads do not grow",
        run: steady::run,
    },
    Entry { name: "memory", what: "add, check and rebuild 2 GB of archive under 300 MB of memory", run: memory::run },
];
