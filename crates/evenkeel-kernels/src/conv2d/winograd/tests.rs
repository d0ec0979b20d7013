//! The Winograd kernels against a plain sum in f64, in both directions.

use super::*;
use crate::activation::{Function, apply_in_place};
use crate::epilogue::{Activation, Mask};

/// A small generator of floats in -1..1, the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next();
        (self.0 >> 33) as usize % bound
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }

    /// A map of `pixels` whose padding lanes hold what no real lane may see.
    fn map(&mut self, pixels: usize, channels: usize) -> Vec<f32> {
        let stride = layout::stride(channels);
        let mut map = self.values(pixels * stride);
        for pixel in map.chunks_mut(stride) {
            pixel[channels..].fill(f32::NAN);
        }
        map
    }
}

/// `[batch, h, w, channels]` in f64, without padding lanes.
fn plain(g: &Geometry, w: &[f32], x: &[f32], direction: Direction) -> Vec<f64> {
    let (in_stride, out_stride) = (layout::stride(g.in_c), layout::stride(g.out_c));
    let forward = direction == Direction::Forward;
    let (to, to_c) = if forward { ([g.out_h(), g.out_w()], g.out_c) } else { ([g.in_h, g.in_w], g.in_c) };
    let mut result = vec![0f64; g.batch * to[0] * to[1] * to_c];
    for n in 0..g.batch {
        for (oy, ox) in (0..g.out_h()).flat_map(|y| (0..g.out_w()).map(move |x| (y, x))) {
            for (ky, kx) in (0..3).flat_map(|y| (0..3).map(move |x| (y, x))) {
                let iy = (oy + ky * g.dilation[0]).wrapping_sub(g.pads[0]);
                let ix = (ox + kx * g.dilation[1]).wrapping_sub(g.pads[1]);
                if iy >= g.in_h || ix >= g.in_w {
                    continue;
                }
                let input = (n * g.in_h + iy) * g.in_w + ix;
                let output = (n * g.out_h() + oy) * g.out_w() + ox;
                for (o, i) in (0..g.out_c).flat_map(|o| (0..g.in_c).map(move |i| (o, i))) {
                    let weight = f64::from(w[((o * g.in_c + i) * 3 + ky) * 3 + kx]);
                    if forward {
                        result[output * to_c + o] += weight * f64::from(x[input * in_stride + i]);
                    } else {
                        result[input * to_c + i] += weight * f64::from(x[output * out_stride + o]);
                    }
                }
            }
        }
    }
    result
}

fn square(batch: usize, hw: [usize; 2], c: [usize; 2], d: usize, pad: usize) -> Geometry {
    Geometry {
        batch,
        in_h: hw[0],
        in_w: hw[1],
        in_c: c[0],
        out_c: c[1],
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [d, d],
        pads: [pad; 4],
        groups: 1,
    }
}

/// A seeded table of shapes that straddle tile edges.
fn shapes(count: usize) -> Vec<Geometry> {
    let mut noise = Noise(7);
    let mut table = Vec::new();
    while table.len() < count {
        let mut g = square(1 + 2 * noise.below(2), [0, 0], [1 + noise.below(40), 1 + noise.below(40)], 1, 0);
        (g.in_h, g.in_w) = (1 + noise.below(19), 1 + noise.below(19));
        g.dilation = [1 + noise.below(4), 1 + noise.below(4)];
        g.pads = [0; 4].map(|_| noise.below(5));
        if noise.below(2) == 0 {
            g.dilation[1] = g.dilation[0];
            g.pads = [g.dilation[0]; 4];
        }
        if g.out_h() * g.out_w() > 0 {
            table.push(g);
        }
    }
    table
}

/// The pixels and channels of the input and output of one direction.
fn ends(g: &Geometry, direction: Direction) -> [(usize, usize); 2] {
    let ends = [(g.batch * g.in_h * g.in_w, g.in_c), (g.batch * g.out_h() * g.out_w(), g.out_c)];
    if direction == Direction::Forward { ends } else { [ends[1], ends[0]] }
}

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Pullback];
const TILES: [Tile; 2] = [Tile::F2, Tile::F4];

fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Largest error relative to the largest value.
fn worst(got: &[f32], channels: usize, want: &[f64]) -> f64 {
    let stride = layout::stride(channels);
    let largest = want.iter().fold(1e-30, |m: f64, v| m.max(v.abs()));
    let real = got.chunks(stride).flat_map(|pixel| &pixel[..channels]);
    assert_eq!(got.len() / stride * channels, want.len());
    real.zip(want).fold(0.0, |m: f64, (g, w)| {
        let error = (f64::from(*g) - w).abs();
        if error.is_nan() { f64::INFINITY } else { m.max(error) }
    }) / largest
}

#[test]
fn every_shape_matches_the_plain_sum() {
    let mut noise = Noise(1);
    for g in shapes(160) {
        let w = noise.values(g.out_c * g.in_c * 9);
        for direction in DIRECTIONS {
            let [(from, from_c), (to, to_c)] = ends(&g, direction);
            let x = noise.map(from, from_c);
            let want = plain(&g, &w, &x, direction);
            for tile in TILES {
                let packed = Packed::new(tile, &w, g.out_c, g.in_c, direction);
                let mut out = vec![f32::NAN; to * layout::stride(to_c)];
                run(&packed, &g, &x, &mut out, Epilogue::default());
                let error = worst(&out, to_c, &want);
                assert!(error < 2e-5, "{tile:?} {direction:?} {g:?}: {error:e}");
            }
        }
    }
}

#[test]
fn the_pullback_is_the_transpose() {
    let mut noise = Noise(2);
    let inner = |a: &[f32], b: &[f32], stride: usize, channels: usize| -> f64 {
        let lanes = |m: &[f32]| -> Vec<f64> {
            m.chunks(stride).flat_map(|pixel| &pixel[..channels]).map(|&v| f64::from(v)).collect()
        };
        lanes(a).iter().zip(lanes(b)).map(|(a, b)| a * b).sum()
    };
    for g in shapes(40) {
        let w = noise.values(g.out_c * g.in_c * 9);
        let [(from, from_c), (to, to_c)] = ends(&g, Direction::Forward);
        let (x, y) = (noise.map(from, from_c), noise.map(to, to_c));
        for tile in TILES {
            let [mut ax, mut ay] = [vec![0.0; y.len()], vec![0.0; x.len()]];
            let pack = |direction| Packed::new(tile, &w, g.out_c, g.in_c, direction);
            run(&pack(Direction::Forward), &g, &x, &mut ax, Epilogue::default());
            run(&pack(Direction::Pullback), &g, &y, &mut ay, Epilogue::default());
            let left = inner(&ax, &y, layout::stride(to_c), to_c);
            let right = inner(&x, &ay, layout::stride(from_c), from_c);
            let scale = (inner(&ax, &ax, layout::stride(to_c), to_c)
                * inner(&y, &y, layout::stride(to_c), to_c))
            .sqrt();
            assert!((left - right).abs() <= 1e-5 * scale, "{tile:?} {g:?}: {left} and {right}");
        }
    }
}

#[test]
fn every_epilogue_follows_its_formula() {
    let mut noise = Noise(3);
    let g = square(2, [9, 11], [12, 21], 2, 2);
    let w = noise.values(g.out_c * g.in_c * 9);
    let activations =
        [Activation::None, Activation::Relu, Activation::LeakyRelu(0.1), Activation::Clip(-0.5, 1.5)];
    for direction in DIRECTIONS {
        let [(from, from_c), (to, to_c)] = ends(&g, direction);
        let (x, stride) = (noise.map(from, from_c), layout::stride(to_c));
        let (bias, residual, before) = (noise.values(to_c), noise.map(to, to_c), noise.map(to, to_c));
        let mask: Vec<u8> = (0..to * stride / 8).map(|_| noise.below(256) as u8).collect();
        let mask = Mask { bits: &mask, on: 0.75, off: -0.25 };
        for (case, tile) in (0..128).flat_map(|case| TILES.map(|tile| (case, tile))) {
            let on = |bit: usize| case >> bit & 1 == 1;
            let activation = activations[case % 4];
            let packed = Packed::new(tile, &w, g.out_c, g.in_c, direction);
            let mut bare = vec![0.0; to * stride];
            run(&packed, &g, &x, &mut bare, Epilogue::default());
            let (mut out, mut bits) = (before.clone(), vec![0u8; to * stride / 8]);
            let epilogue = Epilogue {
                bias: on(2).then_some(&bias[..]),
                residual: on(3).then_some(&residual[..]),
                accumulate: on(4),
                activation,
                bits: Some(&mut bits[..]),
                mask: on(5).then_some(mask),
                smooth: on(6).then_some(Function::HardSwish),
            };
            run(&packed, &g, &x, &mut out, epilogue);
            for i in (0..out.len()).filter(|i| i % stride < to_c) {
                let mut v = bare[i] + if on(2) { bias[i % stride] } else { 0.0 };
                v += if on(3) { residual[i] } else { 0.0 };
                v += if on(4) { before[i] } else { 0.0 };
                assert_eq!(bits[i / 8] >> (i % 8) & 1 == 1, activation.bit(v), "{case} {tile:?} bit {i}");
                let slope = if on(5) { mask.slope(i) } else { 1.0 };
                let mut expected = [activation.value(v) * slope];
                if on(6) {
                    apply_in_place(Function::HardSwish, &mut expected);
                }
                assert_eq!([out[i]], expected, "{case} {tile:?} element {i}");
            }
        }
    }
}

#[test]
fn threads_and_batch_change_no_byte() {
    let mut noise = Noise(4);
    for (hw, c, d) in [([23, 31], [40, 24], 1), ([17, 19], [24, 144], 2), ([41, 9], [300, 80], 4)] {
        let g = square(3, hw, c, d, d);
        let w = noise.values(g.out_c * g.in_c * 9);
        let x = noise.map(g.batch * g.in_h * g.in_w, g.in_c);
        for tile in TILES {
            let packed = Packed::new(tile, &w, g.out_c, g.in_c, Direction::Forward);
            let of = |g: Geometry, x: &[f32], threads| {
                let mut out = vec![0.0; g.batch * g.out_h() * g.out_w() * layout::stride(g.out_c)];
                with_threads(threads, || run(&packed, &g, x, &mut out, Epilogue::default()));
                out.iter().map(|v| v.to_bits()).collect::<Vec<u32>>()
            };
            let all = of(g, &x, 1);
            for threads in [2, 3, 8] {
                assert!(all == of(g, &x, threads), "{tile:?} {g:?} on {threads} threads");
            }
            let one = Geometry { batch: 1, ..g };
            let (image, result) = (x.len() / 3, all.len() / 3);
            for n in 0..3 {
                let alone = of(one, &x[n * image..(n + 1) * image], 2);
                assert!(alone == all[n * result..(n + 1) * result], "{tile:?} image {n} of {g:?}");
            }
        }
    }
}

#[test]
fn five_hundred_channels_round_little() {
    let mut noise = Noise(5);
    let g = square(1, [12, 12], [512, 32], 1, 1);
    let w = noise.values(g.out_c * g.in_c * 9);
    let x = noise.map(g.in_h * g.in_w, g.in_c);
    let want = plain(&g, &w, &x, Direction::Forward);
    let power = want.iter().map(|v| v * v).sum::<f64>();
    for (tile, rms_bound, worst_bound) in [(Tile::F2, 2e-6, 5e-6), (Tile::F4, 4e-6, 2e-5)] {
        let packed = Packed::new(tile, &w, g.out_c, g.in_c, Direction::Forward);
        let mut out = vec![0.0; want.len()];
        run(&packed, &g, &x, &mut out, Epilogue::default());
        let error = out.iter().zip(&want).map(|(g, w)| (f64::from(*g) - w).powi(2)).sum::<f64>();
        let (rms, worst) = ((error / power).sqrt(), worst(&out, g.out_c, &want));
        assert!(rms < rms_bound && worst < worst_bound, "{tile:?}: {rms:e} rms, {worst:e} at worst");
    }
}

#[test]
fn an_empty_map_is_left_alone() {
    let g = square(2, [1, 1], [4, 4], 3, 0);
    let packed = Packed::new(Tile::F4, &[1.0; 4 * 4 * 9], 4, 4, Direction::Forward);
    run(&packed, &g, &[0.0; 16], &mut [], Epilogue::default());
    let packed = Packed::new(Tile::F4, &[1.0; 4 * 4 * 9], 4, 4, Direction::Pullback);
    let mut out = [5.0; 16];
    run(&packed, &g, &[], &mut out, Epilogue::default());
    assert_eq!(out[..4], [0.0; 4]);
}

#[test]
fn many_pixels_and_channels_prefer_large_tiles() {
    let choice = |hw, c, d| DIRECTIONS.map(|direction| preferred(&square(1, hw, c, d, d), direction));
    assert_eq!(choice([43, 85], [512, 512], 4), [Some(Tile::F4); 2]);
    assert_eq!(choice([340, 680], [16, 16], 1), [Some(Tile::F4); 2]);
    assert_eq!(choice([7, 7], [512, 512], 1), [Some(Tile::F2); 2]);
    assert_eq!(choice([1, 1], [512, 512], 1), [None; 2]);
    let strided = Geometry { stride: [2, 2], ..square(1, [43, 85], [64, 64], 1, 1) };
    assert_eq!(preferred(&strided, Direction::Forward), None);
}

#[test]
fn tiles_are_counted_as_they_are_laid() {
    for (extent, dilation, side) in
        (0..40).flat_map(|e| [1, 2, 3, 4, 50].into_iter().flat_map(move |d| [2, 4].map(|s| (e, d, s))))
    {
        assert_eq!(tiles(extent, dilation, side), origins(extent, dilation, side).len());
    }
}
