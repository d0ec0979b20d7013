//! A label map as a truth, and with the probability of every pixel's class as an answer: words, JSON, pictures, files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::image::{IGNORED, Image, LabelMap};
use crate::task::{
    AnswerFile, ClassInfo, LegendEntry, Painting, Prediction, PredictionData, Truth, TruthData,
};
use crate::view::Letterbox;

/// Classes that words list.
const LISTED: usize = 4;

#[derive(Debug)]
struct TrueLabels(LabelMap);

#[derive(Debug)]
struct LabelAnswer {
    map: LabelMap,
    confidence: Vec<f32>,
}

impl Truth {
    /// A class per pixel.
    pub fn of_labels(map: LabelMap) -> Self {
        Self::new(TrueLabels(map))
    }

    /// The label map, if there is a class per pixel.
    pub fn label_map(&self) -> Option<&LabelMap> {
        self.get::<TrueLabels>().map(|truth| &truth.0)
    }
}

impl Prediction {
    /// A class per pixel, with its probability.
    ///
    /// # Errors
    /// If there is not one probability for each pixel.
    pub fn of_labels(map: LabelMap, confidence: Vec<f32>) -> Result<Self> {
        if confidence.len() != map.labels().len() {
            return Err(Error::mismatch("confidence of a label map", map.labels().len(), confidence.len()));
        }
        Ok(Self::new(LabelAnswer { map, confidence }))
    }

    /// The label map, if there is a class per pixel.
    pub fn label_map(&self) -> Option<&LabelMap> {
        self.get::<LabelAnswer>().map(|answer| &answer.map)
    }

    /// The probability of each pixel's class, beside [`Prediction::label_map`].
    pub fn confidence(&self) -> Option<&[f32]> {
        self.get::<LabelAnswer>().map(|answer| answer.confidence.as_slice())
    }
}

impl TruthData for TrueLabels {
    fn bytes(&self) -> Vec<u8> {
        self.0.labels().iter().flat_map(|l| l.to_le_bytes()).collect()
    }

    fn kind(&self) -> &'static str {
        "a label map"
    }

    fn as_prediction(&self) -> Prediction {
        let confidence = vec![1.0; self.0.labels().len()];
        Prediction::new(LabelAnswer { map: self.0.clone(), confidence })
    }

    fn framed(&self, frame: &Letterbox) -> Result<Truth> {
        Ok(Truth::of_labels(frame.apply_labels(&self.0)?))
    }

    fn is_labelled(&self) -> bool {
        self.0.labels().iter().any(|label| *label != IGNORED)
    }
}

impl LabelAnswer {
    /// Pixels of each class, and the sum of their probabilities.
    fn counts(&self) -> BTreeMap<u16, (usize, f64)> {
        let mut counts = BTreeMap::new();
        for (label, confidence) in self.map.labels().iter().zip(&self.confidence) {
            let (pixels, sum) = counts.entry(*label).or_insert((0usize, 0.0f64));
            *pixels += 1;
            *sum += f64::from(*confidence);
        }
        counts
    }
}

impl PredictionData for LabelAnswer {
    fn as_truth(&self) -> Truth {
        Truth::of_labels(self.map.clone())
    }

    fn same(&self, other: &Prediction) -> bool {
        other.get::<Self>().is_some_and(|o| o.map == self.map && o.confidence == self.confidence)
    }

    fn words(&self, classes: &ClassInfo<'_>) -> String {
        let mut shares: Vec<_> =
            self.counts().into_iter().map(|(label, (pixels, _))| (label, pixels)).collect();
        shares.sort_by_key(|(label, pixels)| (std::cmp::Reverse(*pixels), *label));
        let share = |pixels: usize| 100.0 * pixels as f64 / self.map.labels().len() as f64;
        let word = |(label, pixels): &(u16, usize)| {
            let name = classes.word((*label).into());
            match share(*pixels) {
                share if share < 0.5 => format!("{name} under 1 %"),
                share => format!("{name} {share:.0} %"),
            }
        };
        shares.iter().take(LISTED).map(word).collect::<Vec<_>>().join(", ")
    }

    fn json(&self, classes: &ClassInfo<'_>) -> Value {
        let pixels = self.map.labels().len() as f64;
        let mean = self.confidence.iter().map(|c| f64::from(*c)).sum::<f64>() / pixels;
        let one = |(label, (count, sum)): (u16, (usize, f64))| {
            json!({
                "class": label,
                "name": classes.name(label.into()),
                "share": count as f64 / pixels,
                "confidence": sum / count as f64,
            })
        };
        json!({ "classes": self.counts().into_iter().map(one).collect::<Vec<_>>(), "confidence": mean })
    }

    fn paint(&self, under: &Image, opacity: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        let palette = classes.colours();
        let image = self.map.overlaid(under, &palette, opacity)?;
        let entry =
            |label: u16| Ok(LegendEntry { name: classes.word(label.into()), colour: palette.colour(label)? });
        let present = self.counts().into_keys().filter(|label| *label != IGNORED);
        Ok(Painting { legend: present.map(entry).collect::<Result<_>>()?, ..Painting::of(image) })
    }

    fn files(&self, classes: &ClassInfo<'_>) -> Result<Vec<AnswerFile>> {
        let labels = self.map.encode_png(Some(&classes.colours()))?;
        let (height, width) = self.map.size();
        let grey = |plane: usize| plane % (height * width);
        let sure = Image::new(
            height,
            width,
            (0..3 * height * width).map(|i| self.confidence[grey(i)].clamp(0.0, 1.0)).collect(),
        )?;
        Ok(vec![
            AnswerFile::Bytes { suffix: "labels.png", bytes: labels },
            AnswerFile::Picture { suffix: "confidence", image: sure },
        ])
    }

    fn unframed(&self, frame: &Letterbox) -> Result<Prediction> {
        if self.map.size() != frame.frame() {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("label map", words(frame.frame()), words(self.map.size())));
        }
        let confidence = frame.unframed_values(&self.confidence, 0.0);
        Prediction::of_labels(frame.unframed_labels(&self.map)?, confidence)
    }

    fn difference(&self, other: &Prediction) -> Option<Vec<f32>> {
        let other = other.get::<Self>()?;
        let one = |(a, b): (&u16, &u16)| f32::from(u8::from(a != b));
        Some(self.map.labels().iter().zip(other.map.labels()).map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_painted_and_brought_back() {
        let map = LabelMap::new(4, 4, (0..16).map(|i| u16::from(i % 4 > 1)).collect()).unwrap();
        let said = Prediction::of_labels(map, (0..16).map(|i| 0.5 + 0.03 * i as f32).collect()).unwrap();
        let names = ["road", "car"].map(String::from);
        let classes = ClassInfo { names: &names, count: 2, ..ClassInfo::default() };
        assert_eq!(said.words(&classes), "road 50 %, car 50 %");
        let speck = LabelMap::new(20, 20, (0..400).map(|i| u16::from(i == 7)).collect()).unwrap();
        let speck = Prediction::of_labels(speck, vec![0.9; 400]).unwrap();
        assert_eq!(speck.words(&classes), "road 100 %, car under 1 %");
        let json = said.json(&classes);
        assert_eq!(json["classes"][1]["name"], "car");
        assert!(json["classes"][0]["confidence"].as_f64().unwrap() < json["confidence"].as_f64().unwrap());
        let painted = said.paint(&Image::filled(4, 4, 0.5), 0.5, &classes).unwrap();
        let legend: Vec<&str> = painted.legend.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(legend, ["road", "car"]);
        let frame = Letterbox::new((2, 4), (4, 4));
        let back = said.unframed(&frame).unwrap();
        assert_eq!(back.label_map().unwrap().size(), (2, 4));
        assert_eq!(back.label_map().unwrap().labels()[..4], [0, 0, 1, 1]);
        assert!((back.confidence().unwrap()[0] - 0.62).abs() < 1e-5);
        assert!(said.unframed(&Letterbox::new((2, 4), (8, 8))).is_err());
        assert_eq!(said.files(&classes).unwrap().len(), 2);
        assert_eq!(said.difference(&said).unwrap().iter().sum::<f32>(), 0.0);
        assert_eq!(said, said.clone());
    }
}
