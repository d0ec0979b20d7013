//! How much each view's say counts, cell by cell: for as much as its mask says, or for as much as the other views agree with it; and the way back.
//!
//! With o_i = Σ_{j≠i} m_j v_j / Σ_{j≠i} m_j what the other views say: for probabilities the overlap ⟨v_i, o_i⟩, for features the cosine (not below 0), for
//! values ‖o_i‖²/(‖o_i‖² + ‖v_i − o_i‖²). The image itself has no say. A cell that only one view saw keeps that view's weight.

use rayon::prelude::*;

use super::consensus::Say;
use crate::network::Extents;

/// What a view's weight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weights {
    Even,
    Overlap,
    Nearness,
    Cosine,
}

/// What keeps quotients finite.
const TINY: f32 = 1e-12;

/// ⟨v_i, o_i⟩, ‖o_i‖² and ‖v_i‖² of one cell.
#[derive(Clone, Copy, Default)]
struct Moments {
    dot: f32,
    others: f32,
    size: f32,
}

impl Weights {
    fn of(self, Moments { dot, others, size }: Moments) -> f32 {
        match self {
            Self::Even => 1.0,
            Self::Overlap => dot.max(0.0),
            Self::Cosine => (dot / ((others * size).sqrt() + TINY)).max(0.0),
            Self::Nearness => others / (others + (size - 2.0 * dot + others).max(0.0) + TINY),
        }
    }

    /// The derivative by ⟨v, o⟩, ‖o‖² and ‖v‖².
    fn slopes(self, Moments { dot, others, size }: Moments) -> Moments {
        let none = Moments::default();
        match self {
            Self::Even => none,
            Self::Overlap => Moments { dot: f32::from(u8::from(dot > 0.0)), ..none },
            Self::Cosine if dot <= 0.0 => none,
            Self::Cosine => {
                let (length, root) = ((others * size).sqrt() + TINY, (others * size).sqrt().max(TINY));
                let shrink = -0.5 * dot / (length * length * root);
                Moments { dot: 1.0 / length, others: shrink * size, size: shrink * others }
            }
            Self::Nearness => {
                let apart = (size - 2.0 * dot + others).max(0.0);
                let all = others + apart + TINY;
                let shrink = -others / (all * all);
                Moments { dot: -2.0 * shrink, others: 1.0 / all + 2.0 * shrink, size: shrink }
            }
        }
    }
}

/// What all views say together, before it is divided by how many saw a cell.
struct Together {
    sum: Vec<f32>,
    seen: Vec<f32>,
}

impl Together {
    fn of(says: &[Say], form: Extents) -> Self {
        let cells = form.cells();
        let mut sum = vec![0.0f32; form.len()];
        sum.par_chunks_mut(cells).enumerate().for_each(|(channel, plane)| {
            for say in says {
                let from = say.values[channel * cells..][..cells].iter().zip(&say.mask);
                plane.iter_mut().zip(from).for_each(|(o, (v, m))| *o += m * v);
            }
        });
        let mut seen = vec![0.0f32; cells];
        says.iter().for_each(|say| seen.iter_mut().zip(&say.mask).for_each(|(s, m)| *s += m));
        Self { sum, seen }
    }

    /// How much saw a cell beside a view that saw as much of it as its mask says.
    fn beside(&self, say: &Say, cell: usize) -> f32 {
        (self.seen[cell] - say.mask[cell]).max(1.0)
    }

    /// o_i at one place.
    fn other(&self, say: &Say, place: usize, cell: usize) -> f32 {
        (self.sum[place] - say.mask[cell] * say.values[place]) / self.beside(say, cell)
    }

    fn alone(&self, say: &Say, cell: usize) -> bool {
        self.seen[cell] <= say.mask[cell]
    }

    fn moments(&self, say: &Say, form: Extents) -> Vec<Moments> {
        let cells = form.cells();
        let mut all = vec![Moments::default(); cells];
        for (place, v) in say.values.iter().enumerate() {
            let other = self.other(say, place, place % cells);
            let own = &mut all[place % cells];
            own.dot += v * other;
            own.others += other * other;
            own.size += v * v;
        }
        all
    }
}

/// The weight of each view in each cell; 0 where it saw nothing.
pub(super) fn weigh(rule: Weights, says: &[Say], form: Extents) -> Vec<Vec<f32>> {
    if rule == Weights::Even {
        return says.iter().map(|say| say.mask.clone()).collect();
    }
    let together = Together::of(says, form);
    let own = |say: &Say| {
        let weight = |(cell, moments): (usize, Moments)| {
            // never quite nothing, so that a cell in sight always has a target
            say.mask[cell] * if together.alone(say, cell) { 1.0 } else { rule.of(moments) + 1e-6 }
        };
        together.moments(say, form).into_iter().enumerate().map(weight).collect()
    };
    says.par_iter().map(own).collect()
}

/// From a cotangent on the weight of each view in each cell to one on what each view says, added to `on_says`.
pub(super) fn pull_weigh(
    rule: Weights,
    says: &[Say],
    form: Extents,
    on_weights: &[Vec<f32>],
    on_says: &mut [Vec<f32>],
) {
    if rule == Weights::Even {
        return;
    }
    let (together, cells) = (Together::of(says, form), form.cells());
    let mut on_sum = vec![0.0f32; form.len()];
    for ((say, on_weight), on_say) in says.iter().zip(on_weights).zip(on_says.iter_mut()) {
        let moments = together.moments(say, form);
        let slope = |cell: usize| match together.alone(say, cell) {
            true => Moments::default(),
            false => rule.slopes(moments[cell]),
        };
        let slopes: Vec<Moments> = (0..cells).map(slope).collect();
        for (place, v) in say.values.iter().enumerate() {
            let cell = place % cells;
            let (other, slope) = (together.other(say, place, cell), slopes[cell]);
            let given = on_weight[cell] * say.mask[cell];
            // o_i is the sum without v_i, divided
            let on_other = given * (slope.dot * v + 2.0 * slope.others * other) / together.beside(say, cell);
            on_say[place] += given * (slope.dot * other + 2.0 * slope.size * v) - say.mask[cell] * on_other;
            on_sum[place] += on_other;
        }
    }
    for (say, on_say) in says.iter().zip(on_says) {
        on_say.iter_mut().enumerate().for_each(|(place, o)| *o += say.mask[place % cells] * on_sum[place]);
    }
}
