//! A network that is shown a view of the image, and whose answer is undone: what `rescale` and `random-resize-pad` do.
//!
//! Scores s = undo(S(view(x))) on the image's own grid of pixels, exactly led back: view' ∘ S' ∘ undo'. A classifier's scores have no place to be brought back
//! to; objects are brought back one by one, and their scores stay those of the view.

use crate::answer::{Answer, Answered, objects};
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::{Cotangents, Extents, Tape, Tensor, Traced};
use crate::task::Readout;
use crate::view::{Placed, Undo};

/// The answer for what is seen of an image, brought back to it.
pub(super) fn read(
    model: &Model,
    answer: &Answer,
    image: &Image,
    frame: &Placed,
    seed: u64,
) -> Result<Answered> {
    let seen = answer.read(model, &frame.apply(image), seed)?;
    if model.task.readout() == Readout::Objects {
        return Ok(Answered { prediction: objects::brought_back(frame, seen.prediction), ..seen });
    }
    let Some((undo, form)) = way_back(model, &seen.scores, frame)? else { return Ok(seen) };
    let scores = undone(&undo, &seen.scores, form, image.size())?;
    let prediction = model.task.predict(&scores, image.size())?;
    Ok(Answered { prediction, scores, ..seen })
}

/// The way back of scores, and their form; none for a classifier.
fn way_back(model: &Model, scores: &Tensor, frame: &Placed) -> Result<Option<(Undo, Extents)>> {
    let form = scores.extents(&model.output)?;
    Ok((form.cells() > 1).then(|| (frame.undo_onto(form.size(), frame.size()), form)))
}

fn undone(undo: &Undo, scores: &Tensor, form: Extents, (height, width): (usize, usize)) -> Result<Tensor> {
    Tensor::new(vec![1, form.channels, height, width], undo.apply(scores.data(), form.channels))
}

/// The way back through a view.
struct FramedTape<'a> {
    inner: Box<dyn Tape + 'a>,
    image: Image,
    frame: Placed,
    /// For each tensor that is brought back, how, and its channels.
    ways: Vec<Option<(Undo, usize)>>,
}

impl Tape for FramedTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        let back = |(which, cotangent): (usize, Vec<f32>)| match self.ways.get(which) {
            Some(Some((undo, channels))) => (which, undo.pullback(&cotangent, *channels)),
            _ => (which, cotangent),
        };
        let on_seen = self.inner.pullback(cotangents.into_iter().map(back).collect())?;
        Ok(self.frame.pull_apply(&self.image, &on_seen))
    }
}

/// Whether scores of this model can be undone as tensors. Those of objects cannot; an attacker then sees the image itself.
pub(super) fn fits(model: &Model) -> bool {
    model.task.readout() != Readout::Objects && model.output.list().len() == 1
}

/// The tensors of a pass over what is seen, the scores among them undone.
pub(super) fn framed(
    model: &Model,
    image: &Image,
    frame: &Placed,
    names: &[&str],
    tensors: Vec<Tensor>,
) -> Result<Vec<Tensor>> {
    let output = model.output.list()[0];
    let one = |(name, tensor): (&&str, Tensor)| match way_back(model, &tensor, frame) {
        Ok(Some((undo, form))) if *name == output => undone(&undo, &tensor, form, image.size()),
        Err(error) if *name == output => Err(error),
        _ => Ok(tensor),
    };
    names.iter().zip(tensors).map(one).collect()
}

/// The same with the way back.
pub(super) fn framed_tape<'a>(
    model: &Model,
    image: &Image,
    frame: Placed,
    names: &[&str],
    seen: Traced<'a>,
) -> Result<Traced<'a>> {
    let output = model.output.list()[0];
    let way = |(name, tensor): (&&str, &Tensor)| match *name == output {
        true => Ok(way_back(model, tensor, &frame)?.map(|(undo, form)| (undo, form.channels))),
        false => Ok(None),
    };
    let ways = names.iter().zip(&seen.tensors).map(way).collect::<Result<Vec<_>>>()?;
    let tensors = framed(model, image, &frame, names, seen.tensors)?;
    let tape = FramedTape { inner: seen.tape, image: image.clone(), frame, ways };
    Ok(Traced { tensors, tape: Box::new(tape) })
}
