//! Gradients against central differences, on a network that has one of everything.

use super::conv::Conv;
use super::pool::Pool;
use crate::map::Map;
use crate::net::{Mode, Net};
use evenkeel::Random;

fn small() -> Net {
    let mut random = Random::new(3);
    let mut net = Net::new(3);
    let conv = |in_c, out_c, kernel, stride, dilation| Conv { in_c, out_c, kernel, stride, dilation };
    let a = net.conv("a", 0, conv(3, 8, 3, 2, 1), false, &mut random);
    let a = net.norm("an", a, None, true);
    let b = net.conv("b", a, conv(8, 8, 3, 1, 2), false, &mut random);
    let b = net.norm("bn", b, Some(a), true);
    let c = net.conv("c", b, conv(8, 8, 1, 2, 1), false, &mut random);
    let c = net.norm("cn", c, None, false);
    let c = net.enlarge(c, 2);
    let d = net.conv("d", a, conv(8, 8, 1, 1, 1), false, &mut random);
    let d = net.norm("dn", d, Some(c), true);
    let pool = Pool { kernel: 3, stride: 2, pad: 1 };
    let p = net.max_pool(d, pool);
    let q = net.conv("q", p, conv(8, 8, 1, 1, 1), true, &mut random);
    let p = net.sum(q, p);
    let p = net.relu(p);
    let e = net.average(p);
    let e = net.conv("e", e, conv(8, 5, 1, 1, 1), true, &mut random);
    net.name(e, "scores");
    // Norms before an addition start at zero; move everything off its start.
    for parameter in &mut net.parameters {
        parameter.values.iter_mut().for_each(|v| *v += 0.3 * random.normal());
    }
    net
}

fn input() -> Map {
    let mut random = Random::new(4);
    let mut map = Map::zeros(3, 8, 12, 3);
    map.values.iter_mut().for_each(|v| *v = random.normal());
    map
}

/// The sum of the scores under fixed weights, in f64.
fn value(net: &Net, x: &Map, mode: Mode) -> f64 {
    let tape = net.forward(x.clone(), mode);
    let scores = tape.map(net.place("scores"));
    let pixels = scores.values.chunks_exact(scores.stride()).enumerate();
    pixels.flat_map(|(n, p)| (0..5).map(move |c| f64::from(p[c]) * coefficient(n, c))).sum()
}

fn coefficient(n: usize, c: usize) -> f64 {
    0.5 + 0.3 * (n as f64) - 0.4 * (c as f64)
}

#[test]
fn gradients_agree_with_differences() {
    for mode in [Mode::Train, Mode::Eval] {
        let (mut net, x) = (small(), input());
        let tape = net.forward(x.clone(), mode);
        let place = net.place("scores");
        let mut gradient = Map::like(tape.map(place));
        let stride = gradient.stride();
        for n in 0..3 {
            (0..5).for_each(|c| gradient.values[n * stride + c] = coefficient(n, c) as f32);
        }
        let to_input = net.backward(&tape, vec![(place, gradient)], true).expect("asked for");
        let step = 1e-3f32;
        let close = |what: &str, found: f32, up: f64, down: f64| {
            let expected = (up - down) / (2.0 * f64::from(step));
            let error = (f64::from(found) - expected).abs();
            // A ReLU may switch within the step, so single entries are given some room.
            assert!(error < 0.03 * (1.0 + expected.abs()), "{mode:?} {what}: {found} against {expected}");
        };
        for p in 0..net.parameters.len() {
            let count = net.parameters[p].values.len();
            for i in [0, count / 2, count - 1] {
                let mut at = |by: f32| {
                    net.parameters[p].values[i] += by;
                    let value = value(&net, &x, mode);
                    net.parameters[p].values[i] -= by;
                    value
                };
                let (up, down) = (at(step), at(-step));
                close(&net.parameters[p].name, net.parameters[p].gradient[i], up, down);
            }
        }
        for i in [0, 1, 8 * 50 + 2, 8 * 200] {
            let at = |by: f32| {
                let mut moved = x.clone();
                moved.values[i] += by;
                value(&net, &moved, mode)
            };
            close("input", to_input.values[i], at(step), at(-step));
        }
    }
}
