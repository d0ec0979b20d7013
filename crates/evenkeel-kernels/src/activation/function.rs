//! The smooth activations and their derivatives as formulas, in either precision: what the fast curves answer to.

use crate::real::Real;

/// A smooth (or piecewise smooth) activation whose derivative needs its input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x * sigmoid(beta * x)`; with beta 1 it is also called Swish.
    Silu {
        /// The factor inside.
        beta: f32,
    },
    /// The hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// `x * (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// `x * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`.
    GeluTanh,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `x * tanh(softplus(x))`.
    Mish,
    /// `e^x`.
    Exp,
    /// The natural logarithm.
    Log,
    /// `x * min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
    /// `min(max(alpha * x + beta, 0), 1)`.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
    /// `x` above zero, `alpha * (e^x - 1)` below.
    Elu {
        /// The depth.
        alpha: f32,
    },
    /// `gamma * x` above zero, `gamma * alpha * (e^x - 1)` below.
    Selu {
        /// The depth.
        alpha: f32,
        /// The scale.
        gamma: f32,
    },
    /// `x` above zero, `alpha * (e^(x/alpha) - 1)` below.
    Celu {
        /// The depth and width.
        alpha: f32,
    },
}

fn number<R: Real>(x: f32) -> R {
    R::of(f64::from(x))
}

fn sigmoid<R: Real>(x: R) -> R {
    R::ONE / (R::ONE + (-x).exp())
}

fn softplus<R: Real>(x: R) -> R {
    x.max(R::ZERO) + (-x.abs()).exp().ln_1p()
}

/// Twice the inside of the tanh of [`Function::GeluTanh`], and its derivative.
fn bent<R: Real>(x: R) -> (R, R) {
    let (scale, cube) = (R::of(2.0 * (2.0 / std::f64::consts::PI).sqrt()), R::of(0.044715));
    (scale * (x + cube * x * x * x), scale * (R::ONE + R::of(3.0) * cube * x * x))
}

impl Function {
    /// The value at `x`.
    pub fn value<R: Real>(self, x: R) -> R {
        let half = R::of(0.5);
        match self {
            Function::Sigmoid => sigmoid(x),
            Function::Silu { beta } => x * sigmoid(number::<R>(beta) * x),
            Function::Tanh => x.tanh(),
            Function::Erf => x.erf(),
            Function::Gelu => half * x * (R::ONE + (x * R::of(0.5f64.sqrt())).erf()),
            Function::GeluTanh => x * sigmoid(bent(x).0),
            Function::Softplus => softplus(x),
            Function::Mish => x * softplus(x).tanh(),
            Function::Exp => x.exp(),
            Function::Log => x.ln(),
            Function::HardSwish => x * (x / R::of(6.0) + half).max(R::ZERO).min(R::ONE),
            Function::HardSigmoid { alpha, beta } => {
                (number::<R>(alpha) * x + number(beta)).max(R::ZERO).min(R::ONE)
            }
            Function::Elu { alpha } => below(x, |x| number::<R>(alpha) * x.exp_m1()),
            Function::Selu { alpha, gamma } => {
                number::<R>(gamma) * below(x, |x| number::<R>(alpha) * x.exp_m1())
            }
            Function::Celu { alpha } => below(x, |x| number::<R>(alpha) * (x / number(alpha)).exp_m1()),
        }
    }

    /// The derivative at `x`. At a kink it is the derivative from below.
    pub fn slope<R: Real>(self, x: R) -> R {
        let (half, one) = (R::of(0.5), R::ONE);
        let above = |inside: R| if x > R::ZERO { one } else { inside };
        match self {
            Function::Sigmoid => sigmoid(x) * sigmoid(-x),
            Function::Silu { beta } => {
                let beta = number::<R>(beta);
                sigmoid(beta * x) * (one + beta * x * sigmoid(-beta * x))
            }
            Function::Tanh => one - x.tanh() * x.tanh(),
            Function::Erf => R::of(std::f64::consts::FRAC_2_SQRT_PI) * (-x * x).exp(),
            Function::Gelu => {
                let density =
                    R::of(0.5 * std::f64::consts::FRAC_2_SQRT_PI * 0.5f64.sqrt()) * (-half * x * x).exp();
                half * (one + (x * R::of(0.5f64.sqrt())).erf()) + x * density
            }
            Function::GeluTanh => {
                let (inside, slope) = bent(x);
                sigmoid(inside) * (one + x * slope * sigmoid(-inside))
            }
            Function::Softplus => sigmoid(x),
            Function::Mish => {
                let t = softplus(x).tanh();
                t + x * (one - t * t) * sigmoid(x)
            }
            Function::Exp => x.exp(),
            Function::Log => one / x,
            Function::HardSwish => {
                let three = R::of(3.0);
                if x <= -three {
                    R::ZERO
                } else if x < three {
                    x / three + half
                } else {
                    one
                }
            }
            Function::HardSigmoid { alpha, beta } => {
                let y = number::<R>(alpha) * x + number(beta);
                if y > R::ZERO && y < one { number(alpha) } else { R::ZERO }
            }
            Function::Elu { alpha } => above(number::<R>(alpha) * x.exp()),
            Function::Selu { alpha, gamma } => number::<R>(gamma) * above(number::<R>(alpha) * x.exp()),
            Function::Celu { alpha } => above((x / number(alpha)).exp()),
        }
    }
}

fn below<R: Real>(x: R, curve: impl Fn(R) -> R) -> R {
    if x > R::ZERO { x } else { curve(x) }
}
