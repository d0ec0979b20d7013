//! The certificate of randomised smoothing (Cohen, Rosenfeld, Kolter 2019) for a classifier that votes over Gaussian noise.
//!
//! Of n draws of N(0, σ²), k gave the class; p is the lower Clopper–Pearson bound at level α, the p with P(Bin(n, p) ≥ k) = α. If p > 1/2 the vote's
//! answer is the same for every image within an L2 distance of σ·Φ⁻¹(p), up to a chance of α; else it abstains. The class is chosen by draws of its own:
//! one chosen by the draws that are counted would be flattered by them.

use serde_json::{Value, json};

/// What is known of a vote over noise.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// The class.
    pub class: usize,
    /// Draws that gave it.
    pub count: usize,
    /// Draws.
    pub draws: usize,
    /// The lower bound on the probability that a draw gives it.
    pub probability: f64,
    /// The L2 distance (pixel values in [0, 1]) within which the answer stays; `None` where the vote abstains.
    pub radius: Option<f64>,
    /// The chance that the bound does not hold.
    pub alpha: f64,
}

impl Certificate {
    /// The certificate of `count` of `draws` for a class, at level `alpha`, of noise of deviation `sigma`.
    pub fn new(class: usize, count: usize, draws: usize, alpha: f64, sigma: f64) -> Self {
        let probability = lower_bound(count, draws, alpha);
        let radius = (probability > 0.5).then(|| sigma * normal_quantile(probability));
        Self { class, count, draws, probability, radius, alpha }
    }

    /// Whether nothing is certified.
    pub fn abstains(&self) -> bool {
        self.radius.is_none()
    }

    /// The same for machines.
    pub fn json(&self) -> Value {
        json!({
            "class": self.class,
            "count": self.count,
            "draws": self.draws,
            "probability": self.probability,
            "radius_l2": self.radius,
            "alpha": self.alpha,
            "abstains": self.abstains(),
        })
    }
}

/// The lower Clopper–Pearson bound at level `alpha` for `count` of `draws`.
pub fn lower_bound(count: usize, draws: usize, alpha: f64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if tail(count, draws, middle) < alpha { low = middle } else { high = middle }
    }
    low
}

/// P(Bin(n, p) ≥ k) for k ≥ 1: the terms from the largest down, each from the one before by its ratio, so that nothing overflows.
fn tail(k: usize, n: usize, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let log_term = |i: usize| {
        log_factorial(n) - log_factorial(i) - log_factorial(n - i)
            + i as f64 * p.ln()
            + (n - i) as f64 * (-p).ln_1p()
    };
    // the mode of the terms from k on
    let mode = (((n + 1) as f64 * p).floor() as usize).clamp(k, n);
    let odds = p / (1.0 - p);
    let top = log_term(mode).exp();
    let up = |i: usize| (n - i) as f64 / (i + 1) as f64 * odds;
    let (mut sum, mut term) = (top, top);
    for i in mode..n {
        term *= up(i);
        sum += term;
    }
    term = top;
    for i in (k..mode).rev() {
        term /= up(i);
        sum += term;
    }
    sum.min(1.0)
}

/// ln n!, summed.
fn log_factorial(n: usize) -> f64 {
    (2..=n).map(|i| (i as f64).ln()).sum()
}

/// Φ⁻¹(p) for 0 < p < 1 (P. J. Acklam's rational approximation, relative error below 1.2e-9).
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let poly = |all: &[f64], x: f64| all.iter().fold(0.0, |sum, c| sum * x + c);
    let edge = 0.02425;
    if p < edge {
        let q = (-2.0 * p.ln()).sqrt();
        poly(&C, q) / (poly(&D, q) * q + 1.0)
    } else if p <= 1.0 - edge {
        let q = p - 0.5;
        let r = q * q;
        poly(&A, r) * q / (poly(&B, r) * r + 1.0)
    } else {
        -normal_quantile(1.0 - p)
    }
}
