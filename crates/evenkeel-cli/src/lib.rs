//! The command line of evenkeel, as a library: the binary `evenkeel` and `python -m evenkeel` are both one call of [`run`].
//!
//! Exit codes: 0 done, 3 if `detect` raised an alarm, 130 after Ctrl-C, 2 for anything the caller can put right (arguments, files), with a sentence that says what.

#![forbid(unsafe_code)]

mod attack;
mod colour;
mod completions;
mod corrupt;
mod data;
mod defend;
mod demo;
mod detect;
mod images;
mod inspect_views;
mod interrupt;
mod knobs;
mod labels;
mod list;
mod model;
mod policy;
mod predict;
mod progress;
mod score;
mod serve;
mod sheet;
mod size;
mod study;
mod tune;
mod units;
mod workbench;

use std::ffi::OsString;
use std::io::Write;

use clap::{Parser, Subcommand};

/// Robust perception at test time
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Attack(attack::AttackArgs),
    Completions(completions::CompletionsArgs),
    Corrupt(corrupt::CorruptArgs),
    Data(data::DataArgs),
    Defend(Box<defend::DefendArgs>),
    Demo(demo::DemoArgs),
    Detect(detect::DetectArgs),
    InspectViews(inspect_views::InspectViewsArgs),
    List(list::ListArgs),
    Model(model::ModelArgs),
    Predict(predict::PredictArgs),
    Score(score::ScoreArgs),
    Serve(Box<serve::ServeArgs>),
    Study(study::StudyArgs),
    Train(Box<evenkeel_train::command::TrainArgs>),
    Tune(tune::TuneArgs),
}

/// A reader who has seen enough (`evenkeel … | head`) ends the program without a word; words that cannot be written otherwise are an error.
fn leave_when_nobody_reads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let words = panic.payload().downcast_ref::<String>();
        if let Some(words) = words.filter(|words| words.starts_with("failed printing to stdout")) {
            let full = !words.contains("Broken pipe");
            if full {
                let _ = writeln!(std::io::stderr(), "error: {words}");
            }
            std::process::exit(if full { 2 } else { 0 });
        }
        usual(panic);
    }));
}

/// Runs the command that the words of a command line ask for, the program's name first, and gives the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    leave_when_nobody_reads();
    if let Err(reason) = evenkeel_kernels::cpu::choice() {
        eprintln!("error: {reason}");
        return 2;
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(help_or_error) => {
            // nobody is left to tell if it cannot be printed
            let _ = help_or_error.print();
            return u8::try_from(help_or_error.exit_code()).unwrap_or(2);
        }
    };
    // these stop in their own time
    if !matches!(cli.command, Command::Serve(_) | Command::Study(_) | Command::Tune(_)) {
        interrupt::leave_on_interrupt();
    }
    let mut alarm = false;
    let outcome = match cli.command {
        Command::Attack(args) => attack::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Defend(args) => defend::run(*args),
        Command::Corrupt(args) => corrupt::run(args),
        Command::Detect(args) => detect::run(args).map(|raised| alarm = raised),
        Command::InspectViews(args) => inspect_views::run(args),
        Command::List(args) => list::run(&args),
        Command::Predict(args) => predict::run(args),
        Command::Data(args) => data::run(args),
        Command::Demo(args) => demo::run(&args),
        Command::Model(args) => model::run(args),
        Command::Score(args) => score::run(args),
        Command::Serve(args) => serve::run(&args),
        Command::Study(args) => study::run(args),
        Command::Train(args) => evenkeel_train::command::run(&args).map_err(Into::into),
        Command::Tune(args) => tune::run(&args),
    };
    match outcome {
        Ok(()) if alarm => 3,
        Ok(()) => 0,
        Err(error) if nobody_reads(&error) => 0,
        Err(error) => {
            eprintln!("error: {}", sentence(&error));
            2
        }
    }
}

/// Whether the program could not go on printing because the reader had seen enough.
fn nobody_reads(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

/// An error and its causes in one line; a cause that the error before it holds already is left out.
fn sentence(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line += &format!(": {cause}");
        }
    }
    line
}
