//! `evenkeel model init`: proposes a contract from the graph with its reasons, asks for the rest, writes the contract and tries it.

mod ask;
mod own;
mod tell;
mod trial;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel::model::propose::{Answers, Proposal};
use evenkeel::model::{
    CLASS_SETS, ClassSet, Contract, Model, NamesRule, Order, PIXEL_PRESETS, PaletteRule, PixelPreset,
    ResizeRule, coco_ids,
};
use evenkeel::network::TensorNames;
use evenkeel::task::TaskKind;

use self::own::TaskArgs;
use crate::size;

/// Propose a contract from a network's graph, and write it beside the network
#[derive(Debug, clap::Args)]
#[command(after_long_help = tables())]
pub(crate) struct InitArgs {
    /// The network: ONNX, or a checkpoint of the zoo
    model: PathBuf,
    /// What the network does; `evenkeel list tasks` describes each
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(TaskKind::names()))]
    task: Option<String>,
    /// The tensor of class scores or values; for instances the head's tensors, `a + b`
    #[arg(long, value_name = "TENSOR")]
    output: Option<String>,
    /// The tensor of features that views are compared on; several as `a + b + c`
    #[arg(long, value_name = "TENSOR")]
    feature: Option<String>,
    /// How pixels become input, by name; --order, --scale, --mean and --std change parts of it
    #[arg(long, value_name = "PRESET", value_parser = presets())]
    pixels: Option<String>,
    /// rgb or bgr
    #[arg(long, value_parser = order)]
    order: Option<Order>,
    /// What a pixel in [0, 1] is multiplied by first
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f32>,
    /// What is subtracted then: three numbers in the network's channel order, with commas or spaces
    #[arg(long, value_name = "X,X,X", num_args = 1..=3, allow_negative_numbers = true)]
    mean: Vec<String>,
    /// What it is divided by then: three numbers
    #[arg(long, value_name = "X,X,X", num_args = 1..=3)]
    std: Vec<String>,
    /// Channels come last in the network's input
    #[arg(long)]
    channels_last: bool,
    /// The size that images are brought to; `any` to keep theirs
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    size: Option<String>,
    /// refuse, stretch, crop or letterbox: what to do with images of another size
    #[arg(long, value_parser = resize)]
    resize: Option<ResizeRule>,
    /// Sides must be multiples of this
    #[arg(long, value_name = "N")]
    multiple: Option<usize>,
    /// Colours, with the names of their classes: cityscapes, cityscapes:20 (with background), coco, cifar10, voc or voc:N
    #[arg(long, value_name = "NAME")]
    palette: Option<String>,
    /// The classes: a known set by name, a file with a name a line, or `none`
    #[arg(long, value_name = "SET|FILE")]
    names: Option<String>,
    /// The numbers the data set gives the classes: `coco` (with COCO's names), or a list such as 1,2,3
    #[arg(long)]
    ids: Option<String>,
    #[command(flatten)]
    own: TaskArgs,
    /// Show what the network says of this photo under every preset of --pixels, and write nothing
    #[arg(long = "try", value_name = "PHOTO")]
    photo: Option<PathBuf>,
    /// Where the contract goes; beside the network if left out
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// Replace a contract that is there already
    #[arg(long)]
    force: bool,
}

fn presets() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(PIXEL_PRESETS.iter().map(|preset| preset.name))
}

fn tables() -> String {
    let rows = |rows: Vec<(&str, &str)>| -> String {
        let widest = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
        rows.iter().map(|(name, about)| format!("  {name:widest$}  {about}\n")).collect()
    };
    format!(
        "Presets of --pixels:\n{}\nSets of --names:\n{}",
        rows(PIXEL_PRESETS.iter().map(|p| (p.name, p.about)).collect()),
        rows(CLASS_SETS.iter().map(|s| (s.name, s.about)).collect())
    )
}

fn order(text: &str) -> Result<Order, String> {
    match text {
        "rgb" => Ok(Order::Rgb),
        "bgr" => Ok(Order::Bgr),
        _ => Err("rgb or bgr is needed".into()),
    }
}

fn resize(text: &str) -> Result<ResizeRule, String> {
    match text {
        "refuse" => Ok(ResizeRule::Refuse),
        "stretch" => Ok(ResizeRule::Stretch),
        "crop" => Ok(ResizeRule::Crop),
        "letterbox" => Ok(ResizeRule::Letterbox),
        _ => Err("refuse, stretch, crop or letterbox is needed".into()),
    }
}

/// Three numbers, with commas or spaces between them.
fn three(parts: &[String], flag: &str) -> Result<Option<[f32; 3]>> {
    if parts.is_empty() {
        return Ok(None);
    }
    let text = parts.join(",");
    let numbers: Result<Vec<f32>, _> =
        text.split([',', ' ']).filter(|p| !p.is_empty()).map(str::parse).collect();
    match numbers.ok().and_then(|numbers| <[f32; 3]>::try_from(numbers).ok()) {
        Some(three) => Ok(Some(three)),
        None => bail!("{flag} {}: three numbers are needed, such as 0.485,0.456,0.406", parts.join(" ")),
    }
}

fn class_ids(text: &str) -> Result<Vec<i64>> {
    if text == "coco" {
        return Ok(coco_ids());
    }
    let number =
        |part: &str| part.trim().parse().with_context(|| format!("--ids {text}: coco or numbers are needed"));
    text.split(',').map(number).collect()
}

/// A known set by name, a file with a name a line, or none.
fn class_names(text: &str) -> Result<NamesRule> {
    if text == "none" {
        return Ok(NamesRule::default());
    }
    let path = std::path::Path::new(text);
    match (ClassSet::find(text), path.is_file()) {
        (Some(set), false) => Ok(NamesRule::Known(set.name.to_owned())),
        (None, false) => {
            let known: Vec<_> = CLASS_SETS.iter().map(|set| set.name).collect();
            bail!("--names {text}: neither a file nor one of {}", known.join(", "))
        }
        (_, true) => {
            let lines = std::fs::read_to_string(path).with_context(|| text.to_owned())?;
            let names = lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
            Ok(NamesRule::Each(names.collect()))
        }
    }
}

impl InitArgs {
    /// What the flags say.
    fn answers(&self, proposal: &Proposal) -> Result<Answers> {
        let preset = self.pixels.as_deref().map(PixelPreset::named).transpose()?;
        let size = match self.size.as_deref() {
            None | Some("any") => None,
            Some(text) => {
                Some(size::parse(text).map_err(|reason| anyhow::anyhow!("--size {text}: {reason}"))?)
            }
        };
        let fixed =
            proposal.size.as_ref().filter(|known| known.why.contains("fixes")).map(|known| known.value);
        if let (Some(given), Some(fixed)) = (size, fixed)
            && given != fixed
        {
            let (given_words, fixed_words) = (size::words(given), size::words(fixed));
            bail!("--size {given_words}: the network takes {fixed_words} only; {}", size::cure(given, fixed));
        }
        let coco = self.ids.as_deref() == Some("coco") && self.names.is_none();
        let names = self.names.as_deref().map(class_names).transpose()?;
        Ok(Answers {
            task: self.task.clone(),
            output: self.output.clone().map(TensorNames::from),
            feature: self.feature.clone().map(TensorNames::from),
            order: self.order.or(preset.map(|p| p.order)),
            scale: self.scale.or(preset.map(|p| p.scale)),
            mean: three(&self.mean, "--mean")?.or(preset.map(|p| p.mean)),
            std: three(&self.std, "--std")?.or(preset.map(|p| p.std)),
            channels_last: self.channels_last,
            size,
            resize: self.resize,
            multiple: self.multiple,
            palette: self.palette.as_deref().map(palette).transpose()?,
            names: names.or(coco.then(|| NamesRule::Known("coco".into()))),
            ids: self.ids.as_deref().map(class_ids).transpose()?,
            own: self.own.0.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect(),
        })
    }
}

/// `voc` is short for `voc:21`.
fn palette(name: &str) -> Result<PaletteRule> {
    Ok(PaletteRule::Named(if name == "voc" { "voc:21" } else { name }.to_owned()))
}

pub(crate) fn run(args: InitArgs) -> Result<()> {
    let path = args.contract.clone().unwrap_or_else(|| Contract::path_beside(&args.model));
    if path.exists() && !args.force && args.photo.is_none() {
        bail!("{}: there is a contract already; --force replaces it", path.display());
    }
    std::fs::metadata(&args.model).with_context(|| args.model.display().to_string())?;
    let mut proposal = Proposal::of_file(&args.model)?;
    if args.size.as_deref() == Some("any") {
        proposal.size = None;
    }
    let mut answers = args.answers(&proposal)?;
    if let Some(task) = answers.task.as_deref().or(proposal.task.as_ref().map(|task| task.value)) {
        args.own.check(task)?;
    }
    tell::proposal(&args.model, &proposal, &answers);
    if let Some(photo) = &args.photo {
        return trial::run(&args.model, &proposal, &answers, photo);
    }
    let contract = match proposal.contract(&answers)? {
        Ok(contract) => contract,
        Err(questions) => {
            ask::all(&args.model, &questions, &mut answers)?;
            match proposal.contract(&answers)? {
                Ok(contract) => contract,
                Err(left) => bail!("{}", ask::missing(&args.model, &left)),
            }
        }
    };
    Model::with_contract(&args.model, &contract)?;
    contract.save(&path)?;
    println!("{}: written and tried", path.display());
    println!("next: evenkeel predict {} PHOTOS --out out/", args.model.display());
    Ok(())
}
