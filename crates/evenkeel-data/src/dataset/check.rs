//! A check of every selected sample before it is used: counts, classes, sizes, and all offenders at once.
//!
//! Samples are decoded on all cores and forgotten; what is kept is a handful of counts.

use super::{Dataset, Offender, Truth};
use crate::metric::IGNORE;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// How often a class occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ClassCount {
    /// Samples it occurs in.
    pub samples: u64,
    /// Pixels (label maps) or objects (instances) of it; for whole-image classes the same as `samples`.
    pub amount: u64,
}

/// What was seen in a data set.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Check {
    /// Samples that are sound.
    pub sound: u64,
    /// Sound samples by (width, height), before preparation.
    #[serde(serialize_with = "sizes")]
    pub sizes: BTreeMap<(usize, usize), u64>,
    /// Classes by index.
    pub classes: BTreeMap<usize, ClassCount>,
    /// Pixels labelled as ignored.
    pub ignored_pixels: u64,
    /// Regions marked as crowds.
    pub crowds: u64,
    /// Everything that is wrong.
    pub offenders: Vec<Offender>,
    /// Positions of the selected samples that are broken.
    #[serde(skip)]
    pub broken: BTreeSet<usize>,
}

impl Check {
    /// Looks at every selected sample of a data set.
    pub fn of(dataset: &Dataset) -> Self {
        let mut check = (0..dataset.selection.len())
            .into_par_iter()
            .fold(Self::default, |mut check, position| {
                check.look_at(dataset, position);
                check
            })
            .reduce(Self::default, Self::merged);
        check.offenders.extend(dataset.listing.offenders.iter().cloned());
        check.offenders.sort();
        check.offenders.dedup();
        check
    }

    fn look_at(&mut self, dataset: &Dataset, position: usize) {
        let loaded = dataset.listing.source.load(dataset.selection[position]);
        let (size, truth) = match loaded {
            Ok(sample) => ((sample.image.width(), sample.image.height()), sample.truth),
            Err(offender) => {
                self.offenders.push(offender);
                self.broken.insert(position);
                return;
            }
        };
        self.sound += 1;
        *self.sizes.entry(size).or_default() += 1;
        let mut amounts: BTreeMap<usize, u64> = BTreeMap::new();
        match truth {
            Truth::Unlabelled | Truth::Given(_) => {}
            Truth::Class(class) => drop(amounts.insert(class, 1)),
            Truth::Labels(map) => {
                let mut pixels = vec![0u64; usize::from(u16::MAX) + 1];
                map.labels().iter().for_each(|&label| pixels[usize::from(label)] += 1);
                self.ignored_pixels += std::mem::take(&mut pixels[usize::from(IGNORE)]);
                amounts.extend(pixels.into_iter().enumerate().filter(|&(_, n)| n > 0));
            }
            Truth::Objects(objects) => {
                self.crowds += objects.iter().filter(|o| o.crowd).count() as u64;
                objects.iter().for_each(|object| *amounts.entry(object.class).or_default() += 1);
            }
        }
        for (class, amount) in amounts {
            self.classes.entry(class).or_default().take(ClassCount { samples: 1, amount });
        }
    }

    fn merged(mut self, other: Self) -> Self {
        self.sound += other.sound;
        other.sizes.into_iter().for_each(|(size, n)| *self.sizes.entry(size).or_default() += n);
        other.classes.into_iter().for_each(|(class, n)| self.classes.entry(class).or_default().take(n));
        self.ignored_pixels += other.ignored_pixels;
        self.crowds += other.crowds;
        self.offenders.extend(other.offenders);
        self.broken.extend(other.broken);
        self
    }
}

impl ClassCount {
    fn take(&mut self, other: Self) {
        self.samples += other.samples;
        self.amount += other.amount;
    }
}

fn sizes<S: serde::Serializer>(
    sizes: &BTreeMap<(usize, usize), u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(sizes.iter().map(|((w, h), n)| (format!("{w}x{h}"), n)))
}
