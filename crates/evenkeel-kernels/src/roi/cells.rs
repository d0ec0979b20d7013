//! The pixels each cell of a region reads, and their weights.

use super::{Mode, Pooling};

/// The most samples a cell takes along an axis when their number is chosen by the region's size: a box from an untrusted network
/// may be as large as a float.
const MOST_SAMPLES: usize = 1 << 10;

/// The weighted pixels of every cell of one region, four for each sample.
pub(super) struct Cells {
    starts: Vec<u32>,
    taps: Vec<(u32, f32)>,
}

/// A sample's place along one axis: two neighbours and their weights, or nothing if it is outside.
type Line = Option<[(usize, f32); 2]>;

impl Cells {
    /// The cells of the box `corners` on a map of height and width `size`.
    pub(super) fn new(pooling: &Pooling, size: [usize; 2], corners: [f32; 4]) -> Cells {
        let across = lines(pooling, size[1], [corners[0], corners[2]], pooling.cells[1]);
        let down = lines(pooling, size[0], [corners[1], corners[3]], pooling.cells[0]);
        let mut cells = Cells { starts: vec![0], taps: Vec::new() };
        for row in &down {
            for column in &across {
                cells.push(pooling.mode, size[1], row, column);
            }
        }
        cells
    }

    fn push(&mut self, mode: Mode, width: usize, row: &[Line], column: &[Line]) {
        let share = if mode == Mode::Average { 1.0 / (row.len() * column.len()).max(1) as f32 } else { 1.0 };
        for y in row {
            for x in column {
                match (y, x) {
                    (Some(y), Some(x)) => {
                        for (row, wy) in y {
                            for (column, wx) in x {
                                self.taps.push(((row * width + column) as u32, wy * wx * share));
                            }
                        }
                    }
                    // A sample outside is a zero, which a maximum counts.
                    _ if mode == Mode::Max => self.taps.push((0, 0.0)),
                    _ => {}
                }
            }
        }
        self.starts.push(self.taps.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The `(pixel, weight)` pairs of a cell.
    pub(super) fn of(&self, cell: usize) -> &[(u32, f32)] {
        &self.taps[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    /// The pair whose weighted pixel is largest, the first of equals.
    pub(super) fn largest(&self, cell: usize, x: impl Fn(u32) -> f32) -> Option<(u32, f32)> {
        let mut pairs = self.of(cell).iter().copied();
        let mut best = pairs.next()?;
        for (pixel, weight) in pairs {
            if weight * x(pixel) > best.1 * x(best.0) {
                best = (pixel, weight);
            }
        }
        Some(best)
    }
}

/// For each cell along an axis, the places of its samples.
fn lines(pooling: &Pooling, size: usize, ends: [f32; 2], cells: usize) -> Vec<Vec<Line>> {
    let offset = if pooling.half_pixel { 0.5 } else { 0.0 };
    let [start, end] = ends.map(|end| end * pooling.spatial_scale - offset);
    let extent = if pooling.half_pixel { end - start } else { (end - start).max(1.0) };
    let cell = extent / cells as f32;
    let samples = match pooling.sampling_ratio {
        0 => (cell.ceil().max(0.0) as usize).min(MOST_SAMPLES),
        given => given,
    };
    let sample = |i: usize, k: usize| {
        let place = start + i as f32 * cell + (k as f32 + 0.5) * cell / samples as f32;
        neighbours(place, size)
    };
    (0..cells).map(|i| (0..samples).map(|k| sample(i, k)).collect()).collect()
}

fn neighbours(place: f32, size: usize) -> Line {
    if size == 0 || !(-1.0..=size as f32).contains(&place) {
        return None;
    }
    let place = place.max(0.0);
    let low = place as usize;
    if low >= size - 1 {
        return Some([(size - 1, 1.0), (size - 1, 0.0)]);
    }
    let part = place - low as f32;
    Some([(low, 1.0 - part), (low + 1, part)])
}
