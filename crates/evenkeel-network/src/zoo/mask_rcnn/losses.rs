//! The values of Mask R-CNN's losses and their derivatives.
//!
//! Classes: cross-entropy of softmax, mean over regions. Objectness and masks: binary cross-entropy of logits, mean over what counts. Boxes: smooth
//! L1, d²/2β below β = 1/9 and |d| - β/2 above, summed and divided by the number of samples.

const BETA: f32 = 1.0 / 9.0;

/// Binary cross-entropy of a logit, and its derivative.
pub(super) fn binary(logit: f32, truth: f32) -> (f32, f32) {
    let value = logit.max(0.0) - logit * truth + (-logit.abs()).exp().ln_1p();
    (value, 1.0 / (1.0 + (-logit).exp()) - truth)
}

/// Smooth L1 of a difference, and its derivative.
pub(super) fn smooth(difference: f32) -> (f32, f32) {
    let size = difference.abs();
    if size < BETA {
        (0.5 * difference * difference / BETA, difference / BETA)
    } else {
        (size - 0.5 * BETA, difference.signum())
    }
}

/// Cross-entropy of a row of logits with its true class. `derivative` gets `scale` times the derivative.
pub(super) fn cross_entropy(logits: &[f32], truth: usize, scale: f32, derivative: &mut [f32]) -> f32 {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    for (i, (d, logit)) in derivative.iter_mut().zip(logits).enumerate() {
        *d = scale * ((logit - largest).exp() / sum - f32::from(u8::from(i == truth)));
    }
    largest + sum.ln() - logits[truth]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_values() {
        let step = 1e-3f32;
        for x in [-3.0f32, -0.5, -0.05, 0.02, 0.4, 2.5] {
            for truth in [0.0, 0.3, 1.0] {
                let slope = (binary(x + step, truth).0 - binary(x - step, truth).0) / (2.0 * step);
                assert!((slope - binary(x, truth).1).abs() < 1e-3);
            }
            let slope = (smooth(x + step).0 - smooth(x - step).0) / (2.0 * step);
            assert!((slope - smooth(x).1).abs() < 1e-3);
        }
        let logits = [0.5f32, -1.0, 2.0];
        let mut derivative = [0f32; 3];
        cross_entropy(&logits, 1, 2.0, &mut derivative);
        for i in 0..3 {
            let at = |by: f32| {
                let mut moved = logits;
                moved[i] += by;
                cross_entropy(&moved, 1, 1.0, &mut [0.0; 3])
            };
            assert!((2.0 * (at(step) - at(-step)) / (2.0 * step) - derivative[i]).abs() < 2e-3);
        }
    }
}
