//! The accept loops: REST and gRPC, each connection under a cap, a header time-out and a graceful end.
//!
//! `axum::serve` sets no timer, so that hyper's time-out for headers never fires; this loop does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::connection::Connection;
use crate::head_watch::LONGEST_HEAD;
use crate::service::Service;
use crate::{front, grpc, routes};

/// Which protocol a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Rest,
    Grpc,
}

/// What is said to a connection beyond the cap.
const TURNED_AWAY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 46\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n{\"error\": \"the server has no free connection\"}";

/// Accepts connections until `stop` changes, then waits for those that are open, at most for the drain time.
pub(crate) async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    speaks: Speaks,
    slots: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let router = TowerToHyperService::new(routes::router(&service));
    let take = |stream: TcpStream, peer: SocketAddr| {
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            service.metrics.turned_away.fetch_add(1, Ordering::Relaxed);
            drop(tokio::spawn(turn_away(stream)));
            return;
        };
        // answers are written whole, so waiting for more to send only costs time
        let _ = stream.set_nodelay(true);
        service.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let open = connection(&service, &router, speaks, stream, peer, &graceful);
        let service = service.clone();
        tokio::spawn(async move {
            open.await;
            service.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(slot);
        });
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        match accepted {
            Ok((stream, peer)) => take(stream, peer),
            Err(error) => {
                // out of file descriptors, most likely: a short pause lets some come back
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    // the system has accepted connections that were not taken yet; their clients believe to be connected
    while let Ok(Ok((stream, peer))) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        take(stream, peer);
    }
    drop(listener);
    if tokio::time::timeout(service.limits.drain_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open when the time to finish was over");
    }
}

/// The life of one connection.
fn connection(
    service: &Arc<Service>,
    router: &TowerToHyperService<axum::Router>,
    speaks: Speaks,
    stream: TcpStream,
    peer: SocketAddr,
    graceful: &GracefulShutdown,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    let limits = &service.limits;
    let (stream, facts) = Connection::new(stream, speaks, limits);
    let io = TokioIo::new(stream);
    match speaks {
        Speaks::Rest => {
            let (service, router) = (service.clone(), router.clone());
            let handler = service_fn(move |request| {
                front::serve(service.clone(), router.clone(), request, facts.clone(), peer)
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_time)
                .max_buf_size(LONGEST_HEAD)
                .serve_connection(io, handler);
            let open = graceful.watch(connection);
            // a connection that breaks is its client's affair
            Box::pin(async move { drop(open.await) })
        }
        Speaks::Grpc => {
            let (server, own) = (grpc::service(service), service.clone());
            let handler = service_fn(move |request| grpc::call(server.clone(), request, own.clone()));
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(service.limits.header_time)
                .keep_alive_timeout(service.limits.header_time)
                .max_concurrent_streams(64)
                .max_header_list_size(LONGEST_HEAD as u32 / 4)
                .serve_connection(io, handler);
            let open = graceful.watch(connection);
            Box::pin(async move { drop(open.await) })
        }
    }
}

/// Says that there is no room, to those who listen.
async fn turn_away(mut stream: TcpStream) {
    let said = async {
        stream.write_all(TURNED_AWAY).await?;
        stream.shutdown().await
    };
    drop(tokio::time::timeout(Duration::from_secs(1), said).await);
}
