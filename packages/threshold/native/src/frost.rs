//! Ed25519: FROST (RFC 9591), implemented by the crate `frost-ed25519`.
//!
//! Key generation has four rounds:
//! 1. commitment to a part of the chain code, session key, polynomial commitment with its proof
//!    (public)
//! 2. echo of round 1
//! 3. part of the chain code (public), secret fragment (direct, encrypted: `private.rs`)
//! 4. echo of round 3 and of the resulting key
//!
//! Refresh has the same rounds without the chain code. Signing has two rounds: commitments, shares.

#[cfg(test)]
mod forged;
#[cfg(all(test, target_os = "linux"))]
pub mod opened;
#[cfg(test)]
mod vectors;

use crate::derive;
use crate::fault::{Fault, Outcome};
use crate::frame::{hash, Body, Inbound, Wire};
use crate::private::{Pairwise, KEY_BYTES};
use crate::rng::SessionRng;
use crate::session::*;
use crate::vault::{random, Meta, Share, Vault};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::scalar::Scalar;
use frost_ed25519::keys::dkg::{self, round1 as dkg1, round2 as dkg2};
use frost_ed25519::keys::{refresh, KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare};
use frost_ed25519::{
    aggregate, round1, round2, Identifier, Signature as Schnorr, SigningPackage, VerifyingKey,
};
use rand_core::{CryptoRng, RngCore};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub const ENGINE: &str = "frost-ed25519";
/// The versions whose shares can be opened; new shares have the first one.
pub const VERSIONS: &[&str] = if cfg!(test) {
    &["3.0.0", OLDER_IN_TESTS]
} else {
    &["3.0.0"]
};
pub const CURVE: &str = "ed25519";

fn identifier(party: u8) -> Identifier {
    Identifier::try_from(u16::from(party)).expect("party numbers begin at 1")
}

fn party_of(id: &Identifier) -> Option<u8> {
    PARTIES.into_iter().find(|party| identifier(*party) == *id)
}

impl From<frost_ed25519::Error> for Fault {
    fn from(error: frost_ed25519::Error) -> Self {
        let message = error.to_string();
        // A bad share or proof stops this run and leaks nothing, so it is an abort, never a ban.
        let culprit = match &error {
            frost_ed25519::Error::InvalidSignatureShare { culprits } => {
                culprits.first().and_then(party_of)
            }
            frost_ed25519::Error::InvalidProofOfKnowledge { culprit } => party_of(culprit),
            frost_ed25519::Error::InvalidSecretShare { culprit } => {
                culprit.as_ref().and_then(party_of)
            }
            _ => None,
        };
        Fault {
            counterparty: culprit,
            ..Fault::abort(message)
        }
    }
}

fn unreadable(from: u8) -> impl Fn(frost_ed25519::Error) -> Fault {
    move |_| Fault::malformed(from, "message body does not decode")
}

fn over() -> Fault {
    Fault::abort("the engine's state is out of order")
}

#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct State {
    key: Vec<u8>,
    public: Vec<u8>,
}

struct Loaded {
    key: KeyPackage,
    public: PublicKeyPackage,
}

impl Loaded {
    /// Identifies this set of shares. It changes with every refresh.
    fn share_set(&self) -> Outcome<[u8; 32]> {
        Ok(hash(
            "custody/threshold/share-set/v1",
            &[&self.public.serialize()?],
        ))
    }

    /// Checks every invariant that signing relies on, so that neither a faulty engine nor a faulty
    /// refresh can reveal a share.
    fn check(&self, party: u8) -> Outcome<()> {
        let me = identifier(party);
        let shares = self.public.verifying_shares();
        let group = self.public.verifying_key();
        let own = VerifyingShare::from(*self.key.signing_share());
        let element = |share: &VerifyingShare| -> Outcome<_> {
            let bytes: [u8; 32] = share.serialize()?.try_into().map_err(|_| over())?;
            CompressedEdwardsY(bytes).decompress().ok_or_else(over)
        };
        let mut points = BTreeMap::new();
        for party in PARTIES {
            points.insert(
                party,
                element(shares.get(&identifier(party)).ok_or_else(over)?)?,
            );
        }
        // All three points are on one line whose value at 0 is the group key:
        // 2·P1 - P2 = 3·P2 - 2·P3 = A.
        let [p1, p2, p3] = [points[&1], points[&2], points[&3]];
        let line = p1 + p1 - p2;
        let other = p2 + p2 + p2 - p3 - p3;
        let good = *self.key.identifier() == me
            && *self.key.min_signers() == u16::from(THRESHOLD)
            && self.public.min_signers() == Some(u16::from(THRESHOLD))
            && shares.len() == PARTIES.len()
            && *self.key.verifying_key() == *group
            && *self.key.verifying_share() == own
            && shares.get(&me) == Some(&own)
            && line == other
            && line.compress().0[..] == group.serialize()?[..];
        if good {
            Ok(())
        } else {
            Err(Fault::abort("the shares do not fit the public key"))
        }
    }
}

fn seal(vault: &Vault, meta: Meta, loaded: &Loaded, chain_code: [u8; 32]) -> Outcome<Key> {
    let public_key = loaded.public.verifying_key().serialize()?;
    let state = State {
        key: loaded.key.serialize()?,
        public: loaded.public.serialize()?,
    };
    let share = Share {
        engine_version: VERSIONS[0].into(),
        public_key: public_key.clone(),
        chain_code,
        state: postcard::to_extend(&state, Vec::with_capacity(4096))
            .map_err(|_| Fault::abort("the share does not encode"))?,
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

fn load(vault: &Arc<Vault>, key: &Key) -> Outcome<Loaded> {
    let share = unseal(vault, key, CURVE)?;
    let bad = |_| Fault::sealed("the engine's state does not decode");
    let state: State = match postcard::take_from_bytes(&share.state) {
        Ok((state, [])) => state,
        _ => return Err(Fault::sealed("the engine's state does not decode")),
    };
    let loaded = Loaded {
        key: KeyPackage::deserialize(&state.key).map_err(bad)?,
        public: PublicKeyPackage::deserialize(&state.public).map_err(bad)?,
    };
    loaded
        .check(key.meta.party)
        .map_err(|fault| Fault::sealed(fault.message))?;
    if loaded.public.verifying_key().serialize()? != key.public_key {
        return Err(Fault::sealed("the engine's state is not of this key"));
    }
    Ok(loaded)
}

// ---- key generation and refresh -------------------------------------------------------------

struct Old {
    loaded: Loaded,
    chain_code: [u8; 32],
}

pub struct Generation {
    vault: Arc<Vault>,
    meta: Meta,
    wire: Wire,
    /// The shares to refresh; `None` for a new key.
    old: Option<Old>,
    pairwise: Option<Pairwise>,
    chain_part: [u8; 32],
    own_public: Vec<u8>,
    secret1: Option<dkg1::SecretPackage>,
    secret2: Option<dkg2::SecretPackage>,
    packages: BTreeMap<Identifier, dkg1::Package>,
    chain_commitments: BTreeMap<u8, [u8; 32]>,
    echo: [u8; 32],
    key: Option<Key>,
}

impl Generation {
    pub fn start_new(vault: Arc<Vault>, meta: Meta, session_id: [u8; 32]) -> Self {
        let binding = Self::binding("keygen", VERSIONS[0], &meta, &session_id, &[], &[]);
        Self::with(vault, meta, binding, None)
    }

    pub fn start_refresh(vault: Arc<Vault>, key: Key, session_id: [u8; 32]) -> Outcome<Self> {
        let loaded = load(&vault, &key)?;
        let mut meta = key.meta.clone();
        meta.epoch = meta
            .epoch
            .checked_add(1)
            .ok_or_else(|| Fault::argument("no epoch is left"))?;
        let named = [&key.public_key[..], &key.chain_code].concat();
        let set = loaded.share_set()?;
        let binding = Self::binding(
            "refresh",
            &key.engine_version,
            &meta,
            &session_id,
            &named,
            &set,
        );
        Ok(Self::with(
            vault,
            meta,
            binding,
            Some(Old {
                loaded,
                chain_code: key.chain_code,
            }),
        ))
    }

    fn binding(
        protocol: &str,
        engine_version: &str,
        meta: &Meta,
        session_id: &[u8; 32],
        key: &[u8],
        set: &[u8],
    ) -> [u8; 32] {
        Context {
            protocol,
            engine: ENGINE,
            engine_version,
            made_version: VERSIONS[0],
            session_id,
            key_id: &meta.key_id,
            epoch: meta.epoch,
            participants: &PARTIES,
            key,
            share_set: set,
            path: &[],
            message: &[],
        }
        .binding()
    }

    fn with(vault: Arc<Vault>, meta: Meta, binding: [u8; 32], old: Option<Old>) -> Self {
        let wire = Wire::new(binding, meta.party, &PARTIES);
        Self {
            vault,
            meta,
            wire,
            old,
            pairwise: None,
            chain_part: [0; 32],
            own_public: Vec::new(),
            secret1: None,
            secret2: None,
            packages: BTreeMap::new(),
            chain_commitments: BTreeMap::new(),
            echo: [0; 32],
            key: None,
        }
    }

    fn chain_commitment(&self, party: u8, part: &[u8; 32]) -> [u8; 32] {
        hash(
            "custody/threshold/chain-code/commit/v1",
            &[&self.wire.binding, &[party], part],
        )
    }

    fn commit(&mut self) -> Outcome<Progress> {
        let me = identifier(self.meta.party);
        let (parties, threshold) = (PARTIES.len() as u16, u16::from(THRESHOLD));
        let rng = SessionRng::new(&self.wire.binding);
        let (secret, package) = match self.old {
            None => dkg::part1(me, parties, threshold, rng)?,
            Some(_) => refresh::refresh_dkg_part1(me, parties, threshold, rng)?,
        };
        self.secret1 = Some(secret);
        self.chain_part = random()?;
        // A refresh keeps its chain code, and sends 32 zero bytes instead of a commitment.
        let commitment = match self.old {
            None => self.chain_commitment(self.meta.party, &self.chain_part),
            Some(_) => [0; 32],
        };
        let pairwise = Pairwise::new()?;
        self.own_public = [&commitment[..], pairwise.public(), &package.serialize()?].concat();
        self.pairwise = Some(pairwise);
        let messages = self.wire.broadcast(self.own_public.clone())?;
        Ok(Progress::send(&self.wire, messages))
    }

    fn echo_commitments(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        for (from, body) in &bodies {
            let (commitment, (session_key, package)) = body
                .public
                .split_first_chunk::<32>()
                .and_then(|(commitment, rest)| {
                    Some((commitment, rest.split_first_chunk::<KEY_BYTES>()?))
                })
                .ok_or_else(|| Fault::malformed(*from, "message body does not decode"))?;
            self.pairwise
                .as_mut()
                .ok_or_else(over)?
                .learn(*from, session_key)?;
            if self.old.is_some() && *commitment != [0; 32] {
                return Err(Fault::malformed(
                    *from,
                    "chain code commitment in a refresh",
                ));
            }
            let parsed = dkg1::Package::deserialize(package).map_err(unreadable(*from))?;
            // Each value has one encoding, so that the echoed bytes are those that are used.
            if parsed.serialize()? != package {
                return Err(Fault::malformed(*from, "message body does not decode"));
            }
            self.chain_commitments.insert(*from, *commitment);
            self.packages.insert(identifier(*from), parsed);
        }
        self.echo = self.wire.echo(&self.own_public, &bodies);
        let messages = self.wire.broadcast(self.echo.to_vec())?;
        Ok(Progress::send(&self.wire, messages))
    }

    fn fragments(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        self.wire.compare_echo(&self.echo, &bodies)?;
        let secret = self.secret1.take().ok_or_else(over)?;
        let (secret, packages) = match self.old {
            None => dkg::part2(secret, &self.packages)?,
            Some(_) => refresh::refresh_dkg_part2(secret, &self.packages)?,
        };
        self.secret2 = Some(secret);
        let mut private = BTreeMap::new();
        for (id, package) in &packages {
            private.insert(party_of(id).ok_or_else(over)?, package.serialize()?);
        }
        self.own_public = if self.old.is_none() {
            self.chain_part.to_vec()
        } else {
            Vec::new()
        };
        let pairwise = self.pairwise.as_ref().ok_or_else(over)?;
        let messages = pairwise.direct(&mut self.wire, &self.own_public, private)?;
        Ok(Progress::send(&self.wire, messages))
    }

    fn finish(&mut self, bodies: BTreeMap<u8, Body>) -> Outcome<Progress> {
        let mut fragments = BTreeMap::new();
        let mut parts = BTreeMap::from([(self.meta.party, self.chain_part)]);
        for (from, body) in &bodies {
            let package = dkg2::Package::deserialize(&body.private).map_err(unreadable(*from))?;
            if Zeroizing::new(package.serialize()?)[..] != body.private[..] {
                return Err(Fault::malformed(*from, "message body does not decode"));
            }
            fragments.insert(identifier(*from), package);
            if self.old.is_some() {
                if !body.public.is_empty() {
                    return Err(Fault::malformed(*from, "chain code in a refresh"));
                }
                continue;
            }
            let part: [u8; 32] = body.public[..]
                .try_into()
                .map_err(|_| Fault::malformed(*from, "chain code of a wrong length"))?;
            if self.chain_commitments.get(from) != Some(&self.chain_commitment(*from, &part)) {
                return Err(Fault::abort("chain code differs from its commitment").by(*from));
            }
            parts.insert(*from, part);
        }
        let secret = self.secret2.take().ok_or_else(over)?;
        let (key, public, chain_code) = match self.old.take() {
            None => {
                let (key, public) = dkg::part3(&secret, &self.packages, &fragments)?;
                let mut all: Vec<&[u8]> = vec![&self.wire.binding];
                all.extend(parts.values().map(|part| &part[..]));
                (key, public, hash("custody/threshold/chain-code/v1", &all))
            }
            Some(old) => {
                let before = old.loaded.public.verifying_key().serialize()?;
                let (key, public) = refresh::refresh_dkg_shares(
                    &secret,
                    &self.packages,
                    &fragments,
                    old.loaded.public,
                    old.loaded.key,
                )?;
                if public.verifying_key().serialize()? != before {
                    return Err(Fault::abort("the refresh would change the public key"));
                }
                (key, public, old.chain_code)
            }
        };
        let loaded = Loaded { key, public };
        loaded.check(self.meta.party)?;
        let key = seal(&self.vault, self.meta.clone(), &loaded, chain_code)?;
        let seen = self.wire.echo(&self.own_public, &bodies);
        self.echo = hash(
            "custody/threshold/result/v1",
            &[
                &seen,
                &key.public_key,
                &key.chain_code,
                &loaded.share_set()?,
            ],
        );
        self.key = Some(key);
        let messages = self.wire.broadcast(self.echo.to_vec())?;
        Ok(Progress::send(&self.wire, messages))
    }
}

impl Machine for Generation {
    fn step(&mut self, inbox: Vec<Inbound>) -> Outcome<Progress> {
        match self.wire.round {
            0 => self.commit(),
            1 => {
                let bodies = self.wire.accept(inbox, false)?;
                self.echo_commitments(bodies)
            }
            2 => {
                let bodies = self.wire.accept(inbox, false)?;
                self.fragments(bodies)
            }
            3 => {
                let mut bodies = self.wire.accept(inbox, true)?;
                self.pairwise
                    .as_ref()
                    .ok_or_else(over)?
                    .open(&self.wire, &mut bodies)?;
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

// ---- signing --------------------------------------------------------------------------------

enum Stage {
    Start,
    One(Box<round1::SigningNonces>, Box<round1::SigningCommitments>),
    Two(Box<SigningPackage>, Box<round2::SignatureShare>),
    Over,
}

pub struct Signing {
    /// Shares and public keys at the child key.
    key: KeyPackage,
    public: PublicKeyPackage,
    message: Vec<u8>,
    wire: Wire,
    stage: Stage,
}

fn tweaked(
    loaded: &Loaded,
    child: &derive::Ed25519Child,
) -> Outcome<(KeyPackage, PublicKeyPackage)> {
    let secret: Zeroizing<Vec<u8>> = Zeroizing::new(loaded.key.signing_share().serialize());
    let mut bytes = Zeroizing::new([0; 32]);
    if secret.len() != 32 {
        return Err(over());
    }
    bytes.copy_from_slice(&secret);
    let scalar: Option<Scalar> = Scalar::from_canonical_bytes(*bytes).into();
    let mut moved = Zeroizing::new(scalar.ok_or_else(over)?);
    *moved += child.tweak;
    let signing = SigningShare::deserialize(moved.as_bytes())?;
    let mut shares = BTreeMap::new();
    for (id, share) in loaded.public.verifying_shares() {
        let bytes: [u8; 32] = share.serialize()?.try_into().map_err(|_| over())?;
        let point = CompressedEdwardsY(bytes).decompress().ok_or_else(over)? + child.tweak_point;
        shares.insert(*id, VerifyingShare::deserialize(&point.compress().0)?);
    }
    let group = VerifyingKey::deserialize(&child.public_key)?;
    let own = VerifyingShare::from(signing);
    if shares.get(loaded.key.identifier()) != Some(&own) {
        return Err(over());
    }
    let key = KeyPackage::new(
        *loaded.key.identifier(),
        signing,
        own,
        group,
        u16::from(THRESHOLD),
    );
    Ok((
        key,
        PublicKeyPackage::new(shares, group, Some(u16::from(THRESHOLD))),
    ))
}

impl Signing {
    pub fn start(
        vault: Arc<Vault>,
        key: Key,
        session_id: [u8; 32],
        participants: [u8; 2],
        path: &[u32],
        message: Vec<u8>,
    ) -> Outcome<Self> {
        let loaded = load(&vault, &key)?;
        let binding = Context {
            protocol: "sign",
            engine: ENGINE,
            engine_version: &key.engine_version,
            made_version: "",
            session_id: &session_id,
            key_id: &key.meta.key_id,
            epoch: key.meta.epoch,
            participants: &participants,
            key: &[&key.public_key[..], &key.chain_code].concat(),
            share_set: &loaded.share_set()?,
            path,
            message: &message,
        }
        .binding();
        let child = derive::ed25519_child(&key.public_key, key.chain_code, path)?;
        let (tweaked_key, public) = tweaked(&loaded, &child)?;
        let wire = Wire::new(binding, key.meta.party, &participants);
        Ok(Self {
            key: tweaked_key,
            public,
            message,
            wire,
            stage: Stage::Start,
        })
    }

    /// The engine includes the share in each nonce's hash (RFC 9591, section 4.1), and the
    /// generator includes the session.
    fn commit(&mut self, rng: &mut (impl RngCore + CryptoRng)) -> Outcome<Progress> {
        let (nonces, commitments) = round1::commit(self.key.signing_share(), rng);
        let messages = self.wire.broadcast(commitments.serialize()?)?;
        self.stage = Stage::One(Box::new(nonces), Box::new(commitments));
        Ok(Progress::send(&self.wire, messages))
    }
}

impl Machine for Signing {
    fn step(&mut self, inbox: Vec<Inbound>) -> Outcome<Progress> {
        let me = *self.key.identifier();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => self.commit(&mut SessionRng::new(&self.wire.binding)),
            Stage::One(nonces, own) => {
                let mut commitments = BTreeMap::from([(me, *own)]);
                for (from, body) in self.wire.accept(inbox, false)? {
                    let theirs = round1::SigningCommitments::deserialize(&body.public)
                        .map_err(unreadable(from))?;
                    if theirs.serialize()? != body.public {
                        return Err(Fault::malformed(from, "message body does not decode"));
                    }
                    commitments.insert(identifier(from), theirs);
                }
                if commitments.len() != usize::from(THRESHOLD)
                    || commitments.get(&me) != Some(&*own)
                {
                    return Err(over());
                }
                let package = SigningPackage::new(commitments, &self.message);
                // The nonces are erased here, whatever the result, because they are for one message
                // only.
                let share = round2::sign(&package, &nonces, &self.key)?;
                drop(nonces);
                let messages = self.wire.broadcast(share.serialize())?;
                self.stage = Stage::Two(Box::new(package), Box::new(share));
                Ok(Progress::send(&self.wire, messages))
            }
            Stage::Two(package, own) => {
                let mut shares = BTreeMap::from([(me, *own)]);
                for (from, body) in self.wire.accept(inbox, false)? {
                    let share = round2::SignatureShare::deserialize(&body.public)
                        .map_err(unreadable(from))?;
                    shares.insert(identifier(from), share);
                }
                let signature: Schnorr = aggregate(&package, &shares, &self.public)?;
                self.public
                    .verifying_key()
                    .verify(&self.message, &signature)?;
                let bytes: [u8; 64] = signature.serialize()?.try_into().map_err(|_| over())?;
                Ok(Progress::done(
                    &self.wire,
                    Done::Signature(Signature {
                        bytes,
                        recovery_id: None,
                    }),
                ))
            }
            Stage::Over => Err(over()),
        }
    }
}
