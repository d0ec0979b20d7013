//! The plan of a street: where the road runs, what stands along it, and the light it is seen in. Drawn once from a seed.
//!
//! Places are given by `s`, metres to the right of the road's centre line, and `z`, metres ahead; the centre line lies at
//! x = bend·z² − offset, so a bent road carries everything along with it.

use super::building::{Building, Style};
use super::canvas::Point;
use super::light::Light;
use super::person::Person;
use super::texture::{Colour, hue, mix, times};
use super::thing::{Lamp, Post, Thing, Tree};
use super::vehicle::Vehicle;
use evenkeel::Random;

/// How far ahead things are planned.
pub(super) const FAR: f32 = 120.0;

/// What kind of town it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum District {
    Suburb,
    Town,
    City,
    Park,
}

/// One side of the street.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// −1 left, +1 right.
    pub(super) sign: f32,
    pub(super) pavement: f32,
    /// Width of the green strip between pavement and plots.
    pub(super) strip: f32,
    /// Whether the ground past the pavement is paved.
    pub(super) paved: bool,
    pub(super) plots: Vec<Plot>,
}

/// A piece of land along the street.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) from: f32,
    pub(super) to: f32,
    pub(super) building: Option<Building>,
    pub(super) trees: Vec<(f32, f32, Tree)>, // s past the plot's edge, z
    pub(super) fence: Option<Fence>,
}

/// What closes a plot towards the street.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    pub(super) height: f32,
    pub(super) colour: Colour,
    /// Distance of the slats; zero for a wall.
    pub(super) slats: f32,
}

/// A thing in the street.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) s: f32,
    pub(super) z: f32,
    pub(super) thing: Thing,
}

/// Colours and marks of the ground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub(super) road: Colour,
    pub(super) pavement: Colour,
    pub(super) grass: Colour,
    pub(super) line: Colour,
    pub(super) lanes: usize,
    pub(super) dash: f32,
    pub(super) edge_lines: bool,
    /// Where a crossing begins, if there is one.
    pub(super) crossing: Option<f32>,
    pub(super) tile: f32,
    pub(super) wet: f32,
}

/// Everything that is decided before the first sample is painted.
#[derive(Clone, Debug)]
pub(super) struct Street {
    pub(super) seed: u32,
    pub(super) light: Light,
    pub(super) half_road: f32,
    pub(super) bend: f32,
    pub(super) offset: f32,
    pub(super) ground: Ground,
    pub(super) sides: [Side; 2],
    /// From far to near.
    pub(super) placed: Vec<Placed>,
    pub(super) backdrop: Backdrop,
}

/// What closes the view at the end of the street.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backdrop {
    /// Whether it is woods; else it is houses.
    pub(super) woods: bool,
    pub(super) height: f32,
    pub(super) colour: Colour,
}

impl Street {
    pub(super) fn draw(random: &mut Random) -> Self {
        let light = Light::draw(random);
        let district = [
            District::Suburb,
            District::Suburb,
            District::Town,
            District::Town,
            District::City,
            District::Park,
        ][random.below(6)];
        let half_road = random.uniform(3.0, if district == District::City { 7.5 } else { 5.5 });
        let offset = random.uniform(-0.55, 0.55) * half_road;
        let bend = if random.chance(0.5) { random.uniform(-0.0016, 0.0016) } else { 0.0 };
        let ground = ground(random, district);
        let sides = [-1.0, 1.0].map(|sign| side(random, sign, district));
        let mut street = Self {
            seed: random.bits(),
            light,
            half_road,
            bend,
            offset,
            ground,
            sides,
            placed: Vec::new(),
            backdrop: Backdrop {
                woods: district == District::Park || random.chance(0.4),
                height: random.uniform(5.0, if district == District::City { 40.0 } else { 16.0 }),
                colour: hue(random.unit(), 0.25, random.uniform(0.3, 0.7)),
            },
        };
        street.furnish(random);
        street.fill_road(random);
        street.fill_pavements(random);
        street.placed.sort_by(|a, b| b.z.total_cmp(&a.z));
        street
    }

    /// The point `up` metres above place (s, z).
    pub(super) fn point(&self, s: f32, up: f32, z: f32) -> Point {
        [s + self.bend * z * z - self.offset, up, z]
    }

    /// Where the plots of a side begin.
    pub(super) fn plot_line(&self, side: &Side) -> f32 {
        side.sign * (self.half_road + side.pavement + side.strip)
    }

    fn furnish(&mut self, random: &mut Random) {
        let lamp = Lamp::draw(random);
        for k in 0..2 {
            let side = self.sides[k].clone();
            let kerb = self.half_road + 0.45;
            if random.chance(0.75) {
                let step = random.uniform(9.0, 16.0);
                let mut z = random.uniform(5.0, 12.0);
                while z < 32.0 {
                    self.place(side.sign * kerb, z, Thing::Lamp(lamp, side.sign));
                    z += step;
                }
            }
            for _ in 0..random.below(3) {
                let z = random.uniform(5.0, 22.0);
                self.place(side.sign * (kerb + random.uniform(0.0, 0.5)), z, Thing::Post(Post::draw(random)));
            }
            if random.chance(0.45) {
                let kind = Tree::draw(random, 1.0);
                let step = random.uniform(7.0, 14.0);
                let mut z = random.uniform(7.0, 16.0);
                let lane = self.half_road + side.pavement * 0.8 + side.strip * 0.5;
                while z < 90.0 {
                    let tree = kind.varied(random);
                    self.place(side.sign * (lane + random.uniform(-0.3, 0.3)), z, Thing::Tree(tree));
                    z += step * random.uniform(0.8, 1.3);
                }
            }
        }
    }

    fn place(&mut self, s: f32, z: f32, thing: Thing) {
        self.placed.push(Placed { s, z, thing });
    }

    fn fill_road(&mut self, random: &mut Random) {
        let busy = random.uniform(0.1, 1.0);
        for sign in [-1.0, 1.0] {
            // Traffic keeps to the right: what is left of the centre comes towards us.
            let mut z = random.uniform(4.5, 22.0);
            while z < 90.0 {
                if random.chance(busy) {
                    let vehicle = Vehicle::of_street(random);
                    let lane = self.half_road * random.uniform(0.38, 0.56);
                    let blocked = (sign * lane - self.offset).abs() < 1.6 && z < 7.0;
                    if !blocked {
                        let turn = random.uniform(-0.06, 0.06) + if sign < 0.0 { 1e3 } else { 0.0 };
                        self.place(sign * lane, z, Thing::Vehicle(vehicle, turn));
                    }
                }
                z += random.uniform(8.0, 26.0);
            }
            if random.chance(0.5) {
                self.park(random, sign);
            }
        }
        if random.chance(0.14) {
            // Somebody turns or crosses.
            let vehicle = Vehicle::of_street(random);
            let turn = random.uniform(0.4, 1.6) * if random.chance(0.5) { 1.0 } else { -1.0 };
            let (s, z) = (self.half_road * random.uniform(-0.6, 0.6), random.uniform(10.0, 30.0));
            self.place(s, z, Thing::Vehicle(vehicle, turn));
        }
    }

    /// A row of parked cars along the kerb.
    fn park(&mut self, random: &mut Random, sign: f32) {
        let mut z = random.uniform(4.0, 16.0);
        let dense = random.uniform(0.3, 1.0);
        while z < 70.0 {
            let vehicle = Vehicle::of_street(random);
            let length = vehicle.length();
            let s = sign * (self.half_road - 0.25);
            if random.chance(dense) && ((s - self.offset).abs() > 1.7 || z > 8.0) {
                let turn = random.uniform(-0.03, 0.03) + if random.chance(0.2) { 1e3 } else { 0.0 };
                self.place(s, z, Thing::Vehicle(vehicle, turn));
            }
            z += length + random.uniform(0.8, 3.0);
        }
    }

    fn fill_pavements(&mut self, random: &mut Random) {
        for k in 0..2 {
            let (sign, width) = (self.sides[k].sign, self.sides[k].pavement);
            for _ in 0..random.below(6) {
                let z = 4.0 + 36.0 * random.unit() * random.unit() + random.uniform(0.0, 6.0);
                let s = sign * (self.half_road + width * random.uniform(0.2, 0.95));
                for mate in 0..1 + usize::from(random.chance(0.25)) {
                    let person = Person::draw(random);
                    self.place(s + 0.55 * mate as f32, z + 0.1 * mate as f32, Thing::Person(person));
                }
            }
        }
        for _ in 0..usize::from(random.chance(0.45)) * (1 + random.below(3)) {
            let z = self.ground.crossing.map_or(random.uniform(6.0, 24.0), |c| c + random.uniform(0.4, 2.6));
            let s = random.uniform(-0.9, 0.9) * self.half_road;
            self.place(s, z, Thing::Person(Person::draw(random)));
        }
    }
}

fn ground(random: &mut Random, district: District) -> Ground {
    let tone = random.uniform(0.24, 0.5);
    let road = mix(times([1.0, 1.0, 1.02], tone), hue(random.unit(), 0.5, tone), random.uniform(0.0, 0.25));
    let pale = random.uniform(0.42, 0.72);
    let pavement =
        mix(times([1.0, 0.97, 0.93], pale), hue(random.uniform(0.0, 0.15), 0.5, pale), random.unit() * 0.5);
    let grass = hue(random.uniform(0.17, 0.34), random.uniform(0.35, 0.7), random.uniform(0.32, 0.58));
    Ground {
        road,
        pavement,
        grass,
        line: if random.chance(0.8) { [0.86, 0.86, 0.84] } else { [0.9, 0.74, 0.26] },
        lanes: if district == District::City { 4 } else { 2 },
        dash: if random.chance(0.15) { 0.0 } else { random.uniform(3.0, 8.0) },
        edge_lines: random.chance(0.4),
        crossing: random.chance(0.3).then(|| random.uniform(6.0, 26.0)),
        tile: if random.chance(0.7) { random.uniform(0.4, 1.2) } else { 0.0 },
        wet: if random.chance(0.2) { random.uniform(0.2, 0.6) } else { 0.0 },
    }
}

fn side(random: &mut Random, sign: f32, district: District) -> Side {
    let strip = match district {
        District::Suburb => random.uniform(1.0, 6.0),
        District::Park => random.uniform(3.0, 9.0),
        District::Town if random.chance(0.3) => random.uniform(0.8, 2.5),
        _ => 0.0,
    };
    let paved = matches!(district, District::City | District::Town) && strip == 0.0;
    let mut plots = Vec::new();
    let mut z = -8.0;
    while z < FAR {
        let plot = plot(random, z, district);
        z = plot.to;
        plots.push(plot);
    }
    Side { sign, pavement: random.uniform(1.4, 4.5), strip, paved, plots }
}

fn plot(random: &mut Random, from: f32, district: District) -> Plot {
    let (built, length, styles): (f32, (f32, f32), &[Style]) = match district {
        District::Suburb => (0.72, (7.0, 13.0), &[Style::House, Style::House, Style::Block]),
        District::Town => (0.88, (7.0, 16.0), &[Style::House, Style::Block, Style::Shop]),
        District::City => (0.94, (10.0, 24.0), &[Style::Block, Style::Shop, Style::Tower]),
        District::Park => (0.25, (9.0, 18.0), &[Style::House, Style::Block]),
    };
    let to = from + random.uniform(length.0, length.1);
    let building = random.chance(built).then(|| {
        let style = styles[random.below(styles.len())];
        Building::draw(random, style)
    });
    let mut trees = Vec::new();
    let wanted = if building.is_some() { usize::from(random.chance(0.2)) } else { 2 + random.below(4) };
    for _ in 0..wanted {
        let behind = if building.is_some() { 0.6 } else { random.uniform(0.8, 9.0) };
        trees.push((behind, random.uniform(from, to), Tree::draw(random, 1.3)));
    }
    trees.sort_by(|a, b| b.1.total_cmp(&a.1));
    let fenced = if building.is_some() { 0.25 } else { 0.7 };
    let green = matches!(district, District::Suburb | District::Park | District::Town);
    let fence = (green && random.chance(fenced)).then(|| Fence {
        height: random.uniform(0.8, 1.9),
        colour: hue(random.unit(), random.uniform(0.05, 0.45), random.uniform(0.3, 0.85)),
        slats: if random.chance(0.55) { random.uniform(0.22, 0.4) } else { 0.0 },
    });
    Plot { from, to, building, trees, fence }
}
