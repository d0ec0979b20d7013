//! Tensors by PyTorch's names, with the wrappers' prefixes taken off.

use std::collections::BTreeMap;

use crate::tensor::Tensor;

/// Prefixes that wrappers put before every name: data parallelism, compilation.
const PREFIXES: [&str; 2] = ["module.", "_orig_mod."];

/// Weights by name.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    tensors: BTreeMap<String, Tensor>,
}

impl Weights {
    /// These tensors. A wrapper's prefix that every name carries is taken off.
    pub fn new(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Weights {
        let mut tensors: BTreeMap<String, Tensor> = tensors.into_iter().collect();
        while let Some(prefix) = PREFIXES
            .iter()
            .find(|&&prefix| !tensors.is_empty() && tensors.keys().all(|name| name.starts_with(prefix)))
        {
            tensors = tensors.into_iter().map(|(name, t)| (name[prefix.len()..].to_string(), t)).collect();
        }
        Weights { tensors }
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// Names and tensors, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (&**name, tensor))
    }
}
