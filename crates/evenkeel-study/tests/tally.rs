//! What answers come to in a study: of a task that nobody here knows (it needs nothing in records, tables and metrics), and in results that the first version kept.

use evenkeel::image::Image;
use evenkeel::model::Letterbox;
use evenkeel::task::{ClassInfo, Painting, Prediction, PredictionData, Truth, TruthData};
use evenkeel_data::metric::{Bootstrap, Metric};
use evenkeel_study::record::{Body, Entry, Tally};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
struct Count(u32);

impl TruthData for Count {
    fn bytes(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn kind(&self) -> &'static str {
        "a count"
    }

    fn as_prediction(&self) -> Prediction {
        Prediction::new(self.clone())
    }

    fn framed(&self, _: &Letterbox) -> evenkeel::Result<Truth> {
        Ok(Truth::new(self.clone()))
    }
}

impl PredictionData for Count {
    fn as_truth(&self) -> Truth {
        Truth::new(self.clone())
    }

    fn same(&self, other: &Prediction) -> bool {
        other.get::<Self>().is_some_and(|other| other.0 == self.0)
    }

    fn words(&self, _: &ClassInfo<'_>) -> String {
        self.0.to_string()
    }

    fn json(&self, _: &ClassInfo<'_>) -> Value {
        json!(self.0)
    }

    fn paint(&self, under: &Image, _: f32, _: &ClassInfo<'_>) -> evenkeel::Result<Painting> {
        Ok(Painting::of(under.clone()))
    }

    fn unframed(&self, _: &Letterbox) -> evenkeel::Result<Prediction> {
        Ok(Prediction::new(self.clone()))
    }
}

#[test]
fn a_fifth_task_is_counted_by_its_scores() {
    let tally = |score: f64| {
        let (said, is) = (Prediction::new(Count(2)), Truth::new(Count(3)));
        let tally = Tally::of(&said, &is, &ClassInfo::default(), None, score).unwrap();
        let kept: Tally = serde_json::from_str(&serde_json::to_string(&tally).unwrap()).unwrap();
        assert_eq!(kept, tally);
        kept.for_metrics(0).unwrap()
    };
    let metric = Metric::of_task("counting").next().expect("a metric for any task");
    let all = [("a", tally(1.0)), ("b", tally(0.25)), ("c", tally(0.25))];
    let summary = metric.over(all.into_iter(), Bootstrap { seed: 1, replicates: 50 }).unwrap();
    assert_eq!((summary.value, summary.images), (0.5, 3));
    assert!(summary.interval.is_some());
}

/// Entries as the first version wrote them: no time of making, no ranks, confidences or what was taken for what, no objects or values.
#[test]
fn entries_of_the_first_version_are_read() {
    let passes = r#""passes":{"forwards":40,"backwards":20,"forward_pixels":163840,"backward_pixels":81920},"clock":{"seconds":0.5,"look_seconds":0.01,"peak_bytes":1048576}"#;
    let names =
        r#""key":"000102030405060708090a0b0c0d0e0f","id":"a.png","image":"f0e0d0c0b0a090807060504030201000""#;
    let shown = r#"{"shown":{"answer":{"score":0.25,"loss":1.5,"to_target":null,"tally":{"pixels":{"right":[3,1],"truth":[4,4],"predicted":[6,2]}}},"linf_255":4.0,"l2":0.5,"value":2.0,"seen_score":0.25,"term_gradient":null}}"#;
    let answered = r#"{"answered":{"answer":{"score":1.0,"loss":0.1,"to_target":0.0,"tally":{"class":{"truth":3,"said":3}}},"linf_255":6.0,"l2":0.7,"objective_before":0.5,"objective_after":0.7}}"#;
    let detected = r#"{"detected":{"score":0.3,"variances":[0.1,0.2],"cells":2,"true_error":0.25}}"#;
    let read = |body: &str| {
        Entry::parse(format!("{{{names},\"body\":{body},{passes}}}\npicture").as_bytes()).unwrap()
    };
    let Body::Shown(shown) = read(shown).body else { panic!("a changed image") };
    let figure = Metric::named("pixel-accuracy").unwrap().value(&shown.answer.tally.for_metrics(2).unwrap());
    assert_eq!(figure, Some(0.5));
    let Body::Answered(answered) = read(answered).body else { panic!("an answer") };
    let figure = Metric::named("accuracy").unwrap().value(&answered.answer.tally.for_metrics(10).unwrap());
    assert_eq!(figure, Some(1.0));
    let entry = read(detected);
    assert_eq!((entry.clock.made_at_ms, entry.passes.forwards), (0, 40));
    assert!(matches!(entry.body, Body::Detected(found) if found.true_error == Some(0.25)));
}
