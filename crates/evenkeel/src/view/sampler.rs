//! Bilinear sampling of planar maps along a placement, and its exact transpose.
//!
//! Output cell i of n stands at (i + 1/2)/n of its canvas; the placement leads to a point of the input canvas, whose four nearest
//! cells are weighed. Half-pixel centres, no antialiasing. When the placement does not turn, rows and columns separate.

use evenkeel_kernels::parallel;
use rayon::prelude::*;

/// What lies outside the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The nearest cell goes on.
    Nearest,
    /// Zero.
    Zero,
}

/// Two neighbours along one axis and their weights; a weight of zero stands for outside.
#[derive(Clone, Copy, Debug)]
struct Tap {
    at: [usize; 2],
    weight: [f32; 2],
}

impl Tap {
    /// The neighbours of a place given in cells, where cell i has its centre at i.
    fn new(place: f64, count: usize, edge: Edge) -> Self {
        let place = if edge == Edge::Nearest { place.clamp(0.0, (count - 1) as f64) } else { place };
        let low = place.floor();
        let part = (place - low) as f32;
        let inside = |i: f64| i >= 0.0 && i < count as f64;
        let index = |i: f64| i.clamp(0.0, (count - 1) as f64) as usize;
        let weigh = |i: f64, w: f32| if inside(i) { w } else { 0.0 };
        Self { at: [index(low), index(low + 1.0)], weight: [weigh(low, 1.0 - part), weigh(low + 1.0, part)] }
    }
}

/// A linear map from planes of one size to planes of another.
#[derive(Clone, Debug)]
pub struct Sampler {
    from: (usize, usize),
    to: (usize, usize),
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    /// Rows and columns on their own.
    Separable { rows: Vec<Tap>, columns: Vec<Tap> },
    /// Four cells and their weights for every output cell.
    Scattered(Vec<Corner>),
}

/// The four cells around a place and their weights.
#[derive(Clone, Copy, Debug)]
struct Corner {
    at: [u32; 4],
    weight: [f32; 4],
}

impl Corner {
    fn new(down: Tap, across: Tap, width: usize) -> Self {
        let pick = |k: usize| (down.at[k / 2] * width + across.at[k % 2]) as u32;
        let weigh = |k: usize| down.weight[k / 2] * across.weight[k % 2];
        Self { at: std::array::from_fn(pick), weight: std::array::from_fn(weigh) }
    }
}

impl Sampler {
    /// The sampler whose output cell (i, j) stands at `matrix · (i, j) + offset`, in input cells.
    pub(super) fn new(
        from: (usize, usize),
        to: (usize, usize),
        matrix: [[f64; 2]; 2],
        offset: [f64; 2],
        edge: Edge,
    ) -> Self {
        let way = if matrix[0][1] == 0.0 && matrix[1][0] == 0.0 {
            let taps = |axis: usize, count: usize, source: usize| {
                (0..count)
                    .map(|i| Tap::new(matrix[axis][axis] * i as f64 + offset[axis], source, edge))
                    .collect()
            };
            Way::Separable { rows: taps(0, to.0, from.0), columns: taps(1, to.1, from.1) }
        } else {
            return Self::along(from, to, edge, |y, x| {
                let (y, x) = (y as f64, x as f64);
                [0, 1].map(|axis| matrix[axis][0] * y + matrix[axis][1] * x + offset[axis])
            });
        };
        Self { from, to, way }
    }

    /// The sampler whose output cell (i, j) stands at `place(i, j)`, (down, right) in input cells, whose centres are at whole numbers.
    pub fn along(
        from: (usize, usize),
        to: (usize, usize),
        edge: Edge,
        place: impl Fn(usize, usize) -> [f64; 2] + Sync,
    ) -> Self {
        let corner = |i: usize| {
            let [down, right] = place(i / to.1, i % to.1);
            Corner::new(Tap::new(down, from.0, edge), Tap::new(right, from.1, edge), from.1)
        };
        Self { from, to, way: Way::Scattered((0..to.0 * to.1).into_par_iter().map(corner).collect()) }
    }

    /// A plain resize with half-pixel centres, as `interpolate(..., mode="bilinear", align_corners=False)` does.
    pub fn resize(from: (usize, usize), to: (usize, usize)) -> Self {
        let scale = [from.0 as f64 / to.0 as f64, from.1 as f64 / to.1 as f64];
        let offset = scale.map(|s| 0.5 * s - 0.5);
        Self::new(from, to, [[scale[0], 0.0], [0.0, scale[1]]], offset, Edge::Nearest)
    }

    /// Samples `channels` planes `[c, h, w]`.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn apply(&self, input: &[f32], channels: usize) -> Vec<f32> {
        let plane = self.from.0 * self.from.1;
        assert_eq!(input.len(), channels * plane, "values to sample");
        let (height, width) = self.to;
        let mut out = vec![0.0; channels * height * width];
        parallel::rows(&mut out, width, 32, |first, rows| {
            let mut blend = vec![0.0; self.from.1];
            for (i, row) in rows.chunks_mut(width).enumerate() {
                let (channel, y) = ((first + i) / height, (first + i) % height);
                self.sample_row(&input[channel * plane..][..plane], y, row, &mut blend);
            }
        });
        out
    }

    /// Four input cells and their weights for every output cell, in reading order.
    pub fn taps(&self) -> (Vec<u32>, Vec<f32>) {
        let corner = |i: usize| match &self.way {
            Way::Separable { rows, columns } => {
                Corner::new(rows[i / self.to.1], columns[i % self.to.1], self.from.1)
            }
            Way::Scattered(corners) => corners[i],
        };
        let corners: Vec<Corner> = (0..self.to.0 * self.to.1).map(corner).collect();
        (corners.iter().flat_map(|c| c.at).collect(), corners.iter().flat_map(|c| c.weight).collect())
    }

    fn sample_row(&self, plane: &[f32], y: usize, row: &mut [f32], blend: &mut [f32]) {
        match &self.way {
            Way::Separable { rows, columns } => {
                let (Tap { at, weight }, width) = (rows[y], self.from.1);
                let (upper, lower) = (&plane[at[0] * width..][..width], &plane[at[1] * width..][..width]);
                let lines = upper.iter().zip(lower);
                blend.iter_mut().zip(lines).for_each(|(b, (u, l))| *b = weight[0] * u + weight[1] * l);
                for (out, column) in row.iter_mut().zip(columns) {
                    *out = column.weight[0] * blend[column.at[0]] + column.weight[1] * blend[column.at[1]];
                }
            }
            Way::Scattered(corners) => {
                for (out, corner) in row.iter_mut().zip(&corners[y * self.to.1..]) {
                    *out = (0..4).map(|k| corner.weight[k] * plane[corner.at[k] as usize]).sum();
                }
            }
        }
    }

    /// The transpose: hands every output value back to the cells it was weighed from. Planes are independent, so each is one
    /// task and the order of sums never changes.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn transpose(&self, cotangent: &[f32], channels: usize) -> Vec<f32> {
        let (height, width) = self.to;
        assert_eq!(cotangent.len(), channels * height * width, "values to hand back");
        let plane = self.from.0 * self.from.1;
        let mut out = vec![0.0; channels * plane];
        parallel::rows(&mut out, plane, 1, |first, planes| {
            for (i, plane) in planes.chunks_mut(plane).enumerate() {
                self.scatter(&cotangent[(first + i) * height * width..][..height * width], plane);
            }
        });
        out
    }

    fn scatter(&self, given: &[f32], plane: &mut [f32]) {
        match &self.way {
            Way::Separable { rows, columns } => {
                let width = self.from.1;
                let mut blend = vec![0.0; width];
                for (line, Tap { at, weight }) in given.chunks(self.to.1).zip(rows) {
                    blend.fill(0.0);
                    for (value, column) in line.iter().zip(columns) {
                        blend[column.at[0]] += column.weight[0] * value;
                        blend[column.at[1]] += column.weight[1] * value;
                    }
                    for r in 0..2 {
                        let into = &mut plane[at[r] * width..][..width];
                        into.iter_mut().zip(&blend).for_each(|(p, b)| *p += weight[r] * b);
                    }
                }
            }
            Way::Scattered(corners) => {
                for (value, corner) in given.iter().zip(corners) {
                    (0..4).for_each(|k| plane[corner.at[k] as usize] += corner.weight[k] * value);
                }
            }
        }
    }
}
