//! Answers as HTTP: JSON, text, bytes, and errors that are always `{"error": "…"}`.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::json;

use crate::error::Error;

/// An answer of one content type.
pub(crate) fn bytes(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    bytes(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// An answer in text.
pub(crate) fn text(content_type: &'static str, text: String) -> Response<Body> {
    bytes(StatusCode::OK, content_type, text)
}

/// An error for a client. What only an operator should know is logged and not told.
pub(crate) fn error(error: &Error) -> Response<Body> {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status.is_server_error() && !matches!(error, Error::Draining | Error::Deadline { .. }) {
        tracing::error!(%error, "a request failed");
    }
    let words = match error {
        Error::Method(inner) if status.is_server_error() => {
            tracing::error!(error = %inner, "the network failed");
            "an internal error; the server's log has it".into()
        }
        other => other.to_string(),
    };
    let mut response = json(status, &json!({ "error": words }));
    let headers = response.headers_mut();
    match error {
        Error::Full { retry_after } => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after.as_secs()));
        }
        Error::NoRoom { .. } => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Error::Draining => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        Error::Unauthorized => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // the rest of the body is not worth reading
        Error::TooLarge { .. } | Error::SlowBody { .. } | Error::Broken => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}
