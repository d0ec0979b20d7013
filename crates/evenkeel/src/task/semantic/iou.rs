//! Overlap of label maps: per class the pixels right, true and said, and from them the intersection over union. The one place where it is computed.
//!
//! IoU_c = right_c / (true_c + said_c − right_c); mIoU = mean over the classes in truth or answer. Ignored pixels count nowhere; an answer outside the classes is wrong: it
//! adds to the truth's count and to no class. Invariant: counts are integers, so order and splitting change nothing.

use crate::image::IGNORED;

/// Per class: pixels right, pixels true, pixels predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOverlap {
    right: Vec<u64>,
    truth: Vec<u64>,
    predicted: Vec<u64>,
}

impl ClassOverlap {
    /// No pixels yet.
    pub fn empty(classes: usize) -> Self {
        Self { right: vec![0; classes], truth: vec![0; classes], predicted: vec![0; classes] }
    }

    /// The counts of one image; true labels that are no class are left out as ignored ones are.
    pub fn of(said: &[u16], is: &[u16], classes: usize) -> Self {
        let mut all = Self::empty(classes);
        let known = |is: u16| is != IGNORED && usize::from(is) < classes;
        for (&said, &is) in said.iter().zip(is).filter(|&(_, &is)| known(is)) {
            all.truth[usize::from(is)] += 1;
            all.right[usize::from(is)] += u64::from(said == is);
            if let Some(count) = all.predicted.get_mut(usize::from(said)).filter(|_| said != IGNORED) {
                *count += 1;
            }
        }
        all
    }

    /// From counts per class: pixels right, true and predicted. `None` if the lists differ in length, or more pixels are right than true or predicted.
    pub fn from_counts(right: Vec<u64>, truth: Vec<u64>, predicted: Vec<u64>) -> Option<Self> {
        let sound = right.len() == truth.len()
            && right.len() == predicted.len()
            && (0..right.len()).all(|c| right[c] <= truth[c].min(predicted[c]));
        sound.then_some(Self { right, truth, predicted })
    }

    /// Per class: pixels right, true and predicted.
    pub fn counts(&self) -> [&[u64]; 3] {
        [&self.right, &self.truth, &self.predicted]
    }

    /// Adds `times` copies of another count. Classes past those of this one are left out: pixels taken for them stay wrong, but they are not averaged over.
    pub fn add_times(&mut self, image: &Self, times: u64) {
        let pairs = [
            (&mut self.right, &image.right),
            (&mut self.truth, &image.truth),
            (&mut self.predicted, &image.predicted),
        ];
        for (mine, theirs) in pairs {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs * times);
        }
    }

    /// Labelled pixels.
    pub fn pixels(&self) -> u64 {
        self.truth.iter().sum()
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

    /// Mean IoU over the classes that are present; `None` if none is.
    pub fn mean_iou(&self) -> Option<f64> {
        let present: Vec<f64> = self.iou().into_iter().flatten().collect();
        (!present.is_empty()).then(|| present.iter().sum::<f64>() / present.len() as f64)
    }

    /// Share of labelled pixels that are right.
    pub fn pixel_accuracy(&self) -> Option<f64> {
        (self.pixels() > 0).then(|| self.right.iter().sum::<u64>() as f64 / self.pixels() as f64)
    }
}

/// The mean over classes of intersection over union of two label maps; 1 if nothing is labelled, so that nothing is wrong: who averages over images leaves such out.
pub fn mean_iou(said: &[u16], is: &[u16]) -> f64 {
    let classes = said.iter().chain(is).filter(|&&l| l != IGNORED).max().map_or(0, |&l| usize::from(l) + 1);
    ClassOverlap::of(said, is, classes).mean_iou().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_leaves_out_what_is_nowhere() {
        assert_eq!(mean_iou(&[0, 0, 1, 1], &[0, 0, 1, 1]), 1.0);
        assert_eq!(mean_iou(&[0, 0, 3, 3], &[0, 0, 1, 255]), 1.0 / 3.0);
        assert_eq!(mean_iou(&[7, 7], &[255, 255]), 1.0, "nothing labelled, nothing wrong");
    }

    #[test]
    fn answers_outside_the_classes_are_wrong_and_of_no_class() {
        let counted = ClassOverlap::of(&[0, 5, 255, 1], &[0, 0, 1, 1], 2);
        assert_eq!(counted.counts(), [&[1, 1][..], &[2, 2], &[1, 1]]);
        assert_eq!(counted.mean_iou(), Some(0.5));
    }
}
