//! One step of the defence, timed: the equivariance objective over the standard eight views and its gradient.
//!
//!     cargo run --release -p evenkeel --example defence_step -- NET.onnx HEIGHT WIDTH [THREADS] [FEATURE]
//!
//! Reads orders from standard input, one a line, and answers each with a number: `step` (the step), `gradient` (one forward and
//! gradient of the bare network), `views` (what the views themselves cost in a step, without the network), `defence` (three
//! steps of the published loop) and `default` (the default defence, as it is, and the answer) in milliseconds; `memory` is the peak
//! resident set so far in MB. But for the last two, views leave the random stretch out, so that a peer can do the same work.
//! bench/defence.py gives the orders and does the same in PyTorch.

use std::io::BufRead;
use std::time::Instant;

use evenkeel::Random;
use evenkeel::defence::DefenceSpec;
use evenkeel::detect::Heads;
use evenkeel::image::Image;
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, ResizeRule};
use evenkeel::network::Extents;
use evenkeel::objective::{Equivariance, Progress, Terms, ViewObjective, ViewTerm};
use evenkeel::view::{ViewRule, ViewSet};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (height, width, threads) = (number(1, 340), number(2, 680), number(3, 2));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads");
    let model = load(args.first().expect("a network"), args.get(4));
    let mut random = Random::new(1);
    let pixels = (0..3 * height * width).map(|_| random.unit()).collect();
    let image = Image::new(height, width, pixels).expect("an image");
    let fixed = model.network.fixed_size().is_some();
    let setup =
        Setup { objective: Equivariance::new(unstretched().fitted(fixed, model.multiple)), model, image };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "step" => println!("{:.2}", timed(|| setup.step())),
            "defence" => println!("{:.2}", timed(|| setup.defence())),
            "default" => println!("{:.2}", timed(|| setup.default())),
            "gradient" => println!("{:.2}", timed(|| setup.gradient())),
            "views" => println!("{:.2}", setup.views()),
            "memory" => println!("{:.1}", peak_mb()),
            other => eprintln!("no order {other:?}"),
        }
    }
}

/// The network as it is: scores are its first output, and features too unless another tensor is named.
fn load(path: &str, feature: Option<&String>) -> Model {
    let network = evenkeel_network::Network::load(path).expect("a network");
    let output = network.outputs().next().expect("an output").to_owned();
    let input = InputRule {
        order: Order::Rgb,
        scale: 1.0,
        mean: [0.0; 3],
        std: [1.0; 3],
        channels_last: false,
        size: None,
        resize: ResizeRule::Refuse,
        multiple: 1,
    };
    let contract = Contract {
        task: "semantic".into(),
        feature: feature.unwrap_or(&output).as_str().into(),
        output: output.as_str().into(),
        input,
        classes: Classes::default(),
        tables: Default::default(),
    };
    drop(network);
    Model::with_contract(path, &contract).expect("a model")
}

fn unstretched() -> ViewSet {
    // rules that do not read the key stay as they are
    let plain = |rule: &ViewRule| rule.with("stretch", [1.0, 1.0]).unwrap_or_else(|_| rule.clone());
    ViewSet::of(ViewSet::standard().rules.iter().map(plain).collect())
}

struct Setup {
    model: Model,
    image: Image,
    objective: Equivariance,
}

impl Setup {
    fn step(&self) {
        let views = vec![ViewTerm { weight: 1.0, objective: &self.objective }];
        let terms = Terms { output: None, feature: &self.model.feature, losses: vec![], views };
        let network = &*self.model.network;
        terms.evaluate(network, &self.image, Progress::ONCE, &Random::new(3), true).expect("a gradient");
    }

    fn defence(&self) {
        let spec = DefenceSpec::named("equivariance")
            .and_then(|d| d.with("steps", 3usize)?.with("schedule", "paper"));
        let defence = spec.and_then(|d| d.build(&self.model, &Heads::default())).expect("a defence");
        defence.apply(&self.model, &self.image, 1).expect("a defended image");
    }

    fn default(&self) {
        let spec = DefenceSpec::named("equivariance").expect("the table has it");
        let defence = spec.build(&self.model, &Heads::default()).expect("a defence");
        let defended = defence.apply(&self.model, &self.image, 1).expect("a defended image");
        self.model.scores(&defended.image).expect("an answer");
    }

    fn gradient(&self) {
        let traced = self.model.network.trace_one(&self.image, &self.model.output.list()).expect("an answer");
        let cotangent: Vec<f32> = traced.tensors[0].data().iter().map(|v| 2.0 * v).collect();
        traced.tape.pullback(vec![(0, cotangent)]).expect("a gradient");
    }

    /// Milliseconds of apply, undo, mask and both pullbacks of all views, one after another, on maps of the network's own form.
    fn views(&self) -> f64 {
        let size = self.image.size();
        let map = self.model.scores(&self.image).expect("an answer");
        let base = map.extents("scores").expect("a map");
        let mut spent = 0.0;
        for view in self.objective.draw(&Random::new(3).fork(0)) {
            let seen = view.apply(&self.image);
            let scaled = |side: usize, of: usize, to: usize| (side * to).div_ceil(of);
            let extents = Extents {
                channels: base.channels,
                height: scaled(base.height, size.0, seen.height()),
                width: scaled(base.width, size.1, seen.width()),
            };
            let features = vec![0.5; extents.len()];
            spent += timed(|| {
                view.apply(&self.image);
                let undone = view.undo(size, &features, extents, base.size());
                view.mask(size, extents.size(), base.size());
                view.pull_undo(size, &undone, extents, base.size());
                view.pull_apply(&self.image, seen.pixels());
            });
        }
        spent
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    1000.0 * start.elapsed().as_secs_f64()
}

/// The peak resident set of this process; not a number where the system does not say.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1024.0)
}
