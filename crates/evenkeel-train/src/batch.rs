//! Where batches come from: a pool of rendered pictures, and the changes each is given on its way into a batch.
//!
//! Pictures are kept as bytes. A batch draws pictures from the pool, cuts windows of other scales out of them, turns them a little, mirrors
//! every second one, and shifts colours: the changes that views make, so that the network learns to follow them. Where a window
//! reaches outside its picture it is black and has no label. The draw depends on the step's own stream, so a resumed run sees
//! the same batches.

use crate::loss::IGNORED;
use crate::map::Map;
use crate::networks::{PIXEL_DEVIATION, PIXEL_MEAN};
use evenkeel::{Image, Random};
use evenkeel_data::dataset::scenes::{Split, instance_class, object, render};
use rayon::prelude::*;

/// What a network learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A class for every pixel of a scene.
    Scenes,
    /// The class of an object crop.
    Objects,
    /// The cars and people of a scene, each by itself.
    Instances,
}

impl Subject {
    /// The name of the figure its networks are scored by.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Scenes => "mIoU",
            Self::Objects => "accuracy",
            Self::Instances => "mask AP50",
        }
    }

    /// (height, width) of its pictures.
    pub fn size(self) -> (usize, usize) {
        match self {
            Self::Scenes | Self::Instances => (128, 256),
            Self::Objects => (64, 64),
        }
    }

    /// The range of factors by which windows are shrunk or enlarged.
    fn scales(self) -> (f32, f32) {
        match self {
            Self::Scenes | Self::Instances => (0.6, 1.7),
            Self::Objects => (0.6, 1.3),
        }
    }

    /// Labels of a picture's window of this size.
    fn labels(self, (height, width): (usize, usize)) -> usize {
        match self {
            Self::Scenes | Self::Instances => height * width,
            Self::Objects => 1,
        }
    }
}

/// One picture and its truth.
struct Picture {
    pixels: Vec<u8>, // [h][w][3]
    labels: Vec<u8>,
    /// The class of each instance.
    things: Vec<usize>,
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
    /// Labels, picture by picture: classes, or the numbers of instances from 1.
    pub labels: Vec<u8>,
    /// For each picture, the classes of its instances.
    pub things: Vec<Vec<usize>>,
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
                    Picture { pixels: scene.image.to_rgb8(), labels, things: Vec::new() }
                }
                Subject::Instances => {
                    let scene = render(split.seed(number), height, width);
                    let things = scene.instance_classes.iter().map(|&c| instance_class(c)).collect();
                    Picture { pixels: scene.image.to_rgb8(), labels: scene.instances, things }
                }
                Subject::Objects => {
                    let (class, image) = object(split, number, height, width);
                    Picture { pixels: image.to_rgb8(), labels: vec![class as u8], things: Vec::new() }
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
        let looks = (from..to.min(self.len())).map(|k| Look::plain(k, (height, width))).collect();
        self.gather(looks, (height, width))
    }

    /// A batch of `count` windows of this size, changed at random.
    pub fn draw(&self, count: usize, window: (usize, usize), random: &mut Random) -> Batch {
        let looks = (0..count).map(|_| self.look(window, random)).collect();
        self.gather(looks, window)
    }

    fn look(&self, (height, width): (usize, usize), random: &mut Random) -> Look {
        let (full_h, full_w) = self.subject.size();
        let (least, most) = self.subject.scales();
        // Evenly spread on a logarithmic scale, near enough: half the draws shrink, half enlarge.
        let scale = if random.chance(0.5) { random.uniform(least, 1.0) } else { random.uniform(1.0, most) };
        let step = 1.0 / scale;
        let tangent = if random.chance(TURNED) { random.uniform(-LARGEST_TURN, LARGEST_TURN) } else { 0.0 };
        let norm = 1.0 + tangent * tangent;
        let (cosine, sine) = ((1.0 - tangent * tangent) / norm, 2.0 * tangent / norm);
        let mirror = if random.chance(0.5) { -1.0 } else { 1.0 };
        let middle = |full: usize, side: usize, unit: f32| {
            0.5 * full as f32 + (unit - 0.5) * (full as f32 - step * side as f32)
        };
        let contrast = random.uniform(0.7, 1.35);
        let level = random.uniform(-0.12, 0.12);
        Look {
            picture: random.below(self.len()),
            middle: (middle(full_h, height, random.unit()), middle(full_w, width, random.unit())),
            down: (step * cosine, step * sine * mirror),
            across: (-step * sine, step * cosine * mirror),
            saturation: if random.chance(GREY) { 0.0 } else { random.uniform(0.4, 1.3) },
            scale: [0; 3].map(|_| contrast * random.uniform(0.88, 1.12)),
            shift: [0; 3].map(|_| level + random.uniform(-0.05, 0.05)),
        }
    }

    fn gather(&self, looks: Vec<Look>, (height, width): (usize, usize)) -> Batch {
        let mut input = Map::zeros(looks.len(), height, width, 3);
        let per = self.subject.labels((height, width));
        let mut labels = vec![IGNORED; looks.len() * per];
        let things = looks.iter().map(|look| self.pictures[look.picture].things.clone()).collect();
        let (len, stride) = (input.image_len(), input.stride());
        let parts = input.values.par_chunks_mut(len).zip(labels.par_chunks_mut(per)).zip(looks);
        parts.for_each(|((out, labels), look)| {
            let picture = &self.pictures[look.picture];
            for (i, cell) in out.chunks_exact_mut(stride).enumerate() {
                let (y, x) = look.place(i / width, i % width, (height, width));
                let colour = picture.colour(y, x, self.subject.size());
                look.develop(colour.unwrap_or_default(), cell);
                if self.subject != Subject::Objects && colour.is_some() {
                    labels[i] = picture.label(y, x, self.subject.size());
                }
            }
            if self.subject == Subject::Objects {
                labels[0] = picture.labels[0];
            }
        });
        Batch { input, labels, things }
    }
}

/// The share of windows that are turned.
const TURNED: f32 = 0.35;
/// The tangent of half the largest turn: a little over fifteen degrees.
const LARGEST_TURN: f32 = 0.132;
/// The share of windows without colour.
const GREY: f32 = 0.05;

/// How a picture is looked at: the window's middle lies at `middle`, one of its pixels down is `down` in the picture, one to the right `across`.
struct Look {
    picture: usize,
    middle: (f32, f32), // (y, x)
    down: (f32, f32),
    across: (f32, f32),
    saturation: f32,
    scale: [f32; 3],
    shift: [f32; 3],
}

impl Look {
    fn plain(picture: usize, (height, width): (usize, usize)) -> Self {
        Self {
            picture,
            middle: (0.5 * height as f32, 0.5 * width as f32),
            down: (1.0, 0.0),
            across: (0.0, 1.0),
            saturation: 1.0,
            scale: [1.0; 3],
            shift: [0.0; 3],
        }
    }

    /// Where the middle of a pixel of the window lies in the picture, in rows and columns.
    fn place(&self, y: usize, x: usize, (height, width): (usize, usize)) -> (f32, f32) {
        let (dy, dx) = (y as f32 + 0.5 - 0.5 * height as f32, x as f32 + 0.5 - 0.5 * width as f32);
        (
            self.middle.0 + dy * self.down.0 + dx * self.across.0 - 0.5,
            self.middle.1 + dy * self.down.1 + dx * self.across.1 - 0.5,
        )
    }

    /// Shifts a colour and writes it normalised.
    fn develop(&self, colour: [f32; 3], to: &mut [f32]) {
        let grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
        for c in 0..3 {
            let value =
                if self.saturation == 1.0 { colour[c] } else { grey + self.saturation * (colour[c] - grey) };
            let value = ((value - 0.5) * self.scale[c] + 0.5 + self.shift[c]).clamp(0.0, 1.0);
            to[c] = (value - PIXEL_MEAN[c]) / PIXEL_DEVIATION[c];
        }
    }
}

impl Picture {
    /// The colour between four pixels, or nothing outside the picture.
    fn colour(&self, y: f32, x: f32, (height, width): (usize, usize)) -> Option<[f32; 3]> {
        if y <= -0.5 || x <= -0.5 || y >= height as f32 - 0.5 || x >= width as f32 - 0.5 {
            return None;
        }
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
    fn label(&self, y: f32, x: f32, (height, width): (usize, usize)) -> u8 {
        let near = |place: f32, count: usize| ((place + 0.5).max(0.0) as usize).min(count - 1);
        self.labels[near(y, height) * width + near(x, width)]
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
