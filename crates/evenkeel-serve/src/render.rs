//! A verdict for people: a sentence, the answer in words and painted.

use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::pipeline::Verdict;
use evenkeel::task::{LegendEntry, Painting, Prediction};
use serde_json::{Value, json};

/// What the score says, with its number and threshold.
pub(crate) fn sentence(verdict: &Verdict, threshold: Option<f64>) -> String {
    let Some(score) = verdict.score else { return "The image was not scored.".into() };
    let defended = match (verdict.defended, verdict.voted) {
        (false, false) => "the answer is the network's own",
        (true, false) => "the image was defended before it was answered",
        (false, true) => "the answer is a vote of views",
        (true, true) => "the image was defended and the answer is a vote of views",
    };
    match threshold {
        Some(most) if score > most => {
            format!(
                "Alarm: the views of this image disagree by {score:.4}, above the threshold {most:.4}; {defended}."
            )
        }
        Some(most) => {
            format!(
                "No alarm: the views of this image disagree by {score:.4}, below the threshold {most:.4}; {defended}."
            )
        }
        None => format!(
            "The views of this image disagree by {score:.4}; no threshold was calibrated, so there is no alarm; {defended}."
        ),
    }
}

/// How much of the image an answer covers.
const OPACITY: f32 = 0.6;

/// The answer over the image, with what its colours mean.
pub(crate) fn painted(model: &Model, prediction: &Prediction, under: &Image) -> evenkeel::Result<Painting> {
    prediction.paint(under, OPACITY, &model.class_info())
}

/// Names and colours of what is painted.
pub(crate) fn legend(painting: &Painting) -> Value {
    let line = |entry: &LegendEntry| json!({ "name": entry.name, "colour": entry.colour });
    json!(painting.legend.iter().map(line).collect::<Vec<_>>())
}

/// The answer for people.
pub(crate) fn words(model: &Model, prediction: &Prediction) -> String {
    prediction.words(&model.class_info())
}
