//! A dense tensor of one image, as a network gives it and a task or an objective reads it.
//!
//! Values lie row by row; the leading dimension of one is kept. They are owned, or shared with the executor that made them, so that
//! nothing is copied on the way from an engine to the method. Several tensors may be joined to one (the outputs of an instance
//! segmenter): the joined tensor has the shape `[1, values]` and gives its parts each with the shape it had.

use std::fmt::{Debug, Display};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// A dense tensor of one image. Cloning shares nothing but what was shared already.
#[derive(Clone)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

/// Values that an executor owns and lends as long as the tensor lives.
pub type SharedValues = Arc<dyn AsRef<[f32]> + Send + Sync>;

#[derive(Clone)]
enum Values {
    Owned(Vec<f32>),
    Shared(SharedValues),
    /// Several tensors; their common slice is only made for those who ask for it.
    Joined {
        parts: Vec<Tensor>,
        whole: OnceLock<Vec<f32>>,
    },
}

impl Tensor {
    /// A tensor of these values.
    ///
    /// # Errors
    /// If their number is not the product of the shape.
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Result<Self> {
        check_count(&shape, data.len())?;
        Ok(Self { shape, values: Values::Owned(data) })
    }

    /// A tensor of values that someone else owns, not copied.
    ///
    /// # Errors
    /// If their number is not the product of the shape.
    pub fn shared(shape: Vec<usize>, values: SharedValues) -> Result<Self> {
        check_count(&shape, (*values).as_ref().len())?;
        Ok(Self { shape, values: Values::Shared(values) })
    }

    /// Several tensors as one; a single one stays what it is. Nothing is copied until [`Tensor::data`] is asked for.
    pub fn joined(mut tensors: Vec<Self>) -> Self {
        if tensors.len() == 1 {
            return tensors.remove(0);
        }
        let shape = vec![1, tensors.iter().map(Self::len).sum()];
        Self { shape, values: Values::Joined { parts: tensors, whole: OnceLock::new() } }
    }

    /// Shape and values of each part; a plain tensor is its own only part.
    pub fn parts(&self) -> Vec<(&[usize], &[f32])> {
        match &self.values {
            Values::Joined { parts, .. } => parts.iter().map(|part| (part.shape(), part.data())).collect(),
            _ => vec![(&self.shape, self.data())],
        }
    }

    /// The parts as tensors of their own, if there are several.
    pub fn split(&self) -> Option<Vec<Self>> {
        match &self.values {
            Values::Joined { parts, .. } => Some(parts.clone()),
            _ => None,
        }
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values; those of joined tensors one after the other (a copy, which [`Tensor::parts`] spares).
    pub fn data(&self) -> &[f32] {
        match &self.values {
            Values::Owned(values) => values,
            Values::Shared(values) => (**values).as_ref(),
            Values::Joined { parts, whole } => {
                whole.get_or_init(|| parts.iter().flat_map(|part| part.data().iter().copied()).collect())
            }
        }
    }

    /// The values, given away; only shared and joined ones are copied.
    pub fn into_data(self) -> Vec<f32> {
        match self.values {
            Values::Owned(values) => values,
            _ => self.data().to_vec(),
        }
    }

    /// The tensor as a map of one image: (channels, height, width). `[1, c]` and `[c]` are maps of one cell.
    ///
    /// # Errors
    /// If it holds more than one image or has another rank; `name` is used in the message.
    pub fn extents(&self, name: impl Display) -> Result<Extents> {
        if let Values::Joined { parts, .. } = &self.values {
            let got = format!("{} tensors joined", parts.len());
            return Err(Error::mismatch(format!("tensor {name}"), "one map or vector", got));
        }
        match *self.shape.as_slice() {
            [1, channels, height, width] => Ok(Extents { channels, height, width }),
            [1, channels] | [channels] => Ok(Extents { channels, height: 1, width: 1 }),
            _ => Err(Error::mismatch(
                format!("tensor {name}"),
                "a map [1, c, h, w] or a vector [1, c]",
                format!("{:?}", self.shape),
            )),
        }
    }

    /// Refuses NaN and infinity.
    ///
    /// # Errors
    /// Naming the tensor.
    pub fn check_finite(&self, name: impl Display) -> Result<()> {
        match self.parts().iter().all(|(_, values)| values.iter().all(|v| v.is_finite())) {
            true => Ok(()),
            false => Err(Error::NotFinite(format!("tensor {name}"))),
        }
    }
}

fn check_count(shape: &[usize], count: usize) -> Result<()> {
    let wanted = shape.iter().product::<usize>();
    match wanted == count {
        true => Ok(()),
        false => Err(Error::mismatch(format!("values of a tensor {shape:?}"), wanted, count)),
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.parts() == other.parts()
    }
}

impl Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor {:?} ", self.shape)?;
        f.debug_list().entries(self.parts().iter().flat_map(|(_, values)| values.iter()).take(8)).finish()
    }
}

/// Channels, height and width of a feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Channels.
    pub channels: usize,
    /// Cells down.
    pub height: usize,
    /// Cells across.
    pub width: usize,
}

impl Extents {
    /// (height, width).
    pub fn size(self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// Cells of one channel.
    pub fn cells(self) -> usize {
        self.height * self.width
    }

    /// All values.
    pub fn len(self) -> usize {
        self.channels * self.cells()
    }

    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_tensors_keep_their_parts_and_give_one_slice_when_asked() {
        let a = Tensor::new(vec![1, 2], vec![1.0, 2.0]).unwrap();
        let values: SharedValues = Arc::new(vec![3.0, 4.0, 5.0]);
        let b = Tensor::shared(vec![3, 1], values.clone()).unwrap();
        assert_eq!(b.data().as_ptr(), (*values).as_ref().as_ptr(), "shared, not copied");
        let joined = Tensor::joined(vec![a.clone(), b.clone()]);
        assert_eq!((joined.shape(), joined.len()), ([1, 5].as_slice(), 5));
        assert_eq!(joined.parts()[1], ([3, 1].as_slice(), [3.0, 4.0, 5.0].as_slice()));
        assert_eq!(joined.data(), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(joined.split().unwrap(), [a.clone(), b]);
        assert!(joined.extents("scores").unwrap_err().to_string().contains("2 tensors joined"));
        assert_eq!(Tensor::joined(vec![a.clone()]), a);
        assert!(a.split().is_none());
        assert!(Tensor::shared(vec![4], values).is_err());
        let broken = Tensor::joined(vec![a, Tensor::new(vec![1], vec![f32::NAN]).unwrap()]);
        assert!(broken.check_finite("scores").is_err());
    }
}
