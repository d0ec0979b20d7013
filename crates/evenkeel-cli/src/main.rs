//! The command line of evenkeel.
//!
//! Exit codes: 0 done, 2 for anything the caller can put right (arguments, files), with a sentence that says what.

mod data;
mod model;
mod score;
mod units;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Robust perception at test time
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Data(data::DataArgs),
    Model(model::ModelArgs),
    Score(score::ScoreArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Data(args) => data::run(args),
        Command::Model(args) => model::run(args),
        Command::Score(args) => score::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
