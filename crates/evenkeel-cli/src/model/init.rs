//! `evenkeel model init`: writes the contract beside a network, from flags or by asking.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, PaletteRule, ResizeRule};
use evenkeel::network::TensorNames;
use evenkeel::task::{TASKS, TaskKey, TaskKind};

/// Write down how pixels become a network's input, and what comes out
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// An ONNX network
    model: PathBuf,
    /// What the network does; `evenkeel list tasks` tells them apart
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(TaskKind::names()))]
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
    #[command(flatten)]
    own: TaskArgs,
    /// Replace a contract that is there already
    #[arg(long)]
    force: bool,
}

/// What the contract's table of the task holds, by key, as it was given.
#[derive(Debug)]
struct TaskArgs(Vec<(&'static str, String)>);

/// The keys of all tasks' tables, each once, with the tasks that read it.
fn task_keys() -> Vec<(&'static TaskKey, Vec<&'static str>)> {
    let mut all: Vec<(&TaskKey, Vec<&str>)> = Vec::new();
    for (kind, key) in TASKS.iter().flat_map(|kind| kind.keys.iter().map(move |key| (kind, key))) {
        match all.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, tasks)) => tasks.push(kind.name),
            None => all.push((key, vec![kind.name])),
        }
    }
    all
}

fn flag_of(key: &str) -> String {
    key.replace('_', "-")
}

impl clap::Args for TaskArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        task_keys().into_iter().fold(command, |command, (key, tasks)| {
            let default = key.default.map_or(String::new(), |value| format!(" [default: {value}]"));
            let help = format!("For {}: {}{default}", tasks.join(", "), key.help);
            let arg = clap::Arg::new(flag_of(key.name)).long(flag_of(key.name));
            command.arg(arg.value_name("VALUE").allow_negative_numbers(true).help(help))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for TaskArgs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let value =
            |key: &'static TaskKey| Some((key.name, matches.get_one::<String>(&flag_of(key.name))?.clone()));
        Ok(Self(task_keys().into_iter().filter_map(|(key, _)| value(key)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl TaskArgs {
    /// The task's table: what was given and what has a default. A text is a number or a list of them if it looks like one.
    fn table(&self, kind: &TaskKind) -> Result<toml::Table> {
        let known = |name: &str| kind.keys.iter().any(|key| key.name == name);
        if let Some((name, _)) = self.0.iter().find(|(name, _)| !known(name)) {
            bail!("--{}: the task {} does not read it", flag_of(name), kind.name);
        }
        let value = |text: &str| {
            let listed = if text.contains(',') { format!("[{text}]") } else { text.to_owned() };
            let parsed: Result<toml::Table, _> = format!("x = {listed}").parse();
            parsed
                .ok()
                .and_then(|mut t| t.remove("x"))
                .unwrap_or_else(|| toml::Value::String(text.to_owned()))
        };
        let given =
            |key: &TaskKey| self.0.iter().find(|(name, _)| *name == key.name).map(|(_, text)| text.as_str());
        let entry = |key: &TaskKey| Some((key.name.to_owned(), value(given(key).or(key.default)?)));
        Ok(kind.keys.iter().filter_map(entry).collect())
    }
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
    let task = TaskKind::find(&answer(args.task.as_ref(), "--task", &TaskKind::names().join(", "))?)?;
    let own = args.own.table(task)?;
    let (own_output, own_feature) = (task.tensors)(&own)?;
    let output = args.output.clone().map(TensorNames::from).or(own_output).or(only.map(TensorNames::from));
    let feature = args.feature.clone().map(TensorNames::from).or(own_feature);
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
        task: task.name.into(),
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
            names: names
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .into(),
            palette: args.palette.clone().map(PaletteRule::Named),
            ids: args.ids.as_deref().map(class_ids).transpose()?.unwrap_or_default(),
        },
        tables: match own.is_empty() {
            true => BTreeMap::new(),
            false => BTreeMap::from([(task.name.to_owned(), toml::Value::Table(own))]),
        },
    };
    contract.check()?;
    Model::with_contract(&args.model, &contract)?;
    contract.save(&path)?;
    println!("{}: written and tried", path.display());
    Ok(())
}
