//! Templates: a commented experiment for every table and figure of the paper, for the protocol, and for the question of cheap defences.
//!
//! Each runs as it is, on networks and scenes that come with the program. [`Experiment::quick`] makes any experiment a rehearsal: the same
//! cells, next to no steps.

use super::{Experiment, Sweep};

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
pub const TEMPLATES: [Template; 18] = [
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
    Template { name: "error-estimate", text: include_str!("templates/error-estimate.toml") },
    Template { name: "protocol", text: include_str!("templates/protocol.toml") },
    Template { name: "cheap-defence", text: include_str!("templates/cheap-defence.toml") },
];

impl Experiment {
    /// The same cells for the first draw, with counts of steps and queries cut to about two: to see that everything runs, not what it comes to.
    pub fn quick(mut self) -> Self {
        let most = |sweep: &mut Sweep<usize>| {
            // values stay apart, so that cells do
            let mut values = sweep.0.clone();
            values.sort_unstable();
            values.dedup();
            let rank = |v: &usize| values.iter().position(|w| w == v).unwrap_or(0);
            let cut = sweep.0.iter().map(|v| (*v).min(2 + rank(v))).collect();
            sweep.0 = cut;
        };
        for attack in &mut self.attacks {
            most(&mut attack.steps);
            most(&mut attack.draws);
            attack.targets = attack.targets.min(2);
            attack.warm_steps = attack.warm_steps.min(2);
        }
        self.defences.iter_mut().for_each(|defence| most(&mut defence.steps));
        self.seeds.truncate(1);
        self
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
        }
    }
}
