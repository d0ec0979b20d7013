//! The body of an If branch or a Loop: a graph of its own that may also read values of the graph around it.
//!
//! What it reads from outside becomes extra inputs of the node, after the node's own, so that the walk and the pullback need not
//! know about scopes.

use std::sync::{Arc, OnceLock};

use super::Graph;
use crate::error::Fault;
use crate::plan::Plan;
use crate::run::Tape;
use crate::tensor::{Room, Tensor};

/// A branch or loop body. The graph's inputs are the declared ones followed by one for each captured name.
#[derive(Clone, Debug)]
pub struct Body {
    /// The graph, sorted and folded.
    pub graph: Graph,
    /// How many of its inputs are declared.
    pub declared: usize,
    /// The names it reads from the graph around it, in the order of the inputs that stand for them.
    pub captures: Vec<String>,
    plan: Arc<OnceLock<Arc<Plan>>>,
}

impl Body {
    /// A body whose last inputs stand for `captures`.
    pub fn new(graph: Graph, declared: usize, captures: Vec<String>) -> Body {
        Body { graph, declared, captures, plan: Arc::default() }
    }

    /// The same body with every f32 made f64.
    pub fn widened(&self) -> Body {
        Body::new(crate::profile::widen(&self.graph), self.declared, self.captures.clone())
    }

    /// Runs the body: outputs, and the tape if `wants` has any input.
    ///
    /// # Errors
    /// What its nodes find.
    pub fn run(
        &self,
        inputs: Vec<Option<Tensor>>,
        wants: &[bool],
        room: &Room,
    ) -> Result<(Vec<Tensor>, Option<Tape>), Fault> {
        let plan = self.plan.get_or_init(|| Arc::new(Plan::literal(&self.graph, &self.graph.outputs)));
        crate::run::walk(plan, inputs, wants, room).map_err(|error| Fault::Body(Box::new(error)))
    }
}
