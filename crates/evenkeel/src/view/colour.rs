//! Colour jitter: brightness, contrast, saturation and hue in a drawn order, perhaps greyscale, each clipped to [0, 1].
//!
//! Every change is piecewise linear in the image, hue included: within one sextant of the colour wheel the shifted colour is a
//! linear function of red, green and blue. So each pullback is exact wherever the image is not on a seam.

use std::sync::Arc;

use super::key::{Bounds, Form, Key, STRETCH, Value};
use super::{Canvas, Crop, Placement, Resize, View, ViewKind, ViewRule};
use crate::image::Image;
use crate::random::Random;

const fn amount(name: &'static str, help: &'static str) -> Key {
    Key { name, help, form: Form::Number(Bounds::closed(0.0, 16.0)), default: None }
}

const BRIGHTNESS: Key = amount("brightness", "the factor is drawn from 1 - this (not below 0) to 1 + this");
const CONTRAST: Key = amount("contrast", "so for the factor about the mean grey of the image");
const SATURATION: Key = amount("saturation", "so for the factor about each pixel's own grey");
const HUE: Key = Key {
    name: "hue",
    help: "the most that hues are shifted either way, in turns of the colour wheel",
    form: Form::Number(Bounds::closed(0.0, 1.0)),
    default: None,
};
const GREYSCALE: Key = Key {
    name: "greyscale",
    help: "probability that only grey remains",
    form: Form::Number(Bounds::closed(0.0, 1.0)),
    default: Some(Value::Number(0.0)),
};
const CROP: Key = Key {
    name: "crop",
    help: "range of the share of each side of a window taken as well, instead of the stretch",
    form: Form::OptionalRange(Bounds::SHARE),
    default: Some(Value::Nothing),
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "colour",
    about: "other brightness, contrast, saturation and hue, then stretched or a window",
    keys: &[BRIGHTNESS, CONTRAST, SATURATION, HUE, GREYSCALE, STRETCH, CROP],
    draw,
};

fn draw(rule: &ViewRule, random: &mut Random) -> Arc<dyn View> {
    let factor = |random: &mut Random, key: &Key| {
        let amount = rule.number(key);
        random.uniform((1.0 - amount).max(0.0), 1.0 + amount)
    };
    let hue = rule.number(&HUE);
    let colour = Colour {
        brightness: factor(random, &BRIGHTNESS),
        contrast: factor(random, &CONTRAST),
        saturation: factor(random, &SATURATION),
        hue: random.uniform(-hue, hue),
        order: [0; 4],
        greyscale: random.chance(rule.number(&GREYSCALE)),
    };
    let order = random.order(4);
    let colour = Colour { order: std::array::from_fn(|i| order[i] as u8), ..colour };
    let then: Arc<dyn View> = match (rule.optional_range(&CROP), rule.range(&STRETCH)) {
        (Some(share), _) => Arc::new(Crop::draw(share, random)),
        (None, [low, high]) => Arc::new(Resize { height: 1.0, width: random.uniform(low, high) }),
    };
    Arc::new(Recolour { colour, then })
}

/// Other colours, then a view that moves pixels.
#[derive(Clone, Debug)]
pub struct Recolour {
    /// The change of colours.
    pub colour: Colour,
    /// Where pixels go afterwards.
    pub then: Arc<dyn View>,
}

impl View for Recolour {
    fn caption(&self) -> String {
        let Colour { brightness, contrast, saturation, hue, greyscale, .. } = self.colour;
        let grey = if greyscale { ", grey" } else { "" };
        format!(
            "colour, brightness x{brightness:.2}, contrast x{contrast:.2}, saturation x{saturation:.2}, hue \
             {hue:+.2}{grey}; {}",
            self.then.caption()
        )
    }

    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        self.then.place(size, canvas)
    }

    fn recolour(&self, image: &Image) -> Option<Image> {
        Some(self.colour.apply(image))
    }

    fn pull_recolour(&self, image: &Image, cotangent: Vec<f32>) -> Vec<f32> {
        self.colour.pullback(image, &cotangent)
    }
}

/// What grey weighs the channels with.
const LUMA: [f32; 3] = [0.2989, 0.587, 0.114];

/// A drawn change of colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    /// Factor on every value.
    pub brightness: f32,
    /// Factor about the mean grey of the image.
    pub contrast: f32,
    /// Factor about each pixel's own grey.
    pub saturation: f32,
    /// Shift around the colour wheel, in turns.
    pub hue: f32,
    /// The order of the four: a permutation of 0 (brightness), 1 (contrast), 2 (saturation), 3 (hue).
    pub order: [u8; 4],
    /// Whether only grey remains.
    pub greyscale: bool,
}

/// One change as it acts on planes `[3, h, w]`.
#[derive(Clone, Copy)]
enum Change {
    Brightness(f32),
    Contrast(f32),
    Saturation(f32),
    Hue(f32),
}

impl Colour {
    fn changes(&self) -> impl DoubleEndedIterator<Item = Change> + '_ {
        self.order.iter().map(|which| match which {
            0 => Change::Brightness(self.brightness),
            1 => Change::Contrast(self.contrast),
            2 => Change::Saturation(self.saturation),
            _ => Change::Hue(self.hue),
        })
    }

    /// The image in other colours.
    pub fn apply(&self, image: &Image) -> Image {
        let mut out = image.clone();
        for change in self.changes() {
            change.apply(out.pixels_mut());
        }
        if self.greyscale {
            Change::Saturation(0.0).apply(out.pixels_mut());
        }
        out
    }

    /// The pullback at `image`.
    pub fn pullback(&self, image: &Image, cotangent: &[f32]) -> Vec<f32> {
        let grey = self.greyscale.then_some(Change::Saturation(0.0));
        let changes: Vec<Change> = self.changes().chain(grey).collect();
        let mut before = Vec::with_capacity(changes.len());
        let mut pixels = image.pixels().to_vec();
        for change in &changes {
            before.push(pixels.clone());
            change.apply(&mut pixels);
        }
        let mut cotangent = cotangent.to_vec();
        for (change, before) in changes.iter().zip(&before).rev() {
            change.pullback(before, &mut cotangent);
        }
        cotangent
    }
}

fn grey(pixels: &[f32], plane: usize, i: usize) -> f32 {
    LUMA[0] * pixels[i] + LUMA[1] * pixels[plane + i] + LUMA[2] * pixels[2 * plane + i]
}

fn mean_grey(pixels: &[f32], plane: usize) -> f32 {
    ((0..plane).map(|i| f64::from(grey(pixels, plane, i))).sum::<f64>() / plane as f64) as f32
}

impl Change {
    fn apply(self, pixels: &mut [f32]) {
        let plane = pixels.len() / 3;
        let mean = if let Change::Contrast(_) = self { mean_grey(pixels, plane) } else { 0.0 };
        for i in 0..plane {
            let rgb = [0, 1, 2].map(|c| pixels[c * plane + i]);
            let changed = self.pixel(rgb, mean);
            (0..3).for_each(|c| pixels[c * plane + i] = changed[c].clamp(0.0, 1.0));
        }
    }

    fn pixel(self, rgb: [f32; 3], mean: f32) -> [f32; 3] {
        match self {
            Change::Brightness(f) => rgb.map(|v| f * v),
            Change::Contrast(f) => rgb.map(|v| f * v + (1.0 - f) * mean),
            Change::Saturation(f) => {
                let grey = (1.0 - f) * rgb.iter().zip(LUMA).map(|(v, w)| v * w).sum::<f32>();
                rgb.map(|v| f * v + grey)
            }
            Change::Hue(turns) => {
                let matrix = hue_matrix(rgb, turns);
                matrix.map(|row| row.iter().zip(rgb).map(|(m, v)| m * v).sum())
            }
        }
    }

    /// Overwrites the cotangent of the change's result with that of its argument.
    fn pullback(self, before: &[f32], cotangent: &mut [f32]) {
        let plane = before.len() / 3;
        let mean = if let Change::Contrast(_) = self { mean_grey(before, plane) } else { 0.0 };
        let mut to_mean = 0.0f64;
        for i in 0..plane {
            let rgb = [0, 1, 2].map(|c| before[c * plane + i]);
            let changed = self.pixel(rgb, mean);
            let open = [0, 1, 2].map(|c| {
                let inside = (0.0..=1.0).contains(&changed[c]);
                if inside { cotangent[c * plane + i] } else { 0.0 }
            });
            let back = match self {
                Change::Brightness(f) => open.map(|v| f * v),
                Change::Contrast(f) => {
                    to_mean += f64::from((1.0 - f) * open.iter().sum::<f32>());
                    open.map(|v| f * v)
                }
                Change::Saturation(f) => {
                    let grey = (1.0 - f) * open.iter().sum::<f32>();
                    [0, 1, 2].map(|c| f * open[c] + LUMA[c] * grey)
                }
                Change::Hue(turns) => {
                    let matrix = hue_matrix(rgb, turns);
                    [0, 1, 2].map(|c| (0..3).map(|r| matrix[r][c] * open[r]).sum())
                }
            };
            (0..3).for_each(|c| cotangent[c * plane + i] = back[c]);
        }
        if let Change::Contrast(_) = self {
            let share = (to_mean / plane as f64) as f32;
            (0..3 * plane).for_each(|i| cotangent[i] += LUMA[i / plane] * share);
        }
    }
}

/// The linear function of (r, g, b) that turns this colour's hue by `turns`, keeping its largest and smallest value.
///
/// With M and m the largest and smallest channel, C = M − m and hue·6 = k + d/C (d the difference of the other two), the shifted
/// hue·6 = j + p gives one channel M, one m, and the middle one m + pC or M − pC, where pC = d + (k + 6·turns − j)·C.
fn hue_matrix(rgb: [f32; 3], turns: f32) -> [[f32; 3]; 3] {
    let identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let top = (0..3).fold(0, |best, c| if rgb[c] > rgb[best] { c } else { best });
    let low = (0..3).fold(0, |best, c| if rgb[c] <= rgb[best] { c } else { best });
    let chroma = rgb[top] - rgb[low];
    if chroma <= 0.0 {
        return identity;
    }
    let (next, last) = ((top + 1) % 3, (top + 2) % 3);
    let base = 2.0 * top as f32;
    let sixths = (base + (rgb[next] - rgb[last]) / chroma + 6.0 * turns).rem_euclid(6.0);
    let sector = (sixths as usize).min(5);
    let unit = |c: usize| identity[c];
    let combine = |a: [f32; 3], s: f32, b: [f32; 3]| [0, 1, 2].map(|i| a[i] + s * b[i]);
    let (largest, smallest) = (unit(top), unit(low));
    let spread = combine(largest, -1.0, smallest);
    // p·C as a linear function; whole turns of the wheel go into the constant
    let whole = (sixths - (base + (rgb[next] - rgb[last]) / chroma)).round_to(6.0 * turns);
    let along = combine(combine(unit(next), -1.0, unit(last)), base + whole - sector as f32, spread);
    let rising = combine(smallest, 1.0, along);
    let falling = combine(largest, -1.0, along);
    match sector {
        0 => [largest, rising, smallest],
        1 => [falling, largest, smallest],
        2 => [smallest, largest, rising],
        3 => [smallest, falling, largest],
        4 => [rising, smallest, largest],
        _ => [largest, smallest, falling],
    }
}

/// The number nearest to `self` that differs from `shift` by a multiple of six: removes the rounding of a wrap-around.
trait RoundTo {
    fn round_to(self, shift: f32) -> f32;
}

impl RoundTo for f32 {
    fn round_to(self, shift: f32) -> f32 {
        shift + 6.0 * ((self - shift) / 6.0).round()
    }
}
