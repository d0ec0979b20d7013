//! Objects as a truth and as an answer: words, JSON, pictures, and the way back from a network's frame.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Instance, Mask, confident, overlay};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::task::{ClassInfo, Painting, Prediction, PredictionData, Truth, TruthData};
use crate::view::Letterbox;

/// Masks hide no more of the image than this.
const MOST_OPAQUE: f32 = 0.55;

#[derive(Debug)]
struct TrueInstances(Vec<Instance>);

#[derive(Debug)]
struct InstanceAnswer {
    size: (usize, usize),
    found: Vec<Instance>,
}

impl Truth {
    /// Each object.
    pub fn of_instances(objects: Vec<Instance>) -> Self {
        Self::new(TrueInstances(objects))
    }

    /// The objects, if the truth is about objects.
    pub fn instances(&self) -> Option<&[Instance]> {
        self.get::<TrueInstances>().map(|truth| truth.0.as_slice())
    }
}

impl Prediction {
    /// Each object seen in an image of this (height, width), the most confident first.
    pub fn of_instances(size: (usize, usize), found: Vec<Instance>) -> Self {
        Self::new(InstanceAnswer { size, found })
    }

    /// The objects, the most confident first, if the answer is about objects.
    pub fn instances(&self) -> Option<&[Instance]> {
        self.get::<InstanceAnswer>().map(|answer| answer.found.as_slice())
    }
}

impl TruthData for TrueInstances {
    fn bytes(&self) -> Vec<u8> {
        let one = |object: &Instance| {
            let class = (object.class as u64).to_le_bytes().to_vec();
            [class, object.mask.to_full().into_iter().map(u8::from).collect()]
        };
        self.0.iter().flat_map(one).flatten().collect()
    }

    fn kind(&self) -> &'static str {
        "instances"
    }

    fn as_prediction(&self) -> Prediction {
        let size = self.0.first().map_or((0, 0), |object| object.mask.size());
        Prediction::of_instances(size, self.0.clone())
    }

    /// What is too small to be seen in the frame is not there.
    fn framed(&self, frame: &Letterbox) -> Result<Truth> {
        let one = |object: &Instance| Instance::truth(object.class, object.mask.framed(frame));
        Ok(Truth::of_instances(self.0.iter().map(one).filter(|object| object.mask.area() > 0).collect()))
    }
}

impl PredictionData for InstanceAnswer {
    fn as_truth(&self) -> Truth {
        Truth::of_instances(confident(&self.found).into_iter().cloned().collect())
    }

    fn same(&self, other: &Prediction) -> bool {
        other.instances().is_some_and(|found| found == self.found)
    }

    fn words(&self, classes: &ClassInfo<'_>) -> String {
        let mut counts = BTreeMap::new();
        confident(&self.found).iter().for_each(|one| *counts.entry(one.class).or_insert(0usize) += 1);
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(class, n)| (std::cmp::Reverse(*n), *class));
        let words: Vec<String> =
            counts.iter().map(|(class, n)| format!("{n} {}", classes.word(*class))).collect();
        if words.is_empty() { "nothing".into() } else { words.join(", ") }
    }

    fn json(&self, classes: &ClassInfo<'_>) -> Value {
        let one = |instance: &&Instance| {
            json!({
                "class": instance.class,
                "name": classes.name(instance.class),
                "score": instance.score,
                "box": instance.corners,
                "area": instance.mask.area(),
            })
        };
        let sure: Vec<Value> = confident(&self.found).iter().map(one).collect();
        json!({ "instances": sure, "candidates": self.found.len() })
    }

    fn paint(&self, under: &Image, opacity: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        let found = confident(&self.found);
        let image = overlay::overlaid(under, &found, opacity.min(MOST_OPAQUE))?;
        Ok(Painting { legend: overlay::legend(&found, classes), ..Painting::of(image) })
    }

    fn unframed(&self, frame: &Letterbox) -> Result<Prediction> {
        if self.size != frame.frame() {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("instances", words(frame.frame()), words(self.size)));
        }
        let found = self.found.iter().map(|instance| instance.unframed(frame)).collect();
        Ok(Prediction::of_instances(frame.image(), found))
    }
}

impl Instance {
    /// What was seen in the frame, on the image.
    pub fn unframed(&self, frame: &Letterbox) -> Self {
        let (rows, columns) = frame.image_places();
        let [left, top] = frame.unframed_point([self.corners[0], self.corners[1]]);
        let [right, bottom] = frame.unframed_point([self.corners[2], self.corners[3]]);
        Self { corners: [left, top, right, bottom], mask: self.mask.on_grid(&rows, &columns), ..*self }
    }
}

impl Mask {
    /// A mask on the image, as it lies in the frame.
    pub fn framed(&self, frame: &Letterbox) -> Self {
        let (rows, columns) = frame.frame_places();
        self.on_grid(&rows, &columns)
    }
}
