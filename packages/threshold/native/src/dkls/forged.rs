//! Forged content that a hostile engine can put inside a private part of key generation or refresh
//! on secp256k1. `testing/cheating.ts` forges public parts from outside.

use super::*;
use crate::tests::*;
use k256::elliptic_curve::PrimeField;
use k256::{AffinePoint, ProjectivePoint};

/// The order of the group after its length, which is a scalar that is not reduced.
fn order() -> Vec<u8> {
    let mut bytes = (-Scalar::ONE).to_repr().to_vec();
    bytes[31] += 1;
    [vec![32], bytes].concat()
}

/// An encoding whose x coordinate belongs to no point.
fn off_curve() -> Vec<u8> {
    [&[33, 2][..], &[0; 31], &[5]].concat()
}

/// A length of 2^32 - 1.
const HUGE: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];

fn shifted(point: AffinePoint) -> AffinePoint {
    (ProjectivePoint::from(point) + ProjectivePoint::GENERATOR).to_affine()
}

/// Replaces the encoding of one part by another's.
fn replace(body: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let at = body
        .windows(old.len())
        .position(|window| window == old)
        .unwrap();
    body.splice(at..at + old.len(), new.iter().copied());
}

fn zero_commitment(change: fn(&mut TransmitInitZeroSharePhase2to4)) -> impl Fn(&mut Vec<u8>) {
    move |body| {
        let mut message = decode(1, body).unwrap();
        change(&mut message);
        *body = encode(&message).unwrap();
    }
}

fn set_up(change: fn(&mut SetUp)) -> impl Fn(&mut Vec<u8>) {
    move |body| {
        let mut message = decode(1, body).unwrap();
        change(&mut message);
        *body = encode(&message).unwrap();
    }
}

/// Creates a forgery that no value of the type can encode: replaces the encoding of one part by
/// other bytes.
fn within(change: fn(&SetUp) -> (Vec<u8>, Vec<u8>)) -> impl Fn(&mut Vec<u8>) {
    move |body| {
        let (old, new) = change(&decode(1, body).unwrap());
        replace(body, &old, &new);
    }
}

fn fragments() -> Vec<Forgery> {
    use End::*;
    let on = |end, name, change: fn(&mut Vec<u8>)| Forgery::new(2, end, name, change);
    vec![
        on(Abort, "a wrong fragment", |body| {
            *body = encode(&(decode::<Scalar>(1, body).unwrap() + Scalar::ONE)).unwrap();
        }),
        on(Malformed, "a fragment that is not reduced", |body| {
            *body = order()
        }),
        on(Malformed, "a short fragment", |body| {
            body.truncate(body.len() - 1)
        }),
        on(Malformed, "a long fragment", |body| body.push(0)),
        on(Malformed, "a fragment that is said to be huge", |body| {
            *body = [&HUGE[..], &body[1..]].concat()
        }),
        on(Malformed, "no fragment", Vec::clear),
    ]
}

fn zero_commitments() -> Vec<Forgery> {
    use End::*;
    let on = |end, name, change| Forgery::new(3, end, name, zero_commitment(change));
    vec![
        on(Abort, "another zero-share commitment", |message| {
            message.commitment[0] ^= 1
        }),
        on(Malformed, "a zero-share commitment of another", |message| {
            message.parties.sender = message.parties.receiver;
        }),
        on(
            Malformed,
            "a zero-share commitment for another",
            |message| {
                message.parties.receiver = message.parties.sender;
            },
        ),
        Forgery::new(3, Malformed, "a short zero-share commitment", |body| {
            body.truncate(body.len() - 1)
        }),
        Forgery::new(3, Malformed, "a long zero-share commitment", |body| {
            body.push(0)
        }),
        Forgery::new(3, Malformed, "no zero-share commitment", Vec::clear),
    ]
}

fn zero_shares() -> Vec<Forgery> {
    use End::*;
    let on = |end, name, change| Forgery::new(5, end, name, set_up(change));
    vec![
        on(Abort, "a wrong zero-share seed", |all| {
            all.zero.seed[0] ^= 1
        }),
        on(Abort, "a wrong zero-share salt", |all| {
            all.zero.salt[0] ^= 1
        }),
        on(Abort, "a short zero-share salt", |all| {
            all.zero.salt.truncate(63)
        }),
        on(Abort, "a long zero-share salt", |all| all.zero.salt.push(0)),
        on(Malformed, "a zero share of another", |all| {
            all.zero.parties.sender = all.zero.parties.receiver
        }),
    ]
}

fn base_ot() -> Vec<Forgery> {
    use End::*;
    let on = |end, name, change| Forgery::new(5, end, name, set_up(change));
    let raw = |end, name, change| Forgery::new(5, end, name, within(change));
    vec![
        on(Abort, "a wrong point of the base OT", |all| {
            all.mul.dlog_proof.point = shifted(all.mul.dlog_proof.point);
        }),
        on(Abort, "the identity as point of the base OT", |all| {
            all.mul.dlog_proof.point = AffinePoint::IDENTITY;
        }),
        raw(Malformed, "no point as point of the base OT", |all| {
            (encode(&all.mul.dlog_proof.point).unwrap(), off_curve())
        }),
        on(Abort, "a wrong response of the base OT", |all| {
            all.mul.dlog_proof.proofs[0].challenge_response += Scalar::ONE;
        }),
        on(Abort, "a long challenge of the base OT", |all| {
            all.mul.dlog_proof.proofs[5].challenge = vec![1; 40]
        }),
        on(Abort, "an empty challenge of the base OT", |all| {
            all.mul.dlog_proof.proofs[5].challenge.clear()
        }),
        raw(Malformed, "a challenge that is said to be huge", |all| {
            let proof = encode(&all.mul.dlog_proof.proofs[5]).unwrap();
            (proof.clone(), [&HUGE[..], &proof[1..]].concat())
        }),
        on(Abort, "a short proof of the base OT", |all| {
            all.mul.dlog_proof.rand_commitments.truncate(63)
        }),
        on(Abort, "a long proof of the base OT", |all| {
            let last = all.mul.dlog_proof.proofs[0].clone();
            all.mul.dlog_proof.proofs.push(last);
        }),
        on(Abort, "no proof of the base OT", |all| {
            all.mul.dlog_proof.rand_commitments.clear();
            all.mul.dlog_proof.proofs.clear();
        }),
        on(Abort, "a wrong seed of the base OT", |all| {
            all.mul.seed[0] ^= 1
        }),
        raw(Malformed, "a gadget nonce that is not reduced", |all| {
            (encode(&all.mul.nonce).unwrap(), order())
        }),
        on(Malformed, "a set-up of another", |all| {
            all.mul.parties.sender = all.mul.parties.receiver
        }),
    ]
}

fn encryption_proofs() -> Vec<Forgery> {
    use End::*;
    let on = |end, name, change| Forgery::new(5, end, name, set_up(change));
    let raw = |end, name, change| Forgery::new(5, end, name, within(change));
    vec![
        on(Abort, "a wrong encryption proof", |all| {
            all.mul.enc_proofs[7].proof0.challenge_response += Scalar::ONE;
        }),
        on(Abort, "another choice in the base OT", |all| {
            let proof = &mut all.mul.enc_proofs[7].proof0;
            proof.point_u = shifted(proof.point_u);
        }),
        on(Abort, "the identity in the base OT", |all| {
            all.mul.enc_proofs[7].proof0.point_v = AffinePoint::IDENTITY;
        }),
        on(Abort, "too few encryption proofs", |all| {
            drop(all.mul.enc_proofs.pop())
        }),
        on(Abort, "too many encryption proofs", |all| {
            let last = all.mul.enc_proofs[255].clone();
            all.mul.enc_proofs.push(last);
        }),
        on(Abort, "no encryption proofs", |all| {
            all.mul.enc_proofs.clear()
        }),
        raw(
            Malformed,
            "encryption proofs that are said to be many",
            |all| {
                let first = encode(&all.mul.enc_proofs[0]).unwrap();
                (
                    [&[0x80, 0x02][..], &first].concat(),
                    [&HUGE[..], &first].concat(),
                )
            },
        ),
        raw(Malformed, "no point in an encryption proof", |all| {
            (
                encode(&all.mul.enc_proofs[7].proof0.point_u).unwrap(),
                off_curve(),
            )
        }),
        Forgery::new(5, Malformed, "a set-up that is cut short", |body| {
            body.truncate(body.len() - 1)
        }),
        Forgery::new(5, Malformed, "a set-up that goes on", |body| body.push(0)),
        Forgery::new(5, Malformed, "no set-up", Vec::clear),
    ]
}

fn another_nonce(body: &mut Vec<u8>) {
    set_up(|all| all.mul.nonce += Scalar::ONE)(body);
}

fn all() -> Vec<Forgery> {
    [
        fragments(),
        zero_commitments(),
        zero_shares(),
        base_ot(),
        encryption_proofs(),
    ]
    .concat()
}

#[test]
fn forged_private_parts_of_key_generation() {
    let vault = vault();
    judge(all(), || generation(&vault, ENGINE, CURVE));
    harms_itself(
        &vault,
        1,
        5,
        another_nonce,
        generation(&vault, ENGINE, CURVE),
    );
}

#[test]
fn forged_private_parts_of_a_refresh() {
    let vault = vault();
    let keys = generate(&vault, ENGINE, CURVE);
    judge(all(), || refreshing(&vault, &keys).unwrap());
    harms_itself(
        &vault,
        3,
        5,
        another_nonce,
        refreshing(&vault, &keys).unwrap(),
    );
}
