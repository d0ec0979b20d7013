//! Milliseconds, GFLOP/s and GB/s of the kernels that are not products: `cargo bench -p evenkeel-kernels --bench slices [filter]`.

use std::hint::black_box;
use std::time::Instant;

use evenkeel_kernels::activation::Function;
use evenkeel_kernels::buffer::{Buffer, Pool};
use evenkeel_kernels::conv2d::Geometry;
use evenkeel_kernels::epilogue::{Activation, Epilogue};
use evenkeel_kernels::layout::Along;
use evenkeel_kernels::layout::{self, Extents, stride};
use evenkeel_kernels::resample::{AxisMap, Sampling, Separable};
use evenkeel_kernels::{activation, depthwise, norm, pool, softmax};

/// A map as the engine holds it: aligned.
fn filled(len: usize) -> Buffer<f32> {
    let mut buffer = Pool::new(1 << 30).take(len).expect("within the pool");
    buffer.fill(1.0);
    buffer
}

/// The least time of several runs, in milliseconds.
fn least(mut task: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for run in 0..200 {
        let start = Instant::now();
        task();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        if run > 5 && begin.elapsed().as_millis() > 300 {
            break;
        }
    }
    best
}

fn report(name: &str, flops: f64, bytes: usize, task: impl FnMut()) -> f64 {
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with("--"));
    if filter.is_some_and(|filter| !name.contains(&filter)) {
        return 0.0;
    }
    let ms = least(task);
    println!("{name:44} {ms:9.4} ms {:8.1} GFLOP/s {:7.1} GB/s", flops / ms / 1e6, bytes as f64 / ms / 1e6);
    ms
}

fn depthwise_layers() {
    // The depthwise layers of MobileNetV2 at 224: channels, input size, stride, how often.
    let layers = [
        (32, 112, 1, 1),
        (96, 112, 2, 1),
        (144, 56, 1, 1),
        (144, 56, 2, 1),
        (192, 28, 1, 2),
        (192, 28, 2, 1),
        (384, 14, 1, 4),
        (576, 14, 1, 2),
        (576, 14, 2, 1),
        (960, 7, 1, 3),
    ];
    let mut totals = [0.0; 2];
    for (channels, size, step, times) in layers {
        let g = Geometry {
            batch: 1,
            in_h: size,
            in_w: size,
            in_c: channels,
            out_c: channels,
            kernel: [3, 3],
            stride: [step, step],
            dilation: [1, 1],
            pads: [1; 4],
            groups: channels,
        };
        let weights = depthwise::Packed::new(&vec![0.1; channels * 9], channels, [3, 3]);
        let bias = vec![0.1; channels];
        let input = filled(size * size * stride(channels));
        let mut output = filled(g.out_h() * g.out_w() * stride(channels));
        let mut bits = vec![0; output.len() / 8];
        let mut back = filled(input.len());
        let bytes = 4 * (input.len() + output.len());
        let name = format!("depthwise {channels}x{size}x{size}/{step}");
        totals[0] += f64::from(times)
            * report(&format!("{name} forward"), g.flops(), bytes, || {
                let epilogue = Epilogue {
                    bias: Some(&bias),
                    activation: Activation::Clip(0.0, 6.0),
                    bits: Some(&mut bits),
                    ..Epilogue::default()
                };
                depthwise::forward(&g, &weights, &input, &mut output, epilogue);
            });
        totals[1] += f64::from(times)
            * report(&format!("{name} pullback"), g.flops(), bytes, || {
                depthwise::pullback(&g, &weights, &output, &mut back, Epilogue::default());
            });
        black_box((&output, &back));
    }
    println!(
        "depthwise layers of MobileNetV2 together: forward {:.3} ms, pullback {:.3} ms",
        totals[0], totals[1]
    );
}

fn layouts_and_pools() {
    let extents = Extents { batch: 1, channels: 64, pixels: 112 * 112 };
    let planar = filled(64 * 112 * 112);
    let mut map = filled(planar.len());
    let mut back = filled(planar.len());
    report("layout from planar 64x112x112", 0.0, 8 * map.len(), || {
        layout::from_planar(extents, &planar, &mut map)
    });
    report("layout to planar 64x112x112", 0.0, 8 * map.len(), || layout::to_planar(extents, &map, &mut back));
    let g = pool::Geometry {
        batch: 1,
        channels: 64,
        in_h: 112,
        in_w: 112,
        out_h: 56,
        out_w: 56,
        kernel: [3, 3],
        stride: [2, 2],
        dilation: [1, 1],
        pads: [1; 4],
    };
    let mut output = filled(56 * 56 * 64);
    let mut winners = vec![0u8; output.len()];
    let bytes = 4 * (map.len() + output.len());
    report("pool max 3x3/2 64x112x112", 0.0, bytes, || {
        pool::max(&g, &map, &mut output, Some(pool::WinnersMut::Bytes(&mut winners)));
    });
    report("pool max pullback", 0.0, bytes, || {
        pool::max_pullback(&g, pool::Winners::Bytes(&winners), &output, &mut back, Epilogue::default());
    });
    report("pool average 3x3/2 64x112x112", 0.0, bytes, || pool::average(&g, true, &map, &mut output));
    let mut bits = vec![0; map.len() / 8];
    report("activation relu with bits 64x112x112", 0.0, 8 * map.len(), || {
        activation::two_slope(Activation::Relu, &mut map, Some(&mut bits));
    });
}

fn curves_and_rows() {
    let input: Vec<f32> = (0..1 << 20).map(|i| (i % 1000) as f32 * 0.01 - 5.0).collect();
    let mut output = filled(input.len());
    for function in [
        Function::Exp,
        Function::Log,
        Function::Sigmoid,
        Function::Silu { beta: 1.0 },
        Function::Tanh,
        Function::Erf,
        Function::Gelu,
        Function::Softplus,
        Function::Mish,
        Function::HardSwish,
    ] {
        let name = format!("activation {function:?} of 2^20");
        report(&name, 0.0, 8 * input.len(), || activation::apply(function, &input, &mut output));
        let name = format!("activation {function:?} pulled back");
        report(&name, 0.0, 12 * input.len(), || activation::pull(function, &input, &mut output));
        output.fill(1.0);
    }
    for (outer, length, inner) in [(1 << 10, 1 << 10, 1), (1, 21, 49_932)] {
        let along = Along { outer, length, inner };
        let name = format!("softmax {outer}x{length}x{inner}");
        report(&name, 0.0, 8 * along.len(), || {
            softmax::forward(
                softmax::Kind::Softmax,
                along,
                &input[..along.len()],
                &mut output[..along.len()],
            );
        });
    }
    let rows = norm::Rows { length: 768, epsilon: 1e-5, affine: None };
    report("norm 1024 rows of 768", 0.0, 8 * 1024 * 768, || {
        norm::forward(&rows, &input[..1024 * 768], &mut output[..1024 * 768], None);
    });
}

fn resampling() {
    let map = AxisMap::resize(224, 448, 2.0, Sampling::LINEAR);
    let both = Separable { rows: map.clone(), columns: map };
    let back = both.transposed();
    let (small, mut large) = (filled(3 * 224 * 224), filled(3 * 448 * 448));
    report("resample planar 3x224x224 to 448", 0.0, 4 * large.len(), || {
        both.apply_planar(3, &small, &mut large)
    });
    let mut small = small;
    report("resample planar pullback", 0.0, 4 * large.len(), || back.apply_planar(3, &large, &mut small));
    let map = AxisMap::resize(43, 340, 340.0 / 43.0, Sampling::LINEAR);
    let both = Separable { rows: map.clone(), columns: AxisMap::resize(85, 680, 8.0, Sampling::LINEAR) };
    let back = both.transposed();
    let (mut small, mut large) = (filled(43 * 85 * 24), filled(340 * 680 * 24));
    report("resample channels-last 21x43x85 to 340x680", 0.0, 4 * large.len(), || {
        both.apply_channels_last(1, 21, &small, &mut large);
    });
    report("resample channels-last pullback", 0.0, 4 * large.len(), || {
        back.apply_channels_last(1, 21, &large, &mut small);
    });
}

fn main() {
    curves_and_rows();
    resampling();
    depthwise_layers();
    layouts_and_pools();
}
