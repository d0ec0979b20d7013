//! What is fitted on clean images and judged on others: detect-then-defend, and how well errors were estimated.
//!
//! Thresholds and biases are never fitted on the images they judge: images fall into two halves, and each half is judged with what
//! the other's clean images say.

use std::collections::BTreeMap;

use evenkeel::detect::{
    DELTA, EstimateRule, FALSE_ALARMS, Interval, LabelledCells, expected_error, fit_bias, images_for,
    theorem_half_width, threshold_for,
};

use super::chart::{Plot, Series};
use super::detection::{Detections, clean_work, figure, title};
use super::results::{ImageResult, Results};
use super::table::{Entry, Table};
use super::tables::in_papers_layout;
use crate::experiment::{Design, Threat};
use crate::record::Detected;

/// The share of images like the clean ones on which it is promised to hold.
pub(super) const PROMISED: f64 = 1.0 - DELTA;

/// An estimate held against the truth.
struct Judged {
    estimate: f64,
    error: f64,
    /// Whether the conformal interval holds; none if there is no interval.
    held: Option<bool>,
    /// Whether the theorem's half-width does; none if errors have no known range.
    theorem: Option<bool>,
}

/// What an image gives to a calibration, if anything of it is labelled.
fn labelled(detected: &Detected) -> Option<LabelledCells> {
    Some(LabelledCells { variances: detected.variances.clone(), error: detected.true_error? })
}

/// Images in two halves, every other one in the order of their names.
struct Halves<'a>(BTreeMap<&'a str, bool>);

impl<'a> Halves<'a> {
    fn of(clean: &'a BTreeMap<String, Detected>) -> Self {
        Self(clean.keys().enumerate().map(|(i, id)| (id.as_str(), i % 2 == 1)).collect())
    }

    fn place(&self, id: &str) -> usize {
        self.0.get(id).map_or(0, |second| usize::from(*second))
    }

    /// For each half, what the other half's clean images say; `None` where one is empty.
    fn crossed<T>(
        &self,
        clean: &BTreeMap<String, Detected>,
        fit: impl Fn(Vec<&Detected>) -> Option<T>,
    ) -> Option<[T; 2]> {
        let of = |which: usize| {
            fit(clean.iter().filter(|(id, _)| self.place(id) != which).map(|(_, d)| d).collect())
        };
        Some([of(0)?, of(1)?])
    }
}

/// A detector with a threshold for each half of the images.
struct Alarm<'a> {
    results: &'a Results<'a>,
    detections: &'a Detections,
    subject: usize,
    detector: usize,
    halves: Halves<'a>,
    thresholds: [f64; 2],
}

impl<'a> Alarm<'a> {
    /// The subject's first detector, if it has seen clean images.
    fn of(results: &'a Results<'a>, detections: &'a Detections, subject: usize) -> Option<Self> {
        let design = results.design;
        let detector = design.subjects[subject].detectors.iter().position(|d| !d.spec.estimates_error())?;
        let clean = detections.of(clean_work(design, subject)?, detector)?;
        let halves = Halves::of(clean);
        let thresholds = halves.crossed(clean, |others| {
            let scores: Vec<f64> = others.iter().map(|d| d.score).collect();
            threshold_for(&scores, FALSE_ALARMS).ok()
        })?;
        Some(Self { results, detections, subject, detector, halves, thresholds })
    }

    /// The results of a cell, each with whether the image raises the alarm; `None` if there are none or one was not looked at.
    fn judged(&self, column: usize, row: usize) -> Option<Vec<(&'a ImageResult, bool)>> {
        let place = |draw: u64| (self.subject, column, row, draw);
        let judge = |r: &'a ImageResult| {
            let cells = &self.results.design.cells;
            let cell = cells.iter().find(|c| (c.subject, c.column, c.row, c.draw) == place(r.draw))?;
            let score = self.detections.of(cell.work, self.detector)?.get(&r.id)?.score;
            Some((r, score > self.thresholds[self.halves.place(&r.id)]))
        };
        let results = self.results.results(self.subject, column, row);
        results.iter().map(judge).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    }

    /// For each image and draw the attack that left the least, defended or not as the alarm has it.
    fn worst(&self, row: usize) -> Vec<(&'a ImageResult, bool)> {
        let left = |(r, alarm): &(&ImageResult, bool)| if *alarm { r.score } else { r.bare_score };
        let mut worst: BTreeMap<(&str, u64), (&ImageResult, bool)> = BTreeMap::new();
        for column in self.results.attacks(self.subject) {
            for judged in self.judged(column, row).unwrap_or_default() {
                let kept = worst.entry((&judged.0.id, judged.0.draw)).or_insert(judged);
                if left(&judged) < left(kept) {
                    *kept = judged;
                }
            }
        }
        worst.into_values().collect()
    }

    /// The figure, and beside it the share that was defended.
    fn entry(&self, judged: &[(&ImageResult, bool)]) -> Entry {
        let chosen = judged.iter().map(|(r, alarm)| (r.id.as_str(), if *alarm { &r.tally } else { &r.bare }));
        let Some(figure) = self.results.figure_of(self.subject, chosen) else { return Entry::nothing() };
        let share = judged.iter().filter(|(_, alarm)| *alarm).count() as f64 / judged.len() as f64;
        Entry { aside: format!("{:.0} % defended", 100.0 * share), ..Entry::words(figure.words()) }
    }
}

/// Detect, then defend.
pub(super) fn guarded(results: &Results<'_>, detections: &Detections, subject: usize) -> Option<Table> {
    let card = &results.design.subjects[subject];
    let alarm = Alarm::of(results, detections, subject)?;
    let rows = 1..card.rows.len();
    let labels = rows.clone().map(|row| card.rows[row].label.clone());
    let mut table = Table {
        name: format!("{}-detect-then-defend", card.rule.name),
        title: format!(
            "{}: {}{}, defended only where {} raises an alarm",
            card.rule.name,
            results.metric(subject),
            results.unit(subject),
            card.detectors[alarm.detector].label
        ),
        head: std::iter::once("attack".to_string()).chain(labels).collect(),
        notes: vec![format!(
            "Threshold at {:.0} % false alarms, for each half of the images from the clean images of the other half. Beside each figure: the \
             share of images defended.",
            100.0 * FALSE_ALARMS
        )],
        ..Table::default()
    };
    for column in results.plain_columns(subject) {
        let cell = |row: usize| alarm.judged(column, row).map_or(Entry::nothing(), |all| alarm.entry(&all));
        let name = Entry::words(card.columns[column].label.clone());
        table.rows.push(std::iter::once(name).chain(rows.clone().map(cell)).collect());
    }
    if results.attacks(subject).len() > 1 {
        let cell = |row: usize| alarm.entry(&alarm.worst(row)).strong();
        let name = Entry::words("worst case").strong();
        table.rows.push(std::iter::once(name).chain(rows.clone().map(cell)).collect());
    }
    (!rows.is_empty()).then(|| in_papers_layout(table))
}

/// An error estimate with a rule for each half of the images.
struct Estimates<'a> {
    detector: usize,
    halves: Halves<'a>,
    rules: [EstimateRule; 2],
    error_range: Option<f64>,
}

impl<'a> Estimates<'a> {
    /// The subject's first detector that estimates errors, if it has seen clean images.
    fn of(design: &Design, detections: &'a Detections, subject: usize) -> Option<Self> {
        let detector = design.subjects[subject].detectors.iter().position(|d| d.spec.estimates_error())?;
        let clean = detections.of(clean_work(design, subject)?, detector)?;
        let halves = Halves::of(clean);
        // each half is judged by what the other half's clean images say; too few of them give no interval
        let rules = halves.crossed(clean, |others| {
            let known: Vec<LabelledCells> = others.iter().filter_map(|d| labelled(d)).collect();
            let bias_alone = || {
                let pairs: Vec<_> = known.iter().map(|c| (c.variances.clone(), c.error)).collect();
                Some(EstimateRule { bias: Some(fit_bias(&pairs).ok()?), ..EstimateRule::plain(DELTA) })
            };
            EstimateRule::fitted(&known, DELTA).ok().or_else(bias_alone)
        })?;
        Some(Self { detector, halves, rules, error_range: design.subjects[subject].error_range })
    }

    fn judge(&self, id: &str, detected: &Detected) -> Option<Judged> {
        let rule = &self.rules[self.halves.place(id)];
        let estimate = expected_error(&detected.variances, rule.bias.unwrap_or(0.0));
        let error = detected.true_error?;
        let half_width = self.error_range.map(|range| theorem_half_width(range, detected.cells, DELTA));
        Some(Judged {
            estimate,
            error,
            held: match rule.interval(estimate) {
                Ok(Interval::Within { low, high, .. }) => Some((low..=high).contains(&error)),
                _ => None,
            },
            theorem: half_width.map(|half| (estimate - error).abs() <= half),
        })
    }
}

/// On how many clean images the promised interval held, of how many; `None` if nothing was promised.
pub(super) fn coverage(design: &Design, detections: &Detections, subject: usize) -> Option<(usize, usize)> {
    let estimates = Estimates::of(design, detections, subject)?;
    let clean = detections.of(clean_work(design, subject)?, estimates.detector)?;
    let judged = clean.iter().filter_map(|(id, detected)| estimates.judge(id, detected));
    let held = judged.map(|judged| judged.held).collect::<Option<Vec<bool>>>()?;
    Some((held.iter().filter(|held| **held).count(), held.len()))
}

/// Estimated against true errors, and how often the bound held.
pub(super) fn calibration(
    design: &Design,
    detections: &Detections,
    subject: usize,
) -> Option<(Table, String)> {
    let card = &design.subjects[subject];
    let estimates = Estimates::of(design, detections, subject)?;
    let Estimates { detector, rules, .. } = &estimates;
    let promised = rules.iter().all(|rule| !rule.residuals.is_empty());
    let promise = match promised {
        true => format!(
            "The interval is promised to hold on {:.0} % of images like the clean ones; of attacked and corrupted images nothing is promised.",
            100.0 * (1.0 - DELTA)
        ),
        false => format!(
            "There are too few clean labelled images in each half to promise an interval that holds on {:.0} %: it takes {}.",
            100.0 * (1.0 - DELTA),
            (images_for(DELTA) * 4).div_ceil(3)
        ),
    };
    let head = [
        "images",
        "estimated",
        "true",
        "mean difference",
        "within the conformal interval",
        "within the theorem's half-width (if its assumptions held)",
    ];
    let mut table = Table {
        name: format!("{}-error-estimate", card.rule.name),
        title: format!("{}: estimated and true errors", card.rule.name),
        head: head.map(String::from).to_vec(),
        notes: vec![
            "Bias and interval are fitted, for each half of the images, on the clean images of the other half; cells without a label take no part.".into(),
            promise,
            match card.error_range {
                Some(range) => format!("The theorem's half-width takes errors to have a range of {range}."),
                None => "The contract gives values no range, so there is no half-width of the theorem.".into(),
            },
        ],
        ..Table::default()
    };
    let mut groups = ["clean", "attacked", "corrupted"].map(|name| Series::marks(name, Vec::new()));
    let widest = |rule: &EstimateRule| match rule.interval(0.0) {
        Ok(Interval::Within { high, .. }) => high,
        _ => 0.0,
    };
    let margin = rules.iter().map(widest).fold(0.0, f64::max);
    for (number, work) in design.works.iter().enumerate().filter(|(_, w)| w.subject == subject) {
        if work.draw != design.experiment.seeds[0] {
            continue;
        }
        let Some(found) = detections.of(number, *detector) else { continue };
        let judged: Vec<Judged> = found.iter().filter_map(|(id, d)| estimates.judge(id, d)).collect();
        if judged.is_empty() {
            continue;
        }
        let mean = |of: &dyn Fn(&Judged) -> f64| judged.iter().map(of).sum::<f64>() / judged.len() as f64;
        let share =
            |of: &dyn Fn(&Judged) -> bool| format!("{:.0} %", 100.0 * mean(&|j| f64::from(u8::from(of(j)))));
        let coverage = match judged.iter().all(|j| j.held.is_some()) {
            true => share(&|j| j.held == Some(true)),
            false => "not promised".into(),
        };
        table.rows.push(vec![
            Entry::words(title(design, work)),
            Entry::words(format!("{:.3}", mean(&|j| j.estimate))),
            Entry::words(format!("{:.3}", mean(&|j| j.error))),
            Entry::words(format!("{:.3}", mean(&|j| (j.estimate - j.error).abs()))),
            Entry::words(coverage),
            match card.error_range {
                Some(_) => Entry::words(share(&|j| j.theorem == Some(true))),
                None => Entry::nothing(),
            },
        ]);
        let group = match card.columns[work.column].threat {
            Threat::Clean | Threat::Foreign { .. } => 0,
            Threat::Attack(_) => 1,
            Threat::Corruption { .. } => 2,
        };
        groups[group].points.extend(judged.iter().map(|j| (j.estimate, j.error)));
    }
    // probabilities have errors up to 1; values have their own range
    let most = groups.iter().flat_map(|g| &g.points).fold(0.0f64, |most, p| most.max(p.0).max(p.1));
    let unit = Some((0.0, most.max(1.0)));
    let plot = Plot {
        across: "estimated error".into(),
        up: "true error".into(),
        series: groups.into_iter().filter(|s| !s.points.is_empty()).collect(),
        x: unit,
        y: unit,
        diagonal: Some(margin),
    };
    let caption = "Error estimates, one mark an image; between the dashed lines the conformal interval holds";
    Some((table, figure(caption, &plot.svg())))
}
