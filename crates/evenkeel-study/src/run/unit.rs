//! One unit of work: change an image, defend it, predict; and compare every prediction with the truth.
//!
//! Attacked images are rounded to eight bits, inside their budget, before they are evaluated, as a file would hold them; so is the image they start
//! from. Seeds come from the experiment's seed, the draw and the image's name, so they depend neither on order nor on shards; a defence is evaluated
//! with other random numbers than an attacker drew, except by one who knows them.

use std::cell::RefCell;
use std::time::Instant;

use evenkeel::attack::{Attack, Scenario};
use evenkeel::budget::{Budget, Norm};
use evenkeel::corrupt::Corruption;
use evenkeel::defence::DefenceSpec;
use evenkeel::detect::{Detector, Measure, Outputs, ViewOutputs};
use evenkeel::objective::{LossKind, Pairing, Progress, Terms, ViewObjective, ViewTerm};
use evenkeel::pipeline::Pipeline;
use evenkeel::task::{Prediction, Truth};
use evenkeel::{Image, Random};

use super::count;
use super::subject::{Sample, Subject};
use crate::experiment::{AimedAttack, Threat};
use crate::key::Key;
use crate::record::{Answered, Body, Clock, Detected, Entry, Evaluated, Passes, Shown, Tally};
use crate::{Error, Result};
use evenkeel_data::metric::key_of;

/// Groups of cells that stand for all in an error estimate.
const GROUPS: usize = 128;

/// The seeds of an image under a draw.
#[derive(Clone, Copy)]
pub(super) struct Seeds {
    attack: u64,
    pub(super) defence: u64,
    corruption: u64,
}

impl Seeds {
    pub(super) fn new(root: u64, draw: u64, id: &str) -> Self {
        let image = Random::new(root).fork(draw).fork(key_of(id));
        // the same weather for every draw
        let corruption = Random::new(root).fork(u64::MAX).fork(key_of(id)).seed();
        Self { attack: image.fork(0).seed(), defence: image.fork(1).seed(), corruption }
    }
}

/// Evaluates what is done with one image, against its truth.
pub(super) struct Evaluator<'a> {
    pub(super) subject: &'a Subject,
    pub(super) sample: &'a Sample,
    pub(super) target: Option<Truth>,
    /// The last image defended: rows that differ in the answer alone share it.
    last: RefCell<Option<Defended>>,
}

/// What a defence made of an image.
struct Defended {
    spec: DefenceSpec,
    seed: u64,
    from: Image,
    image: Image,
    cost: Cost,
}

/// What a unit took.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) passes: Passes,
    pub(super) seconds: f64,
}

/// Does something and says what it took.
pub(super) fn watched<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
    count::take();
    let start = Instant::now();
    let done = work()?;
    Ok((done, Cost { seconds: start.elapsed().as_secs_f64(), passes: count::take() }))
}

/// What an attack is made with.
pub(super) struct Adversary<'a> {
    pub(super) attack: Attack,
    /// What it aims through.
    pub(super) pipeline: Option<&'a Pipeline>,
    /// The objective that it keeps high.
    pub(super) objective: Option<&'a dyn ViewObjective>,
}

impl<'a> Evaluator<'a> {
    /// The evaluator for a threat, with its target if it has one.
    pub(super) fn new(subject: &'a Subject, sample: &'a Sample, threat: &Threat, root: u64) -> Result<Self> {
        let target = match threat {
            Threat::Attack(AimedAttack { target: Some(words), .. }) => {
                Some(target(subject, sample, words, root)?)
            }
            _ => None,
        };
        Ok(Self { subject, sample, target, last: RefCell::default() })
    }

    fn entry(&self, key: Key, body: Body, cost: Cost, answer_seconds: f64) -> Entry {
        let clock = clock(&cost, answer_seconds);
        Entry { key, id: self.sample.id.clone(), image: self.sample.hash, body, passes: cost.passes, clock }
    }

    /// The answer for an image, the pipeline's or the bare network's, compared with the truth; with the seconds that it took.
    fn evaluate(&self, image: &Image, pipeline: Option<(&Pipeline, u64)>) -> Result<(Evaluated, f64)> {
        let model = &self.subject.model;
        let start = Instant::now();
        let answered = match pipeline {
            Some((pipeline, seed)) => pipeline.read(image, true, seed)?,
            None => evenkeel::Answer::plain().read(model, image, 0)?,
        };
        let (scores, prediction) = (answered.scores, answered.prediction);
        let seconds = start.elapsed().as_secs_f64();
        let truth = &self.sample.truth;
        let loss = match model.task.own_loss(truth) {
            Some(own) => own?.evaluate(&scores)?.0,
            None => {
                let labels = model.task.labels(truth, scores.extents(&model.output)?, image.size())?;
                let loss = evenkeel::objective::Loss::against(LossKind::CrossEntropy, labels);
                loss.evaluate(&scores, Progress::ONCE)?.0
            }
        };
        let score = model.task.score(&prediction, truth);
        let evaluated = Evaluated {
            score,
            loss,
            to_target: self.target.as_ref().map(|t| model.task.score(&prediction, t)),
            tally: self.tally(&prediction, score)?,
        };
        Ok((evaluated, seconds))
    }

    fn tally(&self, prediction: &Prediction, score: f64) -> Result<Tally> {
        let own = &self.sample.own;
        let on_image = prediction.unframed(&self.sample.frame)?;
        Tally::of(&on_image, &own.truth, &self.subject.model.class_info(), own.objects.as_deref(), score)
    }

    /// The image of a work, and what is recorded of it.
    pub(super) fn show(
        &self,
        key: Key,
        threat: &Threat,
        adversary: Option<&Adversary<'_>>,
        seeds: Seeds,
    ) -> Result<(Entry, Image)> {
        let clean = &self.sample.image;
        let ((image, value, seen_score), cost) = watched(|| match (threat, adversary) {
            (Threat::Clean | Threat::Foreign { .. }, _) => Ok((clean.clone(), None, None)),
            (Threat::Corruption { kind, severity }, _) => {
                let corrupted = Corruption::named(kind)?.apply(clean, *severity, seeds.corruption)?;
                Ok((corrupted.rounded_to_8_bits(), None, None))
            }
            (Threat::Attack(_), Some(adversary)) => {
                let outcome = self.attack(adversary, seeds)?;
                let value = outcome.value.is_finite().then_some(outcome.value);
                let budget = adversary.attack.settings().budget();
                Ok((budget.rounded(clean, &outcome.image), value, Some(outcome.score)))
            }
            (Threat::Attack(_), None) => Err(Error::Request("an attack needs an attacker".into())),
        })?;
        let term_gradient = match adversary.and_then(|a| a.objective) {
            Some(objective) => Some(self.term_gradient(objective, &image, seeds)?),
            None => None,
        };
        let (answer, answer_seconds) = self.evaluate(&image, None)?;
        let (linf_255, l2) = distances(clean, &image);
        let shown = Shown { answer, linf_255, l2, value, seen_score, term_gradient };
        Ok((self.entry(key, Body::Shown(shown), cost, answer_seconds), image))
    }

    fn attack(&self, adversary: &Adversary<'_>, seeds: Seeds) -> Result<evenkeel::attack::Outcome> {
        let scenario = Scenario {
            target: self.target.as_ref(),
            pipeline: adversary.pipeline,
            objective: adversary.objective,
            ..Scenario::new(&self.subject.model, &self.sample.image, &self.sample.truth)
        };
        let known = adversary.attack.settings().known_draw && adversary.pipeline.is_some();
        let seed = if known { seeds.defence } else { seeds.attack };
        Ok(adversary.attack.clone().seed(seed).run(&scenario)?)
    }

    /// How long the gradient of an objective alone is: zero would mean that an adaptive attacker's second term does nothing.
    fn term_gradient(&self, objective: &dyn ViewObjective, image: &Image, seeds: Seeds) -> Result<f64> {
        let model = &self.subject.model;
        let views = vec![ViewTerm { weight: 1.0, objective }];
        let terms = Terms { output: None, feature: &model.feature, losses: vec![], views };
        let random = Random::new(seeds.attack).fork(u64::MAX);
        let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, true)?;
        let square = |g: &Vec<f32>| g.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        Ok(seen.gradient.as_ref().map_or(0.0, square).sqrt())
    }

    /// A defended answer, and the image it was given for.
    pub(super) fn answer(
        &self,
        key: Key,
        (pipeline, spec): (&Pipeline, &DefenceSpec),
        image: &Image,
        seeds: Seeds,
        measure: bool,
    ) -> Result<(Entry, Image)> {
        let defence = pipeline.defence.as_deref();
        let (defended, mut cost) = self.defended((pipeline, spec), image, seeds.defence)?;
        let (answer, answer_seconds) = self.evaluate(&defended, Some((pipeline, seeds.defence)))?;
        cost.passes = cost.passes.plus(count::beyond_one());
        let raised = defence.and_then(|defence| defence.objective.as_deref());
        let objective = |shown: &Image| match (raised, measure) {
            (Some(objective), true) => self.objective(objective, spec, shown).map(Some),
            _ => Ok(None),
        };
        let (linf_255, l2) = distances(image, &defended);
        let (objective_before, objective_after) = (objective(image)?, objective(&defended)?);
        let answered = Answered { answer, linf_255, l2, objective_before, objective_after };
        Ok((self.entry(key, Body::Answered(answered), cost, answer_seconds), defended))
    }

    /// The image that a defence makes of this one, and what that takes; the last one again if it was asked for the same.
    fn defended(
        &self,
        (pipeline, spec): (&Pipeline, &DefenceSpec),
        image: &Image,
        seed: u64,
    ) -> Result<(Image, Cost)> {
        let same = |last: &&Defended| last.seed == seed && last.spec == *spec && last.from == *image;
        if let Some(last) = self.last.borrow().as_ref().filter(same) {
            count::take();
            return Ok((last.image.clone(), last.cost));
        }
        let Some(defence) = pipeline.defence.as_deref() else { return watched(|| Ok(image.clone())) };
        let (defended, cost) = watched(|| Ok(defence.apply(&self.subject.model, image, seed)?.image))?;
        let (spec, from) = (spec.clone(), image.clone());
        self.last.replace(Some(Defended { spec, seed, from, image: defended.clone(), cost }));
        Ok((defended, cost))
    }

    /// A defence's objective at an image, for the same views every time; that of equivariance and invariance per comparison.
    fn objective(&self, objective: &dyn ViewObjective, spec: &DefenceSpec, image: &Image) -> Result<f64> {
        let model = &self.subject.model;
        let views = vec![ViewTerm { weight: 1.0, objective }];
        let terms = Terms { output: None, feature: &model.feature, losses: vec![], views };
        let random = Random::new(key_of(&self.sample.id));
        let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, false)?;
        let count = objective.draw(&random.fork(0)).len() as f64;
        let pairs = spec.knobs().any(|knob| knob.name == "pairing");
        let comparisons = match spec.settings().pairing {
            _ if !pairs => 1.0,
            Pairing::Anchor => count,
            Pairing::AllPairs => count * (count + 1.0) / 2.0,
        };
        Ok(seen.value / comparisons)
    }

    /// A detector's score of an image; with it, where that is an error estimate, what the estimate is made of.
    pub(super) fn detect(&self, key: Key, detector: &Detector, image: &Image) -> Result<Entry> {
        let model = &self.subject.model;
        let (detected, cost) = watched(|| {
            if !matches!(detector.measure, Measure::Error) {
                let score = detector.score(model, image)?;
                return Ok(Detected { score, variances: Vec::new(), cells: 0, true_error: None });
            }
            let views = detector.views.draw(&Random::new(detector.seed));
            let outputs = ViewOutputs::at(model, image, &views, Outputs::Softmax)?;
            let score = evenkeel::detect::expected_error(&outputs.cell_variances(), 0.0);
            // cells without a label take no part in the estimate that is held against the truth
            let Some(known) = outputs.labelled(model, &self.sample.truth)? else {
                return Ok(Detected { score, variances: Vec::new(), cells: 0, true_error: None });
            };
            let cells = known.variances.len();
            Ok(Detected { score, variances: grouped(known.variances), cells, true_error: Some(known.error) })
        })?;
        Ok(self.entry(key, Body::Detected(detected), cost, 0.0))
    }
}

/// The means of groups of equal number, in rising order.
fn grouped(mut variances: Vec<f32>) -> Vec<f32> {
    variances.sort_by(f32::total_cmp);
    let groups = GROUPS.min(variances.len());
    let mean = |k: usize| {
        let part = &variances[k * variances.len() / groups..(k + 1) * variances.len() / groups];
        (part.iter().map(|v| f64::from(*v)).sum::<f64>() / part.len() as f64) as f32
    };
    (0..groups).map(mean).collect()
}

fn distances(from: &Image, to: &Image) -> (f64, f64) {
    let distance = |norm| Budget { norm, radius: 0.0 }.distance(from, to);
    (255.0 * distance(Norm::Linf), distance(Norm::L2))
}

/// What an attacker wants said: the truth with its classes renamed, or one class everywhere (of every object).
fn target(subject: &Subject, sample: &Sample, words: &str, root: u64) -> Result<Truth> {
    let model = &subject.model;
    let fail = |reason: &dyn std::fmt::Display| Error::Request(format!("target {words}: {reason}"));
    let wanted = model.task.target(words, &sample.truth, &model.class_info(), root).map_err(|e| fail(&e))?;
    wanted.ok_or_else(|| fail(&format!("write permuted, or a class number below {}", model.classes)))
}

/// What a unit took on the clock, now that it is done.
pub(super) fn clock(cost: &Cost, answer_seconds: f64) -> Clock {
    Clock { seconds: cost.seconds, answer_seconds, peak_bytes: peak_bytes(), made_at_ms: now_ms() }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |passed| passed.as_millis() as u64)
}

/// The most memory this process has held so far; 0 where the system does not say.
pub(super) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
