//! Training a network: on rendered pictures or on a data set.

use super::fit_arguments::{Arch, FineTuneArgs, FitArgs, NetworkArgs, OptimiserName, ScheduleName};
use super::material::Material;
use crate::adversary::Adversary;
use crate::card::{self, Card};
use crate::data::ClassWeights;
use crate::error::{Error, Result};
use crate::goal::{Goal, Task};
use crate::import::{self, Imported};
use crate::net::Net;
use crate::optimiser::{Rule, Schedule};
use crate::train::Plan;
use crate::{checkpoint, export, networks, score};
use clap::ValueEnum;
use evenkeel::Random;
use std::path::PathBuf;

/// Where a network comes from.
pub(super) enum Origin {
    /// Random weights.
    Fresh(Arch),
    /// A file.
    File(Box<Imported>, PathBuf),
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
