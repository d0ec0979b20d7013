//! The canvas: a camera on a street, and flat patches in space painted onto it, the nearest thing first.
//!
//! A patch is `o + u·U + v·V`. With the ray `d` of a sample and `N = U × V`, its place on the patch is
//! `u = d·(V × o) / d·N`, `v = d·(o × U) / d·N`, at depth `f · o·N / d·N`. Every sample is painted by a closure of (u, v, depth)
//! or left alone, so silhouettes and textures are written in metres. Four samples make a pixel. What belongs to one thing is a
//! layer: inside it later paint covers earlier paint, and a layer never covers an earlier one, so nothing hidden is shaded.

use super::texture::{Colour, mix};

/// A point or direction: right, up, ahead, in metres from the camera's foot.
pub(super) type Point = [f32; 3];

/// Samples per pixel along each axis.
pub(super) const FINE: usize = 2;
const NEAR: f32 = 0.5;

/// A pinhole camera that looks along the street, in samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Camera {
    /// Column of the vanishing point.
    pub(super) centre: f32,
    /// Row of the horizon.
    pub(super) horizon: f32,
    /// Focal length.
    pub(super) focal: f32,
    /// Height above the ground in metres.
    pub(super) height: f32,
}

/// The air between: everything fades to its colour with distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Air {
    /// What far things fade to.
    pub(super) colour: Colour,
    /// Where half of a thing's own colour is left.
    pub(super) half: f32,
}

impl Air {
    pub(super) fn over(&self, colour: Colour, depth: f32) -> Colour {
        let t = depth / self.half;
        mix(colour, self.colour, t * t / (1.0 + t * t))
    }
}

/// A flat piece of space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    /// Where u = v = 0.
    pub(super) origin: Point,
    /// One metre of u.
    pub(super) u: Point,
    /// One metre of v.
    pub(super) v: Point,
    /// From, to.
    pub(super) u_range: (f32, f32),
    /// From, to.
    pub(super) v_range: (f32, f32),
}

impl Patch {
    /// An upright patch that faces the camera: u to the right of its foot, v up from the ground.
    pub(super) fn facing(foot: Point, half_width: f32, height: f32) -> Self {
        Self {
            origin: foot,
            u: [1.0, 0.0, 0.0],
            v: [0.0, 1.0, 0.0],
            u_range: (-half_width, half_width),
            v_range: (0.0, height),
        }
    }

    fn at(&self, u: f32, v: f32) -> Point {
        [0, 1, 2].map(|k| self.origin[k] + u * self.u[k] + v * self.v[k])
    }
}

/// Class and instance of a sample: the class in the upper byte, the number of the instance (0: none) in the lower.
pub(super) type Mark = u16;

/// The layer of samples that are not painted yet.
const BARE: u16 = 0;

/// What is being painted.
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) colour: Vec<Colour>,
    pub(super) mark: Vec<Mark>,
    /// The layer each sample was painted in; [`BARE`] where nothing is yet.
    layer: Vec<u16>,
    current: u16,
    pub(super) camera: Camera,
    pub(super) air: Air,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize, camera: Camera, air: Air) -> Self {
        let samples = width * height;
        Self {
            width,
            height,
            colour: vec![[0.0; 3]; samples],
            mark: vec![0; samples],
            layer: vec![BARE; samples],
            current: BARE,
            camera,
            air,
        }
    }

    /// Begins the next thing, behind all that is painted; gives the number of its layer.
    pub(super) fn next_layer(&mut self) -> u16 {
        self.current += 1;
        self.current
    }

    /// Whether nothing is painted at a sample.
    pub(super) fn is_bare(&self, sample: usize) -> bool {
        self.layer[sample] == BARE
    }

    /// Paints a sample that is bare, behind everything.
    pub(super) fn put(&mut self, sample: usize, mark: Mark, colour: Colour) {
        self.colour[sample] = colour;
        self.mark[sample] = mark;
        self.layer[sample] = self.current;
    }

    /// Paints the visible part of a patch: `shade(u, v, depth)` gives the colour there, or nothing.
    pub(super) fn paint(
        &mut self,
        patch: &Patch,
        mark: Mark,
        shade: impl Fn(f32, f32, f32) -> Option<Colour>,
    ) {
        let Some((columns, rows)) = self.extent(patch) else { return };
        let (camera, air) = (self.camera, self.air);
        let origin = [patch.origin[0], patch.origin[1] - camera.height, patch.origin[2]];
        let normal = cross(patch.u, patch.v);
        let (to_u, to_v) = (cross(patch.v, origin), cross(origin, patch.u));
        let distance = camera.focal * dot(origin, normal);
        for y in rows {
            let up = camera.horizon - (y as f32 + 0.5);
            let from = y * self.width;
            for x in columns.clone() {
                let there = self.layer[from + x];
                if there != BARE && there != self.current {
                    continue;
                }
                let ray = [x as f32 + 0.5 - camera.centre, up, camera.focal];
                let share = 1.0 / dot(ray, normal);
                let depth = distance * share;
                let (u, v) = (dot(ray, to_u) * share, dot(ray, to_v) * share);
                let inside = depth > NEAR
                    && u >= patch.u_range.0
                    && u < patch.u_range.1
                    && v >= patch.v_range.0
                    && v < patch.v_range.1;
                if !inside {
                    continue;
                }
                if let Some(colour) = shade(u, v, depth) {
                    self.put(from + x, mark, air.over(colour, depth));
                }
            }
        }
    }

    /// Multiplies what layers after `front` have painted under a patch by `factor(u, v)`.
    pub(super) fn darken(&mut self, patch: &Patch, front: u16, factor: impl Fn(f32, f32) -> f32) {
        let Some((columns, rows)) = self.extent(patch) else { return };
        let camera = self.camera;
        let origin = [patch.origin[0], patch.origin[1] - camera.height, patch.origin[2]];
        let normal = cross(patch.u, patch.v);
        let (to_u, to_v) = (cross(patch.v, origin), cross(origin, patch.u));
        for y in rows {
            let up = camera.horizon - (y as f32 + 0.5);
            for x in columns.clone() {
                if self.layer[y * self.width + x] <= front {
                    continue;
                }
                let ray = [x as f32 + 0.5 - camera.centre, up, camera.focal];
                let share = 1.0 / dot(ray, normal);
                let (u, v) = (dot(ray, to_u) * share, dot(ray, to_v) * share);
                let inside = dot(origin, normal) * share > 0.0
                    && u.abs() < patch.u_range.1
                    && v.abs() < patch.v_range.1;
                if inside {
                    let colour = &mut self.colour[y * self.width + x];
                    *colour = super::texture::times(*colour, factor(u, v));
                }
            }
        }
    }

    /// The columns and rows a patch may touch.
    fn extent(&self, patch: &Patch) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
        let ((u0, u1), (v0, v1)) = (patch.u_range, patch.v_range);
        let corners = [patch.at(u0, v0), patch.at(u1, v0), patch.at(u1, v1), patch.at(u0, v1)];
        let mut low = [f32::MAX; 2];
        let mut high = [f32::MIN; 2];
        let mut see = |point: Point| {
            let scale = self.camera.focal / point[2];
            let place = [
                self.camera.centre + point[0] * scale,
                self.camera.horizon - (point[1] - self.camera.height) * scale,
            ];
            for k in 0..2 {
                low[k] = low[k].min(place[k]);
                high[k] = high[k].max(place[k]);
            }
        };
        for (k, &a) in corners.iter().enumerate() {
            let b = corners[(k + 1) % 4];
            if a[2] >= NEAR {
                see(a);
            }
            if (a[2] >= NEAR) != (b[2] >= NEAR) {
                let t = (NEAR - a[2]) / (b[2] - a[2]);
                see([a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), NEAR]);
            }
        }
        let cut = |low: f32, high: f32, size: usize| {
            let from = low.clamp(0.0, size as f32) as usize;
            let to = (high.clamp(0.0, size as f32) as usize + 1).min(size);
            (from < to).then_some(from..to)
        };
        Some((cut(low[0], high[0], self.width)?, cut(low[1], high[1], self.height)?))
    }
}

fn dot(a: Point, b: Point) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
