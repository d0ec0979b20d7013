//! A drawn view on its canvas, and the same placed for one size of image: the four maps and the mask.
//!
//! apply = resample ∘ recolour, undo = resample back at the resolution of a feature map. Samplers and mask are made once: those of the
//! image in [`DrawnView::placed`], those of a feature map in [`Placed::undo_onto`]. Everything geometric is linear, and its pullback
//! its exact transpose.

use std::sync::Arc;

use super::View;
use super::placement::{Affine, Canvas, Placement};
use super::sampler::Sampler;
use crate::image::Image;
use crate::network::Extents;

/// A view that leaves the image as it is.
#[derive(Clone, Copy, Debug)]
pub struct Stay;

impl View for Stay {
    fn caption(&self) -> String {
        "unchanged".into()
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        Arc::new(Affine::stay(size))
    }
}

/// One drawn view and the canvas it is drawn onto. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DrawnView {
    view: Arc<dyn View>,
    canvas: Canvas,
}

impl DrawnView {
    /// This view, on a canvas of whatever size it gives.
    pub fn of(view: impl View + 'static) -> Self {
        Self::new(Arc::new(view), Canvas::FREE)
    }

    /// This view on this canvas.
    pub fn new(view: Arc<dyn View>, canvas: Canvas) -> Self {
        Self { view, canvas }
    }

    /// The same view on another canvas.
    pub fn on(self, canvas: Canvas) -> Self {
        Self { canvas, ..self }
    }

    /// The same view, on a canvas of the image's own size if `fixed`.
    pub fn fitted(self, fixed: bool) -> Self {
        let canvas = Canvas { fixed, ..self.canvas };
        self.on(canvas)
    }

    /// What was drawn.
    pub fn view(&self) -> &dyn View {
        &*self.view
    }

    /// The kind and its drawn values, such as `rotate 12.3°`.
    pub fn caption(&self) -> String {
        self.view.caption()
    }

    /// (height, width) of what is seen of an image of this size.
    pub fn seen_size(&self, size: (usize, usize)) -> (usize, usize) {
        self.view.place(size, self.canvas).seen_size()
    }

    /// Whether the view of an image of this size has twice as many pixels as the image, or more.
    pub fn enlarges(&self, size: (usize, usize)) -> bool {
        let seen = self.seen_size(size);
        seen.0 * seen.1 >= 2 * size.0 * size.1
    }

    /// The view of images of this (height, width), with its sampler.
    pub fn placed(&self, size: (usize, usize)) -> Placed {
        let placement = self.view.place(size, self.canvas);
        let moves = !placement.is_identity();
        let sampler = moves.then(|| Arc::new(placement.sampler(size, placement.seen_size())));
        Placed { view: self.view.clone(), size, placement, sampler }
    }

    /// The image as seen, once; whoever needs more than this places the view first.
    pub fn apply(&self, image: &Image) -> Image {
        self.placed(image.size()).apply(image)
    }

    /// The pullback of [`DrawnView::apply`] at `image`: from the seen image's cotangent `[3, h', w']` to the image's.
    pub fn pull_apply(&self, image: &Image, cotangent: &[f32]) -> Vec<f32> {
        self.placed(image.size()).pull_apply(image, cotangent)
    }

    /// A feature map of the seen image, brought back to the grid `to` of the unseen image's map.
    pub fn undo(&self, size: (usize, usize), map: &[f32], seen: Extents, to: (usize, usize)) -> Vec<f32> {
        self.view.place(size, self.canvas).undoing(seen.size(), to).apply(map, seen.channels)
    }

    /// The pullback of [`DrawnView::undo`], which is linear: from the grid `to` to the seen map.
    pub fn pull_undo(
        &self,
        size: (usize, usize),
        cotangent: &[f32],
        seen: Extents,
        to: (usize, usize),
    ) -> Vec<f32> {
        self.view.place(size, self.canvas).undoing(seen.size(), to).transpose(cotangent, seen.channels)
    }

    /// The mask of [`Undo::mask`].
    pub fn mask(&self, size: (usize, usize), seen: (usize, usize), to: (usize, usize)) -> Vec<f32> {
        Undo::new(&*self.view.place(size, self.canvas), seen, to).mask
    }
}

/// A view placed for images of one size. Cheap to clone; clones share the sampler.
#[derive(Clone, Debug)]
pub struct Placed {
    view: Arc<dyn View>,
    size: (usize, usize),
    placement: Arc<dyn Placement>,
    /// From the image to the seen image; none where nothing moves.
    sampler: Option<Arc<Sampler>>,
}

impl Placed {
    /// The kind and its drawn values, such as `rotate 12.3°`.
    pub fn caption(&self) -> String {
        self.view.caption()
    }

    /// (height, width) of the images it is placed for.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// (height, width) of what is seen.
    pub fn seen_size(&self) -> (usize, usize) {
        self.placement.seen_size()
    }

    /// Whether what is seen has twice as many pixels as the image, or more.
    pub fn enlarges(&self) -> bool {
        let (seen, size) = (self.seen_size(), self.size);
        seen.0 * seen.1 >= 2 * size.0 * size.1
    }

    /// The image as seen.
    ///
    /// # Panics
    /// If the image has another size than the view was placed for.
    pub fn apply(&self, image: &Image) -> Image {
        assert_eq!(image.size(), self.size, "(height, width) that the view was placed for");
        let recoloured = self.view.recolour(image);
        let Some(sampler) = &self.sampler else {
            return recoloured.unwrap_or_else(|| image.clone());
        };
        let (height, width) = self.seen_size();
        let pixels = sampler.apply(recoloured.as_ref().unwrap_or(image).pixels(), 3);
        Image::new(height, width, pixels).expect("a placement has at least one pixel")
    }

    /// The pullback of [`Placed::apply`] at `image`: from the seen image's cotangent `[3, h', w']` to the image's.
    ///
    /// # Panics
    /// If the image or the cotangent has another size.
    pub fn pull_apply(&self, image: &Image, cotangent: &[f32]) -> Vec<f32> {
        assert_eq!(image.size(), self.size, "(height, width) that the view was placed for");
        let moved = match &self.sampler {
            Some(sampler) => sampler.transpose(cotangent, 3),
            None => cotangent.to_vec(),
        };
        self.view.pull_recolour(image, moved)
    }

    /// The way back for feature maps: from a grid of `seen` (height, width) of the seen image to the grid `to` of the image's own map.
    pub fn undo_onto(&self, seen: (usize, usize), to: (usize, usize)) -> Undo {
        Undo::new(&*self.placement, seen, to)
    }
}

/// The way back from a grid of the seen image to a grid of the image: sampler and mask.
#[derive(Clone, Debug)]
pub struct Undo {
    sampler: Sampler,
    mask: Vec<f32>,
}

impl Undo {
    fn new(placement: &dyn Placement, seen: (usize, usize), to: (usize, usize)) -> Self {
        let sampler = placement.undoing(seen, to);
        let applied = placement.sampler(to, seen).apply(&vec![1.0; to.0 * to.1], 1);
        let undone = sampler.apply(&applied, 1);
        Self { sampler, mask: undone.iter().map(|&v| if v > 0.5 { 1.0 } else { 0.0 }).collect() }
    }

    /// A feature map `[channels, h', w']` of the seen image, brought back to the image's grid.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn apply(&self, map: &[f32], channels: usize) -> Vec<f32> {
        self.sampler.apply(map, channels)
    }

    /// The pullback of [`Undo::apply`], which is linear: from the image's grid to the seen map.
    ///
    /// # Panics
    /// If the number of values does not fit.
    pub fn pullback(&self, cotangent: &[f32], channels: usize) -> Vec<f32> {
        self.sampler.transpose(cotangent, channels)
    }

    /// For each cell of the image's grid, four cells of the seen map and their weights: the same map, for somebody who applies it elsewhere.
    pub fn taps(&self) -> (Vec<u32>, Vec<f32>) {
        self.sampler.taps()
    }

    /// 1 for each cell of the image's grid that the view shows, else 0: where undo(apply(ones)) > 0.5 at feature resolution.
    pub fn mask(&self) -> &[f32] {
        &self.mask
    }
}
