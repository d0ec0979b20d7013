//! What the instance segmenter is trained with: class + box + mask over the cells given to each object.
//!
//! A cell belongs to an object if its middle shows the object and lies near the middle of what is seen of it; small objects go first, and an
//! object without such a cell gets the nearest. With m cells given away (at least 1) and p = σ(score): class is the focal loss
//! −(1 − p)² ln p of given cells and −p² ln(1 − p) of the others, box 1 − IoU, mask the mean binary cross-entropy of σ(Σ coefficient ·
//! prototype), enlarged to the picture's size, over the pixels of the object's box; each is a sum over m. The giving is held fixed in the derivative.

use crate::map::Map;
use evenkeel::task::instance::Instance;

/// Pixels from one cell to the next.
pub(crate) const CELL: f32 = 4.0;
/// Cells farther from an object's middle than this share of its box are not its own, unless they are this near in pixels.
const REACH: (f32, f32) = (0.25, 5.0);
const BOX_WEIGHT: f32 = 2.0;
const MASK_WEIGHT: f32 = 2.0;

/// The outputs of one picture, `[cell][stride]` each: boxes, classes, coefficients, prototypes.
pub(crate) struct Outputs<'a> {
    pub(crate) maps: [&'a Map; 4],
    pub(crate) picture: usize,
}

/// The loss and its gradients at the four outputs.
pub(crate) struct Sum {
    pub(crate) value: f64,
    pub(crate) gradients: [Vec<f32>; 4],
}

impl Outputs<'_> {
    fn row(&self, part: usize, cell: usize) -> &[f32] {
        let map = self.maps[part];
        &map.values[self.picture * map.image_len() + cell * map.stride()..][..map.channels]
    }

    fn middle(&self, cell: usize) -> (f32, f32) {
        let width = self.maps[0].width;
        (CELL * ((cell / width) as f32 + 0.5), CELL * ((cell % width) as f32 + 0.5))
    }

    /// The loss at these objects; gradients are multiplied by `share`.
    pub(crate) fn loss(&self, objects: &[Instance], share: f32) -> Sum {
        let given = self.given(objects);
        let count = given.iter().flatten().count().max(1) as f32;
        let mut sum = Sum { value: 0.0, gradients: self.maps.map(|map| vec![0.0; map.image_len()]) };
        let share = share / count;
        for (cell, owner) in given.iter().enumerate() {
            let object = owner.map(|k| &objects[k]);
            self.class_term(cell, object.map(|o| o.class), share, &mut sum);
            if let Some(object) = object {
                self.box_term(cell, object, share * BOX_WEIGHT, &mut sum);
                self.mask_term(cell, object, share * MASK_WEIGHT, &mut sum);
            }
        }
        sum
    }

    /// Which object each cell is given to.
    fn given(&self, objects: &[Instance]) -> Vec<Option<usize>> {
        let cells = self.maps[0].height * self.maps[0].width;
        let mut given = vec![None; cells];
        let mut order: Vec<usize> = (0..objects.len()).collect();
        order.sort_by_key(|&k| std::cmp::Reverse(objects[k].mask.area()));
        for k in order {
            let [left, top, right, bottom] = objects[k].corners;
            let (cy, cx) = middle_of(&objects[k]);
            let reach = |side: f32| (REACH.0 * side).max(REACH.1);
            let (reach_y, reach_x) = (reach(bottom - top), reach(right - left));
            let mut nearest = (f32::MAX, 0);
            let mut found = false;
            for (cell, owner) in given.iter_mut().enumerate() {
                let (y, x) = self.middle(cell);
                let (dy, dx) = ((y - cy).abs(), (x - cx).abs());
                if dy * dy + dx * dx < nearest.0 {
                    nearest = (dy * dy + dx * dx, cell);
                }
                let own = dy <= reach_y && dx <= reach_x && objects[k].mask.contains(y as usize, x as usize);
                if own {
                    *owner = Some(k);
                    found = true;
                }
            }
            if !found {
                given[nearest.1] = Some(k);
            }
        }
        given
    }

    fn class_term(&self, cell: usize, class: Option<usize>, share: f32, sum: &mut Sum) {
        let stride = self.maps[1].stride();
        for (c, &score) in self.row(1, cell).iter().enumerate() {
            let p = (1.0 / (1.0 + (-score).exp())).clamp(1e-6, 1.0 - 1e-6);
            let rest = 1.0 - p;
            let (value, slope) = if class == Some(c) {
                (-rest * rest * p.ln(), rest * rest * (2.0 * p * p.ln() - rest))
            } else {
                (-p * p * rest.ln(), p * p * (p - 2.0 * rest * rest.ln()))
            };
            sum.value += f64::from(share * value);
            sum.gradients[1][cell * stride + c] = share * slope;
        }
    }

    fn box_term(&self, cell: usize, object: &Instance, share: f32, sum: &mut Sum) {
        let (y, x) = self.middle(cell);
        let own: Vec<f32> = self.row(0, cell).iter().map(|v| v.exp()).collect();
        let [left, top, right, bottom] = object.corners;
        let is = [x - left, y - top, right - x, bottom - y].map(|side| side.max(0.5));
        let (w, h) = (own[0] + own[2], own[1] + own[3]);
        let shared_w = own[0].min(is[0]) + own[2].min(is[2]);
        let shared_h = own[1].min(is[1]) + own[3].min(is[3]);
        let shared = shared_w * shared_h;
        let union = w * h + (is[0] + is[2]) * (is[1] + is[3]) - shared;
        sum.value += f64::from(share * (1.0 - shared / union));
        let stride = self.maps[0].stride();
        for side in 0..4 {
            let (other_shared, other) = if side % 2 == 0 { (shared_h, h) } else { (shared_w, w) };
            let by_shared = if own[side] < is[side] { other_shared } else { 0.0 };
            let slope = (by_shared * (union + shared) - other * shared) / (union * union);
            sum.gradients[0][cell * stride + side] = -share * slope * own[side];
        }
    }

    fn mask_term(&self, cell: usize, object: &Instance, share: f32, sum: &mut Sum) {
        let prototypes = self.maps[3];
        let (height, width) = object.mask.size();
        let [left, top, right, bottom] = object.corners;
        let down = Enlarged::new(top, bottom, height, prototypes.height);
        let across = Enlarged::new(left, right, width, prototypes.width);
        let coefficients = self.row(2, cell);
        let place = |row: usize, column: usize| {
            (down.cells.start + row) * prototypes.width + across.cells.start + column
        };
        let columns = across.cells.len();
        let logits: Vec<f32> = (0..down.cells.len() * columns)
            .map(|i| self.row(3, place(i / columns, i % columns)))
            .map(|own| coefficients.iter().zip(own).map(|(a, b)| a * b).sum())
            .collect();
        let share = share / (down.pixels.len() * across.pixels.len()) as f32;
        let mut slopes = vec![0.0; logits.len()];
        for (y, near_y) in down.pixels.clone().zip(&down.near) {
            for (x, near_x) in across.pixels.clone().zip(&across.near) {
                let corners = near_y.iter().flat_map(|&(row, v)| {
                    near_x.iter().map(move |&(column, w)| (row * columns + column, v * w))
                });
                let logit: f32 = corners.clone().map(|(i, weight)| weight * logits[i]).sum();
                let target = f32::from(u8::from(object.mask.contains(y, x)));
                sum.value +=
                    f64::from(share * (logit.max(0.0) - target * logit + (-logit.abs()).exp().ln_1p()));
                let slope = share * (1.0 / (1.0 + (-logit).exp()) - target);
                corners.for_each(|(i, weight)| slopes[i] += slope * weight);
            }
        }
        let (by_cell, by_place) = (self.maps[2].stride(), prototypes.stride());
        for (i, &slope) in slopes.iter().enumerate() {
            let place = place(i / columns, i % columns);
            let own = self.row(3, place);
            for k in 0..coefficients.len() {
                sum.gradients[2][cell * by_cell + k] += slope * own[k];
                sum.gradients[3][place * by_place + k] += slope * coefficients[k];
            }
        }
    }
}

/// One axis of an object's box: its pixels, and the cells of a coarser map that they lie between.
struct Enlarged {
    pixels: std::ops::Range<usize>,
    cells: std::ops::Range<usize>,
    /// For each pixel the two nearest cells, counted from the first, and how much of each it has: linear between their middles, as the
    /// network's masks are enlarged.
    near: Vec<[(usize, f32); 2]>,
}

impl Enlarged {
    fn new(low: f32, high: f32, side: usize, count: usize) -> Self {
        let first = (low as usize).min(side - 1);
        let pixels = first..(high.ceil() as usize).clamp(first + 1, side);
        let place = |pixel: usize| {
            ((pixel as f32 + 0.5) * count as f32 / side as f32 - 0.5).clamp(0.0, (count - 1) as f32)
        };
        let start = place(pixels.start) as usize;
        let near: Vec<_> = pixels
            .clone()
            .map(|pixel| {
                let (cell, part) = (place(pixel) as usize, place(pixel).fract());
                [(cell - start, 1.0 - part), ((cell + 1).min(count - 1) - start, part)]
            })
            .collect();
        let last = near.iter().flatten().map(|&(cell, _)| cell).max().unwrap_or(0);
        Self { pixels, cells: start..start + last + 1, near }
    }
}

/// The middle of what is seen of an object, (y, x).
fn middle_of(object: &Instance) -> (f32, f32) {
    let ((top, left), (rows, columns)) = object.mask.window();
    let (mut y_sum, mut x_sum, mut count) = (0.0, 0.0, 0.0);
    for (y, x) in (top..top + rows).flat_map(|y| (left..left + columns).map(move |x| (y, x))) {
        if object.mask.contains(y, x) {
            y_sum += y as f32 + 0.5;
            x_sum += x as f32 + 0.5;
            count += 1.0;
        }
    }
    let count = f32::max(count, 1.0);
    (y_sum / count, x_sum / count)
}
