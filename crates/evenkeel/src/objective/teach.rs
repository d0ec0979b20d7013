//! The consensus objective at an image: what a defence of the kind evaluates at every step.
//!
//! The image's own pass is traced, the views' are not; the target may be one that was made before. The same seed draws the same views.

use super::passes::{ViewPasses, pass};
use super::{Consensus, Learned, Target};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::Network;
use crate::random::Random;

/// What an image has learnt from its views, and the gradient that takes it further.
pub struct Taught {
    /// How far it has learnt it.
    pub learned: Learned,
    /// The gradient `[3, h, w]`, if it was wanted.
    pub gradient: Option<Vec<f32>>,
    /// What the views said.
    pub target: Target,
}

impl Consensus {
    /// Evaluates at an image: K forward passes for the views, unless a target is given, and one pullback for the image. Views are drawn from `random`.
    ///
    /// # Errors
    /// If the network refuses the image or a view of it.
    pub fn teach(
        &self,
        network: &dyn Network,
        image: &Image,
        target: Option<Target>,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Taught> {
        let base = pass(network, image, &self.tensors.list(), want_gradient)?;
        let target = match target {
            Some(held) => held,
            None => {
                let passes = ViewPasses { network, feature: &self.tensors, image, want_gradient: false };
                let views = self.views.draw(random).iter().map(|view| view.placed(image.size())).collect();
                self.target(&base.tensors, &passes.seen(views)?)?
            }
        };
        let mut learned = self.learn(&base.tensors, &target)?;
        if !learned.value.is_finite() {
            return Err(Error::NotFinite("the objective".into()));
        }
        let gradient = match &base.tape {
            Some(tape) => {
                let own = std::mem::take(&mut learned.cotangents).into_iter().enumerate().collect();
                let gradient = tape.pullback(own)?;
                if !gradient.iter().all(|g| g.is_finite()) {
                    return Err(Error::NotFinite("the gradient".into()));
                }
                Some(gradient)
            }
            None => None,
        };
        Ok(Taught { learned, gradient, target })
    }
}
