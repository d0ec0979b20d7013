//! Budgets: how far from the image a step may end up, always inside [0, 1].
//!
//! L∞: every value within ±radius. L2: the whole difference within a ball. Free: only the box. Projection first into the ball, then
//! into the box; since the image itself is in the box, clipping never leaves the ball.

use crate::error::{Error, Result};
use crate::image::Image;
use crate::random::Random;
use crate::settings::Choice;

/// How distance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The largest change of any value.
    Linf,
    /// The root of the sum of squares.
    L2,
}

impl Choice for Norm {
    const ALL: &'static [Self] = &[Self::Linf, Self::L2];
    const KIND: &'static str = "norm";

    fn name(self) -> &'static str {
        match self {
            Self::Linf => "linf",
            Self::L2 => "l2",
        }
    }
}

/// A ball around an image, cut to [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// How distance is measured.
    pub norm: Norm,
    /// The largest distance; infinite for the box alone.
    pub radius: f32,
}

impl Budget {
    /// Every value within ±radius.
    pub fn linf(radius: f32) -> Self {
        Self { norm: Norm::Linf, radius }
    }

    /// The whole difference within a ball.
    pub fn l2(radius: f32) -> Self {
        Self { norm: Norm::L2, radius }
    }

    /// Only the box.
    pub fn free(norm: Norm) -> Self {
        Self { norm, radius: f32::INFINITY }
    }

    /// Refuses radii that are negative or not numbers.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<()> {
        match self.radius >= 0.0 {
            true => Ok(()),
            false => Err(Error::setting("budget", format!("{} is not a radius", self.radius))),
        }
    }

    /// A uniform random point of the ball, cut to the box.
    pub fn start(&self, origin: &Image, random: &mut Random) -> Image {
        if !self.radius.is_finite() {
            return origin.clone();
        }
        let mut image = origin.clone();
        match self.norm {
            Norm::Linf => {
                image.pixels_mut().iter_mut().for_each(|v| *v += random.uniform(-self.radius, self.radius))
            }
            Norm::L2 => {
                let direction: Vec<f32> = origin.pixels().iter().map(|_| random.normal()).collect();
                let length = length(&direction).max(1e-12);
                let depth = random.unit().powf(1.0 / direction.len() as f32);
                let scale = (f64::from(self.radius * depth) / length) as f32;
                image.pixels_mut().iter_mut().zip(&direction).for_each(|(v, d)| *v += scale * d);
            }
        }
        self.project(origin, &mut image);
        image
    }

    /// Brings an image back into the ball and the box.
    pub fn project(&self, origin: &Image, image: &mut Image) {
        let pairs = image.pixels_mut().iter_mut().zip(origin.pixels());
        match self.norm {
            Norm::Linf => {
                pairs.for_each(|(v, o)| *v = v.clamp(o - self.radius, o + self.radius).clamp(0.0, 1.0));
            }
            Norm::L2 => {
                let distance = self.distance(origin, image);
                let scale =
                    if distance > f64::from(self.radius) { f64::from(self.radius) / distance } else { 1.0 };
                let pairs = image.pixels_mut().iter_mut().zip(origin.pixels());
                pairs.for_each(|(v, o)| *v = (o + scale as f32 * (*v - o)).clamp(0.0, 1.0));
            }
        }
    }

    /// What an eight-bit file would hold of an image of this budget: every value rounded to a multiple of 1/255, or, where rounding would leave
    /// the ball, to the next one nearer to the origin. In L2 rounding may add up to half a step a value to the distance.
    pub fn rounded(&self, origin: &Image, image: &Image) -> Image {
        let mut rounded = image.rounded_to_8_bits();
        if self.norm == Norm::Linf {
            let beyond = self.radius + 1e-6;
            for (v, o) in rounded.pixels_mut().iter_mut().zip(origin.pixels()) {
                if (*v - o).abs() > beyond {
                    let step = if *v > *o { -1.0 } else { 1.0 };
                    *v = ((*v * 255.0).round() + step) / 255.0;
                }
            }
        }
        rounded
    }

    /// How far two images are apart.
    pub fn distance(&self, a: &Image, b: &Image) -> f64 {
        let differences = a.pixels().iter().zip(b.pixels()).map(|(a, b)| f64::from(a - b));
        match self.norm {
            Norm::Linf => differences.fold(0.0, |most, d| most.max(d.abs())),
            Norm::L2 => differences.map(|d| d * d).sum::<f64>().sqrt(),
        }
    }

    /// Whether an image is in the ball and the box, up to the rounding of f32.
    pub fn contains(&self, origin: &Image, image: &Image) -> bool {
        let slack = 1e-6 + 1e-6 * f64::from(if self.radius.is_finite() { self.radius } else { 0.0 });
        image.pixels().iter().all(|v| (0.0..=1.0).contains(v))
            && self.distance(origin, image) <= f64::from(self.radius) + slack
    }
}

/// The Euclidean length.
pub(crate) fn length(v: &[f32]) -> f64 {
    v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::picture;

    /// Neither an origin between the steps of eight bits nor a radius between them lets rounding out of the ball.
    #[test]
    fn rounding_stays_inside() {
        let origin = picture((9, 7), 3);
        for (origin, radius) in [(origin.clone(), 4.0), (origin.rounded_to_8_bits(), 2.5), (origin, 1.0)] {
            let budget = Budget::linf(radius / 255.0);
            for seed in 0..4 {
                let mut image = budget.start(&origin, &mut Random::new(seed));
                let corner = |v: &mut f32, o: &f32| *v = o + budget.radius.copysign(*v - o);
                image.pixels_mut().iter_mut().zip(origin.pixels()).for_each(|(v, o)| corner(v, o));
                budget.project(&origin, &mut image);
                let rounded = budget.rounded(&origin, &image);
                assert!(budget.contains(&origin, &rounded), "{radius}");
                assert_eq!(rounded, rounded.rounded_to_8_bits());
                assert!(budget.distance(&rounded, &image) < 1.0 / 255.0);
            }
        }
    }

    #[test]
    fn projections_stay_inside_and_repeat() {
        let origin = picture((9, 7), 1);
        for budget in
            [Budget::linf(0.03), Budget::l2(0.5), Budget::linf(0.0), Budget::l2(0.0), Budget::free(Norm::L2)]
        {
            let mut random = Random::new(2);
            let start = budget.start(&origin, &mut random);
            assert!(budget.contains(&origin, &start), "{budget:?}");
            let mut far = picture((9, 7), 3);
            far.pixels_mut().iter_mut().for_each(|v| *v = 4.0 * *v - 2.0);
            budget.project(&origin, &mut far);
            assert!(budget.contains(&origin, &far), "{budget:?} {}", budget.distance(&origin, &far));
            let mut again = far.clone();
            budget.project(&origin, &mut again);
            assert!(budget.distance(&again, &far) < 1e-5);
        }
        assert!(!Budget::linf(0.01).contains(&origin, &picture((9, 7), 5)));
    }
}
