//! Which crawl runs in this process, and who answers questions about crawls: the one that runs, else what is on disk. The registry
//! has one user at a time; here they queue up for it.

use crate::failure::{Failure, Result};
use serde_json::Value;
use skep_archive::Archive;
use skep_crawl::{Control, Question};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The crawls of one process: at most one runs.
#[derive(Default)]
pub struct Crawls {
    user: Mutex<User>,
    changed: Condvar,
}

/// Who uses the registry.
#[derive(Default)]
enum User {
    #[default]
    Nobody,
    /// A question is being answered from what is on disk.
    Question,
    /// A crawl, by name.
    Crawl(String, Control),
}

/// How often a crawl that is just beginning, or just ending, is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// A crawl has the registry as long as this lives.
pub struct Running<'c> {
    crawls: &'c Crawls,
    pub control: Control,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.crawls.lock() = User::Nobody;
        self.crawls.changed.notify_all();
    }
}

impl Crawls {
    fn lock(&self) -> MutexGuard<'_, User> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of a crawl; refused while another one runs.
    pub fn begin(&self, name: &str) -> Result<Running<'_>> {
        let mut user = self.lock();
        loop {
            match &*user {
                User::Question => user = self.changed.wait(user).unwrap_or_else(PoisonError::into_inner),
                User::Crawl(running, _) => {
                    let what = if running == name {
                        format!("the crawl {name} runs already")
                    } else {
                        format!("another crawl of this archive runs already: {running}")
                    };
                    return Err(Failure::new(what)
                        .hint("`skep queue` shows how it stands; Ctrl-C where it was typed ends it; --archive DIR for one beside it"));
                }
                User::Nobody => break,
            }
        }
        let control = Control::default();
        *user = User::Crawl(name.to_owned(), control.clone());
        Ok(Running { crawls: self, control })
    }

    /// Asks the crawl of this name to finish what is in flight and to end; false if it does not run.
    pub fn stop(&self, name: &str) -> bool {
        match &*self.lock() {
            User::Crawl(running, control) if running == name => {
                control.stop();
                true
            }
            _ => false,
        }
    }

    /// The name of the crawl that runs.
    pub fn running(&self) -> Option<String> {
        match &*self.lock() {
            User::Crawl(name, _) => Some(name.clone()),
            _ => None,
        }
    }

    /// Answers a question.
    pub fn ask(&self, archive: &Arc<Archive>, question: &Question) -> Result<Vec<Value>> {
        let mut user = self.lock();
        loop {
            match &*user {
                User::Question => user = self.changed.wait(user).unwrap_or_else(PoisonError::into_inner),
                User::Crawl(_, control) => {
                    let control = control.clone();
                    drop(user);
                    if let Some(answer) = control.ask(question) {
                        return Ok(answer?);
                    }
                    let waited = self.changed.wait_timeout(self.lock(), ASK_AGAIN);
                    user = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                User::Nobody => break,
            }
        }
        *user = User::Question;
        drop(user);
        let answer = skep_crawl::answer_question(archive, question);
        *self.lock() = User::Nobody;
        self.changed.notify_all();
        Ok(answer?)
    }
}
