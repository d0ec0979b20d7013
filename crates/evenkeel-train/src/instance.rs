//! The instance segmenter's loss, its score, and the end of its graph, in the layout that the YOLO-seg head of the method reads.
//!
//! A cell at (x, y) says logarithms of the distances (l, t, r, b) to the sides of a box: its centre is (x + (r − l)/2, y + (b − t)/2),
//! its size (l + r, t + b). Class scores pass through a sigmoid.

use crate::batch::{Batch, Pool};
use crate::error::Result;
use crate::export::to_model;
use crate::goal::Goal;
use crate::instance_loss::{CELL, Outputs, Sum};
use crate::map::Map;
use crate::net::{Net, Place, Tape};
use crate::networks::{BOXES, CLASSES, COEFFICIENTS, PROTOTYPE_COUNT, PROTOTYPES};
use evenkeel::task::instance::{Instance, InstanceRule, Mask};
use evenkeel_data::coco_instances::{detected, rle_of};
use evenkeel_data::metric::instance::{InstanceScore, Region, TrueInstance};
use evenkeel_network::Tensor;
use evenkeel_network::op::Attribute;
use evenkeel_network::zoo::Blueprint;
use rayon::prelude::*;

/// The tensor of boxes, class probabilities and coefficients.
pub const PREDICTIONS: &str = "predictions";

/// Rows of the predictions: a box, the classes and the coefficients.
fn rows(classes: usize) -> usize {
    4 + classes + PROTOTYPE_COUNT
}

/// How instances are read off the network.
pub fn rule() -> InstanceRule {
    InstanceRule { head: "yolo-seg".into(), confidence: 0.02, overlap: 0.6, most: 100, classes: None }
}

/// The objects of each picture of a batch that are large enough to be told.
///
/// # Errors
/// If a mask is refused.
pub fn truths(goal: &Goal, batch: &Batch) -> Result<Vec<Vec<Instance>>> {
    let size = (batch.input.height, batch.input.width);
    let of = |k: usize| -> Result<Vec<Instance>> {
        let mut objects = Vec::new();
        for (class, mask) in masks(batch, k, size)? {
            if mask.area() >= goal.smallest {
                objects.push(Instance::truth(class, mask));
            }
        }
        Ok(objects)
    };
    (0..batch.input.batch).into_par_iter().map(of).collect()
}

/// Class and mask of every instance that is seen in a picture of a batch.
fn masks(batch: &Batch, k: usize, size: (usize, usize)) -> Result<Vec<(usize, Mask)>> {
    let labels = batch.labels_of(k);
    let mut found = Vec::new();
    for (number, &class) in batch.things[k].iter().enumerate() {
        let inside: Vec<bool> = labels.iter().map(|&label| usize::from(label) == number + 1).collect();
        if inside.contains(&true) {
            found.push((class, Mask::from_full(size, &inside)?));
        }
    }
    Ok(found)
}

/// The four places the loss reads: boxes, classes, coefficients, prototypes.
fn places(net: &Net) -> [Place; 4] {
    [BOXES, CLASSES, COEFFICIENTS, PROTOTYPES].map(|name| net.place(name))
}

/// The mean loss of a batch's pictures, and its gradients at the network's outputs.
pub fn loss(net: &Net, tape: &Tape, truths: &[Vec<Instance>]) -> (f64, Vec<(Place, Map)>) {
    let places = places(net);
    let maps = places.map(|place| tape.map(place));
    let share = 1.0 / truths.len() as f32;
    let losses: Vec<Sum> = truths
        .par_iter()
        .enumerate()
        .map(|(picture, objects)| Outputs { maps, picture }.loss(objects, share))
        .collect();
    let total = losses.iter().map(|sum| sum.value).sum::<f64>();
    let gradients = (0..4).map(|part| {
        let mut map = Map::like(maps[part]);
        let image = map.image_len().max(1);
        for (into, sum) in map.values.chunks_exact_mut(image).zip(&losses) {
            into.copy_from_slice(&sum.gradients[part]);
        }
        (places[part], map)
    });
    (total, gradients.collect())
}

/// The objects found and missed on held-out pictures, seen as the engine runs the network.
///
/// # Errors
/// If the engine refuses the network.
pub fn score(net: &Net, goal: &Goal, held_out: &Pool) -> Result<InstanceScore> {
    let model = to_model(net, goal)?;
    let ids = goal.all_ids();
    let mut score = InstanceScore::new();
    for k in 0..held_out.len() {
        let batch = held_out.plain(k, k + 1)?;
        let said = model.predict(&batch.image(0)?)?;
        let Some(found) = said.instances() else { continue };
        let mut truths = Vec::new();
        for (class, mask) in masks(&batch, 0, (batch.input.height, batch.input.width))? {
            let area = mask.area();
            truths.push(TrueInstance {
                category: ids[class],
                crowd: area < goal.smallest,
                area: area as f64,
                region: Region::Mask(rle_of(&mask)?),
                countable: true,
            });
        }
        score.push(k as i64, &truths, &detected(found, &ids)?)?;
    }
    Ok(score)
}

/// The end of the graph: from the four outputs to predictions, for images of this size.
pub(crate) fn draw_predictions(graph: &mut Blueprint, classes: usize, (height, width): (usize, usize)) {
    graph.step("Exp", &[BOXES], "sides", []);
    // Rows: centre x, centre y, width, height; columns: left, top, right, lower side.
    #[rustfmt::skip]
    let joined: [f32; 16] = [
        -0.5, 0.0, 0.5, 0.0,
        0.0, -0.5, 0.0, 0.5,
        1.0, 0.0, 1.0, 0.0,
        0.0, 1.0, 0.0, 1.0,
    ];
    graph.constant("sides.joined", Tensor::new(&[4, 4, 1, 1], joined.to_vec()));
    graph.step("Conv", &["sides", "sides.joined"], "around", []);
    let (down, columns) = (height / CELL as usize, width / CELL as usize);
    let centre = |i: usize| CELL * (i as f32 + 0.5);
    let mut centres: Vec<f32> = (0..down * columns).map(|cell| centre(cell % columns)).collect();
    centres.extend((0..down * columns).map(|cell| centre(cell / columns)));
    centres.resize(4 * down * columns, 0.0);
    graph.constant("centres", Tensor::new(&[1, 4, down, columns], centres));
    graph.step("Add", &["around", "centres"], "placed", []);
    graph.step("Sigmoid", &[CLASSES], "sure", []);
    graph.step("Concat", &["placed", "sure", COEFFICIENTS], "cells", [("axis", Attribute::Int(1))]);
    graph.constant("anchors", Tensor::new(&[3], vec![1, rows(classes) as i64, (down * columns) as i64]));
    graph.step("Reshape", &["cells", "anchors"], PREDICTIONS, []);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Mode;
    use crate::networks;
    use evenkeel::Random;
    use evenkeel::network::Tensor;
    use evenkeel_data::dataset::scenes::Split;

    /// What the network says of one picture, in the head's layout.
    struct Said {
        cells: usize,
        /// `[4 + classes + coefficients][cell]`
        predictions: Vec<f32>,
        /// `[coefficients][cell of a prototype]`
        prototypes: Vec<f32>,
        grid: (usize, usize),
    }

    /// One picture of a map.
    fn picture(map: &Map, k: usize) -> &[f32] {
        &map.values[k * map.image_len()..][..map.image_len()]
    }

    impl Said {
        fn of([boxes, classes, coefficients, prototypes]: [&Map; 4], k: usize) -> Self {
            let cells = boxes.height * boxes.width;
            let mut predictions = vec![0.0; rows(2) * cells];
            let at = |map: &Map, cell: usize, c: usize| picture(map, k)[cell * map.stride() + c];
            for cell in 0..cells {
                let side = [0, 1, 2, 3].map(|c| at(boxes, cell, c).exp());
                let centre = [cell % boxes.width, cell / boxes.width].map(|i| CELL * (i as f32 + 0.5));
                for axis in 0..2 {
                    predictions[axis * cells + cell] = centre[axis] + 0.5 * (side[axis + 2] - side[axis]);
                    predictions[(axis + 2) * cells + cell] = side[axis] + side[axis + 2];
                }
                for c in 0..classes.channels {
                    let logit = at(classes, cell, c);
                    predictions[(4 + c) * cells + cell] = 1.0 / (1.0 + (-logit).exp());
                }
                for c in 0..coefficients.channels {
                    predictions[(4 + classes.channels + c) * cells + cell] = at(coefficients, cell, c);
                }
            }
            let grid = (prototypes.height, prototypes.width);
            let prototypes = (0..prototypes.channels)
                .flat_map(|c| (0..grid.0 * grid.1).map(move |cell| (c, cell)))
                .map(|(c, cell)| at(prototypes, cell, c))
                .collect();
            Self { cells, predictions, prototypes, grid }
        }

        fn tensor(&self) -> Result<Tensor> {
            let predictions = Tensor::new(vec![1, rows(2), self.cells], self.predictions.clone())?;
            let shape = vec![1, PROTOTYPE_COUNT, self.grid.0, self.grid.1];
            Ok(Tensor::joined(vec![predictions, Tensor::new(shape, self.prototypes.clone())?]))
        }
    }

    #[test]
    fn the_engine_reads_what_the_trainer_says() {
        let mut random = Random::new(3);
        let mut net = networks::instances(2, &mut random);
        net.parameters
            .iter_mut()
            .for_each(|p| p.values.iter_mut().for_each(|v| *v += 0.02 * random.normal()));
        let batch = Pool::render(&Goal::instances(), Split::Val, 1).plain(0, 1).unwrap();
        let model = to_model(&net, &Goal::instances()).unwrap();
        let engine = model.scores(&batch.image(0).unwrap()).unwrap();
        let tape = net.forward(batch.input, Mode::Eval);
        let ours = Said::of(places(&net).map(|place| tape.map(place)), 0).tensor().unwrap();
        assert_eq!(ours.data().len(), engine.data().len());
        for (i, (a, b)) in ours.data().iter().zip(engine.data()).enumerate() {
            assert!((a - b).abs() < 1e-3 * (1.0 + a.abs()), "{i}: {a} {b}");
        }
    }

    #[test]
    fn the_gradient_agrees_with_differences() {
        let mut net = networks::instances(2, &mut Random::new(4));
        let batch = Pool::render(&Goal::instances(), Split::Val, 1).plain(0, 1).unwrap();
        let objects = truths(&Goal::instances(), &batch).unwrap();
        assert!(!objects[0].is_empty());
        let tape = net.forward(batch.input.clone(), Mode::Train);
        let (_, gradients) = loss(&net, &tape, &objects);
        net.backward(&tape, gradients, false);
        // Biases of the outputs move every cell, so that single precision can tell the difference.
        for name in [BOXES, CLASSES, COEFFICIENTS, PROTOTYPES] {
            let place = net.parameters.iter().position(|p| p.name == format!("{name}.bias")).unwrap();
            let found = f64::from(net.parameters[place].gradient[1]);
            let at = |by: f32| {
                let mut moved = net.clone();
                moved.parameters[place].values[1] += by;
                let tape = moved.forward(batch.input.clone(), Mode::Train);
                loss(&moved, &tape, &objects).0
            };
            let expected = (at(2e-3) - at(-2e-3)) / 4e-3;
            assert!((found - expected).abs() < 0.02 * expected.abs() + 2e-3, "{name}: {found} {expected}");
        }
    }
}
