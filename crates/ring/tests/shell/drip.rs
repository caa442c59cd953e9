//! A member whose answers come a byte at a time, and never end: nothing waits for it but what only it can give.

use super::*;
use skep_ring::wire::{Answer, Relayed, Silence};
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

/// Which answers drip.
type Which = Box<dyn FnMut(Key, &Question) -> bool + Send>;

/// A wire some of whose answers drip.
struct Dripping {
    wire: Arc<dyn Wire>,
    which: Mutex<Which>,
    drips: Arc<Drips>,
}

#[derive(Default)]
struct Drips {
    begun: AtomicUsize,
    /// Whoever asked has turned away.
    ended: AtomicUsize,
    /// From now on they come as others do.
    over: AtomicBool,
}

struct Drip {
    answer: Answer,
    drips: Arc<Drips>,
}

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.drips.over.load(Ordering::Relaxed) {
            return self.answer.read(buffer);
        }
        std::thread::sleep(Duration::from_millis(500));
        match self.answer.read(&mut buffer[..1])? {
            0 => {
                buffer[0] = b' ';
                Ok(1)
            }
            read => Ok(read),
        }
    }
}

impl Drop for Drip {
    fn drop(&mut self) {
        self.drips.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wire for Dripping {
    fn key(&self) -> Key {
        self.wire.key()
    }
    fn addresses(&self) -> Vec<SocketAddr> {
        self.wire.addresses()
    }
    fn place(&self, node: Key, addresses: &[SocketAddr], relay: Option<&str>) {
        self.wire.place(node, addresses, relay);
    }
    fn relayed(&self) -> Option<Relayed> {
        self.wire.relayed()
    }
    fn say(&self, to: Key, frame: Vec<u8>) {
        self.wire.say(to, frame);
    }
    fn ask(&self, to: Key, question: &[u8], patience: Duration) -> Result<Answer, Silence> {
        let answer = self.wire.ask(to, question, patience)?;
        let asked = Question::decode(question).expect("a question");
        if !(self.which.lock().unwrap())(to, &asked) {
            return Ok(answer);
        }
        self.drips.begun.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Drip { answer, drips: self.drips.clone() }))
    }
    fn traffic(&self) -> (u64, u64) {
        self.wire.traffic()
    }
    fn close(&self) {
        self.wire.close();
    }
}

/// Whom it happens to.
const VICTIM: usize = 3;

/// Four nodes, of which the last hears answers through such a wire.
fn world() -> (World, Arc<Dripping>) {
    let mut world = World::new(Way::Memory(Hub::new()));
    for _ in 0..VICTIM {
        world.join();
    }
    world.settled();
    world.write(20);
    world.stop(VICTIM);
    let machine = &world.machines[VICTIM];
    let (wire, _) = world.wire(machine.secret, machine.membership.listen);
    let wire = Arc::new(Dripping { wire, which: Mutex::new(Box::new(|_, _| false)), drips: Arc::default() });
    world.start_with(VICTIM, Vec::new(), wire.clone(), None);
    world.settled();
    (world, wire)
}

/// What comes of something that may never end.
fn in_time<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (say, said) = channel();
    std::thread::spawn(move || say.send(act()));
    said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: nobody answers"))
}

#[test]
fn a_member_whose_answers_drip_holds_up_no_copying_from_others() {
    let (mut world, wire) = world();
    let held: BTreeSet<Slice> = world.shell(VICTIM).status().held.iter().map(|held| held.slice).collect();
    let leads = |world: &World, at: usize| held.iter().any(|slice| world.leader(*slice) == Some(at));
    let liar = (0..VICTIM).find(|at| leads(&world, *at)).expect("somebody leads what it holds");
    let key = world.shell(liar).key();
    *wire.which.lock().unwrap() = Box::new(move |to, asked| to == key && matches!(asked, Question::Pull { .. }));
    world.write(60);
    let ended = |_: &World| wire.drips.ended.load(Ordering::Relaxed) > 0;
    world.until("who drips is left alone", ended);
    // Meanwhile it has what all others wrote.
    world.until("what others wrote is copied", |world| {
        let here = world.archive(VICTIM);
        here.settle().unwrap();
        let all = |archive: &Archive| -> Vec<Capture> {
            archive.views().captures.query(&Query::new(Match::All)).unwrap().map(Result::unwrap).collect()
        };
        let copied: BTreeSet<_> = all(&here).into_iter().map(|capture| capture.position).collect();
        let others = (0..VICTIM).filter(|at| *at != liar);
        others.into_iter().all(|at| {
            let archive = world.archive(at);
            archive.settle().unwrap();
            let own = all(&archive).into_iter().filter(|capture| capture.position.writer == archive.writer());
            let shell = world.shell(VICTIM);
            let mut own = own.filter(|capture| held.contains(&shell.slice_of(capture.key.site_hash())));
            own.all(|capture| copied.contains(&capture.position))
        })
    });
    // And all of it when nothing drips any more.
    *wire.which.lock().unwrap() = Box::new(|_, _| false);
    wire.drips.over.store(true, Ordering::Relaxed);
    world.settled();
    world.everything_is_on(3);
    world.end();
}

#[test]
fn where_the_answer_of_one_drips_another_is_asked() {
    let (mut world, wire) = world();
    world.write(30);
    world.settled();
    // Somebody else is to be asked: with every node that comes it holds less.
    while (0..1 << BITS).all(|slice| world.shell(VICTIM).holds(slice)) {
        world.join();
        world.settled();
    }
    let shell = world.shell(VICTIM);
    // The first of each kind, whoever it is that is asked.
    let drip_first = |is: fn(&Question) -> bool| {
        let mut dripped = false;
        *wire.which.lock().unwrap() = Box::new(move |_, asked| is(asked) && !std::mem::replace(&mut dripped, true));
    };
    drip_first(|asked| matches!(asked, Question::Portal { .. }));
    let asking = shell.clone();
    let all = in_time("everywhere", move || asking.everywhere(&|_| "how many?".into()));
    let theirs = all.said.iter().map(|said| -> usize {
        let said = String::from_utf8_lossy(said).into_owned();
        said.strip_prefix("how many? ").expect("a whole answer").parse().unwrap()
    });
    assert_eq!(all.here.len() + theirs.sum::<usize>(), 1 << BITS);
    assert_eq!((all.silent, wire.drips.begun.load(Ordering::Relaxed)), (0, 1));

    drip_first(|asked| matches!(asked, Question::Scan { .. }));
    let asking = shell.clone();
    let (silent, found) = in_time("a scan", move || {
        let scan = asking.scan(&Query::new(Match::All));
        (scan.silent(), scan.map(|found| found.unwrap().url).collect::<BTreeSet<String>>())
    });
    assert_eq!((silent, found), (0, world.all_written()));
    assert_eq!(wire.drips.begun.load(Ordering::Relaxed), 2);
    wire.drips.over.store(true, Ordering::Relaxed);
    drop(shell);
    world.end();
}
