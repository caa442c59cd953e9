//! What is said to the node, and when: greets it, asks for bundles, returns what is ready, until there is nothing left to do.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::carry::{self, Broken, Moment};
use crate::contributor::{Ending, Main};
use crate::give_back::{self, Heard};
use crate::limits::{
    BATCH_BUNDLES_MAX, FINISH_TRIES, HOLDS_MAX, HOME_ASKS, HOST_BUNDLES_MAX, IN_HAND_PER_CONNECTION, LATER_SECONDS_BUSY,
};
use crate::link::{Link, NoAnswer};
use crate::message::{self, Answer, Bundle, Refusal, Request, VERSION};
use crate::work::{Ready, Whose};

/// When something is said to the node.
struct Turns {
    greeted: bool,
    /// What a new key's proof of work came to.
    proof: u64,
    /// How often one was wanted.
    proofs: u32,
    /// Not before then is the node greeted.
    greet_at: Instant,
    /// Not before then is more asked for.
    ask_at: Instant,
    /// How often there was nothing to do, in a row.
    laters: u32,
    /// How long to wait after the next trouble.
    wait: Duration,
    /// How often nobody answered, in a row.
    in_vain: u32,
    /// Nothing came of what was said together: what is wrong with one of it shows when it is said alone.
    alone: bool,
    /// Bundles that were asked for and have not come.
    wanted: usize,
    /// How often bodies did not reach the node, in a row.
    unreturned: u32,
}

impl Turns {
    /// What was returned may lead to more.
    fn soon(&mut self) {
        self.laters = 0;
        self.ask_at = self.ask_at.min(Instant::now() + ASK_GAP);
    }

    /// The node does not know us any more: it is greeted again, and not without end.
    async fn forgotten(&mut self, main: &Main) {
        self.greeted = false;
        main.waits(ASK_GAP).await;
    }
}

/// Something that others wait for is said together with what is finished soon after.
const GATHER: Duration = Duration::from_secs(1);
/// Whoever got something asks again after that: others are to get something, too.
const ASK_GAP: Duration = Duration::from_secs(1);

/// Greets the node, asks, and returns what is ready, until there is nothing left to do.
pub(crate) async fn contribute(mut link: Link, main: Rc<Main>, team: &str) -> Result<Ending, String> {
    // Nothing is asked for before the fetcher is locked in.
    while main.sandbox.borrow().is_empty() {
        main.changed.notified().await;
    }
    let (now, wait) = (Instant::now(), Duration::from_secs(1));
    let (greeted, proof, proofs, laters) = (false, 0, 0, 0);
    let (greet_at, ask_at) = (now, now);
    let (in_vain, alone, wanted, unreturned) = (0, false, 0, 0);
    let mut turns =
        Turns { greeted, proof, proofs, greet_at, ask_at, laters, wait, in_vain, alone, wanted, unreturned };
    let now_ms = skep_archive::system_clock;
    loop {
        // What is finished is on disk and returned at the next start: a node that is gone, or lets nobody in now, keeps nobody here.
        let is_kept_out = !turns.greeted && Instant::now() < turns.greet_at;
        let is_finishing = main.meter.borrow().finishing && main.hand.borrow().is_empty();
        let is_in_vain = turns.in_vain.max(turns.unreturned) >= FINISH_TRIES;
        if is_finishing && (is_in_vain || main.is_at_rest() || is_kept_out) {
            let left = main.work.ready().len();
            return Ok(if left == 0 { Ending::Finished } else { Ending::Unreturned(left) });
        }
        if main.is_at_rest() {
            tokio::select! {
                () = main.changed.notified() => {}
                () = main.over.notified() => {}
            }
            continue;
        }
        let (mut requests, mut ready, mut declines) = (Vec::new(), Vec::new(), None);
        turns.wanted = 0;
        // Where it was sent to there is nothing to do any more: home may know of something.
        if !link.is_home()
            && turns.laters >= HOME_ASKS
            && main.hand.borrow().is_empty()
            && main.work.is_empty()
            && !main.meter.borrow().finishing
        {
            let _it_notices_anyway = link.say(&[Request::Leave], now_ms).await;
            main.spend(link.spent()).await;
            back_home(&mut link, &main, &mut turns, "nothing to do")?;
            continue;
        }
        if !turns.greeted {
            if Instant::now() >= turns.greet_at {
                main.work.is_for(link.whose()).map_err(|error| format!("results cannot be removed: {error}"))?;
                let (holds, proof) = (holds(&main, link.whose()), turns.proof);
                requests.push(Request::Hello { version: VERSION, proof, holds, team: team.to_owned() });
            }
        } else if let Some(bundle) = declined(&main, link.whose()).first().copied() {
            // What its owner does not want goes to others before more is asked for.
            declines = Some(bundle);
            requests.push(Request::Decline { bundle });
        } else {
            if gathered(&main) {
                ready = give_back::load(&main, turns.alone)?;
                requests.extend(ready.iter().map(Ready::results));
            }
            let in_hand = main.hand.borrow().len();
            if requests.is_empty() && in_hand == 0 && main.meter.borrow().finishing && main.work.is_empty() {
                let _it_notices_anyway = link.say(&[Request::Leave], now_ms).await;
                main.spend(link.spent()).await;
                return Ok(Ending::Finished);
            }
            let room = main.meter.borrow().wishes().connections.max(1).saturating_mul(IN_HAND_PER_CONNECTION);
            let room = room.min(HOLDS_MAX.saturating_sub(main.work.ready().len()));
            let is_time = Instant::now() >= turns.ask_at && (ready.is_empty() || !turns.alone);
            if is_time && in_hand < room && main.meter.borrow().why_no_more().is_none() {
                turns.wanted = (room - in_hand).min(BATCH_BUNDLES_MAX);
                requests.push(Request::Ask { bundles: turns.wanted as u16 });
            }
        }
        if requests.is_empty() {
            tokio::select! {
                () = main.changed.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
            continue;
        }
        let (asked, whose) = (Moment::now(), link.whose());
        let said = link.say(&requests, now_ms).await;
        // Also what makes no sense has gone over the line.
        main.spend(link.spent()).await;
        let answers = match said {
            Ok(answers) => {
                (turns.wait, turns.in_vain) = (Duration::from_secs(1), 0);
                turns.alone &= ready.is_empty();
                main.said.borrow_mut().clear();
                main.offset_ms.set(link.offset_ms);
                if main.seen_from.replace(link.seen_from) != link.seen_from {
                    main.moved.notify_one();
                }
                answers
            }
            Err(broken) => {
                turns.alone |= !ready.is_empty();
                unanswered(broken, &mut link, &main, &mut turns).await?;
                continue;
            }
        };
        // Whatever was answered: who did not understand it gives the bundle to others when its lease is over.
        if let Some(bundle) = declines {
            main.declined.borrow_mut().retain(|(_, declined)| *declined != bundle);
            continue;
        }
        let mut answers = answers.into_iter();
        let (mut wanted, mut has_gone) = (Vec::new(), false);
        for ready in ready {
            match give_back::heard(ready, answers.next(), &main)? {
                Heard::Over => turns.soon(),
                Heard::Wanted(ready, bodies) => wanted.push((ready, bodies)),
                Heard::Forgotten => turns.forgotten(&main).await,
                Heard::Stop(why) => {
                    if let Some(ending) = stopped(why, &mut link, &main, &mut turns)? {
                        return Ok(ending);
                    }
                    has_gone = true;
                    break;
                }
            }
        }
        if has_gone {
            continue;
        }
        // What is there to do is begun before bodies take the line.
        if let Some(answer) = answers.next()
            && let Some(ending) = heard(answer, asked, &mut link, &main, &mut turns).await?
        {
            return Ok(ending);
        }
        // What was fetched for one node is told to no other.
        if link.whose() != whose && whose != Whose::default() {
            continue;
        }
        for (ready, bodies) in wanted {
            if let Err(broken) = give_back::bodies(ready, bodies, &mut link, &main).await {
                turns.unreturned += 1;
                unanswered(broken, &mut link, &main, &mut turns).await?;
                break;
            }
            turns.unreturned = 0;
            turns.soon();
        }
    }
}

/// What it has of a node's, for a greeting. All else that it was given goes to others: first comes what is fetched just now, for no two are
/// to visit a site at once.
fn holds(main: &Main, whose: Whose) -> Vec<u64> {
    let in_hand: Vec<u64> = main.hand.borrow().keys().copied().collect();
    in_hand.into_iter().chain(declined(main, whose)).chain(main.work.ready()).take(HOLDS_MAX).collect()
}

/// Bundles of a node that its owner's rules forbid and that the node has not heard of yet. Those of nodes that are not spoken to any more go to
/// others by themselves.
fn declined(main: &Main, whose: Whose) -> Vec<u64> {
    let mut declined = main.declined.borrow_mut();
    declined.retain(|(of, _)| *of == whose);
    declined.iter().map(|(_, bundle)| *bundle).collect()
}

/// Is there something to return, and nothing to wait for that could go with it?
fn gathered(main: &Main) -> bool {
    match main.work.waits_for() {
        None => false,
        Some(waits_for) => waits_for >= GATHER || main.hand.borrow().is_empty(),
    }
}

/// Nobody answered, or nothing that makes sense.
async fn unanswered(broken: NoAnswer, link: &mut Link, main: &Main, turns: &mut Turns) -> Result<(), String> {
    // Where it was sent to it does not stay without an answer, once it has tried to return what it has for it.
    let owes = !main.work.is_empty() || !main.hand.borrow().is_empty();
    let tries_again = matches!(broken, NoAnswer::Broken(_)) && owes && turns.in_vain + 1 < FINISH_TRIES;
    if !link.is_home() && !tries_again {
        let (NoAnswer::Never(why) | NoAnswer::Broken(why)) = broken;
        return back_home(link, main, turns, &why);
    }
    match broken {
        NoAnswer::Never(why) => Err(why),
        NoAnswer::Broken(why) => {
            turns.in_vain += 1;
            turns.greeted = false;
            trouble(main, &why, &mut turns.wait).await;
            Ok(())
        }
    }
}

/// From where it was sent to back to the node that its owner named.
fn back_home(link: &mut Link, main: &Main, turns: &mut Turns, why: &str) -> Result<(), String> {
    link.go_home()?;
    main.note(format!("back to {}: {why}", link.node));
    arrived(link, main, turns);
    Ok(())
}

/// It speaks to another node from now on, and greets it first.
fn arrived(link: &Link, main: &Main, turns: &mut Turns) {
    main.node.replace(link.name());
    (turns.greeted, turns.in_vain, turns.proof, turns.proofs, turns.laters) = (false, 0, 0, 0, 0);
    (turns.greet_at, turns.ask_at) = (Instant::now(), Instant::now());
}

/// The node wants no more of us. Another one than the owner named decides that for itself alone.
fn stopped(why: String, link: &mut Link, main: &Main, turns: &mut Turns) -> Result<Option<Ending>, String> {
    if link.is_home() {
        return Ok(Some(Ending::Stopped(why)));
    }
    main.note(format!("{} wants no more: {why}", link.name()));
    link.shun()?;
    arrived(link, main, turns);
    Ok(None)
}

/// What the node says to a greeting or to a question for more.
async fn heard(
    answer: Answer,
    asked: Moment,
    link: &mut Link,
    main: &Rc<Main>,
    turns: &mut Turns,
) -> Result<Option<Ending>, String> {
    match answer {
        Answer::Welcome { pseudonym } => {
            (turns.greeted, turns.proofs) = (true, 0);
            main.work.is_for(link.whose()).map_err(|error| format!("results cannot be removed: {error}"))?;
            if *main.name.borrow() != pseudonym {
                main.note(format!("welcome at {} as {pseudonym}", link.name()));
                main.name.replace(pseudonym);
            }
        }
        Answer::Work { .. } if turns.proofs >= FINISH_TRIES && !link.is_home() => {
            return stopped("it wants one proof of work after the other".into(), link, main, turns);
        }
        Answer::Work { bits, seed } => {
            main.note(format!("a new key proves that it means it: {bits} bits of work"));
            // A node that is never content gets less and less of it.
            if turns.proofs > 0 {
                let mut wait = Duration::from_secs(1 << turns.proofs.min(9));
                trouble(main, "the node wants another proof of work", &mut wait).await;
            }
            turns.proofs += 1;
            match proven(seed, link.key(), bits, main).await? {
                Some(proof) => turns.proof = proof,
                // Nobody who is to stop begins to prove something.
                None => turns.in_vain = FINISH_TRIES,
            }
        }
        // Nobody is made to fetch what he did not ask for.
        Answer::Bundles(_) if turns.wanted == 0 => {
            trouble(main, "the node answers something else than it was asked", &mut turns.wait).await;
        }
        Answer::Bundles(mut bundles) => {
            bundles.truncate(std::mem::take(&mut turns.wanted));
            take(bundles, link.whose(), asked, main);
            (turns.ask_at, turns.laters) = (Instant::now() + ASK_GAP, 0);
        }
        Answer::Later { seconds, why } => {
            main.said.replace(why.clone());
            if !turns.greeted && !link.is_home() {
                return stopped(why, link, main, turns);
            }
            // Whoever has something to do does not keep asking.
            let times = if main.hand.borrow().is_empty() { 1 } else { 1 << turns.laters.min(4) };
            // Whoever was sent somewhere does not wait there for long.
            let seconds = seconds.clamp(1, if link.is_home() { 3_600 } else { LATER_SECONDS_BUSY });
            let seconds = (seconds * times).min(seconds.max(LATER_SECONDS_BUSY));
            turns.laters = turns.laters.saturating_add(1);
            let then = Instant::now() + Duration::from_secs(u64::from(seconds));
            match turns.greeted {
                true => turns.ask_at = then,
                false => turns.greet_at = then,
            }
        }
        Answer::Elsewhere { address } => match link.go(&address) {
            Ok(()) => {
                // Two who send it to each other at once do not keep it running.
                if !turns.greeted {
                    main.waits(ASK_GAP).await;
                }
                main.note(format!("sent on to {}", link.name()));
                arrived(link, main, turns);
                turns.ask_at = Instant::now() + ASK_GAP;
            }
            Err(why) => {
                main.note(format!("not sent on: {why}"));
                turns.ask_at = Instant::now() + Duration::from_secs(LATER_SECONDS_BUSY.into());
            }
        },
        Answer::Stop { why } => return stopped(why, link, main, turns),
        Answer::Refused { why: Refusal::Unknown } => turns.forgotten(main).await,
        Answer::Refused { why } if !turns.greeted && !link.is_home() => {
            return stopped(why.text().to_owned(), link, main, turns);
        }
        Answer::Refused { why } => trouble(main, why.text(), &mut turns.wait).await,
        Answer::Want { .. } | Answer::Taken { .. } | Answer::Done { .. } => {
            trouble(main, "the node answers something else than it was asked", &mut turns.wait).await;
        }
    }
    Ok(None)
}

/// Numbers tried between two looks at what the owner wishes.
const PROVED_AT_ONCE: u64 = 1 << 16;

/// A proof of work, within the owner's share of the processor, and not while he lets it rest; none if it is to stop.
async fn proven(seed: [u8; 16], key: [u8; 32], bits: u8, main: &Main) -> Result<Option<u64>, String> {
    let mut from = 1u64;
    loop {
        while main.meter.borrow().why_not().is_some() && !main.meter.borrow().finishing {
            main.changed.notified().await;
        }
        if main.meter.borrow().finishing {
            return Ok(None);
        }
        let (began, among) = (Instant::now(), from..from + PROVED_AT_ONCE);
        from = among.end;
        let proving = tokio::task::spawn_blocking(move || message::prove_among(&seed, &key, bits, among));
        if let Some(proof) = proving.await.map_err(|error| error.to_string())? {
            return Ok(Some(proof));
        }
        let percent = main.meter.borrow().wishes().cpu_percent.clamp(1, 100);
        tokio::time::sleep(began.elapsed() * (100 - percent) / percent).await;
    }
}

/// Says what is wrong, and waits longer each time.
async fn trouble(main: &Main, why: &str, wait: &mut Duration) {
    if *main.said.borrow() != why {
        main.note(format!("{why}; trying again"));
        main.said.replace(why.to_owned());
    }
    main.waits(*wait).await;
    *wait = (*wait * 2).min(Duration::from_secs(60));
}

/// Begins with bundles, as far as they are sensible: a node that sends a thousand of one host gets one of them fetched.
fn take(bundles: Vec<Bundle>, whose: Whose, asked: Moment, main: &Rc<Main>) {
    for bundle in bundles {
        let same = main.hand.borrow().values().filter(|(host, _)| *host == bundle.host).count();
        if same >= HOST_BUNDLES_MAX || main.hand.borrow().contains_key(&bundle.id) {
            main.note(format!("a second bundle of {} at once is not taken", bundle.host));
            continue;
        }
        main.hand.borrow_mut().insert(bundle.id, (bundle.host.clone(), "waiting for a connection".into()));
        let main = main.clone();
        tokio::task::spawn_local(async move {
            let id = bundle.id;
            match carry::carry(bundle, whose, asked, &main).await {
                Ok(()) => {}
                Err(Broken::Failed(why)) => main.note(why),
                Err(Broken::Unwanted(why)) => {
                    main.note(why);
                    main.declined.borrow_mut().push((whose, id));
                }
            }
            main.hand.borrow_mut().remove(&id);
            main.changed.notify_waiters();
        });
    }
}
