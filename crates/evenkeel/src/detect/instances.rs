//! Output variance for instances: how much the objects seen through views disagree with those seen in the image.
//!
//! Per view, masks are undone to the image and both sides cut to the overlap; objects of which less than half is in sight are left
//! out. Pairs are made by falling mask IoU, whatever the class. Agreement of a pair is its IoU if the classes are the same, else 0;
//! disagreement of the view is 1 − Σ agreement / (objects here + objects there − pairs), from 0 to 1, and 0 where neither side has
//! any. The score is the sum over views.

use rayon::prelude::*;

use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::Extents;
use crate::task::instance::{Instance, Mask, confident};
use crate::view::DrawnView as View;

/// The sum over views of how much the confident instances disagree.
///
/// # Errors
/// If the network refuses a view.
pub fn instance_variance(model: &Model, image: &Image, views: &[View]) -> Result<f64> {
    let base = instances(model, image)?;
    let each = views
        .par_iter()
        .map(|view| {
            let seen_image = view.apply(image);
            let seen = instances(model, &seen_image)?;
            let evaluation = Evaluation::new(view, image.size(), seen_image.size());
            let here: Vec<Instance> = base.iter().filter_map(|one| evaluation.cut(one)).collect();
            let there: Vec<Instance> = seen.iter().filter_map(|one| evaluation.undone(one)).collect();
            Ok(disagreement(&here, &there))
        })
        .collect::<Result<Vec<f64>>>()?;
    Ok(each.iter().sum())
}

/// For each pixel, the share of the views in sight of it that see an object of another class there than the image, or none where it has one.
///
/// # Errors
/// If the network refuses a view.
pub fn instance_disagreement(model: &Model, image: &Image, views: &[View]) -> Result<Vec<f32>> {
    let cells = image.height() * image.width();
    let here = classes(&instances(model, image)?, cells);
    let each = views
        .par_iter()
        .map(|view| {
            let seen_image = view.apply(image);
            let seen = instances(model, &seen_image)?;
            let evaluation = Evaluation::new(view, image.size(), seen_image.size());
            let there: Vec<Instance> = seen.iter().filter_map(|one| evaluation.undone(one)).collect();
            Ok((classes(&there, cells), evaluation.overlap))
        })
        .collect::<Result<Vec<_>>>()?;
    let share = |cell: usize| {
        let in_sight = each.iter().filter(|(_, overlap)| overlap[cell] > 0.5);
        let (differ, all) = in_sight.fold((0, 0), |(differ, all), (there, _)| {
            (differ + usize::from(there[cell] != here[cell]), all + 1)
        });
        differ as f32 / all.max(1) as f32
    };
    Ok((0..cells).map(share).collect())
}

/// The class of the most confident object at each pixel.
fn classes(found: &[Instance], cells: usize) -> Vec<Option<usize>> {
    let mut painted = vec![None; cells];
    let mut order: Vec<&Instance> = found.iter().collect();
    order.sort_by(|a, b| a.score.total_cmp(&b.score));
    for one in order {
        let inside = one.mask.to_full();
        painted
            .iter_mut()
            .zip(inside)
            .filter(|(_, inside)| *inside)
            .for_each(|(cell, _)| *cell = Some(one.class));
    }
    painted
}

fn instances(model: &Model, image: &Image) -> Result<Vec<Instance>> {
    let found = model.predict(image)?;
    Ok(confident(found.instances().unwrap_or_default()).into_iter().cloned().collect())
}

/// One view's way back, and what of the image it saw.
struct Evaluation<'a> {
    view: &'a View,
    size: (usize, usize),
    seen: (usize, usize),
    overlap: Vec<f32>,
}

impl<'a> Evaluation<'a> {
    fn new(view: &'a View, size: (usize, usize), seen: (usize, usize)) -> Self {
        Self { view, size, seen, overlap: view.mask(size, seen, size) }
    }

    /// What of an object in the image was in sight, if at least half was.
    fn cut(&self, instance: &Instance) -> Option<Instance> {
        let full = instance.mask.to_full();
        let inside: Vec<bool> = full.iter().zip(&self.overlap).map(|(i, o)| *i && *o > 0.5).collect();
        let mask = Mask::from_full(self.size, &inside).ok()?;
        let enough = 2 * mask.area() >= instance.mask.area() && mask.area() > 0;
        enough.then(|| Instance { mask, ..instance.clone() })
    }

    /// An object of the view, brought back to the image.
    fn undone(&self, instance: &Instance) -> Option<Instance> {
        let map: Vec<f32> = instance.mask.to_full().iter().map(|i| f32::from(u8::from(*i))).collect();
        let extents = Extents { channels: 1, height: self.seen.0, width: self.seen.1 };
        let back = self.view.undo(self.size, &map, extents, self.size);
        let inside: Vec<bool> = back.iter().zip(&self.overlap).map(|(b, o)| *b > 0.5 && *o > 0.5).collect();
        let mask = Mask::from_full(self.size, &inside).ok()?;
        (mask.area() > 0).then(|| Instance { mask, ..instance.clone() })
    }
}

fn disagreement(here: &[Instance], there: &[Instance]) -> f64 {
    let mut overlaps: Vec<(f64, usize, usize)> = Vec::new();
    for (i, a) in here.iter().enumerate() {
        for (j, b) in there.iter().enumerate() {
            let iou = a.mask.iou(&b.mask);
            if iou > 0.0 {
                overlaps.push((iou, i, j));
            }
        }
    }
    overlaps.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut used_here, mut used_there) = (vec![false; here.len()], vec![false; there.len()]);
    let (mut pairs, mut agreement) = (0, 0.0);
    for (iou, i, j) in overlaps {
        if !used_here[i] && !used_there[j] {
            (used_here[i], used_there[j]) = (true, true);
            pairs += 1;
            agreement += if here[i].class == there[j].class { iou } else { 0.0 };
        }
    }
    match here.len() + there.len() - pairs {
        0 => 0.0,
        objects => 1.0 - agreement / objects as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(class: usize, top: usize, left: usize) -> Instance {
        Instance::truth(class, Mask::new((20, 20), (top, left), (4, 4), vec![true; 16]).unwrap())
    }

    #[test]
    fn the_most_confident_object_at_a_pixel_counts() {
        let unsure = Instance { score: 0.3, ..square(2, 0, 2) };
        for found in [vec![square(1, 0, 0), unsure.clone()], vec![unsure, square(1, 0, 0)]] {
            let painted = classes(&found, 400);
            assert_eq!(painted[..8], [vec![Some(1); 4], vec![Some(2); 2], vec![None; 2]].concat());
            assert_eq!(painted.iter().flatten().count(), 24);
        }
    }

    #[test]
    fn disagreement_is_nought_for_the_same_and_one_for_strangers() {
        let here = [square(1, 0, 0), square(2, 10, 10)];
        assert_eq!(disagreement(&here, &here), 0.0);
        assert_eq!(disagreement(&here, &[square(2, 10, 10), square(1, 0, 0)]), 0.0);
        assert_eq!(disagreement(&here, &[]), 1.0);
        assert_eq!(disagreement(&[], &[]), 0.0);
        assert_eq!(disagreement(&here, &[square(1, 0, 0), square(3, 10, 10)]), 0.5);
        assert_eq!(disagreement(&here[..1], &[square(1, 0, 2)]), 1.0 - 8.0 / 24.0);
    }
}
