//! Softmax and its logarithm along one axis, and their pullbacks.
//!
//! `y_i = e^(x_i - m) / sum_j e^(x_j - m)` with `m = max x`; pulled back, `y_i (g_i - sum_j g_j y_j)`, and for the logarithm
//! `g_i - y_i sum_j g_j`. The pullbacks need only the output. A sum runs in eight fixed lanes over a contiguous axis and in order
//! over a strided one, whatever the threads.

mod columns;
#[cfg(test)]
mod reference;
mod rows;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::layout::{Along, stride};
use crate::parallel;

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 13;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The probabilities.
    Softmax,
    /// Their logarithms.
    LogSoftmax,
}

/// `output = kind(input)` along the axis.
///
/// # Panics
/// If a slice's length does not fit.
pub fn forward(kind: Kind, along: Along, input: &[f32], output: &mut [f32]) {
    assert_eq!((input.len(), output.len()), (along.len(), along.len()), "{along:?}");
    if along.is_empty() {
        return;
    }
    if along.inner == 1 {
        return forward_rows(kind, along.length, along.length, input, output);
    }
    each_block(along, output, |part, block| columns::forward(kind, part, &input[block..], output_of(part)));
}

/// `grad_in` from the forward pass's `output` and `grad_out`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn pullback(kind: Kind, along: Along, output: &[f32], grad_out: &[f32], grad_in: &mut [f32]) {
    assert_eq!([output.len(), grad_out.len(), grad_in.len()], [along.len(); 3], "{along:?}");
    if along.is_empty() {
        return;
    }
    if along.inner == 1 {
        return pullback_rows(kind, [along.length; 2], output, grad_out, grad_in);
    }
    each_block(along, grad_in, |part, block| {
        columns::pullback(kind, part, &output[block..], &grad_out[block..], output_of(part));
    });
}

/// [`forward`] over the channels of a channels-last map.
///
/// # Panics
/// If a slice is not whole pixels, or they differ in length.
pub fn forward_channels(kind: Kind, channels: usize, input: &[f32], output: &mut [f32]) {
    assert!(input.len() == output.len() && input.len().is_multiple_of(stride(channels).max(1)));
    if !input.is_empty() {
        forward_rows(kind, channels, stride(channels), input, output);
    }
}

/// [`pullback`] over the channels of a channels-last map.
///
/// # Panics
/// If a slice is not whole pixels, or they differ in length.
pub fn pullback_channels(kind: Kind, channels: usize, output: &[f32], grad_out: &[f32], grad_in: &mut [f32]) {
    assert!(output.len() == grad_in.len() && grad_out.len() == grad_in.len());
    assert!(grad_in.len().is_multiple_of(stride(channels).max(1)));
    if !grad_in.is_empty() {
        pullback_rows(kind, [channels, stride(channels)], output, grad_out, grad_in);
    }
}

fn forward_rows(kind: Kind, length: usize, pitch: usize, input: &[f32], output: &mut [f32]) {
    parallel::rows(output, pitch, GRAIN / pitch, |first, part| {
        for (x, y) in input[first * pitch..].chunks_exact(pitch).zip(part.chunks_exact_mut(pitch)) {
            rows::forward(kind, &x[..length], &mut y[..length]);
        }
    });
}

fn pullback_rows(
    kind: Kind,
    [length, pitch]: [usize; 2],
    output: &[f32],
    grad_out: &[f32],
    grad_in: &mut [f32],
) {
    parallel::rows(grad_in, pitch, GRAIN / pitch, |first, part| {
        for (i, into) in part.chunks_exact_mut(pitch).enumerate() {
            let row = (first + i) * pitch..(first + i) * pitch + length;
            rows::pullback(kind, &output[row.clone()], &grad_out[row], &mut into[..length]);
        }
    });
}

/// Neighbouring columns of one outer slice, at most [`columns::WIDTH`] of them.
struct Columns<'a> {
    out: &'a Disjoint<'a, f32>,
    /// Where the first column begins in the whole slice.
    first: usize,
    width: usize,
    length: usize,
    inner: usize,
}

/// Row `i` of a block of columns in the slice being written.
fn output_of<'a>(part: &'a Columns<'a>) -> impl Fn(usize) -> &'a mut [f32] {
    |i| {
        let at = part.first + i * part.inner;
        // SAFETY: blocks of columns do not overlap, and rows are asked for one at a time.
        unsafe { part.out.part(at..at + part.width) }
    }
}

/// Runs `task(columns, first element)` over all blocks of columns.
fn each_block(along: Along, out: &mut [f32], task: impl Fn(&Columns<'_>, usize) + Sync + Send) {
    let out = &Disjoint::new(out);
    let blocks = along.inner.div_ceil(columns::WIDTH);
    let grain = (GRAIN / (along.length * columns::WIDTH)).max(1);
    parallel::ranges(along.outer * blocks, grain, |range| {
        for i in range {
            let column = i % blocks * columns::WIDTH;
            let first = i / blocks * along.length * along.inner + column;
            let width = columns::WIDTH.min(along.inner - column);
            task(&Columns { out, first, width, length: along.length, inner: along.inner }, first);
        }
    });
}
