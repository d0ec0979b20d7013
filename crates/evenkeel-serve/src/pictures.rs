//! The pictures of the page: the image, the plain answer, where views disagree, the defended answer, and the views themselves.

use base64::Engine;
use evenkeel::Random;
use evenkeel::detect::{Outputs, ViewOutputs};
use evenkeel::image::Image;
use evenkeel::pipeline::{Pipeline, Verdict};
use evenkeel::task::{Prediction, Readout};
use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::render;

/// An answer as a picture and in words.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Frame {
    /// A PNG file as a data address.
    pub png: String,
    /// The answer in words.
    pub words: String,
    /// Names and colours of what is painted.
    pub legend: Value,
}

/// What the page shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Pictures {
    /// The image at the network's size.
    pub input: String,
    /// The network's own answer.
    pub plain: Frame,
    /// Where the views disagree, from dark (nowhere) to bright; for answers that have places.
    pub disagreement: Option<String>,
    /// What the pipeline shows to the network, with its answer.
    pub defended: Frame,
    /// The change that the defence made, ten times as strong, around grey.
    pub change: String,
    /// The views with their answers.
    pub views: Vec<Frame>,
}

/// Above this many pixels the views are left out: a page of nine large pictures helps nobody.
const MOST_FOR_VIEWS: usize = 600_000;

/// Draws everything that the page shows of a verdict.
pub(crate) fn pictures(pipeline: &Pipeline, image: &Image, verdict: &Verdict) -> Result<Pictures> {
    let model = &*pipeline.model;
    let plain = model.predict(image)?;
    let detector = pipeline.detector.as_ref();
    let views = detector.map(|d| d.views.draw(&Random::new(d.seed))).unwrap_or_default();
    let mut frames = Vec::new();
    if image.height() * image.width() <= MOST_FOR_VIEWS {
        for view in &views {
            let seen = view.apply(image);
            let said = model.predict(&seen)?;
            frames.push(frame(pipeline, &said, &seen)?);
        }
    }
    let disagreement = match model.task.readout() == Readout::Classes && !views.is_empty() {
        true => {
            let outputs = ViewOutputs::at(model, image, &views, Outputs::Softmax)?;
            let size = outputs.extents.size();
            (size != (1, 1)).then(|| heat(&outputs.cell_variances(), size, image.size())).transpose()?
        }
        false => None,
    };
    Ok(Pictures {
        input: data_address(image)?,
        plain: frame(pipeline, &plain, image)?,
        disagreement,
        defended: frame(pipeline, &verdict.prediction, &verdict.shown)?,
        change: data_address(&change(image, &verdict.shown))?,
        views: frames,
    })
}

fn frame(pipeline: &Pipeline, prediction: &Prediction, under: &Image) -> Result<Frame> {
    let model = &*pipeline.model;
    let painting = render::painted(model, prediction, under)?;
    let (png, legend) = (data_address(&painting.image)?, render::legend(&painting));
    Ok(Frame { png, words: render::words(model, prediction), legend })
}

/// A picture as an address that a page can show.
fn data_address(image: &Image) -> Result<String> {
    let png = base64::engine::general_purpose::STANDARD.encode(image.encode_png()?);
    Ok(format!("data:image/png;base64,{png}"))
}

/// The difference of two images, ten times as strong, around grey.
fn change(from: &Image, to: &Image) -> Image {
    let mut out = from.clone();
    for (out, to) in out.pixels_mut().iter_mut().zip(to.pixels()) {
        *out = (0.5 + 10.0 * (to - *out)).clamp(0.0, 1.0);
    }
    out
}

/// Values of cells as colours from black over red to white, at an image's size.
fn heat(values: &[f32], (rows, columns): (usize, usize), (height, width): (usize, usize)) -> Result<String> {
    let most = values.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut pixels = vec![0.0; 3 * height * width];
    for (i, (y, x)) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))).enumerate() {
        let value = (values[y * rows / height * columns + x * columns / width] / most).sqrt();
        for channel in 0..3 {
            pixels[channel * height * width + i] = (3.0 * value - channel as f32).clamp(0.0, 1.0);
        }
    }
    data_address(&Image::new(height, width, pixels)?)
}
