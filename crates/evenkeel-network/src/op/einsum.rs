//! Einsum: sums of products over labelled dimensions.
//!
//! Each operand becomes a term with distinct labels (a repeated label is a diagonal). Terms are contracted from left to right: what
//! no one else needs is summed first, then labels fall into batch, rows, columns and depth, and a batch of matrix products does the
//! rest. The gradient of an operand is the einsum of the output's cotangent with the other operands, repeated over labels only
//! that operand has, and laid on the diagonal it was read from. A dimension of size one broadcasts.

use evenkeel_kernels::gemm::Shape;

use super::fold::sum;
use super::number::{Float, for_float};
use super::product::{Side, multiply};
use super::registry::{Entry, entry};
use super::walk::{Walk, row_strides};
use super::{Answer, Call, Definition, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Einsum", true, build)];

#[derive(Clone, Debug)]
struct Einsum {
    inputs: Vec<Labels>,
    /// `None` where the equation has no arrow: labels that occur once, in alphabetical order.
    output: Option<Labels>,
}

/// The labels of one operand, around an ellipsis if it has one.
#[derive(Clone, Debug)]
struct Labels {
    before: Vec<u32>,
    after: Option<Vec<u32>>,
}

/// The label of a dimension under the ellipsis, counted from its end.
const ELLIPSIS: u32 = 1 << 16;

fn problem(problem: impl Into<String>) -> Fault {
    Fault::Attribute { name: "equation".into(), problem: problem.into() }
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let equation = definition.attributes.text("equation")?.ok_or_else(|| problem("is missing"))?;
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&*equation, None),
    };
    let inputs = left.split(',').map(labels).collect::<Result<Vec<_>, _>>()?;
    if inputs.len() != definition.inputs {
        return Err(problem(format!(
            "{equation:?} has {} operands, the node {}",
            inputs.len(),
            definition.inputs
        )));
    }
    let output = right.map(labels).transpose()?;
    Ok(Box::new(Einsum { inputs, output }))
}

fn labels(text: &str) -> Result<Labels, Fault> {
    let run = |text: &str| -> Result<Vec<u32>, Fault> {
        let label = |c: char| {
            if c.is_ascii_alphabetic() { Ok(u32::from(c)) } else { Err(problem(format!("has {c:?}"))) }
        };
        text.chars().map(label).collect()
    };
    match text.split_once("...") {
        Some((before, after)) => Ok(Labels { before: run(before)?, after: Some(run(after)?) }),
        None => Ok(Labels { before: run(text)?, after: None }),
    }
}

impl Labels {
    /// One label a dimension.
    fn of_rank(&self, rank: usize) -> Option<Vec<u32>> {
        let Some(after) = &self.after else {
            return (rank == self.before.len()).then(|| self.before.clone());
        };
        let hidden = rank.checked_sub(self.before.len() + after.len())?;
        let mut labels = self.before.clone();
        labels.extend((0..hidden as u32).rev().map(|i| ELLIPSIS + i));
        labels.extend(after);
        Some(labels)
    }
}

/// A tensor whose dimensions have distinct labels.
#[derive(Clone, Debug)]
struct Term {
    tensor: Tensor,
    labels: Vec<u32>,
}

/// How an operand was read as a term.
#[derive(Clone, Debug)]
struct Reading {
    shape: Vec<usize>,
    labels: Vec<u32>,
    /// The stride of each label in the operand.
    strides: Vec<usize>,
}

/// The size of every label.
type Sizes = std::collections::BTreeMap<u32, usize>;

/// The equation for operands of known shapes: the labels of each operand, the output's, and the size of each.
struct Resolved {
    labels: Vec<Vec<u32>>,
    output: Vec<u32>,
    sizes: Sizes,
}

impl Operator for Einsum {
    fn folds_up_to(&self) -> usize {
        super::SHORT_PRODUCT
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let first = call.input(0)?;
        for_float!(first, 0, T => self.forward::<T>(&call))
    }
}

impl Einsum {
    fn resolve(&self, call: &Call<'_>) -> Result<Resolved, Fault> {
        let mut sizes = Sizes::new();
        let mut all = Vec::with_capacity(self.inputs.len());
        for (i, labels) in self.inputs.iter().enumerate() {
            let tensor = call.input(i)?;
            let wrong = || Fault::Shape {
                input: i,
                expected: "a dimension for each label".into(),
                got: tensor.shape().to_vec(),
            };
            let labels = labels.of_rank(tensor.rank()).ok_or_else(wrong)?;
            for (&label, &size) in labels.iter().zip(tensor.shape()) {
                let known = sizes.entry(label).or_insert(size);
                if *known == 1 {
                    *known = size;
                } else if size != *known && size != 1 {
                    return Err(wrong());
                }
            }
            all.push(labels);
        }
        let hidden: Vec<u32> = sizes.keys().copied().filter(|&label| label >= ELLIPSIS).rev().collect();
        let output = match &self.output {
            Some(output) => output
                .of_rank(
                    output.before.len() + output.after.as_ref().map_or(0, |after| after.len() + hidden.len()),
                )
                .unwrap_or_default(),
            None => {
                let once = |&label: &u32| all.iter().flatten().filter(|&&other| other == label).count() == 1;
                hidden
                    .iter()
                    .copied()
                    .chain(sizes.keys().copied().filter(|&l| l < ELLIPSIS).filter(once))
                    .collect()
            }
        };
        let distinct = (1..output.len()).all(|i| !output[..i].contains(&output[i]));
        if !distinct || output.iter().any(|label| !sizes.contains_key(label)) {
            return Err(problem("has an output label twice or one that no operand has"));
        }
        Ok(Resolved { labels: all, output, sizes })
    }

    fn forward<T: Float>(&self, call: &Call<'_>) -> Result<Answer, Fault> {
        let Resolved { labels, output, sizes } = self.resolve(call)?;
        let readings: Vec<Reading> = (0..labels.len())
            .map(|i| Ok(Reading::new(call.input(i)?.shape(), &labels[i], &sizes)))
            .collect::<Result<_, Fault>>()?;
        let terms = (0..labels.len())
            .map(|i| readings[i].term::<T>(call.input(i)?, &sizes, call.room))
            .collect::<Result<Vec<_>, Fault>>()?;
        let y = contract::<T>(terms.clone(), &output, &sizes, call.room)?;
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            for (i, reading) in readings.iter().enumerate() {
                if !back.wants(i) {
                    continue;
                }
                let mut factors = vec![Term { tensor: g.clone(), labels: output.clone() }];
                factors
                    .extend(terms.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, term)| term.clone()));
                let known: Vec<u32> = reading
                    .labels
                    .iter()
                    .copied()
                    .filter(|l| factors.iter().any(|f| f.labels.contains(l)))
                    .collect();
                let tensor = contract::<T>(factors, &known, &sizes, back.room())?;
                let own = reading.unread::<T>(Term { tensor, labels: known }, &sizes, back.room())?;
                back.give(i, own)?;
            }
            Ok(())
        }))
    }
}

impl Reading {
    fn new(shape: &[usize], labels: &[u32], sizes: &Sizes) -> Reading {
        let own = row_strides(shape);
        let (mut distinct, mut strides): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        for (i, &label) in labels.iter().enumerate() {
            if shape[i] == 1 && sizes[&label] != 1 {
                continue; // broadcast: the term does not have the label
            }
            match distinct.iter().position(|&other| other == label) {
                Some(at) => strides[at] = strides[at].saturating_add(own[i]),
                None => {
                    distinct.push(label);
                    strides.push(own[i]);
                }
            }
        }
        Reading { shape: shape.to_vec(), labels: distinct, strides }
    }

    fn is_whole(&self, sizes: &Sizes) -> bool {
        let shape: Vec<usize> = self.labels.iter().map(|label| sizes[label]).collect();
        self.strides == row_strides(&shape)
    }

    fn term<T: Float>(&self, tensor: &Tensor, sizes: &Sizes, room: &Room) -> Result<Term, Fault> {
        let shape: Vec<usize> = self.labels.iter().map(|label| sizes[label]).collect();
        let tensor = if self.is_whole(sizes) {
            tensor.reshaped(&shape)?
        } else {
            view::<T>(tensor, &shape, self.strides.clone(), room)?
        };
        Ok(Term { tensor, labels: self.labels.clone() })
    }

    /// The gradient of the operand from that of its term, which may lack labels no one else has.
    fn unread<T: Float>(&self, term: Term, sizes: &Sizes, room: &Room) -> Result<Tensor, Fault> {
        let shape: Vec<usize> = self.labels.iter().map(|label| sizes[label]).collect();
        let own = row_strides(term.tensor.shape());
        let stride = |label: &u32| term.labels.iter().position(|other| other == label).map_or(0, |i| own[i]);
        let whole = if term.labels == self.labels {
            term.tensor.clone()
        } else {
            view::<T>(&term.tensor, &shape, self.labels.iter().map(stride).collect(), room)?
        };
        if self.is_whole(sizes) {
            return whole.reshaped(&self.shape);
        }
        let values: &[T] = values_of(&whole, 0)?;
        room.tensor(&self.shape, |out| {
            out.fill(T::of(0.0));
            for (i, &value) in values.iter().enumerate() {
                let (mut rest, mut at) = (i, 0);
                for (size, stride) in shape.iter().zip(&self.strides).rev() {
                    at += rest % size * stride;
                    rest /= size;
                }
                out[at] = value;
            }
        })
    }
}

/// A plain tensor of this shape read from another at these strides.
fn view<T: Float>(x: &Tensor, shape: &[usize], strides: Vec<usize>, room: &Room) -> Result<Tensor, Fault> {
    let values: &[T] = values_of(x, 0)?;
    let walk = Walk::new(shape, Layout::Plain, [strides]);
    room.tensor(shape, |out| {
        walk.each(out, |row, [i], [step]| match step {
            1 => row.copy_from_slice(&values[i..i + row.len()]),
            _ => row.iter_mut().enumerate().for_each(|(k, out)| *out = values[i + step * k]),
        });
    })
}

/// A term with its dimensions in this order of labels, all of which it has.
fn ordered<T: Float>(term: &Term, labels: &[u32], room: &Room) -> Result<Tensor, Fault> {
    if term.labels == labels {
        return Ok(term.tensor.clone());
    }
    let own = row_strides(term.tensor.shape());
    let at = |label: &u32| term.labels.iter().position(|other| other == label).unwrap_or(0);
    let shape: Vec<usize> = labels.iter().map(|label| term.tensor.shape()[at(label)]).collect();
    view::<T>(&term.tensor, &shape, labels.iter().map(|label| own[at(label)]).collect(), room)
}

/// A term summed over the labels that `keep` refuses.
fn summed<T: Float>(term: Term, keep: impl Fn(u32) -> bool, room: &Room) -> Result<Term, Fault> {
    let gone: Vec<usize> = (0..term.labels.len()).filter(|&i| !keep(term.labels[i])).collect();
    if gone.is_empty() {
        return Ok(term);
    }
    let labels: Vec<u32> = term.labels.iter().copied().filter(|&label| keep(label)).collect();
    let shape = super::fold::folded_shape(term.tensor.shape(), &gone, false);
    Ok(Term { tensor: sum::<T>(&term.tensor, &gone, room)?.reshaped(&shape)?, labels })
}

/// The sum of products of the terms over all labels but `output`, in that order. A label of the output no term has any more
/// (all were of size one) is not asked for.
fn contract<T: Float>(terms: Vec<Term>, output: &[u32], sizes: &Sizes, room: &Room) -> Result<Tensor, Fault> {
    let mut rest = terms.into_iter();
    let mut left = rest.next().ok_or(Fault::Missing(0))?;
    while let Some(right) = rest.next() {
        let later = rest.as_slice();
        let needed =
            |label: u32| output.contains(&label) || later.iter().any(|term| term.labels.contains(&label));
        let (a, b) = (left.labels.clone(), right.labels.clone());
        left = summed::<T>(left, |label| needed(label) || b.contains(&label), room)?;
        let right = summed::<T>(right, |label| needed(label) || a.contains(&label), room)?;
        left = product::<T>(&left, &right, needed, sizes, room)?;
    }
    let left = summed::<T>(left, |label| output.contains(&label), room)?;
    let held: Vec<u32> = output.iter().copied().filter(|label| left.labels.contains(label)).collect();
    let tensor = ordered::<T>(&left, &held, room)?;
    let shape: Vec<usize> =
        output.iter().map(|label| if held.contains(label) { sizes[label] } else { 1 }).collect();
    tensor.reshaped(&shape)
}

/// The product of two terms, summed over the labels both have and no one needs.
fn product<T: Float>(
    a: &Term,
    b: &Term,
    needed: impl Fn(u32) -> bool,
    sizes: &Sizes,
    room: &Room,
) -> Result<Term, Fault> {
    let shared = |label: &u32| b.labels.contains(label);
    let batch: Vec<u32> = a.labels.iter().copied().filter(|l| shared(l) && needed(*l)).collect();
    let depth: Vec<u32> = a.labels.iter().copied().filter(|l| shared(l) && !needed(*l)).collect();
    let rows: Vec<u32> = a.labels.iter().copied().filter(|l| !shared(l)).collect();
    let columns: Vec<u32> = b.labels.iter().copied().filter(|l| !a.labels.contains(l)).collect();
    let size = |labels: &[u32]| labels.iter().map(|label| sizes[label]).fold(1, usize::saturating_mul);
    let left = ordered::<T>(a, &[&batch[..], &rows, &depth].concat(), room)?;
    let right = ordered::<T>(b, &[&batch[..], &depth, &columns].concat(), room)?;
    let labels = [&batch[..], &rows, &columns].concat();
    let shape: Vec<usize> = labels.iter().map(|label| sizes[label]).collect();
    let (x, y): (&[T], &[T]) = (values_of(&left, 0)?, values_of(&right, 1)?);
    let (batch, m, k, n) = (size(&batch), size(&rows), size(&depth), size(&columns));
    let tensor = room.tensor(&shape, |out| {
        if x.is_empty() || y.is_empty() {
            return out.fill(T::of(0.0));
        }
        multiply(Shape { batch, m, n, k }, Side::new(x, m, k), Side::new(y, k, n), 1.0, out);
    })?;
    Ok(Term { tensor, labels })
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Attributes, Definition};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(81);
        let cases: &[(&str, &[&[usize]])] = &[
            ("ij,jk->ik", &[&[2, 3], &[3, 4]]),
            ("bhid,bhjd->bhij", &[&[2, 2, 3, 4], &[2, 2, 5, 4]]),
            ("ij->ji", &[&[2, 3]]),
            ("ij->", &[&[2, 3]]),
            ("ii->i", &[&[3, 3]]),
            ("ii", &[&[3, 3]]),
            ("i,j->ij", &[&[2], &[3]]),
            ("i,i", &[&[4], &[4]]),
            ("...ij,...jk->...ik", &[&[2, 1, 2, 3], &[4, 3, 2]]),
            ("b...,c...->bc...", &[&[2, 3], &[4, 3]]),
            ("ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]]),
            ("ijk,ij->k", &[&[2, 3, 4], &[2, 3]]),
            ("iji,j->i", &[&[2, 3, 2], &[3]]),
            (" ij , kj -> i k ", &[&[2, 3], &[4, 3]]),
            ("nchw,kc->nkhw", &[&[2, 3, 2, 2], &[4, 3]]),
        ];
        for (equation, shapes) in cases {
            let inputs: Vec<Option<Tensor>> =
                shapes.iter().map(|shape| Some(numbers.tensor(shape, -1.0, 1.0))).collect();
            let attributes = [("equation", Attribute::Text(equation.to_string()))];
            prove_gradient(build("Einsum", 12, &attributes, inputs.len()), &inputs, 1, 1e-5);
        }
    }

    #[test]
    fn traces_and_outer_products_are_known() {
        let x = Tensor::new(&[2, 2], vec![1.0f32, 2.0, 3.0, 4.0]);
        let of = |equation: &str, inputs: &[Option<Tensor>]| {
            let attributes = [("equation", Attribute::Text(equation.into()))];
            outputs(&build("Einsum", 12, &attributes, inputs.len()).into(), inputs, 1).remove(0)
        };
        assert_eq!(of("ii", &[Some(x.clone())]).values::<f32>().unwrap(), [5.0]);
        assert_eq!(of("ba", &[Some(x.clone())]).values::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
        let y = Tensor::new(&[2], vec![10.0f32, 100.0]);
        assert_eq!(of("ij,j->i", &[Some(x), Some(y)]).values::<f32>().unwrap(), [210.0, 430.0]);
    }

    #[test]
    fn equations_that_make_no_sense_are_refused() {
        for equation in ["i2->i", "ij,jk->ik->", "i", "i,j->ii", "i,j->k", "..i,j", ""] {
            let pairs = [("equation".to_string(), Attribute::Text(equation.into()))];
            let attributes = Attributes(pairs.into_iter().collect());
            let definition =
                Definition { operator: "Einsum", opset: 12, attributes: &attributes, inputs: 2, outputs: 1 };
            let Ok(op) = super::build(&definition) else { continue };
            let room = super::super::proof::room();
            let one = || Some(Tensor::new(&[1], vec![1.0f32]));
            let call = super::super::Call {
                inputs: vec![one(), one()],
                wants: &[false; 2],
                outputs: 1,
                room: &room,
            };
            assert!(op.apply(call).is_err(), "{equation}");
        }
    }
}
