//! Scoring a COCO results file against an instances file.
//!
//! Everything wrong with either file is found in one pass and reported together. A result's area is that of its box
//! where the file gives boxes (judged, as the official tool does, by its first entry) and of its mask otherwise.

use super::{DetectedInstance, InstanceScore, Region, TrueInstance};
use crate::dataset::Offender;
use crate::dataset::coco_json::{Annotation, Detection, GroundTruth, ImageEntry};
use crate::mask::Rle;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Which regions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regions {
    /// Masks ("segm").
    Masks,
    /// Boxes ("bbox").
    Boxes,
}

/// The two files and how to compare them.
#[derive(Clone, Copy, Debug)]
pub struct FileComparison<'a> {
    /// The instances file and its path.
    pub truth: (&'a Path, &'a GroundTruth),
    /// The results file and its path.
    pub results: (&'a Path, &'a [Detection]),
    /// Masks or boxes.
    pub regions: Regions,
    /// Leave offenders out instead of refusing.
    pub skip_bad: bool,
}

/// One image with what belongs to it, by position in the files.
struct ImageJob<'a> {
    image: &'a ImageEntry,
    truths: Vec<&'a Annotation>,
    found: Vec<(usize, &'a Detection)>,
}

impl FileComparison<'_> {
    /// The score, and the offenders that were left out. Without `skip_bad` any offender is an error that lists all.
    pub fn score(&self) -> Result<(InstanceScore, Vec<Offender>)> {
        let (jobs, mut offenders) = self.jobs();
        let parts: Vec<(InstanceScore, Vec<Offender>)> = jobs
            .par_chunks(64)
            .map(|chunk| {
                let (mut score, mut bad) = (InstanceScore::new(), Vec::new());
                for job in chunk {
                    let truths: Vec<_> = job
                        .truths
                        .iter()
                        .filter_map(|a| self.true_instance(job.image, a, &mut bad))
                        .collect();
                    let found: Vec<_> =
                        job.found.iter().filter_map(|d| self.detected(job.image, d, &mut bad)).collect();
                    score.push(job.image.id, &truths, &found)?;
                }
                Ok((score, bad))
            })
            .collect::<Result<_>>()?;
        let mut score = InstanceScore::new();
        for (part, bad) in parts {
            score.merge(part);
            offenders.extend(bad);
        }
        if !offenders.is_empty() && !self.skip_bad {
            return Err(Error::Offenders(offenders));
        }
        Ok((score, offenders))
    }

    /// Sorts annotations and results to their images; entries that belong nowhere are offenders.
    fn jobs(&self) -> (Vec<ImageJob<'_>>, Vec<Offender>) {
        let ((truth_path, truth), (results_path, results)) = (self.truth, self.results);
        let mut offenders = Vec::new();
        let mut jobs: Vec<ImageJob<'_>> = Vec::with_capacity(truth.images.len());
        let mut place = HashMap::new();
        for image in &truth.images {
            if place.insert(image.id, jobs.len()).is_some() {
                let fault = format!("image id {} is given twice", image.id);
                offenders.push(Offender::new(truth_path, fault, "give every image its own id"));
                continue;
            }
            jobs.push(ImageJob { image, truths: Vec::new(), found: Vec::new() });
        }
        let categories: HashSet<i64> = truth.categories.iter().map(|c| c.id).collect();
        let mut ids = HashSet::new();
        for annotation in &truth.annotations {
            if !ids.insert(annotation.id) {
                let fault = format!("annotation id {} is given twice", annotation.id);
                offenders.push(Offender::new(truth_path, fault, "give every annotation its own id"));
            } else if let (Some(&k), true) =
                (place.get(&annotation.image_id), categories.contains(&annotation.category_id))
            {
                jobs[k].truths.push(annotation);
            }
        }
        for (n, detection) in results.iter().enumerate() {
            let Some(&k) = place.get(&detection.image_id) else {
                let fault =
                    format!("result {n} is for image {}, which the truth does not have", detection.image_id);
                offenders.push(Offender::new(
                    results_path,
                    fault,
                    "score against the file the results were made for",
                ));
                continue;
            };
            if categories.contains(&detection.category_id) {
                jobs[k].found.push((n, detection));
            }
        }
        (jobs, offenders)
    }

    fn true_instance(
        &self,
        image: &ImageEntry,
        a: &Annotation,
        bad: &mut Vec<Offender>,
    ) -> Option<TrueInstance> {
        let region = match (self.regions, a.bbox) {
            (Regions::Boxes, Some(xywh)) => Ok(Region::Box(xywh)),
            (Regions::Boxes, None) => {
                a.segmentation.mask(image.height, image.width).map(|mask| Region::Box(mask.bounding_box()))
            }
            (Regions::Masks, _) => a.segmentation.mask(image.height, image.width).map(Region::Mask),
        };
        let region = report(region, bad, |e| {
            let fault = format!("annotation {} of image {}: {e}", a.id, image.id);
            Offender::new(self.truth.0, fault, "repair or remove that annotation")
        })?;
        let area = a.area.unwrap_or_else(|| match &region {
            Region::Box([_, _, w, h]) => w * h,
            Region::Mask(mask) => f64::from(mask.area()),
        });
        Some(TrueInstance { category: a.category_id, crowd: a.crowd, area, region, countable: a.id != 0 })
    }

    fn detected(
        &self,
        image: &ImageEntry,
        &(n, d): &(usize, &Detection),
        bad: &mut Vec<Offender>,
    ) -> Option<DetectedInstance> {
        let by_box = self.results.1.first().is_some_and(|first| first.bbox.is_some());
        let mask = || match d.bbox {
            Some(xywh) if d.segmentation == Default::default() => {
                Rle::from_box(image.height, image.width, xywh)
            }
            _ => d.segmentation.mask(image.height, image.width),
        };
        let found = match (self.regions, d.bbox) {
            (Regions::Boxes, Some(xywh)) if by_box => Ok((Region::Box(xywh), xywh[2] * xywh[3])),
            (Regions::Boxes, given) => mask().map(|mask| {
                (Region::Box(given.unwrap_or_else(|| mask.bounding_box())), f64::from(mask.area()))
            }),
            (Regions::Masks, given) => mask().map(|mask| {
                let area = given.filter(|_| by_box).map_or(f64::from(mask.area()), |[_, _, w, h]| w * h);
                (Region::Mask(mask), area)
            }),
        };
        let (region, area) = report(found, bad, |e| {
            let fault = format!("result {n} (image {}): {e}", image.id);
            Offender::new(self.results.0, fault, "write that mask anew at its image's size")
        })?;
        Some(DetectedInstance { category: d.category_id, score: d.score, area, region })
    }
}

fn report<T>(found: Result<T>, bad: &mut Vec<Offender>, offender: impl Fn(Error) -> Offender) -> Option<T> {
    found.map_err(|e| bad.push(offender(e))).ok()
}
