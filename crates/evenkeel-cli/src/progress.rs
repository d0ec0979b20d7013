//! How far a command is: a bar on a terminal, plain lines on standard error elsewhere; and results on standard output in between.

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

/// How far a command is.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    count: usize,
    unit: &'static str,
    done: Cell<usize>,
}

impl Progress {
    /// The progress of this many parts, with their name; a single one needs none.
    pub(crate) fn new(count: usize, unit: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix}, {eta} left {msg}");
            let bar = if count < 2 { ProgressBar::hidden() } else { ProgressBar::new(count as u64) };
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_prefix(unit)
        });
        Self { bar, count, unit, done: Cell::new(0) }
    }

    /// One part more is done, and is called this.
    pub(crate) fn done(&self, name: &Path) {
        self.done.set(self.done.get() + 1);
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if self.count > 1 => {
                eprintln!("{}/{} {} {}", self.done.get(), self.count, self.unit, name.display());
            }
            None => {}
        }
    }

    /// Prints one result: a line of JSON, or words.
    pub(crate) fn say(&self, as_json: bool, value: &Value, words: &str) {
        let print = || match as_json {
            true => println!("{value}"),
            false => println!("{words}"),
        };
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Says on a line of standard error of its own which command leads on from here.
pub(crate) fn next(command: &str) {
    eprintln!("next: {command}");
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
