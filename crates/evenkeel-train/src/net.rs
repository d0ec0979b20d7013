//! A network that can be trained: steps over maps, parameters, running statistics, forward and backward.
//!
//! Place 0 holds the input; step i fills place i + 1. Backward walks the steps in reverse; a place's gradient is the sum of what
//! its readers give, in reverse order of reading.

use crate::layer::conv::{Conv, to_bias};
use crate::layer::norm::{self, Moments};
use crate::layer::pool::{self, Pool};
use crate::layer::resize;
use crate::map::Map;
use evenkeel::Random;
use evenkeel_kernels::conv2d::Weights;

/// How much of the running statistics a batch replaces.
const FRESH: f32 = 0.1;

/// The place of a map in the network.
pub type Place = usize;

/// One parameter with its gradient.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Vec<f32>,
    /// The gradient of the last backward pass.
    pub gradient: Vec<f32>,
    /// Whether weight decay applies.
    pub decays: bool,
}

/// Running mean and variance of a batch norm.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name.
    pub name: String,
    /// Mean by channel.
    pub mean: Vec<f32>,
    /// Variance by channel.
    pub variance: Vec<f32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Conv { from: Place, conv: Conv, weight: usize, bias: Option<usize> },
    Norm { from: Place, gain: usize, shift: usize, running: usize, skip: Option<Place>, relu: bool },
    Enlarge { from: Place, factor: usize },
    Average { from: Place },
    Add { from: Place, other: Place },
    Relu { from: Place },
    MaxPool { from: Place, pool: Pool },
}

/// A trainable network.
#[derive(Clone, Debug)]
pub struct Net {
    pub(crate) steps: Vec<Step>,
    pub(crate) named: Vec<(String, Place)>,
    channels: Vec<usize>,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The running statistics.
    pub running: Vec<Running>,
}

/// Whether batch norms use the batch's statistics or the running ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The batch's own.
    Train,
    /// The running ones.
    Eval,
}

/// What a forward pass kept.
pub struct Tape {
    maps: Vec<Map>,
    moments: Vec<Option<Moments>>,
    weights: Vec<Option<Weights>>,
    mode: Mode,
}

impl Tape {
    /// The map at a place.
    pub fn map(&self, place: Place) -> &Map {
        &self.maps[place]
    }
}

impl Net {
    /// An empty network on inputs of the given number of channels.
    pub fn new(channels: usize) -> Self {
        Self {
            steps: Vec::new(),
            named: Vec::new(),
            channels: vec![channels],
            parameters: Vec::new(),
            running: Vec::new(),
        }
    }

    /// The place of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn place(&self, name: &str) -> Place {
        self.named.iter().find(|(n, _)| n == name).map(|(_, place)| *place).expect("a named place")
    }

    /// Gives a place a name.
    pub fn name(&mut self, place: Place, name: &str) {
        self.named.push((name.into(), place));
    }

    /// Numbers in all parameters together.
    pub fn size(&self) -> usize {
        self.parameters.iter().map(|p| p.values.len()).sum()
    }

    fn push(&mut self, step: Step, channels: usize) -> Place {
        self.steps.push(step);
        self.channels.push(channels);
        self.steps.len()
    }

    fn parameter(
        &mut self,
        name: String,
        shape: &[usize],
        value: impl FnMut() -> f32,
        decays: bool,
    ) -> usize {
        let mut value = value;
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| value()).collect();
        let gradient = vec![0.0; values.len()];
        self.parameters.push(Parameter { name, shape: shape.to_vec(), values, gradient, decays });
        self.parameters.len() - 1
    }

    /// A convolution, weights drawn as He et al. do.
    pub(crate) fn conv(
        &mut self,
        name: &str,
        from: Place,
        conv: Conv,
        bias: bool,
        random: &mut Random,
    ) -> Place {
        assert_eq!(self.channels[from], conv.in_c, "channels into {name}");
        let fan = (conv.in_c * conv.kernel * conv.kernel) as f32;
        let deviation = if bias { (1.0 / fan).sqrt() } else { (2.0 / fan).sqrt() };
        let shape = [conv.out_c, conv.in_c, conv.kernel, conv.kernel];
        let weight = self.parameter(format!("{name}.weight"), &shape, || random.normal() * deviation, true);
        let bias = bias.then(|| self.parameter(format!("{name}.bias"), &[conv.out_c], || 0.0, false));
        self.push(Step::Conv { from, conv, weight, bias }, conv.out_c)
    }

    /// Sets the bias of a convolution to one value.
    pub(crate) fn fill_bias(&mut self, conv: &str, value: f32) {
        let name = format!("{conv}.bias");
        self.parameters.iter_mut().filter(|p| p.name == name).for_each(|p| p.values.fill(value));
    }

    /// Batch norm, perhaps with a skip added, perhaps with ReLU.
    pub(crate) fn norm(&mut self, name: &str, from: Place, skip: Option<Place>, relu: bool) -> Place {
        let channels = self.channels[from];
        // A branch that ends in an addition starts out at zero, so that the block starts as its skip.
        let start = if skip.is_some() { 0.0 } else { 1.0 };
        let gain = self.parameter(format!("{name}.weight"), &[channels], || start, false);
        let shift = self.parameter(format!("{name}.bias"), &[channels], || 0.0, false);
        self.running.push(Running {
            name: name.into(),
            mean: vec![0.0; channels],
            variance: vec![1.0; channels],
        });
        let running = self.running.len() - 1;
        self.push(Step::Norm { from, gain, shift, running, skip, relu }, channels)
    }

    /// Bilinear enlargement.
    pub(crate) fn enlarge(&mut self, from: Place, factor: usize) -> Place {
        let channels = self.channels[from];
        self.push(Step::Enlarge { from, factor }, channels)
    }

    /// The sum of two maps.
    pub(crate) fn sum(&mut self, from: Place, other: Place) -> Place {
        let channels = self.channels[from];
        assert_eq!(channels, self.channels[other], "channels of both sides of a sum");
        self.push(Step::Add { from, other }, channels)
    }

    /// The positive part.
    pub(crate) fn relu(&mut self, from: Place) -> Place {
        let channels = self.channels[from];
        self.push(Step::Relu { from }, channels)
    }

    /// The largest of each window.
    pub(crate) fn max_pool(&mut self, from: Place, pool: Pool) -> Place {
        let channels = self.channels[from];
        self.push(Step::MaxPool { from, pool }, channels)
    }

    /// Channels of a place.
    pub(crate) fn channels(&self, place: Place) -> usize {
        self.channels[place]
    }

    /// Sets the values of a parameter.
    pub(crate) fn set(&mut self, name: &str, values: &[f32]) {
        let found = self.parameters.iter_mut().find(|p| p.name == name).expect("a parameter of this name");
        found.values.copy_from_slice(values);
    }

    /// Sets the running statistics of the norm added last.
    pub(crate) fn set_running(&mut self, mean: Vec<f32>, variance: Vec<f32>) {
        let running = self.running.last_mut().expect("a norm was added");
        (running.mean, running.variance) = (mean, variance);
    }

    /// Whether a place is filled by a convolution without bias, which a norm may follow.
    pub(crate) fn is_bare_conv(&self, place: Place) -> bool {
        place > 0 && matches!(self.steps[place - 1], Step::Conv { bias: None, .. })
    }

    /// Puts a fresh 1x1 or larger convolution with another number of outputs in the place of the one that gives the scores. False if something
    /// else gives them.
    pub(crate) fn new_scores(&mut self, scores: &str, outputs: usize, random: &mut Random) -> bool {
        let place = self.place(scores);
        let Some(Step::Conv { conv, weight, bias, .. }) = self.steps.get_mut(place - 1) else { return false };
        conv.out_c = outputs;
        let deviation = (1.0 / (conv.in_c * conv.kernel * conv.kernel) as f32).sqrt();
        let fresh = &mut self.parameters[*weight];
        fresh.shape[0] = outputs;
        fresh.values = (0..fresh.shape.iter().product()).map(|_| random.normal() * deviation).collect();
        fresh.gradient = vec![0.0; fresh.values.len()];
        if let Some(bias) = bias {
            let fresh = &mut self.parameters[*bias];
            (fresh.shape, fresh.values, fresh.gradient) =
                (vec![outputs], vec![0.0; outputs], vec![0.0; outputs]);
        }
        self.channels[place] = outputs;
        true
    }

    /// The mean over the image.
    pub(crate) fn average(&mut self, from: Place) -> Place {
        let channels = self.channels[from];
        self.push(Step::Average { from }, channels)
    }

    /// Runs the network.
    pub fn forward(&self, input: Map, mode: Mode) -> Tape {
        let count = self.steps.len();
        let mut tape = Tape { maps: vec![input], moments: vec![None; count], weights: Vec::new(), mode };
        for (i, step) in self.steps.iter().enumerate() {
            let mut packed = None;
            let map = match *step {
                Step::Conv { from, conv, weight, bias } => {
                    let weights = packed.insert(conv.packed(&self.parameters[weight].values));
                    conv.forward(weights, bias.map(|b| &*self.parameters[b].values), &tape.maps[from])
                }
                Step::Norm { from, gain, shift, running, skip, relu } => {
                    let x = &tape.maps[from];
                    let moments = match mode {
                        Mode::Train => Moments::of(x),
                        Mode::Eval => {
                            let running = &self.running[running];
                            Moments::known(running.mean.clone(), running.variance.clone())
                        }
                    };
                    let affine = (&*self.parameters[gain].values, &*self.parameters[shift].values);
                    let map = norm::forward(x, &moments, affine, skip.map(|s| &tape.maps[s]), relu);
                    tape.moments[i] = Some(moments);
                    map
                }
                Step::Enlarge { from, factor } => resize::enlarge(&tape.maps[from], factor),
                Step::Average { from } => resize::average(&tape.maps[from]),
                Step::Add { from, other } => {
                    let mut sum = tape.maps[from].clone();
                    sum.add(&tape.maps[other]);
                    sum
                }
                Step::Relu { from } => pool::relu(&tape.maps[from]),
                Step::MaxPool { from, pool } => pool.forward(&tape.maps[from]),
            };
            tape.weights.push(packed);
            tape.maps.push(map);
        }
        tape
    }

    /// Takes the statistics of a training pass into the running ones.
    pub fn remember(&mut self, tape: &Tape) {
        for (step, moments) in self.steps.iter().zip(&tape.moments) {
            if let (Step::Norm { from, running, .. }, Some(moments)) = (step, moments) {
                let count = tape.maps[*from].pixels() as f32;
                let running = &mut self.running[*running];
                for c in 0..running.mean.len() {
                    let unbiased = moments.variance[c] * count / (count - 1.0).max(1.0);
                    running.mean[c] += FRESH * (moments.mean[c] - running.mean[c]);
                    running.variance[c] += FRESH * (unbiased - running.variance[c]);
                }
            }
        }
    }

    /// Sets every parameter's gradient to zero.
    pub fn clear(&mut self) {
        self.parameters.iter_mut().for_each(|p| p.gradient.fill(0.0));
    }

    /// Sets every parameter's gradient from the gradients at some places; gives the gradient to the input if it is wanted.
    pub fn backward(&mut self, tape: &Tape, from: Vec<(Place, Map)>, to_input: bool) -> Option<Map> {
        self.clear();
        self.accumulate(tape, from, to_input)
    }

    /// As [`Net::backward`], but adds to the gradients that are there.
    pub fn accumulate(&mut self, tape: &Tape, from: Vec<(Place, Map)>, to_input: bool) -> Option<Map> {
        let mut gradients: Vec<Option<Map>> = (0..tape.maps.len()).map(|_| None).collect();
        from.into_iter().for_each(|(place, gradient)| give(&mut gradients, place, gradient));
        for (i, step) in self.steps.iter().enumerate().rev() {
            let Some(mut gy) = gradients[i + 1].take() else { continue };
            match *step {
                Step::Conv { from, conv, weight, bias } => {
                    conv.to_weights(&tape.maps[from], &gy, &mut self.parameters[weight].gradient);
                    if let Some(bias) = bias {
                        to_bias(&gy, &mut self.parameters[bias].gradient);
                    }
                    if from > 0 || to_input {
                        let weights = tape.weights[i].as_ref().expect("kept by the forward pass");
                        conv.to_input(weights, &gy, slot(&mut gradients, from, &tape.maps));
                    }
                }
                Step::Norm { from, gain, shift, skip, relu, .. } => {
                    if relu {
                        norm::cut(&tape.maps[i + 1], &mut gy);
                    }
                    let moments = tape.moments[i].as_ref().expect("kept by the forward pass");
                    let mut g_gain = std::mem::take(&mut self.parameters[gain].gradient);
                    let mut g_shift = std::mem::take(&mut self.parameters[shift].gradient);
                    let values = &self.parameters[gain].values;
                    let fixed = tape.mode == Mode::Eval;
                    let gx = norm::backward(
                        &tape.maps[from],
                        moments,
                        values,
                        &gy,
                        (&mut g_gain, &mut g_shift),
                        fixed,
                    );
                    self.parameters[gain].gradient = g_gain;
                    self.parameters[shift].gradient = g_shift;
                    give(&mut gradients, from, gx);
                    if let Some(skip) = skip {
                        give(&mut gradients, skip, gy);
                    }
                }
                Step::Enlarge { from, factor } => {
                    resize::enlarge_back(&gy, factor, slot(&mut gradients, from, &tape.maps));
                }
                Step::Average { from } => resize::average_back(&gy, slot(&mut gradients, from, &tape.maps)),
                Step::Add { from, other } => {
                    give(&mut gradients, other, gy.clone());
                    give(&mut gradients, from, gy);
                }
                Step::Relu { from } => {
                    norm::cut(&tape.maps[i + 1], &mut gy);
                    give(&mut gradients, from, gy);
                }
                Step::MaxPool { from, pool } => {
                    let x = &tape.maps[from];
                    pool.backward(x, &tape.maps[i + 1], &gy, slot(&mut gradients, from, &tape.maps));
                }
            }
        }
        gradients[0].take()
    }
}

/// The gradient at a place, zeros if nothing came yet.
fn slot<'a>(gradients: &'a mut [Option<Map>], place: Place, maps: &[Map]) -> &'a mut Map {
    gradients[place].get_or_insert_with(|| Map::like(&maps[place]))
}

fn give(gradients: &mut [Option<Map>], place: Place, gradient: Map) {
    match &mut gradients[place] {
        Some(sum) => sum.add(&gradient),
        empty => *empty = Some(gradient),
    }
}
