//! Times training steps of single convolutions (forward, gradient to the input, gradient to the weights) by `evenkeel-train` and by Burn's
//! CPU backend (flex), alternately in one run, on shapes of the shipped segmenter: `cargo run --release` in this folder.

use burn::tensor::{Device, Distribution, Tensor, module::conv2d, ops::ConvOptions};
use evenkeel_train::layer::conv::Conv;
use evenkeel_train::map::Map;
use std::time::Instant;

/// A 3x3 convolution that keeps its channels.
#[derive(Clone, Copy)]
struct Layer {
    channels: usize,
    dilation: usize,
    height: usize,
    width: usize,
}

const BATCH: usize = 8;
const LAYERS: [Layer; 3] = [
    Layer { channels: 64, dilation: 2, height: 12, width: 24 },
    Layer { channels: 32, dilation: 1, height: 24, width: 48 },
    Layer { channels: 24, dilation: 1, height: 48, width: 96 },
];
const RUNS: usize = 15;

fn ours(layer: Layer) -> f64 {
    let Layer { channels, dilation, height, width } = layer;
    let conv = Conv { in_c: channels, out_c: channels, kernel: 3, stride: 1, dilation };
    let mut x = Map::zeros(BATCH, height, width, channels);
    x.values.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 17) as f32 * 0.1 - 0.8);
    let weights: Vec<f32> = (0..channels * channels * 9).map(|i| (i % 13) as f32 * 0.01 - 0.06).collect();
    let start = Instant::now();
    let packed = conv.packed(&weights);
    let y = conv.forward(&packed, None, &x);
    let mut to_input = Map::like(&x);
    conv.to_input(&packed, &y, &mut to_input);
    let mut to_weights = vec![0.0; weights.len()];
    conv.to_weights(&x, &y, &mut to_weights);
    std::hint::black_box((to_input, to_weights));
    start.elapsed().as_secs_f64()
}

fn burns(layer: Layer) -> f64 {
    let Layer { channels: c, dilation: d, height, width } = layer;
    let device = Device::flex().autodiff();
    let input = Distribution::Uniform(-1.0, 1.0);
    let x = Tensor::<4>::random([BATCH, c, height, width], input, &device).require_grad();
    let kernel = Distribution::Uniform(-0.1, 0.1);
    let w = Tensor::<4>::random([c, c, 3, 3], kernel, &device).require_grad();
    let start = Instant::now();
    let y = conv2d(x.clone(), w.clone(), None, ConvOptions::new([1, 1], [d, d], [d, d], 1));
    let loss = y.clone().mul(y).sum() * 0.5;
    let gradients = loss.backward();
    std::hint::black_box((x.grad(&gradients), w.grad(&gradients)));
    start.elapsed().as_secs_f64()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() {
    for layer in LAYERS {
        let (own, other): (Vec<f64>, Vec<f64>) = (0..RUNS).map(|_| (ours(layer), burns(layer))).unzip();
        let (own, other) = (median(own), median(other));
        println!(
            "{} channels, dilation {}, {BATCH} maps of {}x{}: {:.2} ms, Burn {:.2} ms, {:.1} times as long",
            layer.channels,
            layer.dilation,
            layer.height,
            layer.width,
            1e3 * own,
            1e3 * other,
            other / own
        );
    }
}
