//! What can go wrong: [`Error`] for whoever loads and runs a network, [`Fault`] for what one operator finds, which an
//! [`Error::Node`] then places in the graph.

use std::path::PathBuf;

use evenkeel_kernels::buffer::TooLarge;

use crate::tensor::DType;

/// The result of loading or running a network.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What loading or running a network can end in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of weights without a graph, which lies beside it.
    #[error(
        "{} holds weights of no architecture of the zoo; load {} instead, the graph beside them",
        weights.display(),
        graph.display()
    )]
    GraphBeside {
        /// The file loaded.
        weights: PathBuf,
        /// The file to load.
        graph: PathBuf,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{format} file is damaged: {problem}")]
    Format {
        /// The kind of file.
        format: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file holds what its reader does not take.
    #[error("{format} refused: {problem}")]
    Refused {
        /// The kind of file.
        format: &'static str,
        /// What it holds.
        problem: String,
    },
    /// Weights that do not fit an architecture. All differences are listed.
    #[error("{0}")]
    Weights(Box<crate::zoo::Misfit>),
    /// The graph uses what the engine cannot run exactly. All offenders are listed.
    #[error("the network cannot be run:\n{}", list(.0))]
    Unsupported(Vec<Offender>),
    /// The graph does not hang together.
    #[error("the graph is malformed: {0}")]
    Graph(String),
    /// An operator refused its inputs.
    #[error("node {node:?} ({operator}): {fault}")]
    Node {
        /// The node's name.
        node: String,
        /// Its operator.
        operator: String,
        /// What it found.
        #[source]
        fault: Fault,
    },
    /// A tensor was asked for that the graph does not have.
    #[error("the network has no tensor {name:?}{}", nearest(near))]
    NoTensor {
        /// The name asked for.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// An input is missing, unknown, or of the wrong type or shape.
    #[error("input {name:?}: expected {expected}, got {got}")]
    Input {
        /// The input.
        name: String,
        /// What the graph declares.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// A cotangent does not fit its tensor.
    #[error("cotangent of {name:?}: expected {expected}, got {got}")]
    Cotangent {
        /// The tensor.
        name: String,
        /// Its type and shape.
        expected: String,
        /// What it was given.
        got: String,
    },
}

/// A node, and why it cannot be run.
#[derive(Debug, Clone)]
pub struct Offender {
    /// The node's name (or its first output's, if it has none).
    pub node: String,
    /// Its operator, with the domain if it is not ONNX's own.
    pub operator: String,
    /// Why.
    pub problem: String,
}

fn list(offenders: &[Offender]) -> String {
    let line = |o: &Offender| format!("  {} ({}): {}", o.node, o.operator, o.problem);
    offenders.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn nearest(near: &[String]) -> String {
    match near.is_empty() {
        true => "; `evenkeel model inspect NETWORK --tensors` lists those it has".into(),
        false => format!("; did you mean {}?", near.join(", ")),
    }
}

/// What an operator finds wrong with its attributes or inputs.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A required input is absent.
    #[error("input {0} is missing")]
    Missing(usize),
    /// An input has a type the operator does not take.
    #[error("input {input} has type {got}, expected {expected}")]
    Type {
        /// Which input.
        input: usize,
        /// The types it takes.
        expected: &'static str,
        /// The type given.
        got: DType,
    },
    /// A shape the operator does not take.
    #[error("input {input} has shape {got:?}, expected {expected}")]
    Shape {
        /// Which input.
        input: usize,
        /// What it takes.
        expected: String,
        /// The shape given.
        got: Vec<usize>,
    },
    /// Two shapes that do not go together.
    #[error("shapes {left:?} and {right:?} do not {verb}")]
    Mismatch {
        /// The first.
        left: Vec<usize>,
        /// The second.
        right: Vec<usize>,
        /// What they fail to do, such as "broadcast".
        verb: &'static str,
    },
    /// An attribute with a value the operator does not take.
    #[error("attribute {name:?}: {problem}")]
    Attribute {
        /// The attribute.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// An index or axis outside its range.
    #[error("{what} {index} is outside {low}..{high}")]
    Range {
        /// What kind of index.
        what: &'static str,
        /// Its value.
        index: i64,
        /// The lowest allowed.
        low: i64,
        /// One past the highest allowed.
        high: i64,
    },
    /// More memory than the limits allow.
    #[error("asks for {} bytes with {} in use; the limit is {}", .0.asked, .0.live, .0.ceiling)]
    Memory(TooLarge),
    /// More work than the limits allow.
    #[error("asks for {asked} {what}; the limit is {limit}")]
    Work {
        /// Of what.
        what: &'static str,
        /// How much.
        asked: i64,
        /// The limit.
        limit: i64,
    },
    /// A feature that is not implemented.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// A value that makes no sense here.
    #[error("{0}")]
    Value(String),
    /// A fault inside a branch or loop body.
    #[error("in its body: {0}")]
    Body(#[source] Box<Error>),
}

impl From<TooLarge> for Fault {
    fn from(refused: TooLarge) -> Fault {
        Fault::Memory(refused)
    }
}
