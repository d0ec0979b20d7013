//! Weather: snow and fog.

use super::blur::{enlarged, trail};
use super::canvas::Canvas;
use super::plasma::plasma;
use crate::random::Random;

/// How a severity of snow outputs.
struct Snow {
    mean: f32,
    deviation: f32,
    zoom: f64,
    threshold: f32,
    radius: usize,
    sigma: f32,
    mix: f32,
}

const fn snow_of(flakes: (f32, f32, f64, f32), trail: (usize, f32), mix: f32) -> Snow {
    let (mean, deviation, zoom, threshold) = flakes;
    Snow { mean, deviation, zoom, threshold, radius: trail.0, sigma: trail.1, mix }
}

static SNOW: [Snow; 5] = [
    snow_of((0.1, 0.3, 3.0, 0.5), (10, 4.0), 0.8),
    snow_of((0.2, 0.3, 2.0, 0.5), (12, 4.0), 0.7),
    snow_of((0.55, 0.3, 4.0, 0.9), (12, 8.0), 0.7),
    snow_of((0.55, 0.3, 4.5, 0.85), (12, 8.0), 0.65),
    snow_of((0.55, 0.3, 2.5, 0.85), (12, 12.0), 0.55),
];

/// Enlarged noise above a threshold, falling in streaks, over a whitened image; the layer is added twice, once turned around.
pub(super) fn snow(canvas: &mut Canvas, severity: usize, random: &Random) {
    let snow = &SNOW[severity];
    let (height, width, plane) = (canvas.height, canvas.width, canvas.plane());
    let mut layer = Canvas::layer(height, width, vec![0.0; plane]);
    layer.change_rows(&random.fork(0), |_, stream| snow.mean + snow.deviation * stream.normal());
    let mut layer = enlarged(&layer, snow.zoom, (height, width));
    layer.data.iter_mut().for_each(|v| *v = if *v < snow.threshold { 0.0 } else { v.min(1.0) });
    trail(&mut layer, snow.radius, snow.sigma, random.fork(1).uniform(-135.0, -45.0));
    let luma = canvas.luma();
    for (i, v) in canvas.data.iter_mut().enumerate() {
        let at = i % plane;
        let white = snow.mix * *v + (1.0 - snow.mix) * v.max(luma[at] * 1.5 + 0.5);
        *v = white + layer.data[at] + layer.data[plane - 1 - at];
    }
}

/// A plasma cloud added to the light, then everything scaled back into range.
pub(super) fn fog(canvas: &mut Canvas, severity: usize, random: &Random) {
    let (scale, decay) = [(1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)][severity];
    let side = canvas.height.max(canvas.width).next_power_of_two();
    let cloud = plasma(side, decay, random);
    let brightest = canvas.data.iter().copied().fold(0.0, f32::max);
    let (plane, width) = (canvas.plane(), canvas.width);
    for (i, v) in canvas.data.iter_mut().enumerate() {
        let (y, x) = (i % plane / width, i % width);
        *v = (*v + scale * cloud[y * side + x]) * brightest / (brightest + scale);
    }
}
