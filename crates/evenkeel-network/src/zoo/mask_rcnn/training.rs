//! The five training losses of Mask R-CNN on true instances, as a function of the tensors of its graph: values, and cotangents on those tensors.
//!
//! Between the graph's pieces stand the steps that no gradient passes: anchors and regions are matched with the true instances and sampled here, and the heads run
//! on the sampled regions. Matching and the losses' values are in single precision; the heads run in that of the tensors given.

use std::borrow::Cow;

use super::losses::{binary, cross_entropy, smooth};
use super::matching::{self, Corners, Match};
use super::{DEFAULT_CLASSES, REGIONS, Variant, box_head, goals, mask_head};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::tensor::{DType, Limits, Tensor};
use crate::zoo::{Weights, find};

const LEVELS: usize = 5;
/// Maps the heads look at.
const POOLED: usize = 4;
/// How many anchors count and how many of them for instances; the same of regions.
const ANCHORS: (usize, usize) = (256, 128);
const SAMPLED: (usize, usize) = (512, 128);
const ANCHOR_WEIGHTS: [f32; 2] = [1.0, 1.0];
const REGION_WEIGHTS: [f32; 2] = [10.0, 5.0];

/// A true instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// x1, y1, x2, y2 in pixels.
    pub corners: [f32; 4],
    /// Its class, 1 or more.
    pub label: usize,
    /// 1 where it is, for each pixel of the image, row by row.
    pub mask: Vec<f32>,
}

/// Which anchors and regions the losses count.
#[derive(Clone, Copy, Debug)]
pub enum Sampling<'a> {
    /// 256 anchors and 512 regions (those proposed and the true boxes) drawn with this seed.
    Seeded(u64),
    /// These anchors, by number over all levels, and these regions.
    Given {
        /// The anchors.
        anchors: &'a [usize],
        /// The regions' corners.
        regions: &'a [[f32; 4]],
    },
}

/// The five losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Whether anchors stand for instances.
    pub objectness: f32,
    /// How anchors should move.
    pub anchor_boxes: f32,
    /// The classes of regions.
    pub classes: f32,
    /// How regions should move.
    pub boxes: f32,
    /// The masks of regions that stand for instances.
    pub masks: f32,
}

impl Losses {
    /// All five together: what is trained, and attacked.
    pub fn sum(&self) -> f32 {
        self.objectness + self.anchor_boxes + self.classes + self.boxes + self.masks
    }
}

/// Cotangents by the names of tensors.
type Cotangents = Vec<(String, Tensor)>;

/// The tensors of the graph that the losses are made of, by name.
#[derive(Clone, Copy)]
pub struct Seen<'a>(&'a [(String, Tensor)]);

impl<'a> Seen<'a> {
    /// These tensors; [`LossHeads::tensors`] says which are needed.
    pub fn new(tensors: &'a [(String, Tensor)]) -> Self {
        Self(tensors)
    }

    fn get(&self, name: &str) -> Result<&'a Tensor> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, tensor)| tensor).ok_or_else(|| Error::NoTensor { name: name.into(), near: Vec::new() })
    }
}

/// The heads that look at regions, for the losses.
#[derive(Clone, Debug)]
pub struct LossHeads {
    boxes: Network,
    masks: Network,
    classes: usize,
}

impl LossHeads {
    /// The heads of this architecture with these weights.
    ///
    /// # Errors
    /// If it is not a Mask R-CNN or the weights are not its own.
    pub fn new(architecture: &str, weights: &Weights, limits: Limits) -> Result<Self> {
        let variant = variant(architecture)?;
        let boxes = box_head(weights, variant).network(limits)?;
        let masks = mask_head(weights, variant).network(limits)?;
        let scores = weights.get("roi_heads.box_predictor.cls_score.weight");
        let classes = scores.and_then(|tensor| tensor.shape().first().copied()).unwrap_or(DEFAULT_CLASSES);
        Ok(Self { boxes, masks, classes })
    }

    /// The same heads in double precision.
    ///
    /// # Errors
    /// If a weight cannot be widened.
    pub fn widened(&self) -> Result<Self> {
        Ok(Self { boxes: self.boxes.widened()?, masks: self.masks.widened()?, classes: self.classes })
    }

    /// how many classes are distinguished, background among them.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The names of the tensors the losses need; `proposals` among them if regions are to be drawn.
    pub fn tensors(proposals: bool) -> Vec<String> {
        let levels =
            |part: &str, count: usize| (0..count).map(|level| format!("{part}.{level}")).collect::<Vec<_>>();
        let mut names = levels("fpn", POOLED);
        for part in ["rpn.objectness", "rpn.deltas", "rpn.anchors"] {
            names.extend(levels(part, LEVELS));
        }
        names.extend(proposals.then(|| "proposals".to_string()));
        names
    }

    /// The losses on the true instances of an image of this (height, width), and the cotangents of their sum on the tensors seen.
    ///
    /// # Errors
    /// If an instance's mask is not of the image's size or its label is 0 or unknown, a given anchor does not exist, or a tensor is missing.
    pub fn evaluate(
        &self,
        seen: Seen<'_>,
        size: (usize, usize),
        truth: &[Instance],
        sampling: Sampling<'_>,
    ) -> Result<(Losses, Vec<(String, Tensor)>)> {
        check(size, truth, sampling)?;
        let mut losses = Losses::default();
        let mut cotangents = anchor_losses(seen, truth, sampling, &mut losses)?;
        let regions = match sampling {
            Sampling::Given { regions, .. } => regions.to_vec(),
            Sampling::Seeded(seed) => {
                let mut all = corners(seen.get("proposals")?)?;
                all.extend(truth.iter().map(|instance| instance.corners));
                let matches = matching::regions(&all, &boxes_of(truth));
                let seed = seed ^ 0x5851_F42D_4C95_7F2D;
                matching::sample(&matches, SAMPLED.0, SAMPLED.1, seed).into_iter().map(|i| all[i]).collect()
            }
        };
        cotangents.extend(self.region_losses(seen, truth, &regions, &mut losses)?);
        cotangents.extend(self.mask_losses(seen, size, truth, &regions, &mut losses)?);
        Ok((losses, cotangents))
    }

    /// Classes and boxes of regions; cotangents on the pyramid.
    fn region_losses(
        &self,
        seen: Seen<'_>,
        truth: &[Instance],
        regions: &[Corners],
        losses: &mut Losses,
    ) -> Result<Cotangents> {
        if regions.is_empty() {
            return Ok(Vec::new());
        }
        let head = self.boxes.trace(&given(seen, regions)?, &["class_logits", "box_deltas"])?;
        let (logits, deltas) = (floats(&head.tensors()[0])?, floats(&head.tensors()[1])?);
        let (count, classes) = (regions.len(), logits.len() / regions.len());
        let share = 1.0 / count as f32;
        let (mut by_logit, mut by_delta) = (vec![0f32; logits.len()], vec![0f32; deltas.len()]);
        let truth_boxes = boxes_of(truth);
        for (i, matched) in matching::regions(regions, &truth_boxes).into_iter().enumerate() {
            let label = match matched {
                Match::Instance(instance) => truth[instance].label,
                _ => 0,
            };
            if label >= classes {
                return Err(Error::Graph(format!("class {label} of {classes}")));
            }
            let row = i * classes..(i + 1) * classes;
            losses.classes += share * cross_entropy(&logits[row.clone()], label, share, &mut by_logit[row]);
            if let Match::Instance(instance) = matched {
                let goal = matching::encode(&regions[i], &truth_boxes[instance], REGION_WEIGHTS);
                for (axis, goal) in goal.into_iter().enumerate() {
                    let at = (i * classes + label) * 4 + axis;
                    let (value, slope) = smooth(deltas[at] - goal);
                    losses.boxes += share * value;
                    by_delta[at] = share * slope;
                }
            }
        }
        let by_logit = like(&head.tensors()[0], by_logit);
        let by_delta = like(&head.tensors()[1], by_delta);
        on_maps(head.pullback(&[("class_logits", by_logit), ("box_deltas", by_delta)])?)
    }

    /// Masks of the regions that stand for instances; cotangents on the pyramid.
    fn mask_losses(
        &self,
        seen: Seen<'_>,
        size: (usize, usize),
        truth: &[Instance],
        regions: &[Corners],
        losses: &mut Losses,
    ) -> Result<Cotangents> {
        let matches = matching::regions(regions, &boxes_of(truth));
        let (of_instances, owners): (Vec<Corners>, Vec<usize>) = regions
            .iter()
            .zip(matches)
            .filter_map(|(region, matched)| match matched {
                Match::Instance(instance) => Some((*region, instance)),
                _ => None,
            })
            .unzip();
        if of_instances.is_empty() {
            return Ok(Vec::new());
        }
        let goal = |(region, &owner): (&Corners, &usize)| goals::at(&truth[owner].mask, size, region);
        let goals: Vec<f32> = of_instances.iter().zip(&owners).flat_map(goal).collect();
        let head = self.masks.trace(&given(seen, &of_instances)?, &["mask_logits"])?;
        let logits = floats(&head.tensors()[0])?;
        let classes = head.tensors()[0].shape()[1];
        let pixels = goals.len() / owners.len();
        let share = 1.0 / goals.len() as f32;
        let mut by_logit = vec![0f32; logits.len()];
        for (i, &owner) in owners.iter().enumerate() {
            for pixel in 0..pixels {
                let at = (i * classes + truth[owner].label) * pixels + pixel;
                let (value, slope) = binary(logits[at], goals[i * pixels + pixel]);
                losses.masks += share * value;
                by_logit[at] = share * slope;
            }
        }
        let by_logit = like(&head.tensors()[0], by_logit);
        on_maps(head.pullback(&[("mask_logits", by_logit)])?)
    }
}

/// What tells one Mask R-CNN from another.
pub(super) fn variant(architecture: &str) -> Result<&'static Variant> {
    let not_one = || Error::Graph(format!("{architecture} is not a Mask R-CNN"));
    find(architecture)?.mask_rcnn().ok_or_else(not_one)
}

/// Whether corners are in order and in an image of this size, give or take a pixel of rounding.
fn within(corners: &Corners, (height, width): (usize, usize)) -> bool {
    let along =
        |low: f32, high: f32, extent: usize| -1.0 <= low && low <= high && high <= extent as f32 + 1.0;
    along(corners[0], corners[2], width) && along(corners[1], corners[3], height)
}

fn check((height, width): (usize, usize), truth: &[Instance], sampling: Sampling<'_>) -> Result<()> {
    for (i, Instance { corners, label, mask }) in truth.iter().enumerate() {
        if *label == 0 || mask.len() != height * width || !within(corners, (height, width)) {
            return Err(Error::Input {
                name: format!("instance {i}"),
                expected: format!("a class above 0, a box and a mask of {height}x{width} pixels"),
                got: format!("class {label}, {corners:?} and {} pixels", mask.len()),
            });
        }
    }
    let Sampling::Given { regions, .. } = sampling else { return Ok(()) };
    match regions.iter().find(|region| !within(region, (height, width))) {
        None => Ok(()),
        Some(region) => Err(Error::Input {
            name: REGIONS.into(),
            expected: format!("boxes in {height}x{width} pixels"),
            got: format!("{region:?}"),
        }),
    }
}

/// Objectness and boxes of anchors; cotangents on what the anchors' head says.
fn anchor_losses(
    seen: Seen<'_>,
    truth: &[Instance],
    sampling: Sampling<'_>,
    losses: &mut Losses,
) -> Result<Cotangents> {
    let mut anchors = Vec::new();
    let mut level_of = Vec::new();
    for level in 0..LEVELS {
        let of_level = corners(seen.get(&format!("rpn.anchors.{level}"))?)?;
        level_of.extend((0..of_level.len()).map(|place| (level, place)));
        anchors.extend(of_level);
    }
    let truth_boxes = boxes_of(truth);
    let matches = matching::anchors(&anchors, &truth_boxes);
    let chosen = match sampling {
        Sampling::Given { anchors, .. } => anchors.to_vec(),
        Sampling::Seeded(seed) => matching::sample(&matches, ANCHORS.0, ANCHORS.1, seed),
    };
    if let Some(missing) = chosen.iter().find(|&&anchor| anchor >= anchors.len()) {
        return Err(Error::Graph(format!("anchor {missing} of {}", anchors.len())));
    }
    let share = 1.0 / chosen.len().max(1) as f32;
    let said = |part: &str| {
        (0..LEVELS).map(|level| seen.get(&format!("rpn.{part}.{level}"))).collect::<Result<Vec<_>>>()
    };
    let (objectness, deltas) = (said("objectness")?, said("deltas")?);
    let values =
        |tensors: &[&Tensor]| tensors.iter().map(|t| Ok(floats(t)?.into_owned())).collect::<Result<Vec<_>>>();
    let (logits, moves) = (values(&objectness)?, values(&deltas)?);
    let zeros = |tensors: &[&Tensor]| tensors.iter().map(|t| vec![0f32; t.len()]).collect::<Vec<_>>();
    let (mut by_objectness, mut by_delta) = (zeros(&objectness), zeros(&deltas));
    for anchor in chosen {
        let (level, place) = level_of[anchor];
        let instance = if let Match::Instance(instance) = matches[anchor] { Some(instance) } else { None };
        let (value, slope) = binary(logits[level][place], f32::from(u8::from(instance.is_some())));
        losses.objectness += share * value;
        by_objectness[level][place] = share * slope;
        let Some(instance) = instance else { continue };
        let goal = matching::encode(&anchors[anchor], &truth_boxes[instance], ANCHOR_WEIGHTS);
        for (axis, goal) in goal.into_iter().enumerate() {
            let (value, slope) = smooth(moves[level][place * 4 + axis] - goal);
            losses.anchor_boxes += share * value;
            by_delta[level][place * 4 + axis] = share * slope;
        }
    }
    let named = |part: &str, tensors: &[&Tensor], values: Vec<Vec<f32>>| {
        let pairs = tensors.iter().zip(values).enumerate();
        pairs.map(|(level, (t, v))| (format!("rpn.{part}.{level}"), like(t, v))).collect::<Vec<_>>()
    };
    let mut cotangents = named("objectness", &objectness, by_objectness);
    cotangents.extend(named("deltas", &deltas, by_delta));
    Ok(cotangents)
}

/// The inputs of a head: the pyramid and the regions.
fn given(seen: Seen<'_>, regions: &[Corners]) -> Result<Vec<(&'static str, Tensor)>> {
    const MAPS: [&str; POOLED] = ["fpn.0", "fpn.1", "fpn.2", "fpn.3"];
    let mut inputs = MAPS.iter().map(|&map| Ok((map, seen.get(map)?.clone()))).collect::<Result<Vec<_>>>()?;
    inputs.push((
        REGIONS,
        of_precision(inputs[0].1.dtype(), &[regions.len(), 4], regions.as_flattened().to_vec()),
    ));
    Ok(inputs)
}

/// Of a head's gradients, those on the pyramid.
fn on_maps(gradients: Vec<(String, Tensor)>) -> Result<Cotangents> {
    Ok(gradients.into_iter().filter(|(name, _)| name.starts_with("fpn.")).collect())
}

/// The values in single precision.
fn floats(tensor: &Tensor) -> Result<Cow<'_, [f32]>> {
    if let Some(values) = tensor.values::<f32>() {
        return Ok(Cow::Borrowed(values));
    }
    let doubles = tensor.values::<f64>().map(|values| values.iter().map(|&v| v as f32).collect());
    doubles.map(Cow::Owned).ok_or_else(|| Error::Graph(format!("floats expected, got {}", tensor.describe())))
}

/// Values in the shape and precision of a tensor.
fn like(tensor: &Tensor, values: Vec<f32>) -> Tensor {
    of_precision(tensor.dtype(), tensor.shape(), values)
}

fn of_precision(dtype: DType, shape: &[usize], values: Vec<f32>) -> Tensor {
    match dtype {
        DType::F64 => Tensor::new(shape, values.into_iter().map(f64::from).collect::<Vec<f64>>()),
        _ => Tensor::new(shape, values),
    }
}

fn corners(tensor: &Tensor) -> Result<Vec<Corners>> {
    Ok(floats(tensor)?.as_chunks().0.to_vec())
}

fn boxes_of(truth: &[Instance]) -> Vec<Corners> {
    truth.iter().map(|instance| instance.corners).collect()
}
