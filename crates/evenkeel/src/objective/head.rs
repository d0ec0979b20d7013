//! Heads: small networks of linear layers on pooled features, loaded from a file.
//!
//! linear, then perhaps batch norm (folded at load), then ReLU, and so on; the last layer stays linear. In a safetensors file:
//! `linear0.weight` `[out, in]`, `linear0.bias`, perhaps `norm0.{weight,bias,running_mean,running_var}`, `linear1.weight`, …

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{Error, Result};

/// What to say where a head is wanted and not given.
pub(crate) fn needs_head(what: &str) -> String {
    format!("needs {what}, which `evenkeel train heads NETWORK --images FOLDER` makes beside the network")
}

/// One layer: y = W x + b.
#[derive(Clone, Debug)]
struct Layer {
    inputs: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// A stack of linear layers with ReLU between.
#[derive(Clone, Debug)]
pub struct Head {
    layers: Vec<Layer>,
}

impl Head {
    /// A head from its layers, each `(weight [out, in] row by row, bias [out])`.
    ///
    /// # Errors
    /// If a layer does not fit the one before it.
    pub fn new(layers: Vec<(Vec<f32>, Vec<f32>)>) -> Result<Self> {
        let build = |(weight, bias): (Vec<f32>, Vec<f32>)| {
            if bias.is_empty() || !weight.len().is_multiple_of(bias.len()) || weight.is_empty() {
                return Err(Error::mismatch(
                    "weights of a head's layer",
                    "a multiple of its bias",
                    weight.len(),
                ));
            }
            Ok(Layer { inputs: weight.len() / bias.len(), weight, bias })
        };
        let layers = layers.into_iter().map(build).collect::<Result<Vec<_>>>()?;
        for pair in layers.windows(2) {
            if pair[1].inputs != pair[0].bias.len() {
                return Err(Error::mismatch("inputs of a head's layer", pair[0].bias.len(), pair[1].inputs));
            }
        }
        if layers.is_empty() {
            return Err(Error::setting("head", "has no layers"));
        }
        Ok(Self { layers })
    }

    /// Reads a head from a safetensors file.
    ///
    /// # Errors
    /// If a tensor is missing, of another type than f32, or does not fit.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(&std::fs::read(path).map_err(Error::io(path))?, path)
    }

    /// Reads a head from the bytes of a safetensors file; `path` is for sentences.
    ///
    /// # Errors
    /// As [`Head::load`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let file =
            SafeTensors::deserialize(bytes).map_err(|e| fail(format!("not a safetensors file: {e}")))?;
        let mut layers = Vec::new();
        while let Ok(weight) = file.tensor(&format!("linear{}.weight", layers.len())) {
            let i = layers.len();
            let outputs = weight.shape().first().copied().unwrap_or(0);
            let weight = floats(&weight).map_err(&fail)?;
            let bias = match file.tensor(&format!("linear{i}.bias")) {
                Ok(bias) => floats(&bias).map_err(&fail)?,
                Err(_) => vec![0.0; outputs],
            };
            let norm = ["weight", "bias", "running_mean", "running_var"]
                .map(|part| file.tensor(&format!("norm{i}.{part}")).ok().map(|t| floats(&t)));
            layers.push(match norm {
                [Some(scale), Some(shift), Some(mean), Some(variance)] => {
                    let parts = [scale, shift, mean, variance].map(|p| p.map_err(&fail));
                    let [scale, shift, mean, variance] = parts;
                    folded((weight, bias), &[scale?, shift?, mean?, variance?])?
                }
                _ => (weight, bias),
            });
        }
        Self::new(layers).map_err(|e| fail(e.to_string()))
    }

    /// How many features it takes.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// How many numbers it gives.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].bias.len()
    }

    /// The numbers for a feature vector, and every layer's input on the way.
    ///
    /// # Errors
    /// If the vector has another length than the head takes.
    pub fn forward(&self, features: &[f32]) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
        if features.len() != self.inputs() {
            return Err(Error::mismatch("features for a head", self.inputs(), features.len()));
        }
        let mut at = features.to_vec();
        let mut inputs = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                at.iter_mut().for_each(|v| *v = v.max(0.0));
            }
            let rows = layer.weight.chunks(layer.inputs).zip(&layer.bias);
            let next =
                rows.map(|(row, bias)| bias + row.iter().zip(&at).map(|(w, v)| w * v).sum::<f32>()).collect();
            inputs.push(std::mem::replace(&mut at, next));
        }
        Ok((at, inputs))
    }

    /// The pullback at the inputs that [`Head::forward`] gave.
    pub fn pullback(&self, inputs: &[Vec<f32>], cotangent: &[f32]) -> Vec<f32> {
        let mut cotangent = cotangent.to_vec();
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let mut back = vec![0.0; layer.inputs];
            for (row, c) in layer.weight.chunks(layer.inputs).zip(&cotangent) {
                back.iter_mut().zip(row).for_each(|(b, w)| *b += w * c);
            }
            if i > 0 {
                // what came in was cut at zero: nothing flows where it was cut
                back.iter_mut().zip(&inputs[i]).for_each(|(b, v)| *b = if *v > 0.0 { *b } else { 0.0 });
            }
            cotangent = back;
        }
        cotangent
    }
}

fn floats(tensor: &TensorView<'_>) -> std::result::Result<Vec<f32>, String> {
    match tensor.dtype() {
        Dtype::F32 => {
            Ok(tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        }
        other => Err(format!("a tensor of type {other:?}; heads are read as F32")),
    }
}

/// Batch norm (scale, shift, mean, variance) folded into the linear layer before it.
fn folded(
    (mut weight, mut bias): (Vec<f32>, Vec<f32>),
    norm: &[Vec<f32>; 4],
) -> Result<(Vec<f32>, Vec<f32>)> {
    let outputs = bias.len();
    if norm.iter().any(|part| part.len() != outputs) || outputs == 0 {
        return Err(Error::mismatch("batch norm of a head's layer", outputs, norm[0].len()));
    }
    let inputs = weight.len() / outputs;
    for o in 0..outputs {
        let factor = norm[0][o] / (norm[3][o] + 1e-5).sqrt();
        weight[o * inputs..][..inputs].iter_mut().for_each(|w| *w *= factor);
        bias[o] = (bias[o] - norm[2][o]) * factor + norm[1][o];
    }
    Ok((weight, bias))
}
