//! Runs steps of key generations below the priority of signatures, which share the
//! processors with them.

use crate::fault::{Fault, Outcome};
use std::thread::{Builder, ScopedJoinHandle};

/// Niceness of the thread. On Linux it gets about a twentieth of a processor that is busy with
/// signatures, so that signatures are hardly delayed and a generation still makes progress.
#[cfg(target_os = "linux")]
const NICENESS: libc::c_int = 13;
/// Stack size of the threads of the libuv pool, on which the steps of signatures run.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// A process without the privilege to raise a priority can only lower it, so the thread ends with
/// its work. On Linux the priority belongs to a thread; elsewhere it is unchanged.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // SAFETY: plain system call without pointers; 0 is the calling thread. A failure is harmless.
    unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, NICENESS) };
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

/// Runs `work` on a thread of low priority and waits for its result. The work must not panic.
pub fn run<T: Send>(work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    std::thread::scope(|scope| {
        Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                lower_priority();
                work()
            })
            .map_err(|_| Fault::abort("the system gives no thread"))
            .and_then(join)
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, Outcome<T>>) -> Outcome<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Fault::abort("the thread ended without a result")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn niceness() -> libc::c_int {
        // SAFETY: plain system call without pointers.
        unsafe { libc::getpriority(libc::PRIO_PROCESS as _, 0) }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lowers_the_priority_of_the_work_and_not_of_the_caller() {
        let before = niceness();
        let during = run(|| Ok(niceness())).unwrap();
        assert_eq!(during, NICENESS.max(before));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn returns_the_result_and_the_error_of_the_work() {
        assert_eq!(run(|| Ok(7)).unwrap(), 7);
        let error = run::<()>(|| Err(Fault::abort("no"))).unwrap_err();
        assert_eq!(error.message, "no");
        assert!(run::<()>(|| panic!("never printed")).is_err());
    }
}
