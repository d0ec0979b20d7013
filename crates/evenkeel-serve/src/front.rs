//! What every HTTP request passes on its way in and out: the check for ambiguous lengths, headers that protect a browser, metrics, and one line of log.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;

use crate::connection::Facts;
use crate::error::Error;
use crate::page::POLICY;
use crate::respond;
use crate::routes::Label;
use crate::service::Service;

/// Headers of every answer.
const PROTECTION: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    POLICY,
];

/// A client's text as far as a log or a message shows it.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Answers one request.
pub(crate) async fn serve(
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
    request: Request<Incoming>,
    facts: Arc<Facts>,
    peer: SocketAddr,
) -> Result<Response<Body>, Infallible> {
    let start = Instant::now();
    let (method, path) = (request.method().clone(), shortened(request.uri().path()));
    let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = match facts.ambiguous() {
        true => {
            let reason =
                "Transfer-Encoding and Content-Length came together, which say where a body ends in two ways";
            let mut response = respond::error(&Error::malformed("headers", reason));
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
        false => hyper::service::Service::call(&router, request).await?,
    };
    let headers = response.headers_mut();
    headers.extend(PROTECTION);
    if chunked || !service.is_ready() {
        // lengths of later requests could not be watched, or there will be none
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let label = response.extensions().get::<Label>().map_or("none", |label| label.0);
    let status = response.status().as_u16();
    service.metrics.answered(label, status);
    let ms = (start.elapsed().as_secs_f64() * 1e5).round() / 100.0;
    match label {
        "live" | "ready" | "model_ready" | "metrics" => {
            tracing::debug!(%method, path, status, ms, %peer, "answered")
        }
        _ => tracing::info!(%method, path, status, ms, %peer, "answered"),
    }
    Ok(response)
}
