//! Functions that a file defines, inlined where they are called.
//!
//! Inside a function's body names get the call's name as a prefix, so that every value of the flat graph has a name of its own.

use std::collections::HashMap;
use std::sync::Arc;

use super::damaged;
use super::import::Import;
use super::message::{AttributeMessage, Function, NodeMessage};
use crate::error::Result;
use crate::graph::Graph;
use crate::op::{Attributes, Definition, registry};
use crate::tensor::Tensor;

/// How deep functions may call functions.
const CALL_DEPTH: usize = 32;
/// How many nodes inlining may make.
const INLINED_NODES: usize = 100_000;

/// Where names mean what they mean: the file's graphs, or one call of a function.
#[derive(Default)]
pub(super) struct Frame<'m> {
    pub(super) prefix: String,
    /// A function's inputs and outputs as its caller names them.
    pub(super) names: HashMap<&'m str, String>,
    /// The attributes of the call.
    pub(super) attributes: HashMap<&'m str, &'m AttributeMessage>,
    pub(super) opsets: HashMap<&'m str, i64>,
    pub(super) depth: usize,
}

impl<'m> Frame<'m> {
    pub(super) fn name(&self, local: &str) -> String {
        if local.is_empty() {
            return String::new();
        }
        self.names.get(local).cloned().unwrap_or_else(|| format!("{}{local}", self.prefix))
    }

    /// The attribute itself, or the one of the call that it refers to.
    pub(super) fn resolve(&self, message: &'m AttributeMessage) -> Option<&'m AttributeMessage> {
        if message.ref_attr_name.is_empty() {
            return Some(message);
        }
        self.attributes.get(&*message.ref_attr_name).copied()
    }
}

impl<'m> Import<'m> {
    /// Counts a node, if it comes from a function.
    pub(super) fn count_node(&mut self, frame: &Frame<'m>) -> Result<()> {
        self.inlined_nodes += usize::from(frame.depth > 0);
        if self.inlined_nodes > INLINED_NODES {
            return Err(damaged(format!("its functions expand to over {INLINED_NODES} nodes")));
        }
        Ok(())
    }

    /// Counts a tensor that exists once in the file but once for every call of a function in the graph.
    pub(super) fn charge(&mut self, frame: &Frame<'m>, tensor: &Tensor) -> Result<()> {
        if frame.depth > 0 {
            self.inlined_bytes = self.inlined_bytes.saturating_add(tensor.len().saturating_mul(8));
            if self.inlined_bytes > self.room.limits().fold_bytes {
                return Err(damaged("its functions expand to more constants than the limit"));
            }
        }
        Ok(())
    }

    pub(super) fn inline(
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
