//! The OpenAPI document, made from the table of endpoints and the models that are served.

use serde_json::{Map, Value, json};

use crate::routes::{Endpoint, ROUTES, Route};
use crate::service::Service;
use crate::tensors::INPUT;

/// The document.
pub(crate) fn document(service: &Service) -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        paths.insert(route.path.into(), json!({ route.method: operation(route, service) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "evenkeel",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Protected inference: the Open Inference Protocol v2 with an alarm and a defended answer.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, service: &Service) -> Value {
    let mut parameters = Vec::new();
    let mut parameter = |name: &str, values: Vec<String>| {
        let schema = json!({ "type": "string", "enum": values });
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    };
    if route.path.contains("{model}") {
        parameter("model", service.order.clone());
    }
    if route.path.contains("{version}") {
        parameter("version", vec![crate::protocol::VERSION.into()]);
    }
    match route.endpoint {
        Endpoint::Asset => parameter("file", vec!["style.css".into(), "page.js".into()]),
        Endpoint::Example => parameter("file", vec!["clean.png".into(), "attacked.png".into()]),
        _ => {}
    }
    let mut responses = Map::new();
    responses.insert("200".into(), success(route.endpoint));
    for (status, about) in failures(route) {
        responses.insert(
            status.into(),
            json!({ "description": about, "content": content("application/json", "Error") }),
        );
    }
    let id = route.name.to_owned() + if route.path.contains("{version}") { "_of_version" } else { "" };
    let mut operation = json!({
        "operationId": id, "summary": route.about, "parameters": parameters, "responses": responses,
    });
    if let Some(body) = body(route.endpoint) {
        operation["requestBody"] = body;
    }
    if !route.open && service.token.is_some() {
        operation["security"] = json!([{ "token": [] }]);
    }
    operation
}

fn content(media: &str, schema: &str) -> Value {
    json!({ media: { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

fn success(endpoint: Endpoint) -> Value {
    let any = |media: &str| json!({ media: { "schema": {} } });
    let content = match endpoint {
        Endpoint::Page => any("text/html"),
        Endpoint::Asset => json!({ "text/css": { "schema": {} }, "text/javascript": { "schema": {} } }),
        Endpoint::Example => any("image/png"),
        Endpoint::Metrics => any("text/plain"),
        Endpoint::Infer => json!({
            "application/json": { "schema": { "$ref": "#/components/schemas/InferResponse" } },
            "application/octet-stream": { "schema": {} },
        }),
        Endpoint::Judge => json!({
            "application/json": { "schema": { "$ref": "#/components/schemas/Verdict" } },
            "image/png": { "schema": {} },
        }),
        _ => json!({ "application/json": { "schema": { "type": "object" } } }),
    };
    json!({ "description": "as asked", "content": content })
}

/// What can go wrong at an endpoint.
fn failures(route: &Route) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("400", "the request cannot be read"),
        ("404", "there is no such thing"),
        ("405", "no such method"),
    ];
    if !route.open {
        all.push(("401", "the token is missing or wrong"));
    }
    if matches!(route.endpoint, Endpoint::Ready | Endpoint::ModelReady) {
        all.push(("503", "the server is shutting down"));
    }
    if matches!(route.endpoint, Endpoint::Infer | Endpoint::Judge) {
        all.extend([
            ("408", "the body did not come in time"),
            ("413", "larger than the server takes"),
            ("415", "a form that is not read"),
            ("429", "busy; Retry-After says when to come back"),
            ("500", "the server's own fault"),
            ("503", "the server is shutting down"),
            ("504", "no answer in time"),
        ]);
    }
    all
}

fn body(endpoint: Endpoint) -> Option<Value> {
    let content = match endpoint {
        Endpoint::Infer => content("application/json", "InferRequest"),
        Endpoint::Judge => json!({
            "multipart/form-data": { "schema": {
                "type": "object",
                "required": ["image"],
                "properties": {
                    "image": { "type": "string", "format": "binary", "description": "a PNG or JPEG file" },
                    "defence": { "type": "string" },
                    "answer": { "type": "string" },
                    "seed": { "type": "integer", "minimum": 0 },
                    "always": { "type": "boolean", "description": "defend even without an alarm" },
                    "pictures": { "type": "boolean", "description": "with the pictures that the page shows" },
                },
            } },
            "image/png": { "schema": { "type": "string", "format": "binary" } },
            "image/jpeg": { "schema": { "type": "string", "format": "binary" } },
        }),
        _ => return None,
    };
    Some(json!({ "required": true, "content": content }))
}

fn schemas() -> Value {
    let shape = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } });
    json!({
        "Error": { "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } } },
        "InferRequest": {
            "type": "object",
            "required": ["inputs"],
            "properties": {
                "id": { "type": "string" },
                "parameters": { "type": "object" },
                "inputs": { "type": "array", "minItems": 1, "maxItems": 1, "items": {
                    "type": "object",
                    "required": ["name", "shape", "datatype", "data"],
                    "properties": {
                        "name": { "type": "string", "const": INPUT },
                        "shape": shape,
                        "datatype": { "type": "string", "enum": ["FP32", "UINT8", "BYTES"] },
                        "parameters": { "type": "object" },
                        "data": { "type": "array" },
                    },
                } },
                "outputs": { "type": "array", "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": { "name": { "type": "string" }, "parameters": { "type": "object" } },
                } },
            },
        },
        "InferResponse": {
            "type": "object",
            "required": ["model_name", "outputs"],
            "properties": {
                "model_name": { "type": "string" },
                "model_version": { "type": "string" },
                "id": { "type": "string" },
                "outputs": { "type": "array", "items": {
                    "type": "object",
                    "required": ["name", "shape", "datatype"],
                    "properties": {
                        "name": { "type": "string" }, "shape": shape, "datatype": { "type": "string" },
                        "data": { "type": "array" },
                    },
                } },
            },
        },
        "Verdict": {
            "type": "object",
            "required": ["model", "prediction", "score", "alarm", "defended", "sentence"],
            "properties": {
                "model": { "type": "string" },
                "score": { "type": ["number", "null"] },
                "threshold": { "type": ["number", "null"] },
                "alarm": { "type": ["boolean", "null"] },
                "defended": { "type": "boolean" },
                "sentence": { "type": "string" },
            },
        },
    })
}
