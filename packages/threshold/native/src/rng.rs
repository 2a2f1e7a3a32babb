//! All randomness comes from the operating system at the time of use.
//!
//! A generator with state in this process would repeat its output, and with it signing nonces, if a
//! snapshot of the machine is resumed twice. FROST accepts a generator and gets [`SessionRng`],
//! which has no state. DKLs23 accepts none: it uses `rand::rng()`, a ChaCha12 generator of each
//! thread, which reads a new seed from the system only after 64 kB and never after a fork.
//! [`reseed_engine`] reseeds that generator before every step.
//!
//! This does not protect against two cases. A snapshot during a step or between two steps of a
//! session contains the session's own nonces. And a kernel that is not notified of the resumption
//! (Linux before 5.18, or no `vmgenid` device) repeats its own output for a while.

use crate::fault::{Fault, Outcome};
use crate::vault::random;
use rand_core::{CryptoRng, Error, RngCore};
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// Reads 64 bytes from the system for every 32 bytes of output, and hashes them with the session's
/// binding: even if the system repeated its output, two sessions would get different bytes.
pub struct SessionRng {
    binding: [u8; 32],
    blocks: u64,
}

impl SessionRng {
    pub fn new(binding: &[u8; 32]) -> Self {
        Self {
            binding: *binding,
            blocks: 0,
        }
    }

    fn block(&mut self, system: &[u8; 64]) -> Zeroizing<[u8; 32]> {
        let mut digest = Sha512::new();
        digest.update(b"custody/threshold/randomness/v1");
        digest.update(system);
        digest.update(self.binding);
        digest.update(self.blocks.to_be_bytes());
        self.blocks += 1;
        let mut full = digest.finalize();
        let mut out = Zeroizing::new([0; 32]);
        out.copy_from_slice(&full[..32]);
        full.as_mut_slice().zeroize();
        out
    }
}

impl RngCore for SessionRng {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }
    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }
    /// Panics if there is no randomness. The panic is caught and ends the session.
    fn fill_bytes(&mut self, out: &mut [u8]) {
        self.try_fill_bytes(out)
            .expect("the system gives no randomness");
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Error> {
        for chunk in out.chunks_mut(32) {
            let system = random::<64>().map_err(|_| Error::from(std::num::NonZeroU32::MIN))?;
            let system = Zeroizing::new(system);
            chunk.copy_from_slice(&self.block(&system)[..chunk.len()]);
        }
        Ok(())
    }
}

impl CryptoRng for SessionRng {}

/// Reseeds the generator that `dkls23-core` uses on this thread from the system, and discards its
/// buffered output.
pub fn reseed_engine() -> Outcome<()> {
    rand::rng()
        .reseed()
        .map_err(|_| Fault::abort("the system gives no randomness"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_repeats_itself_gives_two_sessions_different_randomness() {
        let (mut one, mut two) = (SessionRng::new(&[1; 32]), SessionRng::new(&[2; 32]));
        let first = one.block(&[5; 64]);
        assert_ne!(*first, *two.block(&[5; 64]));
        assert_ne!(*first, *one.block(&[5; 64]));
        let mut same = SessionRng::new(&[1; 32]);
        assert_eq!(*first, *same.block(&[5; 64]));
        assert_ne!(*first, *SessionRng::new(&[1; 32]).block(&[6; 64]));
    }

    #[test]
    fn two_generators_of_one_session_share_nothing() {
        let mut all = std::collections::BTreeSet::new();
        for _ in 0..2 {
            let mut rng = SessionRng::new(&[1; 32]);
            for length in [32, 32, 40, 100] {
                let mut out = vec![0; length];
                rng.fill_bytes(&mut out);
                assert!(all.insert(out[length - 8..].to_vec()) && all.insert(out[..8].to_vec()));
            }
            assert!(all.insert(rng.next_u64().to_be_bytes().to_vec()));
        }
    }

    /// The reseeding affects the engine only while both use the same version of `rand`: two
    /// versions would have separate generators.
    #[test]
    fn the_engine_uses_the_generator_that_is_reseeded() {
        let lock = include_str!("../Cargo.lock");
        assert_eq!(lock.matches("name = \"rand\"\n").count(), 1);
    }
}
