//! Templates: a commented experiment for every table and figure of the paper, for the protocol, and for the question of cheap defences.
//!
//! Each runs as it is, on networks and scenes that come with the program. [`Experiment::quick`] makes any experiment a rehearsal: the same
//! cells, hardly any steps.

use std::collections::HashMap;

use evenkeel::attack::AttackKind;
use evenkeel::defence::DefenceKind;
use evenkeel::settings::{Entry, Kind, Spec, Value};

use super::{Experiment, Given, Sweep, spec};

/// A template.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

impl Template {
    /// What it asks, in a line: the file's first.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

/// Every template.
pub const TEMPLATES: [Template; 19] = [
    Template { name: "imagenet-adversarial", text: include_str!("templates/imagenet-adversarial.toml") },
    Template { name: "cityscapes-adversarial", text: include_str!("templates/cityscapes-adversarial.toml") },
    Template { name: "cityscapes-standard", text: include_str!("templates/cityscapes-standard.toml") },
    Template { name: "voc-standard", text: include_str!("templates/voc-standard.toml") },
    Template { name: "coco-standard", text: include_str!("templates/coco-standard.toml") },
    Template { name: "coco-mask-rcnn", text: include_str!("templates/coco-mask-rcnn.toml") },
    Template { name: "equivariance-score", text: include_str!("templates/equivariance-score.toml") },
    Template { name: "views", text: include_str!("templates/views.toml") },
    Template { name: "radius", text: include_str!("templates/radius.toml") },
    Template { name: "constraints", text: include_str!("templates/constraints.toml") },
    Template { name: "sgld-sgd", text: include_str!("templates/sgld-sgd.toml") },
    Template { name: "targeted", text: include_str!("templates/targeted.toml") },
    Template { name: "cost", text: include_str!("templates/cost.toml") },
    Template { name: "detect-then-defend", text: include_str!("templates/detect-then-defend.toml") },
    Template { name: "corruptions", text: include_str!("templates/corruptions.toml") },
    Template { name: "foreign-data", text: include_str!("templates/foreign-data.toml") },
    Template { name: "error-estimate", text: include_str!("templates/error-estimate.toml") },
    Template { name: "protocol", text: include_str!("templates/protocol.toml") },
    Template { name: "cheap-defence", text: include_str!("templates/cheap-defence.toml") },
];

impl Experiment {
    /// The same cells for the first draw, with counts (steps, queries, draws, restarts) cut to about two: to see that everything runs, not what it
    /// comes to.
    pub fn quick(mut self) -> Self {
        let before = self.row_labels();
        self.attacks.iter_mut().for_each(|rule| cut::<AttackKind>(&rule.kind, &mut rule.knobs));
        self.defences.iter_mut().for_each(|rule| cut::<DefenceKind>(&rule.kind, &mut rule.knobs));
        self.seeds.truncate(1);
        // labels that tell a count have changed with it
        let renamed: HashMap<_, _> = before.into_iter().zip(self.row_labels()).collect();
        for name in self.attacks.iter_mut().flat_map(|rule| &mut rule.defences) {
            if let Some(new) = renamed.get(name) {
                name.clone_from(new);
            }
        }
        self
    }

    /// The labels of the rows, in order; none if they cannot be known before.
    fn row_labels(&self) -> Vec<String> {
        let rows = self.subjects.first().and_then(|subject| spec::defences(self, subject).ok());
        rows.unwrap_or_default().into_iter().map(|row| row.label).collect()
    }
}

/// The most of anything that a rehearsal does.
const MOST: u64 = 2;

/// Cuts every count that the entry reads, those left at their defaults as well.
fn cut<E: Entry>(kind: &str, given: &mut Given) {
    let Ok(spec) = Spec::<E>::named(kind) else { return };
    for knob in spec.knobs().filter(|knob| matches!(knob.kind, Kind::Whole(_))) {
        let name = [knob.name, knob.key].into_iter().find(|name| given.contains_key(*name));
        match name.and_then(|name| given.get_mut(name)) {
            Some(Sweep(values)) => cut_list(values),
            None => {
                let count = knob.get(spec.settings()).as_ref().and_then(count);
                if count.is_some_and(|count| count > MOST) {
                    given.insert(knob.key.into(), Sweep::one(Value::Whole(MOST)));
                }
            }
        }
    }
}

/// Cuts the values of a list; those that differ go on differing, so that cells do.
fn cut_list(values: &mut [Value]) {
    let mut counts: Vec<u64> = values.iter().filter_map(count).collect();
    counts.sort_unstable();
    counts.dedup();
    for value in values {
        if let Some(old) = count(value) {
            let rank = counts.iter().position(|c| *c == old).unwrap_or(0) as u64;
            *value = Value::Whole(old.min(MOST + rank));
        }
    }
}

fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Whole(count) => Some(*count),
        Value::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_template_can_be_read_and_rehearsed() {
        for template in TEMPLATES {
            let experiment = Experiment::parse(template.text, Path::new(template.name)).unwrap();
            assert_eq!(experiment.name, template.name);
            assert!(!template.about().is_empty());
            experiment.quick().check().unwrap();
        }
    }

    #[test]
    fn every_published_study_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let studies: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
        assert!(studies.len() > 5);
        studies
            .iter()
            .for_each(|path| assert!(Experiment::load(path).is_ok(), "{:?}", Experiment::load(path)));
    }

    #[test]
    fn a_rehearsal_has_the_same_cells_and_few_steps() {
        let text = "name='x'\n[[subject]]\nname='s'\nmodel='m'\ndata='d'\npath='p'\n[[attack]]\nkind='bpda-eot'\nsteps=[1, 9, 50]\n[[attack]]\nkind='apgd-t'";
        let quick = Experiment::parse(text, Path::new("x")).unwrap().quick();
        let columns = crate::experiment::spec::columns(&quick, &quick.subjects[0]).unwrap();
        let labels: Vec<&str> = columns.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(labels, ["clean", "bpda-eot T=1", "bpda-eot T=3", "bpda-eot T=4", "apgd-t"]);
        for column in &columns[1..] {
            let crate::experiment::Threat::Attack(aimed) = &column.threat else { panic!("an attack") };
            let settings = aimed.attack.settings();
            assert!(settings.draws <= 2 && settings.final_draws <= 2, "{settings:?}");
            assert!(column.label != "apgd-t" || settings.targets == 2, "{settings:?}");
        }
    }
}
