//! A question in the queue: who waits for the answer, and until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::question::{Outcome, Question};
use crate::queue::Abandonable;
use crate::workers::Work;

/// Something to be called before every question, for tests.
pub type Hook = Arc<dyn Fn(&Question) + Send + Sync>;

/// A question and who waits for its answer.
pub(crate) struct Job {
    pub(crate) question: Question,
    pub(crate) reply: Option<oneshot::Sender<Result<Vec<Outcome>>>>,
    /// The answer, once there is one.
    pub(crate) outcome: Option<Result<Vec<Outcome>>>,
    pub(crate) gone: Arc<AtomicBool>,
    pub(crate) entered: Instant,
    pub(crate) limit: Duration,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) hook: Option<Hook>,
}

/// Held by who waits; when it is dropped, nobody does.
pub(crate) struct Waiting(pub(crate) Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    fn send(&mut self, outcome: Result<Vec<Outcome>>) {
        if let Some(reply) = self.reply.take() {
            // the client may have gone in the meantime
            drop(reply.send(outcome));
        }
    }

    fn computed(&mut self) -> Result<Vec<Outcome>> {
        if let Some(hook) = &self.hook {
            hook(&self.question);
        }
        let (gone, deadline) = (self.gone.clone(), self.entered + self.limit);
        let outcome = self
            .question
            .answer(Arc::new(move || gone.load(Ordering::Relaxed) || Instant::now() >= deadline));
        match outcome {
            Err(_) if Instant::now() >= deadline => Err(Error::Deadline { limit: self.limit }),
            other => other,
        }
    }
}

impl Abandonable for Job {
    fn is_abandoned(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

impl Work for Job {
    fn run(&mut self, late: bool) {
        self.metrics.waited(self.question.lane(), self.entered.elapsed());
        if late {
            self.outcome = Some(Err(Error::Deadline { limit: self.limit }));
            return;
        }
        let (start, images) = (Instant::now(), self.question.images.len().max(1) as f64);
        let outcome = self.computed();
        if outcome.is_ok() {
            self.question.hosted.remember(&self.question.kind(), start.elapsed().as_secs_f64() / images);
        }
        self.outcome = Some(outcome);
    }

    fn answer(&mut self) {
        // what nobody waited for any more was not done
        if let Some(outcome) = self.outcome.take() {
            self.send(outcome);
        }
    }

    fn failed(&mut self) {
        self.send(Err(Error::Panicked));
    }
}
