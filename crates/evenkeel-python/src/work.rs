//! Work outside the interpreter: the GIL is released, Ctrl-C is noticed, progress is reported.
//!
//! A call's work runs on a thread of its own while the calling thread waits and asks the interpreter for signals ten times a second. On a signal the flag of
//! the call's networks is raised; what does not end within half a second goes on unheard until its next pass. A process that was forked has none of its
//! parent's threads, so it gets a pool of its own.
//! Invariant: results come in the order of the images, whatever the threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use evenkeel::{Error, Result};
use pyo3::prelude::*;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::{OrRaise, refuse};

const ASK: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_millis(500);

/// The process that loaded the module.
static HOME: OnceLock<u32> = OnceLock::new();

/// The threads of the last process that was forked off, with its number.
static FORKED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// Remembers which process has the library's own threads; called when the module is loaded.
pub(crate) fn settle() {
    HOME.get_or_init(std::process::id);
}

/// Does work with threads to help: the library's own, or in a process that was forked, whose parent kept them, its own.
pub(crate) fn helped<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let process = std::process::id();
    if HOME.get_or_init(|| process) == &process {
        return work();
    }
    let pool = {
        let mut held = FORKED.lock().unwrap_or_else(|e| e.into_inner());
        match *held {
            Some((own, pool)) if own == process => Ok(pool),
            // a pool of the parent is left as it is: its threads are not here to be ended
            _ => rayon::ThreadPoolBuilder::new().build().map(|pool| {
                let pool: &'static ThreadPool = Box::leak(Box::new(pool));
                *held = Some((process, pool));
                pool
            }),
        }
    };
    match pool {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// What a call's work and the thread that waits for it share.
#[derive(Clone, Default)]
pub(crate) struct Call {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
}

impl Call {
    /// The flag that ends the call.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// One part more is done.
    pub(crate) fn tick(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Every part, side by side, in order; the first error ends the others.
    pub(crate) fn each<A: Send, B: Send>(
        &self,
        parts: Vec<A>,
        one: impl Fn(A) -> Result<B> + Sync + Send,
    ) -> Result<Vec<B>> {
        let one = |part: A| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let made = one(part)?;
            self.tick();
            Ok(made)
        };
        parts.into_par_iter().map(one).collect()
    }
}

/// Does work outside the interpreter. `progress`, if given, is called with the number of parts done as they are.
pub(crate) fn outside<T: Send + 'static, E: std::error::Error + Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Call) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let call = Call::default();
    let (give, take) = channel();
    let own = call.clone();
    let spawned = std::thread::Builder::new().name("evenkeel".into()).spawn(move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| helped(|| work(&own))));
        // nobody waits any more for a call that was abandoned
        let _ = give.send(outcome.map_err(|panic| words_of(&*panic)));
    });
    spawned.map_err(|e| refuse(format!("no thread could be started: {e}")))?;
    let outcome = wait(py, &call, progress, take)?;
    outcome.map_err(|words| refuse(format!("internal error, please report it: {words}")))?.or_raise()
}

fn wait<T: Send>(
    py: Python<'_>,
    call: &Call,
    progress: Option<&Bound<'_, PyAny>>,
    take: Receiver<T>,
) -> PyResult<T> {
    // one thread waits at a time; the lock makes that known to the compiler
    let take = Mutex::new(take);
    let receive =
        |most: Duration| py.detach(|| take.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(most));
    let mut told = 0;
    loop {
        match receive(ASK) {
            Ok(outcome) => return tell(call, progress, &mut told).map(|()| outcome),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(refuse("internal error, please report it: the work ended without a word"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals().and_then(|()| tell(call, progress, &mut told)) {
            call.stop.store(true, Ordering::Relaxed);
            let _ = receive(GRACE);
            return Err(signal);
        }
    }
}

fn tell(call: &Call, progress: Option<&Bound<'_, PyAny>>, told: &mut usize) -> PyResult<()> {
    let done = call.done.load(Ordering::Relaxed);
    if let Some(progress) = progress.filter(|_| done != *told) {
        *told = done;
        progress.call1((done,))?;
    }
    Ok(())
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}
