//! Values on the command line.

use crate::data::ClassWeights;
use evenkeel::model::ClassSet;
use evenkeel::settings::parse_radius_255;
use evenkeel_data::dataset::Preparation;
use std::path::PathBuf;

/// A training keeps some megabytes for every picture of a batch.
const LARGEST_BATCH: usize = 512;

/// A distance between pixel values in [0, 1].
pub(super) fn radius(text: &str) -> Result<f32, String> {
    parse_radius_255(text).map(|radius_255| (radius_255 / 255.0) as f32).map_err(|e| e.to_string())
}

/// Refuses a file that would not be what its name says.
pub(super) fn output_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("onnx" | "safetensors") => Ok(path),
        _ => Err("name it .onnx, or .safetensors to have the weights in a file of their own".into()),
    }
}

/// A number of things of which there must be some.
pub(super) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("a whole number is needed".into()),
    }
}

/// A number of pictures whose maps fit into memory.
pub(super) fn batch(text: &str) -> Result<usize, String> {
    match count(text)? {
        number if number <= LARGEST_BATCH => Ok(number),
        _ => Err(format!("at most {LARGEST_BATCH} pictures can be in a batch")),
    }
}

/// A number within bounds.
fn number(text: &str, low: f32, high: f32) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("a number from {low} to {high} is needed")),
    }
}

/// A part of a whole.
pub(super) fn share(text: &str) -> Result<f32, String> {
    number(text, 0.0, 1.0)
}

/// How strongly something is changed.
pub(super) fn strength(text: &str) -> Result<f32, String> {
    number(text, 0.0, 2.0)
}

/// A learning rate.
pub(super) fn rate(text: &str) -> Result<f32, String> {
    number(text, f32::MIN_POSITIVE, 10.0)
}

/// Minutes of training.
pub(super) fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes.is_finite() => Ok(minutes),
        _ => Err("a number of minutes above 0 is needed".into()),
    }
}

/// `LEAST,MOST` of factors.
pub(super) fn range(text: &str) -> Result<(f32, f32), String> {
    let read = |text: &str| number(text.trim(), 0.05, 20.0).ok();
    match text.split_once(',').and_then(|(low, high)| Some((read(low)?, read(high)?))) {
        Some((low, high)) if low <= high => Ok((low, high)),
        _ => Err("two factors from 0.05 to 20 are needed, the smaller first, such as 0.6,1.7".into()),
    }
}

/// The size rule of a data set.
pub(super) fn size(text: &str) -> Result<Preparation, String> {
    Preparation::parse(text).map_err(|e| e.to_string())
}

/// (height, width) of `WIDTHxHEIGHT`, multiples of eight.
pub(super) fn window(text: &str) -> Result<(usize, usize), String> {
    match Preparation::parse(text).map_err(|e| e.to_string())? {
        Preparation::Resize { height, width } if height % 8 == 0 && width % 8 == 0 => Ok((height, width)),
        _ => Err("WIDTHxHEIGHT is needed, both multiples of 8, such as 256x256".into()),
    }
}

/// Names of classes: those of a known set, or one by one.
pub(super) fn names(text: &str) -> Result<Vec<String>, String> {
    let list: Vec<String> = match ClassSet::find(text) {
        Some(set) => set.names(),
        None => text.split(',').map(|name| name.trim().to_string()).collect(),
    };
    match list.len() > 1 && list.iter().all(|name| !name.is_empty()) {
        true => Ok(list),
        false => {
            Err("a known set such as cityscapes or voc, or names with commas between them, is needed".into())
        }
    }
}

/// Weights of classes.
pub(super) fn class_weights(text: &str) -> Result<ClassWeights, String> {
    match text {
        "none" => Ok(ClassWeights::None),
        "log" => Ok(ClassWeights::Log),
        list => {
            let read: Option<Vec<f32>> = list.split(',').map(|w| number(w.trim(), 0.0, 1e6).ok()).collect();
            let some = read.filter(|weights| weights.iter().any(|&w| w > 0.0));
            some.map(ClassWeights::List)
                .ok_or_else(|| "none, log, or a number for every class is needed".into())
        }
    }
}
