//! A network's graph with the shape of every tensor on one probe: what the rules of a proposal look at.

use std::collections::{BTreeSet, HashMap};

use evenkeel_network::graph::{Dim, Graph, Input, Node, ValueId};
use evenkeel_network::{DType, Made, Network, Tensor};

use crate::error::{Error, Result};

/// Sizes (height, width) to try where the network leaves them free, the cheapest first; unequal, so that the axes can be told apart.
const PROBES: [(usize, usize); 5] = [(96, 128), (192, 256), (224, 224), (256, 256), (512, 512)];

/// The input of a network as its file declares it.
pub(super) struct Frame {
    name: String,
    pub(super) channels_last: bool,
    /// (height, width) where the file fixes them.
    pub(super) fixed: (Option<usize>, Option<usize>),
}

impl Frame {
    pub(super) fn of(network: &Network) -> Result<Self> {
        let inputs: Vec<_> = network.inputs().collect();
        let [(name, input)] = inputs[..] else {
            return Err(Error::mismatch("inputs of the network", "one image", inputs.len()));
        };
        let dims = dims(input).filter(|dims| dims.len() == 4 && input.dtype == DType::F32);
        let Some(dims) = dims else {
            let got = format!("{name} of type {}", input.dtype);
            return Err(Error::mismatch("input of the network", "images [n, 3, h, w] of f32", got));
        };
        let channels_last = dims[1] != Some(3) && dims[3] == Some(3);
        let fixed = if channels_last { (dims[1], dims[2]) } else { (dims[2], dims[3]) };
        Ok(Self { name: name.to_owned(), channels_last, fixed })
    }

    /// The sizes a walk may be tried at.
    fn probes(&self) -> Vec<(usize, usize)> {
        let mut probes: Vec<_> =
            PROBES.iter().map(|&(h, w)| (self.fixed.0.unwrap_or(h), self.fixed.1.unwrap_or(w))).collect();
        probes.dedup();
        probes
    }

    fn input(&self, (h, w): (usize, usize)) -> Tensor {
        let shape = if self.channels_last { [1, h, w, 3] } else { [1, 3, h, w] };
        Tensor::new(&shape, vec![0.5f32; 3 * h * w])
    }

    /// The shapes of all tensors at a size, if the network runs there.
    pub(super) fn shapes(&self, network: &Network, size: (usize, usize)) -> Result<Vec<Made>> {
        network.shapes(&[(&self.name, self.input(size))]).map_err(Error::network)
    }
}

fn dims(input: &Input) -> Option<Vec<Option<usize>>> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => Some(*size),
        Dim::Free(_) => None,
    };
    Some(input.dims.as_ref()?.iter().map(size).collect())
}

/// Channels, height and width.
pub(super) type Map = (usize, usize, usize);

/// A graph and the shapes of its tensors.
pub(super) struct Anatomy<'n> {
    graph: &'n Graph,
    made: HashMap<ValueId, Made>,
    attention: BTreeSet<ValueId>,
    /// (height, width) of the probe.
    pub(super) size: (usize, usize),
}

impl<'n> Anatomy<'n> {
    /// Walks the network at the first size that it accepts.
    pub(super) fn of(network: &'n Network, frame: &Frame) -> Result<Self> {
        let mut refused = None;
        for size in frame.probes() {
            match frame.shapes(network, size) {
                Ok(made) => {
                    let made = made.into_iter().map(|made| (made.value, made)).collect();
                    let all = Self { graph: network.graph(), made, attention: BTreeSet::new(), size };
                    return Ok(Self { attention: all.attention(), ..all });
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| Error::setting("network", "has no size that it could be tried at")))
    }

    pub(super) fn graph(&self) -> &'n Graph {
        self.graph
    }

    pub(super) fn name(&self, value: ValueId) -> &'n str {
        &self.graph.values[value].name
    }

    pub(super) fn shape(&self, value: ValueId) -> Option<&[usize]> {
        self.made.get(&value).map(|made| made.shape.as_slice())
    }

    pub(super) fn floats(&self, value: ValueId) -> bool {
        self.made.get(&value).is_some_and(|made| made.dtype.is_float())
    }

    /// A tensor `[1, c, h, w]` of floats whose height and width shrink alike; tokens, what attention makes of them, and channels-last maps are none.
    pub(super) fn map(&self, value: ValueId) -> Option<Map> {
        let &[1, c, h, w] = self.shape(value)? else { return None };
        let expected = w as f64 * self.size.0 as f64 / self.size.1 as f64;
        let stretch = h as f64 / expected.max(f64::MIN_POSITIVE);
        // of small maps, borders are a large part
        let alike = (0.6..=1.7).contains(&stretch) && (h as f64 - expected).abs() <= 3.0;
        (self.floats(value) && alike && !self.attends(value)).then_some((c, h, w))
    }

    /// Whether a tensor is made of products of tokens with tokens: neither operand is a weight.
    pub(super) fn attends(&self, value: ValueId) -> bool {
        self.attention.contains(&value)
    }

    /// All that is made of products of two tensors that nodes make, and of what only rearranges or scales them.
    fn attention(&self) -> BTreeSet<ValueId> {
        let mut made: Vec<_> = self.made.iter().map(|(&value, made)| (made.node, value)).collect();
        made.sort_unstable();
        let mut found = BTreeSet::new();
        for (node, value) in made {
            let attends = match &*self.graph.nodes[node].operator {
                "MatMul" | "Attention" => self.sources(value).len() > 1,
                "Softmax" | "Transpose" | "Reshape" | "Add" | "Mul" | "Div" | "Where" | "Identity"
                | "Cast" => self.sources(value).iter().any(|source| found.contains(source)),
                _ => false,
            };
            if attends {
                found.insert(value);
            }
        }
        found
    }

    /// The same with more than one cell.
    pub(super) fn grid(&self, value: ValueId) -> Option<Map> {
        self.map(value).filter(|(_, h, w)| h * w > 1)
    }

    pub(super) fn maker(&self, value: ValueId) -> Option<&'n Node> {
        self.made.get(&value).map(|made| &self.graph.nodes[made.node])
    }

    /// The tensors of floats, made by nodes, that a tensor is made from.
    pub(super) fn sources(&self, value: ValueId) -> Vec<ValueId> {
        let inputs = self.maker(value).into_iter().flat_map(|node| node.inputs.iter().flatten().copied());
        inputs.filter(|&input| self.floats(input)).collect()
    }

    /// All that a tensor depends on, itself included, as far as `through` lets pass; in the order of making.
    pub(super) fn ancestors(&self, value: ValueId, through: impl Fn(ValueId) -> bool) -> Vec<ValueId> {
        let place = |value: ValueId| (self.made.get(&value).map_or(0, |made| made.node), value);
        let (mut seen, mut open) = (BTreeSet::from([place(value)]), vec![value]);
        while let Some(value) = open.pop() {
            for source in self.sources(value) {
                if through(source) && seen.insert(place(source)) {
                    open.push(source);
                }
            }
        }
        seen.into_iter().map(|(_, value)| value).collect()
    }

    /// The last made of what a tensor depends on, itself excluded, that is a grid as wanted.
    pub(super) fn latest(&self, value: ValueId, wanted: impl Fn(Map) -> bool) -> Option<ValueId> {
        let before = self.ancestors(value, |_| true);
        before.into_iter().rev().find(|&v| v != value && self.grid(v).is_some_and(&wanted))
    }
}
