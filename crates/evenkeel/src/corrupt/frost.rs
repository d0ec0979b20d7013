//! Frost, grown rather than photographed: feathers of ice that branch from seeds, over a rime of plasma.
//!
//! Each feather is a curved spine with side needles at 60°, as ice has; needles shorten towards the tip. The texture is softened,
//! tinted blue-white and blended with the published weights.

use super::canvas::{Canvas, nearest};
use super::plasma::plasma;
use crate::random::Random;

/// Image and ice, weighed by severity.
pub(super) fn frost(canvas: &mut Canvas, severity: usize, random: &Random) {
    let (keep, add) = [(1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)][severity];
    let (height, width, plane) = (canvas.height, canvas.width, canvas.plane());
    let ice = ice(height, width, random);
    let tint: &[f32] = if canvas.channels == 1 { &[0.92] } else { &[0.86, 0.93, 1.0] };
    for (i, v) in canvas.data.iter_mut().enumerate() {
        *v = keep * *v + add * ice[i % plane] * tint[i / plane];
    }
}

/// The brightness of the ice, `[h, w]`, in [0, 1].
fn ice(height: usize, width: usize, random: &Random) -> Vec<f32> {
    let side = height.max(width).next_power_of_two();
    let rime = plasma(side, 1.6, &random.fork(0));
    let mut layer = Canvas::layer(height, width, vec![0.0; height * width]);
    let feathers = 6 + (height + width) / 24;
    for feather in 0..feathers {
        grow(&mut layer, &mut random.fork(1).fork(feather as u64));
    }
    layer.blur((0.7, 0.7), 3.0, nearest);
    let brightness = |i: usize, needles: f32| {
        let (y, x) = (i / width, i % width);
        (0.25 + 0.45 * rime[y * side + x] + 0.6 * needles.min(1.0)).min(1.0)
    };
    layer.data.iter().enumerate().map(|(i, &needles)| brightness(i, needles)).collect()
}

/// Draws one feather: a spine that bends, and needles on both sides.
fn grow(layer: &mut Canvas, random: &mut Random) {
    let size = (layer.height + layer.width) as f32 / 2.0;
    let (mut y, mut x) = (random.unit() * layer.height as f32, random.unit() * layer.width as f32);
    let mut heading = random.uniform(0.0, std::f32::consts::TAU);
    let bend = random.uniform(-0.012, 0.012);
    let length = random.uniform(0.15, 0.5) * size;
    let mut walked = 0.0;
    while walked < length {
        touch(layer, y, x, 0.9);
        if (walked as usize).is_multiple_of(3) {
            let needle = 0.28 * (length - walked) * random.uniform(0.5, 1.0);
            for turn in [-std::f32::consts::FRAC_PI_3, std::f32::consts::FRAC_PI_3] {
                let (sine, cosine) = (heading + turn).sin_cos();
                for i in 0..needle as usize {
                    touch(layer, y + sine * i as f32, x + cosine * i as f32, 0.7 * (1.0 - i as f32 / needle));
                }
            }
        }
        heading += bend + random.uniform(-0.02, 0.02);
        y += heading.sin();
        x += heading.cos();
        walked += 1.0;
    }
}

/// Brightens one pixel, at most to what is given.
fn touch(layer: &mut Canvas, y: f32, x: f32, brightness: f32) {
    let (row, column) = (y.round(), x.round());
    if row >= 0.0 && column >= 0.0 && (row as usize) < layer.height && (column as usize) < layer.width {
        let slot = &mut layer.data[row as usize * layer.width + column as usize];
        *slot = slot.max(brightness);
    }
}
