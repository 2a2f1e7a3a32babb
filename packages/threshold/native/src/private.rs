//! Encrypts messages of key generation and refresh to a single party, so that fragments of secrets
//! are never readable in JavaScript, in a log or where TLS ends.
//!
//! Every party generates an X25519 key for the session and broadcasts its public half in round 1.
//! The private part of a later message from i to j is encrypted by AES-256-GCM with the key
//! `HKDF-SHA256(salt = binding, X25519(i, j), tag | i | j | round | public key of i | public key of
//! j)`. A key encrypts one message only, so the nonce is constant. The public part of the message
//! is not bound to it, because the echo round compares that part.
//!
//! The transport authenticates the session keys, and the echo of round 1 covers them, so the
//! parties compare them. A relay that replaces one is detected before a key is certified.

use crate::fault::{Fault, Outcome};
use crate::frame::{Body, Outbound, Wire};
use crate::vault::{decrypt, encrypt, random, NONCE_BYTES};
use hkdf::Hkdf;
use sha2::Sha256;
use std::collections::BTreeMap;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize, Zeroizing};

pub const KEY_BYTES: usize = 32;

/// This party's session key, which is erased with the session, and the others' public keys.
pub struct Pairwise {
    secret: StaticSecret,
    public: [u8; KEY_BYTES],
    others: BTreeMap<u8, [u8; KEY_BYTES]>,
}

impl Pairwise {
    pub fn new() -> Outcome<Self> {
        let secret = StaticSecret::from(*Zeroizing::new(random::<KEY_BYTES>()?));
        Ok(Self {
            public: PublicKey::from(&secret).to_bytes(),
            secret,
            others: BTreeMap::new(),
        })
    }

    pub fn public(&self) -> &[u8; KEY_BYTES] {
        &self.public
    }

    #[cfg(all(test, target_os = "linux"))]
    pub fn secret(&self) -> [u8; KEY_BYTES] {
        self.secret.to_bytes()
    }

    pub fn learn(&mut self, from: u8, key: &[u8]) -> Outcome<()> {
        let key: [u8; KEY_BYTES] = key
            .try_into()
            .map_err(|_| Fault::malformed(from, "session key of a wrong length"))?;
        if key == self.public || self.others.values().any(|other| *other == key) {
            return Err(Fault::abort("session key copied from another party").by(from));
        }
        if !self
            .secret
            .diffie_hellman(&PublicKey::from(key))
            .was_contributory()
        {
            return Err(Fault::malformed(from, "not a usable session key"));
        }
        self.others.insert(from, key);
        Ok(())
    }

    fn key(&self, wire: &Wire, from: u8, to: u8, round: u8) -> Outcome<Zeroizing<[u8; 32]>> {
        let other = if from == wire.party { to } else { from };
        let theirs = self
            .others
            .get(&other)
            .ok_or_else(|| Fault::abort("no session key of this party"))?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(*theirs));
        let (first, second) = if from == wire.party {
            (&self.public, theirs)
        } else {
            (theirs, &self.public)
        };
        let info = [
            &b"custody/threshold/private/v1"[..],
            &[from, to, round],
            first,
            second,
        ]
        .concat();
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(&wire.binding), shared.as_bytes())
            .expand(&info, &mut key[..])
            .map_err(|_| Fault::abort("no key for this message"))?;
        Ok(key)
    }

    /// Works like [`Wire::direct`], with encrypted private parts.
    pub fn direct(
        &self,
        wire: &mut Wire,
        public: &[u8],
        private: BTreeMap<u8, Vec<u8>>,
    ) -> Outcome<Vec<Outbound>> {
        let mut closed = BTreeMap::new();
        for (to, plain) in private {
            #[cfg(test)]
            let plain = forging::changed(wire.party, wire.round + 1, to, plain);
            let plain = Zeroizing::new(plain);
            let key = self.key(wire, wire.party, to, wire.round + 1)?;
            closed.insert(to, encrypt(&key, &[0; NONCE_BYTES], &[], &plain)?);
        }
        wire.direct(public, closed)
    }

    /// Replaces each private part of the received round by its plaintext.
    pub fn open(&self, wire: &Wire, bodies: &mut BTreeMap<u8, Body>) -> Outcome<()> {
        for (from, body) in bodies {
            let key = self.key(wire, *from, wire.party, wire.round)?;
            let plain = decrypt(&key, &[0; NONCE_BYTES], &[], &body.private)
                .map_err(|_| Fault::malformed(*from, "private part does not open"))?;
            body.private.zeroize();
            body.private.extend_from_slice(&plain);
        }
        Ok(())
    }
}

/// Forges messages of a modified engine to a single party. Available only in unit tests.
#[cfg(test)]
pub mod forging {
    use std::cell::RefCell;

    /// Parameters: sender, round, receiver, and plaintext of a message.
    pub type Change = Box<dyn Fn(u8, u8, u8, &mut Vec<u8>)>;

    thread_local! {
        static CHANGE: RefCell<Option<Change>> = const { RefCell::new(None) };
    }

    pub fn during<T>(change: Change, run: impl FnOnce() -> T) -> T {
        CHANGE.set(Some(change));
        let result = run();
        CHANGE.take();
        result
    }

    pub(super) fn changed(from: u8, round: u8, to: u8, mut plain: Vec<u8>) -> Vec<u8> {
        CHANGE.with_borrow(|change| {
            if let Some(change) = change {
                change(from, round, to, &mut plain);
            }
        });
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Inbound;
    use crate::session::PARTIES;

    struct Side {
        wire: Wire,
        keys: Pairwise,
    }

    fn sides(binding: [u8; 32]) -> [Side; 3] {
        let mut sides = PARTIES.map(|party| Side {
            wire: Wire::new(binding, party, &PARTIES),
            keys: Pairwise::new().unwrap(),
        });
        for at in 0..3 {
            let (party, public) = (sides[at].wire.party, *sides[at].keys.public());
            for other in 0..3 {
                if other != at {
                    sides[other].keys.learn(party, &public).unwrap();
                }
            }
        }
        sides
    }

    /// Returns party 1's message of the next round, as party 2 receives it.
    fn sent(side: &mut Side, public: &[u8]) -> Body {
        let private = BTreeMap::from([(2, b"for two".to_vec()), (3, b"for three".to_vec())]);
        let messages = side.keys.direct(&mut side.wire, public, private).unwrap();
        let mut peek = Wire::new(side.wire.binding, 2, &[1, 2]);
        peek.round = side.wire.round;
        let payload = messages
            .into_iter()
            .find(|message| message.to == 2)
            .unwrap()
            .payload;
        peek.accept(vec![Inbound { from: 1, payload }], true)
            .unwrap()
            .remove(&1)
            .unwrap()
    }

    fn opened(side: &Side, body: &Body) -> Outcome<Vec<u8>> {
        let mut bodies = BTreeMap::from([(1, body.clone())]);
        side.keys
            .open(&side.wire, &mut bodies)
            .map(|()| bodies[&1].private.clone())
    }

    #[test]
    fn a_private_part_opens_for_its_receiver_in_its_round_only() {
        let [mut one, mut two, mut three] = sides([8; 32]);
        let body = sent(&mut one, b"said to all");
        assert_eq!(body.private.len(), b"for two".len() + 16);
        two.wire.round = one.wire.round;
        three.wire.round = one.wire.round;
        assert_eq!(opened(&two, &body).unwrap(), b"for two");
        assert!(opened(&three, &body).is_err());
        for at in 0..body.private.len() {
            let mut changed = body.clone();
            changed.private[at] ^= 1;
            assert!(opened(&two, &changed).is_err());
        }
        two.wire.round += 1;
        assert!(opened(&two, &body).is_err());
        two.wire.round -= 1;
        two.wire.binding = [9; 32];
        assert!(opened(&two, &body).is_err());
    }

    #[test]
    fn no_key_encrypts_twice() {
        let [mut one, mut two, _] = sides([8; 32]);
        let (first, second) = (sent(&mut one, b""), sent(&mut one, b""));
        assert_ne!(first.private, second.private);
        // The opposite direction of the same pair in the same round.
        let there = one.keys.key(&one.wire, 1, 2, 1).unwrap();
        let back = one.keys.key(&one.wire, 2, 1, 1).unwrap();
        assert_ne!(*there, *back);
        two.wire.round = 1;
        assert_eq!(*back, *two.keys.key(&two.wire, 2, 1, 1).unwrap());
    }

    #[test]
    fn session_keys_that_are_copied_or_useless_are_refused() {
        let mut own = Pairwise::new().unwrap();
        let other = *Pairwise::new().unwrap().public();
        own.learn(2, &other).unwrap();
        assert!(own.learn(3, &other).is_err());
        let mirrored = *own.public();
        assert!(own.learn(3, &mirrored).is_err());
        assert!(own.learn(3, &[0; 32]).is_err());
        let mut one = [0; 32];
        one[0] = 1;
        assert!(own.learn(3, &one).is_err());
        assert!(own.learn(3, &other[..31]).is_err());
    }
}
