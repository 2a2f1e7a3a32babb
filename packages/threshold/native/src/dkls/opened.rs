//! Secrets of a run, which the transcript vectors contain (`transcripts.rs`).

use super::*;
use crate::transcripts::{hex, Json, Kept, Message};

/// The base transfers whose encryption proofs are stored.
const SAMPLES: [usize; 2] = [0, 255];

fn encoded<T: Serialize>(value: &T) -> usize {
    encode(value).unwrap().len()
}

fn set_up_of(message: &Message) -> (SetUp, usize, usize) {
    let all: SetUp = decode(message.from, &message.private).unwrap();
    let one = encoded(&all.mul.enc_proofs[0]);
    let proofs = message.private.len() - all.mul.seed.len() - one * all.mul.enc_proofs.len();
    (all, proofs, one)
}

/// Stores a set-up without most of its encryption proofs.
pub fn set_up_slices(message: &Message) -> Kept {
    if message.round != 5 {
        return Kept::whole(message);
    }
    let (all, proofs, one) = set_up_of(message);
    let mut slices = vec![(0, proofs)];
    slices.extend(SAMPLES.map(|at| (proofs + at * one, one)));
    slices.push((
        message.private.len() - all.mul.seed.len(),
        all.mul.seed.len(),
    ));
    Kept(slices)
}

/// Stores the zero-share part of every set-up, and more only of the set-ups between 1 and 2.
pub fn refresh_slices(message: &Message) -> Kept {
    if message.round != 5 || message.from + message.to == 3 {
        return set_up_slices(message);
    }
    Kept(vec![(0, encoded(&set_up_of(message).0.zero))])
}

/// Stores of each message of a signature what cannot be computed from the secrets.
pub fn sign_slices(message: &Message) -> Kept {
    use dkls23_secp256k1::protocols::signing::{TransmitPhase1to2, TransmitPhase2to3};
    let bytes = &message.private;
    match message.round {
        1 => {
            let all: TransmitPhase1to2 = decode(message.from, bytes).unwrap();
            let row = &all.mul_transmit.u[0][..];
            let at = bytes
                .windows(row.len())
                .position(|part| part == row)
                .unwrap();
            Kept(vec![(0, at + row.len())])
        }
        2 => {
            let all: TransmitPhase2to3<Secp256k1> = decode(message.from, bytes).unwrap();
            let mul = &all.mul_transmit;
            let row = encoded(&mul.vector_of_tau[0]);
            let rows = row * mul.vector_of_tau.len();
            let rest = mul.ote_salt.len()
                + mul.verify_r.len()
                + encoded(&mul.verify_u)
                + encoded(&mul.gamma_sender);
            let at = bytes.len() - rest - rows;
            // The first entry of each row follows the row's length of two bytes.
            let first = 2 + encoded(&mul.vector_of_tau[0][0]);
            let mut slices = vec![(0, at)];
            slices.extend((0..mul.vector_of_tau.len()).map(|each| (at + each * row, first)));
            slices.push((bytes.len() - rest, rest));
            Kept(slices)
        }
        _ => Kept::whole(message),
    }
}

/// Bits in the order of the engine: the first is the lowest of the first byte.
fn packed(bits: &[bool]) -> Json {
    let bytes: Vec<u8> = bits
        .chunks(8)
        .map(|byte| {
            byte.iter()
                .rev()
                .fold(0, |all, bit| all << 1 | u8::from(*bit))
        })
        .collect();
    hex(&bytes)
}

/// The session id of the shares, and of each party its scalar and its seeds for the transfers with
/// each other party.
pub fn shares(vault: &Arc<Vault>, keys: &BTreeMap<u8, Key>) -> (Vec<u8>, Json) {
    let mut set = Vec::new();
    let mut all = Vec::new();
    for (number, key) in keys {
        let party = load(vault, key).unwrap();
        assert!(set.is_empty() || set == party.session_id);
        set.clone_from(&party.session_id);
        all.push((number.to_string(), hex(&scalar(&party.poly_point))));
    }
    (set, Json::Map(all))
}

pub fn scalar(value: &Scalar) -> [u8; 32] {
    use k256::elliptic_curve::PrimeField;
    value.to_repr().into()
}

/// A party's state of the extension with another party.
pub fn extension(party: &Party, other: u8) -> Vec<(&'static str, Json)> {
    let other = index(other);
    let receiver = &party.mul_receivers[&other].ote_receiver;
    let sender = &party.mul_senders[&other].ote_sender;
    vec![
        ("receiver_seeds_0", hex(&receiver.seeds0.concat())),
        ("receiver_seeds_1", hex(&receiver.seeds1.concat())),
        ("sender_correlation", packed(&sender.correlation)),
    ]
}

/// Secrets of the base transfer between 1 and 2 with the results in their shares.
pub fn base_transfer(
    vault: &Arc<Vault>,
    keys: &BTreeMap<u8, Key>,
    secrets: &BTreeMap<u8, BTreeMap<u8, BaseSecrets>>,
) -> Json {
    let mut all = Vec::new();
    for (from, to) in [(1, 2), (2, 1)] {
        let own = &secrets[&from][&to];
        let party = load(vault, &keys[&from]).unwrap();
        let receiver = &party.mul_receivers[&index(to)].ote_receiver;
        let sender = &party.mul_senders[&index(to)].ote_sender;
        let samples = SAMPLES.map(|at| {
            let fields = Json::map(vec![
                ("receiver_scalar", hex(&scalar(&own.scalars[at]))),
                ("receiver_bit", Json::Number(own.bits[at].into())),
                ("received", hex(&sender.seeds[at])),
                ("sent_0", hex(&receiver.seeds0[at])),
                ("sent_1", hex(&receiver.seeds1[at])),
            ]);
            (at.to_string(), fields)
        });
        let fields = Json::map(vec![
            ("sender_scalar", hex(&scalar(&own.sender))),
            ("samples", Json::Map(samples.into())),
        ]);
        all.push((from.to_string(), fields));
    }
    Json::Map(all)
}

pub struct BaseSecrets {
    sender: Scalar,
    scalars: Vec<Scalar>,
    bits: Vec<bool>,
}

impl Generation {
    pub fn round(&self) -> u8 {
        self.wire.round
    }

    pub fn session_secret(&self) -> [u8; 32] {
        self.pairwise.as_ref().unwrap().secret()
    }

    pub fn base_secrets(&self) -> BTreeMap<u8, BaseSecrets> {
        let Kind::Refresh { mul, .. } = &self.kind else {
            panic!("the engine keeps these secrets of a key generation to itself")
        };
        let secrets = mul.iter().map(|(party, keep)| {
            let secrets = BaseSecrets {
                sender: keep.ot_sender.s,
                scalars: keep.vec_r.clone(),
                bits: keep.correlation.clone(),
            };
            (party.as_u8(), secrets)
        });
        secrets.collect()
    }
}
