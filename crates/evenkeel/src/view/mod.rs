//! Views: transformations of the image that can be undone on a feature map.
//!
//! The second station of the flow. A view may change colours, then maps the image by one affine placement. It has four parts:
//! apply to the image, undo on a feature map of whatever resolution came back, the pullbacks of both, and the mask of cells that
//! were in evaluation. Everything geometric is linear, and its pullback its exact transpose.

mod colour;
mod placement;
mod sampler;
mod set;

#[cfg(test)]
mod tests;

pub use colour::Colour;
pub use placement::{Motion, Placement};
pub use sampler::{Edge, Sampler};
pub use set::{ViewRule, ViewSet};

use crate::image::Image;
use crate::network::Extents;

/// One drawn view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// A change of colours, before anything else.
    pub colour: Option<Colour>,
    /// Where pixels go.
    pub motion: Motion,
    /// Whether the result keeps the image's size, for networks that accept only one.
    pub fixed_canvas: bool,
    /// Sides of the result are cut to multiples of this, for networks that ask for it.
    pub multiple: usize,
}

impl View {
    /// A view that only moves pixels.
    pub fn of(motion: Motion) -> Self {
        Self { colour: None, motion, fixed_canvas: false, multiple: 1 }
    }

    /// The same view onto a canvas of the image's own size.
    pub fn on_fixed_canvas(self) -> Self {
        Self { fixed_canvas: true, ..self }
    }

    /// Where pixels of an image of this (height, width) go.
    pub fn placement(&self, size: (usize, usize)) -> Placement {
        match self.fixed_canvas {
            true => self.motion.on_fixed_canvas(size),
            false => self.motion.place(size, self.multiple),
        }
    }

    /// The image as seen.
    pub fn apply(&self, image: &Image) -> Image {
        let coloured = self.colour.as_ref().map(|colour| colour.apply(image));
        let image = coloured.as_ref().unwrap_or(image);
        let placement = self.placement(image.size());
        if placement.is_identity() {
            return image.clone();
        }
        let pixels = placement.sampler(image.size(), placement.to).apply(image.pixels(), 3);
        Image::new(placement.to.0, placement.to.1, pixels).expect("a placement has at least one pixel")
    }

    /// The pullback of [`View::apply`] at `image`: from the seen image's cotangent `[3, h', w']` to the image's.
    pub fn pull_apply(&self, image: &Image, cotangent: &[f32]) -> Vec<f32> {
        let placement = self.placement(image.size());
        let moved = if placement.is_identity() {
            cotangent.to_vec()
        } else {
            placement.sampler(image.size(), placement.to).transpose(cotangent, 3)
        };
        match &self.colour {
            Some(colour) => colour.pullback(image, &moved),
            None => moved,
        }
    }

    /// A feature map of the seen image, brought back to the grid `to` of the unseen image's map.
    pub fn undo(&self, size: (usize, usize), map: &[f32], seen: Extents, to: (usize, usize)) -> Vec<f32> {
        self.placement(size).undoing(seen.size(), to).apply(map, seen.channels)
    }

    /// The pullback of [`View::undo`], which is linear: from the grid `to` to the seen map.
    pub fn pull_undo(
        &self,
        size: (usize, usize),
        cotangent: &[f32],
        seen: Extents,
        to: (usize, usize),
    ) -> Vec<f32> {
        self.placement(size).undoing(seen.size(), to).transpose(cotangent, seen.channels)
    }

    /// 1 for each cell of the grid `to` that was in evaluation, else 0: where undo(apply(ones)) > 0.5 at feature resolution.
    pub fn mask(&self, size: (usize, usize), seen: (usize, usize), to: (usize, usize)) -> Vec<f32> {
        let placement = self.placement(size);
        let applied = placement.sampler(to, seen).apply(&vec![1.0; to.0 * to.1], 1);
        let undone = placement.undoing(seen, to).apply(&applied, 1);
        undone.iter().map(|&v| if v > 0.5 { 1.0 } else { 0.0 }).collect()
    }
}
