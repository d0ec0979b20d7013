//! What the commands that train a network take. Defaults that depend on the task or the data are said in the help and chosen where they are used.

use super::arguments as argument;
use crate::data::ClassWeights;
use clap::{Args, ValueEnum};
use evenkeel_data::dataset::Preparation;
use std::path::PathBuf;

/// Architectures by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Arch {
    /// 3x3 convolutions to 1/8, dilation 2 and 4 (segmenter)
    Compact,
    /// DRN-D-22 (segmenter)
    #[value(name = "drn-d-22")]
    DrnD22,
    /// The small network that is shipped for the task
    Small,
}

/// Optimisers by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OptimiserName {
    Adamw,
    Sgd,
}

/// Schedules by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ScheduleName {
    Cosine,
    Poly,
}

#[derive(Debug, Args)]
pub(super) struct FitArgs {
    /// Where the network goes: NAME.onnx, or NAME.safetensors for the weights and NAME.onnx for the graph; the contract, card, checkpoint
    /// and curves go beside it
    #[arg(short, long, value_name = "FILE", value_parser = argument::output_file)]
    pub(super) output: PathBuf,
    #[command(flatten, next_help_heading = "Data")]
    pub(super) data: DataArgs,
    #[command(flatten, next_help_heading = "Network")]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = "Augmentation")]
    pub(super) augmentation: AugmentationArgs,
    #[command(flatten, next_help_heading = "Training")]
    pub(super) training: TrainingArgs,
}

#[derive(Debug, Args)]
pub(super) struct DataArgs {
    /// What to train on: a kind of data set and its path (`evenkeel data check --help` lists the kinds), or `scenes` alone, the rendered pictures
    #[arg(long, value_names = ["KIND", "PATH"], num_args = 1..=2, default_value = "scenes")]
    pub(super) data: Vec<String>,
    /// The part of the data set to train on; each kind has its usual one
    #[arg(long)]
    pub(super) split: Option<String>,
    /// How many classes there are, where the layout does not say; by itself one more than the largest label
    #[arg(long)]
    pub(super) classes: Option<usize>,
    /// Names of the classes: a known set (cityscapes, voc, cifar10, …), or one by one with commas between them
    #[arg(long, value_parser = argument::names)]
    pub(super) names: Option<NameList>,
    /// Bring pictures to WIDTHxHEIGHT, or leave them `native`, instead of the kind's usual size
    #[arg(long, value_parser = argument::size)]
    pub(super) size: Option<Preparation>,
    /// Take at most this many samples
    #[arg(long)]
    pub(super) limit: Option<usize>,
    /// Score on another data set: its kind and path
    #[arg(long, value_names = ["KIND", "PATH"], num_args = 2)]
    pub(super) held_out_data: Option<Vec<String>>,
    /// The part of the data set to score on; without --held-out-data, a part of the one trained on
    #[arg(long, value_name = "SPLIT")]
    pub(super) held_out_split: Option<String>,
    /// Pictures held out of training to score on [default: a fifth and at most 200; 100 rendered]
    #[arg(long, value_parser = argument::count)]
    pub(super) held_out: Option<usize>,
    /// Gigabytes of decoded pictures kept in memory; those past it are read when they are drawn
    #[arg(long, value_name = "GB", default_value_t = 4.0)]
    pub(super) memory: f64,
    /// Pictures rendered to train on, with `--data scenes` [default: 3000, classifier 12000]
    #[arg(long, value_parser = argument::count)]
    pub(super) pictures: Option<usize>,
}

/// Clap would take a vector for values given several times.
pub(super) type NameList = Vec<String>;

#[derive(Debug, Args)]
pub(super) struct NetworkArgs {
    /// Architecture [default: compact for a segmenter on a data set, else small]
    #[arg(long)]
    pub(super) arch: Option<Arch>,
    /// Channels after the first convolution; later ones have two and four times as many [default: compact 32, classifier 24]
    #[arg(long, value_parser = argument::count)]
    pub(super) width: Option<usize>,
    /// Begin with the weights of another run's checkpoint, where names and sizes are the same
    #[arg(long, value_name = "CHECKPOINT")]
    pub(super) start: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct AugmentationArgs {
    /// Size of the windows that are cut out of pictures [default: at most 256x256; 192x96 and 56x56 of rendered pictures]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = argument::window)]
    pub(super) crop: Option<(usize, usize)>,
    /// Shrink and enlarge windows by factors from LEAST to MOST [default: 0.75,1.75; rendered pictures 0.6,1.7, objects 0.6,1.3]
    #[arg(long, value_name = "LEAST,MOST", value_parser = argument::range)]
    pub(super) scale: Option<(f32, f32)>,
    /// Mirror no windows
    #[arg(long)]
    pub(super) no_flip: bool,
    /// Share of the windows that are turned by up to 15 degrees [default: 0; rendered pictures 0.35]
    #[arg(long, value_name = "SHARE", value_parser = argument::share)]
    pub(super) turn: Option<f32>,
    /// How far brightness, contrast and colours are shifted, 0 to 2
    #[arg(long, value_name = "STRENGTH", default_value_t = 1.0, value_parser = argument::strength)]
    pub(super) colour: f32,
}

#[derive(Debug, Args)]
pub(super) struct TrainingArgs {
    /// Steps of training [default: 3000 on rendered pictures; on a data set as many as --minutes have room for]
    #[arg(long, value_parser = argument::count)]
    pub(super) steps: Option<usize>,
    /// Stop after this many minutes; run again to go on [default: 60 on a data set]
    #[arg(long, value_parser = argument::minutes)]
    pub(super) minutes: Option<f64>,
    /// Stop before this step; run again to go on
    #[arg(long, value_name = "STEP")]
    pub(super) until: Option<usize>,
    /// Pictures in a batch [default: 8, classifier 64]
    #[arg(long, value_parser = argument::batch)]
    pub(super) batch: Option<usize>,
    /// Optimiser
    #[arg(long, default_value = "adamw")]
    pub(super) optimiser: OptimiserName,
    /// The highest learning rate [default: 3e-3, on a data set 2e-3; sgd 0.05]
    #[arg(long, value_parser = argument::rate)]
    pub(super) rate: Option<f32>,
    /// How the rate falls after its rise
    #[arg(long, default_value = "cosine")]
    pub(super) schedule: ScheduleName,
    /// Weight decay [default: 0.02; sgd 5e-4]
    #[arg(long)]
    pub(super) decay: Option<f32>,
    /// Weights of the classes in the loss: none, log (rare ones weigh more), or a number for each
    #[arg(long, value_name = "RULE", value_parser = argument::class_weights)]
    pub(super) class_weights: Option<ClassWeights>,
    /// Train on attacked pictures: PGD within this radius, 4/255 say
    #[arg(long, value_name = "RADIUS", value_parser = argument::radius)]
    pub(super) adversarial: Option<f32>,
    /// Steps of the adversary, from a random start; 1 is the cheap form
    #[arg(long, default_value_t = 3, value_parser = argument::count)]
    pub(super) adversary_steps: usize,
    /// Share of the loss on attacked pictures; clean ones have the rest
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = argument::share)]
    pub(super) adversary_weight: f32,
    /// Steps between scores on held-out pictures and checkpoints [default: 200 on rendered pictures, else a twentieth of all, or more if many are held out]
    #[arg(long, value_parser = argument::count)]
    pub(super) every: Option<usize>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct FineTuneArgs {
    /// The network to start from: ONNX or a checkpoint of an architecture of the zoo, with its contract beside it
    pub(super) network: PathBuf,
    #[command(flatten)]
    pub(super) fit: FitArgs,
}
