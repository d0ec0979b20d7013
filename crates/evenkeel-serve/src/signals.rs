//! The signals that end a server: SIGTERM and Ctrl-C, watched from before the server says that it listens.

/// Signals that are watched instead of ending the process.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Watches from now on; must be called inside a runtime.
    pub(crate) fn watch() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Self { terminate: signal(SignalKind::terminate()).ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for one of them.
    pub(crate) async fn one(&mut self) {
        #[cfg(unix)]
        if let Some(terminate) = &mut self.terminate {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
