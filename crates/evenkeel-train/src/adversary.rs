//! The adversary of adversarial training: our own PGD on the network as it stands, seen as the engine will run it.

use crate::batch::{Batch, Subject};
use crate::error::Result;
use crate::export::to_model;
use crate::instance;
use crate::net::Net;
use evenkeel::attack::{Attack, Scenario};
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
    fn attack(&self) -> Result<Attack> {
        let step = f64::from(1.5 * self.epsilon / self.steps as f32);
        let attack = Attack::named("pgd")?.with("steps", self.steps)?;
        Ok(attack.with("epsilon", f64::from(self.epsilon))?.with("step_size", step)?)
    }

    /// Attacks every picture of a batch in place.
    ///
    /// # Errors
    /// If the engine or the attack refuses.
    pub fn strike(&self, net: &Net, subject: Subject, batch: &mut Batch, seed: u64) -> Result<()> {
        let model = to_model(net, subject, (batch.input.height, batch.input.width))?;
        let attack = self.attack()?;
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
                    Subject::Objects => Truth::of_class(usize::from(labels[0])),
                    Subject::Instances => Truth::of_instances(std::mem::take(instances)),
                    Subject::Scenes => {
                        let labels = labels.iter().map(|&l| u16::from(l)).collect();
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
