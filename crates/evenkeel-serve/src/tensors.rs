//! Between the protocol's tensors and the method's images: inputs become images, outcomes become outputs.

use std::collections::HashSet;
use std::sync::Arc;

use evenkeel::image::Image;
use evenkeel::model::Model;

use crate::budget::Share;
use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::hosted::Hosted;
use crate::protocol::{
    InferRequest, InferResponse, Input, InputData, Output, OutputData, TensorLimits, WantedOutput,
};
use crate::question::{Outcome, Pixels, Question, Source, Wants};

/// The one input's name.
pub(crate) const INPUT: &str = "image";

/// Outputs beside the model's own, which are given when asked for: name, datatype, what it is.
pub(crate) const EXTRA: [(&str, &str, &str); 4] = [
    ("evenkeel.score", "FP64", "the detection score of each image"),
    ("evenkeel.alarm", "BOOL", "whether the score is above the calibrated threshold"),
    ("evenkeel.defended", "BOOL", "whether the image was defended before it was answered"),
    (
        "evenkeel.verdict",
        "BYTES",
        "the verdict on each image as JSON, as `evenkeel predict --json` prints it",
    ),
];

/// The question that a request asks; its inputs are taken out, and `share` holds what they hold.
///
/// # Errors
/// If its input is not an image, an output is unknown, a parameter makes no sense, or requests hold as much as they may.
pub(crate) fn question(
    hosted: &Arc<Hosted>,
    request: &mut InferRequest,
    limits: &TensorLimits,
    mut share: Share,
) -> Result<Question> {
    let count = request.inputs.len();
    let (Some(input), 1) = (request.inputs.pop(), count) else {
        let reason = format!("{count} inputs came; one is taken, named {INPUT:?}");
        return Err(Error::malformed("inputs", reason));
    };
    if input.name != INPUT {
        let reason = format!("is unknown; the input is named {INPUT:?}");
        return Err(Error::malformed(format!("input {}", input.name), reason));
    }
    share.hold(input.data.held_bytes())?;
    let images = images(input, limits.batch)?;
    let choice = Choice::read(&request.parameters, &hosted.allowed)?;
    let mut wants = Wants::default();
    let mut named = HashSet::new();
    for WantedOutput { name, .. } in &request.outputs {
        // each would be a copy of what may be large
        if !named.insert(name) {
            return Err(Error::malformed(format!("output {name}"), "is asked for twice"));
        }
        match name.as_str() {
            "evenkeel.score" => wants.score = true,
            "evenkeel.alarm" if hosted.threshold().is_none() => {
                let reason = "the model has no calibrated threshold; `evenkeel detect --calibrate` makes one";
                return Err(Error::malformed("output evenkeel.alarm", reason));
            }
            "evenkeel.alarm" => wants.score = true,
            "evenkeel.defended" | "evenkeel.verdict" => wants.verdict = true,
            own if hosted.model.output.iter().any(|o| o == own) => {}
            unknown => {
                let extra = EXTRA.iter().map(|(name, ..)| *name);
                let known: Vec<_> = hosted.model.output.list().into_iter().chain(extra).collect();
                let reason = format!("is unknown; there are {}", known.join(", "));
                return Err(Error::malformed(format!("output {unknown}"), reason));
            }
        }
    }
    Ok(Question { hosted: hosted.clone(), images, choice, wants, pixels: limits.pixels, share })
}

/// The images of an input, with their values as they came.
fn images(input: Input, batch: usize) -> Result<Vec<Source>> {
    let Input { name, shape, data } = input;
    let wrong = |reason: String| Error::malformed(format!("input {name}"), reason);
    let shape = shape.as_slice();
    let (count, per_image) = match (&data, shape) {
        (InputData::Bytes(_), [n] | [n, 1]) => (*n, 1),
        (InputData::Bytes(_), _) => return Err(wrong(format!("{shape:?} is not [n], n encoded images"))),
        (_, [n, a, b, c]) => (*n, a.saturating_mul(*b).saturating_mul(*c)),
        (_, [a, b, c]) => (1, a.saturating_mul(*b).saturating_mul(*c)),
        _ => return Err(wrong(format!("{shape:?} is neither [n, 3, h, w] nor [n, h, w, 3]"))),
    };
    if count > batch {
        return Err(Error::TooLarge { what: "batch", limit: batch, unit: "images" });
    }
    let sides = &shape[shape.len().saturating_sub(3)..];
    match data {
        InputData::Bytes(files) => Ok(files.into_iter().map(Source::Encoded).collect()),
        InputData::Fp32(values) => {
            let [3, height, width] = *sides else {
                return Err(wrong(format!("{shape:?}: numbers come as [n, 3, height, width]")));
            };
            if let Some(value) = values.iter().find(|v| !(0.0..=1.0).contains(*v)) {
                return Err(wrong(format!("holds {value}; pixels are from 0 to 1, not normalised")));
            }
            let image = |values: Vec<f32>| Ok(Source::Tensor(Image::new(height, width, values)?));
            match count {
                1 => Ok(vec![image(values)?]),
                _ => values.chunks_exact(per_image).map(|values| image(values.to_vec())).collect(),
            }
        }
        InputData::Uint8(bytes) => {
            let (height, width, interleaved) = match *sides {
                [height, width, 3] => (height, width, true),
                [3, height, width] => (height, width, false),
                _ => return Err(wrong(format!("{shape:?} is neither [n, h, w, 3] nor [n, 3, h, w]"))),
            };
            let image = |number: usize| {
                let bytes = bytes.slice(number * per_image..(number + 1) * per_image);
                Source::Pixels(Pixels { height, width, interleaved, bytes })
            };
            Ok((0..count).map(image).collect())
        }
    }
}

/// The response to a request: the outputs asked for, in that order; the model's own if none were.
///
/// # Errors
/// If images of different sizes gave outputs of different shapes, which no tensor holds.
pub(crate) fn response(
    hosted: &Hosted,
    request: &InferRequest,
    outcomes: &[Outcome],
) -> Result<InferResponse> {
    let model = &*hosted.model;
    let binary = request.binary_output;
    let own = || model.output.iter().map(|name| WantedOutput { name: name.clone(), binary });
    let wanted = if request.outputs.is_empty() { own().collect() } else { request.outputs.clone() };
    let output = |wanted: &WantedOutput| Ok((output(model, &wanted.name, outcomes)?, wanted.binary));
    let outputs = wanted.iter().map(output).collect::<Result<_>>()?;
    Ok(InferResponse { model: hosted.name.clone(), id: request.id.clone(), outputs })
}

fn output(model: &Model, name: &str, outcomes: &[Outcome]) -> Result<Output> {
    let verdicts = || outcomes.iter().filter_map(|outcome| outcome.verdict.as_ref());
    let data = match name {
        "evenkeel.score" => OutputData::Fp64(verdicts().filter_map(|v| v.score).collect()),
        "evenkeel.alarm" => OutputData::Bool(verdicts().filter_map(|v| v.alarm).collect()),
        "evenkeel.defended" => OutputData::Bool(verdicts().map(|v| v.defended).collect()),
        "evenkeel.verdict" => OutputData::Bytes(verdicts().map(|v| v.json(model).to_string()).collect()),
        _ => return own_output(model, name, outcomes),
    };
    Ok(Output { name: name.to_owned(), shape: vec![outcomes.len()], data })
}

/// One of the model's own outputs, the images' one after the other.
fn own_output(model: &Model, name: &str, outcomes: &[Outcome]) -> Result<Output> {
    let place = model.output.iter().position(|output| output == name).unwrap_or(0);
    let mut shape: Option<Vec<usize>> = None;
    let mut values = Vec::new();
    for outcome in outcomes {
        let parts = outcome.scores.parts();
        let Some((sides, data)) = parts.get(place) else {
            return Err(Error::malformed(format!("output {name}"), "is not given by this kind of answer"));
        };
        // one image's shape has a leading one, where it has more than one dimension
        let sides = if sides.len() > 1 && sides[0] == 1 { &sides[1..] } else { sides };
        if shape.get_or_insert_with(|| sides.to_vec()) != sides {
            let reason = "the images have different sizes, so their outputs do not fit one tensor; send them one by one";
            return Err(Error::malformed(format!("output {name}"), reason));
        }
        values.extend_from_slice(data);
    }
    let mut whole = vec![outcomes.len()];
    whole.extend(shape.unwrap_or_default());
    Ok(Output { name: name.to_owned(), shape: whole, data: OutputData::Fp32(values) })
}
