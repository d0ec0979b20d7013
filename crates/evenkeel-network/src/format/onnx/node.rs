//! The nodes of a graph: operators from the registry, constants, and bodies closed over what they capture.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::function::Frame;
use super::import::{Import, domain};
use super::message::{AttributeMessage, GraphMessage, NodeMessage};
use super::values::Refusal;
use super::{attribute, damaged, legacy};
use crate::error::Result;
use crate::graph::{Body, Graph};
use crate::op::{Attribute, Attributes, Definition, Operator, registry};
use crate::tensor::DType;

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

impl<'m> Import<'m> {
    pub(super) fn nodes(
        &mut self,
        nodes: &'m [NodeMessage],
        frame: &Frame<'m>,
        graph: &mut Graph,
    ) -> Result<()> {
        for node in nodes {
            self.count_node(frame)?;
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
        let op: Box<dyn Operator> = match ((entry.build)(&definition), at_axis) {
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
}
