//! Which detection found which truth, in one image and category.
//!
//! Detections, best first, each take the free truth they overlap most, if at least by the threshold. Truths outside
//! the area range, and crowds, are "ignored": they are only taken when no counted one is to be had, and taking them is
//! neither right nor wrong; a crowd is never used up. An unmatched detection outside the range is ignored too.

use super::{
    AREAS, CategoryRecords, DetectedInstance, MOST_DETECTIONS, Record, THRESHOLDS, TrueInstance, Wanted,
};

/// The overlap asked for at threshold `t`: evenly spaced from 0.5 to 0.95, computed as numpy's linspace does.
pub(super) fn threshold(t: usize) -> f64 {
    if t + 1 == THRESHOLDS { 0.95 } else { t as f64 * ((0.95 - 0.5) / (THRESHOLDS - 1) as f64) + 0.5 }
}

/// Matches one image's detections (sorted, at most 100) in every area range and appends what is to be remembered.
pub(super) fn match_image(
    image: i64,
    truths: &[&TrueInstance],
    found: &[&DetectedInstance],
    into: &mut CategoryRecords,
) {
    debug_assert!(found.len() <= MOST_DETECTIONS);
    // [detection][truth]
    let overlaps: Vec<f64> =
        found.iter().flat_map(|d| truths.iter().map(|t| d.region.overlap(&t.region, t.crowd))).collect();
    let mut records: Vec<Record> = found
        .iter()
        .enumerate()
        .map(|(rank, d)| Record {
            score: d.score + 0.0,
            image,
            rank: rank as u8,
            matched: [0; AREAS.len()],
            ignored: [0; AREAS.len()],
        })
        .collect();
    let mut wanted = Wanted { image, truths: [0; AREAS.len()] };
    for (a, &(least, most)) in AREAS.iter().enumerate() {
        let outside = |area: f64| area < least || area > most;
        let ignored: Vec<bool> = truths.iter().map(|t| t.crowd || outside(t.area)).collect();
        wanted.truths[a] = ignored.iter().filter(|&&i| !i).count() as u32;
        let mut order: Vec<usize> = (0..truths.len()).collect();
        order.sort_by_key(|&g| ignored[g]);
        for t in 0..THRESHOLDS {
            let pass =
                Pass { truths, overlaps: &overlaps, ignored: &ignored, order: &order, least: threshold(t) };
            let taken = pass.assign(found.len());
            for (d, record) in records.iter_mut().enumerate() {
                let matched = taken[d].is_some_and(|g| truths[g].countable);
                let skip = taken[d].is_some_and(|g| ignored[g]) || (!matched && outside(found[d].area));
                record.matched[a] |= u16::from(matched) << t;
                record.ignored[a] |= u16::from(skip) << t;
            }
        }
    }
    into.records.extend(records);
    into.wanted.push(wanted);
}

/// One greedy assignment at one threshold and area range.
struct Pass<'a> {
    truths: &'a [&'a TrueInstance],
    overlaps: &'a [f64],
    ignored: &'a [bool],
    order: &'a [usize],
    least: f64,
}

impl Pass<'_> {
    /// The truth each detection takes.
    fn assign(&self, detections: usize) -> Vec<Option<usize>> {
        let mut used = vec![false; self.truths.len()];
        (0..detections)
            .map(|d| {
                let row = &self.overlaps[d * self.truths.len()..][..self.truths.len()];
                let (mut best, mut least) = (None, self.least.min(1.0 - 1e-10));
                for &g in self.order {
                    if used[g] && !self.truths[g].crowd {
                        continue;
                    }
                    if self.ignored[g] && best.is_some_and(|b: usize| !self.ignored[b]) {
                        break;
                    }
                    if row[g] >= least {
                        (best, least) = (Some(g), row[g]);
                    }
                }
                if let Some(g) = best {
                    used[g] = true;
                }
                best
            })
            .collect()
    }
}
