//! Sizes, classes and pixels of a proposal: what images must be brought to, whose classes these are, and whether the graph normalises.

use evenkeel_network::Network;

use super::Known;
use super::anatomy::{Anatomy, Frame};
use crate::model::contract::ResizeRule;
use crate::model::pixels::{PIXEL_PRESETS, PixelPreset};
use crate::task::{Signs, UsualSet};

/// Steps of size that networks are built for.
const STEPS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The one size a network takes, or what its sides must be multiples of: the smallest step at which it still runs, and a network that gives
/// a map at the image's size still does.
pub(super) fn sizes(
    network: &Network,
    frame: &Frame,
    anatomy: &Anatomy<'_>,
    map: bool,
) -> (Option<Known<(usize, usize)>>, Known<usize>) {
    let (h, w) = anatomy.size;
    let one = || Known::new(1, "it runs at odd sizes too");
    if let (Some(h), Some(w)) = frame.fixed {
        return (Some(Known::new((h, w), "the file fixes it")), one());
    }
    let output = anatomy.graph().outputs.first().copied();
    let full = output.and_then(|v| anatomy.grid(v)).is_some_and(|map| (map.1, map.2) == (h, w));
    for step in STEPS {
        let grown = (frame.fixed.0.unwrap_or(h + step), frame.fixed.1.unwrap_or(w + step));
        let Ok(made) = frame.shapes(network, grown) else { continue };
        let at_output = made.iter().find(|made| Some(made.value) == output);
        let keeps = at_output.is_some_and(|made| matches!(made.shape[..], [1, _, a, b] if (a, b) == grown));
        if full && map && !keeps {
            continue;
        }
        let why = format!("it runs at {}x{}", grown.1, grown.0);
        return (
            None,
            if step == 1 { one() } else { Known::new(step, why + ", and at smaller steps it does not") },
        );
    }
    (Some(Known::new((h, w), "of the sizes tried it runs at this one only")), one())
}

/// The size that networks of these classes were trained at, for those that run at any.
pub(super) fn usual_size(set: Option<&UsualSet>) -> Option<Known<(usize, usize)>> {
    let size = set?.usual_size?;
    Some(Known::new(size, "it runs at any size, and most networks for these classes were trained at this"))
}

/// How images should be brought to size.
pub(super) fn resize(signs: Option<&Signs>, head: Option<&str>, sized: bool) -> Known<ResizeRule> {
    let (rule, why) = signs.unwrap_or(&Signs::NONE).resize;
    match head {
        Some("yolo-seg") => {
            Known::new(ResizeRule::Letterbox, "YOLO's frame: no part is cut off or stretched")
        }
        _ if sized => Known::new(rule, why),
        _ => Known::new(
            ResizeRule::Stretch,
            "images keep their size, or the next smaller that the network takes",
        ),
    }
}

/// The data set that probably has this number of classes.
pub(super) fn class_set(
    signs: &Signs,
    classes: usize,
    size: Option<&Known<(usize, usize)>>,
) -> Option<&'static UsualSet> {
    let size = size.map(|size| size.value);
    signs.sets.iter().find(|set| set.classes == classes && (set.only_at.is_none() || set.only_at == size))
}

/// How pixels become input, where the head's convention or the graph's own first steps tell.
pub(super) fn pixels(
    anatomy: &Anatomy<'_>,
    head: Option<&str>,
    architecture: Option<&str>,
) -> Option<Known<&'static PixelPreset>> {
    let named = |name: &str| PIXEL_PRESETS.iter().find(|preset| preset.name == name);
    if let Some(bytes) = normalises(anatomy) {
        let name = if bytes { "bytes" } else { "unit" };
        return Some(Known::new(named(name)?, "the graph subtracts the mean itself"));
    }
    if head == Some("yolo-seg") && ultralytics(anatomy) {
        return Some(Known::new(named("unit")?, "as Ultralytics' networks take them"));
    }
    if architecture.is_some_and(|name| name.starts_with("maskrcnn")) {
        return Some(Known::new(named("imagenet")?, "as torchvision's detectors take them"));
    }
    None
}

fn ultralytics(anatomy: &Anatomy<'_>) -> bool {
    anatomy
        .graph()
        .nodes
        .iter()
        .any(|node| node.name.starts_with("/model.") || node.name.contains("model.0.conv"))
}

/// Whether the first step on the image subtracts or divides by constants of its channels; if so, whether they are of the size of bytes.
fn normalises(anatomy: &Anatomy<'_>) -> Option<bool> {
    let graph = anatomy.graph();
    let image = graph.inputs.first()?.value;
    let mut readers = graph.nodes.iter().filter(|node| node.inputs.contains(&Some(image)));
    let first = readers.find(|node| node.operator != "Shape")?;
    let other = first.inputs.iter().flatten().find(|&&v| v != image)?;
    let constant = graph.values[*other].constant.as_ref()?;
    let values = constant.values::<f32>().filter(|values| [1, 3].contains(&values.len()))?;
    let largest = values.iter().fold(0f32, |most, v| most.max(v.abs()));
    match first.operator.as_str() {
        "Sub" | "Add" | "Div" => Some(largest > 2.0),
        "Mul" => Some(largest < 0.1),
        _ => None,
    }
}
