//! Charts of the page as SVG: the ROC curve of the detector, and the ascent of the defence.

const SIDE: f64 = 220.0;

/// A polyline through points of the unit square, with a frame and two captions.
fn chart(points: &[(f64, f64)], across: &str, up: &str, diagonal: bool) -> String {
    let place = |&(x, y): &(f64, f64)| format!("{:.1},{:.1}", 30.0 + x * SIDE, 10.0 + (1.0 - y) * SIDE);
    let line: Vec<String> = points.iter().map(place).collect();
    let chance = if diagonal {
        format!("<path d=\"M30 {} L{} 10\" class=\"faint\"/>", 10.0 + SIDE, 30.0 + SIDE)
    } else {
        String::new()
    };
    format!(
        "<svg viewBox=\"0 0 270 270\" role=\"img\" aria-label=\"{up} by {across}\"><rect x=\"30\" y=\"10\" width=\"{SIDE}\" \
         height=\"{SIDE}\" class=\"frame\"/>{chance}<polyline points=\"{}\" class=\"curve\"/><text x=\"140\" y=\"254\" \
         text-anchor=\"middle\">{across}</text><text x=\"-120\" y=\"20\" transform=\"rotate(-90)\" \
         text-anchor=\"middle\">{up}</text></svg>",
        line.join(" ")
    )
}

/// True against false alarms as the threshold falls.
pub(super) fn roc(scores: &[(f64, bool)]) -> String {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let attacked = scores.iter().filter(|s| s.1).count().max(1) as f64;
    let clean = scores.iter().filter(|s| !s.1).count().max(1) as f64;
    let mut points = vec![(0.0, 0.0)];
    let (mut hits, mut alarms) = (0.0, 0.0);
    for (i, (score, is_attacked)) in sorted.iter().enumerate() {
        if *is_attacked {
            hits += 1.0
        } else {
            alarms += 1.0
        }
        // Equal scores cross the threshold together.
        if sorted.get(i + 1).is_none_or(|next| next.0 != *score) {
            points.push((alarms / clean, hits / attacked));
        }
    }
    chart(&points, "false alarms", "attacks found", true)
}

/// Values by step, from the lowest to the highest.
pub(super) fn ascent(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(1e-9);
    let last = (values.len().max(2) - 1) as f64;
    let points: Vec<(f64, f64)> =
        values.iter().enumerate().map(|(i, v)| (i as f64 / last, (v - low) / span)).collect();
    chart(&points, "step", &format!("agreement of views, {low:.2} to {high:.2}"), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_detector_goes_up_then_right() {
        let svg = roc(&[(0.9, true), (0.8, true), (0.1, false)]);
        assert!(svg.contains("points=\"30.0,230.0 30.0,120.0 30.0,10.0 250.0,10.0\""), "{svg}");
        assert!(ascent(&[1.0]).contains("polyline") && ascent(&[]).contains("polyline"));
    }
}
