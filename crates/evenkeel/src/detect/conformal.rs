//! Split conformal prediction: what n clean images can promise, and what they cannot.
//!
//! Of n + 1 exchangeable numbers the last is at most the ⌈(1 − δ)(n + 1)⌉-th smallest of the others with probability 1 − δ at least. That rank must be at
//! most n, so δ must be at least 1/(n + 1): a smaller one is refused with the number of images it would take.

use super::estimate::{EstimateRule, LabelledCells, expected_error, fit_bias};
use crate::error::{Error, Result};

/// Some labelled images fit the bias; the others give the residuals.
const PART: usize = 4;
/// Products of shares and counts are off by less than this.
const SLACK: f64 = 1e-9;

/// The rank of the quantile that holds with probability 1 − δ, of n numbers; `what` is what is asked for, in messages.
///
/// # Errors
/// If n numbers cannot promise it.
pub fn rank(n: usize, delta: f64, what: &str) -> Result<usize> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Error::setting(
            what,
            format!("a share of {delta} cannot be promised; it must be between 0 and 1"),
        ));
    }
    let rank = ((1.0 - delta) * (n as f64 + 1.0) - SLACK).ceil().max(1.0) as usize;
    if rank <= n {
        return Ok(rank);
    }
    let least = images_for(delta);
    let images = if n == 1 { "image" } else { "images" };
    let possible = 100.0 / (n as f64 + 1.0);
    let reason = format!(
        "{n} {images} cannot promise {} %; it takes {least}, and {n} can promise {possible:.2} % at best",
        (1e6 * delta).round() / 1e4
    );
    Err(Error::setting(what, reason))
}

/// The fewest images that can promise a share δ.
pub fn images_for(delta: f64) -> usize {
    ((1.0 / delta - SLACK).ceil() as usize).max(2) - 1
}

/// The smallest threshold that a new number of the same kind exceeds with probability δ at most; of too few numbers the largest, which promises less.
///
/// # Errors
/// If there are no numbers or one is not finite, or the share is not from 0 to 1.
pub fn threshold_for(scores: &[f64], false_alarm_rate: f64) -> Result<f64> {
    if scores.is_empty() || scores.iter().any(|s| !s.is_finite()) {
        return Err(Error::setting("calibration", "needs clean images with finite scores"));
    }
    if !(0.0..=1.0).contains(&false_alarm_rate) {
        return Err(Error::setting("false alarm rate", format!("{false_alarm_rate} is not from 0 to 1")));
    }
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = ((1.0 - false_alarm_rate) * (scores.len() as f64 + 1.0) - SLACK).ceil() as usize;
    Ok(sorted[rank.clamp(1, scores.len()) - 1])
}

impl EstimateRule {
    /// From clean labelled images: every fourth fits the bias, the others give the residuals, so that the interval holds.
    ///
    /// # Errors
    /// If there are fewer than two images, or too few for `delta`, saying how many it takes.
    pub fn fitted(images: &[LabelledCells], delta: f64) -> Result<Self> {
        let fits = |place: &usize| place.is_multiple_of(PART);
        let places = || 0..images.len();
        let for_bias: Vec<(Vec<f32>, f64)> = places()
            .filter(fits)
            .map(|place| (images[place].variances.clone(), images[place].error))
            .collect();
        let bias = fit_bias(&for_bias)?;
        let residual =
            |place: usize| (images[place].error - expected_error(&images[place].variances, bias)).abs();
        let mut residuals: Vec<f64> = places().filter(|place| !fits(place)).map(residual).collect();
        residuals.sort_by(f64::total_cmp);
        rank(residuals.len(), delta, "the interval of the error estimate").map_err(|e| {
            let total = (images_for(delta) * PART).div_ceil(PART - 1);
            let words = format!(
                "{e} (every fourth of {} labelled images fits the bias, so {total} are needed)",
                images.len()
            );
            Error::setting("calibration", words)
        })?;
        Ok(Self { bias: Some(bias), delta, residuals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn too_few_images_are_told_how_many_it_takes() {
        for (n, delta, fits) in [
            (15, 0.05, false),
            (18, 0.05, false),
            (19, 0.05, true),
            (1, 0.001, false),
            (999, 0.001, true),
            (9, 0.1, true),
        ] {
            assert_eq!(rank(n, delta, "x").is_ok(), fits, "{n} at {delta}");
        }
        assert_eq!((images_for(0.05), images_for(0.001), images_for(0.1), images_for(0.5)), (19, 999, 9, 1));
        let sentence = rank(15, 0.05, "the false alarm rate").unwrap_err().to_string();
        assert!(sentence.contains("it takes 19") && sentence.contains("6.25 %"), "{sentence}");
        assert!(rank(5, 0.0, "x").is_err() && rank(5, 1.0, "x").is_err());
        assert_eq!(rank(200, 0.1, "x").unwrap(), 181);
    }

    /// Coverage over many draws of calibration and test numbers is what was promised, or a little more.
    #[test]
    fn the_promise_is_kept() {
        let mut random = Random::new(5);
        let mut image = || {
            let error = random.uniform(0.0, 0.6);
            LabelledCells { variances: vec![random.uniform(0.0, 0.05); 3], error: f64::from(error) }
        };
        let (mut held, mut trials) = (0usize, 0usize);
        for _ in 0..150 {
            let images: Vec<LabelledCells> = (0..53).map(|_| image()).collect();
            let rule = EstimateRule::fitted(&images, 0.1).unwrap();
            for _ in 0..20 {
                let one = image();
                let estimate = expected_error(&one.variances, rule.bias.unwrap());
                let super::super::Interval::Within { low, high, .. } = rule.interval(estimate).unwrap()
                else {
                    panic!("an interval")
                };
                held += usize::from((low..=high).contains(&one.error));
                trials += 1;
            }
        }
        let coverage = held as f64 / trials as f64;
        assert!((0.885..0.94).contains(&coverage), "{coverage}");
        assert!(EstimateRule::fitted(&(0..11).map(|_| image()).collect::<Vec<_>>(), 0.1).is_err());
        assert!(EstimateRule::fitted(&(0..12).map(|_| image()).collect::<Vec<_>>(), 0.1).is_ok());
    }
}
