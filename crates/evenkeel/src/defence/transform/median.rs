//! `median-blur`: every value the median of a square window, beyond the border the nearest pixel. Its derivative goes to the pixel that the median is.

use evenkeel_kernels::parallel;

use super::Transform;
use crate::image::Image;

/// Rows that make a piece of work worth handing to another thread.
const GRAIN: usize = 8;

/// The median of a window in each plane.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct MedianBlur {
    /// The side of the window, odd.
    pub(in crate::defence) window: usize,
}

impl MedianBlur {
    /// For every value, where its median stands; of equal values the earlier one comes first.
    fn places(&self, image: &Image) -> Vec<u32> {
        let ((height, width), reach) = (image.size(), (self.window / 2) as isize);
        let pixels = image.pixels();
        let mut places = vec![0u32; pixels.len()];
        parallel::rows(&mut places, width, GRAIN, |first, rows| {
            let mut near: Vec<u32> = Vec::with_capacity(self.window * self.window);
            for (i, row) in rows.chunks_mut(width).enumerate() {
                let (plane, y) = ((first + i) / height, (first + i) % height);
                for (x, place) in row.iter_mut().enumerate() {
                    near.clear();
                    for dy in -reach..=reach {
                        let line = plane * height + clamped(y, dy, height);
                        near.extend((-reach..=reach).map(|dx| (line * width + clamped(x, dx, width)) as u32));
                    }
                    let middle = near.len() / 2;
                    let value = |at: &u32| pixels[*at as usize];
                    let order = |a: &u32, b: &u32| value(a).total_cmp(&value(b)).then(a.cmp(b));
                    *place = *near.select_nth_unstable_by(middle, order).1;
                }
            }
        });
        places
    }
}

fn clamped(at: usize, by: isize, count: usize) -> usize {
    (at as isize + by).clamp(0, count as isize - 1) as usize
}

impl Transform for MedianBlur {
    fn apply(&self, image: &Image) -> Image {
        let mut out = image.clone();
        let places = self.places(image);
        out.pixels_mut().iter_mut().zip(places).for_each(|(o, at)| *o = image.pixels()[at as usize]);
        out
    }

    fn pullback(&self, image: &Image, cotangent: Vec<f32>) -> Vec<f32> {
        let mut back = vec![0.0; cotangent.len()];
        self.places(image).iter().zip(&cotangent).for_each(|(at, c)| back[*at as usize] += c);
        back
    }
}
