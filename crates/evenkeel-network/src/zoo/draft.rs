//! The drawing of one blueprint: steps are added, weights asked for, and what does not fit is written down until the end.

use std::collections::HashSet;

use super::blueprint::{Blueprint, Entrance, Exit, Step, attributes};
use super::misfit::Misfit;
use super::weights::Weights;
use super::{IMAGE, LOGITS};
use crate::graph::Dim;
use crate::op::{Attribute, Attributes};
use crate::tensor::{DType, Tensor};

/// A blueprint being drawn from weights.
pub(super) struct Draft<'w> {
    weights: &'w Weights,
    blueprint: Blueprint,
    /// Names of values and constants.
    taken: HashSet<String>,
    used: HashSet<String>,
    /// Beginnings of names that belong to parts not drawn.
    ignored: Vec<&'static str>,
    misfit: Misfit,
}

impl<'w> Draft<'w> {
    pub(super) fn new(architecture: &'static str, weights: &'w Weights) -> Draft<'w> {
        let free = |name: &str| Dim::Free(name.into());
        let dims = vec![free("n"), Dim::Fixed(3), free("h"), free("w")];
        let image = Entrance { name: IMAGE.into(), dtype: DType::F32, dims };
        let mut draft = Draft::of_inputs(architecture, weights);
        draft.taken.extend([IMAGE.to_string(), LOGITS.to_string()]);
        draft.blueprint.inputs.push(image);
        draft
    }

    /// A draft whose inputs are still to be declared.
    pub(super) fn of_inputs(architecture: &'static str, weights: &'w Weights) -> Draft<'w> {
        Draft {
            weights,
            blueprint: Blueprint { architecture, ..Blueprint::default() },
            taken: HashSet::new(),
            used: HashSet::new(),
            ignored: Vec::new(),
            misfit: Misfit { architecture, ..Misfit::default() },
        }
    }

    /// The blueprint, or what does not fit.
    pub(super) fn finish(mut self) -> Result<Blueprint, Box<Misfit>> {
        for (name, _) in self.weights.iter() {
            let ignored = name.ends_with("num_batches_tracked")
                || self.ignored.iter().any(|&beginning| name.starts_with(beginning));
            if !ignored && !self.used.contains(name) {
                self.misfit.unexpected.push(name.into());
            }
        }
        if self.misfit.differences() == 0 { Ok(self.blueprint) } else { Err(Box::new(self.misfit)) }
    }

    /// The blueprint of a part, whose weights were checked with the whole.
    pub(super) fn unchecked(self) -> Blueprint {
        self.blueprint
    }

    /// Declares an input of floats. Extents that are not numbers may change from call to call.
    pub(super) fn input(&mut self, name: &str, extents: &[&str]) {
        let dim = |extent: &&str| extent.parse().map_or_else(|_| Dim::Free(extent.to_string()), Dim::Fixed);
        let dims = extents.iter().map(dim).collect();
        self.taken.insert(name.into());
        self.blueprint.inputs.push(Entrance { name: name.into(), dtype: DType::F32, dims });
    }

    /// The module `old` if it may be called so and the weights call it so, else `new`.
    pub(super) fn either(&self, may_be_old: bool, old: &str, new: &str) -> String {
        let is_old = may_be_old && self.weights.get(&format!("{old}.weight")).is_some();
        if is_old { old.into() } else { new.into() }
    }

    /// Leaves weights of a part that is not drawn.
    pub(super) fn ignore(&mut self, beginning: &'static str) {
        self.ignored.push(beginning);
    }

    /// The extent of a weight along an axis, or `default` where there is none: how numbers of classes are found.
    pub(super) fn extent(&self, name: &str, axis: usize, default: usize) -> usize {
        self.weights.get(name).and_then(|tensor| tensor.shape().get(axis)).copied().unwrap_or(default)
    }

    /// A weight of this name and shape, as a constant of the same name.
    pub(super) fn weight(&mut self, name: &str, shape: &[usize]) -> String {
        let first = self.used.insert(name.into());
        match self.weights.get(name) {
            _ if !first => {}
            None => self.misfit.missing.push((name.into(), shape.to_vec())),
            Some(tensor) if tensor.shape() != shape || tensor.dtype() != DType::F32 => {
                self.misfit.misshapen.push((name.into(), shape.to_vec(), tensor.describe()));
            }
            Some(tensor) => {
                self.taken.insert(name.into());
                self.blueprint.constants.push((name.into(), tensor.clone()));
            }
        }
        name.into()
    }

    /// A constant that is not a weight.
    pub(super) fn constant(&mut self, name: &str, tensor: Tensor) -> String {
        let name = self.fresh(name);
        self.blueprint.constants.push((name.clone(), tensor));
        name
    }

    /// Integers, such as a shape.
    pub(super) fn integers(&mut self, name: &str, values: &[i64]) -> String {
        self.constant(name, Tensor::new(&[values.len()], values.to_vec()))
    }

    /// A number.
    pub(super) fn number(&mut self, name: &str, value: f32) -> String {
        self.constant(name, Tensor::scalar(value))
    }

    /// A name nothing has yet: this one, or with a count.
    fn fresh(&mut self, name: &str) -> String {
        let mut candidate = name.to_string();
        let mut count = 1;
        while !self.taken.insert(candidate.clone()) {
            count += 1;
            candidate = format!("{name}_{count}");
        }
        candidate
    }

    /// A step with one output.
    pub(super) fn step(
        &mut self,
        operator: &'static str,
        name: &str,
        inputs: &[&str],
        with: Attributes,
    ) -> String {
        self.steps(operator, &[name], inputs, with).swap_remove(0)
    }

    /// A step without attributes.
    pub(super) fn plain(&mut self, operator: &'static str, name: &str, inputs: &[&str]) -> String {
        self.step(operator, name, inputs, Attributes::default())
    }

    /// A step with an attribute `axis`.
    pub(super) fn along(&mut self, operator: &'static str, name: &str, inputs: &[&str], axis: i64) -> String {
        self.step(operator, name, inputs, attributes([("axis", Attribute::Int(axis))]))
    }

    /// A step with several outputs.
    pub(super) fn steps(
        &mut self,
        operator: &'static str,
        names: &[&str],
        inputs: &[&str],
        with: Attributes,
    ) -> Vec<String> {
        let outputs: Vec<String> = names.iter().map(|name| self.fresh(name)).collect();
        let inputs = inputs.iter().map(|name| name.to_string()).collect();
        self.blueprint.steps.push(Step { operator, inputs, outputs: outputs.clone(), attributes: with });
        outputs
    }

    /// Declares `value` to be the network's logits.
    pub(super) fn logits(&mut self, value: &str, rank: usize) {
        self.output(value, LOGITS, DType::F32, rank);
    }

    /// Declares `value` an output under another name.
    pub(super) fn output(&mut self, value: &str, name: &str, dtype: DType, rank: usize) {
        let step = Step {
            operator: "Identity",
            inputs: vec![value.into()],
            outputs: vec![name.into()],
            attributes: Attributes::default(),
        };
        self.taken.insert(name.into());
        self.blueprint.steps.push(step);
        self.blueprint.outputs.push(Exit { name: name.into(), dtype, rank });
    }
}
