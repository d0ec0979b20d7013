//! Every convolution of some networks, by every algorithm that serves it, in both directions: milliseconds, GFLOP/s, and the
//! share of the multiply-add peak measured in the same run. The rule in `conv2d::choose` is read off this table.
//!
//!     cargo run --release -p evenkeel-kernels --example conv_layers -- [drn|resnet|mobilenet|espnet] [threads] [milliseconds a cell]
//!
//! A Winograd algorithm does fewer multiplications than are counted here, so its share may pass 100 %.

use std::time::{Duration, Instant};

use evenkeel_kernels::conv2d::{self, Algorithm, Direction, Geometry, Weights, choose};
use evenkeel_kernels::epilogue::{Activation, Epilogue, Mask};
use evenkeel_kernels::layout;
use evenkeel_kernels::peak::fma_peak;

/// A convolution and how often the network has it.
struct Layer {
    geometry: Geometry,
    times: usize,
}

/// `[in_h, in_w, in_c, out_c, kernel, stride, dilation, groups, times]`, padded to keep the size.
fn layers(rows: &[[usize; 9]]) -> Vec<Layer> {
    let layer = |&[in_h, in_w, in_c, out_c, k, s, d, groups, times]: &[usize; 9]| Layer {
        geometry: Geometry {
            batch: 1,
            in_h,
            in_w,
            in_c,
            out_c,
            kernel: [k, k],
            stride: [s, s],
            dilation: [d, d],
            pads: [d * (k - 1) / 2; 4],
            groups,
        },
        times,
    };
    rows.iter().map(layer).collect()
}

fn network(name: &str) -> Vec<Layer> {
    match name {
        "drn" => layers(&[
            [340, 680, 16, 16, 3, 1, 1, 1, 1],
            [340, 680, 16, 32, 3, 2, 1, 1, 1],
            [170, 340, 32, 64, 3, 2, 1, 1, 1],
            [85, 170, 64, 64, 3, 1, 1, 1, 3],
            [170, 340, 32, 64, 1, 2, 1, 1, 1],
            [85, 170, 64, 128, 3, 2, 1, 1, 1],
            [43, 85, 128, 128, 3, 1, 1, 1, 3],
            [85, 170, 64, 128, 1, 2, 1, 1, 1],
            [43, 85, 128, 256, 3, 1, 1, 1, 1],
            [43, 85, 256, 256, 3, 1, 2, 1, 3],
            [43, 85, 128, 256, 1, 1, 1, 1, 1],
            [43, 85, 256, 512, 3, 1, 2, 1, 1],
            [43, 85, 512, 512, 3, 1, 4, 1, 3],
            [43, 85, 256, 512, 1, 1, 1, 1, 1],
            [43, 85, 512, 512, 3, 1, 2, 1, 1],
            [43, 85, 512, 512, 3, 1, 1, 1, 1],
            [43, 85, 512, 19, 1, 1, 1, 1, 1],
        ]),
        "resnet" => layers(&[
            [56, 56, 64, 64, 1, 1, 1, 1, 1],
            [56, 56, 64, 64, 3, 1, 1, 1, 3],
            [56, 56, 64, 256, 1, 1, 1, 1, 4],
            [56, 56, 256, 64, 1, 1, 1, 1, 2],
            [56, 56, 256, 128, 1, 1, 1, 1, 1],
            [56, 56, 128, 128, 3, 2, 1, 1, 1],
            [56, 56, 256, 512, 1, 2, 1, 1, 1],
            [28, 28, 128, 512, 1, 1, 1, 1, 4],
            [28, 28, 512, 128, 1, 1, 1, 1, 3],
            [28, 28, 128, 128, 3, 1, 1, 1, 3],
            [28, 28, 512, 256, 1, 1, 1, 1, 1],
            [28, 28, 256, 256, 3, 2, 1, 1, 1],
            [28, 28, 512, 1024, 1, 2, 1, 1, 1],
            [14, 14, 256, 1024, 1, 1, 1, 1, 6],
            [14, 14, 1024, 256, 1, 1, 1, 1, 5],
            [14, 14, 256, 256, 3, 1, 1, 1, 5],
            [14, 14, 1024, 512, 1, 1, 1, 1, 1],
            [14, 14, 512, 512, 3, 2, 1, 1, 1],
            [14, 14, 1024, 2048, 1, 2, 1, 1, 1],
            [7, 7, 512, 2048, 1, 1, 1, 1, 3],
            [7, 7, 2048, 512, 1, 1, 1, 1, 2],
            [7, 7, 512, 512, 3, 1, 1, 1, 2],
            [1, 1, 2048, 1000, 1, 1, 1, 1, 1],
        ]),
        "mobilenet" => layers(&[
            [112, 112, 32, 32, 3, 1, 1, 32, 1],
            [112, 112, 32, 16, 1, 1, 1, 1, 1],
            [112, 112, 16, 96, 1, 1, 1, 1, 1],
            [112, 112, 96, 96, 3, 2, 1, 96, 1],
            [56, 56, 96, 24, 1, 1, 1, 1, 1],
            [56, 56, 24, 144, 1, 1, 1, 1, 2],
            [56, 56, 144, 144, 3, 1, 1, 144, 1],
            [56, 56, 144, 24, 1, 1, 1, 1, 1],
            [56, 56, 144, 144, 3, 2, 1, 144, 1],
            [28, 28, 144, 32, 1, 1, 1, 1, 1],
            [28, 28, 32, 192, 1, 1, 1, 1, 3],
            [28, 28, 192, 192, 3, 1, 1, 192, 2],
            [28, 28, 192, 32, 1, 1, 1, 1, 2],
            [28, 28, 192, 192, 3, 2, 1, 192, 1],
            [14, 14, 192, 64, 1, 1, 1, 1, 1],
            [14, 14, 64, 384, 1, 1, 1, 1, 4],
            [14, 14, 384, 384, 3, 1, 1, 384, 4],
            [14, 14, 384, 64, 1, 1, 1, 1, 3],
            [14, 14, 384, 96, 1, 1, 1, 1, 1],
            [14, 14, 96, 576, 1, 1, 1, 1, 3],
            [14, 14, 576, 576, 3, 1, 1, 576, 2],
            [14, 14, 576, 96, 1, 1, 1, 1, 2],
            [14, 14, 576, 576, 3, 2, 1, 576, 1],
            [7, 7, 576, 160, 1, 1, 1, 1, 1],
            [7, 7, 160, 960, 1, 1, 1, 1, 3],
            [7, 7, 960, 960, 3, 1, 1, 960, 3],
            [7, 7, 960, 160, 1, 1, 1, 1, 2],
            [7, 7, 960, 320, 1, 1, 1, 1, 1],
            [7, 7, 320, 1280, 1, 1, 1, 1, 1],
            [1, 1, 1280, 1000, 1, 1, 1, 1, 1],
        ]),
        // Few channels, often not a multiple of a vector's length.
        "espnet" => layers(&[
            [512, 1024, 3, 16, 3, 2, 1, 1, 1],
            [256, 512, 19, 12, 3, 2, 1, 1, 1],
            [128, 256, 12, 16, 3, 1, 1, 1, 3],
            [128, 256, 12, 12, 3, 1, 2, 1, 3],
            [128, 256, 12, 12, 3, 1, 16, 1, 3],
            [128, 256, 64, 12, 1, 1, 1, 1, 2],
            [128, 256, 131, 25, 3, 2, 1, 1, 1],
            [128, 256, 131, 20, 1, 1, 1, 1, 1],
            [64, 128, 25, 28, 3, 1, 1, 1, 9],
            [64, 128, 25, 25, 3, 1, 8, 1, 9],
            [64, 128, 128, 25, 1, 1, 1, 1, 8],
            [64, 128, 256, 20, 1, 1, 1, 1, 1],
            [256, 512, 36, 20, 3, 1, 1, 1, 1],
        ]),
        other => panic!("no network is called {other}"),
    }
}

/// The stem of a network, the first of its convolutions.
fn stem(name: &str) -> Geometry {
    let (size, out_c, k, s) = match name {
        "drn" => ([340, 680], 16, 7, 1),
        "resnet" => ([224, 224], 64, 7, 2),
        _ => ([224, 224], 32, 3, 2),
    };
    Geometry {
        batch: 1,
        in_h: size[0],
        in_w: size[1],
        in_c: 3,
        out_c,
        kernel: [k, k],
        stride: [s, s],
        dilation: [1, 1],
        pads: [k / 2; 4],
        groups: 1,
    }
}

/// The best times of a stem forwards and pulled back.
fn stem_seconds(g: &Geometry, weights: &Weights, patience: Duration) -> [f64; 2] {
    let x = vec![0.5; g.in_c * g.in_h * g.in_w];
    let mut y = vec![0.25; g.out_h() * g.out_w() * layout::stride(g.out_c)];
    let mut gx = x.clone();
    let mut bits = vec![0u8; y.len() / 8];
    let bias = vec![0.1; g.out_c];
    let forward = best(patience, || {
        let activation = Activation::Relu;
        let epilogue =
            Epilogue { bias: Some(&bias), activation, bits: Some(&mut bits), ..Epilogue::default() };
        conv2d::stem_forward(g, weights, &x, &mut y, epilogue);
    });
    [forward, best(patience, || conv2d::stem_pullback(g, weights, &y, &mut gx, false))]
}

/// The shortest of several calls, in seconds, over about `patience`.
fn best(patience: Duration, mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    let mut runs = 0;
    while runs < 3 || start.elapsed() < patience {
        let now = Instant::now();
        call();
        best = best.min(now.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

fn weights(g: &Geometry) -> Weights {
    let count = g.out_c * (g.in_c / g.groups) * g.kernel[0] * g.kernel[1];
    let values = (0..count).map(|i| (i * 31 % 97) as f32 / 97.0 - 0.5).collect();
    Weights::new(values, g.out_c, g.in_c, g.kernel, g.groups)
}

/// The best time of one call, in seconds, over about `patience`.
fn seconds(
    algorithm: Algorithm,
    direction: Direction,
    g: &Geometry,
    weights: &Weights,
    patience: Duration,
) -> f64 {
    let map = |h: usize, w: usize, c: usize| -> Vec<f32> {
        (0..h * w * layout::stride(c)).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect()
    };
    let (x, y) = (map(g.in_h, g.in_w, g.in_c), map(g.out_h(), g.out_w(), g.out_c));
    let (mut out, mut gx) = (y.clone(), x.clone());
    let mut bits = vec![0u8; y.len() / 8];
    let below = vec![0x5au8; x.len() / 8];
    let bias = vec![0.1; g.out_c];
    best(patience, || match direction {
        Direction::Forward => {
            let activation = Activation::Relu;
            let epilogue =
                Epilogue { bias: Some(&bias), activation, bits: Some(&mut bits), ..Epilogue::default() };
            conv2d::forward_with(algorithm, g, weights, &x, &mut out, epilogue);
        }
        Direction::Pullback => {
            let mask = Some(Mask { bits: &below, on: 1.0, off: 0.0 });
            conv2d::pullback_with(
                algorithm,
                g,
                weights,
                &y,
                &mut gx,
                Epilogue { mask, ..Epilogue::default() },
            );
        }
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let names: Vec<&str> = match arguments.first() {
        Some(name) => vec![name],
        None => vec!["drn", "resnet", "mobilenet"],
    };
    let threads = number(1, std::thread::available_parallelism().map_or(1, usize::from));
    let patience = Duration::from_millis(number(2, 60) as u64);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
    let peak = fma_peak(threads);
    println!("{threads} threads, peak {peak:.0} GFLOP/s");
    for name in names {
        println!(
            "{name}: size, channels, kernel/stride/dilation, groups, times; ms (GFLOP/s, share of peak); * = chosen"
        );
        let g = stem(name);
        let mut total = pool.install(|| stem_seconds(&g, &weights(&g), patience));
        let mut flops = g.flops();
        let [forward, pullback] = total.map(|time| (time * 1e3, 100.0 * flops / time / 1e9 / peak));
        print!("stem {}x{} 3>{} {}/{}: ", g.in_h, g.in_w, g.out_c, g.kernel[0], g.stride[0]);
        println!("{:.3} ({:.0} %) | {:.3} ({:.0} %)", forward.0, forward.1, pullback.0, pullback.1);
        for Layer { geometry: g, times } in network(name) {
            let weights = weights(&g);
            flops += times as f64 * g.flops();
            print!("{:>3}x{:<3} {:>4}>{:<4} ", g.in_h, g.in_w, g.in_c, g.out_c);
            print!("{}/{}/{} g{:<3} x{times}", g.kernel[0], g.stride[0], g.dilation[0], g.groups);
            for (i, direction) in [Direction::Forward, Direction::Pullback].into_iter().enumerate() {
                print!(" |");
                for algorithm in Algorithm::ALL {
                    if algorithm == Algorithm::Reference || !algorithm.serves(&g) {
                        continue;
                    }
                    let time = pool.install(|| seconds(algorithm, direction, &g, &weights, patience));
                    let rate = g.flops() / time / 1e9;
                    let chosen = choose(&g, direction) == algorithm;
                    let mark = if chosen { "*" } else { "" };
                    print!(
                        " {mark}{algorithm:?} {:.3} ({rate:.0}, {:.0} %)",
                        time * 1e3,
                        100.0 * rate / peak
                    );
                    if chosen {
                        total[i] += times as f64 * time;
                    }
                }
            }
            println!();
        }
        for (word, time) in ["forward", "pullback"].iter().zip(total) {
            let rate = flops / time / 1e9;
            println!("{name} {word}: {:.1} ms, {rate:.0} GFLOP/s, {:.0} %", time * 1e3, 100.0 * rate / peak);
        }
    }
}
