//! Signing in three rounds. Only in signing can the engine prove cheating (`BanCounterparty`).

#[cfg(all(test, target_os = "linux"))]
mod opened;

use super::*;
use dkls23_secp256k1::protocols::signing::{
    Broadcast3to4, KeepPhase1to2, KeepPhase2to3, SignData, TransmitPhase1to2, TransmitPhase2to3,
    UniqueKeep1to2, UniqueKeep2to3,
};
use k256::ecdsa::signature::hazmat::PrehashVerifier;
use k256::AffinePoint;

enum Stage {
    Start,
    One(
        UniqueKeep1to2<Secp256k1>,
        BTreeMap<PartyIndex, KeepPhase1to2<Secp256k1>>,
    ),
    Two(
        UniqueKeep2to3<Secp256k1>,
        BTreeMap<PartyIndex, KeepPhase2to3<Secp256k1>>,
    ),
    Three(String, Box<Broadcast3to4<Secp256k1>>),
    Over,
}

pub struct Signing {
    /// The party's state for the child key: share and public key are already derived along the
    /// path.
    party: Box<Party>,
    public_key: AffinePoint,
    data: SignData,
    wire: Wire,
    stage: Stage,
}

impl Signing {
    pub fn start(
        vault: Arc<Vault>,
        key: Key,
        session_id: [u8; 32],
        participants: [u8; 2],
        path: &[u32],
        digest: [u8; 32],
    ) -> Outcome<Self> {
        let mut party = load(&vault, &key)?;
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
            share_set: &party.session_id,
            path,
            message: &digest,
        }
        .binding();
        let child = derive::secp256k1_child(party.derivation_data.clone(), path)?;
        party.poly_point = child.poly_point;
        party.pk = child.pk;
        party.derivation_data = child;
        let wire = Wire::new(binding, key.meta.party, &participants);
        let counterparties = wire.others.iter().map(|party| index(*party)).collect();
        let data = SignData {
            sign_id: binding.to_vec(),
            counterparties,
            message_hash: digest,
        };
        Ok(Self {
            public_key: party.pk,
            party: Box::new(party),
            data,
            wire,
            stage: Stage::Start,
        })
    }

    /// Verifies the signature with the ECDSA of `k256` instead of the engine's own, and determines
    /// the recovery id by trial.
    fn finished(&self, r: [u8; 32], s: [u8; 32]) -> Outcome<Signature> {
        use k256::ecdsa::{RecoveryId, Signature as Ecdsa, VerifyingKey};
        let failed = || Fault::abort("the finished signature does not verify");
        let signature = Ecdsa::from_scalars(r, s).map_err(|_| failed())?;
        let signature = signature.normalize_s();
        let key = VerifyingKey::from_affine(self.public_key).map_err(|_| failed())?;
        key.verify_prehash(&self.data.message_hash, &signature)
            .map_err(|_| failed())?;
        let recovery_id = (0..4)
            .find(|id| {
                RecoveryId::from_byte(*id)
                    .and_then(|id| {
                        VerifyingKey::recover_from_prehash(&self.data.message_hash, &signature, id)
                            .ok()
                    })
                    .is_some_and(|found| found == key)
            })
            .ok_or_else(failed)?;
        Ok(Signature {
            bytes: signature.to_bytes().into(),
            recovery_id: Some(recovery_id),
        })
    }
}

impl Machine for Signing {
    fn step(&mut self, inbox: Vec<Inbound>) -> Outcome<Progress> {
        reseed_engine()?;
        let me = self.wire.party;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => {
                let (unique, kept, transmit) = self.party.sign_phase1(&self.data)?;
                self.stage = Stage::One(unique, kept);
                let mut private = BTreeMap::new();
                for message in &transmit {
                    private.insert(message.parties.receiver.as_u8(), encode(message)?);
                }
                let messages = self.wire.direct(&[], private)?;
                Ok(Progress::send(&self.wire, messages))
            }
            Stage::One(unique, kept) => {
                let mut received: Vec<TransmitPhase1to2> = Vec::new();
                for (from, body) in self.wire.accept(inbox, true)? {
                    let message: TransmitPhase1to2 = decode(from, &body.private)?;
                    check_parties(&message.parties, from, me)?;
                    received.push(message);
                }
                let (unique, kept, transmit) = self
                    .party
                    .sign_phase2(&self.data, unique, kept, &received)?;
                self.stage = Stage::Two(unique, kept);
                let mut private = BTreeMap::new();
                for message in &transmit {
                    private.insert(message.parties.receiver.as_u8(), encode(message)?);
                }
                let messages = self.wire.direct(&[], private)?;
                Ok(Progress::send(&self.wire, messages))
            }
            Stage::Two(unique, kept) => {
                let mut received: Vec<TransmitPhase2to3<Secp256k1>> = Vec::new();
                for (from, body) in self.wire.accept(inbox, true)? {
                    let message: TransmitPhase2to3<Secp256k1> = decode(from, &body.private)?;
                    check_parties(&message.parties, from, me)?;
                    received.push(message);
                }
                let (x, broadcast) = self
                    .party
                    .sign_phase3(&self.data, unique, kept, &received)?;
                let messages = self.wire.broadcast(encode(&broadcast)?)?;
                self.stage = Stage::Three(x, Box::new(broadcast));
                Ok(Progress::send(&self.wire, messages))
            }
            Stage::Three(x, own) => {
                let mut received = vec![*own];
                for (from, body) in self.wire.accept(inbox, false)? {
                    received.push(decode(from, &body.public)?);
                }
                let (s, _) = self.party.sign_phase4(&self.data, &x, &received, true)?;
                let signature = self.finished(unhex(&x)?, unhex(&s)?)?;
                Ok(Progress::done(&self.wire, Done::Signature(signature)))
            }
            Stage::Over => Err(over()),
        }
    }
}

fn unhex(text: &str) -> Outcome<[u8; 32]> {
    let failed = || Fault::abort("the engine gave a malformed signature");
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err(failed());
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(pair).map_err(|_| failed())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| failed())?;
    }
    Ok(out)
}
