//! The optimisers, and the rate they are driven with.
//!
//! AdamW: `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `w ← w − rate · (m̂ / (√v̂ + ε) + decay · w)`, with m̂ and v̂ corrected for their start at zero.
//! SGD: `m ← μm + g + decay · w`, `w ← w − rate · m`. The rate rises in a straight line, then falls along half a cosine or as `(1 − t)^0.9`.

use crate::net::{Net, Parameter};
use rayon::prelude::*;

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.99;
const EPSILON: f32 = 1e-8;
const MOMENTUM: f32 = 0.9;
/// Gradients longer than this are shortened to it.
const LONGEST: f32 = 5.0;

/// How parameters are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// By both moments of the gradient.
    #[default]
    AdamW,
    /// By momentum.
    Sgd,
}

/// An optimiser with its memory of every parameter.
#[derive(Clone, Debug)]
pub struct Optimiser {
    /// How parameters are moved.
    pub rule: Rule,
    /// First moments (SGD: the momentum), by parameter.
    pub first: Vec<Vec<f32>>,
    /// Second moments, by parameter; SGD has none.
    pub second: Vec<Vec<f32>>,
    /// Weight decay.
    pub decay: f32,
}

impl Optimiser {
    /// For a network's parameters.
    pub fn new(rule: Rule, net: &Net, decay: f32) -> Self {
        let zeros = |wanted: bool| -> Vec<Vec<f32>> {
            net.parameters.iter().map(|p| vec![0.0; if wanted { p.values.len() } else { 0 }]).collect()
        };
        Self { rule, first: zeros(true), second: zeros(rule == Rule::AdamW), decay }
    }

    /// Moves the parameters by one step, the `step`-th from 0, at this rate.
    pub fn step(&mut self, net: &mut Net, step: usize, rate: f32) {
        let square = |p: &Parameter| p.gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>();
        let squares: Vec<f64> = net.parameters.par_iter().map(square).collect();
        let shorten = (LONGEST / (squares.iter().sum::<f64>().sqrt() as f32 + 1e-12)).min(1.0);
        let count = step as i32 + 1;
        let fix = (1.0 - BETA1.powi(count), 1.0 - BETA2.powi(count));
        let (rule, decay) = (self.rule, self.decay);
        let memory = self.first.par_iter_mut().zip(&mut self.second);
        net.parameters.par_iter_mut().zip(memory).for_each(|(p, (m, v))| {
            let decay = if p.decays { decay } else { 0.0 };
            match rule {
                Rule::AdamW => adamw(p, (m.as_mut_slice(), v.as_mut_slice()), fix, shorten, (rate, decay)),
                Rule::Sgd => {
                    for ((w, g), m) in p.values.iter_mut().zip(&p.gradient).zip(m) {
                        *m = MOMENTUM * *m + g * shorten + decay * *w;
                        *w -= rate * *m;
                    }
                }
            }
        });
    }
}

fn adamw(
    p: &mut Parameter,
    (m, v): (&mut [f32], &mut [f32]),
    (fix1, fix2): (f32, f32),
    shorten: f32,
    (rate, decay): (f32, f32),
) {
    for (((w, g), m), v) in p.values.iter_mut().zip(&p.gradient).zip(m).zip(v) {
        let g = g * shorten;
        *m += (1.0 - BETA1) * (g - *m);
        *v += (1.0 - BETA2) * (g * g - *v);
        let move_by = (*m / fix1) / ((*v / fix2).sqrt() + EPSILON);
        *w -= rate * (move_by + decay * *w);
    }
}

/// How the rate falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Along half a cosine.
    #[default]
    Cosine,
    /// As `(1 − t)^0.9`.
    Poly,
}

impl Schedule {
    /// The rate at a step out of `steps`, at most `peak`, rising over the first `warm` steps.
    pub fn rate(self, step: usize, steps: usize, peak: f32, warm: usize) -> f32 {
        if step < warm {
            return peak * (step + 1) as f32 / warm as f32;
        }
        let t = ((step - warm) as f32 / steps.saturating_sub(warm).max(1) as f32).min(1.0);
        match self {
            Self::Cosine => peak * (0.5 + 0.5 * (std::f32::consts::PI * t).cos()),
            Self::Poly => peak * (1.0 - t).powf(0.9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_then_fall_to_nothing() {
        for schedule in [Schedule::Cosine, Schedule::Poly] {
            let rates: Vec<f32> = (0..=100).map(|step| schedule.rate(step, 100, 2.0, 10)).collect();
            assert!(rates[..10].windows(2).all(|pair| pair[0] < pair[1]), "{schedule:?} rises");
            assert!(rates[10..].windows(2).all(|pair| pair[0] > pair[1]), "{schedule:?} falls");
            assert!((rates[9] - 2.0).abs() < 1e-6 && rates[100].abs() < 1e-6, "{schedule:?} {rates:?}");
        }
        assert!(Schedule::Poly.rate(55, 100, 1.0, 10) > Schedule::Cosine.rate(55, 100, 1.0, 10));
    }

    #[test]
    fn both_rules_go_down_a_bowl() {
        for (rule, rate) in [(Rule::AdamW, 0.05), (Rule::Sgd, 0.02)] {
            let mut net = Net::new(1);
            let values = vec![3.0, -2.0];
            net.parameters.push(Parameter {
                name: "w".into(),
                shape: vec![2],
                gradient: vec![0.0; 2],
                values,
                decays: true,
            });
            let mut optimiser = Optimiser::new(rule, &net, 0.0);
            for step in 0..400 {
                // f = (w0 − 1)² + 2 (w1 + 1)²
                let w = net.parameters[0].values.clone();
                net.parameters[0].gradient = vec![2.0 * (w[0] - 1.0), 4.0 * (w[1] + 1.0)];
                optimiser.step(&mut net, step, rate);
            }
            let w = &net.parameters[0].values;
            assert!((w[0] - 1.0).abs() < 0.05 && (w[1] + 1.0).abs() < 0.05, "{rule:?} {w:?}");
        }
    }
}
