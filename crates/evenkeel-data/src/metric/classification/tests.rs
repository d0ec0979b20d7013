//! Labels and answers of classifiers in every form of file.

use super::super::accuracy::{ACCURACY, TOP5};
use super::super::calibration::CALIBRATION_ERROR;
use super::*;

/// The same answers as CSV, as a list, as lines and as a folder give the same figures.
#[test]
fn answers_are_read_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("labels.csv"), "image,label\na.png,1\nb.jpg,0\n").unwrap();
    std::fs::write(at("labels.json"), r#"{"x/a.png": 1, "b": 0}"#).unwrap();
    std::fs::write(at("answers.csv"), "image,class,p0,p1\na.png,1,0.25,0.75\nb.png,1,0.5,0.5\n").unwrap();
    let line = |image: &str, p: &str| {
        format!(r#"{{"image":"in/{image}.png","prediction":{{"class":1,"probabilities":{p}}}}}"#)
    };
    let (a, b) = (line("a", "[0.25, 0.75]"), line("b", "[0.5, 0.5]"));
    std::fs::write(at("lines.json"), format!("{a}\n{b}\n")).unwrap();
    std::fs::write(at("list.json"), format!("[{a},{b}]")).unwrap();
    std::fs::create_dir(at("out")).unwrap();
    std::fs::write(at("out/a.classes.json"), &a).unwrap();
    std::fs::write(at("out/b.classes.json"), &b).unwrap();
    for labels in ["labels.csv", "labels.json"] {
        for answers in ["answers.csv", "lines.json", "list.json", "out"] {
            let (labels, answers) = (at(labels), at(answers));
            let comparison = ClassComparison {
                labels: ClassLabels::File(&labels),
                answers: &answers,
                classes: None,
                plan: Bootstrap::NONE,
                skip_bad: false,
            };
            let (score, _) = comparison.score().unwrap();
            let figure = |metric| score.figure(metric, 0.95).0;
            assert_eq!((figure(&ACCURACY), figure(&TOP5)), (Some(0.5), Some(1.0)));
            // one right at 0.75, one wrong at 0.5
            assert_eq!(figure(&CALIBRATION_ERROR), Some((0.25 + 0.5) / 2.0));
            assert_eq!((score.confusion().at(1, 1), score.confusion().at(0, 1)), (1, 1));
        }
    }
    let known = BTreeMap::from([("set/a".to_string(), 1), ("set/b.png".to_string(), 0)]);
    let comparison = ClassComparison {
        labels: ClassLabels::Known(&known),
        answers: &at("out"),
        classes: None,
        plan: Bootstrap::NONE,
        skip_bad: false,
    };
    assert_eq!(comparison.score().unwrap().0.figure(&ACCURACY, 0.95).0, Some(0.5));
    let folder = ClassComparison { labels: ClassLabels::File(&at("out")), ..comparison };
    assert!(folder.score().unwrap_err().to_string().contains("is a folder; write CSV"));
    let refused = |labels: &str, answers: &str| {
        std::fs::write(at("l.csv"), labels).unwrap();
        std::fs::write(at("a.csv"), answers).unwrap();
        let (labels, answers) = (at("l.csv"), at("a.csv"));
        let comparison = ClassComparison {
            labels: ClassLabels::File(&labels),
            answers: &answers,
            classes: Some(2),
            plan: Bootstrap::NONE,
            skip_bad: false,
        };
        comparison.score().unwrap_err().to_string()
    };
    assert!(refused("image,label\na,1\nc,1", "image,class\na,1").contains("no answer for c"));
    assert!(refused("image,label\na,7", "image,class\na,1").contains("outside the 2 classes"));
    assert!(refused("image,label\na,one", "image,class\na,1").contains("no class number"));
    assert!(refused("image,label\na,1\na,1", "image,class\na,1").contains("twice"));
    assert!(refused("image,label\na,1", "image,class,p0,p1\na,1,0,7").contains("not from 0 to 1"));
    assert!(refused("image,label\na,1", "image,class,p0\na,0,1").contains("1 probabilities"));
    assert!(refused("image,label\na,1", "image,said\na,0").contains("no class"));
}
