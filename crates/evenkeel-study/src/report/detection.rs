//! What detectors achieved against attacks: AUROC against clean images, and ROC curves. Corruptions are in `corrupted`, detect-then-defend and
//! error estimates in `calibrated`.

use std::collections::BTreeMap;

use super::chart::{Scores, roc};
use super::results::Figure;
use super::table::{Entry, Table};
use super::tables::Spent;
use crate::Result;
use crate::experiment::{Design, Threat, Work};
use crate::record::{Body, Detected};
use crate::store::Store;
use evenkeel_data::metric::{Better, Bootstrap, Ranking, Unit, key_of};

/// Curves in one chart.
const CURVES: usize = 6;

/// What was said of each image.
pub(super) type Said = BTreeMap<String, Detected>;

/// By work and detector: what was said of each image, and what that took.
pub(super) struct Detections {
    all: BTreeMap<(usize, usize), Said>,
    spent: BTreeMap<(usize, usize), Vec<Spent>>,
}

impl Detections {
    /// Reads everything that is there.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) fn gather(design: &Design, store: &Store) -> Result<Self> {
        let mut all: BTreeMap<_, Said> = BTreeMap::new();
        let mut spent: BTreeMap<_, Vec<Spent>> = BTreeMap::new();
        for (number, work) in design.works.iter().enumerate() {
            for (key, detector) in &work.detections {
                for id in &design.subjects[work.subject].images {
                    if let Some((entry, _)) = store.get(key, id)?
                        && let Body::Detected(detected) = entry.body
                    {
                        all.entry((number, *detector)).or_default().insert(id.clone(), detected);
                        spent.entry((number, *detector)).or_default().push((entry.passes, entry.clock));
                    }
                }
            }
        }
        Ok(Self { all, spent })
    }

    /// What a detector said of a work's images.
    pub(super) fn of(&self, work: usize, detector: usize) -> Option<&Said> {
        self.all.get(&(work, detector))
    }

    /// What a detector took for the clean images of a subject.
    pub(super) fn spent_on_clean(&self, design: &Design, subject: usize, detector: usize) -> Vec<Spent> {
        let clean = clean_work(design, subject);
        clean.and_then(|work| self.spent.get(&(work, detector))).cloned().unwrap_or_default()
    }
}

/// A work as a chart names it.
pub(super) fn title(design: &Design, work: &Work) -> String {
    let card = &design.subjects[work.subject];
    let lens = work.lens.map_or(String::new(), |row| format!(" through {}", card.rows[row].label));
    format!("{}{lens}", card.columns[work.column].label)
}

pub(super) fn clean_work(design: &Design, subject: usize) -> Option<usize> {
    let clean =
        |w: &Work| w.subject == subject && design.subjects[subject].columns[w.column].threat == Threat::Clean;
    design.works.iter().position(clean)
}

/// The AUROC of a work's images against clean ones, with its interval.
pub(super) fn auroc(design: &Design, clean: &Said, other: &Said) -> Option<Figure> {
    let mut ranking = Ranking::new(Bootstrap { seed: design.experiment.seed, replicates: 1000 });
    for (scores, anomalous) in [(clean, false), (other, true)] {
        for (id, detected) in scores {
            ranking.push(key_of(id), detected.score, anomalous).ok()?;
        }
    }
    let value = ranking.figures()?.auroc;
    let interval = ranking.interval(0.95, |f| f.auroc).map(|i| (i.low, i.high));
    Some(Figure { value, interval, images: other.len(), unit: Unit::Share, better: Better::Higher })
}

/// The AUROC table of a subject and its charts.
pub(super) fn ranking(
    design: &Design,
    detections: &Detections,
    subject: usize,
) -> Option<(Table, Vec<String>)> {
    let card = &design.subjects[subject];
    let clean = clean_work(design, subject)?;
    let detectors: Vec<usize> =
        (0..card.detectors.len()).filter(|d| !card.detectors[*d].spec.estimates_error()).collect();
    if detectors.is_empty() {
        return None;
    }
    let works: Vec<usize> = (0..design.works.len())
        .filter(|w| design.works[*w].subject == subject && *w != clean)
        .filter(|w| {
            !matches!(card.columns[design.works[*w].column].threat, Threat::Corruption { .. })
                && design.works[*w].draw == design.experiment.seeds[0]
        })
        .collect();
    let mut table = Table {
        name: format!("{}-detection", card.rule.name),
        title: format!("{}: AUROC, attacked images from clean ones", card.rule.name),
        head: std::iter::once("attack".to_string())
            .chain(detectors.iter().map(|d| card.detectors[*d].label.clone()))
            .collect(),
        ..Table::default()
    };
    let mut curves: Vec<Vec<Scores>> = vec![Vec::new(); detectors.len()];
    for work in works {
        let name = title(design, &design.works[work]);
        let mut row = vec![Entry::words(name.clone())];
        for (place, detector) in detectors.iter().enumerate() {
            let pair = detections.of(clean, *detector).zip(detections.of(work, *detector));
            row.push(pair.and_then(|(c, o)| auroc(design, c, o)).map_or(Entry::nothing(), |f| entry(&f)));
            if let Some((c, o)) = pair
                && curves[place].len() < CURVES
            {
                curves[place].push(curve(name.clone(), c, o));
            }
        }
        table.rows.push(row);
    }
    let chart = |(place, detector): (usize, &usize)| {
        let label = &card.detectors[*detector].label;
        let caption = format!("ROC of {label}: the first attacks of the table");
        (!curves[place].is_empty()).then(|| figure(&caption, &roc(&curves[place], "attacks found")))
    };
    let charts = detectors.iter().enumerate().filter_map(chart).collect();
    (!table.rows.is_empty()).then_some((table, charts))
}

/// The scores behind a ROC curve.
pub(super) fn curve(name: String, clean: &Said, other: &Said) -> Scores {
    let scores = |said: &Said, strange: bool| -> Vec<(f64, bool)> {
        said.values().map(|d| (d.score, strange)).collect()
    };
    (name, [scores(clean, false), scores(other, true)].concat())
}

/// A chart with a caption.
pub(super) fn figure(caption: &str, svg: &str) -> String {
    format!(
        "<figure class=\"chart\">{svg}<figcaption>{}</figcaption></figure>",
        super::chart::escaped(caption)
    )
}

/// A figure in % with its interval.
pub(super) fn entry(figure: &Figure) -> Entry {
    let aside = figure.interval.map_or(String::new(), |(low, high)| {
        format!("[{}, {}]", figure.unit.words(low), figure.unit.words(high))
    });
    Entry { aside, ..Entry::words(figure.unit.words(figure.value)) }
}
