//! The confusion matrix: how often each true class was taken for each class. Accuracy, IoU and information are read off it.
//!
//! n[t][p] counts pixels or images of true class t predicted as p; one more column counts predictions outside the classes, which are wrong and of no
//! class. Invariant: counts are integers, so order and splitting change nothing.

use super::segmentation::ClassOverlap;

/// Counts `[truth][predicted]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// Nothing counted yet.
    pub fn empty(classes: usize) -> Self {
        Self { classes, counts: vec![0; classes * (classes + 1)] }
    }

    /// Counts one prediction; false if the true class is none of the classes, and then nothing is counted.
    pub fn count(&mut self, truth: usize, predicted: usize) -> bool {
        let known = truth < self.classes;
        if known {
            self.counts[truth * (self.classes + 1) + predicted.min(self.classes)] += 1;
        }
        known
    }

    /// Counts a prediction several times; one of no true class is left out.
    pub fn count_times(&mut self, truth: usize, predicted: usize, times: u64) {
        if truth < self.classes {
            self.counts[truth * (self.classes + 1) + predicted.min(self.classes)] += times;
        }
    }

    /// Adds another matrix of as many classes.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.classes, other.classes, "parts of one study share their classes");
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How often `truth` was predicted as `predicted`; `predicted == classes` asks for those outside.
    pub fn at(&self, truth: usize, predicted: usize) -> u64 {
        self.counts[truth * (self.classes + 1) + predicted]
    }

    /// Predictions that were no class.
    pub fn outside(&self) -> u64 {
        (0..self.classes).map(|t| self.at(t, self.classes)).sum()
    }

    /// Everything counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The rows, one for each true class, without the column of predictions outside.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.counts.chunks(self.classes + 1).map(|row| &row[..self.classes])
    }

    /// Per class: right, true and predicted.
    pub fn overlap(&self) -> ClassOverlap {
        let row = |t: usize| &self.counts[t * (self.classes + 1)..][..self.classes + 1];
        let right = (0..self.classes).map(|c| self.at(c, c)).collect();
        let truth = (0..self.classes).map(|t| row(t).iter().sum()).collect();
        let predicted = (0..self.classes).map(|p| (0..self.classes).map(|t| self.at(t, p)).sum()).collect();
        ClassOverlap::from_counts(right, truth, predicted).expect("counts of a confusion matrix are sound")
    }

    /// H(Y), the entropy of the true class, in nats.
    pub fn label_entropy(&self) -> f64 {
        let total = self.total() as f64;
        entropy((0..self.classes).map(|t| (0..=self.classes).map(|p| self.at(t, p)).sum()), total)
    }

    /// I(Y; Ŷ), how much the prediction tells of the true class, in nats: H(Y) + H(Ŷ) − H(Y, Ŷ). As an estimate from few samples it is too high rather than
    /// too low.
    pub fn information(&self) -> f64 {
        let total = self.total() as f64;
        let predicted = (0..=self.classes).map(|p| (0..self.classes).map(|t| self.at(t, p)).sum());
        let joint = entropy(self.counts.iter().copied(), total);
        (self.label_entropy() + entropy(predicted, total) - joint).max(0.0)
    }
}

/// −Σ p ln p of counts that add up to `total`.
fn entropy(counts: impl Iterator<Item = u64>, total: f64) -> f64 {
    counts.filter(|count| *count > 0).map(|count| count as f64 / total).map(|p| -p * p.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(classes: usize, pairs: &[(usize, usize, u64)]) -> Confusion {
        let mut all = Confusion::empty(classes);
        for (truth, predicted, times) in pairs {
            (0..*times).for_each(|_| assert!(all.count(*truth, *predicted)));
        }
        all
    }

    #[test]
    fn information_is_all_nothing_or_what_a_hand_computes() {
        let ln2 = std::f64::consts::LN_2;
        let right = of(2, &[(0, 0, 8), (1, 1, 8)]);
        assert!((right.label_entropy() - ln2).abs() < 1e-12 && (right.information() - ln2).abs() < 1e-12);
        let blind = of(2, &[(0, 0, 4), (0, 1, 4), (1, 0, 4), (1, 1, 4)]);
        assert!(blind.information().abs() < 1e-12);
        // a symmetric channel with error 1/4: ln 2 − h(1/4)
        let noisy = of(2, &[(0, 0, 3), (0, 1, 1), (1, 0, 1), (1, 1, 3)]);
        let h = -(0.25f64 * 0.25f64.ln() + 0.75 * 0.75f64.ln());
        assert!((noisy.information() - (ln2 - h)).abs() < 1e-12);
    }

    #[test]
    fn predictions_outside_are_wrong_and_of_no_class() {
        let mut all = of(2, &[(0, 0, 2), (0, 9, 1), (1, 1, 3)]);
        assert!(!all.count(2, 0), "no such true class");
        assert_eq!((all.outside(), all.total()), (1, 6));
        assert_eq!(all.overlap().counts(), [&[2, 3][..], &[3, 3], &[2, 3]]);
        assert_eq!(all.rows().next(), Some(&[2, 0][..]));
    }
}
