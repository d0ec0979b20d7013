//! Toy networks for tests: a linear classifier, where every optimum is known in closed form, and a small convolutional net.
//!
//! The convolutional net is a few 3x3 convolutions (padding 1, stride 2), each followed by ReLU or tanh: its last map is the tensor
//! `features`; `scores` is a linear layer on the map's means; `map` is the same layer at every cell. Gradients are exact.

use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{Cotangents, Network, Tape, Tensor, Traced};
use crate::random::Random;

/// scores = W · pixels + b, for images of one size. `features` are the pixels themselves.
pub(crate) struct Linear {
    pub(crate) size: (usize, usize),
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Linear {
    pub(crate) fn random(size: (usize, usize), classes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let weight = (0..classes * 3 * size.0 * size.1).map(|_| random.normal()).collect();
        Self { size, weight, bias: vec![0.0; classes] }
    }

    pub(crate) fn row(&self, class: usize) -> &[f32] {
        let inputs = 3 * self.size.0 * self.size.1;
        &self.weight[class * inputs..][..inputs]
    }
}

struct LinearTape<'n> {
    network: &'n Linear,
    names: Vec<String>,
}

impl Tape for LinearTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        let mut out = vec![0.0; 3 * self.network.size.0 * self.network.size.1];
        for (which, cotangent) in cotangents {
            if self.names[which] == "features" {
                out.iter_mut().zip(&cotangent).for_each(|(o, c)| *o += c);
            } else {
                for (class, c) in cotangent.iter().enumerate() {
                    out.iter_mut().zip(self.network.row(class)).for_each(|(o, w)| *o += c * w);
                }
            }
        }
        Ok(out)
    }
}

impl Network for Linear {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        Some(self.size)
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        images.iter().map(|image| self.answer(image, tensors)).collect()
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let trace = |tensors_of| {
            let names = tensors.iter().map(|n| n.to_string()).collect();
            let tape: Box<dyn Tape> = Box::new(LinearTape { network: self, names });
            Traced { tensors: tensors_of, tape }
        };
        Ok(self.run(images, tensors)?.into_iter().map(trace).collect())
    }
}

impl Linear {
    fn answer(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>> {
        if image.size() != self.size {
            return Err(Error::mismatch(
                "size of the image",
                format!("{:?}", self.size),
                format!("{:?}", image.size()),
            ));
        }
        let dot =
            |row: &[f32]| row.iter().zip(image.pixels()).map(|(w, x)| f64::from(w * x)).sum::<f64>() as f32;
        let tensor = |name: &&str| match *name {
            "features" => Tensor::new(vec![1, 3, self.size.0, self.size.1], image.pixels().to_vec()),
            "scores" => {
                let scores = self.bias.iter().enumerate().map(|(c, b)| b + dot(self.row(c))).collect();
                Tensor::new(vec![1, self.bias.len()], scores)
            }
            other => Err(Error::network(format!("no tensor {other}"))),
        };
        tensors.iter().map(tensor).collect()
    }
}

/// One 3x3 convolution, padding 1, stride 2: `weight` is `[out, in, 3, 3]`.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) inputs: usize,
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// A small convolutional net.
#[derive(Clone)]
pub(crate) struct Conv {
    pub(crate) layers: Vec<Layer>,
    pub(crate) last_weight: Vec<f32>,
    pub(crate) last_bias: Vec<f32>,
    /// tanh instead of ReLU, so that second derivatives exist.
    pub(crate) smooth: bool,
}

#[derive(Clone)]
struct Map {
    channels: usize,
    height: usize,
    width: usize,
    data: Vec<f32>,
}

impl Layer {
    fn forward(&self, x: &Map) -> Map {
        let (height, width) = (x.height.div_ceil(2), x.width.div_ceil(2));
        let mut out = Map {
            channels: self.bias.len(),
            height,
            width,
            data: vec![0.0; self.bias.len() * height * width],
        };
        self.each(x.height, x.width, |o, i, w| out.data[o] += w * x.data[i]);
        for (channel, bias) in out.data.chunks_mut(height * width).zip(&self.bias) {
            channel.iter_mut().for_each(|v| *v += bias);
        }
        out
    }

    fn pullback(&self, size: (usize, usize), cotangent: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.inputs * size.0 * size.1];
        self.each(size.0, size.1, |o, i, w| out[i] += w * cotangent[o]);
        out
    }

    /// Every (output, input, weight) of the convolution.
    fn each(&self, h: usize, w: usize, mut visit: impl FnMut(usize, usize, f32)) {
        let (height, width) = (h.div_ceil(2), w.div_ceil(2));
        for (tap, &weight) in self.weight.iter().enumerate() {
            let (o, c, ky, kx) = (tap / 9 / self.inputs, tap / 9 % self.inputs, tap % 9 / 3, tap % 3);
            for y in 0..height {
                for x in 0..width {
                    let (sy, sx) = (2 * y + ky, 2 * x + kx);
                    if (1..=h).contains(&sy) && (1..=w).contains(&sx) {
                        visit((o * height + y) * width + x, (c * h + sy - 1) * w + sx - 1, weight);
                    }
                }
            }
        }
    }
}

impl Conv {
    pub(crate) fn random(channels: &[usize], classes: usize, smooth: bool, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut inputs = 3;
        let mut draw =
            |count: usize, scale: f32| (0..count).map(|_| scale * random.normal()).collect::<Vec<_>>();
        let mut layers = Vec::new();
        for &outputs in channels {
            let weight = draw(outputs * inputs * 9, (2.0 / (9 * inputs) as f32).sqrt());
            layers.push(Layer { inputs, weight, bias: draw(outputs, 0.1) });
            inputs = outputs;
        }
        let last_weight = draw(classes * inputs, 1.5);
        Self { layers, last_weight, last_bias: draw(classes, 0.1), smooth }
    }

    fn bend(&self, v: f32) -> f32 {
        if self.smooth { v.tanh() } else { v.max(0.0) }
    }

    /// Every layer's bent output.
    fn maps(&self, image: &Image) -> Vec<Map> {
        let mut at =
            Map { channels: 3, height: image.height(), width: image.width(), data: image.pixels().to_vec() };
        let mut maps = Vec::new();
        for layer in &self.layers {
            at = layer.forward(&at);
            at.data.iter_mut().for_each(|v| *v = self.bend(*v));
            maps.push(at.clone());
        }
        maps
    }

    fn tensor(&self, name: &str, features: &Map) -> Result<Tensor> {
        let (cells, classes) = (features.height * features.width, self.last_bias.len());
        let linear = |at: &dyn Fn(usize) -> f32, class: usize| {
            let row = &self.last_weight[class * features.channels..][..features.channels];
            self.last_bias[class] + row.iter().enumerate().map(|(c, w)| w * at(c)).sum::<f32>()
        };
        match name {
            "features" => Tensor::new(
                vec![1, features.channels, features.height, features.width],
                features.data.clone(),
            ),
            "scores" => {
                let mean = |c: usize| features.data[c * cells..][..cells].iter().sum::<f32>() / cells as f32;
                Tensor::new(vec![1, classes], (0..classes).map(|k| linear(&mean, k)).collect())
            }
            "map" => {
                let data = (0..classes * cells)
                    .map(|i| linear(&|c| features.data[c * cells + i % cells], i / cells))
                    .collect();
                Tensor::new(vec![1, classes, features.height, features.width], data)
            }
            other => Err(Error::network(format!("no tensor {other}"))),
        }
    }
}

struct ConvTape<'n> {
    network: &'n Conv,
    names: Vec<String>,
    size: (usize, usize),
    maps: Vec<Map>,
}

impl Tape for ConvTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        let features = &self.maps[self.maps.len() - 1];
        let (cells, channels) = (features.height * features.width, features.channels);
        let mut back = vec![0.0; features.data.len()];
        for (which, cotangent) in cotangents {
            for (i, c) in cotangent.iter().enumerate() {
                match self.names[which].as_str() {
                    "features" => back[i] += c,
                    "scores" => (0..channels * cells).for_each(|j| {
                        back[j] += c * self.network.last_weight[i * channels + j / cells] / cells as f32;
                    }),
                    _ => (0..channels).for_each(|k| {
                        back[k * cells + i % cells] += c * self.network.last_weight[i / cells * channels + k];
                    }),
                }
            }
        }
        for (i, layer) in self.network.layers.iter().enumerate().rev() {
            let bent = &self.maps[i].data;
            let slope = |v: f32| if self.network.smooth { 1.0 - v * v } else { f32::from(u8::from(v > 0.0)) };
            back.iter_mut().zip(bent).for_each(|(b, v)| *b *= slope(*v));
            let size = if i == 0 { self.size } else { (self.maps[i - 1].height, self.maps[i - 1].width) };
            back = layer.pullback(size, &back);
        }
        Ok(back)
    }
}

impl Network for Conv {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        None
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        Ok(self.trace(images, tensors)?.into_iter().map(|traced| traced.tensors).collect())
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let trace = |image: &&Image| {
            let maps = self.maps(image);
            let features = &maps[maps.len() - 1];
            let answers = tensors.iter().map(|name| self.tensor(name, features)).collect::<Result<_>>()?;
            let names = tensors.iter().map(|n| n.to_string()).collect();
            let tape: Box<dyn Tape> = Box::new(ConvTape { network: self, names, size: image.size(), maps });
            Ok(Traced { tensors: answers, tape })
        };
        images.iter().map(trace).collect()
    }
}

/// A seeded image well inside [0, 1].
pub(crate) fn picture(size: (usize, usize), seed: u64) -> Image {
    let mut random = Random::new(seed);
    Image::new(size.0, size.1, (0..3 * size.0 * size.1).map(|_| random.uniform(0.1, 0.9)).collect()).unwrap()
}
