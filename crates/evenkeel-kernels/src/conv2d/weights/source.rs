//! Where the numbers of a convolution's weights come from: values that others may own too, and what was folded into them.
//!
//! `w[o][j] = v[o][j] * f1[o] * f2[o] ...`, in this order, or `v[j][o]` if the values lie turned. Nothing is copied until a form is
//! packed, so a network whose batch norms were folded in holds its weights once.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Values that may have other owners.
pub type Shared = Arc<dyn AsRef<[f32]> + Send + Sync>;

/// The values of weights, and what is done to them on the way into a packed form.
#[derive(Clone)]
pub struct Source {
    values: Shared,
    turned: bool,
    factors: Vec<Vec<f32>>,
    flushed: bool,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} values)", self.values().len())
    }
}

impl From<Vec<f32>> for Source {
    fn from(values: Vec<f32>) -> Source {
        Source::new(Arc::new(values))
    }
}

impl Source {
    /// Values laid out as `[outputs][weights of an output]`.
    pub fn new(values: Shared) -> Source {
        Source { values, turned: false, factors: Vec::new(), flushed: false }
    }

    /// The same values read as `[weights of an output][outputs]`.
    #[must_use]
    pub fn turned(self) -> Source {
        Source { turned: !self.turned, ..self }
    }

    /// Each output's weights times its factor.
    #[must_use]
    pub fn scaled(mut self, factors: Vec<f32>) -> Source {
        self.factors.push(factors);
        self
    }

    /// What comes out below the smallest normal number is zero.
    #[must_use]
    pub fn flushed(self) -> Source {
        Source { flushed: true, ..self }
    }

    /// Whether both give the same weights, from the same memory.
    pub fn same(&self, other: &Source) -> bool {
        let bits = |source: &Source| -> Vec<Vec<u32>> {
            source.factors.iter().map(|f| f.iter().map(|f| f.to_bits()).collect()).collect()
        };
        self.values().as_ptr_range() == other.values().as_ptr_range()
            && (self.turned, self.flushed) == (other.turned, other.flushed)
            && bits(self) == bits(other)
    }

    /// The values as they lie.
    pub(super) fn values(&self) -> &[f32] {
        (*self.values).as_ref()
    }

    /// Whether there is one factor for each of `outputs` outputs in every set.
    pub(super) fn fits(&self, outputs: usize) -> bool {
        self.factors.iter().all(|factors| factors.len() == outputs)
    }

    /// The weights of `outputs` outputs, `[outputs][weights of an output]`.
    pub(super) fn all(&self, outputs: usize) -> Cow<'_, [f32]> {
        let values = self.values();
        if !self.turned && self.factors.is_empty() && !self.flushed {
            return Cow::Borrowed(values);
        }
        let mut all = vec![0.0; values.len()];
        let each = values.len() / outputs.max(1);
        for (output, row) in all.chunks_exact_mut(each.max(1)).enumerate() {
            self.copy(outputs, output, 0, row);
        }
        Cow::Owned(all)
    }

    /// Writes the weights of one of `outputs` outputs from place `first` on.
    pub(crate) fn copy(&self, outputs: usize, output: usize, first: usize, into: &mut [f32]) {
        let values = self.values();
        if self.turned {
            for (i, weight) in into.iter_mut().enumerate() {
                *weight = values[(first + i) * outputs + output];
            }
        } else {
            let each = values.len() / outputs;
            into.copy_from_slice(&values[output * each + first..][..into.len()]);
        }
        for factors in &self.factors {
            let factor = factors[output];
            into.iter_mut().for_each(|weight| *weight *= factor);
        }
        if self.flushed {
            for weight in into {
                *weight = if weight.abs() < f32::MIN_POSITIVE { 0.0 } else { *weight };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_turns_and_flushes_are_those_of_plain_arithmetic() {
        let values: Vec<f32> = (0..12).map(|i| i as f32 - 5.5).collect();
        let factors = vec![2.0, 1e-39, -0.5];
        let source = Source::from(values.clone()).scaled(factors.clone()).scaled(vec![3.0; 3]);
        let want: Vec<f32> = (0..12).map(|i| values[i] * factors[i / 4] * 3.0).collect();
        assert_eq!(&*source.all(3), want);
        let zeroed: Vec<f32> = want.iter().map(|w| if w.is_subnormal() { 0.0 } else { *w }).collect();
        assert_ne!(zeroed, want);
        assert_eq!(&*source.clone().flushed().all(3), zeroed);
        let turned: Vec<f32> = (0..12).map(|i| values[i % 4 * 3 + i / 4]).collect();
        assert_eq!(&*Source::from(values.clone()).turned().all(3), turned);
        assert!(source.same(&source.clone()) && !source.same(&source.clone().flushed()));
        assert!(!source.same(&Source::from(values)), "other memory");
    }
}
