//! Tuning: what should be used on this network? A study underneath, in rounds that keep the better half of the candidates.
//!
//! Images fall into two halves, every other one. On the first, all candidates meet attackers who do not know of them, on few images, then half of the candidates on
//! twice as many, and so on; the last few meet attackers who aim through them, and [`Rule`] puts them in order. The second half judges those few: the first
//! that helps there too is taken. Every round is an experiment with the same keys in one store, so what was run is never run again: killed and started anew, tuning goes on.
//! Invariant: no figure that is reported comes from an image that put candidates in order.

mod candidates;
mod choice;
mod judged;
pub mod page;

pub use candidates::{Candidate, candidates};
pub use choice::{Choice, Rule, choose, front};
pub use judged::{Judged, judged};

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel::DetectorSpec;
use evenkeel::attack::AttackSettings;

use crate::experiment::{AttackRule, DetectorRule, Experiment, Given, SubjectRule, Sweep};
use crate::report::results::Results;
use crate::run::{Effort, Embedded, Study, Watch};
use crate::store::{Shard, Store};
use crate::{Error, Result};

/// How many minutes a run may take, by default.
pub const MINUTES: f64 = 20.0;
/// The attacks' radius by default, that of the table of attacks.
pub static EPSILON: LazyLock<String> =
    LazyLock::new(|| format!("{}/255", AttackSettings::default().epsilon_255));
/// How many points of the clean score may be lost, by default.
pub const CLEAN_LOSS: f64 = 2.0;

/// What to tune, and for how long.
#[derive(Clone, Debug)]
pub struct Request {
    /// The network and its images.
    pub subject: SubjectRule,
    /// The attacks' radius in 1/255.
    pub epsilon_255: f64,
    /// How long a run may take.
    pub time: Duration,
    /// The rule of the choice.
    pub rule: Rule,
    /// Where results go.
    pub folder: PathBuf,
    /// Workers.
    pub threads: usize,
    /// The root of everything random.
    pub seed: u64,
}

/// Where tuning stands.
#[derive(Clone, Debug)]
pub struct Stage<'a> {
    /// What is being done, in a line.
    pub words: String,
    /// What is known so far.
    pub so_far: &'a [Judged],
}

/// Takes notice of stages and of single results.
pub trait Notice: Watch {
    /// A stage begins.
    fn stage(&self, stage: &Stage<'_>);
}

/// What tuning came to.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// Every candidate that was judged by the second half.
    pub judged: Vec<Judged>,
    /// What the first half said of all candidates, for the page.
    pub chosen_by: Vec<Judged>,
    /// The choice.
    pub choice: Choice,
    /// Whether the time ran out before every stage was complete.
    pub cut_short: bool,
    /// What figures are: `mIoU`.
    pub metric: &'static str,
}

/// Images of the first half in the first round.
const FIRST: usize = 2;
/// Candidates that meet attackers who know them.
const FINALISTS: usize = 3;
/// The shares of the time that are over when choosing, when attacking with knowledge, and when judging end.
const SHARES: [f64; 3] = [0.4, 0.65, 1.0];

/// The part of the images that chooses, and the part that judges.
fn halves() -> Result<[Shard; 2]> {
    Ok([Shard::parse("1/2")?, Shard::parse("2/2")?])
}

fn given(pairs: &[(&str, evenkeel::settings::Value)]) -> Given {
    pairs.iter().map(|(key, value)| (key.to_string(), Sweep::one(value.clone()))).collect()
}

fn attack(name: &str, kind: &str, knobs: &[(&str, evenkeel::settings::Value)]) -> AttackRule {
    let (target, subjects, defences) = (None, Vec::new(), Vec::new());
    AttackRule { kind: kind.into(), name: Some(name.into()), target, subjects, defences, knobs: given(knobs) }
}

/// Attackers who know of no defence.
fn unaware() -> Vec<AttackRule> {
    vec![attack("pgd", "pgd", &[("steps", 20.into())]), attack("apgd-ce", "apgd-ce", &[("steps", 20.into())])]
}

/// Attackers who aim through the whole pipeline, averaged over draws and from a warm start, and one who fools all views at once.
fn aware() -> Vec<AttackRule> {
    let through = [
        ("steps", 10.into()),
        ("estimator", "identity".into()),
        ("draws", 2.into()),
        ("warm_steps", 20.into()),
        ("final_draws", 2.into()),
    ];
    vec![
        attack("through the pipeline", "apgd-ce", &through),
        attack("all views", "views-eot", &[("steps", 20.into())]),
    ]
}

/// The experiment of a round: these candidates on the first `images` images of each half.
fn experiment(request: &Request, candidates: &[&Candidate], images: usize, knowing: bool) -> Experiment {
    let detector =
        DetectorRule { kind: DetectorSpec::usual().name().into(), name: None, knobs: Given::new() };
    Experiment {
        name: "tune".into(),
        about: "What to use on this network".into(),
        seed: request.seed,
        seeds: vec![0],
        limit: Some(2 * images),
        epsilon_255: request.epsilon_255,
        objective: false,
        subjects: vec![request.subject.clone()],
        attacks: if knowing { [unaware(), aware()].concat() } else { unaware() },
        corruptions: Vec::new(),
        foreign: Vec::new(),
        defences: candidates.iter().map(|candidate| candidate.rule.clone()).collect(),
        detectors: vec![detector],
    }
}

/// What a round says of its candidates.
struct Known {
    all: Vec<Judged>,
    complete: bool,
    metric: &'static str,
}

struct Round<'a> {
    request: &'a Request,
    shelf: &'a [Embedded],
    stop: &'a AtomicBool,
    notice: &'a dyn Notice,
    begun: Instant,
}

impl Round<'_> {
    /// Runs candidates on a half until the share of the time is over, and says what is known of them; with whether the round is complete.
    fn run(
        &self,
        candidates: &[&Candidate],
        (images, half, knowing): (usize, Shard, bool),
        share: f64,
    ) -> Result<Known> {
        let experiment = experiment(self.request, candidates, images, knowing);
        experiment.check()?;
        let study = Study::load(experiment, self.shelf)?;
        let store = Store::open(&self.request.folder, half)?;
        let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let deadline = self.begun + self.request.time.mul_f64(share);
        let (mut store, outcome) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    if self.stop.load(Ordering::SeqCst) || Instant::now() > deadline {
                        over.store(true, Ordering::SeqCst);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let effort =
                Effort { threads: self.request.threads, shard: half, save_images: false, stop: &over };
            let ran = study.run(store, &effort, self.notice);
            done.store(true, Ordering::SeqCst);
            ran
        })?;
        if self.stop.load(Ordering::SeqCst) {
            let dir = self.request.folder.display();
            return Err(Error::Request(format!(
                "stopped before the end; everything made so far is in {dir}, and the same command goes on from there"
            )));
        }
        store.look_again()?;
        let results = Results::gather(&study.design, &store)?;
        let all = judged(&results, &store, candidates, half)?;
        Ok(Known { all, complete: !outcome.stopped, metric: results.metric(0) })
    }

    fn tell(&self, words: String, so_far: &[Judged]) {
        self.notice.stage(&Stage { words, so_far });
    }
}

/// How many images a subject has.
fn count(request: &Request, shelf: &[Embedded]) -> Result<usize> {
    let study = Study::load(experiment(request, &[], usize::MAX / 4, false), shelf)?;
    Ok(study.design.subjects[0].images.len())
}

/// Tunes.
///
/// # Errors
/// If there are fewer than four images, a file cannot be read, the network fails, or it was stopped.
pub fn tune(request: &Request, shelf: &[Embedded], stop: &AtomicBool, notice: &dyn Notice) -> Result<Tuned> {
    let all = candidates(request.epsilon_255);
    let (total, [choosing, judging]) = (count(request, shelf)?, halves()?);
    let half = total / 2;
    if half < 2 {
        return Err(Error::Request(format!(
            "{total} images are too few; half of them choose, half judge: at least 4"
        )));
    }
    let round = Round { request, shelf, stop, notice, begun: Instant::now() };
    let mut left: Vec<&Candidate> = all.iter().collect();
    let (mut images, mut known, mut cut_short) = (FIRST.min(half), Vec::<Judged>::new(), false);
    let mut chosen_by: Vec<Judged> = Vec::new();
    while left.len() > FINALISTS {
        round.tell(format!("{} candidates on {images} images", left.len()), &known);
        let Known { all, complete, .. } = round.run(&left, (images, choosing, false), SHARES[0])?;
        known = all;
        remember(&mut chosen_by, &known);
        let keep = if complete { (left.len() / 2).max(FINALISTS) } else { FINALISTS };
        cut_short |= !complete;
        left = survivors(&left, &known, keep, &request.rule);
        images = (2 * images).min(half);
    }
    round.tell(format!("attackers who know the last {} candidates", left.len()), &known);
    let now = round.run(&left, (images, choosing, true), SHARES[1])?;
    cut_short |= !now.complete;
    remember(&mut chosen_by, &now.all);
    round.tell(format!("{} candidates judged by the other images", left.len()), &now.all);
    let Known { all: judged, complete, metric } = round.run(&left, (half, judging, true), SHARES[2])?;
    cut_short |= !complete;
    let choice = choose(&now.all, &judged, &request.rule)?;
    Ok(Tuned { judged, chosen_by, choice, cut_short, metric })
}

/// The latest that is known of each candidate.
fn remember(all: &mut Vec<Judged>, now: &[Judged]) {
    all.retain(|old| now.iter().all(|new| new.label != old.label));
    all.extend(now.iter().cloned());
}

/// The candidates to go on with: those on the front first, by the rule's own order.
fn survivors<'c>(left: &[&'c Candidate], known: &[Judged], keep: usize, rule: &Rule) -> Vec<&'c Candidate> {
    let mut ranked: Vec<&'c Candidate> = Vec::new();
    for one in choice::ranked(known, rule) {
        let of = left.iter().find(|candidate| candidate.label == one.candidate);
        if let Some(candidate) = of.filter(|c| ranked.iter().all(|r| r.label != c.label)) {
            ranked.push(candidate);
        }
    }
    ranked.truncate(keep);
    // without any figure nothing can be told apart; then the first go on
    if ranked.is_empty() { left.iter().take(keep).copied().collect() } else { ranked }
}

/// Where the results of tuning a network go, unless told otherwise: `net.tune` beside it.
pub fn folder_beside(network: &Path) -> PathBuf {
    network.with_extension("tune")
}
