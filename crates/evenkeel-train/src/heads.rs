//! Heads on frozen features: which way an image was turned, and which views belong to one image.
//!
//! Features are pooled over space once for all pictures; a head is two linear layers on them, trained like any network on maps of one
//! cell. NT-Xent for a batch of B pictures seen twice, with unit embeddings e and temperature τ: the mean over all 2B of
//! `−log(exp(e·e⁺/τ) / Σ_{others} exp(e·e'/τ))`.

use crate::error::{Error, Result};
use crate::layer::conv::Conv;
use crate::loss::cross_entropy;
use crate::map::Map;
use crate::net::{Mode, Net};
use crate::optimiser::{Optimiser, Rule, Schedule};
use evenkeel::image::write_atomically;
use evenkeel::model::Model;
use evenkeel::objective::Pooled;
use evenkeel::view::{DrawnView, Turn, ViewSet};
use evenkeel::{Image, Random};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, TensorView};
use std::path::Path;

const TEMPERATURE: f32 = 0.5;
const STEPS: usize = 1500;
const BATCH: usize = 128;
const PEAK: f32 = 3e-3;
/// Embeddings kept as negatives.
const BANK: usize = 400;
const HIDDEN: usize = 256;
const EMBEDDING: usize = 64;
/// Pairs of views of each picture.
const PAIRS: usize = 2;

/// A trained head with, for the contrastive one, its bank.
pub struct TrainedHead {
    net: Net,
    bank: Option<Vec<f32>>,
    /// How well it does: accuracy of turns, or of finding the other view in a batch.
    pub score: f64,
}

/// Features of one image, pooled over space.
fn pooled(model: &Model, image: &Image) -> Result<Vec<f32>> {
    let features = model.features(image)?;
    Ok(Pooled::of(&features)?.values().to_vec())
}

fn head(inputs: usize, outputs: usize, random: &mut Random) -> Net {
    let mut net = Net::new(inputs);
    let linear = |in_c, out_c| Conv { in_c, out_c, kernel: 1, stride: 1, dilation: 1 };
    let hidden = net.conv("linear0", 0, linear(inputs, HIDDEN), false, random);
    let hidden = net.norm("norm0", hidden, None, true);
    let out = net.conv("linear1", hidden, linear(HIDDEN, outputs), true, random);
    net.name(out, "out");
    net
}

fn gather(rows: &[&[f32]]) -> Map {
    let mut map = Map::zeros(rows.len(), 1, 1, rows[0].len());
    let stride = map.stride();
    for (to, row) in map.values.chunks_exact_mut(stride).zip(rows) {
        to[..row.len()].copy_from_slice(row);
    }
    map
}

/// The 4-way head that tells by how many quarters an image was turned. The last fifth of the images is held out.
///
/// # Errors
/// If the network refuses an image.
pub fn rotation(model: &Model, images: &[Image], seed: u64) -> Result<TrainedHead> {
    let fixed_canvas = model.network.fixed_size().is_some();
    let turned =
        |image: &Image, quarters: u8| DrawnView::of(Turn { quarters }).fitted(fixed_canvas).apply(image);
    let features: Vec<(Vec<f32>, u16)> = (0..4 * images.len())
        .into_par_iter()
        .map(|k| Ok((pooled(model, &turned(&images[k / 4], (k % 4) as u8))?, (k % 4) as u16)))
        .collect::<Result<_>>()?;
    let (train, held_out) = features.split_at(features.len() / 5 * 4);
    let mut random = Random::new(seed);
    let mut net = head(train[0].0.len(), 4, &mut random);
    let mut optimiser = Optimiser::new(Rule::AdamW, &net, 0.01);
    let out = net.place("out");
    for step in 0..STEPS {
        let chosen: Vec<usize> = (0..BATCH).map(|_| random.below(train.len())).collect();
        let rows: Vec<&[f32]> = chosen.iter().map(|&k| &*train[k].0).collect();
        let labels: Vec<u16> = chosen.iter().map(|&k| train[k].1).collect();
        let tape = net.forward(gather(&rows), Mode::Train);
        let (_, gradient) = cross_entropy(tape.map(out), &labels, 1, &[1.0; 4]);
        learn(&mut net, &mut optimiser, &tape, gradient, step);
    }
    let rows: Vec<&[f32]> = held_out.iter().map(|f| &*f.0).collect();
    let tape = net.forward(gather(&rows), Mode::Eval);
    let said = crate::loss::best(tape.map(out), 1);
    let right = said.iter().zip(held_out).filter(|(said, (_, is))| *said == is).count();
    Ok(TrainedHead { net, bank: None, score: right as f64 / held_out.len() as f64 })
}

fn learn(net: &mut Net, optimiser: &mut Optimiser, tape: &crate::net::Tape, gradient: Map, step: usize) {
    let out = net.place("out");
    net.backward(tape, vec![(out, gradient)], false);
    net.remember(tape);
    optimiser.step(net, step, Schedule::Cosine.rate(step, STEPS, PEAK, STEPS / 20));
}

/// The projection head of SimCLR, and a bank of embeddings of other images. The last fifth of the images is held out.
///
/// # Errors
/// If the network refuses an image.
pub fn contrastive(model: &Model, images: &[Image], seed: u64) -> Result<TrainedHead> {
    let views = ViewSet::contrastive(2 * PAIRS).fitted(model.network.fixed_size().is_some(), model.multiple);
    let features: Vec<Vec<Vec<f32>>> = images
        .par_iter()
        .enumerate()
        .map(|(k, image)| {
            let drawn = views.draw(&Random::new(seed).fork(k as u64));
            drawn.iter().map(|view| pooled(model, &view.apply(image))).collect()
        })
        .collect::<Result<_>>()?;
    let (train, held_out) = features.split_at(features.len() / 5 * 4);
    let mut random = Random::new(seed);
    let mut net = head(train[0][0].len(), EMBEDDING, &mut random);
    let mut optimiser = Optimiser::new(Rule::AdamW, &net, 0.01);
    let out = net.place("out");
    for step in 0..STEPS {
        let order = random.order(train.len());
        let chosen = &order[..(BATCH / 2).min(order.len())];
        let rows = twice(train, chosen, random.below(PAIRS));
        let tape = net.forward(gather(&rows), Mode::Train);
        let (_, gradient) = nt_xent(tape.map(out));
        learn(&mut net, &mut optimiser, &tape, gradient, step);
    }
    let everyone: Vec<usize> = (0..held_out.len()).collect();
    let tape = net.forward(gather(&twice(held_out, &everyone, 0)), Mode::Eval);
    let score = found(tape.map(out));
    let rows: Vec<&[f32]> = train.iter().take(BANK).map(|views| &*views[0]).collect();
    let tape = net.forward(gather(&rows), Mode::Eval);
    let map = tape.map(out);
    let bank =
        map.values.chunks_exact(map.stride()).flat_map(|row| row[..EMBEDDING].iter().copied()).collect();
    Ok(TrainedHead { net, bank: Some(bank), score })
}

/// Two views of each chosen picture, side by side.
fn twice<'a>(features: &'a [Vec<Vec<f32>>], chosen: &[usize], pair: usize) -> Vec<&'a [f32]> {
    chosen.iter().flat_map(|&k| [&*features[k][2 * pair], &*features[k][2 * pair + 1]]).collect()
}

/// Unit embeddings and their lengths.
fn units(map: &Map) -> Vec<(Vec<f32>, f32)> {
    let row = |row: &[f32]| {
        let length = row[..map.channels].iter().map(|v| v * v).sum::<f32>().sqrt() + 1e-10;
        (row[..map.channels].iter().map(|v| v / length).collect(), length)
    };
    map.values.chunks_exact(map.stride()).map(row).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// NT-Xent over rows 2k and 2k + 1 as pairs, and its gradient.
pub(crate) fn nt_xent(map: &Map) -> (f64, Map) {
    let units = units(map);
    let count = units.len();
    let mut loss = 0.0;
    let mut on_unit = vec![vec![0.0f32; map.channels]; count];
    for i in 0..count {
        let mate = i ^ 1;
        let similar: Vec<f32> = (0..count).map(|j| dot(&units[i].0, &units[j].0) / TEMPERATURE).collect();
        let sum: f32 = (0..count).filter(|&j| j != i).map(|j| (similar[j] - 1.0 / TEMPERATURE).exp()).sum();
        loss += f64::from(sum.ln() + 1.0 / TEMPERATURE - similar[mate]);
        for j in (0..count).filter(|&j| j != i) {
            let share = (similar[j] - 1.0 / TEMPERATURE).exp() / sum - if j == mate { 1.0 } else { 0.0 };
            let share = share / (TEMPERATURE * count as f32);
            for c in 0..map.channels {
                on_unit[i][c] += share * units[j].0[c];
                on_unit[j][c] += share * units[i].0[c];
            }
        }
    }
    let mut gradient = Map::like(map);
    let stride = gradient.stride();
    for ((to, (unit, length)), g) in gradient.values.chunks_exact_mut(stride).zip(&units).zip(&on_unit) {
        let along = dot(unit, g);
        for c in 0..map.channels {
            to[c] = (g[c] - along * unit[c]) / length;
        }
    }
    (loss / count as f64, gradient)
}

/// The share of rows whose nearest other row is their mate.
fn found(map: &Map) -> f64 {
    let units = units(map);
    let nearest = |i: usize| {
        let others = (0..units.len()).filter(|&j| j != i);
        others.max_by(|&a, &b| dot(&units[i].0, &units[a].0).total_cmp(&dot(&units[i].0, &units[b].0)))
    };
    (0..units.len()).filter(|&i| nearest(i) == Some(i ^ 1)).count() as f64 / units.len() as f64
}

impl TrainedHead {
    /// Writes the head in the form the method reads.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut tensors: Vec<(String, Vec<usize>, &[f32])> = Vec::new();
        for p in &self.net.parameters {
            // A 1x1 convolution is a linear layer.
            let shape = if p.shape.len() == 4 { p.shape[..2].to_vec() } else { p.shape.clone() };
            tensors.push((p.name.clone(), shape, &p.values));
        }
        for r in &self.net.running {
            tensors.push((format!("{}.running_mean", r.name), vec![r.mean.len()], &r.mean));
            tensors.push((format!("{}.running_var", r.name), vec![r.variance.len()], &r.variance));
        }
        if let Some(bank) = &self.bank {
            tensors.push(("bank".into(), vec![bank.len() / EMBEDDING, EMBEDDING], bank));
        }
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(.., values)| values.iter().flat_map(|v| v.to_le_bytes()).collect())
            .collect();
        let views = tensors
            .iter()
            .zip(&bytes)
            .map(|((name, shape, _), bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(|e| Error::file(path, e))?;
        let file = safetensors::serialize(views, None).map_err(|e| Error::file(path, e))?;
        write_atomically(path, &file).map_err(|e| Error::file(path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nt_xent_agrees_with_differences() {
        let mut random = Random::new(9);
        let mut map = Map::zeros(6, 1, 1, 5);
        map.values.iter_mut().for_each(|v| *v = random.normal());
        let (_, gradient) = nt_xent(&map);
        for row in 0..6 {
            for c in 0..5 {
                let at = |by: f32| {
                    let mut moved = map.clone();
                    moved.values[row * 8 + c] += by;
                    nt_xent(&moved).0
                };
                let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
                let found = f64::from(gradient.values[row * 8 + c]);
                assert!((found - expected).abs() < 1e-3, "{row} {c}: {found} against {expected}");
            }
        }
    }
}
