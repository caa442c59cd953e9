//! Opening an archive: lock, recover, replay what the views have not seen, begin to work. Read top to bottom.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use crate::archive::{Archive, OpenOptions, Shared};
use crate::capture::WriterKey;
use crate::catalog::{self, Catalog, Segment, State};
use crate::collections::Collections;
use crate::commit::Committer;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::follow::{Follower, Following};
use crate::identity::{self, Identity};
use crate::layout::{self, Found, Layout, SegmentName, sidecar_of};
use crate::limits::{COMMIT_BYTES_MAX, QUEUE_BYTES_MAX};
use crate::lock::Lock;
use crate::memory::Shares;
use crate::numbers::Numbers;
use crate::places::Places;
use crate::queue::Lane;
use crate::recover::{Keeping, Recovered, covered, recover};
use crate::remove::Listener;
use crate::replay::Replay;
use crate::segment::Book;
use crate::settings::{self, ARCHIVE_VERSION, ArchiveSettings};
use crate::views::Views;
use crate::{collect, rewrite};

impl Archive {
    /// Opens the archive in `folder`. Returns when everything acknowledged earlier can be read and found again; segments
    /// that a crash left open are closed in the background.
    pub fn open(folder: &Path, options: OpenOptions) -> Result<Archive> {
        let (layout, lock) = take(folder, options.create)?;
        Archive::open_locked(layout, lock, options)
    }

    /// Drops the views and builds them again: from the sidecars, or, with `reparse`, from the records themselves, which
    /// also writes the sidecars again.
    pub fn rebuild(folder: &Path, options: OpenOptions, reparse: bool) -> Result<Archive> {
        let (layout, lock) = take(folder, false)?;
        let views = layout.views();
        match std::fs::remove_dir_all(&views) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("cannot delete", &views, error));
            }
            _ => {}
        }
        if reparse {
            for found in layout::walk(&layout)?.found {
                reparse_sidecar(&found)?;
            }
            for file in Collections::load(&layout)?.files() {
                collect::reparse(&layout, file)?;
            }
        }
        Archive::open_locked(layout, lock, options)
    }

    fn open_locked(layout: Layout, lock: Lock, options: OpenOptions) -> Result<Archive> {
        let settings = settings_of(&layout, &options)?;
        let identity = Arc::new(identity_of(&layout, &options)?);
        let shares = Shares::of(options.cache_bytes);
        let joint = options.copies || Numbers::are_kept(&layout.settings());
        let listener = Listener { own: identity.writer(), joint };
        let views = Arc::new(Views::open(&layout.views(), listener, options.views, &shares)?);
        views.captures.know_splits(crate::splits::load(&layout.settings())?);
        let mut findings = Vec::new();
        let mut replay = Replay::new(&views);
        let writer = (!options.read_only).then(|| identity.writer());
        let copies = options.copies && !options.read_only;
        let segments = Segments::recover(&layout, writer, copies, &views, &mut replay, &mut findings)?;
        let collections = Collections::load(&layout)?;
        for file in collections.files() {
            findings.extend(collect::replay(&layout, file, &views, &mut replay)?);
        }
        replay.finish()?;
        views.tend()?;

        let next = segments.next_number(&identity);
        let numbers = copies.then(|| Numbers::open(&layout.settings(), next)).transpose()?;
        let next = numbers.as_ref().map_or(next, |(_, next)| *next);
        let book = Book::new(identity.writer(), settings.bits, next, options.segment_bytes_max);
        let shared = Arc::new(Shared {
            layout,
            identity,
            clock: options.clock,
            read_only: options.read_only,
            disk_reserve_bytes: options.disk_reserve_bytes,
            catalog: Arc::new(RwLock::new(segments.catalog)),
            collections: RwLock::new(collections),
            lane: Arc::new(Lane::new(QUEUE_BYTES_MAX)),
            following: Arc::new(Following::default()),
            views,
            places: Places::new(shares.places_bytes as usize),
            others_bytes: shares.others_bytes,
            referred: Arc::default(),
            rewriting: Mutex::new(()),
            pinning: Mutex::new(()),
            adding: Mutex::new(()),
            joint,
            copies: Mutex::default(),
            room: Mutex::new(None),
        });
        let threads = start(&shared, book, numbers.map(|(numbers, _)| numbers))?;
        let keeper = match shared.read_only {
            true => None,
            false => {
                let keeper = shared.keeper();
                let (unclosed, replaced) = (segments.unclosed, segments.replaced);
                Some(spawn("skep-keeper", move || keeper.run(unclosed, replaced))?)
            }
        };
        Ok(Archive { shared, opened: findings, threads, keeper: Mutex::new(keeper), _lock: lock })
    }
}

/// Takes the lock of the archive in `folder`, which is made if it may be.
fn take(folder: &Path, create: bool) -> Result<(Layout, Lock)> {
    let exists = Layout::new(folder).settings().join(settings::ARCHIVE_FILE).is_file();
    if !exists && !create {
        return Err(Error::NotAnArchive { path: folder.to_path_buf() });
    }
    settings::create_folder(folder)?;
    let root = folder.canonicalize().map_err(|error| Error::io("cannot open", folder, error))?;
    let layout = Layout::new(&root);
    let lock = Lock::take(&root)?;
    for needed in [layout.settings(), layout.segments(), layout.collections()] {
        settings::create_folder(&needed)?;
    }
    Ok((layout, lock))
}

fn settings_of(layout: &Layout, options: &OpenOptions) -> Result<ArchiveSettings> {
    match ArchiveSettings::load(&layout.settings())? {
        Some(settings) => Ok(settings),
        None => {
            let settings = ArchiveSettings { version: ARCHIVE_VERSION, bits: options.bits };
            settings.store(&layout.settings())?;
            Ok(settings)
        }
    }
}

/// Who writes here. An archive that is only read needs nobody, so none is kept.
fn identity_of(layout: &Layout, options: &OpenOptions) -> Result<Identity> {
    let secret = || options.secret.map_or_else(identity::fresh_secret, Ok);
    match options.read_only {
        true => Ok(Identity::load(&layout.settings())?.unwrap_or_else(|| Identity::from_secret([0; 32]))),
        false => Identity::load_or_create(&layout.settings(), secret),
    }
}

/// The committer first: whoever stops the threads waits for it first.
fn start(shared: &Arc<Shared>, book: Book, numbers: Option<Numbers>) -> Result<Vec<std::thread::JoinHandle<()>>> {
    let (follower, tender) = Follower::new(shared.following.clone(), shared.views.clone());
    let mut threads = Vec::new();
    if !shared.read_only {
        let committer = Committer {
            layout: shared.layout.clone(),
            identity: shared.identity.clone(),
            clock: shared.clock.clone(),
            book,
            numbers,
            lane: shared.lane.clone(),
            following: shared.following.clone(),
            catalog: shared.catalog.clone(),
            live: Default::default(),
        };
        threads.push(spawn("skep-commit", move || committer.run())?);
    }
    threads.push(spawn("skep-follow", move || follower.run())?);
    threads.push(spawn("skep-tend", move || tender.run())?);
    Ok(threads)
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    spawned.map_err(|error| Error::Refused { why: format!("cannot start a thread: {error}") })
}

/// The segments as recovery left them.
#[derive(Default)]
struct Segments {
    catalog: Catalog,
    /// Those of other writers are ours to cut back and copy again.
    copies: bool,
    /// Ours, without a closing record.
    unclosed: Vec<Segment>,
    /// Ours, and copies, replaced by a newer generation that stands beside them.
    replaced: Vec<Found>,
}

impl Segments {
    /// Looks at every segment. `writer` is who may mend its own; nobody if the archive is only read. `copies` of others may be cut.
    fn recover(
        layout: &Layout,
        writer: Option<WriterKey>,
        copies: bool,
        views: &Views,
        replay: &mut Replay<'_>,
        findings: &mut Vec<Finding>,
    ) -> Result<Segments> {
        let mut segments = Segments { copies, ..Segments::default() };
        let walk = layout::walk(layout)?;
        let ours = |name: SegmentName| writer == Some(name.id.writer);
        // What an interrupted rewriting left: a beginning of the new segment, or the sidecar of the old one.
        for left in walk.parts.iter().chain(&walk.orphans) {
            let stem = left.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let name = stem.strip_suffix(".warc.gz").or(stem.strip_suffix(".idx")).unwrap_or(stem);
            if format!("{name}.warc.gz").parse().is_ok_and(|name| ours(name) || copies) {
                std::fs::remove_file(left).map_err(|error| Error::io("cannot delete", left, error))?;
            }
        }
        let chosen = catalog::choose(walk.found, |file| is_sealed(file).unwrap_or(false));
        for file in chosen.invalid {
            findings.push(Finding::wrong(
                &file.path,
                None,
                "generation",
                "a rewritten segment without closing record; ignored",
            ));
        }
        for file in chosen.replaced {
            // Of a copy, too: what was removed from it is not left lying beside it.
            match ours(file.name) || copies {
                true => segments.replaced.push(file),
                false => findings.push(replaced_finding(&file)),
            }
        }
        for file in chosen.current {
            segments.recover_one(file, ours, views, replay, findings)?;
        }
        Ok(segments)
    }

    fn recover_one(
        &mut self,
        file: Found,
        ours: impl Fn(SegmentName) -> bool,
        views: &Views,
        replay: &mut Replay<'_>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let Found { half, name, path, length } = file;
        let mark = views.mark(name.id)?;
        let mut segment = Segment { name, half, path, state: State::Sealed };
        let sealed_bytes = mark.filter(|mark| mark.sealed && mark.generation == name.generation).map(|mark| mark.bytes);
        if sealed_bytes == Some(length) {
            self.catalog.set(segment);
            return Ok(());
        }
        let keeping = match sealed_bytes {
            _ if self.copies && !ours(name) => Keeping::Copied,
            Some(_) => Keeping::Sealed,
            None => Keeping::Kept,
        };
        let recovered = recover(&segment.path, name, keeping)?;
        let covered = recovered.covered;
        let sealed_bytes = if covered.closed { Some(covered.bytes) } else { sealed_bytes };
        if let Some(sealed_bytes) = sealed_bytes.filter(|bytes| *bytes != length && keeping != Keeping::Copied) {
            findings.push(unlike_seal(&segment.path, sealed_bytes, length));
            if covered.closed {
                findings
                    .extend(replay.sidecar(&segment.path, &sidecar_of(&segment.path), name, covered, mark)?.unlisted);
            }
            self.catalog.set(segment);
            return Ok(());
        }
        findings.extend(loss(&segment.path, &recovered));
        if ours(name) && !covered.closed {
            segment.state = State::Unclosed;
            if covered.records == 0 {
                return self.drop_stillborn(segment, length, findings);
            }
            if recovered.torn_bytes > 0 {
                cut(&segment.path, covered.bytes)?;
                let what = format!("{} bytes of an unfinished record cut off", recovered.torn_bytes);
                findings.push(Finding::mended(&segment.path, Some(covered.bytes), "torn-tail", what));
            }
            self.unclosed.push(segment.clone());
        } else if recovered.torn_bytes > 0 && self.copies && !covered.closed {
            cut(&segment.path, covered.bytes)?;
            let what = format!("{} bytes of a copy that was interrupted cut off", recovered.torn_bytes);
            findings.push(Finding::mended(&segment.path, Some(covered.bytes), "torn-tail", what));
        } else if recovered.torn_bytes > 0 {
            let what = format!("{} bytes behind the last whole record; ignored", recovered.torn_bytes);
            findings.push(Finding::wrong(&segment.path, Some(covered.bytes), "torn-tail", what));
        }
        if !covered.closed {
            segment.state = State::Unclosed;
        }
        findings.extend(replay.sidecar(&segment.path, &sidecar_of(&segment.path), name, covered, mark)?.unlisted);
        self.catalog.set(segment);
        Ok(())
    }

    /// A segment that never got a whole record: nothing of it was ever acknowledged.
    fn drop_stillborn(&self, segment: Segment, length: u64, findings: &mut Vec<Finding>) -> Result<()> {
        if length > COMMIT_BYTES_MAX {
            let what = "holds no whole record, but much else; left as it is";
            findings.push(Finding::wrong(&segment.path, Some(0), "unreadable", what));
            return Ok(());
        }
        rewrite::delete_generation(&segment.path)?;
        let what = "was begun but never got a whole record; deleted";
        findings.push(Finding::mended(&segment.path, None, "stillborn", what));
        Ok(())
    }

    fn next_number(&self, identity: &Identity) -> u32 {
        self.catalog.next_number(identity.writer())
    }
}

/// What recovery had to give up, and what it passed over.
fn loss(path: &Path, recovered: &Recovered) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(lost) = recovered.lost {
        let (had, has) = (lost.records, recovered.covered.records);
        let what = format!("the sidecar named {had} records up to byte {}, the segment has {has}", lost.bytes);
        findings.push(Finding::wrong(path, Some(recovered.covered.bytes), "records-lost", what));
    }
    if let Some(passed) = recovered.damage {
        let what = format!("{} bytes are no whole record; the records behind them are kept", passed.bytes);
        findings.push(Finding::wrong(path, Some(passed.offset), "damaged-record", what));
    }
    findings
}

/// The finding for a sealed segment of another length. Its captures stay listed: who asks for one that is not there is told so.
fn unlike_seal(path: &Path, sealed_bytes: u64, length: u64) -> Finding {
    let (at, rule, what) = match length < sealed_bytes {
        true => (length, "records-lost", "what stood behind is lost"),
        false => (sealed_bytes, "torn-tail", "what stands behind is ignored"),
    };
    let what = format!("was sealed with {sealed_bytes} bytes, has {length}; {what}, and the file is left as it is");
    Finding::wrong(path, Some(at), rule, what)
}

/// The finding for a generation that another one replaces.
pub(crate) fn replaced_finding(file: &Found) -> Finding {
    Finding::wrong(&file.path, None, "replaced", "an older generation of a rewritten segment; ignored")
}

fn is_sealed(file: &Found) -> Result<bool> {
    let known = covered(&sidecar_of(&file.path), file.name)?;
    Ok(match known {
        Some(known) if known.bytes == file.length || known.closed => known.closed && known.bytes == file.length,
        _ => recover(&file.path, file.name, Keeping::Kept)?.covered.closed,
    })
}

fn cut(path: &Path, bytes: u64) -> Result<()> {
    let cut = || -> std::io::Result<()> {
        let file = File::options().write(true).open(path)?;
        file.set_len(bytes)?;
        file.sync_all()
    };
    cut().map_err(|error| Error::io("cannot cut", path, error))
}

/// Writes the sidecar of a segment again, unless its records cannot all be read: then the old one knows more.
fn reparse_sidecar(found: &Found) -> Result<()> {
    let sidecar = sidecar_of(&found.path);
    let old = layout::part_of(&sidecar);
    let had = covered(&sidecar, found.name)?;
    if had.is_some() {
        std::fs::rename(&sidecar, &old).map_err(|error| Error::io("cannot rename", &sidecar, error))?;
    }
    let again = recover(&found.path, found.name, Keeping::Kept)?.covered;
    if let Some(had) = had {
        let less = again.records < had.records && had.bytes <= found.length;
        let unlike_seal = had.closed && (again.records, again.bytes) != (had.records, had.bytes);
        let (from, to) = match less || unlike_seal {
            true => (&old, Some(&sidecar)),
            false => (&old, None),
        };
        match to {
            Some(to) => std::fs::rename(from, to),
            None => std::fs::remove_file(from),
        }
        .map_err(|error| Error::io("cannot replace", &sidecar, error))?;
    }
    settings::sync_folder_of(&sidecar)
}
