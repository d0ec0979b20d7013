//! A fifth task, for tests: how many there are. It shows what a task takes: this folder, and its line in the table. Nothing else knows of it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::{NO_TENSORS, no_table};
use super::{
    ClassInfo, Painting, Prediction, PredictionData, Readout, ScoreLoss, Signs, Task, TaskKind, Truth,
    TruthData, TruthSource,
};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::Tensor;
use crate::view::Letterbox;

pub(super) const KIND: TaskKind = TaskKind {
    name: "counting",
    about: "how many there are",
    figure: "mean-score",
    estimates_error: false,
    keys: &[],
    tensors: NO_TENSORS,
    signs: Signs::NONE,
    check: |own| no_table("counting", own),
    make: |_, _| Ok(Box::new(Counting)),
};

#[derive(Debug)]
struct Counting;

#[derive(Debug)]
struct TrueCount(u32);

#[derive(Debug)]
struct CountAnswer(f32);

#[derive(Debug)]
struct Distance(u32);

impl TruthData for TrueCount {
    fn bytes(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn kind(&self) -> &'static str {
        "a count"
    }

    fn as_prediction(&self) -> Prediction {
        Prediction::new(CountAnswer(self.0 as f32))
    }

    fn framed(&self, _: &Letterbox) -> Result<Truth> {
        Ok(Truth::new(Self(self.0)))
    }
}

impl PredictionData for CountAnswer {
    fn as_truth(&self) -> Truth {
        Truth::new(TrueCount(self.0.max(0.0).round() as u32))
    }

    fn same(&self, other: &Prediction) -> bool {
        other.get::<Self>().is_some_and(|other| other.0 == self.0)
    }

    fn words(&self, _: &ClassInfo<'_>) -> String {
        format!("{:.0} of them", self.0)
    }

    fn json(&self, _: &ClassInfo<'_>) -> Value {
        json!({ "count": self.0 })
    }

    fn paint(&self, under: &Image, _: f32, classes: &ClassInfo<'_>) -> Result<Painting> {
        Ok(Painting { caption: Some(self.words(classes)), ..Painting::of(under.clone()) })
    }

    fn unframed(&self, _: &Letterbox) -> Result<Prediction> {
        Ok(Prediction::new(Self(self.0)))
    }
}

impl ScoreLoss for Distance {
    fn evaluate(&self, scores: &Tensor) -> Result<(f64, Vec<f32>)> {
        let apart = scores.data()[0] - self.0 as f32;
        Ok((f64::from(apart).abs(), scores.data().iter().map(|_| apart.signum()).collect()))
    }
}

fn count_of(truth: &Truth) -> Result<u32> {
    truth.get::<TrueCount>().map(|t| t.0).ok_or_else(|| truth.mismatch("truth of a counter", "a count"))
}

impl Task for Counting {
    fn kind(&self) -> &'static TaskKind {
        &KIND
    }

    fn readout(&self) -> Readout {
        Readout::Values
    }

    fn classes(&self, _: &Tensor) -> Result<usize> {
        Ok(0)
    }

    fn predict(&self, scores: &Tensor, _: (usize, usize)) -> Result<Prediction> {
        scores.check_finite("count")?;
        Ok(Prediction::new(CountAnswer(scores.data()[0])))
    }

    fn own_loss(&self, truth: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        Some(count_of(truth).map(|count| -> Arc<dyn ScoreLoss> { Arc::new(Distance(count)) }))
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        f64::from(u8::from(prediction.as_truth() == *truth))
    }

    fn check_truth(&self, truth: &Truth, _: usize, _: (usize, usize), _: &str) -> Result<()> {
        count_of(truth).map(|_| ())
    }

    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth> {
        let count = source.given.parse().map_err(|_| Error::setting(source.given, "is no count"))?;
        Ok(Truth::new(TrueCount(count)))
    }

    fn target(&self, wish: &str, _: &Truth, _: &ClassInfo<'_>, _: u64) -> Result<Option<Truth>> {
        Ok(wish.parse().ok().map(|count| Truth::new(TrueCount(count))))
    }
}

mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::attack::{Attack, Scenario};
    use crate::detect::{DetectorSpec, Heads};
    use crate::model::{Contract, Model};
    use crate::pipeline::Pipeline;
    use crate::toy::{Conv, picture};
    use crate::{AnswerSpec, DefenceSpec};

    /// A contract that names it, a model, an attack, a defence, a vote, a detector, words, JSON and a picture: all without a word about it elsewhere.
    #[test]
    fn a_fifth_task_is_one_folder_and_one_line() {
        let text = "task = 'counting'\noutput = 'scores'\nfeature = 'features'\n[input]\norder = 'rgb'\nscale = 1.0\n\
                    mean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]\nresize = 'refuse'";
        let contract = Contract::parse(text, Path::new("net.evenkeel.toml")).unwrap();
        let kind = TaskKind::find(&contract.task).unwrap();
        let task = kind.make(contract.own_table(), None).unwrap();
        let network = Box::new(Conv::random(&[6, 8], 1, true, 4));
        let model = Arc::new(Model::new(network, task, "scores", "features"));
        let image = picture((16, 20), 1);
        let (said, classes) = (model.predict(&image).unwrap(), model.class_info());
        assert!(said.words(&classes).ends_with("of them") && said.json(&classes)["count"].is_number());
        assert!(said.paint(&image, 0.5, &classes).unwrap().caption.is_some());
        let frame = model.framing(image.size()).unwrap();
        let none = |_: &TruthSource<'_>| Ok(Vec::new());
        let source =
            TruthSource { given: "3", picture: Path::new("a.png"), frame: &frame, classes, objects: none };
        let truth = model.task.read_truth(&source).unwrap();
        assert_eq!(truth, model.task.target("3", &truth, &classes, 0).unwrap().unwrap());
        let attack = Attack::named("pgd").unwrap().epsilon(0.05).with("steps", 3).unwrap();
        let outcome = attack.run(&Scenario::new(&model, &image, &truth)).unwrap();
        assert!(attack.settings().budget().contains(&image, &outcome.image));
        let defence = DefenceSpec::named("equivariance").unwrap().with("steps", 1).unwrap();
        let pipeline = Pipeline::new(model.clone())
            .with_defence(defence.build(&model, &Heads::default()).unwrap())
            .with_answer(AnswerSpec::named("vote").unwrap().build(&model).unwrap())
            .with_detector(DetectorSpec::named("variance").unwrap().build(&model, Heads::default()).unwrap());
        let verdict = pipeline.run(&outcome.image).unwrap();
        assert!(verdict.score.unwrap().is_finite() && verdict.prediction.get::<CountAnswer>().is_some());
    }
}
