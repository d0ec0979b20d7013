//! An attack on detect-then-defend: a differentiable stand-in for the alarm, and the attacker who stays under the threshold.
//!
//! With s the detection score, θ the threshold and p = σ((s − θ)/(τ|θ|)), the value is (1 − p)·L(x) + p·L(defended x) − w·max(0, s − θ)/|θ|, with the
//! gradient of all of it; w = 0 does without the last term. The score of the answer is that of the branch which the alarm takes.

use crate::detect::Detector;
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::optimise::Evaluation;

/// How wide the stand-in's slope is, as a share of the threshold.
const WIDTH: f64 = 0.1;

pub(super) struct Alarm<'a> {
    pub(super) detector: &'a Detector,
    pub(super) threshold: f64,
    /// The weight of staying under the threshold.
    pub(super) evade: f64,
}

impl Alarm<'_> {
    /// What the attacker sees, from what it sees with the defence off and on.
    pub(super) fn mixed(
        &self,
        model: &Model,
        image: &Image,
        bare: Evaluation,
        defended: Evaluation,
    ) -> Result<Evaluation> {
        let wanted = bare.gradient.is_some();
        let (score, slope) = self.detector.score_with_gradient(model, image, wanted)?;
        let scale = self.threshold.abs().max(1e-9);
        let share = 1.0 / (1.0 + (-(score - self.threshold) / (WIDTH * scale)).exp());
        let over = ((score - self.threshold) / scale).max(0.0);
        let value = (1.0 - share) * bare.value + share * defended.value - self.evade * over;
        // d value / d score
        let rise = share * (1.0 - share) / (WIDTH * scale) * (defended.value - bare.value)
            - if over > 0.0 { self.evade / scale } else { 0.0 };
        let gradient = bare.gradient.map(|off| {
            let on = defended.gradient.unwrap_or_else(|| vec![0.0; off.len()]);
            let of_score = slope.unwrap_or_else(|| vec![0.0; off.len()]);
            off.iter()
                .zip(&on)
                .zip(&of_score)
                .map(|((off, on), s)| (1.0 - share) as f32 * off + share as f32 * on + rise as f32 * s)
                .collect()
        });
        let taken = if score > self.threshold { defended.score } else { bare.score };
        Ok(Evaluation { value, gradient, score: taken, loss: Some(value) })
    }
}
