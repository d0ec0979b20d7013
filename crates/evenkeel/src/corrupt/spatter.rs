//! Spatter: drops of water (mild) or mud (severe) on the lens.
//!
//! Both start from blurred noise above a threshold. Water is lit like relief: the distance to the rim of a drop, spread evenly
//! over 0..255, passed through a slanted edge filter. Mud hides what is behind it.

use super::canvas::{Canvas, mirror_about, nearest};
use crate::random::Random;

/// Water up to severity 3, mud beyond.
pub(super) fn spatter(canvas: &mut Canvas, severity: usize, random: &Random) {
    let (mean, deviation, sigma) =
        [(0.65, 0.3, 4.0), (0.65, 0.3, 3.0), (0.65, 0.3, 2.0), (0.65, 0.3, 1.0), (0.67, 0.4, 1.0)][severity];
    let threshold = [0.69, 0.68, 0.68, 0.65, 0.65][severity];
    let mut drops = Canvas::layer(canvas.height, canvas.width, vec![0.0; canvas.plane()]);
    drops.change_rows(random, |_, stream| mean + deviation * stream.normal());
    drops.blur((sigma, sigma), 4.0, nearest);
    if severity < 3 {
        water(canvas, drops, threshold, [0.6, 0.6, 0.5][severity]);
    } else {
        mud(canvas, drops, threshold);
    }
}

fn water(canvas: &mut Canvas, mut drops: Canvas, threshold: f32, strength: f32) {
    drops.data.iter_mut().for_each(|v| *v = if *v < threshold { 0.0 } else { (*v * 255.0).floor() });
    let relief = relief(&drops);
    let lit: Vec<f32> = drops.data.iter().zip(&relief).map(|(d, r)| d * r).collect();
    let most = lit.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let plane = canvas.plane();
    let tint: &[f32] =
        if canvas.channels == 1 { &[0.859] } else { &[175.0 / 255.0, 238.0 / 255.0, 238.0 / 255.0] };
    for (i, v) in canvas.data.iter_mut().enumerate() {
        *v += strength * lit[i % plane] / most * tint[i / plane];
    }
}

/// How much light each point of the drops throws back, `[h, w]`, 0 to 255.
fn relief(drops: &Canvas) -> Vec<f32> {
    let mut depth = Canvas::layer(drops.height, drops.width, distance_to_rim(drops));
    depth.data.iter_mut().for_each(|d| *d = d.min(20.0));
    box_blur(&mut depth);
    depth.data.iter_mut().for_each(|d| *d = d.floor());
    spread_evenly(&mut depth.data);
    let slant = [[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]];
    let (height, width) = (depth.height, depth.width);
    depth.map_rows(|plane, y, row| {
        for (x, out) in row.iter_mut().enumerate() {
            let mut sum = 0.0;
            for (dy, line) in slant.iter().enumerate() {
                for (dx, weight) in line.iter().enumerate() {
                    let from = (
                        mirror_about((y + dy) as isize - 1, height),
                        mirror_about((x + dx) as isize - 1, width),
                    );
                    sum += weight * plane[from.0 * width + from.1];
                }
            }
            *out = sum.clamp(0.0, 255.0);
        }
    });
    box_blur(&mut depth);
    depth.data
}

/// Means over 3x3.
fn box_blur(layer: &mut Canvas) {
    let (height, width) = (layer.height, layer.width);
    layer.map_rows(|plane, y, row| {
        for (x, out) in row.iter_mut().enumerate() {
            let at = |dy: isize, dx: isize| {
                plane[mirror_about(y as isize + dy, height) * width + mirror_about(x as isize + dx, width)]
            };
            let sum: f32 =
                (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dy, dx))).map(|(dy, dx)| at(dy, dx)).sum();
            *out = sum / 9.0;
        }
    });
}

/// Replaces each whole number by the share of values not above it, on 0..255.
fn spread_evenly(values: &mut [f32]) {
    let mut counts = [0usize; 256];
    values.iter().for_each(|&v| counts[v as usize & 255] += 1);
    let first = counts.iter().copied().find(|&c| c > 0).unwrap_or(0);
    let scale = 255.0 / (values.len() - first).max(1) as f32;
    let mut below = 0;
    let table: Vec<f32> = counts
        .iter()
        .map(|&count| {
            below += count;
            ((below as f32 - first as f32).max(0.0) * scale).round()
        })
        .collect();
    values.iter_mut().for_each(|v| *v = table[*v as usize & 255]);
}

/// Distance of every pixel to the nearest rim pixel of a drop: two sweeps of steps 1 and √2.
fn distance_to_rim(drops: &Canvas) -> Vec<f32> {
    let (height, width) = (drops.height, drops.width);
    let wet = |y: isize, x: isize| drops.data[nearest(y, height) * width + nearest(x, width)] > 0.0;
    // of the two pixels across an edge, the upper or left one: where an edge finder breaks its ties
    let rim = |i: usize| {
        let (y, x) = ((i / width) as isize, (i % width) as isize);
        wet(y, x) != wet(y + 1, x) || wet(y, x) != wet(y, x + 1)
    };
    let mut distance: Vec<f32> = (0..height * width).map(|i| if rim(i) { 0.0 } else { 1e6 }).collect();
    let straight = 1.0;
    let diagonal = std::f32::consts::SQRT_2;
    let mut relax = |y: usize, x: usize, back: isize| {
        let steps =
            [(0, -back, straight), (-back, 0, straight), (-back, -back, diagonal), (-back, back, diagonal)];
        let nearer = |&(dy, dx, cost): &(isize, isize, f32)| {
            let (y, x) = (y as isize + dy, x as isize + dx);
            let inside = (0..height as isize).contains(&y) && (0..width as isize).contains(&x);
            inside.then(|| distance[y as usize * width + x as usize] + cost)
        };
        let best = steps.iter().filter_map(nearer).fold(distance[y * width + x], f32::min);
        distance[y * width + x] = best;
    };
    (0..height).for_each(|y| (0..width).for_each(|x| relax(y, x, 1)));
    (0..height).rev().for_each(|y| (0..width).rev().for_each(|x| relax(y, x, -1)));
    distance
}

fn mud(canvas: &mut Canvas, mut drops: Canvas, threshold: f32) {
    drops.data.iter_mut().for_each(|v| *v = f32::from(u8::from(*v > threshold)));
    drops.blur((1.5, 1.5), 4.0, nearest);
    drops.data.iter_mut().for_each(|v| *v = if *v < 0.8 { 0.0 } else { *v });
    let plane = canvas.plane();
    let brown: &[f32] =
        if canvas.channels == 1 { &[0.177] } else { &[63.0 / 255.0, 42.0 / 255.0, 20.0 / 255.0] };
    for (i, v) in canvas.data.iter_mut().enumerate() {
        let cover = drops.data[i % plane];
        *v = *v * (1.0 - cover) + brown[i / plane] * cover;
    }
}
