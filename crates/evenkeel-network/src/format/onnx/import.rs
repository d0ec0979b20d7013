//! From messages to a graph: names resolved, functions inlined, subgraphs closed over what they capture.
//!
//! Inside a function's body names get the call's name as a prefix, so that every value of the flat graph has a name of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use evenkeel_kernels::buffer::Pool;

use super::external::Folder;
use super::message::{
    AttributeMessage, Function, GraphMessage, Model, NodeMessage, OperatorSet, TensorMessage, ValueInfo,
};
use super::values::{self, Refusal};
use super::{NEWEST_OPSET, OLDEST_OPSET, attribute, damaged, legacy};
use crate::error::{Error, Offender, Result};
use crate::graph::{Body, Dim, Graph};
use crate::op::{Attribute, Attributes, Definition, registry};
use crate::tensor::{DType, Limits, Room, Tensor};

/// How deep functions may call functions.
const CALL_DEPTH: usize = 32;
/// How many nodes inlining may make.
const INLINED_NODES: usize = 100_000;

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

fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

/// Where names mean what they mean: the file's graphs, or one call of a function.
#[derive(Default)]
struct Frame<'m> {
    prefix: String,
    /// A function's inputs and outputs as its caller names them.
    names: HashMap<&'m str, String>,
    /// The attributes of the call.
    attributes: HashMap<&'m str, &'m AttributeMessage>,
    opsets: HashMap<&'m str, i64>,
    depth: usize,
}

impl<'m> Frame<'m> {
    fn name(&self, local: &str) -> String {
        if local.is_empty() {
            return String::new();
        }
        self.names.get(local).cloned().unwrap_or_else(|| format!("{}{local}", self.prefix))
    }

    /// The attribute itself, or the one of the call that it refers to.
    fn resolve(&self, message: &'m AttributeMessage) -> Option<&'m AttributeMessage> {
        if message.ref_attr_name.is_empty() {
            return Some(message);
        }
        self.attributes.get(&*message.ref_attr_name).copied()
    }
}

/// The names of a node's inputs without what its bodies capture.
fn own_inputs(node: &NodeMessage, frame: &Frame<'_>, captures_nothing: bool) -> Vec<String> {
    let mut inputs: Vec<String> = node.input.iter().map(|name| frame.name(name)).collect();
    while captures_nothing && inputs.last().is_some_and(String::is_empty) {
        inputs.pop();
    }
    // A Loop has two inputs before the values it carries, even if both are left out.
    while domain(&node.domain).is_empty() && node.op_type == "Loop" && inputs.len() < 2 {
        inputs.push(String::new());
    }
    inputs
}

struct Import<'m> {
    folder: Option<Folder>,
    /// For folding bodies.
    room: Room,
    functions: HashMap<(&'m str, &'m str, &'m str), &'m Function>,
    defaults: bool,
    inlined_nodes: usize,
    inlined_bytes: usize,
    offenders: Vec<Offender>,
}

impl<'m> Import<'m> {
    fn opsets(&mut self, imports: &'m [OperatorSet]) -> Result<HashMap<&'m str, i64>> {
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
    fn graph(&mut self, message: &'m GraphMessage, frame: &Frame<'m>, outermost: bool) -> Result<Graph> {
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
        let dim = |dim: &super::message::Dimension| match dim.dim_value {
            Some(size) => usize::try_from(size)
                .map(Dim::Fixed)
                .map_err(|_| Error::Graph(format!("input {:?} has the dimension {size}", info.name))),
            None => Ok(Dim::Free(dim.dim_param.clone())),
        };
        Ok((dtype, Some(shape.dim.iter().map(dim).collect::<Result<_>>()?)))
    }

    fn refuse(&mut self, node: &str, operator: &str, problem: String) {
        self.offenders.push(Offender { node: node.into(), operator: operator.into(), problem });
    }

    fn nodes(&mut self, nodes: &'m [NodeMessage], frame: &Frame<'m>, graph: &mut Graph) -> Result<()> {
        for node in nodes {
            if frame.depth > 0 {
                self.inlined_nodes += 1;
                if self.inlined_nodes > INLINED_NODES {
                    return Err(damaged(format!("its functions expand to over {INLINED_NODES} nodes")));
                }
            }
            let called = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&node.op_type);
            let called = if node.name.is_empty() { called } else { &node.name };
            let called = format!("{}{called}", frame.prefix);
            let key = (domain(&node.domain), &*node.op_type, &*node.overload);
            if let Some(&function) = self.functions.get(&key) {
                self.inline(node, &called, function, frame, graph)?;
            } else if domain(&node.domain).is_empty() && node.op_type == "Constant" {
                self.constant_node(node, &called, frame, graph)?;
            } else {
                self.node(node, &called, frame, graph)?;
            }
        }
        Ok(())
    }

    fn constant_node(
        &mut self,
        node: &'m NodeMessage,
        called: &str,
        frame: &Frame<'m>,
        graph: &mut Graph,
    ) -> Result<()> {
        let Some(output) = node.output.first().filter(|name| !name.is_empty()) else { return Ok(()) };
        let Some(message) =
            node.attribute.iter().find_map(|message| frame.resolve(message).map(|m| (message, m)))
        else {
            return Err(damaged(format!("constant {called:?} has no value")));
        };
        // A reference keeps the name it has here: it says which form of value is meant.
        let tensor = if message.0.ref_attr_name.is_empty() {
            attribute::constant(message.1, self.folder.as_ref(), self.room.limits().fold_bytes)
        } else {
            let renamed = AttributeMessage { name: message.0.name.clone(), ..message.1.clone() };
            attribute::constant(&renamed, self.folder.as_ref(), self.room.limits().fold_bytes)
        };
        match tensor {
            Ok(tensor) => {
                self.charge(frame, &tensor)?;
                graph.constant(&frame.name(output), tensor).map(|_| ())
            }
            Err(Refusal::Damaged(problem)) => Err(damaged(format!("node {called:?} {problem}"))),
            Err(Refusal::Unsupported(problem)) => {
                self.refuse(called, "Constant", problem);
                Ok(())
            }
        }
    }

    /// Counts a tensor that exists once in the file but once for every call of a function in the graph.
    fn charge(&mut self, frame: &Frame<'m>, tensor: &Tensor) -> Result<()> {
        if frame.depth > 0 {
            self.inlined_bytes = self.inlined_bytes.saturating_add(tensor.len().saturating_mul(8));
            if self.inlined_bytes > self.room.limits().fold_bytes {
                return Err(damaged("its functions expand to more constants than the limit"));
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        node: &'m NodeMessage,
        called: &str,
        frame: &Frame<'m>,
        graph: &mut Graph,
    ) -> Result<()> {
        let own = domain(&node.domain);
        let operator = if own.is_empty() { node.op_type.clone() } else { format!("{own}.{}", node.op_type) };
        let (attributes, captured) = self.attributes(node, (called, &operator), frame)?;
        let inputs = own_inputs(node, frame, captured.is_empty());
        let Some(entry) = registry::find(own, &node.op_type) else {
            self.refuse(called, &operator, "is not an operator of this engine".into());
            return Ok(());
        };
        let Some(&opset) = frame.opsets.get(own) else {
            self.refuse(
                called,
                &operator,
                "belongs to a set of operators that the file does not import".into(),
            );
            return Ok(());
        };
        let at_axis = match (attributes.0.get("broadcast"), attributes.0.get("axis")) {
            (Some(_), Some(&Attribute::Int(axis))) if opset < 7 => Some(axis),
            _ => None,
        };
        let definition = Definition {
            operator: &node.op_type,
            opset,
            attributes: &attributes,
            inputs: inputs.len(),
            outputs: node.output.len(),
        };
        let op = match ((entry.build)(&definition), at_axis) {
            (Ok(inner), Some(axis)) => Box::new(legacy::AtAxis { inner, axis }),
            (Ok(op), None) => op,
            (Err(fault), _) => {
                self.refuse(called, &operator, fault.to_string());
                return Ok(());
            }
        };
        let outputs: Vec<String> = node.output.iter().map(|name| frame.name(name)).collect();
        let inputs: Vec<&str> = inputs.iter().chain(&captured).map(String::as_str).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        graph.node(&operator, Arc::from(op), &inputs, &outputs).name = called.into();
        Ok(())
    }

    /// The attributes of a node, and what its bodies capture.
    fn attributes(
        &mut self,
        node: &'m NodeMessage,
        (called, operator): (&str, &str),
        frame: &Frame<'m>,
    ) -> Result<(Attributes, Vec<String>)> {
        let (mut attributes, mut captured) = (BTreeMap::new(), Vec::new());
        let mut sorted: Vec<&'m AttributeMessage> = node.attribute.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        for message in sorted {
            let name = &message.name;
            let Some(resolved) = frame.resolve(message) else { continue };
            let value = match &resolved.g {
                Some(_) if !message.ref_attr_name.is_empty() => {
                    self.refuse(called, operator, "graphs given to a function are not supported".into());
                    continue;
                }
                Some(subgraph) => {
                    let body = self.body(subgraph, frame)?;
                    captured.extend(body.captures.iter().cloned());
                    Some(Attribute::Graph(Box::new(body)))
                }
                None => match attribute::value(resolved, self.folder.as_ref()) {
                    Ok(value) => value,
                    Err(Refusal::Damaged(problem)) => {
                        return Err(damaged(format!("attribute {name:?} of node {called:?} {problem}")));
                    }
                    Err(Refusal::Unsupported(problem)) => {
                        self.refuse(called, operator, format!("attribute {name:?}: {problem}"));
                        continue;
                    }
                },
            };
            if let Some(Attribute::Tensor(tensor)) = &value {
                self.charge(frame, tensor)?;
            }
            if let Some(value) = value
                && attributes.insert(name.clone(), value).is_some()
            {
                return Err(damaged(format!("node {called:?} has two attributes {name:?}")));
            }
        }
        Ok((Attributes(attributes), captured))
    }

    /// A subgraph, closed: what nothing in it makes becomes an input after the declared ones.
    fn body(&mut self, message: &'m GraphMessage, frame: &Frame<'m>) -> Result<Body> {
        let mut graph = self.graph(message, frame, false)?;
        let mut made: HashSet<usize> = graph.inputs.iter().map(|input| input.value).collect();
        made.extend(graph.nodes.iter().flat_map(|node| node.outputs.iter().flatten().copied()));
        let open: Vec<String> = graph
            .values
            .iter()
            .enumerate()
            .filter(|(id, value)| value.constant.is_none() && !made.contains(id))
            .map(|(_, value)| value.name.clone())
            .collect();
        let declared = graph.inputs.len();
        for name in &open {
            graph.input(name, DType::F32, None);
        }
        if !self.offenders.is_empty() {
            return Ok(Body::new(graph, declared, open));
        }
        graph.sort()?;
        // A branch that is never taken may hold constants that cannot be folded; it is only an error if it is taken.
        let unfolded = graph.clone();
        let graph = graph.fold(&self.room).map_or(unfolded, |()| graph);
        Ok(Body::new(graph, declared, open))
    }

    fn inline(
        &mut self,
        node: &'m NodeMessage,
        called: &str,
        function: &'m Function,
        frame: &Frame<'m>,
        graph: &mut Graph,
    ) -> Result<()> {
        if frame.depth >= CALL_DEPTH {
            return Err(damaged(format!("function {:?} calls too deep or itself", function.name)));
        }
        let mut inner = Frame {
            prefix: format!("{called}/"),
            opsets: self.opsets(&function.opset_import)?,
            depth: frame.depth + 1,
            ..Frame::default()
        };
        for (i, formal) in function.input.iter().enumerate() {
            let actual = node.input.get(i).map_or_else(String::new, |name| frame.name(name));
            inner.names.insert(formal, actual);
        }
        for message in function.attribute_proto.iter() {
            inner.attributes.insert(&message.name, message);
        }
        for message in &node.attribute {
            if let Some(resolved) = frame.resolve(message) {
                inner.attributes.insert(&message.name, resolved);
            }
        }
        for (formal, actual) in
            function.output.iter().zip(&node.output).filter(|(_, actual)| !actual.is_empty())
        {
            let actual = frame.name(actual);
            match inner.names.get(&**formal) {
                Some(passed) => self.pass_through(called, passed, &actual, graph)?,
                None => {
                    inner.names.insert(formal, actual);
                }
            }
        }
        self.nodes(&function.node, &inner, graph)
    }

    /// A function's output that is one of its inputs.
    fn pass_through(&mut self, called: &str, from: &str, to: &str, graph: &mut Graph) -> Result<()> {
        let attributes = Attributes::default();
        let definition =
            Definition { operator: "Identity", opset: 1, attributes: &attributes, inputs: 1, outputs: 1 };
        match registry::find("", "Identity").map(|entry| (entry.build)(&definition)) {
            Some(Ok(op)) => {
                graph.node("Identity", Arc::from(op), &[from], &[to]);
            }
            _ => self.refuse(called, "Identity", "is not an operator of this engine".into()),
        }
        Ok(())
    }
}
