//! People (and dogs): flat figures of rounded limbs that face the camera, standing or walking.

use super::canvas::{Canvas, Mark, Patch, Point};
use super::light::Light;
use super::texture::{Colour, hue, mix1, times, under};
use evenkeel::Random;

/// A person.
#[derive(Clone, Copy, Debug)]
pub(super) struct Person {
    height: f32,
    build: f32,
    skin: Colour,
    hair: Colour,
    top: Colour,
    bottom: Colour,
    shoes: Colour,
    /// Half the distance of the feet, as a share of the height; signed by the way they walk.
    stride: f32,
    skirt: bool,
    bag: Option<Colour>,
    hat: bool,
}

/// A rounded limb from one point to another: the distance to its axis is below the radius, which runs from `r0` to `r1`.
pub(super) fn limb(p: (f32, f32), a: (f32, f32), b: (f32, f32), r: (f32, f32)) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let t = (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    let (ex, ey) = (p.0 - a.0 - t * dx, p.1 - a.1 - t * dy);
    let radius = mix1(r.0, r.1, t);
    ex * ex + ey * ey < radius * radius
}

impl Person {
    pub(super) fn draw(random: &mut Random) -> Self {
        let child = random.chance(0.15);
        let tone = random.uniform(0.3, 0.95);
        let cloth =
            |random: &mut Random| hue(random.unit(), random.unit() * 0.75, random.uniform(0.15, 0.92));
        Self {
            height: if child { random.uniform(1.05, 1.4) } else { random.uniform(1.55, 1.95) },
            build: random.uniform(0.85, 1.2),
            skin: [tone, tone * 0.77, tone * 0.62],
            hair: hue(random.uniform(0.02, 0.12), random.uniform(0.1, 0.7), random.uniform(0.06, 0.6)),
            top: cloth(random),
            bottom: cloth(random),
            shoes: hue(random.unit(), 0.2, random.uniform(0.08, 0.6)),
            stride: if random.chance(0.7) { random.uniform(-0.17, 0.17) } else { 0.035 },
            skirt: random.chance(0.2),
            bag: random.chance(0.3).then(|| cloth(random)),
            hat: random.chance(0.15),
        }
    }

    pub(super) fn height(&self) -> f32 {
        self.height
    }

    pub(super) fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, foot: Point) {
        let patch = Patch::facing(foot, self.height * 0.32, self.height * 1.04);
        let (left, right) = (light.on([-0.7, 0.3, -0.64]), light.on([0.7, 0.3, -0.64]));
        canvas.paint(&patch, mark, |u, v, _| {
            let colour = self.colour(u / self.height, v / self.height)?;
            let t = (0.5 + u / (0.2 * self.height)).clamp(0.0, 1.0);
            Some(under(colour, super::texture::mix(left, right, t)))
        });
    }

    /// The colour at a place of the figure, in shares of its height.
    fn colour(&self, x: f32, y: f32) -> Option<Colour> {
        let (p, b, s) = ((x, y), self.build, self.stride);
        if let Some(bag) = self.bag
            && limb(p, (0.085 * b, 0.46), (0.095 * b, 0.54), (0.04, 0.045))
        {
            return Some(bag);
        }
        if self.hat && y > 0.955 && x.abs() < 0.075 && y < 1.02 {
            return Some(times(self.bottom, 0.8));
        }
        let (hx, hy) = (x - 0.2 * s, y - 0.925);
        if hx * hx * 1.25 + hy * hy < 0.0048 {
            let face = hy < 0.015 && (hx * if s < 0.0 { -1.0 } else { 1.0 }) > -0.03;
            return Some(if face { self.skin } else { self.hair });
        }
        let arm = |side: f32, swing: f32| {
            limb(p, (side * 0.088 * b, 0.79), (side * 0.1 * b + swing, 0.5), (0.032 * b, 0.024))
        };
        if arm(1.0, -0.6 * s) || arm(-1.0, 0.6 * s) {
            return Some(if y < 0.53 { self.skin } else { times(self.top, 0.84) });
        }
        if limb(p, (0.0, 0.76), (0.0, 0.52), (0.098 * b, 0.074 * b)) && y > 0.47 {
            return Some(self.top);
        }
        if limb(p, (0.1 * s, 0.87), (0.0, 0.8), (0.03, 0.035)) {
            return Some(self.skin);
        }
        if self.skirt && y > 0.27 && y < 0.52 && x.abs() < mix1(0.135, 0.075, (y - 0.27) / 0.25) {
            return Some(self.bottom);
        }
        let leg = |foot: f32, hip: f32| limb(p, (hip, 0.49), (foot, 0.045), (0.055 * b, 0.032));
        if leg(s, 0.035) || leg(-s, -0.035) {
            return Some(if y < 0.06 { self.shoes } else { self.bottom });
        }
        let shoe = |foot: f32| limb(p, (foot - 0.02, 0.022), (foot + 0.03, 0.02), (0.024, 0.02));
        (shoe(s) || shoe(-s)).then_some(self.shoes)
    }
}

/// A dog, seen from its side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dog {
    size: f32,
    coat: Colour,
    patch: Colour,
    way: f32,
    step: f32,
    ears_up: bool,
    stout: f32,
}

impl Dog {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            size: random.uniform(0.5, 0.85),
            coat: hue(random.uniform(0.03, 0.12), random.uniform(0.05, 0.6), random.uniform(0.12, 0.95)),
            patch: hue(random.uniform(0.03, 0.12), random.uniform(0.05, 0.4), random.uniform(0.1, 0.95)),
            way: if random.chance(0.5) { 1.0 } else { -1.0 },
            step: random.uniform(-0.09, 0.09),
            ears_up: random.chance(0.5),
            stout: random.uniform(0.8, 1.3),
        }
    }

    pub(super) fn height(&self) -> f32 {
        self.size
    }

    pub(super) fn paint(&self, canvas: &mut Canvas, light: &Light, mark: Mark, foot: Point) {
        let patch = Patch::facing(foot, self.size, self.size * 1.1);
        canvas.paint(&patch, mark, |u, v, _| {
            let (x, y) = (self.way * u / self.size, v / self.size);
            let colour = self.colour(x, y)?;
            let normal = [0.0, 0.35 + 0.5 * (y - 0.4), -0.8];
            Some(under(colour, light.on(super::light::unit(normal))))
        });
    }

    fn colour(&self, x: f32, y: f32) -> Option<Colour> {
        let (p, w, s) = ((x, y), self.stout, self.step);
        let ear = if self.ears_up {
            limb(p, (0.47, 0.9), (0.44, 1.03), (0.06, 0.02))
        } else {
            limb(p, (0.44, 0.88), (0.38, 0.74), (0.06, 0.05))
        };
        if ear {
            return Some(times(self.patch, 0.8));
        }
        if limb(p, (0.76, 0.79), (0.78, 0.79), (0.035, 0.035)) {
            return Some([0.06, 0.05, 0.05]);
        }
        if limb(p, (0.52, 0.83), (0.74, 0.77), (0.12, 0.06)) {
            return Some(self.coat);
        }
        if limb(p, (-0.2, 0.52), (0.1, 0.5), (0.13 * w, 0.13 * w)) {
            return Some(self.patch);
        }
        let trunk = limb(p, (-0.38, 0.53), (0.3, 0.52), (0.15 * w, 0.18 * w));
        let neck = limb(p, (0.3, 0.6), (0.5, 0.82), (0.15, 0.09));
        let tail = limb(p, (-0.5, 0.6), (-0.72, 0.85), (0.05, 0.025));
        let leg = |x: f32, to: f32| limb(p, (x, 0.45), (x + to, 0.04), (0.075, 0.045));
        let near = leg(-0.42, s) || leg(0.33, -s);
        if trunk || neck || tail || near {
            return Some(self.coat);
        }
        (leg(-0.33, -s - 0.05) || leg(0.24, s + 0.05)).then(|| times(self.coat, 0.7))
    }
}
