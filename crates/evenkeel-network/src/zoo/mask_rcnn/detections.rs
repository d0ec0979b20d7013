//! From the box head's answers to detections: for each class the refined boxes of more than 5 % probability, without those a better one of the class
//! overlaps by more than half; of all classes the best hundred.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::Sizes;
use super::boxes::{self, Suppression};
use crate::op::Attribute;
use crate::tensor::Tensor;

const MOST: i64 = 100;
const OVERLAP: f32 = 0.5;
const LEAST_SCORE: f32 = 0.05;
const LEAST_SIDE: f32 = 1e-2;
/// What the head's deltas are divided by: shifts, growths.
const WEIGHTS: [f32; 2] = [10.0, 5.0];

/// Boxes `[k, 4]`, labels `[k]`, scores `[k]`, best first.
pub(super) struct Found {
    pub(super) boxes: String,
    pub(super) labels: String,
    pub(super) scores: String,
}

/// The detections among `regions`, from the class logits and the deltas.
pub(super) fn draw(
    draft: &mut Draft<'_>,
    (logits, deltas): (&str, &str),
    (regions, classes): (&str, usize),
    sizes: &Sizes,
) -> Found {
    let shape = draft.integers("detect.shape", &[-1, classes as i64, 4]);
    let deltas = draft.plain("Reshape", "detect.deltas", &[deltas, &shape]);
    let middle = draft.integers("detect.middle", &[1]);
    let regions = draft.plain("Unsqueeze", "detect.regions", &[regions, &middle]);
    let refined = boxes::decode(draft, &deltas, &regions, "detect", WEIGHTS);
    let refined = boxes::clip(draft, &refined, "detect.clipped", sizes);
    let scores = draft.along("Softmax", "detect.scores", &[logits], -1);
    // One group for each class, background left out: boxes [classes - 1, k, 4], scores [classes - 1, 1, k].
    let refined = by_class(draft, &refined, "detect.boxes", &[1, 0, 2]);
    let scores = by_class(draft, &scores, "detect.class_scores", &[1, 0]);
    let enough = boxes::large_enough(draft, &refined, "detect.sides", LEAST_SIDE);
    let out = draft.number("detect.out", 0.0);
    let judged = draft.plain("Where", "detect.judged", &[&enough, &scores, &out]);
    let judged = draft.plain("Unsqueeze", "detect.grouped", &[&judged, &middle]);
    let rule = Suppression { most: MOST, overlap: OVERLAP, least: Some(LEAST_SCORE) };
    let kept = boxes::suppress(draft, &refined, &judged, "detect.nms", &rule);
    best(draft, &kept, &refined, &scores)
}

/// The best of those kept: `[kept, 3]` of class, nothing, and region.
fn best(draft: &mut Draft<'_>, kept: &str, refined: &str, scores: &str) -> Found {
    let columns = draft.integers("detect.columns", &[0, 2]);
    let pairs = draft.along("Gather", "detect.pairs", &[kept, &columns], 1);
    let scores = draft.plain("GatherND", "detect.kept_scores", &[scores, &pairs]);
    let [scores, places] = boxes::best(draft, &scores, "detect.all", MOST);
    let pairs = draft.along("Gather", "detect.best_pairs", &[&pairs, &places], 0);
    let boxes = draft.plain("GatherND", "detect.best_boxes", &[refined, &pairs]);
    let classes = boxes::column(draft, &pairs, "detect.classes", 0);
    let one = draft.constant("detect.one", Tensor::scalar(1i64));
    let labels = draft.plain("Add", "detect.labels", &[&classes, &one]);
    Found { boxes, labels, scores }
}

/// Classes first, without background.
fn by_class(draft: &mut Draft<'_>, x: &str, name: &str, order: &[i64]) -> String {
    let with = attributes([("perm", Attribute::Ints(order.to_vec()))]);
    let x = draft.step("Transpose", &format!("{name}.turned"), &[x], with);
    let from = draft.integers(&format!("{name}.from"), &[1]);
    let to = draft.integers(&format!("{name}.to"), &[i64::MAX]);
    let axis = draft.integers(&format!("{name}.axis"), &[0]);
    draft.plain("Slice", name, &[&x, &from, &to, &axis])
}
