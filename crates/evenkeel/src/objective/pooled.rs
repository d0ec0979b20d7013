//! Features averaged over space: what invariance compares and heads read.

use super::Cotangent;
use crate::error::Result;
use crate::network::{Extents, Tensor};

/// The mean of every channel of feature maps, one map after the other.
#[derive(Clone, Debug)]
pub struct Pooled {
    values: Vec<f32>,
    levels: Vec<Extents>,
}

impl Pooled {
    /// The means of tensors of features.
    ///
    /// # Errors
    /// If one is no map or vector of one image.
    pub fn of(parts: &[Tensor]) -> Result<Self> {
        let levels = parts.iter().map(|part| part.extents("features")).collect::<Result<Vec<_>>>()?;
        let mean = |channel: &[f32]| {
            (channel.iter().map(|&v| f64::from(v)).sum::<f64>() / channel.len() as f64) as f32
        };
        let channels = parts.iter().zip(&levels).flat_map(|(part, level)| part.data().chunks(level.cells()));
        Ok(Self { values: channels.map(mean).collect(), levels })
    }

    /// The means.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The cotangent on each map, given the one on the means.
    pub fn pullback(&self, mut cotangent: &[f32]) -> Vec<Cotangent> {
        let level = |level: &Extents| {
            let (own, rest) = cotangent.split_at(level.channels);
            cotangent = rest;
            let cells = level.cells();
            own.iter().flat_map(|c| std::iter::repeat_n(c / cells as f32, cells)).collect()
        };
        self.levels.iter().map(level).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_maps_are_averaged_each_by_itself() {
        let wide = Tensor::new(vec![1, 2, 1, 2], vec![1.0, 3.0, 5.0, 9.0]).unwrap();
        let vector = Tensor::new(vec![1, 1], vec![4.0]).unwrap();
        let pooled = Pooled::of(&[wide.clone(), vector]).unwrap();
        assert_eq!(pooled.values(), [2.0, 7.0, 4.0]);
        assert_eq!(pooled.pullback(&[1.0, -4.0, 3.0]), [vec![0.5, 0.5, -2.0, -2.0], vec![3.0]]);
        assert_eq!(Pooled::of(&[wide]).unwrap().values(), [2.0, 7.0]);
        assert!(Pooled::of(&[Tensor::new(vec![2, 2, 1, 1], vec![0.0; 4]).unwrap()]).is_err());
    }
}
