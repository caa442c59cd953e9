//! What is said to the node, and when: greets it, asks for bundles, returns what is ready, until there is nothing left to do.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::carry;
use crate::contributor::{Ending, Main};
use crate::give_back::{self, Heard};
use crate::limits::{BATCH_BUNDLES_MAX, FINISH_TRIES, HOST_BUNDLES_MAX, IN_HAND_PER_CONNECTION, LATER_SECONDS_BUSY};
use crate::link::{Link, NoAnswer};
use crate::message::{self, Answer, Bundle, Refusal, Request, VERSION};
use crate::work::Ready;

/// When something is said to the node.
struct Turns {
    greeted: bool,
    /// The node that its owner named.
    home: String,
    /// What a new key's proof of work came to.
    proof: u64,
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
    let home = link.node.as_str().to_owned();
    let mut turns = Turns { greeted: false, home, proof: 0, ask_at, laters: 0, wait, in_vain: 0, alone: false };
    let now_ms = skep_archive::system_clock;
    loop {
        // What is finished is on disk and returned at the next start: a node that is gone keeps nobody here.
        if main.meter.borrow().finishing && main.hand.borrow().is_empty() && turns.in_vain >= FINISH_TRIES {
            return Ok(Ending::Unreturned(main.work.ready().len()));
        }
        if main.meter.borrow().paused {
            main.changed.notified().await;
            continue;
        }
        let (mut requests, mut ready) = (Vec::new(), Vec::new());
        if !turns.greeted {
            let (holds, proof) = (main.work.ready(), turns.proof);
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
            let room = main.meter.borrow().wishes().connections.max(1) * IN_HAND_PER_CONNECTION;
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
    // Where it was sent to it does not stay without an answer.
    if link.node.as_str() != turns.home {
        let (NoAnswer::Never(why) | NoAnswer::Broken(why)) = broken;
        main.note(format!("back to {}: {why}", turns.home));
        link.go(&turns.home)?;
        main.node.replace(turns.home.clone());
        turns.greeted = false;
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
            turns.greeted = true;
            if *main.name.borrow() != pseudonym {
                main.note(format!("welcome at {} as {pseudonym}", link.node));
                main.name.replace(pseudonym);
            }
        }
        Answer::Work { bits, seed } => {
            main.note(format!("a new key proves that it means it: {bits} bits of work"));
            let key = link.key();
            let proving = tokio::task::spawn_blocking(move || message::prove(&seed, &key, bits));
            turns.proof = proving.await.map_err(|error| error.to_string())?;
        }
        Answer::Bundles(bundles) => {
            take(bundles, asked, main);
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
        Answer::Elsewhere { address } => {
            main.note(format!("sent on to {address}"));
            link.go(&address)?;
            main.node.replace(address);
            (turns.greeted, turns.proof, turns.laters) = (false, 0, 0);
            turns.ask_at = Instant::now();
        }
        Answer::Stop { why } => return Ok(Some(Ending::Stopped(why))),
        Answer::Refused { why: Refusal::Unknown } => turns.greeted = false,
        Answer::Refused { why } => trouble(main, why.text(), &mut turns.wait).await,
        Answer::Want { .. } | Answer::Taken { .. } | Answer::Done { .. } => {
            trouble(main, "the node answers something else than it was asked", &mut turns.wait).await;
        }
    }
    Ok(None)
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
fn take(bundles: Vec<Bundle>, asked: Instant, main: &Rc<Main>) {
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
            if let Err(why) = carry::carry(bundle, asked, &main).await {
                main.note(why);
            }
            main.hand.borrow_mut().remove(&id);
            main.changed.notify_waiters();
        });
    }
}
