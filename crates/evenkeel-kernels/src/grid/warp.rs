//! Affine warps of images as sparse maps of pixels: zeros outside, bilinear inside, the transpose for the way back.

use crate::resample::AxisMap;

/// The map whose output pixel `(x, y)` is the input at `(m0 x + m1 y + m2, m3 x + m4 y + m5)`, in pixels whose middles are whole
/// numbers. Sizes are `[height, width]`. Outside the input lie zeros.
///
/// On planar images it applies as `map.apply(planes, 1, ..)`, on channels-last ones as `map.apply(batch, stride(channels), ..)`.
pub fn affine(input: [usize; 2], output: [usize; 2], matrix: [f64; 6]) -> AxisMap {
    let [m0, m1, m2, m3, m4, m5] = matrix;
    AxisMap::from_fn(input[0] * input[1], output[0] * output[1], |pixel, list| {
        let (x, y) = ((pixel % output[1]) as f64, (pixel / output[1]) as f64);
        neighbours(input, m0 * x + m1 * y + m2, m3 * x + m4 * y + m5, list);
    })
}

fn neighbours(size: [usize; 2], u: f64, v: f64, list: &mut Vec<(usize, f64)>) {
    let (left, top) = (u.floor(), v.floor());
    let (right_share, lower_share) = (u - left, v - top);
    for (row, down) in [(top, 1.0 - lower_share), (top + 1.0, lower_share)] {
        for (column, across) in [(left, 1.0 - right_share), (left + 1.0, right_share)] {
            let on_map = row >= 0.0 && row < size[0] as f64 && column >= 0.0 && column < size[1] as f64;
            if on_map && down * across != 0.0 {
                list.push((row as usize * size[1] + column as usize, down * across));
            }
        }
    }
}
