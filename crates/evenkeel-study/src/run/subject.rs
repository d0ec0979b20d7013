//! A subject loaded: the network, its images, its heads, and the defences and detectors set up for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use evenkeel::Image;
use evenkeel::answer::AnswerSpec;
use evenkeel::defence::{Defence, DefenceSpec};
use evenkeel::detect::{Detector, DetectorSpec, Heads};
use evenkeel::model::{Contract, Letterbox, Model, ModelFile};
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel::pipeline::Pipeline;
use evenkeel::task::{Truth, TruthSource};

use super::count::counted;
use crate::experiment::spec::preparation;
use crate::experiment::{Experiment, SubjectCard, SubjectRule};
use crate::key::Key;
use crate::{Error, Result};
use evenkeel_data::coco_instances::{countable, framed, objects_of};
use evenkeel_data::dataset::{self, Dataset, Request, Subset};
use evenkeel_data::metric::instance::TrueInstance;

/// A network that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// What follows `embedded:`.
    pub name: &'static str,
    /// The ONNX file.
    pub network: &'static [u8],
    /// Its contract.
    pub contract: &'static str,
    /// Its rotation head, as safetensors.
    pub rotation: &'static [u8],
    /// Its contrastive head with its bank, as safetensors.
    pub contrastive: &'static [u8],
}

impl Embedded {
    /// Every network that comes with `evenkeel`.
    pub fn shipped() -> Vec<Self> {
        let embedded = |shipped: &evenkeel::shipped::Shipped| Self {
            name: shipped.name,
            network: shipped.network,
            contract: shipped.contract,
            rotation: shipped.rotation,
            contrastive: shipped.contrastive,
        };
        evenkeel::shipped::SHIPPED.iter().map(embedded).collect()
    }
}

/// A subject ready to be run.
pub struct Subject {
    /// The network, with its passes counted.
    pub model: Arc<Model>,
    pub(super) dataset: Dataset,
    pub(super) heads: BTreeMap<String, Heads>,
}

/// An image with its truth, at the network's size; and what scores are counted on: the image itself.
pub(super) struct Sample {
    pub(super) id: String,
    pub(super) image: Image,
    /// In the network's frame: what attacks and losses are held against.
    pub(super) truth: Truth,
    pub(super) hash: Key,
    /// Where the image itself stands in the frame.
    pub(super) frame: Letterbox,
    /// On the image itself.
    pub(super) own: OwnTruth,
}

/// What is true of an image as it came, which figures are counted on, as `evenkeel score` counts them on the files of `predict --out`.
pub(super) struct OwnTruth {
    pub(super) truth: Truth,
    /// The objects as the score takes them, with crowds; for instances.
    pub(super) objects: Option<Vec<TrueInstance>>,
}

/// The network of the shelf that a rule names, if it names one.
fn embedded<'a>(rule: &SubjectRule, shelf: &'a [Embedded]) -> Result<Option<&'a Embedded>> {
    let Some(name) = rule.model.strip_prefix("embedded:") else { return Ok(None) };
    let found = shelf.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = shelf.iter().map(|e| e.name).collect();
        Error::Request(format!("model {}: there are embedded:{}", rule.model, names.join(", embedded:")))
    })?;
    Ok(Some(found))
}

/// The network's file and contract.
fn network(rule: &SubjectRule, shelf: &[Embedded]) -> Result<(ModelFile, String)> {
    let path = Path::new(&rule.model);
    if let Some(found) = embedded(rule, shelf)? {
        return Ok((ModelFile::from_bytes(found.network, path), found.contract.to_string()));
    }
    let file = ModelFile::read(path)?;
    // said where the contract is missing, in the method's own words
    Contract::beside(path)?;
    let beside = Contract::path_beside(path);
    let contract = std::fs::read_to_string(&beside).map_err(|e| Error::io(beside, e))?;
    Ok((file, contract))
}

/// What the results of a network are stored under: its file, its contract, and the files beside it that hold its tensors.
fn fingerprint(file: &ModelFile, contract: &str) -> Key {
    let mut parts = file.identity();
    parts.insert(1, contract.as_bytes());
    Key::of_parts(&parts)
}

/// How many classes a figure is over: those that the data know. A network may have more (a background, say); its pixels of those are wrong, but
/// they are no class to be averaged over.
fn counted_classes(of_network: usize, of_data: usize) -> usize {
    if of_data == 0 { of_network } else { of_network.min(of_data) }
}

impl Subject {
    /// Loads a subject. What the design adds to the card (columns, rows, detectors) is left empty.
    ///
    /// # Errors
    /// Naming the file or the key.
    pub fn load(
        rule: &SubjectRule,
        experiment: &Experiment,
        shelf: &[Embedded],
    ) -> Result<(Self, SubjectCard)> {
        let (file, contract) = network(rule, shelf)?;
        let fingerprint = fingerprint(&file, &contract);
        let contract = Contract::parse(&contract, Path::new(&rule.model))?;
        let model = Arc::new(counted(file.model(&contract)?));
        let limit = [rule.limit, experiment.limit].into_iter().flatten().min();
        let request = Request {
            split: rule.split.clone(),
            classes: rule.classes,
            subset: Subset { every: rule.every, limit, seed: rule.subset_seed.filter(|_| limit.is_some()) },
            preparation: preparation(rule.size.as_deref())?,
        };
        let dataset = Dataset::open(&rule.data, &rule.path, &request)?;
        let (heads, head_keys) = heads(rule, embedded(rule, shelf)?)?;
        let card = SubjectCard {
            rule: rule.clone(),
            model: fingerprint,
            heads: head_keys,
            task: model.task.name().into(),
            class_names: model.class_names.clone(),
            classes: counted_classes(model.classes, dataset.classes().len()),
            error_range: model.task.error_range(),
            variant: None,
            epsilon_255: rule.epsilon_255.unwrap_or(experiment.epsilon_255),
            images: (0..dataset.len()).map(|place| dataset.id(place)).collect(),
            columns: Vec::new(),
            rows: Vec::new(),
            detectors: Vec::new(),
            foreign: None,
        };
        Ok((Self { model, dataset, heads }, card))
    }

    /// The network's fingerprint as its files are now, to be held against the one it was loaded with.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn fingerprint(rule: &SubjectRule, shelf: &[Embedded]) -> Result<Key> {
        let (file, contract) = network(rule, shelf)?;
        Ok(fingerprint(&file, &contract))
    }

    /// The image at a place, at the network's size, with its truth.
    pub(super) fn sample(&self, place: usize) -> Result<Sample> {
        let sample = self.dataset.sample(place)?;
        let image = self.model.fit(&sample.image)?;
        let image_size = sample.image.size();
        let frame = self.model.framing(image_size)?;
        let own = self.own_truth(sample.truth, &sample.id, image_size)?;
        let truth = own.truth.framed(&frame)?;
        let (task, classes) = (&self.model.task, self.model.classes);
        task.check_truth(&truth, classes, image.size(), &format!("image {}", sample.id))?;
        let hash = hash_of(&image, &truth, &own, &frame);
        Ok(Sample { id: sample.id, image, truth, hash, frame, own })
    }

    /// What is true of an image as it came, of this (height, width).
    fn own_truth(&self, truth: dataset::Truth, id: &str, size: (usize, usize)) -> Result<OwnTruth> {
        let plain = |truth| OwnTruth { truth, objects: None };
        let complain = |words: String| Error::Request(format!("image {id}: {words}"));
        let whole = Letterbox::stretched(size, size);
        Ok(match truth {
            dataset::Truth::Class(class) => plain(Truth::of_class(class)),
            dataset::Truth::Labels(map) => plain(Truth::of_labels(map)),
            dataset::Truth::Unlabelled => return Err(complain("has no truth; a study needs one".into())),
            dataset::Truth::Given(given) => {
                let (picture, classes) = (Path::new(id), self.model.class_info());
                let source =
                    TruthSource { given: &given, picture, frame: &whole, classes, objects: objects_of };
                plain(self.model.task.read_truth(&source)?)
            }
            dataset::Truth::Objects(all) => {
                let found =
                    framed(&all, &self.model.class_ids, &whole).map_err(|e| complain(e.to_string()))?;
                OwnTruth { truth: Truth::of_instances(found), objects: Some(countable(all)) }
            }
        })
    }

    /// The defence of this description.
    pub(super) fn defence(&self, spec: &DefenceSpec) -> Result<Defence> {
        Ok(spec.build(&self.model, &self.heads_for(spec.name()))?)
    }

    /// The network with a defence in front of it and an answer behind.
    pub(super) fn pipeline(&self, spec: &DefenceSpec, answer: &AnswerSpec) -> Result<Pipeline> {
        let pipeline = Pipeline::new(Arc::clone(&self.model)).with_defence(self.defence(spec)?);
        Ok(pipeline.with_answer(answer.build(&self.model)?))
    }

    /// The detector of this description, with views drawn from this seed.
    pub(super) fn detector(&self, spec: &DetectorSpec, seed: u64) -> Result<Detector> {
        Ok(spec.clone().with("seed", seed)?.build(&self.model, self.heads_for(spec.name()))?)
    }

    fn heads_for(&self, kind: &str) -> Heads {
        self.heads.get(kind).cloned().unwrap_or_default()
    }
}

/// The heads a subject names, or those that come with its network; and their fingerprints.
fn heads(
    rule: &SubjectRule,
    shipped: Option<&Embedded>,
) -> Result<(BTreeMap<String, Heads>, BTreeMap<String, Key>)> {
    let (mut heads, mut keys) = (BTreeMap::new(), BTreeMap::new());
    if let Some(shipped) = shipped {
        let path = Path::new(shipped.name);
        let rotation = Heads { head: Some(Head::from_bytes(shipped.rotation, path)?), bank: None };
        let contrastive = Heads {
            head: Some(Head::from_bytes(shipped.contrastive, path)?),
            bank: Some(Bank::from_bytes(shipped.contrastive, path)?),
        };
        for (name, own, bytes) in
            [("rotation", rotation, shipped.rotation), ("contrastive", contrastive, shipped.contrastive)]
        {
            keys.insert(name.to_string(), Key::of_parts(&[bytes]));
            heads.insert(name.to_string(), own);
        }
    }
    let bytes = |path: &Path| std::fs::read(path).map_err(|e| Error::io(path, e));
    if let Some(path) = &rule.rotation_head {
        keys.insert("rotation".to_string(), Key::of_parts(&[&bytes(path)?]));
        heads.insert("rotation".to_string(), Heads { head: Some(Head::load(path)?), bank: None });
    }
    match (&rule.contrastive_head, &rule.contrastive_bank) {
        (Some(head), Some(bank)) => {
            keys.insert("contrastive".to_string(), Key::of_parts(&[&bytes(head)?, &bytes(bank)?]));
            let loaded = Heads { head: Some(Head::load(head)?), bank: Some(Bank::load(bank)?) };
            heads.insert("contrastive".to_string(), loaded);
        }
        (None, None) => {}
        _ => {
            let words = "contrastive_head and contrastive_bank belong together";
            return Err(Error::Request(format!("subject {}: {words}", rule.name)));
        }
    }
    Ok((heads, keys))
}

/// A hash of pixels alone.
pub(super) fn hash_of_pixels(image: &Image) -> Key {
    let size = [image.height() as u64, image.width() as u64].map(u64::to_le_bytes).concat();
    let pixels: Vec<u8> = image.pixels().iter().flat_map(|v| v.to_le_bytes()).collect();
    Key::of_parts(&[&size, &pixels])
}

/// A hash of pixels and truth.
fn hash_of(image: &Image, truth: &Truth, own: &OwnTruth, frame: &Letterbox) -> Key {
    let size = [image.height() as u64, image.width() as u64].map(u64::to_le_bytes).concat();
    let pixels: Vec<u8> = image.pixels().iter().flat_map(|v| v.to_le_bytes()).collect();
    // crowds, areas and outlines at the image's own size decide a score as well
    let counted = match &own.objects {
        Some(objects) => format!("{objects:?}").into_bytes(),
        None if frame.is_identity() => Vec::new(),
        None => own.truth.bytes(),
    };
    Key::of_parts(&[&size, &pixels, &truth.bytes(), &counted])
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::LabelMap;

    #[test]
    fn figures_are_over_the_classes_of_the_data() {
        assert_eq!(
            (counted_classes(20, 19), counted_classes(19, 19), counted_classes(5, 0), counted_classes(5, 9)),
            (19, 19, 5, 5)
        );
    }

    /// A study and `Model::load` (what the command line uses) see the same pixels of a picture that has to be resized, through a network whose weights
    /// lie in a file of their own, and that network answers as the one that holds them itself.
    #[test]
    fn a_study_sees_what_the_command_line_sees() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli");
        for name in ["segmenter.onnx", "external.onnx", "external.bin"] {
            std::fs::copy(testdata.join(name), at(name)).unwrap();
        }
        let contract = "task = \"semantic\"\noutput = \"scores\"\nfeature = \"features\"\n[input]\norder = \"rgb\"\nscale = 1.0\n\
                        mean = [0.5, 0.5, 0.5]\nstd = [0.25, 0.25, 0.25]\nsize = [24, 40]\nresize = \"stretch\"\n";
        for name in ["segmenter.evenkeel.toml", "external.evenkeel.toml"] {
            std::fs::write(at(name), contract).unwrap();
        }
        let mut random = evenkeel::Random::new(1);
        let pixels = (0..3 * 33 * 51).map(|_| random.unit()).collect();
        Image::new(33, 51, pixels).unwrap().save_png(at("photo.png")).unwrap();
        LabelMap::new(33, 51, vec![1; 33 * 51]).unwrap().save_png(at("labels.png"), None).unwrap();
        std::fs::write(at("table.csv"), "image,label_map\nphoto.png,labels.png\n").unwrap();
        let rule = SubjectRule {
            name: "photos".into(),
            model: at("external.onnx").display().to_string(),
            data: "manifest".into(),
            path: at("table.csv"),
            ..SubjectRule::default()
        };
        let text =
            "name = \"n\"\n[[subject]]\nname = \"s\"\nmodel = \"m\"\ndata = \"manifest\"\npath = \"p\"\n";
        let experiment = Experiment::parse(text, Path::new("test.toml")).unwrap();
        let (subject, _) = Subject::load(&rule, &experiment, &[]).unwrap();
        let sample = subject.sample(0).unwrap();
        let model = Model::load(at("external.onnx")).unwrap();
        let seen = model.fit(&Image::load(at("photo.png")).unwrap()).unwrap();
        assert_eq!(seen.size(), (24, 40));
        assert!(sample.image == seen, "a study and the command line see other pixels");
        let whole = Model::load(at("segmenter.onnx")).unwrap();
        assert_eq!(subject.model.scores(&seen).unwrap().data(), whole.scores(&seen).unwrap().data());
        assert_ne!(model.hash, whole.hash);
        // other weights in the same file are another network
        let mut weights = std::fs::read(at("external.bin")).unwrap();
        weights[0] ^= 1;
        std::fs::write(at("external.bin"), weights).unwrap();
        assert_ne!(Model::load(at("external.onnx")).unwrap().hash, model.hash);
    }
}
