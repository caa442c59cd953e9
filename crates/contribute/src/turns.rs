//! What is said to the node, and when: greets it, asks for bundles, returns what is ready, until there is nothing left to do.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::carry;
use crate::contributor::{Ending, Main};
use crate::give_back::{self, Heard};
use crate::limits::{
    BATCH_BUNDLES_MAX, FINISH_TRIES, HOLDS_MAX, HOST_BUNDLES_MAX, IN_HAND_PER_CONNECTION, LATER_SECONDS_BUSY,
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
}

impl Turns {
    /// What was returned may lead to more.
    fn soon(&mut self) {
        self.laters = 0;
        self.ask_at = self.ask_at.min(Instant::now() + ASK_GAP);
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
    let (ask_at, wait) = (Instant::now(), Duration::from_secs(1));
    let (greeted, proof, proofs, laters) = (false, 0, 0, 0);
    let mut turns = Turns { greeted, proof, proofs, ask_at, laters, wait, in_vain: 0, alone: false };
    let now_ms = skep_archive::system_clock;
    loop {
        // What is finished is on disk and returned at the next start: a node that is gone keeps nobody here.
        if main.meter.borrow().finishing && main.hand.borrow().is_empty() && turns.in_vain >= FINISH_TRIES {
            return Ok(Ending::Unreturned(main.work.ready().len()));
        }
        // What is used up is used up, also for the node.
        if main.meter.borrow().paused || main.meter.borrow().is_month_used() {
            if main.meter.borrow().finishing && main.hand.borrow().is_empty() {
                let left = main.work.ready().len();
                return Ok(if left == 0 { Ending::Finished } else { Ending::Unreturned(left) });
            }
            tokio::select! {
                () = main.changed.notified() => {}
                () = main.over.notified() => {}
            }
            continue;
        }
        let (mut requests, mut ready) = (Vec::new(), Vec::new());
        if !turns.greeted {
            main.work.is_for(link.whose()).map_err(|error| format!("results cannot be removed: {error}"))?;
            let (mut holds, proof) = (main.work.ready(), turns.proof);
            holds.truncate(HOLDS_MAX);
            requests.push(Request::Hello { version: VERSION, proof, holds, team: team.to_owned() });
        } else {
            if gathered(&main) {
                ready = give_back::load(&main, turns.alone)?;
                requests.extend(ready.iter().map(Ready::results));
            }
            let in_hand = main.hand.borrow().len();
            if requests.is_empty() && in_hand == 0 && main.meter.borrow().finishing && main.work.is_empty() {
                let _it_notices_anyway = link.say(&[Request::Leave], now_ms).await;
                return Ok(Ending::Finished);
            }
            let room = main.meter.borrow().wishes().connections.max(1).saturating_mul(IN_HAND_PER_CONNECTION);
            let room = room.min(HOLDS_MAX.saturating_sub(main.work.ready().len()));
            let is_time = Instant::now() >= turns.ask_at && (ready.is_empty() || !turns.alone);
            if is_time && in_hand < room && main.meter.borrow().why_no_more().is_none() {
                requests.push(Request::Ask { bundles: (room - in_hand).min(BATCH_BUNDLES_MAX) as u16 });
            }
        }
        if requests.is_empty() {
            tokio::select! {
                () = main.changed.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
            continue;
        }
        let asked = Instant::now();
        let answers = match link.say(&requests, now_ms).await {
            Ok((answers, bytes)) => {
                (turns.wait, turns.in_vain) = (Duration::from_secs(1), 0);
                turns.alone &= ready.is_empty();
                main.said.borrow_mut().clear();
                main.offset_ms.set(link.offset_ms);
                main.spend(bytes).await;
                answers
            }
            Err(broken) => {
                turns.alone |= !ready.is_empty();
                unanswered(broken, &mut link, &main, &mut turns).await?;
                continue;
            }
        };
        let mut answers = answers.into_iter();
        let mut wanted = Vec::new();
        for ready in ready {
            match give_back::heard(ready, answers.next(), &main)? {
                Heard::Over => turns.soon(),
                Heard::Wanted(ready, bodies) => wanted.push((ready, bodies)),
                Heard::Forgotten => turns.greeted = false,
                Heard::Stop(why) => return Ok(Ending::Stopped(why)),
            }
        }
        // What is there to do is begun before bodies take the line.
        if let Some(answer) = answers.next()
            && let Some(ending) = heard(answer, asked, &mut link, &main, &mut turns).await?
        {
            return Ok(ending);
        }
        for (ready, bodies) in wanted {
            if let Err(broken) = give_back::bodies(ready, bodies, &mut link, &main).await {
                unanswered(broken, &mut link, &main, &mut turns).await?;
                break;
            }
            turns.soon();
        }
    }
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
        link.go_home()?;
        main.note(format!("back to {}: {why}", link.node));
        main.node.replace(link.node.to_string());
        (turns.greeted, turns.in_vain, turns.proof, turns.proofs) = (false, 0, 0, 0);
        return Ok(());
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

/// What the node says to a greeting or to a question for more.
async fn heard(
    answer: Answer,
    asked: Instant,
    link: &mut Link,
    main: &Rc<Main>,
    turns: &mut Turns,
) -> Result<Option<Ending>, String> {
    match answer {
        Answer::Welcome { pseudonym } => {
            (turns.greeted, turns.proofs) = (true, 0);
            main.work.is_for(link.whose()).map_err(|error| format!("results cannot be removed: {error}"))?;
            if *main.name.borrow() != pseudonym {
                main.note(format!("welcome at {} as {pseudonym}", link.node));
                main.name.replace(pseudonym);
            }
        }
        Answer::Work { bits, seed } => {
            main.note(format!("a new key proves that it means it: {bits} bits of work"));
            // A node that is never content gets less and less of it.
            if turns.proofs > 0 {
                let mut wait = Duration::from_secs(1 << turns.proofs.min(9));
                trouble(main, "the node wants another proof of work", &mut wait).await;
            }
            turns.proofs += 1;
            turns.proof = proven(seed, link.key(), bits, main).await?;
        }
        Answer::Bundles(bundles) => {
            take(bundles, link.whose(), asked, main);
            (turns.ask_at, turns.laters) = (Instant::now() + ASK_GAP, 0);
        }
        Answer::Later { seconds, why } => {
            main.said.replace(why);
            // Whoever has something to do does not keep asking.
            let times = if main.hand.borrow().is_empty() { 1 } else { 1 << turns.laters.min(4) };
            let seconds = seconds.clamp(1, 3_600);
            let seconds = (seconds * times).min(seconds.max(LATER_SECONDS_BUSY));
            turns.laters = turns.laters.saturating_add(1);
            turns.ask_at = Instant::now() + Duration::from_secs(u64::from(seconds));
        }
        Answer::Elsewhere { address } => match link.go(&address) {
            Ok(()) => {
                main.note(format!("sent on to {}", link.node));
                main.node.replace(link.node.to_string());
                (turns.greeted, turns.proof, turns.proofs, turns.laters) = (false, 0, 0, 0);
                turns.ask_at = Instant::now() + ASK_GAP;
            }
            Err(why) => {
                main.note(format!("not sent on: {why}"));
                turns.ask_at = Instant::now() + Duration::from_secs(LATER_SECONDS_BUSY.into());
            }
        },
        Answer::Stop { why } => return Ok(Some(Ending::Stopped(why))),
        Answer::Refused { why: Refusal::Unknown } => turns.greeted = false,
        Answer::Refused { why } => trouble(main, why.text(), &mut turns.wait).await,
        Answer::Want { .. } | Answer::Taken { .. } | Answer::Done { .. } => {
            trouble(main, "the node answers something else than it was asked", &mut turns.wait).await;
        }
    }
    Ok(None)
}

/// Numbers tried between two looks at what the owner wishes.
const PROVED_AT_ONCE: u64 = 1 << 16;

/// A proof of work, within the owner's share of the processor, and not while he lets it rest.
async fn proven(seed: [u8; 16], key: [u8; 32], bits: u8, main: &Main) -> Result<u64, String> {
    let mut from = 1u64;
    loop {
        while main.meter.borrow().why_not().is_some() && !main.meter.borrow().finishing {
            main.changed.notified().await;
        }
        let (began, among) = (Instant::now(), from..from + PROVED_AT_ONCE);
        from = among.end;
        let proving = tokio::task::spawn_blocking(move || message::prove_among(&seed, &key, bits, among));
        if let Some(proof) = proving.await.map_err(|error| error.to_string())? {
            return Ok(proof);
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
    let longest = if main.meter.borrow().finishing { Duration::from_secs(2) } else { Duration::from_secs(60) };
    tokio::select! {
        () = tokio::time::sleep((*wait).min(longest)) => {}
        () = main.over.notified() => {}
    }
    *wait = (*wait * 2).min(longest);
}

/// Begins with bundles, as far as they are sensible: a node that sends a thousand of one host gets one of them fetched.
fn take(bundles: Vec<Bundle>, whose: Whose, asked: Instant, main: &Rc<Main>) {
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
            if let Err(why) = carry::carry(bundle, whose, asked, &main).await {
                main.note(why);
            }
            main.hand.borrow_mut().remove(&id);
            main.changed.notify_waiters();
        });
    }
}
