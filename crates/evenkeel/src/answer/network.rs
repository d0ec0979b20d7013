//! A vote as a network: the combined scores of an image, and the exact pullback through every voter.
//!
//! For classes, v_i = undo_i(softmax(z_i)) and the scores are ln(combine(v) + 1e-12), so that their softmax is the combined probability; for values,
//! v_i = undo_i(z_i) and the scores are combine(v). Backwards through combine, undo, softmax, the network and the view, in the order of the voters.
//! Tapes are kept as long as the views are small; the others are traced again when their turn comes.

use rayon::prelude::*;

use super::combine::Ballot;
use super::{Answer, Combine};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::network::{Cotangents, Extents, Network, Tape, Tensor, Traced};
use crate::objective::{pull_softmax, softmax};
use crate::task::{Readout, argmax};
use crate::view::{DrawnView, Placed, Undo};

/// What keeps the logarithm finite where no view gives a class any probability.
const FLOOR: f32 = 1e-12;
/// Tapes of voters are kept while these have no more pixels than this together.
const KEPT_PIXELS: usize = 1 << 18;

/// One draw of an answer as a network.
#[derive(Clone, Copy)]
pub struct AnswerNetwork<'a> {
    pub(super) model: &'a Model,
    pub(super) answer: &'a Answer,
    pub(super) seed: u64,
}

/// A voter's view and its way back.
struct Voter {
    view: Placed,
    form: Extents,
    /// None for a classifier, whose answer has no place to be brought back to.
    undo: Option<Undo>,
    /// The probabilities or values on the view's own grid.
    own: Vec<f32>,
}

/// Everyone's votes on the image's grid.
pub(super) struct Count {
    combine: Combine,
    readout: Readout,
    extents: Extents,
    voters: Vec<Voter>,
    ballots: Vec<Ballot>,
}

impl Count {
    /// The votes of everyone for an image; the first voter's scores say the grid.
    pub(super) fn of(model: &Model, image: &Image, views: &[DrawnView], combine: Combine) -> Result<Self> {
        let placed: Vec<Placed> = views.iter().map(|view| view.placed(image.size())).collect();
        let scores = placed
            .par_iter()
            .map(|view| model.scores(&view.apply(image)))
            .collect::<Result<Vec<Tensor>>>()?;
        Self::counted(model, combine, placed, &scores)
    }

    fn counted(model: &Model, combine: Combine, views: Vec<Placed>, scores: &[Tensor]) -> Result<Self> {
        let readout = model.task.readout();
        let first = scores.first().ok_or_else(|| Error::setting("answer", "has nobody to vote"))?;
        // the grid of the image itself, which the first voter has: it leaves the image where it is
        let extents = first.extents(&model.output)?;
        let flat = extents.cells() == 1;
        let vote = |(view, scores): (Placed, &Tensor)| {
            scores.check_finite(&model.output)?;
            let form = scores.extents(&model.output)?;
            if form.channels != extents.channels {
                return Err(Error::mismatch("channels of a view's scores", extents.channels, form.channels));
            }
            let own = match readout {
                Readout::Classes => softmax(scores.data(), form),
                _ => scores.data().to_vec(),
            };
            let undo = (!flat).then(|| view.undo_onto(form.size(), extents.size()));
            let ballot = match &undo {
                Some(undo) => Ballot { values: undo.apply(&own, form.channels), mask: undo.mask().to_vec() },
                None => Ballot { values: own.clone(), mask: vec![1.0] },
            };
            Ok((Voter { view, form, undo, own }, ballot))
        };
        let votes = views.into_par_iter().zip(scores).map(vote).collect::<Result<Vec<_>>>()?;
        let (voters, ballots) = votes.into_iter().unzip();
        Ok(Self { combine, readout, extents, voters, ballots })
    }

    pub(super) fn cells(&self) -> usize {
        self.extents.cells()
    }

    /// The class that each voter gives, for a classifier.
    pub(super) fn winners(&self) -> Vec<usize> {
        self.ballots.iter().map(|ballot| argmax(&ballot.values)).collect()
    }

    /// The combined scores, in the form of the image's own.
    pub(super) fn scores(&self, model: &Model) -> Result<Tensor> {
        let mut combined = self.combine.of(&self.ballots);
        if self.readout == Readout::Classes {
            combined.iter_mut().for_each(|v| *v = (*v + FLOOR).ln());
        }
        let Extents { channels, height, width } = self.extents;
        let shape =
            if self.extents.cells() == 1 { vec![1, channels] } else { vec![1, channels, height, width] };
        let scores = Tensor::new(shape, combined)?;
        scores.check_finite(&model.output)?;
        Ok(scores)
    }

    /// From a cotangent on the combined scores to one on each voter's own scores.
    fn pullback(&self, cotangent: &[f32]) -> Vec<Vec<f32>> {
        let on_combined: Vec<f32> = match self.readout {
            Readout::Classes => {
                let combined = self.combine.of(&self.ballots);
                cotangent.iter().zip(&combined).map(|(c, v)| c / (v + FLOOR)).collect()
            }
            _ => cotangent.to_vec(),
        };
        let on_ballots = self.combine.pullback(&self.ballots, &on_combined);
        let back = |(voter, on): (&Voter, Vec<f32>)| {
            let on_own = voter
                .undo
                .as_ref()
                .map_or_else(|| on.clone(), |undo| undo.pullback(&on, voter.form.channels));
            match self.readout {
                Readout::Classes => pull_softmax(&voter.own, &on_own, voter.form),
                _ => on_own,
            }
        };
        self.voters.par_iter().zip(on_ballots).map(back).collect()
    }
}

/// The way back through a vote.
struct VoteTape<'a> {
    model: &'a Model,
    image: Image,
    count: Count,
    /// The voters' own tapes, where they are kept.
    tapes: Vec<Option<Box<dyn Tape + 'a>>>,
    /// Where the combined scores stand in the request, and where each other tensor stands in the plain pass.
    places: Vec<Place>,
    plain: Option<Box<dyn Tape + 'a>>,
}

#[derive(Clone, Copy)]
enum Place {
    Vote,
    Plain(usize),
}

impl Tape for VoteTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        let mut gradient = vec![0.0f32; self.image.pixels().len()];
        let mut add = |own: &[f32]| gradient.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        let mut on_plain = Vec::new();
        for (which, cotangent) in cotangents {
            match self.places.get(which) {
                Some(Place::Vote) => {
                    for (i, on_scores) in self.count.pullback(&cotangent).into_iter().enumerate() {
                        add(&self.voter(i, on_scores)?);
                    }
                }
                Some(Place::Plain(place)) => on_plain.push((*place, cotangent)),
                None => return Err(Error::mismatch("place of a cotangent", self.places.len(), which)),
            }
        }
        if let (Some(tape), false) = (&self.plain, on_plain.is_empty()) {
            add(&tape.pullback(on_plain)?);
        }
        Ok(gradient)
    }
}

impl VoteTape<'_> {
    fn voter(&self, i: usize, on_scores: Vec<f32>) -> Result<Vec<f32>> {
        let view = &self.count.voters[i].view;
        let on_view = match &self.tapes[i] {
            Some(tape) => tape.pullback(vec![(0, on_scores)])?,
            None => {
                let seen = view.apply(&self.image);
                self.model
                    .network
                    .trace_one(&seen, &self.model.output.list())?
                    .tape
                    .pullback(vec![(0, on_scores)])?
            }
        };
        Ok(view.pull_apply(&self.image, &on_view))
    }
}

impl<'a> AnswerNetwork<'a> {
    /// Whether the tensors of these names are the ones that votes are about. Objects have no scores that could be combined.
    fn votes(&self, tensors: &[&str]) -> bool {
        let output = self.model.output.list();
        !self.answer.is_plain()
            && self.model.task.readout() != Readout::Objects
            && output.len() == 1
            && tensors.contains(&output[0])
    }

    /// Where each tensor comes from, and the names that the plain pass must give.
    fn places<'t>(&self, tensors: &[&'t str]) -> (Vec<Place>, Vec<&'t str>) {
        let (output, mut plain) = (self.model.output.list()[0], Vec::new());
        let place = |name: &&'t str| match *name == output {
            true => Place::Vote,
            false => {
                plain.push(*name);
                Place::Plain(plain.len() - 1)
            }
        };
        (tensors.iter().map(place).collect(), plain)
    }

    pub(crate) fn run_image(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>> {
        if !self.votes(tensors) {
            return self.model.network.run_one(image, tensors);
        }
        let (places, names) = self.places(tensors);
        let count = Count::of(self.model, image, &self.answer.draw(self.seed), self.answer.combine)?;
        let vote = count.scores(self.model)?;
        let plain = if names.is_empty() { Vec::new() } else { self.model.network.run_one(image, &names)? };
        Ok(gathered(&places, &vote, &plain))
    }

    pub(crate) fn trace_image(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'a>> {
        let network = &*self.model.network;
        if !self.votes(tensors) {
            return network.trace_one(image, tensors);
        }
        let (places, names) = self.places(tensors);
        let views = self.answer.draw(self.seed);
        let placed: Vec<Placed> = views.iter().map(|view| view.placed(image.size())).collect();
        let kept = placed.iter().scan(0, |sum, view| {
            let (height, width) = view.seen_size();
            *sum += height * width;
            Some(*sum <= KEPT_PIXELS)
        });
        let output = self.model.output.list();
        let see = |(view, kept): (&Placed, bool)| {
            let seen = view.apply(image);
            if !kept {
                return Ok((Tensor::joined(network.run_one(&seen, &output)?), None));
            }
            let Traced { tensors, tape } = network.trace_one(&seen, &output)?;
            Ok((Tensor::joined(tensors), Some(tape)))
        };
        let kept: Vec<bool> = kept.collect();
        let passes = placed.par_iter().zip(kept).map(see).collect::<Result<Vec<_>>>()?;
        let (scores, tapes): (Vec<Tensor>, Vec<_>) = passes.into_iter().unzip();
        let count = Count::counted(self.model, self.answer.combine, placed, &scores)?;
        let vote = count.scores(self.model)?;
        let plain = if names.is_empty() { None } else { Some(network.trace_one(image, &names)?) };
        let (plain, tape) = plain.map_or((Vec::new(), None), |traced| (traced.tensors, Some(traced.tape)));
        let tensors = gathered(&places, &vote, &plain);
        let tape = VoteTape { model: self.model, image: image.clone(), count, tapes, places, plain: tape };
        Ok(Traced { tensors, tape: Box::new(tape) })
    }
}

fn gathered(places: &[Place], vote: &Tensor, plain: &[Tensor]) -> Vec<Tensor> {
    let one = |place: &Place| match place {
        Place::Vote => vote.clone(),
        Place::Plain(at) => plain[*at].clone(),
    };
    places.iter().map(one).collect()
}

impl Network for AnswerNetwork<'_> {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.model.network.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        images.iter().map(|image| self.run_image(image, tensors)).collect()
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        images.iter().map(|image| self.trace_image(image, tensors)).collect()
    }
}
