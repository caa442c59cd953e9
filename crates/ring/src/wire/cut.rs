//! A wire that can be cut, for demonstrations: nothing is said, asked or answered in either direction until it is healed, as if the cable were
//! out. The node itself goes on: it is asked and answers people as ever.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Answer, Ears, Relayed, Silence, Wire};
use crate::key::Key;

/// Whether the way is cut now.
#[derive(Clone, Default)]
struct Knife(Arc<AtomicBool>);

impl Knife {
    fn is_cut(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// What is under way breaks off, too.
    fn whole(&self) -> io::Result<()> {
        match self.is_cut() {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "this node is cut off")),
            false => Ok(()),
        }
    }
}

/// The way of a node to the others, as long as it is not cut.
pub struct Cut {
    wire: Arc<dyn Wire>,
    knife: Knife,
}

impl Cut {
    /// Carries everything, so far.
    pub fn new(wire: Arc<dyn Wire>) -> Arc<Cut> {
        Arc::new(Cut { wire, knife: Knife::default() })
    }

    /// Nothing is carried any more, or everything again.
    pub fn cut(&self, off: bool) {
        self.knife.0.store(off, Ordering::SeqCst);
    }

    /// What comes is heard through these: by whoever has the wire below.
    pub fn ears(&self, ears: Arc<dyn Ears>) -> Arc<dyn Ears> {
        Arc::new(Behind { ears, knife: self.knife.clone() })
    }
}

impl Wire for Cut {
    fn key(&self) -> Key {
        self.wire.key()
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.wire.addresses()
    }

    fn place(&self, node: Key, addresses: &[SocketAddr], relay: Option<&str>) {
        self.wire.place(node, addresses, relay);
    }

    fn relays(&self, served: &[(Key, String)]) {
        self.wire.relays(served);
    }

    fn relay(&self) -> Option<String> {
        self.wire.relay()
    }

    fn relayed(&self) -> Option<Relayed> {
        self.wire.relayed()
    }

    fn say(&self, to: Key, frame: Vec<u8>) {
        if !self.knife.is_cut() {
            self.wire.say(to, frame);
        }
    }

    fn ask(&self, to: Key, question: &[u8], patience: Duration) -> Result<Answer, Silence> {
        let whole = || self.knife.whole().map_err(|error| Silence(error.to_string()));
        whole()?;
        let answer = self.wire.ask(to, question, patience)?;
        whole()?;
        Ok(Box::new(Breaking { way: answer, knife: self.knife.clone() }))
    }

    fn traffic(&self) -> (u64, u64) {
        self.wire.traffic()
    }

    fn close(&self) {
        self.wire.close();
    }
}

/// Hears what comes through.
struct Behind {
    ears: Arc<dyn Ears>,
    knife: Knife,
}

impl Ears for Behind {
    fn hear(&self, from: Key, frame: Vec<u8>) {
        if !self.knife.is_cut() {
            self.ears.hear(from, frame);
        }
    }

    fn too_long(&self, from: Key, why: &'static str) {
        self.ears.too_long(from, why);
    }

    fn is_member(&self, key: &Key) -> bool {
        self.ears.is_member(key)
    }

    fn answer(&self, from: Key, question: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
        self.knife.whole()?;
        self.ears.answer(from, question, &mut Breaking { way: out, knife: self.knife.clone() })?;
        self.knife.whole()
    }
}

/// An answer that comes or goes, until the way is cut.
struct Breaking<W> {
    way: W,
    knife: Knife,
}

impl Read for Breaking<Answer> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.way.read(buffer)?;
        self.knife.whole().map(|()| read)
    }
}

impl Write for Breaking<&mut dyn Write> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.knife.whole()?;
        self.way.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.way.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::memory::Hub;
    use std::sync::Mutex;

    /// Remembers what it heard, and answers with the question.
    #[derive(Default)]
    struct Echo(Mutex<Vec<Vec<u8>>>);

    impl Ears for Echo {
        fn hear(&self, _: Key, frame: Vec<u8>) {
            self.0.lock().unwrap().push(frame);
        }
        fn too_long(&self, _: Key, _: &'static str) {}
        fn is_member(&self, _: &Key) -> bool {
            true
        }
        fn answer(&self, _: Key, question: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(&question)
        }
    }

    fn asked(from: &dyn Wire, to: Key) -> Option<Vec<u8>> {
        let mut told = Vec::new();
        from.ask(to, b"who?", Duration::from_secs(60)).ok()?.read_to_end(&mut told).ok()?;
        // In memory an answer that breaks off just ends.
        Some(told).filter(|told| !told.is_empty())
    }

    #[test]
    fn who_is_cut_off_neither_hears_nor_is_heard_until_it_is_healed() {
        let (hub, keys) = (Hub::new(), [Key([1; 32]), Key([2; 32])]);
        let heard = [Arc::new(Echo::default()), Arc::new(Echo::default())];
        let other = hub.wire(keys[1]);
        let cut = Cut::new(hub.wire(keys[0]));
        let ears = [cut.ears(heard[0].clone()), heard[1].clone() as Arc<dyn Ears>];
        (0..2).for_each(|at| hub.attach(keys[at], &ears[at]));
        let count = |at: usize| heard[at].0.lock().unwrap().len();
        for (off, frames) in [(false, 1), (true, 1), (false, 2)] {
            cut.cut(off);
            cut.say(keys[1], vec![1]);
            other.say(keys[0], vec![2]);
            assert_eq!([count(0), count(1)], [frames; 2], "cut: {off}");
            assert_eq!(asked(&*cut, keys[1]).is_some(), !off);
            assert_eq!(asked(&*other, keys[0]).is_some(), !off);
        }
        // What was asked before breaks off, and is not taken for whole.
        let mut answer = cut.ask(keys[1], b"who?", Duration::from_secs(60)).unwrap();
        cut.cut(true);
        assert!(answer.read_to_end(&mut Vec::new()).is_err());
        let mut out: Vec<u8> = Vec::new();
        assert!(ears[0].answer(keys[1], b"who?".to_vec(), &mut out).is_err() && out.is_empty());
    }
}
