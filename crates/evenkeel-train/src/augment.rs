//! The changes a picture is given on its way into a batch: another scale, a turn, a mirror image, other colours.
//!
//! They are the changes that views make, so that the network learns to follow them. Where a window reaches outside its picture it is black
//! and has no label.

use crate::goal::{Pixels, Task};
use evenkeel::Random;

/// How strongly pictures are changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmentation {
    /// The range of factors by which windows are shrunk or enlarged.
    pub scale: (f32, f32),
    /// The share of windows that are turned, by fifteen degrees at most.
    pub turned: f32,
    /// Whether every second window is mirrored.
    pub flip: bool,
    /// How far colours are shifted: 1 is the usual, 0 not at all.
    pub colour: f32,
}

impl Augmentation {
    /// What the rendered pictures of a task are given.
    pub fn rendered(task: Task) -> Self {
        let scale = if task == Task::Classification { (0.6, 1.3) } else { (0.6, 1.7) };
        Self { scale, turned: 0.35, flip: true, colour: 1.0 }
    }

    /// A window of this size at random on a picture of another.
    pub(crate) fn draw(
        &self,
        picture: usize,
        full: (usize, usize),
        (height, width): (usize, usize),
        random: &mut Random,
    ) -> Draw {
        let (least, most) = self.scale;
        // Evenly spread on a logarithmic scale, near enough: half the draws shrink, half enlarge.
        let shrink = random.chance(0.5) && least < 1.0 || most <= 1.0;
        let scale =
            if shrink { random.uniform(least, most.min(1.0)) } else { random.uniform(least.max(1.0), most) };
        let step = 1.0 / scale;
        let tangent =
            if random.chance(self.turned) { random.uniform(-LARGEST_TURN, LARGEST_TURN) } else { 0.0 };
        let norm = 1.0 + tangent * tangent;
        let (cosine, sine) = ((1.0 - tangent * tangent) / norm, 2.0 * tangent / norm);
        let mirror = if random.chance(0.5) && self.flip { -1.0 } else { 1.0 };
        let middle = |full: usize, side: usize, unit: f32| {
            0.5 * full as f32 + (unit - 0.5) * (full as f32 - step * side as f32)
        };
        let about = |low: f32, high: f32| (1.0 + self.colour * (low - 1.0), 1.0 + self.colour * (high - 1.0));
        let ((c0, c1), (k0, k1), (s0, s1)) = (about(0.7, 1.35), about(0.88, 1.12), about(0.4, 1.3));
        let contrast = random.uniform(c0, c1);
        let level = self.colour * random.uniform(-0.12, 0.12);
        Draw {
            picture,
            middle: (middle(full.0, height, random.unit()), middle(full.1, width, random.unit())),
            down: (step * cosine, step * sine * mirror),
            across: (-step * sine, step * cosine * mirror),
            saturation: if random.chance(GREY * self.colour.min(1.0)) { 0.0 } else { random.uniform(s0, s1) },
            scale: [0; 3].map(|_| contrast * random.uniform(k0, k1)),
            shift: [0; 3].map(|_| level + self.colour * random.uniform(-0.05, 0.05)),
        }
    }
}

/// The tangent of half the largest turn: a little over fifteen degrees.
const LARGEST_TURN: f32 = 0.132;
/// The share of windows without colour.
const GREY: f32 = 0.05;

/// One draw of the augmentation for a picture: the window's middle lies at `middle`, one of its pixels down is `down` in the picture, one to the right `across`.
pub(crate) struct Draw {
    pub(crate) picture: usize,
    middle: (f32, f32), // (y, x)
    down: (f32, f32),
    across: (f32, f32),
    saturation: f32,
    scale: [f32; 3],
    shift: [f32; 3],
}

impl Draw {
    pub(crate) fn plain(picture: usize, (height, width): (usize, usize)) -> Self {
        Self {
            picture,
            middle: (0.5 * height as f32, 0.5 * width as f32),
            down: (1.0, 0.0),
            across: (0.0, 1.0),
            saturation: 1.0,
            scale: [1.0; 3],
            shift: [0.0; 3],
        }
    }

    /// Where the middle of a pixel of the window lies in the picture, in rows and columns.
    pub(crate) fn place(&self, y: usize, x: usize, (height, width): (usize, usize)) -> (f32, f32) {
        let (dy, dx) = (y as f32 + 0.5 - 0.5 * height as f32, x as f32 + 0.5 - 0.5 * width as f32);
        (
            self.middle.0 + dy * self.down.0 + dx * self.across.0 - 0.5,
            self.middle.1 + dy * self.down.1 + dx * self.across.1 - 0.5,
        )
    }

    /// Shifts a colour and writes it normalised.
    pub(crate) fn develop(&self, colour: [f32; 3], to: &mut [f32], pixels: &Pixels) {
        let grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
        for c in 0..3 {
            let value =
                if self.saturation == 1.0 { colour[c] } else { grey + self.saturation * (colour[c] - grey) };
            let value = ((value - 0.5) * self.scale[c] + 0.5 + self.shift[c]).clamp(0.0, 1.0);
            to[c] = (value - pixels.mean[c]) / pixels.deviation[c];
        }
    }
}
