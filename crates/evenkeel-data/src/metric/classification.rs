//! Scores of a classifier's answers in files against labels in files: top-1, top-5, the confusion matrix, the calibration error.
//!
//! Answers: CSV with the columns `image`, `class` and, if known, `p0`, `p1`, …; JSON (a list, or a line for each image as `evenkeel predict --json` prints them: `image` and
//! `class`, `probabilities`, by themselves or under `prediction`); or a folder of `NAME.classes.json`, as `evenkeel predict --out` writes them. Labels: CSV with `image` and
//! `label`, or JSON, a list of such objects or one object from image to label. Images are matched by file name without folder and ending. Every fault is found before
//! figures are given.

use super::accuracy::Accuracy;
use super::bootstrap::{Bootstrap, Interval, Resampled, key_of};
use super::calibration::Calibration;
use super::confusion::Confusion;
use super::table::{ClassTally, Metric, TaskTally};
use crate::dataset::Offender;
use crate::dataset::walk::{files_under, name_of};
use crate::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What `evenkeel predict --out` adds to a picture's name.
const SUFFIX: &str = ".classes.json";
const FORMS: &str =
    "write CSV with the columns image,class[,p0,p1,…] or JSON with image, class and probabilities";
const LABEL_FORMS: &str = "write CSV with the columns image,label or JSON from image to label";

/// One answer.
#[derive(Clone, Debug, PartialEq)]
struct ClassAnswer {
    class: usize,
    probabilities: Vec<f64>,
}

/// Answers by image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassAnswers(BTreeMap<String, ClassAnswer>);

/// Where the true classes are.
#[derive(Clone, Copy, Debug)]
pub enum ClassLabels<'a> {
    /// In a CSV or JSON file.
    File(&'a Path),
    /// Here, by image; folders and endings of the names do not count.
    Known(&'a BTreeMap<String, usize>),
}

/// Answers and labels, and how to compare them.
#[derive(Clone, Debug)]
pub struct ClassComparison<'a> {
    /// The labels.
    pub labels: ClassLabels<'a>,
    /// The file or folder of answers.
    pub answers: &'a Path,
    /// How many classes there are; if not said, as many as the files show.
    pub classes: Option<usize>,
    /// Resampling for confidence intervals.
    pub plan: Bootstrap,
    /// Leave offenders out instead of refusing.
    pub skip_bad: bool,
}

/// The running score of a classifier.
#[derive(Clone, Debug)]
pub struct ClassScore {
    confusion: Confusion,
    tally: Resampled<TaskTally>,
}

impl ClassScore {
    /// An empty score.
    pub fn new(classes: usize, plan: Bootstrap) -> Self {
        let empty = TaskTally::Classes(Box::default());
        Self { confusion: Confusion::empty(classes), tally: Resampled::new(empty, plan) }
    }

    /// Takes in one image: the class that was said, the probabilities of all classes if they are known, and the true class.
    ///
    /// # Errors
    /// If the true class is none of the classes, or the probabilities are not those of the classes.
    pub fn push(&mut self, key: u64, said: usize, probabilities: &[f64], truth: usize) -> Result<()> {
        let classes = self.confusion.classes();
        let fail = |words: String| Err(Error::Request(words));
        if truth >= classes {
            return fail(format!("label {truth} is outside the {classes} classes"));
        }
        if !probabilities.is_empty() && probabilities.len() != classes {
            return fail(format!("{} probabilities for {classes} classes", probabilities.len()));
        }
        let mut tally = ClassTally { accuracy: Accuracy::of_class(said, truth), ..ClassTally::default() };
        if !probabilities.is_empty() {
            let own = probabilities[truth];
            let before = |(class, p): &(usize, &f64)| **p > own || (**p == own && *class < truth);
            let rank = probabilities.iter().enumerate().filter(before).count();
            let confidence = probabilities.get(said).copied().unwrap_or(f64::NAN);
            let Some(calibration) = Calibration::of(confidence, said == truth) else {
                return fail(format!(
                    "the probability of class {said} is {confidence}, which is not from 0 to 1"
                ));
            };
            tally = ClassTally { accuracy: Accuracy::of_rank(said, truth, rank), calibration };
        }
        self.confusion.count(truth, said);
        self.tally.push(key, &TaskTally::Classes(Box::new(tally)));
        Ok(())
    }

    /// The matrix of all images.
    pub fn confusion(&self) -> &Confusion {
        &self.confusion
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.tally.images()
    }

    /// A metric of the table with its interval; `None` where the answers do not tell it.
    pub fn figure(&self, metric: &Metric, confidence: f64) -> (Option<f64>, Option<Interval>) {
        let whole = self.tally.whole();
        let known = match whole {
            // of images without probabilities the calibration is not known
            TaskTally::Classes(all) => {
                all.calibration.images() == 0 || all.calibration.images() == self.images()
            }
            _ => true,
        };
        let value = metric.value(whole).filter(|_| known);
        (value, value.and_then(|_| self.tally.interval(confidence, |tally| metric.value(tally))))
    }
}

impl ClassComparison<'_> {
    /// The score, and the offenders that were left out. Without `skip_bad` any offender is an error that lists all.
    pub fn score(&self) -> Result<(ClassScore, Vec<Offender>)> {
        let labels = match self.labels {
            ClassLabels::File(path) => read_labels(path)?,
            ClassLabels::Known(labels) => labels.iter().map(|(image, label)| (bare(image), *label)).collect(),
        };
        let answers = ClassAnswers::read(self.answers)?.0;
        let seen = answers.values().map(|a| a.probabilities.len().max(a.class + 1));
        let most = seen.chain(labels.values().map(|label| label + 1)).max().unwrap_or(0);
        let mut score = ClassScore::new(self.classes.unwrap_or(most), self.plan);
        let mut offenders = Vec::new();
        for (image, label) in &labels {
            let Some(answer) = answers.get(image) else {
                let fault = format!("has no answer for {image}");
                offenders.push(Offender::new(self.answers, fault, "predict that image as well"));
                continue;
            };
            if let Err(e) = score.push(key_of(image), answer.class, &answer.probabilities, *label) {
                let remedy = "give --classes as the network has them, and its probabilities for all";
                offenders.push(Offender::new(self.answers, format!("{image}: {e}"), remedy));
            }
        }
        match !offenders.is_empty() && !self.skip_bad {
            true => Err(Error::Offenders(offenders)),
            false => Ok((score, offenders)),
        }
    }
}

impl ClassAnswers {
    /// Reads a file, or a folder of `NAME.classes.json`.
    ///
    /// # Errors
    /// If it cannot be read, or an answer is none.
    pub fn read(path: &Path) -> Result<Self> {
        let mut all = BTreeMap::new();
        if path.is_dir() {
            for file in files_under(path, &["json"])? {
                let name = name_of(&file);
                let Some(image) = name.strip_suffix(SUFFIX) else { continue };
                let values = json_values(&file)?;
                let answer = values
                    .first()
                    .and_then(answer_of)
                    .ok_or_else(|| offender(&file, "is no answer", FORMS))?;
                all.insert(image.to_string(), answer);
            }
            let none = || {
                offender(
                    path,
                    &format!("there is no *{SUFFIX} in it"),
                    "write them with `evenkeel predict --out`",
                )
            };
            return if all.is_empty() { Err(none()) } else { Ok(Self(all)) };
        }
        for (number, value) in rows(path, FORMS)?.iter().enumerate() {
            let fail = |words: &str| offender(path, &format!("entry {}: {words}", number + 1), FORMS);
            let image = value["image"].as_str().ok_or_else(|| fail("names no image"))?;
            let answer = answer_of(value).ok_or_else(|| fail("has no class"))?;
            if all.insert(bare(image), answer).is_some() {
                return Err(fail(&format!("{} comes twice", bare(image))));
            }
        }
        Ok(Self(all))
    }
}

/// The labels of a file.
fn read_labels(path: &Path) -> Result<BTreeMap<String, usize>> {
    if path.is_dir() {
        return Err(offender(path, "is a folder", LABEL_FORMS));
    }
    let rows = rows(path, LABEL_FORMS)?;
    let mut all = BTreeMap::new();
    let mut insert = |image: &str, label: Option<usize>| {
        let fail = |words: String| offender(path, &words, LABEL_FORMS);
        let label = label.ok_or_else(|| fail(format!("the label of {image} is no class number")))?;
        match all.insert(bare(image), label) {
            Some(_) => Err(fail(format!("{} comes twice", bare(image)))),
            None => Ok(()),
        }
    };
    let whole = |value: &Value| value.as_u64().map(|label| label as usize);
    for value in &rows {
        match (value["image"].as_str(), value.as_object()) {
            (Some(image), _) => insert(image, whole(&value["label"]))?,
            (None, Some(pairs)) => pairs.iter().try_for_each(|(image, label)| insert(image, whole(label)))?,
            (None, None) => return Err(offender(path, "holds something that is no label", LABEL_FORMS)),
        }
    }
    match all.is_empty() {
        true => Err(offender(path, "there are no labels in it", LABEL_FORMS)),
        false => Ok(all),
    }
}

fn offender(path: &Path, fault: &str, remedy: &str) -> Error {
    Error::Offenders(vec![Offender::new(path, fault, remedy)])
}

/// A name without folder and ending.
fn bare(image: &str) -> String {
    let name = image.rsplit(['/', '\\']).next().unwrap_or(image);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
}

fn answer_of(value: &Value) -> Option<ClassAnswer> {
    let value = if value["prediction"].is_object() { &value["prediction"] } else { value };
    let class = value["class"].as_u64()? as usize;
    let probabilities = match &value["probabilities"] {
        Value::Array(all) => all.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?,
        _ => Vec::new(),
    };
    Some(ClassAnswer { class, probabilities })
}

/// The objects of a CSV or JSON file.
fn rows(path: &Path, forms: &str) -> Result<Vec<Value>> {
    match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        true => csv_values(path, forms),
        false => json_values(path),
    }
}

/// The objects of a JSON file: one, a list of them, or one after the other.
fn json_values(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value.map_err(|e| offender(path, &format!("is not JSON: {e}"), "write it again"))? {
            Value::Array(list) => all.extend(list),
            other => all.push(other),
        }
    }
    Ok(all)
}

/// The lines of a CSV file as objects; columns p0, p1, … become a list.
fn csv_values(path: &Path, forms: &str) -> Result<Vec<Value>> {
    let fail = |e: csv::Error| offender(path, &e.to_string(), forms);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(fail)?;
    let head = reader.headers().map_err(fail)?.clone();
    let mut all = Vec::new();
    for record in reader.records() {
        let record = record.map_err(fail)?;
        let (mut object, mut probabilities) = (serde_json::Map::new(), Vec::new());
        for (key, text) in head.iter().zip(&record) {
            let number = || text.parse::<u64>().map_or(Value::Null, Value::from);
            match key {
                "image" => drop(object.insert(key.into(), text.into())),
                "class" | "label" => drop(object.insert(key.into(), number())),
                _ if key.strip_prefix('p').is_some_and(|k| k.parse() == Ok(probabilities.len())) => {
                    probabilities.push(text.parse::<f64>().map_or(Value::Null, Value::from));
                }
                _ => {}
            }
        }
        if !probabilities.is_empty() {
            object.insert("probabilities".into(), probabilities.into());
        }
        all.push(object.into());
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
