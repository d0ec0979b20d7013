//! What every front (REST, gRPC, page) stands on: the models, the queue, the limits, and the one way to ask.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::{Semaphore, oneshot};

use crate::alarms::{Alarm, AlarmLog, now};
use crate::auth::Token;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::front::shortened;
use crate::hosted::Hosted;
use crate::job::{Hook, Job, Waiting};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::protocol::TensorLimits;
use crate::question::{Outcome, Question};
use crate::queue::{Entry, Lane, Queue, Refused};

/// The models and everything around them.
pub(crate) struct Service {
    pub(crate) models: BTreeMap<String, Arc<Hosted>>,
    /// The names as they were given, the first one being the page's.
    pub(crate) order: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: Arc<Queue<Job>>,
    pub(crate) budget: Arc<Budget>,
    /// The turn to parse a long body.
    pub(crate) long_bodies: Semaphore,
    pub(crate) alarms: AlarmLog,
    pub(crate) token: Option<Token>,
    pub(crate) hook: Option<Hook>,
    /// No new requests; those inside are finished.
    pub(crate) draining: AtomicBool,
}

impl Service {
    /// The model of this name.
    pub(crate) fn model(&self, name: &str) -> Result<&Arc<Hosted>> {
        self.models
            .get(name)
            .ok_or_else(|| Error::NoModel { name: shortened(name), known: self.order.join(", ") })
    }

    pub(crate) fn tensor_limits(&self) -> TensorLimits {
        TensorLimits { batch: self.limits.batch, pixels: self.limits.pixels() }
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }

    /// Asks a model. When the future is dropped, so is the work.
    pub(crate) async fn ask(&self, question: Question, id: Option<&str>) -> Result<Vec<Outcome>> {
        let (hosted, lane) = (question.hosted.clone(), question.lane());
        let gone = Arc::new(AtomicBool::new(false));
        let _waiting = Waiting(gone.clone());
        let (reply, answer) = oneshot::channel();
        let longest = self.limits.request_time;
        let (entered, limit) =
            (Instant::now(), question.choice.timeout.map_or(longest, |own| own.min(longest)));
        // nothing runs for longer than its time, whatever it would take
        let cost = question.cost().min(limit.as_secs_f64());
        let (metrics, hook) = (self.metrics.clone(), self.hook.clone());
        let work = Job { question, reply: Some(reply), outcome: None, gone, entered, limit, metrics, hook };
        self.queue.push(Entry { work, lane, cost, deadline: entered + limit }).map_err(|refused| {
            match refused {
                Refused::Full(retry_after) => Error::Full { retry_after },
                Refused::Closed => Error::Draining,
            }
        })?;
        // a worker that is in the middle of a pass at the deadline sees only afterwards that nobody waits
        let answer = tokio::time::timeout_at((entered + limit).into(), answer).await;
        // a request that was dropped unanswered had run out of time in the queue
        let outcomes = answer.ok().and_then(Result::ok).unwrap_or(Err(Error::Deadline { limit }))?;
        self.metrics.took(&hosted.name, lane, entered.elapsed());
        outcomes.iter().for_each(|outcome| self.note(&hosted, outcome, id));
        Ok(outcomes)
    }

    /// Counts an outcome, and writes an alarm down.
    fn note(&self, hosted: &Hosted, outcome: &Outcome, id: Option<&str>) {
        let verdict = outcome.verdict.as_ref();
        let (score, alarm) = (verdict.and_then(|v| v.score), verdict.and_then(|v| v.alarm));
        self.metrics.judged(&hosted.name, score, alarm);
        let (Some(verdict), Some(image), Some(score), Some(true), Some(threshold)) =
            (verdict, &outcome.image, score, alarm, hosted.threshold())
        else {
            return;
        };
        let (model, blake3, defended) = (hosted.name.as_str(), outcome.hash.as_str(), verdict.defended);
        tracing::warn!(model, score, threshold, blake3, defended, "alarm");
        if !self.alarms.is_idle() {
            let id = id.map(shortened);
            let alarm = Alarm { time: now(), model, score, threshold, blake3, defended, id };
            // other connections go on while the disk writes
            let written = tokio::task::block_in_place(|| self.alarms.write(&alarm, image));
            if let Err(error) = written {
                tracing::error!(%error, "the alarm log cannot be written");
            }
        }
    }

    /// Gauges that only the service knows, for the metrics.
    pub(crate) fn gauges(&self) -> Vec<(&'static str, &'static str, String, f64)> {
        let mut all = Vec::new();
        let lanes = Lane::ALL.map(|lane| (format!("lane=\"{}\"", lane.name()), self.queue.depth(lane)));
        for (labels, (waiting, _)) in &lanes {
            all.push(("evenkeel_queue_length", "Requests that wait.", labels.clone(), *waiting as f64));
        }
        for (labels, (_, running)) in lanes {
            all.push(("evenkeel_running", "Requests that workers have.", labels, running as f64));
        }
        let held = self.budget.held() as f64;
        all.push(("evenkeel_held_bytes", "Bytes that requests hold.", String::new(), held));
        for (name, hosted) in &self.models {
            for (direction, count) in
                [("forward", &hosted.passes.forward), ("backward", &hosted.passes.backward)]
            {
                let labels = format!("model=\"{name}\",direction=\"{direction}\"");
                let count = count.load(Ordering::Relaxed) as f64;
                all.push(("evenkeel_passes_total", "Passes of networks.", labels, count));
            }
        }
        all
    }
}
