//! What the subcommands on models and images share: finding files, fitting images, saying how far things are, writing answers.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use evenkeel::answer::{Answer, AnswerKind, AnswerSpec};
use evenkeel::defence::{Defence, DefenceKind, DefenceSpec};
use evenkeel::detect::Heads;
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel::settings::Entry;
use evenkeel::task::instance::Instance;
use evenkeel::task::{Truth, TruthSource};
use evenkeel::view::ViewSet;
use evenkeel_data::coco_instances::true_instances;
use evenkeel_data::dataset::coco_json;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::knobs::KnobArgs;

/// The network and the images
#[derive(Debug, clap::Args)]
pub(crate) struct Subject {
    /// An ONNX network, with its contract beside it (`net.onnx` and `net.evenkeel.toml`)
    pub(crate) model: PathBuf,
    /// PNG or JPEG files, or folders of them
    #[arg(required = true)]
    pub(crate) images: Vec<PathBuf>,
}

impl Subject {
    pub(crate) fn load(&self) -> Result<(Model, Vec<PathBuf>)> {
        Ok((Model::load(&self.model)?, pictures(&self.images)?))
    }
}

/// The pictures among files and folders, folders in order of name.
pub(crate) fn pictures(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in given {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut inside = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
        inside.retain(|p| {
            let ending = p.extension().map(|e| e.to_string_lossy().to_lowercase());
            ending.is_some_and(|e| ["png", "jpg", "jpeg"].contains(&e.as_str()))
        });
        inside.sort();
        if inside.is_empty() {
            bail!("{}: no PNG or JPEG files in this folder", path.display());
        }
        all.extend(inside);
    }
    Ok(all)
}

/// A defence and how it is set up
#[derive(Debug, clap::Args)]
pub(crate) struct DefenceArgs {
    /// The defence; `evenkeel list defences` tells them apart
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
    /// The answer; `evenkeel list answers` tells them apart [default: plain]
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
    pub(crate) fn load(&self) -> Result<Heads> {
        let head = self.head.as_ref().map(Head::load).transpose()?;
        let bank = self.bank.as_ref().map(Bank::load).transpose()?;
        Ok(Heads { head, bank })
    }
}

impl DefenceArgs {
    /// The defence asked for; `None` if none was. `views_used` says that somebody else looks through the views given.
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

    /// The views given, for who looks through the same.
    pub(crate) fn views(&self) -> Result<ViewSet> {
        let mut spec = DefenceSpec::named("equivariance")?;
        self.knobs.apply(&mut spec)?;
        Ok(spec.settings().views.set.clone())
    }
}

/// An image at the model's size.
pub(crate) fn fitted(model: &Model, path: &Path) -> Result<Image> {
    let image = Image::load(path)?;
    model.fit(&image).with_context(|| path.display().to_string())
}

/// What is true of a picture, from what was given: a class, a file or a folder; each task knows which. It lies in the network's frame.
pub(crate) fn truth(model: &Model, given: &str, picture: &Path) -> Result<Truth> {
    let size = Image::load(picture)?.size();
    let frame = model.framing(size).with_context(|| picture.display().to_string())?;
    let source = TruthSource { given, picture, frame: &frame, classes: model.class_info(), objects };
    Ok(model.task.read_truth(&source)?)
}

/// The true objects of a picture, by its file name, from a COCO instances file.
fn objects(source: &TruthSource<'_>) -> evenkeel::Result<Vec<Instance>> {
    let path = Path::new(source.given);
    let fail = |reason: String| evenkeel::Error::File { path: path.to_owned(), reason };
    let file = coco_json::read_ground_truth(path).map_err(|e| fail(e.to_string()))?;
    let name = source.picture.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let entry = file.images.iter().find(|image| image.file_name == name);
    let entry = entry.ok_or_else(|| fail(format!("has no image {name}")))?;
    let own: Vec<_> = file.annotations.iter().filter(|a| a.image_id == entry.id).collect();
    true_instances(path, entry, &own, source.classes.ids, source.frame).map_err(|e| fail(e.to_string()))
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
pub(crate) fn check_names(pictures: &[PathBuf]) -> Result<()> {
    let mut seen = std::collections::HashMap::new();
    for picture in pictures {
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

/// How far a command is: a bar on a terminal, plain lines on standard error elsewhere.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    count: usize,
    done: std::cell::Cell<usize>,
}

/// The progress of so many parts; a single one needs none.
pub(crate) fn progress(count: usize) -> Progress {
    let bar = std::io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} left {msg}");
        let bar = if count < 2 { ProgressBar::hidden() } else { ProgressBar::new(count as u64) };
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    });
    Progress { bar, count, done: std::cell::Cell::new(0) }
}

impl Progress {
    /// One part more is done, and is called this.
    pub(crate) fn done(&self, name: &Path) {
        self.done.set(self.done.get() + 1);
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if self.count > 1 => eprintln!("{}/{} {}", self.done.get(), self.count, name.display()),
            None => {}
        }
    }

    /// Prints one result: a line of JSON, or words.
    pub(crate) fn say(&self, as_json: bool, value: &Value, words: &str) {
        let print = || match as_json {
            true => println!("{value}"),
            false => println!("{words}"),
        };
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
