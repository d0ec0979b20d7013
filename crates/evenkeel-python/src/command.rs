//! The command line, from the same library as the binary's.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command that the words of a command line ask for, the program's name first, and gives the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| evenkeel_cli::run(words))
}
