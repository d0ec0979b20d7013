//! Going back to one image of a finished study, for a report to show: the pictures again, and what was said of each.

use evenkeel::Image;
use evenkeel::task::{Painting, Prediction, Truth};

use super::Study;
use super::album::unpacked;
use super::unit::{Evaluator, Seeds};
use crate::experiment::{Cell, Threat};
use crate::store::Store;
use crate::{Error, Result};

/// One image under one cell, seen again.
pub struct Revisit {
    /// As it was.
    pub clean: Image,
    /// As it was shown.
    pub shown: Image,
    /// As the defence left it.
    pub defended: Image,
    /// What is true.
    pub truth: Truth,
    /// What the bare network says of the image shown.
    pub bare: Prediction,
    /// What it says of the defended one.
    pub answer: Prediction,
}

impl Study {
    /// The image of this name under a cell, from the store and one run of the defence.
    ///
    /// # Errors
    /// If there is no such image or result.
    pub fn revisit(&self, store: &Store, cell: &Cell, id: &str) -> Result<Revisit> {
        let (card, subject) = (&self.design.subjects[cell.subject], &self.subjects[cell.subject]);
        let none = || Error::Request(format!("{id}: is not in the store"));
        let place = card.images.iter().position(|i| i == id).ok_or_else(none)?;
        let sample = subject.sample(place)?;
        let work = &self.design.works[cell.work];
        let root = self.design.experiment.seed;
        let threat = &card.columns[cell.column].threat;
        let shown = match threat {
            Threat::Clean | Threat::Foreign { .. } => sample.image.clone(),
            Threat::Attack(_) => unpacked(&store.get(&work.key, id)?.ok_or_else(none)?.1)?,
            Threat::Corruption { .. } => {
                let evaluator = Evaluator::new(subject, &sample, threat, root)?;
                evaluator.show(work.key, threat, None, Seeds::new(root, work.draw, id))?.1
            }
        };
        let defended = match cell.answer.map(|i| &work.answers[i]) {
            None => shown.clone(),
            Some(answer) => {
                let evaluator = Evaluator::new(subject, &sample, threat, root)?;
                let pipeline = &self.prepared[cell.subject].pipelines[answer.row];
                let seeds = Seeds::new(root, answer.draw, id);
                evaluator.answer(answer.key, (pipeline, &card.rows[answer.row].spec), &shown, seeds, false)?.1
            }
        };
        let bare = subject.model.predict(&shown)?;
        let answer = match cell.answer.map(|i| &work.answers[i]) {
            None => bare.clone(),
            Some(answer) => {
                let seed = Seeds::new(root, answer.draw, id).defence;
                self.prepared[cell.subject].pipelines[answer.row].read(&defended, true, seed)?.prediction
            }
        };
        Ok(Revisit { clean: sample.image, shown, defended, truth: sample.truth, bare, answer })
    }

    /// An answer (or a truth as one) as a picture, with what its colours mean.
    ///
    /// # Errors
    /// If a label has no colour.
    pub fn painted(&self, subject: usize, said: &Prediction, image: &Image) -> Result<Painting> {
        Ok(said.paint(image, 1.0, &self.subjects[subject].model.class_info())?)
    }
}
