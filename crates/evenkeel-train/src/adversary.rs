//! The adversary of adversarial training: our own PGD on the network as it stands, seen as the engine will run it.

use crate::batch::{Batch, Subject};
use crate::error::Result;
use crate::export::to_model;
use crate::instance;
use crate::net::Net;
use evenkeel::attack::{Attack, AttackSettings, Scenario};
use evenkeel::budget::Budget;
use evenkeel::task::Truth;
use evenkeel::{Image, LabelMap};
use rayon::prelude::*;

/// How hard the adversary tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adversary {
    /// How far a pixel may move, in [0, 1].
    pub epsilon: f32,
    /// Steps of its search.
    pub steps: usize,
}

impl Adversary {
    /// Attacks every picture of a batch in place.
    ///
    /// # Errors
    /// If the engine or the attack refuses.
    pub fn strike(&self, net: &Net, subject: Subject, batch: &mut Batch, seed: u64) -> Result<()> {
        let model = to_model(net, subject, (batch.input.height, batch.input.width))?;
        let attack = Attack::named("pgd")?;
        let mut instances = match subject {
            Subject::Instances => instance::truths(batch)?,
            _ => vec![Vec::new(); batch.input.batch],
        };
        let struck: Vec<Image> = instances
            .par_iter_mut()
            .enumerate()
            .map(|(k, instances)| {
                let image = batch.image(k)?;
                let labels = batch.labels_of(k);
                let truth = match subject {
                    Subject::Objects => Truth::Class(usize::from(labels[0])),
                    Subject::Instances => Truth::Instances(std::mem::take(instances)),
                    Subject::Scenes => {
                        let labels = labels.iter().map(|&l| u16::from(l)).collect();
                        Truth::Map(LabelMap::new(image.height(), image.width(), labels)?)
                    }
                };
                let scenario = Scenario {
                    model: &model,
                    image: &image,
                    truth: &truth,
                    target: None,
                    defence: None,
                    objective: None,
                };
                let settings = AttackSettings {
                    steps: self.steps,
                    step_size: 1.5 * self.epsilon / self.steps as f32,
                    seed: seed.wrapping_add(k as u64),
                    ..AttackSettings::new(Budget::linf(self.epsilon))
                };
                Ok(attack.run(&scenario, &settings)?.image)
            })
            .collect::<Result<_>>()?;
        struck.iter().enumerate().for_each(|(k, image)| batch.replace(k, image));
        Ok(())
    }
}
