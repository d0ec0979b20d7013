//! Views: transformations of the image that can be undone on a feature map.
//!
//! The second station of the flow. A view may change the values of pixels, then moves them: apply = resample ∘ recolour, and undo
//! resamples a feature map of whatever resolution back. A kind of view is one file that implements [`View`] and one line in
//! [`VIEWS`]; a [`ViewSet`] is a list of rules that a seed turns into [`DrawnView`]s; a drawn view is [`Placed`] for a size of
//! image, where its samplers and masks are made once. Resampling is linear, and its pullback its exact transpose.

mod colour;
mod crop;
mod elastic;
mod flip;
mod gamma;
mod key;
mod kind;
mod letterbox;
mod named;
mod placed;
mod placement;
mod resize;
mod rotate;
mod rule;
mod sampler;
mod set;
mod shear;
mod translate;
mod turn;

#[cfg(test)]
mod tests;

pub use colour::{Colour, Recolour};
pub use crop::Crop;
pub use elastic::Elastic;
pub use flip::Flip;
pub use gamma::Gamma;
pub use key::{Bounds, Form, Key, Value};
pub use kind::{VIEWS, ViewKind};
pub use letterbox::{Letterbox, Places};
pub use named::view_sets;
pub use placed::{DrawnView, Placed, Stay, Undo};
pub use placement::{Affine, Canvas, Placement};
pub use resize::Resize;
pub use rotate::Rotate;
pub use rule::ViewRule;
pub use sampler::{Edge, Sampler};
pub use set::ViewSet;
pub use shear::Shear;
pub use translate::Translate;
pub use turn::Turn;

use std::sync::Arc;

use crate::image::Image;

/// A drawn view: a change of pixel values, then a placement. [`Placed`] makes apply, undo, their pullbacks and the mask of it.
///
/// A photometric view overrides `recolour` and `pull_recolour`, a geometric one `place`; either may do both.
pub trait View: std::fmt::Debug + Send + Sync {
    /// The kind and its drawn values, such as `rotate 12.3°`.
    fn caption(&self) -> String;

    /// Where the pixels of an image of this (height, width) go; by default they stay.
    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        let _ = canvas;
        Arc::new(Affine::stay(size))
    }

    /// The image with other values at the same places; none, the default, where they do not change.
    fn recolour(&self, image: &Image) -> Option<Image> {
        let _ = image;
        None
    }

    /// The pullback of [`View::recolour`] at `image`, on planes `[3, h, w]`.
    fn pull_recolour(&self, image: &Image, cotangent: Vec<f32>) -> Vec<f32> {
        let _ = image;
        cotangent
    }
}
