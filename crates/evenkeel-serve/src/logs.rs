//! Logs on standard error: lines for people, or JSON for machines.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Writes logs from now on; only the first call counts. `quiet` leaves out everything but warnings and errors.
pub fn init(format: LogFormat, quiet: bool) {
    let level = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let to = fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // a second server in the same process keeps the first one's log
    drop(match format {
        LogFormat::Pretty => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            to.with_ansi(colours).try_init()
        }
        LogFormat::Json => to.json().flatten_event(true).with_current_span(false).try_init(),
    });
}
