//! Numbers only: slices in, slices out. The one home of `unsafe` and SIMD in evenkeel.
//!
//! Every kernel has a plain `reference` twin that ships, can be selected at run time, and is what the fast one answers to.
//! No kernel's result depends on the number of threads: work is split over outputs, never over a sum.

pub mod activation;
pub mod buffer;
pub mod conv2d;
pub mod cpu;
pub mod depthwise;
pub mod elementwise;
pub mod epilogue;
pub mod formula;
pub mod gemm;
pub mod grid;
pub mod layout;
pub mod norm;
pub mod parallel;
pub mod peak;
pub mod pool;
pub mod real;
pub mod resample;
pub mod roi;
pub mod softmax;

mod disjoint;
mod epilogue_rows;
mod lanes;
#[cfg(test)]
mod seeded;
mod taps;
mod vectorised;
