//! The processor a thread runs on. A kernel may place a thread it wakes on its waker's processor, most readily inside a virtual
//! machine whose other processors are halted, and leave it there for milliseconds while they stand idle. A helper that finds
//! itself beside its leader moves.

/// The processor this thread is on, where the system tells.
#[cfg(target_os = "linux")]
pub(super) fn here() -> Option<usize> {
    // SAFETY: no arguments, no memory.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Moves this thread to another processor than `taken`, if it is on it and may run elsewhere; then lets it roam as before.
#[cfg(target_os = "linux")]
pub(super) fn leave(taken: usize) {
    if here() != Some(taken) {
        return;
    }
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of processors is plain bits; the calls read and write one of the size given, of this thread.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
            return;
        }
        let mut others = allowed;
        libc::CPU_CLR(taken, &mut others);
        if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size, &others) == 0 {
            libc::sched_setaffinity(0, size, &allowed);
        }
    }
}

/// Elsewhere nothing is known and nothing done.
#[cfg(not(target_os = "linux"))]
pub(super) fn here() -> Option<usize> {
    None
}

/// Elsewhere nothing is known and nothing done.
#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_taken: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_taken_processor_and_may_still_roam() {
        let may_run = || {
            // SAFETY: as in `leave`.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), 0);
                libc::CPU_COUNT(&set)
            }
        };
        let before = may_run();
        for _ in 0..20 {
            leave(here().unwrap());
        }
        assert_eq!(may_run(), before);
        leave(usize::MAX >> 8);
        assert_eq!(may_run(), before);
    }
}
