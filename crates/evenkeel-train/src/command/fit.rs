//! Training a network: on rendered pictures or on a data set.

use super::arguments as argument;
use crate::adversary::Adversary;
use crate::augment::Augmentation;
use crate::batch::Pool;
use crate::card::{self, Card};
use crate::data::{ClassWeights, Part, Prepared, Source};
use crate::error::{Error, Result};
use crate::goal::{Goal, Pixels, Task};
use crate::import::{self, Imported};
use crate::net::Net;
use crate::optimiser::{Rule, Schedule};
use crate::train::Plan;
use crate::{checkpoint, export, networks, score};
use clap::{Args, ValueEnum};
use evenkeel::Random;
use evenkeel_data::dataset::scenes::Split;
use evenkeel_data::dataset::{Preparation, Request, Subset};
use std::path::{Path, PathBuf};

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
enum OptimiserName {
    Adamw,
    Sgd,
}

/// Schedules by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScheduleName {
    Cosine,
    Poly,
}

#[derive(Debug, Args)]
pub(super) struct FitArgs {
    /// Where the network goes: NAME.onnx, or NAME.safetensors for the weights and NAME.onnx for the graph; the contract, card, checkpoint
    /// and curves go beside it
    #[arg(short, long, value_name = "FILE", value_parser = argument::output_file)]
    output: PathBuf,
    #[command(flatten, next_help_heading = "Data")]
    data: DataArgs,
    #[command(flatten, next_help_heading = "Network")]
    network: NetworkArgs,
    #[command(flatten, next_help_heading = "Augmentation")]
    augmentation: AugmentationArgs,
    #[command(flatten, next_help_heading = "Training")]
    training: TrainingArgs,
}

#[derive(Debug, Args)]
struct DataArgs {
    /// What to train on: a kind of data set and its path (`evenkeel data check --help` lists the kinds), or `scenes` alone, the rendered pictures
    #[arg(long, value_names = ["KIND", "PATH"], num_args = 1..=2, default_value = "scenes")]
    data: Vec<String>,
    /// The part of the data set to train on; each kind has its usual one
    #[arg(long)]
    split: Option<String>,
    /// How many classes there are, where the layout does not say; by itself one more than the largest label
    #[arg(long)]
    classes: Option<usize>,
    /// Names of the classes: a known set (cityscapes, voc, cifar10, …), or one by one with commas between them
    #[arg(long, value_parser = argument::names)]
    names: Option<NameList>,
    /// Bring pictures to WIDTHxHEIGHT, or leave them `native`, instead of the kind's usual size
    #[arg(long, value_parser = argument::size)]
    size: Option<Preparation>,
    /// Take at most this many samples
    #[arg(long)]
    limit: Option<usize>,
    /// Score on another data set: its kind and path
    #[arg(long, value_names = ["KIND", "PATH"], num_args = 2)]
    held_out_data: Option<Vec<String>>,
    /// The part of the data set to score on; without --held-out-data, a part of the one trained on
    #[arg(long, value_name = "SPLIT")]
    held_out_split: Option<String>,
    /// Pictures held out of training to score on [default: a fifth and at most 200; 100 rendered]
    #[arg(long, value_parser = argument::count)]
    held_out: Option<usize>,
    /// Gigabytes of decoded pictures kept in memory; those past it are read when they are drawn
    #[arg(long, value_name = "GB", default_value_t = 4.0)]
    memory: f64,
    /// Pictures rendered to train on, with `--data scenes` [default: 3000, classifier 12000]
    #[arg(long, value_parser = argument::count)]
    pictures: Option<usize>,
}

/// Clap would take a vector for values given several times.
type NameList = Vec<String>;

#[derive(Debug, Args)]
struct NetworkArgs {
    /// Architecture [default: compact for a segmenter on a data set, else small]
    #[arg(long)]
    arch: Option<Arch>,
    /// Channels after the first convolution; later ones have two and four times as many [default: compact 32, classifier 24]
    #[arg(long, value_parser = argument::count)]
    width: Option<usize>,
    /// Begin with the weights of another run's checkpoint, where names and sizes are the same
    #[arg(long, value_name = "CHECKPOINT")]
    start: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AugmentationArgs {
    /// Size of the windows that are cut out of pictures [default: at most 256x256; 192x96 and 56x56 of rendered pictures]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = argument::window)]
    crop: Option<(usize, usize)>,
    /// Shrink and enlarge windows by factors from LEAST to MOST [default: 0.75,1.75; rendered pictures 0.6,1.7, objects 0.6,1.3]
    #[arg(long, value_name = "LEAST,MOST", value_parser = argument::range)]
    scale: Option<(f32, f32)>,
    /// Mirror no windows
    #[arg(long)]
    no_flip: bool,
    /// Share of the windows that are turned by up to 15 degrees [default: 0; rendered pictures 0.35]
    #[arg(long, value_name = "SHARE", value_parser = argument::share)]
    turn: Option<f32>,
    /// How far brightness, contrast and colours are shifted, 0 to 2
    #[arg(long, value_name = "STRENGTH", default_value_t = 1.0, value_parser = argument::strength)]
    colour: f32,
}

#[derive(Debug, Args)]
struct TrainingArgs {
    /// Steps of training [default: 3000 on rendered pictures; on a data set as many as --minutes have room for]
    #[arg(long, value_parser = argument::count)]
    steps: Option<usize>,
    /// Stop after this many minutes; run again to go on [default: 60 on a data set]
    #[arg(long, value_parser = argument::minutes)]
    minutes: Option<f64>,
    /// Stop before this step; run again to go on
    #[arg(long, value_name = "STEP")]
    until: Option<usize>,
    /// Pictures in a batch [default: 8, classifier 64]
    #[arg(long, value_parser = argument::batch)]
    batch: Option<usize>,
    /// Optimiser
    #[arg(long, default_value = "adamw")]
    optimiser: OptimiserName,
    /// The highest learning rate [default: 3e-3, on a data set 2e-3; sgd 0.05]
    #[arg(long, value_parser = argument::rate)]
    rate: Option<f32>,
    /// How the rate falls after its rise
    #[arg(long, default_value = "cosine")]
    schedule: ScheduleName,
    /// Weight decay [default: 0.02; sgd 5e-4]
    #[arg(long)]
    decay: Option<f32>,
    /// Weights of the classes in the loss: none, log (rare ones weigh more), or a number for each
    #[arg(long, value_name = "RULE", value_parser = argument::class_weights)]
    class_weights: Option<ClassWeights>,
    /// Train on attacked pictures: PGD within this radius, 4/255 say
    #[arg(long, value_name = "RADIUS", value_parser = argument::radius)]
    adversarial: Option<f32>,
    /// Steps of the adversary, from a random start; 1 is the cheap form
    #[arg(long, default_value_t = 3, value_parser = argument::count)]
    adversary_steps: usize,
    /// Share of the loss on attacked pictures; clean ones have the rest
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = argument::share)]
    adversary_weight: f32,
    /// Steps between scores on held-out pictures and checkpoints [default: 200 on rendered pictures, else a twentieth of all, or more if many are held out]
    #[arg(long, value_parser = argument::count)]
    every: Option<usize>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct FineTuneArgs {
    /// The network to start from: ONNX or a checkpoint of an architecture of the zoo, with its contract beside it
    network: PathBuf,
    #[command(flatten)]
    fit: FitArgs,
}

/// Where a network comes from.
enum Origin {
    /// Random weights.
    Fresh(Arch),
    /// A file.
    File(Box<Imported>, PathBuf),
}

/// What to train and to score on, and what is known of it.
struct Material {
    goal: Goal,
    train: Pool,
    held_out: Pool,
    amounts: Vec<u64>,
    about: Vec<String>,
}

pub(super) fn run(task: Task, args: &FitArgs) -> Result<()> {
    train(task, args, Origin::Fresh(args.arch(task)?))
}

pub(super) fn fine_tune(args: &FineTuneArgs) -> Result<()> {
    let given = &args.fit.network;
    if given.arch.is_some() || given.width.is_some() || given.start.is_some() {
        let reason = "--arch, --width and --start make another network; fine-tune goes on with the one given";
        return Err(Error::Setting(reason.into()));
    }
    let imported = import::load(&args.network)?;
    train(imported.task, &args.fit, Origin::File(Box::new(imported), args.network.clone()))
}

fn train(task: Task, args: &FitArgs, origin: Origin) -> Result<()> {
    let folder = args.output.parent().filter(|f| !f.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|f| !f.is_dir()) {
        let reason = format!("{} is not a folder; make it, or name another --output", folder.display());
        return Err(Error::Setting(reason));
    }
    let material = args.material(task, &origin)?;
    let (mut net, called) = args.network.network(origin, &material.goal, args.training.seed)?;
    eprintln!("{called}: {} parameters", net.size());
    let plan = args.plan(&material)?;
    let end = args.training.until.unwrap_or(usize::MAX);
    let (history, done) = plan.run_until(end, &mut net, &material.train, &material.held_out)?;
    let graph = export::save(&net, &material.goal, &args.output)?;
    let scores = score::of(&net, &material.goal, &material.held_out, plan.batch)?;
    let command = std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    let card = Card {
        command: &command,
        network: card::about(&called, net.size(), &material.goal),
        data: material.about,
        amounts: &material.amounts,
        held_out: material.held_out.len(),
    };
    let card = card.save(&graph, &plan, &history, &scores)?;
    println!(
        "{} after {} steps and {:.1} minutes: {} {:.2} % on {} held-out pictures{}",
        graph.display(),
        history.step,
        history.seconds / 60.0,
        task.figure(),
        100.0 * scores.figure,
        material.held_out.len(),
        if done { "" } else { "; run again to go on" }
    );
    println!("by class: {}; see {}", by_class(&material.goal, &scores.classes), card.display());
    Ok(())
}

fn by_class(goal: &Goal, scores: &[Option<f64>]) -> String {
    let known = goal.classes.iter().zip(scores);
    let words = known.filter_map(|(class, score)| score.map(|score| format!("{class} {:.1}", 100.0 * score)));
    words.collect::<Vec<_>>().join(", ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl NetworkArgs {
    /// The network to train, and what it is called.
    fn network(&self, origin: Origin, goal: &Goal, seed: u64) -> Result<(Net, String)> {
        let mut random = Random::new(seed).fork(u64::MAX);
        match origin {
            Origin::Fresh(arch) => {
                let (mut net, called) = self.fresh(arch, goal, &mut random);
                if let Some(start) = &self.start {
                    let taken = checkpoint::adopt(start, &mut net)?;
                    eprintln!("{taken} tensors from {}", start.display());
                }
                Ok((net, called))
            }
            Origin::File(imported, path) => {
                let Imported { mut net, classes, .. } = *imported;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let (old, new) = (classes.len(), goal.classes.len());
                if old != new {
                    if !net.new_scores(networks::SCORES, new, &mut random) {
                        let reason =
                            format!("it has {old} classes, the data {new}, and no convolution at its end");
                        return Err(Error::file(path, reason));
                    }
                    eprintln!("{name} has {old} classes, the data {new}: its last layer starts anew");
                }
                Ok((net, format!("{name}, fine-tuned")))
            }
        }
    }

    /// A network with random weights, and what it is called.
    fn fresh(&self, arch: Arch, goal: &Goal, random: &mut Random) -> (Net, String) {
        let count = goal.classes.len();
        match (goal.task, arch) {
            (Task::Semantic, Arch::Compact) => {
                let width = self.width.unwrap_or(32);
                (networks::compact(count, width, random), format!("compact DRN of width {width}"))
            }
            (Task::Semantic, Arch::DrnD22) => (networks::drn_d_22(count, random), "DRN-D-22".into()),
            (Task::Semantic, Arch::Small) => (networks::segmenter(count, random), "small segmenter".into()),
            (Task::Classification, _) => {
                let width = self.width.unwrap_or(24);
                (networks::classifier(count, width, random), format!("small classifier of width {width}"))
            }
            (Task::Instances, _) => (networks::instances(count, random), "small instance segmenter".into()),
        }
    }
}

impl FitArgs {
    fn rendered(&self) -> bool {
        self.data.data.len() == 1
    }

    fn arch(&self, task: Task) -> Result<Arch> {
        let usual = if task == Task::Semantic && !self.rendered() { Arch::Compact } else { Arch::Small };
        let arch = self.network.arch.unwrap_or(usual);
        let name = arch.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        if task != Task::Semantic && arch != Arch::Small {
            return Err(Error::Setting(format!(
                "--arch {name} is a segmenter; the one for this task is small"
            )));
        }
        let widths = task == Task::Classification || arch == Arch::Compact;
        if self.network.width.is_some() && !widths {
            return Err(Error::Setting(format!("--width has no meaning for the architecture {name}")));
        }
        Ok(arch)
    }

    fn material(&self, task: Task, origin: &Origin) -> Result<Material> {
        let data = &self.data;
        let [kind, path] = data.data.as_slice() else {
            if matches!(origin, Origin::File(..)) {
                return Err(Error::Setting("fine-tune wants --data KIND PATH".into()));
            }
            return self.rendered_material(task);
        };
        let (multiple, pixels, known) = match origin {
            Origin::Fresh(_) => (8, Pixels::default(), None),
            Origin::File(imported, _) => {
                (imported.contract.input.multiple.max(8), imported.pixels, Some(&imported.classes))
            }
        };
        let request = |split: &Option<String>, limit| Request {
            split: split.clone(),
            classes: data.classes.or(data.names.as_ref().or(known).map(Vec::len)),
            subset: Subset { limit, ..Subset::default() },
            preparation: data.size,
        };
        let train = Part { kind: kind.clone(), path: path.into(), request: request(&data.split, data.limit) };
        let other = data.held_out_data.as_deref().unwrap_or(&data.data);
        let apart = data.held_out_data.is_some() || data.held_out_split.is_some();
        let held_out = apart.then(|| Part {
            kind: other[0].clone(),
            path: PathBuf::from(&other[1]),
            request: request(&data.held_out_split, data.held_out),
        });
        eprintln!("reading {kind} {path}");
        let source = Source {
            task,
            train,
            held_out,
            held_out_count: data.held_out.filter(|_| !apart),
            names: data.names.clone(),
            memory: (data.memory.max(0.0) * 1e9) as usize,
            seed: self.training.seed,
            multiple,
            pixels,
        };
        let Prepared { mut goal, train, held_out, amounts, hash, blank } = source.prepare()?;
        if let Some(known) = known.filter(|known| known.len() == goal.classes.len() && goal.numbered()) {
            goal.classes.clone_from(known);
        }
        let folder =
            |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut about = vec![
            format!(
                "trained on {} pictures of {kind} `{}`, BLAKE3 of names, pixels and labels {hash}",
                train.len(),
                folder(path)
            ),
            match apart {
                true => {
                    format!("scored on {} pictures of {} `{}`", held_out.len(), other[0], folder(&other[1]))
                }
                false => format!("scored on {} pictures held out of it", held_out.len()),
            },
        ];
        if blank > 0 {
            eprintln!("{blank} pictures have nothing labelled");
            about.push(format!("{blank} pictures have nothing labelled"));
        }
        let absent: Vec<&str> =
            goal.classes.iter().zip(&amounts).filter(|(_, n)| **n == 0).map(|(name, _)| &**name).collect();
        if !absent.is_empty() {
            eprintln!("nothing to learn these classes from: {}", absent.join(", "));
        }
        eprintln!(
            "{} pictures to train on, {} to score on, {} classes",
            train.len(),
            held_out.len(),
            goal.classes.len()
        );
        let augmentation = self.augmentation(Augmentation {
            scale: (0.75, 1.75),
            turned: 0.0,
            ..Augmentation::rendered(task)
        });
        Ok(Material { train: train.with(augmentation), goal, held_out, amounts, about })
    }

    fn rendered_material(&self, task: Task) -> Result<Material> {
        let data = &self.data;
        if data.data[0] != "scenes" {
            return Err(Error::Setting(format!(
                "--data {}: its path is missing; write --data {} PATH (only `scenes` has none)",
                data.data[0], data.data[0]
            )));
        }
        let goal = Goal::rendered(task);
        eprintln!("rendering the scenes");
        let usual = if task == Task::Classification { 12_000 } else { 3000 };
        let train = Pool::render(&goal, Split::Train, data.pictures.unwrap_or(usual));
        let train = train.with(self.augmentation(Augmentation::rendered(task)));
        let held_out = Pool::render(&goal, Split::Val, data.held_out.unwrap_or(100));
        let about = vec![format!("trained on {} rendered pictures", train.len())];
        Ok(Material { goal, train, held_out, amounts: Vec::new(), about })
    }

    fn augmentation(&self, usual: Augmentation) -> Augmentation {
        let args = &self.augmentation;
        Augmentation {
            scale: args.scale.unwrap_or(usual.scale),
            turned: args.turn.unwrap_or(usual.turned),
            flip: !args.no_flip,
            colour: args.colour,
        }
    }

    fn window(&self, goal: &Goal) -> (usize, usize) {
        let usual = match (goal.task, self.rendered()) {
            (Task::Classification, true) => (56, 56),
            (_, true) => (96, 192),
            (Task::Classification, false) => (goal.size.0.min(224), goal.size.1.min(224)),
            (_, false) => (goal.size.0.min(256), goal.size.1.min(256)),
        };
        self.augmentation.crop.unwrap_or(usual)
    }

    fn plan(&self, material: &Material) -> Result<Plan> {
        let (args, goal) = (&self.training, &material.goal);
        let window = self.window(goal);
        if !window.0.is_multiple_of(goal.multiple) || !window.1.is_multiple_of(goal.multiple) {
            let reason = format!("--crop: the network takes sides that are multiples of {}", goal.multiple);
            return Err(Error::Setting(reason));
        }
        let rendered = self.rendered();
        let sgd = matches!(args.optimiser, OptimiserName::Sgd);
        let usual_rate = if sgd {
            0.05
        } else if rendered {
            3e-3
        } else {
            2e-3
        };
        let weights = match (&args.class_weights, rendered) {
            (Some(rule), true) if *rule == ClassWeights::Log => {
                return Err(Error::Setting("--class-weights log counts the pixels of a data set; rendered scenes have weights of their own".into()));
            }
            (None, true) => networks::scene_weights(goal),
            (rule, _) => {
                let none = vec![0; goal.classes.len()];
                let amounts = if material.amounts.is_empty() { &none } else { &material.amounts };
                rule.clone().unwrap_or_default().of(amounts)?
            }
        };
        Ok(Plan {
            goal: goal.clone(),
            steps: args.steps.unwrap_or(if rendered { 3000 } else { 0 }),
            batch: args.batch.unwrap_or(if goal.task == Task::Classification { 64 } else { 8 }),
            window,
            rule: if sgd { Rule::Sgd } else { Rule::AdamW },
            schedule: match args.schedule {
                ScheduleName::Cosine => Schedule::Cosine,
                ScheduleName::Poly => Schedule::Poly,
            },
            peak: args.rate.unwrap_or(usual_rate),
            decay: args.decay.unwrap_or(if sgd { 5e-4 } else { 0.02 }),
            weights,
            adversary: args.adversarial.map(|epsilon| Adversary {
                epsilon,
                steps: args.adversary_steps,
                weight: args.adversary_weight,
            }),
            every: args.every.unwrap_or(if rendered { 200 } else { 0 }),
            seed: args.seed,
            minutes: self.minutes(),
            checkpoint: self.output.with_extension("checkpoint.safetensors"),
        })
    }

    /// A number of steps alone is not cut short.
    fn minutes(&self) -> f64 {
        let usual = match (self.rendered(), self.training.steps) {
            (true, _) => 90.0,
            (false, None) => 60.0,
            (false, Some(_)) => f64::INFINITY,
        };
        self.training.minutes.unwrap_or(usual)
    }
}
