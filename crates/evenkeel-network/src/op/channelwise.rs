//! Batch norm and PReLU with constant parameters in one pass over a channels-last map, in place where nobody else needs it.
//!
//! `z = scale x + shift`, `y = z` where `z >= 0`, else `slope z`, each with one parameter a channel. The tape is one bit an element; the
//! pullback is one multiplication.

use std::sync::Arc;

use evenkeel_kernels::activation::ByChannel;

use super::original::run_original;
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::plan::Plan;
use crate::tensor::{DType, Layout, Tensor};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Channelwise {
    pub(crate) channels: usize,
    pub(crate) by_channel: Arc<ByChannel>,
    pub(crate) original: Arc<Plan>,
}

impl Operator for Channelwise {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let map =
            x.dtype() == DType::F32 && x.layout() == Layout::ChannelsLast && x.shape()[1] == self.channels;
        if !map {
            return run_original(&self.original, call);
        }
        let (x, taped, room) = (call.take(0)?, call.wants_any(), call.room);
        let mut y = unshared(x, room)?;
        let by_channel = self.by_channel.clone();
        let stored = y.values::<f32>().map_or(0, <[f32]>::len);
        let with_bits = taped && by_channel.has_bits();
        let mut bits = room.take::<u8>(if with_bits { stored / 8 } else { 0 })?;
        if let Some(values) = y.values_mut::<f32>() {
            by_channel.apply(values, with_bits.then_some(&mut *bits));
        }
        Ok(Answer::one(y).with(taped, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let mut g = unshared(g.to_channels_last(back.room())?, back.room())?;
            if let Some(values) = g.values_mut::<f32>() {
                by_channel.pull(&bits, values);
            }
            back.give(0, g)
        }))
    }
}

fn unshared(x: Tensor, room: &crate::tensor::Room) -> Result<Tensor, Fault> {
    if x.is_shared() { x.copied(room) } else { Ok(x) }
}
