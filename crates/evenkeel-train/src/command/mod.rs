//! The commands: `evenkeel-train …`, and the same under `evenkeel train …`.

mod arguments;
mod bench;
mod fit;
mod fit_arguments;
mod heads;
mod material;

use crate::error::Result;
use crate::goal::Task;
use clap::{Args, Subcommand};
use fit_arguments::{FineTuneArgs, FitArgs};

/// Train a network or its heads on your own data
#[derive(Debug, Args)]
pub struct TrainArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A class for every pixel
    Segmenter(Box<FitArgs>),
    /// A class for every image
    Classifier(Box<FitArgs>),
    /// The objects of an image, each with its mask
    Instances(Box<FitArgs>),
    /// Go on with a segmenter or classifier of any origin, on your own data
    FineTune(Box<FineTuneArgs>),
    /// Rotation and contrastive heads on a trained network's frozen features
    Heads(heads::HeadArgs),
    /// Time training steps
    Bench(bench::BenchArgs),
}

/// Does what the arguments ask for.
///
/// # Errors
/// Whatever is wrong with the arguments, the data or the files.
pub fn run(args: &TrainArgs) -> Result<()> {
    match &args.what {
        What::Segmenter(args) => fit::run(Task::Semantic, args),
        What::Classifier(args) => fit::run(Task::Classification, args),
        What::Instances(args) => fit::run(Task::Instances, args),
        What::FineTune(args) => fit::fine_tune(args),
        What::Heads(args) => heads::run(args),
        What::Bench(args) => bench::run(args),
    }
}
