//! `evenkeel inspect-views`: the picture of the idea. Row by row: the view of the image, the answer for it, the answer undone, and
//! where it differs from the answer for the image itself.

use std::path::PathBuf;

use anyhow::{Result, bail};
use evenkeel::detect::{DetectorKind, DetectorSpec, Outputs, ViewOutputs, instance_variance};
use evenkeel::image::{Image, LabelMap};
use evenkeel::model::Model;
use evenkeel::random::Random;
use evenkeel::task::instance::{confident, overlaid};
use evenkeel::task::{Prediction, best_classes};
use evenkeel::view::DrawnView;
use serde_json::json;

use crate::knobs::KnobArgs;
use crate::workbench::{fitted, palette, prediction_json, prediction_words, progress, stem_in};

/// Show an image, its views, the answers undone, and where they differ
#[derive(Debug, clap::Args)]
pub(crate) struct InspectViewsArgs {
    /// An ONNX network, with its contract beside it
    model: PathBuf,
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
    let model = Model::load(&args.model)?;
    let image = fitted(&model, &args.image)?;
    let mut spec = DetectorSpec::named("variance")?;
    args.knobs.apply(&mut spec)?;
    let set = spec.settings().views.set.clone().fitted(model.network.fixed_size().is_some(), model.multiple);
    let views = set.draw(&Random::new(spec.settings().seed));
    let answer = model.predict(&image)?;
    if let Prediction::Instances(_) = &answer {
        return inspect_instances(&args, &model, &image, &views);
    }
    let outputs = ViewOutputs::at(&model, &image, &views, Outputs::Softmax)?;
    let rows = match &answer {
        Prediction::Map(map) => map_rows(&model, &image, &views, &outputs, map)?,
        _ => views.iter().map(|v| vec![image.clone(), v.apply(&image)]).collect(),
    };
    let differs: Vec<f64> =
        outputs.views.iter().map(|(map, mask)| share_that_differs(&outputs, map, mask)).collect();
    let file = PathBuf::from(format!("{}.views.png", stem_in(&args.out, &args.image)?.display()));
    sheet(&rows, image.size())?.save_png(&file)?;
    let described: Vec<_> =
        views.iter().zip(&differs).map(|(v, d)| json!({ "view": v.caption(), "differs": d })).collect();
    let value = json!({
        "image": args.image,
        "prediction": prediction_json(&model, &answer),
        "views": described,
        "variance": outputs.variance(),
        "saved": file,
    });
    let mut words = format!("{}: {}\n", args.image.display(), prediction_words(&model, &answer));
    for (view, share) in views.iter().zip(&differs) {
        let percent = 100.0 * share;
        words += &format!("  {}: differs on {percent:.1} % of what the view shows\n", view.caption());
    }
    words += &format!("  picture: {}", file.display());
    progress(1).say(args.json, &value, &words);
    Ok(())
}

/// Each view of the image with the objects seen in it.
fn inspect_instances(
    args: &InspectViewsArgs,
    model: &Model,
    image: &Image,
    views: &[DrawnView],
) -> Result<()> {
    let overlay = |seen: &Image| -> Result<(Image, String)> {
        let answer = model.predict(seen)?;
        let Prediction::Instances(all) = &answer else { bail!("the network's answer is not instances") };
        Ok((overlaid(seen, &confident(all), 0.5)?, prediction_words(model, &answer)))
    };
    let (own, own_words) = overlay(image)?;
    let (mut rows, mut described) = (vec![vec![image.clone(), own]], Vec::new());
    let mut words = format!("{}: {own_words}\n", args.image.display());
    for view in views {
        let seen = view.apply(image);
        let (picture, said) = overlay(&seen)?;
        rows.push(vec![seen, picture]);
        words += &format!("  {}: {said}\n", view.caption());
        described.push(json!({ "view": view.caption(), "says": said }));
    }
    let file = PathBuf::from(format!("{}.views.png", stem_in(&args.out, &args.image)?.display()));
    sheet(&rows, image.size())?.save_png(&file)?;
    let variance = instance_variance(model, image, views)?;
    words += &format!("  variance {variance:.4}; picture: {}", file.display());
    let value = json!({ "image": args.image, "views": described, "variance": variance, "saved": file });
    progress(1).say(args.json, &value, &words);
    Ok(())
}

/// The share of cells in sight where a view's answer is another.
fn share_that_differs(outputs: &ViewOutputs, map: &[f32], mask: &[f32]) -> f64 {
    let (here, there) = (best_classes(&outputs.base, outputs.extents), best_classes(map, outputs.extents));
    let in_sight: Vec<usize> = (0..mask.len()).filter(|&i| mask[i] > 0.0).collect();
    let other = in_sight.iter().filter(|&&i| here[i] != there[i]).count();
    other as f64 / in_sight.len().max(1) as f64
}

fn map_rows(
    model: &Model,
    image: &Image,
    views: &[DrawnView],
    outputs: &ViewOutputs,
    own: &LabelMap,
) -> Result<Vec<Vec<Image>>> {
    let palette = palette(model);
    let (h, w) = image.size();
    let mut rows = vec![vec![image.clone(), own.overlaid(image, &palette, 0.6)?]];
    for (view, (undone, mask)) in views.iter().zip(&outputs.views) {
        let seen = view.apply(image);
        let Prediction::Map(answer) = model.predict(&seen)? else {
            bail!("the network's answer is not a map")
        };
        let cells = outputs.extents.size();
        let labels: Vec<u16> = best_classes(undone, outputs.extents);
        let masked = labels.iter().zip(mask).map(|(l, m)| if *m > 0.0 { *l } else { 255 }).collect();
        let back = LabelMap::new(cells.0, cells.1, masked)?.resized(h, w);
        let mut difference = Image::filled(h, w, 0.0);
        for i in 0..h * w {
            if back.labels()[i] != 255 && back.labels()[i] != own.labels()[i] {
                (0..3).for_each(|c| difference.pixels_mut()[c * h * w + i] = 1.0);
            }
        }
        rows.push(vec![
            seen.clone(),
            answer.overlaid(&seen, &palette, 0.6)?,
            back.painted(&palette)?,
            difference,
        ]);
    }
    Ok(rows)
}

/// Pictures in rows on one sheet, each shrunk to fit its place without changing its proportions.
fn sheet(rows: &[Vec<Image>], (h, w): (usize, usize)) -> Result<Image> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(1);
    let scale = (320.0 / h.max(w) as f64).min(1.0);
    let (cell_h, cell_w) = ((h as f64 * scale).ceil() as usize, (w as f64 * scale).ceil() as usize);
    let gap = 4;
    let (height, width) = (rows.len() * (cell_h + gap) + gap, columns * (cell_w + gap) + gap);
    let mut out = Image::filled(height, width, 1.0);
    for (r, row) in rows.iter().enumerate() {
        for (c, picture) in row.iter().enumerate() {
            let fit = (cell_h as f64 / picture.height() as f64)
                .min(cell_w as f64 / picture.width() as f64)
                .min(1.0);
            let side = |n: usize| ((n as f64 * fit) as usize).max(1);
            let (ph, pw) = (side(picture.height()), side(picture.width()));
            let (top, left) = (gap + r * (cell_h + gap), gap + c * (cell_w + gap));
            for i in 0..3 * ph * pw {
                let (channel, y, x) = (i / (ph * pw), i / pw % ph, i % pw);
                let (sy, sx) = (y * picture.height() / ph, x * picture.width() / pw);
                out.pixels_mut()[(channel * height + top + y) * width + left + x] =
                    picture.plane(channel)[sy * picture.width() + sx];
            }
        }
    }
    Ok(out)
}
