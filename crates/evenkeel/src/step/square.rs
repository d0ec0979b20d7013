//! Square's step (Andriushchenko et al. 2020): no gradient, random squares that use the whole budget.
//!
//! L∞: it starts with vertical stripes of ±ε; each proposal repaints one square of the best image so far with ±ε per channel. L2: it
//! starts with a grid of bumps; each proposal moves the change of one square into a bump in another, and the whole is brought to
//! length ε. A square's share of the image starts at `share` and halves on the published schedule, scaled to the number of steps.

use super::Step;
use crate::budget::{Budget, Norm, length};
use crate::image::Image;
use crate::optimise::Iterate;
use crate::random::Random;

/// Square's step.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    /// The first square's share of the image.
    pub share: f32,
}

/// Queries, of ten thousand, after which the share halves.
const HALVINGS: [usize; 8] = [10, 50, 200, 1000, 2000, 4000, 6000, 8000];
/// Tiles along a side at the start in L2.
const TILES: usize = 5;

impl Step for Square {
    fn needs_gradient(&self) -> bool {
        false
    }

    fn start(&mut self, origin: &Image, budget: &Budget, random: &Random) -> Option<Image> {
        let mut stream = random.fork(0);
        Some(match budget.norm {
            Norm::Linf => stripes(origin, budget.radius, &mut stream),
            Norm::L2 => bumps(origin, budget.radius, &mut stream),
        })
    }

    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let (height, width) = at.origin.size();
        let query = at.progress.step * 10_000 / at.progress.steps.max(1);
        let halvings = HALVINGS.iter().filter(|&&h| query > h).count();
        let share = self.share / (1u32 << halvings) as f32;
        let side = ((share * (height * width) as f32).sqrt().round() as usize).clamp(1, height.min(width));
        let mut stream = at.random.fork(2);
        match at.budget.norm {
            Norm::Linf => repainted(at, side, &mut stream),
            Norm::L2 => moved(at, side.clamp(3.min(height.min(width)), height.min(width)), &mut stream),
        }
    }
}

fn sign(stream: &mut Random) -> f32 {
    if stream.chance(0.5) { 1.0 } else { -1.0 }
}

fn stripes(origin: &Image, radius: f32, stream: &mut Random) -> Image {
    let (width, plane) = (origin.width(), origin.height() * origin.width());
    let signs: Vec<f32> = (0..3 * width).map(|_| sign(stream)).collect();
    let mut image = origin.clone();
    for (i, v) in image.pixels_mut().iter_mut().enumerate() {
        *v += radius * signs[i / plane * width + i % width];
    }
    image
}

fn repainted(at: &Iterate<'_>, side: usize, stream: &mut Random) -> Image {
    let (height, width) = at.origin.size();
    let mut next = at.best.clone();
    // a repaint that changes nothing is drawn again, a few times
    for _ in 0..8 {
        let window = Window::anywhere((height, width), side, stream);
        for channel in 0..3 {
            let change = at.budget.radius * sign(stream);
            for i in window.pixels(channel) {
                next.pixels_mut()[i] = (at.origin.pixels()[i] + change).clamp(0.0, 1.0);
            }
        }
        if next != *at.best {
            break;
        }
    }
    next
}

/// A square window of an image `[3, height, width]`.
#[derive(Clone, Copy)]
struct Window {
    top: usize,
    left: usize,
    side: usize,
    size: (usize, usize),
}

impl Window {
    fn anywhere(size: (usize, usize), side: usize, stream: &mut Random) -> Self {
        let (top, left) = (stream.below(size.0 - side + 1), stream.below(size.1 - side + 1));
        Self { top, left, side, size }
    }

    /// Where its values of a channel lie, row by row.
    fn pixels(self, channel: usize) -> impl Iterator<Item = usize> {
        let Self { top, left, side, size: (height, width) } = self;
        (top..top + side)
            .flat_map(move |y| (left..left + side).map(move |x| (channel * height + y) * width + x))
    }

    fn holds(self, i: usize) -> bool {
        let (y, x) = (i / self.size.1 % self.size.0, i % self.size.1);
        (self.top..self.top + self.side).contains(&y) && (self.left..self.left + self.side).contains(&x)
    }
}

/// A bump of unit length: rings around the middle of each half, weighed by 1/ring², one half up and one half down.
fn bump(side: usize, stream: &mut Random) -> Vec<f32> {
    let upper = side / 2;
    let mut out = vec![0.0; side * side];
    for (first, rows, sign) in [(0, upper, 1.0), (upper, side - upper, -1.0)] {
        let half = rings(rows, side);
        let scale = sign / length(&half).max(1e-12) as f32;
        out[first * side..][..rows * side].iter_mut().zip(half).for_each(|(o, h)| *o = scale * h);
    }
    let scale = 1.0 / length(&out).max(1e-12) as f32;
    let turned = stream.chance(0.5);
    (0..side * side).map(|i| scale * out[if turned { i % side * side + i / side } else { i }]).collect()
}

/// Σ over growing rectangles about the middle of 1/k², `[rows, columns]`.
fn rings(rows: usize, columns: usize) -> Vec<f32> {
    let (middle, centre) = ((rows / 2) as isize, (columns / 2) as isize);
    let most = (rows / 2).max(columns / 2) + 1;
    let value = |i: usize| {
        let (y, x) = ((i / columns) as isize, (i % columns) as isize);
        let ring = (y - middle).unsigned_abs().max((x - centre).unsigned_abs());
        (ring + 1..=most).map(|k| 1.0 / (k * k) as f32).sum()
    };
    (0..rows * columns).map(value).collect()
}

/// The image with a change brought to length `radius`.
fn with_change(origin: &Image, change: &[f32], radius: f32) -> Image {
    let scale = radius / length(change).max(1e-12) as f32;
    let mut image = origin.clone();
    image.pixels_mut().iter_mut().zip(change).for_each(|(p, c)| *p = (*p + scale * c).clamp(0.0, 1.0));
    image
}

fn bumps(origin: &Image, radius: f32, stream: &mut Random) -> Image {
    let size = origin.size();
    let side = (size.0.min(size.1) / TILES).max(1);
    let mut change = vec![0.0; origin.pixels().len()];
    for (top, left) in (0..size.0 / side).flat_map(|y| (0..size.1 / side).map(move |x| (y * side, x * side)))
    {
        let window = Window { top, left, side, size };
        let tile = bump(side, stream);
        for channel in 0..3 {
            let sign = sign(stream);
            window.pixels(channel).zip(&tile).for_each(|(i, t)| change[i] = sign * t);
        }
    }
    with_change(origin, &change, radius)
}

fn moved(at: &Iterate<'_>, side: usize, stream: &mut Random) -> Image {
    let size = at.origin.size();
    let mut change: Vec<f32> = at.best.pixels().iter().zip(at.origin.pixels()).map(|(b, o)| b - o).collect();
    let (into, out_of) = (Window::anywhere(size, side, stream), Window::anywhere(size, side, stream));
    let squares = |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    let whole = squares(&mut change.iter().copied());
    let unused = (f64::from(at.budget.radius).powi(2) - whole).max(0.0) / 3.0;
    let tile = bump(side, stream);
    let plane = size.0 * size.1;
    for channel in 0..3 {
        let here = channel * plane..(channel + 1) * plane;
        let both = squares(&mut here.filter(|i| into.holds(*i) || out_of.holds(*i)).map(|i| change[i]));
        let old: Vec<f32> = into.pixels(channel).map(|i| change[i]).collect();
        let kept = 1.0 / (length(&old) + 1e-12) as f32;
        let sign = sign(stream);
        let new: Vec<f32> = old.iter().zip(&tile).map(|(o, t)| kept * o + sign * t).collect();
        let scale = ((unused + both).sqrt() / length(&new).max(1e-12)) as f32;
        out_of.pixels(channel).for_each(|i| change[i] = 0.0);
        into.pixels(channel).zip(&new).for_each(|(i, n)| change[i] = scale * n);
    }
    with_change(at.origin, &change, at.budget.radius)
}
