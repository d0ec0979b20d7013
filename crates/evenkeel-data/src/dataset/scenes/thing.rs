//! What stands in a street: trees, lamps, posts with signs or lights, bicycles, and the vehicles and people of their own files.

use super::canvas::{Canvas, Mark, Patch, Point};
use super::class;
use super::light::{Light, unit};
use super::person::{Dog, Person, limb};
use super::texture::{Colour, hue, mix, noise, rise, times, under};
use super::vehicle::Vehicle;
use evenkeel::Random;

/// A thing in the street.
#[derive(Clone, Debug)]
pub(super) enum Thing {
    /// With the tangent of half its turn.
    Vehicle(Vehicle, f32),
    Person(Person),
    Tree(Tree),
    /// With the side of the street it stands on.
    Lamp(Lamp, f32),
    Post(Post),
    Dog(Dog),
    Bicycle(Bicycle),
}

/// Width, length and height of a thing's shadow.
pub(super) struct Shade {
    pub(super) half_width: f32,
    pub(super) half_length: f32,
    pub(super) height: f32,
}

impl Thing {
    pub(super) fn class(&self) -> u8 {
        match self {
            Thing::Vehicle(..) => class::CAR,
            Thing::Person(_) => class::PERSON,
            Thing::Tree(_) => class::TREE,
            Thing::Lamp(..) | Thing::Post(_) => class::POLE,
            Thing::Dog(_) | Thing::Bicycle(_) => class::GRASS,
        }
    }

    /// Whether it is counted as an instance.
    pub(super) fn is_instance(&self) -> bool {
        matches!(self, Thing::Vehicle(..) | Thing::Person(_))
    }

    pub(super) fn shade(&self) -> Shade {
        let of = |half_width, half_length, height| Shade { half_width, half_length, height };
        match self {
            Thing::Vehicle(v, turn) => {
                let cosine = ((1.0 - turn * turn) / (1.0 + turn * turn)).abs();
                let sine = (2.0 * turn / (1.0 + turn * turn)).abs();
                let (w, l) = (v.width() * 0.56, v.length() * 0.52);
                of(w * cosine + l * sine, l * cosine + w * sine, v.height() * 0.5)
            }
            Thing::Person(p) => of(0.28, 0.2, p.height() * 0.8),
            Thing::Tree(t) => of(t.radius * 0.8, t.radius * 0.6, t.height * 0.7),
            Thing::Lamp(..) | Thing::Post(_) => of(0.15, 0.15, 2.0),
            Thing::Dog(d) => of(d.height() * 0.6, 0.2, 0.4),
            Thing::Bicycle(_) => of(0.8, 0.15, 0.6),
        }
    }

    /// Paints it at its place, marked as instance number `instance`.
    pub(super) fn paint(&self, canvas: &mut Canvas, light: &Light, instance: u8, foot: Point) {
        let mark = class::mark(self.class(), instance);
        match self {
            Thing::Vehicle(vehicle, turn) => vehicle.paint(canvas, light, mark, foot, *turn),
            Thing::Person(person) => person.paint(canvas, light, mark, foot),
            Thing::Tree(tree) => tree.paint(canvas, light, mark, foot),
            Thing::Lamp(lamp, sign) => lamp.paint(canvas, light, mark, foot, *sign),
            Thing::Post(post) => post.paint(canvas, light, foot),
            Thing::Dog(dog) => dog.paint(canvas, light, mark, foot),
            Thing::Bicycle(bicycle) => bicycle.paint(canvas, light, mark, foot),
        }
    }
}

/// A tree: a trunk and a crown of blobs, a cone, or a tall ellipse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) height: f32,
    pub(super) radius: f32,
    shape: Crown,
    leaf: Colour,
    bark: Colour,
    /// Sizes of the crown's blobs, as shares of its radius.
    blobs: [f32; 6],
    seed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crown {
    Round,
    Cone,
    Tall,
}

impl Tree {
    pub(super) fn draw(random: &mut Random, scale: f32) -> Self {
        let shape = [Crown::Round, Crown::Round, Crown::Round, Crown::Cone, Crown::Tall][random.below(5)];
        let height = scale * random.uniform(3.4, 8.0);
        let autumn = random.chance(0.2);
        let leaf_hue = if autumn { random.uniform(0.02, 0.16) } else { random.uniform(0.2, 0.38) };
        Self {
            height,
            radius: height
                * match shape {
                    Crown::Round => random.uniform(0.28, 0.42),
                    Crown::Cone => random.uniform(0.2, 0.3),
                    Crown::Tall => random.uniform(0.12, 0.17),
                },
            shape,
            leaf: hue(leaf_hue, random.uniform(0.4, 0.75), random.uniform(0.3, 0.66)),
            bark: hue(random.uniform(0.04, 0.1), random.uniform(0.2, 0.5), random.uniform(0.2, 0.45)),
            blobs: [0; 6].map(|_| random.uniform(0.52, 0.72)),
            seed: random.bits(),
        }
    }

    /// The same kind of tree, grown a little differently.
    pub(super) fn varied(&self, random: &mut Random) -> Self {
        let scale = random.uniform(0.8, 1.2);
        let blobs = [0; 6].map(|_| random.uniform(0.52, 0.72));
        Self { height: self.height * scale, radius: self.radius * scale, blobs, seed: random.bits(), ..*self }
    }

    pub(super) fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, foot: Point) {
        let patch = Patch::facing(foot, self.radius * 1.15, self.height);
        let trunk = 0.035 * self.height;
        let crown_foot = self.height * if self.shape == Crown::Round { 0.3 } else { 0.12 };
        let shaded = light.in_shade();
        let bark = light.on([0.0, 0.1, -1.0]);
        canvas.paint(&patch, mark, |u, v, z| {
            if let Some((nx, ny, edge)) = self.crown(u, v) {
                let grain = 1.6 + 26.0 / (z + 5.0);
                let leaves = 0.6 * noise(u * grain, v * grain, self.seed)
                    + 0.4 * noise(u * 2.7 * grain, v * 2.7 * grain, self.seed ^ 77);
                if edge > 0.72 + 0.5 * leaves {
                    return self.trunk(u, v, trunk, crown_foot, bark);
                }
                let normal = unit([nx, ny + 0.25, -0.75]);
                let depth = 0.62 + 0.55 * leaves;
                let lit = mix(shaded, light.on(normal), 0.25 + 0.75 * leaves);
                return Some(under(times(self.leaf, depth), lit));
            }
            self.trunk(u, v, trunk, crown_foot, bark)
        });
    }

    fn trunk(&self, u: f32, v: f32, half: f32, crown_foot: f32, lit: Colour) -> Option<Colour> {
        let width = half * (1.0 + 0.6 * rise(v, 0.5, 0.0));
        let inside = v < crown_foot + self.radius * 0.4 && u.abs() < width;
        inside.then(|| under(times(self.bark, 0.8 + 0.4 * noise(u * 9.0, v * 2.0, self.seed)), lit))
    }

    /// Where on the crown this is: its rough normal, and how near the edge (1 at the edge).
    fn crown(&self, u: f32, v: f32) -> Option<(f32, f32, f32)> {
        let (h, r) = (self.height, self.radius);
        match self.shape {
            Crown::Round => {
                let mut best: Option<(f32, f32, f32)> = None;
                for (size, (bx, by)) in self.blobs.iter().zip(BLOBS) {
                    let size = r * size;
                    let (x, y) = ((u - bx * r) / size, (v - (h - r * 1.15) - by * r) / size);
                    let out = x * x + y * y;
                    if out < 1.15 && best.is_none_or(|b| out < b.2) {
                        best = Some((x * 0.7 + bx * 0.5, y * 0.7 + by * 0.5, out));
                    }
                }
                best
            }
            Crown::Cone => {
                let t = (v - 0.1 * h) / (0.9 * h);
                let tier = 0.82 + 0.18 * (1.0 - super::texture::part(t * 5.0));
                let half = r * (1.0 - t) * tier;
                let out = u.abs() / half.max(0.01);
                (t > 0.0 && out < 1.15).then_some((u / half.max(0.01), 0.3, out))
            }
            Crown::Tall => {
                let (x, y) = (u / r, (v - 0.54 * h) / (0.46 * h));
                let out = x * x + y * y;
                (out < 1.15).then_some((x, y * 0.4, out))
            }
        }
    }
}

const BLOBS: [(f32, f32); 6] =
    [(0.0, 0.1), (-0.46, -0.12), (0.46, -0.1), (-0.26, 0.42), (0.28, 0.4), (0.02, -0.42)];

/// A street lamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lamp {
    height: f32,
    half: f32,
    arm: f32,
    colour: Colour,
}

impl Lamp {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            height: random.uniform(4.0, 7.5),
            half: random.uniform(0.11, 0.17),
            arm: if random.chance(0.6) { random.uniform(0.9, 1.8) } else { 0.0 },
            colour: hue(random.unit(), random.unit() * 0.3, random.uniform(0.12, 0.6)),
        }
    }

    fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, foot: Point, sign: f32) {
        let patch = Patch::facing(foot, self.arm + 0.6, self.height + 0.5);
        let (arm, h) = (self.arm, self.height);
        let glow = if light.lit > 0.3 { [1.0, 0.9, 0.62] } else { times(light.ambient, 1.3) };
        canvas.paint(&patch, mark, |u, v, _| {
            let x = -sign * u; // towards the road
            let shaft = x.abs() < self.half * (1.0 + 0.7 * rise(v, 0.8, 0.0)) && v < h;
            let boom = arm > 0.0 && limb((x, v), (0.0, h - 0.1), (arm, h + 0.15), (0.11, 0.1));
            let head = if arm > 0.0 {
                (x - arm).abs() < 0.42 && (v - h - 0.08).abs() < 0.14
            } else {
                x * x + (v - h) * (v - h) < 0.09
            };
            if head {
                return Some(if v < h + 0.04 || arm == 0.0 { glow } else { times(self.colour, 0.8) });
            }
            let across = (x / self.half).clamp(-1.0, 1.0) * sign;
            let normal = [-across * 0.8, 0.1, -0.6];
            (shaft || boom).then(|| under(self.colour, light.on(unit(normal))))
        });
    }
}

/// A post with a sign or a traffic light on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Post {
    height: f32,
    half: f32,
    plate: f32,
    shape: Plate,
    field: Colour,
    border: Colour,
    bar: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plate {
    Disc,
    Triangle,
    Results,
    Lights,
}

impl Post {
    pub(super) fn draw(random: &mut Random) -> Self {
        let shape = [Plate::Disc, Plate::Triangle, Plate::Results, Plate::Lights][random.below(4)];
        Self::of(random, shape)
    }

    pub(super) fn sign(random: &mut Random) -> Self {
        let shape = [Plate::Disc, Plate::Triangle, Plate::Results][random.below(3)];
        Self::of(random, shape)
    }

    pub(super) fn traffic_light(random: &mut Random) -> Self {
        Self::of(random, Plate::Lights)
    }

    fn of(random: &mut Random, shape: Plate) -> Self {
        let blue = random.chance(0.35);
        let (field, border) = match shape {
            Plate::Disc if blue => ([0.1, 0.3, 0.72], [0.95; 3]),
            Plate::Results => {
                (hue([0.6, 0.38, 0.13, 0.02][random.below(4)], 0.75, random.uniform(0.45, 0.85)), [0.95; 3])
            }
            _ => ([0.94, 0.94, 0.92], [0.8, 0.1, 0.1]),
        };
        Self {
            height: random.uniform(2.3, 3.1),
            half: random.uniform(0.09, 0.13),
            plate: random.uniform(0.42, 0.58),
            shape,
            field,
            border,
            bar: random.bits(),
        }
    }

    pub(super) fn height(&self) -> f32 {
        self.height + 2.0 * self.plate
    }

    fn paint(&self, canvas: &mut Canvas, light: &Light, foot: Point) {
        let lit = light.on([0.0, 0.1, -1.0]);
        let shaft = Patch::facing(foot, self.half, self.height + self.plate);
        canvas.paint(&shaft, class::mark(class::POLE, 0), |u, _, _| {
            let normal = unit([u / self.half * 0.8, 0.1, -0.6]);
            Some(under([0.5, 0.51, 0.53], light.on(normal)))
        });
        let middle = self.height + self.plate;
        let plate = Patch { v_range: (self.height - 0.4, middle + 1.2), ..Patch::facing(foot, 0.8, 1.0) };
        canvas.paint(&plate, class::mark(class::SIGN, 0), |u, v, _| {
            self.face(u / self.plate, (v - middle) / self.plate, lit)
        });
    }

    /// The colour of the plate at a place, in shares of its size.
    fn face(&self, x: f32, y: f32, lit: Colour) -> Option<Colour> {
        let glyph = ((self.bar >> 3) & 3) as f32 * 0.12;
        match self.shape {
            Plate::Disc => {
                let out = x * x + y * y;
                let bar = (y - 0.2 * x).abs() < 0.12 + glyph * 0.3 && x.abs() < 0.62;
                let colour = if out > 0.62 {
                    self.border
                } else if bar {
                    [0.12; 3]
                } else {
                    self.field
                };
                (out < 1.0).then(|| under(colour, lit))
            }
            Plate::Triangle => {
                let edge = (x.abs() * 1.732 + y - 1.0).max(-y - 0.75);
                let bar = x.abs() < 0.09 + glyph * 0.3 && y > -0.4 && y < 0.4;
                let colour = if edge > -0.32 {
                    self.border
                } else if bar {
                    [0.1; 3]
                } else {
                    self.field
                };
                (edge < 0.0).then(|| under(colour, lit))
            }
            Plate::Results => {
                let inside = x.abs() < 1.15 && y.abs() < 0.8;
                let rim = x.abs() > 1.05 || y.abs() > 0.7;
                let line = x.abs() < 0.8 - glyph && ((y - 0.25).abs() < 0.1 || (y + 0.25).abs() < 0.1);
                inside.then(|| under(if rim || line { self.border } else { self.field }, lit))
            }
            Plate::Lights => {
                let inside = x.abs() < 0.5 && y > -1.0 && y < 1.15;
                let lamp = |at: f32| x * x + (y - at) * (y - at) < 0.085;
                let on = self.bar % 3;
                let glow = |k: u32, colour: Colour| if on == k { colour } else { times(colour, 0.22) };
                inside.then(|| {
                    if lamp(0.75) {
                        glow(0, [1.0, 0.16, 0.1])
                    } else if lamp(0.07) {
                        glow(1, [1.0, 0.74, 0.12])
                    } else if lamp(-0.6) {
                        glow(2, [0.2, 0.95, 0.45])
                    } else {
                        under([0.1, 0.11, 0.11], lit)
                    }
                })
            }
        }
    }
}

/// A bicycle, seen from its side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bicycle {
    wheel: f32,
    frame: Colour,
    way: f32,
    basket: bool,
}

impl Bicycle {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            wheel: random.uniform(0.3, 0.36),
            frame: hue(random.unit(), random.unit() * 0.8, random.uniform(0.15, 0.85)),
            way: if random.chance(0.5) { 1.0 } else { -1.0 },
            basket: random.chance(0.4),
        }
    }

    fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, foot: Point) {
        let patch = Patch::facing(foot, 1.0, 1.15);
        let lit = light.on([0.0, 0.3, -0.95]);
        canvas.paint(&patch, mark, |u, v, _| Some(under(self.colour(self.way * u, v)?, lit)));
    }

    fn colour(&self, x: f32, y: f32) -> Option<Colour> {
        let r = self.wheel;
        for hub in [-0.54, 0.54] {
            let out = ((x - hub) * (x - hub) + (y - r) * (y - r)).sqrt();
            if (out - r + 0.03).abs() < 0.035 {
                return Some([0.09; 3]);
            }
            if out < 0.045 {
                return Some([0.5; 3]);
            }
        }
        let p = (x, y);
        let tube = |a, b| limb(p, a, b, (0.03, 0.03));
        if limb(p, (-0.34, 0.93), (-0.14, 0.93), (0.045, 0.03))
            || limb(p, (0.36, 1.0), (0.52, 1.02), (0.03, 0.03))
        {
            return Some([0.12; 3]);
        }
        if self.basket && (0.5..0.8).contains(&x) && (0.68..0.92).contains(&y) {
            return Some([0.55, 0.42, 0.25]);
        }
        let crank = (-0.06, 0.3);
        let frame = tube((-0.54, r), crank)
            || tube(crank, (-0.24, 0.9))
            || tube((-0.22, 0.8), (0.36, 0.82))
            || tube(crank, (0.36, 0.8))
            || tube((-0.54, r), (-0.22, 0.78))
            || tube((0.54, r), (0.4, 1.0));
        frame.then_some(self.frame)
    }
}
