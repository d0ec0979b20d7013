//! The pixel rule in front of an executor: pixels become input, and gradients come back through the same rule.
//!
//! input channel k = image channel source\[k\] · factor\[k\] + shift\[k\]. This is the only place where pixels become input.

use super::{
    BatchTape, ComparedThere, Comparison, Cotangents, Executor, Network, Tape, Tensor, Traced, TracedBatch,
};
use crate::error::{Error, Result};
use crate::image::Image;

/// How pixels become input: input channel k = image channel `source[k]` · `factor[k]` + `shift[k]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PixelRule {
    /// The image's channel (0 red, 1 green, 2 blue) that each input channel is made of.
    pub source: [usize; 3],
    /// What each is multiplied by.
    pub factor: [f32; 3],
    /// What is added then.
    pub shift: [f32; 3],
    /// Whether channels come last in the input.
    pub channels_last: bool,
}

impl PixelRule {
    /// The input for an image: `[1, 3, h, w]`, or `[1, h, w, 3]`.
    ///
    /// # Errors
    /// None that a valid image can cause.
    pub fn input(&self, image: &Image) -> Result<Tensor> {
        let (h, w) = image.size();
        let plane = h * w;
        let mut values = vec![0.0; 3 * plane];
        for k in 0..3 {
            let (factor, shift) = (self.factor[k], self.shift[k]);
            let pixels = image.plane(self.source[k]).iter();
            match self.channels_last {
                true => pixels.enumerate().for_each(|(i, v)| values[3 * i + k] = factor * v + shift),
                false => {
                    let own = values[k * plane..][..plane].iter_mut();
                    own.zip(pixels).for_each(|(value, v)| *value = factor * v + shift);
                }
            }
        }
        let shape = if self.channels_last { [1, h, w, 3] } else { [1, 3, h, w] };
        Tensor::new(shape.to_vec(), values)
    }

    /// From the cotangent of the input to that of the image, `[3, h, w]`.
    fn pullback(&self, gradient: Vec<f32>) -> Vec<f32> {
        let plane = gradient.len() / 3;
        let mut out = vec![0.0; gradient.len()];
        for k in 0..3 {
            let own = out[self.source[k] * plane..][..plane].iter_mut();
            match self.channels_last {
                true => own.enumerate().for_each(|(i, value)| *value = self.factor[k] * gradient[3 * i + k]),
                false => {
                    own.zip(&gradient[k * plane..]).for_each(|(value, g)| *value = self.factor[k] * g);
                }
            }
        }
        out
    }
}

/// An executor that takes RGB images in [0, 1].
pub struct Preprocessed<E> {
    executor: E,
    rule: PixelRule,
    fixed: Option<(usize, usize)>,
}

impl<E: Executor> Preprocessed<E> {
    /// The executor behind a pixel rule.
    ///
    /// # Errors
    /// If it does not take one image of three channels.
    pub fn new(executor: E, rule: PixelRule) -> Result<Self> {
        let fixed = fixed_size(executor.input_dims().as_deref(), rule.channels_last)?;
        Ok(Self { executor, rule, fixed })
    }

    /// The executor.
    pub fn executor(&self) -> &E {
        &self.executor
    }

    fn inputs(&self, images: &[&Image]) -> Result<Vec<Tensor>> {
        let input = |image: &&Image| {
            let (h, w) = image.size();
            if let Some((height, width)) = self.fixed.filter(|&size| size != (h, w)) {
                let what = "size of the image (the network accepts only one)";
                return Err(Error::mismatch(what, format!("{width}x{height}"), format!("{w}x{h}")));
            }
            self.rule.input(image)
        };
        images.iter().map(input).collect()
    }
}

/// The only size that the declared dimensions allow, if they say.
fn fixed_size(dims: Option<&[Option<usize>]>, channels_last: bool) -> Result<Option<(usize, usize)>> {
    let Some(dims) = dims else { return Ok(None) };
    let refused = |expected: &str| {
        let dim = |dim: &Option<usize>| dim.map_or("?".to_owned(), |n| n.to_string());
        let got = format!("[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", "));
        Err(Error::mismatch("input of the network", expected, got))
    };
    let [batch, a, b, c] = dims else { return refused("one image [1, 3, h, w]") };
    let (channels, height, width) = if channels_last { (c, a, b) } else { (a, b, c) };
    if batch.is_some_and(|n| n != 1) || channels.is_some_and(|n| n != 3) {
        return refused("one image of three channels");
    }
    Ok(height.zip(*width))
}

struct PreprocessedTape<'n> {
    rule: PixelRule,
    tape: Box<dyn Tape + 'n>,
}

impl Tape for PreprocessedTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        Ok(self.rule.pullback(self.tape.pullback(cotangents)?))
    }
}

struct PreprocessedBatch<'n> {
    rule: PixelRule,
    tape: Box<dyn BatchTape + 'n>,
}

impl BatchTape for PreprocessedBatch<'_> {
    fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
        let gradients = self.tape.pullback(cotangents)?;
        Ok(gradients.into_iter().map(|gradient| self.rule.pullback(gradient)).collect())
    }
}

impl<E: Executor> Network for Preprocessed<E> {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.fixed
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        self.executor.run(self.inputs(images)?, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let traced = self.executor.trace(self.inputs(images)?, tensors)?;
        let wrap = |Traced { tensors, tape }| {
            let tape: Box<dyn Tape> = Box::new(PreprocessedTape { rule: self.rule, tape });
            Traced { tensors, tape }
        };
        Ok(traced.into_iter().map(wrap).collect())
    }

    fn prefers_batches(&self) -> bool {
        self.executor.prefers_batches()
    }

    fn trace_batch(&self, images: &[&Image], tensors: &[&str]) -> Result<TracedBatch<'_>> {
        let TracedBatch { tensors, tape } = self.executor.trace_batch(self.inputs(images)?, tensors)?;
        Ok(TracedBatch { tensors, tape: Box::new(PreprocessedBatch { rule: self.rule, tape }) })
    }

    fn compares(&self) -> bool {
        self.executor.compares()
    }

    fn compare(&self, images: &[&Image], tensors: &[&str], asked: &Comparison) -> Result<ComparedThere<'_>> {
        let made = self.executor.compare(self.inputs(images)?, tensors, asked)?;
        let wrap = |tape| Box::new(PreprocessedBatch { rule: self.rule, tape }) as Box<dyn BatchTape>;
        Ok(ComparedThere { tape: made.tape.map(wrap), ..made })
    }
}
