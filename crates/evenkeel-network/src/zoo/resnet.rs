//! ResNets with torchvision's names: a 7x7 stem, four stages of residual blocks, a linear classifier. Segmenters and detectors take the
//! [trunk] with dilations instead of strides in the last stages.

use super::IMAGE;
use super::draft::Draft;
use super::layers::Conv;

/// The epsilon of PyTorch's batch norms.
pub(super) const EPSILON: f32 = 1e-5;
const DEFAULT_CLASSES: usize = 1000;

/// What tells one ResNet from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResNet {
    /// Blocks in each stage.
    pub(super) blocks: [usize; 4],
    /// Blocks of three convolutions with four times the channels, not of two.
    pub(super) bottleneck: bool,
    /// Inner channels of a bottleneck for every 64 of the plain one.
    pub(super) width: usize,
    /// For each of the last three stages, whether its stride becomes a dilation.
    pub(super) dilated: [bool; 3],
    /// A dilated stage dilates its first block too, and the blocks of the last stage 1, 2 and 4 times as far.
    pub(super) multigrid: bool,
    /// Of the batch norms.
    pub(super) epsilon: f32,
}

impl ResNet {
    pub(super) const fn basic(blocks: [usize; 4]) -> ResNet {
        ResNet {
            blocks,
            bottleneck: false,
            width: 64,
            dilated: [false; 3],
            multigrid: false,
            epsilon: EPSILON,
        }
    }

    pub(super) const fn bottleneck(blocks: [usize; 4]) -> ResNet {
        ResNet { bottleneck: true, ..ResNet::basic(blocks) }
    }

    pub(super) const fn wide(self, width: usize) -> ResNet {
        ResNet { width, ..self }
    }

    pub(super) const fn dilated(self, dilated: [bool; 3]) -> ResNet {
        ResNet { dilated, ..self }
    }

    pub(super) const fn multigrid(self) -> ResNet {
        ResNet { multigrid: true, ..self }
    }

    /// The dilation of a block, given that of the stages before and that of its own.
    fn dilation(&self, (stage, block): (usize, usize), before: usize, own: usize) -> usize {
        match (self.multigrid, stage, block) {
            (true, 3, _) => own << block,
            (false, _, 0) => before,
            _ => own,
        }
    }

    /// Channels after stage `stage`.
    pub(super) fn channels(&self, stage: usize) -> usize {
        (64 << stage) * if self.bottleneck { 4 } else { 1 }
    }
}

/// One residual block.
struct Block {
    inputs: usize,
    planes: usize,
    stride: usize,
    dilation: usize,
}

/// A classifier.
pub(super) fn draw(draft: &mut Draft<'_>, net: &ResNet) {
    let stages = trunk(draft, "", net);
    let pooled = draft.global_mean(&stages[3], "avgpool");
    let flat = draft.flat(&pooled, "flatten");
    let classes = draft.extent("fc.weight", 0, DEFAULT_CLASSES);
    let logits = draft.linear(&flat, "fc", net.channels(3), classes);
    draft.logits(&logits, 2);
}

/// The stem and the stages; what each stage gives. `prefix` comes before every name.
pub(super) fn trunk(draft: &mut Draft<'_>, prefix: &str, net: &ResNet) -> [String; 4] {
    trunk_of(draft, IMAGE, prefix, net)
}

/// The same, of an image that was worked on before.
pub(super) fn trunk_of(draft: &mut Draft<'_>, image: &str, prefix: &str, net: &ResNet) -> [String; 4] {
    let x = draft.conv(image, &format!("{prefix}conv1"), Conv::new(3, 64, 7).stride(2));
    let x = draft.norm(&x, &format!("{prefix}bn1"), 64, net.epsilon);
    let x = draft.relu(&x, &format!("{prefix}relu"));
    let mut x = draft.max_pool(&x, &format!("{prefix}maxpool"), (3, 2, 1));
    let (mut inputs, mut dilation) = (64, 1);
    std::array::from_fn(|stage| {
        let before = dilation;
        let mut stride = if stage == 0 { 1 } else { 2 };
        if stage > 0 && net.dilated[stage - 1] {
            dilation *= stride;
            stride = 1;
        }
        let name = format!("{prefix}layer{}", stage + 1);
        for i in 0..net.blocks[stage] {
            let stride = if i == 0 { stride } else { 1 };
            let dilation = net.dilation((stage, i), before, dilation);
            let block = Block { inputs, planes: 64 << stage, stride, dilation };
            let out = if i + 1 == net.blocks[stage] { name.clone() } else { format!("{name}.{i}") };
            x = residual(draft, &x, (&format!("{name}.{i}"), &out), net, &block);
            inputs = net.channels(stage);
        }
        x.clone()
    })
}

/// relu(branch(x) + shortcut(x)).
fn residual(
    draft: &mut Draft<'_>,
    x: &str,
    (path, out): (&str, &str),
    net: &ResNet,
    block: &Block,
) -> String {
    let &Block { inputs, planes, stride, dilation } = block;
    let (outputs, branch) = if net.bottleneck {
        let width = planes * net.width / 64;
        let outputs = planes * 4;
        let three = [
            Conv::new(inputs, width, 1),
            Conv::new(width, width, 3).stride(stride).dilation(dilation),
            Conv::new(width, outputs, 1),
        ];
        (outputs, convolutions(draft, x, path, &three, net.epsilon))
    } else {
        let two = [
            Conv::new(inputs, planes, 3).stride(stride).dilation(dilation),
            Conv::new(planes, planes, 3).dilation(dilation),
        ];
        (planes, convolutions(draft, x, path, &two, net.epsilon))
    };
    let shortcut = if stride != 1 || inputs != outputs {
        let x = draft.conv(x, &format!("{path}.downsample.0"), Conv::new(inputs, outputs, 1).stride(stride));
        draft.norm(&x, &format!("{path}.downsample.1"), outputs, net.epsilon)
    } else {
        x.to_string()
    };
    let sum = draft.plain("Add", &format!("{path}.add"), &[&branch, &shortcut]);
    draft.relu(&sum, out)
}

/// Convolutions, each with its norm, and a ReLU between one and the next.
pub(super) fn convolutions(
    draft: &mut Draft<'_>,
    x: &str,
    path: &str,
    convs: &[Conv],
    epsilon: f32,
) -> String {
    let mut x = x.to_string();
    for (i, conv) in (1..).zip(convs) {
        if i > 1 {
            x = draft.relu(&x, &format!("{path}.relu"));
        }
        x = draft.conv(&x, &format!("{path}.conv{i}"), *conv);
        x = draft.norm(&x, &format!("{path}.bn{i}"), conv.outputs, epsilon);
    }
    x
}
