//! The pixels one point reads, their weights, and the weights' derivatives with respect to the point.
//!
//! The point's coordinate is brought inside by the padding before weighing (bilinear, nearest), or each neighbour's is (bicubic). Neighbours
//! outside a zero padding are left out.

use super::{Filter, Padding, Sampling};
use crate::real::Real;

/// One pixel a point reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tap<R> {
    pub(super) pixel: usize,
    pub(super) weight: R,
    /// The weight's derivative with respect to the point's x and y.
    pub(super) slope: [R; 2],
}

/// All pixels a point reads.
pub(super) struct Stencil<R> {
    taps: [Tap<R>; 16],
    count: usize,
}

/// Along one axis: the neighbours (none if left out), their weights and the weights' derivatives.
struct Line<R> {
    places: [Option<usize>; 4],
    weights: [R; 4],
    slopes: [R; 4],
    count: usize,
}

impl<R: Real> Stencil<R> {
    /// The stencil of point `[x, y]` on a map of height and width `size`.
    pub(super) fn at(sampling: Sampling, size: [usize; 2], point: [R; 2]) -> Stencil<R> {
        let across = Line::at(sampling, size[1], point[0]);
        let down = Line::at(sampling, size[0], point[1]);
        let mut stencil = Stencil { taps: [Tap::default(); 16], count: 0 };
        for j in 0..down.count {
            for i in 0..across.count {
                if let (Some(y), Some(x)) = (down.places[j], across.places[i]) {
                    stencil.taps[stencil.count] = Tap {
                        pixel: y * size[1] + x,
                        weight: down.weights[j] * across.weights[i],
                        slope: [down.weights[j] * across.slopes[i], down.slopes[j] * across.weights[i]],
                    };
                    stencil.count += 1;
                }
            }
        }
        stencil
    }

    pub(super) fn taps(&self) -> impl Iterator<Item = &Tap<R>> {
        self.taps[..self.count].iter()
    }
}

impl<R: Real> Line<R> {
    fn at(sampling: Sampling, size: usize, point: R) -> Line<R> {
        let (half, length) = (R::of(0.5), R::of(size as f64));
        let (u, rate) = if sampling.align_corners {
            ((point + R::ONE) * half * (length - R::ONE), half * (length - R::ONE))
        } else {
            (((point + R::ONE) * length - R::ONE) * half, half * length)
        };
        match sampling.filter {
            Filter::Bicubic => Line::cubic(sampling, size, u, rate),
            Filter::Bilinear => {
                let (u, turn) = inside(sampling, size, u);
                Line::linear(size, u, rate * turn)
            }
            Filter::Nearest => {
                let (u, _) = inside(sampling, size, u);
                let mut line = Line::empty();
                line.places[0] = place(u.wide().round_ties_even(), size);
                (line.weights[0], line.count) = (R::ONE, 1);
                line
            }
        }
    }

    fn empty() -> Line<R> {
        Line { places: [None; 4], weights: [R::ZERO; 4], slopes: [R::ZERO; 4], count: 0 }
    }

    fn linear(size: usize, u: R, rate: R) -> Line<R> {
        let below = u.floor();
        let part = u - below;
        let mut line = Line::empty();
        line.places[..2].copy_from_slice(&[place(below.wide(), size), place(below.wide() + 1.0, size)]);
        line.weights[..2].copy_from_slice(&[R::ONE - part, part]);
        line.slopes[..2].copy_from_slice(&[-rate, rate]);
        line.count = 2;
        line
    }

    fn cubic(sampling: Sampling, size: usize, u: R, rate: R) -> Line<R> {
        let below = u.floor();
        let part = u - below;
        let mut line = Line::empty();
        for (k, distance) in [part + R::ONE, part, R::ONE - part, R::of(2.0) - part].into_iter().enumerate() {
            let neighbour = below.wide() - 1.0 + k as f64;
            line.places[k] = match sampling.padding {
                Padding::Zeros => place(neighbour, size),
                _ => place(inside(sampling, size, neighbour).0.round(), size),
            };
            let (weight, slope) = keys(distance);
            line.weights[k] = weight;
            // The first two distances grow with the coordinate, the others shrink.
            line.slopes[k] = if k < 2 { slope * rate } else { -slope * rate };
        }
        line.count = 4;
        line
    }
}

/// The pixel at a whole coordinate, if it is on the map.
fn place(u: f64, size: usize) -> Option<usize> {
    (u >= 0.0 && u < size as f64).then_some(u as usize)
}

/// A coordinate brought inside the map by the padding, and how it moves there when it moves outside.
fn inside<R: Real>(sampling: Sampling, size: usize, u: R) -> (R, R) {
    match sampling.padding {
        Padding::Zeros => (u, R::ONE),
        Padding::Border => clamped(u, size),
        Padding::Reflection => {
            let (low, span) = if sampling.align_corners {
                (R::ZERO, R::of(size as f64 - 1.0))
            } else {
                (R::of(-0.5), R::of(size as f64))
            };
            if span <= R::ZERO {
                return (R::ZERO, R::ZERO);
            }
            let (away, sign) = if u < low { (low - u, -R::ONE) } else { (u - low, R::ONE) };
            let flips = (away / span).floor();
            let rest = away - flips * span;
            let (folded, turn) =
                if flips.wide() % 2.0 == 0.0 { (rest + low, sign) } else { (span - rest + low, -sign) };
            let (folded, held) = clamped(folded, size);
            (folded, turn * held)
        }
    }
}

fn clamped<R: Real>(u: R, size: usize) -> (R, R) {
    let last = R::of(size as f64 - 1.0);
    if u > R::ZERO && u < last {
        (u, R::ONE)
    } else if u >= last {
        (last, R::ZERO)
    } else {
        (R::ZERO, R::ZERO) // also what is not a number
    }
}

/// The cubic convolution's weight at a distance, and its derivative.
fn keys<R: Real>(d: R) -> (R, R) {
    let a = R::of(-0.75);
    let [two, three, four, five, eight] = [2.0, 3.0, 4.0, 5.0, 8.0].map(R::of);
    if d <= R::ONE {
        (((a + two) * d - (a + three)) * d * d + R::ONE, (three * (a + two) * d - two * (a + three)) * d)
    } else {
        (
            ((a * d - five * a) * d + eight * a) * d - four * a,
            (three * a * d - two * five * a) * d + eight * a,
        )
    }
}
