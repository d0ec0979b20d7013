//! The loss of a YOLO-seg head at true objects: class + box + mask, over the predictions matched to each object.
//!
//! Matching: an object takes the ten anchors with the largest √p · IoU⁶, p the anchor's probability of the object's class and IoU
//! that of the boxes; an anchor wanted twice goes to the object it overlaps more. With m matched pairs (at least 1):
//! class = Σ over anchors and classes of −ln p where the pair is matched, −ln(1 − p) elsewhere, / m;
//! box = Σ over pairs of 1 − IoU, / m; mask = Σ over pairs of the mean, over the prototype cells in the object's box, of the
//! binary cross-entropy between σ(Σ coefficient · prototype) and the object's mask, / m. The matching is redone at every evaluation and
//! held fixed in the derivative.

use super::Instance;
use super::suppress::box_iou;
use super::yolo::Outputs;
use crate::error::{Error, Result};

const ANCHORS_PER_OBJECT: usize = 10;
/// Below this a probability has no logarithm worth taking.
const LEAST: f64 = 1e-30;

/// An anchor and the object it is held to.
struct Pair {
    anchor: usize,
    object: usize,
}

/// Value and cotangents, gathered term by term.
struct Sum {
    value: f64,
    predictions: Vec<f32>,
    prototypes: Vec<f32>,
}

pub(super) fn loss(outputs: &Outputs<'_>, truth: &[Instance]) -> Result<(f64, Vec<f32>)> {
    if let Some(wild) = truth.iter().find(|t| t.class >= outputs.classes) {
        return Err(Error::UnknownClass {
            what: "true object".into(),
            label: wild.class,
            classes: outputs.classes,
        });
    }
    let pairs = matched(outputs, truth);
    let share = 1.0 / pairs.len().max(1) as f64;
    let mut sum = Sum {
        value: 0.0,
        predictions: vec![0.0; outputs.predictions.len()],
        prototypes: vec![0.0; outputs.prototypes.len()],
    };
    class_term(outputs, truth, &pairs, share, &mut sum);
    for pair in &pairs {
        box_term(outputs, pair.anchor, &truth[pair.object], share, &mut sum);
        mask_term(outputs, pair.anchor, &truth[pair.object], share, &mut sum);
    }
    let mut cotangent = sum.predictions;
    cotangent.extend(sum.prototypes);
    Ok((sum.value, cotangent))
}

fn matched(outputs: &Outputs<'_>, truth: &[Instance]) -> Vec<Pair> {
    // the object of each anchor and the boxes' overlap
    let mut claims: Vec<Option<(usize, f32)>> = vec![None; outputs.anchors];
    for (object, instance) in truth.iter().enumerate() {
        let mut ranked: Vec<(f32, usize, f32)> = (0..outputs.anchors)
            .filter_map(|anchor| {
                let iou = box_iou(outputs.corners(anchor), instance.corners);
                let p = outputs.value(4 + instance.class, anchor).max(0.0);
                (iou > 0.0).then(|| (p.sqrt() * iou.powi(6), anchor, iou))
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for &(_, anchor, iou) in ranked.iter().take(ANCHORS_PER_OBJECT) {
            if claims[anchor].is_none_or(|(_, other)| iou > other) {
                claims[anchor] = Some((object, iou));
            }
        }
    }
    let pair = |(anchor, claim): (usize, Option<(usize, f32)>)| Some(Pair { anchor, object: claim?.0 });
    claims.into_iter().enumerate().filter_map(pair).collect()
}

fn class_term(outputs: &Outputs<'_>, truth: &[Instance], pairs: &[Pair], share: f64, sum: &mut Sum) {
    let n = outputs.anchors;
    let wanted: std::collections::HashSet<usize> =
        pairs.iter().map(|pair| truth[pair.object].class * n + pair.anchor).collect();
    let rows = 4 * n..(4 + outputs.classes) * n;
    for (place, (&p, cotangent)) in
        outputs.predictions[rows.clone()].iter().zip(&mut sum.predictions[rows]).enumerate()
    {
        let p = f64::from(p);
        if wanted.contains(&place) {
            let p = p.max(LEAST);
            sum.value -= share * p.ln();
            *cotangent -= (share / p) as f32;
        } else {
            let rest = (1.0 - p).max(1e-7);
            sum.value -= share * rest.ln();
            *cotangent += (share / rest) as f32;
        }
    }
}

fn box_term(outputs: &Outputs<'_>, anchor: usize, truth: &Instance, share: f64, sum: &mut Sum) {
    let own = outputs.corners(anchor).map(f64::from);
    let is = truth.corners.map(f64::from);
    let side = |axis: usize| own[axis + 2].min(is[axis + 2]) - own[axis].max(is[axis]);
    let (across, down) = (side(0), side(1));
    if across <= 0.0 || down <= 0.0 {
        sum.value += share;
        return;
    }
    let (w, h) = (own[2] - own[0], own[3] - own[1]);
    let shared = across * down;
    let union = w * h + (is[2] - is[0]) * (is[3] - is[1]) - shared;
    sum.value += share * (1.0 - shared / union);
    // d(IoU) = d(shared)·(union + shared)/union² − d(own area)·shared/union²
    let (by_shared, by_area) = ((union + shared) / (union * union), -shared / (union * union));
    let edge = |place: usize, other: f64, length: f64| {
        let inner = if place < 2 { own[place] > is[place] } else { own[place] < is[place] };
        let sign = if place < 2 { -1.0 } else { 1.0 };
        sign * (if inner { by_shared * other } else { 0.0 } + by_area * length)
    };
    let [x1, y1, x2, y2] = [edge(0, down, h), edge(1, across, w), edge(2, down, h), edge(3, across, w)];
    let by_row = [x1 + x2, y1 + y2, (x2 - x1) / 2.0, (y2 - y1) / 2.0];
    for (row, derivative) in by_row.into_iter().enumerate() {
        sum.predictions[row * outputs.anchors + anchor] -= (share * derivative) as f32;
    }
}

fn mask_term(outputs: &Outputs<'_>, anchor: usize, truth: &Instance, share: f64, sum: &mut Sum) {
    let ((height, width), (rows, columns)) = (truth.mask.size(), outputs.grid);
    let cells = |low: f32, high: f32, pixels: usize, cells: usize| {
        let place = |side: f32| f64::from(side) * cells as f64 / pixels as f64 - 0.5;
        let first = (place(low).ceil().max(0.0) as usize).min(cells - 1);
        first..((place(high).ceil().max(0.0) as usize).min(cells)).max(first + 1)
    };
    let down = cells(truth.corners[1], truth.corners[3], height, rows);
    let across = cells(truth.corners[0], truth.corners[2], width, columns);
    let share = share / (down.len() * across.len()) as f64;
    let first_row = 4 + outputs.classes;
    let coefficients: Vec<f32> =
        (0..outputs.coefficients).map(|k| outputs.value(first_row + k, anchor)).collect();
    let mut on_coefficients = vec![0.0f64; coefficients.len()];
    let plane = rows * columns;
    for (y, x) in down.flat_map(|y| across.clone().map(move |x| (y, x))) {
        let cell = y * columns + x;
        let logit: f64 = coefficients
            .iter()
            .enumerate()
            .map(|(k, c)| f64::from(*c) * f64::from(outputs.prototypes[k * plane + cell]))
            .sum();
        let centre = |cell: usize, cells: usize, pixels: usize| {
            (((cell as f64 + 0.5) * pixels as f64 / cells as f64) as usize).min(pixels - 1)
        };
        let inside = truth.mask.contains(centre(y, rows, height), centre(x, columns, width));
        let target = f64::from(u8::from(inside));
        // ln(1 + e^z) − t·z, without overflow
        sum.value += share * (logit.max(0.0) - target * logit + (-logit.abs()).exp().ln_1p());
        let derivative = share * (1.0 / (1.0 + (-logit).exp()) - target);
        for (k, c) in coefficients.iter().enumerate() {
            on_coefficients[k] += derivative * f64::from(outputs.prototypes[k * plane + cell]);
            sum.prototypes[k * plane + cell] += (derivative * f64::from(*c)) as f32;
        }
    }
    for (k, derivative) in on_coefficients.into_iter().enumerate() {
        sum.predictions[(first_row + k) * outputs.anchors + anchor] += derivative as f32;
    }
}
