//! Cars, vans, trucks and buses: boxes in space with wheels, windows and lights, seen from any side.
//!
//! A vehicle has its own axes: `along` from tail to nose, `across` to its right. Of its faces only those turned to the camera
//! are painted, the far ones first.

use super::canvas::{Canvas, Mark, Patch, Point, cross};
use super::light::Light;
use super::texture::{Colour, hue, mix, part, rise, times, under};
use evenkeel::Random;

/// The shape of a vehicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Saloon,
    Hatch,
    Van,
    Truck,
    Bus,
}

/// A vehicle, without its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vehicle {
    body: Body,
    length: f32,
    width: f32,
    height: f32,
    /// Height of the waist, where the cabin begins.
    waist: f32,
    paint: Colour,
    second: Colour,
    wheel: f32,
    lights: bool,
}

/// A vehicle at its place: the middle of its footprint and its axes.
struct Stand<'a> {
    light: &'a Light,
    mark: Mark,
    middle: Point,
    along: Point,
    across: Point,
}

/// A box of the vehicle: from, to along; half width; from, to up; how far the upper edge is drawn in along and across.
#[derive(Clone, Copy)]
struct Block {
    along: (f32, f32),
    half: f32,
    up: (f32, f32),
    lean: (f32, f32, f32), // tail, nose, sides
}

impl Vehicle {
    /// A car or, now and then, a van.
    pub(super) fn of_street(random: &mut Random) -> Self {
        let body =
            [Body::Saloon, Body::Saloon, Body::Hatch, Body::Hatch, Body::Hatch, Body::Van][random.below(6)];
        Self::draw(random, body)
    }

    pub(super) fn draw(random: &mut Random, body: Body) -> Self {
        let (length, width, height, waist) = match body {
            Body::Saloon => (4.5, 1.8, 1.45, 0.92),
            Body::Hatch => (3.9, 1.72, 1.52, 0.94),
            Body::Van => (4.9, 1.95, 2.1, 1.15),
            Body::Truck => (6.8, 2.3, 2.9, 1.3),
            Body::Bus => (10.5, 2.5, 3.1, 1.3),
        };
        let scale = random.uniform(0.93, 1.08);
        let grey = random.uniform(0.08, 0.95);
        let colourful = hue(random.unit(), random.uniform(0.45, 0.9), random.uniform(0.35, 0.9));
        Self {
            body,
            length: length * scale,
            width: width * random.uniform(0.96, 1.04),
            height: height * scale,
            waist: waist * scale,
            paint: if random.chance(0.45) { [grey; 3] } else { colourful },
            second: hue(random.unit(), random.unit() * 0.7, random.uniform(0.3, 0.95)),
            wheel: random.uniform(0.29, 0.36)
                * if matches!(body, Body::Truck | Body::Bus) { 1.4 } else { 1.0 },
            lights: random.chance(0.5),
        }
    }

    pub(super) fn length(&self) -> f32 {
        self.length
    }

    pub(super) fn width(&self) -> f32 {
        self.width
    }

    pub(super) fn height(&self) -> f32 {
        self.height
    }

    /// Paints it with its middle at `middle`. `turn` is the tangent of half the angle from the street's direction, to the right.
    pub(super) fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, middle: Point, turn: f32) {
        let norm = 1.0 + turn * turn;
        let (cosine, sine) = ((1.0 - turn * turn) / norm, 2.0 * turn / norm);
        let (along, across) = ([sine, 0.0, cosine], [cosine, 0.0, -sine]);
        let stand = Stand { light, mark, middle, along, across };
        for (part, block) in self.blocks().into_iter().enumerate() {
            self.paint_block(canvas, &stand, part, block);
        }
    }

    fn blocks(&self) -> Vec<Block> {
        let (l, h) = (self.length * 0.5, self.width * 0.5);
        let floor = self.wheel * 0.75;
        let lower = Block { along: (-l, l), half: h, up: (floor, self.waist), lean: (0.06, 0.1, 0.03) };
        let cabin = |from: f32, to: f32, lean: (f32, f32, f32)| Block {
            along: (from, to),
            half: h * 0.97,
            up: (self.waist, self.height),
            lean,
        };
        match self.body {
            Body::Saloon => vec![lower, cabin(-l * 0.72, l * 0.42, (0.5, 0.75, 0.2))],
            Body::Hatch => vec![lower, cabin(-l * 0.97, l * 0.48, (0.25, 0.7, 0.18))],
            Body::Van => vec![lower, cabin(-l, l * 0.66, (0.05, 0.55, 0.1))],
            Body::Bus => vec![lower, cabin(-l, l, (0.03, 0.08, 0.04))],
            Body::Truck => vec![
                Block { along: (-l, l), up: (floor, self.waist * 0.7), ..lower },
                Block {
                    along: (-l, l * 0.42),
                    half: h * 1.04,
                    up: (self.waist * 0.7, self.height),
                    lean: (0.0, 0.0, 0.0),
                },
                Block {
                    along: (l * 0.46, l),
                    half: h * 0.95,
                    up: (self.waist * 0.7, self.height * 0.82),
                    lean: (0.0, 0.22, 0.08),
                },
            ],
        }
    }

    fn paint_block(&self, canvas: &mut Canvas, stand: &Stand<'_>, part: usize, block: Block) {
        let low = [(block.along.0, block.half), (block.along.1, block.half)];
        let high = [
            (block.along.0 + block.lean.0, block.half - block.lean.2),
            (block.along.1 - block.lean.1, block.half - block.lean.2),
        ];
        let eye = [0.0, canvas.camera.height, 0.0];
        // The top, then the two ends, then the two sides.
        let at = |(a, s): (f32, f32), up: f32| stand.at(a, s, up);
        let top = [
            at((high[0].0, -high[0].1), block.up.1),
            at((high[0].0, high[0].1), block.up.1),
            at((high[1].0, -high[1].1), block.up.1),
        ];
        let roof = Face {
            kind: Kind::Top,
            part,
            width: 2.0 * high[0].1,
            height: high[1].0 - high[0].0,
            taper: (0.0, 0.0),
        };
        self.paint_face(canvas, stand, eye, top, roof);
        for end in [0, 1] {
            let flip = if end == 0 { -1.0 } else { 1.0 };
            let corners = [
                at((low[end].0, flip * low[end].1), block.up.0),
                at((low[end].0, -flip * low[end].1), block.up.0),
                at((high[end].0, flip * low[end].1), block.up.1),
            ];
            let kind = if end == 0 { Kind::Tail } else { Kind::Nose };
            let face = Face {
                kind,
                part,
                width: 2.0 * low[end].1,
                height: 0.0,
                taper: (block.lean.2, block.lean.2),
            };
            self.paint_face(canvas, stand, eye, corners, face);
        }
        for side in [-1.0, 1.0] {
            let (from, to) = if side > 0.0 { (0, 1) } else { (1, 0) };
            let corners = [
                at((low[from].0, side * low[from].1), block.up.0),
                at((low[to].0, side * low[to].1), block.up.0),
                at((low[from].0, side * high[from].1), block.up.1),
            ];
            let lean = [block.lean.0, block.lean.1];
            let face = Face {
                kind: Kind::Side { from_tail: side > 0.0 },
                part,
                width: block.along.1 - block.along.0,
                height: 0.0,
                taper: (lean[from], lean[to]),
            };
            self.paint_face(canvas, stand, eye, corners, face);
        }
        let sides = if part == 0 { [-1.0, 1.0] } else { return };
        for side in sides {
            self.paint_wheels(canvas, stand, eye, side);
        }
    }

    /// Paints a face given by its lower left, lower right and upper left corners as seen from outside, if it is turned to the eye.
    fn paint_face(
        &self,
        canvas: &mut Canvas,
        stand: &Stand<'_>,
        eye: Point,
        corners: [Point; 3],
        face: Face,
    ) {
        let [a, b, c] = corners;
        let (u, width) = measured(a, b);
        let (v, height) = measured(a, c);
        let normal = cross(v, u);
        let to_eye = [0, 1, 2].map(|k| eye[k] - a[k]);
        let facing = normal[0] * to_eye[0] + normal[1] * to_eye[1] + normal[2] * to_eye[2];
        // What is seen edge on is too thin to show.
        if facing <= 0.02 {
            return;
        }
        let lit = stand.light.on(normal);
        let sky = mix(stand.light.zenith, stand.light.horizon, 0.6);
        let patch = Patch { origin: a, u, v, u_range: (0.0, width), v_range: (0.0, height) };
        let face = Face { width, height, ..face };
        canvas.paint(&patch, stand.mark, |u, v, _| {
            let t = v / height;
            let inside = u > t * face.taper.0 && u < width - t * face.taper.1;
            inside.then(|| self.face_colour(&face, u, v, lit, sky))
        });
    }

    fn face_colour(&self, face: &Face, u: f32, v: f32, lit: Colour, sky: Colour) -> Colour {
        let (x, y) = (u / face.width, v / face.height);
        let cargo = self.body == Body::Truck && face.part == 1;
        let body = if cargo { self.second } else { self.paint };
        let glass = mix(times(sky, 0.5), [0.08, 0.1, 0.13], 0.45 + 0.3 * y);
        let glazed = !cargo && (face.part > 0 || self.body == Body::Bus);
        let sheen = 0.9 + 0.16 * y;
        match face.kind {
            Kind::Top => under(times(body, 1.02), lit),
            Kind::Side { from_tail } => {
                let x = if from_tail { x } else { 1.0 - x };
                if glazed && self.side_glass(face.part, x, y) {
                    return glass;
                }
                let sill = face.part == 0 && y < 0.12;
                let seam = face.part == 0 && ((x - 0.36).abs() < 0.004 || (x - 0.62).abs() < 0.004);
                let stripe = self.body == Body::Bus && face.part == 0 && (0.6..0.8).contains(&y);
                let base = if stripe { self.second } else { body };
                under(
                    times(
                        base,
                        sheen
                            * if sill {
                                0.5
                            } else if seam {
                                0.7
                            } else {
                                1.0
                            },
                    ),
                    lit,
                )
            }
            Kind::Tail | Kind::Nose => {
                if glazed && y > 0.14 && y < 0.88 && (0.08..0.92).contains(&x) {
                    return glass;
                }
                if face.part == 0 {
                    return self.end_colour(face.kind == Kind::Nose, x, y, lit);
                }
                under(times(body, sheen), lit)
            }
        }
    }

    fn side_glass(&self, part: usize, x: f32, y: f32) -> bool {
        let high = y > 0.14 && y < 0.86;
        match self.body {
            Body::Saloon | Body::Hatch => high && x > 0.07 && x < 0.9 && (x - 0.5).abs() > 0.025,
            Body::Van => high && x > 0.62 && x < 0.93,
            Body::Truck => part == 2 && high && x > 0.2 && x < 0.85,
            Body::Bus => part > 0 && y > 0.15 && y < 0.72 && super::texture::part(x * 7.0) > 0.1,
        }
    }

    /// Lights, plate, grille and bumper.
    fn end_colour(&self, nose: bool, x: f32, y: f32, lit: Colour) -> Colour {
        let side = (x - 0.5).abs();
        if side > 0.33 && side < 0.47 && y > 0.5 && y < 0.82 {
            let on = if nose { [1.0, 0.97, 0.86] } else { [0.95, 0.1, 0.08] };
            let off = if nose { [0.75, 0.77, 0.8] } else { [0.55, 0.07, 0.07] };
            return if self.lights { on } else { under(off, lit) };
        }
        if side < 0.13 && y > 0.34 && y < 0.5 {
            return under([0.88, 0.88, 0.8], lit);
        }
        if nose && side < 0.27 && y > 0.52 && y < 0.74 {
            let bar = if part(y * 14.0) < 0.5 { 0.1 } else { 0.28 };
            return under([bar; 3], lit);
        }
        let bumper = y < 0.3;
        under(times(self.paint, if bumper { 0.6 } else { 0.95 }), lit)
    }

    fn paint_wheels(&self, canvas: &mut Canvas, stand: &Stand<'_>, eye: Point, side: f32) {
        let r = self.wheel;
        let axles: &[f32] = match self.body {
            Body::Truck => &[-0.33, -0.2, 0.33],
            _ => &[-0.3, 0.31],
        };
        for axle in axles {
            let centre = stand.at(axle * self.length, side * (self.width * 0.5 + 0.02), r);
            let u = stand.along.map(|v| v * side);
            let normal = cross([0.0, 1.0, 0.0], u);
            let facing: f32 = (0..3).map(|k| normal[k] * (eye[k] - centre[k])).sum();
            if facing <= 0.0 {
                continue;
            }
            let patch = Patch { origin: centre, u, v: [0.0, 1.0, 0.0], u_range: (-r, r), v_range: (-r, r) };
            let lit = stand.light.on(normal);
            canvas.paint(&patch, stand.mark, |u, v, _| {
                let out = (u * u + v * v).sqrt() / r;
                let rim = rise(out, 0.62, 0.56);
                (out < 1.0).then(|| under(mix([0.07; 3], [0.6, 0.61, 0.63], rim), lit))
            });
        }
        // Between the wheels, under the floor, it is dark.
        let l = self.length * 0.44;
        let origin = stand.at(0.0, side * self.width * 0.42, 0.0);
        let patch =
            Patch { origin, u: stand.along, v: [0.0, 1.0, 0.0], u_range: (-l, l), v_range: (0.08, r * 0.76) };
        let inner = cross([0.0, 1.0, 0.0], stand.along.map(|v| v * side));
        let facing: f32 = (0..3).map(|k| inner[k] * (eye[k] - origin[k])).sum();
        if facing > 0.0 {
            let axles: Vec<f32> = axles.iter().map(|a| a * self.length).collect();
            canvas.paint(&patch, stand.mark, |u, _, _| {
                axles.iter().all(|a| (u - a).abs() > r).then_some([0.05; 3])
            });
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Top,
    Tail,
    Nose,
    Side { from_tail: bool },
}

#[derive(Clone, Copy)]
struct Face {
    kind: Kind,
    part: usize,
    width: f32,
    height: f32,
    /// How far the upper edge is drawn in at the left and at the right.
    taper: (f32, f32),
}

impl Stand<'_> {
    fn at(&self, along: f32, across: f32, up: f32) -> Point {
        let place = |k: usize| self.middle[k] + along * self.along[k] + across * self.across[k];
        [place(0), self.middle[1] + up, place(2)]
    }
}

/// The direction from `a` to `b` and the distance.
fn measured(a: Point, b: Point) -> (Point, f32) {
    let d = [0, 1, 2].map(|k| b[k] - a[k]);
    let length = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
    (d.map(|v| v / length), length)
}
