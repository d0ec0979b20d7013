//! Schedules: what a defence does with the gradients it may take. The published one comes first; the others use the same number of
//! gradients otherwise.

use crate::budget::{Budget, Norm};
use crate::optimise::Keep;
use crate::settings::Choice;
use crate::step::{Averaged, Corners, Langevin, Step};

/// How much of past directions small steps keep.
const DECAY: f32 = 0.75;
/// Evaluations without a new best value after which the loop ends.
const PATIENCE: usize = 3;

/// How gradients are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Steps of twice the radius along the sign of gradient plus annealed noise (SGLD).
    Paper,
    /// The same without noise.
    Sgd,
    /// Small steps along a decaying average of directions.
    Averaged,
    /// Gradients at random corners of the budget, averaged; one step from the image along the average.
    Corners,
    /// Small steps along averaged directions, over when the objective rises no more; the highest image answers.
    EarlyStop,
}

impl Choice for Schedule {
    const ALL: &'static [Self] = &[Self::Paper, Self::Sgd, Self::Averaged, Self::Corners, Self::EarlyStop];
    const KIND: &'static str = "schedule";

    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Sgd => "sgd",
            Self::Averaged => "averaged",
            Self::Corners => "corners",
            Self::EarlyStop => "early-stop",
        }
    }
}

impl Schedule {
    /// The size of a step if none is given: twice the radius, or as much as brings small steps across the budget two and a half
    /// times over.
    pub fn size(self, radius: f32, steps: usize) -> f32 {
        match self {
            Self::Paper | Self::Sgd | Self::Corners => 2.0 * radius,
            Self::Averaged | Self::EarlyStop => radius * (2.5 / steps.max(1) as f32).min(2.0),
        }
    }

    /// A step whose direction is that of one gradient: the published one and that without noise.
    fn langevin(self, size: f32) -> Option<Langevin> {
        match self {
            Self::Paper => Some(Langevin { size, noise: true }),
            Self::Sgd => Some(Langevin { size, noise: false }),
            _ => None,
        }
    }

    /// The step that an attacker who unrolls the defence has to differentiate, and how much of the last direction goes into the next;
    /// `None` if this schedule cannot be unrolled.
    pub(crate) fn unrolled(self, size: f32, budget: &Budget) -> Option<(Langevin, f32)> {
        let size = usable(size, budget);
        match self {
            Self::Averaged => Some((Langevin { size, noise: false }, DECAY)),
            other => other.langevin(size).map(|step| (step, 0.0)),
        }
    }

    /// The step it takes.
    pub(crate) fn step(self, size: f32, budget: &Budget) -> Box<dyn Step> {
        let size = usable(size, budget);
        match (self.langevin(size), self) {
            (Some(step), _) => Box::new(step),
            (None, Self::Corners) => Box::new(Corners::new(size)),
            (None, _) => Box::new(Averaged::new(size, DECAY)),
        }
    }

    /// Which image answers.
    pub(crate) fn keep(self) -> Keep {
        if self == Self::EarlyStop { Keep::Best } else { Keep::Last }
    }

    /// After how many evaluations without a new best value it ends.
    pub(crate) fn patience(self) -> Option<usize> {
        (self == Self::EarlyStop).then_some(PATIENCE)
    }
}

/// In L2 a step beyond the ball only loses precision.
fn usable(size: f32, budget: &Budget) -> f32 {
    if budget.norm == Norm::L2 { size.min(4.0 * budget.radius) } else { size }
}
