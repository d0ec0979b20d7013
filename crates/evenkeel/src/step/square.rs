//! Square's step (Andriushchenko et al. 2020), L∞: no gradient, random squares at the corners of the budget.
//!
//! It starts with vertical stripes of ±ε; each proposal repaints one square of the best image so far with ±ε per channel. The
//! square's share of the image starts at `share` and halves on the published schedule, scaled to the number of steps.

use super::Step;
use crate::ascent::At;
use crate::budget::Budget;
use crate::image::Image;
use crate::random::Random;

/// Square's step.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    /// The first square's share of the image.
    pub share: f32,
}

/// Queries, of ten thousand, after which the share halves.
const HALVINGS: [usize; 8] = [10, 50, 200, 1000, 2000, 4000, 6000, 8000];

impl Step for Square {
    fn needs_gradient(&self) -> bool {
        false
    }

    fn start(&mut self, origin: &Image, budget: &Budget, random: &Random) -> Option<Image> {
        let mut stream = random.fork(0);
        let (width, plane) = (origin.width(), origin.height() * origin.width());
        let signs: Vec<f32> = (0..3 * width).map(|_| if stream.chance(0.5) { 1.0 } else { -1.0 }).collect();
        let mut image = origin.clone();
        for (i, v) in image.pixels_mut().iter_mut().enumerate() {
            *v += budget.radius * signs[i / plane * width + i % width];
        }
        Some(image)
    }

    fn next(&mut self, at: &At<'_>) -> Image {
        let (height, width) = at.origin.size();
        let query = at.progress.step * 10_000 / at.progress.steps.max(1);
        let halvings = HALVINGS.iter().filter(|&&h| query > h).count();
        let share = self.share / (1u32 << halvings) as f32;
        let side = ((share * (height * width) as f32).sqrt().round() as usize).clamp(1, height.min(width));
        let mut stream = at.random.fork(2);
        let mut next = at.best.clone();
        // a repaint that changes nothing is drawn again, a few times
        for _ in 0..8 {
            let (top, left) = (stream.below(height - side + 1), stream.below(width - side + 1));
            for channel in 0..3 {
                let change = if stream.chance(0.5) { at.budget.radius } else { -at.budget.radius };
                for y in top..top + side {
                    for x in left..left + side {
                        let i = (channel * height + y) * width + x;
                        next.pixels_mut()[i] = (at.origin.pixels()[i] + change).clamp(0.0, 1.0);
                    }
                }
            }
            if next != *at.best {
                break;
            }
        }
        next
    }
}
