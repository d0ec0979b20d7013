//! What the subcommands on models and images share: the network, defences and answers from flags, truths, names of files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use evenkeel::answer::{Answer, AnswerKind, AnswerSpec};
use evenkeel::defence::{Defence, DefenceKind, DefenceSpec};
use evenkeel::detect::{Calibration, Heads};
use evenkeel::image::Image;
use evenkeel::model::{Contract, Model};
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel::settings::Entry;
use evenkeel::shipped::Shipped;
use evenkeel::task::{Truth, TruthSource};
use evenkeel::view::ViewSet;
use evenkeel_data::coco_instances::objects_of;

use crate::images::{ImageArgs, Picture};
use crate::knobs::KnobArgs;

/// The network
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// The network, with its contract beside it (`net.onnx` and `net.evenkeel.toml`), or `embedded:NAME` for one that comes with the program
    pub(crate) model: PathBuf,
    /// Another contract than the one beside the network
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn load(&self) -> Result<Model> {
        Ok(match (self.shipped()?, &self.contract) {
            (Some(_), Some(_)) => bail!("--contract: has no effect on a network that comes with the program"),
            (Some(shipped), None) => shipped.model()?,
            (None, Some(file)) => Model::with_contract(&self.model, &Contract::load(file)?)?,
            (None, None) => Model::load(&self.model)?,
        })
    }

    fn shipped(&self) -> Result<Option<&'static Shipped>> {
        let name = self.model.to_str().and_then(|text| text.strip_prefix("embedded:"));
        Ok(name.map(evenkeel::shipped::named).transpose()?)
    }

    /// The calibration that comes with the program, if the network does.
    pub(crate) fn shipped_calibration(&self, model: &Model) -> Result<Option<Calibration>> {
        Ok(self.shipped()?.map(|shipped| shipped.calibration(model)).transpose()?)
    }

    /// Where the network's calibration lies unless another place is named.
    pub(crate) fn calibration(&self) -> PathBuf {
        Calibration::path_beside(&self.model)
    }
}

/// The network and the images
#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
}

impl InputArgs {
    pub(crate) fn load(&self) -> Result<(Model, Vec<Picture>)> {
        let pictures = self.images.pictures()?;
        Ok((self.model.load()?, pictures))
    }
}

/// A defence and how it is set up
#[derive(Debug, clap::Args)]
pub(crate) struct DefenceArgs {
    /// The defence; `evenkeel list defences` describes each
    #[arg(long, value_name = "NAME", value_parser = names_of::<DefenceKind>())]
    pub(crate) defence: Option<String>,
    #[command(flatten)]
    pub(crate) knobs: KnobArgs<DefenceKind>,
    #[command(flatten)]
    pub(crate) heads: HeadArgs,
}

/// How the answer is read off what the network is shown
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    /// The answer; `evenkeel list answers` describes each [default: plain]
    #[arg(long, value_name = "NAME", value_parser = names_of::<AnswerKind>())]
    pub(crate) answer: Option<String>,
    #[command(flatten)]
    pub(crate) knobs: KnobArgs<AnswerKind>,
}

impl AnswerArgs {
    /// The answer asked for; `None` if none was.
    pub(crate) fn build(&self, model: &Model) -> Result<Option<Answer>> {
        let Some(name) = &self.answer else {
            if let Some(flag) = self.knobs.flags().first() {
                bail!("{flag}: has no effect without --answer NAME");
            }
            return Ok(None);
        };
        let mut spec = AnswerSpec::named(name)?;
        self.knobs.apply(&mut spec)?;
        Ok(Some(spec.build(model)?))
    }
}

/// The names of a table, for clap.
pub(crate) fn names_of<E: Entry>() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(evenkeel::settings::names::<E>())
}

/// Heads that were trained for a network
#[derive(Debug, clap::Args)]
pub(crate) struct HeadArgs {
    /// A head in a safetensors file, for rotation and contrastive
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
    /// Embeddings of other images in a safetensors file, for contrastive
    #[arg(long, value_name = "FILE")]
    pub(crate) bank: Option<PathBuf>,
}

impl HeadArgs {
    /// A flag that was given, if one was.
    pub(crate) fn flag(&self) -> Option<&'static str> {
        match (&self.head, &self.bank) {
            (Some(_), _) => Some("--head"),
            (None, Some(_)) => Some("--bank"),
            (None, None) => None,
        }
    }

    pub(crate) fn load(&self) -> Result<Heads> {
        let head = self.head.as_ref().map(Head::load).transpose()?;
        let bank = self.bank.as_ref().map(Bank::load).transpose()?;
        Ok(Heads { head, bank })
    }
}

impl DefenceArgs {
    /// The defence asked for; `None` if none was. `views_used` says that another option uses the views given.
    pub(crate) fn build(&self, model: &Model, views_used: bool) -> Result<Option<Defence>> {
        let Some(name) = &self.defence else {
            let idle = self.knobs.flags().into_iter().find(|flag| !(views_used && flag == "--views"));
            if let Some(flag) = idle {
                bail!("{flag}: has no effect without --defence NAME");
            }
            return Ok(None);
        };
        let mut spec = DefenceSpec::named(name)?;
        self.knobs.apply(&mut spec)?;
        Ok(Some(spec.build(model, &self.heads.load()?)?))
    }

    /// The views given, for other options that use the same.
    pub(crate) fn views(&self) -> Result<ViewSet> {
        let mut spec = DefenceSpec::named("equivariance")?;
        self.knobs.apply_read(&mut spec)?;
        Ok(spec.settings().views.set.clone())
    }
}

/// An image at the model's size.
pub(crate) fn fitted(model: &Model, path: &Path) -> Result<Image> {
    let image = Image::load(path)?;
    model.fit(&image).with_context(|| path.display().to_string())
}

/// The image as it came, with what was changed of it at the network's size brought back to its own; what the frame cut off stays.
pub(crate) fn on_original(model: &Model, original: &Image, changed: &Image) -> Result<Image> {
    let frame = model.framing(original.size())?;
    let fitted = model.fit(original)?;
    // what a defence shows may be larger or smaller than what it was given
    if frame.is_identity() || changed.size() != fitted.size() {
        return Ok(changed.clone());
    }
    let change = |c: usize| -> Vec<f32> {
        let values: Vec<f32> = changed.plane(c).iter().zip(fitted.plane(c)).map(|(a, b)| a - b).collect();
        frame.unframed_values(&values, 0.0)
    };
    let changes = (0..3).flat_map(change);
    let pixels =
        original.pixels().iter().zip(changes).map(|(pixel, change)| (pixel + change).clamp(0.0, 1.0));
    Ok(Image::new(original.height(), original.width(), pixels.collect())?)
}

/// What is true of a picture of this (height, width), from what was given: a class, a file or a folder; each task knows which. It lies in the
/// network's frame.
pub(crate) fn read_truth(model: &Model, given: &str, picture: &Path, size: (usize, usize)) -> Result<Truth> {
    let frame = model.framing(size).with_context(|| picture.display().to_string())?;
    let source =
        TruthSource { given, picture, frame: &frame, classes: model.class_info(), objects: objects_of };
    Ok(model.task.read_truth(&source)?)
}

/// How pictures are written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// PNG of 8 bits
    Png,
    /// PNG of 16 bits
    Png16,
    /// JPEG of quality 95
    Jpeg,
}

impl Format {
    /// Writes a picture as this name with the format's ending, and says which file that is.
    pub(crate) fn save(self, image: &Image, name: &str) -> Result<PathBuf> {
        let path = PathBuf::from(format!("{name}.{}", if let Self::Jpeg = self { "jpg" } else { "png" }));
        match self {
            Self::Png => image.save_png(&path)?,
            Self::Png16 => image.save_png16(&path)?,
            Self::Jpeg => image.save_jpeg(&path, 95)?,
        }
        Ok(path)
    }
}

/// Refuses pictures whose results would be written over one another.
pub(crate) fn check_names(pictures: &[Picture]) -> Result<()> {
    let mut seen = std::collections::HashMap::new();
    for picture in pictures.iter().map(|picture| &picture.path) {
        if let Some(other) = seen.insert(picture.file_stem(), picture) {
            let (a, b) = (other.display(), picture.display());
            bail!("{a} and {b} have the same name: one's results would be written over the other's");
        }
    }
    Ok(())
}

/// Where results about a picture go: the folder, made if need be, and the picture's own name in it.
pub(crate) fn stem_in(folder: &Path, picture: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let Some(stem) = picture.file_stem() else { bail!("{}: has no file name", picture.display()) };
    Ok(folder.join(stem))
}
