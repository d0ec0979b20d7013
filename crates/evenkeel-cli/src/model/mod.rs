//! `evenkeel model`: import, inspect, check against stored answers, and measure networks.

mod bench;
mod check;
mod import;
mod init;
mod inspect;
mod layers;
mod network_args;
mod scaling;
mod tensors;

use clap::Subcommand;

/// Inspect, check and measure networks
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
