//! A connection's bytes: what comes in is watched for ambiguous lengths, and a client that does not take up what it is sent is given up.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::accept::Speaks;
use crate::head_watch::HeadWatch;
use crate::limits::Limits;

/// What became known of a connection.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    ambiguous: AtomicBool,
}

impl Facts {
    /// Whether a request had two lengths.
    pub(crate) fn ambiguous(&self) -> bool {
        self.ambiguous.load(Ordering::Relaxed)
    }
}

/// The stream of one connection.
pub(crate) struct Connection {
    stream: TcpStream,
    watch: Option<HeadWatch>,
    facts: Arc<Facts>,
    patience: Duration,
    /// Since when nothing could be written.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether nothing was read yet.
    fresh: bool,
    /// Bytes of HTTP/2's opening that are still to come, and until when; HTTP/1 has hyper's own time-out for heads.
    opening: Option<(usize, Pin<Box<Sleep>>)>,
}

/// What every HTTP/2 connection begins with: 24 bytes, and the 9 of a settings frame's head.
const OPENING: usize = 24 + 9;

/// The line that an HTTP/2 client begins with if nobody asked it to.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n";
/// What it is told where HTTP/1 is spoken.
const NO_HTTP_2: &[u8] = b"HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-type: application/json\r\n\
    content-length: 81\r\nconnection: close\r\n\r\n\
    {\"error\": \"HTTP/2 is not spoken on this port; gRPC has its own, see --grpc-port\"}";

impl Connection {
    /// A connection whose heads are watched if it speaks HTTP/1; writing may stall for as long as a body may take.
    pub(crate) fn new(stream: TcpStream, speaks: Speaks, limits: &Limits) -> (Self, Arc<Facts>) {
        let (facts, patience) = (Arc::new(Facts::default()), limits.body_time);
        let (watch, opening) = match speaks {
            Speaks::Rest => (Some(HeadWatch::default()), None),
            Speaks::Grpc => (None, Some((OPENING, Box::pin(tokio::time::sleep(limits.header_time))))),
        };
        let fresh = true;
        (Self { stream, watch, facts: facts.clone(), patience, stalled: None, fresh, opening }, facts)
    }

    /// Passes on what a write came to, and gives up if it has been pending for too long.
    fn judged<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Some((left, until)) = &mut this.opening {
            if read.is_pending() {
                ready!(until.as_mut().poll(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            *left = left.saturating_sub(buffer.filled().len() - before);
            if *left == 0 {
                this.opening = None;
            }
        }
        ready!(read)?;
        if let Some(watch) = &mut this.watch {
            let read = &buffer.filled()[before..];
            if std::mem::take(&mut this.fresh) && read.starts_with(HTTP_2) {
                // hyper would close the connection without a word
                let _ = this.stream.try_write(NO_HTTP_2);
                return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
            }
            watch.feed(read);
            if watch.both() {
                this.facts.ambiguous.store(true, Ordering::Relaxed);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judged(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.judged(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.judged(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = Pin::new(&mut this.stream).poll_shutdown(context);
        this.judged(context, closed)
    }
}
