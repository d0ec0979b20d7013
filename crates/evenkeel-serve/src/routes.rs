//! The table of endpoints: one line each, from which the router, the OpenAPI document and the labels of metrics are made, so that they cannot differ.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::{Method, Response, StatusCode, header};
use axum::routing::{MethodFilter, on};

use crate::error::{Error, Result};
use crate::front::shortened;
use crate::respond;
use crate::service::Service;
use crate::{infer, judge, metadata, openapi, page};

/// What an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Page,
    Asset,
    Example,
    OpenApi,
    Metrics,
    Server,
    Live,
    Ready,
    Models,
    Model,
    ModelReady,
    Infer,
    Judge,
}

/// One line of the table.
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Its label in metrics.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether it is answered without the token.
    pub(crate) open: bool,
}

const fn route(
    endpoint: Endpoint,
    method: &'static str,
    path: &'static str,
    name: &'static str,
    about: &'static str,
) -> Route {
    Route { endpoint, method, path, name, about, open: false }
}

const fn open(route: Route) -> Route {
    Route { open: true, ..route }
}

/// Every endpoint.
pub(crate) static ROUTES: [Route; 17] = [
    open(route(Endpoint::Page, "get", "/", "page", "the page for people")),
    open(route(Endpoint::Asset, "get", "/assets/{file}", "asset", "style and script of the page")),
    open(route(
        Endpoint::Example,
        "get",
        "/examples/{model}/{file}",
        "example",
        "a built-in picture to try: clean.png or attacked.png",
    )),
    open(route(Endpoint::OpenApi, "get", "/openapi.json", "openapi", "this document")),
    route(Endpoint::Metrics, "get", "/metrics", "metrics", "metrics in Prometheus' text form"),
    route(Endpoint::Server, "get", "/v2", "server", "the server's name, version and extensions"),
    open(route(Endpoint::Live, "get", "/v2/health/live", "live", "whether the server runs")),
    open(route(Endpoint::Ready, "get", "/v2/health/ready", "ready", "whether the server takes requests")),
    route(Endpoint::Models, "get", "/v2/models", "models", "the models that are served"),
    route(
        Endpoint::Model,
        "get",
        "/v2/models/{model}",
        "model",
        "a model's inputs, outputs, calibration and what requests may choose",
    ),
    route(
        Endpoint::Model,
        "get",
        "/v2/models/{model}/versions/{version}",
        "model",
        "the same; the only version is 1",
    ),
    route(
        Endpoint::ModelReady,
        "get",
        "/v2/models/{model}/ready",
        "model_ready",
        "whether a model takes requests",
    ),
    route(
        Endpoint::ModelReady,
        "get",
        "/v2/models/{model}/versions/{version}/ready",
        "model_ready",
        "the same; the only version is 1",
    ),
    route(
        Endpoint::Infer,
        "post",
        "/v2/models/{model}/infer",
        "infer",
        "scores of images, tensors in and out",
    ),
    route(
        Endpoint::Infer,
        "post",
        "/v2/models/{model}/versions/{version}/infer",
        "infer",
        "the same; the only version is 1",
    ),
    route(
        Endpoint::Judge,
        "post",
        "/v2/models/{model}/judge",
        "judge",
        "the verdict on one image file, as JSON or as a picture",
    ),
    route(
        Endpoint::Judge,
        "post",
        "/v2/models/{model}/versions/{version}/judge",
        "judge",
        "the same; the only version is 1",
    ),
];

/// What an endpoint works with.
pub(crate) struct Call {
    pub(crate) service: Arc<Service>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) request: Request,
}

impl Call {
    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.parameters.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The model that the path names, in its only version.
    pub(crate) fn model(&self) -> Result<Arc<crate::hosted::Hosted>> {
        let model = self.service.model(self.part("model"))?;
        match self.parameters.iter().find(|(key, _)| key == "version") {
            Some((_, version)) if version != crate::protocol::VERSION => {
                let name = format!("{} version {}", model.name, shortened(version));
                Err(Error::NoModel { name, known: format!("version {} of each", crate::protocol::VERSION) })
            }
            _ => Ok(model.clone()),
        }
    }
}

/// The label of a request that was answered, for metrics and logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(pub(crate) &'static str);

/// The router of the table.
pub(crate) fn router(service: &Arc<Service>) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let service = service.clone();
        let filter = if route.method == "post" { MethodFilter::POST } else { MethodFilter::GET };
        let handler = move |parameters: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
            let parameters =
                parameters.map(|all| all.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect());
            let service = service.clone();
            async move {
                match parameters {
                    Ok(parameters) => answer(route, Call { service, parameters, request }).await,
                    // a name that is no text is the name of nothing
                    Err(_) => respond::error(&Error::NoRoute { path: shortened(request.uri().path()) }),
                }
            }
        };
        router = router.route(route.path, on(filter, handler));
    }
    let missing = |request: Request| async move {
        respond::error(&Error::NoRoute { path: shortened(request.uri().path()) })
    };
    let wrong_method = |request: Request| async move {
        let path = shortened(request.uri().path());
        respond::error(&Error::NoMethod { method: shortened(request.method().as_str()), path })
    };
    router.fallback(missing).method_not_allowed_fallback(wrong_method)
}

async fn answer(route: &'static Route, call: Call) -> Response<Body> {
    let head = *call.request.method() == Method::HEAD;
    let authorization = call.request.headers().get(header::AUTHORIZATION).map(|v| v.as_bytes());
    let authorised =
        route.open || call.service.token.as_ref().is_none_or(|token| token.accepts(authorization));
    let outcome = match authorised {
        true => dispatch(route.endpoint, call).await,
        false => Err(Error::Unauthorized),
    };
    let mut response = outcome.unwrap_or_else(|error| respond::error(&error));
    response.extensions_mut().insert(Label(route.name));
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

async fn dispatch(endpoint: Endpoint, call: Call) -> Result<Response<Body>> {
    match endpoint {
        Endpoint::Page => Ok(page::asset("index.html").unwrap_or_else(not_found)),
        Endpoint::Asset => page::asset(call.part("file")).ok_or_else(|| no_route(&call)),
        Endpoint::Example => page::example(&call),
        Endpoint::OpenApi => Ok(respond::json(StatusCode::OK, &openapi::document(&call.service))),
        Endpoint::Metrics => {
            let text = call.service.metrics.text(&call.service.gauges());
            Ok(respond::text("text/plain; version=0.0.4; charset=utf-8", text))
        }
        Endpoint::Server => Ok(respond::json(StatusCode::OK, &metadata::server())),
        Endpoint::Live => Ok(respond::json(StatusCode::OK, &serde_json::json!({ "live": true }))),
        Endpoint::Ready => ready(&call),
        Endpoint::Models => {
            Ok(respond::json(StatusCode::OK, &serde_json::json!({ "models": call.service.order })))
        }
        Endpoint::Model => Ok(respond::json(StatusCode::OK, &metadata::model(&*call.model()?))),
        Endpoint::ModelReady => match (call.model()?, call.service.is_ready()) {
            (model, true) => {
                Ok(respond::json(StatusCode::OK, &serde_json::json!({ "name": model.name, "ready": true })))
            }
            (_, false) => Err(Error::Draining),
        },
        Endpoint::Infer => infer::answer(call).await,
        Endpoint::Judge => judge::answer(call).await,
    }
}

fn ready(call: &Call) -> Result<Response<Body>> {
    match call.service.is_ready() {
        true => Ok(respond::json(StatusCode::OK, &serde_json::json!({ "ready": true }))),
        false => Err(Error::Draining),
    }
}

pub(crate) fn no_route(call: &Call) -> Error {
    Error::NoRoute { path: shortened(call.request.uri().path()) }
}

fn not_found() -> Response<Body> {
    respond::error(&Error::NoRoute { path: "/".into() })
}
