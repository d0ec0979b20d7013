//! A worker group: the threads of a pool that stand ready for one caller while it works through many short parallel calls.
//!
//! A network is a hundred kernels of some ten microseconds each, and waking a sleeping thread for each of them costs as much as
//! the kernel. So a walk through the network gathers the pool's idle threads once ([`together`]); they watch a slot for the next
//! job, take pieces of it, and go back to the pool when the walk ends. A thread that is busy elsewhere joins when it becomes
//! idle or not at all: nobody waits for it.
//!
//! The slot holds a pointer to a job on the caller's stack. It stays valid because a helper signs in before it reads the
//! pointer, and the caller takes the pointer down and then waits until everybody has signed out.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::affinity;

/// How often a helper polls the slot at full speed, then yielding, before it sleeps between polls.
const SPINS: usize = 4_000;
const YIELDS: usize = 2_000;
/// How many jobs a leader without helpers makes way after.
const COURTESIES: usize = 4;
const NAP: Duration = Duration::from_micros(50);

type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// Pieces `0..count` of a task, handed out one at a time: to the leader from the first on, to helpers from the last back. Kernels
/// number their pieces along the map, so with two threads each mostly reads what it wrote itself in the kernel before.
struct Shared<'a> {
    task: &'a Task<'a>,
    count: usize,
    /// Pieces handed out from the front, and, in the upper half, from the back.
    taken: AtomicU64,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Shared<'_> {
    /// The next piece from that end, if any is left.
    fn take(&self, end: End) -> Option<usize> {
        let one = match end {
            End::Front => 1,
            End::Back => 1 << 32,
        };
        let taken = self.taken.fetch_add(one, Ordering::Relaxed);
        let (front, back) = ((taken & u64::from(u32::MAX)) as usize, (taken >> 32) as usize);
        (front + back < self.count).then(|| match end {
            End::Front => front,
            End::Back => self.count - 1 - back,
        })
    }

    /// Does pieces from one end until none is left.
    fn work(&self, end: End) {
        let outer = PLACE.replace(Place::Piece);
        let done = catch_unwind(AssertUnwindSafe(|| {
            while let Some(piece) = self.take(end) {
                (self.task)(piece);
            }
        }));
        PLACE.set(outer);
        if let Err(panic) = done {
            self.taken.store(self.count as u64, Ordering::Relaxed);
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
        }
    }
}

/// Where a thread takes its pieces from.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

/// Alone on its cache lines: helpers read one while the caller writes another.
#[repr(align(128))]
#[derive(Default)]
struct Apart<T>(T);

/// Where jobs are put up for the helpers.
#[derive(Default)]
pub(super) struct JobSlot {
    job: Apart<AtomicPtr<Shared<'static>>>,
    /// Changes with every job, so that a helper takes part in each once.
    number: Apart<AtomicUsize>,
    /// Helpers that may be reading the job.
    signed_in: Apart<AtomicUsize>,
    /// Helpers that have come.
    arrived: AtomicUsize,
    /// The processor the leader was on when the group was gathered.
    leader: Option<usize>,
    closed: AtomicBool,
}

/// Where this thread is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Outside any group.
    Outside,
    /// Leading a group, between its parallel calls.
    Leading(*const JobSlot),
    /// In a piece of a group's job: parallel calls made here run on this thread alone.
    Piece,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Outside) };
}

pub(super) fn place() -> Place {
    PLACE.get()
}

/// Runs `work` here, with the pool's idle threads standing by for the parallel calls it makes.
pub fn together<R>(work: impl FnOnce() -> R) -> R {
    let threads = rayon::current_num_threads();
    if threads == 1 || !matches!(place(), Place::Outside) {
        return work();
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    let slot = JobSlot { leader: affinity::here(), ..JobSlot::default() };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| {
                slot.help();
                rayon::spawn(linger);
            });
        }
        let _close = Close(&slot);
        PLACE.set(Place::Leading(&slot));
        work()
    })
}

/// Calls of [`together`] so far.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Keeps a helper awake for the group of the next call, which often comes at once.
fn linger() {
    let (calls, mut polls) = (CALLS.load(Ordering::Relaxed), 0);
    while polls < SPINS && CALLS.load(Ordering::Relaxed) == calls {
        pause(&mut polls);
    }
}

/// Ends a group when its leader is done or unwinds.
struct Close<'a>(&'a JobSlot);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        PLACE.set(Place::Outside);
        self.0.closed.store(true, Ordering::Release);
    }
}

impl JobSlot {
    /// Runs all pieces of a task and returns when they are done. For the leader only.
    pub(super) fn lead(&self, count: usize, task: &Task<'_>) {
        assert!(count < 1 << 31, "{count} pieces are more than the count of those taken can hold");
        let job = Shared { task, count, taken: AtomicU64::new(0), panic: Mutex::new(None) };
        self.job.0.store(ptr::from_ref(&job).cast_mut().cast(), Ordering::SeqCst);
        self.number.0.fetch_add(1, Ordering::Release);
        job.work(End::Front);
        self.job.0.store(ptr::null_mut(), Ordering::SeqCst);
        // A helper that waits for our processor can move on as soon as it has had it for a moment.
        if self.arrived.load(Ordering::Relaxed) == 0 && self.number.0.load(Ordering::Relaxed) <= COURTESIES {
            std::thread::yield_now();
        }
        let mut polls = 0;
        while self.signed_in.0.load(Ordering::SeqCst) != 0 {
            pause(&mut polls);
        }
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    /// Stands by until the group is closed.
    fn help(&self) {
        let outer = PLACE.replace(Place::Piece);
        if let Some(taken) = self.leader {
            affinity::leave(taken);
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let (mut seen, mut polls) = (0, 0);
        while !self.closed.load(Ordering::Acquire) {
            let number = self.number.0.load(Ordering::Acquire);
            if number == seen {
                rest(&mut polls);
                continue;
            }
            (seen, polls) = (number, 0);
            self.signed_in.0.fetch_add(1, Ordering::SeqCst);
            let job = self.job.0.load(Ordering::SeqCst);
            // SAFETY: the pointer was up after we signed in, so its leader waits for us to sign out before the job goes. In
            // the one order of these four accesses (sign in, read; take down, count) either we read null or the leader counts us.
            if let Some(job) = unsafe { job.as_ref() } {
                job.work(End::Back);
            }
            self.signed_in.0.fetch_sub(1, Ordering::SeqCst);
        }
        PLACE.set(outer);
    }
}

/// Waits a moment for something that is about to happen.
fn pause(polls: &mut usize) {
    *polls += 1;
    if *polls < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
}

/// As [`pause`], and with less and less hurry.
fn rest(polls: &mut usize) {
    pause(polls);
    if *polls > SPINS + YIELDS {
        std::thread::sleep(NAP);
    }
}
