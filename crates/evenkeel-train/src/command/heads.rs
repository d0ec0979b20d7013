//! Training heads on a network's frozen features.

use super::arguments as argument;
use crate::batch::Pool;
use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::heads;
use clap::Args;
use evenkeel::Image;
use evenkeel::model::Model;
use evenkeel_data::dataset::scenes::Split;
use evenkeel_data::dataset::{Dataset, Preparation, Request, Subset};
use std::path::{Path, PathBuf};

/// Heads learnt from fewer images would know nothing else; a fifth of them is held out.
const FEWEST_IMAGES: usize = 10;

#[derive(Debug, Args)]
pub(super) struct HeadArgs {
    /// The network (ONNX, with its contract beside it); the heads go beside it
    network: PathBuf,
    /// Rendered pictures to learn from
    #[arg(long, default_value_t = 600)]
    pictures: usize,
    /// Learn from the PNG and JPEG images in this folder and its subfolders instead, for a network of your own
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
    /// Learn from the images of a data set instead: its kind and path
    #[arg(long, value_names = ["KIND", "PATH"], num_args = 2, conflicts_with = "images")]
    data: Option<Vec<String>>,
    /// The part of the data set
    #[arg(long, requires = "data")]
    split: Option<String>,
    /// Bring images to WIDTHxHEIGHT first, or leave them `native`
    #[arg(long, requires = "data", value_parser = argument::size)]
    size: Option<Preparation>,
    /// Take at most this many images of the data set
    #[arg(long, requires = "data")]
    limit: Option<usize>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(args: &HeadArgs) -> Result<()> {
    if args.pictures < FEWEST_IMAGES {
        let reason = format!("--pictures {}; a head needs at least {FEWEST_IMAGES}", args.pictures);
        return Err(Error::Setting(reason));
    }
    let model = Model::load(&args.network)?;
    let images = match (&args.images, &args.data) {
        (Some(folder), _) => images_in("folder", folder, &Request::default(), &model)?,
        (None, Some(data)) => {
            let subset = Subset { limit: args.limit, ..Subset::default() };
            let request =
                Request { split: args.split.clone(), preparation: args.size, subset, ..Request::default() };
            images_in(&data[0], Path::new(&data[1]), &request, &model)?
        }
        (None, None) => {
            // a network with one answer for the whole image was trained on crops
            let grey = model.fit(&Image::filled(64, 64, 0.5))?;
            let crops = model.scores(&grey)?.extents("scores").is_ok_and(|scores| scores.cells() == 1);
            let goal = if crops { Goal::objects() } else { Goal::scenes() };
            let pool = Pool::render(&goal, Split::Train, args.pictures);
            (0..pool.len()).map(|k| Ok(pool.plain(k, k + 1)?.image(0)?)).collect::<Result<Vec<_>>>()?
        }
    };
    for (name, head) in [
        ("rotation", heads::rotation(&model, &images, args.seed)?),
        ("contrastive", heads::contrastive(&model, &images, args.seed)?),
    ] {
        let path = args.network.with_extension(format!("{name}.safetensors"));
        head.save(&path)?;
        println!("{}: {:.1} % on held-out pictures", path.display(), 100.0 * head.score);
    }
    Ok(())
}

/// The images of a data set, as the network takes them.
fn images_in(kind: &str, path: &Path, request: &Request, model: &Model) -> Result<Vec<Image>> {
    let images = Dataset::open(kind, path, request)?;
    if images.len() < FEWEST_IMAGES {
        let reason =
            format!("{} has {} images; a head needs at least {FEWEST_IMAGES}", path.display(), images.len());
        return Err(Error::Setting(reason));
    }
    (0..images.len()).map(|place| Ok(model.fit(&images.sample(place)?.image)?)).collect()
}
