//! Protects the memory of this process from other processes and from being written to disk. The
//! functions never fail: each measure reports `done`, `not on this system` or `failed: why`.
//!
//! Memory is not locked against swap: with `mlockall` (also with `MCL_ONFAULT`) Node 24 soon exits
//! with a fatal error of V8 (`Check failed: 0 == ret`).

use napi_derive::napi;
use std::io::Error;

#[napi(object)]
pub struct NativeHardening {
    /// Prevents other processes of the same user from attaching or reading the memory.
    pub attaching: String,
    /// Prevents core dumps.
    pub core_dumps: String,
}

fn outcome(status: i32) -> String {
    if status == 0 {
        "done".into()
    } else {
        format!("failed: {}", Error::last_os_error())
    }
}

fn no_core_dumps() -> String {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain system call; the struct outlives the call.
    outcome(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) })
}

#[cfg(target_os = "linux")]
fn no_attaching() -> String {
    // SAFETY: plain system call without pointers.
    outcome(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })
}

#[cfg(target_os = "macos")]
fn no_attaching() -> String {
    // SAFETY: plain system call; this request requires the null pointer.
    outcome(unsafe { libc::ptrace(libc::PT_DENY_ATTACH, 0, std::ptr::null_mut(), 0) })
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn no_attaching() -> String {
    "not on this system".into()
}

#[napi]
pub fn harden_process() -> NativeHardening {
    NativeHardening {
        attaching: no_attaching(),
        core_dumps: no_core_dumps(),
    }
}
