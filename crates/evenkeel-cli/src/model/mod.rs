//! `evenkeel model`: import a network, look into a network, check it against stored answers, measure it.

mod bench;
mod check;
mod import;
mod init;
mod inspect;
mod layers;
mod scaling;
mod subject;
mod tensors;

use clap::Subcommand;

/// Look into a network, check it, measure it
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    Import(import::ImportArgs),
    Init(Box<init::InitArgs>),
    Inspect(inspect::InspectArgs),
    Check(check::CheckArgs),
    Bench(bench::BenchArgs),
}

pub(crate) fn run(args: ModelArgs) -> anyhow::Result<()> {
    match args.command {
        ModelCommand::Import(args) => import::run(args),
        ModelCommand::Init(args) => init::run(*args),
        ModelCommand::Inspect(args) => inspect::run(args),
        ModelCommand::Check(args) => check::run(args),
        ModelCommand::Bench(args) => bench::run(args),
    }
}
