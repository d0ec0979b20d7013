//! A running server: threads, listeners and the way to end them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::accept::{self, Speaks};
use crate::alarms::AlarmLog;
use crate::auth::Token;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::hosted::Hosted;
use crate::job::{Hook, Job};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::service::Service;
use crate::signals::Signals;
use crate::workers::Workers;

/// How a server is set up.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The address to listen on; only this machine can reach the default.
    pub host: IpAddr,
    /// The port of REST and the page; 0 lets the system choose.
    pub port: u16,
    /// The port of gRPC; `None` offers none, 0 lets the system choose.
    pub grpc_port: Option<u16>,
    /// Threads that compute, all workers together.
    pub threads: usize,
    /// Workers, which share the threads: each has one request at a time.
    pub workers: usize,
    /// The most that is accepted.
    pub limits: Limits,
    /// The token that clients must send.
    pub token: Option<Token>,
    /// A file that alarms are appended to.
    pub alarm_log: Option<PathBuf>,
    /// A folder that keeps images which raised the alarm, and the most bytes that it may hold.
    pub keep_alarms: Option<(PathBuf, u64)>,
    /// Called before every question, for tests.
    #[doc(hidden)]
    pub hook: Option<Hook>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            grpc_port: None,
            threads,
            workers: threads,
            limits: Limits::default(),
            token: None,
            alarm_log: None,
            keep_alarms: None,
            hook: None,
        }
    }
}

/// A server that listens.
pub struct Server {
    runtime: Runtime,
    service: Arc<Service>,
    workers: Workers<Job>,
    stop: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
    address: SocketAddr,
    grpc_address: Option<SocketAddr>,
    signals: Option<Signals>,
}

impl Server {
    /// Tries every model once, starts workers and listens.
    ///
    /// # Errors
    /// If there is no model, two have one name, one fails, or an address cannot be listened on.
    pub fn start(options: Options, hosted: Vec<Hosted>) -> Result<Self> {
        let service = Arc::new(service(&options, hosted)?);
        let metrics = service.metrics.clone();
        let replaced = move || {
            metrics.replaced.fetch_add(1, Ordering::Relaxed);
            tracing::error!("a worker panicked; its request was answered with 500 and it was replaced");
        };
        let workers = options.workers.clamp(1, 1024);
        let each = (options.threads / workers).max(1);
        let workers = Workers::start(service.queue.clone(), workers, each, replaced)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .thread_name("evenkeel-io")
            .enable_all()
            .build()
            .map_err(|source| Error::Io { what: "threads for connections".into(), source })?;
        runtime.spawn(ticking());
        let (stop, stopped) = watch::channel(false);
        let slots = Arc::new(Semaphore::new(options.limits.connections));
        let mut listeners = Vec::new();
        let mut listen = |port: u16, speaks: Speaks| {
            let address = SocketAddr::new(options.host, port);
            let bind = |source| Error::Bind { address, source };
            let listener = runtime.block_on(TcpListener::bind(address)).map_err(bind)?;
            let bound = listener.local_addr().map_err(bind)?;
            let accepting = accept::serve(service.clone(), listener, speaks, slots.clone(), stopped.clone());
            listeners.push(runtime.spawn(accepting));
            Ok::<_, Error>(bound)
        };
        let address = listen(options.port, Speaks::Rest)?;
        let grpc_address = options.grpc_port.map(|port| listen(port, Speaks::Grpc)).transpose()?;
        if !options.host.is_loopback() {
            let how = match &options.token {
                None => "and asks for no token; see --token-file",
                Some(_) => "and nothing is encrypted, the token neither; put a proxy with TLS in front",
            };
            tracing::warn!("{} can be reached from other machines {how}", options.host);
        }
        Ok(Self { runtime, service, workers, stop, listeners, address, grpc_address, signals: None })
    }

    /// Where REST and the page are.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where gRPC is.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc_address
    }

    /// What was counted, in Prometheus' text form.
    pub fn metrics(&self) -> String {
        self.service.metrics.text(&self.service.gauges())
    }

    /// From now on SIGTERM and Ctrl-C end [`Server::run`] and not the process; for who says that the server listens before calling it.
    pub fn watch_signals(&mut self) {
        let _inside = self.runtime.enter();
        self.signals.get_or_insert_with(Signals::watch);
    }

    /// Serves until the process is asked to end (SIGTERM, or Ctrl-C), then finishes what it has.
    pub fn run(mut self) {
        self.watch_signals();
        if let Some(mut signals) = self.signals.take() {
            self.runtime.block_on(signals.one());
        }
        tracing::info!("finishing what is under way; no new requests are taken");
        self.finish();
    }

    /// Takes no new connections, answers what was accepted, and ends.
    pub fn finish(mut self) {
        // readiness goes first; requests that were read before are answered
        self.service.draining.store(true, Ordering::Relaxed);
        let _ = self.stop.send(true);
        for listener in self.listeners.drain(..) {
            let _ = self.runtime.block_on(listener);
        }
        self.service.queue.close();
        self.workers.join();
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// Wakes the runtime every second, for nothing. A time-out that ends before all others costs a system call when it is set, and every request sets several of
/// some seconds; with this there is always one that ends before them.
async fn ticking() {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
    }
}

fn service(options: &Options, hosted: Vec<Hosted>) -> Result<Service> {
    let mut models = BTreeMap::new();
    let mut order = Vec::new();
    for mut hosted in hosted {
        hosted.allowed.most = options.limits.knob;
        hosted.most_pixels = options.limits.network_pixels();
        hosted.probe()?;
        order.push(hosted.name.clone());
        if let Some(other) = models.insert(hosted.name.clone(), Arc::new(hosted)) {
            return Err(Error::setup(
                format!("model {}", other.name),
                "two models have this name; rename one file",
            ));
        }
    }
    if order.is_empty() {
        return Err(Error::setup("models", "there is none to serve"));
    }
    let limits = options.limits.clone();
    let keep = options.keep_alarms.as_ref().map(|(folder, most)| (folder, *most));
    Ok(Service {
        models,
        order,
        metrics: Arc::new(Metrics::default()),
        queue: Arc::new(Queue::new(limits.plain_queue, limits.defended_queue, options.workers.max(1))),
        budget: Budget::new(limits.held_bytes, limits.body_bytes),
        long_bodies: Semaphore::new(1),
        alarms: AlarmLog::open(options.alarm_log.as_ref(), keep)?,
        token: options.token.clone(),
        hook: options.hook.clone(),
        draining: AtomicBool::new(false),
        limits,
    })
}
