//! The shipped networks: their alarm works without a model of one's own, and the pairs of the page are what they say. Without a calibration the detector is the command line's.

use evenkeel::{DetectorSpec, Heads, Image, shipped};
use evenkeel_data::dataset::scenes::{Split, object, render};
use evenkeel_serve::{Example, Hosted, Options, Server};
use serde_json::Value;

use crate::client::{Answer, request};

fn judged(server: &Server, name: &str, image: &[u8], fields: &str) -> Value {
    let path = format!("/v2/models/{name}/judge");
    let mut body =
        b"--x\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n".to_vec();
    body.extend_from_slice(image);
    body.extend_from_slice(format!("\r\n{fields}--x--\r\n").as_bytes());
    let multipart = ("content-type", "multipart/form-data; boundary=x");
    let answer: Answer = request(server.address(), "POST", &path, &[multipart], &body);
    assert_eq!(answer.status, 200, "{:?}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

fn field(name: &str, value: &str) -> String {
    format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn serving(hosted: Vec<Hosted>) -> Server {
    let mut options = Options::default();
    (options.port, options.threads, options.workers) = (0, 2, 2);
    Server::start(options, hosted).unwrap()
}

/// `cargo run --release -p evenkeel-serve --example pairs` makes them anew.
#[test]
fn pairs_are_fresh_told_apart_and_in_the_classifiers_case_repaired() {
    let names = ["segmenter", "classifier", "instances"];
    let server = serving(names.map(|name| Hosted::shipped(shipped::named(name).unwrap()).unwrap()).into());
    let drawn = [
        render(Split::Test.seed(1003), 128, 256).image,
        object(Split::Test, 1002, 64, 64).1,
        render(Split::Test.seed(1000), 128, 256).image,
    ];
    for (name, drawn) in names.into_iter().zip(drawn) {
        let Example { clean, attacked } = Example::of(name).unwrap();
        let drawn = drawn.rounded_to_8_bits();
        assert_eq!(Image::decode(clean, "clean").unwrap(), drawn, "{name}");
        let changed = Image::decode(attacked, "attacked").unwrap();
        let most = changed.pixels().iter().zip(drawn.pixels()).map(|(a, b)| (a - b).abs());
        assert!((most.fold(0.0, f32::max) * 255.0 - 4.0).abs() < 0.01, "{name} is attacked within 4/255");
        for (which, alarm) in [(clean, false), (attacked, true)] {
            let verdict = judged(&server, name, which, "");
            assert_eq!(verdict["alarm"], alarm, "{name}: {}", verdict["sentence"]);
        }
        let path = format!("/examples/{name}/attacked.png");
        assert_eq!(request(server.address(), "GET", &path, &[], b"").body, attacked);
    }
    let Example { clean, attacked } = Example::of("classifier").unwrap();
    let said = |image: &[u8], fields: &str| {
        judged(&server, "classifier", image, fields)["prediction"]["class"].clone()
    };
    let truth = said(clean, "");
    assert_ne!(said(attacked, ""), truth, "the attack succeeds");
    assert_eq!(said(attacked, &field("defence", "equivariance")), truth, "the defence brings the class back");
    server.finish();
}

#[test]
fn without_a_calibration_the_seed_and_the_views_are_the_requests() {
    let shipped = shipped::named("classifier").unwrap();
    let model = shipped.model().unwrap();
    let server = serving(vec![Hosted::new("own", shipped.model().unwrap(), None).unwrap()]);
    let Example { attacked, .. } = Example::of("classifier").unwrap();
    let image = model.fit(&Image::decode(attacked, "attacked").unwrap()).unwrap();
    let mut scores = Vec::new();
    for seed in [0u64, 7] {
        let spec = DetectorSpec::named("variance").unwrap().with("seed", seed).unwrap();
        let expected = spec.build(&model, Heads::default()).unwrap().score(&model, &image).unwrap();
        let verdict = judged(&server, "own", attacked, &field("seed", &seed.to_string()));
        assert_eq!(verdict["score"].as_f64(), Some(expected), "seed {seed}");
        assert_eq!(verdict["alarm"], Value::Null);
        scores.push(expected);
    }
    assert_ne!(scores[0], scores[1], "the seed draws other views");
    server.finish();
}
