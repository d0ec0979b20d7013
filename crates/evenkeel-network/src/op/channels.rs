//! A scale and a shift for each channel of a map, which is what normalisation comes down to.
//!
//! `y[n, c, ...] = scale[c] x[n, c, ...] + shift[c]`, or with one pair for each image and channel. Channels last, a pixel's channels
//! are one run of the padded scale and shift.

use evenkeel_kernels::formula::wide;
use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel;

use super::number::Float;
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

const GRAIN: usize = 1 << 15;

/// The scales and shifts of an affine map: one for each channel, or one for each image and channel.
pub(super) struct Affine<T> {
    pub(super) scale: Vec<T>,
    pub(super) shift: Option<Vec<T>>,
}

/// Applies them, in place where the tensor is not shared.
pub(super) fn affine<T: Float>(x: Tensor, pairs: &Affine<T>, room: &Room) -> Result<Tensor, Fault> {
    let channels = x.shape().get(1).copied().unwrap_or(1);
    let mut x = if x.is_shared() { x.copied(room)? } else { x };
    let (layout, shape) = (x.layout(), x.shape().to_vec());
    if x.is_empty() {
        return Ok(x);
    }
    let Some(values) = x.values_mut::<T>() else { return Ok(x) };
    match layout {
        Layout::ChannelsLast => {
            let (step, pixels) = (stride(channels), shape[2] * shape[3]);
            let lanes = |of: &[T]| -> Vec<T> {
                let row =
                    |c: &[T]| c.iter().copied().chain(std::iter::repeat(T::of(0.0))).take(step).collect();
                of.chunks(channels).flat_map::<Vec<T>, _>(row).collect()
            };
            let scale = lanes(&pairs.scale);
            let shift = pairs.shift.as_ref().map(|shift| lanes(shift));
            parallel::rows(values, step, (GRAIN / step).max(1), |first, part| {
                for (i, pixel) in part.chunks_exact_mut(step).enumerate() {
                    let at = (first + i) / pixels * step % scale.len();
                    line(pixel, &scale[at..], shift.as_ref().map(|shift| &shift[at..]));
                }
            });
        }
        Layout::Plain => {
            let inner: usize = shape.iter().skip(2).product();
            if inner == 1 {
                let images = pairs.scale.len() / channels;
                parallel::rows(values, channels, (GRAIN / channels).max(1), |first, part| {
                    for (i, row) in part.chunks_exact_mut(channels).enumerate() {
                        let at = (first + i) % images * channels;
                        line(row, &pairs.scale[at..], pairs.shift.as_ref().map(|shift| &shift[at..]));
                    }
                });
                return Ok(x);
            }
            parallel::rows(values, inner, (GRAIN / inner).max(1), |first, part| {
                for (i, plane) in part.chunks_exact_mut(inner).enumerate() {
                    let at = (first + i) % pairs.scale.len();
                    let (scale, shift) =
                        (pairs.scale[at], pairs.shift.as_ref().map_or(T::of(0.0), |shift| shift[at]));
                    wide(
                        #[inline(always)]
                        || plane.iter_mut().for_each(|v| *v = *v * scale + shift),
                    );
                }
            });
        }
    }
    Ok(x)
}

fn line<T: Float>(row: &mut [T], scale: &[T], shift: Option<&[T]>) {
    wide(
        #[inline(always)]
        || match shift {
            Some(shift) => {
                row.iter_mut().zip(scale.iter().zip(shift)).for_each(|(v, (&s, &t))| *v = *v * s + t);
            }
            None => row.iter_mut().zip(scale).for_each(|(v, &s)| *v = *v * s),
        },
    );
}
