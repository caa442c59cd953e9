//! Lines on their way to a client: a short answer as a whole, a long one as it comes.

use crate::answer::Answer;
use crate::limits::PIECE_BYTES;
use crate::reply::{Gone, Reply, Sink};
use axum::body::Body;
use axum::http::HeaderValue;
use std::cell::RefCell;

/// The field that says of how many slices of a network's archive nobody told anything.
pub const SILENT: &str = "skep-silent";

/// Says it in the head of an answer, where there is something to say.
pub fn say_silent(head: &mut Answer, slices: usize) {
    if slices > 0 {
        head.headers_mut().insert(SILENT, HeaderValue::from(slices));
    }
}

/// Takes the text of an answer.
pub struct Text {
    state: RefCell<State>,
}

enum State {
    /// Nothing has been sent: it may still become an error.
    Held {
        reply: Reply,
        head: Answer,
        text: Vec<u8>,
    },
    Sending(Sink),
    Gone,
}

impl Text {
    /// An answer with this head.
    pub fn new(reply: Reply, head: Answer) -> Text {
        Text { state: RefCell::new(State::Held { reply, head, text: Vec::new() }) }
    }

    /// Says in the head of how many slices nobody told anything.
    pub fn silent(&self, slices: usize) {
        if let State::Held { head, .. } = &mut *self.state.borrow_mut() {
            say_silent(head, slices);
        }
    }

    /// More of it.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Gone> {
        let mut state = self.state.borrow_mut();
        let (next, result) = match std::mem::replace(&mut *state, State::Gone) {
            State::Held { reply, head, mut text } => {
                text.extend_from_slice(bytes);
                if text.len() < PIECE_BYTES {
                    (State::Held { reply, head, text }, Ok(()))
                } else {
                    let mut sink = reply.begin(head);
                    match sink.write(&text) {
                        Ok(()) => (State::Sending(sink), Ok(())),
                        Err(gone) => (State::Gone, Err(gone)),
                    }
                }
            }
            State::Sending(mut sink) => match sink.write(bytes) {
                Ok(()) => (State::Sending(sink), Ok(())),
                Err(gone) => (State::Gone, Err(gone)),
            },
            State::Gone => (State::Gone, Err(Gone)),
        };
        *state = next;
        result
    }

    /// Whether nobody listens any more.
    pub fn is_gone(&self) -> bool {
        match &*self.state.borrow() {
            State::Held { reply, .. } => reply.is_gone(),
            State::Sending(sink) => sink.is_gone(),
            State::Gone => true,
        }
    }

    /// That was all.
    pub fn end(self) {
        match self.state.into_inner() {
            State::Held { reply, head, text } => reply.send(head.map(|_| Body::from(text))),
            State::Sending(sink) => drop(sink.end()),
            State::Gone => {}
        }
    }

    /// It cannot be finished: an error if nothing has been sent, else it is cut off.
    pub fn fail(self, answer: Answer) {
        match self.state.into_inner() {
            State::Held { reply, .. } => reply.send(answer),
            State::Sending(sink) => sink.cut(std::io::Error::other("the index could not be read to its end")),
            State::Gone => {}
        }
    }
}
