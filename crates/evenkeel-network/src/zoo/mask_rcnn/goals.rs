//! The true mask of an instance, cut out at a region: what the region's 28x28 mask should be.
//!
//! Each cell is the mean of bilinear samples, as many along an axis as the region has pixels for the cell, rounded up (RoIAlign with an adaptive grid).
//! Bilinear sampling is separable, so each axis has a list of samples for each cell, and a cell sums over their products.

use super::matching::Corners;

/// The side of a mask.
pub(super) const SIDE: usize = 28;

/// Where a sample lies along an axis: two neighbouring pixels and the share of the second. A sample beyond the image is zero.
type Place = Option<(usize, usize, f32)>;

/// The samples along one axis, cell by cell, and how many a cell has.
fn places(low: f32, high: f32, extent: usize) -> (Vec<Place>, usize) {
    let length = (high - low).max(1.0);
    let cell = length / SIDE as f32;
    let count = (length / SIDE as f32).ceil() as usize;
    let sample = |i: usize| {
        let (of_cell, within) = ((i / count) as f32, (i % count) as f32);
        let at = low + of_cell * cell + (within + 0.5) * cell / count as f32;
        if at < -1.0 || at > extent as f32 {
            return None;
        }
        let at = at.max(0.0);
        let first = at as usize;
        if first + 1 >= extent {
            Some((extent - 1, extent - 1, 0.0))
        } else {
            Some((first, first + 1, at - first as f32))
        }
    };
    ((0..SIDE * count).map(sample).collect(), count)
}

/// The mask `[h, w]` of an instance at a region: 28 rows of 28.
pub(super) fn at(mask: &[f32], (height, width): (usize, usize), region: &Corners) -> Vec<f32> {
    let (rows, per_row) = places(region[1], region[3], height);
    let (columns, per_column) = places(region[0], region[2], width);
    let mut goal = vec![0f32; SIDE * SIDE];
    for (y, row) in rows.iter().enumerate() {
        let Some((above, below, down)) = *row else { continue };
        for (x, column) in columns.iter().enumerate() {
            let Some((left, right, across)) = *column else { continue };
            let along = |line: usize| {
                let line = &mask[line * width..(line + 1) * width];
                line[left] + (line[right] - line[left]) * across
            };
            let value = along(above) * (1.0 - down) + along(below) * down;
            goal[y / per_row * SIDE + x / per_column] += value;
        }
    }
    let share = 1.0 / (per_row * per_column) as f32;
    goal.iter_mut().for_each(|cell| *cell *= share);
    goal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_sampled_exactly_and_the_outside_is_empty() {
        let (height, width) = (40, 60);
        let plane: Vec<f32> =
            (0..height * width).map(|i| (i % width) as f32 + 2.0 * (i / width) as f32).collect();
        let goal = at(&plane, (height, width), &[2.0, 3.0, 58.0, 31.0]);
        for (i, value) in goal.iter().enumerate() {
            // The mean over a cell of a plane is its value at the middle.
            let (x, y) = (2.0 + ((i % SIDE) as f32 + 0.5) * 2.0, 3.0 + ((i / SIDE) as f32 + 0.5));
            assert!((value - (x + 2.0 * y)).abs() < 1e-3, "{i}: {value}");
        }
        let outside = at(&plane, (height, width), &[100.0, 100.0, 128.0, 128.0]);
        assert!(outside.iter().all(|&value| value == 0.0));
    }
}
