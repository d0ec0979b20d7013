//! Sets of views by the names an experiment may use: the method's own, and one kind of view at a time.

use evenkeel::view::{ViewRule, ViewSet};

/// The set of this name: `standard`, `reference`, `only-KIND` for eight views of one kind, or the path of a file.
///
/// # Errors
/// If there is no such file, or its rules make no sense.
pub fn view_set(name: &str) -> evenkeel::Result<ViewSet> {
    let stretch = [0.8, 1.2];
    let of = |rules: Vec<ViewRule>| ViewSet { rules, fixed_canvas: false, multiple: 1 };
    Ok(match name {
        "only-flip" => of(vec![ViewRule::Flip { stretch }; 8]),
        "only-resize" => {
            let scales = [2.0, 0.3, 2.0, 0.5, 2.0, 0.3, 2.0, 0.5];
            of(scales.map(|scale| ViewRule::Resize { scale, stretch }).to_vec())
        }
        "only-rotation" => of(vec![ViewRule::Rotate { degrees: [-15.0, 15.0], normalised: false }; 8]),
        "only-turn" => of(vec![ViewRule::Turn { quarters: vec![1, 2, 3] }; 8]),
        "only-colour" => {
            let colours =
                ViewSet::standard().rules.into_iter().filter(|r| matches!(r, ViewRule::Colour { .. }));
            of(colours.cycle().take(8).collect())
        }
        other => ViewSet::named(other).map_err(|e| {
            let names = "standard, reference, only-flip, only-resize, only-rotation, only-turn, only-colour";
            evenkeel::Error::setting(
                format!("views {other}"),
                format!("is neither one of {names} nor a file of views ({e})"),
            )
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_set_has_eight_sound_views() {
        for name in
            ["standard", "reference", "only-flip", "only-resize", "only-rotation", "only-turn", "only-colour"]
        {
            let set = view_set(name).unwrap();
            set.check().unwrap();
            assert_eq!(set.rules.len(), 8, "{name}");
        }
        assert!(view_set("only-nothing").is_err());
    }
}
