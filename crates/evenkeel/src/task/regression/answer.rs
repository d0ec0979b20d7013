//! Values as a truth and as an answer: words, JSON, a picture in colours with a scale bar, files.

use std::sync::Arc;

use serde_json::{Value, json};

use super::colours::{SHADES, viridis};
use super::{RegressionRule, ValueMap};
use crate::error::Result;
use crate::image::Image;
use crate::network::Extents;
use crate::task::{AnswerFile, ClassInfo, Painting, Prediction, PredictionData, ScaleBar, Truth, TruthData};
use crate::view::Letterbox;

#[derive(Debug)]
struct TrueValues(ValueMap);

#[derive(Debug)]
struct ValueAnswer {
    map: ValueMap,
    rule: Arc<RegressionRule>,
}

impl Truth {
    /// Real values of the image or of its pixels; NaN where nothing is known.
    pub fn of_values(map: ValueMap) -> Self {
        Self::new(TrueValues(map))
    }

    /// The values, if the truth is made of them.
    pub fn values(&self) -> Option<&ValueMap> {
        self.get::<TrueValues>().map(|truth| &truth.0)
    }
}

impl Prediction {
    /// Real values of the image or of its pixels, with what they mean.
    pub fn of_values(map: ValueMap, rule: &Arc<RegressionRule>) -> Self {
        Self::new(ValueAnswer { map, rule: rule.clone() })
    }

    /// The values, if the answer is made of them.
    pub fn values(&self) -> Option<&ValueMap> {
        self.get::<ValueAnswer>().map(|answer| &answer.map)
    }
}

impl TruthData for TrueValues {
    fn bytes(&self) -> Vec<u8> {
        let Extents { channels, height, width } = self.0.extents();
        let form = [channels, height, width].into_iter().flat_map(|n| (n as u64).to_le_bytes());
        form.chain(self.0.values().iter().flat_map(|v| v.to_le_bytes())).collect()
    }

    fn kind(&self) -> &'static str {
        "values"
    }

    fn as_prediction(&self) -> Prediction {
        Prediction::of_values(self.0.clone(), &Arc::default())
    }

    fn framed(&self, frame: &Letterbox) -> Result<Truth> {
        Ok(Truth::of_values(self.0.framed(frame)?))
    }

    fn is_labelled(&self) -> bool {
        self.0.bounds().is_some()
    }
}

impl ValueAnswer {
    /// What the colours span.
    fn span(&self) -> (f32, f32) {
        let declared = self.rule.range.map(|[low, high]| (low, high));
        declared.or_else(|| self.map.bounds()).unwrap_or((0.0, 1.0))
    }

    fn place(&self, value: f32) -> f32 {
        let (low, high) = self.span();
        if high > low { (value - low) / (high - low) } else { 0.5 + 0.0 * value }
    }

    fn with_unit(&self, number: String) -> String {
        if self.rule.unit.is_empty() { number } else { format!("{number} {}", self.rule.unit) }
    }

    fn mean(&self) -> Option<f64> {
        let known: Vec<f64> =
            self.map.values().iter().filter(|v| v.is_finite()).map(|v| f64::from(*v)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

impl PredictionData for ValueAnswer {
    fn as_truth(&self) -> Truth {
        Truth::of_values(self.map.clone())
    }

    fn same(&self, other: &Prediction) -> bool {
        self.as_truth() == other.as_truth()
    }

    fn words(&self, _: &ClassInfo<'_>) -> String {
        let number = |v: f32| format!("{:.3}", v);
        if self.map.is_vector() {
            let all: Vec<String> = self.map.values().iter().map(|v| number(*v)).collect();
            return self.with_unit(all.join(", "));
        }
        match (self.mean(), self.map.bounds()) {
            (Some(mean), Some((low, high))) => {
                let range = self.with_unit(format!("{} to {}", number(low), number(high)));
                format!("mean {} ({range})", self.with_unit(format!("{mean:.3}")))
            }
            _ => "no known value".into(),
        }
    }

    fn json(&self, _: &ClassInfo<'_>) -> Value {
        let Extents { channels, height, width } = self.map.extents();
        let (low, high) = self.map.bounds().unzip();
        json!({
            "unit": self.rule.unit,
            "channels": channels,
            "size": [height, width],
            "mean": self.mean(),
            "min": low,
            "max": high,
            "values": self.map.is_vector().then(|| self.map.values().to_vec()),
        })
    }

    /// One channel in colours of its own, three as red, green and blue; of other numbers the first is shown. Opacity makes no difference: values are read off colours.
    fn paint(&self, under: &Image, _: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        let Extents { channels, height, width } = self.map.extents();
        if self.map.is_vector() {
            return Ok(Painting { caption: Some(self.words(classes)), ..Painting::of(under.clone()) });
        }
        let values = self.map.values();
        if channels == 3 {
            let shown = values
                .iter()
                .map(|v| self.place(*v).clamp(0.0, 1.0))
                .map(|v| if v.is_finite() { v } else { 0.0 });
            return Ok(Painting::of(Image::new(height, width, shown.collect())?));
        }
        let colours: Vec<[u8; 3]> =
            values[..height * width].iter().map(|v| viridis(self.place(*v))).collect();
        let (low, high) = self.span();
        let shades = (0..SHADES).map(|k| viridis(k as f32 / (SHADES - 1) as f32)).collect();
        let scale = ScaleBar { low, high, unit: self.rule.unit.clone(), colours: shades };
        Ok(Painting {
            scale: Some(scale),
            ..Painting::of(Image::from_rgb8(height, width, colours.as_flattened())?)
        })
    }

    fn files(&self, _: &ClassInfo<'_>) -> Result<Vec<AnswerFile>> {
        let mut files = vec![AnswerFile::Bytes { suffix: "values.npy", bytes: self.map.to_npy() }];
        if let Some(bytes) = self.map.to_png16(&self.rule)? {
            files.push(AnswerFile::Bytes { suffix: "values.png", bytes });
        }
        Ok(files)
    }

    fn unframed(&self, frame: &Letterbox) -> Result<Prediction> {
        Ok(Prediction::of_values(self.map.unframed(frame)?, &self.rule))
    }

    /// The mean over channels of |a − b|, in shares of what the colours span.
    fn difference(&self, other: &Prediction) -> Option<Vec<f32>> {
        let other = other.values().filter(|o| o.extents() == self.map.extents() && !o.is_vector())?;
        let (cells, channels) = (self.map.extents().cells(), self.map.extents().channels);
        let apart = |at: usize| (self.place(self.map.values()[at]) - self.place(other.values()[at])).abs();
        let mean = |i: usize| (0..channels).map(|c| apart(c * cells + i)).sum::<f32>() / channels as f32;
        Some((0..cells).map(|i| mean(i).clamp(0.0, 1.0)).collect())
    }
}
