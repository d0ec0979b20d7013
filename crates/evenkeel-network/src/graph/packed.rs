//! The weights that plans of one graph share: each plan fuses for itself, but what comes out with the same values is packed once.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use evenkeel_kernels::conv2d::{Source, Weights};

use crate::tensor::Tensor;

/// The weights of the plans that are alive.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedWeights(Arc<Mutex<Vec<Weak<Weights>>>>);

impl PackedWeights {
    /// The weights of this source and these sizes: those of another plan, if one has the same.
    pub(super) fn of(&self, source: Source, sizes: Sizes) -> Arc<Weights> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|weights| weights.strong_count() > 0);
        let same = |weights: &Arc<Weights>| {
            let [out_c, in_c] = sizes.channels;
            let has = (weights.out_c(), weights.in_c(), weights.kernel(), weights.groups());
            has == (out_c, in_c, sizes.kernel, sizes.groups) && weights.source().same(&source)
        };
        if let Some(weights) = known.iter().filter_map(Weak::upgrade).find(same) {
            return weights;
        }
        let [out_c, in_c] = sizes.channels;
        let weights = Arc::new(Weights::of(source, out_c, in_c, sizes.kernel, sizes.groups));
        known.push(Arc::downgrade(&weights));
        weights
    }
}

/// The sizes of weights `[out_c][in_c / groups][kh][kw]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Output and input channels, all groups together.
    pub channels: [usize; 2],
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Groups.
    pub groups: usize,
}

/// The values of a constant as weights, which are not copied.
pub(super) fn source(constant: &Tensor) -> Option<Source> {
    constant.values::<f32>()?;
    Some(Source::new(Arc::new(Constant(constant.clone()))))
}

/// A tensor of floats.
struct Constant(Tensor);

impl AsRef<[f32]> for Constant {
    fn as_ref(&self) -> &[f32] {
        self.0.values().unwrap_or_default()
    }
}
