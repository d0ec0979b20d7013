//! The page for people: files in the binary, nothing fetched from anywhere else.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::error::Result;
use crate::respond;
use crate::routes::{Call, no_route};

const ASSETS: [(&str, &str, &str); 3] = [
    ("index.html", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
];

/// What a browser may load for the page: only what comes from here.
pub(crate) const POLICY: (HeaderName, HeaderValue) = (
    HeaderName::from_static("content-security-policy"),
    HeaderValue::from_static(
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
);

/// A file of the page.
pub(crate) fn asset(name: &str) -> Option<Response<Body>> {
    let (_, content_type, text) = ASSETS.iter().find(|(file, ..)| *file == name)?;
    let mut response = respond::bytes(StatusCode::OK, content_type, *text);
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
    Some(response)
}

/// A built-in picture.
pub(crate) fn example(call: &Call) -> Result<Response<Body>> {
    let hosted = call.service.model(call.part("model"))?;
    let bytes = match (hosted.example, call.part("file")) {
        (Some(example), "clean.png") => example.clean,
        (Some(example), "attacked.png") => example.attacked,
        _ => return Err(no_route(call)),
    };
    Ok(respond::bytes(StatusCode::OK, "image/png", bytes))
}
