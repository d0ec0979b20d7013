//! The forward walk, its tape, and the pullback.
//!
//! Forwards, each step gets its inputs (the last user gets them for good, so it may write in place) and answers with outputs and
//! a pullback. Backwards, each value's gradient is the sum of what its users give; a mask on the value is applied to the
//! whole sum once. A value's gradient always reaches its maker in the layout the value had.

use std::sync::Arc;

use crate::error::{Fault, Result};
use crate::op::{Back, Call, Gradient, Layouts, Pullback, SlopeMask};
use crate::plan::{Plan, Step};
use crate::tensor::{DType, Layout, Room, Tensor};

/// What a value needs besides itself while the walk goes forward.
#[derive(Default)]
struct Held {
    tensor: Option<Tensor>,
    /// The same in the other layout, if some step needed that.
    other: Option<Tensor>,
    /// Whether it depends on an input whose gradient is wanted.
    active: bool,
}

/// What the pullback of one step needs.
struct Entry {
    pullback: Pullback,
    /// For each input, the place of its gradient, if wanted.
    places: Vec<Option<usize>>,
    /// The layouts of the outputs.
    layouts: Vec<Layout>,
    mask: Option<SlopeMask>,
}

/// What a walk leaves behind for the pullback: bits, indices and the few tensors that derivatives need.
pub struct Tape {
    plan: Arc<Plan>,
    entries: Vec<Option<Entry>>,
    /// The layout of every value, for gradients summed in place.
    layouts: Vec<Layout>,
    wanted: Vec<bool>,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} steps)", self.entries.iter().flatten().count())
    }
}

/// Someone who sees the steps of a walk, forwards and backwards, as they are done.
pub trait Watch {
    /// The step is about to run on these inputs; for each, whether its gradient is wanted.
    fn starts(&mut self, step: &Step, inputs: &[Option<Tensor>], wants: &[bool]);
    /// The step that started last has given these outputs.
    fn ends(&mut self, outputs: &[Tensor]);
    /// The gradient has passed step `index` of the plan.
    fn pulled(&mut self, index: usize);
}

/// Runs a plan. `wants` says for which inputs the tape must lead back; without any there is no tape.
///
/// # Errors
/// What the steps find.
pub fn walk(
    plan: &Arc<Plan>,
    inputs: Vec<Option<Tensor>>,
    wants: &[bool],
    room: &Room,
) -> Result<(Vec<Tensor>, Option<Tape>)> {
    observe(plan, inputs, wants, room, None)
}

/// As [`walk`]; `watch` sees each step.
///
/// # Errors
/// What the steps find.
pub fn observe(
    plan: &Arc<Plan>,
    inputs: Vec<Option<Tensor>>,
    wants: &[bool],
    room: &Room,
    mut watch: Option<&mut dyn Watch>,
) -> Result<(Vec<Tensor>, Option<Tape>)> {
    let mut held: Vec<Held> = (0..plan.places).map(|_| Held::default()).collect();
    for (place, tensor) in &plan.constants {
        held[*place].tensor = Some(tensor.clone());
    }
    for (i, (place, tensor)) in plan.inputs.iter().zip(inputs).enumerate() {
        if let (&Some(place), Some(tensor)) = (place, tensor) {
            held[place].active = wants.get(i).copied().unwrap_or(false) && tensor.dtype().is_float();
            held[place].tensor = Some(tensor);
        }
    }
    let taping = wants.iter().any(|&wanted| wanted);
    let mut tape = taping.then(|| Tape {
        plan: plan.clone(),
        entries: Vec::with_capacity(plan.steps.len()),
        layouts: vec![Layout::Plain; plan.places],
        wanted: wants.to_vec(),
    });
    for step in &plan.steps {
        let entry = forward(plan, step, &mut held, room, &mut watch).map_err(|fault| step.error(fault))?;
        if let Some(tape) = &mut tape {
            for &place in step.outputs.iter().flatten() {
                if let Some(tensor) = &held[place].tensor {
                    tape.layouts[place] = tensor.layout();
                }
            }
            tape.entries.push(entry);
        }
    }
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for &place in &plan.outputs {
        let Some(tensor) = &held[place].tensor else {
            return Err(crate::Error::Graph("a tensor asked for was never made".into()));
        };
        outputs.push(tensor.to_plain(room).map_err(|fault| crate::Error::Graph(fault.to_string()))?);
    }
    Ok((outputs, tape))
}

fn forward(
    plan: &Plan,
    step: &Step,
    held: &mut [Held],
    room: &Room,
    watch: &mut Option<&mut dyn Watch>,
) -> Result<Option<Entry>, Fault> {
    let leads_on = step.outputs.iter().flatten().any(|&place| plan.useful[place]);
    let places: Vec<Option<usize>> = step
        .inputs
        .iter()
        .enumerate()
        .map(|(i, place)| place.filter(|&p| leads_on && held[p].active && step.op.passes_gradient(i)))
        .collect();
    let wants: Vec<bool> = places.iter().map(Option::is_some).collect();
    let mut inputs = Vec::with_capacity(step.inputs.len());
    for (i, place) in step.inputs.iter().enumerate() {
        inputs.push(match place {
            Some(place) => Some(fetch(&mut held[*place], step, i, plan.free_layout, room)?),
            None => None,
        });
    }
    if let Some(watch) = watch {
        watch.starts(step, &inputs, &wants);
    }
    let answer = step.op.apply(Call { inputs, wants: &wants, outputs: step.outputs.len(), room })?;
    if let Some(watch) = watch {
        watch.ends(&answer.outputs);
    }
    if answer.outputs.len() < step.outputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1) {
        return Err(Fault::Value(format!("gave {} outputs of {}", answer.outputs.len(), step.outputs.len())));
    }
    let layouts = answer.outputs.iter().map(Tensor::layout).collect();
    let active = wants.iter().any(|&wanted| wanted) && answer.pullback.is_some();
    for (place, tensor) in step.outputs.iter().zip(answer.outputs) {
        if let &Some(place) = place {
            held[place].active = active && (tensor.dtype().is_float() || step.op.passes_through_codes());
            held[place].tensor = Some(tensor);
        }
    }
    Ok(answer.pullback.filter(|_| active).map(|pullback| Entry {
        pullback,
        places,
        layouts,
        mask: answer.mask,
    }))
}

/// The input of a step in a layout it can read: moved out if this is its last use.
fn fetch(held: &mut Held, step: &Step, i: usize, free_layout: bool, room: &Room) -> Result<Tensor, Fault> {
    let tensor = held.tensor.as_ref().ok_or(Fault::Missing(i))?;
    let suits = match step.op.layouts() {
        Layouts::Any => true,
        Layouts::Plain => tensor.layout() == Layout::Plain,
        Layouts::ChannelsLast => {
            let map = free_layout && i == 0 && tensor.rank() == 4 && tensor.dtype() == DType::F32;
            !map || tensor.layout() == Layout::ChannelsLast
        }
    };
    let last = step.last_use[i];
    if suits {
        return if last { held.tensor.take().ok_or(Fault::Missing(i)) } else { Ok(tensor.clone()) };
    }
    let converted = match held.other.take() {
        Some(other) => other,
        None if tensor.layout() == Layout::Plain => tensor.to_channels_last(room)?,
        None => tensor.to_plain(room)?,
    };
    if last {
        held.tensor = None;
    } else {
        held.other = Some(converted.clone());
    }
    Ok(converted)
}

impl Tape {
    /// Pulls cotangents of the outputs back to the inputs. An absent cotangent is zero; so is an absent answer.
    ///
    /// # Errors
    /// If the room is used up.
    pub fn pull(&self, cotangents: Vec<Option<Tensor>>, room: &Room) -> Result<Vec<Option<Tensor>>> {
        self.pull_observed(cotangents, room, None)
    }

    /// As [`Tape::pull`]; `watch` sees each step the gradient has passed.
    ///
    /// # Errors
    /// If the room is used up.
    pub fn pull_observed(
        &self,
        cotangents: Vec<Option<Tensor>>,
        room: &Room,
        mut watch: Option<&mut dyn Watch>,
    ) -> Result<Vec<Option<Tensor>>> {
        let plan = &self.plan;
        let mut gradients: Vec<Gradient> = (0..plan.places).map(|_| Gradient::default()).collect();
        for (step, entry) in plan.steps.iter().zip(&self.entries) {
            let Some(entry) = entry else { continue };
            entry.places.iter().flatten().for_each(|&place| gradients[place].pending += 1);
            if let (Some(mask), Some(&Some(place))) = (&entry.mask, step.outputs.first()) {
                gradients[place].mask = Some(mask.clone());
            }
        }
        for (place, layout) in self.layouts.iter().enumerate() {
            gradients[place].layout = Some(*layout);
        }
        for (&place, cotangent) in plan.outputs.iter().zip(cotangents) {
            let Some(cotangent) = cotangent else { continue };
            let held = gradients[place].sum.take();
            let total = held.map_or(Ok(cotangent.clone()), |held| sum(held, cotangent, room));
            gradients[place].sum = Some(total.map_err(|fault| crate::Error::Graph(fault.to_string()))?);
        }
        for (i, (step, entry)) in plan.steps.iter().zip(&self.entries).enumerate().rev() {
            if let Some(entry) = entry {
                backward(step, entry, &mut gradients, room).map_err(|fault| step.error(fault))?;
                if let Some(watch) = &mut watch {
                    watch.pulled(i);
                }
            }
        }
        let wanted = |i: usize| self.wanted.get(i).copied().unwrap_or(false);
        plan.inputs
            .iter()
            .enumerate()
            .map(|(i, place)| {
                let Some(place) = place.filter(|_| wanted(i)) else { return Ok(None) };
                let gradient = gradients[place].sum.take();
                gradient
                    .map(|g| g.to_plain(room))
                    .transpose()
                    .map_err(|fault| crate::Error::Graph(fault.to_string()))
            })
            .collect()
    }
}

fn backward(step: &Step, entry: &Entry, gradients: &mut [Gradient], room: &Room) -> Result<(), Fault> {
    let mut cotangents = Vec::with_capacity(step.outputs.len());
    for (place, &layout) in step.outputs.iter().zip(&entry.layouts) {
        let gradient = place.map(|place| std::mem::take(&mut gradients[place])).unwrap_or_default();
        cotangents.push(match gradient.sum {
            None => None,
            Some(sum) => {
                let sum = sum.in_layout(layout, room)?;
                Some(match &gradient.mask {
                    Some(mask) => masked(sum, mask, room)?,
                    None => sum,
                })
            }
        });
    }
    if cotangents.iter().any(Option::is_some) {
        (entry.pullback)(&mut Back { cotangents, places: &entry.places, gradients, room })?;
    }
    entry.places.iter().flatten().for_each(|&place| gradients[place].pending -= 1);
    Ok(())
}

/// The sum of two gradients, in the layout of the first, in place where one of them is not shared.
pub(crate) fn sum(mut a: Tensor, b: Tensor, room: &Room) -> Result<Tensor, Fault> {
    let mut b = b.in_layout(a.layout(), room)?;
    if a.values_mut::<f32>().is_none() && a.values_mut::<f64>().is_none() {
        std::mem::swap(&mut a, &mut b);
    }
    if let Some(other) = b.values::<f64>() {
        let a = a.values::<f64>().ok_or_else(|| mismatch(&a, &b))?;
        return room.tensor(b.shape(), |out| {
            for ((out, a), b) in out.iter_mut().zip(a).zip(other) {
                *out = a + b;
            }
        });
    }
    let other = b.values::<f32>().ok_or_else(|| mismatch(&a, &b))?;
    if let Some(values) = a.values_mut::<f32>() {
        add(values, other);
        return Ok(a);
    }
    let mut copy = a.copied(room)?;
    match copy.values_mut::<f32>() {
        Some(values) => add(values, other),
        None => return Err(mismatch(&a, &b)),
    }
    Ok(copy)
}

fn mismatch(a: &Tensor, b: &Tensor) -> Fault {
    Fault::Mismatch { left: a.shape().to_vec(), right: b.shape().to_vec(), verb: "add up" }
}

fn add(values: &mut [f32], other: &[f32]) {
    evenkeel_kernels::parallel::rows(values, 1, 1 << 15, |first, part| {
        for (a, b) in part.iter_mut().zip(&other[first..]) {
            *a += b;
        }
    });
}

/// `sum` times the slopes of `mask`, in place where it is not shared.
pub(crate) fn masked(sum: Tensor, mask: &SlopeMask, room: &Room) -> Result<Tensor, Fault> {
    let mut sum = if sum.is_shared() { sum.copied(room)? } else { sum };
    let mask = mask.as_mask();
    if let Some(values) = sum.values_mut::<f32>() {
        evenkeel_kernels::activation::apply_mask(mask, values);
    } else if let Some(values) = sum.values_mut::<f64>() {
        for (i, value) in values.iter_mut().enumerate() {
            *value *= f64::from(mask.slope(i));
        }
    }
    Ok(sum)
}
