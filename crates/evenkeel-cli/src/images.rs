//! The images a command is about: files, folders, or the samples of a data set; which of them, and what happens to those that cannot be read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use anyhow::{Context, Result, bail};
use evenkeel::image::Image;
use evenkeel_data::dataset::{Dataset, KINDS, Preparation, Request, Truth};

use crate::progress::Progress;

/// Which images, and how they are gone through
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// PNG or JPEG files, folders of them, or a data set as KIND:PATH, such as cifar10:FOLDER (`evenkeel list data`)
    #[arg(value_name = "IMAGES")]
    pub(crate) images: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
}

/// Which of the images, and how they are gone through
#[derive(Debug, clap::Args)]
pub(crate) struct ChoiceArgs {
    /// Go on without images that cannot be read; they are listed at the end
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// The most images taken
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Take every N-th image
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Threads; all cores if left out. The results are the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// One line of JSON for each image
    #[arg(long)]
    pub(crate) json: bool,
}

/// An image that has not been read yet.
pub(crate) struct Picture {
    /// Its file, or its name in the data set.
    pub(crate) path: PathBuf,
    sample: Option<(Arc<Dataset>, usize)>,
}

impl Picture {
    fn file(path: PathBuf) -> Self {
        Self { path, sample: None }
    }

    /// Reads it.
    pub(crate) fn load(&self) -> Result<Image> {
        Ok(match &self.sample {
            Some((set, place)) => set.sample(*place)?.image,
            None => Image::load(&self.path)?,
        })
    }

    /// The class that the data set gives it, in words that `--labels` would take.
    pub(crate) fn class(&self) -> Option<String> {
        let (set, place) = self.sample.as_ref()?;
        match set.sample(*place).ok()?.truth {
            Truth::Class(class) => Some(class.to_string()),
            _ => None,
        }
    }
}

impl ImageArgs {
    /// The images chosen. At least one must be.
    pub(crate) fn pictures(&self) -> Result<Vec<Picture>> {
        if self.images.is_empty() {
            bail!("no images were given: name files, folders, or a data set as KIND:PATH");
        }
        self.choice.pictures(&self.images)
    }
}

impl ChoiceArgs {
    /// Sets the threads up, once; before anything else uses any.
    pub(crate) fn use_threads(&self) -> Result<()> {
        static ONCE: Once = Once::new();
        let mut outcome = Ok(());
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
            ONCE.call_once(|| outcome = pool.build_global());
        }
        Ok(outcome?)
    }

    /// The images chosen of these, and the threads set up.
    pub(crate) fn pictures(&self, given: &[String]) -> Result<Vec<Picture>> {
        self.use_threads()?;
        let mut all = Vec::new();
        for text in given {
            match data_set(text)? {
                Some(set) => {
                    let set = Arc::new(set);
                    let one =
                        |place| Picture { path: set.id(place).into(), sample: Some((set.clone(), place)) };
                    all.extend((0..set.len()).map(one));
                }
                None => all.extend(files(Path::new(text))?.into_iter().map(Picture::file)),
            }
        }
        let (every, limit) = (self.every as usize, self.limit.map_or(usize::MAX, |n| n as usize));
        Ok(all.into_iter().step_by(every).take(limit).collect())
    }

    /// Goes through images one after the other. One that cannot be read ends the run, unless it may be skipped; what goes wrong later always does.
    pub(crate) fn each(
        &self,
        pictures: &[Picture],
        mut each: impl FnMut(&Picture, Image, &Progress) -> Result<()>,
    ) -> Result<()> {
        let bar = Progress::new(pictures.len(), "images");
        let mut skipped = Vec::new();
        for picture in pictures {
            match picture.load() {
                Ok(image) => each(picture, image, &bar)?,
                Err(error) if self.skip_bad => skipped.push(crate::sentence(&error)),
                Err(error) if pictures.len() == 1 => return Err(error),
                Err(error) => bail!("{}; --skip-bad goes on without it", crate::sentence(&error)),
            }
            bar.done(&picture.path);
        }
        drop(bar);
        for sentence in &skipped {
            eprintln!("skipped: {sentence}");
        }
        if skipped.len() == pictures.len() {
            bail!("none of the {} images can be read", pictures.len());
        }
        if !skipped.is_empty() {
            eprintln!("skipped {} of {} images", skipped.len(), pictures.len());
        }
        Ok(())
    }
}

/// The data set that `KIND:PATH` names, its images as they came; `None` if the text is no such thing.
pub(crate) fn data_set(text: &str) -> Result<Option<Dataset>> {
    if Path::new(text).exists() {
        return Ok(None);
    }
    let (kind, path) = text.split_once(':').unwrap_or((text, ""));
    match KINDS.iter().any(|known| known.name == kind) {
        true => {
            let request = Request { preparation: Some(Preparation::Native), ..Request::default() };
            Ok(Some(Dataset::open(kind, Path::new(path), &request)?))
        }
        false => Ok(None),
    }
}

fn is_picture(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ["png", "jpg", "jpeg"].contains(&ending.as_str()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut inside = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    inside.sort();
    Ok(inside)
}

/// A file, or the pictures of a folder in order of name; if it has none, those of the folders in it, which may be classes.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let inside = entries(path)?;
    let mut found: Vec<PathBuf> = inside.iter().filter(|p| is_picture(p)).cloned().collect();
    if found.is_empty() {
        for folder in inside.iter().filter(|p| p.is_dir()) {
            found.extend(entries(folder)?.into_iter().filter(|p| is_picture(p)));
        }
    }
    if found.is_empty() {
        bail!("{}: no PNG or JPEG files in this folder or the folders in it", path.display());
    }
    Ok(found)
}
