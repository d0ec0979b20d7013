//! The smooth activations over slices: `y = f(x)` forwards, `g *= f'(x)` back.
//!
//! Each function is a [`Curve`] whose value and slope are free of branches; one loop serves them all, and the choice of the
//! curve is made once a slice. Derivatives are arranged so that nothing cancels where they are small.

use super::GRAIN;
use super::curves::{self, exp, exp_m1, sigmoid};
use super::function::Function;
use crate::disjoint::Disjoint;
use crate::parallel;
use crate::vectorised::vectorised;

/// `output = function(input)`.
///
/// # Panics
/// If the slices differ in length.
pub fn apply(function: Function, input: &[f32], output: &mut [f32]) {
    assert_eq!(input.len(), output.len());
    if output.is_empty() {
        return;
    }
    parallel::rows(output, 1, GRAIN / 4, |first, part| {
        let end = first + part.len();
        choose(function, Values { input: &input[first..end], output: part });
    });
}

/// `values = function(values)`.
pub fn apply_in_place(function: Function, values: &mut [f32]) {
    if !values.is_empty() {
        parallel::rows(values, 1, GRAIN / 4, |_, part| choose(function, InPlace(part)));
    }
}

/// [`apply_in_place`] on this thread.
pub(crate) fn apply_part(function: Function, values: &mut [f32]) {
    choose(function, InPlace(values));
}

/// `grad *= function'(input)`: the pullback, given what went in.
///
/// # Panics
/// If the slices differ in length.
pub fn pull(function: Function, input: &[f32], grad: &mut [f32]) {
    assert_eq!(input.len(), grad.len());
    if grad.is_empty() {
        return;
    }
    parallel::rows(grad, 1, GRAIN / 4, |first, part| {
        let end = first + part.len();
        choose(function, Slopes { input: &input[first..end], grad: part });
    });
}

/// `output = function(kept)` and `kept = function'(kept)`: forwards with a tape, so that the pullback is one multiplication by
/// what is kept.
///
/// # Panics
/// If the slices differ in length.
pub fn apply_with_slopes(function: Function, kept: &mut [f32], output: &mut [f32]) {
    assert_eq!(kept.len(), output.len());
    if output.is_empty() {
        return;
    }
    let slopes = Disjoint::new(kept);
    parallel::rows(output, 1, GRAIN / 4, |first, part| {
        // SAFETY: parts of the output do not overlap, nor do the same places of what is kept.
        let kept = unsafe { slopes.part(first..first + part.len()) };
        choose(function, Both { kept, output: part });
    });
}

/// One activation: its value and its derivative.
trait Curve: Copy {
    fn value(self, x: f32) -> f32;
    fn slope(self, x: f32) -> f32;
    /// Both, sharing what they have in common; the value is the same bits as alone.
    #[inline(always)]
    fn both(self, x: f32) -> (f32, f32) {
        (self.value(x), self.slope(x))
    }
}

/// What to do along a curve.
trait Along {
    fn along<C: Curve>(self, curve: C);
}

struct Values<'a> {
    input: &'a [f32],
    output: &'a mut [f32],
}

struct Slopes<'a> {
    input: &'a [f32],
    grad: &'a mut [f32],
}

impl Along for Values<'_> {
    fn along<C: Curve>(self, curve: C) {
        values(curve, self.input, self.output);
    }
}

struct InPlace<'a>(&'a mut [f32]);

impl Along for InPlace<'_> {
    fn along<C: Curve>(self, curve: C) {
        in_place(curve, self.0);
    }
}

struct Both<'a> {
    kept: &'a mut [f32],
    output: &'a mut [f32],
}

impl Along for Both<'_> {
    fn along<C: Curve>(self, curve: C) {
        both(curve, self.kept, self.output);
    }
}

impl Along for Slopes<'_> {
    fn along<C: Curve>(self, curve: C) {
        slopes(curve, self.input, self.grad);
    }
}

vectorised! {
    widest fn values<C: Curve>(curve: C, input: &[f32], output: &mut [f32]) {
        for (&x, y) in input.iter().zip(output) {
            *y = curve.value(x);
        }
    }
}

vectorised! {
    widest fn in_place<C: Curve>(curve: C, values: &mut [f32]) {
        for y in values {
            *y = curve.value(*y);
        }
    }
}

vectorised! {
    widest fn slopes<C: Curve>(curve: C, input: &[f32], grad: &mut [f32]) {
        for (&x, g) in input.iter().zip(grad) {
            *g *= curve.slope(x);
        }
    }
}

vectorised! {
    widest fn both<C: Curve>(curve: C, kept: &mut [f32], output: &mut [f32]) {
        for (x, y) in kept.iter_mut().zip(output) {
            (*y, *x) = curve.both(*x);
        }
    }
}

fn choose(function: Function, task: impl Along) {
    match function {
        Function::Sigmoid => task.along(Sigmoid),
        Function::Silu { beta } => task.along(Silu(beta)),
        Function::Tanh => task.along(Tanh),
        Function::Erf => task.along(Erf),
        Function::Gelu => task.along(Gelu),
        Function::GeluTanh => task.along(GeluTanh),
        Function::Softplus => task.along(Softplus),
        Function::Mish => task.along(Mish),
        Function::Exp => task.along(Exp),
        Function::Log => task.along(Log),
        Function::HardSwish => task.along(HardSwish),
        Function::HardSigmoid { alpha, beta } => task.along(HardSigmoid(alpha, beta)),
        Function::Elu { alpha } => task.along(Elu { alpha, gamma: 1.0, width: 1.0 }),
        Function::Selu { alpha, gamma } => task.along(Elu { alpha, gamma, width: 1.0 }),
        Function::Celu { alpha } => task.along(Elu { alpha, gamma: 1.0, width: alpha }),
    }
}

/// Defines a curve by its value and its slope.
macro_rules! curve {
    ($name:ident $(($($field:ident),*))?, $x:ident => $value:expr, $slope:expr) => {
        #[derive(Clone, Copy)]
        struct $name $(($(curve!(@f32 $field)),*))?;

        impl Curve for $name {
            #[inline(always)]
            fn value(self, $x: f32) -> f32 {
                let $name $(($($field),*))? = self;
                $value
            }
            #[inline(always)]
            fn slope(self, $x: f32) -> f32 {
                let $name $(($($field),*))? = self;
                $slope
            }
        }
    };
    (@f32 $field:ident) => { f32 };
}

curve!(Sigmoid, x => sigmoid(x), {
    let e = exp(-x.abs());
    e / ((1.0 + e) * (1.0 + e))
});
curve!(Tanh, x => curves::tanh(x), {
    let e = exp(-2.0 * x.abs());
    4.0 * e / ((1.0 + e) * (1.0 + e))
});
curve!(Erf, x => curves::erf(x), std::f32::consts::FRAC_2_SQRT_PI * exp(-x * x));
curve!(GeluTanh, x => x * sigmoid(bent(x).0), {
    let (inside, slope) = bent(x);
    sigmoid(inside) * (1.0 + x * slope * sigmoid(-inside))
});
curve!(
    Softplus,
    x => (if x < 0.0 { 0.0 } else { x }) + curves::ln_1p(exp(-x.abs())),
    sigmoid(x)
);
curve!(Mish, x => x * mish(x).0, {
    let (t, rest) = mish(x);
    t + x * rest * (1.0 + t) * sigmoid(x)
});
curve!(Exp, x => exp(x), exp(x));
curve!(Log, x => curves::ln(x), 1.0 / x);
curve!(HardSwish, x => x * (x / 6.0 + 0.5).clamp(0.0, 1.0), {
    let inside = if x < 3.0 { x / 3.0 + 0.5 } else { 1.0 };
    if x <= -3.0 { 0.0 } else { inside }
});
curve!(HardSigmoid(alpha, beta), x => (alpha * x + beta).clamp(0.0, 1.0), {
    let y = alpha * x + beta;
    if y > 0.0 && y < 1.0 { alpha } else { 0.0 }
});

/// `x * sigmoid(beta * x)`.
#[derive(Clone, Copy)]
struct Silu(f32);

impl Curve for Silu {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        x * sigmoid(self.0 * x)
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        self.both(x).1
    }

    #[inline(always)]
    fn both(self, x: f32) -> (f32, f32) {
        let inside = self.0 * x;
        let (share, rest) = curves::sigmoid_pair(inside);
        (x * share, share * (1.0 + inside * rest))
    }
}

/// `x` times the normal distribution function.
#[derive(Clone, Copy)]
struct Gelu;

impl Curve for Gelu {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        x * curves::normal(x).0
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        self.both(x).1
    }

    #[inline(always)]
    fn both(self, x: f32) -> (f32, f32) {
        let (share, density) = curves::normal(x);
        (x * share, share + x * density)
    }
}

/// Elu, Selu and Celu: `gamma * x` above zero, `gamma * alpha * (e^(x/width) - 1)` below.
#[derive(Clone, Copy)]
struct Elu {
    alpha: f32,
    gamma: f32,
    width: f32,
}

impl Curve for Elu {
    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        let below = self.alpha * exp_m1(x / self.width);
        self.gamma * if x > 0.0 { x } else { below }
    }

    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        let below = self.alpha / self.width * exp(x / self.width);
        self.gamma * if x > 0.0 { 1.0 } else { below }
    }
}

/// `2 sqrt(2/pi) (x + 0.044715 x^3)` and its derivative, held where a sigmoid is long flat so that neither overflows.
#[inline(always)]
fn bent(x: f32) -> (f32, f32) {
    let x = curves::between(x, -40.0, 40.0);
    let (scale, cube) = (1.595_769, 0.044_715);
    (scale * x * (1.0 + cube * x * x), scale * (1.0 + 3.0 * cube * x * x))
}

/// `t = tanh(softplus(x))` and `1 - t`, both from `e^-|x|`, so that neither cancels.
#[inline(always)]
fn mish(x: f32) -> (f32, f32) {
    let e = exp(-x.abs());
    let (low, high) = (e * (e + 2.0), 1.0 + 2.0 * e);
    let whole = if x < 0.0 { low + 2.0 } else { high + 2.0 * e * e };
    let (part, rest) = if x < 0.0 { (low, 2.0) } else { (high, 2.0 * e * e) };
    (part / whole, rest / whole)
}
