//! The queue between connections and workers: bounded, with a lane for plain requests and one for defended ones.
//!
//! Of two lanes that both have work, the one that has had less of the workers' time goes first, so that a request that costs a hundred passes does not hold up
//! those that cost one; costs are seconds, as a probe and then experience tell. The last free worker takes defended work only if no plain request came lately.
//! Invariant: what was let in is answered, unless its client has gone or its time has run out.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Who waits where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// One pass for an image.
    Plain,
    /// Anything that takes several.
    Defended,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Defended];

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Defended => "defended",
        }
    }
}

/// Something that waits.
pub(crate) struct Entry<T> {
    /// What is to be done.
    pub work: T,
    /// Where it waits.
    pub lane: Lane,
    /// The seconds of a worker that it will probably take.
    pub cost: f64,
    /// When nobody needs it any more.
    pub deadline: Instant,
}

/// Work whose client may leave.
pub(crate) trait Abandonable {
    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
}

/// Why something was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is too much; there may be room after this time.
    Full(Duration),
    /// The queue is closed.
    Closed,
}

/// For so long after a plain request one worker is kept free of defended ones.
const LATELY: Duration = Duration::from_secs(1);

struct State<T> {
    lanes: [VecDeque<Entry<T>>; 2],
    /// Worker seconds that each lane has had, comparable as long as both have work.
    spent: [f64; 2],
    running: [usize; 2],
    running_cost: f64,
    last_plain: Option<Instant>,
    /// Workers that wait for something to do.
    asleep: usize,
    closed: bool,
}

/// The queue.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    room: [usize; 2],
    workers: usize,
}

impl<T: Abandonable> Queue<T> {
    /// A queue with room for a number of plain and of defended requests, for a number of workers.
    pub(crate) fn new(plain: usize, defended: usize, workers: usize) -> Self {
        let state = State {
            lanes: [VecDeque::new(), VecDeque::new()],
            spent: [0.0; 2],
            running: [0; 2],
            running_cost: 0.0,
            last_plain: None,
            asleep: 0,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            ready: Condvar::new(),
            room: [plain, defended],
            workers: workers.max(1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets something in.
    ///
    /// # Errors
    /// If its lane is full, its time would run out before its turn comes, or the queue is closed.
    pub(crate) fn push(&self, entry: Entry<T>) -> Result<(), Refused> {
        let now = Instant::now();
        let lane = entry.lane as usize;
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if entry.lane == Lane::Plain {
            state.last_plain = Some(now);
        }
        if state.lanes[lane].len() >= self.room[lane] {
            state.lanes[lane].retain(|e| !e.work.is_abandoned() && e.deadline > now);
        }
        let wait = state.wait(lane) / self.workers as f64;
        let idle = state.lanes[lane].is_empty() && state.running.iter().sum::<usize>() < self.workers;
        let late = !idle && now + Duration::from_secs_f64(wait.min(1e6)) > entry.deadline;
        if state.lanes[lane].len() >= self.room[lane] || late {
            return Err(Refused::Full(Duration::from_secs(wait.ceil().clamp(1.0, 3600.0) as u64)));
        }
        let other = 1 - lane;
        if state.lanes[lane].is_empty() && !state.lanes[other].is_empty() {
            // a lane that was idle has no claim on the time it did not use
            state.spent[lane] = state.spent[lane].max(state.spent[other]);
        }
        state.lanes[lane].push_back(entry);
        self.wake_one(state);
        Ok(())
    }

    /// The next thing to do, if there is any at the moment. [`Queue::done`] must follow.
    pub(crate) fn pop_now(&self) -> Option<Entry<T>> {
        self.lock().take(self.workers)
    }

    /// The next thing to do; waits for one. `None` once the queue is closed and empty. [`Queue::done`] must follow.
    pub(crate) fn pop(&self) -> Option<Entry<T>> {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.take(self.workers) {
                return Some(entry);
            }
            if state.closed && state.lanes.iter().all(VecDeque::is_empty) {
                return None;
            }
            // a defended request that is held back is looked at again when "lately" is over
            state.asleep += 1;
            state = match state.lanes.iter().all(VecDeque::is_empty) {
                true => self.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
                false => self.ready.wait_timeout(state, LATELY / 4).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.asleep -= 1;
        }
    }

    /// Says that something taken is done.
    pub(crate) fn done(&self, lane: Lane, cost: f64) {
        let mut state = self.lock();
        state.running[lane as usize] -= 1;
        state.running_cost = (state.running_cost - cost).max(0.0);
        if !state.lanes[Lane::Defended as usize].is_empty() {
            self.wake_one(state);
        }
    }

    /// Wakes a worker if one waits; to call the operating system for nothing would cost every request.
    fn wake_one(&self, state: MutexGuard<'_, State<T>>) {
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.ready.notify_one();
        }
    }

    /// Lets nothing more in; what is inside is still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }

    /// How many wait in a lane, and how many are being done.
    pub(crate) fn depth(&self, lane: Lane) -> (usize, usize) {
        let state = self.lock();
        (state.lanes[lane as usize].len(), state.running[lane as usize])
    }
}

impl<T> State<T> {
    /// The worker seconds before something new in this lane gets its turn.
    fn wait(&self, lane: usize) -> f64 {
        let queued = |lane: usize| self.lanes[lane].iter().map(|entry| entry.cost).sum::<f64>();
        // the other lane takes at most as much of the time as this one
        self.running_cost + queued(lane) + queued(1 - lane).min(queued(lane))
    }

    /// Takes what is next.
    fn take(&mut self, workers: usize) -> Option<Entry<T>> {
        let lane = self.next(Instant::now(), workers)?;
        let entry = self.lanes[lane].pop_front()?;
        self.spent[lane] += entry.cost;
        self.running[lane] += 1;
        self.running_cost += entry.cost;
        Some(entry)
    }

    /// The lane whose turn it is.
    fn next(&self, now: Instant, workers: usize) -> Option<usize> {
        let (plain, defended) = (Lane::Plain as usize, Lane::Defended as usize);
        let lately = !self.closed && self.last_plain.is_some_and(|last| now.duration_since(last) < LATELY);
        let reserved = workers > 1 && lately && self.running[defended] + 1 >= workers;
        let has_defended = !self.lanes[defended].is_empty() && !reserved;
        match (self.lanes[plain].is_empty(), has_defended) {
            (true, false) => None,
            (false, false) => Some(plain),
            (true, true) => Some(defended),
            (false, true) if self.spent[defended] < self.spent[plain] => Some(defended),
            (false, true) => Some(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Abandonable for (u32, bool) {
        fn is_abandoned(&self) -> bool {
            self.1
        }
    }

    fn entry(number: u32, lane: Lane, cost: f64) -> Entry<(u32, bool)> {
        Entry { work: (number, false), lane, cost, deadline: Instant::now() + Duration::from_secs(60) }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_time() {
        let queue = Queue::new(2, 1, 1);
        queue.push(entry(0, Lane::Plain, 2.0)).unwrap();
        queue.push(entry(1, Lane::Plain, 2.0)).unwrap();
        assert_eq!(queue.push(entry(2, Lane::Plain, 2.0)), Err(Refused::Full(Duration::from_secs(4))));
        queue.push(entry(3, Lane::Defended, 1.0)).unwrap();
        assert!(queue.push(entry(4, Lane::Defended, 1.0)).is_err());
        queue.close();
        assert_eq!(queue.push(entry(5, Lane::Plain, 1.0)), Err(Refused::Closed));
    }

    #[test]
    fn what_cannot_be_done_in_time_is_refused_at_once() {
        let queue = Queue::new(100, 100, 2);
        queue.push(entry(0, Lane::Plain, 50.0)).unwrap();
        queue.push(entry(1, Lane::Plain, 50.0)).unwrap();
        queue.push(entry(2, Lane::Plain, 50.0)).unwrap();
        assert!(
            matches!(queue.push(entry(3, Lane::Plain, 1.0)), Err(Refused::Full(after)) if after.as_secs() == 75)
        );
        assert!(queue.push(entry(4, Lane::Defended, 1.0)).is_ok(), "the other lane has its own share");
    }

    #[test]
    fn abandoned_work_makes_room() {
        let queue = Queue::new(1, 1, 1);
        queue.push(Entry { work: (0, true), ..entry(0, Lane::Plain, 1.0) }).unwrap();
        queue.push(entry(1, Lane::Plain, 1.0)).unwrap();
        assert_eq!(queue.pop().unwrap().work.0, 1);
    }

    #[test]
    fn lanes_share_the_time_and_not_the_turns() {
        let queue = Queue::new(100, 100, 1);
        (0..4).for_each(|i| queue.push(entry(i, Lane::Defended, 10.0)).unwrap());
        (0..30).for_each(|i| queue.push(entry(i, Lane::Plain, 1.0)).unwrap());
        let mut order = Vec::new();
        for _ in 0..34 {
            let entry = queue.pop().unwrap();
            order.push(entry.lane);
            queue.done(entry.lane, entry.cost);
        }
        let first = order.iter().take(12).filter(|lane| **lane == Lane::Defended).count();
        assert_eq!(first, 1, "ten plain requests for one that costs ten: {order:?}");
    }

    #[test]
    fn the_last_worker_is_kept_for_plain_requests_that_come_often() {
        let queue = Queue::new(10, 10, 2);
        queue.push(entry(0, Lane::Plain, 1.0)).unwrap();
        assert_eq!(queue.pop().unwrap().lane, Lane::Plain);
        queue.done(Lane::Plain, 1.0);
        (0..2).for_each(|i| queue.push(entry(i, Lane::Defended, 1.0)).unwrap());
        assert_eq!(queue.pop().unwrap().lane, Lane::Defended);
        let state = queue.lock();
        assert_eq!(state.next(Instant::now(), 2), None, "the second worker is kept");
        assert_eq!(state.next(Instant::now() + LATELY, 2), Some(1), "until nobody asks");
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = Queue::new(10, 10, 2);
        queue.push(entry(0, Lane::Plain, 1.0)).unwrap();
        queue.push(entry(1, Lane::Defended, 1.0)).unwrap();
        queue.close();
        assert!(queue.pop().is_some() && queue.pop().is_some());
        assert!(queue.pop().is_none());
    }
}
