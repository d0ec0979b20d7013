//! Classification: one class for the whole image. The answer holds the probability of every class, the softmax of the scores; an answer is right (1) or wrong (0).

use serde_json::{Value, json};

use super::kind::{NO_TENSORS, no_table};
use super::{
    AnswerFile, ClassInfo, Labels, OutputSign, Painting, Prediction, PredictionData, Readout, Signs, Task,
    TaskKind, Truth, TruthData, TruthSource, UsualSet, argmax, class_count, permutation,
};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::ResizeRule;
use crate::network::{Extents, Tensor, softmax};
use crate::view::Letterbox;

pub(super) const KIND: TaskKind = TaskKind {
    name: "classification",
    about: "one class for the whole image",
    figure: "accuracy",
    estimates_error: true,
    keys: &[],
    tensors: NO_TENSORS,
    signs: Signs {
        output: |shape, _| match *shape {
            [1, classes] | [1, classes, 1, 1] if classes > 1 => {
                Some(OutputSign { words: format!("one score for each of {classes} classes"), classes })
            }
            _ => None,
        },
        sets: &[
            UsualSet {
                usual_size: Some((224, 224)),
                ..UsualSet::new(1000, "imagenet", "1000 classes, as in ImageNet")
            },
            UsualSet {
                only_at: Some((32, 32)),
                ..UsualSet::new(10, "cifar10", "10 classes at 32x32, as in CIFAR-10")
            },
        ],
        resize: (ResizeRule::Crop, "as classifiers are tested: the middle of the image"),
        ..Signs::NONE
    },
    check: |own| no_table("classification", own),
    make: |_, _| Ok(Box::new(Classification)),
};

/// Classes that words and JSON list besides the first.
const LISTED: usize = 5;

/// One class for the whole image.
#[derive(Clone, Copy, Debug)]
pub struct Classification;

#[derive(Debug)]
struct TrueClass(usize);

#[derive(Debug)]
struct ClassAnswer {
    class: usize,
    probabilities: Vec<f32>,
}

impl Truth {
    /// One class for the whole image.
    pub fn of_class(class: usize) -> Self {
        Self::new(TrueClass(class))
    }

    /// The class, if it is one of the whole image.
    pub fn class(&self) -> Option<usize> {
        self.get::<TrueClass>().map(|truth| truth.0)
    }
}

impl Prediction {
    /// One class for the whole image, and the probability of every class.
    pub fn of_class(class: usize, probabilities: Vec<f32>) -> Self {
        Self::new(ClassAnswer { class, probabilities })
    }

    /// The class, if it is one for the whole image.
    pub fn class(&self) -> Option<usize> {
        self.get::<ClassAnswer>().map(|answer| answer.class)
    }

    /// The probability of every class, of an answer for the whole image.
    pub fn probabilities(&self) -> Option<&[f32]> {
        self.get::<ClassAnswer>().map(|answer| answer.probabilities.as_slice())
    }

    /// The k most probable classes with their probabilities, of an answer for the whole image; of equals the lower first.
    pub fn top(&self, k: usize) -> Vec<(usize, f32)> {
        self.get::<ClassAnswer>().map_or(Vec::new(), |answer| answer.top(k))
    }
}

impl ClassAnswer {
    fn top(&self, k: usize) -> Vec<(usize, f32)> {
        let mut all: Vec<(usize, f32)> = self.probabilities.iter().copied().enumerate().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        all
    }

    fn probability(&self) -> Option<f32> {
        self.probabilities.get(self.class).copied()
    }
}

impl TruthData for TrueClass {
    fn bytes(&self) -> Vec<u8> {
        (self.0 as u64).to_le_bytes().to_vec()
    }

    fn kind(&self) -> &'static str {
        "one class"
    }

    fn as_prediction(&self) -> Prediction {
        let mut probabilities = vec![0.0; self.0 + 1];
        probabilities[self.0] = 1.0;
        Prediction::of_class(self.0, probabilities)
    }

    fn framed(&self, _: &Letterbox) -> Result<Truth> {
        Ok(Truth::of_class(self.0))
    }
}

impl PredictionData for ClassAnswer {
    fn as_truth(&self) -> Truth {
        Truth::of_class(self.class)
    }

    fn same(&self, other: &Prediction) -> bool {
        other.get::<Self>().is_some_and(|o| o.class == self.class && o.probabilities == self.probabilities)
    }

    fn words(&self, classes: &ClassInfo<'_>) -> String {
        let percent = self.probability().map_or(String::new(), |p| format!(" {:.0} %", 100.0 * p));
        format!("{}{percent}", classes.word(self.class))
    }

    fn ranking(&self, classes: &ClassInfo<'_>, most: usize) -> String {
        let percent =
            |p: f32| if p < 0.1 { format!("{:.1}", 100.0 * p) } else { format!("{:.0}", 100.0 * p) };
        let one = |(class, p): (usize, f32)| format!("{} {} %", classes.word(class), percent(p));
        self.top(most).into_iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn json(&self, classes: &ClassInfo<'_>) -> Value {
        let one = |(class, probability): (usize, f32)| json!({ "class": class, "name": classes.name(class), "probability": probability });
        json!({
            "class": self.class,
            "name": classes.name(self.class),
            "probability": self.probability(),
            "top": self.top(LISTED).into_iter().map(one).collect::<Vec<_>>(),
            "probabilities": self.probabilities,
        })
    }

    fn paint(&self, under: &Image, _: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        Ok(Painting { caption: Some(self.words(classes)), ..Painting::of(under.clone()) })
    }

    fn files(&self, classes: &ClassInfo<'_>) -> Result<Vec<AnswerFile>> {
        let bytes = format!("{}\n", self.json(classes)).into_bytes();
        Ok(vec![AnswerFile::Bytes { suffix: "classes.json", bytes }])
    }

    fn unframed(&self, _: &Letterbox) -> Result<Prediction> {
        Ok(Prediction::of_class(self.class, self.probabilities.clone()))
    }
}

impl Task for Classification {
    fn kind(&self) -> &'static TaskKind {
        &KIND
    }

    fn readout(&self) -> Readout {
        Readout::Classes
    }

    fn classes(&self, scores: &Tensor) -> Result<usize> {
        class_count(scores, self.name())
    }

    fn predict(&self, scores: &Tensor, _: (usize, usize)) -> Result<Prediction> {
        let extents = scores.extents("scores")?;
        scores.check_finite("scores")?;
        match extents.cells() {
            1 => Ok(Prediction::of_class(argmax(scores.data()), softmax(scores.data(), extents))),
            _ => Err(Error::mismatch(
                "scores of a classifier",
                "[1, classes]",
                format!("{:?}", scores.shape()),
            )),
        }
    }

    fn labels(&self, truth: &Truth, scores: Extents, _: (usize, usize)) -> Result<Labels> {
        match truth.class() {
            Some(class) if class < scores.channels => Ok(Labels { size: (1, 1), labels: vec![class as u16] }),
            Some(label) => Err(Error::UnknownClass { what: "label".into(), label, classes: scores.channels }),
            None => Err(truth.mismatch("truth of a classifier", "one class")),
        }
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        let right = prediction.class().is_some() && prediction.class() == truth.class();
        f64::from(u8::from(right))
    }

    fn reached(&self) -> f64 {
        1.0
    }

    fn check_truth(&self, truth: &Truth, classes: usize, _: (usize, usize), what: &str) -> Result<()> {
        match truth.class() {
            Some(class) if class < classes || classes == 0 => Ok(()),
            Some(label) => Err(Error::UnknownClass { what: what.into(), label, classes }),
            None => Err(truth.mismatch(&format!("{what}: truth of a classifier"), "one class")),
        }
    }

    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth> {
        let class = source.classes.class(source.given);
        let path = std::path::Path::new(source.given);
        if class.is_err() && path.exists() {
            let reason = format!(
                "says nothing about {}; a class, lines of `picture,class` or folders called as classes do",
                source.picture.display()
            );
            return Err(Error::File { path: path.to_owned(), reason });
        }
        if class.is_err() && (path.extension().is_some() || source.given.contains(std::path::MAIN_SEPARATOR))
        {
            let reason = "there is no such file or folder, and no class of this name".into();
            return Err(Error::File { path: path.to_owned(), reason });
        }
        Ok(Truth::of_class(class?))
    }

    fn target(&self, wish: &str, truth: &Truth, classes: &ClassInfo<'_>, seed: u64) -> Result<Option<Truth>> {
        if wish != "permuted" {
            if wish.starts_with("vanish:") || wish.starts_with("recast:") {
                return Err(Error::setting(
                    "target",
                    "is about objects, and a classifier finds none; a class is needed",
                ));
            }
            return Ok(Some(Truth::of_class(classes.class(wish)?)));
        }
        let class = truth.class().ok_or_else(|| truth.mismatch("truth of a classifier", "one class"))?;
        Ok(Some(Truth::of_class(permutation(classes.count, seed)?[class % classes.count])))
    }

    fn cell_errors(&self, outputs: &[f32], extents: Extents, truth: &Truth) -> Result<Vec<Option<f32>>> {
        let label = self.labels(truth, extents, (1, 1))?.labels[0];
        Ok(vec![outputs.get(usize::from(label)).map(|p| 1.0 - p)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_every_probability() {
        let scores = Tensor::new(vec![1, 4], vec![0.0, 2.0, 2.0, -1.0]).unwrap();
        let said = Classification.predict(&scores, (8, 8)).unwrap();
        assert_eq!(said.class(), Some(1), "the first of equals");
        assert!((said.probabilities().unwrap().iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert_eq!(said.top(2).iter().map(|t| t.0).collect::<Vec<_>>(), [1, 2]);
        let names = ["a", "b", "c", "d"].map(String::from);
        let classes = ClassInfo { names: &names, count: 4, ..ClassInfo::default() };
        assert_eq!(said.words(&classes), "b 46 %");
        let json = said.json(&classes);
        assert_eq!((json["class"].as_u64(), json["name"].as_str()), (Some(1), Some("b")));
        assert_eq!(json["top"][1]["name"], "c");
        assert_eq!(json["probabilities"].as_array().unwrap().len(), 4);
        let painted = said.paint(&Image::filled(8, 8, 0.5), 0.5, &classes).unwrap();
        assert_eq!(painted.caption.as_deref(), Some("b 46 %"));
        assert_eq!(said.as_truth(), Truth::of_class(1));
        assert_eq!(Classification.score(&said, &Truth::of_class(1)), 1.0);
        assert!(said.label_map().is_none());
    }

    #[test]
    fn targets_and_refusals() {
        let classes = ClassInfo { count: 4, ..ClassInfo::default() };
        let target = |wish: &str| Classification.target(wish, &Truth::of_class(2), &classes, 3);
        assert_ne!(target("permuted").unwrap().unwrap(), Truth::of_class(2));
        assert_eq!(target("3").unwrap().unwrap().class(), Some(3));
        assert!(target("4").is_err() && target("cat").is_err());
        let single = Tensor::new(vec![1, 1], vec![0.0]).unwrap();
        let sentence = Classification.classes(&single).unwrap_err().to_string();
        assert!(sentence.contains("regression"), "{sentence}");
        let extents = Extents { channels: 3, height: 1, width: 1 };
        assert!(Classification.labels(&Truth::of_class(3), extents, (2, 2)).is_err());
    }
}
