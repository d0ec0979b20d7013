//! Where batches come from: a pool of rendered pictures, and the changes each is given on its way into a batch.
//!
//! Pictures are kept as bytes. A batch draws pictures from the pool, cuts windows of other scales out of them, mirrors every second one, and shifts colours; the
//! draw depends on the step's own stream, so a resumed run sees the same batches.

use crate::map::Map;
use crate::networks::{PIXEL_DEVIATION, PIXEL_MEAN};
use evenkeel::{Image, Random};
use evenkeel_study::dataset::scenes::{Split, object, render};
use rayon::prelude::*;

/// What a network learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A class for every pixel of a scene.
    Scenes,
    /// The class of an object crop.
    Objects,
}

impl Subject {
    /// (height, width) of its pictures.
    pub fn size(self) -> (usize, usize) {
        match self {
            Self::Scenes => (128, 256),
            Self::Objects => (64, 64),
        }
    }

    /// The largest factor by which windows are enlarged.
    fn largest_scale(self) -> f32 {
        match self {
            Self::Scenes => 1.6,
            Self::Objects => 1.25,
        }
    }

    /// Labels of a picture's window of this size.
    fn labels(self, (height, width): (usize, usize)) -> usize {
        match self {
            Self::Scenes => height * width,
            Self::Objects => 1,
        }
    }
}

/// One picture and its truth.
struct Picture {
    pixels: Vec<u8>, // [h][w][3]
    labels: Vec<u8>,
}

/// Pictures in memory.
pub struct Pool {
    subject: Subject,
    pictures: Vec<Picture>,
}

/// Pictures as a network takes them, and their labels.
pub struct Batch {
    /// The input, normalised.
    pub input: Map,
    /// Labels, picture by picture.
    pub labels: Vec<u8>,
}

impl Pool {
    /// Renders the first `count` pictures of a split.
    pub fn render(subject: Subject, split: Split, count: usize) -> Self {
        let (height, width) = subject.size();
        let pictures = (0..count as u64)
            .into_par_iter()
            .map(|number| match subject {
                Subject::Scenes => {
                    let scene = render(split.seed(number), height, width);
                    let labels = scene.labels.labels().iter().map(|&l| l as u8).collect();
                    Picture { pixels: scene.image.to_rgb8(), labels }
                }
                Subject::Objects => {
                    let (class, image) = object(split, number, height, width);
                    Picture { pixels: image.to_rgb8(), labels: vec![class as u8] }
                }
            })
            .collect();
        Self { subject, pictures }
    }

    /// Pictures in the pool.
    pub fn len(&self) -> usize {
        self.pictures.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// Pictures `from..to` as they are.
    pub fn plain(&self, from: usize, to: usize) -> Batch {
        let (height, width) = self.subject.size();
        let looks = (from..to.min(self.len())).map(Look::plain).collect();
        self.gather(looks, (height, width))
    }

    /// A batch of `count` windows of this size, changed at random.
    pub fn draw(&self, count: usize, window: (usize, usize), random: &mut Random) -> Batch {
        let looks = (0..count).map(|_| self.look(window, random)).collect();
        self.gather(looks, window)
    }

    fn look(&self, (height, width): (usize, usize), random: &mut Random) -> Look {
        let (full_h, full_w) = self.subject.size();
        let (fit_h, fit_w) = (full_h as f32 / height as f32, full_w as f32 / width as f32);
        let step = (1.0 / random.uniform(1.0 / fit_h.min(fit_w), self.subject.largest_scale()))
            .min(fit_h.min(fit_w));
        let contrast = random.uniform(0.75, 1.3);
        let level = random.uniform(-0.12, 0.12);
        Look {
            picture: random.below(self.len()),
            top: random.unit() * (full_h as f32 - step * height as f32),
            left: random.unit() * (full_w as f32 - step * width as f32),
            step,
            mirrored: random.chance(0.5),
            scale: [0; 3].map(|_| contrast * random.uniform(0.88, 1.12)),
            shift: [0; 3].map(|_| level + random.uniform(-0.05, 0.05)),
        }
    }

    fn gather(&self, looks: Vec<Look>, (height, width): (usize, usize)) -> Batch {
        let mut input = Map::zeros(looks.len(), height, width, 3);
        let per = self.subject.labels((height, width));
        let mut labels = vec![0; looks.len() * per];
        let (len, stride) = (input.image_len(), input.stride());
        let parts = input.values.par_chunks_mut(len).zip(labels.par_chunks_mut(per)).zip(looks);
        parts.for_each(|((out, labels), look)| {
            let (rows, columns) =
                (look.rows(height, self.subject.size().0), look.columns(width, self.subject.size().1));
            let picture = &self.pictures[look.picture];
            for (y, row) in rows.iter().enumerate() {
                for (x, column) in columns.iter().enumerate() {
                    picture.sample(
                        row,
                        column,
                        self.subject.size().1,
                        &look,
                        &mut out[(y * width + x) * stride..],
                    );
                    if self.subject == Subject::Scenes {
                        labels[y * width + x] =
                            picture.labels[row.near * self.subject.size().1 + column.near];
                    }
                }
            }
            if self.subject == Subject::Objects {
                labels[0] = picture.labels[0];
            }
        });
        Batch { input, labels }
    }
}

/// How a picture is looked at.
struct Look {
    picture: usize,
    top: f32,
    left: f32,
    /// Pixels of the picture from one of the window's to the next.
    step: f32,
    mirrored: bool,
    scale: [f32; 3],
    shift: [f32; 3],
}

/// Where a row or column of a window lies in the picture: between two of its own, and the nearest.
struct Between {
    low: usize,
    high: usize,
    share: f32,
    near: usize,
}

impl Between {
    fn at(place: f32, count: usize) -> Self {
        let place = place.clamp(0.0, (count - 1) as f32);
        let low = place as usize;
        Self { low, high: (low + 1).min(count - 1), share: place - low as f32, near: (place + 0.5) as usize }
    }
}

impl Picture {
    /// Writes the normalised colour between four pixels.
    fn sample(&self, row: &Between, column: &Between, width: usize, look: &Look, to: &mut [f32]) {
        let at = |y: usize, x: usize, c: usize| f32::from(self.pixels[3 * (y * width + x) + c]);
        for c in 0..3 {
            let top = at(row.low, column.low, c);
            let top = top + column.share * (at(row.low, column.high, c) - top);
            let bottom = at(row.high, column.low, c);
            let bottom = bottom + column.share * (at(row.high, column.high, c) - bottom);
            let value = (top + row.share * (bottom - top)) / 255.0;
            let value = ((value - 0.5) * look.scale[c] + 0.5 + look.shift[c]).clamp(0.0, 1.0);
            to[c] = (value - PIXEL_MEAN[c]) / PIXEL_DEVIATION[c];
        }
    }
}

impl Look {
    fn rows(&self, height: usize, count: usize) -> Vec<Between> {
        (0..height).map(|y| Between::at(self.top + self.step * (y as f32 + 0.5) - 0.5, count)).collect()
    }

    fn columns(&self, width: usize, count: usize) -> Vec<Between> {
        let place = |x: usize| if self.mirrored { width - 1 - x } else { x };
        (0..width)
            .map(|x| Between::at(self.left + self.step * (place(x) as f32 + 0.5) - 0.5, count))
            .collect()
    }

    fn plain(picture: usize) -> Self {
        Self { picture, top: 0.0, left: 0.0, step: 1.0, mirrored: false, scale: [1.0; 3], shift: [0.0; 3] }
    }
}

impl Batch {
    /// A picture of the batch as an image in [0, 1].
    ///
    /// # Errors
    /// If the batch is empty.
    pub fn image(&self, index: usize) -> evenkeel::Result<Image> {
        let (height, width) = (self.input.height, self.input.width);
        let from = &self.input.values[index * self.input.image_len()..][..self.input.image_len()];
        let value = |c: usize, i: usize| {
            (from[i * self.input.stride() + c] * PIXEL_DEVIATION[c] + PIXEL_MEAN[c]).clamp(0.0, 1.0)
        };
        let pixels = (0..3).flat_map(|c| (0..height * width).map(move |i| (c, i)));
        Image::new(height, width, pixels.map(|(c, i)| value(c, i)).collect())
    }

    /// Puts an image in the place of a picture.
    pub fn replace(&mut self, index: usize, image: &Image) {
        let (len, stride) = (self.input.image_len(), self.input.stride());
        let to = &mut self.input.values[index * len..][..len];
        for c in 0..3 {
            for (i, v) in image.plane(c).iter().enumerate() {
                to[i * stride + c] = (v - PIXEL_MEAN[c]) / PIXEL_DEVIATION[c];
            }
        }
    }

    /// The labels of one picture.
    pub fn labels_of(&self, index: usize) -> &[u8] {
        let per = self.labels.len() / self.input.batch;
        &self.labels[index * per..][..per]
    }
}
