//! A user's data set as pools to train on and to score with: read once, everything wrong with it named before the first step.

use crate::batch::{Pool, Slot};
use crate::error::{Error, Result};
use crate::goal::{Goal, Pixels, Task};
use crate::picture::Picture;
use evenkeel::Random;
use evenkeel::model::ClassSet;
use evenkeel_data::dataset::{Dataset, KINDS, Offender, Request, Sample, Truth};
use evenkeel_data::metric::IGNORE;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A label map and the numbers of instances are kept as bytes.
const MOST_CLASSES: usize = 254;
/// The share of a data set that is held out, and the most of it.
const HELD_OUT_SHARE: usize = 5;
const MOST_HELD_OUT: usize = 200;

/// A part of a data set.
#[derive(Clone, Debug)]
pub struct Part {
    /// The kind, a name of the table of data sets.
    pub kind: String,
    /// Where it lies.
    pub path: PathBuf,
    /// What is asked of it.
    pub request: Request,
}

/// What to train on.
#[derive(Clone, Debug)]
pub struct Source {
    /// The task.
    pub task: Task,
    /// The pictures to train on.
    pub train: Part,
    /// Pictures to score with; without them some of `train` are held out.
    pub held_out: Option<Part>,
    /// How many of `train` to hold out; by itself a fifth, and 200 at most.
    pub held_out_count: Option<usize>,
    /// Names of the classes, or that of a known set, instead of the data set's own.
    pub names: Option<Vec<String>>,
    /// Bytes of pictures to keep decoded.
    pub memory: usize,
    /// The seed of what is held out.
    pub seed: u64,
    /// Sides of the network's input are multiples of this.
    pub multiple: usize,
    /// How pixels become input.
    pub pixels: Pixels,
}

/// A data set ready to train on.
pub struct Prepared {
    /// What is to be learnt.
    pub goal: Goal,
    /// The pictures to train on.
    pub train: Pool,
    /// The pictures to score with.
    pub held_out: Pool,
    /// Labelled pixels, pictures or objects of each class among those to train on.
    pub amounts: Vec<u64>,
    /// A hash over names, pixels and labels of the pictures to train on.
    pub hash: String,
    /// Samples with nothing labelled.
    pub blank: usize,
}

/// What was read of one sample.
struct Seen {
    slot: Slot,
    hash: blake3::Hash,
    size: (usize, usize),
    amounts: BTreeMap<usize, u64>,
}

/// A part after it was read.
struct Read {
    dataset: Arc<Dataset>,
    seen: Vec<Seen>,
}

impl Source {
    /// Reads everything once.
    ///
    /// # Errors
    /// Naming all files that are broken, or saying why nothing can be learnt from the data set.
    pub fn prepare(&self) -> Result<Prepared> {
        let train = self.read(&self.train, self.memory)?;
        let held_out = match &self.held_out {
            None => None,
            Some(part) => {
                let left = self.memory.saturating_sub(train.bytes());
                let mut part = part.clone();
                part.request.classes = part.request.classes.or(self.train.request.classes);
                Some(self.read(&part, left)?)
            }
        };
        let goal = self.goal(&train, held_out.as_ref())?;
        let hash = train.hash();
        let Read { dataset, seen } = train;
        let blank = seen.iter().filter(|seen| seen.amounts.is_empty()).count();
        let (kept, out) = match held_out {
            Some(read) => (seen, (read.dataset, read.seen)),
            None => {
                let (kept, out) = self.divide(seen)?;
                (kept, (dataset.clone(), out))
            }
        };
        let mut amounts = vec![0; goal.classes.len()];
        for (class, amount) in kept.iter().flat_map(|seen| &seen.amounts) {
            amounts[*class] += amount;
        }
        let pool = |seen: Vec<Seen>, dataset| {
            Pool::of_slots(&goal, seen.into_iter().map(|seen| seen.slot).collect(), dataset)
        };
        let (train, held_out) = (pool(kept, dataset), pool(out.1, out.0));
        Ok(Prepared { train, held_out, amounts, hash, blank, goal })
    }

    fn read(&self, part: &Part, memory: usize) -> Result<Read> {
        let dataset = Arc::new(Dataset::open(&part.kind, &part.path, &part.request)?);
        let mut offenders = dataset.offenders().to_vec();
        let (mut seen, mut used) = (Vec::with_capacity(dataset.len()), 0);
        let positions: Vec<usize> = (0..dataset.len()).collect();
        for chunk in positions.chunks(64) {
            let read: Vec<_> = chunk.par_iter().map(|&position| self.see(part, &dataset, position)).collect();
            for one in read {
                match one {
                    Ok(mut one) => {
                        if let Slot::Kept(picture) = &one.slot {
                            used += picture.bytes();
                        }
                        if used > memory {
                            one.slot = Slot::Position(seen.len());
                        }
                        seen.push(one);
                    }
                    Err(Error::Data(evenkeel_data::Error::Offenders(more))) => offenders.extend(more),
                    Err(other) => return Err(other),
                }
            }
        }
        if !offenders.is_empty() {
            offenders.sort();
            offenders.dedup();
            return Err(evenkeel_data::Error::Offenders(offenders).into());
        }
        Ok(Read { dataset, seen })
    }

    fn see(&self, part: &Part, dataset: &Dataset, position: usize) -> Result<Seen> {
        let sample = dataset.sample(position)?;
        let amounts = self.amounts(part, &sample)?;
        let picture = Picture::of_sample(&sample);
        let mut hasher = blake3::Hasher::new();
        hasher.update(sample.id.as_bytes()).update(&picture.pixels).update(&picture.labels);
        hasher.update(&picture.class.to_le_bytes());
        let (hash, size) = (hasher.finalize(), sample.image.size());
        Ok(Seen { slot: Slot::Kept(picture), hash, size, amounts })
    }

    /// How much of each class a sample has; refuses a truth of another kind than the task's.
    fn amounts(&self, part: &Part, sample: &Sample) -> Result<BTreeMap<usize, u64>> {
        let mut amounts = BTreeMap::new();
        match (&sample.truth, self.task) {
            (Truth::Labels(map), Task::Semantic) => {
                for &label in map.labels().iter().filter(|&&label| label != IGNORE) {
                    *amounts.entry(usize::from(label)).or_insert(0) += 1;
                }
            }
            (Truth::Class(class), Task::Classification) => drop(amounts.insert(*class, 1)),
            (Truth::Objects(objects), Task::Instances) => {
                for object in objects.iter().filter(|object| !object.crowd) {
                    *amounts.entry(object.class).or_insert(0) += 1;
                }
            }
            _ => {
                let (wanted, kinds) = wanted(self.task);
                let fault = format!("{} `{}` has no {wanted}", part.kind, sample.id);
                let cure = format!("kinds that have them are {kinds}");
                return Err(
                    evenkeel_data::Error::Offenders(vec![Offender::new(&part.path, fault, cure)]).into()
                );
            }
        }
        Ok(amounts)
    }

    /// The classes and the usual size of what was read.
    fn goal(&self, train: &Read, held_out: Option<&Read>) -> Result<Goal> {
        let path = self.train.path.display();
        let refuse = |reason: String| Err(Error::Setting(format!("{path}: {reason}")));
        let present: BTreeMap<usize, u64> = train.seen.iter().flat_map(|seen| seen.amounts.clone()).collect();
        let of = |reads: Option<&Read>| {
            reads.and_then(|read| read.seen.iter().flat_map(|seen| seen.amounts.keys().copied()).max())
        };
        let Some(last) = of(Some(train)) else {
            return refuse("nothing in it is labelled; 255 in a label map means unknown".into());
        };
        if present.len() == 1 {
            return refuse(format!(
                "everything in it is of one class, {last}; there is nothing to tell apart, so add samples of another"
            ));
        }
        let largest = last.max(of(held_out).unwrap_or(0)) + 1;
        let mut classes = train.dataset.classes().to_vec();
        // a layout that names no classes offers all numbers there can be
        let unnamed = classes.iter().enumerate().all(|(k, name)| *name == k.to_string());
        if unnamed && self.train.request.classes.is_none() {
            classes = (0..largest).map(|class| class.to_string()).collect();
        }
        if let Some(names) = self.names.as_ref().filter(|names| names.len() != classes.len()) {
            return refuse(format!(
                "it has {} classes, but --names gives {}; say --classes if some of them never occur",
                classes.len(),
                names.len()
            ));
        }
        if largest > classes.len() {
            return refuse(format!(
                "there are {} classes, but samples to train or to score on have the class {}",
                classes.len(),
                largest - 1
            ));
        }
        if self.task != Task::Classification && classes.len() > MOST_CLASSES {
            return refuse(format!(
                "it has {} classes; at most {MOST_CLASSES} can be trained",
                classes.len()
            ));
        }
        let colours = train.dataset.palette().colours().get(..classes.len()).map(<[_]>::to_vec);
        let set = self.names.as_ref().and_then(|names| known_set(names));
        let colours = set.and_then(|set| set.palette().ok()).map(|p| p.colours().to_vec()).or(colours);
        let sizes = train.seen.iter().fold(BTreeMap::new(), |mut sizes, seen| {
            *sizes.entry(seen.size).or_insert(0usize) += 1;
            sizes
        });
        let usual = sizes.into_iter().max_by_key(|&(_, count)| count).map_or((0, 0), |(size, _)| size);
        Ok(Goal {
            task: self.task,
            classes: self.names.clone().unwrap_or(classes),
            colours: colours.filter(|_| self.task == Task::Semantic),
            ids: Vec::new(),
            size: (usual.0.next_multiple_of(self.multiple), usual.1.next_multiple_of(self.multiple)),
            smallest: if self.task == Task::Instances { 24 } else { 0 },
            fixed: self.task == Task::Instances,
            multiple: self.multiple,
            pixels: self.pixels,
        })
    }

    /// Pictures to train on, and those held out.
    fn divide(&self, seen: Vec<Seen>) -> Result<(Vec<Seen>, Vec<Seen>)> {
        let usual = (seen.len() / HELD_OUT_SHARE).clamp(1, MOST_HELD_OUT);
        let count = self.held_out_count.unwrap_or(usual);
        if count >= seen.len() {
            return Err(Error::Setting(format!(
                "{}: holding out {count} of its {} samples leaves none to train on",
                self.train.path.display(),
                seen.len()
            )));
        }
        let order = Random::new(self.seed).fork(1 << 40).order(seen.len());
        let out: std::collections::BTreeSet<usize> = order.into_iter().take(count).collect();
        let (out, kept): (Vec<_>, Vec<_>) = seen.into_iter().enumerate().partition(|(k, _)| out.contains(k));
        let plain = |part: Vec<(usize, Seen)>| part.into_iter().map(|(_, seen)| seen).collect();
        Ok((plain(kept), plain(out)))
    }
}

impl Read {
    fn bytes(&self) -> usize {
        let bytes = |seen: &Seen| if let Slot::Kept(picture) = &seen.slot { picture.bytes() } else { 0 };
        self.seen.iter().map(bytes).sum()
    }

    fn hash(&self) -> String {
        let mut all = blake3::Hasher::new();
        for seen in &self.seen {
            all.update(seen.hash.as_bytes());
        }
        all.finalize().to_hex().to_string()
    }
}

/// What the truth of a task is called, and the kinds of data set that have it.
fn wanted(task: Task) -> (&'static str, String) {
    let (wanted, named) = match task {
        Task::Semantic => (
            "label map",
            &["labelled-folder", "cityscapes", "voc", "camvid", "coco-voc21", "manifest", "scenes"][..],
        ),
        Task::Classification => {
            ("class", &["imagenet", "cifar10", "mnist", "fashion-mnist", "manifest", "scenes-objects"][..])
        }
        Task::Instances => ("objects with masks", &["coco", "scenes-instances"][..]),
    };
    let known = KINDS.iter().map(|kind| kind.name).filter(|kind| named.contains(kind));
    (wanted, known.collect::<Vec<_>>().join(", "))
}

/// The known set that has just these names.
fn known_set(names: &[String]) -> Option<&'static ClassSet> {
    evenkeel::model::CLASS_SETS.iter().find(|set| set.names() == names)
}

/// Weights of the classes in the loss, by how much of each there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassWeights {
    /// All the same.
    #[default]
    None,
    /// `1 / ln(1.1 + share)`, brought to a mean of one: rare classes up to ten times the most frequent.
    Log,
    /// One by one.
    List(Vec<f32>),
}

impl ClassWeights {
    /// The weights for classes with these amounts.
    ///
    /// # Errors
    /// If a list has another number.
    pub fn of(&self, amounts: &[u64]) -> Result<Vec<f32>> {
        match self {
            Self::None => Ok(vec![1.0; amounts.len()]),
            Self::List(list) if list.len() == amounts.len() => Ok(list.clone()),
            Self::List(list) => Err(Error::Setting(format!(
                "--class-weights has {} numbers, but there are {} classes",
                list.len(),
                amounts.len()
            ))),
            Self::Log => {
                let total = amounts.iter().sum::<u64>().max(1) as f64;
                let raw: Vec<f64> = amounts.iter().map(|&n| 1.0 / (1.1 + n as f64 / total).ln()).collect();
                let mean = raw.iter().sum::<f64>() / raw.len().max(1) as f64;
                Ok(raw.iter().map(|w| (w / mean) as f32).collect())
            }
        }
    }
}
