//! Fano's bound: how accurate any reading of a prediction can be that tells I nats of a class with entropy H(Y).
//!
//! A reader who errs with probability ε needs H(Y) − I <= G(ε), G(ε) = h(ε) + ε ln(n − 1), h the binary entropy; G rises on [0, 1 − 1/n] from 0 to ln n. So the
//! accuracy is at most c(I) = 1 − G⁻¹(H(Y) − I). More constraints tell more, and raise the ceiling: the paper's argument for many of them. Invariant: c does
//! not fall as I grows, c(H(Y)) = 1, and c(0) >= 1/n.

/// G(ε) = h(ε) + ε ln(n − 1) in nats: the most that can be left unknown of one of `classes` classes by who errs with probability `epsilon`.
pub fn error_entropy(epsilon: f64, classes: usize) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    let others = (classes as f64 - 1.0).max(1.0);
    part(epsilon) + part(1.0 - epsilon) + epsilon * others.ln()
}

/// c(I) = 1 − G⁻¹(H(Y) − I): the highest accuracy that `information` about a class of this entropy allows, both in nats. `None` for fewer than 2 classes or
/// numbers that no class has.
pub fn accuracy_bound(entropy: f64, information: f64, classes: usize) -> Option<f64> {
    if classes < 2 || !entropy.is_finite() || !information.is_finite() || entropy < 0.0 || information < 0.0 {
        return None;
    }
    let unknown = entropy - information;
    let (mut low, mut high) = (0.0, 1.0 - 1.0 / classes as f64);
    if unknown <= 0.0 {
        return Some(1.0);
    }
    if unknown >= error_entropy(high, classes) {
        return Some(1.0 - high);
    }
    // as often as halves an interval of doubles to nothing
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        match error_entropy(middle, classes) < unknown {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(1.0 - 0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_computed_by_hand() {
        let ln = |n: f64| n.ln();
        // two classes, nothing left unknown, everything left unknown
        assert_eq!(accuracy_bound(ln(2.0), ln(2.0), 2), Some(1.0));
        assert_eq!(accuracy_bound(ln(2.0), 0.0, 2), Some(0.5));
        // four classes: G(1/2) = ln 2 + (ln 3)/2, so that much unknown allows one half
        let half = ln(2.0) + 0.5 * ln(3.0);
        assert!((accuracy_bound(ln(4.0), ln(4.0) - half, 4).unwrap() - 0.5).abs() < 1e-12);
        // ten classes: h(1/10) = 0.3250829733914482, 0.1 ln 9 = 0.21972245773362198
        assert!((error_entropy(0.1, 10) - 0.544_805_431_125_070_2).abs() < 1e-12);
        assert!(
            (accuracy_bound(ln(10.0), ln(10.0) - 0.544_805_431_125_070_2, 10).unwrap() - 0.9).abs() < 1e-12
        );
        // two classes, a binary symmetric channel with error 1/4: its own accuracy is the bound
        let h = -(0.25 * ln(0.25) + 0.75 * ln(0.75));
        assert!((accuracy_bound(ln(2.0), ln(2.0) - h, 2).unwrap() - 0.75).abs() < 1e-12);
        assert!((accuracy_bound(ln(19.0), 0.0, 19).unwrap() - 1.0 / 19.0).abs() < 1e-9);
    }

    #[test]
    fn it_rises_with_information_and_refuses_nonsense() {
        for classes in [2usize, 3, 19, 1000] {
            let entropy = 0.8 * (classes as f64).ln();
            let bounds: Vec<f64> = (0..=50)
                .map(|k| accuracy_bound(entropy, entropy * k as f64 / 50.0, classes).unwrap())
                .collect();
            assert!(bounds.windows(2).all(|two| two[0] <= two[1]), "{classes} classes: {bounds:?}");
            assert!(bounds[0] >= 1.0 / classes as f64 && bounds[50] == 1.0);
            let inverse = |accuracy: f64| error_entropy(1.0 - accuracy, classes);
            assert!((inverse(bounds[25]) - entropy / 2.0).abs() < 1e-9);
        }
        assert_eq!(accuracy_bound(1.0, 0.5, 1), None);
        assert_eq!(accuracy_bound(f64::NAN, 0.5, 3), None);
        assert_eq!(accuracy_bound(1.0, -0.5, 3), None);
    }
}
