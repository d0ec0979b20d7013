//! Storages of a checkpoint, and tensors as strided views of them.
//!
//! A view's element `(i, j, ..)` is the storage's element `offset + i * strides[0] + j * strides[1] + ..`. A view with more elements than its
//! storage is refused, so a small file cannot ask for much memory.

use evenkeel_kernels::buffer::Flag;
use half::{bf16, f16};

use crate::tensor::{Element, Tensor};

/// The element types of storages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float,
    Double,
    Half,
    BFloat16,
    Long,
    Int,
    Short,
    Char,
    Byte,
    Bool,
}

impl Kind {
    /// The kind PyTorch calls by this name.
    pub(super) fn of_storage(name: &str) -> Option<Kind> {
        Some(match name {
            "FloatStorage" => Kind::Float,
            "DoubleStorage" => Kind::Double,
            "HalfStorage" => Kind::Half,
            "BFloat16Storage" => Kind::BFloat16,
            "LongStorage" => Kind::Long,
            "IntStorage" => Kind::Int,
            "ShortStorage" => Kind::Short,
            "CharStorage" => Kind::Char,
            "ByteStorage" => Kind::Byte,
            "BoolStorage" => Kind::Bool,
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub(super) fn width(self) -> usize {
        match self {
            Kind::Double | Kind::Long => 8,
            Kind::Float | Kind::Int => 4,
            Kind::Half | Kind::BFloat16 | Kind::Short => 2,
            Kind::Char | Kind::Byte | Kind::Bool => 1,
        }
    }
}

/// A tensor as a pickle describes it.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) storage: u32,
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<u64>,
}

impl View {
    /// Its number of elements.
    pub(super) fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent))
    }

    /// The tensor, from the bytes of its storage. Types are widened as for ONNX.
    ///
    /// # Errors
    /// If it reaches beyond its storage or has more elements.
    pub(super) fn tensor(&self, kind: Kind, bytes: &[u8]) -> Result<Tensor, String> {
        let held = (bytes.len() / kind.width()) as u64;
        let reach = self.reach();
        let fits =
            self.elements().is_some_and(|elements| elements <= held) && reach.is_some_and(|end| end <= held);
        if !fits {
            return Err(format!(
                "has shape {:?}, strides {:?} and offset {} in a storage of {held} elements",
                self.shape, self.strides, self.offset
            ));
        }
        Ok(match kind {
            Kind::Float => self.gather(bytes, f32::from_le_bytes),
            Kind::Double => self.gather(bytes, f64::from_le_bytes),
            Kind::Half => self.gather(bytes, |b| f16::from_le_bytes(b).to_f32()),
            Kind::BFloat16 => self.gather(bytes, |b| bf16::from_le_bytes(b).to_f32()),
            Kind::Long => self.gather(bytes, i64::from_le_bytes),
            Kind::Int => self.gather(bytes, i32::from_le_bytes),
            Kind::Short => self.gather(bytes, |b| i32::from(i16::from_le_bytes(b))),
            Kind::Char => self.gather(bytes, i8::from_le_bytes),
            Kind::Byte => self.gather(bytes, |[b]: [u8; 1]| b),
            Kind::Bool => self.gather(bytes, |[b]: [u8; 1]| Flag::from(b != 0)),
        })
    }

    /// One past the last element it reads.
    fn reach(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let furthest =
            self.shape.iter().zip(&self.strides).try_fold(self.offset, |at, (&extent, &stride)| {
                at.checked_add(stride.checked_mul(extent - 1)?)
            });
        furthest?.checked_add(1)
    }

    /// The elements in row-major order. The view must have been checked against the storage.
    fn gather<T: Element, const N: usize>(&self, bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Tensor {
        let stored = bytes.as_chunks::<N>().0;
        let shape: Vec<usize> = self.shape.iter().map(|&extent| extent as usize).collect();
        let len: usize = shape.iter().product();
        let mut values = Vec::with_capacity(len);
        let mut index = vec![0u64; shape.len()];
        let mut at = self.offset as usize;
        for _ in 0..len {
            values.push(decode(stored[at]));
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis] as usize;
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= (self.strides[axis] * self.shape[axis]) as usize;
                index[axis] = 0;
            }
        }
        Tensor::new(&shape, values)
    }
}
