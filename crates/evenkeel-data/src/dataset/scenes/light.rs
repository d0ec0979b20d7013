//! Light: the hour and the weather a scene is seen in.
//!
//! A surface of normal n is lit by `ambient + sun · max(0, n·s)`. Hours are drawn so widely that colours alone tell little
//! about what a thing is.

use super::canvas::{Air, Point};
use super::texture::{Colour, mix, times};
use evenkeel::Random;

/// The light of a scene.
#[derive(Clone, Copy, Debug)]
pub(super) struct Light {
    /// Towards the sun, of length one.
    pub(super) to_sun: Point,
    pub(super) sun: Colour,
    pub(super) ambient: Colour,
    pub(super) zenith: Colour,
    pub(super) horizon: Colour,
    pub(super) cloud: Colour,
    /// Share of the sky under cloud.
    pub(super) cover: f32,
    /// Share of the windows that are lit from within.
    pub(super) lit: f32,
    pub(super) air: Air,
}

/// An hour: sun, ambient, zenith, horizon, cloud, lit windows, and how far one sees.
struct Hour {
    sun: Colour,
    ambient: Colour,
    zenith: Colour,
    horizon: Colour,
    cloud: Colour,
    lit: f32,
    evaluation: (f32, f32),
}

const HOURS: [Hour; 6] = [
    // noon
    Hour {
        sun: [0.72, 0.68, 0.60],
        ambient: [0.46, 0.50, 0.58],
        zenith: [0.26, 0.50, 0.86],
        horizon: [0.72, 0.85, 0.96],
        cloud: [0.97, 0.97, 0.98],
        lit: 0.0,
        evaluation: (120.0, 320.0),
    },
    // golden evening
    Hour {
        sun: [0.98, 0.62, 0.28],
        ambient: [0.42, 0.38, 0.46],
        zenith: [0.36, 0.46, 0.74],
        horizon: [1.0, 0.78, 0.52],
        cloud: [1.0, 0.72, 0.56],
        lit: 0.15,
        evaluation: (90.0, 240.0),
    },
    // overcast
    Hour {
        sun: [0.10, 0.10, 0.10],
        ambient: [0.72, 0.74, 0.77],
        zenith: [0.62, 0.66, 0.71],
        horizon: [0.84, 0.86, 0.88],
        cloud: [0.76, 0.78, 0.81],
        lit: 0.08,
        evaluation: (60.0, 200.0),
    },
    // blue hour
    Hour {
        sun: [0.05, 0.05, 0.08],
        ambient: [0.34, 0.38, 0.56],
        zenith: [0.10, 0.15, 0.38],
        horizon: [0.72, 0.48, 0.50],
        cloud: [0.38, 0.32, 0.48],
        lit: 0.55,
        evaluation: (90.0, 240.0),
    },
    // mist
    Hour {
        sun: [0.14, 0.13, 0.12],
        ambient: [0.70, 0.71, 0.72],
        zenith: [0.76, 0.79, 0.82],
        horizon: [0.87, 0.88, 0.88],
        cloud: [0.84, 0.85, 0.86],
        lit: 0.12,
        evaluation: (24.0, 60.0),
    },
    // early morning
    Hour {
        sun: [0.86, 0.66, 0.52],
        ambient: [0.44, 0.46, 0.56],
        zenith: [0.46, 0.62, 0.86],
        horizon: [0.98, 0.84, 0.80],
        cloud: [0.98, 0.86, 0.86],
        lit: 0.1,
        evaluation: (50.0, 160.0),
    },
];
/// How often each hour is drawn, out of 16.
const OFTEN: [usize; 6] = [5, 3, 3, 2, 1, 2];

impl Light {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut pick = random.below(OFTEN.iter().sum());
        let hour = HOURS.iter().zip(OFTEN).find(|(_, often)| {
            let here = pick < *often;
            pick = pick.saturating_sub(*often);
            here
        });
        let hour = hour.map_or(&HOURS[0], |(hour, _)| hour);
        let to_sun = unit([random.uniform(-1.2, 1.2), random.uniform(0.35, 1.3), random.uniform(-1.0, 0.5)]);
        let exposure = random.uniform(0.92, 1.18);
        let tint = [random.uniform(0.95, 1.05), 1.0, random.uniform(0.94, 1.06)];
        let toned = |colour: Colour| [0, 1, 2].map(|c| colour[c] * tint[c] * exposure);
        let horizon = toned(mix(hour.horizon, hour.zenith, random.uniform(0.0, 0.2)));
        Self {
            to_sun,
            sun: times(toned(hour.sun), random.uniform(0.8, 1.1)),
            ambient: toned(hour.ambient),
            zenith: toned(hour.zenith),
            horizon,
            cloud: toned(hour.cloud),
            cover: random.uniform(0.15, 0.75),
            lit: hour.lit,
            air: Air {
                colour: mix(horizon, toned([0.7, 0.72, 0.75]), 0.25),
                half: random.uniform(hour.evaluation.0, hour.evaluation.1),
            },
        }
    }

    /// The light on a surface of this normal, of length one.
    pub(super) fn on(&self, normal: Point) -> Colour {
        let facing = normal[0] * self.to_sun[0] + normal[1] * self.to_sun[1] + normal[2] * self.to_sun[2];
        let share = facing.max(0.0);
        // A little of the ground's light reaches what faces down or away.
        let sky = 0.86 + 0.14 * normal[1];
        [0, 1, 2].map(|c| self.ambient[c] * sky + self.sun[c] * share)
    }

    /// Light without direct sun.
    pub(super) fn in_shade(&self) -> Colour {
        times(self.ambient, 0.94)
    }
}

/// The direction of a vector.
pub(super) fn unit(v: Point) -> Point {
    let length = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
    v.map(|x| x / length)
}
