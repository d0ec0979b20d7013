//! Heads fitted on frozen features, for the defences and scores that need one. Deterministic; labels are never read.
//!
//! Rotation: pooled features, standardised, through 256 random ReLU units to four scores, of which only the last layer is fitted
//! (multinomial logistic regression with weight decay, full-batch gradient ascent with momentum). Contrastive: the linear map
//! that whitens how one image's features scatter over colour and window views, W = L⁻¹ with L Lᵀ the mean scatter within an image,
//! so that what views change counts little and what images differ in counts much; the bank holds other images' embeddings.

use evenkeel::Random;
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::objective::head::Head;
use evenkeel::objective::{Bank, Pooled};
use evenkeel::view::{DrawnView, Flip, Turn, ViewSet};
use rayon::prelude::*;

const HIDDEN: usize = 256;
const NEGATIVES: usize = 400;

/// The head, and for `contrastive` the bank, that this defence or score needs; nothing for the others.
pub(crate) fn fitted(name: &str, model: &Model, others: &[Image]) -> (Option<Head>, Option<Bank>) {
    match name {
        "rotation" => (Some(rotation(model, others)), None),
        "contrastive" => {
            let (head, bank) = contrastive(model, others);
            (Some(head), Some(bank))
        }
        _ => (None, None),
    }
}

/// The mean of each feature channel.
fn pooled(model: &Model, image: &Image) -> Vec<f64> {
    let features = model.network.run(image, &[&model.feature]).expect("features").remove(0);
    Pooled::of(&features).expect("maps").values().iter().map(|&v| f64::from(v)).collect()
}

/// `count` draws of colour and window views of every image, and before them the image itself.
fn looks(model: &Model, images: &[Image], count: usize) -> Vec<Vec<Image>> {
    let set = ViewSet::contrastive(count.max(1)).fitted(model.network.fixed_size().is_some(), model.multiple);
    let of = |(i, image): (usize, &Image)| {
        let views = set.draw(&Random::new(77).fork(i as u64));
        let seen = views.iter().take(count).map(|view| view.apply(image));
        std::iter::once(image.clone()).chain(seen).collect()
    };
    images.par_iter().enumerate().map(of).collect()
}

fn rotation(model: &Model, others: &[Image]) -> Head {
    let fixed_canvas = model.network.fixed_size().is_some();
    let flip = DrawnView::of(Flip { width: 1.0 }).fitted(fixed_canvas);
    let more = if others.len() < 100 { 7 } else { 0 };
    let images: Vec<Image> =
        looks(model, others, more).into_iter().flatten().flat_map(|i| [flip.apply(&i), i]).collect();
    let turned = |(i, image): (usize, &Image)| {
        let quarters = (i % 4) as u8;
        let view = DrawnView::of(Turn { quarters }).fitted(fixed_canvas);
        pooled(model, &if quarters == 0 { image.clone() } else { view.apply(image) })
    };
    let each: Vec<(usize, &Image)> = images.iter().flat_map(|i| [i; 4]).enumerate().collect();
    let samples: Vec<Vec<f64>> = each.into_par_iter().map(turned).collect();
    let (mean, deviation) = moments(&samples);
    let inputs = mean.len();
    let mut random = Random::new(78);
    let scale = 1.0 / (inputs as f64).sqrt();
    let weight: Vec<f64> =
        (0..HIDDEN * inputs).map(|i| f64::from(random.normal()) * scale / deviation[i % inputs]).collect();
    let bias: Vec<f64> = weight
        .chunks(inputs)
        .map(|row| f64::from(random.normal()) - row.iter().zip(&mean).map(|(w, m)| w * m).sum::<f64>())
        .collect();
    let hidden: Vec<Vec<f64>> = samples
        .iter()
        .map(|x| {
            let unit = |(row, b): (&[f64], &f64)| b + row.iter().zip(x).map(|(w, v)| w * v).sum::<f64>();
            weight.chunks(inputs).zip(&bias).map(unit).map(|v| v.max(0.0)).collect()
        })
        .collect();
    let (last, last_bias, right) = logistic(&hidden);
    eprintln!("rotation head: {} samples, {:.3} of them told right", samples.len(), right);
    let narrow = |v: Vec<f64>| v.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    Head::new(vec![(narrow(weight), narrow(bias)), (narrow(last), narrow(last_bias))]).expect("a head")
}

fn moments(samples: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let count = samples.len() as f64;
    let over = |f: &dyn Fn(&Vec<f64>, usize) -> f64| -> Vec<f64> {
        (0..samples[0].len()).map(|k| samples.iter().map(|s| f(s, k)).sum::<f64>() / count).collect()
    };
    let mean = over(&|s, k| s[k]);
    let variance = over(&|s, k| (s[k] - mean[k]).powi(2));
    (mean, variance.iter().map(|v| v.sqrt() + 1e-6).collect())
}

/// Four-way logistic regression; sample i belongs to class i mod 4. Gives weights `[4, inputs]`, biases and the share told right.
fn logistic(samples: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>, f64) {
    let inputs = samples[0].len();
    let (mut weight, mut speed) = (vec![0.0; 4 * (inputs + 1)], vec![0.0; 4 * (inputs + 1)]);
    let size = samples.iter().flatten().map(|v| v * v).sum::<f64>() / samples.len() as f64;
    let rate = 1.0 / (0.5 * size + 1.0);
    let scores = |weight: &[f64], x: &[f64]| -> [f64; 4] {
        std::array::from_fn(|c| {
            let row = &weight[c * (inputs + 1)..][..inputs + 1];
            row[inputs] + row[..inputs].iter().zip(x).map(|(w, v)| w * v).sum::<f64>()
        })
    };
    for _ in 0..600 {
        let mut slope = vec![0.0; weight.len()];
        for (i, x) in samples.iter().enumerate() {
            let z = scores(&weight, x);
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = z.iter().map(|v| (v - top).exp()).sum();
            for c in 0..4 {
                let error = f64::from(u8::from(i % 4 == c)) - (z[c] - top).exp() / sum;
                let row = &mut slope[c * (inputs + 1)..][..inputs + 1];
                row[..inputs].iter_mut().zip(x).for_each(|(s, v)| *s += error * v);
                row[inputs] += error;
            }
        }
        for ((w, v), s) in weight.iter_mut().zip(&mut speed).zip(&slope) {
            *v = 0.9 * *v + rate * (s / samples.len() as f64 - 1e-3 * *w);
            *w += *v;
        }
    }
    let told = |(i, x): &(usize, &Vec<f64>)| {
        let z = scores(&weight, x);
        (0..4).all(|c| z[c] <= z[i % 4])
    };
    let right = samples.iter().enumerate().filter(told).count() as f64 / samples.len() as f64;
    let rows = weight.chunks(inputs + 1);
    let bias = rows.clone().map(|r| r[inputs]).collect();
    (rows.flat_map(|r| r[..inputs].to_vec()).collect(), bias, right)
}

fn contrastive(model: &Model, others: &[Image]) -> (Head, Bank) {
    let per_image = if others.len() < 100 { NEGATIVES / others.len().max(1) } else { 8 };
    let groups: Vec<Vec<Vec<f64>>> = looks(model, others, per_image)
        .par_iter()
        .map(|seen| seen.iter().map(|image| pooled(model, image)).collect())
        .collect();
    let flat: Vec<Vec<f64>> = groups.iter().flatten().cloned().collect();
    let (mean, _) = moments(&flat);
    let size = mean.len();
    let mut scatter = vec![0.0; size * size];
    for group in &groups {
        let (centre, _) = moments(group);
        for x in group {
            for (i, row) in scatter.chunks_mut(size).enumerate() {
                let along = x[i] - centre[i];
                row.iter_mut().enumerate().for_each(|(j, s)| *s += along * (x[j] - centre[j]));
            }
        }
    }
    let trace: f64 = (0..size).map(|i| scatter[i * size + i]).sum();
    (0..size).for_each(|i| scatter[i * size + i] += 1e-3 * trace / size as f64 + 1e-12);
    let count = flat.len() as f64;
    scatter.iter_mut().for_each(|s| *s /= count);
    let weight = inverse(&cholesky(&scatter, size), size);
    let bias = weight.chunks(size).map(|row| -row.iter().zip(&mean).map(|(w, m)| w * m).sum::<f64>());
    let layer = (weight.iter().map(|w| *w as f32).collect(), bias.map(|b| b as f32).collect());
    let head = Head::new(vec![layer]).expect("a head");
    let negatives: Vec<&Vec<f64>> = if others.len() < 100 {
        groups.iter().flat_map(|g| &g[1..]).take(NEGATIVES).collect()
    } else {
        groups.iter().map(|g| &g[0]).take(NEGATIVES).collect()
    };
    let embed = |x: &&Vec<f64>| {
        head.forward(&x.iter().map(|v| *v as f32).collect::<Vec<_>>()).expect("an embedding").0
    };
    eprintln!("contrastive head: {size} dimensions, {} negatives", negatives.len());
    let vectors = negatives.iter().flat_map(embed).collect();
    (head, Bank::new(size, vectors).expect("a bank"))
}

/// The lower triangular factor of a positive definite matrix.
fn cholesky(matrix: &[f64], size: usize) -> Vec<f64> {
    let mut lower = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i * size + k] * lower[j * size + k]).sum();
            let left = matrix[i * size + j] - known;
            lower[i * size + j] = if i == j { left.sqrt() } else { left / lower[j * size + j] };
        }
    }
    lower
}

/// The inverse of a lower triangular matrix.
fn inverse(lower: &[f64], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * size];
    for j in 0..size {
        for i in j..size {
            let known: f64 = (j..i).map(|k| lower[i * size + k] * out[k * size + j]).sum();
            let unit = f64::from(u8::from(i == j));
            out[i * size + j] = (unit - known) / lower[i * size + i];
        }
    }
    out
}
