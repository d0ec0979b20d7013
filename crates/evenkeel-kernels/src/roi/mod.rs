//! Region pooling (RoiAlign): each region of a feature map, cut into cells, each cell sampled bilinearly at a small grid of
//! points and averaged, or the largest weighted corner taken.
//!
//! Average: `y = 1/count * sum over samples and corners of w * x`; maximum: `y = max over samples and corners of w * x`, as the standard's
//! reference has it. Regions are constants; the pullback is to the feature map, summed region by region in their order.

mod cells;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::grid::Layout;
use crate::parallel;
use cells::Cells;

/// How a cell's samples become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Their mean.
    Average,
    /// The largest weighted corner.
    Max,
}

/// One region: an image of the batch and a box `[x1, y1, x2, y2]` before scaling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// The image.
    pub image: usize,
    /// The corners.
    pub corners: [f32; 4],
}

/// How regions are pooled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooling {
    /// Cells down and across.
    pub cells: [usize; 2],
    /// Sample points a cell and axis; zero chooses by the region's size.
    pub sampling_ratio: usize,
    /// From box coordinates to the map's.
    pub spatial_scale: f32,
    /// Whether boxes are in pixel corners and shifted by half a pixel (opset 16's `half_pixel`). Otherwise regions are at
    /// least one pixel large.
    pub half_pixel: bool,
    /// How samples become one value.
    pub mode: Mode,
}

/// The sizes and the layout of the feature maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maps {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Height and width.
    pub size: [usize; 2],
    /// How the features and the output `[region, cells]` lie in memory.
    pub layout: Layout,
}

impl Maps {
    fn check(
        &self,
        pooling: &Pooling,
        regions: &[Region],
        features: usize,
        output: usize,
    ) -> [[usize; 3]; 2] {
        let steps = self.layout.steps(self.channels, self.size[0] * self.size[1]);
        let steps_out = self.layout.steps(self.channels, pooling.cells[0] * pooling.cells[1]);
        assert_eq!(features, self.batch * steps[0], "features of {self:?}");
        assert_eq!(output, regions.len() * steps_out[0], "output of {} regions of {self:?}", regions.len());
        assert!(
            regions.iter().all(|region| region.image < self.batch),
            "a region's image is not in the batch"
        );
        [steps, steps_out]
    }
}

/// Pools every region.
///
/// # Panics
/// If a slice's length does not fit, or a region's image is not in the batch.
pub fn forward(maps: &Maps, pooling: &Pooling, regions: &[Region], features: &[f32], output: &mut [f32]) {
    let [steps, steps_out] = maps.check(pooling, regions, features.len(), output.len());
    if output.is_empty() {
        return;
    }
    parallel::rows(output, steps_out[0], 1, |first, part| {
        for (out, region) in part.chunks_exact_mut(steps_out[0]).zip(&regions[first..]) {
            let cells = Cells::new(pooling, maps.size, region.corners);
            let image = &features[region.image * steps[0]..][..steps[0]];
            out.fill(0.0);
            for cell in 0..cells.len() {
                for c in 0..maps.channels {
                    let x = |pixel: u32| image[pixel as usize * steps[1] + c * steps[2]];
                    out[cell * steps_out[1] + c * steps_out[2]] = match pooling.mode {
                        Mode::Average => {
                            cells.of(cell).iter().fold(0.0, |sum, &(pixel, w)| sum + w * x(pixel))
                        }
                        Mode::Max => cells.largest(cell, x).map_or(0.0, |(pixel, w)| w * x(pixel)),
                    };
                }
            }
        }
    });
}

/// The gradient of [`forward`] with respect to the features; a maximum's goes to the corner that won.
///
/// # Panics
/// If a slice's length does not fit, or a region's image is not in the batch.
pub fn pullback(maps: &Maps, pooling: &Pooling, regions: &[Region], at: PooledAt<'_>, grad_in: &mut [f32]) {
    let [steps, steps_out] = maps.check(pooling, regions, grad_in.len(), at.grad_out.len());
    assert!(
        pooling.mode == Mode::Average || at.features.len() == grad_in.len(),
        "a maximum needs its features"
    );
    grad_in.fill(0.0);
    let cells: Vec<Cells> =
        regions.iter().map(|region| Cells::new(pooling, maps.size, region.corners)).collect();
    let into = Disjoint::new(grad_in);
    // One task has a range of channels of one image, and takes the regions in their order.
    let chunks = maps.channels.div_ceil(8);
    parallel::each(maps.batch * chunks, |task| {
        let (image, first) = (task / chunks, task % chunks * 8);
        for ((region, cells), g) in
            regions.iter().zip(&cells).zip(at.grad_out.chunks_exact(steps_out[0].max(1)))
        {
            if region.image != image {
                continue;
            }
            for cell in 0..cells.len() {
                for c in first..maps.channels.min(first + 8) {
                    let place = |pixel: u32| image * steps[0] + pixel as usize * steps[1] + c * steps[2];
                    let g = g[cell * steps_out[1] + c * steps_out[2]];
                    let add = |pixel: u32, w: f32| {
                        let at = place(pixel);
                        // SAFETY: one channel of one image belongs to one task, and no part outlives this line.
                        unsafe { into.part(at..at + 1)[0] += w * g };
                    };
                    match pooling.mode {
                        Mode::Average => cells.of(cell).iter().for_each(|&(pixel, w)| add(pixel, w)),
                        Mode::Max => {
                            if let Some((pixel, w)) = cells.largest(cell, |pixel| at.features[place(pixel)]) {
                                add(pixel, w);
                            }
                        }
                    }
                }
            }
        }
    });
}

/// What the pullback is taken at.
#[derive(Clone, Copy, Debug)]
pub struct PooledAt<'a> {
    /// The gradient of the output.
    pub grad_out: &'a [f32],
    /// The features; only a maximum reads them.
    pub features: &'a [f32],
}
