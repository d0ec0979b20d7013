//! Resizing images: bilinear with antialiasing, the rule of Pillow's BILINEAR and of the field's data pipelines.
//!
//! Output pixel i looks at input position c = (i + 0.5)·s with s = old/new; input pixel j weighs
//! max(0, 1 - |j + 0.5 - c| / max(s, 1)), normalised. Rows first (few rows remain), then columns.
//! Invariant: weights add up to one, so a constant image stays constant and values stay within the input's range.

use evenkeel::Image;

/// For each output position: the first input position it looks at, and its weights from there.
struct Taps {
    first: Vec<usize>,
    weights: Vec<Vec<f32>>,
}

impl Taps {
    fn new(old: usize, new: usize) -> Self {
        let scale = old as f64 / new as f64;
        let reach = scale.max(1.0);
        let (mut first, mut weights) = (Vec::with_capacity(new), Vec::with_capacity(new));
        for i in 0..new {
            let centre = (i as f64 + 0.5) * scale;
            let low = ((centre - reach + 0.5).max(0.0)) as usize;
            let high = ((centre + reach + 0.5) as usize).min(old);
            let raw: Vec<f64> =
                (low..high).map(|j| (1.0 - ((j as f64 + 0.5 - centre) / reach).abs()).max(0.0)).collect();
            let total: f64 = raw.iter().sum();
            first.push(low);
            weights.push(raw.iter().map(|w| (w / total) as f32).collect());
        }
        Self { first, weights }
    }
}

/// The image at another size.
pub fn resized(image: &Image, height: usize, width: usize) -> Image {
    let (h, w) = image.size();
    if (h, w) == (height, width) {
        return image.clone();
    }
    let (down, across) = (Taps::new(h, height), Taps::new(w, width));
    let mut out = Image::filled(height, width, 0.0);
    let mut row = vec![0.0f32; w];
    for channel in 0..3 {
        let plane = image.plane(channel);
        let target = &mut out.pixels_mut()[channel * height * width..][..height * width];
        for (y, line) in target.chunks_exact_mut(width).enumerate() {
            row.fill(0.0);
            for (k, &weight) in down.weights[y].iter().enumerate() {
                let from = &plane[(down.first[y] + k) * w..][..w];
                row.iter_mut().zip(from).for_each(|(sum, value)| *sum += weight * value);
            }
            for (x, value) in line.iter_mut().enumerate() {
                let taps = &across.weights[x];
                let from = &row[across.first[x]..][..taps.len()];
                *value = taps.iter().zip(from).map(|(t, v)| t * v).sum();
            }
        }
    }
    out
}
