//! Fano's bound in a study of the number of constraints: how accurate an answer could be at best that tells as much of the truth as this one does.
//!
//! From the confusion matrix of answer and truth over all images: H(Y), I(Y; Ŷ) and c(I) = 1 − G⁻¹(H(Y) − I) ([`evenkeel_data::metric::fano`]), beside the accuracy that was
//! measured, which c(I) is never below. Shown where an experiment varied the share of cells.

use super::chart::{Plot, Series};
use super::detection::figure;
use super::results::Results;
use super::table::{Entry, Table};
use evenkeel_data::metric::{Confusion, fano};

/// What the answers of a cell tell of the truth.
struct Told {
    entropy: f64,
    information: f64,
    bound: f64,
    accuracy: f64,
}

impl Told {
    /// `None` if nothing was answered, or results of an earlier version do not say what was taken for what.
    fn of(results: &Results<'_>, subject: usize, column: usize, row: usize) -> Option<Self> {
        let all = results.results(subject, column, row);
        let mut matrix = Confusion::empty(results.design.subjects[subject].classes);
        if !all.iter().all(|result| result.tally.confuse(&mut matrix)) || matrix.total() == 0 {
            return None;
        }
        let (entropy, information) = (matrix.label_entropy(), matrix.information());
        let bound = fano::accuracy_bound(entropy, information, matrix.classes())?;
        Some(Self { entropy, information, bound, accuracy: matrix.overlap().pixel_accuracy()? })
    }
}

/// The table and a chart for each attack; nothing unless the share of cells takes several values.
pub(super) fn bounds(results: &Results<'_>, subject: usize) -> Option<(Table, Vec<String>)> {
    let card = &results.design.subjects[subject];
    let varied: Vec<(usize, f64)> = (0..card.rows.len())
        .filter(|row| card.rows[*row].spec.takes_gradients())
        .map(|row| (row, card.rows[row].spec.settings().cells))
        .collect();
    if varied.windows(2).all(|two| two[0].1 == two[1].1) {
        return None;
    }
    let mut table = Table {
        name: format!("{}-information", card.rule.name),
        title: format!("{}: what the answers tell of the truth, and the accuracy that allows at most", card.rule.name),
        head: ["attack", "defence", "H(Y), nats", "I, nats", "Fano's bound c(I), %", "accuracy, %"].map(String::from).to_vec(),
        notes: vec![
            "c(I) = 1 − G⁻¹(H(Y) − I), G(ε) = h(ε) + ε ln(n − 1). H(Y) and I are read off the confusion of answer and truth, cell by cell, over all images."
                .into(),
        ],
        ..Table::default()
    };
    let mut charts = Vec::new();
    for column in results.plain_columns(subject) {
        let (mut bound, mut accuracy) = (Vec::new(), Vec::new());
        for row in 0..card.rows.len() {
            let Some(told) = Told::of(results, subject, column, row) else { continue };
            let numbers = [told.entropy, told.information].map(|v| format!("{v:.3}"));
            let shares = [told.bound, told.accuracy].map(|v| format!("{:.1}", 100.0 * v));
            let names = [card.columns[column].label.clone(), card.rows[row].label.clone()];
            table.rows.push(names.into_iter().chain(numbers).chain(shares).map(Entry::words).collect());
            if let Some((_, cells)) = varied.iter().find(|(place, _)| *place == row) {
                bound.push((*cells, 100.0 * told.bound));
                accuracy.push((*cells, 100.0 * told.accuracy));
            }
        }
        if bound.len() > 1 {
            let series =
                vec![Series::line("Fano's bound", sorted(bound)), Series::line("accuracy", sorted(accuracy))];
            let (across, up) = ("share of cells".into(), "accuracy, %".into());
            let plot = Plot { across, up, series, x: None, y: None, diagonal: None };
            let caption = format!("{}: the bound by what the answers tell", card.columns[column].label);
            charts.push(figure(&caption, &plot.svg()));
        }
    }
    (!table.rows.is_empty()).then_some((table, charts))
}

fn sorted(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
