//! The letterbox: an image, or a part of it, inside a network's frame, and the way back for whatever is said of it.
//!
//! Letterboxed: scale = the smaller of frame/image over the two axes; the sides are rounded, the image stands in the middle (an odd pixel of border goes
//! below and to the right) and the borders are grey. Stretched: it fills the frame. Cropped: the largest middle part of the frame's proportions does.
//! Images are resized by the one rule for them ([`Image::resized`]), values bilinearly, labels and masks by nearest centre.

use super::Sampler;
use crate::error::{Error, Result};
use crate::image::{IGNORED, Image, LabelMap};

const GREY: f32 = 114.0 / 255.0;

/// Where an image stands in its frame; everything is (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letterbox {
    image: (usize, usize),
    /// The part of the image that is shown: its upper left corner and its size.
    part: Part,
    frame: (usize, usize),
    inner: (usize, usize),
    origin: (usize, usize),
}

/// A window of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    origin: (usize, usize),
    size: (usize, usize),
}

impl Part {
    fn whole(size: (usize, usize)) -> Self {
        Self { origin: (0, 0), size }
    }
}

/// For each row (or column) of one grid, the row of another that lies there, if any does.
pub type Places = Vec<Option<usize>>;

impl Letterbox {
    /// An image of one size in a frame of another.
    pub fn new(image: (usize, usize), frame: (usize, usize)) -> Self {
        let scale = (frame.0 as f64 / image.0 as f64).min(frame.1 as f64 / image.1 as f64);
        let side =
            |side: usize, most: usize| ((side as f64 * scale).round_ties_even() as usize).clamp(1, most);
        let inner = (side(image.0, frame.0), side(image.1, frame.1));
        let origin = ((frame.0 - inner.0) / 2, (frame.1 - inner.1) / 2);
        Self { image, part: Part::whole(image), frame, inner, origin }
    }

    /// An image stretched over the whole frame.
    pub fn stretched(image: (usize, usize), frame: (usize, usize)) -> Self {
        Self { image, part: Part::whole(image), frame, inner: frame, origin: (0, 0) }
    }

    /// The largest middle part of an image that has the frame's proportions, over the whole frame.
    pub fn cropped(image: (usize, usize), frame: (usize, usize)) -> Self {
        let scale = (image.0 as f64 / frame.0 as f64).min(image.1 as f64 / frame.1 as f64);
        let side = |n: usize, most: usize| ((n as f64 * scale).round() as usize).clamp(1, most);
        let size = (side(frame.0, image.0), side(frame.1, image.1));
        let part = Part { origin: ((image.0 - size.0) / 2, (image.1 - size.1) / 2), size };
        Self { part, ..Self::stretched(image, frame) }
    }

    /// (height, width) of the image.
    pub fn image(&self) -> (usize, usize) {
        self.image
    }

    /// (height, width) of the frame.
    pub fn frame(&self) -> (usize, usize) {
        self.frame
    }

    /// Whether image and frame are the same, pixel for pixel.
    pub fn is_identity(&self) -> bool {
        *self == Self::stretched(self.image, self.image)
    }

    /// The image in its frame.
    ///
    /// # Errors
    /// If the image has another size than the letterbox was made for.
    pub fn apply(&self, image: &Image) -> Result<Image> {
        if image.size() != self.image {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("image", words(self.image), words(image.size())));
        }
        let kept: Vec<f32> = (0..3).flat_map(|c| self.cut(image.plane(c))).collect();
        let inside =
            Image::new(self.part.size.0, self.part.size.1, kept)?.resized(self.inner.0, self.inner.1);
        if self.inner == self.frame {
            return Ok(inside);
        }
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

    /// The part of a plane of the image that is shown.
    fn cut<'a>(&self, plane: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let (Part { origin: (top, left), size: (height, width) }, across) = (self.part, self.image.1);
        (top..top + height).flat_map(move |y| plane[y * across + left..][..width].iter().copied())
    }

    /// The label map of the image in the frame; the borders are ignored.
    ///
    /// # Errors
    /// If the map has another size than the letterbox was made for.
    pub fn apply_labels(&self, map: &LabelMap) -> Result<LabelMap> {
        moved(map, &self.frame_places())
    }

    /// What was said of the frame, on the image; parts of it that the frame does not show are ignored.
    ///
    /// # Errors
    /// If the map has another size than the frame.
    pub fn unframed_labels(&self, map: &LabelMap) -> Result<LabelMap> {
        moved(map, &self.image_places())
    }

    /// For each row and column of the frame, the image's that lies there, if any does.
    pub fn frame_places(&self) -> (Places, Places) {
        let along = |frame: usize, start: usize, inner: usize, first: usize, part: usize| -> Places {
            let place = |at: usize| {
                let at = at.checked_sub(start).filter(|at| *at < inner)?;
                Some(first + (((at as f64 + 0.5) * part as f64 / inner as f64) as usize).min(part - 1))
            };
            (0..frame).map(place).collect()
        };
        let Part { origin, size } = self.part;
        (
            along(self.frame.0, self.origin.0, self.inner.0, origin.0, size.0),
            along(self.frame.1, self.origin.1, self.inner.1, origin.1, size.1),
        )
    }

    /// For each row and column of the image, the frame's that lies there, if any does.
    pub fn image_places(&self) -> (Places, Places) {
        let along = |image: usize, first: usize, part: usize, start: usize, inner: usize| -> Places {
            let place = |at: usize| {
                let at = at.checked_sub(first).filter(|at| *at < part)?;
                Some(start + (((at as f64 + 0.5) * inner as f64 / part as f64) as usize).min(inner - 1))
            };
            (0..image).map(place).collect()
        };
        let Part { origin, size } = self.part;
        (
            along(self.image.0, origin.0, size.0, self.origin.0, self.inner.0),
            along(self.image.1, origin.1, size.1, self.origin.1, self.inner.1),
        )
    }

    /// A point (x, y) of the frame on the image.
    pub fn unframed_point(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let back = |at: f32, start: usize, inner: usize, first: usize, part: usize| {
            (at - start as f32) * (part as f32 / inner as f32) + first as f32
        };
        let Part { origin, size } = self.part;
        [
            back(x, self.origin.1, self.inner.1, origin.1, size.1),
            back(y, self.origin.0, self.inner.0, origin.0, size.0),
        ]
    }

    /// One value per pixel of the frame, on the image: bilinear within what is shown, `None` of it elsewhere is `fill`.
    pub fn unframed_values(&self, values: &[f32], fill: f32) -> Vec<f32> {
        let ((top, left), (height, width)) = (self.origin, self.inner);
        let inside: Vec<f32> = (top..top + height)
            .flat_map(|y| values[y * self.frame.1 + left..][..width].iter().copied())
            .collect();
        let part = match self.inner == self.part.size {
            true => inside,
            false => Sampler::resize(self.inner, self.part.size).apply(&inside, 1),
        };
        let mut out = vec![fill; self.image.0 * self.image.1];
        let Part { origin: (top, left), size: (height, width) } = self.part;
        for y in 0..height {
            out[(top + y) * self.image.1 + left..][..width].copy_from_slice(&part[y * width..][..width]);
        }
        out
    }

    /// One value per pixel of the image, in the frame: by nearest centre, `fill` on the borders.
    pub fn framed_values(&self, values: &[f32], fill: f32) -> Vec<f32> {
        let (rows, columns) = self.frame_places();
        let value = |(y, x): (&Option<usize>, &Option<usize>)| match (y, x) {
            (Some(y), Some(x)) => values.get(y * self.image.1 + x).copied().unwrap_or(fill),
            _ => fill,
        };
        rows.iter().flat_map(|y| columns.iter().map(move |x| (y, x))).map(value).collect()
    }
}

/// A label map on another grid.
fn moved(map: &LabelMap, (rows, columns): &(Places, Places)) -> Result<LabelMap> {
    let label = |(y, x): (&Option<usize>, &Option<usize>)| match (y, x) {
        (Some(y), Some(x)) => map.labels().get(y * map.width() + x).copied().unwrap_or(IGNORED),
        _ => IGNORED,
    };
    let cells = rows.iter().flat_map(|y| columns.iter().map(move |x| (y, x)));
    LabelMap::new(rows.len(), columns.len(), cells.map(label).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::instance::{Instance, Mask};

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
        let inside = Instance::truth(3, truth.mask.framed(&letterbox));
        assert_eq!(inside.corners, [0.0, 24.0, 14.0, 40.0]);
        let back = inside.unframed(&letterbox);
        assert_eq!(back.mask, truth.mask);
        assert!(
            back.corners.iter().zip(truth.corners).all(|(a, b)| (a - b).abs() < 0.7),
            "{:?}",
            back.corners
        );
    }

    /// What a crop cuts off has no answer; what it shows goes there and back.
    #[test]
    fn a_crop_goes_back_to_the_middle() {
        let crop = Letterbox::cropped((4, 10), (8, 8));
        assert_eq!(crop.part, Part { origin: (0, 3), size: (4, 4) });
        let map = LabelMap::new(4, 10, (0..40).map(|i| i % 10).collect()).unwrap();
        let framed = crop.apply_labels(&map).unwrap();
        assert_eq!(framed.labels()[..8], [3, 3, 4, 4, 5, 5, 6, 6]);
        let back = crop.unframed_labels(&framed).unwrap();
        assert_eq!(back.labels()[..10], [255, 255, 255, 3, 4, 5, 6, 255, 255, 255]);
        assert_eq!(crop.unframed_point([2.0, 8.0]), [4.0, 4.0]);
        let values: Vec<f32> = framed.labels().iter().map(|l| f32::from(*l)).collect();
        let back = crop.unframed_values(&values, -1.0);
        assert_eq!(back[..10], [-1.0, -1.0, -1.0, 3.0, 4.0, 5.0, 6.0, -1.0, -1.0, -1.0]);
        assert!(Letterbox::stretched((4, 10), (4, 10)).is_identity() && !crop.is_identity());
    }
}
