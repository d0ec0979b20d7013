//! AdamW, and the rate it is driven with.
//!
//! `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `w ← w − rate · (m̂ / (√v̂ + ε) + decay · w)`, with m̂ and v̂ corrected for their start at zero.
//! The rate rises in a straight line, then falls along half a cosine.

use crate::net::Net;

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.99;
const EPSILON: f32 = 1e-8;
/// Gradients longer than this are shortened to it.
const LONGEST: f32 = 5.0;

/// AdamW's memory: both moments of every parameter.
#[derive(Clone, Debug)]
pub struct AdamW {
    /// First moments, by parameter.
    pub first: Vec<Vec<f32>>,
    /// Second moments, by parameter.
    pub second: Vec<Vec<f32>>,
    /// Weight decay.
    pub decay: f32,
}

impl AdamW {
    /// For a network's parameters.
    pub fn new(net: &Net, decay: f32) -> Self {
        let zeros: Vec<Vec<f32>> = net.parameters.iter().map(|p| vec![0.0; p.values.len()]).collect();
        Self { first: zeros.clone(), second: zeros, decay }
    }

    /// Moves the parameters by one step, the `step`-th from 0, at this rate.
    pub fn step(&mut self, net: &mut Net, step: usize, rate: f32) {
        let squares: f64 =
            net.parameters.iter().flat_map(|p| &p.gradient).map(|&g| f64::from(g) * f64::from(g)).sum();
        let shorten = (LONGEST / (squares.sqrt() as f32 + 1e-12)).min(1.0);
        let count = step as i32 + 1;
        let (fix1, fix2) = (1.0 - BETA1.powi(count), 1.0 - BETA2.powi(count));
        for ((p, m), v) in net.parameters.iter_mut().zip(&mut self.first).zip(&mut self.second) {
            let decay = if p.decays { self.decay } else { 0.0 };
            for i in 0..p.values.len() {
                let g = p.gradient[i] * shorten;
                m[i] += (1.0 - BETA1) * (g - m[i]);
                v[i] += (1.0 - BETA2) * (g * g - v[i]);
                let move_by = (m[i] / fix1) / ((v[i] / fix2).sqrt() + EPSILON);
                p.values[i] -= rate * (move_by + decay * p.values[i]);
            }
        }
    }
}

/// The rate at a step out of `steps`, at most `peak`, rising over the first `warm` steps.
pub fn rate(step: usize, steps: usize, peak: f32, warm: usize) -> f32 {
    if step < warm {
        return peak * (step + 1) as f32 / warm as f32;
    }
    let t = (step - warm) as f32 / (steps - warm).max(1) as f32;
    peak * (0.5 + 0.5 * (std::f32::consts::PI * t.min(1.0)).cos())
}
