//! `evenkeel-train`: trains the networks that evenkeel ships.

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};
use evenkeel::model::Model;
use evenkeel::settings::parse_radius_255;
use evenkeel::{Image, Random};
use evenkeel_data::dataset::scenes::{INSTANCE_CLASSES, OBJECT_CLASSES, SCENE_CLASSES, Split};
use evenkeel_data::dataset::{Dataset, Request};
use evenkeel_data::metric::instance::InstanceFigures;
use evenkeel_train::adversary::Adversary;
use evenkeel_train::batch::{Pool, Subject};
use evenkeel_train::train::Plan;
use evenkeel_train::{Net, checkpoint, export, heads, instance, networks};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Heads learnt from fewer images would know nothing else; a fifth of them is held out.
const FEWEST_IMAGES: usize = 10;

/// A training keeps some megabytes for every picture of a batch.
const LARGEST_BATCH: usize = 512;

/// Train the small networks that evenkeel ships
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A class for every pixel of a street scene
    Segmenter(TrainArgs),
    /// The class of an object crop
    Classifier(TrainArgs),
    /// The cars and people of a street scene, each with its mask
    Instances(TrainArgs),
    /// Rotation and contrastive heads on a trained network's frozen features
    Heads(HeadArgs),
    /// Time training steps of the segmenter
    Bench,
}

#[derive(Debug, Args)]
struct HeadArgs {
    /// The network (ONNX, with its contract beside it); the heads go beside it
    network: PathBuf,
    /// Rendered pictures to learn from
    #[arg(long, default_value_t = 600)]
    pictures: usize,
    /// Learn from the PNG and JPEG images in this folder and its subfolders instead, for a network of your own
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A distance between pixel values in [0, 1].
fn radius(text: &str) -> Result<f32, String> {
    parse_radius_255(text).map(|radius_255| (radius_255 / 255.0) as f32).map_err(|e| e.to_string())
}

#[derive(Debug, Args)]
struct TrainArgs {
    /// Where the network goes: NAME.onnx, or NAME.safetensors for the weights and NAME.onnx for the graph; the contract, checkpoint
    /// and curves go beside it
    #[arg(short, long, value_name = "FILE", value_parser = output_file)]
    output: PathBuf,
    /// What to train on: `scenes`, the rendered street scenes
    #[arg(long, default_value = "scenes", value_parser = ["scenes"])]
    data: String,
    /// Train on attacked pictures: PGD within this radius, 4/255 say
    #[arg(long, value_name = "RADIUS", value_parser = radius)]
    adversarial: Option<f32>,
    /// Steps of the adversary
    #[arg(long, default_value_t = 3, value_parser = count)]
    adversary_steps: usize,
    /// Begin with the weights of another run's checkpoint, where names and sizes are the same
    #[arg(long, value_name = "CHECKPOINT")]
    start: Option<PathBuf>,
    /// Steps of training
    #[arg(long, default_value_t = 3000, value_parser = count)]
    steps: usize,
    /// Pictures in a batch
    #[arg(long, value_parser = batch)]
    batch: Option<usize>,
    /// Pictures rendered to train on
    #[arg(long, value_parser = count)]
    pictures: Option<usize>,
    /// Held-out pictures to evaluate on
    #[arg(long, default_value_t = 100, value_parser = count)]
    held_out: usize,
    /// The highest learning rate
    #[arg(long, default_value_t = 3e-3)]
    rate: f32,
    /// Steps between evaluations and checkpoints
    #[arg(long, default_value_t = 200, value_parser = count)]
    every: usize,
    /// Stop before this step; run again to go on
    #[arg(long, value_name = "STEP")]
    until: Option<usize>,
    /// Stop after so many minutes; run again to go on
    #[arg(long, default_value_t = 90.0)]
    minutes: f64,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(Cli::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: What) -> Result<()> {
    match what {
        What::Segmenter(args) => train(Subject::Scenes, &args),
        What::Classifier(args) => train(Subject::Objects, &args),
        What::Instances(args) => train(Subject::Instances, &args),
        What::Heads(args) => train_heads(&args),
        What::Bench => bench(),
    }
}

/// Refuses a file that would not be what its name says.
fn output_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("onnx" | "safetensors") => Ok(path),
        _ => Err("name it .onnx, or .safetensors to have the weights in a file of their own".into()),
    }
}

/// A number of things of which there must be some.
fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("a whole number is needed".into()),
    }
}

/// A number of pictures whose maps fit into memory.
fn batch(text: &str) -> Result<usize, String> {
    match count(text)? {
        number if number <= LARGEST_BATCH => Ok(number),
        _ => Err(format!("at most {LARGEST_BATCH} pictures can be in a batch")),
    }
}

fn fresh(subject: Subject, seed: u64) -> Net {
    let mut random = Random::new(seed).fork(u64::MAX);
    match subject {
        Subject::Scenes => networks::segmenter(SCENE_CLASSES.len(), &mut random),
        Subject::Objects => networks::classifier(OBJECT_CLASSES.len(), &mut random),
        Subject::Instances => networks::instances(INSTANCE_CLASSES.len(), &mut random),
    }
}

fn plan(subject: Subject, args: &TrainArgs) -> Plan {
    let scenes = subject != Subject::Objects;
    Plan {
        subject,
        steps: args.steps,
        batch: args.batch.unwrap_or(if scenes { 8 } else { 64 }),
        window: if scenes { (96, 192) } else { (56, 56) },
        peak: args.rate,
        decay: 0.02,
        adversary: args.adversarial.map(|epsilon| Adversary { epsilon, steps: args.adversary_steps }),
        every: args.every,
        seed: args.seed,
        minutes: args.minutes,
        checkpoint: args.output.with_extension("checkpoint.safetensors"),
    }
}

fn train(subject: Subject, args: &TrainArgs) -> Result<()> {
    let folder = args.output.parent().filter(|f| !f.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|f| !f.is_dir()) {
        bail!("{} is not a folder; make it, or name another --output", folder.display());
    }
    let mut net = fresh(subject, args.seed);
    if let Some(start) = &args.start {
        let taken = checkpoint::adopt(start, &mut net)?;
        eprintln!("{taken} tensors from {}", start.display());
    }
    eprintln!("{} parameters; rendering the {}", net.size(), args.data);
    let pictures = args.pictures.unwrap_or(if subject == Subject::Objects { 12_000 } else { 3000 });
    let pool = Pool::render(subject, Split::Train, pictures);
    let held_out = Pool::render(subject, Split::Val, args.held_out);
    let plan = plan(subject, args);
    let end = args.until.unwrap_or(plan.steps);
    let (history, done) = plan.run_until(end, &mut net, &pool, &held_out)?;
    let graph = export::save(&net, subject, &args.output)?;
    println!(
        "{} after {} steps and {:.1} minutes: {:.2} on {} held-out pictures{}",
        graph.display(),
        history.step,
        history.seconds / 60.0,
        history.scores.last().map_or(0.0, |s| s.1),
        held_out.len(),
        if done { "" } else { "; run again to go on" }
    );
    if subject == Subject::Scenes {
        let overlaps = plan.overlaps(&net, &held_out).into_iter().zip(SCENE_CLASSES);
        let known = overlaps.filter_map(|(iou, class)| iou.map(|iou| format!("{class} {:.1}", 100.0 * iou)));
        println!("IoU by class: {}", known.collect::<Vec<_>>().join(", "));
    }
    if subject == Subject::Instances {
        let by_class = instance::score(&net, &held_out)?.by_category();
        let one = |((_, figures), (name, _)): ((i64, InstanceFigures), (&str, _))| {
            format!("{name} {:.1}", 100.0 * figures.0[1].unwrap_or(0.0))
        };
        let known: Vec<String> = by_class.into_iter().zip(INSTANCE_CLASSES).map(one).collect();
        println!("mask AP50 by class: {}", known.join(", "));
    }
    Ok(())
}

fn train_heads(args: &HeadArgs) -> Result<()> {
    if args.pictures < FEWEST_IMAGES {
        bail!("--pictures {}; a head needs at least {FEWEST_IMAGES}", args.pictures);
    }
    let model = Model::load(&args.network)?;
    let images = match &args.images {
        Some(folder) => images_in(folder, &model)?,
        None => {
            // a network with one answer for the whole image was trained on crops
            let grey = model.fit(&Image::filled(64, 64, 0.5))?;
            let crops = model.scores(&grey)?.extents("scores").is_ok_and(|scores| scores.cells() == 1);
            let subject = if crops { Subject::Objects } else { Subject::Scenes };
            let pool = Pool::render(subject, Split::Train, args.pictures);
            let alone = (0..pool.len()).map(|k| pool.plain(k, k + 1).image(0));
            alone.collect::<evenkeel::Result<Vec<_>>>()?
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

/// The images of a folder, as the network takes them.
fn images_in(folder: &Path, model: &Model) -> Result<Vec<Image>> {
    let images = Dataset::open("folder", folder, &Request::default())?;
    if images.len() < FEWEST_IMAGES {
        bail!("{} has {} images; a head needs at least {FEWEST_IMAGES}", folder.display(), images.len());
    }
    (0..images.len()).map(|place| Ok(model.fit(&images.sample(place)?.image)?)).collect()
}

fn bench() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("evenkeel-train-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let pool = Pool::render(Subject::Scenes, Split::Train, 16);
    let plan = Plan {
        subject: Subject::Scenes,
        steps: 24,
        batch: 8,
        window: (96, 192),
        peak: 1e-3,
        decay: 0.02,
        adversary: None,
        every: 1000,
        seed: 1,
        minutes: 5.0,
        checkpoint: folder.join("bench.safetensors"),
    };
    let start = Instant::now();
    plan.run(&mut fresh(Subject::Scenes, 1), &pool, &Pool::render(Subject::Scenes, Split::Val, 1))?;
    let speed = (plan.steps * plan.batch) as f64 / start.elapsed().as_secs_f64();
    println!("evenkeel-train: {speed:.1} images/s ({} steps of {})", plan.steps, plan.batch);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said to somebody who asks for this.
    fn refused(words: &[&str]) -> String {
        let line = ["evenkeel-train", "classifier", "--output"].iter().chain(words);
        match Cli::try_parse_from(line).map(|cli| run(cli.what)) {
            Err(error) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => panic!("{words:?} was not refused"),
        }
    }

    #[test]
    fn absurd_requests_are_refused_before_anything_is_rendered() {
        for name in ["--batch", "--pictures", "--held-out", "--steps", "--every", "--adversary-steps"] {
            let told = refused(&["a.onnx", name, "0"]);
            assert!(told.contains(name) && told.contains("at least 1"), "{told}");
        }
        let told = refused(&["a.onnx", "--batch", "100000000"]);
        assert!(told.contains("at most 512 pictures"), "{told}");
        let told = refused(&["no/such/folder/a.onnx"]);
        assert!(told.contains("no/such/folder is not a folder"), "{told}");
        let told = refused(&["a.bin"]);
        assert!(told.contains("name it .onnx"), "{told}");
    }
}
