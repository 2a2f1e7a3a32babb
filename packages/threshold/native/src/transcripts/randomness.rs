//! Replaces the randomness of the operating system on the thread of a recorded run.
//!
//! This test program defines the C function `getrandom`, which the crates `getrandom` and `rand`
//! and the standard library look up when the program starts. A thread that did not call [`fix`]
//! gets the system's randomness from the same system call as before. The function is compiled into
//! this test program only: no feature, setting or symbol of the addon leads to it.

use crate::frame::hash;
use std::cell::Cell;

thread_local! {
    /// Seed and number of the next block.
    static FIXED: Cell<Option<([u8; 32], u64)>> = const { Cell::new(None) };
}

/// Makes the system randomness of this thread a function of `seed`.
pub fn fix(seed: &str) {
    FIXED.set(Some((
        hash("custody/threshold/vectors/seed/v1", &[seed.as_bytes()]),
        0,
    )));
    let (first, second): ([u8; 16], [u8; 16]) = (sample(), sample());
    assert_ne!(first, second);
    FIXED.set(Some((
        hash("custody/threshold/vectors/seed/v1", &[seed.as_bytes()]),
        0,
    )));
    assert_eq!(
        first,
        sample(),
        "this program's getrandom is not the one in use"
    );
    FIXED.set(Some((
        hash("custody/threshold/vectors/seed/v1", &[seed.as_bytes()]),
        0,
    )));
}

fn sample() -> [u8; 16] {
    crate::vault::random().unwrap()
}

fn fill(out: &mut [u8], seed: &[u8; 32], mut block: u64) -> u64 {
    for chunk in out.chunks_mut(32) {
        let bytes = hash(
            "custody/threshold/vectors/block/v1",
            &[seed, &block.to_be_bytes()],
        );
        chunk.copy_from_slice(&bytes[..chunk.len()]);
        block += 1;
    }
    block
}

/// # Safety
///
/// `out` must be valid for `length` bytes, as the C library's function of this name requires.
#[no_mangle]
pub unsafe extern "C" fn getrandom(
    out: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    match FIXED.try_with(Cell::get) {
        Ok(Some((seed, block))) if length > 0 => {
            // SAFETY: the caller guarantees `length` valid bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), length) };
            FIXED.set(Some((seed, fill(bytes, &seed, block))));
            length as libc::ssize_t
        }
        // SAFETY: the same system call with the same arguments as the C library's function.
        _ => unsafe { libc::syscall(libc::SYS_getrandom, out, length, flags) as libc::ssize_t },
    }
}

#[test]
fn another_thread_keeps_the_randomness_of_the_system() {
    let fixed = || {
        std::thread::spawn(|| {
            fix("test");
            sample()
        })
        .join()
        .unwrap()
    };
    assert_eq!(fixed(), fixed());
    assert_ne!(sample(), fixed());
    assert_ne!(sample(), sample());
}
