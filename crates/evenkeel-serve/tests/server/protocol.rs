//! The protocol: endpoints, JSON and binary tensors, encoded images, parameters, errors; answers are those of the library.

use std::io::Write;
use std::sync::Arc;

use evenkeel::{DefenceSpec, Heads, Image, Pipeline, shipped};
use evenkeel_serve::Token;
use serde_json::{Value, json};

use crate::client::{INFER, JUDGE, grey, request, server};

/// A picture with something on it.
fn picture(seed: u32) -> Image {
    let mut state = seed;
    let mut image = Image::filled(64, 64, 0.5);
    for (i, pixel) in image.pixels_mut().iter_mut().enumerate() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *pixel = ((i / 97) % 7) as f32 / 7.0 + (state >> 24) as f32 / 2550.0;
    }
    image.rounded_to_8_bits()
}

fn expected(images: &[Image]) -> Vec<f32> {
    let model = shipped::named("classifier").unwrap().model().unwrap();
    images.iter().flat_map(|image| model.scores(image).unwrap().into_data()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

#[test]
fn every_endpoint_answers() {
    let server = server(|_| {});
    let get = |path: &str| request(server.address(), "GET", path, &[], b"");
    for path in [
        "/",
        "/assets/style.css",
        "/assets/page.js",
        "/examples/classifier/clean.png",
        "/examples/classifier/attacked.png",
        "/openapi.json",
        "/metrics",
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models",
        "/v2/models/classifier",
        "/v2/models/classifier/ready",
        "/v2/models/classifier/versions/1",
        "/v2/models/classifier/versions/1/ready",
    ] {
        let answer = get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("content-security-policy").unwrap().contains("default-src 'self'"), "{path}");
        assert!(answer.header("access-control-allow-origin").is_none(), "{path}");
    }
    for (status, path) in [
        (404, "/v2/models/oracle"),
        (404, "/v2/models/classifier/versions/2"),
        (404, "/nowhere"),
        (404, "/assets/secret"),
        (404, "/assets/..%2f..%2fCargo.toml"),
        (405, INFER),
        (404, "/examples/classifier/other.png"),
    ] {
        let answer = get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.error().is_empty());
    }
    assert_eq!(get("/v2").json()["extensions"], json!(["binary_tensor_data"]));
    let metadata = get("/v2/models/classifier").json();
    assert_eq!(metadata["inputs"][0]["datatype"], "FP32");
    assert_eq!(metadata["outputs"][0]["shape"], json!([-1, 10, 1, 1]));
    // every path of the document is one that the router knows
    let document = get("/openapi.json").json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path =
            path.replace("{model}", "classifier").replace("{version}", "1").replace("{file}", "style.css");
        for method in methods.as_object().unwrap().keys() {
            let answer = request(server.address(), &method.to_uppercase(), &path, &[], b"");
            assert!(!matches!(answer.status, 405 | 500..), "{method} {path}: {}", answer.status);
        }
    }
    server.finish();
}

#[test]
fn json_and_binary_tensors_get_the_librarys_scores() {
    let server = server(|_| {});
    let images = [picture(1), picture(2)];
    let wanted = expected(&images);
    let pixels: Vec<f32> = images.iter().flat_map(|image| image.pixels().to_vec()).collect();
    let body = json!({ "id": "a", "inputs": [{ "name": "image", "shape": [2, 3, 64, 64], "datatype": "FP32", "data": pixels }] });
    let answer = request(server.address(), "POST", INFER, &[], body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{:?}", String::from_utf8_lossy(&answer.body));
    let reply = answer.json();
    assert_eq!((&reply["id"], &reply["model_name"]), (&json!("a"), &json!("classifier")));
    assert_eq!(reply["outputs"][0]["shape"], json!([2, 10, 1, 1]));
    assert_eq!(numbers(&reply["outputs"][0]["data"]), wanted);

    // binary in, binary out; 8-bit pixels in both orders; encoded images
    let interleaved: Vec<u8> = images.iter().flat_map(Image::to_rgb8).collect();
    let planar: Vec<u8> = pixels.iter().map(|v| (v * 255.0).round() as u8).collect();
    let mut encoded = Vec::new();
    for image in &images {
        let png = image.encode_png().unwrap();
        encoded.extend_from_slice(&(png.len() as u32).to_le_bytes());
        encoded.extend_from_slice(&png);
    }
    let values: Vec<u8> = pixels.iter().flat_map(|v| v.to_le_bytes()).collect();
    for (datatype, shape, data) in [
        ("FP32", json!([2, 3, 64, 64]), values),
        ("UINT8", json!([2, 64, 64, 3]), interleaved),
        ("UINT8", json!([2, 3, 64, 64]), planar),
        ("BYTES", json!([2]), encoded),
    ] {
        let input = json!({ "name": "image", "shape": shape, "datatype": datatype, "parameters": { "binary_data_size": data.len() } });
        let text = json!({ "inputs": [input], "parameters": { "binary_data_output": true } }).to_string();
        let length = text.len().to_string();
        let body = [text.as_bytes(), &data].concat();
        let answer =
            request(server.address(), "POST", INFER, &[("Inference-Header-Content-Length", &length)], &body);
        assert_eq!(answer.status, 200, "{datatype} {shape}: {:?}", String::from_utf8_lossy(&answer.body));
        let split: usize = answer.header("inference-header-content-length").unwrap().parse().unwrap();
        let head: Value = serde_json::from_slice(&answer.body[..split]).unwrap();
        assert_eq!(head["outputs"][0]["parameters"]["binary_data_size"], json!(80));
        assert_eq!(floats(&answer.body[split..]), wanted, "{datatype} {shape}");
    }
    server.finish();
}

#[test]
fn a_defended_answer_is_the_pipelines_for_the_same_seed() {
    let server = server(|_| {});
    let image = picture(3);
    let model = Arc::new(shipped::named("classifier").unwrap().model().unwrap());
    let defence = DefenceSpec::named("equivariance").unwrap().with("steps", 2).unwrap();
    let calibration = shipped::named("classifier").unwrap().calibration(&model).unwrap();
    let detector = calibration.detector(&model, Heads::default()).unwrap();
    let pipeline = Pipeline::new(model.clone())
        .with_defence(defence.build(&model, &Heads::default()).unwrap())
        .with_detector(detector)
        .with_seed(7);
    let verdict = pipeline.run(&image).unwrap();
    let body = json!({
        "inputs": [{ "name": "image", "shape": [3, 64, 64], "datatype": "FP32", "data": image.pixels() }],
        "parameters": { "defence": "equivariance", "steps": 2, "seed": 7, "always": true },
        "outputs": [{ "name": "scores" }, { "name": "evenkeel.score" }, { "name": "evenkeel.defended" }, { "name": "evenkeel.verdict" }],
    });
    let reply = request(server.address(), "POST", INFER, &[], body.to_string().as_bytes()).json();
    assert_eq!(numbers(&reply["outputs"][0]["data"]), verdict.scores.data());
    assert_eq!(reply["outputs"][1]["data"][0].as_f64(), verdict.score);
    assert_eq!(reply["outputs"][2]["data"], json!([true]));
    let told: Value = serde_json::from_str(reply["outputs"][3]["data"][0].as_str().unwrap()).unwrap();
    assert_eq!(told["defended"], true);

    let form = |fields: &str| {
        let mut body = format!(
            "{fields}--x\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n"
        )
        .into_bytes();
        body.extend(image.encode_png().unwrap());
        body.extend(b"\r\n--x--\r\n");
        body
    };
    let field = |name: &str, value: &str| {
        format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields = [
        ("defence", "equivariance"),
        ("steps", "2"),
        ("seed", "7"),
        ("always", "true"),
        ("pictures", "true"),
    ];
    let text: String = fields.iter().map(|(name, value)| field(name, value)).collect();
    let multipart = ("content-type", "multipart/form-data; boundary=x");
    let answer = request(server.address(), "POST", JUDGE, &[multipart], &form(&text));
    assert_eq!(answer.status, 200, "{:?}", String::from_utf8_lossy(&answer.body));
    let judged = answer.json();
    assert_eq!(judged["score"].as_f64(), verdict.score);
    assert_eq!(judged["defended"], true);
    assert!(judged["pictures"]["plain"]["png"].as_str().unwrap().starts_with("data:image/png;base64,"));
    let answer = request(server.address(), "POST", JUDGE, &[multipart, ("accept", "image/png")], &form(""));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/png")));
    assert!(Image::decode(&answer.body, "answer").is_ok());
    for (fields, word) in [(field("defence", "moat"), "moat"), (field("views", "/etc/passwd"), "views")] {
        let answer = request(server.address(), "POST", JUDGE, &[multipart], &form(&fields));
        assert_eq!(answer.status, 400);
        assert!(answer.error().contains(word), "{}", answer.error());
    }
    assert!(server.metrics().contains("evenkeel_passes_total{model=\"classifier\",direction=\"backward\"}"));
    server.finish();
}

#[test]
fn bodies_and_answers_may_be_compressed() {
    let server = server(|_| {});
    let text = grey(64).to_string();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let zipped = encoder.finish().unwrap();
    let plain = request(server.address(), "POST", INFER, &[], text.as_bytes());
    let answer = request(server.address(), "POST", INFER, &[("content-encoding", "gzip")], &zipped);
    assert_eq!((answer.status, &answer.body), (200, &plain.body));
    let answer = request(server.address(), "POST", INFER, &[("content-encoding", "br")], &zipped);
    assert_eq!(answer.status, 415);
    server.finish();
}

#[test]
fn a_token_is_asked_for_where_it_matters() {
    let server = server(|options| options.token = Some(Token::new("correct horse battery").unwrap()));
    let get =
        |path: &str, headers: &[(&str, &str)]| request(server.address(), "GET", path, headers, b"").status;
    for (header, status) in [("Bearer wrong", 401), ("Bearer correct horse battery", 200)] {
        assert_eq!(get("/v2/models/classifier", &[("authorization", header)]), status);
        let body = grey(64).to_string();
        let answer = request(server.address(), "POST", INFER, &[("authorization", header)], body.as_bytes());
        assert_eq!(answer.status, status);
    }
    assert_eq!((get("/metrics", &[]), get("/v2/health/ready", &[]), get("/", &[])), (401, 200, 200));
    server.finish();
}
