//! The letterbox: an image fitted inside a larger frame, its borders grey, and the way back for masks.
//!
//! scale = the smaller of frame/image over the two axes; the sides are rounded, and the image stands in the middle (an odd pixel
//! of border goes below and to the right). Images are resized bilinearly, masks by nearest centre.

use crate::error::Result;
use crate::image::{IGNORED, Image, LabelMap};
use crate::task::instance::{Instance, Mask};
use crate::view::Sampler;

const GREY: f32 = 114.0 / 255.0;

/// Where an image stands in its frame; everything is (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letterbox {
    image: (usize, usize),
    frame: (usize, usize),
    inner: (usize, usize),
    origin: (usize, usize),
}

impl Letterbox {
    /// An image of one size in a frame of another.
    pub fn new(image: (usize, usize), frame: (usize, usize)) -> Self {
        let scale = (frame.0 as f64 / image.0 as f64).min(frame.1 as f64 / image.1 as f64);
        let side =
            |side: usize, most: usize| ((side as f64 * scale).round_ties_even() as usize).clamp(1, most);
        let inner = (side(image.0, frame.0), side(image.1, frame.1));
        Self { image, frame, inner, origin: ((frame.0 - inner.0) / 2, (frame.1 - inner.1) / 2) }
    }

    /// An image stretched over the whole frame.
    pub fn stretched(image: (usize, usize), frame: (usize, usize)) -> Self {
        Self { image, frame, inner: frame, origin: (0, 0) }
    }

    /// The image in its frame.
    ///
    /// # Errors
    /// If the image has another size than the letterbox was made for.
    pub fn apply(&self, image: &Image) -> Result<Image> {
        let resized = match self.inner == image.size() {
            true => image.pixels().to_vec(),
            false => Sampler::resize(image.size(), self.inner).apply(image.pixels(), 3),
        };
        let inside = Image::new(self.inner.0, self.inner.1, resized)?;
        let mut framed = Image::filled(self.frame.0, self.frame.1, GREY);
        let ((top, left), (height, width)) = (self.origin, self.inner);
        for channel in 0..3 {
            for y in 0..height {
                let at = (channel * self.frame.0 + top + y) * self.frame.1 + left;
                let line = &inside.plane(channel)[y * width..][..width];
                framed.pixels_mut()[at..][..width].copy_from_slice(line);
            }
        }
        Ok(framed)
    }

    /// The label map of the image in the frame; the borders are ignored.
    ///
    /// # Errors
    /// If the map has another size than the letterbox was made for.
    pub fn apply_labels(&self, map: &LabelMap) -> Result<LabelMap> {
        let (rows, columns) = self.frame_places();
        let label = |(y, x): (&Option<usize>, &Option<usize>)| match (y, x) {
            (Some(y), Some(x)) => map.labels().get(y * map.width() + x).copied().unwrap_or(IGNORED),
            _ => IGNORED,
        };
        let cells = rows.iter().flat_map(|y| columns.iter().map(move |x| (y, x)));
        LabelMap::new(self.frame.0, self.frame.1, cells.map(label).collect())
    }

    /// A mask on the image, as it lies in the frame.
    pub fn frame_mask(&self, mask: &Mask) -> Mask {
        let (rows, columns) = self.frame_places();
        mask.on_grid(&rows, &columns)
    }

    /// For each row and column of the frame, the image's that lies there, if any does.
    fn frame_places(&self) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
        let along = |frame: usize, start: usize, inner: usize, image: usize| -> Vec<Option<usize>> {
            let place = |at: usize| {
                let at = at.checked_sub(start).filter(|at| *at < inner)?;
                Some((((at as f64 + 0.5) * image as f64 / inner as f64) as usize).min(image - 1))
            };
            (0..frame).map(place).collect()
        };
        (
            along(self.frame.0, self.origin.0, self.inner.0, self.image.0),
            along(self.frame.1, self.origin.1, self.inner.1, self.image.1),
        )
    }

    /// What was seen in the frame, on the image.
    pub fn unframed(&self, instance: &Instance) -> Instance {
        let along = |image: usize, start: usize, inner: usize| -> Vec<Option<usize>> {
            let place = |at: usize| ((at as f64 + 0.5) * inner as f64 / image as f64) as usize;
            (0..image).map(|at| Some(start + place(at).min(inner - 1))).collect()
        };
        let rows = along(self.image.0, self.origin.0, self.inner.0);
        let mask = instance.mask.on_grid(&rows, &along(self.image.1, self.origin.1, self.inner.1));
        let scale = [self.image.1 as f32 / self.inner.1 as f32, self.image.0 as f32 / self.inner.0 as f32];
        let start = [self.origin.1 as f32, self.origin.0 as f32];
        let corners = std::array::from_fn(|k| (instance.corners[k] - start[k % 2]) * scale[k % 2]);
        Instance { corners, mask, ..*instance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_the_frame_comes_back() {
        let letterbox = Letterbox::new((30, 40), (64, 64));
        assert_eq!((letterbox.inner, letterbox.origin), ((48, 64), (8, 0)));
        let framed = letterbox.apply(&Image::filled(30, 40, 0.25)).unwrap();
        assert_eq!(
            (framed.plane(1)[0], framed.plane(2)[8 * 64], framed.plane(0)[56 * 64]),
            (GREY, 0.25, GREY)
        );
        let full: Vec<bool> = (0..1200).map(|i| (10..20).contains(&(i / 40)) && i % 40 < 9).collect();
        let truth = Instance::truth(3, Mask::from_full((30, 40), &full).unwrap());
        let inside = Instance::truth(3, letterbox.frame_mask(&truth.mask));
        assert_eq!(inside.corners, [0.0, 24.0, 14.0, 40.0]);
        let back = letterbox.unframed(&inside);
        assert_eq!(back.mask, truth.mask);
        assert!(
            back.corners.iter().zip(truth.corners).all(|(a, b)| (a - b).abs() < 0.7),
            "{:?}",
            back.corners
        );
    }
}
