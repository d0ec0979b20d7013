//! Losses of one cell: a function of its class scores z and its label y, with the gradient beside it.
//!
//! Every loss is to be raised by an untargeted attacker. They share one signature, so a mean over cells serves all.

use super::LossKind;

/// What a cell's loss may also depend on.
pub(super) struct Context<'a> {
    /// Factor for Houdini: one minus the IoU of the image.
    pub(super) task_loss: f32,
    /// How far the loop is, from 0 to 1 (exclusive), for SegPGD.
    pub(super) progress: f32,
    /// Confidence of the margin.
    pub(super) confidence: f32,
    /// Whether the labels are wanted rather than true.
    pub(super) towards: bool,
    /// The class wanted, for targeted DLR.
    pub(super) wanted: Option<&'a [u16]>,
}

/// The loss of a cell, its gradient added nowhere but written to `gradient` (which comes zeroed).
pub(super) fn loss(
    kind: LossKind,
    z: &[f32],
    y: usize,
    wanted: usize,
    context: &Context<'_>,
    gradient: &mut [f32],
) -> f32 {
    match kind {
        LossKind::CrossEntropy => cross_entropy(z, y, gradient),
        LossKind::Margin if context.towards => wanted_margin(z, y, context.confidence, gradient),
        LossKind::Margin => margin(z, y, context.confidence, gradient),
        LossKind::Dlr => dlr(z, y, gradient),
        LossKind::DlrTargeted => dlr_targeted(z, y, wanted, gradient),
        LossKind::Houdini => houdini(z, y, context.task_loss, gradient),
        LossKind::SegPgd => {
            let right = rival(z, y).is_none_or(|j| z[y] >= z[j]);
            let weight = if right { 1.0 - context.progress / 2.0 } else { context.progress / 2.0 };
            scaled(weight, cross_entropy(z, y, gradient), gradient)
        }
        LossKind::MaskedCrossEntropy => {
            let right = rival(z, y).is_none_or(|j| z[y] >= z[j]);
            if right { cross_entropy(z, y, gradient) } else { 0.0 }
        }
        LossKind::JensenShannon => jensen_shannon(z, y, gradient),
    }
}

fn scaled(weight: f32, value: f32, gradient: &mut [f32]) -> f32 {
    gradient.iter_mut().for_each(|g| *g *= weight);
    weight * value
}

/// The best class other than y.
pub(super) fn rival(z: &[f32], y: usize) -> Option<usize> {
    (0..z.len()).filter(|&j| j != y).fold(None, |best, j| match best {
        Some(b) if z[b] >= z[j] => best,
        _ => Some(j),
    })
}

/// Softmax into `out`, and ln of the sum of exponentials.
fn softmax(z: &[f32], out: &mut [f32]) -> f32 {
    let top = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (o, &v) in out.iter_mut().zip(z) {
        *o = (v - top).exp();
        sum += *o;
    }
    out.iter_mut().for_each(|o| *o /= sum);
    top + sum.ln()
}

/// −ln softmax(z)_y; gradient softmax(z) − onehot(y).
fn cross_entropy(z: &[f32], y: usize, gradient: &mut [f32]) -> f32 {
    let log_sum = softmax(z, gradient);
    gradient[y] -= 1.0;
    log_sum - z[y]
}

/// min(max_{j≠y} z_j − z_y, κ).
fn margin(z: &[f32], y: usize, confidence: f32, gradient: &mut [f32]) -> f32 {
    let Some(j) = rival(z, y) else { return 0.0 };
    let margin = z[j] - z[y];
    if margin < confidence {
        gradient[j] = 1.0;
        gradient[y] = -1.0;
    }
    margin.min(confidence)
}

/// max(max_{j≠y} z_j − z_y, −κ): what an attacker who wants y lowers.
fn wanted_margin(z: &[f32], y: usize, confidence: f32, gradient: &mut [f32]) -> f32 {
    let Some(j) = rival(z, y) else { return 0.0 };
    let margin = z[j] - z[y];
    if margin > -confidence {
        gradient[j] = 1.0;
        gradient[y] = -1.0;
    }
    margin.max(-confidence)
}

/// The classes in falling order of score, the first `count` of them.
fn ranked(z: &[f32], count: usize) -> [usize; 4] {
    let mut top = [0; 4];
    for rank in 0..count.min(z.len()) {
        let best =
            (0..z.len()).filter(|j| !top[..rank].contains(j)).fold(
                None,
                |best: Option<usize>, j| match best {
                    Some(b) if z[b] >= z[j] => best,
                    _ => Some(j),
                },
            );
        top[rank] = best.unwrap_or(0);
    }
    top
}

/// −(z_y − max_{j≠y} z_j) / (z_π1 − z_π3).
fn dlr(z: &[f32], y: usize, gradient: &mut [f32]) -> f32 {
    let top = ranked(z, 3);
    let Some(j) = rival(z, y) else { return 0.0 };
    let below = z[top[0]] - z[top[2]] + 1e-12;
    let above = z[y] - z[j];
    gradient[y] -= 1.0 / below;
    gradient[j] += 1.0 / below;
    gradient[top[0]] += above / (below * below);
    gradient[top[2]] -= above / (below * below);
    -above / below
}

/// −(z_y − z_t) / (z_π1 − (z_π3 + z_π4)/2).
fn dlr_targeted(z: &[f32], y: usize, t: usize, gradient: &mut [f32]) -> f32 {
    let top = ranked(z, 4);
    let below = z[top[0]] - 0.5 * (z[top[2]] + z[top[3]]) + 1e-12;
    let above = z[y] - z[t];
    gradient[y] -= 1.0 / below;
    gradient[t] += 1.0 / below;
    let slope = above / (below * below);
    gradient[top[0]] += slope;
    gradient[top[2]] -= 0.5 * slope;
    gradient[top[3]] -= 0.5 * slope;
    -above / below
}

/// P(N(0,1) > z_y − z_rival) · task loss.
fn houdini(z: &[f32], y: usize, task_loss: f32, gradient: &mut [f32]) -> f32 {
    let Some(j) = rival(z, y) else { return 0.0 };
    let margin = f64::from(z[y] - z[j]);
    let density = ((-0.5 * margin * margin).exp() / std::f64::consts::TAU.sqrt()) as f32;
    gradient[y] = -density * task_loss;
    gradient[j] = density * task_loss;
    normal_tail(margin) as f32 * task_loss
}

/// The probability that a standard normal draw exceeds x (Abramowitz & Stegun 26.2.17, to 1e-7).
fn normal_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let poly = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    let tail = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * poly;
    if x >= 0.0 { tail } else { 1.0 - tail }
}

/// The Jensen-Shannon divergence of softmax(z) and onehot(y): with p the probability of y, m = (1+p)/2,
/// ½(−ln m) + ½(p ln(p/m) + (1−p) ln 2).
fn jensen_shannon(z: &[f32], y: usize, gradient: &mut [f32]) -> f32 {
    softmax(z, gradient);
    let p = gradient[y].max(1e-30);
    let m = 0.5 * (1.0 + p);
    let ln2 = std::f32::consts::LN_2;
    let value = 0.5 * (-m.ln() + p * (p / m).ln() + (1.0 - p) * ln2);
    // d/dp: ½(−1/(2m) + ln(p/m) + 1 − p/(2m) − ln 2) = ½(ln(p/m) − ln 2), since (1 + p)/(2m) = 1
    let slope = 0.5 * ((p / m).ln() - ln2);
    // dp/dz_j = p(δ_jy − s_j)
    for (j, g) in gradient.iter_mut().enumerate() {
        *g = slope * p * (if j == y { 1.0 } else { 0.0 } - *g);
    }
    value
}
