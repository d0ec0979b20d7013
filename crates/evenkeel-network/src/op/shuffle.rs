//! A channel shuffle: Reshape, Transpose and Reshape that put the channels of a map in another order, as one copy.
//!
//! Channel `i * groups + g` of the result is channel `g * (c / groups) + i` of the input. Channels last, it moves lanes within a pixel and no
//! change of layout is needed. Whether the shapes of the two Reshapes mean that is known only when the map arrives; if they
//! do not, the nodes this was made from are run.

use std::sync::Arc;

use evenkeel_kernels::layout::{permute_channels, stride};

use super::original::run_original;
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::plan::Plan;
use crate::tensor::{DType, Layout, Room, Tensor};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ChannelShuffle {
    /// The targets of the two Reshapes, as the file has them.
    pub(crate) apart: Vec<i64>,
    pub(crate) together: Vec<i64>,
    pub(crate) original: Arc<Plan>,
}

/// Whether a Reshape's target, which has no zeros, means this shape.
fn means(target: &[i64], shape: &[usize]) -> bool {
    let open = target.iter().filter(|&&dim| dim == -1).count();
    let fits = |(&dim, &size): (&i64, &usize)| dim == -1 || usize::try_from(dim) == Ok(size);
    target.len() == shape.len() && open <= 1 && target.iter().zip(shape).all(fits)
}

impl ChannelShuffle {
    /// The groups, if the shapes mean a shuffle of a map of this shape.
    fn groups(&self, shape: &[usize]) -> Option<usize> {
        let &[n, c, h, w] = shape else { return None };
        // One of the two middle dimensions of the target may be left open.
        let given = |i: usize| usize::try_from(*self.apart.get(i)?).ok().filter(|&dim| dim > 0);
        let groups = given(1).or_else(|| given(2).filter(|&per| c.is_multiple_of(per)).map(|per| c / per))?;
        let fits = c.is_multiple_of(groups)
            && !shape.contains(&0)
            && means(&self.apart, &[n, groups, c / groups, h, w])
            && means(&self.together, shape);
        fits.then_some(groups)
    }
}

/// `x` with its channels shuffled.
fn shuffled(x: &Tensor, groups: usize, room: &Room) -> Result<Tensor, Fault> {
    let &[n, c, h, w] = x.shape() else {
        return Err(Fault::Shape { input: 0, expected: "rank 4".into(), got: x.shape().to_vec() });
    };
    let x = x.to_channels_last(room)?;
    let per = c / groups;
    let order: Vec<usize> = (0..c).map(|to| to % groups * per + to / groups).collect();
    let values = x.values::<f32>().unwrap_or(&[]);
    debug_assert_eq!(values.len(), n * h * w * stride(c));
    room.feature_map([n, c, h, w], |out| permute_channels(&order, values, out))
}

impl Operator for ChannelShuffle {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let channels_last = x.dtype() == DType::F32 && x.layout() == Layout::ChannelsLast;
        let Some(groups) = self.groups(x.shape()).filter(|_| channels_last) else {
            return run_original(&self.original, call);
        };
        let (x, wanted) = (call.take(0)?, call.wants_any());
        let per = x.shape()[1] / groups;
        let y = shuffled(&x, groups, call.room)?;
        Ok(Answer::one(y).with(wanted, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let own = shuffled(&g, per, back.room())?;
            back.give(0, own)
        }))
    }
}
