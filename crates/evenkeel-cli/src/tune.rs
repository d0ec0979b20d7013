//! `evenkeel tune`: tries what there is on a network and its images, and writes what to use as a policy, with a page that shows why.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use evenkeel::image::{Image, write_atomically};
use evenkeel::settings::parse_radius_255;
use evenkeel::{Model, Policy};
use evenkeel_study::experiment::SubjectRule;
use evenkeel_study::run::{Embedded, Watch};
use evenkeel_study::tune::{self, Notice, Request, Rule, Stage, page};

use crate::images::files;
use crate::study::{STOP, listen};

/// Find what to use on a network: tries answers, transforms and objectives under attackers of increasing knowledge
///
/// Half of the images choose, the other half judge. Killed or out of time, the same command goes on from there.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneArgs {
    /// An ONNX network with its contract beside it, or embedded:NAME
    model: String,
    /// The kind of data set and where it lies (`evenkeel list data`); `folder PATH` has no labels: the clean answers are taken for the truth
    #[arg(long, num_args = 2, value_names = ["KIND", "PATH"], required = true)]
    data: Vec<String>,
    /// The part of the data set to read
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// How many classes there are, where the layout does not say
    #[arg(long, value_name = "COUNT")]
    classes: Option<usize>,
    /// WIDTHxHEIGHT or native, if not the kind's usual size
    #[arg(long)]
    size: Option<String>,
    /// At most this many images
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// How long it may take, in minutes
    #[arg(long, default_value_t = tune::MINUTES)]
    minutes: f64,
    /// The attacks' radius
    #[arg(long, value_name = "RADIUS", default_value = tune::EPSILON.as_str())]
    epsilon: String,
    /// How many points of the clean score may be lost
    #[arg(long, value_name = "POINTS", default_value_t = tune::CLEAN_LOSS)]
    clean_loss: f64,
    /// Where the policy goes; net.policy.toml beside the network if left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where results and the page go; net.tune beside the network if left out
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Images at a time; as many as the machine has processors if left out
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// The seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Stages in words on standard error, with the front so far.
struct Telling;

impl Watch for Telling {
    fn done(&self, _: usize, seconds: Option<f64>) {
        if seconds.is_some() {
            eprint!(".");
        }
    }
}

impl Notice for Telling {
    fn stage(&self, stage: &Stage<'_>) {
        eprintln!("\n{}", stage.words);
        if !stage.so_far.is_empty() {
            eprintln!("the front so far:");
            page::lines(stage.so_far).iter().for_each(|line| eprintln!("{line}"));
        }
    }
}

impl TuneArgs {
    fn beside(&self) -> PathBuf {
        PathBuf::from(self.model.replace(':', "-"))
    }

    fn request(&self, folder: &Path, model: &Model) -> Result<Request> {
        let [kind, path] = self.data.as_slice() else { bail!("--data needs a kind and a path") };
        let fine = self.minutes > 0.0 && self.minutes.is_finite() && self.clean_loss >= 0.0;
        if !fine {
            bail!("--minutes must be above 0 and --clean-loss at least 0");
        }
        let (data, path, classes) = match kind.as_str() {
            "folder" => {
                let table = unlabelled(model, Path::new(path), &folder.join("answers"))?;
                ("manifest".to_string(), table, Some(model.classes))
            }
            _ => (kind.clone(), PathBuf::from(path), self.classes),
        };
        let subject = SubjectRule {
            name: self.beside().file_stem().map_or("network".into(), |stem| stem.to_string_lossy().into()),
            model: self.model.clone(),
            data,
            path,
            split: self.split.clone(),
            classes,
            size: self.size.clone(),
            limit: self.limit,
            ..SubjectRule::default()
        };
        Ok(Request {
            subject,
            epsilon_255: parse_radius_255(&self.epsilon)?,
            time: Duration::from_secs_f64(60.0 * self.minutes),
            rule: Rule { clean_loss: self.clean_loss },
            folder: folder.to_owned(),
            threads: self
                .threads
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)),
            seed: self.seed,
        })
    }
}

/// Images with the clean answers as their truth: a table in a folder of its own, with the pictures at the network's size.
fn unlabelled(model: &Model, images: &Path, into: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(into).with_context(|| into.display().to_string())?;
    let mut rows = Vec::new();
    for (number, path) in files(images)?.iter().enumerate() {
        let image = model.fit(&Image::load(path)?).with_context(|| path.display().to_string())?;
        let (picture, labels) = (format!("{number:06}.png"), format!("{number:06}.labels.png"));
        image.save_png(into.join(&picture))?;
        let prediction = model.predict(&image)?;
        rows.push(match (prediction.class(), prediction.label_map()) {
            (Some(class), _) => format!("{picture},{class},"),
            (None, Some(map)) => {
                map.save_png(into.join(&labels), None)?;
                format!("{picture},,{labels}")
            }
            (None, None) => bail!(
                "{}: images without labels serve classifiers and semantic segmenters; give a data set with its truths",
                images.display()
            ),
        });
    }
    let classes = rows.iter().any(|row| row.ends_with(','));
    let head = if classes { "image,label" } else { "image,label_map" };
    let line = |row: &String| {
        let cells: Vec<&str> = row.split(',').collect();
        format!("{},{}", cells[0], if classes { cells[1] } else { cells[2] })
    };
    let text = std::iter::once(head.to_string()).chain(rows.iter().map(line)).collect::<Vec<_>>().join("\n");
    let table = into.join("answers.csv");
    write_atomically(&table, (text + "\n").as_bytes())?;
    Ok(table)
}

fn model(name: &str) -> Result<Model> {
    match name.strip_prefix("embedded:") {
        Some(name) => Ok(evenkeel::shipped::named(name)?.model()?),
        None => Ok(Model::load(name)?),
    }
}

pub(crate) fn run(args: &TuneArgs) -> Result<()> {
    let model = model(&args.model)?;
    let folder = args.folder.clone().unwrap_or_else(|| tune::folder_beside(&args.beside()));
    let file = args.output.clone().unwrap_or_else(|| Policy::path_beside(&args.beside()));
    let request = args.request(&folder, &model)?;
    listen();
    let tuned = tune::tune(&request, &Embedded::shipped(), &STOP, &Telling)?;
    let policy = page::policy(&tuned, &request, &model.hash)?;
    policy.save(&file)?;
    let html = folder.join("index.html");
    write_atomically(&html, page::html(&tuned, &request).as_bytes())?;
    eprintln!();
    page::lines(&tuned.judged).iter().for_each(|line| println!("{line}"));
    println!("{}", policy.about);
    println!("policy: {} ({})", file.display(), policy.words());
    println!("page:   {}", html.display());
    if tuned.cut_short {
        println!("the time ran out before every stage was complete; the same command goes on from there");
    }
    Ok(())
}
