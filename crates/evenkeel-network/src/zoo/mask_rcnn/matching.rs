//! Which anchors and regions stand for which true instance: by overlap, as Mask R-CNN was trained.
//!
//! An anchor takes the instance it overlaps best if by 0.7 or more, or if no anchor overlaps that instance better; it is background below 0.3, and counts
//! for nothing between. A region takes the instance it overlaps best if by half or more. Of many, a seeded sample counts, with at most a given share of
//! instances.

/// A box of corners x1, y1, x2, y2.
pub(super) type Corners = [f32; 4];

/// What an anchor or region stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The true instance of this number.
    Instance(usize),
    Background,
    Neither,
}

/// Intersection over union.
fn overlap(a: &Corners, b: &Corners) -> f32 {
    let area = |c: &Corners| (c[2] - c[0]) * (c[3] - c[1]);
    let side = |low: usize, high: usize| (a[high].min(b[high]) - a[low].max(b[low])).max(0.0);
    let common = side(0, 2) * side(1, 3);
    common / (area(a) + area(b) - common)
}

/// The true box each overlaps best, the first of equals, and by how much. There must be true boxes.
fn nearest(boxes: &[Corners], truth: &[Corners]) -> Vec<(usize, f32)> {
    let best = |b: &Corners| {
        truth
            .iter()
            .enumerate()
            .map(|(i, t)| (i, overlap(t, b)))
            .fold((0, -1.0), |best, (i, value)| if value > best.1 { (i, value) } else { best })
    };
    boxes.iter().map(best).collect()
}

/// What each anchor stands for.
pub(super) fn anchors(anchors: &[Corners], truth: &[Corners]) -> Vec<Match> {
    if truth.is_empty() {
        return vec![Match::Background; anchors.len()];
    }
    let nearest = nearest(anchors, truth);
    let mut matches: Vec<Match> = nearest
        .iter()
        .map(|&(instance, by)| match by {
            by if by >= 0.7 => Match::Instance(instance),
            by if by < 0.3 => Match::Background,
            _ => Match::Neither,
        })
        .collect();
    for t in truth {
        let best = anchors.iter().map(|a| overlap(t, a)).fold(f32::MIN, f32::max);
        for (i, anchor) in anchors.iter().enumerate() {
            if overlap(t, anchor) == best {
                matches[i] = Match::Instance(nearest[i].0);
            }
        }
    }
    matches
}

/// What each region stands for.
pub(super) fn regions(regions: &[Corners], truth: &[Corners]) -> Vec<Match> {
    if truth.is_empty() {
        return vec![Match::Background; regions.len()];
    }
    let decide =
        |(instance, by): (usize, f32)| if by >= 0.5 { Match::Instance(instance) } else { Match::Background };
    nearest(regions, truth).into_iter().map(decide).collect()
}

/// A sample of `size` of those that stand for something, with at most `instances` that stand for instances, in ascending order.
pub(super) fn sample(matches: &[Match], size: usize, instances: usize, seed: u64) -> Vec<usize> {
    let of = |wanted: fn(&Match) -> bool| -> Vec<usize> {
        (0..matches.len()).filter(|&i| wanted(&matches[i])).collect()
    };
    let mut state = seed;
    let mut chosen = draw(of(|m| matches!(m, Match::Instance(_))), instances, &mut state);
    let rest = size - chosen.len();
    chosen.extend(draw(of(|m| *m == Match::Background), rest, &mut state));
    chosen.sort_unstable();
    chosen
}

/// `count` of these without putting back, or all.
fn draw(mut from: Vec<usize>, count: usize, state: &mut u64) -> Vec<usize> {
    let count = count.min(from.len());
    for i in 0..count {
        let left = (from.len() - i) as u128;
        from.swap(i, i + ((u128::from(next(state)) * left) >> 64) as usize);
    }
    from.truncate(count);
    from
}

/// The next of a sequence of 64-bit numbers (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The deltas that lead from a box to a true box: what decoding undoes. `weights` are those of shifts and growths.
pub(super) fn encode(from: &Corners, to: &Corners, weights: [f32; 2]) -> [f32; 4] {
    let size = |c: &Corners, axis: usize| c[axis + 2] - c[axis];
    let centre = |c: &Corners, axis: usize| c[axis] + 0.5 * size(c, axis);
    let shift = |axis: usize| weights[0] * (centre(to, axis) - centre(from, axis)) / size(from, axis);
    let growth = |axis: usize| weights[1] * (size(to, axis) / size(from, axis)).ln();
    [shift(0), shift(1), growth(0), growth(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_follow_overlap_and_the_best_anchor_is_never_lost() {
        let truth = [[0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 60.0, 60.0]];
        let boxes = [
            [0.0, 0.0, 10.0, 10.0],
            [0.0, 0.0, 10.0, 5.0],
            [20.0, 20.0, 30.0, 30.0],
            [55.0, 55.0, 75.0, 75.0],
        ];
        let expected = [Match::Instance(0), Match::Neither, Match::Background, Match::Instance(1)];
        assert_eq!(anchors(&boxes, &truth), expected);
        let expected = [Match::Instance(0), Match::Instance(0), Match::Background, Match::Background];
        assert_eq!(regions(&boxes, &truth), expected);
        assert_eq!(regions(&boxes, &[]), [Match::Background; 4]);
    }

    #[test]
    fn samples_are_seeded_bounded_and_without_repeats() {
        let matches: Vec<Match> =
            (0..100).map(|i| if i % 3 == 0 { Match::Instance(0) } else { Match::Background }).collect();
        let first = sample(&matches, 20, 5, 7);
        assert_eq!(first, sample(&matches, 20, 5, 7));
        assert_ne!(first, sample(&matches, 20, 5, 8));
        assert_eq!(first.len(), 20);
        assert_eq!(first.iter().filter(|&&i| i % 3 == 0).count(), 5);
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sample(&matches, 200, 50, 1).len(), 100);
    }
}
