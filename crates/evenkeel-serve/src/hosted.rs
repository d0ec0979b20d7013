//! A model as it is served: its name, what protects it, what requests may choose, and what it was found to cost.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use evenkeel::detect::{Calibration, Detector, DetectorSpec, Heads};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::policy::Policy;
use evenkeel::shipped::Shipped;

use crate::choice::{Allowed, Choice};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::watched::Passes;

/// A clean picture and an attacked one, to be tried on the page.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The clean PNG file.
    pub clean: &'static [u8],
    /// The attacked PNG file.
    pub attacked: &'static [u8],
}

macro_rules! example {
    ($name:literal) => {
        Example {
            clean: include_bytes!(concat!("examples/", $name, ".clean.png")),
            attacked: include_bytes!(concat!("examples/", $name, ".attacked.png")),
        }
    };
}

/// The pairs in the binary; `examples/pairs.rs` made them.
static EXAMPLES: [(&str, Example); 3] = [
    ("segmenter", example!("segmenter")),
    ("classifier", example!("classifier")),
    ("instances", example!("instances")),
];

impl Example {
    /// The pair of a shipped network, if it has one.
    pub fn of(shipped: &str) -> Option<Self> {
        EXAMPLES.iter().find(|(name, _)| *name == shipped).map(|(_, example)| *example)
    }
}

/// A model that is served.
pub struct Hosted {
    /// Its name in requests.
    pub name: String,
    /// The model.
    pub model: Arc<Model>,
    /// The detector that scores images.
    pub detector: Arc<Detector>,
    /// The threshold of its score and where it came from, if it was calibrated.
    pub calibration: Option<Calibration>,
    /// What requests may choose.
    pub allowed: Allowed,
    /// The most pixels of an image, if the network has no size of its own.
    pub most_pixels: usize,
    /// The policy that decides, if there is one.
    pub policy: Option<Policy>,
    /// A pair to try.
    pub example: Option<Example>,
    /// What its network has done.
    pub passes: Arc<Passes>,
    shipped: Option<&'static Shipped>,
    costs: Mutex<HashMap<String, f64>>,
    shapes: OnceLock<Vec<Vec<i64>>>,
}

/// So many kinds of requests have their costs remembered.
const REMEMBERED: usize = 256;
/// The weight of the newest cost.
const NEWEST: f64 = 0.2;

impl Hosted {
    /// A model under a name that requests use.
    ///
    /// # Errors
    /// If the name cannot stand in an address, or the calibration does not fit the model.
    pub fn new(name: &str, model: Model, calibration: Option<Calibration>) -> Result<Self> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 100 || !name.chars().all(fine) {
            let reason =
                "a model's name in addresses is made of letters, digits, `.`, `_` and `-`; rename the file";
            return Err(Error::setup(format!("model {name:?}"), reason));
        }
        let detector = match &calibration {
            Some(calibration) => calibration.detector(&model, Heads::default())?,
            None => DetectorSpec::usual().build(&model, Heads::default())?,
        };
        let allowed = Allowed { default: Choice::default(), free: true, most: 200 };
        Ok(Self {
            name: name.to_owned(),
            model: Arc::new(model),
            detector: Arc::new(detector),
            calibration,
            allowed,
            most_pixels: Limits::default().network_pixels(),
            policy: None,
            example: None,
            passes: Arc::default(),
            shipped: None,
            costs: Mutex::default(),
            shapes: OnceLock::new(),
        })
    }

    /// A network's file, its contract and (if there are any) its calibration and its policy beside it; it is named after the file.
    /// `obey_policy` is false where a policy beside it is to be left alone.
    ///
    /// # Errors
    /// If they cannot be read or do not belong together.
    pub fn load(path: &Path, obey_policy: bool) -> Result<Self> {
        let model = Model::load(path)?;
        let beside = path.with_extension("calibration.toml");
        let calibration = beside.exists().then(|| Calibration::load(&beside, &model)).transpose()?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let policy = if obey_policy { Policy::beside(path, &model)? } else { None };
        let hosted = Self::new(&name, model, calibration)?;
        match policy {
            Some(policy) => hosted.with_policy(policy),
            None => Ok(hosted),
        }
    }

    /// A network of the crate, with its calibration and a pair to try if there is one.
    ///
    /// # Errors
    /// Never, unless the crate was damaged.
    pub fn shipped(shipped: &'static Shipped) -> Result<Self> {
        let model = shipped.model()?;
        let calibration = shipped.calibration(&model)?;
        let hosted = Self::new(shipped.name, model, Some(calibration))?;
        Ok(Self { shipped: Some(shipped), example: Example::of(shipped.name), ..hosted })
    }

    /// The same with a pair to try.
    #[must_use]
    pub fn with_example(self, example: Example) -> Self {
        Self { example: Some(example), ..self }
    }

    /// The same with a calibration.
    ///
    /// # Errors
    /// If its detector cannot be built for the model.
    pub fn with_calibration(self, calibration: Calibration) -> Result<Self> {
        let detector = Arc::new(calibration.detector(&self.model, Heads::default())?);
        Ok(Self { detector, calibration: Some(calibration), ..self })
    }

    /// The same under a policy: it decides what is done, and requests choose only the seed and whether to defend without an alarm.
    ///
    /// # Errors
    /// If it was made for another network, or its detector cannot be built.
    pub fn with_policy(self, policy: Policy) -> Result<Self> {
        if policy.model != self.model.hash {
            return Err(Error::setup(format!("policy of {}", self.name), "was made for another network"));
        }
        let hosted = match &policy.alarm {
            Some(alarm) => {
                let calibration = alarm.calibration(&self.model);
                self.with_calibration(calibration)?
            }
            None => self,
        };
        let defence = policy.defence.as_ref().map(|defence| hosted.heads_for(defence.name())).transpose()?;
        // what cannot be built is refused now and not at the first request
        policy.pipeline(hosted.model.clone(), &defence.unwrap_or_default())?;
        let Policy { defence, answer, seed, .. } = policy.clone();
        let default = Choice { defence, answer, seed, always: policy.alarm.is_none(), timeout: None };
        let allowed = Allowed { default, free: false, ..hosted.allowed };
        Ok(Self { allowed, policy: Some(policy), ..hosted })
    }

    /// The threshold of the alarm, if there is one.
    pub fn threshold(&self) -> Option<f64> {
        self.calibration.as_ref().map(|calibration| calibration.threshold)
    }

    /// The detector of a request: the calibrated one, or else what `evenkeel predict --detect` builds for the same seed and views.
    pub(crate) fn detector_for(&self, choice: &Choice) -> Result<Arc<Detector>> {
        if self.calibration.is_some() {
            return Ok(self.detector.clone());
        }
        let views = choice.defence.as_ref().map(|spec| spec.settings().views.set.clone());
        let spec = DetectorSpec::usual().with("seed", choice.seed)?;
        let spec = match views {
            Some(views) => spec.with_views(views),
            None => spec,
        };
        Ok(Arc::new(spec.build(&self.model, Heads::default())?))
    }

    /// The heads of a defence, if the model has them.
    pub(crate) fn heads_for(&self, name: &str) -> Result<Heads> {
        Ok(self.shipped.map(|shipped| shipped.heads_for(name)).transpose()?.unwrap_or_default())
    }

    /// The size of an image that is tried before any came.
    fn usual_size(&self) -> (usize, usize) {
        let side = 64usize.div_ceil(self.model.multiple) * self.model.multiple;
        self.model.size.unwrap_or((side, side))
    }

    /// Runs the network twice, so that it is ready and the second time tells what a pass costs.
    ///
    /// # Errors
    /// If the network fails.
    pub fn probe(&self) -> Result<f64> {
        let (height, width) = self.usual_size();
        let image = Image::filled(height, width, 0.5);
        let scores = self.model.scores(&image)?;
        self.shapes.get_or_init(|| scores.parts().iter().map(|(shape, _)| self.shape_of(shape)).collect());
        let start = Instant::now();
        self.model.scores(&image)?;
        let seconds = start.elapsed().as_secs_f64();
        self.remember("pass", seconds);
        Ok(seconds)
    }

    /// The shape of an output for any number of images; sides that follow the image's size are -1.
    fn shape_of(&self, sides: &[usize]) -> Vec<i64> {
        let free = self.model.size.is_none();
        let side = |(i, n): (usize, &usize)| if i == 0 || (free && i > 1 && *n > 1) { -1 } else { *n as i64 };
        sides.iter().enumerate().map(side).collect()
    }

    /// The shapes of the model's outputs, once it was probed.
    pub(crate) fn output_shapes(&self) -> &[Vec<i64>] {
        self.shapes.get().map_or(&[], Vec::as_slice)
    }

    /// The seconds that an image of a request like this took lately, or will probably take.
    pub(crate) fn cost(&self, kind: &str, passes: f64) -> f64 {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        costs.get(kind).copied().unwrap_or_else(|| passes * costs.get("pass").copied().unwrap_or(0.01))
    }

    /// Remembers what an image took.
    pub(crate) fn remember(&self, kind: &str, seconds: f64) {
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        if costs.len() >= REMEMBERED && !costs.contains_key(kind) {
            costs.retain(|kind, _| kind == "pass");
        }
        let cost = costs.entry(kind.to_owned()).or_insert(seconds);
        *cost += NEWEST * (seconds - *cost);
    }
}
