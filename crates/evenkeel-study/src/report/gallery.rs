//! Galleries: the images a defence helped and harmed most, with what was said of them before and after.

use evenkeel::task::Prediction;

use super::picture::{Picture, Shown, magnified};
use super::results::Results;
use crate::Result;
use crate::experiment::{Cell, Threat};
use crate::run::Study;
use crate::store::Store;

/// Images in each gallery.
const SHOWN: usize = 3;

/// The images that a defence helped and harmed most, under the first attack that has results: the defence that does best against it.
pub(super) fn galleries(
    study: &Study,
    store: &Store,
    results: &Results<'_>,
    subject: usize,
) -> Result<Vec<(String, Vec<String>)>> {
    let design = results.design;
    let card = &design.subjects[subject];
    let best = |column: usize| {
        let figures = (0..card.rows.len()).filter(|row| card.rows[*row].spec.takes_gradients());
        let figures = figures.filter_map(|row| Some((row, results.figure(subject, column, row)?.value)));
        Some((column, figures.max_by(|a, b| a.1.total_cmp(&b.1))?.0))
    };
    let attacks = (0..card.columns.len()).filter(|c| matches!(card.columns[*c].threat, Threat::Attack(_)));
    let Some((column, row)) = attacks.filter_map(best).next() else { return Ok(Vec::new()) };
    let draw = design.experiment.seeds[0];
    let place = |c: &&Cell| (c.subject, c.column, c.row, c.draw) == (subject, column, row, draw);
    let Some(cell) = design.cells.iter().find(place) else { return Ok(Vec::new()) };
    let mut gains: Vec<(f64, &str)> = results
        .results(subject, column, row)
        .iter()
        .filter(|r| r.draw == draw)
        .map(|r| (r.score - r.bare_score, r.id.as_str()))
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let helped: Vec<_> = gains.iter().filter(|g| g.0 > 0.0).take(SHOWN).copied().collect();
    let harmed: Vec<_> = gains.iter().rev().filter(|g| g.0 < 0.0).take(SHOWN).copied().collect();
    let mut all = Vec::new();
    for (words, chosen) in [("helped", helped), ("harmed", harmed)] {
        let title = format!("Most {words} by {} under {}", card.rows[row].label, card.columns[column].label);
        let panels = chosen.iter().map(|(gain, id)| panel(study, store, cell, (id, *gain)));
        let panels = panels.collect::<Result<Vec<_>>>()?;
        if !panels.is_empty() {
            all.push((title, panels));
        }
    }
    Ok(all)
}

fn panel(study: &Study, store: &Store, cell: &Cell, (id, gain): (&str, f64)) -> Result<String> {
    let seen = study.revisit(store, cell, id)?;
    let said = |answer: &Prediction| -> Result<Shown> {
        Ok(match study.painted(cell.subject, answer, &seen.clean)? {
            Ok(image) => Shown::Image(image),
            Err(words) => Shown::Word(words),
        })
    };
    let bound = study.design.subjects[cell.subject].epsilon_255 as f32 / 255.0;
    let pictures = [
        Picture::new(&format!("{id}, {:+.1} points", 100.0 * gain), &seen.clean),
        Picture::labelled("truth", said(&seen.truth.as_prediction())?),
        Picture::new("attacked", &seen.shown),
        Picture::new("the attack, magnified", &magnified(&seen.clean, &seen.shown, bound)),
        Picture::labelled("said of it", said(&seen.bare)?),
        Picture::new("the defence, magnified", &magnified(&seen.shown, &seen.defended, 1.5 * bound)),
        Picture::labelled("said after the defence", said(&seen.answer)?),
    ];
    pictures.iter().map(Picture::html).collect()
}
