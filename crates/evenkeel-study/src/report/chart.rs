//! Charts as SVG, written by hand: lines with axes and a legend. Colours come from the page's style, so they follow light, dark and
//! print; series also differ in dashes and marks, for those who see no colour.

use std::fmt::Write;

const LEFT: f64 = 46.0;
const TOP: f64 = 10.0;
const WIDE: f64 = 254.0;
const HIGH: f64 = 200.0;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it; no legend if empty.
    pub name: String,
    /// Its points, by the first coordinate.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are only marked, not joined.
    pub loose: bool,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What goes across.
    pub across: String,
    /// What goes up.
    pub up: String,
    /// The lines.
    pub series: Vec<Series>,
    /// From where to where across; what the points need if `None`.
    pub x: Option<(f64, f64)>,
    /// From where to where up; what the points need if `None`.
    pub y: Option<(f64, f64)>,
    /// Whether the diagonal is drawn.
    pub diagonal: bool,
}

/// Text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A span that holds all values and is not a point.
fn span(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    match low <= high {
        true if high - low < 1e-9 => (low - 0.5, high + 0.5),
        true => (low, high),
        false => (0.0, 1.0),
    }
}

/// A number with as many places as a span of this width needs.
fn tick(value: f64, width: f64) -> String {
    let places = if width >= 20.0 {
        0
    } else if width >= 2.0 {
        1
    } else {
        2
    };
    format!("{value:.places$}")
}

impl Plot {
    /// The chart.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| s.points.iter());
        let x = self.x.unwrap_or_else(|| span(points().map(|p| p.0)));
        let y = self.y.unwrap_or_else(|| span(points().map(|p| p.1)));
        let place = |&(px, py): &(f64, f64)| {
            let share = |v: f64, (low, high): (f64, f64)| (v - low) / (high - low);
            (LEFT + share(px, x) * WIDE, TOP + (1.0 - share(py, y)) * HIGH)
        };
        let legend = self.series.iter().filter(|s| !s.name.is_empty()).count();
        let total = TOP + HIGH + 44.0 + 16.0 * legend as f64;
        let mut svg = format!(
            "<svg viewBox=\"0 0 310 {total:.0}\" role=\"img\" aria-label=\"{} by {}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDE}\" \
             height=\"{HIGH}\" class=\"frame\"/>",
            escaped(&self.up),
            escaped(&self.across)
        );
        self.axes(&mut svg, x, y);
        if self.diagonal {
            let ((x0, y0), (x1, y1)) = (place(&(x.0, y.0)), place(&(x.1, y.1)));
            let _ = write!(svg, "<path d=\"M{x0:.1} {y0:.1} L{x1:.1} {y1:.1}\" class=\"faint\"/>");
        }
        for (k, series) in self.series.iter().enumerate() {
            let placed: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            if !series.loose {
                let line: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let _ = write!(svg, "<polyline points=\"{}\" class=\"curve s{}\"/>", line.join(" "), k % 8);
            }
            if series.loose || placed.len() <= 24 {
                for (x, y) in placed {
                    let _ = write!(
                        svg,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\" class=\"mark s{}\"/>",
                        k % 8
                    );
                }
            }
        }
        self.legend(&mut svg);
        svg + "</svg>"
    }

    fn axes(&self, svg: &mut String, x: (f64, f64), y: (f64, f64)) {
        for k in 0..=4 {
            let share = f64::from(k) / 4.0;
            let (at_x, at_y) = (LEFT + share * WIDE, TOP + (1.0 - share) * HIGH);
            let below = TOP + HIGH + 14.0;
            let (words_x, words_y) =
                (tick(x.0 + share * (x.1 - x.0), x.1 - x.0), tick(y.0 + share * (y.1 - y.0), y.1 - y.0));
            let _ = write!(
                svg,
                "<text x=\"{at_x:.1}\" y=\"{below}\" class=\"tick\" text-anchor=\"middle\">{words_x}</text><text x=\"{:.1}\" y=\"{:.1}\" \
                 class=\"tick\" text-anchor=\"end\">{words_y}</text>",
                LEFT - 4.0,
                at_y + 3.5
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"{}\" y=\"12\" transform=\"rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            LEFT + WIDE / 2.0,
            TOP + HIGH + 32.0,
            escaped(&self.across),
            -(TOP + HIGH / 2.0),
            escaped(&self.up)
        );
    }

    fn legend(&self, svg: &mut String) {
        let named = self.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty());
        for (line, (k, series)) in named.enumerate() {
            let y = TOP + HIGH + 50.0 + 16.0 * line as f64;
            let _ = write!(
                svg,
                "<path d=\"M{LEFT} {:.1} h22\" class=\"curve s{}\"/><text x=\"{}\" y=\"{y:.1}\">{}</text>",
                y - 4.0,
                k % 8,
                LEFT + 28.0,
                escaped(&series.name)
            );
        }
    }
}

/// True against false alarms as the threshold falls, for scores that are (score, anomalous).
pub fn roc_points(scores: &[(f64, bool)]) -> Vec<(f64, f64)> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let anomalous = scores.iter().filter(|s| s.1).count().max(1) as f64;
    let normal = scores.iter().filter(|s| !s.1).count().max(1) as f64;
    let mut points = vec![(0.0, 0.0)];
    let (mut hits, mut alarms) = (0.0, 0.0);
    for (i, (score, is_anomalous)) in sorted.iter().enumerate() {
        *(if *is_anomalous { &mut hits } else { &mut alarms }) += 1.0;
        // Equal scores cross the threshold together.
        if sorted.get(i + 1).is_none_or(|next| next.0 != *score) {
            points.push((alarms / normal, hits / anomalous));
        }
    }
    points
}

/// Scores by the name of their curve: (score, anomalous).
pub type Scores = (String, Vec<(f64, bool)>);

/// The ROC curves of several sets of scores, by name.
pub fn roc(sets: &[Scores], found: &str) -> String {
    let series =
        |(name, scores): &Scores| Series { name: name.clone(), points: roc_points(scores), loose: false };
    let unit = Some((0.0, 1.0));
    let plot = Plot {
        across: "false alarms".into(),
        up: found.into(),
        series: sets.iter().map(series).collect(),
        x: unit,
        y: unit,
        diagonal: true,
    };
    plot.svg()
}

/// Values by step.
pub fn ascent(values: &[f64], up: &str) -> String {
    let points = values.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
    let series = vec![Series { name: String::new(), points, loose: false }];
    Plot { across: "step".into(), up: up.into(), series, x: None, y: None, diagonal: false }.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_detector_goes_up_then_right() {
        let scores = [(0.9, true), (0.8, true), (0.1, false)];
        assert_eq!(roc_points(&scores), [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)]);
        let svg = roc(&[("pgd".into(), scores.to_vec())], "found");
        assert!(svg.contains("points=\"46.0,210.0 46.0,110.0 46.0,10.0 300.0,10.0\""), "{svg}");
        assert!(ascent(&[1.0], "height").contains("polyline") && ascent(&[], "height").contains("polyline"));
    }

    #[test]
    fn names_cannot_break_the_page() {
        let series =
            vec![Series { name: "<b>&".into(), points: vec![(0.0, f64::NAN.max(1.0))], loose: true }];
        let plot = Plot { across: "x\"".into(), up: "y".into(), series, x: None, y: None, diagonal: false };
        let svg = plot.svg();
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"), "{svg}");
    }
}
