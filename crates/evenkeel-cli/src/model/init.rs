//! `evenkeel model init`: writes the contract beside a network, from flags or by asking.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, PaletteRule, ResizeRule};
use evenkeel::network::TensorNames;
use evenkeel::task::instance::{InstanceRule, NamedHead};

/// Write down how pixels become a network's input, and what comes out
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// An ONNX network
    model: PathBuf,
    /// classification, semantic or instance
    #[arg(long)]
    task: Option<String>,
    /// The tensor of class scores; the only output if there is one. For instances the head's tensors, `a + b`
    #[arg(long)]
    output: Option<String>,
    /// The tensor of features that views are compared on; several as `a + b + c`
    #[arg(long)]
    feature: Option<String>,
    /// rgb or bgr
    #[arg(long)]
    order: Option<String>,
    /// What a pixel in [0, 1] is multiplied by first
    #[arg(long)]
    scale: Option<String>,
    /// What is subtracted then: three numbers in the network's channel order
    #[arg(long)]
    mean: Option<String>,
    /// What it is divided by then: three numbers
    #[arg(long)]
    std: Option<String>,
    /// Whether channels come last in the network's input
    #[arg(long)]
    channels_last: bool,
    /// HEIGHTxWIDTH that images are brought to; left out, they keep theirs
    #[arg(long)]
    size: Option<String>,
    /// refuse, stretch, crop or letterbox: what to do with images of another size
    #[arg(long)]
    resize: Option<String>,
    /// Sides must be multiples of this
    #[arg(long, default_value_t = 1)]
    multiple: usize,
    /// cityscapes, cityscapes:20 (with background) or voc:N
    #[arg(long)]
    palette: Option<String>,
    /// A file of class names, one a line
    #[arg(long)]
    names: Option<PathBuf>,
    /// The numbers the data set gives the classes: `coco`, or a list such as 1,2,3
    #[arg(long)]
    ids: Option<String>,
    /// The head of an instance segmenter: yolo-seg, or mask-rcnn, which knows its tensors
    #[arg(long, value_name = "HEAD")]
    head: Option<String>,
    /// Instances less sure than this are dropped
    #[arg(long, default_value_t = 0.01)]
    confidence: f32,
    /// Of two boxes of one class that overlap by more than this, one is dropped
    #[arg(long, default_value_t = 0.7)]
    overlap: f32,
    /// The most instances kept in an image
    #[arg(long, default_value_t = 100)]
    most: usize,
    /// Replace a contract that is there already
    #[arg(long)]
    force: bool,
}

/// What was given, or else what is answered on a terminal; a network is never guessed about.
fn answer(given: Option<&String>, flag: &str, question: &str) -> Result<String> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    if !std::io::stdin().is_terminal() {
        bail!("{flag} is needed: {question}");
    }
    print!("{question}: ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn three(text: &str, flag: &str) -> Result<[f32; 3]> {
    let parts: Vec<f32> =
        text.split([',', ' ']).filter(|p| !p.is_empty()).filter_map(|p| p.parse().ok()).collect();
    parts
        .try_into()
        .map_err(|_| anyhow::anyhow!("{flag} {text}: three numbers are needed, such as 0.485,0.456,0.406"))
}

/// COCO's 80 categories are numbered up to 90, with gaps.
fn class_ids(text: &str) -> Result<Vec<i64>> {
    const GAPS: [i64; 10] = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83];
    if text == "coco" {
        return Ok((1..=90).filter(|id| !GAPS.contains(id)).collect());
    }
    let number =
        |part: &str| part.trim().parse().with_context(|| format!("--ids {text}: numbers are needed"));
    text.split(',').map(number).collect()
}

pub(crate) fn run(args: InitArgs) -> Result<()> {
    let path = Contract::path_beside(&args.model);
    if path.exists() && !args.force {
        bail!("{}: there is a contract already; --force replaces it", path.display());
    }
    let network = evenkeel_network::Network::load(&args.model)?;
    let outputs: Vec<String> = network.outputs().map(str::to_owned).collect();
    let only = if let [one] = outputs.as_slice() { Some(one.clone()) } else { None };
    let head = args.head.as_deref().map(NamedHead::find).transpose()?;
    let of_head = head.and_then(|head| head.output).map(|output| output());
    let output = args.output.clone().map(TensorNames::from).or(of_head).or(only.map(TensorNames::from));
    let of_head = head.and_then(|head| head.feature).map(|feature| feature());
    let feature = args.feature.clone().map(TensorNames::from).or(of_head);
    let size =
        args.size.as_deref().map(|text| match text.split_once('x').map(|(h, w)| (h.parse(), w.parse())) {
            Some((Ok(h), Ok(w))) => Ok([h, w]),
            _ => bail!("--size {text}: HEIGHTxWIDTH is needed"),
        });
    let names = match &args.names {
        Some(file) => std::fs::read_to_string(file).with_context(|| file.display().to_string())?,
        None => String::new(),
    };
    let contract = Contract {
        task: answer(args.task.as_ref(), "--task", "classification, semantic or instance")?,
        output: match output {
            Some(output) => output,
            None => {
                let question = format!("the tensor of class scores, of {}", outputs.join(", "));
                answer(None, "--output", &question)?.into()
            }
        },
        feature: match feature {
            Some(feature) => feature,
            None => answer(None, "--feature", "the tensor of features that views are compared on")?.into(),
        },
        input: InputRule {
            order: match answer(args.order.as_ref(), "--order", "rgb or bgr")?.as_str() {
                "rgb" => Order::Rgb,
                "bgr" => Order::Bgr,
                other => bail!("--order {other}: rgb or bgr is needed"),
            },
            scale: {
                let text = answer(
                    args.scale.as_ref(),
                    "--scale",
                    "what a pixel in [0, 1] is multiplied by: 1 or 255",
                )?;
                text.parse().with_context(|| format!("--scale {text}"))?
            },
            mean: three(
                &answer(args.mean.as_ref(), "--mean", "what is subtracted then, three numbers")?,
                "--mean",
            )?,
            std: three(
                &answer(args.std.as_ref(), "--std", "what it is divided by then, three numbers")?,
                "--std",
            )?,
            channels_last: args.channels_last,
            size: size.transpose()?,
            resize: match answer(
                args.resize.as_ref(),
                "--resize",
                "refuse, stretch, crop or letterbox images of another size",
            )?
            .as_str()
            {
                "refuse" => ResizeRule::Refuse,
                "stretch" => ResizeRule::Stretch,
                "crop" => ResizeRule::Crop,
                "letterbox" => ResizeRule::Letterbox,
                other => bail!("--resize {other}: refuse, stretch, crop or letterbox is needed"),
            },
            multiple: args.multiple,
        },
        classes: Classes {
            names: names.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect(),
            palette: args.palette.clone().map(PaletteRule::Named),
            ids: args.ids.as_deref().map(class_ids).transpose()?.unwrap_or_default(),
        },
        instance: args.head.clone().map(|head| InstanceRule {
            head,
            confidence: args.confidence,
            overlap: args.overlap,
            most: args.most,
        }),
    };
    contract.check()?;
    Model::with_contract(&args.model, &contract)?;
    contract.save(&path)?;
    println!("{}: written and tried", path.display());
    Ok(())
}
