//! The three one-dimensional transforms of a Winograd convolution with three taps, for four and for six points.
//!
//! With `n` input and `m = n - 2` output values, `y = A' ((G g) . (B' x))`, and in two dimensions each is applied to columns, then to
//! rows. The points are 0, 1, -1 and infinity for `n = 4`; 0, a, -a, b, -b and infinity for `n = 6`. With a = 5/8 and b = 3/2 every
//! constant is exact in an f32 and the rounding error is less than half that of the usual 1 and 2, at the same number of
//! instructions.

use crate::lanes::Lanes;

const A: f64 = 0.625;
const B: f64 = 1.5;

/// `B' x`: `n` input values to their values at the `n` points.
#[inline(always)]
pub(super) fn input<L: Lanes, const N: usize>(l: L, x: [L::Vector; N]) -> [L::Vector; N] {
    let mut v = x;
    if N == 4 {
        v[0] = l.sub(x[0], x[2]);
        v[1] = l.add(x[2], x[1]);
        v[2] = l.sub(x[2], x[1]);
        v[3] = l.sub(x[3], x[1]);
    } else {
        let (a, b) = (l.splat(A as f32), l.splat(B as f32));
        let (a2, b2) = (l.splat((A * A) as f32), l.splat((B * B) as f32));
        let (sum, product) = (l.splat((A * A + B * B) as f32), l.splat((A * A * B * B) as f32));
        let (even_a, odd_a) = (l.mul_sub(b2, x[2], x[4]), l.mul_sub(b2, x[1], x[3]));
        let (even_b, odd_b) = (l.mul_sub(a2, x[2], x[4]), l.mul_sub(a2, x[1], x[3]));
        v[0] = l.mul_add(product, x[0], l.mul_sub(sum, x[2], x[4]));
        v[1] = l.mul_add(a, odd_a, even_a);
        v[2] = l.mul_sub(a, odd_a, even_a);
        v[3] = l.mul_add(b, odd_b, even_b);
        v[4] = l.mul_sub(b, odd_b, even_b);
        v[5] = l.mul_add(product, x[1], l.mul_sub(sum, x[3], x[5]));
    }
    v
}

/// `A' x`: the products at the `n` points to `m` output values.
#[inline(always)]
pub(super) fn output<L: Lanes, const N: usize, const M: usize>(l: L, x: [L::Vector; N]) -> [L::Vector; M] {
    let mut y = [x[0]; M];
    if N == 4 {
        y[0] = l.add(x[0], l.add(x[1], x[2]));
        y[1] = l.add(x[3], l.sub(x[1], x[2]));
    } else {
        let (a, a2, a3) = (l.splat(A as f32), l.splat((A * A) as f32), l.splat((A * A * A) as f32));
        let (b, b2, b3) = (l.splat(B as f32), l.splat((B * B) as f32), l.splat((B * B * B) as f32));
        let (even_a, odd_a) = (l.add(x[1], x[2]), l.sub(x[1], x[2]));
        let (even_b, odd_b) = (l.add(x[3], x[4]), l.sub(x[3], x[4]));
        y[0] = l.add(x[0], l.add(even_a, even_b));
        y[1] = l.mul_add(a, odd_a, l.mul(b, odd_b));
        y[2] = l.mul_add(a2, even_a, l.mul(b2, even_b));
        y[3] = l.mul_add(a3, odd_a, l.mul_add(b3, odd_b, x[5]));
    }
    y
}

/// `G g` in two dimensions: a 3x3 kernel to its values at `N * N` points.
pub(super) fn weights<const N: usize>(kernel: [[f64; 3]; 3]) -> [[f64; N]; N] {
    let half: [[f64; N]; 3] = std::array::from_fn(|j| weights_1d::<N>([0, 1, 2].map(|i| kernel[i][j])));
    std::array::from_fn(|p| weights_1d::<N>([0, 1, 2].map(|j| half[j][p])))
}

fn weights_1d<const N: usize>(g: [f64; 3]) -> [f64; N] {
    let at = |p: f64| g[0] + p * g[1] + p * p * g[2];
    let mut u = [0.0; N];
    if N == 4 {
        u[0] = g[0];
        u[1] = at(1.0) / 2.0;
        u[2] = at(-1.0) / 2.0;
    } else {
        let (a2, b2) = (A * A, B * B);
        u[0] = g[0] / (a2 * b2);
        u[1] = at(A) / (2.0 * a2 * (a2 - b2));
        u[2] = at(-A) / (2.0 * a2 * (a2 - b2));
        u[3] = at(B) / (2.0 * b2 * (b2 - a2));
        u[4] = at(-B) / (2.0 * b2 * (b2 - a2));
    }
    u[N - 1] = g[2];
    u
}
