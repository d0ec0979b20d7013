//! The network a `model` command is about, and inputs to run it on.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel_network::graph::{Dim, Input};
use evenkeel_network::{DType, Limits, Network, Tensor};

use crate::size;

/// The network that stands in when none is named: small, and with random weights.
const EMBEDDED: &[u8] = include_bytes!("../../../../testdata/networks/dilated.onnx");

/// Which network, at which size.
#[derive(Debug, clap::Args)]
pub(crate) struct NetworkArgs {
    /// The network: ONNX, or an imported checkpoint; without one, a small network that comes with the program (random weights)
    pub(crate) model: Option<PathBuf>,
    /// Width and height of the input where the network leaves them free, such as 680x340
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size::parse)]
    pub(crate) size: Option<(usize, usize)>,
    /// Images at a time where the network leaves it free
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) batch: u16,
}

impl NetworkArgs {
    pub(crate) fn name(&self) -> String {
        self.model.as_ref().map_or("the embedded network".into(), |path| path.display().to_string())
    }

    pub(crate) fn load(&self) -> Result<Network> {
        match &self.model {
            Some(path) => Network::load(path).with_context(|| format!("cannot load {}", path.display())),
            None => Ok(Network::from_bytes(EMBEDDED.to_vec(), Limits::default())?),
        }
    }

    /// Seeded inputs of the declared shapes: floats in 0..1, zeros for everything else.
    pub(crate) fn inputs(&self, network: &Network) -> Result<Vec<(String, Tensor)>> {
        network
            .inputs()
            .enumerate()
            .map(|(seed, (name, input))| {
                let shape = self.shape(name, input)?;
                let len: usize = shape.iter().product();
                let tensor = match input.dtype {
                    DType::F32 => Tensor::new(&shape, noise(len, seed as u32)),
                    DType::F64 => Tensor::new(
                        &shape,
                        noise(len, seed as u32).iter().map(|&v| v.into()).collect::<Vec<f64>>(),
                    ),
                    DType::I32 => Tensor::new(&shape, vec![0i32; len]),
                    DType::I64 => Tensor::new(&shape, vec![0i64; len]),
                    DType::U8 => Tensor::new(&shape, vec![0u8; len]),
                    DType::I8 => Tensor::new(&shape, vec![0i8; len]),
                    DType::Bool => Tensor::new(&shape, vec![evenkeel_kernels::buffer::Flag::default(); len]),
                };
                Ok((name.to_string(), tensor))
            })
            .collect()
    }

    /// The shape of an input: what the file fixes, and `--batch` and `--size` (224x224 if not given) for what it leaves free.
    fn shape(&self, name: &str, input: &Input) -> Result<Vec<usize>> {
        let Some(dims) = &input.dims else { bail!("{}: input {name:?} declares no shape", self.name()) };
        let (height, width) = self.size.unwrap_or((224, 224));
        let free = |axis: usize| match (axis, dims.len()) {
            (0, _) => usize::from(self.batch),
            (2, 4) => height,
            (3, 4) => width,
            (2, 3) => width,
            _ => 1,
        };
        let shape: Vec<usize> = dims
            .iter()
            .enumerate()
            .map(|(axis, dim)| match dim {
                Dim::Fixed(size) => *size,
                Dim::Free(_) => free(axis),
            })
            .collect();
        let asked = self.size.filter(|_| dims.len() == 4);
        if let Some((h, w)) = asked.filter(|&(h, w)| shape[2..] != [h, w]) {
            let fixed = (shape[2], shape[3]);
            let (given, cure) = (size::words((h, w)), size::cure((h, w), fixed));
            bail!(
                "{}: input {name:?} has the fixed size {}; it cannot be run at {given}; {cure}",
                self.name(),
                size::words(fixed)
            );
        }
        let len = shape.iter().try_fold(1usize, |len, &dim| len.checked_mul(dim));
        if len.is_none_or(|len| len > 1 << 32) {
            bail!("{}: input {name:?} of shape {shape:?} is too large", self.name());
        }
        Ok(shape)
    }
}

/// Seeded numbers in 0..1.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..len).map(|_| next()).collect()
}

/// Names and tensors as a call takes them.
pub(crate) fn borrowed(inputs: &[(String, Tensor)]) -> Vec<(&str, Tensor)> {
    inputs.iter().map(|(name, tensor)| (&**name, tensor.clone())).collect()
}
