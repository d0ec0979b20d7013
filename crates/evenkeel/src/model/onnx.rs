//! The engine behind the seam: pixels become input as the contract says, and gradients come back through the same rule.

use std::path::Path;

use evenkeel_network as engine;

use super::contract::{Contract, Order};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{JOINT, Network, Tape, Tensor, Traced};

/// A network of the engine's that takes RGB images in [0, 1].
pub struct Onnx {
    network: engine::Network,
    input: String,
    rule: PixelRule,
    fixed: Option<(usize, usize)>,
}

/// input channel k = image channel source[k] · factor[k] + shift[k].
#[derive(Clone, Copy)]
struct PixelRule {
    source: [usize; 3],
    factor: [f32; 3],
    shift: [f32; 3],
    channels_last: bool,
}

fn failed(error: engine::Error) -> Error {
    Error::Network(error.to_string())
}

impl Onnx {
    /// The network under a contract; `path` is used in sentences.
    ///
    /// # Errors
    /// If it does not take one image of three channels.
    pub fn new(network: engine::Network, path: &Path, contract: &Contract) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let (input, dims) = {
            let mut inputs = network.inputs();
            match (inputs.next(), inputs.next()) {
                (Some((name, input)), None) => (name.to_owned(), input.dims.clone()),
                (first, _) => {
                    let count = if first.is_none() { "no" } else { "more than one" };
                    return Err(fail(format!(
                        "the network has {count} input; one image is what is given here"
                    )));
                }
            }
        };
        let rule = &contract.input;
        let source = match rule.order {
            Order::Rgb => [0, 1, 2],
            Order::Bgr => [2, 1, 0],
        };
        let factor = [0, 1, 2].map(|k| rule.scale / rule.std[k]);
        let shift = [0, 1, 2].map(|k| -rule.mean[k] / rule.std[k]);
        let rule = PixelRule { source, factor, shift, channels_last: rule.channels_last };
        let fixed = fixed_size(dims.as_deref(), rule.channels_last).map_err(fail)?;
        Ok(Self { network, input, rule, fixed })
    }

    /// Refuses names the network does not have.
    pub(super) fn check_tensors(&self, names: &[&str]) -> Result<()> {
        let each = names.iter().flat_map(|name| name.split(JOINT));
        each.map(str::trim).try_for_each(|name| self.network.plan(&[name], false).map(|_| ()).map_err(failed))
    }

    fn to_input(&self, image: &Image) -> Result<engine::Tensor> {
        let (h, w) = image.size();
        if let Some((height, width)) = self.fixed.filter(|&size| size != (h, w)) {
            let what = "size of the image (the network accepts only one)";
            return Err(Error::mismatch(what, format!("{width}x{height}"), format!("{w}x{h}")));
        }
        let plane = h * w;
        let mut values = vec![0.0; 3 * plane];
        for k in 0..3 {
            let (factor, shift) = (self.rule.factor[k], self.rule.shift[k]);
            for (i, v) in image.plane(self.rule.source[k]).iter().enumerate() {
                values[if self.rule.channels_last { 3 * i + k } else { k * plane + i }] = factor * v + shift;
            }
        }
        let shape = if self.rule.channels_last { [1, h, w, 3] } else { [1, 3, h, w] };
        Ok(engine::Tensor::new::<f32>(&shape, values))
    }
}

/// The only size the input's declared shape allows, if it says.
fn fixed_size(
    dims: Option<&[engine::graph::Dim]>,
    channels_last: bool,
) -> std::result::Result<Option<(usize, usize)>, String> {
    use engine::graph::Dim;
    let Some(dims) = dims else { return Ok(None) };
    let words = || dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ");
    let [batch, a, b, c] = dims else {
        return Err(format!("its input is [{}], not one image [1, 3, h, w]", words()));
    };
    let (channels, height, width) = if channels_last { (c, a, b) } else { (a, b, c) };
    let fits = |dim: &Dim, wanted: usize| match dim {
        Dim::Fixed(n) => *n == wanted,
        Dim::Free(_) => true,
    };
    if !fits(batch, 1) || !fits(channels, 3) {
        return Err(format!("its input is [{}], not one image of three channels", words()));
    }
    Ok(match (height, width) {
        (Dim::Fixed(h), Dim::Fixed(w)) => Some((*h, *w)),
        _ => None,
    })
}

fn from_engine(tensor: &engine::Tensor, name: &str) -> Result<Tensor> {
    let floats = tensor.values::<f32>().filter(|v| v.len() == tensor.len()).map(<[f32]>::to_vec);
    let whole = || tensor.integers().map(|values| values.into_iter().map(|v| v as f32).collect());
    let values = floats
        .or_else(whole)
        .ok_or_else(|| Error::mismatch(format!("tensor {name}"), "plain f32 values", tensor.describe()))?;
    Tensor::new(tensor.shape().to_vec(), values)
}

/// The single tensors behind names that may join several, and how many each name stands for.
fn single<'a>(names: &[&'a str]) -> (Vec<&'a str>, Vec<usize>) {
    let each: Vec<Vec<&str>> = names.iter().map(|name| name.split(JOINT).map(str::trim).collect()).collect();
    let counts = each.iter().map(Vec::len).collect();
    (each.concat(), counts)
}

/// The answers to single names as the answers to the names they came from.
fn joined(answers: &[engine::Tensor], singles: &[&str], counts: &[usize]) -> Result<Vec<Tensor>> {
    let mut each = answers.iter().zip(singles).map(|(tensor, name)| from_engine(tensor, name));
    let join = |&count: &usize| Ok(Tensor::joined(each.by_ref().take(count).collect::<Result<_>>()?));
    counts.iter().map(join).collect()
}

struct OnnxTape<'n> {
    onnx: &'n Onnx,
    trace: engine::Trace,
    /// The single tensors behind each name asked for, by place and name.
    names: Vec<Vec<(usize, String)>>,
    pixels: usize,
}

impl Tape for OnnxTape<'_> {
    fn pullback(&self, cotangents: &[(usize, &[f32])]) -> Result<Vec<f32>> {
        let mut named = Vec::new();
        for &(which, mut values) in cotangents {
            for (place, name) in &self.names[which] {
                let tensor = &self.trace.tensors()[*place];
                let (own, rest) = values.split_at(tensor.len().min(values.len()));
                values = rest;
                // Tensors that no loss looks at, among them some that no gradient passes.
                if own.iter().all(|value| *value == 0.0) {
                    continue;
                }
                named.push((name.as_str(), engine::Tensor::new::<f32>(tensor.shape(), own.to_vec())));
            }
        }
        let mut out = vec![0.0; 3 * self.pixels];
        if named.is_empty() {
            return Ok(out);
        }
        let gradients = self.trace.pullback(&named).map_err(failed)?;
        let Some((name, gradient)) = gradients.iter().find(|(name, _)| *name == self.onnx.input) else {
            return Ok(out);
        };
        let gradient = from_engine(gradient, name)?;
        let rule = &self.onnx.rule;
        for k in 0..3 {
            for i in 0..self.pixels {
                let at = if rule.channels_last { 3 * i + k } else { k * self.pixels + i };
                out[rule.source[k] * self.pixels + i] = rule.factor[k] * gradient.data()[at];
            }
        }
        Ok(out)
    }
}

impl Network for Onnx {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.fixed
    }

    fn run(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>> {
        let (singles, counts) = single(tensors);
        let answers = self.network.run(&[(&self.input, self.to_input(image)?)], &singles).map_err(failed)?;
        joined(&answers, &singles, &counts)
    }

    fn trace(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'_>> {
        let (singles, counts) = single(tensors);
        let trace = self.network.trace(&[(&self.input, self.to_input(image)?)], &singles).map_err(failed)?;
        let answers = joined(trace.tensors(), &singles, &counts)?;
        let mut places = singles.iter().map(|name| name.to_string()).enumerate();
        let names = counts.iter().map(|&count| places.by_ref().take(count).collect()).collect();
        let tape = OnnxTape { onnx: self, trace, names, pixels: image.height() * image.width() };
        Ok(Traced { tensors: answers, tape: Box::new(tape) })
    }
}
