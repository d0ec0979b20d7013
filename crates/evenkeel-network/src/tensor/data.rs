//! The values of a tensor: their types, and whose memory they are in.

use std::fmt;
use std::ops::{Deref, DerefMut};

use evenkeel_kernels::buffer::{Buffer, Flag, Plain};

/// The types a tensor can hold. Half-precision floats are widened to [`DType::F32`] when they are loaded, 16-bit integers to
/// [`DType::I32`], unsigned 32- and 64-bit ones to [`DType::I64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 64-bit float, used by the reference walk and by graphs that ask for it.
    F64,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Unsigned byte.
    U8,
    /// Signed byte.
    I8,
    /// Truth value.
    Bool,
}

impl DType {
    /// Whether values of this type can carry a gradient.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::Bool => "bool",
        })
    }
}

/// Values, either from a pool or from a vector.
pub enum Store<T: Plain> {
    /// Borrowed from a pool.
    Pooled(Buffer<T>),
    /// On their own.
    Owned(Vec<T>),
}

impl<T: Plain> Deref for Store<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Store::Pooled(buffer) => buffer,
            Store::Owned(vector) => vector,
        }
    }
}

impl<T: Plain> DerefMut for Store<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Store::Pooled(buffer) => buffer,
            Store::Owned(vector) => vector,
        }
    }
}

impl<T: Plain> From<Vec<T>> for Store<T> {
    fn from(values: Vec<T>) -> Store<T> {
        Store::Owned(values)
    }
}

impl<T: Plain> From<Buffer<T>> for Store<T> {
    fn from(values: Buffer<T>) -> Store<T> {
        Store::Pooled(values)
    }
}

/// The values of a tensor, by type.
pub enum Data {
    /// 32-bit floats.
    F32(Store<f32>),
    /// 64-bit floats.
    F64(Store<f64>),
    /// 32-bit integers.
    I32(Store<i32>),
    /// 64-bit integers.
    I64(Store<i64>),
    /// Unsigned bytes.
    U8(Store<u8>),
    /// Signed bytes.
    I8(Store<i8>),
    /// Truth values.
    Bool(Store<Flag>),
}

/// Runs the same expression on the values of a [`Data`], whatever their type.
#[macro_export]
macro_rules! for_type {
    ($data:expr, $values:ident => $body:expr) => {
        match $data {
            $crate::tensor::Data::F32($values) => $body,
            $crate::tensor::Data::F64($values) => $body,
            $crate::tensor::Data::I32($values) => $body,
            $crate::tensor::Data::I64($values) => $body,
            $crate::tensor::Data::U8($values) => $body,
            $crate::tensor::Data::I8($values) => $body,
            $crate::tensor::Data::Bool($values) => $body,
        }
    };
}

/// A type of value a tensor can hold.
pub trait Element: Plain + Default + PartialEq + fmt::Debug {
    /// Its name as a tensor type.
    const DTYPE: DType;
    /// Values as tensor data.
    fn wrap(store: Store<Self>) -> Data;
    /// The values, if the data is of this type.
    fn store(data: &Data) -> Option<&Store<Self>>;
    /// The values for writing, if the data is of this type.
    fn store_mut(data: &mut Data) -> Option<&mut Store<Self>>;
}

macro_rules! element {
    ($type:ty, $name:ident) => {
        impl Element for $type {
            const DTYPE: DType = DType::$name;
            fn wrap(store: Store<Self>) -> Data {
                Data::$name(store)
            }
            fn store(data: &Data) -> Option<&Store<Self>> {
                if let Data::$name(store) = data { Some(store) } else { None }
            }
            fn store_mut(data: &mut Data) -> Option<&mut Store<Self>> {
                if let Data::$name(store) = data { Some(store) } else { None }
            }
        }
    };
}
element!(f32, F32);
element!(f64, F64);
element!(i32, I32);
element!(i64, I64);
element!(u8, U8);
element!(i8, I8);
element!(Flag, Bool);
