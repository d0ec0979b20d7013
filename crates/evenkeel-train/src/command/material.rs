//! The pictures of a run: a data set or rendered scenes, to train and to score on, and what is known of them.

use super::fit::Origin;
use super::fit_arguments::FitArgs;
use crate::augment::Augmentation;
use crate::batch::Pool;
use crate::data::{Part, Prepared, Source};
use crate::error::{Error, Result};
use crate::goal::{Goal, Pixels, Task};
use evenkeel_data::dataset::scenes::Split;
use evenkeel_data::dataset::{Request, Subset};
use std::path::{Path, PathBuf};

/// What to train and to score on, and what is known of it.
pub(super) struct Material {
    pub(super) goal: Goal,
    pub(super) train: Pool,
    pub(super) held_out: Pool,
    pub(super) amounts: Vec<u64>,
    pub(super) about: Vec<String>,
}

impl FitArgs {
    pub(super) fn rendered(&self) -> bool {
        self.data.data.len() == 1
    }

    pub(super) fn material(&self, task: Task, origin: &Origin) -> Result<Material> {
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
}
