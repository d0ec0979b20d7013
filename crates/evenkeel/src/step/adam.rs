//! Adam in tanh space, for the original Carlini-Wagner attack: x = (tanh(w) + 1)/2 never leaves [0, 1].

use super::{Step, gradient};
use crate::image::Image;
use crate::optimise::Iterate;

/// Adam on w, to raise the value.
#[derive(Clone, Debug)]
pub struct AdamTanh {
    /// The learning rate.
    pub rate: f32,
    at: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
    count: i32,
}

impl AdamTanh {
    /// A fresh step.
    pub fn new(rate: f32) -> Self {
        Self { rate, at: Vec::new(), mean: Vec::new(), square: Vec::new(), count: 0 }
    }
}

impl Step for AdamTanh {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let gradient = gradient(at);
        if self.count == 0 {
            let inverse = |v: &f32| (2.0 * v - 1.0).clamp(-0.999_999, 0.999_999).atanh();
            self.at = at.image.pixels().iter().map(inverse).collect();
            self.mean = vec![0.0; gradient.len()];
            self.square = vec![0.0; gradient.len()];
        }
        self.count += 1;
        let (fade_mean, fade_square) = (1.0 - 0.9f32.powi(self.count), 1.0 - 0.999f32.powi(self.count));
        let mut next = at.image.clone();
        for (i, pixel) in next.pixels_mut().iter_mut().enumerate() {
            let tanh = self.at[i].tanh();
            let slope = gradient[i] * 0.5 * (1.0 - tanh * tanh);
            self.mean[i] = 0.9 * self.mean[i] + 0.1 * slope;
            self.square[i] = 0.999 * self.square[i] + 0.001 * slope * slope;
            let root = (self.square[i] / fade_square).sqrt() + 1e-8;
            self.at[i] += self.rate * (self.mean[i] / fade_mean) / root;
            *pixel = 0.5 * (self.at[i].tanh() + 1.0);
        }
        next
    }
}
