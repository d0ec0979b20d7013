//! Plasma: a random height map by the diamond-square rule on a torus, in [0, 1]. The fog and the frost are made of it.
//!
//! At each level the middles of the squares, then of the diamonds, get the mean of their four corners plus a uniform wobble of
//! amplitude w²; w shrinks by `decay` from level to level.

use crate::random::Random;

/// A square map of side `side` (a power of two).
pub(super) fn plasma(side: usize, decay: f32, random: &Random) -> Vec<f32> {
    debug_assert!(side.is_power_of_two());
    let mut map = vec![0.0f32; side * side];
    let wrap = |i: usize| i & (side - 1);
    let (mut step, mut wobble, mut level) = (side, 100.0f32, 0);
    while step >= 2 {
        let half = step / 2;
        let mut stream = random.fork(level);
        let amplitude = wobble * wobble;
        let mut fill = |map: &mut Vec<f32>, y: usize, x: usize, corners: [(usize, usize); 4]| {
            let sum: f32 = corners.iter().map(|&(y, x)| map[wrap(y) * side + wrap(x)]).sum();
            map[wrap(y) * side + wrap(x)] = sum / 4.0 + stream.uniform(-amplitude, amplitude);
        };
        for y in (0..side).step_by(step) {
            for x in (0..side).step_by(step) {
                fill(
                    &mut map,
                    y + half,
                    x + half,
                    [(y, x), (y + step, x), (y, x + step), (y + step, x + step)],
                );
            }
        }
        for y in (0..side).step_by(step) {
            for x in (0..side).step_by(step) {
                let (up, left) = (y + side - half, x + side - half);
                fill(&mut map, y, x + half, [(y, x), (y, x + step), (up, x + half), (y + half, x + half)]);
                fill(&mut map, y + half, x, [(y, x), (y + step, x), (y + half, left), (y + half, x + half)]);
            }
        }
        step = half;
        wobble /= decay;
        level += 1;
    }
    let low = map.iter().copied().fold(f32::INFINITY, f32::min);
    let high = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    map.iter_mut().for_each(|v| *v = (*v - low) / (high - low).max(f32::MIN_POSITIVE));
    map
}
