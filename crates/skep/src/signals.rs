//! Ctrl-C, and what service managers send: the first asks to finish, the second ends at once.

use crate::failure::{Failure, Result};
use crate::job::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::thread::JoinHandle;

/// Signals are heard until it is dropped.
pub struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Calls `first` at the first signal. At the second, `second` is called and the process ends: what is written is written record by
/// record, so nothing is damaged by that.
pub fn watch(first: impl FnOnce() + Send + 'static, second: impl FnOnce() + Send + 'static) -> Result<Watch> {
    let wrong = |error: std::io::Error| Failure::new("signals cannot be heard").because(error);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(wrong)?;
    let handle = signals.handle();
    let thread = std::thread::Builder::new().name("skep-signals".into()).spawn(move || {
        let mut coming = signals.forever();
        if coming.next().is_none() {
            return;
        }
        // Beside, so that the second signal is heard while the first is still being obeyed.
        let _asking = std::thread::Builder::new().name("skep-stop".into()).spawn(first);
        if coming.next().is_some() {
            second();
            std::process::exit(Exit::Undone as i32);
        }
    });
    Ok(Watch { handle, thread: Some(thread.map_err(wrong)?) })
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
        let _nothing_to_report = self.thread.take().map(JoinHandle::join);
    }
}
