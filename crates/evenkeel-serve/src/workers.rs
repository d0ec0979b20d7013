//! Worker threads: each takes work from the queue and does it on threads of its own. A panic is answered and the worker replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};
use crate::queue::{Abandonable, Entry, Queue};

/// Something a worker can do.
pub(crate) trait Work: Abandonable + Send + 'static {
    /// Does it; `late` says that its time ran out before its turn came.
    fn run(&mut self, late: bool);
    /// Answers what doing it came to.
    fn answer(&mut self);
    /// Answers that doing it failed.
    fn failed(&mut self);
}

/// The workers of a queue.
pub(crate) struct Workers<T: Work> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    queue: Arc<Queue<T>>,
    threads: usize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    replaced: Box<dyn Fn() + Send + Sync>,
}

impl<T: Work> Workers<T> {
    /// Starts a number of workers with a number of threads each; `replaced` is called for each that panicked.
    ///
    /// # Errors
    /// If the operating system gives no threads.
    pub(crate) fn start(
        queue: Arc<Queue<T>>,
        workers: usize,
        threads: usize,
        replaced: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared =
            Arc::new(Shared { queue, threads, handles: Mutex::default(), replaced: Box::new(replaced) });
        for _ in 0..workers {
            spawn(shared.clone())?;
        }
        Ok(Self { shared })
    }

    /// Waits until the closed queue is empty and every worker has ended.
    pub(crate) fn join(&self) {
        loop {
            let next = self.shared.handles.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match next {
                // a panic was caught inside and answered already
                Some(handle) => drop(handle.join()),
                None => return,
            }
        }
    }
}

fn spawn<T: Work>(shared: Arc<Shared<T>>) -> Result<()> {
    let own = shared.clone();
    let handle = std::thread::Builder::new()
        .name("evenkeel-worker".into())
        .spawn(move || serve(&own))
        .map_err(|source| Error::Io { what: "a worker thread".into(), source })?;
    shared.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    Ok(())
}

/// For so long an answer may wait for those after it: each that is sent by itself wakes a thread, which costs a tenth of a small network's pass.
const TOGETHER: Duration = Duration::from_millis(4);

/// What is done and not answered yet.
struct Outbox<T> {
    done: Vec<T>,
    since: Instant,
}

impl<T: Work> Outbox<T> {
    fn put(&mut self, work: T) {
        if self.done.is_empty() {
            self.since = Instant::now();
        }
        self.done.push(work);
    }

    fn send(&mut self) {
        self.done.drain(..).for_each(|mut work| work.answer());
    }

    /// The next thing to do; what is done is answered before it if there is none, or it would take too long.
    fn next(&mut self, queue: &Queue<T>) -> Option<Entry<T>> {
        let entry = queue.pop_now();
        let soon =
            |entry: &Entry<T>| self.since.elapsed().as_secs_f64() + entry.cost < TOGETHER.as_secs_f64();
        if !entry.as_ref().is_some_and(soon) {
            self.send();
        }
        entry.or_else(|| queue.pop())
    }
}

/// One worker's life.
fn serve<T: Work>(shared: &Arc<Shared<T>>) {
    // this thread is the pool's first, so that work is not handed from one to another
    let pool = ThreadPoolBuilder::new().num_threads(shared.threads.max(1)).use_current_thread().build();
    let mut outbox = Outbox { done: Vec::new(), since: Instant::now() };
    while let Some(entry) = outbox.next(&shared.queue) {
        let Entry { mut work, lane, cost, deadline } = entry;
        let mut panicked = false;
        if !work.is_abandoned() {
            let late = Instant::now() >= deadline;
            let task = AssertUnwindSafe(|| match &pool {
                Ok(pool) => pool.install(|| work.run(late)),
                Err(_) => work.run(late),
            });
            panicked = catch_unwind(task).is_err();
        }
        shared.queue.done(lane, cost);
        if !panicked {
            outbox.put(work);
        } else {
            work.failed();
            outbox.send();
            (shared.replaced)();
            if spawn(shared.clone()).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Lane;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    struct Task {
        number: usize,
        done: bool,
        answer: Sender<Result<usize, usize>>,
    }

    impl Abandonable for Task {
        fn is_abandoned(&self) -> bool {
            false
        }
    }

    impl Work for Task {
        fn run(&mut self, _: bool) {
            assert!(!self.number.is_multiple_of(3), "planned");
            self.done = true;
        }

        fn answer(&mut self) {
            assert!(self.done);
            self.answer.send(Ok(self.number)).unwrap();
        }

        fn failed(&mut self) {
            self.answer.send(Err(self.number)).unwrap();
        }
    }

    #[test]
    fn a_panic_is_answered_and_the_others_go_on() {
        let queue = Arc::new(Queue::new(100, 100, 2));
        let replaced = Arc::new(AtomicUsize::new(0));
        let count = replaced.clone();
        let counted = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        let workers = Workers::start(queue.clone(), 2, 1, counted).unwrap();
        let (answer, answers) = channel();
        for number in 0..30 {
            let deadline = Instant::now() + Duration::from_secs(60);
            let work = Task { number, done: false, answer: answer.clone() };
            assert!(queue.push(Entry { work, lane: Lane::Plain, cost: 0.0, deadline }).is_ok());
        }
        queue.close();
        workers.join();
        drop(answer);
        let mut got: Vec<_> = answers.iter().collect();
        got.sort_by_key(|answer| *answer.as_ref().unwrap_or_else(|n| n));
        let expected: Vec<_> =
            (0..30usize).map(|n| if n.is_multiple_of(3) { Err(n) } else { Ok(n) }).collect();
        assert_eq!(got, expected);
        assert_eq!(replaced.load(Ordering::SeqCst), 10);
    }

    #[test]
    fn an_answer_does_not_wait_for_long_work_nor_for_none() {
        let queue = Arc::new(Queue::new(100, 100, 1));
        let workers = Workers::start(queue.clone(), 1, 1, || {}).unwrap();
        let (answer, answers) = channel();
        let push = |number: usize, cost: f64| {
            let deadline = Instant::now() + Duration::from_secs(60);
            let work = Task { number, done: false, answer: answer.clone() };
            assert!(queue.push(Entry { work, lane: Lane::Plain, cost, deadline }).is_ok());
        };
        let next = || answers.recv_timeout(Duration::from_secs(20));
        push(1, 0.0);
        assert_eq!(next(), Ok(Ok(1)), "nothing came after it");
        let mut outbox = Outbox { done: Vec::new(), since: Instant::now() };
        outbox.put(Task { number: 2, done: true, answer: answer.clone() });
        queue.close();
        workers.join();
        let short = Queue::new(1, 1, 1);
        let entry = |cost: f64| {
            let work = Task { number: 4, done: false, answer: answer.clone() };
            Entry { work, lane: Lane::Plain, cost, deadline: Instant::now() + Duration::from_secs(60) }
        };
        assert!(short.push(entry(1.0)).is_ok());
        assert!(outbox.next(&short).is_some());
        assert_eq!(next(), Ok(Ok(2)), "answered before a second of work");
    }
}
