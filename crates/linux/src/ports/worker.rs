//! The threads of ports.

use super::pin_to_cpu;
use crate::error::{Doing, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// A thread that ends on request, or by an error. Drop requests its end and waits for it.
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Worker {
    /// Starts a thread, on `cpu` if one is given. `run` must return soon after its flag becomes true.
    pub fn spawn(
        name: impl Into<String>,
        cpu: Option<u32>,
        run: impl FnOnce(&AtomicBool) -> Result<(), Error> + Send + 'static,
    ) -> Result<Worker, Error> {
        let (name, stop) = (name.into(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let run = move || {
            let pinned = cpu.map_or(Ok(()), pin_to_cpu);
            pinned.doing(format_args!("bind a port's thread to CPU {cpu:?}"))?;
            run(&told)
        };
        let thread = Builder::new().name(name).spawn(run).doing("start a port's thread")?;
        Ok(Worker { stop, thread: Some(thread) })
    }

    /// Whether it has ended, or was waited for.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Requests its end, waits for it, and returns its error if it failed. The error is returned once.
    pub fn join(&mut self) -> Result<(), Error> {
        self.tell_to_stop();
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|_| Err(Error::Refused("a thread of the port panicked".into())))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The error has been reported when the port was stopped, or does not matter.
        let _ = self.join();
    }
}
