//! Convolutions of many small groups, where a group makes fewer channels than a vector has lanes.
//!
//! The map read is spread first: for step `k` of a group's sum, lane `o` gets the channel that output channel `o` meets at that
//! step, `s[k][o] = x[(o / lanes) * steps + k]`. Then it is a depthwise convolution with `steps` terms a tap,
//! `y[o] = sum over tap, k of w[tap][k][o] * s[k][o]`, and every lane of every vector works. Each result is one chain over taps and
//! steps, as in the direct kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::run;

use super::{Direction, Geometry};
use crate::layout::{self, LANES};

/// The most steps a group may sum over: beyond it a block of spread pixels no longer stays in cache.
const WIDEST: usize = 64;

/// Whether a convolution is worth doing this way: more taps than one, so that a spread pixel is met again, and groups narrower
/// than a vector.
pub(crate) fn preferred(g: &Geometry, direction: Direction) -> bool {
    let (lanes, steps) = match direction {
        Direction::Forward => (g.out_c / g.groups, g.in_c / g.groups),
        Direction::Pullback => (g.in_c / g.groups, g.out_c / g.groups),
    };
    let taps = g.kernel[0] * g.kernel[1];
    g.groups > 1 && taps > 1 && lanes < LANES && steps <= WIDEST
}

/// The weights, a vector of channels after the other, and the channels their lanes meet at each step.
#[derive(Debug)]
pub(crate) struct Spread {
    /// Channels read by one group.
    pub(crate) steps: usize,
    /// Channels made, with padding.
    pub(crate) stride: usize,
    /// Taps of the kernel.
    pub(crate) taps: usize,
    /// `[stride / 8][tap][step]`, zero in padding lanes.
    pub(crate) weights: Vec<[f32; LANES]>,
    /// How each vector of a spread pixel is made, `[stride / 8][step]`.
    pub(crate) picks: Vec<Pick>,
}

/// Where the eight lanes of a vector come from.
#[derive(Debug)]
pub(crate) enum Pick {
    /// From eight channels starting at one place: lane `i` is the `lanes[i]`th of them.
    Near { start: usize, lanes: [i32; LANES] },
    /// From eight channels at each of two places: lane `i` is the `lanes[k][i]`th, `k` being 1 where `second[i]` is negative.
    Split { starts: [usize; 2], lanes: [[i32; LANES]; 2], second: [i32; LANES] },
    /// From anywhere: the first `count` lanes.
    Far { channels: [usize; LANES], count: usize },
}

impl Pick {
    /// The pick of `channels`, at most eight in ascending order, of a pixel of `stride` values.
    fn new(channels: &[usize], stride: usize) -> Pick {
        let (first, last) = (channels[0], channels[channels.len() - 1]);
        let start = first.min(stride - LANES);
        let mut lanes = [[0; LANES]; 2];
        if last < start + LANES {
            channels.iter().enumerate().for_each(|(i, c)| lanes[0][i] = (c - start) as i32);
            return Pick::Near { start, lanes: lanes[0] };
        }
        let starts = [start, (start + LANES).min(stride - LANES)];
        if last < starts[1] + LANES {
            let mut second = [0; LANES];
            for (i, &c) in channels.iter().enumerate() {
                let half = usize::from(c >= start + LANES);
                lanes[half][i] = (c - starts[half]) as i32;
                second[i] = -(half as i32);
            }
            return Pick::Split { starts, lanes, second };
        }
        let mut far = [0; LANES];
        far[..channels.len()].copy_from_slice(channels);
        Pick::Far { channels: far, count: channels.len() }
    }
}

impl Spread {
    /// Spreads the weights of `groups` groups that make `lanes` channels each from `steps`; `weight(channel, step, tap)`.
    pub(crate) fn new(
        [groups, lanes, steps, taps]: [usize; 4],
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Spread {
        let (made, stride) = (groups * lanes, layout::stride(groups * lanes));
        let mut weights = vec![[0.0; LANES]; stride / LANES * taps * steps];
        for channel in 0..made {
            for step in 0..steps {
                for tap in 0..taps {
                    let place = (channel / LANES * taps + tap) * steps + step;
                    weights[place][channel % LANES] = weight(channel, step, tap);
                }
            }
        }
        let pick = |i: usize| {
            let (step, first) = (i % steps, i / steps * LANES);
            let meets = |channel: usize| channel / lanes * steps + step;
            let channels: Vec<usize> = (first..(first + LANES).min(made)).map(meets).collect();
            Pick::new(&channels, layout::stride(groups * steps))
        };
        Spread { steps, stride, taps, weights, picks: (0..stride / LANES * steps).map(pick).collect() }
    }
}
