//! Semantic segmentation: one class per pixel. The answer holds, beside the label map, the probability of each pixel's class; the score of an answer is the mean IoU over
//! the classes in it or in the truth.
//!
//! Scores are brought bilinearly to the image's size before the best class is taken, and the softmax after that.

mod answer;
mod iou;

pub use iou::{ClassOverlap, mean_iou};

use super::kind::{NO_TENSORS, no_table};
use super::{
    ClassInfo, Labels, OutputSign, Prediction, Readout, Signs, Task, TaskKind, Truth, TruthSource, UsualSet,
    best_classes, class_count, permutation, size_words,
};
use crate::error::{Error, Result};
use crate::image::{IGNORED, LabelMap};
use crate::network::{Extents, Tensor};
use crate::view::Sampler;
use std::borrow::Cow;

pub(super) const KIND: TaskKind = TaskKind {
    name: "semantic",
    about: "one class per pixel",
    figure: "miou",
    estimates_error: true,
    keys: &[],
    tensors: NO_TENSORS,
    signs: Signs {
        output: |shape, map| match *shape {
            [1, classes, ..] if classes > 1 && map => {
                Some(OutputSign { words: format!("a map of scores for each of {classes} classes"), classes })
            }
            _ => None,
        },
        sets: &[
            UsualSet::new(19, "cityscapes", "19 classes, as in Cityscapes"),
            UsualSet::new(20, "cityscapes:20", "20 classes, as in Cityscapes with background"),
            UsualSet::new(21, "voc", "21 classes, as in Pascal VOC"),
        ],
        map: true,
        coloured: true,
        ..Signs::NONE
    },
    check: |own| no_table("semantic", own),
    make: |_, _| Ok(Box::new(Semantic)),
};

/// What label maps are called beside a picture: by its own name, or as `evenkeel predict --out` writes them.
const ENDINGS: [&str; 2] = [".png", ".labels.png"];

/// One class per pixel.
#[derive(Clone, Copy, Debug)]
pub struct Semantic;

/// The scores at the image's size.
fn fine(scores: &Tensor, size: (usize, usize)) -> Result<(Cow<'_, [f32]>, Extents)> {
    let extents = scores.extents("scores")?;
    scores.check_finite("scores")?;
    if extents.size() == size {
        return Ok((Cow::Borrowed(scores.data()), extents));
    }
    let scaled = Sampler::resize(extents.size(), size).apply(scores.data(), extents.channels);
    Ok((Cow::Owned(scaled), Extents { channels: extents.channels, height: size.0, width: size.1 }))
}

/// The probability of each cell's best class: 1 / Σ exp(z − z_best).
fn confidences(scores: &[f32], extents: Extents, best: &[u16]) -> Vec<f32> {
    let cells = extents.cells();
    let top: Vec<f32> = best.iter().enumerate().map(|(i, c)| scores[usize::from(*c) * cells + i]).collect();
    let mut sum = vec![0.0f32; cells];
    for plane in scores.chunks(cells) {
        sum.iter_mut().zip(plane.iter().zip(&top)).for_each(|(sum, (z, top))| *sum += (z - top).exp());
    }
    sum.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
    sum
}

fn map_of<'a>(truth: &'a Truth, what: &str) -> Result<&'a LabelMap> {
    truth.label_map().ok_or_else(|| truth.mismatch(what, "a label map"))
}

impl Task for Semantic {
    fn kind(&self) -> &'static TaskKind {
        &KIND
    }

    fn readout(&self) -> Readout {
        Readout::Classes
    }

    fn classes(&self, scores: &Tensor) -> Result<usize> {
        if let &[_, classes] = scores.shape() {
            let reason = format!(
                "the output has one score for each of {classes} classes and no map of them: declare the task `classification`"
            );
            return Err(Error::setting("task semantic", reason));
        }
        class_count(scores, self.name())
    }

    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction> {
        let (fine, extents) = fine(scores, size)?;
        let best = best_classes(&fine, extents);
        let confidence = confidences(&fine, extents, &best);
        Prediction::of_labels(LabelMap::new(size.0, size.1, best)?, confidence)
    }

    fn labels(&self, truth: &Truth, scores: Extents, size: (usize, usize)) -> Result<Labels> {
        self.check_truth(truth, scores.channels, size, "label map")?;
        let map = map_of(truth, "truth of a segmenter")?;
        Ok(Labels { size: map.size(), labels: map.labels().to_vec() })
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction.label_map(), truth.label_map()) {
            (Some(said), Some(is)) => mean_iou(said.labels(), is.labels()),
            _ => 0.0,
        }
    }

    fn score_of(&self, scores: &Tensor, size: (usize, usize), truth: &Truth) -> Result<f64> {
        let (fine, extents) = fine(scores, size)?;
        Ok(truth.label_map().map_or(0.0, |is| mean_iou(&best_classes(&fine, extents), is.labels())))
    }

    fn check_truth(&self, truth: &Truth, classes: usize, size: (usize, usize), what: &str) -> Result<()> {
        let map = map_of(truth, &format!("{what}: truth of a segmenter"))?;
        if map.size() != size {
            return Err(Error::mismatch(what, size_words(size), size_words(map.size())));
        }
        map.check_classes(classes, what)
    }

    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth> {
        let path = source.file(&ENDINGS)?;
        if !path.is_file() {
            let reason =
                "there is no such file: a segmenter's truth is a label map or a folder of them".into();
            return Err(Error::File { path, reason });
        }
        let map = match source.classes.palette {
            Some(palette) => LabelMap::load_painted(&path, palette)?,
            None => LabelMap::load(&path)?,
        };
        if source.classes.count > 0 {
            map.check_classes(source.classes.count, &path.display().to_string())?;
        }
        let original = source.is_original(map.size(), &path)?;
        Ok(Truth::of_labels(if original { source.frame.apply_labels(&map)? } else { map }))
    }

    fn target(&self, wish: &str, truth: &Truth, classes: &ClassInfo<'_>, seed: u64) -> Result<Option<Truth>> {
        let map = map_of(truth, "truth of a segmenter")?;
        let rename: Box<dyn Fn(&u16) -> u16> = match (wish, classes.class(wish)) {
            ("permuted", _) => {
                let next = permutation(classes.count, seed)?;
                Box::new(move |label| next.get(usize::from(*label)).map_or(*label, |next| *next as u16))
            }
            (_, Ok(class)) => Box::new(move |_| class as u16),
            _ if wish.starts_with("vanish:") || wish.starts_with("recast:") => {
                let cure = "is about objects, and a segmenter finds none; a class, permuted or a label map is needed";
                return Err(Error::setting("target", cure));
            }
            _ => return Ok(None),
        };
        let labels = map.labels().iter().map(rename).collect();
        Ok(Some(Truth::of_labels(LabelMap::new(map.height(), map.width(), labels)?)))
    }

    fn cell_errors(&self, outputs: &[f32], extents: Extents, truth: &Truth) -> Result<Vec<Option<f32>>> {
        let (height, width) = extents.size();
        let map = map_of(truth, "truth of a segmenter")?.resized(height, width);
        let cells = extents.cells();
        let error = |(i, label): (usize, &u16)| {
            let label = usize::from(*label);
            let known = label < extents.channels && label != usize::from(IGNORED);
            known.then(|| 1.0 - outputs[label * cells + i])
        };
        Ok(map.labels().iter().enumerate().map(error).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_wrong_kind_are_refused() {
        let extents = Extents { channels: 3, height: 2, width: 2 };
        let map = |labels: Vec<u16>| Truth::of_labels(LabelMap::new(2, 2, labels).unwrap());
        assert!(Semantic.labels(&map(vec![0, 1, 2, 255]), extents, (2, 2)).is_ok());
        let sentence = Semantic.labels(&map(vec![0, 1, 3, 0]), extents, (2, 2)).unwrap_err().to_string();
        assert!(sentence.contains("label 3"), "{sentence}");
        let sentence = Semantic.labels(&map(vec![0; 4]), extents, (4, 3)).unwrap_err().to_string();
        assert_eq!(sentence, "label map: expected 3x4, got 2x2");
        assert!(Semantic.labels(&Truth::of_class(0), extents, (2, 2)).is_err());
        assert!(map(vec![255; 4]).label_map().is_some() && !map(vec![255; 4]).is_labelled());
        let wish = Semantic.target("vanish:car", &map(vec![0; 4]), &ClassInfo::default(), 0);
        assert!(wish.unwrap_err().to_string().contains("a segmenter finds none"));
    }

    /// The confidence is the softmax of the answer's class at the image's size, and the fast score is the slow one.
    #[test]
    fn every_pixel_has_the_probability_of_its_class() {
        let scores = Tensor::new(vec![1, 2, 2, 2], vec![0.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 0.0]).unwrap();
        let said = Semantic.predict(&scores, (2, 2)).unwrap();
        assert_eq!(said.label_map().unwrap().labels(), [1, 1, 0, 0]);
        let sure = |z: f32| 1.0 / (1.0 + (-z).exp());
        let expected = [sure(3.0), sure(1.0), sure(1.0), sure(3.0)];
        let confidence = said.confidence().unwrap();
        assert!(confidence.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{confidence:?}");
        let truth = Truth::of_labels(LabelMap::new(4, 6, (0..24).map(|i| i % 2).collect()).unwrap());
        let slow = Semantic.score(&Semantic.predict(&scores, (4, 6)).unwrap(), &truth);
        assert_eq!(Semantic.score_of(&scores, (4, 6), &truth).unwrap(), slow);
        let errors = Semantic
            .cell_errors(
                &[0.25; 8],
                Extents { channels: 2, height: 2, width: 2 },
                &Truth::of_labels(LabelMap::new(2, 2, vec![0, 1, 255, 0]).unwrap()),
            )
            .unwrap();
        assert_eq!(errors, [Some(0.75), Some(0.75), None, Some(0.75)]);
    }
}
