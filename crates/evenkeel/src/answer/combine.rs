//! How the outputs of several views become one: the mean or the median over those that saw a cell.
//!
//! mean: Σ m_i v_i / Σ m_i for masks m. median: the middle value, or the mean of the two middle ones, of those with m_i > 0; its derivative goes to
//! the values it was made of. Both are exact maps with exact pullbacks; a cell that nobody saw is 0.

use rayon::prelude::*;

use crate::settings::Choice;

/// How votes are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The mean.
    Mean,
    /// The median, value by value.
    Median,
}

impl Choice for Combine {
    const ALL: &'static [Self] = &[Self::Mean, Self::Median];
    const KIND: &'static str = "combine";

    fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

/// What one view says on the image's own grid: values `[channels, cells]`, and a mask `[cells]` of what it saw.
#[derive(Clone, Debug)]
pub(crate) struct Ballot {
    pub(crate) values: Vec<f32>,
    pub(crate) mask: Vec<f32>,
}

/// Cells in one run of work.
const RUN: usize = 4096;

impl Combine {
    /// The combined values `[channels, cells]`.
    pub(crate) fn of(self, ballots: &[Ballot]) -> Vec<f32> {
        let (len, cells) = (ballots[0].values.len(), ballots[0].mask.len());
        let mut out = vec![0.0; len];
        let work = |(run, part): (usize, &mut [f32])| {
            let mut order = Vec::with_capacity(ballots.len());
            for (k, o) in part.iter_mut().enumerate() {
                let at = run * RUN + k;
                *o = match self {
                    Self::Mean => mean(ballots, at, at % cells),
                    Self::Median => {
                        let middle = middle(ballots, at, at % cells, &mut order);
                        middle.iter().map(|i| ballots[*i].values[at]).sum::<f32>()
                            / middle.len().max(1) as f32
                    }
                };
            }
        };
        out.par_chunks_mut(RUN).enumerate().for_each(work);
        out
    }

    /// From a cotangent on the combined values to one on each ballot's.
    pub(crate) fn pullback(self, ballots: &[Ballot], cotangent: &[f32]) -> Vec<Vec<f32>> {
        let cells = ballots[0].mask.len();
        match self {
            Self::Mean => {
                let share: Vec<f32> = (0..cells).map(|i| 1.0 / seen(ballots, i).max(1.0)).collect();
                let own = |ballot: &Ballot| {
                    let one = |(at, c): (usize, &f32)| c * ballot.mask[at % cells] * share[at % cells];
                    cotangent.iter().enumerate().map(one).collect()
                };
                ballots.par_iter().map(own).collect()
            }
            Self::Median => {
                let mut out = vec![vec![0.0; cotangent.len()]; ballots.len()];
                let mut order = Vec::with_capacity(ballots.len());
                for (at, c) in cotangent.iter().enumerate() {
                    let middle = middle(ballots, at, at % cells, &mut order);
                    let share = c / middle.len().max(1) as f32;
                    middle.iter().for_each(|i| out[*i][at] = share);
                }
                out
            }
        }
    }
}

/// How many saw a cell.
fn seen(ballots: &[Ballot], cell: usize) -> f32 {
    ballots.iter().map(|ballot| ballot.mask[cell]).sum()
}

fn mean(ballots: &[Ballot], at: usize, cell: usize) -> f32 {
    let sum: f32 = ballots.iter().map(|ballot| ballot.mask[cell] * ballot.values[at]).sum();
    sum / seen(ballots, cell).max(1.0)
}

/// The places of the one or two middle values among the ballots that saw the cell; of equal values the earlier ballot comes first.
fn middle<'o>(ballots: &[Ballot], at: usize, cell: usize, order: &'o mut Vec<usize>) -> &'o [usize] {
    order.clear();
    order.extend((0..ballots.len()).filter(|i| ballots[*i].mask[cell] > 0.0));
    order.sort_by(|a, b| ballots[*a].values[at].total_cmp(&ballots[*b].values[at]).then(a.cmp(b)));
    match order.len() {
        0 => &[],
        n if n % 2 == 1 => &order[n / 2..=n / 2],
        n => &order[n / 2 - 1..=n / 2],
    }
}
