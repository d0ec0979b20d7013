//! Foreign data sets: how well each detector tells their images from the network's own clean ones, with the paper's figures beside ours.
//!
//! AUROC, AP and FPR95 of [`evenkeel_data::metric::Ranking`], the foreign images being the anomalous ones. Intervals draw images of both sides
//! independently.

use super::detection::{Detections, Said, clean_work};
use super::table::{Entry, Table};
use crate::experiment::{Design, paper};
use evenkeel_data::metric::{Bootstrap, FPR95_CONVENTION, Ranking, RankingFigures, key_of};

/// The figures of a detector, in %, and the interval of each.
type Figures = [(f64, Option<(f64, f64)>); 3];

/// The ranking of clean images below foreign ones; `None` unless both are there.
fn figures(design: &Design, clean: &Said, foreign: &Said, name: &str) -> Option<Figures> {
    let mut ranking = Ranking::new(Bootstrap { seed: design.experiment.seed, replicates: 1000 });
    for (id, detected) in clean {
        ranking.push(key_of(id), detected.score, false).ok()?;
    }
    for (id, detected) in foreign {
        // an image of the same name is another image
        ranking.push(key_of(&format!("{name}\u{1}{id}")), detected.score, true).ok()?;
    }
    let whole = ranking.figures()?;
    let parts: [fn(&RankingFigures) -> f64; 3] = [|f| f.auroc, |f| f.average_precision, |f| f.fpr95];
    Some(parts.map(|part| (part(&whole), ranking.interval(0.95, part).map(|i| (i.low, i.high)))))
}

/// The table of a subject: a row for each foreign data set and detector.
pub(super) fn ranking(design: &Design, detections: &Detections, subject: usize) -> Option<Table> {
    let card = &design.subjects[subject];
    let clean = clean_work(design, subject)?;
    let mut table = Table {
        name: format!("{}-foreign", card.rule.name),
        title: format!("{}: images of other data sets from its own clean ones", card.rule.name),
        head: ["foreign data", "detector", "AUROC", "AP", "FPR95", "paper's AUROC", "images"]
            .map(String::from)
            .to_vec(),
        notes: vec![format!(
            "In %, [95 % interval]. {FPR95_CONVENTION}; lower is better there. AP depends on how many images there are of either kind. Foreign images are \
             scaled to cover the frame of the subject's images, and the centre is cut out."
        )],
        ..Table::default()
    };
    let mut of_paper = false;
    for (number, work) in design.works.iter().enumerate() {
        let Some(foreign) = design.subjects[work.subject].foreign.as_ref().filter(|f| f.subject == subject)
        else {
            continue;
        };
        let pair = foreign.rule.paper.as_deref().and_then(paper::foreign);
        for (_, detector) in &work.detections {
            let both = detections.of(clean, *detector).zip(detections.of(number, *detector));
            let Some((own, other)) = both else { continue };
            let Some(found) = figures(design, own, other, &foreign.rule.name) else { continue };
            let row = &card.detectors[*detector];
            let known = pair.and_then(|pair| pair.of_detector(row.spec.name()));
            of_paper |= known.is_some();
            let mut line = vec![Entry::words(foreign.rule.name.clone()), Entry::words(row.label.clone())];
            line.extend(found.map(percent));
            line.push(known.map_or(Entry::nothing(), |value| Entry::words(format!("{value:.0}"))));
            line.push(Entry::words(format!("{} own, {} foreign", own.len(), other.len())));
            table.rows.push(line);
        }
    }
    if of_paper {
        let words =
            "The paper's figures are of its own networks (DRN, DeepLabV3) on the same pair of data sets.";
        table.notes.push(words.into());
    }
    (!table.rows.is_empty()).then_some(table)
}

fn percent((value, interval): (f64, Option<(f64, f64)>)) -> Entry {
    let words = |(low, high): (f64, f64)| format!("[{:.1}, {:.1}]", 100.0 * low, 100.0 * high);
    Entry { aside: interval.map_or(String::new(), words), ..Entry::words(format!("{:.1}", 100.0 * value)) }
}
