//! What a network says of an image. Each task has its own kind of answer; everybody else sees a [`Prediction`] and asks it for words, JSON, pictures, files,
//! or, by a typed accessor that the task's folder adds (`class()`, `label_map()`, `instances()`, `values()`), for its content.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::{Painting, Truth};
use crate::error::Result;
use crate::image::{Image, Palette};
use crate::view::Letterbox;

/// What a network says of an image, with its probabilities or values. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Prediction(Arc<dyn PredictionData>);

/// Names, colours and numbers of a model's classes, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassInfo<'a> {
    /// The names in class order; empty if there are none.
    pub names: &'a [String],
    /// The colours.
    pub palette: Option<&'a Palette>,
    /// The numbers that the data set gives the classes; empty if they are 0, 1, 2…
    pub ids: &'a [i64],
    /// How many classes there are; 0 if that is not known.
    pub count: usize,
}

impl ClassInfo<'_> {
    /// The name of a class, if it has one.
    pub fn name(&self, class: usize) -> Option<&str> {
        self.names.get(class).map(String::as_str)
    }

    /// The name of a class, or its number in words.
    pub fn word(&self, class: usize) -> String {
        self.name(class).map_or(format!("class {class}"), str::to_owned)
    }

    /// The colours of the model, or the VOC ones if it names none.
    pub fn colours(&self) -> Palette {
        self.palette.cloned().unwrap_or_else(|| Palette::of_voc(256))
    }

    /// The names that were perhaps meant, for messages: those that differ in case, hold the text, or have it with one or two letters changed.
    fn nearest(&self, text: &str) -> String {
        let text = text.to_lowercase();
        let far = |name: &String| match name.to_lowercase() {
            name if name.contains(&text) && text.len() > 2 => 0,
            name => letters_apart(&name, &text),
        };
        let mut near: Vec<_> = self.names.iter().map(|name| (far(name), name)).collect();
        near.retain(|(far, name)| *far <= 2 && *far < name.len());
        near.sort();
        let near: Vec<_> = near.iter().take(3).map(|(_, name)| name.as_str()).collect();
        if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
    }

    /// A class by number or name.
    ///
    /// # Errors
    /// If it is neither.
    pub fn class(&self, text: &str) -> Result<usize> {
        let number = text.parse().ok().filter(|class| self.count == 0 || *class < self.count);
        number.or_else(|| self.names.iter().position(|name| name == text)).ok_or_else(|| {
            let reason = "neither a class number nor the name of a class of this model";
            crate::error::Error::setting(text, format!("{reason}{}", self.nearest(text)))
        })
    }
}

/// How many letters must be changed, added or left out to make one word the other.
fn letters_apart(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let change = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[row.len() - 1]
}

/// A file that an answer leaves in a folder of answers; its name begins with the picture's own.
#[derive(Clone, Debug)]
pub enum AnswerFile {
    /// A picture, in the format that is wanted.
    Picture {
        /// What follows the picture's name, without an ending.
        suffix: &'static str,
        /// The picture.
        image: Image,
    },
    /// A file of the answer's own format.
    Bytes {
        /// What follows the picture's name, with the ending.
        suffix: &'static str,
        /// The content.
        bytes: Vec<u8>,
    },
}

/// A task's own kind of answer.
pub trait PredictionData: Any + Debug + Send + Sync {
    /// The answer as a truth, for attacks without labels and for targets taken from another image.
    fn as_truth(&self) -> Truth;

    /// Whether another answer says the same.
    fn same(&self, other: &Prediction) -> bool;

    /// The answer for people, in a line.
    fn words(&self, classes: &ClassInfo<'_>) -> String;

    /// The same with the next best answers, where there are any.
    fn ranking(&self, classes: &ClassInfo<'_>, _most: usize) -> String {
        self.words(classes)
    }

    /// The answer for machines.
    fn json(&self, classes: &ClassInfo<'_>) -> Value;

    /// The answer as a picture over the image it was given for; `opacity` 1 hides the image where the answer is a picture by itself.
    ///
    /// # Errors
    /// If image and answer do not belong together.
    fn paint(&self, under: &Image, opacity: f32, classes: &ClassInfo<'_>) -> Result<Painting>;

    /// What is kept in a folder of answers, beside pictures: what `evenkeel score` reads.
    ///
    /// # Errors
    /// If something cannot be encoded.
    fn files(&self, _: &ClassInfo<'_>) -> Result<Vec<AnswerFile>> {
        Ok(Vec::new())
    }

    /// What was said of the frame, on the image that was brought into it.
    ///
    /// # Errors
    /// If the answer is not one for such a frame.
    fn unframed(&self, frame: &Letterbox) -> Result<Prediction>;

    /// How much another answer differs at every pixel, from 0 (the same) to 1; nothing for answers without pixels.
    fn difference(&self, _: &Prediction) -> Option<Vec<f32>> {
        None
    }
}

impl Prediction {
    /// An answer of a task's own kind.
    pub fn new(data: impl PredictionData) -> Self {
        Self(Arc::new(data))
    }

    /// The answer, if it is of this kind; for the task's own folder.
    pub fn get<T: PredictionData>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// The answer as a truth, for attacks without labels and for targets taken from another image.
    pub fn as_truth(&self) -> Truth {
        self.0.as_truth()
    }

    /// The answer for people, in a line.
    pub fn words(&self, classes: &ClassInfo<'_>) -> String {
        self.0.words(classes)
    }

    /// The same with the next best answers, `most` in all, where there are any.
    pub fn ranking(&self, classes: &ClassInfo<'_>, most: usize) -> String {
        self.0.ranking(classes, most)
    }

    /// The answer for machines.
    pub fn json(&self, classes: &ClassInfo<'_>) -> Value {
        self.0.json(classes)
    }

    /// The answer as a picture with its legend over the image it was given for; `opacity` 1 shows it alone where it is a picture by itself.
    ///
    /// # Errors
    /// If image and answer do not belong together.
    pub fn paint(&self, under: &Image, opacity: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        self.0.paint(under, opacity, classes)
    }

    /// What is kept of it in a folder of answers, beside pictures: what `evenkeel score` reads.
    ///
    /// # Errors
    /// If something cannot be encoded.
    pub fn files(&self, classes: &ClassInfo<'_>) -> Result<Vec<AnswerFile>> {
        self.0.files(classes)
    }

    /// What was said of the frame, on the image that was brought into it ([`crate::Model::framing`]): at the image's own size.
    ///
    /// # Errors
    /// If the answer is not one for such a frame.
    pub fn unframed(&self, frame: &Letterbox) -> Result<Self> {
        if frame.is_identity() { Ok(self.clone()) } else { self.0.unframed(frame) }
    }

    /// How much another answer differs at every pixel, from 0 (the same) to 1; nothing for answers without pixels.
    pub fn difference(&self, other: &Self) -> Option<Vec<f32>> {
        self.0.difference(other)
    }
}

impl PartialEq for Prediction {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(other)
    }
}
