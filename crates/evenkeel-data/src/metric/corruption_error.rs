//! Mean corruption error, the figure of ImageNet-C.
//!
//! CE of a corruption = (mean top-1 error over severities 1..5) / (AlexNet's mean error on it); mCE = mean over the
//! fifteen. 1.0 is AlexNet's robustness, lower is better. The rates are those the benchmark publishes.

use super::accuracy::Accuracy;
use super::bootstrap::Tally;
use super::table::{Better, Metric, Unit};

pub(super) const MCE: Metric = Metric {
    name: "mce",
    title: "mCE",
    about: "mean corruption error relative to AlexNet's",
    tasks: &[],
    better: Better::Lower,
    unit: Unit::Share,
    figure: None,
};

/// The fifteen corruptions in the benchmark's order, with AlexNet's error on each.
pub const ALEXNET: [(&str, f64); 15] = [
    ("gaussian_noise", 0.886428),
    ("shot_noise", 0.894468),
    ("impulse_noise", 0.922640),
    ("defocus_blur", 0.819880),
    ("glass_blur", 0.826268),
    ("motion_blur", 0.785948),
    ("zoom_blur", 0.798360),
    ("snow", 0.866816),
    ("frost", 0.826572),
    ("fog", 0.819324),
    ("brightness", 0.564592),
    ("contrast", 0.853204),
    ("elastic_transform", 0.646056),
    ("pixelate", 0.717840),
    ("jpeg_compression", 0.606500),
];

/// Severities of each corruption.
pub const SEVERITIES: usize = 5;

/// Accuracy on every corruption at every severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorruptionError {
    cells: [[Accuracy; SEVERITIES]; 15],
}

impl CorruptionError {
    /// The tally of one image under one corruption at a severity of 1..=5; `None` if there is no such cell.
    pub fn of(corruption: &str, severity: usize, image: Accuracy) -> Option<Self> {
        let row = ALEXNET.iter().position(|(name, _)| *name == corruption)?;
        let mut tally = Self::default();
        *tally.cells[row].get_mut(severity.checked_sub(1)?)? = image;
        Some(tally)
    }

    /// CE of one corruption; `None` unless all five severities were measured.
    pub fn corruption_error(&self, corruption: &str) -> Option<f64> {
        let row = ALEXNET.iter().position(|(name, _)| *name == corruption)?;
        let errors: Option<Vec<f64>> = self.cells[row].iter().map(Accuracy::error).collect();
        Some(errors?.iter().sum::<f64>() / SEVERITIES as f64 / ALEXNET[row].1)
    }

    /// mCE; `None` unless all 75 cells were measured.
    pub fn mean(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = ALEXNET.iter().map(|(name, _)| self.corruption_error(name)).collect();
        Some(each?.iter().sum::<f64>() / ALEXNET.len() as f64)
    }
}

impl Tally for CorruptionError {
    fn add(&mut self, image: &Self, times: u64) {
        for (mine, theirs) in self.cells.as_flattened_mut().iter_mut().zip(image.cells.as_flattened()) {
            mine.add(theirs, times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alexnet_itself_scores_one() {
        let mut all = CorruptionError::default();
        for (name, rate) in ALEXNET {
            for severity in 1..=SEVERITIES {
                let wrong = (rate * 1e6).round() as u64;
                let right = CorruptionError::of(name, severity, Accuracy::of(&[1.0, 0.0], 0)).unwrap();
                let slip = CorruptionError::of(name, severity, Accuracy::of(&[1.0, 0.0], 1)).unwrap();
                all.add(&slip, wrong);
                all.add(&right, 1_000_000 - wrong);
            }
        }
        assert!((all.mean().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(CorruptionError::default().mean(), None);
        assert!(CorruptionError::of("snow", 6, Accuracy::default()).is_none());
        assert!(CorruptionError::of("rain", 1, Accuracy::default()).is_none());
    }
}
