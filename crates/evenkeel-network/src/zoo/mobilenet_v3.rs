//! MobileNetV3-Large as a trunk with torchvision's names (`0` to `16`): inverted residuals, some of which weigh their channels by a small network
//! on the channels' means. The last stage has dilation 2 instead of its stride, so the map is a sixteenth of the image.

use super::IMAGE;
use super::blueprint::attributes;
use super::draft::Draft;
use super::layers::Conv;
use crate::op::Attribute;

/// The epsilon of its batch norms.
const EPSILON: f32 = 1e-3;

/// Which activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bend {
    Relu,
    HardSwish,
    None,
}

/// One inverted residual.
#[derive(Clone, Copy, Debug)]
struct Block {
    inputs: usize,
    kernel: usize,
    wide: usize,
    outputs: usize,
    weighed: bool,
    bend: Bend,
    stride: usize,
    dilation: usize,
}

/// Kernel, wide channels, channels, weighed, activation, stride, dilation.
type Row = (usize, usize, usize, bool, Bend, usize, usize);

const BLOCKS: [Row; 15] = [
    (3, 16, 16, false, Bend::Relu, 1, 1),
    (3, 64, 24, false, Bend::Relu, 2, 1),
    (3, 72, 24, false, Bend::Relu, 1, 1),
    (5, 72, 40, true, Bend::Relu, 2, 1),
    (5, 120, 40, true, Bend::Relu, 1, 1),
    (5, 120, 40, true, Bend::Relu, 1, 1),
    (3, 240, 80, false, Bend::HardSwish, 2, 1),
    (3, 200, 80, false, Bend::HardSwish, 1, 1),
    (3, 184, 80, false, Bend::HardSwish, 1, 1),
    (3, 184, 80, false, Bend::HardSwish, 1, 1),
    (3, 480, 112, true, Bend::HardSwish, 1, 1),
    (3, 672, 112, true, Bend::HardSwish, 1, 1),
    (5, 672, 160, true, Bend::HardSwish, 1, 2),
    (5, 960, 160, true, Bend::HardSwish, 1, 2),
    (5, 960, 160, true, Bend::HardSwish, 1, 2),
];
/// The block whose map is the early one, an eighth of the image.
const EARLY: usize = 4;
const STEM: usize = 16;
const LAST: usize = 960;

/// An early map and the last one, each with its channels.
pub(super) fn trunk(draft: &mut Draft<'_>, prefix: &str) -> ((String, usize), (String, usize)) {
    let stem = Conv::new(3, STEM, 3).stride(2);
    let mut x = unit(draft, IMAGE, &format!("{prefix}0"), stem, Bend::HardSwish);
    let mut inputs = STEM;
    let mut early = (x.clone(), inputs);
    for (number, row) in (1..).zip(BLOCKS) {
        let (kernel, wide, outputs, weighed, bend, stride, dilation) = row;
        let block = Block { inputs, kernel, wide, outputs, weighed, bend, stride, dilation };
        x = inverted(draft, &x, &format!("{prefix}{number}"), block);
        inputs = outputs;
        if number == EARLY {
            early = (x.clone(), outputs);
        }
    }
    let number = BLOCKS.len() + 1;
    let last = unit(draft, &x, &format!("{prefix}{number}"), Conv::new(inputs, LAST, 1), Bend::HardSwish);
    (early, (last, LAST))
}

/// A convolution, its norm and an activation: modules `0` and `1` of `path`.
fn unit(draft: &mut Draft<'_>, x: &str, path: &str, conv: Conv, bend: Bend) -> String {
    let y = draft.conv(x, &format!("{path}.0"), conv);
    let y = draft.norm(&y, &format!("{path}.1"), conv.outputs, EPSILON);
    match bend {
        Bend::Relu => draft.relu(&y, path),
        Bend::HardSwish => draft.plain("HardSwish", path, &[&y]),
        Bend::None => y,
    }
}

fn inverted(draft: &mut Draft<'_>, x: &str, path: &str, block: Block) -> String {
    let Block { inputs, kernel, wide, outputs, weighed, bend, stride, dilation } = block;
    let mut parts = (0..).map(|i| format!("{path}.block.{i}"));
    let mut part = || parts.next().unwrap_or_default();
    let mut y = x.to_string();
    if wide != inputs {
        y = unit(draft, &y, &part(), Conv::new(inputs, wide, 1), bend);
    }
    let each = Conv::new(wide, wide, kernel).stride(stride).dilation(dilation).depthwise();
    y = unit(draft, &y, &part(), each, bend);
    if weighed {
        y = weigh(draft, &y, &part(), wide);
    }
    y = unit(draft, &y, &part(), Conv::new(wide, outputs, 1), Bend::None);
    if stride == 1 && inputs == outputs { draft.plain("Add", path, &[&y, x]) } else { y }
}

/// Each channel times what a small network makes of the channels' means.
fn weigh(draft: &mut Draft<'_>, x: &str, path: &str, channels: usize) -> String {
    let narrow = multiple_of_8(channels / 4);
    let mean = draft.global_mean(x, &format!("{path}.avgpool"));
    let y = draft.conv(&mean, &format!("{path}.fc1"), Conv::new(channels, narrow, 1).bias());
    let y = draft.relu(&y, &format!("{path}.activation"));
    let y = draft.conv(&y, &format!("{path}.fc2"), Conv::new(narrow, channels, 1).bias());
    let with = attributes([("alpha", Attribute::Float(1.0 / 6.0)), ("beta", Attribute::Float(0.5))]);
    let scale = draft.step("HardSigmoid", &format!("{path}.scale"), &[&y], with);
    draft.plain("Mul", path, &[x, &scale])
}

/// The nearest multiple of 8, but not less than nine tenths.
fn multiple_of_8(channels: usize) -> usize {
    let near = ((channels + 4) / 8 * 8).max(8);
    if near * 10 < channels * 9 { near + 8 } else { near }
}
