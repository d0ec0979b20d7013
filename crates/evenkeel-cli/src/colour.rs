//! Colours of words: on a terminal only, and never where NO_COLOR is set.

use std::io::IsTerminal;

/// What a word is.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    /// Something to look at.
    Alarm,
    /// Nothing to worry about.
    Calm,
    /// Something that may be wrong.
    Warning,
}

fn wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn painted(text: &str, tone: Tone, wanted: bool) -> String {
    let code = match tone {
        Tone::Alarm => 31,
        Tone::Calm => 32,
        Tone::Warning => 33,
    };
    if wanted { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// The text for standard output.
pub(crate) fn out(text: &str, tone: Tone) -> String {
    painted(text, tone, wanted(std::io::stdout().is_terminal()))
}

/// The text for standard error.
pub(crate) fn err(text: &str, tone: Tone) -> String {
    painted(text, tone, wanted(std::io::stderr().is_terminal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_plain_words() {
        assert_eq!(painted("alarm", Tone::Alarm, false), "alarm");
        assert_eq!(painted("alarm", Tone::Alarm, true), "\u{1b}[31malarm\u{1b}[0m");
    }
}
