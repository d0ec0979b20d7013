//! The weights of the zoo's fixtures: the rule that `testdata/zoo/rule.py` states.

use evenkeel_network::Tensor;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

pub(crate) fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Numbers in [-1, 1).
fn uniform(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let seed = fnv(name);
    (1..=count as u64).map(move |i| {
        let z = i.wrapping_mul(GOLDEN).wrapping_add(seed);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let z = z ^ (z >> 31);
        (z >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

/// A weight.
pub(crate) fn tensor(name: &str, shape: &[usize]) -> Tensor {
    let fan_in = shape.iter().skip(1).product::<usize>() as f64;
    let (offset, scale) = match name {
        _ if name.ends_with("running_var") => (1.0, 0.3),
        _ if name.ends_with("running_mean") || name.ends_with("bias") => (0.0, 0.2),
        _ if shape.len() >= 2 => (0.0, (6.0 / fan_in).sqrt()),
        _ => (0.8, 0.1),
    };
    let values = uniform(name, shape.iter().product()).map(|u| (offset + scale * u) as f32);
    Tensor::new(shape, values.collect::<Vec<f32>>())
}

/// The last layers of Mask R-CNN are scaled so that boxes move little and classes come out apart; in v2 by twice as much.
const SCALES: [(&str, f64); 5] = [
    ("rpn.head.bbox_pred.weight", 0.05),
    ("rpn.head.cls_logits.weight", 0.05),
    ("box_predictor.cls_score.weight", 0.2),
    ("box_predictor.bbox_pred.weight", 0.2),
    ("mask_fcn_logits.weight", 0.5),
];

/// A weight of Mask R-CNN.
pub(crate) fn of_mask_rcnn(name: &str, shape: &[usize], second: bool) -> Tensor {
    let more = if second { 2.0 } else { 1.0 };
    let scale =
        SCALES.iter().find(|(ending, _)| name.ends_with(ending)).map_or(1.0, |(_, scale)| scale * more);
    let values = tensor(name, shape);
    let scaled = values.values::<f32>().expect("floats").iter().map(|&v| (f64::from(v) * scale) as f32);
    Tensor::new(shape, scaled.collect::<Vec<f32>>())
}

/// An input or cotangent.
pub(crate) fn field(name: &str, shape: &[usize]) -> Tensor {
    let values = uniform(name, shape.iter().product()).map(|u| u as f32);
    Tensor::new(shape, values.collect::<Vec<f32>>())
}
