//! Buildings: boxes along the street with windows, doors, shop fronts and roofs.

use super::canvas::{Canvas, Mark, Patch, Point};
use super::light::{Light, unit};
use super::texture::{Colour, hash, hue, mix, noise, part, rise, speck, times, under, whole};
use evenkeel::Random;

/// What kind of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    House,
    Block,
    Shop,
    Tower,
}

/// A building, without its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Building {
    style: Style,
    pub(super) height: f32,
    depth: f32,
    setback: f32,
    storey: f32,
    bay: f32,
    /// Window width and height as shares of bay and storey.
    window: (f32, f32),
    wall: Colour,
    frame: Colour,
    roof: Colour,
    awning: Colour,
    roof_rise: f32,
    bricks: bool,
    pub(super) seed: u32,
}

impl Building {
    pub(super) fn draw(random: &mut Random, style: Style) -> Self {
        let storey = random.uniform(2.7, 3.6);
        let storeys = match style {
            Style::House => 1 + random.below(2),
            Style::Block => 2 + random.below(4),
            Style::Shop => 2 + random.below(3),
            Style::Tower => 6 + random.below(9),
        };
        let pale = random.uniform(0.35, 0.92);
        let warm = hue(random.uniform(-0.02, 0.14), random.uniform(0.1, 0.55), pale);
        let cool = hue(random.unit(), random.uniform(0.0, 0.35), pale);
        let wall = if random.chance(0.65) { warm } else { cool };
        Self {
            style,
            height: storey * storeys as f32 + random.uniform(0.3, 1.0),
            depth: random.uniform(7.0, 13.0),
            setback: if style == Style::House { random.uniform(0.5, 4.0) } else { 0.0 },
            storey,
            bay: random.uniform(1.8, 3.6),
            window: (random.uniform(0.34, 0.72), random.uniform(0.4, 0.66)),
            wall,
            frame: if random.chance(0.6) { [0.92, 0.91, 0.88] } else { times(wall, 0.6) },
            roof: hue(random.uniform(-0.03, 0.1), random.uniform(0.05, 0.65), random.uniform(0.22, 0.55)),
            awning: hue(random.unit(), 0.65, 0.75),
            roof_rise: if style == Style::House { random.uniform(1.8, 3.6) } else { 0.0 },
            bricks: random.chance(0.5),
            seed: random.bits(),
        }
    }

    /// How far behind the plot line its front stands.
    pub(super) fn setback(&self) -> f32 {
        self.setback
    }

    /// Paints it. `near` and `far` are the feet of its street front; `sign` tells the side of the street.
    pub(super) fn paint(
        &self,
        canvas: &mut Canvas,
        light: &Light,
        mark: Mark,
        near: Point,
        far: Point,
        sign: f32,
    ) {
        let along = [far[0] - near[0], 0.0, far[2] - near[2]];
        let length = (along[0] * along[0] + along[2] * along[2]).sqrt();
        let along = along.map(|v| v / length);
        let away = [sign * along[2], 0.0, -sign * along[0]];
        let towards_street = away.map(|v| -v);
        let up = [0.0, 1.0, 0.0];
        if self.roof_rise > 0.0 {
            self.paint_roof(canvas, light, mark, (near, along, away, length));
        }
        let end =
            Patch { origin: near, u: away, v: up, u_range: (0.0, self.depth), v_range: (0.0, self.height) };
        let lit = light.on([-along[0], 0.0, -along[2]]);
        canvas.paint(&end, mark, |u, v, z| Some(self.end_wall(u, v, z, lit, light)));
        if self.roof_rise > 0.0 {
            let gable = Patch { v_range: (self.height, self.height + self.roof_rise), ..end };
            canvas.paint(&gable, mark, |u, v, z| {
                let share = 1.0 - (v - self.height) / self.roof_rise;
                let inside = (u - self.depth * 0.5).abs() < share * self.depth * 0.5;
                inside.then(|| under(self.plaster(u, v, z), lit))
            });
        }
        let front =
            Patch { origin: near, u: along, v: up, u_range: (0.0, length), v_range: (0.0, self.height) };
        let lit = light.on(towards_street);
        canvas.paint(&front, mark, |u, v, z| Some(self.front_wall(u, v, z, length, lit, light)));
    }

    fn paint_roof(
        &self,
        canvas: &mut Canvas,
        light: &Light,
        mark: Mark,
        (near, along, away, length): (Point, Point, Point, f32),
    ) {
        let half = self.depth * 0.5;
        let slope = unit([half * away[0], self.roof_rise, half * away[2]]);
        let reach = (half * half + self.roof_rise * self.roof_rise).sqrt();
        let normal = unit([-away[0] * self.roof_rise, half, -away[2] * self.roof_rise]);
        let origin = [near[0], self.height, near[2]];
        let lit = light.on(normal);
        let patch =
            Patch { origin, u: along, v: slope, u_range: (-0.3, length + 0.3), v_range: (-0.5, reach) };
        canvas.paint(&patch, mark, |u, v, z| {
            let detail = 12.0 / (12.0 + z);
            let course = if part(v / 0.42) < 0.2 { 1.0 - 0.3 * detail } else { 1.0 };
            let mottled = 0.86 + 0.28 * noise(u * 1.3, v * 2.1, self.seed);
            Some(under(times(self.roof, course * mottled), lit))
        });
    }

    fn plaster(&self, u: f32, v: f32, z: f32) -> Colour {
        let detail = if z < 30.0 { 9.0 / (9.0 + z) } else { 0.0 };
        let stain = 0.88 + 0.2 * noise(u * 0.35, v * 0.3, self.seed);
        if detail == 0.0 {
            return times(self.wall, stain);
        }
        if !self.bricks {
            return times(
                self.wall,
                stain * (1.0 + 0.1 * detail * (noise(u * 4.0, v * 4.0, self.seed) - 0.5)),
            );
        }
        let row = whole(v / 0.28);
        let across = u / 0.6 + if row & 1 == 0 { 0.0 } else { 0.5 };
        let joint = part(v / 0.28) < 0.14 || part(across) < 0.08;
        let tone = 1.0 + 0.26 * detail * (speck(whole(across), row, self.seed) - 0.5);
        times(self.wall, stain * tone * if joint { 1.0 - 0.22 * detail } else { 1.0 })
    }

    fn end_wall(&self, u: f32, v: f32, z: f32, lit: Colour, light: &Light) -> Colour {
        let sparse = Self { window: (self.window.0 * 0.8, self.window.1), bay: self.bay * 1.6, ..*self };
        match sparse.pane(u + 40.0, v, light) {
            Some(pane) if hash(whole(u / sparse.bay), 3, self.seed) & 1 == 0 && v > 1.0 => pane.colour(lit),
            _ => under(self.plaster(u, v, z), lit),
        }
    }

    fn front_wall(&self, u: f32, v: f32, z: f32, length: f32, lit: Colour, light: &Light) -> Colour {
        if v < self.storey && self.style == Style::Shop {
            return self.shop_front(u, v, z, lit, light);
        }
        let door = length * (0.25 + 0.5 * speck(1, 1, self.seed));
        if v < 2.2 && (u - door).abs() < 0.55 {
            return under(times(self.awning, 0.75), lit);
        }
        if let Some(pane) = self.pane(u, v, light) {
            return pane.colour(lit);
        }
        let from_top = self.height - v;
        let band = part(v / self.storey) < 0.07 && self.style != Style::House;
        let wall = if from_top < 0.35 || band { times(self.frame, 0.92) } else { self.plaster(u, v, z) };
        // Under the cornice, and near the ground, less light arrives.
        let eaves = 1.0 - 0.22 * rise(from_top, 0.9, 0.3);
        under(times(wall, eaves * (0.82 + 0.18 * rise(v, 0.0, 0.9))), lit)
    }

    fn shop_front(&self, u: f32, v: f32, z: f32, lit: Colour, light: &Light) -> Colour {
        let across = part(u / (2.0 * self.bay));
        if v > self.storey * 0.68 && v < self.storey * 0.9 {
            let stripe = if part(u / 0.7) < 0.5 { self.awning } else { [0.93, 0.92, 0.9] };
            return under(stripe, lit);
        }
        if v < 0.5 || v >= self.storey * 0.9 || !(0.06..0.94).contains(&across) {
            return under(times(self.plaster(u, v, z), 0.7), lit);
        }
        let glow = mix([0.16, 0.17, 0.2], [0.98, 0.82, 0.5], (0.25 + light.lit).min(0.9));
        let goods = noise(u * 3.0, v * 3.0, self.seed);
        mix(glow, times(hue(goods * 3.0, 0.5, 0.7), 0.7), 0.4 * goods)
    }

    /// The window at this place of a wall, if there is one.
    fn pane(&self, u: f32, v: f32, light: &Light) -> Option<Pane> {
        let (column, row) = (whole(u / self.bay), whole(v / self.storey));
        if v > self.height - 0.5 {
            return None;
        }
        let (x, y) = ((part(u / self.bay) - 0.5).abs(), part(v / self.storey) - 0.55);
        let (half_w, half_h) = (self.window.0 * 0.5, self.window.1 * 0.5);
        let border = (0.09 / self.bay, 0.09 / self.storey);
        if x > half_w + border.0 || y.abs() > half_h + border.1 {
            return None;
        }
        if x > half_w || y.abs() > half_h || x < 0.35 * border.0 {
            return Some(Pane::Frame(self.frame));
        }
        if speck(column, row, self.seed) < light.lit {
            let warm = 0.8 + 0.35 * speck(row, column, self.seed);
            return Some(Pane::Glass([1.0 * warm, 0.82 * warm, 0.46 * warm]));
        }
        let sky = mix(light.zenith, light.horizon, 0.5 - y);
        let curtain = if y > half_h * 0.2 && speck(column, row, self.seed ^ 7) < 0.35 { 0.5 } else { 0.0 };
        let glass = mix(times(sky, 0.45), [0.1, 0.12, 0.15], 0.35 + 0.4 * speck(column, row, self.seed ^ 9));
        Some(Pane::Glass(mix(glass, times(light.ambient, 1.2), curtain)))
    }
}

enum Pane {
    Frame(Colour),
    Glass(Colour),
}

impl Pane {
    fn colour(self, lit: Colour) -> Colour {
        match self {
            Pane::Frame(colour) => under(colour, lit),
            Pane::Glass(colour) => colour,
        }
    }
}
