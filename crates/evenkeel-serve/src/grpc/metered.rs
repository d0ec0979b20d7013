//! A call's body, whose bytes are held by the call's share of the memory of requests.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tonic::Status;

use crate::budget::{Budget, Share};
use crate::error::Result;

/// The share of a call, taken by whoever answers it.
#[derive(Clone)]
pub(super) struct CallShare(Arc<Mutex<Option<Share>>>);

impl CallShare {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self(Arc::new(Mutex::new(Some(Share::new(budget)))))
    }

    /// The share itself, once; the whole message has come by then.
    pub(super) fn take(&self) -> Option<Share> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn grow(&self, bytes: usize) -> Result<()> {
        let mut share = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        share.as_mut().map_or(Ok(()), |share| share.grow(bytes))
    }
}

/// The body.
pub(super) struct Metered<B> {
    body: B,
    share: CallShare,
}

impl<B> Metered<B> {
    pub(super) fn new(body: B, share: CallShare) -> Self {
        Self { body, share }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Body for Metered<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(|broken| Status::from_error(broken.into()));
        let held = |frame: Frame<Bytes>| {
            this.share.grow(frame.data_ref().map_or(0, Bytes::len))?;
            Ok(frame)
        };
        Poll::Ready(Some(frame.and_then(held)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http_body_util::Full;
    use tonic::Code;

    use super::*;

    #[test]
    fn a_message_without_room_ends_its_call() {
        let budget = Budget::new(10, 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |bytes: usize, share: &CallShare| {
            let mut body = Metered::new(Full::new(Bytes::from(vec![7; bytes])), share.clone());
            runtime.block_on(poll_fn(|context| Pin::new(&mut body).poll_frame(context))).unwrap()
        };
        let (one, other) = (CallShare::new(&budget), CallShare::new(&budget));
        assert!(read(8, &one).is_ok());
        assert_eq!(read(3, &other).unwrap_err().code(), Code::ResourceExhausted);
        let taken = one.take().unwrap();
        assert_eq!(budget.held(), 8, "whoever answers holds it now");
        drop((one, taken));
        assert!(read(3, &other).is_ok());
        assert_eq!(budget.held(), 3);
    }
}
