//! Metrics in Prometheus' text form: counters, gauges and histograms by label, kept by hand because there are few.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::queue::Lane;

/// Upper bounds of the buckets of times, in seconds.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Upper bounds of the buckets of detection scores.
const SCORES: [f64; 12] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 12.0];

/// A histogram with fixed bounds.
#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn observe(&mut self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[bucket] += 1;
        self.sum += value;
    }
}

/// Values by their labels, written as they stand in the text.
type ByLabels<T> = Mutex<BTreeMap<String, T>>;

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: ByLabels<u64>,
    latency: ByLabels<Histogram>,
    waits: ByLabels<Histogram>,
    alarms: ByLabels<u64>,
    scores: ByLabels<Histogram>,
    images: ByLabels<u64>,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections that were turned away.
    pub turned_away: AtomicU64,
    /// Workers that panicked and were replaced.
    pub replaced: AtomicU64,
}

fn with<T, R>(
    family: &ByLabels<T>,
    labels: String,
    new: impl FnOnce() -> T,
    change: impl FnOnce(&mut T) -> R,
) -> R {
    change(family.lock().unwrap_or_else(PoisonError::into_inner).entry(labels).or_insert_with(new))
}

impl Metrics {
    /// A request was answered.
    pub(crate) fn answered(&self, endpoint: &str, status: u16) {
        let labels = format!("endpoint=\"{endpoint}\",status=\"{status}\"");
        with(&self.requests, labels, || 0, |count| *count += 1);
    }

    /// An inference was answered after this time.
    pub(crate) fn took(&self, model: &str, lane: Lane, time: Duration) {
        let labels = format!("model=\"{model}\",lane=\"{}\"", lane.name());
        with(&self.latency, labels, || Histogram::new(&SECONDS), |h| h.observe(time.as_secs_f64()));
    }

    /// Something waited for a worker.
    pub(crate) fn waited(&self, lane: Lane, time: Duration) {
        let labels = format!("lane=\"{}\"", lane.name());
        with(&self.waits, labels, || Histogram::new(&SECONDS), |h| h.observe(time.as_secs_f64()));
    }

    /// An image was answered.
    pub(crate) fn judged(&self, model: &str, score: Option<f64>, alarm: Option<bool>) {
        let labels = || format!("model=\"{model}\"");
        with(&self.images, labels(), || 0, |count| *count += 1);
        if let Some(score) = score {
            with(&self.scores, labels(), || Histogram::new(&SCORES), |h| h.observe(score));
        }
        if let Some(alarm) = alarm {
            with(&self.alarms, labels(), || 0, |count| *count += u64::from(alarm));
        }
    }

    /// The text that Prometheus reads; `gauges` are (name, labels, value) that others know.
    pub(crate) fn text(&self, gauges: &[(&str, &str, String, f64)]) -> String {
        let mut out = String::new();
        counters(&mut out, "evenkeel_requests_total", "Requests answered.", &self.requests);
        counters(&mut out, "evenkeel_images_total", "Images answered.", &self.images);
        counters(&mut out, "evenkeel_alarms_total", "Images that raised the alarm.", &self.alarms);
        histograms(
            &mut out,
            "evenkeel_request_seconds",
            "Time from a request's body to its answer.",
            &self.latency,
        );
        histograms(&mut out, "evenkeel_queue_wait_seconds", "Time in the queue.", &self.waits);
        histograms(&mut out, "evenkeel_score", "Detection scores.", &self.scores);
        let own = [
            ("evenkeel_connections", "Connections open.", &self.connections, "gauge"),
            ("evenkeel_connections_refused_total", "Connections turned away.", &self.turned_away, "counter"),
            ("evenkeel_workers_replaced_total", "Workers replaced after a panic.", &self.replaced, "counter"),
        ];
        for (name, help, value, kind) in own {
            let value = value.load(Ordering::Relaxed);
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        let mut last = "";
        for (name, help, labels, value) in gauges {
            if *name != last {
                let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
                last = name;
            }
            let _ = match labels.is_empty() {
                true => writeln!(out, "{name} {value}"),
                false => writeln!(out, "{name}{{{labels}}} {value}"),
            };
        }
        out
    }
}

fn counters(out: &mut String, name: &str, help: &str, family: &ByLabels<u64>) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
    for (labels, count) in family.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(out, "{name}{{{labels}}} {count}");
    }
}

fn histograms(out: &mut String, name: &str, help: &str, family: &ByLabels<Histogram>) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
    for (labels, histogram) in family.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let mut below = 0;
        let ends = histogram.bounds.iter().map(f64::to_string).chain(["+Inf".to_string()]);
        for (end, count) in ends.zip(&histogram.counts) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{end}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {below}", histogram.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_what_is_below_each_bound() {
        let metrics = Metrics::default();
        for ms in [1, 2, 40, 90_000] {
            metrics.took("net", Lane::Plain, Duration::from_millis(ms));
        }
        metrics.answered("infer", 200);
        metrics.judged("net", Some(0.5), Some(true));
        let text = metrics.text(&[("evenkeel_queue", "Waiting.", "lane=\"plain\"".into(), 3.0)]);
        for line in [
            "evenkeel_request_seconds_bucket{model=\"net\",lane=\"plain\",le=\"0.001\"} 1",
            "evenkeel_request_seconds_bucket{model=\"net\",lane=\"plain\",le=\"0.05\"} 3",
            "evenkeel_request_seconds_bucket{model=\"net\",lane=\"plain\",le=\"+Inf\"} 4",
            "evenkeel_request_seconds_count{model=\"net\",lane=\"plain\"} 4",
            "evenkeel_requests_total{endpoint=\"infer\",status=\"200\"} 1",
            "evenkeel_alarms_total{model=\"net\"} 1",
            "evenkeel_score_count{model=\"net\"} 1",
            "evenkeel_queue{lane=\"plain\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
