//! The layers the families share, each a step or a few, named by the PyTorch module whose weights it takes.

use super::blueprint::attributes;
use super::draft::Draft;
use crate::op::Attribute;

/// A square convolution. Padding keeps the size at stride 1 unless it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conv {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) dilation: usize,
    pub(super) groups: usize,
    pub(super) padding: Option<usize>,
    pub(super) bias: bool,
}

impl Conv {
    /// Stride 1, no dilation, no bias.
    pub(super) fn new(inputs: usize, outputs: usize, kernel: usize) -> Conv {
        Conv { inputs, outputs, kernel, stride: 1, dilation: 1, groups: 1, padding: None, bias: false }
    }

    pub(super) fn stride(self, stride: usize) -> Conv {
        Conv { stride, ..self }
    }

    pub(super) fn dilation(self, dilation: usize) -> Conv {
        Conv { dilation, ..self }
    }

    /// One filter a channel.
    pub(super) fn depthwise(self) -> Conv {
        Conv { groups: self.inputs, ..self }
    }

    pub(super) fn padding(self, padding: usize) -> Conv {
        Conv { padding: Some(padding), ..self }
    }

    pub(super) fn bias(self) -> Conv {
        Conv { bias: true, ..self }
    }
}

fn pair(value: usize) -> Attribute {
    Attribute::Ints(vec![value as i64; 2])
}

impl Draft<'_> {
    /// A convolution with the weights of module `path`.
    pub(super) fn conv(&mut self, x: &str, path: &str, conv: Conv) -> String {
        let Conv { inputs, outputs, kernel, stride, dilation, groups, padding, bias } = conv;
        let weight = self.weight(&format!("{path}.weight"), &[outputs, inputs / groups, kernel, kernel]);
        let mut names = vec![x.to_string(), weight];
        if bias {
            names.push(self.weight(&format!("{path}.bias"), &[outputs]));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let padding = padding.unwrap_or(dilation * (kernel - 1) / 2);
        let with = attributes([
            ("kernel_shape", pair(kernel)),
            ("strides", pair(stride)),
            ("dilations", pair(dilation)),
            ("pads", Attribute::Ints(vec![padding as i64; 4])),
            ("group", Attribute::Int(groups as i64)),
        ]);
        self.step("Conv", path, &names, with)
    }

    /// Batch normalisation with the statistics of module `path`.
    pub(super) fn norm(&mut self, x: &str, path: &str, channels: usize, epsilon: f32) -> String {
        let parts = ["weight", "bias", "running_mean", "running_var"];
        let parts = parts.map(|part| self.weight(&format!("{path}.{part}"), &[channels]));
        let [scale, shift, mean, variance] = &parts;
        let with = attributes([("epsilon", Attribute::Float(epsilon))]);
        self.step("BatchNormalization", path, &[x, scale, shift, mean, variance], with)
    }

    /// max(x, 0).
    pub(super) fn relu(&mut self, x: &str, name: &str) -> String {
        self.plain("Relu", name, &[x])
    }

    /// x weight' + bias, with the weights of module `path`. `x` is `[n, inputs]`.
    pub(super) fn linear(&mut self, x: &str, path: &str, inputs: usize, outputs: usize) -> String {
        let weight = self.weight(&format!("{path}.weight"), &[outputs, inputs]);
        let bias = self.weight(&format!("{path}.bias"), &[outputs]);
        let with = attributes([("transB", Attribute::Int(1))]);
        self.step("Gemm", path, &[x, &weight, &bias], with)
    }

    /// The largest of each window.
    pub(super) fn max_pool(
        &mut self,
        x: &str,
        name: &str,
        (kernel, stride, padding): (usize, usize, usize),
    ) -> String {
        let with = attributes([
            ("kernel_shape", pair(kernel)),
            ("strides", pair(stride)),
            ("pads", Attribute::Ints(vec![padding as i64; 4])),
        ]);
        self.step("MaxPool", name, &[x], with)
    }

    /// The mean of each channel: `[n, c, 1, 1]`.
    pub(super) fn global_mean(&mut self, x: &str, name: &str) -> String {
        self.plain("GlobalAveragePool", name, &[x])
    }

    /// `[n, c, 1, 1]` as `[n, c]`.
    pub(super) fn flat(&mut self, x: &str, name: &str) -> String {
        self.along("Flatten", name, &[x], 1)
    }

    /// `x` resized bilinearly to the height and width of `like`, pixel centres at halves.
    pub(super) fn resize_like(&mut self, x: &str, like: &str, name: &str) -> String {
        self.resize(x, like, name, "half_pixel")
    }

    /// The same, the outermost pixels' centres on each other.
    pub(super) fn resize_aligned(&mut self, x: &str, like: &str, name: &str) -> String {
        self.resize(x, like, name, "align_corners")
    }

    fn resize(&mut self, x: &str, like: &str, name: &str, coordinates: &str) -> String {
        let shapes = [(x, 0, 2), (like, 2, 4)].map(|(of, start, end)| {
            let with = attributes([("start", Attribute::Int(start)), ("end", Attribute::Int(end))]);
            self.step("Shape", &format!("{name}.size"), &[of], with)
        });
        let sizes = self.along("Concat", &format!("{name}.size"), &[&shapes[0], &shapes[1]], 0);
        let text = |value: &str| Attribute::Text(value.into());
        let with =
            attributes([("mode", text("linear")), ("coordinate_transformation_mode", text(coordinates))]);
        self.step("Resize", name, &[x, "", "", &sizes], with)
    }
}
