//! A vote of instances: objects of the voters matched by class and overlap, and what the voters make of each together.
//!
//! Every voter's objects are brought back to the image. Taken in falling order of score, an object joins the first group of its class, of another voter,
//! with whose first object its mask overlaps by more than a half, or begins a group. A group's score is the mean (or median) over all voters that had at
//! least half of the object in sight, 0 for one that missed it; its mask is where more than half of the masks are. The same order for any number of threads.

use rayon::prelude::*;

use super::Combine;
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::Tensor;
use crate::task::Prediction;
use crate::task::instance::{Instance, Mask};
use crate::view::{DrawnView, Placed};

/// Two masks of one object overlap by more than this.
const SAME: f64 = 0.5;
/// Groups with a lower score are dropped, as a head drops what it is not sure of.
const LEAST: f32 = 0.001;

/// One voter's objects on the image, and what of it the voter saw.
struct Seen {
    objects: Vec<Instance>,
    overlap: Vec<f32>,
}

/// One object, as several voters see it.
struct Group {
    /// (voter, object), the surest first.
    members: Vec<(usize, usize)>,
}

/// The answer of everyone together, and the first voter's scores.
pub(super) fn vote(
    model: &Model,
    image: &Image,
    views: &[DrawnView],
    combine: Combine,
) -> Result<(Prediction, Tensor)> {
    let see = |view: &DrawnView| {
        let placed = view.placed(image.size());
        let shown = placed.apply(image);
        let scores = model.scores(&shown)?;
        let found = model.task.predict(&scores, shown.size())?;
        let objects = found.instances().unwrap_or_default().to_vec();
        Ok((seen(&placed, objects), scores))
    };
    let all = views.par_iter().map(see).collect::<Result<Vec<_>>>()?;
    let (seen, mut scores): (Vec<Seen>, Vec<Tensor>) = all.into_iter().unzip();
    let mut found: Vec<Instance> =
        groups(&seen).iter().filter_map(|group| merged(group, &seen, image.size(), combine)).collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok((Prediction::of_instances(image.size(), found), scores.swap_remove(0)))
}

/// The objects that were seen through a view, brought back to the image.
pub(crate) fn brought_back(view: &Placed, prediction: Prediction) -> Prediction {
    match prediction.instances() {
        Some(all) => Prediction::of_instances(view.size(), seen(view, all.to_vec()).objects),
        None => prediction,
    }
}

/// A voter's objects brought back to the image.
fn seen(view: &Placed, objects: Vec<Instance>) -> Seen {
    let (size, shown) = (view.size(), view.seen_size());
    let undo = view.undo_onto(shown, size);
    let back = |object: Instance| {
        let map: Vec<f32> = object.mask.to_full().iter().map(|i| f32::from(u8::from(*i))).collect();
        let inside: Vec<bool> = undo.apply(&map, 1).iter().map(|v| *v > 0.5).collect();
        let mask = Mask::from_full(size, &inside).ok().filter(|mask| mask.area() > 0)?;
        Some(Instance { score: object.score, ..Instance::truth(object.class, mask) })
    };
    Seen { objects: objects.into_iter().filter_map(back).collect(), overlap: undo.mask().to_vec() }
}

fn groups(seen: &[Seen]) -> Vec<Group> {
    let mut order: Vec<(usize, usize)> =
        seen.iter().enumerate().flat_map(|(v, seen)| (0..seen.objects.len()).map(move |o| (v, o))).collect();
    let object = |(voter, object): (usize, usize)| &seen[voter].objects[object];
    order.sort_by(|a, b| object(*b).score.total_cmp(&object(*a).score).then(a.cmp(b)));
    let mut groups: Vec<Group> = Vec::new();
    for one in order {
        let own = object(one);
        let fits = |group: &&mut Group| {
            let first = object(group.members[0]);
            first.class == own.class
                && group.members.iter().all(|(voter, _)| *voter != one.0)
                && first.mask.iou(&own.mask) > SAME
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.members.push(one),
            None => groups.push(Group { members: vec![one] }),
        }
    }
    groups
}

/// The object of a group.
fn merged(group: &Group, seen: &[Seen], size: (usize, usize), combine: Combine) -> Option<Instance> {
    let members: Vec<&Instance> = group.members.iter().map(|(v, o)| &seen[*v].objects[*o]).collect();
    let first = members[0];
    let full = first.mask.to_full();
    let could_see = |one: &Seen| {
        let shared = full.iter().zip(&one.overlap).filter(|(inside, seen)| **inside && **seen > 0.5).count();
        2 * shared >= first.mask.area()
    };
    let witnesses = (0..seen.len())
        .filter(|voter| group.members.iter().any(|(v, _)| v == voter) || could_see(&seen[*voter]))
        .count();
    let mut scores: Vec<f32> = members.iter().map(|one| one.score).collect();
    scores.resize(witnesses.max(members.len()), 0.0);
    let score = match combine {
        Combine::Mean => scores.iter().sum::<f32>() / scores.len() as f32,
        // in falling order already
        Combine::Median => 0.5 * (scores[(scores.len() - 1) / 2] + scores[scores.len() / 2]),
    };
    if score < LEAST {
        return None;
    }
    let mut votes = vec![0usize; size.0 * size.1];
    for one in &members {
        one.mask.to_full().iter().zip(&mut votes).for_each(|(inside, votes)| *votes += usize::from(*inside));
    }
    let inside: Vec<bool> = votes.iter().map(|votes| 2 * votes > members.len()).collect();
    let mask = Mask::from_full(size, &inside).ok().filter(|mask| mask.area() > 0)?;
    Some(Instance { score, ..Instance::truth(first.class, mask) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(class: usize, score: f32, top: usize, left: usize) -> Instance {
        let inside: Vec<bool> = (0..400)
            .map(|i| {
                let (y, x) = (i / 20, i % 20);
                (top..top + 6).contains(&y) && (left..left + 6).contains(&x)
            })
            .collect();
        let mask = Mask::from_full((20, 20), &inside).unwrap();
        Instance { score, ..Instance::truth(class, mask) }
    }

    fn voter(objects: Vec<Instance>) -> Seen {
        Seen { objects, overlap: vec![1.0; 400] }
    }

    /// Scores are over all voters, a voter that misses an object counting nothing; masks are the majority's.
    #[test]
    fn objects_are_matched_and_their_scores_shared() {
        let seen = [
            voter(vec![square(1, 0.9, 2, 2), square(2, 0.6, 12, 12)]),
            voter(vec![square(1, 0.6, 2, 3)]),
            voter(vec![square(1, 0.3, 2, 2), square(3, 0.4, 12, 12)]),
        ];
        let found: Vec<Instance> =
            groups(&seen).iter().filter_map(|g| merged(g, &seen, (20, 20), Combine::Mean)).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        let by_class = |class: usize| found.iter().find(|one| one.class == class).unwrap();
        assert!((by_class(1).score - 0.6).abs() < 1e-6);
        assert!((by_class(2).score - 0.2).abs() < 1e-6 && (by_class(3).score - 0.4 / 3.0).abs() < 1e-6);
        assert_eq!(by_class(1).mask, square(1, 1.0, 2, 2).mask);
        let median: Vec<Instance> =
            groups(&seen).iter().filter_map(|g| merged(g, &seen, (20, 20), Combine::Median)).collect();
        assert_eq!(median.iter().map(|one| one.class).collect::<Vec<_>>(), [1], "others have median 0");
        assert!((median[0].score - 0.6).abs() < 1e-6);
    }

    /// A voter that did not have the object in sight has no say about it.
    #[test]
    fn who_saw_nothing_does_not_count() {
        let mut blind = voter(vec![]);
        blind.overlap = (0..400).map(|i| if i / 20 < 10 { 1.0 } else { 0.0 }).collect();
        let seen = [voter(vec![square(1, 0.8, 12, 12)]), blind];
        let found = merged(&groups(&seen)[0], &seen, (20, 20), Combine::Mean).unwrap();
        assert_eq!(found.score, 0.8);
    }
}
