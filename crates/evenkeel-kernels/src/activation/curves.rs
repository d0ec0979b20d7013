//! Elementary functions on `f32` without a branch, so that loops over them become vectors, within a few units in the last place.
//!
//! Multiplications and additions are joined, by instruction or by the standard library, so that every machine rounds alike. Each reduces its argument exactly and ends in a polynomial fitted to minimise the largest error. Infinities and NaN come
//! out as the functions' limits.

/// `coefficients[0] + x * (coefficients[1] + x * (...))`.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[i]);
    }
    sum
}

/// `x` as `n ln 2 + r` with `|r| <= ln(2)/2`. NaN stays NaN in the rest.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    const ROUND: f32 = 12_582_912.0; // adding it leaves the nearest integer in the low bits
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let bits = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let rest = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x)); // ln 2 in two parts, the first with few digits
    (bits, rest)
}

/// `e^r - 1` for `|r| <= ln(2)/2`.
#[inline(always)]
fn exp_m1_near_zero(r: f32) -> f32 {
    let curve = [0.5, 0.166_666_67, 4.166_634_2e-2, 8.333_271e-3, 1.394_204_6e-3, 1.991_562_3e-4];
    (r * r).mul_add(polynomial(r, curve), r)
}

/// `2^n` for `-126 <= n <= 127`, zero for -127 and infinity for 128.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `x` brought into `low..=high`; NaN stays.
#[inline(always)]
pub(super) fn between(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (n, r) = reduce(between(x, -104.0, 89.0));
    // In two factors, so that neither leaves the normal range on the way to a subnormal or to infinity.
    let half = n >> 1;
    (1.0 + exp_m1_near_zero(r)) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x - 1` for `x <= 0` (above, it is that of zero).
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    let (n, r) = reduce(between(x, -20.0, 0.0));
    let scale = power_of_two(n);
    exp_m1_near_zero(r) * scale + (scale - 1.0)
}

/// The natural logarithm.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 33_554_432.0 } else { x }; // 2^25
    let bits = scaled.to_bits() as i32;
    // The exponent that leaves a mantissa in [sqrt(1/2), sqrt 2).
    let exponent = (bits.wrapping_sub(0x3F35_04F3)) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let f = mantissa - 1.0;
    let curve = [
        0.333_333_1,
        -0.249_999_82,
        0.200_023_57,
        -0.166_696_1,
        0.142_160_12,
        -0.123_761_95,
        0.118_860_71,
        -0.118_458_97,
        6.952_493e-2,
    ];
    let n = exponent as f32 - if tiny { 25.0 } else { 0.0 };
    let square = f * f;
    let low = f * square * polynomial(f, curve) + n * -2.121_944_4e-4 - 0.5 * square;
    let result = f + low + n * 0.693_359_4;
    let special = if x == 0.0 {
        f32::NEG_INFINITY
    } else if x > 0.0 {
        f32::INFINITY
    } else {
        f32::NAN
    };
    if x > 0.0 && x < f32::INFINITY { result } else { special }
}

/// `ln(1 + x)` for `x >= 0`.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    // What the sum lost, to first order.
    let lost = x - (sum - 1.0);
    ln(sum) + if sum < f32::INFINITY { lost / sum } else { 0.0 }
}

/// `1 / (1 + e^-x)`; zero below -88.4, where it is not a normal number.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    sigmoid_pair(x).0
}

/// `sigmoid(x)` and `sigmoid(-x)`, from one exponential.
#[inline(always)]
pub fn sigmoid_pair(x: f32) -> (f32, f32) {
    // The power of two is zero at the lower end and infinite at the upper, and so is `e`.
    let (n, r) = reduce(between(-x, -88.0, 89.0));
    let scale = power_of_two(n);
    let e = (1.0 + exp_m1_near_zero(r)) * scale;
    let share = 1.0 / (1.0 + e);
    (share, if x < 0.0 { 1.0 - share } else { e * share })
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let t = exp_m1(-2.0 * x.abs());
    (-t / (t + 2.0)).copysign(x)
}

/// `erfc(x)` for `x >= 0`, to an absolute accuracy.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let x = if x > 11.0 { 11.0 } else { x };
    exp(-x * x) * erfc_times_exp(x)
}

/// `erfc(x) e^(x^2)` for `0 <= x <= 11`.
#[inline(always)]
fn erfc_times_exp(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.4 * x);
    let curve = [
        0.225_686_32,
        0.225_421_45,
        0.210_272_97,
        0.155_972_15,
        0.177_787,
        -6.028_942_5e-2,
        0.189_434_78,
        -0.118_553_05,
        -5.941_536_3e-2,
        7.088_327e-2,
        -1.720_009_3e-2,
    ];
    t * polynomial(t, curve)
}

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let far = x.abs();
    let curve = [
        std::f32::consts::FRAC_2_SQRT_PI,
        -0.376_126_27,
        0.112_836,
        -2.685_444_5e-2,
        5.189_535e-3,
        -8.020_842e-4,
        7.889_123e-5,
    ];
    let square = if far > 1.0 { 1.0 } else { x * x };
    let near = x * polynomial(square, curve);
    if far < 1.0 { near } else { (1.0 - erfc(far)).copysign(x) }
}

/// The normal distribution function, `(1 + erf(x / sqrt 2)) / 2`, and the density, `e^(-x^2/2) / sqrt(2 pi)`.
#[inline(always)]
pub fn normal(x: f32) -> (f32, f32) {
    let z = (x * std::f32::consts::FRAC_1_SQRT_2).abs();
    let z = if z > 11.0 { 11.0 } else { z };
    let bell = exp(-z * z);
    let epilogue = 0.5 * bell * erfc_times_exp(z);
    (if x < 0.0 { epilogue } else { 1.0 - epilogue }, 0.398_942_3 * bell)
}
