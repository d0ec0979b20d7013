//! How much each view's say counts, cell by cell: for as much as its mask says, or for as much as the other views agree with it.
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

/// The weight of each view in each cell; 0 where it saw nothing.
pub(super) fn weigh(rule: Weights, says: &[Say], form: Extents) -> Vec<Vec<f32>> {
    if rule == Weights::Even {
        return says.iter().map(|say| say.mask.clone()).collect();
    }
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
    let own = |say: &Say| {
        let (mut dot, mut others, mut size) = (vec![0.0f32; cells], vec![0.0f32; cells], vec![0.0f32; cells]);
        for channel in 0..form.channels {
            let part = channel * cells..(channel + 1) * cells;
            for (i, (v, total)) in say.values[part.clone()].iter().zip(&sum[part]).enumerate() {
                let m = say.mask[i];
                let other = (total - m * v) / (seen[i] - m).max(1.0);
                dot[i] += v * other;
                others[i] += other * other;
                size[i] += v * v;
            }
        }
        let weight = |i: usize| {
            let agrees = match rule {
                Weights::Even => 1.0,
                Weights::Overlap => dot[i].max(0.0),
                Weights::Cosine => (dot[i] / ((others[i] * size[i]).sqrt() + 1e-12)).max(0.0),
                Weights::Nearness => {
                    others[i] / (others[i] + (size[i] - 2.0 * dot[i] + others[i]).max(0.0) + 1e-12)
                }
            };
            let alone = seen[i] <= say.mask[i];
            // never quite nothing, so that a cell in sight always has a target
            say.mask[i] * if alone { 1.0 } else { agrees + 1e-6 }
        };
        (0..cells).map(weight).collect()
    };
    says.par_iter().map(own).collect()
}
