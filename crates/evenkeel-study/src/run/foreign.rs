//! Foreign images in a run: loaded, brought to the size of the subject's own, scored by the detectors.
//!
//! They have no truth, so nothing but detections is kept of them.

use std::sync::Arc;
use std::time::Instant;

use super::Study;
use super::probe::{Cost, timed};
use super::subject::{Subject, hash_of_pixels};
use super::unit::{clock, watched};
use super::worker::Shared;
use crate::Error;
use crate::Result;
use crate::experiment::{Experiment, ForeignRule, ForeignTo, SubjectCard, Work};
use crate::key::Key;
use crate::record::{Body, Detected, Entry};
use evenkeel::Image;
use evenkeel::detect::Detector;
use evenkeel_data::dataset::{Dataset, Preparation, Request, Subset};

/// A foreign image at the size of the subject's.
struct ForeignImage {
    id: String,
    image: Image,
    hash: Key,
}

/// A subject and a card for every pair of subject and foreign data set.
///
/// # Errors
/// Naming the data set.
pub(super) fn load(
    experiment: &Experiment,
    subjects: &[Subject],
    cards: &[SubjectCard],
) -> Result<Vec<(Subject, SubjectCard)>> {
    let mut all = Vec::new();
    for (place, (subject, card)) in subjects.iter().zip(cards).enumerate() {
        for rule in experiment.foreign.iter().filter(|rule| rule.is_for(&card.rule)) {
            let dataset = open(rule, experiment, subject)
                .map_err(|e| Error::Request(format!("foreign data {}: {e}", rule.name)))?;
            let images = (0..dataset.len()).map(|place| dataset.id(place)).collect();
            let foreign = Some(ForeignTo { subject: place, rule: rule.clone() });
            let card = SubjectCard { images, foreign, ..card.clone() };
            let (model, heads) = (Arc::clone(&subject.model), subject.heads.clone());
            all.push((Subject { model, dataset, heads }, card));
        }
    }
    Ok(all)
}

/// The data set, its images cut and scaled to the size that the subject's first image has.
fn open(rule: &ForeignRule, experiment: &Experiment, subject: &Subject) -> Result<Dataset> {
    let (height, width) = subject.model.fit(&subject.dataset.sample(0)?.image)?.size();
    let limit = [rule.limit, experiment.limit].into_iter().flatten().min();
    let request = Request {
        split: rule.split.clone(),
        classes: rule.classes,
        subset: Subset { every: rule.every, limit, seed: rule.subset_seed.filter(|_| limit.is_some()) },
        preparation: Some(Preparation::Cover { height, width }),
    };
    Ok(Dataset::open(&rule.data, &rule.path, &request)?)
}

impl Subject {
    /// The image at a place without its truth.
    fn foreign_image(&self, place: usize) -> Result<ForeignImage> {
        let sample = self.dataset.sample(place)?;
        let image = self.model.fit(&sample.image)?;
        let hash = hash_of_pixels(&image);
        Ok(ForeignImage { id: sample.id, image, hash })
    }
}

/// A detector's score of a foreign image.
fn detect(subject: &Subject, shown: &ForeignImage, detector: &Detector, key: Key) -> Result<Entry> {
    let (score, cost) = watched(|| Ok(detector.score(&subject.model, &shown.image)?))?;
    let detected = Detected { score, variances: Vec::new(), cells: 0, true_error: None };
    Ok(Entry {
        key,
        id: shown.id.clone(),
        image: shown.hash,
        body: Body::Detected(detected),
        passes: cost.passes,
        clock: clock(&cost, 0.0),
    })
}

impl Shared<'_> {
    /// All detections of one foreign image that are not there yet.
    pub(super) fn foreign_job(&self, place: u32, number: usize) -> Result<()> {
        let study = self.study;
        let work = &study.design.works[number];
        let subject = &study.subjects[work.subject];
        let start = Instant::now();
        let shown = subject.foreign_image(place as usize)?;
        let (mut made, mut kept) = (0, 0);
        for (key, detector) in &work.detections {
            if self.halted() {
                return Ok(());
            }
            if self.has(key, &shown.id, &shown.hash) {
                kept += 1;
                continue;
            }
            let detector = &study.prepared[work.subject].detectors[*detector];
            self.keep(&detect(subject, &shown, detector, *key)?, &[])?;
            made += 1;
        }
        self.count_kept(kept);
        self.watch.done(number, (made > 0).then(|| start.elapsed().as_secs_f64()));
        Ok(())
    }
}

impl Study {
    /// What the detections of one foreign image take.
    pub(super) fn foreign_cost(&self, work: &Work) -> Result<Cost> {
        let subject = &self.subjects[work.subject];
        let shown = subject.foreign_image(0)?;
        let mut total = Cost::default();
        for (key, detector) in &work.detections {
            let detector = &self.prepared[work.subject].detectors[*detector];
            total = total.plus(timed(|| detect(subject, &shown, detector, *key))?);
        }
        Ok(total)
    }
}
