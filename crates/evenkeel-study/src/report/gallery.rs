//! Galleries: the images a defence helped and harmed most, attacked and clean, with what was said of them before and after and what the colours mean.

use evenkeel::task::{LegendEntry, Prediction};

use super::chart::escaped;
use super::picture::{Picture, Shown, legend, magnified};
use super::results::Results;
use crate::Result;
use crate::experiment::{Cell, Threat};
use crate::run::Study;
use crate::store::Store;

/// Images in each gallery.
const SHOWN: usize = 3;
/// Class names a legend has room for; objects have a colour each and names that repeat.
const NAMES: usize = 40;

/// Rows of pictures under a title.
pub(super) struct Gallery {
    title: String,
    legend: Vec<LegendEntry>,
    /// One for each image: its pictures as HTML.
    panels: Vec<String>,
}

impl Gallery {
    /// The gallery as HTML.
    pub(super) fn html(&self) -> String {
        let panels: String = self.panels.iter().map(|p| format!("<div class=\"panel\">{p}</div>")).collect();
        let colours = legend(self.legend.iter().take(NAMES).map(|e| (e.name.as_str(), e.colour)));
        format!("<h3>{}</h3>{colours}{panels}", escaped(&self.title))
    }
}

/// Which images: those with most to gain, or most to lose.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Helped,
    Harmed,
}

/// The images that a defence helped and harmed most, under the first attack that has results (the defence that does best against it), and the clean ones it harmed
/// most.
pub(super) fn galleries(
    study: &Study,
    store: &Store,
    results: &Results<'_>,
    subject: usize,
) -> Result<Vec<Gallery>> {
    let card = &results.design.subjects[subject];
    let best = |column: usize| {
        let figures = (0..card.rows.len()).filter(|row| card.rows[*row].spec.takes_gradients());
        let figures = figures.filter_map(|row| Some((row, results.figure(subject, column, row)?.merit())));
        Some((column, figures.max_by(|a, b| a.1.total_cmp(&b.1))?.0))
    };
    let attacks = (0..card.columns.len()).filter(|c| matches!(card.columns[*c].threat, Threat::Attack(_)));
    let attacked = attacks.filter_map(best).next();
    let mut all = Vec::new();
    let shelf = Shelf { study, store, results, subject };
    if let Some((column, row)) = attacked {
        all.extend(shelf.gallery(column, row, Wanted::Helped)?);
        all.extend(shelf.gallery(column, row, Wanted::Harmed)?);
    }
    if let Some((column, row)) = attacked.map(|(_, row)| (0, row)).or_else(|| best(0)) {
        all.extend(shelf.gallery(column, row, Wanted::Harmed)?);
    }
    Ok(all)
}

/// Where the images of a subject are found.
struct Shelf<'a> {
    study: &'a Study,
    store: &'a Store,
    results: &'a Results<'a>,
    subject: usize,
}

impl Shelf<'_> {
    fn gallery(&self, column: usize, row: usize, wanted: Wanted) -> Result<Option<Gallery>> {
        let (subject, design) = (self.subject, self.results.design);
        let card = &design.subjects[subject];
        let draw = design.experiment.seeds[0];
        let place = |c: &&Cell| (c.subject, c.column, c.row, c.draw) == (subject, column, row, draw);
        let Some(cell) = design.cells.iter().find(place) else { return Ok(None) };
        let of_draw = self.results.results(subject, column, row).iter().filter(|r| r.draw == draw);
        let gains: Vec<(f64, &str)> = of_draw.map(|r| (r.score - r.bare_score, r.id.as_str())).collect();
        let chosen = chosen(gains, wanted);
        let words = match (wanted, matches!(card.columns[column].threat, Threat::Clean)) {
            (Wanted::Helped, _) => "Most helped",
            (Wanted::Harmed, true) => "Clean images most harmed",
            (Wanted::Harmed, false) => "Most harmed",
        };
        let mut gallery = Gallery {
            title: match words.starts_with("Clean") {
                true => format!("{words} by {}", card.rows[row].label),
                false => format!("{words} by {} under {}", card.rows[row].label, card.columns[column].label),
            },
            legend: Vec::new(),
            panels: Vec::new(),
        };
        for (gain, id) in chosen {
            let panel = self.panel(cell, (id, gain), &mut gallery.legend)?;
            gallery.panels.push(panel);
        }
        Ok((!gallery.panels.is_empty()).then_some(gallery))
    }

    fn panel(&self, cell: &Cell, (id, gain): (&str, f64), colours: &mut Vec<LegendEntry>) -> Result<String> {
        let seen = self.study.revisit(self.store, cell, id)?;
        let mut said = |answer: &Prediction| -> Result<Shown> {
            let painting = self.study.painted(cell.subject, answer, &seen.clean)?;
            colours.extend(painting.legend);
            Ok(match painting.caption {
                Some(words) => Shown::Word(words),
                None => Shown::Image(painting.image),
            })
        };
        let card = &self.study.design.subjects[cell.subject];
        let bound = card.epsilon_255 as f32 / 255.0;
        let mut pictures = vec![
            Picture::new(&format!("{id}, {:+.1} points", 100.0 * gain), &seen.clean),
            Picture::labelled("truth", said(&seen.truth.as_prediction())?),
        ];
        if !matches!(card.columns[cell.column].threat, Threat::Clean) {
            pictures.extend([
                Picture::new("attacked", &seen.shown),
                Picture::new("the attack, magnified", &magnified(&seen.clean, &seen.shown, bound)),
            ]);
        }
        pictures.extend([
            Picture::labelled("prediction", said(&seen.bare)?),
            Picture::new("the defence, magnified", &magnified(&seen.shown, &seen.defended, 1.5 * bound)),
            Picture::labelled("prediction after the defence", said(&seen.answer)?),
        ]);
        pictures.iter().map(Picture::html).collect()
    }
}

/// The first few of those that gained, or lost, most; equal ones by name.
fn chosen(mut gains: Vec<(f64, &str)>, wanted: Wanted) -> Vec<(f64, &str)> {
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    if wanted == Wanted::Harmed {
        gains.reverse();
    }
    gains.retain(|(gain, _)| if wanted == Wanted::Helped { *gain > 0.0 } else { *gain < 0.0 });
    gains.truncate(SHOWN);
    gains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_harmed_come_first_and_nobody_is_shown_who_was_not() {
        let gains = vec![(0.1, "a"), (-0.5, "b"), (0.0, "c"), (-0.1, "d"), (-0.3, "e"), (-0.2, "f")];
        let names = |wanted| chosen(gains.clone(), wanted).iter().map(|g| g.1).collect::<String>();
        assert_eq!((names(Wanted::Harmed), names(Wanted::Helped)), ("bef".into(), "a".into()));
    }
}
