//! The adversary of adversarial training: our own PGD on the network as it stands, seen as the engine will run it.

use crate::batch::Batch;
use crate::error::Result;
use crate::export::to_model;
use crate::goal::{Goal, Task};
use crate::instance;
use crate::loss::IGNORED;
use crate::net::Net;
use evenkeel::attack::{Attack, Scenario};
use evenkeel::task::Truth;
use evenkeel::{Image, LabelMap};
use evenkeel_data::metric::IGNORE;
use rayon::prelude::*;

/// How hard the adversary tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adversary {
    /// How far a pixel may move, in [0, 1].
    pub epsilon: f32,
    /// Steps of its search, from a random start. One is the cheap form.
    pub steps: usize,
    /// The share of the loss that attacked pictures have; clean ones have the rest.
    pub weight: f32,
}

impl Adversary {
    fn attack(&self) -> Result<Attack> {
        // one step goes a little past the radius, as fast adversarial training does
        let reach = if self.steps == 1 { 1.25 } else { 1.5 };
        let step = f64::from(reach * self.epsilon / self.steps as f32);
        let attack = Attack::named("pgd")?.with("steps", self.steps)?;
        Ok(attack.with("epsilon", f64::from(self.epsilon))?.with("step_size", step)?)
    }

    /// Attacks every picture of a batch in place.
    ///
    /// # Errors
    /// If the engine or the attack refuses.
    pub fn strike(&self, net: &Net, goal: &Goal, batch: &mut Batch, seed: u64) -> Result<()> {
        let size = (batch.input.height, batch.input.width);
        let model = to_model(net, &Goal { size, ..goal.clone() })?;
        let attack = self.attack()?;
        let mut instances = match goal.task {
            Task::Instances => instance::truths(goal, batch)?,
            _ => vec![Vec::new(); batch.input.batch],
        };
        let struck: Vec<Image> = instances
            .par_iter_mut()
            .enumerate()
            .map(|(k, instances)| {
                let image = batch.image(k)?;
                let labels = batch.labels_of(k);
                let truth = match goal.task {
                    Task::Classification => Truth::of_class(usize::from(labels[0])),
                    Task::Instances => Truth::of_instances(std::mem::take(instances)),
                    Task::Semantic => {
                        let labels = labels.iter().map(|&l| if l == IGNORED { IGNORE } else { l }).collect();
                        Truth::of_labels(LabelMap::new(image.height(), image.width(), labels)?)
                    }
                };
                let attack = attack.clone().seed(seed.wrapping_add(k as u64));
                Ok(attack.run(&Scenario::new(&model, &image, &truth))?.image)
            })
            .collect::<Result<_>>()?;
        struck.iter().enumerate().for_each(|(k, image)| batch.replace(k, image));
        Ok(())
    }
}
