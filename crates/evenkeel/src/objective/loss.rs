//! Losses on scores: the mean of a cell loss over labelled cells, for attacks to raise.
//!
//! value = sign/n · Σ over labelled cells of loss(z_cell, y_cell). Scores coarser than the labels are first resized bilinearly,
//! and the cotangent goes back through the same resize. Cells are dealt out in runs of fixed length, so sums never depend on threads.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use super::Progress;
use super::cell::{self, Context};
use crate::error::{Error, Result};
use crate::image::IGNORED;
use crate::network::{Extents, Tensor};
use crate::task::{Labels, ScoreLoss, best_classes, mean_iou};
use crate::view::Sampler;

/// Cells in one run of work.
const RUN: usize = 2048;

/// The losses there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// −ln softmax(z)_y.
    CrossEntropy,
    /// max_{j≠y} z_j − z_y, not beyond the confidence.
    Margin,
    /// The margin divided by the distance from the first to the third class.
    Dlr,
    /// The same towards one wanted class.
    DlrTargeted,
    /// The probability that noise overturns the margin, times one minus the image's IoU.
    Houdini,
    /// Cross-entropy, from right cells at first to right and wrong alike at the end.
    SegPgd,
    /// Cross-entropy of the cells that are still right.
    MaskedCrossEntropy,
    /// The Jensen-Shannon divergence of the softmax from the label.
    JensenShannon,
}

impl LossKind {
    /// The fewest classes for which the loss says anything.
    pub fn fewest_classes(self) -> usize {
        match self {
            Self::Dlr => 3,
            Self::DlrTargeted => 4,
            _ => 2,
        }
    }
}

/// A loss against labels.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Which.
    pub kind: LossKind,
    /// What is true, or what is wanted when `sign` is −1.
    pub labels: Labels,
    /// The classes wanted, for the targeted DLR loss only.
    pub wanted: Option<Labels>,
    /// +1 to drive away from the labels, −1 to drive towards them.
    pub sign: f32,
    /// Beyond this margin the margin loss stops growing.
    pub confidence: f32,
    /// The task's own loss, which then stands in the place of everything but the sign.
    pub own: Option<Arc<dyn ScoreLoss>>,
}

impl Loss {
    /// Drives away from the labels.
    pub fn against(kind: LossKind, labels: Labels) -> Self {
        Self { kind, labels, wanted: None, sign: 1.0, confidence: f32::INFINITY, own: None }
    }

    /// Drives towards the labels.
    pub fn towards(kind: LossKind, labels: Labels) -> Self {
        Self { sign: -1.0, ..Self::against(kind, labels) }
    }

    /// The task's own loss: away from its truth, or towards it.
    pub fn of_task(own: Arc<dyn ScoreLoss>, sign: f32) -> Self {
        let labels = Labels { size: (0, 0), labels: Vec::new() };
        Self { sign, own: Some(own), ..Self::against(LossKind::CrossEntropy, labels) }
    }

    /// The value and the cotangent on the scores.
    ///
    /// # Errors
    /// If there are too few classes for this loss, a label is beyond them, or the forms do not fit.
    pub fn evaluate(&self, scores: &Tensor, progress: Progress) -> Result<(f64, Vec<f32>)> {
        if let Some(own) = &self.own {
            let (value, mut cotangent) = own.evaluate(scores)?;
            cotangent.iter_mut().for_each(|c| *c *= self.sign);
            return Ok((value * f64::from(self.sign), cotangent));
        }
        let given = scores.extents("scores")?;
        self.check(given)?;
        let resize =
            (given.size() != self.labels.size).then(|| Sampler::resize(given.size(), self.labels.size));
        let grid =
            Extents { channels: given.channels, height: self.labels.size.0, width: self.labels.size.1 };
        let fine = match &resize {
            Some(resize) => Cow::Owned(resize.apply(scores.data(), given.channels)),
            None => Cow::Borrowed(scores.data()),
        };
        let (value, cotangent) = self.mean_over_cells(&fine, grid, progress);
        Ok((
            value,
            match &resize {
                Some(resize) => resize.transpose(&cotangent, given.channels),
                None => cotangent,
            },
        ))
    }

    fn check(&self, scores: Extents) -> Result<()> {
        let fewest = self.kind.fewest_classes();
        if scores.channels < fewest {
            let reason = format!("needs at least {fewest} classes, the network has {}", scores.channels);
            return Err(Error::setting(format!("loss {:?}", self.kind), reason));
        }
        let (h, w) = self.labels.size;
        let wanted_fits = self.wanted.as_ref().is_none_or(|w| w.labels.len() == self.labels.labels.len());
        if self.labels.labels.len() != h * w || !wanted_fits || (scores.cells() == 1) != (h * w == 1) {
            let got = format!("{} labels for scores of {} cells", self.labels.labels.len(), scores.cells());
            return Err(Error::mismatch("labels of a loss", "one label per cell or a finer grid", got));
        }
        let all = self.labels.labels.iter().chain(self.wanted.iter().flat_map(|w| &w.labels));
        match all.filter(|&&l| l != IGNORED).find(|&&l| usize::from(l) >= scores.channels) {
            None => Ok(()),
            Some(&label) => Err(Error::UnknownClass {
                what: "loss".into(),
                label: label.into(),
                classes: scores.channels,
            }),
        }
    }

    fn mean_over_cells(&self, scores: &[f32], grid: Extents, progress: Progress) -> (f64, Vec<f32>) {
        let (classes, cells) = (grid.channels, grid.cells());
        let labels = &self.labels.labels;
        let counted = labels.iter().filter(|&&l| l != IGNORED || classes > usize::from(IGNORED)).count();
        let mut cotangent = vec![0.0; grid.len()];
        if counted == 0 {
            return (0.0, cotangent);
        }
        let context = self.context(scores, grid, progress);
        let share = self.sign / counted as f32;
        let run = |run: usize| {
            let range = run * RUN..((run + 1) * RUN).min(cells);
            let mut gradients = vec![0.0; range.len() * classes];
            let mut z = vec![0.0; classes];
            let mut sum = 0.0f64;
            for (i, gradient) in range.zip(gradients.chunks_mut(classes)) {
                let label = usize::from(labels[i]);
                if label >= classes {
                    continue;
                }
                z.iter_mut().enumerate().for_each(|(class, v)| *v = scores[class * cells + i]);
                let wanted = context.wanted.map_or(0, |w| usize::from(w[i]).min(classes - 1));
                sum += f64::from(cell::loss(self.kind, &z, label, wanted, &context, gradient));
                gradient.iter_mut().for_each(|g| *g *= share);
            }
            (sum, gradients)
        };
        let runs: Vec<(f64, Vec<f32>)> = (0..cells.div_ceil(RUN)).into_par_iter().map(run).collect();
        cotangent.par_chunks_mut(cells).enumerate().for_each(|(class, plane)| {
            for (part, (_, gradients)) in plane.chunks_mut(RUN).zip(&runs) {
                part.iter_mut().zip(gradients.chunks(classes)).for_each(|(o, g)| *o = g[class]);
            }
        });
        let total: f64 = runs.iter().map(|(sum, _)| sum).sum();
        (total * f64::from(self.sign) / counted as f64, cotangent)
    }

    fn context(&self, scores: &[f32], grid: Extents, progress: Progress) -> Context<'_> {
        let task_loss = if self.kind == LossKind::Houdini && grid.cells() > 1 {
            // never quite zero: a perfect prediction must still leave a direction
            (1.0 - mean_iou(&best_classes(scores, grid), &self.labels.labels)).max(1e-6) as f32
        } else {
            1.0
        };
        Context {
            task_loss,
            progress: progress.step as f32 / progress.steps.max(1) as f32,
            confidence: self.confidence,
            towards: self.sign < 0.0,
            wanted: self.wanted.as_ref().map(|w| w.labels.as_slice()),
        }
    }
}
