//! What the demo does: for every picture, predict, attack, score, defend, and tally.

use super::subject::{DemoTask, Sample, Tally};
use anyhow::{Context, Result};
use evenkeel::answer::AnswerSpec;
use evenkeel::attack::{Attack, Scenario};
use evenkeel::defence::{DefenceKind, DefenceSpec};
use evenkeel::detect::{Detector, DetectorSpec, Heads, Outputs, ViewOutputs};
use evenkeel::model::Model;
use evenkeel::optimise::Record;
use evenkeel::settings::names;
use evenkeel::task::{Prediction, Truth, best_classes};
use evenkeel::{Image, LabelMap, Pipeline, Random};
use evenkeel_data::metric::{Bootstrap, IGNORE, Ranking};
use evenkeel_study::report::picture::{Picture, Shown, magnified};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

/// Pictures that get panels on the page.
const SHOWN: usize = 4;
/// The defence whose image and steps are shown, and that is followed by a vote as well.
const SHOWN_DEFENCE: &str = evenkeel::defence::USUAL;

/// The attack, with the settings that `evenkeel attack` gives it.
pub(super) fn attack() -> Attack {
    Attack::usual()
}

/// How hard to try.
pub(super) struct Effort {
    pub(super) steps: usize,
    pub(super) seed: u64,
}

/// One line of a table, in [0, 1].
pub(super) struct Row {
    pub(super) defence: String,
    pub(super) clean: f64,
    pub(super) attacked: f64,
}

/// What came out for one network.
pub(super) struct Report {
    pub(super) title: String,
    pub(super) figure: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) auroc: Option<f64>,
    /// (score, attacked).
    pub(super) scores: Vec<(f64, bool)>,
    /// The steps of the defence that is shown, on the first picture.
    pub(super) trace: Vec<Record>,
    pub(super) panels: Vec<Panel>,
    /// What took how many seconds a picture.
    pub(super) seconds: Vec<(&'static str, f64)>,
}

/// Runs the demo on pictures of one kind.
pub(super) fn run(task: DemoTask, count: usize, effort: &Effort) -> Result<Report> {
    let model = task.network()?.model()?;
    Trial::new(&model, task, count, effort)?.run()
}

struct Trial<'m> {
    model: &'m Model,
    task: DemoTask,
    count: usize,
    seed: u64,
    contenders: Vec<Contender>,
    detector: Detector,
}

/// One line of the table: a defence, and how the answer is read off what it leaves.
struct Contender {
    label: String,
    pipeline: Pipeline,
}

/// The answers for one picture: by defence, clean and attacked.
struct Answers {
    attacked: Image,
    defended: Image,
    by_defence: Vec<[Prediction; 2]>,
    trace: Vec<Record>,
    scores: [f64; 2],
}

impl<'m> Trial<'m> {
    fn new(model: &'m Model, task: DemoTask, count: usize, effort: &Effort) -> Result<Self> {
        let network = task.network()?;
        let shared = Arc::new(model.clone());
        let contender = |name: &str, answer: &str| {
            let heads = network.heads_for(name)?;
            let mut spec = DefenceSpec::named(name)?;
            if spec.takes_gradients() {
                let steps = spec.settings().steps.min(effort.steps);
                spec = spec.with("steps", steps)?;
            }
            let label = match (name, answer) {
                (name, "plain") => name.to_string(),
                ("none", answer) => answer.to_string(),
                (name, answer) => format!("{name} + {answer}"),
            };
            let answer = AnswerSpec::named(answer)?.build(model)?;
            let pipeline = Pipeline::new(shared.clone()).with_defence(spec.build(model, &heads)?);
            Ok(Contender { label, pipeline: pipeline.with_answer(answer) })
        };
        let mut contenders = vec![contender("none", "plain")?, contender("none", "vote")?];
        let rest = names::<DefenceKind>().into_iter().filter(|name| *name != "none");
        contenders.extend(rest.map(|name| contender(name, "plain")).collect::<Result<Vec<_>>>()?);
        contenders.push(contender(SHOWN_DEFENCE, "vote")?);
        let detector = DetectorSpec::usual().with("seed", effort.seed)?.build(model, Heads::default())?;
        Ok(Self { model, task, count, seed: effort.seed, contenders, detector })
    }

    fn run(&self) -> Result<Report> {
        let (figure, pictures, count) = (self.task.figure(), self.task.pictures(), self.count);
        let radius = attack().settings().epsilon_255;
        let number = if count == 1 { "1 picture".to_string() } else { format!("{count} pictures") };
        let title = format!("{pictures}, {number}: {figure}, before and after PGD at {radius}/255");
        let tally = |_| [self.task.tally(), self.task.tally()];
        let mut tallies: Vec<[Tally; 2]> = self.contenders.iter().map(tally).collect();
        let mut ranking = Ranking::new(Bootstrap::NONE);
        let mut report = Report {
            title,
            figure,
            rows: Vec::new(),
            auroc: None,
            scores: Vec::new(),
            trace: Vec::new(),
            panels: Vec::new(),
            seconds: Vec::new(),
        };
        let mut clock = Clock::default();
        // Off a terminal the bar is silent, so the stage is named once.
        if !std::io::stderr().is_terminal() {
            eprintln!("{pictures}: predict, attack, score and defend {count} pictures");
        }
        let bar = ProgressBar::new(count as u64);
        bar.set_style(ProgressStyle::with_template("{msg} {pos}/{len} {wide_bar}")?);
        bar.set_message(pictures);
        // Pictures side by side keep all threads busy; they are taken in by their order.
        let evaluated: Vec<(Sample, Answers, Clock)> = (0..self.count as u64)
            .into_par_iter()
            .map(|number| {
                let mut clock = Clock::default();
                let subject = clock.time("render", || self.task.subject(number, &self.model.class_ids))?;
                let answers = self.answers(&subject, number, &mut clock)?;
                bar.inc(1);
                Ok((subject, answers, clock))
            })
            .collect::<Result<_>>()?;
        for (number, (subject, answers, spent)) in (0..).zip(evaluated) {
            clock.join(&spent);
            for (tally, answer) in tallies.iter_mut().zip(&answers.by_defence) {
                for k in 0..2 {
                    tally[k].add(number, &answer[k], &subject, &self.model.class_ids)?;
                }
            }
            for (score, attacked) in answers.scores.into_iter().zip([false, true]) {
                ranking.push(number, score, attacked)?;
                report.scores.push((score, attacked));
            }
            if report.panels.len() < SHOWN {
                let views = report.panels.is_empty().then(|| self.views(&answers.attacked)).transpose()?;
                report.panels.push(self.panel(&subject, &answers, views.unwrap_or_default())?);
            }
            if number == 0 {
                report.trace = answers.trace;
            }
        }
        bar.finish_and_clear();
        for (contender, [clean, attacked]) in self.contenders.iter().zip(&tallies) {
            let (clean, attacked) = (clean.figure(), attacked.figure());
            report.rows.push(Row { defence: contender.label.clone(), clean, attacked });
        }
        report.auroc = ranking.figures().map(|f| f.auroc);
        report.seconds = clock.per_picture(self.count);
        Ok(report)
    }

    fn answers(&self, subject: &Sample, number: u64, clock: &mut Clock) -> Result<Answers> {
        let (model, image) = (self.model, &subject.image);
        let seed = Random::new(self.seed).fork(number).seed();
        let attacked = clock.time("attack", || self.attack(subject, seed))?;
        let mut by_defence = Vec::new();
        let mut last = (attacked.clone(), Vec::new());
        for Contender { label, pipeline } in &self.contenders {
            // Each scores the clean and the attacked image.
            let name = match label.as_str() {
                "none" => "predict, twice",
                label if label == SHOWN_DEFENCE => "defend, twice",
                _ => "rivals, twice each",
            };
            let answer = clock.time(name, || {
                let [on_clean, on_attacked] =
                    [image, &attacked].map(|shown| pipeline.run_seeded(shown, seed));
                let (on_clean, on_attacked) = (on_clean?, on_attacked?);
                if label == SHOWN_DEFENCE {
                    last = (on_attacked.shown, on_attacked.trace);
                }
                Ok([on_clean.prediction, on_attacked.prediction])
            })?;
            by_defence.push(answer);
        }
        let scores = clock.time("detect, twice", || {
            Ok([self.detector.score(model, image)?, self.detector.score(model, &attacked)?])
        })?;
        Ok(Answers { attacked, defended: last.0, by_defence, trace: last.1, scores })
    }

    /// The attacked image, as it would come out of a PNG file.
    fn attack(&self, subject: &Sample, seed: u64) -> Result<Image> {
        let scenario = Scenario::new(self.model, &subject.image, &subject.truth);
        let attack = attack().seed(seed);
        let outcome = attack.run(&scenario)?;
        Ok(attack.settings().budget().rounded(&subject.image, &outcome.image))
    }

    /// What each view says, brought back to the image's own grid.
    fn views(&self, image: &Image) -> Result<Vec<LabelMap>> {
        if self.task != DemoTask::Scenes {
            return Ok(Vec::new());
        }
        let views = self.detector.views.draw(&Random::new(self.seed));
        let outputs = ViewOutputs::at(self.model, image, &views, Outputs::Softmax)?;
        let (height, width) = outputs.extents.size();
        let map = |(seen, mask): &(Vec<f32>, Vec<f32>)| -> Result<LabelMap> {
            let labels = best_classes(seen, outputs.extents);
            let shown = labels.iter().zip(mask).map(|(&l, &m)| if m > 0.5 { l } else { IGNORE }).collect();
            Ok(LabelMap::new(height, width, shown)?.resized(image.height(), image.width()))
        };
        outputs.views.iter().map(map).collect()
    }

    fn panel(&self, subject: &Sample, answers: &Answers, views: Vec<LabelMap>) -> Result<Panel> {
        let none = &answers.by_defence[0];
        let shown = self.contenders.iter().position(|one| one.label == SHOWN_DEFENCE);
        let last = &answers.by_defence[shown.context("there is a defence")?];
        let answer = |said: &Prediction| self.picture(said, &subject.image);
        let mut pictures = vec![
            Picture::new("image", &subject.image),
            Picture::labelled("truth", self.picture(&subject.truth.as_prediction(), &subject.image)?),
            Picture::labelled("prediction, clean", answer(&none[0])?),
            Picture::new("attacked image", &answers.attacked),
            Picture::new(
                "perturbation, magnified",
                &magnified(&subject.image, &answers.attacked, attack().settings().budget().radius),
            ),
            Picture::labelled("prediction, attacked", answer(&none[1])?),
            Picture::new("defended image", &answers.defended),
            Picture::labelled("prediction, defended", answer(&last[1])?),
        ];
        for (k, view) in views.iter().enumerate() {
            let name = format!("attacked, seen through view {k}");
            pictures.push(Picture::labelled(
                &name,
                self.picture(&Truth::of_labels(view.clone()).as_prediction(), &subject.image)?,
            ));
        }
        Ok(Panel { pictures })
    }

    /// An answer as it is shown: a picture, or words where it is none.
    fn picture(&self, said: &Prediction, image: &Image) -> Result<Shown> {
        let painting = said.paint(image, 1.0, &self.model.class_info())?;
        Ok(match painting.caption {
            Some(words) => Shown::Word(words),
            None => Shown::Image(painting.image),
        })
    }
}

/// The pictures of one scene.
pub(super) struct Panel {
    pub(super) pictures: Vec<Picture>,
}

/// Seconds by task.
#[derive(Default)]
struct Clock {
    spent: Vec<(&'static str, f64)>,
}

impl Clock {
    fn time<T>(&mut self, name: &'static str, task: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let done = task();
        self.add(name, start.elapsed().as_secs_f64());
        done
    }

    fn join(&mut self, other: &Self) {
        other.spent.iter().for_each(|(name, seconds)| self.add(name, *seconds));
    }

    fn add(&mut self, name: &'static str, seconds: f64) {
        match self.spent.iter_mut().find(|(n, _)| *n == name) {
            Some((_, sum)) => *sum += seconds,
            None => self.spent.push((name, seconds)),
        }
    }

    fn per_picture(&self, count: usize) -> Vec<(&'static str, f64)> {
        self.spent.iter().map(|(name, sum)| (*name, sum / count as f64)).collect()
    }
}
