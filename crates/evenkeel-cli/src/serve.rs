//! `evenkeel serve`: models behind the Open Inference Protocol, with an alarm, a defended answer and a page.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use evenkeel::Policy;
use evenkeel::shipped::SHIPPED;
use evenkeel_serve::{Hosted, Limits, LogFormat, Options, Server, Token, init_logs};

/// Serve models over HTTP: the Open Inference Protocol v2, verdicts on images, and a page at /
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// ONNX networks, each with its contract (and its calibration, if there is one) beside it, or `embedded:NAME`; the shipped networks if left out
    models: Vec<PathBuf>,
    /// Do what this policy of `evenkeel tune` says with the one network given; without it, net.policy.toml beside each, if there is one
    #[arg(long, value_name = "FILE", conflicts_with = "no_policy")]
    policy: Option<PathBuf>,
    /// Leave policies beside the networks alone
    #[arg(long)]
    no_policy: bool,
    /// The address to listen on; only this machine can reach the default
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port of HTTP; 0 lets the system choose
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Offer gRPC on this port as well; 0 lets the system choose
    #[arg(long)]
    grpc_port: Option<u16>,
    /// Threads that compute [default: one for each core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Requests that are computed at a time; they share the threads [default: one for each thread]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// A file whose content clients must send as `Authorization: Bearer …`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Append a line of JSON for every alarm to this file
    #[arg(long, value_name = "FILE")]
    alarm_log: Option<PathBuf>,
    /// Keep images that raised the alarm in this folder
    #[arg(long, value_name = "DIR")]
    keep_alarms: Option<PathBuf>,
    /// The most that --keep-alarms may fill, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 1000)]
    keep_alarms_mb: u64,
    /// One JSON object for each line of log
    #[arg(long)]
    log_json: bool,
    /// Log only warnings and errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Limits
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// The largest body, in megabytes, as sent and as decompressed
    #[arg(long, value_name = "MB")]
    max_body: Option<usize>,
    /// The most memory of all requests together, in megabytes, from their first byte until they are answered
    #[arg(long, value_name = "MB")]
    max_held: Option<usize>,
    /// The most pixels of a request's images together, in millions
    #[arg(long, value_name = "MP")]
    max_pixels: Option<usize>,
    /// The most pixels of one image for a network without a size of its own, in millions; a defended answer takes about 700 bytes of memory for each
    #[arg(long, value_name = "MP")]
    max_network_pixels: Option<usize>,
    /// The most images in a request
    #[arg(long, value_name = "N")]
    max_batch: Option<usize>,
    /// The most connections at a time
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// The most plain requests that wait
    #[arg(long, value_name = "N")]
    max_queue: Option<usize>,
    /// The most defended requests that wait
    #[arg(long, value_name = "N")]
    max_defended_queue: Option<usize>,
    /// The largest number of gradients or draws a request may ask for
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Seconds for a request's headers, and for an idle connection
    #[arg(long, value_name = "S")]
    header_time: Option<f64>,
    /// Seconds for a body to come or an answer to be taken up
    #[arg(long, value_name = "S")]
    body_time: Option<f64>,
    /// Seconds that a request may wait and run
    #[arg(long, value_name = "S")]
    request_time: Option<f64>,
    /// Seconds to finish requests after the signal to stop
    #[arg(long, value_name = "S")]
    drain_time: Option<f64>,
}

impl LimitArgs {
    fn limits(&self) -> Result<Limits> {
        let mut limits = Limits::default();
        let set = |place: &mut usize, given: Option<usize>, unit: usize| {
            if let Some(given) = given {
                *place = given.saturating_mul(unit);
            }
        };
        set(&mut limits.body_bytes, self.max_body, 1 << 20);
        set(&mut limits.held_bytes, self.max_held, 1 << 20);
        set(&mut limits.megapixels, self.max_pixels, 1);
        set(&mut limits.network_megapixels, self.max_network_pixels, 1);
        set(&mut limits.batch, self.max_batch, 1);
        set(&mut limits.connections, self.max_connections, 1);
        set(&mut limits.plain_queue, self.max_queue, 1);
        set(&mut limits.defended_queue, self.max_defended_queue, 1);
        limits.knob = self.max_steps.unwrap_or(limits.knob);
        for (place, given, flag) in [
            (&mut limits.header_time, self.header_time, "--header-time"),
            (&mut limits.body_time, self.body_time, "--body-time"),
            (&mut limits.request_time, self.request_time, "--request-time"),
            (&mut limits.drain_time, self.drain_time, "--drain-time"),
        ] {
            if let Some(seconds) = given {
                ensure!(
                    seconds > 0.0 && seconds < 1e6,
                    "{flag}: {seconds} is not a time above 0, in seconds"
                );
                *place = Duration::from_secs_f64(seconds);
            }
        }
        Ok(limits)
    }
}

/// A network under the policy that it is to obey.
fn hosted(args: &ServeArgs, path: &Path) -> Result<Hosted> {
    let hosted = match path.to_str().and_then(|text| text.strip_prefix("embedded:")) {
        Some(name) => Hosted::shipped(evenkeel::shipped::named(name)?)?,
        None => Hosted::load(path, !args.no_policy && args.policy.is_none())?,
    };
    let Some(policy) = &args.policy else { return Ok(hosted) };
    ensure!(
        args.models.len() == 1,
        "--policy: a policy belongs to one network, and {} were given",
        args.models.len()
    );
    let policy = Policy::load(policy, &hosted.model)?;
    Ok(hosted.with_policy(policy)?)
}

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    init_logs(if args.log_json { LogFormat::Json } else { LogFormat::Pretty }, args.quiet);
    ensure!(
        args.policy.is_none() || !args.models.is_empty(),
        "--policy: name the network that it belongs to"
    );
    let hosted = match args.models.is_empty() {
        true => SHIPPED.iter().map(Hosted::shipped).collect::<Result<Vec<_>, _>>()?,
        false => args.models.iter().map(|path| hosted(args, path)).collect::<Result<Vec<_>>>()?,
    };
    let names: Vec<_> = hosted.iter().map(|hosted| hosted.name.clone()).collect();
    let mut options = Options::default();
    (options.host, options.port, options.grpc_port) = (args.host, args.port, args.grpc_port);
    options.threads = args.threads.unwrap_or(options.threads).max(1);
    options.workers = args.workers.unwrap_or(options.threads).max(1);
    options.token = args.token_file.as_deref().map(Token::load).transpose()?;
    options.alarm_log.clone_from(&args.alarm_log);
    options.keep_alarms = args.keep_alarms.clone().map(|folder| (folder, args.keep_alarms_mb << 20));
    options.limits = args.limits.limits()?;
    let mut server = Server::start(options, hosted).context("the server does not start")?;
    server.watch_signals();
    println!("serving {} at http://{}", names.join(", "), server.address());
    if let Some(address) = server.grpc_address() {
        println!("gRPC at {address}");
    }
    server.run();
    Ok(())
}
