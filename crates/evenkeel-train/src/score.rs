//! How well a network does on held-out pictures: one figure, and one for each class.

use crate::batch::Pool;
use crate::error::Result;
use crate::goal::{Goal, Task};
use crate::instance;
use crate::loss::best;
use crate::net::{Mode, Net};
use crate::networks::SCORES;
use evenkeel_data::metric::Confusion;

/// Scores in [0, 1].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Mean IoU, accuracy or mask AP50.
    pub figure: f64,
    /// The same class by class (IoU, accuracy among the class's pictures, mask AP50); classes that never occur have none.
    pub classes: Vec<Option<f64>>,
}

/// The scores of a network on the pictures of a pool.
///
/// # Errors
/// If a picture cannot be read or the engine refuses the network.
pub fn of(net: &Net, goal: &Goal, held_out: &Pool, batch: usize) -> Result<Scores> {
    if goal.task == Task::Instances {
        let score = instance::score(net, goal, held_out)?;
        let by_category = score.by_category();
        let of = |class| by_category.get(&goal.id(class)).and_then(|figures| figures.0[1]);
        let classes = (0..goal.classes.len()).map(of).collect();
        return Ok(Scores { figure: score.figures().0[1].unwrap_or(0.0), classes });
    }
    let tally = confusion(net, goal, held_out, batch)?;
    let overlap = tally.overlap();
    Ok(match goal.task {
        Task::Semantic => Scores { figure: overlap.mean_iou().unwrap_or(0.0), classes: overlap.iou() },
        _ => Scores {
            figure: overlap.pixel_accuracy().unwrap_or(0.0),
            classes: tally
                .rows()
                .enumerate()
                .map(|(class, row)| {
                    let count: u64 = row.iter().sum();
                    (count > 0).then(|| row[class] as f64 / count as f64)
                })
                .collect(),
        },
    })
}

fn confusion(net: &Net, goal: &Goal, held_out: &Pool, batch: usize) -> Result<Confusion> {
    let place = net.place(SCORES);
    let mut tally = Confusion::empty(goal.classes.len());
    let mut from = 0;
    while from < held_out.len() {
        let batch = held_out.plain(from, from + batch)?;
        from += batch.input.batch;
        let height = batch.input.height;
        let tape = net.forward(batch.input, Mode::Eval);
        let scores = tape.map(place);
        let factor = if goal.task == Task::Semantic { height.div_ceil(scores.height) } else { 1 };
        for (said, is) in best(scores, factor).into_iter().zip(&batch.labels) {
            tally.count((*is).into(), said.into());
        }
    }
    Ok(tally)
}
