//! A tensor: a shape, a type, and shared values.
//!
//! Values are stored plainly, row by row, or, for feature maps inside the engine, channels last (see
//! [`evenkeel_kernels::layout`]). The shape is the logical one, `[n, c, h, w]`, in both. Cloning shares the values.

mod data;
mod room;

use std::fmt;
use std::sync::Arc;

use evenkeel_kernels::layout::{self, stride};

use crate::error::Fault;
use crate::for_type;

pub use data::{DType, Data, Element, Store};
pub use room::{Limits, Room, checked_len};

/// How a tensor's values lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Row by row.
    Plain,
    /// `[n][h][w][stride(c)]`, for f32 tensors of rank 4.
    ChannelsLast,
}

/// A shape, a type, and shared values. See the [module](self).
#[derive(Clone)]
pub struct Tensor {
    shape: Arc<[usize]>,
    layout: Layout,
    data: Arc<Data>,
}

impl Tensor {
    /// A plain tensor of these values.
    ///
    /// # Panics
    /// If their number is not the product of `shape`.
    pub fn new<T: Element>(shape: &[usize], values: impl Into<Store<T>>) -> Tensor {
        let values = values.into();
        assert_eq!(shape.iter().product::<usize>(), values.len(), "values for shape {shape:?}");
        Tensor { shape: shape.into(), layout: Layout::Plain, data: Arc::new(T::wrap(values)) }
    }

    /// A channels-last feature map of logical shape `[n, c, h, w]`.
    ///
    /// # Panics
    /// If there are not `n * h * w * stride(c)` values.
    pub fn channels_last(shape: [usize; 4], values: impl Into<Store<f32>>) -> Tensor {
        let values = values.into();
        assert_eq!(
            shape[0] * shape[2] * shape[3] * stride(shape[1]),
            values.len(),
            "values for shape {shape:?}"
        );
        Tensor { shape: shape.into(), layout: Layout::ChannelsLast, data: Arc::new(Data::F32(values)) }
    }

    /// A tensor of values stored in this layout, padding lanes included.
    ///
    /// # Errors
    /// If their number does not fit, or a channels-last tensor is not an f32 one of rank 4.
    pub fn in_storage<T: Element>(
        shape: &[usize],
        layout: Layout,
        values: impl Into<Store<T>>,
    ) -> Result<Tensor, Fault> {
        let values = values.into();
        let expected = match (layout, shape) {
            (Layout::Plain, _) => checked_len(shape),
            (Layout::ChannelsLast, &[n, c, h, w]) if T::DTYPE == DType::F32 => {
                checked_len(&[n, h, w, stride(c)])
            }
            _ => None,
        };
        if expected != Some(values.len()) {
            let expected = format!("room for {} {} values", values.len(), T::DTYPE);
            return Err(Fault::Shape { input: 0, expected, got: shape.to_vec() });
        }
        Ok(Tensor { shape: shape.into(), layout, data: Arc::new(T::wrap(values)) })
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::new(&[], vec![value])
    }

    /// The logical shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of logical elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the values lie in memory.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The values, by type, in storage order.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The type.
    pub fn dtype(&self) -> DType {
        match &*self.data {
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::U8(_) => DType::U8,
            Data::I8(_) => DType::I8,
            Data::Bool(_) => DType::Bool,
        }
    }

    /// The values in storage order, if they are of type `T`.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        T::store(&self.data).map(|store| &**store)
    }

    /// The values for writing in place, if they are of type `T` and no one else shares them.
    pub fn values_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        T::store_mut(Arc::get_mut(&mut self.data)?).map(|store| &mut **store)
    }

    /// The same values under another shape with as many elements. The tensor must be plain.
    ///
    /// # Errors
    /// If the number of elements differs.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Tensor, Fault> {
        debug_assert_eq!(self.layout, Layout::Plain);
        if checked_len(shape) != Some(self.len()) {
            let (left, right) = (self.shape.to_vec(), shape.to_vec());
            return Err(Fault::Mismatch { left, right, verb: "have as many elements" });
        }
        Ok(Tensor { shape: shape.into(), layout: self.layout, data: self.data.clone() })
    }

    /// The stored values as a plain tensor: of shape `[n, h, w, stride(c)]` if the tensor is channels last, else the tensor itself.
    pub(crate) fn storage(&self) -> Tensor {
        match (self.layout, &*self.shape) {
            (Layout::ChannelsLast, &[n, c, h, w]) => {
                let shape = [n, h, w, stride(c)];
                Tensor { shape: shape.as_slice().into(), layout: Layout::Plain, data: self.data.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The channels-last map of logical shape `[n, c, h, w]` whose [storage](Tensor::storage) this is.
    ///
    /// # Errors
    /// If it is not the f32 storage of such a map.
    pub(crate) fn as_map_of(&self, channels: usize) -> Result<Tensor, Fault> {
        match (&*self.shape, &*self.data) {
            (&[n, h, w, s], Data::F32(_)) if s == stride(channels) => {
                let shape = [n, channels, h, w];
                Ok(Tensor {
                    shape: shape.as_slice().into(),
                    layout: Layout::ChannelsLast,
                    data: self.data.clone(),
                })
            }
            _ => Err(Fault::Shape {
                input: 0,
                expected: "the storage of a map".into(),
                got: self.shape.to_vec(),
            }),
        }
    }

    /// Integers of any width as i64; `None` for floats and truth values.
    pub fn integers(&self) -> Option<Vec<i64>> {
        Some(match &*self.data {
            Data::I64(v) => v.to_vec(),
            Data::I32(v) => v.iter().map(|&x| x.into()).collect(),
            Data::U8(v) => v.iter().map(|&x| x.into()).collect(),
            Data::I8(v) => v.iter().map(|&x| x.into()).collect(),
            _ => return None,
        })
    }

    /// Bytes of storage, padding lanes included.
    pub fn stored_bytes(&self) -> usize {
        for_type!(&*self.data, values => size_of_val(&**values))
    }

    /// Whether someone else holds the same values.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.data) > 1
    }

    /// Whether both share the same values.
    pub fn same_values(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// If the room is used up.
    pub fn copied(&self, room: &Room) -> Result<Tensor, Fault> {
        let data = for_type!(&*self.data, values => {
            let mut copy = room.take(values.len())?;
            copy.copy_from_slice(values);
            Element::wrap(Store::Pooled(copy))
        });
        Ok(Tensor { shape: self.shape.clone(), layout: self.layout, data: Arc::new(data) })
    }

    /// The same tensor in plain layout.
    ///
    /// # Errors
    /// If the room is used up.
    pub fn to_plain(&self, room: &Room) -> Result<Tensor, Fault> {
        let (Layout::ChannelsLast, &[n, c, h, w], Data::F32(values)) =
            (self.layout, &*self.shape, &*self.data)
        else {
            return Ok(self.clone());
        };
        room.tensor(&[n, c, h, w], |out| layout::to_planar(extents(n, c, h * w), values, out))
    }

    /// The same tensor channels last.
    ///
    /// # Errors
    /// If it is not an f32 tensor of rank 4, or the room is used up.
    pub fn to_channels_last(&self, room: &Room) -> Result<Tensor, Fault> {
        match (self.layout, &*self.shape, &*self.data) {
            (Layout::ChannelsLast, ..) => Ok(self.clone()),
            (Layout::Plain, &[n, c, h, w], Data::F32(values)) => {
                room.feature_map([n, c, h, w], |out| layout::from_planar(extents(n, c, h * w), values, out))
            }
            _ => Err(Fault::Shape {
                input: 0,
                expected: "an f32 feature map".into(),
                got: self.shape.to_vec(),
            }),
        }
    }

    /// The same tensor in this layout.
    ///
    /// # Errors
    /// As for the conversions.
    pub fn in_layout(self, layout: Layout, room: &Room) -> Result<Tensor, Fault> {
        match layout {
            Layout::Plain => self.to_plain(room),
            Layout::ChannelsLast => self.to_channels_last(room),
        }
    }

    /// Type and shape, for messages.
    pub fn describe(&self) -> String {
        format!("{} {:?}", self.dtype(), self.shape)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.describe())?;
        for_type!(&*self.data, values => f.debug_list().entries(values.iter().take(8)).finish())
    }
}

fn extents(batch: usize, channels: usize, pixels: usize) -> layout::Extents {
    layout::Extents { batch, channels, pixels }
}
