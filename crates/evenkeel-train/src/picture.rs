//! A picture with its truth, kept as bytes.

use crate::loss::IGNORED;
use evenkeel::Image;
use evenkeel_data::dataset::{Sample, Truth};

/// One picture and its truth.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// `[h][w][3]`.
    pub(crate) pixels: Vec<u8>,
    /// A class or the number of an instance (from 1) for every pixel, 255 where nothing is known; empty for a picture with one class.
    pub(crate) labels: Vec<u8>,
    /// The class of the whole picture.
    pub(crate) class: u16,
    /// The class of each instance.
    pub(crate) things: Vec<usize>,
}

/// Instances a picture can have: a byte numbers them from 1, and 255 means unknown.
const MOST_INSTANCES: usize = 254;

impl Picture {
    /// A picture without a truth.
    pub(crate) fn of_image(image: &Image) -> Self {
        let (height, width) = image.size();
        let (labels, things) = (Vec::new(), Vec::new());
        Self { height, width, pixels: image.to_rgb8(), labels, class: 0, things }
    }

    /// A sample of a data set; overlapping instances are told apart by the first, crowds are unknown.
    pub(crate) fn of_sample(sample: &Sample) -> Self {
        let mut picture = Self::of_image(&sample.image);
        let (height, width) = sample.image.size();
        match &sample.truth {
            Truth::Class(class) => picture.class = *class as u16,
            Truth::Labels(map) => {
                picture.labels = map.labels().iter().map(|&label| label.min(255) as u8).collect();
            }
            Truth::Objects(objects) => {
                picture.labels = vec![0; height * width];
                for object in objects.iter().rev() {
                    let number = match object.crowd || picture.things.len() == MOST_INSTANCES {
                        true => 255,
                        false => {
                            picture.things.push(object.class);
                            picture.things.len() as u8
                        }
                    };
                    object.mask.for_each_inside(|y, x| picture.labels[y * width + x] = number);
                }
            }
            Truth::Unlabelled | Truth::Given(_) => {}
        }
        picture
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pixels.len() + self.labels.len()
    }

    /// Whether a place lies inside.
    pub(crate) fn holds(&self, y: f32, x: f32) -> bool {
        y > -0.5 && x > -0.5 && y < self.height as f32 - 0.5 && x < self.width as f32 - 0.5
    }

    /// The colour between four pixels, or nothing outside the picture.
    pub(crate) fn colour(&self, y: f32, x: f32) -> Option<[f32; 3]> {
        if !self.holds(y, x) {
            return None;
        }
        let (height, width) = (self.height, self.width);
        let (y, x) = (y.clamp(0.0, (height - 1) as f32), x.clamp(0.0, (width - 1) as f32));
        let (y0, x0) = (y as usize, x as usize);
        let (y1, x1) = ((y0 + 1).min(height - 1), (x0 + 1).min(width - 1));
        let (ty, tx) = (y - y0 as f32, x - x0 as f32);
        let at = |y: usize, x: usize, c: usize| f32::from(self.pixels[3 * (y * width + x) + c]);
        Some([0, 1, 2].map(|c| {
            let top = at(y0, x0, c) + tx * (at(y0, x1, c) - at(y0, x0, c));
            let bottom = at(y1, x0, c) + tx * (at(y1, x1, c) - at(y1, x0, c));
            (top + ty * (bottom - top)) / 255.0
        }))
    }

    /// The label of the pixel nearest to a place inside the picture.
    pub(crate) fn label(&self, y: f32, x: f32) -> u16 {
        let near = |place: f32, count: usize| ((place + 0.5).max(0.0) as usize).min(count - 1);
        match self.labels[near(y, self.height) * self.width + near(x, self.width)] {
            255 => IGNORED,
            label => label.into(),
        }
    }
}
