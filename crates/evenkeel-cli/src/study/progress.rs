//! How a study goes: a bar for each column on a terminal, a line a minute elsewhere.
//!
//! The time left is the sum over works of images to come times the mean of those that were run, over the number of workers. A work that has not
//! been run yet has no mean; as long as there is one, the estimate says "at least".

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use evenkeel_study::experiment::Design;
use evenkeel_study::run::Watch;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// More bars than this do not fit on a screen.
const BARS: usize = 24;
const LINE_EVERY: Duration = Duration::from_secs(60);

/// What is known of one work.
#[derive(Clone, Copy, Default)]
struct Tally {
    left: usize,
    run: usize,
    seconds: f64,
}

struct State {
    works: Vec<Tally>,
    done: usize,
    total: usize,
    fresh: usize,
    start: Instant,
    said: Instant,
}

/// The watcher of a run.
pub(super) struct Progress {
    state: Mutex<State>,
    threads: usize,
    bars: Option<Bars>,
}

struct Bars {
    /// Of each work.
    of_work: Vec<ProgressBar>,
    total: ProgressBar,
    _all: MultiProgress,
}

impl Progress {
    /// For a design whose works have these numbers of images.
    pub(super) fn new(design: &Design, counts: &[usize], threads: usize) -> Self {
        let works = counts.iter().map(|left| Tally { left: *left, ..Tally::default() }).collect();
        let (start, total) = (Instant::now(), counts.iter().sum());
        let state = State { works, done: 0, total, fresh: 0, start, said: start };
        let bars = std::io::stderr().is_terminal().then(|| Bars::new(design, counts));
        Self { state: Mutex::new(state), threads: threads.max(1), bars }
    }

    /// Takes the bars away.
    pub(super) fn finish(&self) {
        if let Some(bars) = &self.bars {
            bars.of_work.iter().for_each(ProgressBar::finish_and_clear);
            bars.total.finish_and_clear();
        }
    }
}

impl Bars {
    fn new(design: &Design, counts: &[usize]) -> Self {
        let all = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let mut columns: Vec<(usize, usize, ProgressBar)> = Vec::new();
        let mut of_work = Vec::new();
        for (work, count) in design.works.iter().zip(counts) {
            let place = (work.subject, work.column);
            let found = columns.iter().find(|(s, c, _)| (*s, *c) == place).map(|(_, _, bar)| bar.clone());
            let bar = found.unwrap_or_else(|| {
                let card = &design.subjects[work.subject];
                let name = format!("{} · {}", card.rule.name, card.columns[work.column].label);
                let bar = match columns.len() < BARS {
                    true => all.add(ProgressBar::new(0)),
                    false => ProgressBar::hidden(),
                };
                bar.set_style(style("{prefix:32!} {bar:24} {pos}/{len} {per_sec}"));
                bar.set_prefix(name);
                columns.push((place.0, place.1, bar.clone()));
                bar
            });
            bar.inc_length(*count as u64);
            of_work.push(bar);
        }
        let total = all.add(ProgressBar::new(counts.iter().sum::<usize>() as u64));
        total.set_style(style("{prefix:32!} {bar:24} {pos}/{len} {msg}"));
        total.set_prefix("all");
        Self { of_work, total, _all: all }
    }
}

impl State {
    /// `12 min left`, as far as it can be estimated.
    fn left(&self, threads: usize) -> String {
        let open = self.works.iter().filter(|w| w.left > 0);
        let unknown = open.clone().any(|w| w.run == 0);
        let known = open.filter(|w| w.run > 0).map(|w| w.left as f64 * w.seconds / w.run as f64);
        // a sum of nothing is minus zero
        let seconds = known.fold(0.0, |sum, s| sum + s);
        let words = duration(seconds / threads as f64);
        match (unknown, seconds > 0.0) {
            (true, false) => "no telling yet how much is left".into(),
            (true, true) => format!("at least {words} left"),
            (false, _) => format!("{words} left"),
        }
    }
}

/// Seconds as people say them.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl Watch for Progress {
    fn done(&self, work: usize, seconds: Option<f64>) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let tally = &mut state.works[work];
        tally.left = tally.left.saturating_sub(1);
        if let Some(seconds) = seconds {
            tally.run += 1;
            tally.seconds += seconds;
            state.fresh += 1;
        }
        state.done += 1;
        if let Some(bars) = &self.bars {
            bars.of_work[work].inc(1);
            bars.total.inc(1);
            bars.total.set_message(state.left(self.threads));
        } else if state.said.elapsed() >= LINE_EVERY {
            state.said = Instant::now();
            let minutes = state.start.elapsed().as_secs_f64() / 60.0;
            eprintln!(
                "{}/{} done, {:.1} a minute, {}",
                state.done,
                state.total,
                state.fresh as f64 / minutes,
                state.left(self.threads)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_that_does_not_know_everything_says_so() {
        let now = Instant::now();
        let works = vec![Tally { left: 10, run: 2, seconds: 20.0 }, Tally { left: 3, run: 0, seconds: 0.0 }];
        let mut state = State { works, done: 2, total: 15, fresh: 2, start: now, said: now };
        assert_eq!(state.left(2), "at least 50 s left");
        state.works[1] = Tally { left: 3, run: 1, seconds: 100.0 };
        assert_eq!(state.left(2), "3 min left");
        state.works[0].left = 0;
        state.works[1].run = 0;
        assert_eq!(state.left(2), "no telling yet how much is left");
        state.works[1].left = 0;
        assert_eq!(state.left(2), "0 s left");
        assert_eq!(duration(7200.0), "2.0 h");
    }
}
