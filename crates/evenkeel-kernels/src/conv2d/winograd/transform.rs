//! The three one-dimensional transforms of a Winograd convolution with three taps, for four and for six points.
//!
//! With `n` input and `m = n - 2` output values, `y = A' ((G g) . (B' x))`, and in two dimensions each is applied to columns, then to
//! rows. The points are 0, 1, -1 and infinity for `n = 4`; 0, a, -a, b, -b and infinity for `n = 6`. With a = 5/8 and b = 3/2 every
//! constant is exact in an f32 and the rounding error is less than half that of the usual 1 and 2, at the same number of
//! instructions.

use super::packed::PANEL;
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

/// A double in each lane of a panel.
type Doubles = [f64; PANEL];

/// `G g` in two dimensions: 3x3 kernels, `[tap][lane]`, to their values at `N * N` points, of which `give` gets one after another. In
/// doubles, so that a weight's only rounding is the last.
#[inline(always)]
pub(super) fn weights<const N: usize>(kernel: &[f32; 9 * PANEL], mut give: impl FnMut(usize, [f32; PANEL])) {
    let mut half = [[[0.0; PANEL]; N]; 3]; // [column][point]
    for x in 0..3 {
        let mut column = [[0.0; PANEL]; 3];
        for y in 0..3 {
            for lane in 0..PANEL {
                column[y][lane] = f64::from(kernel[(y * 3 + x) * PANEL + lane]);
            }
        }
        half[x] = weights_1d::<N>(&column);
    }
    for p in 0..N {
        let row = weights_1d::<N>(&[half[0][p], half[1][p], half[2][p]]);
        for (q, doubles) in row.iter().enumerate() {
            let mut lanes = [0.0; PANEL];
            for lane in 0..PANEL {
                lanes[lane] = doubles[lane] as f32;
            }
            give(p * N + q, lanes);
        }
    }
}

#[inline(always)]
fn weights_1d<const N: usize>(g: &[Doubles; 3]) -> [Doubles; N] {
    let mut u = [[0.0; PANEL]; N];
    for lane in 0..PANEL {
        let [g0, g1, g2] = [g[0][lane], g[1][lane], g[2][lane]];
        if N == 4 {
            u[0][lane] = g0;
            u[1][lane] = (g0 + g2 + g1) * 0.5;
            u[2][lane] = (g0 + g2 - g1) * 0.5;
        } else {
            const A2: f64 = A * A;
            const B2: f64 = B * B;
            const ZERO: f64 = 1.0 / (A2 * B2);
            const BY_A: f64 = 1.0 / (2.0 * A2 * (A2 - B2));
            const BY_B: f64 = 1.0 / (2.0 * B2 * (B2 - A2));
            let (even_a, odd_a) = (g0 + A2 * g2, A * g1);
            let (even_b, odd_b) = (g0 + B2 * g2, B * g1);
            u[0][lane] = g0 * ZERO;
            u[1][lane] = (even_a + odd_a) * BY_A;
            u[2][lane] = (even_a - odd_a) * BY_A;
            u[3][lane] = (even_b + odd_b) * BY_B;
            u[4][lane] = (even_b - odd_b) * BY_B;
        }
        u[N - 1][lane] = g2;
    }
    u
}
