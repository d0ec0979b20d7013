//! Scoring a folder of predicted label maps against a folder of true ones.
//!
//! Maps are paired by name without folder, ending and the suffixes data sets append. In a Cityscapes gtFine tree only the
//! labelIds are truths, and they are read as trainIds. Every fault of either folder is found before figures are given.

use super::bootstrap::{Bootstrap, key_of};
use super::segmentation::SegmentationScore;
use crate::dataset::Offender;
use crate::dataset::cityscapes_labels::train_id;
use crate::dataset::files::broken;
use crate::dataset::walk::{files_under, stem_of};
use crate::{Error, Result};
use evenkeel::LabelMap;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

const SUFFIXES: [&str; 6] =
    [".labels", "_leftImg8bit", "_gtFine_labelTrainIds", "_gtFine_labelIds", "_labelTrainIds", "_L"];
/// What `evenkeel predict --out` adds to a picture's name.
const PREDICTED: &str = ".labels";
const LABEL_IDS: &str = "_gtFine_labelIds";
const WRITE_AGAIN: &str = "write it again as a grey or palette PNG of class numbers";

/// Two folders of label maps and how to compare them.
#[derive(Clone, Debug)]
pub struct FolderComparison<'a> {
    /// The true label maps.
    pub truth: &'a Path,
    /// The predicted ones.
    pub predicted: &'a Path,
    /// How many classes there are.
    pub classes: usize,
    /// The true label that counts for nothing.
    pub ignore: u16,
    /// Resampling for confidence intervals.
    pub plan: Bootstrap,
    /// Leave offenders out instead of refusing.
    pub skip_bad: bool,
}

/// A true map and its prediction.
struct Pair {
    name: String,
    truth: PathBuf,
    predicted: PathBuf,
}

impl FolderComparison<'_> {
    /// The score, and the offenders that were left out. Without `skip_bad` any offender is an error that lists all.
    pub fn score(&self) -> Result<(SegmentationScore, Vec<Offender>)> {
        let (pairs, mut offenders) = self.pairs()?;
        let empty = || (SegmentationScore::new(self.classes, self.ignore, self.plan), Vec::new());
        let (score, bad) = pairs
            .par_iter()
            .fold(empty, |(mut score, mut bad), pair| {
                if let Err(offender) = self.compare(&mut score, pair) {
                    bad.push(offender);
                }
                (score, bad)
            })
            .reduce(empty, |(mut score, mut bad), (other, more)| {
                score.merge(&other);
                bad.extend(more);
                (score, bad)
            });
        offenders.extend(bad);
        offenders.sort();
        if !offenders.is_empty() && !self.skip_bad {
            return Err(Error::Offenders(offenders));
        }
        Ok((score, offenders))
    }

    fn pairs(&self) -> Result<(Vec<Pair>, Vec<Offender>)> {
        let mut truths = files_under(self.truth, &["png"])?;
        if truths.iter().any(|path| stem_of(path).ends_with(LABEL_IDS)) {
            truths.retain(|path| stem_of(path).ends_with(LABEL_IDS));
        }
        if truths.is_empty() {
            let remedy = "give a folder of label maps as grey or palette PNGs";
            return Err(Error::Offenders(vec![Offender::new(self.truth, "there is no PNG in it", remedy)]));
        }
        let mut predicted = files_under(self.predicted, &["png"])?;
        // what `evenkeel predict --out` writes: pictures of the answer lie beside it
        if predicted.iter().any(|path| stem_of(path).ends_with(PREDICTED)) {
            predicted.retain(|path| stem_of(path).ends_with(PREDICTED));
        }
        let predicted: HashMap<String, PathBuf> =
            predicted.into_iter().map(|path| (bare_name(&path), path)).collect();
        let (mut pairs, mut offenders) = (BTreeMap::new(), Vec::new());
        for truth in truths {
            let name = bare_name(&truth);
            match predicted.get(&name) {
                None => {
                    let fault = format!("has no prediction in {}", self.predicted.display());
                    offenders.push(Offender::new(&truth, fault, format!("write {name}.png there")));
                }
                Some(guess) => {
                    if let Some((first, _)) = pairs.insert(name, (truth.clone(), guess.clone())) {
                        let fault = format!("has the same name as {}", first.display());
                        offenders.push(Offender::new(
                            &truth,
                            fault,
                            "give the folder that holds one of them",
                        ));
                    }
                }
            }
        }
        let pair = |(name, (truth, predicted))| Pair { name, truth, predicted };
        Ok((pairs.into_iter().map(pair).collect(), offenders))
    }

    fn compare(&self, score: &mut SegmentationScore, pair: &Pair) -> std::result::Result<(), Offender> {
        let truth = self.load_truth(&pair.truth)?;
        let predicted =
            LabelMap::load(&pair.predicted).map_err(|e| broken(&pair.predicted, &e, WRITE_AGAIN))?;
        if truth.size() != predicted.size() {
            let ((h, w), (th, tw)) = (predicted.size(), truth.size());
            let fault = format!("is {w}x{h} but its truth is {tw}x{th}");
            return Err(Offender::new(
                &pair.predicted,
                fault,
                "resize it to the truth (nearest) before scoring",
            ));
        }
        score.push(key_of(&pair.name), truth.labels(), predicted.labels()).map_err(|e| {
            let remedy = format!(
                "give --classes and --ignore as the labels are (now {} and {})",
                self.classes, self.ignore
            );
            Offender::new(&pair.truth, e.to_string(), remedy)
        })
    }

    fn load_truth(&self, path: &Path) -> std::result::Result<LabelMap, Offender> {
        let map = LabelMap::load(path).map_err(|e| broken(path, &e, WRITE_AGAIN))?;
        if !stem_of(path).ends_with(LABEL_IDS) {
            return Ok(map);
        }
        let labels: Option<Vec<u16>> = map.labels().iter().map(|&id| train_id(id)).collect();
        let (height, width) = map.size();
        labels.and_then(|labels| LabelMap::new(height, width, labels).ok()).ok_or_else(|| {
            Offender::new(path, "holds numbers that are no Cityscapes labelIds", "use the gtFine files")
        })
    }
}

fn bare_name(path: &Path) -> String {
    let stem = stem_of(path);
    let mut name = stem.as_str();
    while let Some(shorter) = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) {
        name = shorter;
    }
    name.to_string()
}
