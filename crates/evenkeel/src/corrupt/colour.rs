//! Light and colour: brighter, flatter, more or less saturated.
//!
//! Hue is never computed: with hue and saturation fixed, adding to the HSV value scales all three channels alike; with hue and
//! value fixed, changing saturation moves each channel along the line to the largest one.

use super::canvas::Canvas;
use crate::random::Random;

/// Adds to the HSV value, at most to 1.
pub(super) fn brightness(canvas: &mut Canvas, severity: usize, _: &Random) {
    let add = [0.1, 0.2, 0.3, 0.4, 0.5][severity];
    each_pixel(canvas, |pixel| {
        let value = pixel.iter().copied().fold(0.0, f32::max);
        let raised = (value + add).min(1.0);
        pixel.iter_mut().for_each(|v| *v = if value > 0.0 { *v * (raised / value) } else { raised });
    });
}

/// Pulls every value towards its channel's mean.
pub(super) fn contrast(canvas: &mut Canvas, severity: usize, _: &Random) {
    let keep = [0.4, 0.3, 0.2, 0.1, 0.05][severity];
    let plane = canvas.plane();
    for channel in canvas.data.chunks_mut(plane) {
        let mean = (channel.iter().map(|&v| f64::from(v)).sum::<f64>() / plane as f64) as f32;
        channel.iter_mut().for_each(|v| *v = (*v - mean) * keep + mean);
    }
}

/// Scales and shifts the HSV saturation. A pixel without hue counts as red.
pub(super) fn saturate(canvas: &mut Canvas, severity: usize, _: &Random) {
    let (factor, shift) = [(0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)][severity];
    if canvas.channels == 1 {
        return; // a grey picture's value does not change
    }
    each_pixel(canvas, |pixel| {
        let value = pixel.iter().copied().fold(0.0, f32::max);
        let low = pixel.iter().copied().fold(f32::INFINITY, f32::min);
        if value <= 0.0 {
            return;
        }
        let saturation = (value - low) / value;
        let wanted = (saturation * factor + shift).clamp(0.0, 1.0);
        if saturation > 0.0 {
            pixel.iter_mut().for_each(|v| *v = value - (value - *v) * (wanted / saturation));
        } else {
            pixel[1..].fill(value * (1.0 - wanted));
        }
    });
}

fn each_pixel(canvas: &mut Canvas, change: impl Fn(&mut [f32])) {
    let (plane, channels) = (canvas.plane(), canvas.channels);
    let mut pixel = [0.0; 3];
    for i in 0..plane {
        for channel in 0..channels {
            pixel[channel] = canvas.data[channel * plane + i];
        }
        change(&mut pixel[..channels]);
        for channel in 0..channels {
            canvas.data[channel * plane + i] = pixel[channel];
        }
    }
}
