//! Non-maximum suppression: of boxes of one class that overlap too much, the most confident stays.
//!
//! Candidates are visited by falling score, equals in their own order, so the answer depends on nothing else.

/// A box with its class and score; corners are left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) place: usize,
    pub(super) class: usize,
    pub(super) score: f32,
    pub(super) corners: [f32; 4],
}

/// Intersection over union of two boxes; 0 where they do not meet.
pub(super) fn box_iou(a: [f32; 4], b: [f32; 4]) -> f32 {
    let side = |axis: usize| a[axis + 2].min(b[axis + 2]) - a[axis].max(b[axis]);
    let (across, down) = (side(0), side(1));
    if across <= 0.0 || down <= 0.0 {
        return 0.0;
    }
    let area = |c: [f32; 4]| (c[2] - c[0]) * (c[3] - c[1]);
    across * down / (area(a) + area(b) - across * down)
}

/// The candidates that stay, at most `most`.
pub(super) fn suppressed(mut candidates: Vec<Candidate>, overlap: f32, most: usize) -> Vec<Candidate> {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if kept.len() == most {
            break;
        }
        let rival =
            |k: &Candidate| k.class == candidate.class && box_iou(k.corners, candidate.corners) > overlap;
        if !kept.iter().any(rival) {
            kept.push(candidate);
        }
    }
    kept
}
