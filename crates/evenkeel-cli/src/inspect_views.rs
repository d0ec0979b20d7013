//! `evenkeel inspect-views`: the picture of the idea. Row by row: the view of the image, the answer for it, the answer undone, and
//! where it differs from the answer for the image itself.

use std::path::PathBuf;

use anyhow::Result;
use evenkeel::detect::{DetectorKind, DetectorSpec, Heads, Outputs, ViewOutputs};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::network::{Extents, Tensor};
use evenkeel::random::Random;
use evenkeel::task::{Prediction, Readout};
use serde_json::json;

use crate::knobs::KnobArgs;
use crate::progress::Progress;
use crate::sheet::{Strip, sheet};
use crate::workbench::{ModelArgs, fitted, stem_in};

/// Show an image, its views, the answers undone, and where they differ
#[derive(Debug, clap::Args)]
pub(crate) struct InspectViewsArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// A PNG or JPEG file
    image: PathBuf,
    #[command(flatten)]
    knobs: KnobArgs<DetectorKind>,
    /// The folder for `NAME.views.png`
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// One line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: InspectViewsArgs) -> Result<()> {
    let model = args.model.load()?;
    let image = fitted(&model, &args.image)?;
    let mut spec = DetectorSpec::named("variance")?;
    args.knobs.apply(&mut spec)?;
    let set = spec.settings().views.set.clone().fitted(model.network.fixed_size().is_some(), model.multiple);
    let views = set.draw(&Random::new(spec.settings().seed));
    let answer = model.predict(&image)?;
    let (classes, painted) = (model.class_info(), |said: &Prediction, under: &Image| -> Result<Image> {
        Ok(said.paint(under, 0.6, &model.class_info())?.image)
    });
    // objects have no cells that could be brought back
    let outputs = match model.task.readout() {
        Readout::Objects => None,
        _ => Some(ViewOutputs::at(&model, &image, &views, Outputs::Softmax)?),
    };
    let mut strips = vec![Strip {
        lines: vec!["the image".into(), format!("says {}", answer.words(&classes))],
        pictures: vec![image.clone(), painted(&answer, &image)?],
    }];
    let (mut described, mut words) =
        (Vec::new(), format!("{}: {}\n", args.image.display(), answer.words(&classes)));
    for (k, view) in views.iter().enumerate() {
        let seen = view.apply(&image);
        let said = model.predict(&seen)?;
        let mut row = vec![seen.clone(), painted(&said, &seen)?];
        let mut lines = vec![format!("view {}: {}", k + 1, view.caption())];
        let mut line = json!({ "view": view.caption(), "says": said.words(&classes) });
        words += &format!("  {}: ", view.caption());
        if let Some(outputs) = &outputs {
            let share = share_that_differs(outputs, k, &model, &answer, &image, &mut row)?;
            line["differs"] = share.into();
            let differs = match row.len() {
                2 if share > 0.0 => "another answer".to_owned(),
                2 => "the same answer".to_owned(),
                _ => format!("differs on {:.1} % of what the view shows", 100.0 * share),
            };
            words += &format!("{differs}; ");
            lines[0] += &format!("; {differs}");
        }
        words += &format!("says {}\n", said.words(&classes));
        described.push(line);
        lines.push(format!("says {}", said.words(&classes)));
        strips.push(Strip { lines, pictures: row });
    }
    // an answer without pixels is in the words; its picture would be the view again
    if outputs.is_some() && strips.iter().skip(1).all(|strip| strip.pictures.len() == 2) {
        strips.iter_mut().for_each(|strip| strip.pictures.truncate(1));
    }
    let file = PathBuf::from(format!("{}.views.png", stem_in(&args.out, &args.image)?.display()));
    sheet(&strips, image.size())?.save_png(&file)?;
    let variance = spec.build(&model, Heads::default())?.score(&model, &image)?;
    let value = json!({
        "image": args.image,
        "prediction": answer.json(&classes),
        "views": described,
        "variance": variance,
        "saved": file,
    });
    words += &format!("  variance {variance:.4}; picture: {}", file.display());
    Progress::new(1, "images").say(args.json, &value, &words);
    Ok(())
}

/// The share of cells in sight where a view's answer, brought back to the image, is another; the answer and where it differs are added to the row.
fn share_that_differs(
    outputs: &ViewOutputs,
    view: usize,
    model: &Model,
    own: &Prediction,
    image: &Image,
    row: &mut Vec<Image>,
) -> Result<f64> {
    let (undone, mask) = &outputs.views[view];
    let Extents { channels, height, width } = outputs.extents;
    let shape = if height * width == 1 { vec![1, channels] } else { vec![1, channels, height, width] };
    let back = model.task.predict(&Tensor::new(shape, undone.clone())?, image.size())?;
    let Some(differs) = own.difference(&back) else {
        return Ok(f64::from(u8::from(own.as_truth() != back.as_truth())));
    };
    let (h, w) = image.size();
    let in_sight = |i: usize| mask[(i / w * height / h) * width + i % w * width / w] > 0.0;
    let mut painted = back.paint(image, 1.0, &model.class_info())?.image;
    let mut difference = Image::filled(h, w, 0.0);
    let (mut sum, mut count) = (0.0, 0usize);
    for (i, differs) in differs.iter().enumerate() {
        let seen = in_sight(i);
        (0..3).for_each(|c| {
            let at = c * h * w + i;
            painted.pixels_mut()[at] *= f32::from(u8::from(seen));
            difference.pixels_mut()[at] = if seen { *differs } else { 0.0 };
        });
        sum += if seen { f64::from(*differs) } else { 0.0 };
        count += usize::from(seen);
    }
    row.extend([painted, difference]);
    Ok(sum / count.max(1) as f64)
}
