//! Every pair of a pointwise and a depthwise convolution of MobileNetV2 at 224, in one pass and in two: microseconds, best of many.
//!
//!     cargo run --release -p evenkeel-kernels --example conv_pairs -- [threads]

use std::time::Instant;

use evenkeel_kernels::conv2d::{self, Geometry, Layer, Weights, pair_forward, pair_serves};
use evenkeel_kernels::epilogue::{Activation, Epilogue};
use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel::together;

/// `[size, in_c, channels, stride]`
const PAIRS: [[usize; 4]; 9] = [
    [112, 16, 96, 2],
    [56, 24, 144, 1],
    [56, 24, 144, 2],
    [28, 32, 192, 1],
    [28, 32, 192, 2],
    [14, 64, 384, 1],
    [14, 96, 576, 1],
    [14, 96, 576, 2],
    [7, 160, 960, 1],
];
const ROUNDS: usize = 300;

fn best(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..ROUNDS).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    println!("{:>22} {:>9} {:>9}", "size, channels, stride", "two", "one");
    for [size, in_c, channels, step] in PAIRS {
        let a = Geometry {
            batch: 1,
            in_h: size,
            in_w: size,
            in_c,
            out_c: channels,
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [0; 4],
            groups: 1,
        };
        let b = Geometry {
            in_c: channels,
            kernel: [3, 3],
            stride: [step, step],
            pads: [1; 4],
            groups: channels,
            ..a
        };
        let weights = [
            Weights::new(numbers(in_c * channels), channels, in_c, [1, 1], 1),
            Weights::new(numbers(9 * channels), channels, channels, [3, 3], channels),
        ];
        let (bias, activation) = (numbers(channels), Activation::Clip(0.0, 6.0));
        let x = numbers(size * size * stride(in_c));
        let mut between = vec![0.0; size * size * stride(channels)];
        let mut out = vec![0.0; b.out_h() * b.out_w() * stride(channels)];
        let epilogue = || Epilogue { bias: Some(&bias), activation, ..Epilogue::default() };
        let two = together(|| {
            best(|| {
                conv2d::forward(&a, &weights[0], &x, &mut between, epilogue());
                conv2d::forward(&b, &weights[1], &between, &mut out, epilogue());
            })
        });
        let layer = |geometry, weights| Layer { geometry, weights, bias: &bias, activation, smooth: None };
        let [first, second] = [layer(&a, &weights[0]), layer(&b, &weights[1])];
        let one =
            pair_serves(&a, &b).then(|| together(|| best(|| pair_forward(first, second, &x, &mut out))));
        let one = one.map_or("-".into(), |time| format!("{time:.0}"));
        println!("{:>22} {two:9.0} {one:>9}", format!("{size}, {in_c} > {channels}, {step}"));
    }
    Ok(())
}
