//! The protocol over gRPC, with the same semantics as over REST: the same parser's rules, the same queue, the same errors.

mod bounded;
mod convert;
mod metered;

#[allow(missing_docs, unreachable_pub, clippy::all, rust_2018_idioms)]
mod inference {
    include!("inference.rs");
}

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::http;
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;
use inference::grpc_inference_service_server::{GrpcInferenceService, GrpcInferenceServiceServer};
use inference::{
    ModelInferRequest, ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest,
    ModelReadyResponse, ServerLiveRequest, ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse,
    ServerReadyRequest, ServerReadyResponse,
};
use metered::{CallShare, Metered};
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Response, Status};

use crate::budget::Share;
use crate::error::{Error, Result};
use crate::hosted::Hosted;
use crate::metadata;
use crate::protocol::VERSION;
use crate::service::Service;
use crate::tensors;

/// The service for one connection: (request) → response.
pub(crate) fn service(service: &Arc<Service>) -> TowerToHyperService<GrpcInferenceServiceServer<Front>> {
    let most = service.limits.body_bytes;
    let server = GrpcInferenceServiceServer::new(Front(service.clone()))
        .max_decoding_message_size(most)
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip);
    TowerToHyperService::new(server)
}

/// What is answered without the token.
const OPEN: [&str; 2] =
    ["/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ServerReady"];

/// Answers one call. Who has no token is not read; a message that does not come in time ends the call, and so does one that there is no memory for.
pub(crate) async fn call(
    server: TowerToHyperService<GrpcInferenceServiceServer<Front>>,
    request: http::Request<Incoming>,
    service: Arc<Service>,
) -> Result<http::Response<tonic::body::Body>, Infallible> {
    let authorization = request.headers().get(http::header::AUTHORIZATION).map(|value| value.as_bytes());
    let authorised = service.token.as_ref().is_none_or(|token| token.accepts(authorization));
    if !authorised && !OPEN.contains(&request.uri().path()) {
        service.metrics.answered("grpc", Error::Unauthorized.status());
        return Ok(Status::from(Error::Unauthorized).into_http());
    }
    let limit = service.limits.body_time + service.limits.request_time;
    let share = CallShare::new(&service.budget);
    let mut request = request.map(|body| Metered::new(body, share.clone()));
    request.extensions_mut().insert(share);
    match tokio::time::timeout(limit, hyper::service::Service::call(&server, request)).await {
        Ok(answered) => answered,
        Err(_) => Ok(Status::from(Error::SlowBody { limit }).into_http()),
    }
}

/// The front that gRPC calls.
pub(crate) struct Front(Arc<Service>);

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = match error.status() {
            400 | 405 | 413 | 415 => Code::InvalidArgument,
            401 => Code::Unauthenticated,
            404 => Code::NotFound,
            429 => Code::ResourceExhausted,
            503 => Code::Unavailable,
            408 | 504 => Code::DeadlineExceeded,
            _ => Code::Internal,
        };
        if code == Code::Internal {
            tracing::error!(%error, "a request failed");
            return Self::new(code, "an internal error; the server's log has it");
        }
        Self::new(code, error.to_string())
    }
}

impl Front {
    fn model(&self, name: &str, version: &str) -> Result<Arc<Hosted>> {
        let model = self.0.model(name)?;
        match version.is_empty() || version == VERSION {
            true => Ok(model.clone()),
            false => Err(Error::NoModel {
                name: format!("{name} in that version"),
                known: format!("version {VERSION}"),
            }),
        }
    }

    async fn infer(&self, request: ModelInferRequest, share: Share) -> Result<ModelInferResponse> {
        let hosted = self.model(&request.model_name, &request.model_version)?;
        let limits = self.0.tensor_limits();
        let mut request = convert::request(request, &limits)?;
        let question = tensors::question(&hosted, &mut request, &limits, share)?;
        let outcomes = self.0.ask(question, request.id.as_deref()).await?;
        Ok(convert::response(tensors::response(&hosted, &request, &outcomes)?))
    }

    /// Counts and logs an answer.
    fn answered<T>(
        &self,
        endpoint: &'static str,
        start: Instant,
        outcome: Result<T>,
    ) -> Result<Response<T>, Status> {
        let status = outcome.as_ref().map_or_else(Error::status, |_| 200);
        self.0.metrics.answered(endpoint, status);
        let ms = (start.elapsed().as_secs_f64() * 1e5).round() / 100.0;
        tracing::info!(endpoint, status, ms, "answered");
        outcome.map(Response::new).map_err(Status::from)
    }
}

#[tonic::async_trait]
impl GrpcInferenceService for Front {
    async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        Ok(Response::new(ServerReadyResponse { ready: self.0.is_ready() }))
    }

    async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        let ModelReadyRequest { name, version } = request.into_inner();
        self.model(&name, &version)?;
        Ok(Response::new(ModelReadyResponse { ready: self.0.is_ready() }))
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        Ok(Response::new(ServerMetadataResponse {
            name: "evenkeel".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            extensions: metadata::EXTENSIONS.map(String::from).to_vec(),
        }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let hosted = self.model(&name, &version)?;
        Ok(Response::new(ModelMetadataResponse {
            name: hosted.name.clone(),
            versions: vec![VERSION.into()],
            platform: "evenkeel".into(),
            inputs: vec![convert::tensor(metadata::input(&hosted))],
            outputs: metadata::outputs(&hosted).into_iter().map(convert::tensor).collect(),
        }))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let start = Instant::now();
        let share = request.extensions().get::<CallShare>().and_then(CallShare::take);
        let share = share.unwrap_or_else(|| Share::new(&self.0.budget));
        let outcome = self.infer(request.into_inner(), share).await;
        self.answered("grpc_infer", start, outcome)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_code_was_written_from_this_proto_file() {
        let hash = blake3::hash(include_bytes!("../../proto/inference.proto")).to_hex();
        let first = include_str!("inference.rs").lines().next().unwrap_or_default();
        assert!(
            first.contains(hash.as_str()),
            "{hash}: run `cargo run` in crates/evenkeel-serve/proto/generate"
        );
    }
}
