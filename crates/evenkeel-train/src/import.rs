//! A trainable network from the nodes of an ONNX file, as far as the trainer knows their operators.
//!
//! Only what the output of class scores depends on is read. A subtraction and division of the input become the rule by which pixels become input;
//! a last enlargement of the scores is left to the method. Everything the trainer does not know is named at once.

use crate::error::{Error, Result};
use crate::goal::{Pixels, Task};
use crate::layer::conv::Conv;
use crate::layer::pool::Pool;
use crate::net::{Net, Place};
use crate::networks::{FEATURES, SCORES};
use evenkeel::Random;
use evenkeel::model::{Contract, Order};
use evenkeel_network::format::onnx;
use evenkeel_network::format::onnx::message::{AttributeMessage, Model, NodeMessage};
use evenkeel_network::{Limits, Tensor, zoo};
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The operators that the trainer knows, for refusals.
const KNOWN: &str = "Conv (one group, square, padded alike), BatchNormalization after Conv, Relu, Add, MaxPool, GlobalAveragePool, Flatten, \
                     Gemm, Identity, Dropout, Resize by a whole factor, and Sub, Div, Mul of the input with constants";

/// A network read, and what is known of it.
pub struct Imported {
    /// The network, its output called `scores`.
    pub net: Net,
    /// What its answer is.
    pub task: Task,
    /// How pixels become its input.
    pub pixels: Pixels,
    /// Names of its classes; numbers if it has none.
    pub classes: Vec<String>,
    /// Its contract.
    pub contract: Contract,
}

/// Reads an ONNX file or a checkpoint of the zoo, with its contract beside it.
///
/// # Errors
/// If it cannot be read, or holds what the trainer does not know.
pub fn load(path: &Path) -> Result<Imported> {
    let contract = Contract::beside(path)?;
    let bytes = match zoo::is_checkpoint(path)? {
        true => zoo::load(path)?.blueprint(None)?.onnx()?,
        false => std::fs::read(path).map_err(|e| Error::file(path, e))?,
    };
    from_bytes(&bytes, contract, path)
}

/// Reads the bytes of an ONNX file under a contract; `path` is used in sentences.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: &[u8], contract: Contract, path: &Path) -> Result<Imported> {
    let fail = |reason: String| Error::file(path, reason);
    let task = match contract.task.as_str() {
        "semantic" => Task::Semantic,
        "classification" => Task::Classification,
        other => {
            return Err(fail(format!("its task is {other}; fine-tune knows semantic and classification")));
        }
    };
    if contract.input.order != Order::Rgb || contract.input.channels_last {
        return Err(fail("it takes blue before red, or channels last; fine-tune knows RGB planes".into()));
    }
    let constants = onnx::from_bytes(bytes.to_vec(), Limits::default())?;
    let constants: HashMap<String, Tensor> =
        constants.values.into_iter().filter_map(|value| Some((value.name, value.constant?))).collect();
    let model = Model::decode(bytes).map_err(|e| fail(e.to_string()))?;
    let graph = model.graph.ok_or_else(|| fail("it holds no graph".into()))?;
    let input = graph.input.iter().find(|info| !constants.contains_key(&info.name));
    let input = input.ok_or_else(|| fail("it has no input".into()))?.name.clone();
    let output = contract.output.first().cloned().unwrap_or_default();
    let feature = contract.feature.first().cloned().unwrap_or_default();
    let wanted = needed(&graph.node, &output);
    let mut reading = Reading::new(&constants, input);
    for name in graph.node.iter().flat_map(|node| &node.input) {
        *reading.readers.entry(name.clone()).or_insert(0) += 1;
    }
    for node in graph.node.iter().filter(|node| node.output.iter().any(|name| wanted.contains(name.as_str())))
    {
        if let Err(reason) = reading.node(node, &output) {
            reading.refused.push(format!("{} ({}): {reason}", node.output.join(", "), node.op_type));
        }
    }
    if !reading.refused.is_empty() {
        let most = 8;
        let mut told = reading.refused[..reading.refused.len().min(most)].join("; ");
        if reading.refused.len() > most {
            told += &format!("; and {} more", reading.refused.len() - most);
        }
        return Err(fail(format!("it cannot be trained: {told}. The trainer knows {KNOWN}")));
    }
    let scores = reading.places.get(&output).copied();
    let scores = scores
        .filter(|&place| place > 0)
        .ok_or_else(|| fail(format!("nothing makes its output {output}")))?;
    let pixels = reading.normalised.values().last().copied().unwrap_or(PLAIN);
    let features = reading.places.get(&feature).copied().filter(|&place| place > 0).unwrap_or(scores);
    let mut net = reading.net;
    net.name(scores, SCORES);
    if task == Task::Classification {
        if features == scores {
            return Err(fail(format!(
                "its contract's feature {feature} is not an inner tensor that the trainer reads"
            )));
        }
        net.name(features, FEATURES);
    }
    let count = net.channels(scores);
    let mut classes = contract.class_names()?;
    if classes.len() != count {
        classes = (0..count).map(|class| class.to_string()).collect();
    }
    Ok(Imported { net, task, pixels: joined(&contract, pixels), classes, contract })
}

/// Pixels as they are.
const PLAIN: Pixels = Pixels { mean: [0.0; 3], deviation: [1.0; 3] };

/// The contract's rule `(scale · v − mean) / std`, then the network's own, as one.
fn joined(contract: &Contract, own: Pixels) -> Pixels {
    let rule = &contract.input;
    let of = |k: usize| {
        let deviation = rule.std[k] * own.deviation[k] / rule.scale;
        ((rule.mean[k] + rule.std[k] * own.mean[k]) / rule.scale, deviation)
    };
    let channels = [0, 1, 2].map(of);
    Pixels { mean: channels.map(|(mean, _)| mean), deviation: channels.map(|(_, deviation)| deviation) }
}

/// The values that an output is made from.
fn needed<'a>(nodes: &'a [NodeMessage], output: &'a str) -> HashSet<&'a str> {
    let mut needed = HashSet::from([output]);
    for node in nodes.iter().rev() {
        if node.output.iter().any(|name| needed.contains(name.as_str())) {
            needed.extend(node.input.iter().map(String::as_str));
        }
    }
    needed
}

/// A network being read.
struct Reading<'a> {
    constants: &'a HashMap<String, Tensor>,
    net: Net,
    places: HashMap<String, Place>,
    /// Values that are the input, normalised.
    normalised: HashMap<String, Pixels>,
    /// Values without a spatial extent, whatever their shape.
    flat: HashSet<String>,
    /// How many nodes read a value.
    readers: HashMap<String, usize>,
    random: Random,
    refused: Vec<String>,
}

/// A reading's answer to one node; the error says what is wrong with it.
type Read<T> = std::result::Result<T, String>;

fn ints(node: &NodeMessage, name: &str) -> Option<Vec<i64>> {
    attribute(node, name).map(|found| found.ints.clone())
}

fn int(node: &NodeMessage, name: &str) -> Option<i64> {
    attribute(node, name).and_then(|found| found.i)
}

fn attribute<'a>(node: &'a NodeMessage, name: &str) -> Option<&'a AttributeMessage> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

/// The one value of a list whose elements are all the same.
fn same(list: &[i64], what: &str) -> Read<usize> {
    match list.iter().all(|v| *v == list[0]) && list[0] >= 0 {
        true => Ok(list[0] as usize),
        false => Err(format!("{what} {list:?} differ")),
    }
}

impl<'a> Reading<'a> {
    fn new(constants: &'a HashMap<String, Tensor>, input: String) -> Self {
        Self {
            constants,
            net: Net::new(3),
            places: HashMap::from([(input.clone(), 0)]),
            normalised: HashMap::from([(input, PLAIN)]),
            flat: HashSet::new(),
            readers: HashMap::new(),
            random: Random::new(0),
            refused: Vec::new(),
        }
    }

    fn floats(&self, name: &str) -> Read<Vec<f32>> {
        let tensor = self.constants.get(name).ok_or_else(|| format!("its input {name} is no constant"))?;
        tensor.values::<f32>().map(<[f32]>::to_vec).ok_or_else(|| format!("{name} is not of floats"))
    }

    fn place(&self, node: &NodeMessage, index: usize) -> Read<Place> {
        let name = node.input.get(index).map(String::as_str).unwrap_or_default();
        let place = self.places.get(name).copied();
        place.ok_or_else(|| format!("its input {name} comes of something the trainer does not know"))
    }

    fn node(&mut self, node: &NodeMessage, output: &str) -> Read<()> {
        let Some(out) = node.output.first().cloned() else { return Ok(()) };
        if self.constants.contains_key(&out) {
            return Ok(());
        }
        let first = node.input.first().cloned().unwrap_or_default();
        let place = match node.op_type.as_str() {
            "Conv" => self.conv(node)?,
            "BatchNormalization" => self.norm(node)?,
            "Relu" => {
                let from = self.place(node, 0)?;
                self.net.relu(from)
            }
            "MaxPool" => self.max_pool(node)?,
            "GlobalAveragePool" => {
                let from = self.place(node, 0)?;
                self.flat.insert(out.clone());
                self.net.average(from)
            }
            "Gemm" => self.gemm(node)?,
            "Sub" | "Div" | "Mul" if self.normalised.contains_key(&first) => {
                return self.normalise(node, out);
            }
            "Add" => {
                let (from, other) = (self.place(node, 0)?, self.place(node, 1)?);
                let channels = (self.net.channels(from), self.net.channels(other));
                if channels.0 != channels.1 {
                    return Err(format!("its sides have {} and {} channels", channels.0, channels.1));
                }
                self.net.sum(from, other)
            }
            "Identity" | "Dropout" => {
                if let Some(pixels) = self.normalised.get(&first).copied() {
                    self.normalised.insert(out.clone(), pixels);
                }
                self.place(node, 0)?
            }
            "Flatten" | "Reshape" | "Squeeze" if self.flat.contains(&first) => self.place(node, 0)?,
            "Resize" => self.resize(node, out == *output)?,
            _ => return Err("the trainer does not know this operator here".into()),
        };
        if self.flat.contains(&first) {
            self.flat.insert(out.clone());
        }
        self.places.insert(out, place);
        Ok(())
    }

    /// A step before the first layer.
    fn normalise(&mut self, node: &NodeMessage, out: String) -> Read<()> {
        let mut pixels = self.normalised[&node.input[0]];
        if self.readers.get(&node.input[0]).is_some_and(|&readers| readers > 1) {
            return Err("something else reads the input too".into());
        }
        let values = self.floats(node.input.get(1).map_or("", String::as_str))?;
        if values.len() != 1 && values.len() != 3 {
            return Err(format!("{} numbers for three channels", values.len()));
        }
        for c in 0..3 {
            let value = values[c % values.len()];
            match node.op_type.as_str() {
                "Sub" => pixels.mean[c] += value * pixels.deviation[c],
                "Div" => pixels.deviation[c] *= value,
                _ => pixels.deviation[c] /= value,
            }
        }
        self.normalised.clear();
        self.normalised.insert(out.clone(), pixels);
        self.places.insert(out, 0);
        Ok(())
    }

    fn conv(&mut self, node: &NodeMessage) -> Read<Place> {
        let from = self.place(node, 0)?;
        if int(node, "group").unwrap_or(1) != 1 {
            return Err("it has groups".into());
        }
        let weight = node.input.get(1).and_then(|name| self.constants.get(name));
        let shape = weight.ok_or("its weights are no constant")?.shape().to_vec();
        let &[out_c, in_c, kernel, across] = shape.as_slice() else {
            return Err(format!("its weights are of shape {shape:?}"));
        };
        if kernel != across || kernel % 2 == 0 {
            return Err(format!("its kernel is {kernel}x{across}"));
        }
        let stride = same(&ints(node, "strides").unwrap_or(vec![1]), "strides")?;
        let dilation = same(&ints(node, "dilations").unwrap_or(vec![1]), "dilations")?;
        let conv = Conv { in_c, out_c, kernel, stride, dilation };
        if in_c != self.net.channels(from) || stride == 0 || dilation == 0 || out_c == 0 {
            return Err(format!("it does not fit its input of {} channels", self.net.channels(from)));
        }
        let pads = same(&ints(node, "pads").unwrap_or(vec![0]), "pads")?;
        if pads != conv.pad()
            || attribute(node, "auto_pad").is_some_and(|a| a.s.as_deref() != Some(&b"NOTSET"[..]))
        {
            return Err(format!("its padding is not {} on every side", conv.pad()));
        }
        let bias = node.input.get(2).filter(|name| !name.is_empty());
        let (weights, bias) = (self.floats(&node.input[1])?, bias.map(|name| self.floats(name)).transpose()?);
        Ok(self.with_weights(&node.output[0], from, conv, &weights, bias.as_deref()))
    }

    fn with_weights(
        &mut self,
        name: &str,
        from: Place,
        conv: Conv,
        weights: &[f32],
        bias: Option<&[f32]>,
    ) -> Place {
        let place = self.net.conv(name, from, conv, bias.is_some(), &mut self.random);
        self.net.set(&format!("{name}.weight"), weights);
        if let Some(bias) = bias {
            self.net.set(&format!("{name}.bias"), bias);
        }
        place
    }

    fn norm(&mut self, node: &NodeMessage) -> Read<Place> {
        let from = self.place(node, 0)?;
        let epsilon = attribute(node, "epsilon").and_then(|a| a.f).unwrap_or(1e-5);
        if !self.net.is_bare_conv(from) {
            return Err("it does not follow a Conv without bias".into());
        }
        let part = |k: usize| self.floats(node.input.get(k).map_or("", String::as_str));
        let (gain, shift, mean, variance) = (part(1)?, part(2)?, part(3)?, part(4)?);
        let channels = self.net.channels(from);
        if [&gain, &shift, &mean, &variance].iter().any(|part| part.len() != channels) {
            return Err(format!("it does not fit its input of {channels} channels"));
        }
        if self.readers.get(&node.input[0]).is_some_and(|&readers| readers > 1) {
            return Err("something else reads the Conv before it too".into());
        }
        let name = format!("{}.norm", node.output[0]);
        let place = self.net.norm(&name, from, None, false);
        self.net.set(&format!("{name}.weight"), &gain);
        self.net.set(&format!("{name}.bias"), &shift);
        // the trainer's own epsilon stands in for the file's
        let variance = variance.iter().map(|v| v + epsilon - crate::layer::norm::EPSILON).collect();
        self.net.set_running(mean, variance);
        Ok(place)
    }

    fn max_pool(&mut self, node: &NodeMessage) -> Read<Place> {
        let from = self.place(node, 0)?;
        let kernel = same(&ints(node, "kernel_shape").unwrap_or(vec![1]), "kernel sides")?;
        let stride = same(&ints(node, "strides").unwrap_or(vec![1]), "strides")?;
        let pad = same(&ints(node, "pads").unwrap_or(vec![0]), "pads")?;
        let plain = same(&ints(node, "dilations").unwrap_or(vec![1]), "dilations")? == 1;
        if kernel == 0 || stride == 0 || pad >= kernel {
            return Err(format!("a window of {kernel}, stride {stride}, padding {pad}"));
        }
        if !plain || int(node, "ceil_mode").unwrap_or(0) != 0 {
            return Err("it is dilated or rounds up".into());
        }
        Ok(self.net.max_pool(from, Pool { kernel, stride, pad }))
    }

    fn gemm(&mut self, node: &NodeMessage) -> Read<Place> {
        let from = self.place(node, 0)?;
        let factor = |name: &str| attribute(node, name).and_then(|a| a.f).unwrap_or(1.0);
        let flat = self.flat.contains(&node.input[0]);
        if !flat
            || int(node, "transB") != Some(1)
            || int(node, "transA").unwrap_or(0) != 0
            || factor("alpha") != 1.0
        {
            return Err("it is no plain linear layer on a pooled map".into());
        }
        let weights = self.floats(&node.input[1])?;
        let in_c = self.net.channels(from);
        let conv = Conv { in_c, out_c: weights.len() / in_c.max(1), kernel: 1, stride: 1, dilation: 1 };
        let bias = node.input.get(2).map_or_else(|| Ok(vec![0.0; conv.out_c]), |name| self.floats(name))?;
        Ok(self.with_weights(&node.output[0], from, conv, &weights, Some(&bias)))
    }

    fn resize(&mut self, node: &NodeMessage, last: bool) -> Read<Place> {
        let from = self.place(node, 0)?;
        let text = |name: &str| attribute(node, name).and_then(|a| a.s.clone()).unwrap_or_default();
        if text("mode")[..] != b"linear"[..] {
            return Err("it is not bilinear".into());
        }
        if last {
            return Ok(from);
        }
        let scales = node.input.get(2).filter(|name| !name.is_empty()).ok_or("its factor is no constant")?;
        let scales = self.floats(scales)?;
        match scales.as_slice() {
            [1.0, 1.0, down, across] if down == across && down.fract() == 0.0 && *down >= 1.0 => {
                match &text("coordinate_transformation_mode")[..] {
                    b"half_pixel" | b"" | b"pytorch_half_pixel" => Ok(self.net.enlarge(from, *down as usize)),
                    _ => Err("it does not map middles of pixels".into()),
                }
            }
            _ => Err(format!("its factors are {scales:?}")),
        }
    }
}
