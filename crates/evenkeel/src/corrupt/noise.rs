//! Noise: each value is changed on its own by a random draw.

use super::canvas::Canvas;
use crate::random::Random;

/// x + σ·n.
pub(super) fn gaussian(canvas: &mut Canvas, severity: usize, random: &Random) {
    let sigma = [0.08, 0.12, 0.18, 0.26, 0.38][severity];
    canvas.change_rows(random, |v, stream| v + sigma * stream.normal());
}

/// Counts of photons at λ per unit of light.
pub(super) fn shot(canvas: &mut Canvas, severity: usize, random: &Random) {
    let rate = [60.0, 25.0, 12.0, 5.0, 3.0][severity];
    canvas.change_rows(random, |v, stream| stream.poisson(v.max(0.0) * rate) / rate);
}

/// A share of the values becomes black or white, each half the time.
pub(super) fn impulse(canvas: &mut Canvas, severity: usize, random: &Random) {
    let share = [0.03, 0.06, 0.09, 0.17, 0.27][severity];
    canvas.change_rows(random, |v, stream| {
        let draw = stream.unit();
        if draw >= share { v } else { f32::from(u8::from(draw < share / 2.0)) }
    });
}

/// x + x·σ·n.
pub(super) fn speckle(canvas: &mut Canvas, severity: usize, random: &Random) {
    let sigma = [0.15, 0.2, 0.35, 0.45, 0.6][severity];
    canvas.change_rows(random, |v, stream| v + v * sigma * stream.normal());
}
