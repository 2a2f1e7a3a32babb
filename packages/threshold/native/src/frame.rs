//! Wire format of every message, and the checks of a session on received messages.
//!
//! ```text
//! "TSH1" | round u8 | from u8 | to u8 (0 = broadcast) | binding 32 | check 16 | body
//! body = public length u32be | public part | private part
//! ```
//! `binding` is a hash of everything that both sides must agree on before the first message:
//! protocol, engine, session id, key, epoch, participants, path, message. A message of another
//! session therefore never reaches an engine. `check` is an unkeyed hash of the rest of the frame.
//! It does not authenticate (the caller's transport does). It prevents an accidentally flipped bit
//! from being treated as cheating, for which a counterparty would be banned permanently.
//!
//! The public part is the same for all receivers, and the echo rounds compare it. In key generation
//! and refresh the private part is encrypted (`private.rs`).

use crate::fault::{Fault, Outcome};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use zeroize::Zeroize;

pub const MAGIC: &[u8; 4] = b"TSH1";
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
const CHECK_BYTES: usize = 16;
const HEADER_BYTES: usize = 4 + 3 + 32;
const BODY_OFFSET: usize = HEADER_BYTES + CHECK_BYTES;

/// Hashes parts of any length. Each is preceded by its length, so that no two lists collide.
pub fn hash(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update((tag.len() as u64).to_be_bytes());
    digest.update(tag.as_bytes());
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

fn check(header: &[u8], body: &[u8]) -> [u8; CHECK_BYTES] {
    let full = hash("custody/threshold/frame/v1", &[header, body]);
    let mut out = [0; CHECK_BYTES];
    out.copy_from_slice(&full[..CHECK_BYTES]);
    out
}

pub struct Inbound {
    pub from: u32,
    pub payload: Vec<u8>,
}

pub struct Outbound {
    pub to: u8,
    pub payload: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct Body {
    pub public: Vec<u8>,
    pub private: Vec<u8>,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.private.zeroize();
    }
}

/// The participants, the current round, and the agreed context.
pub struct Wire {
    pub binding: [u8; 32],
    pub party: u8,
    /// The other participants, ascending.
    pub others: Vec<u8>,
    /// The round of the messages that were sent last; 0 before the first.
    pub round: u8,
}

impl Wire {
    pub fn new(binding: [u8; 32], party: u8, participants: &[u8]) -> Self {
        let others = participants
            .iter()
            .copied()
            .filter(|p| *p != party)
            .collect();
        Self {
            binding,
            party,
            others,
            round: 0,
        }
    }

    fn frame(&self, to: u8, body: &Body) -> Outcome<Outbound> {
        let mut payload =
            Vec::with_capacity(BODY_OFFSET + 4 + body.public.len() + body.private.len());
        payload.extend_from_slice(MAGIC);
        payload.extend_from_slice(&[self.round, self.party, to]);
        payload.extend_from_slice(&self.binding);
        payload.extend_from_slice(&[0; CHECK_BYTES]);
        payload.extend_from_slice(&(body.public.len() as u32).to_be_bytes());
        payload.extend_from_slice(&body.public);
        payload.extend_from_slice(&body.private);
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Fault::abort("a message of ours is over the limit of 1 MiB"));
        }
        let sum = check(&payload[..HEADER_BYTES], &payload[BODY_OFFSET..]);
        payload[HEADER_BYTES..BODY_OFFSET].copy_from_slice(&sum);
        Ok(Outbound { to, payload })
    }

    /// Begins the next round with one message to all participants.
    pub fn broadcast(&mut self, public: Vec<u8>) -> Outcome<Vec<Outbound>> {
        self.round += 1;
        Ok(vec![self.frame(
            0,
            &Body {
                public,
                private: Vec::new(),
            },
        )?])
    }

    /// Begins the next round with one message to each other participant: the same public part and
    /// a private one.
    pub fn direct(
        &mut self,
        public: &[u8],
        mut private: BTreeMap<u8, Vec<u8>>,
    ) -> Outcome<Vec<Outbound>> {
        self.round += 1;
        let mut out = Vec::with_capacity(self.others.len());
        for to in self.others.clone() {
            let private = private.remove(&to).ok_or_else(|| {
                Fault::abort(format!("the engine made no message for party {to}"))
            })?;
            out.push(self.frame(
                to,
                &Body {
                    public: public.to_vec(),
                    private,
                },
            )?);
        }
        Ok(out)
    }

    /// Checks the messages of the current round: exactly one from each other participant.
    pub fn accept(&self, inbox: Vec<Inbound>, direct: bool) -> Outcome<BTreeMap<u8, Body>> {
        let mut bodies = BTreeMap::new();
        for message in inbox {
            let from = u8::try_from(message.from)
                .ok()
                .filter(|from| self.others.contains(from))
                .ok_or_else(|| Fault {
                    code: crate::fault::Code::Malformed,
                    counterparty: None,
                    message: format!("party {} does not take part", message.from),
                })?;
            let body = self.open(from, &message.payload, direct)?;
            if bodies.insert(from, body).is_some() {
                return Err(Fault::malformed(
                    from,
                    "two messages of one party in one round",
                ));
            }
        }
        match self.others.iter().find(|party| !bodies.contains_key(party)) {
            None => Ok(bodies),
            Some(party) => Err(Fault::malformed(
                *party,
                "no message of this party in the round",
            )),
        }
    }

    fn open(&self, from: u8, payload: &[u8], direct: bool) -> Outcome<Body> {
        let bad = |text: &str| Fault::malformed(from, text);
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(bad("message over the limit of 1 MiB"));
        }
        if payload.len() < BODY_OFFSET + 4 || &payload[..4] != MAGIC {
            return Err(bad("not a message of this protocol"));
        }
        let (header, body) = (&payload[..HEADER_BYTES], &payload[BODY_OFFSET..]);
        if payload[HEADER_BYTES..BODY_OFFSET] != check(header, body) {
            return Err(bad("message damaged"));
        }
        if payload[7..HEADER_BYTES] != self.binding {
            return Err(bad("message of another session, key, epoch, path or digest, or of a node with another version of this addon"));
        }
        if payload[4] != self.round {
            return Err(bad("message of another round"));
        }
        if payload[5] != from {
            return Err(bad("message names another sender"));
        }
        if payload[6] != (if direct { self.party } else { 0 }) {
            return Err(bad("message addressed to another party"));
        }
        let length = u32::from_be_bytes([body[0], body[1], body[2], body[3]]) as usize;
        let rest = &body[4..];
        if length > rest.len() {
            return Err(bad("message cut short"));
        }
        let (public, private) = rest.split_at(length);
        if !direct && !private.is_empty() {
            return Err(bad("private part in a broadcast"));
        }
        Ok(Body {
            public: public.to_vec(),
            private: private.to_vec(),
        })
    }

    /// Returns one hash of all public parts of the received round, including our own.
    pub fn echo(&self, own_public: &[u8], bodies: &BTreeMap<u8, Body>) -> [u8; 32] {
        let mut all: BTreeMap<u8, &[u8]> = bodies
            .iter()
            .map(|(party, body)| (*party, body.public.as_slice()))
            .collect();
        all.insert(self.party, own_public);
        let mut parts: Vec<&[u8]> = vec![&self.binding];
        let round = [self.round];
        parts.push(&round);
        let parties: Vec<[u8; 1]> = all.keys().map(|party| [*party]).collect();
        for (party, public) in parties.iter().zip(all.values()) {
            parts.push(party);
            parts.push(public);
        }
        hash("custody/threshold/echo/v1", &parts)
    }

    /// Compares an echo round: every other party must have received the same public parts.
    pub fn compare_echo(&self, own: &[u8; 32], bodies: &BTreeMap<u8, Body>) -> Outcome<()> {
        for (party, body) in bodies {
            if body.public.len() != 32 {
                return Err(Fault::malformed(*party, "echo of a wrong length"));
            }
            if body.public != own {
                // The party that sent different parts cannot be identified here, so none is named.
                return Err(Fault::abort(
                    "echo mismatch: the parties did not all see the same broadcasts",
                ));
            }
        }
        Ok(())
    }
}

/// Decodes one value and rejects trailing bytes.
pub fn decode<T: serde::de::DeserializeOwned>(from: u8, bytes: &[u8]) -> Outcome<T> {
    match postcard::take_from_bytes::<T>(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(Fault::malformed(from, "message body does not decode")),
    }
}

pub fn encode<T: serde::Serialize>(value: &T) -> Outcome<Vec<u8>> {
    postcard::to_allocvec(value).map_err(|_| Fault::abort("a message of ours does not encode"))
}
