//! Ctrl-C: the program ends with exit code 130 at once. Files are written whole or not at all, so nothing is left half done. Studies, which stop between
//! results, listen for themselves.

/// Leaves with 130 when the user interrupts.
#[cfg(unix)]
pub(crate) fn leave_on_interrupt() {
    use signal_hook::consts::SIGINT;
    // without a listener the system ends the program, which is as good
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT]) {
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                std::process::exit(130);
            }
        });
    }
}

/// Leaves with 130 when the user interrupts.
#[cfg(not(unix))]
pub(crate) fn leave_on_interrupt() {
    let _ = ctrlc::set_handler(|| std::process::exit(130));
}
