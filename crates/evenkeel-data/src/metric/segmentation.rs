//! Scores of label maps: one confusion matrix over the whole data set, and from it mIoU, per-class IoU, pixel accuracy.
//!
//! IoU_c = n_cc / (truth_c + predicted_c - n_cc); mIoU = mean over the classes present in truth or prediction. Pixels
//! whose true label is `ignore` count nowhere. A prediction outside the classes is wrong: it adds to the truth's count
//! and to no class. Scored against an attack's target instead of the truth, the same figures are "mIoU to the target".
//! Invariant: counts are integers, so order and splitting change nothing.

use super::bootstrap::{Bootstrap, Interval, Resampled, Tally};
use super::confusion::Confusion;
use super::table::{Better, Metric, TaskTally, Unit};
use crate::{Error, Result};

/// The label of pixels that are left out, unless a data set says otherwise.
pub const IGNORE: u16 = 255;

const fn metric(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    figure: fn(&TaskTally) -> Option<f64>,
) -> Metric {
    let (tasks, better, unit) = (&["semantic"], Better::Higher, Unit::Share);
    Metric { name, title, about, tasks, better, unit, figure: Some(figure) }
}

fn overlap(tally: &TaskTally) -> Option<&ClassOverlap> {
    match tally {
        TaskTally::Pixels(overlap) => Some(overlap),
        _ => None,
    }
}

pub(super) const MIOU: Metric = metric(
    "miou",
    "mIoU",
    "mean over classes of intersection over union, from one confusion of all images (semantic)",
    |tally| overlap(tally)?.mean_iou(),
);
pub(super) const PIXEL_ACCURACY: Metric = metric(
    "pixel-accuracy",
    "pixel accuracy",
    "share of labelled pixels whose class is right (semantic)",
    |tally| overlap(tally)?.pixel_accuracy(),
);

/// Per class: pixels right, pixels true, pixels predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOverlap {
    right: Vec<u64>,
    truth: Vec<u64>,
    predicted: Vec<u64>,
}

impl ClassOverlap {
    /// The tally of one image's counts per class: pixels right, true and predicted.
    ///
    /// # Errors
    /// If the lists differ in length, or more pixels are right than true or predicted.
    pub fn from_counts(right: Vec<u64>, truth: Vec<u64>, predicted: Vec<u64>) -> Result<Self> {
        let sound = right.len() == truth.len()
            && right.len() == predicted.len()
            && (0..right.len()).all(|c| right[c] <= truth[c].min(predicted[c]));
        match sound {
            true => Ok(Self { right, truth, predicted }),
            false => Err(Error::Request("counts per class that no pair of label maps has".into())),
        }
    }

    /// From counts that are those of a confusion matrix.
    pub(super) fn counted(right: Vec<u64>, truth: Vec<u64>, predicted: Vec<u64>) -> Self {
        Self { right, truth, predicted }
    }

    /// Per class: pixels right, true and predicted.
    pub fn counts(&self) -> [&[u64]; 3] {
        [&self.right, &self.truth, &self.predicted]
    }

    /// No pixels yet.
    pub fn empty(classes: usize) -> Self {
        Self { right: vec![0; classes], truth: vec![0; classes], predicted: vec![0; classes] }
    }

    /// IoU of each class; `None` where it is absent from truth and prediction.
    pub fn iou(&self) -> Vec<Option<f64>> {
        (0..self.right.len())
            .map(|c| {
                let union = self.truth[c] + self.predicted[c] - self.right[c];
                (union > 0).then(|| self.right[c] as f64 / union as f64)
            })
            .collect()
    }

    /// Mean IoU over the classes that are present.
    pub fn mean_iou(&self) -> Option<f64> {
        let present: Vec<f64> = self.iou().into_iter().flatten().collect();
        (!present.is_empty()).then(|| present.iter().sum::<f64>() / present.len() as f64)
    }

    /// Share of labelled pixels that are right.
    pub fn pixel_accuracy(&self) -> Option<f64> {
        let pixels: u64 = self.truth.iter().sum();
        (pixels > 0).then(|| self.right.iter().sum::<u64>() as f64 / pixels as f64)
    }
}

impl Tally for ClassOverlap {
    /// Classes past those of this one are left out: pixels taken for them stay wrong, but they are not averaged over.
    fn add(&mut self, image: &Self, times: u64) {
        let pairs = [
            (&mut self.right, &image.right),
            (&mut self.truth, &image.truth),
            (&mut self.predicted, &image.predicted),
        ];
        for (mine, theirs) in pairs {
            mine.iter_mut().zip(theirs).for_each(|(m, t)| *m += t * times);
        }
    }
}

/// The running score of a semantic segmentation study.
#[derive(Clone, Debug)]
pub struct SegmentationScore {
    ignore: u16,
    confusion: Confusion,
    overlap: Resampled<ClassOverlap>,
    unlabelled: u64,
}

impl SegmentationScore {
    /// An empty score over `classes` classes.
    pub fn new(classes: usize, ignore: u16, plan: Bootstrap) -> Self {
        let overlap = Resampled::new(ClassOverlap::empty(classes), plan);
        Self { ignore, confusion: Confusion::empty(classes), overlap, unlabelled: 0 }
    }

    /// Takes in one image; one without a labelled pixel is left out and counted as such. Refuses maps of different sizes and true labels that are neither a
    /// class nor ignored.
    pub fn push(&mut self, key: u64, truth: &[u16], predicted: &[u16]) -> Result<()> {
        if truth.len() != predicted.len() {
            return Err(Error::Request(format!(
                "{} labels against {} predictions",
                truth.len(),
                predicted.len()
            )));
        }
        let classes = self.confusion.classes();
        let mut image = Confusion::empty(classes);
        for (&t, &p) in truth.iter().zip(predicted).filter(|(t, _)| **t != self.ignore) {
            if !image.count(t.into(), p.into()) {
                return Err(Error::Request(format!("label {t} is outside the {classes} classes")));
            }
        }
        if image.total() == 0 {
            self.unlabelled += 1;
            return Ok(());
        }
        self.confusion.merge(&image);
        self.overlap.push(key, &image.overlap());
        Ok(())
    }

    /// Takes in another part of the same study.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.ignore, other.ignore, "parts of one study ignore the same label");
        self.confusion.merge(&other.confusion);
        self.overlap.merge(&other.overlap);
        self.unlabelled += other.unlabelled;
    }

    /// The figures over all images.
    pub fn figures(&self) -> &ClassOverlap {
        self.overlap.whole()
    }

    /// The bootstrap interval of a figure.
    pub fn interval(
        &self,
        confidence: f64,
        figure: impl Fn(&ClassOverlap) -> Option<f64>,
    ) -> Option<Interval> {
        self.overlap.interval(confidence, figure)
    }

    /// Pixels of true class `truth` predicted as `predicted`; `predicted == classes` asks for those outside.
    pub fn confusion(&self, truth: usize, predicted: usize) -> u64 {
        self.confusion.at(truth, predicted)
    }

    /// Labelled pixels whose prediction was no class.
    pub fn outside(&self) -> u64 {
        self.confusion.outside()
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.overlap.images()
    }

    /// Images without a labelled pixel, which are left out.
    pub fn unlabelled(&self) -> u64 {
        self.unlabelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_the_data_do_not_know_is_an_error_but_no_class() {
        // of four pixels of class 0 one is taken for class 1, one for a class 2 that no truth has
        let image = ClassOverlap::from_counts(vec![2, 3, 0], vec![4, 3, 0], vec![2, 4, 1]).unwrap();
        let mut sum = ClassOverlap::empty(2);
        sum.add(&image, 1);
        assert_eq!(sum.mean_iou(), Some((2.0 / 4.0 + 3.0 / 4.0) / 2.0));
        assert_eq!(image.mean_iou(), Some((2.0 / 4.0 + 3.0 / 4.0) / 3.0));
    }
}
