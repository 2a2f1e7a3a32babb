//! secp256k1: DKLs23, implemented by the crate `dkls23-secp256k1`.
//!
//! Key generation has six rounds. Direct messages are encrypted (`private.rs`):
//! 1. session key (public)
//! 2. echo of round 1 (public), polynomial fragments (direct)
//! 3. commitments to the proof and to the chain code (public), zero-share commitments (direct)
//! 4. echo of round 3
//! 5. proof and chain code (public), zero-share seeds and multiplication set-up (direct)
//! 6. echo of round 5 and of the resulting key
//!
//! Refresh has the same rounds without the chain code. It is the crate's *complete* refresh: the
//! fast one derives the new oblivious-transfer state of a pair from seeds that stay in the share,
//! so an attacker with one node's old share and, later, another node's new one could compute it.
//!
//! The engine uses the thread's own random generator and accepts no other one, so that generator is
//! reseeded before each step (`rng.rs`). Unlike FROST's, its nonces are not hedged: they do not
//! depend on the share or the message, but only on the system's randomness in that step.
//!
//! Signing (`dkls/signing.rs`) has three rounds.

#[cfg(test)]
mod forged;
#[cfg(all(test, target_os = "linux"))]
pub mod opened;
mod signing;

use crate::derive;
use crate::fault::{Code, Fault, Outcome};
use crate::frame::{decode, encode, Body, Inbound, Wire};
use crate::private::Pairwise;
use crate::rng::reseed_engine;
use crate::session::*;
use crate::vault::{Meta, Share, Vault};
use dkls23_secp256k1::protocols::dkg::{
    BroadcastDerivationPhase2to4, BroadcastDerivationPhase3to4, KeepInitMulPhase3to4,
    KeepInitZeroSharePhase2to3, KeepInitZeroSharePhase3to4, ProofCommitment,
    TransmitInitMulPhase3to4, TransmitInitZeroSharePhase2to4, TransmitInitZeroSharePhase3to4,
};
use dkls23_secp256k1::protocols::{Abort, AbortKind, AbortReason, Parameters, PartyIndex};
use dkls23_secp256k1::utilities::proofs::DLogProof;
use dkls23_secp256k1::{DkgSession, Party};
use k256::{Scalar, Secp256k1};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

pub use signing::Signing;

pub const ENGINE: &str = "dkls23-secp256k1";
/// The versions whose shares can be opened; new shares have the first one.
pub const VERSIONS: &[&str] = if cfg!(test) {
    &["0.6.2", OLDER_IN_TESTS]
} else {
    &["0.6.2"]
};
pub const CURVE: &str = "secp256k1";

fn index(party: u8) -> PartyIndex {
    PartyIndex::new(party).expect("party numbers begin at 1")
}

fn parameters() -> Parameters {
    Parameters {
        threshold: THRESHOLD,
        share_count: PARTIES.len() as u8,
    }
}

impl From<Abort> for Fault {
    fn from(abort: Abort) -> Self {
        let message = abort.description();
        if let AbortKind::BanCounterparty(party) = abort.kind {
            return Fault {
                code: Code::Cheat,
                counterparty: Some(party.as_u8()),
                message,
            };
        }
        use AbortReason::*;
        let counterparty = match abort.reason {
            SessionBindingMismatch { counterparty }
            | ProofVerificationFailed { counterparty }
            | CommitmentMismatch { counterparty }
            | TrivialInstancePoint { counterparty }
            | MultiplicationVerificationFailed { counterparty, .. }
            | ZeroShareDecommitFailed { counterparty } => Some(counterparty),
            ChainCodeCommitmentFailed { party } => Some(party),
            _ => None,
        };
        Fault {
            code: Code::Abort,
            counterparty: counterparty
                .filter(|p| *p != abort.index)
                .map(|p| p.as_u8()),
            message,
        }
    }
}

fn seal(vault: &Vault, meta: Meta, party: &Party) -> Outcome<Key> {
    let public_key = derive::secp256k1_bytes(&party.pk);
    let chain_code = party.derivation_data.chain_code;
    // A share takes about 105 kB. Allocating enough memory first avoids copies of it.
    let state = postcard::to_extend(party, Vec::with_capacity(512 << 10))
        .map_err(|_| Fault::abort("the share does not encode"))?;
    let share = Share {
        engine_version: VERSIONS[0].into(),
        public_key: public_key.clone(),
        chain_code,
        state,
    };
    let sealed = vault.seal(&meta, &share)?;
    Ok(Key {
        meta,
        engine_version: VERSIONS[0].into(),
        public_key,
        chain_code,
        sealed,
    })
}

fn load(vault: &Arc<Vault>, key: &Key) -> Outcome<Party> {
    let share = unseal(vault, key, CURVE)?;
    let party: Party = match postcard::take_from_bytes(&share.state) {
        Ok((party, [])) => party,
        _ => return Err(Fault::sealed("the engine's state does not decode")),
    };
    if party.party_index.as_u8() != key.meta.party
        || derive::secp256k1_bytes(&party.pk) != key.public_key
        || party.derivation_data.pk != party.pk
        || party.derivation_data.poly_point != party.poly_point
        || party.derivation_data.chain_code != key.chain_code
        || party.derivation_data.depth != 0
    {
        return Err(Fault::sealed("the engine's state is not of this key"));
    }
    Ok(party)
}

fn check_parties(
    parties: &dkls23_secp256k1::protocols::PartiesMessage,
    from: u8,
    to: u8,
) -> Outcome<()> {
    if parties.sender.as_u8() == from && parties.receiver.as_u8() == to {
        return Ok(());
    }
    Err(Fault::malformed(from, "inner message names other parties"))
}

// ---- key generation and refresh -------------------------------------------------------------

#[derive(Serialize, Deserialize, Clone)]
struct Commitments {
    proof: [u8; 32],
    chain_code: Option<BroadcastDerivationPhase2to4>,
}

#[derive(Serialize, Deserialize, Clone)]
struct Reveal {
    proof: DLogProof<Secp256k1>,
    chain_code: Option<BroadcastDerivationPhase3to4>,
}

#[derive(Serialize, Deserialize)]
struct SetUp {
    zero: TransmitInitZeroSharePhase3to4,
    mul: TransmitInitMulPhase3to4<Secp256k1>,
}

#[allow(clippy::large_enum_variant)] // one per session, and short-lived
/// The differences between a new key and new shares of an existing one.
enum Kind {
    New {
        session: Option<DkgSession<Secp256k1>>,
    },
    Refresh {
        party: Box<Party>,
        correction: Zeroizing<Scalar>,
        zero_2to3: BTreeMap<PartyIndex, KeepInitZeroSharePhase2to3>,
        zero_3to4: BTreeMap<PartyIndex, KeepInitZeroSharePhase3to4>,
        mul: BTreeMap<PartyIndex, KeepInitMulPhase3to4<Secp256k1>>,
    },
}

impl Drop for Kind {
    fn drop(&mut self) {
        if let Kind::Refresh {
            zero_2to3,
            zero_3to4,
            mul,
            ..
        } = self
        {
            for keep in zero_2to3.values_mut() {
                keep.seed.zeroize();
                keep.salt.zeroize();
            }
            for keep in zero_3to4.values_mut() {
                keep.seed.zeroize();
            }
            for keep in mul.values_mut() {
                keep.ot_sender.s.zeroize();
                keep.ot_receiver.seed.zeroize();
                keep.nonce.zeroize();
                keep.correlation.zeroize();
                keep.vec_r.zeroize();
            }
        }
    }
}

pub struct Generation {
    vault: Arc<Vault>,
    meta: Meta,
    wire: Wire,
    pairwise: Option<Pairwise>,
    kind: Kind,
    fragment: Zeroizing<Scalar>,
    own_public: Vec<u8>,
    own_proof: Option<ProofCommitment<Secp256k1>>,
    commitments: BTreeMap<u8, Commitments>,
    zero_commitments: Vec<TransmitInitZeroSharePhase2to4>,
    echo: [u8; 32],
    key: Option<Key>,
}

impl Generation {
    pub fn start_new(vault: Arc<Vault>, meta: Meta, session_id: [u8; 32]) -> Self {
        let binding = Context {
            protocol: "keygen",
            engine: ENGINE,
            engine_version: VERSIONS[0],
            made_version: VERSIONS[0],
            session_id: &session_id,
            key_id: &meta.key_id,
            epoch: meta.epoch,
            participants: &PARTIES,
            key: &[],
            share_set: &[],
            path: &[],
            message: &[],
        }
        .binding();
        let session = DkgSession::new(parameters(), index(meta.party), binding.to_vec());
        Self::with(
            vault,
            meta,
            binding,
            Kind::New {
                session: Some(session),
            },
        )
    }

    pub fn start_refresh(vault: Arc<Vault>, key: Key, session_id: [u8; 32]) -> Outcome<Self> {
        let party = load(&vault, &key)?;
        let mut meta = key.meta.clone();
        meta.epoch = meta
            .epoch
            .checked_add(1)
            .ok_or_else(|| Fault::argument("no epoch is left"))?;
        let binding = Context {
            protocol: "refresh",
            engine: ENGINE,
            engine_version: &key.engine_version,
            made_version: VERSIONS[0],
            session_id: &session_id,
            key_id: &meta.key_id,
            epoch: meta.epoch,
            participants: &PARTIES,
            key: &[&key.public_key[..], &key.chain_code].concat(),
            share_set: &party.session_id,
            path: &[],
            message: &[],
        }
        .binding();
        let kind = Kind::Refresh {
            party: Box::new(party),
            correction: Zeroizing::new(Scalar::ZERO),
            zero_2to3: BTreeMap::new(),
            zero_3to4: BTreeMap::new(),
            mul: BTreeMap::new(),
        };
        Ok(Self::with(vault, meta, binding, kind))
    }

    fn with(vault: Arc<Vault>, meta: Meta, binding: [u8; 32], kind: Kind) -> Self {
        let wire = Wire::new(binding, meta.party, &PARTIES);
        Self {
            vault,
            meta,
            wire,
            pairwise: None,
            kind,
            fragment: Zeroizing::new(Scalar::ZERO),
            own_public: Vec::new(),
            own_proof: None,
            commitments: BTreeMap::new(),
            zero_commitments: Vec::new(),
            echo: [0; 32],
            key: None,
        }
    }

    fn hello(&mut self) -> Outcome<Progress> {
        let pairwise = Pairwise::new()?;
        self.own_public = pairwise.public().to_vec();
        self.pairwise = Some(pairwise);
        let messages = self.wire.broadcast(self.own_public.clone())?;
        Ok(Progress::send(&self.wire, messages))
    }

    /// Sends the same public part to all parties, and a private part to each.
    fn direct(&mut self, public: &[u8], private: BTreeMap<u8, Vec<u8>>) -> Outcome<Progress> {
        let pairwise = self.pairwise.as_ref().ok_or_else(over)?;
        let messages = pairwise.direct(&mut self.wire, public, private)?;
        Ok(Progress::send(&self.wire, messages))
    }

    fn accept_direct(&mut self, inbox: Vec<Inbound>) -> Outcome<BTreeMap<u8, Body>> {
        let mut bodies = self.wire.accept(inbox, true)?;
        if self.wire.round == 2 {
            // Before any private part is decrypted: a party with a wrong session key of another
            // party would otherwise blame the wrong one.
            self.wire.compare_echo(&self.echo, &bodies)?;
        }
        self.pairwise
            .as_ref()
            .ok_or_else(over)?
            .open(&self.wire, &mut bodies)?;
        Ok(bodies)
    }

    fn fragments(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        for (from, body) in &bodies {
            self.pairwise
                .as_mut()
                .ok_or_else(over)?
                .learn(*from, &body.public)?;
        }
        self.echo = self.wire.echo(&self.own_public, &bodies);
        let fragments = Zeroizing::new(match &self.kind {
            Kind::New { session } => session.as_ref().ok_or_else(over)?.phase1(),
            Kind::Refresh { party, .. } => party.refresh_complete_phase1(),
        });
        let mut private = BTreeMap::new();
        for party in PARTIES {
            let fragment = fragments.get(usize::from(party) - 1).ok_or_else(over)?;
            if party == self.meta.party {
                *self.fragment = *fragment;
            } else {
                private.insert(party, encode(fragment)?);
            }
        }
        let echo = self.echo;
        self.direct(&echo, private)
    }

    fn commit(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        let mut fragments = Zeroizing::new(vec![*self.fragment]);
        for (from, body) in &bodies {
            fragments.push(decode::<Scalar>(*from, &body.private)?);
        }
        self.fragment.zeroize();
        let (proof, zero, chain_code) = match &mut self.kind {
            Kind::New { session } => {
                let (proof, zero, chain_code) =
                    session.as_mut().ok_or_else(over)?.phase2(&fragments)?;
                (proof, zero, Some(chain_code))
            }
            Kind::Refresh {
                party,
                correction,
                zero_2to3,
                ..
            } => {
                let (value, proof, keep, zero) =
                    party.refresh_complete_phase2(&self.wire.binding, &fragments);
                **correction = value;
                *zero_2to3 = keep;
                (proof, zero, None)
            }
        };
        let commitments = Commitments {
            proof: proof.commitment,
            chain_code,
        };
        self.own_proof = Some(proof);
        self.own_public = encode(&commitments)?;
        self.commitments.insert(self.meta.party, commitments);
        let mut private = BTreeMap::new();
        for message in &zero {
            private.insert(message.parties.receiver.as_u8(), encode(message)?);
        }
        let public = self.own_public.clone();
        self.direct(&public, private)
    }

    fn echo_commitments(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        for (from, body) in &bodies {
            let theirs: Commitments = decode(*from, &body.public)?;
            let named = theirs.chain_code.as_ref().map(|c| c.sender_index.as_u8());
            let wanted = matches!(self.kind, Kind::New { .. }).then_some(*from);
            if named != wanted {
                return Err(Fault::malformed(
                    *from,
                    "chain code commitment missing or misplaced",
                ));
            }
            let repeated = self.commitments.values().any(|other| {
                other.proof == theirs.proof
                    || other
                        .chain_code
                        .as_ref()
                        .zip(theirs.chain_code.as_ref())
                        .is_some_and(|(a, b)| a.cc_commitment == b.cc_commitment)
            });
            if repeated {
                // A copied commitment can be opened with the copied opening. The engine does not
                // bind the chain code's commitment to its sender, and two equal ones would cancel
                // out.
                return Err(Fault::abort("commitment copied from another party").by(*from));
            }
            let zero: TransmitInitZeroSharePhase2to4 = decode(*from, &body.private)?;
            check_parties(&zero.parties, *from, self.meta.party)?;
            self.commitments.insert(*from, theirs);
            self.zero_commitments.push(zero);
        }
        self.echo = self.wire.echo(&self.own_public, &bodies);
        let messages = self.wire.broadcast(self.echo.to_vec())?;
        Ok(Progress::send(&self.wire, messages))
    }

    fn reveal(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        self.wire.compare_echo(&self.echo, &bodies)?;
        let (zero, mul, chain_code) = match &mut self.kind {
            Kind::New { session } => {
                let (zero, mul, chain_code) = session.as_mut().ok_or_else(over)?.phase3()?;
                (zero, mul, Some(chain_code))
            }
            Kind::Refresh {
                party,
                zero_2to3,
                zero_3to4,
                mul: keep_mul,
                ..
            } => {
                let (keep, zero, keep_m, mul) =
                    party.refresh_complete_phase3(&self.wire.binding, zero_2to3);
                *zero_3to4 = keep;
                *keep_mul = keep_m;
                (zero, mul, None)
            }
        };
        let proof = self.own_proof.as_ref().ok_or_else(over)?.proof.clone();
        self.own_public = encode(&Reveal { proof, chain_code })?;
        let mut private = BTreeMap::new();
        for (zero, mul) in zero.into_iter().zip(mul) {
            let to = zero.parties.receiver;
            if mul.parties.receiver != to {
                return Err(over());
            }
            private.insert(to.as_u8(), encode(&SetUp { zero, mul })?);
        }
        let public = self.own_public.clone();
        self.direct(&public, private)
    }

    fn finish(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        let me = self.meta.party;
        let own_proof = self.own_proof.take().ok_or_else(over)?;
        let own: Reveal = decode(me, &self.own_public)?;
        let mut proofs = vec![own_proof];
        let mut zeros = Vec::new();
        let mut muls = Vec::new();
        let mut reveals: BTreeMap<PartyIndex, BroadcastDerivationPhase3to4> = own
            .chain_code
            .into_iter()
            .map(|code| (index(me), code))
            .collect();
        for (from, body) in &bodies {
            let reveal: Reveal = decode(*from, &body.public)?;
            let set_up: SetUp = decode(*from, &body.private)?;
            check_parties(&set_up.zero.parties, *from, me)?;
            check_parties(&set_up.mul.parties, *from, me)?;
            let commitment = self.commitments.get(from).ok_or_else(over)?.proof;
            proofs.push(ProofCommitment {
                index: index(*from),
                proof: reveal.proof,
                commitment,
            });
            if let Some(code) = reveal.chain_code {
                if code.sender_index.as_u8() != *from {
                    return Err(Fault::malformed(*from, "chain code of another party"));
                }
                reveals.insert(index(*from), code);
            }
            zeros.push(set_up.zero);
            muls.push(set_up.mul);
        }
        let party = match &mut self.kind {
            Kind::New { session } => {
                let commitments: BTreeMap<_, _> = self
                    .commitments
                    .iter()
                    .filter_map(|(party, c)| Some((index(*party), c.chain_code.clone()?)))
                    .collect();
                let session = session.take().ok_or_else(over)?;
                session
                    .phase4(
                        &proofs,
                        &self.zero_commitments,
                        &zeros,
                        &muls,
                        &commitments,
                        &reveals,
                        |_| String::new(),
                    )?
                    .0
            }
            Kind::Refresh {
                party,
                correction,
                zero_3to4,
                mul,
                ..
            } => {
                if !reveals.is_empty() {
                    return Err(Fault::abort("a chain code was sent in a refresh"));
                }
                party.refresh_complete_phase4(
                    &self.wire.binding,
                    correction,
                    &proofs,
                    zero_3to4,
                    &self.zero_commitments,
                    &zeros,
                    mul,
                    &muls,
                )?
            }
        };
        let key = seal(&self.vault, self.meta.clone(), &party)?;
        let seen = self.wire.echo(&self.own_public, &bodies);
        self.echo = crate::frame::hash(
            "custody/threshold/result/v1",
            &[&seen, &key.public_key, &key.chain_code, &party.session_id],
        );
        self.key = Some(key);
        let messages = self.wire.broadcast(self.echo.to_vec())?;
        Ok(Progress::send(&self.wire, messages))
    }
}

fn over() -> Fault {
    Fault::abort("the engine's state is out of order")
}

impl Machine for Generation {
    fn step(&mut self, inbox: Vec<Inbound>) -> Outcome<Progress> {
        reseed_engine()?;
        match self.wire.round {
            0 => self.hello(),
            1 => {
                let bodies = self.wire.accept(inbox, false)?;
                self.fragments(bodies)
            }
            2 => {
                let bodies = self.accept_direct(inbox)?;
                self.commit(bodies)
            }
            3 => {
                let bodies = self.accept_direct(inbox)?;
                self.echo_commitments(bodies)
            }
            4 => {
                let bodies = self.wire.accept(inbox, false)?;
                self.reveal(bodies)
            }
            5 => {
                let bodies = self.accept_direct(inbox)?;
                self.finish(bodies)
            }
            _ => {
                let bodies = self.wire.accept(inbox, false)?;
                self.wire.compare_echo(&self.echo, &bodies)?;
                let key = self.key.take().ok_or_else(over)?;
                Ok(Progress::done(&self.wire, Done::Key(key)))
            }
        }
    }
}
