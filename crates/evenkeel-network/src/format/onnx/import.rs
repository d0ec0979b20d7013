//! From messages to a graph: constants, inputs and outputs under names of their own; see [`node`](super::node) for what lies between.

use std::collections::HashMap;

use evenkeel_kernels::buffer::Pool;

use super::external::Folder;
use super::function::Frame;
use super::message::{Dimension, Function, GraphMessage, Model, OperatorSet, TensorMessage, ValueInfo};
use super::values::{self, Refusal};
use super::{NEWEST_OPSET, OLDEST_OPSET, damaged};
use crate::error::{Error, Offender, Result};
use crate::graph::{Dim, Graph};
use crate::tensor::{DType, Limits, Room, Tensor};

/// The graph of a model.
pub(super) fn graph(model: &Model, folder: Option<Folder>, limits: Limits) -> Result<Graph> {
    let Some(message) = &model.graph else { return Err(damaged("it holds no graph")) };
    let mut functions = HashMap::new();
    for function in &model.functions {
        functions.insert((domain(&function.domain), &*function.name, &*function.overload), function);
    }
    let room = Room::new(Pool::new(limits.fold_bytes), limits);
    let mut import = Import {
        folder,
        room,
        functions,
        // Before version 4 of the format every initialiser had to be listed as an input, so listing one said nothing.
        defaults: model.ir_version >= 4,
        inlined_nodes: 0,
        inlined_bytes: 0,
        offenders: Vec::new(),
    };
    let frame = Frame { opsets: import.opsets(&model.opset_import)?, ..Frame::default() };
    let graph = import.graph(message, &frame, true)?;
    if import.offenders.is_empty() { Ok(graph) } else { Err(Error::Unsupported(import.offenders)) }
}

pub(super) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

pub(super) struct Import<'m> {
    pub(super) folder: Option<Folder>,
    /// For folding bodies.
    pub(super) room: Room,
    pub(super) functions: HashMap<(&'m str, &'m str, &'m str), &'m Function>,
    pub(super) defaults: bool,
    pub(super) inlined_nodes: usize,
    pub(super) inlined_bytes: usize,
    pub(super) offenders: Vec<Offender>,
}
impl<'m> Import<'m> {
    pub(super) fn opsets(&mut self, imports: &'m [OperatorSet]) -> Result<HashMap<&'m str, i64>> {
        let mut opsets = HashMap::new();
        for import in imports {
            let name = domain(&import.domain);
            if name.is_empty() && !(OLDEST_OPSET..=NEWEST_OPSET).contains(&import.version) {
                self.offenders.push(Offender {
                    node: "the file".into(),
                    operator: format!("opset {}", import.version),
                    problem: format!("versions {OLDEST_OPSET} to {NEWEST_OPSET} are supported"),
                });
            }
            opsets.insert(name, import.version);
        }
        Ok(opsets)
    }

    /// A graph with everything it names. In a subgraph, what nothing in it makes is left for the caller to capture.
    pub(super) fn graph(
        &mut self,
        message: &'m GraphMessage,
        frame: &Frame<'m>,
        outermost: bool,
    ) -> Result<Graph> {
        let mut graph = Graph::default();
        for initializer in &message.initializer {
            let tensor = values::tensor(initializer, self.folder.as_ref());
            self.constant(&mut graph, frame, initializer, tensor)?;
        }
        for sparse in &message.sparse_initializer {
            let bytes = self.room.limits().fold_bytes;
            let tensor = values::sparse(sparse, self.folder.as_ref(), bytes);
            let unnamed = TensorMessage::default();
            self.constant(&mut graph, frame, sparse.values.as_ref().unwrap_or(&unnamed), tensor)?;
        }
        for info in &message.input {
            let name = frame.name(&info.name);
            let initialised = graph.find(&name).is_some_and(|id| graph.values[id].constant.is_some());
            if outermost && initialised && !self.defaults {
                continue;
            }
            let (dtype, dims) = self.declared(info, outermost)?;
            graph.input(&name, dtype, dims);
        }
        self.nodes(&message.node, frame, &mut graph)?;
        for info in &message.output {
            if info.name.is_empty() {
                return Err(Error::Graph("an output has no name".into()));
            }
            let id = graph.value(&frame.name(&info.name));
            graph.outputs.push(id);
        }
        Ok(graph)
    }

    fn constant(
        &mut self,
        graph: &mut Graph,
        frame: &Frame<'m>,
        message: &TensorMessage,
        tensor: Result<Tensor, Refusal>,
    ) -> Result<()> {
        if message.name.is_empty() {
            return Err(Error::Graph("an initialiser has no name".into()));
        }
        match tensor {
            Ok(tensor) => graph.constant(&frame.name(&message.name), tensor).map(|_| ()),
            Err(Refusal::Damaged(problem)) => {
                Err(damaged(format!("initialiser {:?} {problem}", message.name)))
            }
            Err(Refusal::Unsupported(problem)) => {
                self.refuse(&message.name, "initialiser", problem);
                Ok(())
            }
        }
    }

    /// The type and shape of an input. A subgraph's inputs take what they are given.
    fn declared(&mut self, info: &ValueInfo, outermost: bool) -> Result<(DType, Option<Vec<Dim>>)> {
        if info.name.is_empty() {
            return Err(Error::Graph("an input has no name".into()));
        }
        let tensor = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
        let Some(tensor) = tensor else {
            if outermost || info.r#type.is_some() {
                self.refuse(&info.name, "input", "only tensors are supported".into());
            }
            return Ok((DType::F32, None));
        };
        let dtype = values::dtype(tensor.elem_type).unwrap_or_else(|| {
            if outermost || tensor.elem_type != 0 {
                let name = values::type_name(tensor.elem_type);
                self.refuse(&info.name, "input", format!("element type {name} is not supported"));
            }
            DType::F32
        });
        let Some(shape) = &tensor.shape else { return Ok((dtype, None)) };
        let dim = |dim: &Dimension| match dim.dim_value {
            Some(size) => usize::try_from(size)
                .map(Dim::Fixed)
                .map_err(|_| Error::Graph(format!("input {:?} has the dimension {size}", info.name))),
            None => Ok(Dim::Free(dim.dim_param.clone())),
        };
        Ok((dtype, Some(shape.dim.iter().map(dim).collect::<Result<_>>()?)))
    }

    pub(super) fn refuse(&mut self, node: &str, operator: &str, problem: String) {
        self.offenders.push(Offender { node: node.into(), operator: operator.into(), problem });
    }
}
