//! The binary `evenkeel`: one call of the library of the same crate.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(evenkeel_cli::run(std::env::args_os()))
}
