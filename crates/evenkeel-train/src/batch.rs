//! Where batches come from: a pool of pictures, rendered or of a data set, and the windows that are cut out of them.
//!
//! Pictures are kept as bytes while they fit into the memory given to them; those past it are decoded whenever they are drawn. The draw depends
//! on the step's own stream, so a resumed run sees the same batches.

use crate::augment::{Augmentation, Draw};
use crate::error::Result;
use crate::goal::{Goal, Pixels, Task};
use crate::loss::IGNORED;
use crate::map::Map;
use crate::picture::Picture;
use evenkeel::{Image, Random};
use evenkeel_data::dataset::Dataset;
use evenkeel_data::dataset::scenes::{Split, instance_class, object, render};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// A picture in memory, or its position in the data set.
pub(crate) enum Slot {
    Kept(Picture),
    Position(usize),
}

/// Pictures to draw from.
pub struct Pool {
    goal: Goal,
    augmentation: Augmentation,
    slots: Vec<Slot>,
    dataset: Option<Arc<Dataset>>,
}

/// Pictures as a network takes them, and their labels.
pub struct Batch {
    /// The input, normalised.
    pub input: Map,
    /// Labels, picture by picture: classes, or the numbers of instances from 1.
    pub labels: Vec<u16>,
    /// For each picture, the classes of its instances.
    pub things: Vec<Vec<usize>>,
    pixels: Pixels,
}

impl Pool {
    /// Renders the first `count` pictures of a split.
    pub fn render(goal: &Goal, split: Split, count: usize) -> Self {
        let (height, width) = goal.size;
        let slots = (0..count as u64)
            .into_par_iter()
            .map(|number| {
                let scene = || render(split.seed(number), height, width);
                Slot::Kept(match goal.task {
                    Task::Semantic => {
                        let scene = scene();
                        let labels = scene.labels.labels().iter().map(|&l| l as u8).collect();
                        Picture { labels, ..Picture::of_image(&scene.image) }
                    }
                    Task::Instances => {
                        let scene = scene();
                        let things = scene.instance_classes.iter().map(|&c| instance_class(c)).collect();
                        Picture { labels: scene.instances, things, ..Picture::of_image(&scene.image) }
                    }
                    Task::Classification => {
                        let (class, image) = object(split, number, height, width);
                        Picture { class: class as u16, ..Picture::of_image(&image) }
                    }
                })
            })
            .collect();
        Self { goal: goal.clone(), augmentation: Augmentation::rendered(goal.task), slots, dataset: None }
    }

    /// Pictures in memory or of a data set.
    pub(crate) fn of_slots(goal: &Goal, slots: Vec<Slot>, dataset: Arc<Dataset>) -> Self {
        let augmentation = Augmentation::rendered(goal.task);
        Self { goal: goal.clone(), augmentation, slots, dataset: Some(dataset) }
    }

    /// The same pictures, changed by other rules.
    pub fn with(self, augmentation: Augmentation) -> Self {
        Self { augmentation, ..self }
    }

    /// Pictures in the pool.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn picture(&self, index: usize) -> Result<Cow<'_, Picture>> {
        match (&self.slots[index], &self.dataset) {
            (Slot::Kept(picture), _) => Ok(Cow::Borrowed(picture)),
            (Slot::Position(position), Some(dataset)) => {
                Ok(Cow::Owned(Picture::of_sample(&dataset.sample(*position)?)))
            }
            (Slot::Position(_), None) => unreachable!("positions are those of a data set"),
        }
    }

    /// Picture `from` and those after it up to `most`, as they are: as many as share its size. Sides are filled up to the
    /// multiples that the network takes.
    ///
    /// # Errors
    /// If a picture cannot be read.
    pub fn plain(&self, from: usize, most: usize) -> Result<Batch> {
        let first = self.picture(from)?;
        let size = (first.height, first.width);
        let mut pictures = vec![first];
        for index in from + 1..most.min(self.len()) {
            let next = self.picture(index)?;
            if (next.height, next.width) != size {
                break;
            }
            pictures.push(next);
        }
        let multiple = self.goal.multiple;
        let draws = (0..pictures.len()).map(|k| Draw::plain(k, size)).collect();
        Ok(self.gather(
            &pictures,
            draws,
            (size.0.next_multiple_of(multiple), size.1.next_multiple_of(multiple)),
        ))
    }

    /// A batch of `count` windows of this size, changed at random.
    ///
    /// # Errors
    /// If a picture cannot be read.
    pub fn draw(&self, count: usize, window: (usize, usize), random: &mut Random) -> Result<Batch> {
        let mut streams = Vec::with_capacity(count);
        for k in 0..count {
            streams.push((random.below(self.len()), random.fork(k as u64)));
        }
        let pictures: Vec<Cow<'_, Picture>> =
            streams.par_iter().map(|(index, _)| self.picture(*index)).collect::<Result<_>>()?;
        let draws = streams.iter_mut().zip(&pictures).enumerate().map(|(k, ((_, random), picture))| {
            self.augmentation.draw(k, (picture.height, picture.width), window, random)
        });
        let draws = draws.collect();
        Ok(self.gather(&pictures, draws, window))
    }

    fn gather(
        &self,
        pictures: &[Cow<'_, Picture>],
        draws: Vec<Draw>,
        (height, width): (usize, usize),
    ) -> Batch {
        let mut input = Map::zeros(draws.len(), height, width, 3);
        let (task, per) = (self.goal.task, self.goal.task.labels((height, width)));
        let mut labels = vec![IGNORED; draws.len() * per];
        let things = draws.iter().map(|draw| pictures[draw.picture].things.clone()).collect();
        let stride = input.stride();
        // by lines, so that a batch of few pictures occupies all threads
        input.values.par_chunks_mut(width * stride).enumerate().for_each(|(line, out)| {
            let (draw, y) = (&draws[line / height], line % height);
            let picture = &pictures[draw.picture];
            for (x, cell) in out.chunks_exact_mut(stride).enumerate() {
                let (y, x) = draw.place(y, x, (height, width));
                draw.develop(picture.colour(y, x).unwrap_or_default(), cell, &self.goal.pixels);
            }
        });
        if task == Task::Classification {
            labels.iter_mut().zip(&draws).for_each(|(label, draw)| *label = pictures[draw.picture].class);
            return Batch { input, labels, things, pixels: self.goal.pixels };
        }
        labels.par_chunks_mut(width).enumerate().for_each(|(line, out)| {
            let (draw, y) = (&draws[line / height], line % height);
            let picture = &pictures[draw.picture];
            for (x, label) in out.iter_mut().enumerate() {
                let (y, x) = draw.place(y, x, (height, width));
                if picture.holds(y, x) {
                    *label = picture.label(y, x);
                }
            }
        });
        Batch { input, labels, things, pixels: self.goal.pixels }
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
            (from[i * self.input.stride() + c] * self.pixels.deviation[c] + self.pixels.mean[c])
                .clamp(0.0, 1.0)
        };
        let pixels = (0..3).flat_map(|c| (0..height * width).map(move |i| (c, i)));
        Image::new(height, width, pixels.map(|(c, i)| value(c, i)).collect())
    }

    /// Puts an image in the place of a picture.
    pub fn replace(&mut self, index: usize, image: &Image) {
        let (len, stride, pixels) = (self.input.image_len(), self.input.stride(), self.pixels);
        let to = &mut self.input.values[index * len..][..len];
        for c in 0..3 {
            for (i, v) in image.plane(c).iter().enumerate() {
                to[i * stride + c] = (v - pixels.mean[c]) / pixels.deviation[c];
            }
        }
    }

    /// The labels of one picture.
    pub fn labels_of(&self, index: usize) -> &[u16] {
        let per = self.labels.len() / self.input.batch;
        &self.labels[index * per..][..per]
    }
}
