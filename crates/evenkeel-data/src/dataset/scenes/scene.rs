//! A scene: street, camera and light put together, painted, and read off as image, labels and instances.
//!
//! Painting goes from near to far: things, plots, backdrop, ground, sky; then the things' shadows fall on what lies behind them. Four samples make a pixel: its colour is their
//! mean with a little vignette and sensor noise, rounded to eight bits; its label is what most of them show.

use super::canvas::{Camera, Canvas, FINE, Mark, Patch};
use super::ground::{paint_backdrop, paint_ground, paint_plots, paint_sky};
use super::street::{Placed, Street};
use super::texture::{hash, rise};
use super::thing::Thing;
use evenkeel::{Image, LabelMap, Random};

/// A rendered scene and what is true of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The picture, in steps of 1/255.
    pub image: Image,
    /// A class for every pixel.
    pub labels: LabelMap,
    /// Which instance every pixel shows, counted from 1; 0 for none.
    pub instances: Vec<u8>,
    /// The class of each instance.
    pub instance_classes: Vec<u8>,
}

/// Most instances a scene can have: the nearest ones.
const MOST_INSTANCES: usize = 254;

/// Renders the scene of a seed at a size. The same seed shows the same street at every size.
///
/// # Panics
/// If a side is zero.
pub fn render(seed: u64, height: usize, width: usize) -> Scene {
    assert!(height > 0 && width > 0, "a scene needs at least one pixel");
    let mut random = Random::new(seed);
    let street = Street::draw(&mut random);
    let fine = (height * FINE) as f32;
    let camera = Camera {
        centre: (width * FINE) as f32 * (0.5 + random.uniform(-0.16, 0.16)),
        horizon: fine * random.uniform(0.36, 0.52),
        focal: fine * random.uniform(0.95, 1.5),
        height: random.uniform(1.35, 2.5),
    };
    let mut canvas = Canvas::new(width * FINE, height * FINE, camera, street.light.air);
    let (instance_classes, front) = paint_things(&mut canvas, &street);
    paint_behind(&mut canvas, &street);
    for placed in &street.placed {
        paint_shadow(&mut canvas, &street, placed, front);
    }
    let sensor = Sensor::draw(&mut random);
    sensor.read(&canvas, instance_classes)
}

/// Everything behind the things of a street.
pub(super) fn paint_behind(canvas: &mut Canvas, street: &Street) {
    paint_plots(canvas, street);
    canvas.next_layer();
    paint_backdrop(canvas, street);
    canvas.next_layer();
    paint_ground(canvas, street);
    paint_sky(canvas, &street.light, street.seed);
}

/// The things of the street from near to far; returns the classes of the instances, numbered from the farthest, and the last layer.
fn paint_things(canvas: &mut Canvas, street: &Street) -> (Vec<u8>, u16) {
    let instances = street.placed.iter().filter(|p| p.thing.is_instance());
    let classes: Vec<u8> = instances.map(|p| p.thing.class()).collect();
    let left_out = classes.len().saturating_sub(MOST_INSTANCES);
    let mut front = 0;
    let mut number = classes.len();
    for placed in street.placed.iter().rev() {
        let mut instance = 0;
        if placed.thing.is_instance() {
            instance = number.saturating_sub(left_out) as u8;
            number -= 1;
        }
        front = canvas.next_layer();
        placed.thing.paint(canvas, &street.light, instance, street.point(placed.s, 0.0, placed.z));
    }
    (classes[left_out..].to_vec(), front)
}

/// A soft dark ellipse under a thing, drawn out away from the sun, on all that lies behind the layer `front`.
pub(super) fn paint_shadow(canvas: &mut Canvas, street: &Street, placed: &Placed, front: u16) {
    let light = &street.light;
    let shade = placed.thing.shade();
    let strength = light.sun[1] / (light.sun[1] + light.ambient[1]);
    let foot = street.point(placed.s, 0.0, placed.z);
    let away = [-light.to_sun[0] / light.to_sun[1], -light.to_sun[2] / light.to_sun[1]];
    let cast = [away[0] * shade.height * 0.5, away[1] * shade.height * 0.5];
    let contact = match placed.thing {
        Thing::Vehicle(..) => 0.62,
        _ => 0.35,
    };
    let ellipse = |centre: [f32; 2], half: [f32; 2], dark: f32, canvas: &mut Canvas| {
        let patch = Patch {
            origin: [foot[0] + centre[0], 0.0, foot[2] + centre[1]],
            u: [1.0, 0.0, 0.0],
            v: [0.0, 0.0, 1.0],
            u_range: (-half[0], half[0]),
            v_range: (-half[1], half[1]),
        };
        canvas.darken(&patch, front, |u, v| {
            let out = (u * u) / (half[0] * half[0]) + (v * v) / (half[1] * half[1]);
            1.0 - dark * rise(out, 1.0, 0.55)
        });
    };
    ellipse([0.0; 2], [shade.half_width * 1.1, shade.half_length * 1.1], contact, canvas);
    let reach = [shade.half_width + cast[0].abs(), shade.half_length + cast[1].abs()];
    ellipse(cast, reach, 0.75 * strength, canvas);
}

/// What happens between light and file: vignette, noise, eight bits.
pub(super) struct Sensor {
    noise: f32,
    vignette: f32,
    seed: u32,
}

impl Sensor {
    pub(super) fn draw(random: &mut Random) -> Self {
        let noise = random.uniform(0.004, 0.03);
        Self { noise, vignette: random.uniform(0.0, 0.3), seed: random.bits() }
    }

    pub(super) fn read(&self, canvas: &Canvas, instance_classes: Vec<u8>) -> Scene {
        let (height, width) = (canvas.height / FINE, canvas.width / FINE);
        let plane = height * width;
        let mut pixels = vec![0.0; 3 * plane];
        let mut labels = vec![0u16; plane];
        let mut instances = vec![0u8; plane];
        for y in 0..height {
            for x in 0..width {
                let at =
                    [0, 1, canvas.width, canvas.width + 1].map(|step| FINE * (y * canvas.width + x) + step);
                let (dx, dy) = (2.0 * x as f32 / width as f32 - 1.0, 2.0 * y as f32 / height as f32 - 1.0);
                let shade = 1.0 - self.vignette * (dx * dx + dy * dy) * 0.5;
                for c in 0..3 {
                    let sum = canvas.colour[at[0]][c]
                        + canvas.colour[at[1]][c]
                        + canvas.colour[at[2]][c]
                        + canvas.colour[at[3]][c];
                    let value = developed(sum * 0.25 * shade) + self.noise * self.hiss(x, y, c);
                    pixels[c * plane + y * width + x] = eight_bits(value);
                }
                let mark = most(at.map(|k| canvas.mark[k]));
                labels[y * width + x] = mark >> 8;
                instances[y * width + x] = mark as u8;
            }
        }
        Scene {
            image: Image::new(height, width, pixels).expect("three planes of this size"),
            labels: LabelMap::new(height, width, labels).expect("one plane of this size"),
            instances,
            instance_classes,
        }
    }

    /// Noise of mean zero and deviation one: the sum of four uniform draws, scaled.
    fn hiss(&self, x: usize, y: usize, channel: usize) -> f32 {
        let bits = hash(x as i32, (3 * y + channel) as i32, self.seed);
        let sum: u32 = (0..4).map(|k| (bits >> (8 * k)) & 255).sum();
        (sum as f32 - 510.0) * (1.0 / 147.8)
    }
}

/// The film's curve: middle tones are lifted, and bright light runs into white gently.
fn developed(v: f32) -> f32 {
    let v = if v < 0.8 { v } else { 0.8 + 0.2 * (v - 0.8) / (v - 0.6) };
    v * (1.5 - 0.5 * v)
}

fn eight_bits(v: f32) -> f32 {
    (v.clamp(0.0, 1.0) * 255.0 + 0.5) as u8 as f32 / 255.0
}

/// The commonest of four marks; the first of equals.
fn most(marks: [Mark; 4]) -> Mark {
    let count = |mark: Mark| marks.iter().filter(|m| **m == mark).count();
    let mut best = marks[0];
    for mark in marks {
        if count(mark) > count(best) {
            best = mark;
        }
    }
    best
}
