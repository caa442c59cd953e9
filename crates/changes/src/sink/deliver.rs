//! The life of one sink, from one batch to the next. Everything interesting is one call down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::{Archive, Position, system_clock};
use tokio::sync::watch;

use super::backoff;
use super::batch::{self, Batch, Portion};
use super::carrier::{Carrier, Trouble};
use super::definition::{Definition, Kind};
use super::postgres::Rows;
use super::state::{Placed, State};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::filter::Filter;
use crate::limits::{
    MAIL_GATHER_MS_MAX, SINK_CURSOR_EVENTS_MAX, SINK_CURSOR_MS_MAX, SINK_DELIVERY_MS_MAX, SINK_ERROR_BYTES_MAX,
    SINK_LOOK_MS, SINK_REFUSED_ALL_MAX, SINK_REFUSED_TRIES,
};
use crate::log::Changes;

/// What whoever runs a sink wants of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Go on as there is more.
    Stay,
    /// End with what is there, or with what cannot be delivered now.
    Finish,
    /// End at once: what is under way comes again.
    Stop,
}

/// One sink at work.
#[derive(Clone)]
pub struct Delivery {
    pub archive: Arc<Archive>,
    pub changes: Arc<Changes>,
    pub name: String,
    pub definition: Definition,
    pub wish: watch::Receiver<Wish>,
}

/// Carries what there is and what comes, until it is told otherwise.
pub async fn deliver(delivery: Delivery) -> Result<()> {
    let mut at_work = delivery.begin()?;
    let (mut wish, mut last_wish) = (delivery.wish.clone(), delivery.wish.clone());
    loop {
        if *wish.borrow_and_update() == Wish::Stop || (at_work.state.paused && delivery.is_last()) {
            break;
        }
        let wait_ms = tokio::select! {
            // A delivery that is broken off comes again under the same keys.
            () = stopped(&mut last_wish) => break,
            wait_ms = at_work.step(&delivery) => wait_ms?,
        };
        match wait_ms {
            None => {}
            Some(_) if delivery.is_last() => break,
            Some(wait_ms) => {
                let _either = tokio::time::timeout(Duration::from_millis(wait_ms), wish.changed()).await;
            }
        }
    }
    at_work.keep(&delivery)
}

async fn stopped(wish: &mut watch::Receiver<Wish>) {
    // Whoever wishes being gone is a wish, too.
    let _heard = wish.wait_for(|wish| *wish == Wish::Stop).await;
}

impl Delivery {
    fn begin(&self) -> Result<AtWork> {
        let mut state = State::load(&self.archive, &self.name)?;
        state.next_ms = None;
        let mut carrier = Carrier::new(&self.definition, self.archive.writer().to_string());
        if let Some(sent_max) = carrier.remembers() {
            self.sent_before(&state, sent_max, |key, number| carrier.remember(key, number))?;
        }
        Ok(AtWork {
            kept: state.clone(),
            kept_ms: system_clock(),
            state,
            carrier,
            pending: None,
            ahead: None,
            resting: None,
            gathering_since: None,
        })
    }

    /// Shows the last of what was sent before, by whichever process.
    fn sent_before(&self, state: &State, sent_max: usize, mut each: impl FnMut(Position, u64)) -> Result<()> {
        let cursor = state.cursor.as_deref().and_then(|text| text.parse::<Cursor>().ok());
        let Some(cursor) = cursor else { return Ok(()) };
        let filter = self.definition.filter()?;
        self.changes.up_to(&self.archive, &cursor, sent_max as u64, |number, kept| {
            if filter.admits(kept) {
                each(kept.key, number);
            }
        })
    }

    fn is_last(&self) -> bool {
        *self.wish.borrow() != Wish::Stay
    }
}

struct AtWork {
    carrier: Carrier,
    state: State,
    /// As it stands in settings.
    kept: State,
    kept_ms: i64,
    /// What was tried and is tried again as it was.
    pending: Option<Batch>,
    /// What comes next, read while the other side is busy with what came before.
    ahead: Option<Ahead>,
    /// Until when nothing is tried: a clock that is set back makes no wait longer.
    resting: Option<Instant>,
    /// Since when there is something for the next mail.
    gathering_since: Option<Instant>,
}

impl AtWork {
    /// Takes the next batch one step further. Says how long to wait before the next step, if there is nothing to do now.
    async fn step(&mut self, delivery: &Delivery) -> Result<Option<u64>> {
        let now_ms = system_clock();
        if self.state.paused {
            return Ok(Some(SINK_LOOK_MS));
        }
        let left = self.resting.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Ok(Some(left.as_millis() as u64 + 1));
        }
        let batch = match self.pending.take() {
            Some(batch) => batch,
            None => self.next(delivery).await?,
        };
        if batch.events.is_empty() {
            self.state.moved(&batch.node, batch.upto);
            self.keep_now_and_then(delivery, now_ms)?;
            return Ok(if batch.more { None } else { Some(SINK_LOOK_MS) });
        }
        if let Some(wait_ms) = self.gather(delivery, now_ms) {
            return Ok(Some(wait_ms));
        }
        self.look_ahead(delivery, &batch)?;
        let outcome = self.carry(&batch).await;
        self.note(delivery, batch, outcome).await?;
        Ok(None)
    }

    /// What comes behind the cursor: read ahead, unless something else came of the batch before.
    async fn next(&mut self, delivery: &Delivery) -> Result<Batch> {
        if let Some(ahead) = self.ahead.take()
            && ahead.state == self.state.place()
            && let Ok(Some(batch)) = ahead.coming.await
        {
            return Ok(batch);
        }
        self.reading(delivery)?.read(&mut self.state)
    }

    /// Reads what comes behind a batch, on a thread of its own. A sink that is up to date has nothing to read.
    fn look_ahead(&mut self, delivery: &Delivery, batch: &Batch) -> Result<()> {
        self.ahead = None;
        if batch.more {
            let mut then = self.state.clone();
            then.moved(&batch.node, batch.upto);
            let (reading, state) = (self.reading(delivery)?, then.place());
            let coming = tokio::task::spawn_blocking(move || {
                let before = then.clone();
                // What goes wrong, or asks for a decision, does so again when it is its turn.
                reading.read(&mut then).ok().filter(|_| then == before)
            });
            self.ahead = Some(Ahead { state, coming });
        }
        Ok(())
    }

    fn reading(&self, delivery: &Delivery) -> Result<Reading> {
        Ok(Reading {
            archive: delivery.archive.clone(),
            changes: delivery.changes.clone(),
            filter: delivery.definition.filter()?,
            takes_back: delivery.definition.takes_back(),
            portion: self.carrier.portion(),
            rows_of: self.carrier.rows_of(),
        })
    }

    /// Mails wait until there is something to put together; how long still.
    fn gather(&mut self, delivery: &Delivery, now_ms: i64) -> Option<u64> {
        let Kind::Smtp { every_ms, .. } = delivery.definition.kind else { return None };
        if delivery.is_last() || self.state.failures > 0 {
            return None;
        }
        let since = *self.gathering_since.get_or_insert_with(Instant::now);
        let gathering = Duration::from_millis(every_ms.min(MAIL_GATHER_MS_MAX)).saturating_sub(since.elapsed());
        // A mail that was sent in the future was so by a clock that was wrong.
        let last_ms = self.state.delivered_ms.filter(|last_ms| *last_ms <= now_ms);
        let next_ms = last_ms.map_or(0, |last_ms| last_ms.saturating_add_unsigned(every_ms).saturating_sub(now_ms));
        let wait_ms = (gathering.as_millis() as u64).max(next_ms.max(0) as u64);
        if wait_ms > 0 {
            return Some(wait_ms);
        }
        self.gathering_since = None;
        None
    }

    /// Carries a batch; where it is refused for something in it, its halves, down to the events that are refused.
    async fn carry(&mut self, batch: &Batch) -> Outcome {
        let mut outcome = Outcome::default();
        let mut waiting = vec![(0, batch.events.len())];
        while let Some((start, end)) = waiting.pop() {
            let range = start..end;
            let carried = self.carrier.carry(batch, &batch.events[range.clone()]);
            let limit = Duration::from_millis(SINK_DELIVERY_MS_MAX);
            let carried = tokio::time::timeout(limit, carried)
                .await
                .unwrap_or_else(|_| Err(Trouble::later(format!("no answer within {} s", SINK_DELIVERY_MS_MAX / 1000))));
            match carried {
                Ok(()) => outcome.accepted += range.len(),
                Err(Trouble::Refused { why }) if range.len() == 1 => outcome.refused.push((range.start, why)),
                Err(Trouble::Unfit { why }) if range.len() == 1 => {
                    outcome.unfit += 1;
                    outcome.refused.push((range.start, why));
                }
                Err(Trouble::Refused { .. } | Trouble::Unfit { .. }) => {
                    let middle = range.start + range.len() / 2;
                    waiting.push((middle, range.end));
                    waiting.push((range.start, middle));
                    continue;
                }
                Err(trouble) => {
                    outcome.trouble = Some(trouble);
                    break;
                }
            }
            outcome.upto = range.end;
        }
        outcome
    }

    /// Moves the cursor over what is acknowledged or put aside, and keeps in mind what is not.
    async fn note(&mut self, delivery: &Delivery, batch: Batch, mut outcome: Outcome) -> Result<()> {
        let now_ms = system_clock();
        let whole = outcome.upto == batch.events.len();
        // Everything refused is rather the other side's state than the events'; few events are given up in the end, and those for which
        // no state of the other side would do, at once.
        let doubtful = outcome.refused.len() - outcome.unfit;
        let few =
            batch.events.len() - outcome.unfit <= SINK_REFUSED_ALL_MAX && self.state.failures + 1 >= SINK_REFUSED_TRIES;
        let gives_up = outcome.accepted > 0 || doubtful == 0 || few;
        if !gives_up && let Some((_, why)) = outcome.refused.first() {
            let why = format!("refused: {why}");
            (outcome.trouble, outcome.upto) = (Some(Trouble::later(why)), 0);
            outcome.refused.clear();
        }
        for (number, why) in &outcome.refused {
            let event = &batch.events[*number];
            if let Err(trouble) = self.carrier.reject(&batch, event, why).await {
                (outcome.trouble, outcome.upto) = (Some(trouble), *number);
                break;
            }
            self.state.rejected += 1;
            self.state.last_rejected = Some(short(&format!("{} {}: {why}", event.key_text(), event.url)));
        }
        if outcome.upto > 0 {
            let carried = &batch.events[..outcome.upto];
            let newest_ms = carried.iter().map(|event| event.time_ms).max();
            self.state.delivered(outcome.accepted as u64, newest_ms, now_ms);
            let upto = if whole && outcome.trouble.is_none() { batch.upto } else { carried[carried.len() - 1].number };
            self.state.moved(&batch.node, upto);
        }
        self.resting = None;
        match outcome.trouble {
            None => {}
            Some(Trouble::Over { why }) => {
                self.state.failed(short(&why), now_ms, 0);
                (self.state.paused, self.state.next_ms) = (true, None);
            }
            Some(Trouble::Later { why, asked_ms }) => {
                self.carrier.let_go();
                self.rest(&why, asked_ms, now_ms);
                self.pending = (outcome.upto == 0).then_some(batch);
            }
            Some(Trouble::Refused { why } | Trouble::Unfit { why }) => self.rest(&why, None, now_ms),
        }
        self.keep(delivery)
    }

    /// Nothing is tried for a while.
    fn rest(&mut self, why: &str, asked_ms: Option<u64>, now_ms: i64) {
        let wait_ms = backoff::wait_ms(self.state.failures + 1, asked_ms, chance());
        self.state.failed(short(why), now_ms, wait_ms);
        self.resting = Some(Instant::now() + Duration::from_millis(wait_ms));
    }

    fn keep(&mut self, delivery: &Delivery) -> Result<()> {
        if self.state != self.kept {
            self.state.store(&delivery.archive, &delivery.name)?;
            self.kept = self.state.clone();
        }
        self.kept_ms = system_clock();
        Ok(())
    }

    /// A cursor that only moved over what nobody wants need not be on disk at once.
    fn keep_now_and_then(&mut self, delivery: &Delivery, now_ms: i64) -> Result<()> {
        let number =
            |state: &State| state.cursor.as_deref().and_then(|text| text.parse::<Cursor>().ok()?.number.into());
        let far = number(&self.state).unwrap_or(0) >= number(&self.kept).unwrap_or(0) + SINK_CURSOR_EVENTS_MAX;
        if far || now_ms - self.kept_ms >= SINK_CURSOR_MS_MAX { self.keep(delivery) } else { Ok(()) }
    }
}

/// A batch that is being read before its turn.
struct Ahead {
    /// Where the sink must be for it to be the next one.
    state: Placed,
    coming: tokio::task::JoinHandle<Option<Batch>>,
}

/// What is needed to read a batch.
struct Reading {
    archive: Arc<Archive>,
    changes: Arc<Changes>,
    filter: Filter,
    takes_back: bool,
    portion: Portion,
    rows_of: Option<String>,
}

impl Reading {
    fn read(&self, state: &mut State) -> Result<Batch> {
        let mut batch = batch::read(&self.archive, &self.changes, state, &self.filter, self.takes_back, self.portion)?;
        if let Some(archive) = &self.rows_of {
            batch.rows = Some(Rows::of(archive, &batch.node, &batch.events));
        }
        Ok(batch)
    }
}

/// What became of a batch.
#[derive(Default)]
struct Outcome {
    /// Events behind which nothing is known yet.
    upto: usize,
    accepted: usize,
    refused: Vec<(usize, String)>,
    /// Of these, those that were not even tried.
    unfit: usize,
    trouble: Option<Trouble>,
}

/// What others say may be long.
fn short(text: &str) -> String {
    let mut text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > SINK_ERROR_BYTES_MAX {
        let cut = (0..=SINK_ERROR_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

fn chance() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(())
}
