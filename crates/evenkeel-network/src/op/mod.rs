//! Operators: what a node of the graph does, forwards and backwards.
//!
//! An operator answers a [`Call`] with its outputs and, where an input's gradient is wanted, with a pullback: a closure that
//! holds what the derivative needs and no more. A two-slope activation (ReLU, leaky ReLU, clip) needs one bit an element; it returns
//! the bits as a [`SlopeMask`] on its output and the identity as its pullback, and the walk multiplies the arriving
//! cotangent by the mask exactly once, if possible in the last pass of the kernel that makes it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use evenkeel_kernels::buffer::Buffer;
use evenkeel_kernels::epilogue::Mask;

use crate::error::Fault;
use crate::tensor::{DType, Element, Layout, Room, Tensor};

pub mod activation;
pub mod affine_grid;
pub mod arg;
pub mod arithmetic;
pub(crate) mod axis_map;
pub mod batch_norm;
pub mod broadcast;
pub mod cast;
mod channels;
pub(crate) mod channelwise;
pub mod choose;
pub mod clip;
pub mod compare;
pub mod concat;
pub mod control;
pub mod conv;
pub mod cumsum;
mod definition;
pub mod einsum;
pub(crate) mod ending;
pub mod expand;
pub mod fold;
pub mod gather;
pub mod gemm;
pub mod grid_sample;
pub mod group_norm;
pub mod identity;
mod lanes;
pub mod layer_norm;
pub(crate) mod linear;
pub mod logic;
pub mod matmul;
pub mod nms;
pub mod norms;
pub mod number;
pub(crate) mod original;
pub mod pad;
pub mod pointwise;
pub mod pool;
pub mod pow;
mod product;
#[cfg(test)]
pub(crate) mod proof;
pub mod quantize;
pub mod reduce;
pub mod registry;
pub mod reshape;
pub mod resize;
pub mod roi_align;
pub mod scatter;
pub mod select;
pub mod shape;
pub(crate) mod shuffle;
pub mod slice;
pub mod softmax;
mod strided;
pub mod top_k;
pub mod transpose;
pub mod two_slope;
pub mod unary;
pub mod variadic;
mod walk;
pub mod window;

pub use definition::{Attribute, Attributes, Definition};

/// The layouts an operator can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts {
    /// Plain tensors only; the walk converts before the call.
    Plain,
    /// Its feature map (input 0) channels last, and so its output.
    ChannelsLast,
    /// Any mix, converting itself where it must. If a rank-4 input is channels last, so is the output where that is natural.
    Any,
}

/// What a node of the graph does.
pub trait Operator: Any + Debug + Send + Sync {
    /// Computes the outputs, and the pullback if `call` wants any gradient.
    ///
    /// # Errors
    /// If the inputs are not what the operator takes, or the room is used up.
    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault>;

    /// The layouts it can read.
    fn layouts(&self) -> Layouts {
        Layouts::Plain
    }

    /// Whether a gradient can pass from its outputs to input `input`. Where it is false the derivative is zero or does not exist.
    fn passes_gradient(&self, _input: usize) -> bool {
        true
    }

    /// If, with these constant inputs, it scales and shifts each channel of input 0: the scales and the shifts.
    fn channel_affine(&self, _constants: &[Option<&[f32]>]) -> Option<(Vec<f32>, Vec<f32>)> {
        None
    }

    /// The operator that computes in f64 what this one computes in f32, where its inputs alone do not decide that.
    fn widened(&self) -> Option<Box<dyn Operator>> {
        None
    }

    /// The number of constant elements up to which it is run at load. An operator whose work can outgrow what it reads and writes
    /// is left to the walk beyond that, so that loading stays short whatever a file asks for.
    fn folds_up_to(&self) -> usize {
        usize::MAX
    }

    /// Bytes of constants it has packed for its kernels.
    fn packed_bytes(&self) -> usize {
        0
    }

    /// Whether gradients pass through outputs that are not floats, as the codes of a quantizer stand for floats.
    fn passes_through_codes(&self) -> bool {
        false
    }

    /// Multiplications and additions for inputs of these shapes; 0 for what is not worth counting.
    fn flops(&self, _inputs: &[Option<&Tensor>]) -> f64 {
        0.0
    }

    /// How many of its first inputs are factors of the product that [`Operator::flops`] counts: the pullback to each takes as many
    /// operations as the product itself.
    fn factors(&self) -> usize {
        1
    }

    /// What it is to someone who asks where the time goes, such as `Conv 3x3 /2 depthwise`; empty if its name says it all.
    fn kind(&self, _inputs: &[Option<&Tensor>]) -> String {
        String::new()
    }
}

/// Elements of which every product is short: a square one of them takes some ten million multiplications.
pub(crate) const SHORT_PRODUCT: usize = 1 << 17;

/// One request to an operator.
pub struct Call<'a> {
    /// The inputs; optional ones may be absent. A tensor nobody else holds can be written in place.
    pub inputs: Vec<Option<Tensor>>,
    /// For each input, whether its gradient is wanted. All false when no tape is kept.
    pub wants: &'a [bool],
    /// How many outputs the node has.
    pub outputs: usize,
    /// Memory.
    pub room: &'a Room,
}

impl Call<'_> {
    /// A required input.
    ///
    /// # Errors
    /// If it is absent.
    pub fn input(&self, i: usize) -> Result<&Tensor, Fault> {
        self.optional(i).ok_or(Fault::Missing(i))
    }

    /// An optional input.
    pub fn optional(&self, i: usize) -> Option<&Tensor> {
        self.inputs.get(i)?.as_ref()
    }

    /// A required input, given up by the call: unique if this was its last use.
    ///
    /// # Errors
    /// If it is absent.
    pub fn take(&mut self, i: usize) -> Result<Tensor, Fault> {
        self.inputs.get_mut(i).and_then(Option::take).ok_or(Fault::Missing(i))
    }

    /// The values of a required input.
    ///
    /// # Errors
    /// If it is absent or of another type.
    pub fn values<T: Element>(&self, i: usize) -> Result<&[T], Fault> {
        let tensor = self.input(i)?;
        let got = tensor.dtype();
        tensor.values().ok_or(Fault::Type { input: i, expected: type_name::<T>(), got })
    }

    /// A required input of integers, such as a shape or axes.
    ///
    /// # Errors
    /// If it is absent or not of integers.
    pub fn integers(&self, i: usize) -> Result<Vec<i64>, Fault> {
        let tensor = self.input(i)?;
        tensor.integers().ok_or(Fault::Type { input: i, expected: "integers", got: tensor.dtype() })
    }

    /// Whether the gradient of input `i` is wanted.
    pub fn wants(&self, i: usize) -> bool {
        self.wants.get(i).copied().unwrap_or(false)
    }

    /// Whether any gradient is wanted.
    pub fn wants_any(&self) -> bool {
        self.wants.iter().any(|&wanted| wanted)
    }
}

/// The values of input `input`.
///
/// # Errors
/// If they are of another type.
pub(crate) fn values_of<T: Element>(tensor: &Tensor, input: usize) -> Result<&[T], Fault> {
    let expected = type_name::<T>();
    tensor.values().ok_or(Fault::Type { input, expected, got: tensor.dtype() })
}

fn type_name<T: Element>() -> &'static str {
    match T::DTYPE {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "u8",
        DType::I8 => "i8",
        DType::Bool => "bool",
    }
}

/// A pullback: takes the cotangents of the outputs out of a [`Back`] and gives it those of the inputs. May be called again.
pub type Pullback = Box<dyn Fn(&mut Back<'_>) -> Result<(), Fault> + Send + Sync>;

/// What an operator answers.
pub struct Answer {
    /// The outputs, in order.
    pub outputs: Vec<Tensor>,
    /// For output 0: what its cotangent is multiplied by before the pullback sees it.
    pub mask: Option<SlopeMask>,
    /// How cotangents of the outputs become cotangents of the inputs; `None` if no gradient passes.
    pub pullback: Option<Pullback>,
}

impl Answer {
    /// Outputs through which no gradient passes.
    pub fn new(outputs: Vec<Tensor>) -> Answer {
        Answer { outputs, mask: None, pullback: None }
    }

    /// One output through which no gradient passes.
    pub fn one(output: Tensor) -> Answer {
        Answer::new(vec![output])
    }

    /// With a pullback, if `wanted`.
    pub fn with(
        mut self,
        wanted: bool,
        pullback: impl Fn(&mut Back<'_>) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Answer {
        if wanted {
            self.pullback = Some(Box::new(pullback));
        }
        self
    }
}

/// The derivative of a two-slope activation, one bit an element of the output it belongs to, in storage order.
#[derive(Clone, Debug)]
pub struct SlopeMask {
    /// Bit `i % 8` of byte `i / 8` belongs to element `i`.
    pub bits: Arc<Buffer<u8>>,
    /// The slope where the bit is set.
    pub on: f32,
    /// The slope where it is clear.
    pub off: f32,
}

impl SlopeMask {
    /// As the kernels take it.
    pub fn as_mask(&self) -> Mask<'_> {
        Mask { bits: &self.bits, on: self.on, off: self.off }
    }
}

/// The gradient of one value while the walk goes backwards.
#[derive(Default)]
pub struct Gradient {
    /// The sum of the contributions so far.
    pub sum: Option<Tensor>,
    /// Contributions still to come (given or not).
    pub pending: usize,
    /// To be applied once, to the whole sum.
    pub mask: Option<SlopeMask>,
    /// The layout of the value.
    pub layout: Option<Layout>,
}

/// The backward call of one operator: cotangents of its outputs in, cotangents of its inputs out.
pub struct Back<'a> {
    pub(crate) cotangents: Vec<Option<Tensor>>,
    /// For each input, the place of its gradient; `None` if it is not wanted.
    pub(crate) places: &'a [Option<usize>],
    pub(crate) gradients: &'a mut [Gradient],
    pub(crate) room: &'a Room,
}

/// What the last contribution to a gradient may fold into its own pass.
#[derive(Default)]
pub struct Finish {
    /// The sum of the other contributions, to be added.
    pub accumulated: Option<Tensor>,
    /// To be applied to the whole sum.
    pub mask: Option<SlopeMask>,
}

impl Back<'_> {
    /// The cotangent of output `i`; absent means zero.
    pub fn cotangent(&self, i: usize) -> Option<&Tensor> {
        self.cotangents.get(i)?.as_ref()
    }

    /// The cotangent of output `i`, given up: unique if nobody else needs it.
    pub fn take(&mut self, i: usize) -> Option<Tensor> {
        self.cotangents.get_mut(i)?.take()
    }

    /// Whether the gradient of input `i` is wanted.
    pub fn wants(&self, i: usize) -> bool {
        self.places.get(i).copied().flatten().is_some()
    }

    /// Memory.
    pub fn room(&self) -> &Room {
        self.room
    }

    /// For a kernel that can add and mask in its last pass: hands over the sum so far, and the mask if this is the last
    /// contribution and the value has this layout. What is handed over must be in the tensor of this layout then
    /// [given](Back::give) for input `i`.
    ///
    /// # Errors
    /// If the room is used up.
    pub fn finish(&mut self, i: usize, layout: Layout) -> Result<Finish, Fault> {
        let Some(place) = self.places.get(i).copied().flatten() else { return Ok(Finish::default()) };
        let gradient = &mut self.gradients[place];
        let last = gradient.pending == 1 && gradient.layout == Some(layout);
        let mask = if last { gradient.mask.take() } else { None };
        let accumulated = gradient.sum.take().map(|sum| sum.in_layout(layout, self.room)).transpose()?;
        Ok(Finish { accumulated, mask })
    }

    /// Gives the cotangent of input `i` (ignored if it is not wanted).
    ///
    /// # Errors
    /// If the room is used up.
    pub fn give(&mut self, i: usize, cotangent: Tensor) -> Result<(), Fault> {
        let Some(place) = self.places.get(i).copied().flatten() else { return Ok(()) };
        let gradient = &mut self.gradients[place];
        gradient.sum = Some(match gradient.sum.take() {
            None => cotangent,
            Some(sum) => crate::run::sum(sum, cotangent, self.room)?,
        });
        Ok(())
    }
}
