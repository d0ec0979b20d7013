//! What the server and its models say of themselves.

use evenkeel::defence::DefenceSpec;
use serde_json::{Value, json};

use crate::choice;
use crate::hosted::Hosted;
use crate::protocol::VERSION;
use crate::tensors::{EXTRA, INPUT};

/// Extensions of the protocol that are offered.
pub(crate) const EXTENSIONS: [&str; 1] = ["binary_tensor_data"];

/// The server.
pub(crate) fn server() -> Value {
    json!({ "name": "evenkeel", "version": env!("CARGO_PKG_VERSION"), "extensions": EXTENSIONS })
}

/// A tensor of a model, as both fronts describe it: name, datatype, shape.
pub(crate) struct TensorMetadata {
    pub(crate) name: String,
    pub(crate) datatype: &'static str,
    pub(crate) shape: Vec<i64>,
}

/// The input of a model; unknown sides are -1.
pub(crate) fn input(hosted: &Hosted) -> TensorMetadata {
    let side = |n: Option<usize>| n.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
    let size = hosted.model.size;
    let shape = vec![-1, 3, side(size.map(|s| s.0)), side(size.map(|s| s.1))];
    TensorMetadata { name: INPUT.into(), datatype: "FP32", shape }
}

/// The outputs of a model, its own first.
pub(crate) fn outputs(hosted: &Hosted) -> Vec<TensorMetadata> {
    let shapes = hosted.output_shapes();
    let own = hosted.model.output.iter().enumerate().map(|(i, name)| TensorMetadata {
        name: name.clone(),
        datatype: "FP32",
        shape: shapes.get(i).cloned().unwrap_or_else(|| vec![-1]),
    });
    let extra = EXTRA.iter().map(|(name, datatype, _)| TensorMetadata {
        name: (*name).into(),
        datatype,
        shape: vec![-1],
    });
    own.chain(extra).collect()
}

impl TensorMetadata {
    fn json(&self) -> Value {
        json!({ "name": self.name, "datatype": self.datatype, "shape": self.shape })
    }
}

/// A model: the protocol's metadata, and under `evenkeel` what is ours.
pub(crate) fn model(hosted: &Hosted) -> Value {
    let (model, allowed) = (&hosted.model, &hosted.allowed);
    let (defences, answers) = choice::tables(allowed.most);
    let calibration = hosted.calibration.as_ref().map(|c| {
        json!({
            "score": c.score, "threshold": c.threshold, "false_alarm_rate": c.false_alarm_rate, "images": c.images,
            "seed": c.seed,
        })
    });
    json!({
        "name": hosted.name,
        "versions": [VERSION],
        "platform": "evenkeel",
        "inputs": [input(hosted).json()],
        "outputs": outputs(hosted).iter().map(TensorMetadata::json).collect::<Vec<_>>(),
        "evenkeel": {
            "task": model.task.name(),
            "classes": model.class_names,
            "input": "RGB: FP32 or FP16 [n, 3, h, w] from 0 to 1 at the network's size; UINT8 [n, h, w, 3] or [n, 3, h, w]; \
                      BYTES [n], PNG or JPEG files (base64 in JSON); the last two are resized as the contract says",
            "size": model.size.map(|(height, width)| json!({ "height": height, "width": width })),
            "multiple": model.multiple,
            "detector": hosted.detector.name,
            "calibration": calibration,
            "policy": hosted.policy.as_ref().map(|p| json!({ "words": p.words(), "about": p.about, "figures": p.figures })),
            "requests_may_choose": allowed.free,
            "default": {
                "defence": allowed.default.defence, "answer": allowed.default.answer, "seed": allowed.default.seed,
                "always": allowed.default.always,
            },
            "usual_defence": DefenceSpec::usual().name(),
            "defences": defences,
            "answers": answers,
            "outputs": EXTRA.iter().map(|(name, _, about)| ((*name).to_string(), json!(about))).collect::<serde_json::Map<_, _>>(),
            "example": hosted.example.is_some(),
            "fingerprint": model.hash,
        },
    })
}
