//! Tests the engine, the sealed share and the messages of this addon with the vectors of RFC 9591,
//! appendix E.1. `test/rfc9591.test.ts` recomputes the same file without the engine.

use super::*;
use crate::vault::HomeKey;
use frost_ed25519::keys::{KeyPackage, PublicKeyPackage};
use rand_core::{CryptoRng, Error, RngCore};

const VECTORS: &str = include_str!("../../../testing/vectors/rfc9591-ed25519.json");
const SIGNERS: [u8; 2] = [1, 3];

/// Returns the value of a field in our own file, without a dependency on a JSON parser.
fn field(text: &str, name: &str) -> Vec<u8> {
    let rest = text
        .split_once(&format!("\"{name}\": \""))
        .unwrap_or_else(|| panic!("no {name}"))
        .1;
    let digits = rest.split_once('"').unwrap().0;
    assert!(digits.len() % 2 == 0);
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

fn of(party: u8) -> &'static str {
    let rest = VECTORS
        .split_once(&format!("\"identifier\": {party},"))
        .unwrap()
        .1;
    rest.split_once('}').unwrap().0
}

/// Random generator that returns the random bytes of the vectors.
struct Scripted(Vec<u8>);

impl RngCore for Scripted {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }
    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }
    fn fill_bytes(&mut self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<u8>>());
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

impl CryptoRng for Scripted {}

/// Returns the share of a party as a sealed key of this addon.
fn key_of(vault: &Arc<Vault>, party: u8) -> Key {
    let group = VerifyingKey::deserialize(&field(VECTORS, "group_public_key")).unwrap();
    let share = |party| SigningShare::deserialize(&field(of(party), "share")).unwrap();
    let shares = PARTIES
        .map(|party| (identifier(party), VerifyingShare::from(share(party))))
        .into();
    let public = PublicKeyPackage::new(shares, group, Some(u16::from(THRESHOLD)));
    let own = VerifyingShare::from(share(party));
    let key = KeyPackage::new(
        identifier(party),
        share(party),
        own,
        group,
        u16::from(THRESHOLD),
    );
    let meta = Meta {
        engine: ENGINE.into(),
        curve: CURVE.into(),
        key_id: "rfc9591".into(),
        epoch: 0,
        party,
    };
    let loaded = Loaded { key, public };
    loaded.check(party).unwrap();
    seal(vault, meta, &loaded, [7; 32]).unwrap()
}

#[test]
fn the_vectors_of_rfc_9591_come_out_of_our_signing() {
    let home = HomeKey {
        name: [1; 8],
        key: Zeroizing::new(random().unwrap()),
    };
    let vault = Arc::new(Vault::from_keys(vec![home], None).unwrap());
    let mut sides = BTreeMap::new();
    let mut sent = BTreeMap::new();
    for party in SIGNERS {
        let key = key_of(&vault, party);
        let message = field(VECTORS, "message");
        let mut side = Signing::start(vault.clone(), key, [3; 32], SIGNERS, &[], message).unwrap();
        let randomness = [
            field(of(party), "hiding_nonce_randomness"),
            field(of(party), "binding_nonce_randomness"),
        ]
        .concat();
        side.commit(&mut Scripted(randomness))
            .map(|progress| sent.insert(party, progress.messages))
            .unwrap();
        let Stage::One(nonces, commitments) = &side.stage else {
            panic!("no nonces")
        };
        assert_eq!(
            nonces.hiding().serialize(),
            field(of(party), "hiding_nonce")
        );
        assert_eq!(
            nonces.binding().serialize(),
            field(of(party), "binding_nonce")
        );
        assert_eq!(
            commitments.hiding().serialize().unwrap(),
            field(of(party), "hiding_nonce_commitment")
        );
        assert_eq!(
            commitments.binding().serialize().unwrap(),
            field(of(party), "binding_nonce_commitment")
        );
        sides.insert(party, side);
    }
    let mut signatures = Vec::new();
    for round in [2, 3] {
        let mut next = BTreeMap::new();
        for party in SIGNERS {
            let from = if party == 1 { 3 } else { 1 };
            let payload = sent[&from][0].payload.clone();
            let side = sides.get_mut(&party).unwrap();
            let progress = side
                .step(vec![Inbound {
                    from: from.into(),
                    payload,
                }])
                .unwrap();
            if round == 2 {
                // Header, check and the length of the public part, then the share as it is sent to
                // the other party.
                assert_eq!(
                    progress.messages[0].payload[59..],
                    field(of(party), "signature_share")
                );
            }
            if let Some(Done::Signature(signature)) = progress.done {
                signatures.push(signature.bytes.to_vec());
            }
            next.insert(party, progress.messages);
        }
        sent = next;
    }
    assert_eq!(signatures, vec![field(VECTORS, "sig"); 2]);
}
