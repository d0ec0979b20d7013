//! Every operator of the table on inputs and attributes that make no sense: it may refuse, it may answer, it may not panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use evenkeel_kernels::buffer::{Flag, Pool};
use evenkeel_network::Tensor;
use evenkeel_network::op::{Attribute, Attributes, Call, Definition, registry};
use evenkeel_network::tensor::{Limits, Room};

/// A seeded stream of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % count
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn integer(&mut self) -> i64 {
        self.of(&[0, 1, 2, 3, 4, 1, 2, 1, 1, -1, -2, 7, i64::MIN, i64::MAX, 1 << 40, -(1 << 40), 1 << 20])
    }

    fn float(&mut self) -> f32 {
        self.of(&[0.0, 1.0, 2.0, 0.5, -1.0, 1.5, -0.3, f32::NAN, f32::INFINITY, 1e30, -1e30, 1e-30])
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = self.of(&[0, 1, 1, 2, 3, 4, 4, 4, 5]);
        (0..rank).map(|_| self.of(&[0, 1, 1, 2, 2, 3, 4, 5])).collect()
    }

    fn tensor(&mut self) -> Tensor {
        let shape = self.shape();
        let count = shape.iter().product::<usize>();
        match self.below(8) {
            0..=3 => Tensor::new(&shape, (0..count).map(|_| self.float()).collect::<Vec<_>>()),
            4 => Tensor::new(&shape, (0..count).map(|_| f64::from(self.float())).collect::<Vec<_>>()),
            5 => Tensor::new(&shape, (0..count).map(|_| Flag::from(self.below(2) == 0)).collect::<Vec<_>>()),
            6 => Tensor::new(&shape, (0..count).map(|_| self.integer() as i32).collect::<Vec<_>>()),
            _ => self.integers(),
        }
    }

    fn integers(&mut self) -> Tensor {
        let count = self.of(&[0, 1, 1, 2, 3, 4, 4, 8]);
        let values: Vec<i64> = (0..count).map(|_| self.integer()).collect();
        Tensor::new(&[count], values)
    }
}

const INTS: &[&str] =
    &["axes", "pads", "strides", "dilations", "kernel_shape", "perm", "split", "starts", "ends"];
const INT: &[&str] = &[
    "axis",
    "to",
    "k",
    "keepdims",
    "ceil_mode",
    "blocksize",
    "batch_dims",
    "num_outputs",
    "group",
    "allowzero",
    "largest",
    "upper",
    "p",
    "storage_order",
    "count_include_pad",
    "align_corners",
    "output_height",
    "output_width",
    "sampling_ratio",
    "start",
    "end",
    "antialias",
    "exclude_outside",
    "stash_type",
    "exclusive",
    "reverse",
];
const FLOAT: &[&str] =
    &["alpha", "beta", "epsilon", "value", "spatial_scale", "cubic_coeff_a", "extrapolation_value"];
const TEXT: &[(&str, &[&str])] = &[
    (
        "mode",
        &["constant", "reflect", "edge", "wrap", "linear", "nearest", "cubic", "max", "avg", "DCR", "CRD"],
    ),
    ("reduction", &["add", "mul", "min", "max", "none"]),
    ("auto_pad", &["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]),
    ("padding_mode", &["border", "reflection", "zeros"]),
    (
        "coordinate_transformation_mode",
        &["align_corners", "tf_crop_and_resize", "asymmetric", "half_pixel_symmetric"],
    ),
    ("keep_aspect_ratio_policy", &["not_larger", "not_smaller"]),
    ("equation", &["ij,jk->ik", "ii->i", "...a,a...->", "ab", "->", "a,,b"]),
];

fn attributes(choices: &mut Choices) -> Attributes {
    let mut all = Attributes::default();
    let mut add = |name: &str, value: Attribute| all.0.insert(name.into(), value);
    for name in INTS {
        if choices.below(3) == 0 {
            let count = choices.of(&[1, 2, 2, 3, 4, 4]);
            add(name, Attribute::Ints((0..count).map(|_| choices.integer()).collect()));
        }
    }
    for name in INT {
        if choices.below(3) == 0 {
            add(name, Attribute::Int(choices.integer()));
        }
    }
    for name in FLOAT {
        if choices.below(4) == 0 {
            add(name, Attribute::Float(choices.float()));
        }
    }
    for (name, values) in TEXT {
        if choices.below(2) == 0 {
            add(name, Attribute::Text(choices.of(values).into()));
        }
    }
    all
}

/// Builds and runs an operator once; says whether it answered.
fn attempt(entry: &registry::Entry, choices: &mut Choices) -> bool {
    let attributes = attributes(choices);
    let (inputs, outputs) = (choices.below(6), 1 + choices.below(3));
    let opset = choices.of(&[7, 9, 10, 11, 13, 18, 22]);
    let definition = Definition { operator: entry.name, opset, attributes: &attributes, inputs, outputs };
    let Ok(op) = (entry.build)(&definition) else { return false };
    let given: Vec<Option<Tensor>> = (0..inputs)
        .map(|i| match choices.below(8) {
            0 => None,
            1..=3 if i > 0 => Some(choices.integers()),
            _ => Some(choices.tensor()),
        })
        .collect();
    let room = Room::new(Pool::new(64 << 20), Limits { loop_trips: 100, ..Limits::default() });
    let wants: Vec<bool> = given.iter().map(|x| x.as_ref().is_some_and(|x| x.dtype().is_float())).collect();
    op.apply(Call { inputs: given, wants: &wants, outputs, room: &room }).is_ok()
}

#[test]
fn nonsense_is_refused_or_answered_but_never_panics() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut broken, mut answered) = (Vec::new(), 0);
    for (number, entry) in registry::entries().enumerate() {
        for seed in 0..400u64 {
            let mut choices =
                Choices((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number as u64) << 20 | 1);
            match catch_unwind(AssertUnwindSafe(|| attempt(entry, &mut choices))) {
                Ok(done) => answered += usize::from(done),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
                    broken.push(format!("{} (seed {seed}): {}", entry.name, text.unwrap_or_default()));
                }
            }
        }
    }
    std::panic::set_hook(quiet);
    assert!(broken.is_empty(), "{} panics:\n{}", broken.len(), broken.join("\n"));
    assert!(answered > 300, "only {answered} calls were answered");
}
